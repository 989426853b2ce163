//! Completions that a job's thread takes some time after they have arrived: it sees them end as it looks, as fio's does.

use super::{Done, Observer, Runner};
use lodger_core::observe::{Part, PartsPs, Tracer};
use lodger_core::{Completion, Request};

impl<O: Observer, T: Tracer> Runner<'_, O, T> {
    /// A completion has arrived for a job that is busy or waits for more.
    #[cold]
    pub(super) fn keep(
        &mut self,
        index: usize,
        request: Request,
        completion: Completion,
        parts_ps: Option<PartsPs>,
    ) {
        self.arrived[index].push_back(Done {
            request,
            completion,
            parts_ps,
        });
        self.jobs[index].arrived();
        self.make_ready(index as u32);
    }

    /// The job takes the first of what has arrived.
    #[cold]
    pub(super) fn reap(&mut self, index: usize, completions: u32) {
        let now_ps = self.host.now_ps();
        for _ in 0..completions {
            let Some(mut done) = self.arrived[index].pop_front() else {
                unreachable!("a job takes what has not arrived");
            };
            if let Some(parts_ps) = &mut done.parts_ps {
                parts_ps[Part::Completion as usize] += now_ps - done.completion.completed_ps;
            }
            done.completion.completed_ps = now_ps;
            self.jobs[index].complete(&done.completion);
            self.results[index].returned();
            let parts_ps = done.parts_ps.as_ref();
            self.count(index, &done.request, &done.completion, parts_ps);
        }
    }
}
