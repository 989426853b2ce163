//! The drive as a whole: the one `match` on events, and who is told of what.
//!
//! The second file to read after `lib.rs`. A request's way through it:
//!
//! ```text
//! submit → Fetched → Processed → (MapEntryArrived) → flash: ArrayDone → DataReady → Completed
//!                              ↘ write: DataArrived → (DataStored) → Completed, later programs
//! ```

mod background;
mod contents;
mod map;
mod read;
mod write;

pub use contents::{Contents, NoContents, Source};

use crate::controller::{Cores, MapRole, ReadCache, WriteBuffer};
use crate::engine::{Engine, EventKind, Timeline};
use crate::ftl::{Cleaner, Ftl, Precondition};
use crate::ids::{CommandId, DieId, NONE, Superblock};
use crate::nand::{Array, Geometry, OpKind};
use crate::observe::Counters;
use crate::request::{Completion, Op, Request, Status};
use crate::slab::{Linked, Queue, Slab};
use crate::spec::{DriveSpec, ENTRIES_PER_TRANSLATION_PAGE, SLOT_BYTES, Tier};
use crate::transport::{Link, SubmissionQueues};

/// Bytes of a submission queue entry (NVM Express Base 2.0, section 3.3.3.1).
pub const SUBMISSION_ENTRY_BYTES: u64 = 64;
/// Bytes of a completion queue entry (NVM Express Base 2.0, section 3.3.3.2).
pub const COMPLETION_ENTRY_BYTES: u64 = 16;
/// Bytes fetched for one map entry in host memory: one cache line.
pub const MAP_LINE_BYTES: u64 = 64;
/// Translation pages one command can span: one bit each in [`Command::missed`].
const PAGES_PER_COMMAND_MAX: u64 = 64;
/// Largest read or write: 252 MiB, far above any drive's MDTS, so that 64 translation pages suffice
/// wherever it starts.
pub const TRANSFER_BYTES_MAX: u64 =
    (PAGES_PER_COMMAND_MAX - 1) * ENTRIES_PER_TRANSLATION_PAGE * SLOT_BYTES;
/// Smallest logical block.
pub const SECTOR_BYTES: u64 = 512;

/// A command inside the drive.
#[derive(Clone, Copy, Debug)]
struct Command {
    next: u32,
    request: Request,
    submitted_ps: u64,
    /// When the last of its data is on the other side.
    data_end_ps: u64,
    /// Things that must still happen before it completes.
    pending: u32,
    /// Bit i: the i-th translation page it spans was not at hand.
    missed: u64,
    /// An entry must come from host memory first.
    awaits_entry: bool,
    /// Slots whose data was asked for so far (write).
    slots_taken: u32,
    /// Bytes of parts that need no flash.
    part_bytes: u64,
    status: Status,
}

impl Linked for Command {
    fn next(&self) -> u32 {
        self.next
    }
    fn set_next(&mut self, next: u32) {
        self.next = next;
    }
}

impl Command {
    /// First logical page.
    #[inline]
    fn first_lpn(&self) -> u32 {
        (self.request.offset_bytes / SLOT_BYTES) as u32
    }

    /// One past the last logical page.
    #[inline]
    fn end_lpn(&self) -> u32 {
        (self.request.offset_bytes + self.request.length_bytes).div_ceil(SLOT_BYTES) as u32
    }

    /// First and last translation page.
    #[inline]
    fn translation_pages(&self) -> (u32, u32) {
        let per_page = ENTRIES_PER_TRANSLATION_PAGE as u32;
        (self.first_lpn() / per_page, (self.end_lpn() - 1) / per_page)
    }

    /// Bytes of one page that the command covers.
    #[inline]
    fn bytes_in(&self, lpn: u32) -> u64 {
        let start = u64::from(lpn) * SLOT_BYTES;
        let end = start + SLOT_BYTES;
        let Request {
            offset_bytes,
            length_bytes,
            ..
        } = self.request;
        end.min(offset_bytes + length_bytes) - start.max(offset_bytes)
    }

    /// Sectors of one page that the command covers, a bit each.
    #[inline]
    fn sectors_in(&self, lpn: u32) -> u8 {
        let start = u64::from(lpn) * SLOT_BYTES;
        let from = self.request.offset_bytes.saturating_sub(start) / SECTOR_BYTES;
        let count = self.bytes_in(lpn) / SECTOR_BYTES;
        (((1u16 << count) - 1) << from) as u8
    }
}

/// A simulated drive.
pub struct Device<C = NoContents> {
    spec: DriveSpec,
    engine: Engine,
    commands: Slab<Command>,
    queues: SubmissionQueues,
    link: Link,
    cores: Cores,
    dram: Timeline,
    map: MapRole,
    read_cache: Option<ReadCache>,
    buffer: WriteBuffer,
    /// Memory the buffer stands on at present.
    buffer_tier: Tier,
    /// Writes that wait for room in the buffer.
    buffer_queue: Queue,
    transfers: Slab<write::Transfer>,
    programs: Slab<write::Program>,
    ftl: Ftl,
    cleaner: Cleaner,
    background: background::Background,
    array: Array,
    hmb_bytes: u64,
    seed: u64,
    counters: Counters,
    completions: Vec<Completion>,
    /// Reused lists, so that nothing is allocated per request.
    scratch: Vec<u32>,
    /// What the sectors hold.
    pub contents: C,
}

impl Device<NoContents> {
    /// A drive in its initial state, without contents. `hmb_bytes` is the host memory granted; the
    /// drive makes of it what it can.
    #[must_use]
    pub fn new(spec: &DriveSpec, precondition: Precondition, hmb_bytes: u64, seed: u64) -> Self {
        Device::with_contents(spec, precondition, hmb_bytes, seed, NoContents)
    }
}

impl<C: Contents> Device<C> {
    /// A drive in its initial state.
    #[must_use]
    pub fn with_contents(
        spec: &DriveSpec,
        precondition: Precondition,
        hmb_bytes: u64,
        seed: u64,
        contents: C,
    ) -> Self {
        let ftl = Ftl::new(spec, precondition, seed);
        let pages = ftl
            .user_slots()
            .div_ceil(ENTRIES_PER_TRANSLATION_PAGE as u32);
        let controller = &spec.controller;
        let usable = spec
            .tiers
            .hmb
            .as_ref()
            .map_or(0, |hmb| hmb.usable_bytes(hmb_bytes));
        let mut device = Device {
            engine: Engine::default(),
            commands: Slab::default(),
            queues: SubmissionQueues::new(controller.command_slots, controller.arbitration_burst),
            link: Link::new(&spec.link),
            cores: Cores::new(controller.cores),
            dram: Timeline::default(),
            map: MapRole::new(&spec.roles.map, pages, 0, seed),
            read_cache: None,
            buffer: WriteBuffer::new(&spec.roles.write_buffer, 0),
            buffer_tier: spec.roles.write_buffer.tier,
            buffer_queue: Queue::default(),
            transfers: Slab::default(),
            programs: Slab::default(),
            ftl,
            cleaner: Cleaner::default(),
            background: background::Background::default(),
            array: Array::new(&spec.nand),
            hmb_bytes: 0,
            seed,
            counters: Counters::default(),
            completions: Vec::new(),
            scratch: Vec::new(),
            contents,
            spec: spec.clone(),
        };
        device.place_roles(usable);
        device
    }

    /// Gives each role its share of memory, given `usable` bytes of host memory. Host memory
    /// serves the data roles first: their sizes are fixed, the map takes what is left.
    fn place_roles(&mut self, usable: u64) {
        let mut left = usable;
        let roles = &self.spec.roles;
        let mut share = |tier: Tier, bytes: u64| {
            if tier != Tier::Hmb {
                return bytes;
            }
            let share = bytes.min(left);
            left -= share;
            share
        };
        let buffer_bytes = share(roles.write_buffer.tier, roles.write_buffer.bytes);
        if let Some(cache) = &roles.read_cache {
            let bytes = share(cache.tier, cache.bytes);
            // A cache in the drive's own memory keeps what it holds.
            if self.read_cache.is_none() || cache.tier == Tier::Hmb {
                self.read_cache = Some(ReadCache::new(cache, bytes, self.seed));
            }
        }
        // Without memory for a buffer, the controller still stages what it programs.
        let staging = self.array.geometry().unit_slots * self.array.geometry().dies;
        let (tier, slots) = match WriteBuffer::slots_of(buffer_bytes) {
            0 => (Tier::Sram, staging),
            slots => (roles.write_buffer.tier, slots),
        };
        self.buffer_tier = tier;
        self.buffer.resize(&roles.write_buffer, slots);
        self.hmb_bytes = usable;
        self.map.set_hmb(left);
    }

    /// The drive's description.
    #[must_use]
    pub fn spec(&self) -> &DriveSpec {
        &self.spec
    }

    /// Now, in picoseconds since the start.
    #[must_use]
    pub fn now_ps(&self) -> u64 {
        self.engine.now().ps()
    }

    /// When something happens next; `None` when the drive is idle until the next request.
    #[inline]
    #[must_use]
    pub fn next_time(&self) -> Option<u64> {
        self.engine.next_time_ps()
    }

    /// Events so far, pending ones included.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.engine.events()
    }

    /// Commands submitted and not completed.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.commands.len()
    }

    /// Hands the drive a request at the present instant.
    pub fn submit(&mut self, request: Request) {
        let now = self.engine.now();
        self.counters.requests += 1;
        let status = self.validate(&request);
        let command = Command {
            next: NONE,
            request,
            submitted_ps: now.ps(),
            data_end_ps: 0,
            pending: 0,
            missed: 0,
            awaits_entry: false,
            slots_taken: 0,
            part_bytes: 0,
            status,
        };
        let id = self.commands.insert(command);
        if self.queues.submit(request.queue, CommandId(id)) {
            self.fetch(id, self.spec.host.submit_ps + self.link.one_way_ps());
        }
    }

    fn validate(&self, request: &Request) -> Status {
        if request.op == Op::Flush {
            return Status::Success;
        }
        let Request {
            offset_bytes,
            length_bytes,
            ..
        } = *request;
        let aligned =
            offset_bytes.is_multiple_of(SECTOR_BYTES) && length_bytes.is_multiple_of(SECTOR_BYTES);
        let too_long = request.op != Op::Trim && length_bytes > TRANSFER_BYTES_MAX;
        if !aligned || length_bytes == 0 || too_long {
            return Status::InvalidField;
        }
        match offset_bytes.checked_add(length_bytes) {
            Some(end) if end <= self.spec.capacity_bytes => Status::Success,
            _ => Status::OutOfRange,
        }
    }

    /// The drive reads a submission queue entry, `delay_ps` from now.
    #[inline]
    fn fetch(&mut self, command: u32, delay_ps: u64) {
        // The entry's 64 bytes are not booked on the link: at 20 ns they never decide anything,
        // and booking them would cost every request an event.
        let wire_ps = self.link.wire_ps(SUBMISSION_ENTRY_BYTES);
        self.link.from_host_bytes += SUBMISSION_ENTRY_BYTES;
        let at_ps = self.engine.now().ps() + delay_ps + self.link.round_trip_ps() + wire_ps;
        self.engine.schedule(at_ps, EventKind::Fetched, command);
    }

    /// Works off everything due up to `to_ps` and moves the clock there. Completions are appended
    /// to `completions` in the order they happen.
    pub fn advance(&mut self, to_ps: u64, completions: &mut Vec<Completion>) {
        while let Some((_, kind, index)) = self.engine.pop(to_ps) {
            self.handle(kind, index);
        }
        self.engine.settle(to_ps);
        completions.append(&mut self.completions);
    }

    /// Like [`Device::advance`], but stops at the first instant at which something completes (or at
    /// `to_ps`, or when nothing is left to do). Spares a closed loop a call per event.
    pub fn advance_to_completion(&mut self, to_ps: u64, completions: &mut Vec<Completion>) {
        let mut until_ps = to_ps;
        while let Some((now, kind, index)) = self.engine.pop(until_ps) {
            self.handle(kind, index);
            if kind == EventKind::Completed {
                // The rest of this instant still belongs to it.
                until_ps = now.ps();
            }
        }
        if self.completions.is_empty() && to_ps != u64::MAX {
            self.engine.settle(to_ps);
        }
        completions.append(&mut self.completions);
    }

    #[inline]
    fn handle(&mut self, kind: EventKind, index: u32) {
        match kind {
            EventKind::Fetched => self.on_fetched(index),
            EventKind::Processed => self.on_processed(index),
            EventKind::MapEntryArrived => self.on_map_entry_arrived(index),
            EventKind::PartReady => self.on_part_ready(index),
            EventKind::DataArrived => self.on_data_arrived(index),
            EventKind::DataStored => self.on_data_stored(index),
            EventKind::ArrayDone => self.on_array_done(index),
            EventKind::DataLoaded => self.array.on_data_loaded(&mut self.engine, index),
            EventKind::DataReady => self.on_data_ready(index),
            EventKind::DieFree => self.array.on_die_free(&mut self.engine, DieId(index)),
            EventKind::Suspended => self.array.on_suspended(&mut self.engine, DieId(index)),
            EventKind::Completed => self.on_completed(index),
            EventKind::Idle => self.on_idle(index),
        }
    }

    fn on_fetched(&mut self, command: u32) {
        let Command {
            request, status, ..
        } = self.commands[command];
        let costs = &self.spec.controller;
        let core_ps = match (status, request.op) {
            (Status::Success, Op::Read) => self.read_core_ps(command),
            (Status::Success, Op::Write) => {
                let slots = self.commands[command].end_lpn() - self.commands[command].first_lpn();
                costs.write_ps + u64::from(slots - 1) * costs.next_slot_ps
            }
            (Status::Success, Op::Trim) => costs.trim_ps,
            _ => costs.flush_ps,
        };
        let end_ps = self.cores.book(self.engine.now(), core_ps);
        self.engine.schedule(end_ps, EventKind::Processed, command);
    }

    fn on_processed(&mut self, command: u32) {
        let Command {
            request,
            status,
            awaits_entry,
            ..
        } = self.commands[command];
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

    fn on_array_done(&mut self, index: u32) {
        if !self.array.on_array_done(&mut self.engine, index) {
            return;
        }
        let op = self.array.ops[index];
        self.array.ops.remove(index);
        if op.kind == OpKind::Erase {
            self.on_erased(Superblock(op.owner));
        } else {
            self.on_programmed(op.owner);
        }
    }

    /// One of the things a command waited for has happened.
    #[inline]
    fn settle_one(&mut self, command: u32) {
        let pending = &mut self.commands[command].pending;
        *pending -= 1;
        if *pending == 0 {
            self.finish(command);
        }
    }

    /// Sends the completion entry; the command's slot goes to the next one in the queues.
    fn finish(&mut self, command: u32) {
        let now = self.engine.now();
        let entry_end_ps = self.link.write(now, COMPLETION_ENTRY_BYTES);
        let at_ps =
            entry_end_ps.max(self.commands[command].data_end_ps) + self.spec.host.complete_ps;
        self.engine.schedule(at_ps, EventKind::Completed, command);
        if let Some(next) = self.queues.release() {
            self.fetch(next.0, 0);
        }
    }

    fn on_completed(&mut self, index: u32) {
        let command = &self.commands[index];
        self.counters.completions += 1;
        self.completions.push(Completion {
            tag: command.request.tag,
            op: command.request.op,
            status: command.status,
            submitted_ps: command.submitted_ps,
            completed_ps: self.engine.now().ps(),
        });
        self.commands.remove(index);
        self.note_activity();
    }

    /// What the drive has counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let mut counters = self.counters.clone();
        counters.map.evictions = self.map.evictions;
        counters.buffer_high_water_slots = u64::from(self.buffer.high_water);
        counters.link_to_host_bytes = self.link.to_host_bytes;
        counters.link_from_host_bytes = self.link.from_host_bytes;
        counters
    }

    /// Host memory the drive can use of what it was granted, bytes.
    #[must_use]
    pub fn hmb_usable_bytes(&self) -> u64 {
        self.hmb_bytes
    }

    /// Host memory in use by the map, bytes.
    #[must_use]
    pub fn hmb_map_bytes(&self) -> u64 {
        self.map.hmb_used_bytes()
    }

    /// Memory of a place in the map role's list.
    #[must_use]
    pub fn map_tiers(&self) -> Vec<Tier> {
        self.spec
            .roles
            .map
            .tiers
            .iter()
            .map(|tier| tier.tier)
            .collect()
    }

    /// Shape of the flash array.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        self.array.geometry()
    }

    /// The translation layer, to look at.
    #[must_use]
    pub fn ftl(&self) -> &Ftl {
        &self.ftl
    }

    /// Time each kind of resource was busy: name and one entry per instance, picoseconds.
    #[must_use]
    pub fn busy_ps(&self) -> Vec<(&'static str, Vec<u64>)> {
        let (dies, channels) = self.array.busy_ps();
        let (to_host, from_host) = self.link.busy_ps();
        vec![
            ("core", self.cores.busy_ps()),
            ("die", dies),
            ("channel", channels),
            ("link_to_host", vec![to_host]),
            ("link_from_host", vec![from_host]),
        ]
    }
}
