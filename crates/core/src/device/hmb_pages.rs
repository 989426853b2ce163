//! Pages of data in host memory that is kept as bytes: put there as they arrive, checked where they
//! are used. A page of the read cache that fails its check is read from flash; one of the write buffer
//! is lost, and whoever asks for it, or for its safety, hears so. Where host memory or contents have no
//! bytes, none of this is ever called.

use super::{Command, Commands, Contents, Device, HostMemory, Lent, PageBytes, Source};
use crate::controller::{DataInHmb, Lost, ReadCache, WriteBuffer};
use crate::ftl::{Ftl, Owned};
use crate::ids::{BufferSlot, CommandId, Lpn, Ppn, TranslationPage};
use crate::nand::{FlashOp, SlotMask};
use crate::observe::{Counters, Tracer};
use crate::request::Status;
use crate::spec::{DriveSpec, SLOT_BYTES};
use serde::{Deserialize, Serialize};

/// What the pages are pages of, and where they stand.
pub(super) struct Around<'a, C: Contents, M> {
    pub contents: &'a mut C,
    pub memory: &'a mut Lent<M>,
    pub buffer: &'a mut WriteBuffer,
    pub cache: Option<&'a mut ReadCache>,
    pub ftl: &'a Ftl,
    pub commands: &'a mut Commands<C::Payload>,
    pub counters: &'a mut Counters,
}

/// Where pages stand in host memory, and what was lost there.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct HmbPages {
    pages: DataInHmb,
    /// Sectors of the write buffer that were lost.
    pub lost: Lost,
}

impl HmbPages {
    /// Nothing is there. `seed`: of the keys.
    pub(super) fn new(spec: &DriveSpec, seed: u64) -> Self {
        // Other keys than the map's.
        let key_seed = crate::rng::mix(seed);
        HmbPages {
            pages: DataInHmb::new(super::map::integrity(spec), key_seed),
            lost: Lost::default(),
        }
    }

    /// The controller starts anew, with new keys. What was lost stays lost.
    pub(super) fn restart(&mut self, spec: &DriveSpec, key_seed: u64) {
        self.pages = HmbPages::new(spec, key_seed).pages;
    }

    /// A new layout of host memory: `buffer_pages` at its start, the read cache from `cache_base` on.
    pub(super) fn lay_out(
        &mut self,
        buffer_pages: u32,
        cache_base: u64,
        cache: Option<&ReadCache>,
    ) {
        let cache = cache.filter(|cache| cache.tier.is_granted());
        let pages = cache.map_or(0, ReadCache::pages);
        self.pages.lay_out(buffer_pages, cache_base, pages);
    }

    // Pages of the write buffer.

    /// Before host memory changes hands, what is buffered there is read back.
    pub(super) fn rescue<C: Contents, M: HostMemory>(&mut self, mut around: Around<'_, C, M>) {
        let slots: Vec<BufferSlot> = self.pages.buffered().collect();
        for slot in slots {
            self.take(&mut around, slot);
        }
    }

    /// A slot's data is complete, or has changed: it stands in host memory.
    pub(super) fn put<C: Contents, M: HostMemory>(
        &mut self,
        around: Around<'_, C, M>,
        slot: BufferSlot,
    ) {
        let lpn = around.buffer.lpn(slot);
        let page = around.contents.page(lpn, Source::Buffer(slot));
        self.pages.put_buffered(around.memory, slot, lpn, page);
    }

    /// A slot's data is in the drive from now on, as the host hands it back.
    fn take<C: Contents, M: HostMemory>(
        &mut self,
        around: &mut Around<'_, C, M>,
        slot: BufferSlot,
    ) {
        self.fetch(around, slot);
        self.pages.release(slot);
    }

    /// What the drive knows of a slot's data is what the host hands back now.
    fn fetch<C: Contents, M: HostMemory>(
        &mut self,
        around: &mut Around<'_, C, M>,
        slot: BufferSlot,
    ) {
        if !self.pages.holds(slot) {
            return;
        }
        let lpn = around.buffer.lpn(slot);
        match self.pages.get_buffered(around.memory, slot, lpn) {
            Ok(page) => around.contents.set_buffered(slot, &page),
            Err(_) => self.lose(around, slot),
        }
    }

    fn lose<C: Contents, M>(&mut self, around: &mut Around<'_, C, M>, slot: BufferSlot) {
        around.counters.buffer_rejected += 1;
        self.lost.lose(slot);
        self.pages.release(slot);
        // Whoever takes it for data all the same shows up.
        let nothing = [0; SLOT_BYTES as usize];
        around.contents.set_buffered(slot, &nothing);
    }

    /// A slot's data is about to be safe, in flash or in the log: it comes into the drive, and if it is lost,
    /// whoever waits for its safety hears so.
    pub(super) fn make_safe<C: Contents, M: HostMemory>(
        &mut self,
        mut around: Around<'_, C, M>,
        slot: BufferSlot,
    ) {
        self.take(&mut around, slot);
        if self.lost.in_buffer(slot) == 0 {
            return;
        }
        let mut waiting = Vec::new();
        around.buffer.fail(slot, &mut waiting);
        for command in waiting {
            around.commands[command].status = Status::MediaError;
        }
    }

    /// A slot is free.
    pub(super) fn release(&mut self, slot: BufferSlot) {
        self.pages.release(slot);
    }

    /// Sectors that have arrived are to overwrite those of `held`, whose others must be true.
    pub(super) fn fetch_absorbing<C: Contents, M: HostMemory>(
        &mut self,
        mut around: Around<'_, C, M>,
        held: BufferSlot,
        sectors: u8,
    ) {
        if sectors != u8::MAX {
            self.fetch(&mut around, held);
        }
        let lost = self.lost.in_buffer(held);
        self.lost.set(held, lost & !sectors);
    }

    /// A slot's data has arrived; `source` has what the command did not bring.
    pub(super) fn fetch_merging<C: Contents, M: HostMemory>(
        &mut self,
        mut around: Around<'_, C, M>,
        slot: BufferSlot,
        source: Option<Source>,
        sectors: u8,
    ) {
        if let Some(Source::Buffer(older)) = source {
            self.fetch(&mut around, older);
        }
        let lost = source.map_or(0, |source| self.lost_in(source));
        self.lost.set(slot, lost & !sectors);
    }

    // Reads.

    /// Sectors of a page that are lost where it is.
    fn lost_in(&self, source: Source) -> u8 {
        match source {
            Source::Buffer(slot) => self.lost.in_buffer(slot),
            Source::Flash(ppn) => self.lost.in_flash(ppn),
            Source::Unwritten => 0,
        }
    }

    /// Whether sectors that a command reads are lost; then it ends with an error.
    pub(super) fn reads_lost(&self, command: &mut Command, source: Source, sectors: u8) -> bool {
        let lost = self.lost.any() && self.lost_in(source) & sectors != 0;
        if lost {
            command.status = Status::MediaError;
        }
        lost
    }

    /// A command reads a page of the write buffer. Returns whether it is to be read from the buffer as the
    /// drive knows it; otherwise it has been read, from host memory.
    pub(super) fn read_buffered<C: Contents, M: HostMemory>(
        &mut self,
        mut around: Around<'_, C, M>,
        id: CommandId,
        slot: BufferSlot,
        sectors: u8,
    ) -> bool {
        if around.commands[id].window_io || !self.pages.holds(slot) {
            self.fetch(&mut around, slot);
            return true;
        }
        let lpn = around.buffer.lpn(slot);
        let page = self.pages.get_buffered(around.memory, slot, lpn);
        if page.is_err() {
            self.lose(&mut around, slot);
        }
        let command = &mut around.commands[id];
        if !self.reads_lost(command, Source::Buffer(slot), sectors)
            && let Ok(page) = page
        {
            let contents = around.contents;
            contents.read_bytes(&mut command.payload, lpn, &page, sectors);
        }
        false
    }

    // Pages of the read cache.

    /// What the read cache has just kept of a flash read stands in host memory.
    pub(super) fn put_read<C: Contents, M: HostMemory>(
        &mut self,
        around: Around<'_, C, M>,
        op: &FlashOp,
    ) {
        let Some(cache) = around.cache else { return };
        let slots = (0..SlotMask::BITS).filter(|slot| op.mask >> slot & 1 != 0);
        for ppn in slots.map(|slot| Ppn(op.ppn.0 + slot)) {
            if let Some(Owned::Data(lpn)) = around.ftl.current_owner(ppn)
                && around.buffer.find(lpn).is_none()
                && cache.tier.is_granted()
                && let Some(frame) = cache.frame(lpn)
            {
                let page = around.contents.page(lpn, Source::Flash(ppn));
                self.pages.put_cached(around.memory, frame, lpn, page);
            }
        }
    }

    /// A page of the read cache as the host hands it back; `None`, and the page is dropped, when it
    /// fails its check.
    pub(super) fn get_cached<C: Contents, M: HostMemory>(
        &mut self,
        around: &mut Around<'_, C, M>,
        lpn: Lpn,
    ) -> Option<PageBytes> {
        let cache = around.cache.as_mut()?;
        let frame = cache.frame(lpn)?;
        let page = self.pages.get_cached(around.memory, frame, lpn);
        if page.is_err() {
            around.counters.read_cache_rejected += 1;
            cache.forget(lpn);
        }
        page.ok()
    }

    /// Checks the pages that a command is to take from the read cache in host memory. Those that fail
    /// are dropped: how many bytes of them have crossed the link in vain is returned.
    pub(super) fn reject_cached<C: Contents, M: HostMemory>(
        &mut self,
        mut around: Around<'_, C, M>,
        id: CommandId,
    ) -> u64 {
        let cache = around.cache.as_deref();
        if cache.is_none_or(|cache| !cache.tier.is_granted()) {
            return 0;
        }
        let command = *around.commands[id];
        let (first, last) = command.translation_pages();
        let mut bytes = 0;
        for page in first..=last {
            let (from, to) = command.pages_within(TranslationPage(page));
            let (buffer, ftl) = (&*around.buffer, around.ftl);
            let cache = around.cache.as_deref();
            if !super::pieces::read_cache_serves(cache, buffer, ftl, from, to) {
                continue;
            }
            for lpn in (from..to).map(Lpn) {
                let cache = around.cache.as_deref();
                let held = cache.is_some_and(|cache| cache.contains(lpn));
                if held
                    && around.buffer.find(lpn).is_none()
                    && self.get_cached(&mut around, lpn).is_none()
                {
                    bytes += SLOT_BYTES;
                }
            }
        }
        bytes
    }
}

impl<C: Contents, M: HostMemory, T: Tracer> Device<C, M, T> {
    /// Whether pages of data really stand in host memory.
    pub(super) const PAGES_IN_HOST: bool = M::KEEPS_BYTES && C::HAS_BYTES;

    /// Pages in host memory, and what they are handed.
    pub(super) fn hmb_pages(&mut self) -> (&mut HmbPages, Around<'_, C, M>) {
        let around = Around {
            contents: &mut self.contents,
            memory: &mut self.host_memory,
            buffer: &mut self.buffer.slots,
            cache: self.read_cache.as_mut(),
            ftl: &self.ftl,
            commands: &mut self.commands,
            counters: &mut self.board.counters,
        };
        (&mut self.hmb_pages, around)
    }

    /// Keeps what was read; returns the bytes of it that go to host memory.
    #[inline(always)]
    pub(super) fn keep_in_read_cache(&mut self, op: &FlashOp) -> u64 {
        match self.read_cache {
            Some(_) => self.keep_all(op),
            None => 0,
        }
    }

    #[inline(never)]
    fn keep_all(&mut self, op: &FlashOp) -> u64 {
        let Some(cache) = &mut self.read_cache else {
            return 0;
        };
        let mut kept = 0;
        let mut rest = op.mask;
        while rest != 0 {
            let ppn = Ppn(op.ppn.0 + rest.trailing_zeros());
            rest &= rest - 1;
            // Overwritten while the read ran: not to be kept.
            if let Some(Owned::Data(lpn)) = self.ftl.current_owner(ppn)
                && self.buffer.slots.find(lpn).is_none()
                && !(self.hmb_pages.lost.any() && self.hmb_pages.lost.in_flash(ppn) != 0)
            {
                cache.keep(lpn);
                kept += SLOT_BYTES;
            }
        }
        let in_host = cache.tier.is_granted() && cache.holds_any();
        if Self::PAGES_IN_HOST && in_host {
            let (data, around) = self.hmb_pages();
            data.put_read(around, op);
        }
        if in_host { kept } else { 0 }
    }
}
