//! What each call of the drive does, step by step: they travel as commands of the NVMe queues do.

use super::{
    COMPLETION_ENTRY_BYTES, Command, Contents, Device, Op, Stage, Status, WindowCall, WindowError,
    WindowReply,
};
use crate::controller::HostMemory;
use crate::controller::dump::mark_ps;
use crate::request::{EntryId, EntryInfo, EntryState, Request};
use crate::spec::SLOT_BYTES;

/// Pages that pass between window and flash as one piece.
const PIECE_PAGES: u64 = 16;

impl<C: Contents, M: HostMemory> Device<C, M> {
    pub(super) fn on_call_fetched(&mut self, id: u32) {
        let now = self.engine.now();
        let side = self.side();
        let end_ps = side.core.book(now, side.window.spec().call_ps);
        self.next_stage(id, Stage::Executed, end_ps);
    }

    fn reply(&mut self, id: u32, result: Result<WindowReply, WindowError>) {
        let entry_end_ps = self.link.write(self.engine.now(), COMPLETION_ENTRY_BYTES);
        self.answer(id, result, entry_end_ps);
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
        let mut command = Command::new(request, Status::Success);
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
