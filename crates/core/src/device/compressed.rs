//! Compressed maps at work: translation pages are measured when they come and when their entries
//! change. Where the map is flat, none of this is called.

use super::{Contents, Device, HostMemory};
use crate::controller::encoding::{ENTRIES, Entries, UNMAPPED};
use crate::ids::TranslationPage;
use crate::spec::{LINE_BYTES, Tier};

impl<C: Contents, M: HostMemory> Device<C, M> {
    /// A page is about to be kept: how much room does it take?
    #[cold]
    pub(super) fn measure_page(&mut self, page: TranslationPage) {
        let mut entries: Entries = [UNMAPPED; ENTRIES];
        self.ftl.entries_of(page, &mut entries);
        self.map.measure(page, &entries);
    }

    /// Entries of a page have changed; it is measured once all changes of a batch are known.
    #[inline]
    pub(super) fn note_changed_page(&mut self, page: TranslationPage) {
        if self.map.compresses() && self.map.is_kept(page) && !self.changed_pages.contains(&page) {
            self.changed_pages.push(page);
        }
    }

    /// The pages changed by a batch are encoded anew where they are held. In host memory, one that
    /// is compressed is read and written as a whole; nobody waits for it.
    #[inline]
    pub(super) fn measure_changed_pages(&mut self) {
        if !self.changed_pages.is_empty() {
            self.measure_each_changed_page();
        }
    }

    #[cold]
    fn measure_each_changed_page(&mut self) {
        let mut pages = std::mem::take(&mut self.changed_pages);
        for page in pages.drain(..) {
            let hmb = self.map.place_in_host();
            let searched = |device: &Self| {
                let place = hmb.filter(|_| device.map.is_held_by_host(page))?;
                device.map.compressed_page(place, page)
            };
            let before = searched(self);
            self.measure_page(page);
            if let (Some((old, was)), Some((new, is))) = (before, searched(self))
                && (was || is)
            {
                let now = self.board.engine.now();
                self.board.counters.hmb_read_bytes += old;
                self.board.counters.hmb_written_bytes += new;
                self.board.link.read(now, old);
                self.board.link.write(now, new);
            }
        }
        self.changed_pages = pages;
    }

    /// Bytes read from host memory for a look-up: of a compressed page, all of it.
    #[inline]
    pub(super) fn look_up_bytes(&self, page: TranslationPage) -> u64 {
        if !self.map.compresses() {
            return self.map_costs.look_up_bytes;
        }
        let place = self.map.place_in_host();
        match place.and_then(|place| self.map.compressed_page(place, page)) {
            Some((bytes, true)) => bytes.next_multiple_of(LINE_BYTES),
            _ => self.map_costs.look_up_bytes,
        }
    }

    /// Bytes written to host memory when a page goes there.
    #[inline]
    pub(super) fn whole_page_bytes(&self, page: TranslationPage) -> u64 {
        if !self.map.compresses() {
            return self.map_costs.page_bytes;
        }
        let place = self.map.place_in_host();
        let compressed = place.and_then(|place| self.map.compressed_page(place, page));
        compressed.map_or(self.map_costs.page_bytes, |(bytes, _)| bytes)
    }

    /// Memories of compressed pages: pages held, bytes in use, bytes there are.
    #[must_use]
    pub fn compressed_map_use(&self) -> Vec<(Tier, u32, u64, u64)> {
        self.map.compressed_use()
    }

    /// Checks that compressed pages take what their entries say, and fit.
    ///
    /// # Panics
    /// If not. For tests and small drives.
    pub fn check_map(&self) {
        self.map.check_compressed(|page| {
            let mut entries: Entries = [UNMAPPED; ENTRIES];
            self.ftl.entries_of(page, &mut entries);
            entries
        });
    }
}
