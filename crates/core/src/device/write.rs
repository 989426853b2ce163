//! Writes and flushes: from the host's memory into the buffer, and from there to flash.

use super::board::host_programs_per_die;
use super::buffer::Transfer;
use super::programs::{Carries, Program};
use super::{Command, Contents, Device, HostMemory, PageBytes, Source, spare, wear};
use crate::controller::{Change, Fate, Flusher, Landing, Wanted};
use crate::engine::EventKind;
use crate::ftl::{ProgramUnit, Stream};
use crate::ids::{BufferSlot, CommandId, FetchId, Lpn, Ppn, ProgramId, TransferId};
use crate::nand::{Cause, FlashOp};
use crate::observe::Tracer;
use crate::request::Status;
use crate::spec::HOST_PROGRAMS_PER_DIE;

impl<C: Contents, M: HostMemory, T: Tracer> Device<C, M, T> {
    pub(super) fn start_write(&mut self, id: CommandId) {
        let length_bytes = self.commands[id].request.length_bytes;
        self.board.counters.host_written_bytes += length_bytes;
        // Pending until all data has been asked for.
        self.commands[id].pending = 1;
        if !self.buffer.queue.is_empty() || !self.take_slots(id) {
            self.buffer.queue.push_back(&mut self.commands, id);
        }
    }

    /// Takes buffer slots for a write as far as there are any, and has their data sent. Returns
    /// true when the whole command has its slots.
    fn take_slots(&mut self, id: CommandId) -> bool {
        let now_ps = self.board.engine.now().ps();
        if let Err(alarm) = self.buffer.slots.admits(now_ps) {
            if let Some(at_ps) = alarm {
                self.board.engine.schedule(at_ps, EventKind::Paced, 0);
            }
            return false;
        }
        let command = *self.commands[id];
        let end = command.end_lpn();
        let from = command.first_lpn() + command.slots_taken;
        let (head, taken) = self.buffer.slots.take(from..end);
        self.buffer.slots.took(now_ps, taken);
        self.commands[id].slots_taken += taken;
        if let Some(head) = head {
            let bytes = command.bytes_of(from..from + taken);
            let transfer = self.buffer.begin(id, head, bytes);
            self.commands[id].pending += 1;
            let engine = &mut self.board.engine;
            engine.tracer.transfer(transfer, engine.now().ps(), 0);
            if command.window_io {
                let at_ps = self.board.window_ps(bytes);
                self.board
                    .engine
                    .schedule(at_ps, EventKind::DataArrived, transfer);
            } else if self.buffer.tier.is_granted() && self.hmb_path.has_dma() {
                let board = &mut self.board;
                self.buffer.put_in_hmb(board, &mut self.hmb_path, transfer);
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
        if from + taken < end {
            return false;
        }
        self.end_part(id);
        true
    }

    /// The next write that was held back is no longer.
    pub(super) fn on_paced(&mut self) {
        self.buffer.slots.alarm();
        self.serve_buffer_queue();
    }

    /// Trims are done once the map has caught up with what they change. They program nothing and would else be as fast as
    /// firmware is, and have whoever needs the map wait behind them for seconds. Each has a page of the map written, unless memory holds all of
    /// it: while data waits for room, no more are done in a turn than data has pages, or one trimmer has those who write wait for 2.5 s.
    #[inline]
    fn complete_trims(&mut self) {
        if self.trims.are_held() && !self.map.is_behind(&self.ftl) {
            let unit_slots = self.ftl.geometry().unit_slots;
            let data_waits = self.buffer.queue.front().is_some()
                || self.buffer.slots.waits_for_flash(unit_slots);
            let takes_room = self.map.takes_room() && self.background.shares_room(&self.ftl);
            let in_turns = data_waits && takes_room;
            let mut done = std::mem::take(&mut self.scratch);
            self.trims.release(in_turns, &mut done);
            self.go_on(done);
        }
    }

    /// Room in the buffer goes to the writes that wait for it, first come, first served.
    pub(super) fn serve_buffer_queue(&mut self) {
        self.complete_trims();
        while let Some(id) = self.buffer.queue.front() {
            if !self.take_slots(id) {
                return;
            }
            self.buffer.queue.pop_front(&mut self.commands);
        }
    }

    pub(super) fn on_data_arrived(&mut self, index: TransferId) {
        let Transfer { bytes, command, .. } = self.buffer.transfer(index);
        let now = self.board.engine.now();
        let tracer = &mut self.board.engine.tracer;
        tracer.transferred(index, command, true, now.ps());
        if self.buffer.tier.is_granted() {
            // Out again over the link, into the drive's buffer in host memory.
            self.put_in_hmb(index);
            return;
        }
        let from_window = self.commands[command].window_io;
        let board = &mut self.board;
        let at_ps = board.taken_in_ps(self.buffer.tier, bytes, from_window);
        match at_ps > now.ps() {
            true => board.engine.schedule(at_ps, EventKind::DataStored, index),
            false => self.on_data_stored(index),
        }
    }

    /// Write data goes into the buffer in host memory. What of a page it does not change must have been read
    /// before, where a tag covers the whole page.
    fn put_in_hmb(&mut self, index: TransferId) {
        let (board, path) = (&mut self.board, &mut self.hmb_path);
        let mut held_bytes = 0;
        if path.checks_pages() {
            held_bytes = self.buffer.take_held_bytes(index, &self.commands);
        }
        if held_bytes == 0 {
            self.buffer.put_in_hmb(board, path, index);
            return;
        }
        let at_ps = path.get(board, held_bytes);
        let engine = &mut board.engine;
        engine.schedule(at_ps, EventKind::DataArrived, index);
    }

    /// Write data is in the buffer: the command is done with it, unless it asked for flash (FUA).
    pub(super) fn on_data_stored(&mut self, index: TransferId) {
        let transfer = self.buffer.end(index);
        let id = transfer.command;
        let engine = &mut self.board.engine;
        let now_ps = engine.now().ps();
        engine.tracer.transferred(index, id, false, now_ps);
        let command = *self.commands[id];
        let mut next = Some(transfer.first_slot);
        while let Some(slot) = next {
            next = self.buffer.slots.chained(slot);
            let lpn = self.buffer.slots.lpn(slot);
            let held = self.land(id, &command, slot);
            if C::HAS_BYTES {
                self.protect(lpn);
                self.note_landed(held);
            }
        }
        self.buffer.landed(&transfer);
        self.end_part(id);
        self.dispatch();
    }

    /// A page has landed: where the buffer outlasts power, contents that outlast the drive hear of it.
    fn protect(&mut self, lpn: Lpn) {
        if self.buffer.survives_power_cut(&self.spec.tiers)
            && let Some(slot) = self.buffer.slots.find(lpn)
        {
            self.contents.protect(lpn, slot, self.ftl.sequence());
        }
    }

    /// A page's data has landed in a slot: where a log copies it, contents that outlast the drive hear of that later.
    fn note_landed(&mut self, slot: BufferSlot) {
        if self.buffer.slots.has_log() {
            self.buffer.slots.note_landed(slot, self.ftl.sequence());
        }
    }

    /// A page that the buffer held as power failed, and that somebody else has kept, lands in it again: for a drive that has
    /// come back by [`Device::restore`]. Returns false while there is no room for it.
    pub fn put_back(&mut self, lpn: Lpn, page: &PageBytes) -> bool {
        if self.buffer.slots.has_log() {
            return self.put_back_logged(lpn, page);
        }
        let (Some(slot), _) = self.buffer.slots.take(lpn.0..lpn.0 + 1) else {
            return false;
        };
        self.contents.set_buffered(slot, page);
        // As one whose rest has to be read, and has been.
        if let Landing::Absorbed(held) = self.buffer.slots.land(slot, true, false) {
            self.contents.absorb(slot, held, u8::MAX);
            self.protect(lpn);
        } else {
            self.protect(lpn);
            self.buffer.slots.merged(slot, false);
            self.log_changed(Vec::new());
        }
        true
    }

    fn put_back_logged(&mut self, lpn: Lpn, page: &PageBytes) -> bool {
        let slot = self.buffer.slots.put_back_logged(lpn);
        if let Some(slot) = slot {
            self.note_landed(slot);
            self.contents.set_buffered(slot, page);
            self.contents.protect(lpn, slot, self.ftl.sequence());
        } else {
            self.buffer.slots.empty();
        }
        self.log_changed(Vec::new());
        slot.is_some()
    }

    /// One page's data has arrived in its slot. Returns the one it is in then.
    #[inline]
    fn land(&mut self, id: CommandId, command: &Command, slot: BufferSlot) -> BufferSlot {
        let lpn = self.buffer.slots.lpn(slot);
        let sectors = command.sectors_in(lpn);
        self.board.counters.buffer_writes += 1;
        self.note_arrival(id, lpn, slot, sectors);
        if let Some(hpb) = &mut self.hpb {
            hpb.changes(lpn);
        }
        if let Some(cache) = &mut self.read_cache {
            cache.forget(lpn);
        }
        let whole = sectors == u8::MAX;
        // What was there before matters only to partial writes, where it lies in flash to hot/cold streams, too.
        let (older, old_ppn) = if whole && !self.spec.ftl.hot_cold_streams {
            (None, None)
        } else {
            (self.buffer.slots.find(lpn), self.ftl.locate(lpn))
        };
        let merge = !whole && older.is_none() && old_ppn.is_some();
        let cold = self.spec.ftl.hot_cold_streams && self.ftl.expects_to_last(old_ppn);
        let forced = command.request.fua && !self.buffer.survives_power_cut(&self.spec.tiers);
        if forced {
            self.buffer.slots.expect_force(slot);
        }
        let held = match self.buffer.slots.land(slot, merge, cold) {
            Landing::Absorbed(held) => {
                self.board.counters.buffer_absorbed += 1;
                if Self::PAGES_IN_HOST || self.hmb_pages.lost.any() {
                    let (data, around) = self.hmb_pages();
                    data.fetch_absorbing(around, held, sectors);
                }
                self.contents.absorb(slot, held, sectors);
                self.buffer.slots.knows(held, sectors);
                held
            }
            Landing::New => {
                let source = (!whole).then_some(match (older, old_ppn) {
                    (Some(older), _) => Source::Buffer(older),
                    (None, Some(ppn)) => Source::Flash(ppn),
                    (None, None) => Source::Unwritten,
                });
                if Self::PAGES_IN_HOST || self.hmb_pages.lost.any() {
                    let (data, around) = self.hmb_pages();
                    data.fetch_merging(around, slot, source, sectors);
                }
                if let Some(source) = source {
                    self.contents.merge(lpn, slot, source, sectors);
                }
                slot
            }
        };
        if Self::PAGES_IN_HOST && self.buffer.tier.is_granted() {
            let (data, around) = self.hmb_pages();
            data.put(around, held);
        }
        if merge {
            self.buffer.slots.knows(slot, sectors);
            self.buffer.slots.want_rest(slot);
        }
        self.await_flash(id, forced, held);
        held
    }

    /// A command may have to wait until its page is in flash: with FUA (`forced`), but for power-protected memory, which is
    /// non-volatile to the host.
    #[inline]
    fn await_flash(&mut self, id: CommandId, forced: bool, held: BufferSlot) {
        let unbuffered = self.spec.roles.write_buffer.acknowledges_programmed;
        let is_flash = self.buffer.tier.is_flash();
        if !(forced || unbuffered || is_flash) {
            return;
        }
        self.commands[id].pending += 1;
        self.board.counters.buffer_drains += u64::from(forced);
        self.buffer.slots.wait_for(held, id);
        if forced {
            self.buffer.slots.force(held);
        } else if is_flash {
            self.buffer.slots.hurry();
        }
        self.hurry_merge(held);
    }

    /// A command brings a page's data into a slot.
    #[inline]
    fn note_arrival(&mut self, id: CommandId, lpn: Lpn, slot: BufferSlot, sectors: u8) {
        let command = &mut self.commands[id];
        match &mut self.window {
            Some(window) if command.window_io => {
                self.contents.unpin(window.slot_of(command, lpn), slot);
            }
            _ => self
                .contents
                .arrive(&mut command.payload, lpn, slot, sectors),
        }
    }

    pub(super) fn start_flush(&mut self, id: CommandId) {
        self.commands[id].pending = 1;
        if self.trims.wait(id) {
            self.commands[id].pending += 1;
            self.trims
                .write(&mut self.board, &mut self.programs, &self.ftl);
        }
        if self.buffer.survives_power_cut(&self.spec.tiers) || self.buffer.slots.flush(id) {
            if self.buffer.slots.take_failure() {
                self.commands[id].status = Status::MediaError;
            }
            self.end_part(id);
        } else {
            self.board.counters.buffer_drains += 1;
            self.dispatch();
        }
    }

    /// Programs what should be programmed now, as far as there is room.
    pub(super) fn dispatch_writes(&mut self) {
        // The map may have caught up just now, and not any more once new data has had its turn.
        self.complete_trims();
        if !self.spec.ftl.hot_cold_streams {
            self.dispatch_queue(false);
            return;
        }
        // Where turns are few, who has waited longest goes first.
        let cold_first = self.buffer.slots.cold_is_older();
        self.dispatch_queue(cold_first);
        self.dispatch_queue(!cold_first);
    }

    fn dispatch_queue(&mut self, cold: bool) {
        loop {
            let stream = self.host_stream(cold);
            let unit_slots = self.ftl.geometry().unit_slots(stream.mode());
            let mut wanted = self.buffer.slots.wanted(cold, unit_slots);
            if wanted == Wanted::Nothing && self.spec.roles.write_buffer.acknowledges_programmed {
                wanted = Wanted::OnceIdle(self.buffer.slots.dirty(cold).min(unit_slots));
            }
            let wanted = match wanted {
                Wanted::Now(slots) => slots,
                Wanted::OnceIdle(slots) if slots > 0 && self.has_idle_die(cold, unit_slots) => {
                    slots
                }
                Wanted::OnceIdle(_) | Wanted::Nothing => {
                    self.buffer.slots.wait_for_dies(false);
                    return;
                }
            };
            let waits_for_dies = self.has_programs_ahead(stream);
            self.buffer.slots.wait_for_dies(waits_for_dies);
            if waits_for_dies {
                return;
            }
            let Some(share) = self.may_write(stream) else {
                return;
            };
            // What is superseded is room, which one kind of new data may have made for the other.
            self.background.steps += u64::from(self.spec.ftl.hot_cold_streams);
            let array = &mut self.board.array;
            let Some(unit) = wear::allocate(&mut self.ftl, array, stream, false) else {
                // Blocks that have failed may have been left out, which took room.
                self.background.steps += 1;
                return;
            };
            self.background.take_turn(&self.ftl, stream, share);
            self.trims.turns = unit_slots;
            self.program_host_data(unit, wanted, cold);
        }
    }

    /// Whether enough has been handed to the dies for now, and to the one that comes next. What is on its way from host memory will be.
    #[inline]
    fn has_programs_ahead(&self, stream: Stream) -> bool {
        let under_way = self.programs.of_host_data();
        // Fewer than a die alone may have: mostly there is nothing to look for.
        if under_way < HOST_PROGRAMS_PER_DIE {
            return false;
        }
        let most = host_programs_per_die(&self.ftl, stream);
        under_way >= 2 * most * self.ftl.geometry().dies
            || self.board.is_behind_with_new_data(&self.ftl, stream, most)
    }

    /// What does not fill a program operation and is waited for is not kept waiting while a die has nothing to do for the host;
    /// behind such work it may fill up. What garbage collection has under way does not count: it goes on as long as it likes.
    #[inline]
    fn has_idle_die(&self, cold: bool, unit_slots: u32) -> bool {
        // Full operations of the one kind would keep what is left of the other waiting without end.
        let is_overtaken =
            self.spec.ftl.hot_cold_streams && self.buffer.slots.is_overtaken(cold, unit_slots);
        is_overtaken || self.programs.of_host_data() < self.ftl.geometry().dies
    }

    fn host_stream(&self, cold: bool) -> Stream {
        if self.spec.ftl.has_slc() && self.ftl.has_room(Stream::Slc) {
            Stream::Slc
        } else if cold {
            Stream::Cold
        } else {
            Stream::Host
        }
    }

    fn program_host_data(&mut self, unit: ProgramUnit, wanted: u32, cold: bool) {
        let mut filled = 0;
        let mut logged = 0;
        let mut batch = std::mem::take(&mut self.buffer.batch);
        self.buffer.slots.pop_dirty(cold, wanted, &mut batch);
        self.ftl.touch_with_old(batch.iter().map(|&(_, lpn)| lpn));
        let program = Program::new(&unit, Carries::HostData(batch[0].0));
        for (slot, lpn) in batch.drain(..) {
            let ppn = Ppn(unit.ppn.0 + filled);
            let fate = self.buffer.slots.fate(slot);
            if fate != Fate::Nothing && (Self::PAGES_IN_HOST || self.hmb_pages.lost.any()) {
                let (data, around) = self.hmb_pages();
                data.make_safe(around, slot);
                self.hmb_pages.lost.program(slot, ppn);
            }
            match fate {
                Fate::Current => {
                    if C::HAS_BYTES && self.buffer.slots.has_log() {
                        self.buffer.slots.note_programs(slot, unit.sequence);
                    }
                    self.contents.program(slot, ppn);
                    if C::HEARS_OF_DEAD
                        && let Some(old) = self.ftl.locate(lpn)
                    {
                        self.dead.add(unit.sequence, old);
                    }
                    self.ftl.bind(lpn, ppn, unit.sequence);
                    if let Some(hpb) = &mut self.hpb {
                        hpb.changes(lpn);
                    }
                    let (board, memory) = (&mut self.board, &mut self.host_memory);
                    self.map
                        .update(board, &self.ftl, memory, (lpn, Change::Write));
                }
                Fate::Trimmed(trim) => {
                    self.contents.program(slot, ppn);
                    self.ftl.leave_trimmed(lpn, ppn, trim);
                    if C::HEARS_OF_DEAD {
                        self.dead.add(unit.sequence, ppn);
                    }
                }
                Fate::Nothing => {}
            }
            if fate != Fate::Nothing {
                filled += 1;
                logged += u32::from(self.buffer.slots.is_logged(slot));
            }
        }
        self.buffer.batch = batch;
        self.map.measure_changed_pages(&mut self.board, &self.ftl);
        let (board, programs) = (&mut self.board, &mut self.programs);
        if self.buffer.must_fetch(logged) {
            let path = &mut self.hmb_path;
            let slots = (filled, logged);
            self.buffer
                .fetch((board, &self.ftl), path, programs, (unit, program), slots);
        } else {
            programs.start(board, &self.ftl, unit, program, (Cause::Host, filled));
        }
    }

    /// Data of a program operation has come from host memory.
    pub(super) fn on_write_back_arrived(&mut self, index: FetchId) {
        let (board, programs) = (&mut self.board, &mut self.programs);
        programs.on_fetched(board, &self.ftl, index);
    }

    /// Starts to copy slots into the log.
    pub(super) fn dispatch_log(&mut self) {
        let slots = self.buffer.slots.start_log();
        if slots == 0 {
            return;
        }
        if Self::PAGES_IN_HOST || self.hmb_pages.lost.any() {
            for at in 0..slots as usize {
                let slot = self.buffer.slots.log_batch(at);
                let (data, around) = self.hmb_pages();
                data.make_safe(around, slot);
            }
        }
        let (board, path) = (&mut self.board, &mut self.hmb_path);
        self.buffer.log(board, path, slots);
    }

    pub(super) fn on_log_stored(&mut self) {
        if C::HAS_BYTES {
            for (slot, sequence) in self.buffer.slots.being_logged() {
                let lpn = self.buffer.slots.lpn(slot);
                self.contents.protect(lpn, slot, sequence);
            }
        }
        let mut done = std::mem::take(&mut self.scratch);
        self.buffer.slots.logged(&mut done);
        self.log_changed(done);
    }

    /// The log, or the buffer, holds something else: who waited for it goes on, and what is to make room does.
    fn log_changed(&mut self, done: Vec<CommandId>) {
        self.go_on(done);
        self.dispatch();
    }

    pub(super) fn on_programmed(&mut self, op: &FlashOp) {
        let index = ProgramId(op.owner);
        if self.board.array.ages()
            && self.programs.of(index).carries != Carries::Trims
            && wear::has_failed(&mut self.board, op)
            && self.rewrite(index, op.cause)
        {
            return;
        }
        let program = self.programs.end(index);
        if program.carries == Carries::Trims {
            self.on_trims_saved();
            return;
        }
        if self.contents.keeps_spare() {
            let settled_to = spare::settled_to(&self.programs, &self.trims, &self.ftl);
            let (contents, lost) = (&mut self.contents, &self.hmb_pages.lost);
            spare::tell(contents, &self.ftl, lost, &program, settled_to);
        }
        self.ftl.programmed(program.ppn);
        self.discard_dead();
        match program.carries {
            Carries::HostData(first_slot) => self.release_slots(first_slot),
            Carries::MapPages { saves_hmb } => self.map.on_written_back(saves_hmb),
            Carries::Moves(_) | Carries::Trims => {}
        }
        if let Some(hpb) = &mut self.hpb {
            hpb.programmed(&self.ftl, &self.buffer.slots, program.ppn);
        }
        if let Carries::Moves(mover) = program.carries {
            self.on_moves_programmed(index, mover);
        }
        self.erase_after_program(self.ftl.geometry().superblock(program.ppn));
        self.dispatch();
    }

    /// Buffer slots are in flash: they are free, and who waited for them goes on.
    fn release_slots(&mut self, first_slot: BufferSlot) {
        let mut done = std::mem::take(&mut self.scratch);
        let mut next = Some(first_slot);
        while let Some(slot) = next {
            next = self.buffer.slots.chained(slot);
            if Self::PAGES_IN_HOST {
                self.hmb_pages.release(slot);
            }
            self.buffer.slots.programmed(slot, &mut done);
        }
        self.go_on(done);
    }

    /// Commands that waited for slots alone (`done`, the list to be reused) and flushes go on.
    fn go_on(&mut self, mut done: Vec<CommandId>) {
        for command in done.drain(..) {
            self.end_part(command);
        }
        self.scratch = done;
        while let Some((flush, failed)) = self.buffer.slots.pop_flushed() {
            match flush {
                Flusher::Drive => {
                    self.buffer.saved();
                    // The host has not asked: the next flush tells it.
                    self.buffer.slots.pass_on(failed);
                }
                Flusher::Command(command) => {
                    if failed {
                        self.commands[command].status = Status::MediaError;
                    }
                    self.end_part(command);
                }
            }
        }
    }
}
