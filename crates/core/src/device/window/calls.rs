//! What each call of the drive does, step by step: they travel as commands of the NVMe queues do.

use super::{Board, Contents, Next, Op, Stage, WindowCall, WindowError, WindowReply, WindowRole};
use crate::ids::WindowCallId;
use crate::observe::Tracer;
use crate::request::{EntryId, EntryInfo, EntryState, Request};
use crate::spec::SLOT_BYTES;

/// Pages that pass between window and flash as one piece.
const PIECE_PAGES: u64 = 16;

/// What a call has come to: an answer, or nothing yet.
type Progress = Result<Option<WindowReply>, WindowError>;

impl<P: Default> WindowRole<P> {
    pub(super) fn on_call_fetched(&mut self, board: &mut Board<impl Tracer>, id: WindowCallId) {
        let end_ps = self
            .core
            .book(board.engine.now(), self.window.spec().call_ps);
        self.next_stage(board, id, Stage::Executed, end_ps);
    }

    fn reply(
        &mut self,
        board: &mut Board<impl Tracer>,
        id: WindowCallId,
        result: Result<WindowReply, WindowError>,
    ) {
        let entry_end_ps = board.link.respond(board.engine.now(), 0, 0);
        self.answer(id, result, entry_end_ps);
    }

    pub(super) fn execute(&mut self, board: &mut Board<impl Tracer>, id: WindowCallId) {
        let done = match self.calls[id].call {
            WindowCall::Pin {
                entry,
                window_offset_bytes,
                drive_offset_bytes,
                length_bytes,
            } => {
                let info = EntryInfo {
                    entry,
                    window_offset_bytes,
                    drive_offset_bytes,
                    length_bytes,
                    state: EntryState::Pinning,
                };
                self.execute_pin(board, id, info)
            }
            WindowCall::Flush { entry } => self.execute_flush(board, id, entry),
            WindowCall::ReadDma {
                entry,
                offset_bytes,
                length_bytes,
            } => self.execute_read_dma(board, id, entry, (offset_bytes, length_bytes)),
            WindowCall::EntryInfo { entry } => {
                board.counters.window.infos += 1;
                let found = self.window.find(entry);
                found.map(|entry| Some(WindowReply::Entry(entry.info)))
            }
            // Whatever was posted before the command has landed by now: it came later over the same link.
            WindowCall::Sync { entry } => {
                board.counters.window.syncs += 1;
                let found = self.window.pinned(entry);
                found.map(|_| Some(WindowReply::Done))
            }
            WindowCall::Store { .. } | WindowCall::Load { .. } => {
                unreachable!("the CPU does these itself")
            }
        };
        match done {
            Ok(None) => {}
            Ok(Some(reply)) => self.reply(board, id, Ok(reply)),
            Err(error) => self.reply(board, id, Err(error)),
        }
    }

    fn execute_pin(
        &mut self,
        board: &mut Board<impl Tracer>,
        id: WindowCallId,
        info: EntryInfo,
    ) -> Progress {
        if self.window.pin(info, id)? {
            self.move_pieces(board, id);
        }
        Ok(None)
    }

    fn execute_flush(
        &mut self,
        board: &mut Board<impl Tracer>,
        id: WindowCallId,
        entry: EntryId,
    ) -> Progress {
        let found = self.window.pinned(entry)?;
        if found.copies > 0 {
            return Err(WindowError::Busy);
        }
        found.info.state = EntryState::Flushing;
        found.call = id;
        self.calls[id].at = 0;
        self.move_pieces(board, id);
        Ok(None)
    }

    /// Has an entry's pages read into the window, or written from it, by commands of the drive's own.
    pub(super) fn move_pieces(&mut self, board: &mut Board<impl Tracer>, call: WindowCallId) {
        let entry = self.moved_entry(call);
        let found = self.window.find(entry).expect("it is in the table");
        let pages = found.info.length_bytes / SLOT_BYTES;
        found.end_ps = 0;
        found.pieces = pages.div_ceil(PIECE_PAGES) as u32;
        self.next_piece(board, call, pages);
    }

    fn moved_entry(&self, call: WindowCallId) -> EntryId {
        match self.calls[call].call {
            WindowCall::Pin { entry, .. } | WindowCall::Flush { entry } => entry,
            _ => unreachable!("only pins and flushes move pages"),
        }
    }

    /// The firmware turns to the next piece; other calls may come in between.
    fn next_piece(&mut self, board: &mut Board<impl Tracer>, call: WindowCallId, pages_left: u64) {
        let core_ps = PIECE_PAGES.min(pages_left) * self.window.spec().page_ps;
        let end_ps = self.core.book(board.engine.now(), core_ps);
        self.next_stage(board, call, Stage::Piece, end_ps);
    }

    /// The firmware has done its part of a piece: map, flash and buffer do theirs.
    pub(super) fn start_piece(
        &mut self,
        board: &mut Board<impl Tracer>,
        call: WindowCallId,
    ) -> Next {
        let entry = self.moved_entry(call);
        let at = self.calls[call].at;
        let info = self.window.find(entry).expect("it is in the table").info;
        let bytes = (PIECE_PAGES * SLOT_BYTES).min(info.length_bytes - at);
        self.calls[call].at += bytes;
        let left = info.length_bytes - at - bytes;
        if left > 0 {
            self.next_piece(board, call, left / SLOT_BYTES);
        }
        let op = match info.state {
            EntryState::Flushing => Op::Write,
            _ => Op::Read,
        };
        Next::Move(Request {
            tag: entry.0,
            queue: 0,
            op,
            // An entry is given up only for what is safe in its place.
            fua: op == Op::Write,
            offset_bytes: info.drive_offset_bytes + at,
            length_bytes: bytes,
        })
    }

    /// Every page of an entry has been read or written: the table changes, in one step.
    pub(super) fn on_moved(&mut self, board: &mut Board<impl Tracer>, id: WindowCallId) -> Next {
        if self.must_mark() {
            self.armed = true;
            let at_ps = board.engine.now().ps() + self.mark_ps;
            self.next_stage(board, id, Stage::Moved, at_ps);
            return Next::Nothing;
        }
        let entry = self.moved_entry(id);
        let found = self.window.find(entry).expect("it is in the table");
        let lost = std::mem::take(&mut found.lost);
        let length_bytes = found.info.length_bytes;
        let counters = &mut board.counters.window;
        match (self.calls[id].call, lost) {
            (WindowCall::Pin { .. }, true) => self.window.unpin(entry, &mut self.released),
            // What the window holds is all there is.
            (WindowCall::Flush { .. }, true) => found.info.state = EntryState::Pinned,
            (WindowCall::Pin { .. }, false) => {
                found.info.state = EntryState::Pinned;
                counters.pins += 1;
                counters.pinned_bytes += length_bytes;
            }
            (WindowCall::Flush { .. }, false) => {
                self.window.unpin(entry, &mut self.released);
                counters.flushes += 1;
                counters.flushed_bytes += length_bytes;
            }
            _ => unreachable!("only pins and flushes move pages"),
        }
        let result = match lost {
            true => Err(WindowError::MediaError),
            false => Ok(WindowReply::Done),
        };
        self.reply(board, id, result);
        Next::Release
    }

    // The read-DMA engine.

    fn execute_read_dma(
        &mut self,
        board: &mut Board<impl Tracer>,
        id: WindowCallId,
        entry: EntryId,
        (offset, length): (u64, u64),
    ) -> Progress {
        let found = self.window.pinned(entry)?;
        if length == 0 {
            return Err(WindowError::ZeroLength);
        }
        let end = offset.checked_add(length);
        if end.is_none_or(|end| end > found.info.length_bytes) {
            return Err(WindowError::OutOfEntry);
        }
        found.copies += 1;
        let engine_ps = self.window.spec().read_dma_ps;
        let end_ps = self.core.book(board.engine.now(), engine_ps);
        self.next_stage(board, id, Stage::Copying, end_ps);
        Ok(None)
    }

    /// Entry and length of a copy.
    fn copied(&self, id: WindowCallId) -> (EntryId, u64, u64) {
        match self.calls[id].call {
            WindowCall::ReadDma {
                entry,
                offset_bytes,
                length_bytes,
            } => (entry, offset_bytes, length_bytes),
            _ => unreachable!("only the read-DMA engine copies"),
        }
    }

    /// The next page is copied, which memory of the host must be asked for first.
    pub(super) fn copy_page<C: Contents<Payload = P>>(
        &mut self,
        board: &mut Board<impl Tracer>,
        contents: &mut C,
        id: WindowCallId,
    ) {
        if self.window.spec().tier.is_cacheable() {
            let here_ps = board.window_ps(self.next_copied_bytes(id));
            self.next_stage(board, id, Stage::Loaded, here_ps);
        } else {
            self.send_page(board, contents, id);
        }
    }

    fn next_copied_bytes(&self, id: WindowCallId) -> u64 {
        let (_, _, length_bytes) = self.copied(id);
        SLOT_BYTES.min(length_bytes - self.calls[id].at)
    }

    /// Copies up to 4 KiB and goes on when the link has taken them: others may come in between. Memory of the host is
    /// asked for the next page meanwhile.
    pub(super) fn send_page<C: Contents<Payload = P>>(
        &mut self,
        board: &mut Board<impl Tracer>,
        contents: &mut C,
        id: WindowCallId,
    ) {
        let (entry, offset_bytes, length_bytes) = self.copied(id);
        let bytes = self.next_copied_bytes(id);
        let tier = self.window.spec().tier;
        let call = &mut self.calls[id];
        let found = self.window.find(entry).expect("copied entries stay");
        let start = found.info.window_offset_bytes + offset_bytes;
        contents.load(&mut call.payload, start + call.at, bytes);
        let arrive_ps = board.link.write(board.engine.now(), bytes);
        call.at += bytes;
        if call.at < length_bytes {
            let sent_ps = arrive_ps - board.link.one_way_ps();
            if tier.is_cacheable() {
                let here_ps = board.window_ps(self.next_copied_bytes(id));
                self.next_stage(board, id, Stage::Loaded, here_ps.max(sent_ps));
            } else {
                self.next_stage(board, id, Stage::Copying, sent_ps);
            }
            return;
        }
        let access_ps = match tier.is_cacheable() {
            true => 0,
            false => board.memories.access_ps(tier),
        };
        self.next_stage(board, id, Stage::Copied, arrive_ps + access_ps);
    }

    pub(super) fn on_copied(&mut self, board: &mut Board<impl Tracer>, id: WindowCallId) {
        let (entry, _, length_bytes) = self.copied(id);
        let found = self.window.find(entry);
        found.expect("copied entries stay").copies -= 1;
        board.counters.window.read_dmas += 1;
        board.counters.window.read_dma_bytes += length_bytes;
        self.reply(board, id, Ok(WindowReply::Done));
    }
}
