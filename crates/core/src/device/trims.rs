//! Trims outlive a power cut once their record is in flash.
//!
//! A trim programs nothing where the data is, so recovery would find the data again. Firmware keeps
//! records of trims and writes them, by the page, to blocks of its own: when a flush asks for it,
//! when a page is full of them, and before a superblock is erased whose data was trimmed (else an
//! older copy elsewhere would come back to life). Until then a cut may undo a trim. There is room for one page that is being
//! written and one that is being filled: trims that come faster than flash takes their records wait, or a flush would wait
//! for all of those behind which it came.

use super::board::Board;
use super::programs::Programs;
use super::{Contents, Device, HostMemory, spare};
use crate::ftl::{Ftl, Trim};
use crate::ids::{CommandId, DieId, Lpn, TranslationPage};
use crate::nand::Geometry;
use crate::observe::Tracer;
use crate::request::Op;
use crate::spec::{ENTRIES_PER_TRANSLATION_PAGE, SLOT_BYTES};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Bytes of a record: first page, end, sequence number.
const RECORD_BYTES: u64 = 12;

/// Records of trims.
#[derive(Clone, Serialize, Deserialize, Debug, Default)]
pub(super) struct Trims {
    /// In memory only.
    pending: Vec<Trim>,
    /// Being programmed.
    writing: Vec<Trim>,
    /// In flash, oldest first.
    pub saved: Vec<Trim>,
    /// How many there were when those that newer ones make needless were last dropped.
    needed: usize,
    /// Sequence number of the last one in flash.
    saved_to: u32,
    /// Flushes, each with the last trim it waits for.
    waiters: Vec<(u32, CommandId)>,
    /// Trims that have taken effect, and are done when the map has caught up and there is room for more records.
    held: Vec<CommandId>,
    /// How many may be done before new data that waits has its next turn.
    pub turns: u32,
    /// Die that takes the next records.
    pub die: u32,
    records_per_program: usize,
}

/// So few records are not worth going through.
const RECORDS_FEW: usize = 64;

/// Keeps the records that say something: a page was trimmed last by one of them. `trims` are in the order
/// of their sequences.
fn drop_needless(trims: &mut Vec<Trim>) {
    // Ranges that the newer ones cover together: begin to end, none touches another.
    let mut covered: BTreeMap<u32, u32> = BTreeMap::new();
    let mut newest_first = std::mem::take(trims);
    newest_first.reverse();
    for trim in newest_first {
        let before = covered.range(..=trim.from).next_back();
        if before.is_some_and(|(_, &end)| end >= trim.end) {
            continue;
        }
        let (mut from, mut end) = (trim.from, trim.end);
        while let Some((&begin, &until)) = covered.range(..=end).next_back()
            && until >= from
        {
            (from, end) = (from.min(begin), end.max(until));
            covered.remove(&begin);
        }
        covered.insert(from, end);
        trims.push(trim);
    }
    trims.reverse();
}

impl Trims {
    /// No records, on a drive of this shape.
    pub fn new(geometry: &Geometry) -> Self {
        let page_bytes = u64::from(geometry.group_slots) * SLOT_BYTES;
        Trims {
            records_per_program: (page_bytes / RECORD_BYTES) as usize,
            ..Trims::default()
        }
    }

    /// Records have got to flash. Those that newer ones make needless are dropped each time they may be
    /// half of all.
    fn add_saved(&mut self, trims: impl IntoIterator<Item = Trim>) {
        self.saved.extend(trims);
        if self.saved.len() >= (2 * self.needed).max(RECORDS_FEW) {
            drop_needless(&mut self.saved);
            self.needed = self.saved.len();
        }
    }

    /// Sequence number of the last trim recorded, in memory or in flash.
    fn last(&self) -> u32 {
        let volatile = self.pending.last().or(self.writing.last());
        volatile.map_or(self.saved_to, |trim| trim.sequence)
    }

    /// Sequence number of the last trim that outlives a power cut.
    pub fn saved_to(&self) -> u32 {
        self.saved_to
    }

    /// Sequence number of the oldest record that is not in flash.
    pub fn oldest_volatile(&self) -> Option<u32> {
        let oldest = self.writing.first().or(self.pending.first());
        oldest.map(|trim| trim.sequence)
    }

    /// Some records are not in flash.
    pub fn are_volatile(&self) -> bool {
        !self.pending.is_empty() || !self.writing.is_empty()
    }

    /// What was not in flash is lost, and returned, or (`kept`) gets there.
    pub fn restart(&mut self, kept: bool) -> Vec<Trim> {
        let volatile = self.writing.drain(..).chain(self.pending.drain(..));
        let mut lost = Vec::new();
        if kept {
            let volatile: Vec<Trim> = volatile.collect();
            self.add_saved(volatile);
        } else {
            lost.extend(volatile);
        }
        self.saved_to = self.saved.last().map_or(0, |trim| trim.sequence);
        self.waiters.clear();
        self.held.clear();
        self.turns = 0;
        lost
    }

    /// A trim has taken effect. `protected`: power-protected memory holds its record. Returns whether a
    /// page of records is full.
    pub fn record(&mut self, trim: Trim, protected: bool) -> bool {
        if trim.from >= trim.end {
            return false;
        }
        if protected {
            self.add_saved([trim]);
            self.saved_to = trim.sequence;
            return false;
        }
        self.pending.push(trim);
        self.is_full()
    }

    /// There is no room for more records.
    #[inline]
    fn is_full(&self) -> bool {
        self.pending.len() >= self.records_per_program
    }

    /// A trim has taken effect, and is done when the map has caught up with it and there is room for more.
    pub fn hold(&mut self, command: CommandId) {
        self.held.push(command);
    }

    /// Whether some wait for nothing but the map.
    #[inline]
    pub fn are_held(&self) -> bool {
        !self.held.is_empty() && !self.is_full()
    }

    /// The map has caught up: `done` are those that have waited for it, as far as their turns go if they have them
    /// with new data (`in_turns`).
    pub fn release(&mut self, in_turns: bool, done: &mut Vec<CommandId>) {
        let mut count = self.held.len();
        if in_turns {
            count = count.min(self.turns as usize);
            self.turns -= count as u32;
        }
        done.extend(self.held.drain(..count));
    }

    /// A flush waits for the records of all trims so far, if they are not in flash.
    pub fn wait(&mut self, command: CommandId) -> bool {
        let last = self.last();
        let waits = last > self.saved_to;
        if waits {
            self.waiters.push((last, command));
        }
        waits
    }

    /// Programs records, unless some are being programmed: then the rest follows.
    pub fn write(&mut self, board: &mut Board<impl Tracer>, programs: &mut Programs, ftl: &Ftl) {
        if self.pending.is_empty() || !self.writing.is_empty() {
            return;
        }
        let count = self.records_per_program.min(self.pending.len());
        self.writing.extend(self.pending.drain(..count));
        self.die = (self.die + 1) % ftl.geometry().dies;
        programs.start_trims(board, ftl, DieId(self.die));
    }

    /// Records are in flash. `done`: flushes that have waited for them. Returns whether more are to be written now.
    pub fn on_saved(&mut self, done: &mut Vec<CommandId>) -> bool {
        self.saved_to = self.writing.last().map_or(0, |trim| trim.sequence);
        let written = std::mem::take(&mut self.writing);
        self.add_saved(written);
        let saved_to = self.saved_to;
        self.waiters.retain(|&(last, command)| {
            if last <= saved_to {
                done.push(command);
            }
            last > saved_to
        });
        !self.waiters.is_empty() || self.is_full()
    }
}

impl<C: Contents, M: HostMemory, T: Tracer> Device<C, M, T> {
    pub(super) fn start_trim(&mut self, id: CommandId) {
        let command = *self.commands[id];
        let request = command.request;
        debug_assert_eq!(request.op, Op::Trim);
        // Only whole pages lose their data; the edges keep theirs, as NVMe allows.
        let first = request.offset_bytes.div_ceil(SLOT_BYTES) as u32;
        let end = ((request.offset_bytes + request.length_bytes) / SLOT_BYTES) as u32;
        let per_page = ENTRIES_PER_TRANSLATION_PAGE as u32;
        let sequence = self.ftl.begin_trim();
        // A drive of terabytes is not gone through page by page.
        let void = first == 0 && end == self.ftl.user_slots();
        if void {
            self.ftl.void_initial(sequence);
        }
        self.forget_trimmed(first..end, sequence);
        let mut lpn = first;
        while lpn < end {
            let page = TranslationPage(lpn / per_page);
            let page_end = u64::from(page.0 + 1) * u64::from(per_page);
            let page_end = page_end.min(u64::from(self.ftl.user_slots())) as u32;
            let stop = end.min(page_end);
            let whole = lpn.is_multiple_of(per_page) && stop == page_end;
            let dead = &mut self.dead;
            let changed = self.ftl.unbind(lpn, stop, void, |ppn| {
                if C::HEARS_OF_DEAD {
                    dead.add(sequence, ppn);
                }
            });
            let (board, memory) = (&mut self.board, &mut self.host_memory);
            self.map
                .trim(board, &mut self.ftl, memory, page, (whole, changed));
            lpn = stop;
        }
        let trim = Trim {
            from: first,
            end,
            sequence,
        };
        let protected = self.buffer.survives_power_cut(&self.spec.tiers);
        if self.trims.record(trim, protected) {
            self.trims
                .write(&mut self.board, &mut self.programs, &self.ftl);
        }
        self.contents.record_trims(&self.trims.saved);
        self.discard_dead();
        self.map.measure_changed_pages(&mut self.board, &self.ftl);
        self.commands[id].pending = 1;
        self.trims.hold(id);
        // What is to be kept of it is its number: 256 that waited for the map had all who read wait for one of their places. Where there is
        // no room for more records, they keep them: else all that is queued would be recorded before a flush.
        if !self.trims.is_full() {
            self.commands[id].has_left = true;
            self.take_next();
        }
        self.dispatch();
    }

    pub(super) fn on_trims_saved(&mut self) {
        let mut done = std::mem::take(&mut self.scratch);
        let more_wait = self.trims.on_saved(&mut done);
        self.contents.record_trims(&self.trims.saved);
        self.discard_dead();
        for command in done.drain(..) {
            self.end_part(command);
        }
        self.scratch = done;
        if more_wait {
            self.trims
                .write(&mut self.board, &mut self.programs, &self.ftl);
        }
        self.retry_held_erases();
        self.dispatch();
    }

    /// Memory keeps nothing of pages that are being trimmed.
    fn forget_trimmed(&mut self, pages: std::ops::Range<u32>, sequence: u32) {
        if let Some(hpb) = &mut self.hpb {
            for lpn in pages.clone().map(Lpn) {
                if self.buffer.slots.find(lpn).is_some() || self.ftl.locate(lpn).is_some() {
                    hpb.is_gone(lpn);
                }
            }
        }
        self.buffer.slots.forget(pages.clone(), sequence);
        if let Some(cache) = &mut self.read_cache {
            cache.forget_all(pages);
        }
    }

    /// Something has got to flash: contents hear which pages are of no use any more.
    #[inline]
    pub(super) fn discard_dead(&mut self) {
        if C::HEARS_OF_DEAD {
            let settled_to = spare::settled_to(&self.programs, &self.trims, &self.ftl);
            for ppn in self.dead.settled(settled_to) {
                self.contents.discard(ppn);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Sequence of the last trim of each page.
    fn last_of_each(trims: &[Trim], pages: u32) -> Vec<u32> {
        let mut last = vec![0; pages as usize];
        for trim in trims {
            for page in trim.from..trim.end {
                last[page as usize] = last[page as usize].max(trim.sequence);
            }
        }
        last
    }

    #[test]
    fn records_that_are_dropped_said_nothing_of_any_page() {
        const PAGES: u32 = 60;
        let mut rng = Rng::new(3);
        let mut dropped = 0;
        for _ in 0..2_000 {
            let mut trims: Vec<Trim> = (1..=1 + rng.below(30))
                .map(|sequence| {
                    let from = rng.below(PAGES);
                    let most = 1 + rng.below(PAGES);
                    let end = from + 1 + rng.below(most);
                    Trim {
                        from,
                        end: end.min(PAGES),
                        sequence,
                    }
                })
                .collect();
            let before = trims.clone();
            drop_needless(&mut trims);
            assert!(trims.is_sorted_by_key(|trim| trim.sequence));
            assert_eq!(last_of_each(&trims, PAGES), last_of_each(&before, PAGES));
            dropped += before.len() - trims.len();
        }
        assert!(dropped > 10_000, "{dropped}");
    }

    #[test]
    fn a_drive_that_is_trimmed_again_and_again_keeps_few_records() {
        let mut trims = Trims::default();
        for sequence in 1..=1_000_000 {
            let from = sequence % 100 * 10;
            trims.add_saved([Trim {
                from,
                end: from + 10,
                sequence,
            }]);
            assert!(trims.saved.len() <= 200);
        }
    }
}
