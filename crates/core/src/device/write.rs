//! Writes, flushes and trims: from the host's memory into the buffer, and from there to flash.

use super::{Contents, Device, Source};
use crate::controller::{Found, Landing, SlotState};
use crate::engine::EventKind;
use crate::ftl::{Stream, Unit};
use crate::ids::{BufferSlot, Lpn, NONE, Ppn, TranslationPage};
use crate::nand::{Cause, Class, FlashOp};
use crate::request::Op;
use crate::spec::{ENTRIES_PER_TRANSLATION_PAGE, SLOT_BYTES, Tier};

/// Marks a waiter of a map fill as a buffer slot to be merged rather than a command.
pub(super) const MERGE: u32 = 1 << 31;

/// Stands for a command where the buffer is emptied because host memory was taken back.
pub(super) const SAVED: u32 = NONE - 1;

/// Write data on its way from the host's memory into slots of the buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    command: u32,
    /// First slot; the others follow by [`crate::controller::WriteBuffer::chained`].
    first_slot: u32,
    bytes: u64,
}

/// What a program operation carries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    pub ppn: Ppn,
    /// First buffer slot (host data), chained; `NONE` otherwise.
    pub first_slot: u32,
    /// Translation pages that stood in host memory which was taken back.
    pub saves_hmb: bool,
    /// Relocated data.
    pub is_move: bool,
}

impl Program {
    pub(super) fn new(ppn: Ppn) -> Self {
        Program {
            ppn,
            first_slot: NONE,
            saves_hmb: false,
            is_move: false,
        }
    }
}

impl<C: Contents> Device<C> {
    pub(super) fn start_write(&mut self, id: u32) {
        let length_bytes = self.commands[id].request.length_bytes;
        self.counters.host_written_bytes += length_bytes;
        // Pending until all data has been asked for.
        self.commands[id].pending = 1;
        if !self.buffer_queue.is_empty() || !self.take_slots(id) {
            self.buffer_queue.push_back(&mut self.commands, id);
        }
    }

    /// Takes buffer slots for a write as far as there are any, and has their data sent. Returns
    /// true when the whole command has its slots.
    fn take_slots(&mut self, id: u32) -> bool {
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
        self.commands[id].slots_taken = lpn - first;
        if head != NONE {
            let transfer = self.transfers.insert(Transfer {
                command: id,
                first_slot: head,
                bytes,
            });
            self.commands[id].pending += 1;
            let at_ps = self.link.read(self.engine.now(), bytes);
            self.engine
                .schedule(at_ps, EventKind::DataArrived, transfer);
        }
        if lpn < end {
            return false;
        }
        self.settle_one(id);
        true
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
        let Transfer { bytes, .. } = self.transfers[index];
        let now = self.engine.now();
        match self.buffer_tier {
            Tier::Hmb => {
                // Out again over the link, into the drive's buffer in host memory.
                self.counters.hmb_written_bytes += bytes;
                let at_ps = self.link.write(now, bytes);
                self.engine.schedule(at_ps, EventKind::DataStored, index);
            }
            Tier::Dram => {
                let rate = self
                    .spec
                    .tiers
                    .dram
                    .as_ref()
                    .map_or(1, |dram| dram.bytes_per_s);
                let transfer_ps = crate::time::transfer_ps(bytes, rate);
                let at_ps = self.dram.book(now, transfer_ps);
                self.engine.schedule(at_ps, EventKind::DataStored, index);
            }
            Tier::Sram | Tier::Slc => self.on_data_stored(index),
        }
    }

    /// Write data is in the buffer: the command is done with it, unless it asked for flash (FUA).
    pub(super) fn on_data_stored(&mut self, index: u32) {
        let Transfer {
            command: id,
            first_slot,
            ..
        } = self.transfers[index];
        self.transfers.remove(index);
        let mut slot = first_slot;
        while slot != NONE {
            let next = self.buffer.chained(BufferSlot(slot));
            self.land(id, BufferSlot(slot));
            slot = next;
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
        self.counters.buffer_writes += 1;
        self.contents.arrive(tag, lpn, slot, sectors);
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
        let cold = self.spec.ftl.hot_cold_streams && old_ppn.is_none();
        let held = match self.buffer.land(slot, merge, cold) {
            Landing::Absorbed(held) => {
                self.counters.buffer_absorbed += 1;
                self.contents.absorb(slot, held, sectors);
                held
            }
            Landing::New => {
                if !whole {
                    let source = match (older, old_ppn) {
                        (Some(older), _) => Source::Buffer(older),
                        (None, Some(ppn)) => Source::Flash(ppn),
                        (None, None) => Source::Unwritten,
                    };
                    self.contents.merge(slot, source, sectors);
                }
                slot
            }
        };
        if command.request.fua || self.buffer_tier == Tier::Slc {
            self.commands[id].pending += 1;
            self.counters.buffer_drains += u64::from(command.request.fua);
            self.buffer.wait_for(held, id);
        }
        if merge {
            self.start_merge(slot, lpn);
        }
    }

    /// The rest of a partly written page is read: its map entry first, if need be.
    fn start_merge(&mut self, slot: BufferSlot, lpn: Lpn) {
        let page = translation_page(lpn);
        match self.look_up_map(page) {
            Found::Tier(_) => self.read_for_merge(slot),
            Found::Nowhere => {
                self.map.fill(page, Some(MERGE | slot.0));
                self.pump_map();
            }
        }
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
        self.read_flash(FlashOp::read(
            Class::HostRead,
            Cause::Merge,
            slot.0,
            &place,
            mask,
        ));
    }

    pub(super) fn on_merged(&mut self, slot: u32) {
        let slot = BufferSlot(slot);
        debug_assert_eq!(self.buffer.state(slot), SlotState::Merging);
        self.buffer.merged(slot, false);
        self.pump();
    }

    pub(super) fn start_flush(&mut self, id: u32) {
        self.commands[id].pending = 1;
        if self.buffer.flush(id) {
            self.settle_one(id);
        } else {
            self.counters.buffer_drains += 1;
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
        let mut lpn = first;
        while lpn < end {
            let page = TranslationPage(lpn / per_page);
            let page_end = u64::from(page.0 + 1) * u64::from(per_page);
            let page_end = page_end.min(u64::from(self.ftl.user_slots())) as u32;
            let stop = end.min(page_end);
            let whole = lpn.is_multiple_of(per_page) && stop == page_end;
            let changed = self.trim_pages(lpn, stop);
            if whole && !self.map.is_busy(page) {
                self.ftl.unbind_translation(page);
                self.map.discard(page);
            } else if changed {
                self.update_map(page);
            }
            lpn = stop;
        }
        self.commands[id].pending = 1;
        self.settle_one(id);
        self.pump();
    }

    /// Logical pages `from..to` lose their data; returns whether any had some.
    fn trim_pages(&mut self, from: u32, to: u32) -> bool {
        let mut changed = false;
        for lpn in (from..to).map(Lpn) {
            self.buffer.forget(lpn);
            if let Some(cache) = &mut self.read_cache {
                cache.forget(lpn);
            }
            changed |= self.ftl.unbind(lpn);
        }
        changed
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
                let wanted = self.buffer.wanted(cold, unit_slots);
                if wanted == 0 || !self.may_write(stream) {
                    break;
                }
                let Some(unit) = self.ftl.allocate(stream, false) else {
                    break;
                };
                self.program_host_data(unit, wanted, cold, stream);
            }
        }
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

    fn program_host_data(&mut self, unit: Unit, wanted: u32, cold: bool, stream: Stream) {
        let mut head = NONE;
        let mut tail = NONE;
        let mut filled = 0;
        for _ in 0..wanted {
            let slot = self.buffer.pop_dirty(cold);
            if self.buffer.is_newest(slot) {
                let lpn = self.buffer.lpn(slot);
                let ppn = Ppn(unit.ppn.0 + filled);
                self.contents.program(slot, ppn);
                self.ftl.bind(lpn, ppn);
                self.update_map(translation_page(lpn));
                filled += 1;
            }
            if head == NONE {
                head = slot.0;
            } else {
                self.buffer.chain(BufferSlot(tail), slot);
            }
            tail = slot.0;
        }
        self.buffer.chain(BufferSlot(tail), BufferSlot(NONE));
        if self.buffer_tier == Tier::Hmb {
            let bytes = u64::from(filled) * SLOT_BYTES;
            self.counters.hmb_read_bytes += bytes;
            self.link.read(self.engine.now(), bytes);
        }
        self.spend_credit(stream, unit.slots);
        let mut program = Program::new(unit.ppn);
        program.first_slot = head;
        self.program_flash(unit, program, Cause::Host, filled);
    }

    /// Hands a program operation to the array. `filled` of the unit's slots hold data.
    pub(super) fn program_flash(
        &mut self,
        unit: Unit,
        program: Program,
        cause: Cause,
        filled: u32,
    ) -> u32 {
        self.counters.programs_by_cause[cause as usize] += 1;
        self.counters.programmed_slots_by_cause[cause as usize] += u64::from(filled);
        self.counters.padded_slots += u64::from(unit.slots - filled);
        let class = match cause {
            Cause::Host | Cause::Map | Cause::Merge => Class::HostProgram,
            Cause::Gc | Cause::Wear | Cause::Fold => Class::Background,
        };
        let owner = self.programs.insert(program);
        let op = FlashOp::program(class, cause, owner, &self.ftl.place(unit.ppn));
        self.array.enqueue(&mut self.engine, op, unit.slc);
        owner
    }

    pub(super) fn on_programmed(&mut self, index: u32) {
        let program = self.programs[index];
        self.programs.remove(index);
        self.ftl.programmed(program.ppn);
        if program.first_slot != NONE {
            self.release_slots(program.first_slot);
        }
        self.on_moves_programmed(index, &program);
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
            self.buffer.programmed(BufferSlot(slot), &mut done);
            slot = next;
        }
        for command in done.drain(..) {
            self.settle_one(command);
        }
        self.scratch = done;
        while let Some(flush) = self.buffer.pop_flushed() {
            match flush {
                SAVED => self.background.saving_buffers -= 1,
                command => self.settle_one(command),
            }
        }
    }
}

/// Translation page of a logical page.
#[inline]
pub(super) fn translation_page(lpn: Lpn) -> TranslationPage {
    TranslationPage(lpn.0 / ENTRIES_PER_TRANSLATION_PAGE as u32)
}
