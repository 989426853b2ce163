//! Completions that count, alone or with another.

use super::{Observer, Runner};
use lodger_core::{Completion, Request, Status};
use lodger_workload::Counting;

impl<O: Observer> Runner<'_, O> {
    #[inline]
    pub(super) fn count(&mut self, index: usize, request: &Request, completion: &Completion) {
        self.results[index].completed(request, completion);
        self.observer.completed(index, request, completion);
        self.observer.counts(index, request, completion);
    }

    /// A request that does not count by itself.
    #[cold]
    pub(super) fn count_together(
        &mut self,
        index: usize,
        counting: Counting,
        request: Request,
        completion: Completion,
    ) {
        match counting {
            Counting::Head => self.heads[index] = Some((request, completion)),
            Counting::Tail => {
                let Some((request, head)) = self.heads[index].take() else {
                    unreachable!("a flush that belongs to no write");
                };
                let status = match head.status {
                    Status::Success => completion.status,
                    failed => failed,
                };
                let whole = Completion {
                    status,
                    completed_ps: completion.completed_ps,
                    ..head
                };
                self.count(index, &request, &whole);
            }
            Counting::Yes | Counting::No => self.observer.completed(index, &request, &completion),
        }
    }
}
