//! Role `write_buffer`: data acknowledged before it is in flash.

mod dirty;
mod log;
mod pace;
mod rests;
mod wanted;

pub use log::Fate;
pub use rests::Rest;
pub use wanted::Wanted;

use crate::ids::{BufferSlot, CommandId, FlashOpId, Lpn, Maybe};
use crate::slab::{Linked, Queue, Slab};
use crate::spec::{SLOT_BYTES, WriteBufferSpec};
use crate::table::Table;
use log::{Log, LogState};
use pace::Pace;
use rests::Rests;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ops::Range;

/// What a slot of the buffer is doing.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub enum SlotState {
    /// Its data is on the way from the host.
    Incoming,
    /// It holds less than 4 KiB of new data; the rest is to be read from flash.
    Partial,
    /// As before, and the rest is being read.
    Merging,
    /// It waits to be programmed.
    Dirty,
    /// It is being programmed.
    Programming,
}

impl SlotState {
    /// A part of its page is in flash alone.
    #[inline]
    #[must_use]
    pub fn is_partial(self) -> bool {
        matches!(self, SlotState::Partial | SlotState::Merging)
    }
}

#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
struct Slot {
    next: Maybe<BufferSlot>,
    lpn: Lpn,
    state: SlotState,
    epoch: u64,
    order: u64,
    /// First command that waits for this slot to be in flash.
    waiter: Maybe<u32>,
    /// Sequence number of the trim that invalidated its data; 0 if none did.
    trimmed_at: u32,
    /// Its epoch does not wait for it any more.
    released: bool,
    /// In the second queue.
    cold: bool,
    /// A command waits for it alone (FUA), or with a log for a newer version of its page: it does not wait behind what came before.
    forced: bool,
    /// Sectors that were written, by bit, while the rest of its page is in flash.
    known: u8,
    /// The operation that reads the rest.
    rest_read: Maybe<FlashOpId>,
    /// A command waits for the rest.
    is_hurried: bool,
    // Only with a log.
    log: LogState,
    /// A newer version of its page is safe.
    superseded: bool,
    /// Its program operation carries it.
    written: bool,
    /// Versions of the same page in the buffer.
    older: Maybe<BufferSlot>,
    newer: Maybe<BufferSlot>,
    /// Neighbours in the list of slots not copied.
    list_before: Maybe<BufferSlot>,
    list_after: Maybe<BufferSlot>,
}

impl Slot {
    fn new(lpn: Lpn) -> Self {
        Slot {
            next: Maybe::NONE,
            lpn,
            state: SlotState::Incoming,
            epoch: 0,
            order: 0,
            waiter: Maybe::NONE,
            trimmed_at: 0,
            released: false,
            cold: false,
            forced: false,
            known: 0,
            rest_read: Maybe::NONE,
            is_hurried: false,
            log: LogState::None,
            superseded: false,
            written: false,
            older: Maybe::NONE,
            newer: Maybe::NONE,
            list_before: Maybe::NONE,
            list_after: Maybe::NONE,
        }
    }
}

impl Linked<BufferSlot> for Slot {
    fn next(&self) -> Maybe<BufferSlot> {
        self.next
    }
    fn set_next(&mut self, next: Maybe<BufferSlot>) {
        self.next = next;
    }
}

/// A command that waits for one slot (FUA).
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
struct Waiter {
    command: CommandId,
    next: Maybe<u32>,
}

/// Places of [`WriteBuffer::merging`]: flushes wait for it, or none does yet.
const CLOSED: usize = 0;
const OPEN: usize = 1;

/// Who waits until what the buffer holds is safe.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub enum Flusher {
    /// A flush of the host.
    Command(CommandId),
    /// The drive itself: host memory was taken back, or it is shut down.
    Drive,
}

/// What was dirty between two flushes.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
struct Epoch {
    slots: u32,
    /// Who waits for it and all before; `None` while it is open.
    flush: Option<Flusher>,
    /// Some of its data is lost.
    failed: bool,
}

/// What became of a slot whose data has arrived.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub enum Landing {
    /// It now holds its page's newest data.
    New,
    /// Its data overwrote this slot, which had not gone to flash yet; the arriving slot is free.
    Absorbed(BufferSlot),
}

/// The write buffer.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct WriteBuffer {
    slots: Slab<Slot, BufferSlot>,
    waiters: Slab<Waiter>,
    /// Slot that holds a page's newest data.
    newest: Table,
    /// Slots waiting to be programmed; with hot/cold streams, cold ones in the second queue.
    dirty: [Queue<BufferSlot>; 2],
    /// Those of either queue that a command waits for alone, in queues of their own.
    forced: [Queue<BufferSlot>; 2],
    /// The last turn was that of a forced one.
    had_forced: bool,
    /// Those that wait, forced or not.
    dirty_count: [u32; 2],
    used: u32,
    capacity: u32,
    high_slots: u32,
    low_slots: u32,
    writing_back: bool,
    /// Slots of new data's program operation.
    unit_slots: u32,
    /// Slots queued before this number must go to flash soon.
    drain_before: u64,
    next_order: u64,
    epochs: VecDeque<Epoch>,
    first_epoch: u64,
    /// Slots whose rest is in flash: that a flush waits for, and others.
    merging: [u32; 2],
    rests: Rests,
    log: Log,
    pace: Option<Pace>,
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
            forced: [Queue::default(); 2],
            had_forced: false,
            dirty_count: [0; 2],
            used: 0,
            capacity: 0,
            high_slots: 0,
            low_slots: 0,
            writing_back: false,
            unit_slots: 0,
            drain_before: 0,
            next_order: 1,
            epochs: VecDeque::from([Epoch {
                slots: 0,
                flush: None,
                failed: false,
            }]),
            first_epoch: 0,
            merging: [0; 2],
            rests: Rests::default(),
            log: Log::new((spec.log_bytes / SLOT_BYTES) as u32),
            pace: None,
            high_water: 0,
        };
        buffer.resize(spec, slots, 0);
        buffer
    }

    /// The controller starts anew. `kept`: the memory still holds what was in it; the newest data of
    /// each page waits to be programmed again. Otherwise the buffer is empty, but for what is in the
    /// log and not invalidated by a trim up to the sequence number `trims_to`. Returns the pages kept.
    pub fn restart(&mut self, kept: bool, trims_to: u32) -> Vec<Lpn> {
        self.merging = [0; 2];
        self.rests = Rests::default();
        if self.has_log() {
            return self.restart_with_log(kept, trims_to);
        }
        let mut newest: Vec<(u64, BufferSlot)> = Vec::new();
        if kept {
            let held = self.newest.iter().map(|(_, slot)| BufferSlot(slot));
            newest.extend(held.map(|slot| (self.slots[slot].order, slot)));
            newest.sort_unstable();
        } else {
            self.newest = Table::with_capacity(self.capacity as usize);
        }
        let slots: Vec<BufferSlot> = newest.iter().map(|&(_, slot)| slot).collect();
        self.slots.keep_only(&slots);
        self.waiters = Slab::default();
        self.pace = self.pace.as_ref().map(Pace::anew);
        self.dirty = [Queue::default(); 2];
        self.forced = [Queue::default(); 2];
        self.had_forced = false;
        self.dirty_count = [0; 2];
        self.used = slots.len() as u32;
        self.writing_back = false;
        self.drain_before = 0;
        self.first_epoch = 0;
        self.epochs = VecDeque::from([Epoch {
            slots: self.used,
            flush: None,
            failed: false,
        }]);
        for &slot in &slots {
            self.slots[slot].epoch = 0;
            self.slots[slot].waiter = Maybe::NONE;
            self.slots[slot].forced = false;
            self.slots[slot].released = false;
            self.queue(slot, false);
        }
        slots.iter().map(|&slot| self.slots[slot].lpn).collect()
    }

    /// Changes the number of slots; those in use beyond it empty as they are written back. What all dies program at once,
    /// `at_once` slots, stays free where that is less than half way down to the low mark: of a buffer that is emptied
    /// only when not a page is free, somebody would find none free.
    pub fn resize(&mut self, spec: &WriteBufferSpec, slots: u32, at_once: u32) {
        let share = |permille: u32| (u64::from(slots) * u64::from(permille) / 1000) as u32;
        self.capacity = slots;
        self.low_slots = share(spec.low_permille);
        let room = at_once.min((slots - self.low_slots) / 2);
        self.high_slots = share(spec.high_permille).min(slots - room);
        self.pace = spec.paces.then(|| Pace::new(self.capacity, at_once));
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

    /// Takes slots for the data of these pages, which is on its way, as far as there are any, each chained to the next.
    /// Returns the first and how many there are.
    #[inline]
    pub fn take(&mut self, pages: Range<u32>) -> (Option<BufferSlot>, u32) {
        let room = self.capacity.saturating_sub(self.used);
        let taken = room.min(pages.end - pages.start);
        self.used += taken;
        self.high_water = self.high_water.max(self.used);
        let (mut head, mut last) = (None, None);
        for lpn in pages.start..pages.start + taken {
            let slot = self.slots.insert(Slot::new(Lpn(lpn)));
            match last.replace(slot) {
                None => head = Some(slot),
                Some(last) => self.slots[last].next = slot.into(),
            }
        }
        (head, taken)
    }

    /// Page of a slot.
    #[inline]
    #[must_use]
    pub fn lpn(&self, slot: BufferSlot) -> Lpn {
        self.slots[slot].lpn
    }

    /// The slot chained to this one.
    #[inline]
    #[must_use]
    pub fn chained(&self, slot: BufferSlot) -> Option<BufferSlot> {
        self.slots[slot].next.get()
    }

    /// State of a slot.
    #[inline]
    #[must_use]
    pub fn state(&self, slot: BufferSlot) -> SlotState {
        self.slots[slot].state
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
    #[inline(always)]
    pub fn land(&mut self, slot: BufferSlot, merge: bool, cold: bool) -> Landing {
        let lpn = self.slots[slot].lpn;
        let mut cold = cold;
        let slots = &self.slots;
        let may_change = |held| slots[BufferSlot(held)].may_change();
        if let Some(held) = self.newest.insert_unless(lpn.0, slot.0, may_change) {
            let held = BufferSlot(held);
            if self.slots[held].may_change() {
                self.release(slot);
                return Landing::Absorbed(held);
            }
            // Behind the older data, not past it.
            if self.slots[held].state == SlotState::Dirty {
                cold = self.slots[held].cold;
            }
        }
        self.slots[slot].epoch = self.first_epoch + self.epochs.len() as u64 - 1;
        self.epochs
            .back_mut()
            .expect("one epoch is always open")
            .slots += 1;
        if self.has_log() {
            self.add_version(slot);
        }
        if merge {
            self.slots[slot].state = SlotState::Partial;
            self.merging[OPEN] += 1;
        } else {
            self.queue(slot, cold);
        }
        Landing::New
    }

    /// These sectors of its page were written to a slot.
    #[inline]
    pub fn knows(&mut self, slot: BufferSlot, sectors: u8) {
        self.slots[slot].known |= sectors;
    }

    #[inline]
    fn queue(&mut self, slot: BufferSlot, cold: bool) {
        let which = usize::from(cold);
        let queued = &mut self.slots[slot];
        queued.state = SlotState::Dirty;
        queued.cold = cold;
        queued.order = self.next_order;
        self.next_order += 1;
        // With a log that is a matter of the log's order.
        let queues = match queued.forced && self.log.slots == 0 {
            true => &mut self.forced,
            false => &mut self.dirty,
        };
        queues[which].push_back(&mut self.slots, slot);
        self.dirty_count[which] += 1;
        if self.has_log() {
            self.enter_list(slot);
        }
    }

    /// Pages were trimmed: their newest data is not to be found any more.
    pub fn forget(&mut self, pages: Range<u32>, sequence: u32) {
        // Through the pages, or through the buffer, whichever is less.
        if pages.len() <= self.slots.len() {
            pages
                .map(Lpn)
                .for_each(|page| self.forget_page(page, sequence));
            return;
        }
        let held = self.newest.iter().chain(self.log.versions());
        let held: Vec<u32> = held.map(|(page, _)| page).collect();
        let trimmed = held.into_iter().filter(|page| pages.contains(page));
        trimmed
            .map(Lpn)
            .for_each(|page| self.forget_page(page, sequence));
    }

    fn forget_page(&mut self, page: Lpn, sequence: u32) {
        if let Some(slot) = self.newest.remove(page.0) {
            self.slots[BufferSlot(slot)].trimmed_at = sequence;
        }
        if self.has_log() {
            self.trim_versions(page, sequence);
        }
    }

    /// Sequence number of the trim that invalidated a slot's data, if the data must go to flash all the same:
    /// a flush or FUA that came before the trim has promised it, or a write will be acknowledged by
    /// it, and the trim itself is not safe yet.
    #[must_use]
    pub fn promised_before_trim(&self, slot: BufferSlot) -> Option<u32> {
        let slot = &self.slots[slot];
        let promised_to = self.drain_before.max(self.log.before);
        let awaited = slot.waiter.is_some();
        let promised = slot.order < promised_to || slot.is_copied() || awaited;
        (slot.trimmed_at > 0 && promised).then_some(slot.trimmed_at)
    }

    /// Whether `slot` still holds its page's newest data.
    #[inline]
    #[must_use]
    pub fn is_newest(&self, slot: BufferSlot) -> bool {
        self.newest.get(self.slots[slot].lpn.0) == Some(slot.0)
    }

    /// A slot is in flash (or needs not go there): it is free again. Commands that waited for it
    /// alone (FUA) go to `done`.
    #[inline(always)]
    pub fn programmed(&mut self, slot: BufferSlot, done: &mut Vec<CommandId>) {
        let lpn = self.slots[slot].lpn;
        self.newest.remove_pair(lpn.0, slot.0);
        self.release_waiters(slot, done);
        if self.has_log() {
            self.remove_version(slot, done);
        }
        self.release(slot);
    }

    /// A slot's data is safe: its epoch and who waits for it alone need not wait any more.
    #[inline(always)]
    fn release_waiters(&mut self, slot: BufferSlot, done: &mut Vec<CommandId>) {
        let Slot {
            epoch,
            waiter,
            released,
            ..
        } = self.slots[slot];
        if released {
            return;
        }
        self.slots[slot].released = true;
        self.slots[slot].waiter = Maybe::NONE;
        self.epochs[(epoch - self.first_epoch) as usize].slots -= 1;
        let mut next = waiter;
        while let Some(at) = next.get() {
            let waiter = self.waiters[at];
            done.push(waiter.command);
            self.waiters.remove(at);
            next = waiter.next;
        }
    }

    #[inline]
    fn release(&mut self, slot: BufferSlot) {
        self.used -= 1;
        self.slots.remove(slot);
    }

    /// A command waits until this slot is in flash.
    pub fn wait_for(&mut self, slot: BufferSlot, command: CommandId) {
        let next = self.slots[slot].waiter;
        self.slots[slot].waiter = self.waiters.insert(Waiter { command, next }).into();
    }

    /// A flush waits until everything acknowledged so far is in flash, or in the log. Returns true
    /// when that is already so.
    pub fn flush(&mut self, command: CommandId) -> bool {
        if self.is_safe() {
            return true;
        }
        self.hurry();
        self.close_epoch(Flusher::Command(command));
        false
    }

    /// Like [`WriteBuffer::flush`], for the drive itself and past the log: everything is to go to flash.
    /// What the log holds is not waited for.
    pub fn save(&mut self) -> bool {
        if self.has_log() {
            self.empty();
        }
        if self.is_safe() {
            return true;
        }
        self.empty();
        self.close_epoch(Flusher::Drive);
        false
    }

    /// All acknowledged data is in flash or in the log.
    fn is_safe(&self) -> bool {
        self.epochs.iter().all(|epoch| epoch.slots == 0) && self.epochs.len() == 1
    }

    fn close_epoch(&mut self, flusher: Flusher) {
        self.merging[CLOSED] += std::mem::take(&mut self.merging[OPEN]);
        self.epochs
            .back_mut()
            .expect("one epoch is always open")
            .flush = Some(flusher);
        self.epochs.push_back(Epoch {
            slots: 0,
            flush: None,
            failed: false,
        });
    }

    /// A slot's data is lost, as it is to become safe: commands that wait for it alone (FUA) go to
    /// `waiting`, and the flush that covers it will fail.
    pub fn fail(&mut self, slot: BufferSlot, waiting: &mut Vec<CommandId>) {
        let Slot {
            epoch,
            waiter,
            released,
            ..
        } = self.slots[slot];
        if released {
            return;
        }
        self.epochs[(epoch - self.first_epoch) as usize].failed = true;
        let mut next = waiter;
        while let Some(at) = next.get() {
            waiting.push(self.waiters[at].command);
            next = self.waiters[at].next;
        }
    }

    /// A flush that has nothing to wait for takes over what the one before it could not know of:
    /// whether data acknowledged since is lost.
    pub fn take_failure(&mut self) -> bool {
        let open = self.epochs.front_mut().expect("one epoch is always open");
        std::mem::take(&mut open.failed)
    }

    /// What no flush of the host was told of, the next one is.
    pub fn pass_on(&mut self, failed: bool) {
        let next = self.epochs.front_mut().expect("one epoch is always open");
        next.failed |= failed;
    }

    /// The next flush whose wait is over, and whether data it covers is lost.
    #[inline]
    pub fn pop_flushed(&mut self) -> Option<(Flusher, bool)> {
        let front = self.epochs.front()?;
        if front.slots > 0 {
            return None;
        }
        let flushed = (front.flush?, front.failed);
        self.epochs.pop_front();
        self.first_epoch += 1;
        Some(flushed)
    }
}

#[cfg(test)]
mod tests;
