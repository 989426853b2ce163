//! I/O commands: what they ask of the drive, and how they end.

mod deallocate;

pub use deallocate::PAGES_AT_ONCE;

use super::namespaces::Namespace;
use super::window::Call;
use super::{Controller, Statistics};
use crate::payload::{Payload, Spare};
use deallocate::Deallocations;
use lodger_core::device::WindowSent;
use lodger_core::ids::CommandId;
use lodger_core::{Op, Purpose, Request, Status as DriveStatus};
use lodger_wire::command::{Access, IoCommand, Parsed, WriteZeroes};
use lodger_wire::entry::{Outcome, SubmissionEntry};
use lodger_wire::memory::GuestMemory;
use lodger_wire::queue::Permit;
use lodger_wire::status::Status;
use lodger_wire::{NamespaceId, PageSize, QueueId};

/// Bytes of the drive's own pages.
const PAGE_BYTES: u64 = 4096;

/// What is to be done when the drive has done its part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// Data goes to the host.
    Read,
    /// Data has come from the host.
    Write,
    /// Data is held against the host's.
    Compare,
    /// Data is only read.
    Verify,
    /// All blocks are deallocated, for [`super::wipe`].
    Wipe,
    /// A call of the byte window is answered.
    Window,
    /// Nothing more.
    #[default]
    Other,
}

impl Kind {
    /// What becomes of what the drive reads for it.
    fn purpose(self) -> Purpose {
        match self {
            Kind::Verify => Purpose::Verify,
            Kind::Compare => Purpose::Compare,
            _ => Purpose::Deliver,
        }
    }
}

/// A command of an I/O queue under way.
#[derive(Debug, Default)]
struct Flight {
    /// Gone when a reset has taken its queue away.
    permit: Option<Permit>,
    entry: Option<SubmissionEntry>,
    kind: Kind,
    /// Requests of the drive that are not done.
    parts: u32,
    /// The first thing that went wrong.
    failure: Option<DriveStatus>,
    /// To be followed by a flush.
    then_flush: bool,
    /// What it has written, or was written before, must be safe as it completes.
    is_safe: bool,
    call: Option<Call>,
    /// What the last of them has brought and read.
    payload: Payload,
    /// How many requests of the drive it has become so far, and the first, while it is the only one.
    requests: u32,
    only: Option<CommandId>,
}

/// Commands under way, by tag.
#[derive(Debug, Default)]
pub(super) struct Flights {
    flights: Vec<Flight>,
    free: Vec<u32>,
    pub(super) spare: Spare,
    deallocations: Deallocations,
}

impl Flights {
    fn free_tag(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.flights.push(Flight::default());
            self.flights.len() as u32 - 1
        })
    }

    fn take_off(&mut self, entry: &SubmissionEntry, permit: Permit) -> u32 {
        let tag = self.free_tag();
        self.flights[tag as usize] = Flight {
            permit: Some(permit),
            entry: Some(*entry),
            ..Flight::default()
        };
        tag
    }

    /// A command of the drive's own, that nobody hears the end of, and the flush after it.
    pub(super) fn take_off_alone(&mut self, kind: Kind) -> u32 {
        let tag = self.free_tag();
        self.flights[tag as usize] = Flight {
            kind,
            then_flush: true,
            ..Flight::default()
        };
        tag
    }

    /// A call of the byte window has its answer. Returns whether it may have changed what is pinned.
    pub(super) fn answered(&mut self, answer: &WindowSent, payload: Payload) -> bool {
        let flight = self.flights.get_mut(answer.cookie as usize);
        if let Some(flight) = flight
            && let Some(call) = &mut flight.call
        {
            call.result = answer.result;
            flight.payload = payload;
            return call.pins_or_flushes();
        }
        false
    }

    /// Whether a call of the byte window is under way.
    pub(super) fn has_call(&self) -> bool {
        self.flights.iter().any(|flight| flight.call.is_some())
    }

    fn land(&mut self, tag: u32) -> Flight {
        self.free.push(tag);
        std::mem::take(&mut self.flights[tag as usize])
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.flights.len()
    }

    /// Whether commands to a namespace are under way, or, for [`NamespaceId::ALL`], any.
    pub(super) fn has_any_to(&self, namespace: NamespaceId) -> bool {
        let is_to = |flight: &Flight| {
            let entry = flight.entry.as_ref();
            entry.is_some_and(|entry| entry.namespace() == namespace)
        };
        match namespace {
            NamespaceId::ALL => !self.is_empty(),
            _ => self.flights.iter().any(is_to),
        }
    }

    /// Requests of the drive that are all there is to a command that somebody waits for.
    fn only(&self, is_it: impl Fn(&Permit) -> bool) -> Vec<CommandId> {
        let waited_for = |flight: &&Flight| {
            let permit = flight.permit.as_ref();
            permit.is_some_and(&is_it) && !flight.then_flush && flight.parts == 1
        };
        let flights = self.flights.iter().filter(waited_for);
        flights.filter_map(|flight| flight.only).collect()
    }

    /// Their queues are gone: they come to their end, and nobody hears of it.
    pub(super) fn orphan(&mut self, statistics: &mut Statistics) {
        for permit in self
            .flights
            .iter_mut()
            .filter_map(|flight| flight.permit.take())
        {
            statistics.abandoned += 1;
            permit.abandon();
        }
        self.drop_deallocations();
    }
}

/// What a command ends with that the drive has failed. `is_write`: it was to change something.
fn status_of(failure: DriveStatus, is_write: bool) -> Status {
    match failure {
        DriveStatus::Success => Status::SUCCESS,
        DriveStatus::OutOfRange => Status::LBA_OUT_OF_RANGE,
        DriveStatus::InvalidField => Status::INVALID_FIELD,
        DriveStatus::AccessDenied => Status::ACCESS_DENIED,
        DriveStatus::Aborted => Status::ABORT_REQUESTED,
        DriveStatus::ReadOnly => Status::NAMESPACE_WRITE_PROTECTED,
        DriveStatus::MediaError if is_write => Status::WRITE_FAULT,
        DriveStatus::MediaError => Status::UNRECOVERED_READ_ERROR,
    }
}

impl<M: GuestMemory + Clone> Controller<M> {
    /// A command of an I/O queue.
    pub(super) fn io(&mut self, entry: &SubmissionEntry, permit: Permit) {
        if let Some(status) = self.wipe.refusal(entry.namespace()) {
            self.refuse(entry, permit, status);
            return;
        }
        self.power.note_activity(self.device.now_ps());
        let queue = permit.submission_queue();
        let tag = self.flights.take_off(entry, permit);
        // One more part, until all are sent, so that it cannot end early.
        self.flights.flights[tag as usize].parts = 1;
        let sent = IoCommand::parse(entry).and_then(|parsed| self.send(tag, queue, &parsed));
        if let Err(status) = sent {
            let flight = self.flights.land(tag);
            if let Some(permit) = flight.permit {
                self.refuse(entry, permit, status);
            }
            return;
        }
        self.part_done(tag, DriveStatus::Success);
    }

    fn namespace_of(&self, parsed: &Parsed<IoCommand>) -> Result<&Namespace, Status> {
        self.identity.namespaces.get(parsed.namespace)
    }

    /// The first block that a command failed at (LBA, Base 2.0 §5.16.1.2): the first that there is not, or the first that it
    /// names, as it fails as a whole. 0 for a command that names none.
    pub(super) fn failed_at(&self, entry: &SubmissionEntry, queue: QueueId, status: Status) -> u64 {
        let parsed = IoCommand::parse(entry).ok();
        let Some(parsed) = parsed.filter(|_| queue != QueueId::ADMIN) else {
            return 0;
        };
        let first = match &parsed.command {
            IoCommand::Read(access)
            | IoCommand::Write(access)
            | IoCommand::Compare(access)
            | IoCommand::Verify(access)
            | IoCommand::WriteZeroes(WriteZeroes { access, .. }) => access.start.0,
            IoCommand::Flush | IoCommand::DatasetManagement(_) | IoCommand::Vendor(_) => return 0,
        };
        match self.namespace_of(&parsed) {
            Ok(namespace) if status == Status::LBA_OUT_OF_RANGE => first.max(namespace.size_blocks),
            _ => first,
        }
    }

    fn send(&mut self, tag: u32, queue: QueueId, parsed: &Parsed<IoCommand>) -> Result<(), Status> {
        let is_flush = parsed.command == IoCommand::Flush;
        // The drive has one cache, so a flush of one namespace is one of all.
        if is_flush && parsed.namespace == NamespaceId::ALL {
            self.flush(tag, queue);
            return Ok(());
        }
        let namespace = self.namespace_of(parsed)?;
        let transfer = parsed.command.transfer(namespace.block);
        transfer.within(self.identity.mdts, PageSize::MIN.bytes())?;
        match &parsed.command {
            IoCommand::Flush => self.flush(tag, queue),
            IoCommand::Read(access) => self.access(tag, queue, parsed, access, Kind::Read)?,
            IoCommand::Compare(access) => self.access(tag, queue, parsed, access, Kind::Compare)?,
            IoCommand::Write(access) => self.access(tag, queue, parsed, access, Kind::Write)?,
            IoCommand::Verify(access) => {
                let range = namespace.place(access.range())?;
                self.flights.flights[tag as usize].kind = Kind::Verify;
                self.statistics.verified_bytes += range.1;
                self.part(tag, queue, Op::Read, false, range);
            }
            IoCommand::WriteZeroes(zeroes) => self.write_zeroes(tag, queue, parsed, zeroes)?,
            IoCommand::DatasetManagement(dsm) => self.manage(tag, queue, parsed, dsm)?,
            IoCommand::Vendor(vendor) => {
                let call = self.window_call(tag, parsed, vendor)?;
                let flight = &mut self.flights.flights[tag as usize];
                flight.parts += 1;
                // Whatever a host learns of what is pinned is so in the file: from then on it stores there.
                flight.is_safe = true;
                (flight.kind, flight.call) = (Kind::Window, Some(call));
            }
        }
        Ok(())
    }

    /// What a command changes is safe as it ends: because the host has asked for that, has switched the volatile cache off,
    /// or there is none. Returns whether it is.
    fn ends_when_safe(&mut self, tag: u32, is_asked_for: bool) -> bool {
        let is_safe =
            is_asked_for || !self.features.write_cache || !self.identity.has_volatile_cache;
        self.flights.flights[tag as usize].is_safe = is_safe;
        is_safe
    }

    /// The same of a command that deallocates: only a flush has the drive write the record of that, unless it lies in
    /// protected memory.
    fn deallocates_when_safe(&mut self, tag: u32, is_asked_for: bool) {
        let is_safe = self.ends_when_safe(tag, is_asked_for);
        self.flights.flights[tag as usize].then_flush =
            is_safe && self.identity.has_volatile_records;
    }

    fn flush(&mut self, tag: u32, queue: QueueId) {
        self.ends_when_safe(tag, true);
        self.part(tag, queue, Op::Flush, false, (0, 0));
    }

    /// A request of the drive without data from the host, as a part of a command.
    pub(super) fn part(&mut self, tag: u32, queue: QueueId, op: Op, fua: bool, range: (u64, u64)) {
        self.part_with(tag, queue, (op, fua), range, Payload::default());
    }

    fn part_with(
        &mut self,
        tag: u32,
        queue: QueueId,
        (op, fua): (Op, bool),
        range: (u64, u64),
        payload: Payload,
    ) {
        let (offset_bytes, length_bytes) = range;
        self.flights.flights[tag as usize].parts += 1;
        let request = Request {
            tag,
            queue: queue.0.saturating_sub(1),
            op,
            fua,
            offset_bytes,
            length_bytes,
        };
        let command = self.device.enqueue(request);
        *self.device.payload_mut(command) = payload;
        let purpose = self.flights.flights[tag as usize].kind.purpose();
        self.device.read_for(command, purpose);
        let flight = &mut self.flights.flights[tag as usize];
        flight.requests += 1;
        flight.only = (flight.requests == 1).then_some(command);
        let now_ps = self.device.now_ps();
        if let Some(recorder) = &mut self.recorder {
            recorder.command(now_ps, command, (request, purpose));
        }
        self.device.ring(command, now_ps);
    }

    fn access(
        &mut self,
        tag: u32,
        queue: QueueId,
        parsed: &Parsed<IoCommand>,
        access: &Access,
        kind: Kind,
    ) -> Result<(), Status> {
        let range = self.namespace_of(parsed)?.place(access.range())?;
        let to_host = kind == Kind::Read;
        let spare = &mut self.flights.spare;
        let mut payload =
            Payload::of_guest(&self.memory, range, &parsed.data, self.page, to_host, spare)?;
        self.flights.flights[tag as usize].kind = kind;
        if kind == Kind::Write {
            self.can_write()?;
            payload.take_in(&self.memory)?;
            let fua = access.force_unit_access || !self.features.write_cache;
            self.ends_when_safe(tag, fua);
            self.wipe.note_write();
            self.statistics.writes += 1;
            self.statistics.written_bytes += range.1;
            self.part_with(tag, queue, (Op::Write, fua), range, payload);
        } else {
            self.statistics.reads += 1;
            self.statistics.read_bytes += range.1;
            self.part_with(tag, queue, (Op::Read, false), range, payload);
        }
        Ok(())
    }

    /// Commands that the drive has not begun yet end as aborted, in their time; how many.
    pub(super) fn abort_waiting(&mut self, is_it: impl Fn(&Permit) -> bool) -> usize {
        let now_ps = self.device.now_ps();
        let mut aborted = 0;
        for command in self.flights.only(is_it) {
            if self.device.abort(command) {
                aborted += 1;
                if let Some(recorder) = &mut self.recorder {
                    recorder.abort(now_ps, command);
                }
            }
        }
        aborted
    }

    /// The drive has done a request of a command, which has that payload now.
    pub(super) fn request_done(&mut self, tag: u32, status: DriveStatus, payload: Payload) {
        if let Some(flight) = self.flights.flights.get_mut(tag as usize) {
            flight.payload = payload;
        }
        self.part_done(tag, status);
    }

    /// A part of a command is done.
    pub(super) fn part_done(&mut self, tag: u32, status: DriveStatus) {
        let Some(flight) = self.flights.flights.get_mut(tag as usize) else {
            return;
        };
        if status != DriveStatus::Success {
            flight.failure.get_or_insert(status);
        }
        flight.parts -= 1;
        if flight.parts > 0 {
            return;
        }
        if flight.then_flush && flight.failure.is_none() {
            flight.then_flush = false;
            let queue = flight.permit.as_ref().map(Permit::submission_queue);
            self.part(tag, queue.unwrap_or(QueueId(1)), Op::Flush, false, (0, 0));
            return;
        }
        self.land(tag);
    }

    /// All parts are done: data goes to the host, and then the completion.
    fn land(&mut self, tag: u32) {
        let mut flight = self.flights.land(tag);
        self.power.note_activity(self.device.now_ps());
        self.statistics.unread += u64::from(flight.payload.is_unread);
        let (mut payload, memory) = (std::mem::take(&mut flight.payload), &self.memory);
        let outcome = match (&flight.permit, flight.failure, flight.kind) {
            (_, failure, Kind::Wipe) => {
                self.deallocated_all(failure);
                return;
            }
            (None, ..) => Ok(()),
            (Some(permit), Some(DriveStatus::Aborted), _) => {
                Err(self.queues.aborted(permit.submission_queue()))
            }
            (_, Some(failure), kind) => Err(status_of(failure, kind == Kind::Write)),
            (_, None, Kind::Read) => payload.deliver(memory),
            (_, None, Kind::Compare) => payload.compare(memory),
            (_, None, Kind::Verify) => payload.was_read(),
            (_, None, Kind::Window) => {
                let contents = &mut self.device.contents;
                let ended = |call: &Call| call.end(memory, contents, &mut payload);
                flight.call.as_ref().map_or(Ok(()), ended)
            }
            (_, None, Kind::Write | Kind::Other) => Ok(()),
        };
        self.flights.spare.keep(payload);
        let Some(permit) = flight.permit else { return };
        match (outcome, flight.entry) {
            (Ok(()), Some(entry)) if flight.is_safe => {
                self.complete_when_safe(entry, permit, Outcome::SUCCESS);
            }
            (Ok(()), _) => self.complete(permit, Outcome::SUCCESS),
            (Err(status), Some(entry)) if flight.kind == Kind::Window => {
                self.refuse_when_safe(entry, permit, status);
            }
            (Err(status), Some(entry)) => self.refuse(&entry, permit, status),
            (Err(status), None) => self.complete(permit, status.into()),
        }
    }
}
