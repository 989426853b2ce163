//! Slots that wait to be programmed.

use super::{SlotState, WriteBuffer};
use crate::ids::{BufferSlot, Lpn, Maybe};

impl WriteBuffer {
    /// Takes the first `count` slots of a queue to be programmed. They stay chained to one another; `into` has them
    /// then, with their pages.
    #[inline]
    pub fn pop_dirty(&mut self, cold: bool, count: u32, into: &mut Vec<(BufferSlot, Lpn)>) {
        let which = usize::from(cold);
        self.dirty_count[which] -= count;
        into.clear();
        for _ in 0..count {
            let slot = self.dirty[which]
                .pop_front(&mut self.slots)
                .expect("as many dirty slots as were announced");
            let popped = &mut self.slots[slot];
            self.log.popped(popped);
            popped.state = SlotState::Programming;
            into.push((slot, popped.lpn));
        }
        if let Some(&(last, _)) = into.last() {
            self.slots[last].next = Maybe::NONE;
        }
    }
}
