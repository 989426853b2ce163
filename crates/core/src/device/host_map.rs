//! The map in host memory that is kept as bytes: written as it changes, decoded where it is used,
//! read from flash again where it fails its check. Where host memory holds no bytes
//! ([`super::Modelled`]), none of this is ever called.

use super::{Contents, Device, HostMemory};
use crate::controller::Moved;
use crate::controller::integrity::Rejected;
use crate::engine::EventKind;
use crate::ftl::State;
use crate::ids::{Lpn, Ppn, TranslationPage};
use crate::observe::Tracer;
use crate::spec::{ENTRIES_PER_TRANSLATION_PAGE, Encoding, Tier};

/// Entry of a logical page without data.
const UNMAPPED: u32 = u32::MAX;
const ENTRIES: u32 = ENTRIES_PER_TRANSLATION_PAGE as u32;

impl<C: Contents, M: HostMemory, T: Tracer> Device<C, M, T> {
    /// What the map role has moved since is moved in host memory too.
    pub(super) fn sync_host_map(&mut self) {
        while let Some(moved) = self.map.moved.pop_front() {
            match moved {
                Moved::Came(unit, frame) => {
                    self.host_map.came(unit, frame);
                    let pages = self
                        .map
                        .hmb_units()
                        .map_or(1, |(_, tier)| tier.unit_translation_pages);
                    for page in unit * pages..(unit + 1) * pages {
                        self.write_host_page(TranslationPage(page));
                    }
                }
                Moved::ReadBack(page) => {
                    // Lines that fail are taken from flash and from what was written since; the
                    // time of it is not charged, as nobody waits.
                    let rejected = self.host_map.rejected_lines(&self.host_memory, page);
                    self.board.counters.map.rejected_entries += u64::from(rejected);
                }
                Moved::Gone(unit) => self.host_map.gone(unit),
            }
        }
        while std::mem::take(&mut self.host_map.rotated) {
            let pages: Vec<TranslationPage> = self.host_map.pages().collect();
            for page in pages {
                self.write_host_page(page);
            }
        }
    }

    /// A write did not reach host memory: none of it can be trusted. What stands there is taken back as if the
    /// host had asked for it, as far as it can be read.
    #[cold]
    pub(super) fn give_up_host_memory(&mut self) {
        self.board.counters.hmb_given_up += 1;
        self.set_hmb(0);
    }

    /// The map has been given its share of host memory, which starts at `base`.
    pub(super) fn lay_out_host_map(&mut self, base: u64) {
        self.host_memory.granted(self.hmb_bytes);
        if let Some((units, tier)) = self.map.hmb_units() {
            assert!(
                tier.encoding == Encoding::Flat,
                "host memory that is kept as bytes holds flat maps"
            );
            let (bytes, pages) = (tier.unit_bytes(), tier.unit_translation_pages);
            self.host_map.lay_out(base, units, bytes, pages);
        }
    }

    /// All entries of a page are written to its place in host memory, if it has one.
    pub(super) fn write_host_page(&mut self, page: TranslationPage) {
        let ftl = &self.ftl;
        let entry = |index| {
            let lpn = page.0 * ENTRIES + index;
            let there = lpn < ftl.user_slots();
            let ppn = there.then(|| ftl.locate(Lpn(lpn))).flatten();
            ppn.map_or(UNMAPPED, |ppn| ppn.0)
        };
        self.host_map.write_page(&mut self.host_memory, page, entry);
    }

    /// The entry of a logical page has changed.
    pub(super) fn update_host_entry(&mut self, lpn: Lpn) {
        let entry = self.ftl.locate(lpn).map_or(UNMAPPED, |ppn| ppn.0);
        let set = self.host_map.set_entry(&mut self.host_memory, lpn, entry);
        if set.is_err() {
            // Its neighbours cannot be trusted: the page is brought and written anew.
            self.board.counters.map.rejected_entries += 1;
            // From this instant nothing written before counts: what was genuine until now could
            // otherwise be put back, without this change.
            let page = super::write::translation_page(lpn);
            self.write_host_page(page);
            self.map.fill(page, None);
        }
    }

    /// Whether look-ups of a page are answered by host memory.
    fn is_served_by_host(&self, page: TranslationPage) -> bool {
        self.host_map.holds(page)
            && !self.host_memory.has_failed()
            && self.map.served_by(page).is_some_and(Tier::is_granted)
    }

    /// The entry of a logical page, from where the drive takes it.
    pub(super) fn located(&self, lpn: Lpn) -> Option<Ppn> {
        let page = super::write::translation_page(lpn);
        if !self.is_served_by_host(page) {
            return self.ftl.locate(lpn);
        }
        self.host_entry(lpn)
            .unwrap_or_else(|Rejected| self.ftl.locate(lpn))
    }

    /// The entry of a logical page, from host memory.
    fn host_entry(&self, lpn: Lpn) -> Result<Option<Ppn>, Rejected> {
        match self.host_map.entry(&self.host_memory, lpn)? {
            None => Ok(self.ftl.locate(lpn)),
            Some(UNMAPPED) => Ok(None),
            Some(ppn) if self.can_be_read(Ppn(ppn)) => Ok(Some(Ppn(ppn))),
            Some(_) => Err(Rejected),
        }
    }

    /// Whether there is such a page, and data in it: any drive checks the first, and reading an
    /// erased page fails in the decoder.
    fn can_be_read(&self, ppn: Ppn) -> bool {
        let geometry = self.ftl.geometry();
        let superblock = geometry.superblock(ppn);
        let Some(block) = self.ftl.blocks.all().get(superblock.index()) else {
            return false;
        };
        let offset = ppn.0 - geometry.first_ppn(superblock).0;
        offset < geometry.usable_slots(block.slc)
            && !matches!(block.state, State::Free | State::Erasing)
    }

    /// Checks the entries a command takes from host memory. Where one fails, the command misses the
    /// page: it goes on once the core has started to bring it, and true is returned.
    pub(super) fn rejects_entries(&mut self, id: u32) -> bool {
        let command = self.commands[id];
        let (first, last) = command.translation_pages();
        let mut missed = command.missed;
        for page in first..=last {
            let bit = 1 << (page - first);
            if missed & bit != 0 || !self.is_served_by_host(TranslationPage(page)) {
                continue;
            }
            let (from, to) = super::read::pages_within(&command, page);
            for lpn in from..to {
                if self.host_entry(Lpn(lpn)).is_err() {
                    self.board.counters.map.rejected_entries += 1;
                    missed |= bit;
                }
            }
        }
        if missed == command.missed {
            return false;
        }
        self.commands[id].missed = missed;
        let check_ps = match &self.spec.tiers.hmb {
            // In the path, it has been charged already.
            Some(hmb) if !hmb.check_in_path => hmb.check_ps,
            _ => 0,
        };
        let core_ps = self.spec.controller.map_fill_ps;
        let end_ps = self.board.cores.book(self.board.engine.now(), core_ps) + check_ps;
        self.board
            .engine
            .schedule(end_ps, EventKind::ReadInformed, id);
        true
    }

    /// Whether the entry of a page to be merged fails its check.
    pub(super) fn rejects_entry(&mut self, lpn: Lpn) -> bool {
        let page = super::write::translation_page(lpn);
        let rejected = self.is_served_by_host(page) && self.host_entry(lpn).is_err();
        self.board.counters.map.rejected_entries += u64::from(rejected);
        rejected
    }
}
