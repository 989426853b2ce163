//! After a power cut: the map as it follows from what is physically there.
//!
//! Everything in memory is gone. What counts is the out-of-band data of the slots that were
//! programmed to the end, the records of trims in the drive's system area, and which superblocks an
//! erase had begun on. Of the copies of a page the one with the highest sequence number is newest; moved
//! data keeps the number it had, so an old copy never wins over newer data.
//!
//! Of the map in memory only the shape is used again: which chunks exist, never what they say.

use super::page_map::Rebuild;
use super::{Ftl, Oob, Open, Owned, State};
use crate::ids::{Ppn, Superblock, TranslationPage};
use crate::nand::CellMode;
use crate::spec::ENTRIES_PER_TRANSLATION_PAGE;
use serde::{Deserialize, Serialize};

/// A trim: logical pages `from..end` have no data older than `sequence`.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// First logical page.
    pub from: u32,
    /// One past the last.
    pub end: u32,
    /// Its sequence number, counted together with program operations.
    pub sequence: u32,
}

/// A program operation that power failed before or during.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub struct LostUnit {
    /// Physical page number of its first slot.
    pub ppn: Ppn,
    /// Number of slots.
    pub slots: u32,
    /// The die had begun: the cells are neither erased nor programmed.
    pub begun: bool,
}

/// What recovery found.
#[derive(Clone, Serialize, Deserialize, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Superblocks in use.
    pub superblocks: u32,
    /// Slots whose out-of-band data was looked at.
    pub slots: u64,
    /// Map entries found that way.
    pub entries: u64,
    /// Slots of open superblocks that will not be used before the next erase.
    pub skipped_slots: u64,
    /// Slots whose word line was torn by a later page's program, and that come from their backup.
    pub backed_up_slots: u64,
    /// Superblocks whose erase must be done again.
    pub erase_again: Vec<Superblock>,
    /// Translation pages whose copy in flash is older than the map.
    pub stale_pages: Vec<TranslationPage>,
}

/// Translation pages that a recovery found stale. Their copies in flash still differ from the map when
/// power is cut before newer ones are there; recovery sees that when it compares the two. That is not
/// modelled, and what made them stale (a trim that was undone, a program that was torn, a second copy
/// of moved data) may be gone by then.
#[derive(Clone, Serialize, Deserialize, Debug, Default)]
pub struct FoundStale {
    pages: Vec<TranslationPage>,
    /// Sequence number of the last operation before: copies with a higher one are newer.
    sequence: u32,
    /// Only where flash is all there is: copies with a higher number may tell of programs that had not ended
    /// and trims that were not recorded, and which of those there were is not known.
    pub(super) settled_to: Option<u32>,
}

impl FoundStale {
    pub(super) fn is_within(&self, pages: u32) -> bool {
        self.pages.iter().all(|page| page.0 < pages)
    }
}

impl Ftl {
    /// Rebuilds everything from what is in flash. `lost`: programs that were not done.
    /// `erase_begun`: whether the erase of a superblock in state [`State::Erasing`] had begun.
    /// `trims`: those whose record is safe. `undone`: the others, which have not taken place. `checkpoint`: sequence number up to
    /// which the map in flash was complete at the last shutdown.
    pub fn recover(
        &mut self,
        lost: &[LostUnit],
        mut erase_begun: impl FnMut(Superblock) -> bool,
        (trims, undone): (&[Trim], &[Trim]),
        checkpoint: u32,
    ) -> Scan {
        let mut scan = Scan::default();
        let mut stale = vec![false; self.directory.pages() as usize];
        for unit in lost {
            self.lose(unit, &mut stale, &mut scan);
        }
        self.reopen(lost, &mut scan);
        for number in 0..self.geometry.superblocks {
            let superblock = Superblock(number);
            let erasing = self.blocks[superblock].state == State::Erasing;
            let block = &mut self.blocks[superblock];
            (block.programs, block.reads, block.moves, block.erasing) = (0, 0, 0, 0);
            (block.superseded_at, block.trimmed_at) = (0, 0);
            if erasing && erase_begun(superblock) {
                let slots = self.geometry.usable_slots(self.blocks[superblock].mode);
                self.blocks[superblock].wipe(slots);
                scan.erase_again.push(superblock);
            } else if matches!(
                self.blocks[superblock].state,
                State::Collecting | State::Erasing
            ) {
                self.blocks[superblock].state = State::Closed;
            }
        }
        self.blocks.forget_victims();
        let page_sequences = self.scan_oob(trims, &mut stale, &mut scan);
        let all = 0..self.user_slots();
        let void = trims.iter().any(|trim| (trim.from..trim.end) == all);
        self.count_valid(&page_sequences, (void, checkpoint), &mut stale, &mut scan);
        for trim in trims {
            for page in translation_pages(trim) {
                let index = page as usize;
                stale[index] |= page_sequences[index].unwrap_or(0) < trim.sequence;
            }
        }
        // A page of the map written since says that the data is gone, which is found again.
        for trim in undone {
            for page in translation_pages(trim) {
                let index = page as usize;
                stale[index] |= page_sequences[index].unwrap_or(0) > trim.sequence;
            }
        }
        for page in self.found_stale.pages.drain(..).map(|page| page.index()) {
            let newest = page_sequences[page].unwrap_or(0);
            stale[page] |= newest <= self.found_stale.sequence;
        }
        if let Some(settled_to) = self.found_stale.settled_to {
            for (stale, newest) in stale.iter_mut().zip(&page_sequences) {
                *stale |= newest.unwrap_or(0) > settled_to;
            }
        }
        for (page, _) in (0u32..).zip(&stale).filter(|(_, stale)| **stale) {
            scan.stale_pages.push(TranslationPage(page));
        }
        self.found_stale = FoundStale {
            pages: scan.stale_pages.clone(),
            sequence: self.sequence,
            settled_to: None,
        };
        scan
    }

    /// The slots of a program that was not done hold nothing that can be read.
    fn lose(&mut self, unit: &LostUnit, stale: &mut [bool], scan: &mut Scan) {
        let superblock = self.geometry.superblock(unit.ppn);
        let mode = self.blocks[superblock].mode;
        let first = (unit.ppn.0 - self.geometry.first_ppn(superblock).0) as usize;
        let block = &mut self.blocks[superblock];
        let oob = block
            .oob
            .as_mut()
            .expect("programs go to opened superblocks");
        for slot in &mut oob[first..first + unit.slots as usize] {
            if let Some(Owned::Data(lpn)) = slot.owner.get() {
                // Its translation page may have been written with the entry that is now void.
                stale[lpn.index() / ENTRIES_PER_TRANSLATION_PAGE as usize] = true;
            }
            *slot = Oob::NOTHING;
        }
        // Without one-shot programming the pages of a word line share cells: a later one that is
        // torn takes the earlier ones with it. Firmware has copied those before it began.
        if unit.begun && mode == CellMode::Native && !self.geometry.one_shot {
            let row = first as u32 / unit.slots / self.geometry.dies;
            let earlier = row % self.geometry.bits;
            scan.backed_up_slots += u64::from(earlier * unit.slots);
        }
    }

    /// Open superblocks go on behind the last page that was begun, at the next whole word line.
    fn reopen(&mut self, lost: &[LostUnit], scan: &mut Scan) {
        let blank: Vec<u32> = lost
            .iter()
            .filter(|unit| !unit.begun)
            .map(|unit| unit.ppn.0)
            .collect();
        for stream in 0..self.open.len() {
            let Open {
                superblock: Some(superblock),
                next_slot,
            } = self.open[stream]
            else {
                continue;
            };
            let mode = self.blocks[superblock].mode;
            let unit_slots = self.geometry.unit_slots(mode);
            let first = self.geometry.first_ppn(superblock).0;
            let mut next = next_slot;
            while next > 0 && blank.contains(&(first + next - unit_slots)) {
                next -= unit_slots;
            }
            if next == 0 {
                self.blocks.unopen(superblock);
                self.open[stream] = Open::default();
                continue;
            }
            if mode == CellMode::Native && !self.geometry.one_shot {
                let word_lines = unit_slots * self.geometry.dies * self.geometry.bits;
                let whole = next.next_multiple_of(word_lines);
                scan.skipped_slots += u64::from(whole - next);
                next = whole;
            }
            self.open[stream].next_slot = next;
            if next >= self.geometry.usable_slots(mode) {
                self.open[stream] = Open::default();
                self.blocks.close(superblock);
            }
        }
    }

    /// Reads the out-of-band data of every superblock in use; returns the sequences of the
    /// translation pages, `None` for those not found.
    fn scan_oob(
        &mut self,
        trims: &[Trim],
        stale: &mut [bool],
        scan: &mut Scan,
    ) -> Vec<Option<u32>> {
        let mut rebuild = Rebuild::new(&mut self.map);
        let mut page_sequences = vec![None; self.directory.pages() as usize];
        self.directory.restart();
        for (number, block) in (0u32..).zip(self.blocks.all()) {
            scan.superblocks += u32::from(!matches!(block.state, State::Free | State::Retired));
            let Some(oob) = &block.oob else { continue };
            scan.slots += oob.len() as u64;
            let first = number * self.geometry.superblock_slots;
            for (ppn, slot) in (first..).map(Ppn).zip(oob.iter()) {
                match slot.owner.get() {
                    Some(Owned::Data(lpn)) => {
                        // Moved, and not erased yet: the page of the map may name either.
                        let moved = rebuild.offer(lpn, ppn, slot.sequence);
                        stale[lpn.index() / ENTRIES_PER_TRANSLATION_PAGE as usize] |= moved;
                    }
                    Some(Owned::Map(page))
                        if page_sequences[page.index()] <= Some(slot.sequence) =>
                    {
                        page_sequences[page.index()] = Some(slot.sequence);
                        self.directory.set(page, Some(ppn));
                    }
                    Some(Owned::Map(_)) | None => {}
                }
            }
        }
        for trim in trims {
            rebuild.trim(trim);
        }
        page_sequences
    }

    /// Counts what is current where, and closes the gaps: what lay somewhere from the start and
    /// was neither found nor is there any more was trimmed. `void`: so was all that lay there.
    fn count_valid(
        &mut self,
        page_sequences: &[Option<u32>],
        (void, checkpoint): (bool, u32),
        stale: &mut [bool],
        scan: &mut Scan,
    ) {
        let geometry = self.geometry;
        self.restart_counts();
        if void {
            self.void_initial(0);
        }
        let blocks = &mut self.blocks;
        let superblock = |ppn: Ppn| geometry.superblock(ppn);
        self.map.adopt_found(void, |lpn, initial, found| {
            let initial = initial.filter(|_| !void);
            if let Some(ppn) = initial.filter(|&ppn| blocks[superblock(ppn)].is_initial()) {
                if found.is_none() {
                    return true;
                }
                let offset = ppn.0 - geometry.first_ppn(superblock(ppn)).0;
                blocks.invalidate(superblock(ppn), offset);
            }
            if let Some(Some(ppn)) = found {
                let block = &mut blocks[superblock(ppn)];
                block.revalidate(ppn.0 - geometry.first_ppn(superblock(ppn)).0);
                scan.entries += 1;
                let page = lpn.index() / ENTRIES_PER_TRANSLATION_PAGE as usize;
                let known_to = page_sequences[page].unwrap_or(0).max(checkpoint);
                stale[page] |= known_to < block.programmed_at;
            }
            false
        });
        for page in (0..self.directory.pages()).map(TranslationPage) {
            let initial = self.directory.initial(page);
            let found = page_sequences[page.index()].is_some();
            if let Some(ppn) = initial.filter(|&ppn| blocks[superblock(ppn)].is_initial()) {
                if !found {
                    continue;
                }
                let offset = ppn.0 - geometry.first_ppn(superblock(ppn)).0;
                blocks.invalidate(superblock(ppn), offset);
            }
            match self.directory.get(page).filter(|_| found) {
                Some(ppn) => {
                    let offset = ppn.0 - geometry.first_ppn(superblock(ppn)).0;
                    blocks[superblock(ppn)].revalidate(offset);
                }
                None => {
                    self.directory.set(page, None);
                }
            }
        }
    }

    /// Nothing is current but what lay in a superblock from the start.
    fn restart_counts(&mut self) {
        for number in 0..self.geometry.superblocks {
            let superblock = Superblock(number);
            let slots = self.geometry.usable_slots(self.blocks[superblock].mode);
            let open = self.open.iter().find(|o| o.superblock == Some(superblock));
            let written = open.map_or(slots, |open| open.next_slot);
            let initial = self.initial_valid(number);
            let block = &mut self.blocks[superblock];
            block.dead = None;
            block.valid = if block.is_initial() { initial } else { 0 };
            if block.oob.is_some() {
                block.bury_first(written, self.geometry.superblock_slots);
            }
        }
    }
}

fn translation_pages(trim: &Trim) -> std::ops::Range<u32> {
    let per_page = ENTRIES_PER_TRANSLATION_PAGE as u32;
    trim.from / per_page..trim.end.div_ceil(per_page)
}
