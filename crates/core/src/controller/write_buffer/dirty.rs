//! Slots that wait to be programmed.

use super::log::LogState;
use super::{SlotState, WriteBuffer};
use crate::ids::{BufferSlot, Lpn, Maybe};

impl WriteBuffer {
    /// Slots waiting to be programmed.
    #[inline]
    #[must_use]
    pub fn dirty(&self, cold: bool) -> u32 {
        self.dirty_count[usize::from(cold)]
    }

    /// Takes the first `count` slots of a queue to be programmed. They stay chained to one another; `into` has them
    /// then, with their pages.
    #[inline]
    pub fn pop_dirty(&mut self, cold: bool, count: u32, into: &mut Vec<(BufferSlot, Lpn)>) {
        self.dirty_count[usize::from(cold)] -= count;
        into.clear();
        for _ in 0..count {
            let slot = self.pop_first(cold);
            let popped = &mut self.slots[slot];
            self.log.popped(popped);
            popped.state = SlotState::Programming;
            popped.next = Maybe::NONE;
            let lpn = popped.lpn;
            if let Some(&(before, _)) = into.last() {
                self.slots[before].next = slot.into();
            }
            into.push((slot, lpn));
        }
    }

    /// What is forced takes turns with what has waited longest, so that neither keeps the other waiting.
    #[inline]
    fn pop_first(&mut self, cold: bool) -> BufferSlot {
        let which = usize::from(cold);
        let mut queues = [&mut self.forced[which], &mut self.dirty[which]];
        if self.had_forced {
            queues.swap(0, 1);
        }
        self.had_forced = !self.had_forced;
        let first = queues
            .into_iter()
            .find_map(|queue| queue.pop_front(&mut self.slots));
        first.expect("as many dirty slots as were announced")
    }

    /// Everything in the buffer is to be safe soon: in the log, or else in flash.
    pub fn hurry(&mut self) {
        if self.has_log() {
            self.log.before = self.next_order;
        } else {
            self.drain_before = self.next_order;
        }
    }

    /// A command will wait for what is on its way to a slot alone: it is queued as such.
    pub fn expect_force(&mut self, slot: BufferSlot) {
        self.slots[slot].forced = true;
    }

    /// A slot that a command waits for alone (FUA) is to be safe soon.
    pub fn force(&mut self, slot: BufferSlot) {
        if self.has_log() {
            let forced = &mut self.slots[slot];
            let is_ahead = std::mem::replace(&mut forced.forced, true);
            if !is_ahead && forced.log == LogState::Waiting {
                self.log_first(slot);
            }
            return;
        }
        let forced = &mut self.slots[slot];
        if std::mem::replace(&mut forced.forced, true) || forced.state != SlotState::Dirty {
            return;
        }
        let which = usize::from(forced.cold);
        let is_there = self.dirty[which].remove(&mut self.slots, slot);
        assert!(is_there, "a dirty slot is in its queue");
        self.forced[which].push_back(&mut self.slots, slot);
    }
}
