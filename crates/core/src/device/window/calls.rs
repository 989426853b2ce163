//! What each call does, step by step.

use super::{
    COMPLETION_ENTRY_BYTES, Command, Contents, Device, Op, SUBMISSION_ENTRY_BYTES, Stage, Status,
    WindowCall, WindowError, WindowReply,
};
use crate::controller::HostMemory;
use crate::controller::dump::mark_ps;
use crate::request::{EntryId, EntryInfo, EntryState, Request};
use crate::spec::SLOT_BYTES;
use crate::transport::bar::{LINE_BYTES, Room, WORD_BYTES, mask_of};

/// Pages that pass between window and flash as one piece.
const PIECE_PAGES: u64 = 16;

impl<C: Contents, M: HostMemory> Device<C, M> {
    /// A CPU begins a call.
    pub(super) fn begin_call(&mut self, id: u32) {
        let now_ps = self.engine.now().ps();
        let call_ps = self.spec.host.cpu.call_ps;
        match self.side().calls[id].call {
            WindowCall::Store {
                window_offset_bytes,
                length_bytes,
            } => self.begin_store(id, window_offset_bytes, length_bytes),
            WindowCall::Load {
                window_offset_bytes,
                length_bytes,
            } => self.begin_load(id, window_offset_bytes, length_bytes),
            WindowCall::Sync { entry } | WindowCall::Flush { entry } => {
                self.begin_sync(id, entry);
            }
            _ => self.next_stage(id, Stage::Submitted, now_ps + call_ps),
        }
    }

    // Stores.

    fn begin_store(&mut self, id: u32, offset: u64, length: u64) {
        let side = self.side();
        match side.window.pinned_range(offset, length) {
            Err(error) => self.fail_at_once(id, error),
            Ok(info) => {
                let lines = (offset / LINE_BYTES, (offset + length - 1) / LINE_BYTES);
                let cpu = side.calls[id].cpu;
                side.cpus.stored(cpu, info.entry, lines.0, lines.1);
                side.calls[id].at = offset;
                self.counters.window.stores += 1;
                self.counters.window.stored_bytes += length;
                self.store_line(id);
            }
        }
    }

    fn fail_at_once(&mut self, id: u32, error: WindowError) {
        let now_ps = self.engine.now().ps();
        self.answer(id, Err(error), now_ps);
    }

    /// The range of a store or load that one step covers: from, to, end of the whole.
    fn step(&mut self, id: u32, step_bytes: u64) -> (u64, u64, u64) {
        let call = &self.side().calls[id];
        let (WindowCall::Store {
            window_offset_bytes,
            length_bytes,
        }
        | WindowCall::Load {
            window_offset_bytes,
            length_bytes,
        }) = call.call
        else {
            unreachable!("only loads and stores go in steps");
        };
        let end = window_offset_bytes + length_bytes;
        let to = end.min((call.at / step_bytes + 1) * step_bytes);
        (call.at, to, end)
    }

    fn store_step(&mut self, id: u32) -> (u64, u64, u64) {
        let combines = self.side().bar.combines();
        self.step(id, if combines { LINE_BYTES } else { WORD_BYTES })
    }

    /// Stores to the next line, once there is a buffer for it.
    pub(super) fn store_line(&mut self, id: u32) {
        let now = self.engine.now();
        let (from, to, end) = self.store_step(id);
        if from == end {
            self.answer(id, Ok(WindowReply::Done), now.ps());
            return;
        }
        let store_ps = self.spec.host.cpu.store_ps;
        let Device { window, link, .. } = self;
        let side = window.as_mut().expect("calls are of drives with a window");
        let cpu = side.calls[id].cpu;
        match side.bar.take(link, now, cpu, (from / LINE_BYTES) as u32) {
            Room::Wait(at_ps) => self.next_stage(id, Stage::Room, at_ps),
            Room::Ready => {
                let words = to.div_ceil(WORD_BYTES) - from / WORD_BYTES;
                self.next_stage(id, Stage::Filled, now.ps() + words * store_ps);
            }
        }
    }

    pub(super) fn on_filled_line(&mut self, id: u32) {
        let now = self.engine.now();
        let (from, to, _) = self.store_step(id);
        let line = (from / LINE_BYTES) as u32;
        let mask = mask_of(line, from, to);
        let Device { window, link, .. } = self;
        let side = window.as_mut().expect("calls are of drives with a window");
        let call = &mut side.calls[id];
        call.at = to;
        let (cpu, tag) = (call.cpu, call.tag);
        let packet = side.bar.combine(link, now, cpu, line, mask);
        self.contents.combine(tag, packet, line, mask);
        self.store_line(id);
    }

    // Loads.

    fn begin_load(&mut self, id: u32, offset: u64, length: u64) {
        match self.side().window.pinned_range(offset, length) {
            Err(error) => self.fail_at_once(id, error),
            Ok(_) => {
                self.counters.window.loads += 1;
                self.counters.window.loaded_bytes += length;
                let now = self.engine.now();
                let Device { window, link, .. } = self;
                let side = window.as_mut().expect("calls are of drives with a window");
                side.calls[id].at = offset;
                // An uncached read empties the write-combining buffers first.
                side.bar.drain(link, now, side.calls[id].cpu);
                self.send_load(id);
            }
        }
    }

    /// The next 8 bytes are asked for; the CPU waits for them.
    pub(super) fn send_load(&mut self, id: u32) {
        let now = self.engine.now();
        let (from, _, end) = self.step(id, WORD_BYTES);
        if from == end {
            self.answer(id, Ok(WindowReply::Done), now.ps());
            return;
        }
        self.counters.window.load_tlps += 1;
        let at_ps = self.link.post(now, 0);
        self.next_stage(id, Stage::LoadArrived, at_ps);
    }

    pub(super) fn on_load_arrived(&mut self, id: u32) {
        let (from, to, _) = self.step(id, WORD_BYTES);
        let tag = self.side().calls[id].tag;
        self.side().calls[id].at = to;
        self.contents.load(tag, from, to - from);
        let at_ps = self.answer_read(to - from) + self.spec.host.cpu.load_ps;
        self.next_stage(id, Stage::LoadAnswered, at_ps);
    }

    /// The drive answers a CPU's read; returns when the answer is there.
    fn answer_read(&mut self, bytes: u64) -> u64 {
        let access_ps = self.spec.tiers.pm.as_ref().map_or(0, |pm| pm.access_ps);
        // As for DMA reads, the direction is booked at the time of asking.
        self.link.write(self.engine.now(), bytes) + access_ps
    }

    // Making stores durable.

    fn begin_sync(&mut self, id: u32, entry: EntryId) {
        let cpu_spec = self.spec.host.cpu.clone();
        let begin_ps = self.engine.now().ps() + cpu_spec.call_ps;
        let side = self.side();
        let length_bytes = match side.window.pinned(entry) {
            Ok(found) => found.info.length_bytes,
            Err(error) => {
                self.answer(id, Err(error), begin_ps);
                return;
            }
        };
        let lines = side.cpus.take_stored(side.calls[id].cpu, entry);
        // Lines stored to more than once are flushed once.
        let lines = lines.min(length_bytes / LINE_BYTES);
        let at_ps = begin_ps + lines * cpu_spec.flush_line_ps;
        self.next_stage(id, Stage::LinesFlushed, at_ps);
    }

    /// First half: out of the CPU.
    pub(super) fn on_lines_flushed(&mut self, id: u32) {
        let now = self.engine.now();
        let Device { window, link, .. } = self;
        let side = window.as_mut().expect("calls are of drives with a window");
        let sent_ps = side.bar.drain(link, now, side.calls[id].cpu);
        let at_ps = sent_ps + self.spec.host.cpu.fence_ps;
        self.next_stage(id, Stage::Fenced, at_ps);
    }

    /// Second half: into the drive. A read of no bytes arrives behind everything posted before it.
    pub(super) fn on_fenced(&mut self, id: u32) {
        self.counters.window.load_tlps += 1;
        let at_ps = self.link.post(self.engine.now(), 0);
        self.next_stage(id, Stage::VerifyArrived, at_ps);
    }

    pub(super) fn on_verify_arrived(&mut self, id: u32) {
        let at_ps = self.answer_read(0);
        self.next_stage(id, Stage::Verified, at_ps);
    }

    pub(super) fn on_verified(&mut self, id: u32) {
        if matches!(self.side().calls[id].call, WindowCall::Flush { .. }) {
            self.on_submitted(id);
            return;
        }
        self.counters.window.syncs += 1;
        let now_ps = self.engine.now().ps();
        self.answer(id, Ok(WindowReply::Done), now_ps);
    }

    // Calls of the drive: they travel as commands of the NVMe queues do.

    pub(super) fn on_submitted(&mut self, id: u32) {
        let wire_ps = self.link.wire_ps(SUBMISSION_ENTRY_BYTES);
        self.link.from_host_bytes += SUBMISSION_ENTRY_BYTES;
        let way_ps = self.spec.host.submit_ps + self.link.one_way_ps();
        let at_ps = self.engine.now().ps() + way_ps + self.link.round_trip_ps() + wire_ps;
        self.next_stage(id, Stage::Fetched, at_ps);
        self.side().calls[id].on_cpu = false;
        let cpu = self.side().calls[id].cpu;
        self.release_cpu(cpu);
    }

    pub(super) fn on_call_fetched(&mut self, id: u32) {
        let now = self.engine.now();
        let side = self.side();
        let end_ps = side.core.book(now, side.window.spec().call_ps);
        self.next_stage(id, Stage::Executed, end_ps);
    }

    fn reply(&mut self, id: u32, result: Result<WindowReply, WindowError>) {
        let entry_end_ps = self.link.write(self.engine.now(), COMPLETION_ENTRY_BYTES);
        self.answer(id, result, entry_end_ps + self.spec.host.complete_ps);
    }

    pub(super) fn execute(&mut self, id: u32) {
        let done = match self.side().calls[id].call {
            WindowCall::Pin {
                entry,
                window_offset_bytes,
                drive_offset_bytes,
                length_bytes,
            } => self.execute_pin(
                id,
                EntryInfo {
                    entry,
                    window_offset_bytes,
                    drive_offset_bytes,
                    length_bytes,
                    state: EntryState::Pinning,
                },
            ),
            WindowCall::Flush { entry } => self.execute_flush(id, entry),
            WindowCall::ReadDma {
                entry,
                offset_bytes,
                length_bytes,
            } => self.execute_read_dma(id, entry, offset_bytes, length_bytes),
            WindowCall::EntryInfo { entry } => {
                self.counters.window.infos += 1;
                let found = self.side().window.find(entry);
                found.map(|entry| Some(WindowReply::Entry(entry.info)))
            }
            WindowCall::Store { .. } | WindowCall::Load { .. } | WindowCall::Sync { .. } => {
                unreachable!("the CPU does these itself")
            }
        };
        match done {
            Ok(None) => {}
            Ok(Some(reply)) => self.reply(id, Ok(reply)),
            Err(error) => self.reply(id, Err(error)),
        }
    }

    fn execute_pin(
        &mut self,
        id: u32,
        info: EntryInfo,
    ) -> Result<Option<WindowReply>, WindowError> {
        if self.side().window.pin(info, id)? {
            self.move_pieces(id);
        }
        Ok(None)
    }

    fn execute_flush(
        &mut self,
        id: u32,
        entry: EntryId,
    ) -> Result<Option<WindowReply>, WindowError> {
        let found = self.side().window.pinned(entry)?;
        if found.copies > 0 {
            return Err(WindowError::Busy);
        }
        found.info.state = EntryState::Flushing;
        found.call = id;
        self.side().calls[id].at = 0;
        self.move_pieces(id);
        Ok(None)
    }

    /// Has an entry's pages read into the window, or written from it, by commands of the drive's own.
    pub(super) fn move_pieces(&mut self, call: u32) {
        let entry = self.moved_entry(call);
        let found = self.side().window.find(entry).expect("it is in the table");
        let pages = found.info.length_bytes / SLOT_BYTES;
        found.end_ps = 0;
        found.pieces = pages.div_ceil(PIECE_PAGES) as u32;
        self.next_piece(call, pages);
    }

    fn moved_entry(&mut self, call: u32) -> EntryId {
        match self.side().calls[call].call {
            WindowCall::Pin { entry, .. } | WindowCall::Flush { entry } => entry,
            _ => unreachable!("only pins and flushes move pages"),
        }
    }

    /// The firmware turns to the next piece; other calls may come in between.
    fn next_piece(&mut self, call: u32, pages_left: u64) {
        let now = self.engine.now();
        let side = self.side();
        let core_ps = PIECE_PAGES.min(pages_left) * side.window.spec().page_ps;
        let end_ps = side.core.book(now, core_ps);
        self.next_stage(call, Stage::Piece, end_ps);
    }

    /// The firmware has done its part of a piece: map, flash and buffer do theirs.
    pub(super) fn start_piece(&mut self, call: u32) {
        let entry = self.moved_entry(call);
        let side = self.side();
        let at = side.calls[call].at;
        let info = side.window.find(entry).expect("it is in the table").info;
        let bytes = (PIECE_PAGES * SLOT_BYTES).min(info.length_bytes - at);
        side.calls[call].at += bytes;
        let op = match info.state {
            EntryState::Flushing => Op::Write,
            _ => Op::Read,
        };
        let request = Request {
            tag: entry.0,
            queue: 0,
            op,
            // An entry is given up only for what is safe in its place.
            fua: op == Op::Write,
            offset_bytes: info.drive_offset_bytes + at,
            length_bytes: bytes,
        };
        let mut command = Command::new(request, Status::Success, self.engine.now().ps());
        command.internal = true;
        let command = self.commands.insert(command);
        if op == Op::Read {
            // Looks the map up; what it costs is part of the firmware's time for a page.
            self.read_core_ps(command);
        }
        let left = info.length_bytes - at - bytes;
        if left > 0 {
            self.next_piece(call, left / SLOT_BYTES);
        }
        self.on_processed(command);
    }

    /// Every page of an entry has been read or written: the table changes, in one step.
    pub(super) fn on_moved(&mut self, id: u32) {
        if !self.side().armed {
            let at_ps = self.engine.now().ps() + mark_ps(&self.spec.nand);
            self.side().armed = true;
            self.next_stage(id, Stage::Moved, at_ps);
            return;
        }
        let mut released = std::mem::take(&mut self.side().released);
        let entry = self.moved_entry(id);
        let found = self.side().window.find(entry);
        let lost = std::mem::take(&mut found.expect("it is in the table").lost);
        match self.side().calls[id].call {
            WindowCall::Pin { entry, .. } if lost => {
                self.side().window.unpin(entry, &mut released);
            }
            // What the window holds is all there is.
            WindowCall::Flush { entry } if lost => {
                let found = self.side().window.find(entry);
                found.expect("it is in the table").info.state = EntryState::Pinned;
            }
            WindowCall::Pin {
                entry,
                length_bytes,
                ..
            } => {
                let found = self.side().window.find(entry);
                found.expect("it is in the table").info.state = EntryState::Pinned;
                self.counters.window.pins += 1;
                self.counters.window.pinned_bytes += length_bytes;
            }
            WindowCall::Flush { entry } => {
                let found = self.side().window.find(entry);
                let length_bytes = found.expect("it is in the table").info.length_bytes;
                self.side().window.unpin(entry, &mut released);
                self.counters.window.flushes += 1;
                self.counters.window.flushed_bytes += length_bytes;
            }
            _ => unreachable!("only pins and flushes move pages"),
        }
        let result = match lost {
            true => Err(WindowError::MediaError),
            false => Ok(WindowReply::Done),
        };
        self.reply(id, result);
        for command in released.drain(..) {
            self.on_fetched(command);
        }
        self.side().released = released;
    }

    // The read-DMA engine.

    fn execute_read_dma(
        &mut self,
        id: u32,
        entry: EntryId,
        offset: u64,
        length: u64,
    ) -> Result<Option<WindowReply>, WindowError> {
        let now = self.engine.now();
        let side = self.side();
        let found = side.window.pinned(entry)?;
        if length == 0 {
            return Err(WindowError::ZeroLength);
        }
        let end = offset.checked_add(length);
        if end.is_none_or(|end| end > found.info.length_bytes) {
            return Err(WindowError::OutOfEntry);
        }
        found.copies += 1;
        let end_ps = side.core.book(now, side.window.spec().read_dma_ps);
        self.next_stage(id, Stage::Copying, end_ps);
        Ok(None)
    }

    /// Copies up to 4 KiB and goes on when the link has taken them: others may come in between.
    pub(super) fn copy_page(&mut self, id: u32) {
        let call = self.side().calls[id];
        let WindowCall::ReadDma {
            entry,
            offset_bytes,
            length_bytes,
        } = call.call
        else {
            unreachable!("only the read-DMA engine copies");
        };
        let found = self.side().window.find(entry);
        let start = found.expect("copied entries stay").info.window_offset_bytes + offset_bytes;
        let bytes = SLOT_BYTES.min(length_bytes - call.at);
        self.contents.load(call.tag, start + call.at, bytes);
        let arrive_ps = self.link.write(self.engine.now(), bytes);
        self.side().calls[id].at += bytes;
        if call.at + bytes < length_bytes {
            let sent_ps = arrive_ps - self.link.one_way_ps();
            self.next_stage(id, Stage::Copying, sent_ps);
            return;
        }
        let access_ps = self.spec.tiers.pm.as_ref().map_or(0, |pm| pm.access_ps);
        self.next_stage(id, Stage::Copied, arrive_ps + access_ps);
    }

    pub(super) fn on_copied(&mut self, id: u32) {
        let WindowCall::ReadDma {
            entry,
            length_bytes,
            ..
        } = self.side().calls[id].call
        else {
            unreachable!("only the read-DMA engine copies");
        };
        let found = self.side().window.find(entry);
        found.expect("copied entries stay").copies -= 1;
        self.counters.window.read_dmas += 1;
        self.counters.window.read_dma_bytes += length_bytes;
        self.reply(id, Ok(WindowReply::Done));
    }
}
