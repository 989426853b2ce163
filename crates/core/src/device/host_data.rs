//! Pages of data in host memory that is kept as bytes: put there as they arrive, checked where they
//! are used. A page of the read cache that fails its check is read from flash; one of the write buffer
//! is lost, and whoever asks for it, or for its safety, hears so. Where host memory or contents have no
//! bytes, none of this is ever called.

use super::{Command, Contents, Device, HostMemory, PageBytes, Source};
use crate::controller::HostData;
use crate::engine::EventKind;
use crate::ftl::Owned;
use crate::ids::{BufferSlot, Lpn, Ppn};
use crate::nand::{FlashOp, SlotMask};
use crate::observe::Tracer;
use crate::request::Status;
use crate::spec::{DriveSpec, Integrity, SLOT_BYTES};
use crate::time::transfer_ps;
use serde::{Deserialize, Serialize};

/// What checking pages costs.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
pub(super) struct PageCheck {
    bytes_per_s: u64,
    /// From the last byte to the verdict.
    check_ps: u64,
}

impl PageCheck {
    /// `None`: pages in host memory are not protected.
    pub(super) fn new(spec: &DriveSpec) -> Option<Self> {
        let hmb = spec.tiers.hmb.as_ref()?;
        (hmb.integrity != Integrity::None).then_some(PageCheck {
            bytes_per_s: hmb.check_bytes_per_s,
            check_ps: hmb.check_ps,
        })
    }
}

impl<C: Contents, M: HostMemory, T: Tracer> Device<C, M, T> {
    /// Whether pages of data really stand in host memory.
    pub(super) const PAGES_IN_HOST: bool = M::KEEPS_BYTES && C::HAS_BYTES;

    /// When the check of a page that crosses the link now and has crossed at `at_ps` is known: the
    /// engine works on the bytes as they pass.
    #[inline]
    pub(super) fn checked_ps(&mut self, at_ps: u64, bytes: u64) -> u64 {
        let Some(check) = self.page_check else {
            return at_ps;
        };
        at_ps.max(self.book_page_check(check, bytes)) + check.check_ps
    }

    /// When pages that leave now and have left at `at_ps` have their tags, too.
    #[inline]
    pub(super) fn tagged_ps(&mut self, at_ps: u64, bytes: u64) -> u64 {
        match self.page_check {
            Some(check) => at_ps.max(self.book_page_check(check, bytes)),
            None => at_ps,
        }
    }

    fn book_page_check(&mut self, check: PageCheck, bytes: u64) -> u64 {
        let check_ps = transfer_ps(bytes, check.bytes_per_s);
        self.page_checker.book(self.board.engine.now(), check_ps)
    }

    /// A new layout of host memory: `buffer_pages` at its start, `cache_pages` from `cache_base` on.
    pub(super) fn lay_out_host_data(&mut self, buffer_pages: u32, cache_base: u64) {
        let cache = self.read_cache.as_ref();
        let cache = cache.filter(|cache| cache.tier.is_granted());
        let pages = cache.map_or(0, |cache| cache.pages());
        self.host_data.lay_out(buffer_pages, cache_base, pages);
    }

    /// Before host memory changes hands, what is buffered there is read back.
    pub(super) fn rescue_buffered(&mut self) {
        let slots: Vec<BufferSlot> = self.host_data.buffered().collect();
        for slot in slots {
            self.fetch_buffered(slot);
            self.host_data.release(slot);
        }
    }

    /// A slot's data is complete, or has changed: it stands in host memory.
    pub(super) fn put_buffered(&mut self, slot: BufferSlot) {
        if self.buffer_tier.is_granted() {
            let page = self.contents.page(Source::Buffer(slot));
            let lpn = self.buffer.lpn(slot);
            self.host_data
                .put_buffered(&mut self.host_memory, slot, lpn, page);
        }
    }

    /// A slot's data is in the drive from now on, as the host hands it back.
    pub(super) fn take_buffered(&mut self, slot: BufferSlot) {
        self.fetch_buffered(slot);
        self.host_data.release(slot);
    }

    /// What the drive knows of a slot's data is what the host hands back now.
    pub(super) fn fetch_buffered(&mut self, slot: BufferSlot) {
        if !self.host_data.holds(slot) {
            return;
        }
        let lpn = self.buffer.lpn(slot);
        match self.host_data.get_buffered(&self.host_memory, slot, lpn) {
            Ok(page) => self.contents.set_buffered(slot, &page),
            Err(_) => self.lose_buffered(slot),
        }
    }

    fn lose_buffered(&mut self, slot: BufferSlot) {
        self.board.counters.buffer_rejected += 1;
        self.lost.lose(slot);
        self.host_data.release(slot);
        // Whoever takes it for data all the same shows up.
        let nothing = [0; SLOT_BYTES as usize];
        self.contents.set_buffered(slot, &nothing);
    }

    /// A slot's data is about to be safe, in flash or in the log: if it is lost, whoever waits for that
    /// hears so.
    pub(super) fn report_lost(&mut self, slot: BufferSlot) {
        if self.lost.in_buffer(slot) == 0 {
            return;
        }
        let mut waiting = std::mem::take(&mut self.scratch);
        self.buffer.fail(slot, &mut waiting);
        for command in waiting.drain(..) {
            self.commands[command].status = Status::MediaError;
        }
        self.scratch = waiting;
    }

    /// Sectors that have arrived are to overwrite those of `held`, whose others must be true.
    pub(super) fn fetch_absorbing(&mut self, held: BufferSlot, sectors: u8) {
        if sectors != u8::MAX {
            self.fetch_buffered(held);
        }
        let lost = self.lost.in_buffer(held);
        self.lost.set(held, lost & !sectors);
    }

    /// A slot's data has arrived; `source` has what the command did not bring.
    pub(super) fn fetch_merging(&mut self, slot: BufferSlot, source: Option<Source>, sectors: u8) {
        if let Some(Source::Buffer(older)) = source {
            self.fetch_buffered(older);
        }
        let lost = source.map_or(0, |source| self.lost_in(source));
        self.lost.set(slot, lost & !sectors);
    }

    /// Sectors of a page that are lost where it is.
    fn lost_in(&self, source: Source) -> u8 {
        match source {
            Source::Buffer(slot) => self.lost.in_buffer(slot),
            Source::Flash(ppn) => self.lost.in_flash(ppn),
            Source::Unwritten => 0,
        }
    }

    /// Whether sectors that a command reads are lost; then it ends with an error.
    pub(super) fn reads_lost(&mut self, id: u32, source: Source, sectors: u8) -> bool {
        let lost = self.lost.any() && self.lost_in(source) & sectors != 0;
        if lost {
            self.commands[id].status = Status::MediaError;
        }
        lost
    }

    /// A command reads a page of the write buffer.
    pub(super) fn read_buffered(&mut self, id: u32, lpn: Lpn, slot: BufferSlot, sectors: u8) {
        let Command {
            internal, request, ..
        } = self.commands[id];
        if internal || !self.host_data.holds(slot) {
            self.fetch_buffered(slot);
            self.note_read(id, lpn, Source::Buffer(slot), sectors);
            return;
        }
        let page = self.host_data.get_buffered(&self.host_memory, slot, lpn);
        if page.is_err() {
            self.lose_buffered(slot);
        }
        if !self.reads_lost(id, Source::Buffer(slot), sectors)
            && let Ok(page) = page
        {
            self.contents.read_bytes(request.tag, lpn, &page, sectors);
        }
    }

    /// What the read cache has just kept of a flash read stands in host memory.
    pub(super) fn put_read(&mut self, op: &FlashOp) {
        let slots = (0..SlotMask::BITS).filter(|slot| op.mask >> slot & 1 != 0);
        for ppn in slots.map(|slot| Ppn(op.ppn.0 + slot)) {
            if let Some(Owned::Data(lpn)) = self.ftl.current_owner(ppn)
                && self.buffer.find(lpn).is_none()
            {
                self.put_cached(lpn, ppn);
            }
        }
    }

    /// A page read from flash is put into its frame of the read cache.
    fn put_cached(&mut self, lpn: Lpn, ppn: Ppn) {
        let cache = self.read_cache.as_ref();
        let cache = cache.filter(|cache| cache.tier.is_granted());
        if let Some(frame) = cache.and_then(|cache| cache.frame(lpn)) {
            let page = self.contents.page(Source::Flash(ppn));
            self.host_data
                .put_cached(&mut self.host_memory, frame, lpn, page);
        }
    }

    /// A page of the read cache as the host hands it back; `None`, and the page is dropped, when it
    /// fails its check.
    fn get_cached(&mut self, lpn: Lpn) -> Option<PageBytes> {
        let cache = self.read_cache.as_mut()?;
        let frame = cache.frame(lpn)?;
        let page = self.host_data.get_cached(&self.host_memory, frame, lpn);
        if page.is_err() {
            self.board.counters.read_cache_rejected += 1;
            cache.forget(lpn);
        }
        page.ok()
    }

    /// A command reads a page that the read cache holds in host memory. Returns whether it could.
    pub(super) fn read_cached(&mut self, id: u32, lpn: Lpn, ppn: Ppn, sectors: u8) -> bool {
        let Some(page) = self.get_cached(lpn) else {
            return false;
        };
        let Command {
            internal, request, ..
        } = self.commands[id];
        if internal {
            self.note_read(id, lpn, Source::Flash(ppn), sectors);
        } else {
            self.contents.read_bytes(request.tag, lpn, &page, sectors);
        }
        true
    }

    /// Checks the pages that a command is to take from the read cache in host memory. Those that fail
    /// are dropped: the command begins anew once they have crossed the link in vain, and true is
    /// returned.
    pub(super) fn rejects_cached(&mut self, id: u32) -> bool {
        let cache = self.read_cache.as_ref();
        if cache.is_none_or(|cache| !cache.tier.is_granted()) {
            return false;
        }
        let command = self.commands[id];
        let (first, last) = command.translation_pages();
        let mut bytes = 0;
        for page in first..=last {
            let (from, to) = command.pages_within(page);
            if !self.read_cache_serves(from, to) {
                continue;
            }
            for lpn in (from..to).map(Lpn) {
                let held = (self.read_cache.as_ref()).is_some_and(|cache| cache.contains(lpn));
                if held && self.buffer.find(lpn).is_none() && self.get_cached(lpn).is_none() {
                    bytes += SLOT_BYTES;
                }
            }
        }
        if bytes == 0 {
            return false;
        }
        self.board.counters.hmb_read_bytes += bytes;
        let at_ps = self.board.link.read(self.board.engine.now(), bytes);
        let at_ps = self.checked_ps(at_ps, bytes);
        self.board
            .engine
            .schedule(at_ps, EventKind::ReadInformed, id);
        true
    }

    /// Data for pages that the write buffer holds in host memory: where a tag covers the whole page, a
    /// part of it cannot change before the rest has been read and checked. Starts to read; returns
    /// false when there is nothing (more) to be read. The whole pages then go back.
    pub(super) fn fetch_held_pages(&mut self, index: u32) -> bool {
        if self.page_check.is_none() || self.transfers[index].merged {
            return false;
        }
        let transfer = self.transfers[index];
        let command = self.commands[transfer.command];
        let mut slot = transfer.first_slot;
        let (mut held, mut part_bytes) = (0, 0);
        while slot != crate::ids::NONE {
            let lpn = self.buffer.lpn(BufferSlot(slot));
            if command.sectors_in(lpn.0) != u8::MAX && self.buffer.find(lpn).is_some() {
                held += SLOT_BYTES;
                part_bytes += command.bytes_in(lpn.0);
            }
            slot = self.buffer.chained(BufferSlot(slot));
        }
        if held == 0 {
            return false;
        }
        self.transfers[index].merged = true;
        self.transfers[index].bytes += held - part_bytes;
        self.board.counters.hmb_read_bytes += held;
        let at_ps = self.board.link.read(self.board.engine.now(), held);
        let at_ps = self.checked_ps(at_ps, held);
        self.board
            .engine
            .schedule(at_ps, EventKind::DataArrived, index);
        true
    }

    /// How pages in host memory are protected, with keys from `seed`.
    pub(super) fn new_host_data(spec: &DriveSpec, seed: u64) -> HostData {
        // Other keys than the map's.
        HostData::new(super::map::integrity(spec), crate::rng::mix(seed))
    }
}
