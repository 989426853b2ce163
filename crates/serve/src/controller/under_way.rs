//! What a controller as a whole is in the middle of: a reset, a shutdown, giving host memory back. Completions on their way.

use lodger_wire::hmb::HmbFeature;
use lodger_wire::queue::Permit;
use lodger_wire::registers::Enable;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Resets and shutdowns.
#[derive(Debug, Default)]
pub(super) struct Transition {
    /// A reset waits for commands under way.
    is_resetting: bool,
    /// The guest has enabled the controller before a reset of the function was over.
    to_enable: Option<Enable>,
    is_shutting_down: bool,
    /// What a shutdown has the drive save is saved.
    is_saved: bool,
}

impl Transition {
    pub fn is_resetting(&self) -> bool {
        self.is_resetting
    }

    pub fn is_shutting_down(&self) -> bool {
        self.is_shutting_down
    }

    /// Neither.
    pub fn is_over(&self) -> bool {
        !self.is_resetting && !self.is_shutting_down
    }

    /// A reset ends a shutdown, and what the guest has enabled is no longer.
    pub fn begin_reset(&mut self) {
        *self = Transition {
            is_resetting: true,
            ..Transition::default()
        };
    }

    /// The guest enables the controller: once the reset under way has ended.
    pub fn enable_later(&mut self, enable: Enable) {
        self.to_enable = Some(enable);
    }

    pub fn end_reset(&mut self) {
        self.is_resetting = false;
    }

    /// What the guest has enabled meanwhile.
    pub fn take_enabled(&mut self) -> Option<Enable> {
        self.to_enable.take()
    }

    pub fn begin_shutdown(&mut self) {
        (self.is_shutting_down, self.is_saved) = (true, false);
    }

    pub fn saved(&mut self) {
        self.is_saved = true;
    }

    /// Whether nothing of a shutdown is left for the drive to do.
    pub fn has_saved(&self) -> bool {
        self.is_shutting_down && self.is_saved
    }

    pub fn end_shutdown(&mut self) {
        self.is_shutting_down = false;
    }
}

/// Whether commands of I/O queues wait, from one look at the queues to the next.
#[derive(Debug, Default)]
pub(super) struct Busy {
    is_busy: bool,
    since_ps: u64,
}

impl Busy {
    /// From now on there are such commands, or none. Returns how long there were since the last look.
    pub fn look(&mut self, now_ps: u64, is_busy: bool) -> u64 {
        let passed_ps = now_ps.saturating_sub(self.since_ps);
        self.since_ps = now_ps;
        match std::mem::replace(&mut self.is_busy, is_busy) {
            true => passed_ps,
            false => 0,
        }
    }
}

/// Host memory as the guest has granted it, and takes it back.
#[derive(Debug, Default)]
pub(super) struct Grant {
    pub feature: HmbFeature,
    /// Set Features that disables host memory, until nothing goes there any more.
    pub waiting: Option<Permit>,
    /// What was given up is still being saved from.
    pub settles: bool,
}

impl Grant {
    /// Nobody is told any more.
    pub fn abandon(&mut self) {
        if let Some(permit) = self.waiting.take() {
            permit.abandon();
        }
    }
}

/// What arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Arrived {
    /// The completion of a command, by what the drive calls it.
    Completion(u32),
    /// The answer to a call of the byte window, by tag.
    Answer(u32),
}

/// Completions on their way to the guest, earliest first, and of those the first that was sent.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    waiting: BinaryHeap<Reverse<(u64, u64, Arrived)>>,
    so_far: u64,
}

impl Arrivals {
    pub fn push(&mut self, at_ps: u64, what: Arrived) {
        self.so_far += 1;
        self.waiting.push(Reverse((at_ps, self.so_far, what)));
    }

    pub fn next_time_ps(&self) -> Option<u64> {
        self.waiting.peek().map(|Reverse((at_ps, ..))| *at_ps)
    }

    /// Takes the next that has arrived by now, and when it did.
    pub fn take(&mut self, now_ps: u64) -> Option<(u64, Arrived)> {
        let has_arrived = self.next_time_ps().is_some_and(|at_ps| at_ps <= now_ps);
        let arrival = has_arrived.then(|| self.waiting.pop()).flatten();
        arrival.map(|Reverse((at_ps, _, what))| (at_ps, what))
    }

    pub fn clear(&mut self) {
        self.waiting.clear();
    }
}
