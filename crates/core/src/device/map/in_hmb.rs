//! The map in host memory that is kept as bytes: written as it changes, decoded where it is used,
//! read from flash again where it fails its check. Where host memory holds no bytes
//! ([`crate::device::Modelled`]), none of this is ever called.

use super::super::board::Board;
use super::super::{Command, HostMemory, Lent};
use super::{Map, translation_page};
use crate::controller::integrity::Rejected;
use crate::controller::{Asker, Change, Moved};
use crate::ftl::{Ftl, State};
use crate::ids::{Lpn, Ppn, TranslationPage};
use crate::observe::Tracer;
use crate::spec::{ENTRIES_PER_TRANSLATION_PAGE, Encoding, Tier};

/// Entry of a logical page without data.
const UNMAPPED: u32 = u32::MAX;
const ENTRIES: u32 = ENTRIES_PER_TRANSLATION_PAGE as u32;

impl Map {
    /// What the map role has moved since is moved in host memory too.
    pub(in crate::device) fn sync<M: HostMemory>(
        &mut self,
        board: &mut Board<impl Tracer>,
        ftl: &Ftl,
        memory: &mut Lent<M>,
    ) {
        while let Some(moved) = self.role.moved.pop_front() {
            match moved {
                Moved::Came(unit, frame) => {
                    self.in_hmb.came(unit, frame);
                    let pages = self
                        .role
                        .hmb_units()
                        .map_or(1, |(_, tier)| tier.unit_translation_pages);
                    for page in unit * pages..(unit + 1) * pages {
                        self.write_page_in_hmb(ftl, memory, TranslationPage(page));
                    }
                }
                Moved::ReadBack(page) => {
                    // Lines that fail are taken from flash and from what was written since; the
                    // time of it is not charged, as nobody waits.
                    let rejected = self.in_hmb.rejected_lines(memory, page);
                    board.counters.map.rejected_entries += u64::from(rejected);
                }
                Moved::Gone(unit) => self.in_hmb.gone(unit),
            }
        }
        while std::mem::take(&mut self.in_hmb.rotated) {
            let pages: Vec<TranslationPage> = self.in_hmb.pages().collect();
            for page in pages {
                self.write_page_in_hmb(ftl, memory, page);
            }
        }
    }

    /// The map has been given its share of host memory, which starts at `base`.
    pub(super) fn lay_out(&mut self, base: u64) {
        if let Some((units, tier)) = self.role.hmb_units() {
            assert!(
                tier.encoding == Encoding::Flat,
                "host memory that is kept as bytes holds flat maps"
            );
            let (bytes, pages) = (tier.unit_bytes(), tier.unit_translation_pages);
            self.in_hmb.lay_out(base, units, bytes, pages);
        }
    }

    /// All entries of a page are written to its place in host memory, if it has one.
    pub(super) fn write_page_in_hmb<M: HostMemory>(
        &mut self,
        ftl: &Ftl,
        memory: &mut Lent<M>,
        page: TranslationPage,
    ) {
        let entry = |index| {
            let lpn = page.0 * ENTRIES + index;
            let there = lpn < ftl.user_slots();
            let ppn = there.then(|| ftl.locate(Lpn(lpn))).flatten();
            ppn.map_or(UNMAPPED, |ppn| ppn.0)
        };
        self.in_hmb.write_page(memory, page, entry);
    }

    /// The entry of a logical page has changed.
    pub(super) fn update_entry_in_hmb<M: HostMemory>(
        &mut self,
        board: &mut Board<impl Tracer>,
        ftl: &Ftl,
        memory: &mut Lent<M>,
        lpn: Lpn,
    ) {
        let entry = ftl.locate(lpn).map_or(UNMAPPED, |ppn| ppn.0);
        if self.in_hmb.set_entry(memory, lpn, entry).is_err() {
            // Its neighbours cannot be trusted: the page is brought and written anew.
            board.counters.map.rejected_entries += 1;
            // From this instant nothing written before counts: what was genuine until now could
            // otherwise be put back, without this change.
            let page = translation_page(lpn);
            self.write_page_in_hmb(ftl, memory, page);
            self.role.fill(page, Asker::Change(Change::Write));
        }
    }

    /// Whether look-ups of a page are answered by host memory.
    fn is_served_by_hmb<M: HostMemory>(&self, memory: &Lent<M>, page: TranslationPage) -> bool {
        self.in_hmb.holds(page)
            && !memory.has_failed()
            && self.role.served_by(page).is_some_and(Tier::is_granted)
    }

    /// The entry of a logical page, from where the drive takes it.
    pub(in crate::device) fn located<M: HostMemory>(
        &self,
        ftl: &Ftl,
        memory: &Lent<M>,
        lpn: Lpn,
    ) -> Option<Ppn> {
        if !self.is_served_by_hmb(memory, translation_page(lpn)) {
            return ftl.locate(lpn);
        }
        self.entry_in_hmb(ftl, memory, lpn)
            .unwrap_or_else(|Rejected| ftl.locate(lpn))
    }

    /// The entry of a logical page, from host memory.
    fn entry_in_hmb<M: HostMemory>(
        &self,
        ftl: &Ftl,
        memory: &Lent<M>,
        lpn: Lpn,
    ) -> Result<Option<Ppn>, Rejected> {
        match self.in_hmb.entry(memory, lpn)? {
            None => Ok(ftl.locate(lpn)),
            Some(UNMAPPED) => Ok(None),
            Some(ppn) if can_be_read(ftl, Ppn(ppn)) => Ok(Some(Ppn(ppn))),
            Some(_) => Err(Rejected),
        }
    }

    /// Checks the entries a command takes from host memory. Where one fails, the command misses the
    /// page: it goes on once the core has started to bring it, and when that is is returned.
    pub(in crate::device) fn rejects_entries<M: HostMemory>(
        &mut self,
        board: &mut Board<impl Tracer>,
        ftl: &Ftl,
        memory: &Lent<M>,
        command: &mut Command,
    ) -> Option<u64> {
        let (first, last) = command.translation_pages();
        let mut missed = command.missed;
        for page in first..=last {
            let bit = 1 << (page - first);
            if missed & bit != 0 || !self.is_served_by_hmb(memory, TranslationPage(page)) {
                continue;
            }
            let (from, to) = command.pages_within(TranslationPage(page));
            for lpn in from..to {
                if self.entry_in_hmb(ftl, memory, Lpn(lpn)).is_err() {
                    board.counters.map.rejected_entries += 1;
                    missed |= bit;
                }
            }
        }
        if missed == command.missed {
            return None;
        }
        command.missed = missed;
        // In the path, the check has been charged already.
        let end_ps = board.cores.book(board.engine.now(), self.costs.fill_ps);
        Some(end_ps + self.costs.late_check_ps)
    }

    /// Whether the entry of a page to be merged fails its check.
    pub(in crate::device) fn rejects_entry<M: HostMemory>(
        &mut self,
        board: &mut Board<impl Tracer>,
        ftl: &Ftl,
        memory: &Lent<M>,
        lpn: Lpn,
    ) -> bool {
        let served = self.is_served_by_hmb(memory, translation_page(lpn));
        let rejected = served && self.entry_in_hmb(ftl, memory, lpn).is_err();
        board.counters.map.rejected_entries += u64::from(rejected);
        rejected
    }
}

/// Whether there is such a page, and data in it: any drive checks the first, and reading an
/// erased page fails in the decoder.
fn can_be_read(ftl: &Ftl, ppn: Ppn) -> bool {
    let geometry = ftl.geometry();
    let superblock = geometry.superblock(ppn);
    let Some(block) = ftl.blocks.all().get(superblock.index()) else {
        return false;
    };
    let offset = ppn.0 - geometry.first_ppn(superblock).0;
    offset < geometry.usable_slots(block.mode)
        && !matches!(block.state, State::Free | State::Erasing)
}
