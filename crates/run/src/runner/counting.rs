//! Completions that count, alone or with another.

use super::{Done, Observer, Runner};
use lodger_core::observe::{Part, PartsPs, Tracer};
use lodger_core::{Completion, Request, Status};
use lodger_workload::Counting;

impl<O: Observer, T: Tracer> Runner<'_, O, T> {
    #[inline]
    pub(super) fn count(
        &mut self,
        index: usize,
        request: &Request,
        completion: &Completion,
        parts_ps: Option<&PartsPs>,
    ) {
        self.results[index].completed(request, completion);
        self.observer.completed(index, request, completion);
        self.observer.counts(index, request, completion);
        if let Some(parts_ps) = parts_ps {
            self.observer.went(index, request, completion, parts_ps);
        }
    }

    /// A request that does not count by itself.
    #[cold]
    pub(super) fn count_together(&mut self, index: usize, counting: Counting, done: Done) {
        match counting {
            Counting::Head => self.heads[index] = Some(done),
            Counting::Tail => {
                let Some(head) = self.heads[index].take() else {
                    unreachable!("a flush that belongs to no write");
                };
                let Done {
                    request,
                    completion,
                    parts_ps,
                } = together(&head, &done);
                self.count(index, &request, &completion, parts_ps.as_ref());
            }
            Counting::Yes | Counting::No => {
                let Done {
                    request,
                    completion,
                    ..
                } = &done;
                self.observer.completed(index, request, completion);
            }
        }
    }
}

/// Two requests as one, which began with the first and ended with the second.
fn together(head: &Done, tail: &Done) -> Done {
    let status = match head.completion.status {
        Status::Success => tail.completion.status,
        failed => failed,
    };
    let mut parts_ps = head.parts_ps;
    if let (Some(sum), Some(more)) = (&mut parts_ps, &tail.parts_ps) {
        for (sum, more) in sum.iter_mut().zip(more) {
            *sum += more;
        }
        // The host, before it submits the second.
        let gap_ps = tail.completion.submitted_ps - head.completion.completed_ps;
        sum[Part::Submission as usize] += gap_ps;
    }
    Done {
        request: head.request,
        completion: Completion {
            status,
            completed_ps: tail.completion.completed_ps,
            ..head.completion
        },
        parts_ps,
    }
}
