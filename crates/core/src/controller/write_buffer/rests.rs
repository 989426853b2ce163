//! Partly written pages: when the rest of each is read from flash.
//!
//! Not all at once: behind the rest of the 16,384 pages of a buffer of 64 MiB neither reads nor garbage collection had their turns, for
//! 0.8 s. And not before it is wanted: a page may be written whole by then. So the oldest come first, as many at a time as keep
//! the dies busy, and only so many that the next program operations are full, unless somebody waits.

use super::{CLOSED, OPEN, SlotState, WriteBuffer};
use crate::ids::{BufferSlot, FlashOpId, Maybe};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Slots whose rest is in flash.
#[derive(Clone, Serialize, Deserialize, Debug, Default)]
pub(super) struct Rests {
    /// To be read, the oldest first.
    waiting: VecDeque<BufferSlot>,
    /// How many are being read.
    under_way: u32,
}

/// Where the rest of a page is that a command waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// In flash, and nobody has asked for it.
    Unread,
    /// In flash, and its map entry is on the way.
    Unlocated,
    /// It is read by this operation.
    Read(FlashOpId),
}

impl WriteBuffer {
    /// Whether the rest of a page may have to be read.
    #[inline]
    #[must_use]
    pub fn wants_rests(&self) -> bool {
        !self.rests.waiting.is_empty()
    }

    /// The rest of a slot's page is to be read.
    pub fn want_rest(&mut self, slot: BufferSlot) {
        debug_assert_eq!(self.state(slot), SlotState::Partial);
        self.rests.waiting.push_back(slot);
    }

    /// The next slot whose rest is to be read now: it is being read from then on. `at_once`: most that are being read; `ahead`: pages
    /// that wait to be programmed, whole or being read, with which none is wanted unless a flush waits.
    pub fn next_rest(&mut self, at_once: u32, ahead: u32) -> Option<BufferSlot> {
        let whole: u32 = self.dirty_count.iter().sum();
        let is_wanted = self.merging[CLOSED] > 0 || whole + self.rests.under_way < ahead;
        if self.rests.under_way >= at_once || !is_wanted {
            return None;
        }
        let slot = self.rests.waiting.pop_front()?;
        self.begin_rest(slot);
        Some(slot)
    }

    fn begin_rest(&mut self, slot: BufferSlot) {
        self.slots[slot].state = SlotState::Merging;
        self.rests.under_way += 1;
    }

    /// A command waits for the rest of a slot's page: where that is, unless one has waited already. A slot whose rest was to be read is
    /// being read from then on.
    pub fn hurry_rest(&mut self, slot: BufferSlot) -> Option<Rest> {
        let held = &mut self.slots[slot];
        if !held.state.is_partial() || std::mem::replace(&mut held.is_hurried, true) {
            return None;
        }
        if held.state == SlotState::Merging {
            return Some(held.rest_read.get().map_or(Rest::Unlocated, Rest::Read));
        }
        // Mostly it was written of late.
        let at = self.rests.waiting.iter().rposition(|&other| other == slot);
        at.and_then(|at| self.rests.waiting.remove(at));
        self.begin_rest(slot);
        Some(Rest::Unread)
    }

    /// Whether a command waits for the rest of a slot's page.
    #[inline]
    #[must_use]
    pub fn is_hurried(&self, slot: BufferSlot) -> bool {
        self.slots[slot].is_hurried
    }

    /// The rest of a slot's page is read by this operation.
    pub fn rest_is_read_by(&mut self, slot: BufferSlot, op: FlashOpId) {
        self.slots[slot].rest_read = op.into();
    }

    /// Whether some of these sectors are still in flash alone.
    #[inline]
    #[must_use]
    pub fn lacks(&self, slot: BufferSlot, sectors: u8) -> bool {
        let slot = &self.slots[slot];
        slot.state.is_partial() && sectors & !slot.known != 0
    }

    /// The rest of a page is there: the slot can be programmed.
    pub fn merged(&mut self, slot: BufferSlot, cold: bool) {
        let state = self.state(slot);
        assert!(state.is_partial());
        self.rests.under_way -= u32::from(state == SlotState::Merging);
        self.slots[slot].rest_read = Maybe::NONE;
        self.slots[slot].is_hurried = false;
        let epoch_closed = self.slots[slot].epoch + 1 < self.first_epoch + self.epochs.len() as u64;
        self.merging[if epoch_closed { CLOSED } else { OPEN }] -= 1;
        let awaited = self.slots[slot].waiter.is_some() && !self.slots[slot].forced;
        self.queue(slot, cold);
        if epoch_closed || awaited {
            self.hurry();
        }
    }
}
