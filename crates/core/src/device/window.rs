//! The byte window at work: CPUs store and load, the drive pins, flushes and copies.
//!
//! ```text
//! store  → write-combining buffer → packet on the link → window          (posted: nobody waits)
//! load   → read on the link, behind all packets → window → answer        (8 bytes at a time)
//! sync   → lines flushed → fence: buffers empty → read, as above         (so all packets are there)
//! pin, flush, copy → command → the window's own core → pieces of 64 KiB through map, buffer, flash
//! ```

mod calls;
mod recovery;

pub use recovery::{DumpOutcome, WindowRecovery};

use super::{COMPLETION_ENTRY_BYTES, Command, Contents, Device, SUBMISSION_ENTRY_BYTES};
use crate::controller::{HostMemory, Verdict, Window};
use crate::engine::{EventKind, Timeline};
use crate::host::cpu::Cpus;
use crate::ids::{BufferSlot, Lpn};
use crate::memory::PROTECTED;
use crate::observe::WindowCounters;
use crate::request::{
    EntryId, EntryInfo, Op, Status, WindowCall, WindowCompletion, WindowError, WindowReply,
};
use crate::slab::Slab;
use crate::spec::DriveSpec;
use crate::transport::Bar;

/// What a call does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// A write-combining buffer may be free.
    Room,
    /// Bytes of one line have been stored.
    Filled,
    /// A load has arrived in the drive.
    LoadArrived,
    /// Its answer is with the CPU.
    LoadAnswered,
    /// The CPU has flushed its lines.
    LinesFlushed,
    /// Its buffers are empty.
    Fenced,
    /// The read that confirms it has arrived in the drive.
    VerifyArrived,
    /// Its answer is with the CPU.
    Verified,
    /// The CPU has handed the call to the drive.
    Submitted,
    /// The drive has fetched it.
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
    /// The caller goes on.
    Answered,
}

#[derive(Clone, Copy, Debug)]
struct Call {
    tag: u32,
    cpu: u16,
    /// It keeps its CPU busy.
    on_cpu: bool,
    stage: Stage,
    call: WindowCall,
    submitted_ps: u64,
    /// How far a store, load or copy has come, bytes.
    at: u64,
    result: Result<WindowReply, WindowError>,
}

/// What a drive with a byte window has beside other drives.
pub(super) struct Side {
    window: Window,
    bar: Bar,
    cpus: Cpus,
    /// The core that runs the window's firmware: the block path has its own.
    core: Timeline,
    calls: Slab<Call>,
    /// Calls made and not answered.
    under_way: Vec<u32>,
    /// A mark in flash says that a dump must be there after a power failure.
    armed: bool,
    /// Reused list of commands.
    released: Vec<u32>,
}

impl Side {
    pub(super) fn new(spec: &DriveSpec) -> Option<Box<Self>> {
        let window = spec.roles.window.as_ref()?;
        let buffer = &spec.roles.write_buffer;
        let base = if buffer.tier == PROTECTED {
            buffer.bytes
        } else {
            0
        };
        Some(Box::new(Side {
            window: Window::new(window, spec.capacity_bytes),
            bar: Bar::new(base, window.bytes, spec.host.cpu.wc_buffers),
            cpus: Cpus::default(),
            core: Timeline::default(),
            calls: Slab::default(),
            under_way: Vec::new(),
            armed: false,
            released: Vec::new(),
        }))
    }
}

impl<C: Contents, M: HostMemory> Device<C, M> {
    /// Makes a call of the byte window on the host's CPU 0, at the present instant. It ends in
    /// [`Device::take_window_completions`].
    pub fn call(&mut self, tag: u32, call: WindowCall) {
        self.call_on(0, tag, call);
    }

    /// Makes a call of the byte window on one of the host's CPUs (they come into being when first
    /// used). A CPU begins its calls in order.
    pub fn call_on(&mut self, cpu: u16, tag: u32, call: WindowCall) {
        let now_ps = self.engine.now().ps();
        let Some(side) = &mut self.window else {
            self.window_done.push(WindowCompletion {
                tag,
                cpu,
                call,
                result: Err(WindowError::NoWindow),
                submitted_ps: now_ps,
                completed_ps: now_ps,
            });
            return;
        };
        let id = side.calls.insert(Call {
            tag,
            cpu,
            on_cpu: true,
            stage: Stage::Room,
            call,
            submitted_ps: now_ps,
            at: 0,
            result: Ok(WindowReply::Done),
        });
        side.under_way.push(id);
        if side.cpus.call(cpu, id) {
            self.begin_call(id);
        }
    }

    /// Moves the completions of calls of the byte window to `completions`, in the order in which they
    /// happened.
    pub fn take_window_completions(&mut self, completions: &mut Vec<WindowCompletion>) {
        completions.append(&mut self.window_done);
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
            Stage::Room => self.store_line(id),
            Stage::Filled => self.on_filled_line(id),
            Stage::LoadArrived => self.on_load_arrived(id),
            Stage::LoadAnswered => self.send_load(id),
            Stage::LinesFlushed => self.on_lines_flushed(id),
            Stage::Fenced => self.on_fenced(id),
            Stage::VerifyArrived => self.on_verify_arrived(id),
            Stage::Verified => self.on_verified(id),
            Stage::Submitted => self.on_submitted(id),
            Stage::Fetched => self.on_call_fetched(id),
            Stage::Executed => self.execute(id),
            Stage::Copying => self.copy_page(id),
            Stage::Copied => self.on_copied(id),
            Stage::Piece => self.start_piece(id),
            Stage::Moved => self.on_moved(id),
            Stage::Answered => self.on_answered(id),
        }
    }

    fn next_stage(&mut self, id: u32, stage: Stage, at_ps: u64) {
        self.side().calls[id].stage = stage;
        self.engine.schedule(at_ps, EventKind::Window, id);
    }

    /// The caller goes on at `at_ps`.
    fn answer(&mut self, id: u32, result: Result<WindowReply, WindowError>, at_ps: u64) {
        self.side().calls[id].result = result;
        self.next_stage(id, Stage::Answered, at_ps);
    }

    fn on_answered(&mut self, id: u32) {
        let now_ps = self.engine.now().ps();
        let side = self.side();
        let call = side.calls[id];
        side.calls.remove(id);
        let place = side.under_way.iter().position(|known| *known == id);
        side.under_way.swap_remove(place.expect("it was made"));
        self.counters.window.rejected += u64::from(call.result.is_err());
        self.window_done.push(WindowCompletion {
            tag: call.tag,
            cpu: call.cpu,
            call: call.call,
            result: call.result,
            submitted_ps: call.submitted_ps,
            completed_ps: now_ps,
        });
        if call.on_cpu {
            self.release_cpu(call.cpu);
        }
    }

    fn release_cpu(&mut self, cpu: u16) {
        if let Some(next) = self.side().cpus.release(cpu) {
            self.begin_call(next);
        }
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
