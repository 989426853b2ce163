//! The byte window at work, the drive's side ([`crate::host::window`] is the CPUs').
//!
//! ```text
//! packets of stores → window                                             (posted: nobody waits)
//! read → behind all packets → window → answer                            (8 bytes at a time)
//! pin, flush, copy → command → the window's own core → pieces of 64 KiB through map, buffer, flash
//! ```

mod calls;
mod recovery;

pub use recovery::{DumpOutcome, WindowRecovery};

use super::{COMPLETION_ENTRY_BYTES, Command, Contents, Device, SUBMISSION_ENTRY_BYTES};
use crate::controller::{HostMemory, Verdict, Window};
use crate::engine::{EventKind, Timeline};
use crate::ids::{BufferSlot, Lpn};
use crate::observe::WindowCounters;
use crate::request::{EntryId, EntryInfo, Op, Status, WindowCall, WindowError, WindowReply};
use crate::slab::Slab;
use crate::spec::DriveSpec;
use crate::transport::Bar;
use crate::transport::bar::Packet;

/// What a call, or a read, does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// The last page has been copied.
    Copied,
    /// The firmware has done its part of the next piece.
    Piece,
    /// All pieces have been moved between window and flash.
    Moved,
}

#[derive(Clone, Copy, Debug)]
struct Call {
    /// The host's own number of it.
    cookie: u32,
    tag: u32,
    stage: Stage,
    call: WindowCall,
    /// How far a flush, pin or copy has come, bytes.
    at: u64,
}

/// An answer of the window on its way: to a call, or to a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSent {
    /// The host's own number of the call.
    pub cookie: u32,
    /// What the call returned, or why it failed.
    pub result: Result<WindowReply, WindowError>,
    /// When the answer is with the host, picoseconds.
    pub arrives_ps: u64,
}

/// What a drive with a byte window has beside other drives.
#[derive(Clone)]
pub(super) struct Side {
    window: Window,
    bar: Bar,
    /// The core that runs the window's firmware: the block path has its own.
    core: Timeline,
    calls: Slab<Call>,
    /// Answers on their way.
    sent: Vec<WindowSent>,
    /// A mark in flash says that a dump must be there after a power failure.
    armed: bool,
    /// Reused list of commands.
    released: Vec<u32>,
}

impl Side {
    pub(super) fn new(spec: &DriveSpec) -> Option<Box<Self>> {
        let window = spec.roles.window.as_ref()?;
        Some(Box::new(Side {
            window: Window::new(window, spec.capacity_bytes),
            bar: Bar::default(),
            core: Timeline::default(),
            calls: Slab::default(),
            sent: Vec::new(),
            armed: false,
            released: Vec::new(),
        }))
    }
}

impl<C: Contents, M: HostMemory> Device<C, M> {
    /// Whether the drive has a byte window.
    #[must_use]
    pub fn has_window(&self) -> bool {
        self.window.is_some()
    }

    /// A call that the drive works off (pin, flush, entry info, read DMA) stands in its queue, and its
    /// doorbell is rung at `doorbell_ps`. The answer bears `cookie`, what is copied bears `tag`.
    ///
    /// # Errors
    /// Without a window, and for what a CPU does by itself (store, load, sync).
    pub fn ring_window(
        &mut self,
        cookie: u32,
        tag: u32,
        call: WindowCall,
        doorbell_ps: u64,
    ) -> Result<(), WindowError> {
        let own = matches!(
            call,
            WindowCall::Store { .. } | WindowCall::Load { .. } | WindowCall::Sync { .. }
        );
        if self.window.is_none() || own {
            return Err(WindowError::NoWindow);
        }
        let wire_ps = self.link.wire_ps(SUBMISSION_ENTRY_BYTES);
        self.link.from_host_bytes += SUBMISSION_ENTRY_BYTES;
        let way_ps = self.link.one_way_ps() + self.link.round_trip_ps();
        self.begin(
            cookie,
            tag,
            call,
            Stage::Fetched,
            doorbell_ps + way_ps + wire_ps,
        );
        Ok(())
    }

    fn begin(&mut self, cookie: u32, tag: u32, call: WindowCall, stage: Stage, at_ps: u64) {
        let id = self.side().calls.insert(Call {
            cookie,
            tag,
            stage,
            call,
            at: 0,
        });
        self.engine.schedule(at_ps, EventKind::Window, id);
    }

    /// A CPU sends a read of up to 8 bytes of the window; without bytes it only confirms that what was
    /// posted before has arrived. Answered under `cookie`; what is loaded bears `tag`.
    ///
    /// # Errors
    /// Without a window.
    pub fn read_window(
        &mut self,
        cookie: u32,
        tag: u32,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> Result<(), WindowError> {
        if self.window.is_none() {
            return Err(WindowError::NoWindow);
        }
        self.counters.window.load_tlps += 1;
        let at_ps = self.link.post(self.engine.now(), 0);
        let call = WindowCall::Load {
            window_offset_bytes: offset_bytes,
            length_bytes,
        };
        let stage = Stage::ReadArrived {
            offset_bytes,
            length_bytes,
        };
        self.begin(cookie, tag, call, stage, at_ps);
        Ok(())
    }

    /// A name for bytes that a CPU combines; 0 without a window.
    pub fn new_packet_id(&mut self) -> u32 {
        self.window.as_mut().map_or(0, |side| side.bar.new_id())
    }

    /// A packet of stores leaves a CPU. Returns when it is out of it.
    pub fn post_to_window(&mut self, packet: Packet) -> u64 {
        let now = self.engine.now();
        let Device { window, link, .. } = self;
        match window {
            Some(side) => side.bar.post(link, now, packet),
            None => now.ps(),
        }
    }

    /// The pinned entry that a range of the window lies in.
    ///
    /// # Errors
    /// Why loads and stores cannot touch it.
    pub fn pinned_range(&self, offset: u64, length: u64) -> Result<EntryInfo, WindowError> {
        let side = self.window.as_ref().ok_or(WindowError::NoWindow)?;
        side.window.pinned_range(offset, length)
    }

    /// A pinned entry, by its number.
    ///
    /// # Errors
    /// Why loads and stores cannot touch it.
    pub fn pinned_entry(&mut self, entry: EntryId) -> Result<EntryInfo, WindowError> {
        let side = self.window.as_mut().ok_or(WindowError::NoWindow)?;
        side.window.pinned(entry).map(|found| found.info)
    }

    /// Whether [`Device::take_window_sent`] has something.
    #[inline]
    #[must_use]
    pub fn has_window_sent(&self) -> bool {
        let side = self.window.as_ref();
        side.is_some_and(|side| !side.sent.is_empty())
    }

    /// Moves the answers of the window sent since the last call to `sent`, in order.
    pub fn take_window_sent(&mut self, sent: &mut Vec<WindowSent>) {
        if let Some(side) = &mut self.window {
            sent.append(&mut side.sent);
        }
    }

    /// The drive's table of entries, in the order in which they were pinned.
    pub fn window_entries(&self) -> impl Iterator<Item = EntryInfo> + '_ {
        let entries = self.window.as_ref().map(|side| side.window.entries());
        entries.unwrap_or_default().iter().map(|entry| entry.info)
    }

    fn side(&mut self) -> &mut Side {
        self.window
            .as_mut()
            .expect("calls are made of drives with a window")
    }

    /// A call goes on.
    pub(super) fn on_window(&mut self, id: u32) {
        self.land_packets();
        match self.side().calls[id].stage {
            Stage::ReadArrived {
                offset_bytes,
                length_bytes,
            } => self.on_read_arrived(id, offset_bytes, length_bytes),
            Stage::Fetched => self.on_call_fetched(id),
            Stage::Executed => self.execute(id),
            Stage::Copying => self.copy_page(id),
            Stage::Copied => self.on_copied(id),
            Stage::Piece => self.start_piece(id),
            Stage::Moved => self.on_moved(id),
        }
    }

    fn next_stage(&mut self, id: u32, stage: Stage, at_ps: u64) {
        self.side().calls[id].stage = stage;
        self.engine.schedule(at_ps, EventKind::Window, id);
    }

    /// The answer is with the host at `arrives_ps`.
    fn answer(&mut self, id: u32, result: Result<WindowReply, WindowError>, arrives_ps: u64) {
        self.attention = true;
        let side = self.side();
        let cookie = side.calls[id].cookie;
        side.calls.remove(id);
        side.sent.push(WindowSent {
            cookie,
            result,
            arrives_ps,
        });
    }

    fn on_read_arrived(&mut self, id: u32, offset_bytes: u64, length_bytes: u64) {
        let tag = self.side().calls[id].tag;
        if length_bytes > 0 {
            self.contents.load(tag, offset_bytes, length_bytes);
        }
        let access_ps = self.spec.tiers.pm.as_ref().map_or(0, |pm| pm.access_ps);
        // As for DMA reads, the direction is booked at the time of asking.
        let arrives_ps = self.link.write(self.engine.now(), length_bytes) + access_ps;
        self.answer(id, Ok(WindowReply::Done), arrives_ps);
    }

    /// Packets that have reached the drive by now enter the window. Nothing waits for a posted write,
    /// so that there is no event for its arrival: whoever looks at the window calls this first.
    fn land_packets(&mut self) {
        let now = self.engine.now();
        let Some(side) = &mut self.window else { return };
        while let Some(packet) = side.bar.arrived(now) {
            let offset = u64::from(packet.line) * crate::transport::bar::LINE_BYTES;
            if side.window.is_open(offset) {
                self.contents.deliver(packet.id, packet.line, packet.mask);
            } else {
                self.counters.window.stray_tlps += 1;
            }
        }
    }

    /// What the link side counts.
    pub(super) fn count_packets(&self, counters: &mut WindowCounters) {
        if let Some(side) = &self.window {
            counters.store_tlps = side.bar.packets;
            counters.store_tlp_bytes = side.bar.packet_bytes;
        }
    }

    /// A block command is at the gate. Returns whether it goes on now.
    #[cold]
    pub(super) fn pass_gate(&mut self, id: u32) -> bool {
        let Command {
            request, status, ..
        } = self.commands[id];
        if request.op == Op::Flush || status != Status::Success {
            return true;
        }
        let (from, to) = (
            request.offset_bytes,
            request.offset_bytes + request.length_bytes,
        );
        match self.side().window.gate(id, from, to) {
            Verdict::Pass => true,
            Verdict::Refuse => {
                self.counters.window.gated += 1;
                self.commands[id].status = Status::AccessDenied;
                true
            }
            Verdict::Hold => {
                self.counters.window.held += 1;
                false
            }
        }
    }

    /// A block command is done: a pin may have waited for it.
    #[cold]
    pub(super) fn leave_gate(&mut self, id: u32) {
        while let Some(call) = self.side().window.leave(id) {
            self.move_pieces(call);
        }
    }

    /// Page of the window that a page of an internal command stands in.
    fn window_slot(&mut self, id: u32, lpn: Lpn) -> u32 {
        let entry = EntryId(self.commands[id].request.tag);
        let entry = self.side().window.find(entry);
        entry.expect("pieces belong to an entry").window_slot(lpn.0)
    }

    /// A page of the window comes from `source`.
    #[cold]
    pub(super) fn pin_page(&mut self, id: u32, lpn: Lpn, source: super::Source) {
        let slot = self.window_slot(id, lpn);
        self.contents.pin(slot, source);
    }

    /// A page of the window enters a buffer slot.
    #[cold]
    pub(super) fn unpin_page(&mut self, id: u32, lpn: Lpn, to: BufferSlot) {
        let slot = self.window_slot(id, lpn);
        self.contents.unpin(slot, to);
    }

    /// A piece has been moved between window and flash.
    #[cold]
    pub(super) fn on_piece_moved(&mut self, id: u32) {
        let now_ps = self.engine.now().ps();
        let Command {
            request,
            data_end_ps,
            status,
            ..
        } = self.commands[id];
        self.commands.remove(id);
        let entry = self.side().window.find(EntryId(request.tag));
        let entry = entry.expect("pieces belong to an entry");
        entry.pieces -= 1;
        entry.end_ps = entry.end_ps.max(data_end_ps);
        entry.lost |= status == Status::MediaError;
        let (call, end_ps) = (entry.call, entry.end_ps.max(now_ps));
        if entry.pieces == 0 {
            self.next_stage(call, Stage::Moved, end_ps);
        }
    }
}
