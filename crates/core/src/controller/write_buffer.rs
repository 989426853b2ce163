//! Role `write_buffer`: data acknowledged before it is in flash.

use crate::ids::{BufferSlot, Lpn, NONE};
use crate::slab::{Linked, Queue, Slab};
use crate::spec::{SLOT_BYTES, WriteBufferSpec};
use crate::table::Table;
use std::collections::VecDeque;

/// What a slot of the buffer is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotState {
    /// Its data is on the way from the host.
    Incoming,
    /// It holds less than 4 KiB of new data; the rest is being read from flash.
    Merging,
    /// It waits to be programmed.
    Dirty,
    /// It is being programmed.
    Programming,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    next: u32,
    lpn: Lpn,
    state: SlotState,
    epoch: u64,
    order: u64,
    /// First command that waits for this slot to be in flash.
    waiter: u32,
}

impl Linked for Slot {
    fn next(&self) -> u32 {
        self.next
    }
    fn set_next(&mut self, next: u32) {
        self.next = next;
    }
}

/// A command that waits for one slot (FUA).
#[derive(Clone, Copy, Debug)]
struct Waiter {
    command: u32,
    next: u32,
}

/// What was dirty between two flushes.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    slots: u32,
    /// The flush that waits for it and all before.
    flush: u32,
}

/// What became of a slot whose data has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landing {
    /// It now holds its page's newest data.
    New,
    /// Its data overwrote this slot, which had not gone to flash yet; the arriving slot is free.
    Absorbed(BufferSlot),
}

/// The write buffer.
#[derive(Debug)]
pub struct WriteBuffer {
    slots: Slab<Slot>,
    waiters: Slab<Waiter>,
    /// Slot that holds a page's newest data.
    newest: Table,
    /// Slots waiting to be programmed; with hot/cold streams, cold ones in the second queue.
    dirty: [Queue; 2],
    dirty_count: [u32; 2],
    used: u32,
    capacity: u32,
    high_slots: u32,
    low_slots: u32,
    writing_back: bool,
    /// Slots queued before this order must go to flash soon.
    drain_before: u64,
    next_order: u64,
    epochs: VecDeque<Epoch>,
    first_epoch: u64,
    /// Most slots in use at once.
    pub high_water: u32,
}

impl WriteBuffer {
    /// An empty buffer of `slots` slots with the spec's watermarks.
    #[must_use]
    pub fn new(spec: &WriteBufferSpec, slots: u32) -> Self {
        let mut buffer = WriteBuffer {
            slots: Slab::default(),
            waiters: Slab::default(),
            newest: Table::with_capacity(slots as usize),
            dirty: [Queue::default(); 2],
            dirty_count: [0; 2],
            used: 0,
            capacity: 0,
            high_slots: 0,
            low_slots: 0,
            writing_back: false,
            drain_before: 0,
            next_order: 0,
            epochs: VecDeque::from([Epoch {
                slots: 0,
                flush: NONE,
            }]),
            first_epoch: 0,
            high_water: 0,
        };
        buffer.resize(spec, slots);
        buffer
    }

    /// Changes the number of slots; those in use beyond it empty as they are written back.
    pub fn resize(&mut self, spec: &WriteBufferSpec, slots: u32) {
        let share = |permille: u32| (u64::from(slots) * u64::from(permille) / 1000) as u32;
        self.capacity = slots;
        self.high_slots = share(spec.high_permille);
        self.low_slots = share(spec.low_permille);
    }

    /// Slots that a buffer of `bytes` bytes has.
    #[must_use]
    pub fn slots_of(bytes: u64) -> u32 {
        (bytes / SLOT_BYTES) as u32
    }

    /// Slots in use.
    #[must_use]
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Takes a free slot for a page's data, which is on its way.
    #[inline]
    pub fn take(&mut self, lpn: Lpn) -> Option<BufferSlot> {
        if self.used >= self.capacity {
            return None;
        }
        self.used += 1;
        self.high_water = self.high_water.max(self.used);
        let slot = self.slots.insert(Slot {
            next: NONE,
            lpn,
            state: SlotState::Incoming,
            epoch: 0,
            order: 0,
            waiter: NONE,
        });
        Some(BufferSlot(slot))
    }

    /// Page of a slot.
    #[inline]
    #[must_use]
    pub fn lpn(&self, slot: BufferSlot) -> Lpn {
        self.slots[slot.0].lpn
    }

    /// The slot chained to this one, as a raw index.
    #[inline]
    #[must_use]
    pub fn chained(&self, slot: BufferSlot) -> u32 {
        self.slots[slot.0].next
    }

    /// Chains `next` to a slot that stands in no queue.
    #[inline]
    pub fn chain(&mut self, slot: BufferSlot, next: BufferSlot) {
        self.slots[slot.0].next = next.0;
    }

    /// State of a slot.
    #[inline]
    #[must_use]
    pub fn state(&self, slot: BufferSlot) -> SlotState {
        self.slots[slot.0].state
    }

    /// Slot that holds a page's newest data.
    #[inline]
    #[must_use]
    pub fn find(&self, lpn: Lpn) -> Option<BufferSlot> {
        if self.newest.is_empty() {
            return None;
        }
        self.newest.get(lpn.0).map(BufferSlot)
    }

    /// A slot's data has arrived. `merge`: the rest of the page must be read first.
    #[inline]
    pub fn land(&mut self, slot: BufferSlot, merge: bool, cold: bool) -> Landing {
        let lpn = self.slots[slot.0].lpn;
        if let Some(held) = self.newest.get(lpn.0)
            && self.slots[held].state != SlotState::Programming
        {
            self.release(slot.0);
            return Landing::Absorbed(BufferSlot(held));
        }
        self.newest.insert(lpn.0, slot.0);
        self.slots[slot.0].epoch = self.first_epoch + self.epochs.len() as u64 - 1;
        self.epochs
            .back_mut()
            .expect("one epoch is always open")
            .slots += 1;
        if merge {
            self.slots[slot.0].state = SlotState::Merging;
        } else {
            self.queue(slot, cold);
        }
        Landing::New
    }

    /// The rest of a page has been read: the slot can be programmed.
    pub fn merged(&mut self, slot: BufferSlot, cold: bool) {
        assert_eq!(self.state(slot), SlotState::Merging);
        let epoch_closed =
            self.slots[slot.0].epoch + 1 < self.first_epoch + self.epochs.len() as u64;
        let awaited = self.slots[slot.0].waiter != NONE;
        self.queue(slot, cold);
        if epoch_closed || awaited {
            self.drain_before = self.next_order;
        }
    }

    #[inline]
    fn queue(&mut self, slot: BufferSlot, cold: bool) {
        let which = usize::from(cold);
        self.slots[slot.0].state = SlotState::Dirty;
        self.slots[slot.0].order = self.next_order;
        self.next_order += 1;
        self.dirty[which].push_back(&mut self.slots, slot.0);
        self.dirty_count[which] += 1;
    }

    /// A page was trimmed: its newest data is not to be found any more. Slots on their way to
    /// flash go there all the same; nothing will point to them.
    pub fn forget(&mut self, lpn: Lpn) -> Option<BufferSlot> {
        self.newest.remove(lpn.0).map(BufferSlot)
    }

    /// Whether `slot` still holds its page's newest data.
    #[inline]
    #[must_use]
    pub fn is_newest(&self, slot: BufferSlot) -> bool {
        self.newest.get(self.slots[slot.0].lpn.0) == Some(slot.0)
    }

    /// How many slots of the queue should be programmed now, given the size of a program
    /// operation: a full unit, fewer where a flush waits, or none.
    #[inline]
    #[must_use]
    pub fn wanted(&mut self, cold: bool, unit_slots: u32) -> u32 {
        let which = usize::from(cold);
        let Some(front) = self.dirty[which].front() else {
            return 0;
        };
        if self.slots[front].order < self.drain_before {
            return self.dirty_count[which].min(unit_slots);
        }
        if self.dirty_count[which] < unit_slots {
            // A buffer smaller than a program operation, or two half-full queues, must not stop.
            let stuck =
                self.used >= self.capacity && self.dirty_count.iter().sum::<u32>() == self.used;
            return if stuck { self.dirty_count[which] } else { 0 };
        }
        if self.used >= self.high_slots {
            self.writing_back = true;
        } else if self.used <= self.low_slots {
            self.writing_back = self.high_slots == 0;
        }
        if self.writing_back { unit_slots } else { 0 }
    }

    /// Takes the first slot of a queue to be programmed.
    #[inline]
    pub fn pop_dirty(&mut self, cold: bool) -> BufferSlot {
        let which = usize::from(cold);
        let slot = self.dirty[which]
            .pop_front(&mut self.slots)
            .expect("as many dirty slots as were announced");
        self.dirty_count[which] -= 1;
        self.slots[slot].state = SlotState::Programming;
        BufferSlot(slot)
    }

    /// A slot is in flash (or needs not go there): it is free again. Commands that waited for it
    /// alone (FUA) go to `done`.
    #[inline]
    pub fn programmed(&mut self, slot: BufferSlot, done: &mut Vec<u32>) {
        let Slot {
            epoch, waiter, lpn, ..
        } = self.slots[slot.0];
        if self.newest.get(lpn.0) == Some(slot.0) {
            self.newest.remove(lpn.0);
        }
        self.epochs[(epoch - self.first_epoch) as usize].slots -= 1;
        let mut at = waiter;
        while at != NONE {
            let Waiter { command, next } = self.waiters[at];
            done.push(command);
            self.waiters.remove(at);
            at = next;
        }
        self.release(slot.0);
    }

    fn release(&mut self, slot: u32) {
        self.used -= 1;
        self.slots.remove(slot);
    }

    /// A command waits until this slot is in flash (FUA).
    pub fn wait_for(&mut self, slot: BufferSlot, command: u32) {
        let next = self.slots[slot.0].waiter;
        self.slots[slot.0].waiter = self.waiters.insert(Waiter { command, next });
        self.drain_before = self.next_order;
    }

    /// A flush waits until everything acknowledged so far is in flash. Returns true when that is
    /// already so.
    pub fn flush(&mut self, command: u32) -> bool {
        if self.epochs.iter().all(|epoch| epoch.slots == 0) && self.epochs.len() == 1 {
            return true;
        }
        self.drain_before = self.next_order;
        self.epochs
            .back_mut()
            .expect("one epoch is always open")
            .flush = command;
        self.epochs.push_back(Epoch {
            slots: 0,
            flush: NONE,
        });
        false
    }

    /// The next flush whose wait is over.
    #[inline]
    pub fn pop_flushed(&mut self) -> Option<u32> {
        let front = self.epochs.front()?;
        if front.slots > 0 || front.flush == NONE {
            return None;
        }
        let command = front.flush;
        self.epochs.pop_front();
        self.first_epoch += 1;
        Some(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Tier;

    fn buffer(slots: u32, high_permille: u32) -> WriteBuffer {
        let spec = WriteBufferSpec {
            tier: Tier::Sram,
            bytes: u64::from(slots) * SLOT_BYTES,
            high_permille,
            low_permille: high_permille / 2,
        };
        WriteBuffer::new(&spec, slots)
    }

    fn write(buffer: &mut WriteBuffer, lpn: u32) -> Landing {
        let slot = buffer.take(Lpn(lpn)).expect("there is room");
        buffer.land(slot, false, false)
    }

    #[test]
    fn an_overwrite_before_programming_is_absorbed_and_one_during_it_is_not() {
        let mut buffer = buffer(8, 0);
        assert_eq!(write(&mut buffer, 1), Landing::New);
        assert!(matches!(write(&mut buffer, 1), Landing::Absorbed(_)));
        assert_eq!(buffer.used(), 1);
        let programming = buffer.pop_dirty(false);
        assert_eq!(write(&mut buffer, 1), Landing::New);
        let newest = buffer.find(Lpn(1)).unwrap();
        assert_ne!(newest, programming);
        buffer.programmed(programming, &mut Vec::new());
        assert_eq!(buffer.find(Lpn(1)), Some(newest), "the newer data stays");
    }

    #[test]
    fn a_flush_waits_for_what_came_before_it_and_nothing_else() {
        let mut buffer = buffer(8, 0);
        write(&mut buffer, 1);
        assert!(!buffer.flush(77));
        write(&mut buffer, 2);
        assert_eq!(
            buffer.wanted(false, 4),
            2,
            "a flush fills up with what is there"
        );
        let first = buffer.pop_dirty(false);
        assert_eq!(buffer.pop_flushed(), None);
        buffer.programmed(first, &mut Vec::new());
        assert_eq!(buffer.pop_flushed(), Some(77));
        assert_eq!(
            buffer.wanted(false, 4),
            0,
            "what came later waits for a full unit"
        );
    }

    #[test]
    fn a_flush_of_an_empty_buffer_is_done_at_once() {
        assert!(buffer(8, 0).flush(1));
    }

    #[test]
    fn lazy_write_back_starts_at_the_high_mark_and_stops_at_the_low_one() {
        let mut buffer = buffer(10, 800);
        (0..7).for_each(|lpn| {
            write(&mut buffer, lpn);
        });
        assert_eq!(buffer.wanted(false, 2), 0);
        write(&mut buffer, 7);
        let mut rounds = 0;
        while buffer.wanted(false, 2) == 2 {
            for _ in 0..2 {
                let slot = buffer.pop_dirty(false);
                buffer.programmed(slot, &mut Vec::new());
            }
            rounds += 1;
        }
        assert_eq!((rounds, buffer.used()), (2, 4));
    }

    #[test]
    fn a_buffer_smaller_than_a_program_operation_still_empties() {
        let mut buffer = buffer(2, 0);
        write(&mut buffer, 1);
        assert_eq!(buffer.wanted(false, 24), 0);
        write(&mut buffer, 2);
        assert_eq!(buffer.wanted(false, 24), 2);
    }
}
