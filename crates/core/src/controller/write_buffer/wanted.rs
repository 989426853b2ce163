//! When what the buffer holds goes to flash, and how much of it at once.

use super::{CLOSED, WriteBuffer};

/// Pages that are to be programmed by one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// None.
    Nothing,
    /// So many, now.
    Now(u32),
    /// So many, which do not fill an operation and somebody waits for: as soon as a die has nothing else to do for the host.
    /// Behind such work more may join them.
    OnceIdle(u32),
}

impl WriteBuffer {
    /// How many slots of the queue should be programmed, given the size of a program
    /// operation: a full unit, fewer where a flush waits, or none.
    #[inline]
    #[must_use]
    pub fn wanted(&mut self, cold: bool, unit_slots: u32) -> Wanted {
        self.unit_slots = unit_slots;
        let which = usize::from(cold);
        let is_full = self.dirty_count[which] >= unit_slots;
        if !self.forced[which].is_empty() {
            return match is_full {
                true => Wanted::Now(unit_slots),
                false => Wanted::OnceIdle(self.dirty_count[which]),
            };
        }
        let Some(front) = self.dirty[which].front() else {
            return Wanted::Nothing;
        };
        if self.slots[front].order < self.drain_before {
            return match is_full {
                true => Wanted::Now(unit_slots),
                // What the same flush waits for is about to come.
                false if self.merging[CLOSED] > 0 => Wanted::Nothing,
                false => Wanted::OnceIdle(self.dirty_count[which]),
            };
        }
        if !is_full {
            // A buffer smaller than a program operation, or two half-full queues, must not stop. Where
            // the other queue fills an operation, that one makes room.
            let all_wait = self.dirty_count.iter().sum::<u32>() == self.used;
            let other_is_short = self.dirty_count[1 - which] < unit_slots;
            let stuck = self.used >= self.capacity && all_wait && other_is_short;
            let stuck = stuck || (self.has_log() && self.log_is_stuck(unit_slots));
            return match stuck {
                true => Wanted::Now(self.dirty_count[which]),
                false => Wanted::Nothing,
            };
        }
        if self.used >= self.high_slots {
            self.writing_back = true;
        } else if self.used <= self.low_slots {
            self.writing_back = self.high_slots == 0;
        }
        match self.writing_back || self.log.presses() {
            true => Wanted::Now(unit_slots),
            false => Wanted::Nothing,
        }
    }

    /// Whether data that fills a program operation is to go to flash now.
    #[must_use]
    pub fn waits_for_flash(&self, unit_slots: u32) -> bool {
        let waits = |which: usize| {
            let front = self.dirty[which].front();
            let is_drained = front.is_some_and(|slot| self.slots[slot].order < self.drain_before);
            let is_wanted = self.writing_back || is_drained || !self.forced[which].is_empty();
            self.dirty_count[which] >= unit_slots && is_wanted
        };
        waits(0) || waits(1)
    }

    /// Whether the second queue's first slot has waited longer than that of the first.
    #[must_use]
    pub fn cold_is_older(&self) -> bool {
        let [hot, cold] = [false, true].map(|cold| self.oldest(cold));
        cold.is_some_and(|cold| hot.is_none_or(|hot| cold < hot))
    }

    /// Whether what waits for a program operation has seen enough data for another come after it.
    #[must_use]
    pub fn is_overtaken(&self, cold: bool, unit_slots: u32) -> bool {
        let oldest = self.oldest(cold);
        oldest.is_some_and(|order| order + u64::from(unit_slots) <= self.next_order)
    }

    /// When what has waited longest was queued.
    fn oldest(&self, cold: bool) -> Option<u64> {
        let which = usize::from(cold);
        let fronts = [self.dirty[which].front(), self.forced[which].front()];
        let orders = fronts
            .into_iter()
            .flatten()
            .map(|slot| self.slots[slot].order);
        orders.min()
    }
}
