//! The byte window at work, the drive's side ([`crate::host::window`] is the CPUs').
//!
//! ```text
//! packets of stores → window                                             (posted: nobody waits)
//! read → behind all packets → window → answer                            (8 bytes at a time)
//! pin, flush, copy → command → the window's own core → pieces of 64 KiB through map, buffer, flash
//! ```
//!
//! Where it is memory of the host, packets are lines that caches write back, lines are fetched without the drive, and
//! both go over the fabric on which the drive reaches that memory, too.

mod calls;
mod recovery;

pub use recovery::{DumpOutcome, WindowRecovery, WindowRest};

use super::board::Board;
use super::{Command, Contents, SUBMISSION_ENTRY_BYTES};
use crate::controller::dump::mark_ps;
use crate::controller::{Verdict, Window};
use crate::engine::{EventKind, Timeline};
use crate::ids::{CommandId, Lpn, WindowCallId};
use crate::memory::WindowInCut;
use crate::observe::{Tracer, WindowCounters};
use crate::request::{
    EntryId, EntryInfo, Op, Request, Status, WindowCall, WindowError, WindowReply,
};
use crate::slab::Slab;
use crate::spec::DriveSpec;
use crate::transport::Bar;
use crate::transport::bar::{LINE_BYTES, Packet, mask_of};
use serde::{Deserialize, Serialize};

/// What a call, or a read, does next.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// A read of these bytes of the window has arrived.
    ReadArrived {
        offset_bytes: u64,
        length_bytes: u64,
    },
    /// The drive has fetched the call.
    Fetched,
    /// The firmware has taken it apart.
    Executed,
    /// The next page is to be copied.
    Copying,
    /// It has been fetched from memory of the host.
    Loaded,
    /// The last page has been copied.
    Copied,
    /// The firmware has done its part of the next piece.
    Piece,
    /// All pieces have been moved between window and flash.
    Moved,
}

#[derive(Clone, Serialize, Deserialize, Debug)]
struct Call<P> {
    /// The host's own number of it.
    cookie: u32,
    /// What is copied for it.
    payload: P,
    stage: Stage,
    call: WindowCall,
    /// How far a flush, pin or copy has come, bytes.
    at: u64,
}

/// An answer of the window on its way: to a call, or to a read.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub struct WindowSent {
    /// The host's own number of the call.
    pub cookie: u32,
    /// What the call returned, or why it failed.
    pub result: Result<WindowReply, WindowError>,
    /// When the answer is with the host, picoseconds.
    pub arrives_ps: u64,
}

/// What the rest of the drive does next, after a call has gone on.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing.
    Nothing,
    /// Reads or writes a piece of an entry, by a command of the drive's own.
    Move(Request),
    /// Lets the block commands pass that the gate has held ([`WindowRole::take_released`]).
    Release,
}

/// What a drive with a byte window has beside other drives.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct WindowRole<P> {
    window: Window,
    bar: Bar,
    /// The core that runs the window's firmware: the block path has its own.
    core: Timeline,
    calls: Slab<Call<P>, WindowCallId>,
    /// Answers on their way, each with its call's payload.
    pub sent: Vec<(WindowSent, P)>,
    /// A mark in flash says that a dump must be there after a power failure.
    armed: bool,
    /// All of the window is saved when power fails, whatever of it is pinned.
    keeps_all: bool,
    /// Some of what was to be saved as power failed the last time was not.
    has_lost: bool,
    /// It was saved before power goes, as there was time.
    is_saved: bool,
    /// Time of that mark.
    mark_ps: u64,
    /// What becomes of it when power fails.
    in_cut: WindowInCut,
    /// Block commands that the gate lets pass now.
    released: Vec<CommandId>,
}

impl<P> WindowRole<P> {
    /// Time its core has worked.
    pub(super) fn busy_ps(&self) -> u64 {
        self.core.busy_ps()
    }
}

impl<P: Default> WindowRole<P> {
    pub(super) fn new(spec: &DriveSpec) -> Option<Box<Self>> {
        let window = spec.roles.window.as_ref()?;
        Some(Box::new(WindowRole {
            window: Window::new(window, spec.capacity_bytes),
            bar: Bar::default(),
            core: Timeline::default(),
            calls: Slab::default(),
            sent: Vec::new(),
            armed: false,
            keeps_all: false,
            has_lost: false,
            is_saved: false,
            mark_ps: mark_ps(&spec.nand),
            in_cut: spec.tiers.window_in_cut(window.tier),
            released: Vec::new(),
        }))
    }

    /// All of the window is saved when power fails, or what is pinned alone. Returns when that is so.
    pub(super) fn keep_all(&mut self, now_ps: u64, keeps_all: bool) -> u64 {
        self.keeps_all = keeps_all;
        self.has_lost = false;
        let must_mark = keeps_all && self.must_mark();
        self.armed |= keeps_all;
        match must_mark {
            true => now_ps + self.mark_ps,
            false => now_ps,
        }
    }

    /// A mark is needed and not there: what memory keeps by itself will not be missing.
    fn must_mark(&self) -> bool {
        !self.armed && self.in_cut != WindowInCut::Kept
    }

    /// The loss of power that comes next was announced: all that is to be saved has been.
    pub(super) fn was_saved(&mut self) {
        self.is_saved = true;
    }

    /// Whether all of the window is saved when power fails.
    pub(super) fn keeps_all(&self) -> bool {
        self.keeps_all
    }

    /// A call stands in its queue; its doorbell is rung at `doorbell_ps`.
    pub(super) fn ring(
        &mut self,
        board: &mut Board<impl Tracer>,
        (cookie, payload): (u32, P),
        call: WindowCall,
        doorbell_ps: u64,
    ) -> Result<(), WindowError> {
        if let WindowCall::Store { .. } | WindowCall::Load { .. } = call {
            // A CPU does these by itself.
            return Err(WindowError::NoWindow);
        }
        let link = &mut board.link;
        let wire_ps = link.wire_ps(SUBMISSION_ENTRY_BYTES);
        link.from_host_bytes += SUBMISSION_ENTRY_BYTES;
        let at_ps = doorbell_ps + link.one_way_ps() + link.round_trip_ps() + wire_ps;
        self.begin(board, (cookie, payload), call, Stage::Fetched, at_ps);
        Ok(())
    }

    /// A CPU reads up to 8 bytes.
    pub(super) fn read(
        &mut self,
        board: &mut Board<impl Tracer>,
        names: (u32, P),
        offset_bytes: u64,
        length_bytes: u64,
    ) {
        board.counters.window.load_tlps += 1;
        let at_ps = board.link.post(board.engine.now(), 0);
        let call = WindowCall::Load {
            window_offset_bytes: offset_bytes,
            length_bytes,
        };
        let stage = Stage::ReadArrived {
            offset_bytes,
            length_bytes,
        };
        self.begin(board, names, call, stage, at_ps);
    }

    fn begin(
        &mut self,
        board: &mut Board<impl Tracer>,
        (cookie, payload): (u32, P),
        call: WindowCall,
        stage: Stage,
        at_ps: u64,
    ) {
        let id = self.calls.insert(Call {
            cookie,
            payload,
            stage,
            call,
            at: 0,
        });
        board.engine.schedule(at_ps, EventKind::Window, id);
    }

    /// A name for bytes that a CPU combines.
    pub(super) fn new_packet_id(&mut self) -> u32 {
        self.bar.new_id()
    }

    /// A packet of stores leaves a CPU. Returns when it is out of it.
    pub(super) fn post(&mut self, board: &mut Board<impl Tracer>, packet: Packet) -> u64 {
        let now = board.engine.now();
        self.bar.post(&mut board.link, now, packet)
    }

    /// A CPU fetches a line of cacheable memory; returns when it has it.
    pub(super) fn fetch_line(&mut self, board: &mut Board<impl Tracer>) -> u64 {
        board.counters.window.load_tlps += 1;
        board.window_ps(LINE_BYTES)
    }

    /// A line leaves the CPUs' caches for the memory it is of. Returns when it is out of them, and when it is acknowledged:
    /// a write of CXL.mem is answered by a completion (CXL 3.0, section 3.3: MemWr, Cmp).
    pub(super) fn write_back(
        &mut self,
        board: &mut Board<impl Tracer>,
        packet: Packet,
    ) -> (u64, u64) {
        let acknowledged_ps = board.window_ps(LINE_BYTES);
        self.bar.send(acknowledged_ps, packet);
        let access_ps = board.memories.access_ps(self.window.spec().tier);
        (acknowledged_ps - access_ps, acknowledged_ps)
    }

    /// A CPU takes bytes of a line that it has; caches are coherent, so that what is on its way is seen.
    pub(super) fn load<C: Contents<Payload = P>>(
        &mut self,
        board: &mut Board<impl Tracer>,
        contents: &mut C,
        payload: &mut P,
        (line, from, to): (u32, u64, u64),
    ) {
        self.land_packets(board, contents);
        contents.load(payload, from, to - from);
        let asked = mask_of(line, from, to);
        for packet in self.bar.flying(line) {
            contents.load_held(payload, packet.id, line, packet.mask & asked);
        }
    }

    /// The pinned entry that a range lies in.
    pub(super) fn pinned_range(&self, offset: u64, length: u64) -> Result<EntryInfo, WindowError> {
        self.window.pinned_range(offset, length)
    }

    /// A pinned entry.
    pub(super) fn pinned_entry(&mut self, entry: EntryId) -> Result<EntryInfo, WindowError> {
        self.window.pinned(entry).map(|found| found.info)
    }

    /// The table, in the order in which entries were pinned.
    pub(super) fn entries(&self) -> impl Iterator<Item = EntryInfo> + '_ {
        self.window.entries().iter().map(|entry| entry.info)
    }

    /// A call goes on.
    pub(super) fn handle<C: Contents<Payload = P>>(
        &mut self,
        board: &mut Board<impl Tracer>,
        contents: &mut C,
        id: WindowCallId,
    ) -> Next {
        self.land_packets(board, contents);
        match self.calls[id].stage {
            Stage::ReadArrived {
                offset_bytes,
                length_bytes,
            } => self.on_read_arrived(board, contents, id, (offset_bytes, length_bytes)),
            Stage::Fetched => self.on_call_fetched(board, id),
            Stage::Executed => self.execute(board, id),
            Stage::Copying => self.copy_page(board, contents, id),
            Stage::Loaded => self.send_page(board, contents, id),
            Stage::Copied => self.on_copied(board, id),
            Stage::Piece => return self.start_piece(board, id),
            Stage::Moved => return self.on_moved(board, id),
        }
        Next::Nothing
    }

    fn next_stage(
        &mut self,
        board: &mut Board<impl Tracer>,
        id: WindowCallId,
        stage: Stage,
        at_ps: u64,
    ) {
        self.calls[id].stage = stage;
        board.engine.schedule(at_ps, EventKind::Window, id);
    }

    /// The answer is with the host at `arrives_ps`.
    fn answer(
        &mut self,
        id: WindowCallId,
        result: Result<WindowReply, WindowError>,
        arrives_ps: u64,
    ) {
        let Call {
            cookie, payload, ..
        } = &mut self.calls[id];
        let sent = WindowSent {
            cookie: *cookie,
            result,
            arrives_ps,
        };
        self.sent.push((sent, std::mem::take(payload)));
        self.calls.remove(id);
    }

    fn on_read_arrived<C: Contents<Payload = P>>(
        &mut self,
        board: &mut Board<impl Tracer>,
        contents: &mut C,
        id: WindowCallId,
        (offset_bytes, length_bytes): (u64, u64),
    ) {
        if length_bytes > 0 {
            contents.load(&mut self.calls[id].payload, offset_bytes, length_bytes);
        }
        // As for DMA reads, the direction is booked at the time of asking.
        let sent_ps = board.link.write(board.engine.now(), length_bytes);
        let access_ps = board.memories.access_ps(self.window.spec().tier);
        self.answer(id, Ok(WindowReply::Done), sent_ps + access_ps);
    }

    /// Packets that have reached the drive by now enter the window. Nothing waits for a posted write,
    /// so that there is no event for its arrival: whoever looks at the window calls this first.
    pub(super) fn land_packets<C: Contents<Payload = P>>(
        &mut self,
        board: &mut Board<impl Tracer>,
        contents: &mut C,
    ) {
        let now = board.engine.now();
        while let Some(packet) = self.bar.arrived(now) {
            let offset = u64::from(packet.line) * LINE_BYTES;
            if self.window.is_open(offset) {
                contents.deliver(packet.id, packet.line, packet.mask);
            } else {
                board.counters.window.stray_tlps += 1;
            }
        }
    }

    /// What the link side counts.
    pub(super) fn count_packets(&self, counters: &mut WindowCounters) {
        counters.store_tlps = self.bar.packets;
        counters.store_tlp_bytes = self.bar.packet_bytes;
    }

    /// A block command is at the gate. Returns whether it goes on now.
    #[cold]
    pub(super) fn pass_gate(
        &mut self,
        board: &mut Board<impl Tracer>,
        id: CommandId,
        command: &mut Command,
    ) -> bool {
        let request = &command.request;
        if request.op == Op::Flush || command.status != Status::Success {
            return true;
        }
        let (from, to) = (
            request.offset_bytes,
            request.offset_bytes + request.length_bytes,
        );
        match self.window.gate(id, from, to) {
            Verdict::Pass => true,
            Verdict::Refuse => {
                board.counters.window.gated += 1;
                command.status = Status::AccessDenied;
                true
            }
            Verdict::Hold => {
                board.counters.window.held += 1;
                false
            }
        }
    }

    /// A block command is done: a pin may have waited for it.
    #[cold]
    pub(super) fn leave_gate(&mut self, board: &mut Board<impl Tracer>, id: CommandId) {
        while let Some(call) = self.window.leave(id) {
            self.move_pieces(board, call);
        }
    }

    /// Block commands that the gate lets pass now; the list is handed back to be used again.
    pub(super) fn take_released(&mut self) -> Vec<CommandId> {
        std::mem::take(&mut self.released)
    }

    /// The list that [`WindowRole::take_released`] has handed out, emptied.
    pub(super) fn give_back(&mut self, released: Vec<CommandId>) {
        self.released = released;
    }

    /// Block commands that the gate has held and holds no more.
    pub(super) fn take_held(&mut self) -> Vec<CommandId> {
        self.window.take_held()
    }

    /// Page of the window in which a page of the drive stands that a command of ours moves.
    pub(super) fn slot_of(&mut self, moving: &Command, lpn: Lpn) -> u32 {
        let entry = self.window.find(EntryId(moving.request.tag));
        entry.expect("pieces belong to an entry").window_slot(lpn)
    }

    /// A piece has been moved between window and flash.
    #[cold]
    pub(super) fn on_piece_moved(&mut self, board: &mut Board<impl Tracer>, moved: &Command) {
        let entry = self.window.find(EntryId(moved.request.tag));
        let entry = entry.expect("pieces belong to an entry");
        entry.pieces -= 1;
        entry.end_ps = entry.end_ps.max(moved.data_end_ps);
        entry.lost |= moved.status != Status::Success;
        let (call, end_ps) = (entry.call, entry.end_ps.max(board.engine.now().ps()));
        if entry.pieces == 0 {
            self.next_stage(board, call, Stage::Moved, end_ps);
        }
    }
}
