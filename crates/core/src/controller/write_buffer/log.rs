//! The log of the write buffer: copies of slots in power-protected memory, which flush and FUA wait
//! for instead of flash.
//!
//! A logged slot keeps its data until it is programmed or a newer version of its page is safe: newer
//! data of the page takes another slot, so that a power cut finds what a flush has promised. Slots
//! are copied in the order they were filled, one batch at a time (a group commit); those that a
//! command waits for alone (FUA), and older versions of their pages, take turns with those that a flush waits for.

use super::{Epoch, Slot, SlotState, WriteBuffer};
use crate::ids::{BufferSlot, CommandId, Lpn, Maybe};
use crate::slab::{Queue, Slab};
use crate::table::Table;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Most slots copied at a time (assumed): a long flush overlaps its migrations little, a short one
/// does not wait for a long one.
const BATCH_SLOTS: usize = 32;

/// Where a slot stands with the log.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogState {
    /// Its data is not complete, or there is no log.
    None,
    /// In the list of slots to be copied when a flush asks.
    Waiting,
    /// On its way into the log.
    Copying,
    /// The log holds its data.
    Held,
    /// The log need not hold its data any more.
    Void,
}

/// What is to become of a slot that is to be programmed.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It becomes the page's data in flash.
    Current,
    /// Trimmed by the trim with this sequence number, which is not safe yet although the data was promised: it
    /// goes to flash, already invalid.
    Trimmed(u32),
    /// Its data is not needed: it is dropped.
    Nothing,
}

/// State of the log.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct Log {
    /// Slots it holds; 0: there is none.
    pub slots: u32,
    /// Slots copied or being copied.
    used: u32,
    /// Those of them not being programmed.
    dirty: u32,
    /// Slots queued before this number are to be copied.
    pub before: u64,
    /// List of the slots not copied: those that commands wait for alone, and then the others, each oldest first.
    head: Maybe<BufferSlot>,
    tail: Maybe<BufferSlot>,
    /// The last of those that commands wait for alone.
    last_forced: Maybe<BufferSlot>,
    /// The last one taken was one of those: one that a flush waits for is next.
    had_forced: bool,
    /// Last version of each page, from which the older ones in the buffer are chained.
    latest: Table,
    /// Slots that are being copied into the log.
    batch: Vec<BufferSlot>,
    copying: bool,
    /// By slot: program operations with a higher number carry its version of the page, or a newer one.
    landed_at: Vec<u32>,
}

impl Log {
    pub fn new(slots: u32) -> Self {
        Log {
            slots,
            used: 0,
            dirty: 0,
            before: 0,
            head: Maybe::NONE,
            tail: Maybe::NONE,
            last_forced: Maybe::NONE,
            had_forced: false,
            latest: Table::with_capacity(slots as usize),
            batch: Vec::new(),
            copying: false,
            landed_at: Vec::new(),
        }
    }

    /// Full enough for what it holds to be programmed ahead of need (assumed: half), by whole program
    /// operations. Copies count until they are in flash: those being programmed leave no room yet.
    pub fn presses(&self) -> bool {
        self.slots > 0 && self.used * 2 > self.slots
    }

    /// The last version of a page in the buffer.
    fn last_version(&self, lpn: Lpn) -> Option<BufferSlot> {
        self.latest.get(lpn.0).map(BufferSlot)
    }

    /// Pages that the buffer has versions of.
    pub fn versions(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.latest.iter()
    }

    /// Full, and nothing that it holds is on its way to flash.
    fn is_stuck(&self) -> bool {
        self.used >= self.slots && self.used == self.dirty
    }

    /// A copied slot goes to be programmed.
    #[inline]
    pub fn popped(&mut self, slot: &Slot) {
        self.dirty -= u32::from(slot.is_copied());
    }
}

impl Slot {
    /// In the log or on its way there.
    #[inline]
    pub(super) fn is_copied(&self) -> bool {
        matches!(self.log, LogState::Copying | LogState::Held)
    }

    /// Newer data may overwrite it in place.
    #[inline]
    pub(super) fn may_change(&self) -> bool {
        self.state != SlotState::Programming && !self.is_copied()
    }
}

impl WriteBuffer {
    /// Whether there is a log.
    #[inline]
    #[must_use]
    pub fn has_log(&self) -> bool {
        self.log.slots > 0
    }

    /// Whether slots are to be copied and none are being copied.
    #[inline]
    #[must_use]
    pub fn log_wanted(&self) -> bool {
        self.next_to_log().is_some()
    }

    /// The first slot that is to be copied, unless some are being copied: what commands wait for alone and what a flush waits for
    /// take turns, so that neither keeps the other waiting.
    #[inline]
    fn next_to_log(&self) -> Option<BufferSlot> {
        let first = self.log.head.get()?;
        if self.log.copying {
            return None;
        }
        let plain = match self.log.last_forced.get() {
            None => Some(first),
            Some(last) => self.slots[last].list_after.get(),
        };
        let due = plain.filter(|&slot| self.slots[slot].order < self.log.before);
        match self.slots[first].forced && !(self.log.had_forced && due.is_some()) {
            true => Some(first),
            false => due,
        }
    }

    /// Whether a slot's data can be read from the log.
    #[must_use]
    pub fn is_logged(&self, slot: BufferSlot) -> bool {
        self.slots[slot].log == LogState::Held
    }

    /// Whether slots wait for room in the log that will not come by itself: what it holds is to be
    /// programmed even if that does not fill a program operation of `unit_slots`.
    #[inline]
    pub(super) fn log_is_stuck(&self, unit_slots: u32) -> bool {
        self.log_wanted()
            && self.log.is_stuck()
            && self.dirty_count.iter().all(|&dirty| dirty < unit_slots)
    }

    /// Takes the next slots to be copied; returns how many. Where the log is full, they wait until
    /// something that it holds is in flash.
    pub fn start_log(&mut self) -> u32 {
        while let Some(slot) = self.next_to_log()
            && self.log.batch.len() < BATCH_SLOTS
            && self.log.used < self.log.slots
        {
            self.leave_list(slot);
            self.log.had_forced = self.slots[slot].forced;
            self.slots[slot].log = LogState::Copying;
            self.log.used += 1;
            self.log.dirty += u32::from(self.slots[slot].state == SlotState::Dirty);
            self.log.batch.push(slot);
        }
        self.log.copying = !self.log.batch.is_empty();
        self.log.batch.len() as u32
    }

    /// Slot being copied, by its place in the batch.
    #[must_use]
    pub fn log_batch(&self, at: usize) -> BufferSlot {
        self.log.batch[at]
    }

    /// Slots whose copy is under way, and the numbers of which program operations with a higher one carry their page, or
    /// what is newer.
    pub fn being_logged(&self) -> impl Iterator<Item = (BufferSlot, u32)> + '_ {
        let batch = self.log.batch.iter();
        batch.map(|slot| {
            (
                *slot,
                self.log.landed_at.get(slot.index()).copied().unwrap_or(0),
            )
        })
    }

    /// A slot's page has newer data than before, as program operations have come to that number.
    pub fn note_landed(&mut self, slot: BufferSlot, sequence: u32) {
        let landed_at = &mut self.log.landed_at;
        if slot.index() >= landed_at.len() {
            landed_at.resize(slot.index() + 1, 0);
        }
        landed_at[slot.index()] = sequence;
    }

    /// A program operation with that number carries the page as a slot has it: it is not the one of newer versions.
    pub fn note_programs(&mut self, slot: BufferSlot, sequence: u32) {
        let mut next = self.slots[slot].newer;
        while let Some(newer) = next.get() {
            self.note_landed(newer, sequence);
            next = self.slots[newer].newer;
        }
    }

    /// A page that the log held before the drive came back is in the log and the buffer again. `None`: there is no room.
    pub fn put_back_logged(&mut self, lpn: Lpn) -> Option<BufferSlot> {
        if self.log.used >= self.log.slots {
            return None;
        }
        let slot = self.take(lpn.0..lpn.0 + 1).0?;
        let place = &mut self.slots[slot];
        (place.log, place.released) = (LogState::Held, true);
        self.log.used += 1;
        self.log.dirty += 1;
        self.newest.insert(lpn.0, slot.0);
        self.add_version(slot);
        self.queue(slot, false);
        Some(slot)
    }

    /// The copy is complete. Commands that waited for a slot of it alone (FUA) go to `done`.
    pub fn logged(&mut self, done: &mut Vec<CommandId>) {
        self.log.copying = false;
        let mut batch = std::mem::take(&mut self.log.batch);
        for slot in batch.drain(..) {
            // Superseded by a newer version in the same batch.
            if self.slots[slot].log != LogState::Copying {
                continue;
            }
            self.slots[slot].log = LogState::Held;
            self.supersede(self.slots[slot].older, done);
            self.release_waiters(slot, done);
        }
        self.log.batch = batch;
    }

    /// What becomes of a slot taken to be programmed.
    #[inline]
    pub fn fate(&mut self, slot: BufferSlot) -> Fate {
        let Slot {
            trimmed_at,
            superseded,
            ..
        } = self.slots[slot];
        let fate = if self.is_newest(slot) {
            Fate::Current
        } else if superseded {
            Fate::Nothing
        } else if let Some(trim) = self.promised_before_trim(slot) {
            Fate::Trimmed(trim)
        } else if trimmed_at == 0 && self.slots[slot].is_copied() {
            // Promised by a flush; newer data of the page is not safe yet.
            Fate::Current
        } else {
            Fate::Nothing
        };
        self.slots[slot].written = fate != Fate::Nothing;
        fate
    }

    /// Everything is to go to flash, what is logged included.
    pub fn empty(&mut self) {
        self.drain_before = self.next_order;
    }

    /// A slot has become a version of its page.
    pub(super) fn add_version(&mut self, slot: BufferSlot) {
        let lpn = self.slots[slot].lpn;
        let older = self.log.last_version(lpn);
        self.slots[slot].older = older.into();
        if let Some(older) = older {
            self.slots[older].newer = slot.into();
        }
        self.log.latest.insert(lpn.0, slot.0);
    }

    /// A slot is free: it is no version of its page any more.
    pub(super) fn remove_version(&mut self, slot: BufferSlot, done: &mut Vec<CommandId>) {
        let Slot {
            lpn,
            older,
            newer,
            written,
            ..
        } = self.slots[slot];
        if written {
            self.supersede(older, done);
        }
        self.leave_log(slot);
        if let Some(newer) = newer.get() {
            self.slots[newer].older = older;
        } else if let Some(older) = older.get() {
            self.log.latest.insert(lpn.0, older.0);
        } else {
            self.log.latest.remove(lpn.0);
        }
        if let Some(older) = older.get() {
            self.slots[older].newer = newer;
        }
    }

    /// All versions of a page in the buffer are trimmed.
    pub(super) fn trim_versions(&mut self, lpn: Lpn, sequence: u32) {
        let mut next = self.log.last_version(lpn);
        while let Some(at) = next {
            let slot = &mut self.slots[at];
            if slot.trimmed_at == 0 {
                slot.trimmed_at = sequence;
            }
            next = slot.older.get();
        }
    }

    /// A newer version of the page is safe: this one and all before it need not be.
    fn supersede(&mut self, first: Maybe<BufferSlot>, done: &mut Vec<CommandId>) {
        let mut next = first;
        while let Some(slot) = next.get()
            && !self.slots[slot].superseded
        {
            self.slots[slot].superseded = true;
            self.leave_log(slot);
            self.release_waiters(slot, done);
            next = self.slots[slot].older;
        }
    }

    fn leave_log(&mut self, slot: BufferSlot) {
        let Slot { log, state, .. } = self.slots[slot];
        match log {
            LogState::Waiting => self.leave_list(slot),
            LogState::Copying | LogState::Held => {
                self.log.used -= 1;
                self.log.dirty -= u32::from(state == SlotState::Dirty);
                self.log.batch.retain(|&copied| copied != slot);
            }
            LogState::None | LogState::Void => {}
        }
        self.slots[slot].log = LogState::Void;
    }

    /// A slot's data is complete: it can be copied from now on.
    pub(super) fn enter_list(&mut self, slot: BufferSlot) {
        if self.slots[slot].log != LogState::None {
            return;
        }
        self.slots[slot].log = LogState::Waiting;
        self.list_behind(self.log.tail, slot);
        if self.slots[slot].forced {
            self.log_first(slot);
        }
    }

    /// A command waits for a slot alone: it is copied before the others, and older versions of its page before it, as what the log
    /// holds of a page is in order.
    pub(super) fn log_first(&mut self, slot: BufferSlot) {
        let mut first = slot;
        while let Some(older) = self.slots[first].older.get()
            && self.slots[older].log == LogState::Waiting
        {
            first = older;
        }
        let mut next = Some(first);
        while let Some(version) = next {
            let is_ahead = std::mem::replace(&mut self.slots[version].forced, true);
            // The slot itself may have been meant to be from the start.
            if !is_ahead || version == slot {
                self.leave_list(version);
                self.list_behind(self.log.last_forced, version);
                self.log.last_forced = version.into();
            }
            next = self.slots[version].newer.get().filter(|_| version != slot);
        }
    }

    /// A slot comes into the list behind another, or at its front.
    fn list_behind(&mut self, before: Maybe<BufferSlot>, slot: BufferSlot) {
        let after = match before.get() {
            None => std::mem::replace(&mut self.log.head, slot.into()),
            Some(before) => std::mem::replace(&mut self.slots[before].list_after, slot.into()),
        };
        match after.get() {
            None => self.log.tail = slot.into(),
            Some(after) => self.slots[after].list_before = slot.into(),
        }
        let place = &mut self.slots[slot];
        (place.list_before, place.list_after) = (before, after);
    }

    fn leave_list(&mut self, slot: BufferSlot) {
        if self.log.last_forced.get() == Some(slot) {
            self.log.last_forced = self.slots[slot].list_before;
        }
        let Slot {
            list_before: before,
            list_after: after,
            ..
        } = self.slots[slot];
        match before.get() {
            None => self.log.head = after,
            Some(before) => self.slots[before].list_after = after,
        }
        match after.get() {
            None => self.log.tail = before,
            Some(after) => self.slots[after].list_before = before,
        }
    }

    /// [`WriteBuffer::restart`] with a log: beside the buffer's memory (`kept`), what is in the log
    /// survives, unless a trim up to `trims_to`, all of which are safe, has voided it.
    pub(super) fn restart_with_log(&mut self, kept: bool, trims_to: u32) -> Vec<Lpn> {
        let mut live: Vec<(u64, BufferSlot)> = Vec::new();
        for (_, last) in self.log.latest.iter() {
            let mut next = Some(BufferSlot(last));
            while let Some(index) = next {
                let slot = &self.slots[index];
                let trimmed = slot.trimmed_at > 0 && slot.trimmed_at <= trims_to;
                let logged = slot.log == LogState::Held && !trimmed;
                if logged || (kept && self.is_newest(index)) {
                    live.push((slot.order, index));
                }
                next = slot.older.get();
            }
        }
        live.sort_unstable();
        let live: Vec<BufferSlot> = live.into_iter().map(|(_, slot)| slot).collect();
        self.slots.keep_only(&live);
        self.waiters = Slab::default();
        self.newest = Table::with_capacity(self.capacity as usize);
        self.dirty = [Queue::default(); 2];
        self.dirty_count = [0; 2];
        self.used = live.len() as u32;
        self.writing_back = false;
        self.drain_before = 0;
        self.first_epoch = 0;
        self.log = Log::new(self.log.slots);
        let mut open = Epoch {
            slots: 0,
            flush: None,
            failed: false,
        };
        for &at in &live {
            let slot = &mut self.slots[at];
            let held = slot.log == LogState::Held;
            *slot = Slot {
                log: if held { LogState::Held } else { LogState::None },
                released: held,
                ..Slot::new(slot.lpn)
            };
            open.slots += u32::from(!held);
            self.log.used += u32::from(held);
            self.log.dirty += u32::from(held);
            let lpn = self.slots[at].lpn.0;
            self.newest.insert(lpn, at.0);
            self.add_version(at);
            self.queue(at, false);
        }
        self.epochs = VecDeque::from([open]);
        let newest = live.iter().filter(|&&at| self.is_newest(at));
        newest.map(|&at| self.slots[at].lpn).collect()
    }
}
