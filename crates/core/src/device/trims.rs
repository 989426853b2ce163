//! Trims outlive a power cut once their record is in flash.
//!
//! A trim programs nothing where the data is, so recovery would find the data again. Firmware keeps
//! records of trims and writes them, by the page, to blocks of its own: when a flush asks for it,
//! when a page is full of them, and before a superblock is erased whose data was trimmed (else an
//! older copy elsewhere would come back to life). Until then a cut may undo a trim.

use super::write::Program;
use super::{Contents, Device, HostMemory};
use crate::ftl::Trim;
use crate::ids::{DieId, Ppn, Superblock};
use crate::nand::{Cause, Class, FlashOp};
use crate::spec::SLOT_BYTES;
use std::collections::BTreeMap;

/// Bytes of a record: first page, end, sequence number.
const RECORD_BYTES: u64 = 12;

/// Records of trims.
#[derive(Clone, Debug, Default)]
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
    waiters: Vec<(u32, u32)>,
    /// Die that takes the next records.
    die: u32,
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
        lost
    }
}

impl<C: Contents, M: HostMemory> Device<C, M> {
    /// A trim has taken effect.
    pub(super) fn record_trim(&mut self, trim: Trim) {
        if trim.from >= trim.end {
            return;
        }
        if self.spec.tiers.survives_power_cut(self.buffer_tier) {
            // Power-protected memory holds the record.
            self.trims.add_saved([trim]);
            self.trims.saved_to = trim.sequence;
            return;
        }
        self.trims.pending.push(trim);
        if self.trims.pending.len() as u64 >= self.records_per_program() {
            self.write_trims();
        }
    }

    fn records_per_program(&self) -> u64 {
        u64::from(self.ftl.geometry().group_slots) * SLOT_BYTES / RECORD_BYTES
    }

    /// A flush waits for the records of all trims so far.
    pub(super) fn flush_trims(&mut self, command: u32) {
        let last = self.trims.last();
        if last > self.trims.saved_to {
            self.commands[command].pending += 1;
            self.trims.waiters.push((last, command));
            self.write_trims();
        }
    }

    /// Programs records, unless some are being programmed: then the rest follows.
    fn write_trims(&mut self) {
        if self.trims.pending.is_empty() || !self.trims.writing.is_empty() {
            return;
        }
        let geometry = self.ftl.geometry();
        let (dies, slots) = (geometry.dies, geometry.group_slots);
        let count = (self.records_per_program() as usize).min(self.trims.pending.len());
        self.trims.writing.extend(self.trims.pending.drain(..count));
        self.trims.die = (self.trims.die + 1) % dies;
        self.board.counters.programs_by_cause[Cause::Map as usize] += 1;
        self.board.counters.programmed_slots_by_cause[Cause::Map as usize] += 1;
        self.board.counters.padded_slots += u64::from(slots - 1);
        let owner = self.programs.insert(Program::of_trims());
        // The system area is not part of the superblocks: only the die's time counts.
        let mut op = FlashOp::program(
            Class::HostProgram,
            Cause::Map,
            owner,
            &self.ftl.place(Ppn(0)),
        );
        op.die = DieId(self.trims.die);
        op.page_type = 0;
        self.board.array.enqueue(&mut self.board.engine, op, true);
    }

    /// Records are in flash.
    pub(super) fn on_trims_saved(&mut self) {
        let trims = &mut self.trims;
        trims.saved_to = trims.writing.last().map_or(0, |trim| trim.sequence);
        let written = std::mem::take(&mut trims.writing);
        trims.add_saved(written);
        let mut at = 0;
        while at < self.trims.waiters.len() {
            let (last, command) = self.trims.waiters[at];
            if last <= self.trims.saved_to {
                self.trims.waiters.remove(at);
                self.settle_one(command);
            } else {
                at += 1;
            }
        }
        if !self.trims.waiters.is_empty() {
            self.write_trims();
        }
        self.retry_held_erases();
        self.pump();
    }

    /// Whether the erase of a superblock must wait: a power cut now would need what is in it,
    /// because what superseded it is not in flash yet.
    pub(super) fn holds_erase(&mut self, superblock: Superblock) -> bool {
        let block = &self.ftl.blocks[superblock];
        let programmed = self
            .issued()
            .filter_map(|program| program.sequence)
            .all(|sequence| sequence > block.superseded_at);
        let recorded = block.trimmed_at <= self.trims.saved_to;
        if programmed && recorded {
            self.held_erases.retain(|&held| held != superblock);
            return false;
        }
        if !self.held_erases.contains(&superblock) {
            self.held_erases.push(superblock);
        }
        if !recorded {
            self.write_trims();
        }
        true
    }

    /// The records of all trims are to be written.
    pub(super) fn save_trims(&mut self) {
        self.write_trims();
    }

    /// Something has got to flash: erases may have waited for it.
    #[inline]
    pub(super) fn retry_held_erases(&mut self) {
        if self.held_erases.is_empty() {
            return;
        }
        // What still has to wait puts itself on the list again.
        let mut held = std::mem::take(&mut self.held_erases);
        for superblock in held.drain(..) {
            self.try_erase(superblock);
        }
        if self.held_erases.is_empty() {
            self.held_erases = held;
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
