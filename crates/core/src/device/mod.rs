//! The drive as a whole: the one `match` on events, and who is told of what.
//!
//! The second file to read after `lib.rs`. A request's way through it:
//!
//! ```text
//! ring → Fetched → Processed → (ReadInformed) → flash: ArrayDone → DataReady → Sent
//!                            ↘ write: DataArrived → (DataStored) → Sent, later programs
//! ```
//!
//! The drive ends at the link. A command enters as its doorbell rings ([`Device::enqueue`],
//! [`Device::ring`]); a completion leaves as [`Sent`], which says when its entry arrives in the host's
//! memory; the slot of the command is free once the host has taken it ([`Device::consume`]). What a
//! host does before and after is [`crate::Host`]'s, or that of a real one.

mod background;
mod board;
mod buffer;
mod command;
mod contents;
mod dead;
mod erases;
mod gc;
mod hmb_pages;
mod hmb_path;
mod hpb;
mod interface;
mod look;
mod map;
mod pieces;
mod power;
mod programs;
mod read;
mod spare;
mod trims;
mod wear;
mod window;
mod write;

pub use crate::controller::{Bytes, HostMemory, Lent, Modelled, OutOfReach, PageBytes};
pub use crate::transport::{COMPLETION_ENTRY_BYTES, SUBMISSION_ENTRY_BYTES};
use board::Board;
use command::{Command, Commands, Held};
pub use contents::{Contents, MapEntries, NoContents, Source};
pub use hpb::HpbAnswer;
pub use interface::{Alarm, News, Sent};
pub use power::Recovery;
pub use spare::{Programmed, Rest, Spare};
use window::Next;
pub use window::{DumpOutcome, WindowRecovery, WindowSent};

use crate::controller::ReadCache;
use crate::engine::EventKind;
use crate::ftl::{Contradiction, Found, Ftl, Precondition, Wear};
use crate::ids::{BufferSlot, CommandId, DieId, FetchId, FlashOpId, TransferId, WindowCallId};
use crate::nand::{Cause, Class, Decoded, FlashAge, OpKind};
use crate::observe::{Counters, Part, Tracer, Untraced};
use crate::request::{Op, Status};
use crate::slab::Slab;
use crate::spec::{DriveSpec, ENTRIES_PER_TRANSLATION_PAGE, Encoding, SLOT_BYTES};
use serde::{Deserialize, Serialize};

/// Translation pages one command can span: one bit each in [`Command::missed`].
const PAGES_PER_COMMAND_MAX: u64 = 64;
/// Largest read or write: 252 MiB, far above any drive's MDTS, so that 64 translation pages suffice
/// wherever it starts.
pub const TRANSFER_BYTES_MAX: u64 =
    (PAGES_PER_COMMAND_MAX - 1) * ENTRIES_PER_TRANSLATION_PAGE * SLOT_BYTES;
/// Smallest logical block.
pub const SECTOR_BYTES: u64 = 512;

/// A simulated drive.
#[derive(Clone, Serialize, Deserialize)]
pub struct Device<C: Contents = NoContents, M = Modelled, T = Untraced> {
    spec: DriveSpec,
    board: Board<T>,
    #[serde(bound(
        serialize = "C::Payload: Serialize",
        deserialize = "C::Payload: Deserialize<'de>"
    ))]
    commands: Commands<C::Payload>,
    /// What stands between the drive and its host.
    front: interface::Front,
    map: map::Map,
    /// Pages of data in host memory that is kept as bytes.
    hmb_pages: hmb_pages::HmbPages,
    read_cache: Option<ReadCache>,
    buffer: buffer::Buffer,
    /// How data gets into host memory, and out of it.
    hmb_path: hmb_path::HmbPath,
    programs: programs::Programs,
    ftl: Ftl,
    background: background::Background,
    trims: trims::Trims,
    erases: erases::Erases,
    dead: dead::Dead,
    power: power::Power,
    /// What the drive knows of the map entries that the host keeps.
    hpb: Option<Box<hpb::Hpb>>,
    window: Option<Box<window::WindowRole<C::Payload>>>,
    /// Reused lists, so that nothing is allocated per request.
    scratch: Vec<CommandId>,
    /// What the sectors hold.
    pub contents: C,
    /// What the drive keeps in host memory.
    pub host_memory: Lent<M>,
}

impl Device<NoContents> {
    /// A drive in its initial state, without contents. `hmb_bytes` is the host memory granted; the
    /// drive makes of it what it can.
    #[must_use]
    pub fn new(spec: &DriveSpec, precondition: Precondition, hmb_bytes: u64, seed: u64) -> Self {
        Device::with_memory(spec, precondition, hmb_bytes, seed, NoContents, Modelled)
    }
}

impl<C: Contents, M: HostMemory> Device<C, M> {
    /// A drive in its initial state, with contents and the host memory it is granted.
    ///
    /// # Panics
    /// If that memory keeps bytes and the map there is compressed or has entries of less than 4
    /// bytes: neither can be written there yet.
    #[must_use]
    pub fn with_memory(
        spec: &DriveSpec,
        precondition: Precondition,
        hmb_bytes: u64,
        seed: u64,
        contents: C,
        host_memory: M,
    ) -> Self {
        let parts = (contents, host_memory, Untraced);
        Device::with_tracer(spec, precondition, hmb_bytes, seed, parts)
    }
}

impl<C: Contents, M: HostMemory, T: Tracer> Device<C, M, T> {
    /// As [`Device::with_memory`], with someone who is told of each step.
    ///
    /// # Panics
    /// As [`Device::with_memory`].
    #[must_use]
    pub fn with_tracer(
        spec: &DriveSpec,
        precondition: Precondition,
        hmb_bytes: u64,
        seed: u64,
        (contents, host_memory, tracer): (C, M, T),
    ) -> Self {
        assert_bytes_can_be_written::<M>(spec);
        let ftl = Ftl::new(spec, precondition, seed);
        let hpb = hpb::Hpb::new(spec, &ftl, seed);
        let usable = background::usable_bytes(spec, hmb_bytes);
        let mut device = Device {
            board: Board::new(spec, seed, tracer),
            commands: Slab::default(),
            front: interface::Front::new(spec),
            map: map::Map::new(spec, &ftl, seed, M::KEEPS_BYTES),
            hmb_pages: hmb_pages::HmbPages::new(spec, seed),
            read_cache: None,
            buffer: buffer::Buffer::new(spec),
            hmb_path: hmb_path::HmbPath::new(spec),
            programs: programs::Programs::default(),
            trims: trims::Trims::new(ftl.geometry()),
            ftl,
            erases: erases::Erases::default(),
            dead: dead::Dead::default(),
            background: background::Background::default(),
            power: power::Power::new(seed),
            hpb,
            window: window::WindowRole::new(spec),
            scratch: Vec::new(),
            contents,
            host_memory: Lent::new(host_memory),
            spec: spec.clone(),
        };
        device.place_roles(usable);
        device
    }

    /// The drive's description.
    #[must_use]
    pub fn spec(&self) -> &DriveSpec {
        &self.spec
    }

    // In the loop of events it saves 1 to 2 % of all instructions; so it does wherever else it stands here.
    #[inline(always)]
    fn handle(&mut self, kind: EventKind, index: u32) {
        self.board.engine.tracer.event();
        match kind {
            EventKind::Fetched => self.on_fetched(CommandId(index)),
            EventKind::Processed => self.on_processed(CommandId(index)),
            EventKind::ReadInformed => self.start_read(CommandId(index)),
            EventKind::HpbEntriesArrived => self.on_hpb_entries_arrived(CommandId(index)),
            EventKind::PartReady => self.on_part_ready(CommandId(index)),
            EventKind::DataArrived => self.on_data_arrived(TransferId(index)),
            EventKind::DataStored => self.on_data_stored(TransferId(index)),
            EventKind::ArrayDone => self.on_array_done(FlashOpId(index)),
            EventKind::DataLoaded => self
                .board
                .array
                .on_data_loaded(&mut self.board.engine, FlashOpId(index)),
            EventKind::WriteBackArrived => self.on_write_back_arrived(FetchId(index)),
            EventKind::LogRead => self.buffer.on_log_read(&mut self.board),
            EventKind::LogStored => self.on_log_stored(),
            EventKind::DataReady => {
                let op = FlashOpId(index);
                if self.board.array.ops[op].tries == 0 || self.decodes(op) {
                    self.on_data_ready(op);
                }
            }
            EventKind::DieFree => self
                .board
                .array
                .on_die_free(&mut self.board.engine, DieId(index)),
            EventKind::Suspended => self
                .board
                .array
                .on_suspended(&mut self.board.engine, DieId(index)),
            EventKind::Idle => self.on_idle(index),
            EventKind::Scanned => self.on_scanned(),
            EventKind::Paced => self.on_paced(),
            EventKind::MapPagesSent => {
                self.map.on_sent(self.board.engine.now());
                self.dispatch();
            }
            EventKind::Window => self.on_window(WindowCallId(index)),
            EventKind::HostHandled | EventKind::HostCall | EventKind::HostIdle => {
                unreachable!("the host's alarms go to the host")
            }
        }
        if M::KEEPS_BYTES {
            self.map
                .sync(&mut self.board, &self.ftl, &mut self.host_memory);
            if self.host_memory.has_failed() {
                self.give_up_host_memory();
            }
        }
    }

    fn on_fetched(&mut self, command: CommandId) {
        if let Some(hpb) = &mut self.hpb
            && hpb.awaits_entries(command)
        {
            return;
        }
        if let Some(window) = &mut self.window
            && !window.pass_gate(&mut self.board, command, &mut self.commands[command])
        {
            return;
        }
        let Command {
            request, status, ..
        } = *self.commands[command];
        let costs = &self.spec.controller;
        let core_ps = match (status, request.op) {
            (Status::Success, Op::Read) => self.read_core_ps(command),
            (Status::Success, Op::Write) => {
                let slots = self.commands[command].end_lpn() - self.commands[command].first_lpn();
                costs.write_ps + u64::from(slots - 1) * costs.next_slot_ps
            }
            (Status::Success, Op::Trim) => costs.trim_ps,
            // A flush; and to refuse a command takes as little: a look at it, and none at the map.
            _ => costs.flush_ps,
        };
        let now = self.board.engine.now();
        let end_ps = self.board.cores.book(now, core_ps);
        let tracer = &mut self.board.engine.tracer;
        tracer.mark(command, Part::Gate, now.ps());
        tracer.firmware(command, end_ps - core_ps, end_ps);
        self.board
            .engine
            .schedule(end_ps, EventKind::Processed, command);
    }

    #[inline(always)]
    fn on_processed(&mut self, command: CommandId) {
        let Command {
            request,
            status,
            awaits_entry,
            ..
        } = *self.commands[command];
        if status != Status::Success {
            self.finish(command);
            return;
        }
        match request.op {
            Op::Read if awaits_entry => self.fetch_map_entry(command),
            Op::Read => self.start_read(command),
            Op::Write => self.start_write(command),
            Op::Flush => self.start_flush(command),
            Op::Trim => self.start_trim(command),
        }
    }

    /// A call of the byte window goes on.
    fn on_window(&mut self, call: WindowCallId) {
        let Some(window) = &mut self.window else {
            return;
        };
        match window.handle(&mut self.board, &mut self.contents, call) {
            Next::Nothing => {}
            Next::Move(request) => {
                let mut command = Command::new(request, self.validate(&request));
                command.window_io = true;
                let held = Held::new(command, C::Payload::default());
                let command = self.commands.insert(held);
                if request.op == Op::Read {
                    // Looks the map up; what it costs is part of the firmware's time for a page.
                    self.read_core_ps(command);
                }
                self.on_processed(command);
            }
            Next::Release => {
                let mut released = window.take_released();
                for command in released.drain(..) {
                    self.on_fetched(command);
                }
                if let Some(window) = &mut self.window {
                    window.give_back(released);
                }
            }
        }
        self.front.attention |= self.has_window_sent();
    }

    /// The entries that the host sends ahead of a read are there.
    fn on_hpb_entries_arrived(&mut self, bringer: CommandId) {
        let Some(hpb) = &mut self.hpb else { return };
        let awaited_by = hpb.entries_arrived(bringer);
        self.finish(bringer);
        if let Some(read) = awaited_by {
            self.on_fetched(read);
        }
    }

    /// What a read has brought has passed the decoder, or has not. Returns false if it is to be read again.
    #[cold]
    fn decodes(&mut self, index: FlashOpId) -> bool {
        let op = self.board.array.ops[index];
        let parts = (&mut self.background, &self.ftl, &mut self.hmb_pages.lost);
        match wear::decode(&mut self.board, parts, index) {
            Decoded::Again => return false,
            Decoded::Never if op.cause == Cause::Merge => {
                self.hmb_pages.lost.lose(BufferSlot(op.owner));
            }
            Decoded::Never if op.cause == Cause::Host && op.class == Class::HostRead => {
                self.commands[CommandId(op.owner)].status = Status::MediaError;
            }
            Decoded::Yes | Decoded::Never => {}
        }
        true
    }

    fn on_array_done(&mut self, index: FlashOpId) {
        if !self
            .board
            .array
            .on_array_done(&mut self.board.engine, index)
        {
            return;
        }
        let engine = &mut self.board.engine;
        engine.tracer.op_done(index, engine.now().ps());
        let op = self.board.array.ops[index];
        self.board.array.ops.remove(index);
        if op.kind == OpKind::Erase {
            self.on_erased(&op);
        } else {
            self.on_programmed(&op);
        }
    }

    /// One of the things a command waited for has happened.
    #[inline]
    fn end_part(&mut self, command: CommandId) {
        let pending = &mut self.commands[command].pending;
        *pending -= 1;
        if *pending == 0 {
            self.finish(command);
        }
    }

    /// Sends the completion; the command's slot goes to the next one in the queues.
    fn finish(&mut self, command: CommandId) {
        if let Some(window) = &mut self.window {
            let done = *self.commands[command];
            if done.window_io {
                self.commands.remove(command);
                window.on_piece_moved(&mut self.board, &done);
                return;
            }
            window.leave_gate(&mut self.board, command);
        }
        let has_left = self.commands[command].has_left;
        self.respond(command);
        if !has_left {
            self.take_next();
        }
    }

    /// A command of the controller's has given its place up: the next is fetched.
    fn take_next(&mut self) {
        let now_ps = self.board.engine.now().ps();
        if !self.board.link.host_frees_slots()
            && let Some((next, known_ps)) = self.front.queues.release(now_ps)
        {
            self.fetch(next, known_ps.max(now_ps), false);
        }
    }

    /// Sends the completion of a command.
    #[inline]
    fn respond(&mut self, command: CommandId) {
        let now = self.board.engine.now();
        let answered = &mut self.commands[command];
        let mut extra_bytes = 0;
        if let Some(hpb) = &mut self.hpb {
            extra_bytes = hpb.respond(&mut self.board, &self.ftl, command, answered);
        }
        // Data of the window does not cross the link.
        let sent_ps = match answered.window_io {
            true => 0,
            false => answered.data_end_ps,
        };
        let entry_end_ps = self.board.link.respond(now, sent_ps, extra_bytes);
        let data_end_ps = self.commands[command].data_end_ps;
        let arrives_ps = entry_end_ps.max(data_end_ps);
        if let Some(hpb) = &mut self.hpb {
            hpb.responded(command, arrives_ps);
        }
        if T::ON {
            let alone_ps = self.board.link.response_ps(extra_bytes);
            let tracer = &mut self.board.engine.tracer;
            tracer.settled(command, now.ps(), alone_ps, arrives_ps);
        }
        self.front.attention = true;
        self.front.sent.push(Sent {
            command,
            arrives_ps,
        });
    }

    /// The host asks for a command to be aborted. One that the drive has not begun, because it waits in its queue or
    /// for room in the write buffer, ends with [`Status::Aborted`]; its completion is sent as any other, and true is
    /// returned. False: it is under way, and ends by itself.
    pub fn abort(&mut self, id: CommandId) -> bool {
        let Command {
            request,
            slots_taken,
            ..
        } = *self.commands[id];
        // Hosts that free slots keep what waits, and have no need to ask.
        let waits_outside =
            !self.board.link.host_frees_slots() && self.front.queues.withdraw(request.queue, id);
        let waits_inside =
            !waits_outside && slots_taken == 0 && self.buffer.queue.remove(&mut self.commands, id);
        if waits_outside || waits_inside {
            self.commands[id].status = Status::Aborted;
        }
        if waits_outside {
            self.respond(id);
        } else if waits_inside {
            self.end_part(id);
        }
        waits_outside || waits_inside
    }

    /// What the drive has counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let mut counters = self.board.counters.clone();
        counters.map.evictions = self.map.role().evictions;
        let first = self.background.first_moved_at_bytes;
        counters.written_into_room_bytes = first.unwrap_or(counters.host_written_bytes);
        counters.hpb.present = self.hpb.is_some();
        if let Some(age) = self.flash_age() {
            counters.ageing.present = true;
            counters.ageing.mean_erases = age.erases[1];
            counters.ageing.spare_blocks = age.spare_blocks.into();
        }
        counters.buffer_high_water_slots = u64::from(self.buffer.slots.high_water);
        if let Some(window) = &self.window {
            window.count_packets(&mut counters.window);
        }
        counters.link_to_host_bytes = self.board.link.to_host_bytes;
        counters.link_from_host_bytes = self.board.link.from_host_bytes;
        self.hmb_path.count(&mut counters);
        counters
    }

    /// How worn its flash is: in ordinary mode, and in single-bit mode.
    #[must_use]
    pub fn wear(&self) -> [Wear; 2] {
        self.ftl.wear(self.programs.pending_slots())
    }

    /// How far its flash has aged, where it does.
    #[must_use]
    pub fn flash_age(&self) -> Option<FlashAge> {
        self.board.array.flash_age()
    }

    /// Programs and erases that have failed so far, each of which has made a block bad.
    #[must_use]
    pub fn block_failures(&self) -> u64 {
        let counted = &self.board.counters.ageing;
        counted.program_failures + counted.erase_failures
    }

    /// Spare blocks that have taken the place of others so far.
    #[must_use]
    pub fn replaced_blocks(&self) -> u64 {
        self.board.counters.ageing.replaced_blocks
    }

    /// Whether it has come to the end of its life: it takes no writes and trims.
    #[must_use]
    pub fn is_worn_out(&self) -> bool {
        self.ftl.is_worn_out()
    }

    /// What is to be kept of a drive beside what its flash says, for [`Device::restore`].
    #[must_use]
    pub fn rest(&self) -> Rest {
        Rest {
            counters: self.counters(),
            now_ps: self.board.engine.now().ps(),
            restarts: self.power.restarts,
            checkpoint: self.power.checkpoint,
            trims_die: self.trims.die,
            settled_to: spare::settled_to(&self.programs, &self.trims, &self.ftl),
            ftl: self.ftl.rest(),
            ageing: self.board.array.aged().cloned(),
            window: self.window.as_ref().map(|window| window.rest()),
        }
    }

    /// A drive in its initial state that holds nothing takes over flash as it was found; [`Device::begin_power_cut`]
    /// is to follow, from which it comes back as the drive that has left it, switched on after it has lost
    /// power. `rest`: what that one kept beside, saved at any time since it came back itself, and since a call of its
    /// byte window ended last. What was in its write buffer is gone, be it in protected memory: [`Device::put_back`]
    /// brings it back. The byte window's bytes are for its contents to have kept.
    ///
    /// # Errors
    /// If a drive like this cannot have left what was found; then this one is of no use any more.
    pub fn restore(&mut self, rest: &Rest, mut found: Found) -> Result<(), Contradiction> {
        for &(ppn, sectors) in &found.lost {
            self.hmb_pages.lost.restore(ppn, sectors);
        }
        self.trims.saved.clone_from(&found.trims);
        found.settled_to = found.settled_to.max(rest.settled_to);
        wear::restore(&mut self.board, rest.ageing.as_ref(), &found)?;
        self.ftl.restore(&rest.ftl, found)?;
        if let (Some(window), Some(rest)) = (&mut self.window, &rest.window) {
            window.restore(rest)?;
        }
        self.board.engine.idle_until(rest.now_ps);
        (self.power.restarts, self.power.checkpoint) = (rest.restarts, rest.checkpoint);
        self.trims.die = rest.trims_die % self.ftl.geometry().dies;
        self.board.counters = rest.counters.clone();
        *self.map.evictions() = rest.counters.map.evictions;
        let into_room_bytes = rest.counters.written_into_room_bytes;
        self.background.first_moved_at_bytes =
            (into_room_bytes < rest.counters.host_written_bytes).then_some(into_room_bytes);
        self.buffer.slots.high_water = rest.counters.buffer_high_water_slots as u32;
        self.board.link.to_host_bytes = rest.counters.link_to_host_bytes;
        self.board.link.from_host_bytes = rest.counters.link_from_host_bytes;
        self.hmb_path.restore(&rest.counters);
        Ok(())
    }
}

/// Bytes in host memory are those of flat entries with room for a physical address.
fn assert_bytes_can_be_written<M: HostMemory>(spec: &DriveSpec) {
    let mut tiers = spec.roles.map.tiers.iter();
    if let Some(map) = tiers.find(|map| M::KEEPS_BYTES && map.tier.is_granted()) {
        assert_eq!(map.encoding, Encoding::Flat, "bytes of a compressed map");
        assert!(map.entry_millibytes >= 4000, "entries of less than 4 bytes");
    }
}
