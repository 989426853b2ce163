//! Watches runs that go on side by side: how far they all are, Ctrl-C, and whether each is still wanted.

use crate::interrupt;
use crate::progress::Shared;
use crate::side_by_side::Wanted;
use lodger_run::{Observer, Progress};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

/// Of a run's length, in [`Far::millionths`].
const WHOLE: u64 = 1_000_000;

/// How far a run is.
#[derive(Debug, Default)]
struct Far {
    millionths: AtomicU64,
    requests: AtomicU64,
}

/// All runs of a comparison.
#[derive(Debug)]
pub(super) struct Columns {
    far: Vec<Far>,
    meter: Shared,
}

impl Columns {
    /// None has begun.
    pub(super) fn new(count: usize) -> Self {
        Columns {
            far: (0..count).map(|_| Far::default()).collect(),
            meter: Shared::new(),
        }
    }

    /// Who watches run `index`.
    pub(super) fn column<'a>(&'a self, index: usize, wanted: &'a Wanted) -> Column<'a> {
        Column {
            index,
            columns: self,
            wanted,
        }
    }

    /// Something is said while they go on.
    pub(super) fn beside(&self, say: impl FnOnce()) {
        self.meter.beside(say);
    }

    /// How much of all is done, from 0 to 1: the runs of one command are about equally long.
    fn share(&self) -> f64 {
        let done = self
            .far
            .iter()
            .map(|far| far.millionths.load(Ordering::Relaxed));
        done.sum::<u64>() as f64 / (self.far.len() as u64 * WHOLE) as f64
    }

    fn show(&self) {
        self.meter.show(Some(self.share()), || {
            let requests = self
                .far
                .iter()
                .map(|far| far.requests.load(Ordering::Relaxed));
            let requests: u64 = requests.sum();
            format!("{} runs, {requests} requests", self.far.len())
        });
    }
}

/// The observer of one run.
#[derive(Debug)]
pub(super) struct Column<'a> {
    index: usize,
    columns: &'a Columns,
    wanted: &'a Wanted,
}

impl Observer for Column<'_> {
    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        if interrupt::requested() || !self.wanted.is(self.index) {
            return ControlFlow::Break(());
        }
        let far = &self.columns.far[self.index];
        let share = progress.share().unwrap_or(0.0);
        far.millionths
            .store((share * WHOLE as f64) as u64, Ordering::Relaxed);
        far.requests.store(progress.requests, Ordering::Relaxed);
        self.columns.show();
        ControlFlow::Continue(())
    }
}

impl Drop for Column<'_> {
    fn drop(&mut self) {
        // However far it was seen to be, it is over.
        self.columns.far[self.index]
            .millionths
            .store(WHOLE, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_side_by_side_add_up_to_one_share() {
        let columns = Columns::new(4);
        let wanted = Wanted::all(4);
        let far = |requests| Progress {
            requests,
            expected: Some(100),
            ..Progress::default()
        };
        let mut first = columns.column(0, &wanted);
        let mut third = columns.column(2, &wanted);
        assert!(first.progress(far(50)).is_continue());
        assert!(third.progress(far(10)).is_continue());
        assert_eq!(columns.share(), 0.15);
        drop(first);
        assert_eq!(columns.share(), 0.275);
    }
}
