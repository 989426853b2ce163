//! Slots that wait to be programmed.

use super::{SlotState, WriteBuffer};
use crate::ids::{BufferSlot, Lpn};

impl WriteBuffer {
    /// The pages that [`WriteBuffer::pop_dirty`] comes to next.
    pub fn dirty_pages(&self, cold: bool) -> impl Iterator<Item = Lpn> + Clone + '_ {
        let waiting = self.dirty[usize::from(cold)].iter(&self.slots);
        waiting.map(|slot| self.slots[slot].lpn)
    }

    /// Takes the first slot of a queue to be programmed.
    #[inline]
    pub fn pop_dirty(&mut self, cold: bool) -> BufferSlot {
        let which = usize::from(cold);
        let slot = self.dirty[which]
            .pop_front(&mut self.slots)
            .expect("as many dirty slots as were announced");
        self.dirty_count[which] -= 1;
        self.log.popped(&self.slots[slot]);
        self.slots[slot].state = SlotState::Programming;
        slot
    }
}
