//! When a job flushes: after so many writes (`fsync`, `fdatasync`), and at the end of each write (`sync`).

use super::super::offsets::{Direction, WRITE};
use super::super::plan::Plan;

/// The flushes of a job.
#[derive(Clone, Debug, Default)]
pub(super) struct Flushes {
    /// What was issued last is a write whose number calls for a flush.
    due: bool,
    /// A flush was the last thing done.
    was_last: bool,
    /// One is in flight that holds everything up.
    in_flight: bool,
    writes: u64,
    /// The write under way is to end with a flush, and whether that is under way.
    tail_due: bool,
    tail_in_flight: bool,
}

impl Flushes {
    #[inline]
    pub fn is_due(&self) -> bool {
        self.due
    }

    /// Whether one holds up everything else, or is to end a write that does.
    #[inline]
    pub fn hold_up(&self) -> bool {
        self.tail_due || self.in_flight
    }

    pub fn is_in_flight(&self) -> bool {
        self.in_flight
    }

    /// Whether the flush under way is the end of a write.
    pub fn is_tail(&self) -> bool {
        self.tail_in_flight
    }

    pub fn was_last(&self) -> bool {
        self.was_last
    }

    /// A read, write or trim has been issued.
    #[inline]
    pub fn issued(&mut self, direction: Direction, plan: &Plan) {
        (self.due, self.was_last) = (false, false);
        if direction == WRITE {
            self.writes += 1;
            let due = |every: u32| every > 0 && self.writes.is_multiple_of(u64::from(every));
            self.due = plan.flush_every != [0; 2] && plan.flush_every.map(due) != [false; 2];
            self.tail_due = plan.write_flushes;
        }
    }

    /// A flush is being issued; `holds`: nothing else is meanwhile.
    pub fn begin(&mut self, holds: bool) {
        (self.due, self.was_last) = (false, true);
        self.in_flight = holds;
    }

    /// The flush that ends a write is being issued.
    pub fn begin_tail(&mut self) {
        (self.tail_due, self.tail_in_flight) = (false, true);
    }

    /// A write has failed: as in Linux (`generic_write_sync` is for what was written), no flush ends it.
    pub fn write_failed(&mut self) {
        self.tail_due = false;
    }

    pub fn completed(&mut self) {
        (self.in_flight, self.tail_in_flight) = (false, false);
    }

    pub fn begin_pass(&mut self) {
        self.was_last = false;
    }
}
