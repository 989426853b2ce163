//! Writes, flushes and trims: from the host's memory into the buffer, and from there to flash.

use super::map::translation_page;
use super::programs::Program;
use super::{Contents, Device, HostMemory, Source, spare};
use crate::controller::{Fate, Flusher, Found, Landing, SlotState, Waiter};
use crate::engine::EventKind;
use crate::ftl::{Stream, Trim, Unit};
use crate::ids::{BufferSlot, Lpn, NONE, Ppn, TranslationPage};
use crate::nand::{Cause, Class, FlashOp};
use crate::observe::Tracer;
use crate::request::{Op, Status};
use crate::spec::{ENTRIES_PER_TRANSLATION_PAGE, SLOT_BYTES};
use serde::{Deserialize, Serialize};

/// Write data on its way from the host's memory into slots of the buffer.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
pub(super) struct Transfer {
    pub command: u32,
    /// First slot; the others follow by [`crate::controller::WriteBuffer::chained`].
    pub first_slot: u32,
    pub bytes: u64,
    /// Grant of host memory it goes into; 0 while it goes into the drive.
    pub grant: u32,
    /// Pages that it changes in part have been read.
    pub merged: bool,
}

impl<C: Contents, M: HostMemory, T: Tracer> Device<C, M, T> {
    pub(super) fn start_write(&mut self, id: u32) {
        let length_bytes = self.commands[id].request.length_bytes;
        self.board.counters.host_written_bytes += length_bytes;
        // Pending until all data has been asked for.
        self.commands[id].pending = 1;
        if !self.buffer_queue.is_empty() || !self.take_slots(id) {
            self.buffer_queue.push_back(&mut self.commands, id);
        }
    }

    /// Takes buffer slots for a write as far as there are any, and has their data sent. Returns
    /// true when the whole command has its slots.
    fn take_slots(&mut self, id: u32) -> bool {
        let now_ps = self.board.engine.now().ps();
        if let Err(alarm) = self.buffer.admits(now_ps) {
            if let Some(at_ps) = alarm {
                self.board.engine.schedule(at_ps, EventKind::Paced, 0);
            }
            return false;
        }
        let command = self.commands[id];
        let (first, end) = (command.first_lpn(), command.end_lpn());
        let mut lpn = first + command.slots_taken;
        let mut head = NONE;
        let mut tail = NONE;
        let mut bytes = 0;
        while lpn < end {
            let Some(slot) = self.buffer.take(Lpn(lpn)) else {
                break;
            };
            if head == NONE {
                head = slot.0;
            } else {
                self.buffer.chain(BufferSlot(tail), slot);
            }
            tail = slot.0;
            bytes += command.bytes_in(lpn);
            lpn += 1;
        }
        let taken = lpn - first - command.slots_taken;
        self.buffer.took(now_ps, taken);
        self.commands[id].slots_taken = lpn - first;
        if head != NONE {
            let transfer = self.transfers.insert(Transfer {
                command: id,
                first_slot: head,
                bytes,
                grant: 0,
                merged: false,
            });
            self.commands[id].pending += 1;
            let engine = &mut self.board.engine;
            engine.tracer.transfer(transfer, engine.now().ps(), 0);
            if command.internal {
                let at_ps = self.pm_ps(bytes);
                self.board
                    .engine
                    .schedule(at_ps, EventKind::DataArrived, transfer);
            } else if self.uses_host_dma(self.buffer_tier) {
                self.store_in_host(transfer);
            } else {
                let at_ps = self.board.link.read(self.board.engine.now(), bytes);
                if T::ON {
                    let alone_ps = self.board.link.read_ps(bytes);
                    let engine = &mut self.board.engine;
                    let now_ps = engine.now().ps();
                    let wait_ps = (at_ps - now_ps).saturating_sub(alone_ps);
                    engine.tracer.transfer(transfer, now_ps, wait_ps);
                }
                self.board
                    .engine
                    .schedule(at_ps, EventKind::DataArrived, transfer);
            }
        }
        if lpn < end {
            return false;
        }
        self.settle_one(id);
        true
    }

    /// The next write that was held back is no longer.
    pub(super) fn on_paced(&mut self) {
        self.buffer.alarm();
        self.serve_buffer_queue();
    }

    /// Room in the buffer goes to the writes that wait for it, first come, first served.
    pub(super) fn serve_buffer_queue(&mut self) {
        while let Some(id) = self.buffer_queue.front() {
            if !self.take_slots(id) {
                return;
            }
            self.buffer_queue.pop_front(&mut self.commands);
        }
    }

    pub(super) fn on_data_arrived(&mut self, index: u32) {
        let Transfer { bytes, command, .. } = self.transfers[index];
        let now = self.board.engine.now();
        let tracer = &mut self.board.engine.tracer;
        tracer.transferred(index, command, true, now.ps());
        if self.buffer_tier.is_granted() {
            // Out again over the link, into the drive's buffer in host memory.
            if !self.fetch_held_pages(index) {
                self.store_in_host(index);
            }
            return;
        }
        let at_ps = self.board.memories.store(self.buffer_tier, now, bytes);
        match at_ps > now.ps() {
            true => self
                .board
                .engine
                .schedule(at_ps, EventKind::DataStored, index),
            false => self.on_data_stored(index),
        }
    }

    /// Write data is in the buffer: the command is done with it, unless it asked for flash (FUA).
    pub(super) fn on_data_stored(&mut self, index: u32) {
        let transfer = self.transfers[index];
        let id = transfer.command;
        let engine = &mut self.board.engine;
        let now_ps = engine.now().ps();
        engine.tracer.transferred(index, id, false, now_ps);
        self.transfers.remove(index);
        let mut slot = transfer.first_slot;
        while slot != NONE {
            let next = self.buffer.chained(BufferSlot(slot));
            self.land(id, BufferSlot(slot));
            slot = next;
        }
        if transfer.grant != 0 {
            self.on_stored_in_host(&transfer);
        }
        self.settle_one(id);
        self.pump();
    }

    /// One page's data has arrived in its slot.
    #[inline]
    fn land(&mut self, id: u32, slot: BufferSlot) {
        let command = self.commands[id];
        let tag = command.request.tag;
        let lpn = self.buffer.lpn(slot);
        let sectors = command.sectors_in(lpn.0);
        self.board.counters.buffer_writes += 1;
        match &mut self.window {
            Some(window) if command.internal => {
                self.contents.unpin(window.slot_of(&command, lpn), slot);
            }
            _ => self.contents.arrive(tag, lpn, slot, sectors),
        }
        if let Some(hpb) = &mut self.hpb {
            hpb.changes(lpn);
        }
        if let Some(cache) = &mut self.read_cache {
            cache.forget(lpn);
        }
        let older = self.buffer.find(lpn);
        // Where the old data lies matters only to partial writes and to hot/cold streams.
        let whole = sectors == u8::MAX;
        let old_ppn = if whole && !self.spec.ftl.hot_cold_streams {
            None
        } else {
            self.ftl.locate(lpn)
        };
        let merge = !whole && older.is_none() && old_ppn.is_some();
        let cold = self.spec.ftl.hot_cold_streams && self.ftl.expects_to_last(old_ppn);
        let held = match self.buffer.land(slot, merge, cold) {
            Landing::Absorbed(held) => {
                self.board.counters.buffer_absorbed += 1;
                if Self::PAGES_IN_HOST {
                    self.fetch_absorbing(held, sectors);
                }
                self.contents.absorb(slot, held, sectors);
                held
            }
            Landing::New => {
                let source = match (older, old_ppn) {
                    _ if whole => None,
                    (Some(older), _) => Some(Source::Buffer(older)),
                    (None, Some(ppn)) => Some(Source::Flash(ppn)),
                    (None, None) => Some(Source::Unwritten),
                };
                if Self::PAGES_IN_HOST {
                    self.fetch_merging(slot, source, sectors);
                }
                if let Some(source) = source {
                    self.contents.merge(slot, source, sectors);
                }
                slot
            }
        };
        if Self::PAGES_IN_HOST {
            self.put_buffered(held);
        }
        // Power-protected memory is non-volatile to the host.
        let fua = command.request.fua && !self.buffer_is_protected();
        let unbuffered = self.spec.roles.write_buffer.acknowledges_programmed;
        if fua || unbuffered || self.buffer_tier.is_flash() {
            self.commands[id].pending += 1;
            self.board.counters.buffer_drains += u64::from(fua);
            let at_once = fua || self.buffer_tier.is_flash();
            self.buffer.wait_for(held, id, at_once);
        }
        if merge {
            self.start_merge(slot, lpn);
        }
    }

    /// The rest of a partly written page is read: its map entry first, if need be.
    fn start_merge(&mut self, slot: BufferSlot, lpn: Lpn) {
        let page = translation_page(lpn);
        match self.map.look_up(&self.ftl, page) {
            Found::Tier(_) if !(M::KEEPS_BYTES && self.rejects_entry(lpn)) => {
                self.read_for_merge(slot);
            }
            Found::Tier(_) | Found::Nowhere => {
                self.map.fill(page, Waiter::Merge(slot));
                self.pump_map();
            }
        }
    }

    fn rejects_entry(&mut self, lpn: Lpn) -> bool {
        self.map
            .rejects_entry(&mut self.board, &self.ftl, &self.host_memory, lpn)
    }

    pub(super) fn read_for_merge(&mut self, slot: BufferSlot) {
        let lpn = self.buffer.lpn(slot);
        // Trimmed, or moved, while the map entry was on its way: the map of now counts.
        let Some(ppn) = self.ftl.locate(lpn) else {
            self.on_merged(slot.0);
            return;
        };
        let place = self.ftl.place(ppn);
        let mask = 1 << place.slot;
        self.board.read_flash(
            &mut self.ftl,
            FlashOp::read(Class::HostRead, Cause::Merge, slot.0, &place, mask),
        );
    }

    pub(super) fn on_merged(&mut self, slot: u32) {
        let slot = BufferSlot(slot);
        debug_assert_eq!(self.buffer.state(slot), SlotState::Merging);
        self.buffer.merged(slot, false);
        self.pump();
    }

    pub(super) fn start_flush(&mut self, id: u32) {
        self.commands[id].pending = 1;
        if self.trims.wait(id) {
            self.commands[id].pending += 1;
            self.write_trims();
        }
        if self.buffer_is_protected() || self.buffer.flush(id) {
            if self.buffer.take_failure() {
                self.commands[id].status = Status::MediaError;
            }
            self.settle_one(id);
        } else {
            self.board.counters.buffer_drains += 1;
            self.pump();
        }
    }

    pub(super) fn start_trim(&mut self, id: u32) {
        let command = self.commands[id];
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
            let changed = self.ftl.unbind(lpn, stop, void);
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
        if self.trims.record(trim, self.buffer_is_protected()) {
            self.write_trims();
        }
        self.contents.record_trims(&self.trims.saved);
        self.map.measure_changed_pages(&mut self.board, &self.ftl);
        self.commands[id].pending = 1;
        self.settle_one(id);
        self.pump();
    }

    /// Programs records of trims, unless some are being programmed.
    pub(super) fn write_trims(&mut self) {
        self.trims
            .write(&mut self.board, &mut self.programs, &self.ftl);
    }

    fn on_trims_saved(&mut self) {
        let mut done = std::mem::take(&mut self.scratch);
        let others_wait = self.trims.on_saved(&mut done);
        self.contents.record_trims(&self.trims.saved);
        for command in done.drain(..) {
            self.settle_one(command);
        }
        self.scratch = done;
        if others_wait {
            self.write_trims();
        }
        self.retry_held_erases();
        self.pump();
    }

    /// What the write buffer holds outlives a power cut.
    fn buffer_is_protected(&self) -> bool {
        self.spec.tiers.survives_power_cut(self.buffer_tier)
    }

    /// Memory keeps nothing of pages that are being trimmed.
    fn forget_trimmed(&mut self, pages: std::ops::Range<u32>, sequence: u32) {
        if let Some(hpb) = &mut self.hpb {
            for lpn in pages.clone().map(Lpn) {
                if self.buffer.find(lpn).is_some() || self.ftl.locate(lpn).is_some() {
                    hpb.is_gone(lpn);
                }
            }
        }
        self.buffer.forget(pages.clone(), sequence);
        if let Some(cache) = &mut self.read_cache {
            cache.forget_all(pages);
        }
    }

    /// Programs what should be programmed now, as far as there is room.
    pub(super) fn pump_writes(&mut self) {
        for cold in [false, true] {
            if cold && !self.spec.ftl.hot_cold_streams {
                break;
            }
            loop {
                let stream = self.host_stream(cold);
                let unit_slots = self.ftl.geometry().unit_slots(stream == Stream::Slc);
                let mut wanted = self.buffer.wanted(cold, unit_slots);
                if wanted == 0 && self.writes_wait_for_idle_die() {
                    wanted = self.buffer.dirty(cold).min(unit_slots);
                }
                if wanted == 0 || !self.may_write(stream) {
                    break;
                }
                let share = self.ftl.new_data_share();
                let Some(unit) = self.ftl.allocate(stream, false) else {
                    break;
                };
                self.take_turn(stream, share);
                self.program_host_data(unit, wanted, cold);
            }
        }
    }

    /// Where writes are acknowledged by flash, what does not fill a program operation is not kept
    /// waiting while a die has nothing to do for the host; behind such work it may fill up. What garbage
    /// collection has under way does not count: it goes on as long as it likes.
    #[inline]
    fn writes_wait_for_idle_die(&self) -> bool {
        self.spec.roles.write_buffer.acknowledges_programmed
            && self.programs.of_host_data() < self.ftl.geometry().dies
    }

    fn host_stream(&self, cold: bool) -> Stream {
        if self.spec.ftl.slc_superblocks > 0 && self.ftl.has_room(Stream::Slc) {
            Stream::Slc
        } else if cold {
            Stream::Cold
        } else {
            Stream::Host
        }
    }

    fn program_host_data(&mut self, unit: Unit, wanted: u32, cold: bool) {
        let mut head = NONE;
        let mut tail = NONE;
        let mut filled = 0;
        let mut logged = 0;
        self.ftl
            .touch(self.buffer.dirty_pages(cold).take(wanted as usize));
        for _ in 0..wanted {
            let slot = self.buffer.pop_dirty(cold);
            let ppn = Ppn(unit.ppn.0 + filled);
            let lpn = self.buffer.lpn(slot);
            let fate = self.buffer.fate(slot);
            if Self::PAGES_IN_HOST && fate != Fate::Nothing {
                self.take_buffered(slot);
                self.report_lost(slot);
                self.lost.program(slot, ppn);
            }
            match fate {
                Fate::Current => {
                    self.contents.program(slot, ppn);
                    self.ftl.bind(lpn, ppn, unit.sequence);
                    if let Some(hpb) = &mut self.hpb {
                        hpb.changes(lpn);
                    }
                    let (board, memory) = (&mut self.board, &mut self.host_memory);
                    self.map.update(board, &self.ftl, memory, lpn);
                }
                Fate::Trimmed(trim) => {
                    self.contents.program(slot, ppn);
                    self.ftl.leave_trimmed(lpn, ppn, trim);
                }
                Fate::Nothing => {}
            }
            if fate != Fate::Nothing {
                filled += 1;
                logged += u32::from(self.buffer.is_logged(slot));
            }
            if head == NONE {
                head = slot.0;
            } else {
                self.buffer.chain(BufferSlot(tail), slot);
            }
            tail = slot.0;
        }
        self.buffer.chain(BufferSlot(tail), BufferSlot(NONE));
        self.map.measure_changed_pages(&mut self.board, &self.ftl);
        let mut program = Program::new(&unit);
        program.first_slot = head;
        if self.buffered_in_host() || (logged > 0 && self.buffers_in_host()) {
            self.fetch_write_back(unit, program, filled, logged);
        } else {
            self.programs.start(
                &mut self.board,
                &self.ftl,
                unit,
                program,
                (Cause::Host, filled),
            );
        }
    }

    pub(super) fn on_programmed(&mut self, index: u32) {
        let program = self.programs.end(index);
        if program.saves_trims {
            self.on_trims_saved();
            return;
        }
        if self.contents.keeps_spare() {
            let settled_to = spare::settled_to(&self.programs, &self.trims, &self.ftl);
            let (contents, lost) = (&mut self.contents, &self.lost);
            spare::tell(contents, &self.ftl, lost, &program, settled_to);
        }
        self.ftl.programmed(program.ppn);
        if program.first_slot != NONE {
            self.release_slots(program.first_slot);
        }
        if let Some(hpb) = &mut self.hpb {
            hpb.settle(&self.ftl, &self.buffer, program.ppn);
        }
        self.on_moves_programmed(index, &program);
        self.retry_held_erases();
        let superblock = self.ftl.geometry().superblock(program.ppn);
        self.try_erase(superblock);
        self.pump();
    }

    /// Buffer slots are in flash: they are free, and who waited for them goes on.
    fn release_slots(&mut self, first_slot: u32) {
        let mut done = std::mem::take(&mut self.scratch);
        let mut slot = first_slot;
        while slot != NONE {
            let next = self.buffer.chained(BufferSlot(slot));
            if Self::PAGES_IN_HOST {
                self.host_data.release(BufferSlot(slot));
            }
            self.buffer.programmed(BufferSlot(slot), &mut done);
            slot = next;
        }
        self.go_on(done);
    }

    /// Commands that waited for slots alone (`done`, the list to be reused) and flushes go on.
    pub(super) fn go_on(&mut self, mut done: Vec<u32>) {
        for command in done.drain(..) {
            self.settle_one(command);
        }
        self.scratch = done;
        while let Some((flush, failed)) = self.buffer.pop_flushed() {
            match flush {
                Flusher::Drive => {
                    self.background.saving_buffers -= 1;
                    // The host has not asked: the next flush tells it.
                    self.buffer.pass_on(failed);
                }
                Flusher::Command(command) => {
                    if failed {
                        self.commands[command].status = Status::MediaError;
                    }
                    self.settle_one(command);
                }
            }
        }
    }
}
