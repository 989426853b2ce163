//! Commands that a user's rules hold up, or drop.

use super::Controller;
use crate::faults::{Fault, Faults};
use lodger_wire::entry::SubmissionEntry;
use lodger_wire::memory::GuestMemory;
use lodger_wire::queue::Permit;
use std::collections::VecDeque;

/// Rules, and commands that they keep.
#[derive(Debug, Default)]
pub(super) struct Kept {
    rules: Faults,
    /// With when they go on, earliest first.
    held: VecDeque<(u64, SubmissionEntry, Permit)>,
    dropped: Vec<Permit>,
}

impl Kept {
    pub(super) fn count(&self) -> u64 {
        self.rules.count()
    }

    pub(super) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    pub(super) fn next_time_ps(&self) -> Option<u64> {
        self.held.front().map(|(at_ps, ..)| *at_ps)
    }

    /// A reset: their queues are gone.
    pub(super) fn stop(&mut self) {
        self.dropped.drain(..).for_each(Permit::abandon);
        let held = self.held.drain(..);
        held.for_each(|(.., permit)| permit.abandon());
    }
}

impl<M: GuestMemory + Clone> Controller<M> {
    /// From now on commands fare by these rules.
    pub fn set_faults(&mut self, faults: Faults) {
        self.kept.rules = faults;
    }

    /// A command is fetched: what the rules say is done. It comes back if that is nothing.
    pub(super) fn fault(&mut self, entry: &SubmissionEntry, permit: Permit) -> Option<Permit> {
        let now_ps = self.device.now_ps();
        let fault = self
            .kept
            .rules
            .decide(entry, permit.submission_queue(), now_ps);
        match fault {
            None => return Some(permit),
            Some(Fault::Fail(status)) => self.refuse(entry, permit, status),
            Some(Fault::Drop) => self.kept.dropped.push(permit),
            Some(Fault::Delay(delay_ps)) => {
                let at_ps = now_ps.saturating_add(delay_ps);
                let held = &mut self.kept.held;
                let place = held.partition_point(|(other_ps, ..)| *other_ps <= at_ps);
                held.insert(place, (at_ps, *entry, permit));
            }
        }
        None
    }

    /// Commands that were held up until then go on.
    pub(super) fn go_on_with_held(&mut self, until_ps: u64) {
        let is_due = |at_ps| at_ps <= until_ps;
        while self.kept.next_time_ps().is_some_and(is_due) {
            if let Some((_, entry, permit)) = self.kept.held.pop_front() {
                self.dispatch(&entry, permit);
            }
        }
    }
}
