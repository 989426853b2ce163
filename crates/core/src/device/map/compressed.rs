//! Compressed maps: translation pages are measured when they come and when their entries change.
//! Where the map is flat, none of this is called.

use super::super::board::Board;
use super::Map;
use crate::controller::encoding::{ENTRIES, Entries, UNMAPPED};
use crate::ftl::Ftl;
use crate::ids::TranslationPage;
use crate::observe::Tracer;
use crate::spec::LINE_BYTES;

/// Entries of a page as they are now.
fn entries_of(ftl: &Ftl, page: TranslationPage) -> Entries {
    let mut entries: Entries = [UNMAPPED; ENTRIES];
    ftl.entries_of(page, &mut entries);
    entries
}

impl Map {
    /// A page is about to be kept: how much room does it take?
    #[cold]
    pub(super) fn measure_page(&mut self, ftl: &Ftl, page: TranslationPage) {
        self.role.measure(page, &entries_of(ftl, page));
    }

    /// Entries of a page have changed; it is measured once all changes of a batch are known.
    #[inline]
    pub(super) fn note_changed_page(&mut self, page: TranslationPage) {
        if self.role.compresses() && self.role.is_kept(page) && !self.changed_pages.contains(&page)
        {
            self.changed_pages.push(page);
        }
    }

    /// The pages changed by a batch are encoded anew where they are held. In host memory, one that
    /// is compressed is read and written as a whole; nobody waits for it.
    #[inline]
    pub(in crate::device) fn measure_changed_pages(
        &mut self,
        board: &mut Board<impl Tracer>,
        ftl: &Ftl,
    ) {
        if !self.changed_pages.is_empty() {
            self.measure_each_changed_page(board, ftl);
        }
    }

    #[cold]
    fn measure_each_changed_page(&mut self, board: &mut Board<impl Tracer>, ftl: &Ftl) {
        let mut pages = std::mem::take(&mut self.changed_pages);
        for page in pages.drain(..) {
            let before = self.searched_in_hmb(page);
            self.measure_page(ftl, page);
            if let (Some((old, was)), Some((new, is))) = (before, self.searched_in_hmb(page))
                && (was || is)
            {
                let now = board.engine.now();
                board.counters.hmb_read_bytes += old;
                board.counters.hmb_written_bytes += new;
                board.link.read(now, old);
                board.link.write(now, new);
            }
        }
        self.changed_pages = pages;
    }

    /// Bytes of a page in host memory, and whether it is compressed there.
    fn searched_in_hmb(&self, page: TranslationPage) -> Option<(u64, bool)> {
        let hmb = self.role.place_in_host();
        let place = hmb.filter(|_| self.role.is_held_by_host(page))?;
        self.role.compressed_page(place, page)
    }

    /// Bytes read from host memory for a look-up: of a compressed page, all of it.
    #[inline]
    pub(super) fn look_up_bytes(&self, page: TranslationPage) -> u64 {
        if !self.role.compresses() {
            return self.costs.look_up_bytes;
        }
        let place = self.role.place_in_host();
        match place.and_then(|place| self.role.compressed_page(place, page)) {
            Some((bytes, true)) => bytes.next_multiple_of(LINE_BYTES),
            _ => self.costs.look_up_bytes,
        }
    }

    /// Bytes written to host memory when a page goes there.
    #[inline]
    pub(super) fn whole_page_bytes(&self, page: TranslationPage) -> u64 {
        if !self.role.compresses() {
            return self.costs.page_bytes;
        }
        let place = self.role.place_in_host();
        let compressed = place.and_then(|place| self.role.compressed_page(place, page));
        compressed.map_or(self.costs.page_bytes, |(bytes, _)| bytes)
    }

    /// Checks that compressed pages take what their entries say, and fit.
    pub(in crate::device) fn check(&self, ftl: &Ftl) {
        self.role.check_compressed(|page| entries_of(ftl, page));
    }
}
