//! Follows requests through the drive: at each instant each of them is in one part of its way.
//!
//! A request has a cursor, up to where its time is told apart; a part is told by where it ends. So parts add up
//! to the latency, whatever is told: what can be wrong is which part it is. A read that waits for several flash
//! operations hears of the one that ends last alone.

use crate::trace_events::{OpTimes, TraceEvents};
use lodger_core::ids::{CommandId, FlashOpId, Id, Superblock, TransferId};
use lodger_core::observe::{OpInfo, OpStep, PARTS, Part, PartsPs, RequestInfo, Tracer};
use std::collections::VecDeque;

/// A request in the drive, by its command.
#[derive(Clone, Debug)]
struct Request {
    /// There is one.
    active: bool,
    info: RequestInfo,
    start_ps: u64,
    cursor_ps: u64,
    parts_ps: PartsPs,
    /// Look-ups in the firmware's next work.
    looks_up: [(Option<Part>, u64); 4],
    /// When data was last asked of a memory.
    asked_ps: u64,
    /// How long its data occupies the link.
    wire_ps: u64,
    /// Parts in their order, and when each began, where that is kept.
    slices: Option<Vec<(Part, u64)>>,
}

const NOTHING: Request = Request {
    active: false,
    info: RequestInfo {
        op: "",
        offset_bytes: 0,
        length_bytes: 0,
    },
    start_ps: 0,
    cursor_ps: 0,
    parts_ps: [0; PARTS],
    looks_up: [(None, 0); 4],
    asked_ps: 0,
    wire_ps: 0,
    slices: None,
};

impl Request {
    #[inline]
    fn mark(&mut self, part: Part, until_ps: u64) {
        if self.active && until_ps > self.cursor_ps {
            self.parts_ps[part as usize] += until_ps - self.cursor_ps;
            if let Some(slices) = &mut self.slices {
                slices.push((part, self.cursor_ps));
            }
            self.cursor_ps = until_ps;
        }
    }
}

/// When a flash operation did what; 0 for what it did not do.
#[derive(Clone, Debug, Default)]
struct Op {
    /// A read's tries whose data could not be decoded.
    failed: Vec<Try>,
    info: Option<OpInfo>,
    enqueued_ps: u64,
    started_ps: u64,
    loaded_ps: u64,
    array_ps: u64,
    array_done_ps: u64,
    transfer_ps: u64,
    transferred_ps: u64,
    suspending_ps: u64,
    suspended_ps: u64,
}

/// When one try of a read did what.
#[derive(Clone, Copy, Debug)]
struct Try {
    started_ps: u64,
    array_done_ps: u64,
    transfer_ps: u64,
    transferred_ps: u64,
    decoded_ps: u64,
}

/// Keeps the parts of each request's time.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    requests: Vec<Request>,
    ops: Vec<Op>,
    /// When data of writes was asked for, and how long it had to wait for the link, by transfer.
    transfers: Vec<(u64, u64)>,
    /// The flash operation that has ended with this event.
    ended: Option<Op>,
    done: VecDeque<PartsPs>,
    events: Option<Box<TraceEvents>>,
}

/// A place in a list that grows as needed.
#[inline]
fn place<T: Clone>(list: &mut Vec<T>, at: impl Id, empty: T) -> &mut T {
    let at = at.number() as usize;
    if at >= list.len() {
        list.resize(at + 1, empty);
    }
    &mut list[at]
}

impl Op {
    fn is_read(&self) -> bool {
        self.info.is_some_and(|info| info.kind == "read")
    }

    /// The try under way, as its data has come out of the decoder.
    fn last_try(&self, decoded_ps: u64) -> Try {
        Try {
            started_ps: self.started_ps,
            array_done_ps: self.array_done_ps,
            transfer_ps: self.transfer_ps,
            transferred_ps: self.transferred_ps,
            decoded_ps,
        }
    }

    fn times(&self) -> OpTimes {
        let read = self.is_read();
        let from_ps = if read { self.started_ps } else { self.array_ps };
        OpTimes {
            array_ps: (from_ps, self.array_done_ps),
            bus_ps: read.then_some((self.transfer_ps, self.transferred_ps)),
            suspended_ps: self.suspended_ps,
        }
    }
}

impl Recorder {
    /// Keeps slices, too.
    #[must_use]
    pub fn keeping(events: Option<TraceEvents>) -> Self {
        Recorder {
            events: events.map(Box::new),
            ..Recorder::default()
        }
    }

    /// The slices that were kept.
    #[must_use]
    pub fn into_events(self) -> Option<TraceEvents> {
        self.events.map(|events| *events)
    }

    fn request(&mut self, command: CommandId) -> &mut Request {
        place(&mut self.requests, command, NOTHING)
    }

    fn operation(&mut self, op: FlashOpId) -> &mut Op {
        place(&mut self.ops, op, Op::default())
    }
}

/// What a request has waited for since its cursor, if it waited for this operation.
fn follow(request: &mut Request, op: &Op, now_ps: u64) {
    if op.is_read() {
        request.mark(Part::MapFlash, op.enqueued_ps);
        for read in op.failed.iter().chain([&op.last_try(now_ps)]) {
            request.mark(Part::DieWait, read.started_ps);
            request.mark(Part::Array, read.array_done_ps);
            request.mark(Part::BusWait, read.transfer_ps);
            request.mark(Part::Bus, read.transferred_ps);
            request.mark(Part::Decoder, read.decoded_ps);
        }
    } else {
        request.mark(Part::ProgramWait, op.enqueued_ps);
        request.mark(Part::DieWait, op.started_ps);
        request.mark(Part::Bus, op.loaded_ps);
        request.mark(Part::DieWait, op.array_ps);
        request.mark(Part::Suspended, op.array_ps + op.suspended_ps);
        request.mark(Part::Array, now_ps);
    }
}

impl Tracer for Recorder {
    const ON: bool = true;

    fn begin(&mut self, command: CommandId, info: &RequestInfo, at_ps: u64) {
        let slices = self.events.is_some().then(Vec::new);
        *self.request(command) = Request {
            active: true,
            info: *info,
            start_ps: at_ps,
            cursor_ps: at_ps,
            slices,
            ..NOTHING
        };
    }

    fn mark(&mut self, command: CommandId, part: Part, until_ps: u64) {
        self.request(command).mark(part, until_ps);
    }

    fn looks_up(&mut self, command: CommandId, part: Part, core_ps: u64) {
        let mut places = self.request(command).looks_up.iter_mut();
        let found = places.find(|(known, _)| known.is_none_or(|known| known == part));
        if let Some((known, sum_ps)) = found {
            *known = Some(part);
            *sum_ps += core_ps;
        }
    }

    fn firmware(&mut self, command: CommandId, begin_ps: u64, end_ps: u64) {
        let request = self.request(command);
        request.mark(Part::FirmwareWait, begin_ps);
        let looks_up = std::mem::take(&mut request.looks_up);
        let mut left_ps: u64 = looks_up.iter().map(|(_, core_ps)| core_ps).sum();
        request.mark(Part::Firmware, end_ps - left_ps);
        for (part, core_ps) in looks_up {
            left_ps -= core_ps;
            request.mark(part.unwrap_or(Part::Firmware), end_ps - left_ps);
        }
    }

    fn event(&mut self) {
        self.ended = None;
    }

    fn asks_memory(&mut self, command: CommandId, at_ps: u64) {
        self.request(command).asked_ps = at_ps;
    }

    fn transfer(&mut self, transfer: TransferId, at_ps: u64, wait_ps: u64) {
        *place(&mut self.transfers, transfer, (0, 0)) = (at_ps, wait_ps);
    }

    fn transferred(&mut self, transfer: TransferId, command: CommandId, arrived: bool, at_ps: u64) {
        let (asked_ps, wait_ps) = *place(&mut self.transfers, transfer, (0, 0));
        let request = self.request(command);
        request.mark(Part::BufferWait, asked_ps);
        if arrived {
            request.mark(Part::LinkWait, asked_ps + wait_ps);
            request.mark(Part::Link, at_ps);
        } else {
            request.mark(Part::Memory, at_ps);
        }
    }

    fn sends(&mut self, command: CommandId, wire_ps: u64) {
        self.request(command).wire_ps += wire_ps;
    }

    fn op(&mut self, op: FlashOpId, info: &OpInfo, at_ps: u64) {
        *self.operation(op) = Op {
            info: Some(*info),
            enqueued_ps: at_ps,
            ..Op::default()
        };
    }

    fn step(&mut self, op: FlashOpId, step: OpStep, at_ps: u64) {
        let op = place(&mut self.ops, op, Op::default());
        match step {
            OpStep::Started => op.started_ps = at_ps,
            OpStep::Loaded => op.loaded_ps = at_ps,
            OpStep::Array if op.array_ps == 0 => op.array_ps = at_ps,
            OpStep::Array => op.suspended_ps += at_ps - op.suspending_ps,
            OpStep::Suspending => op.suspending_ps = at_ps,
            OpStep::ArrayDone => op.array_done_ps = at_ps,
            OpStep::Transfer => op.transfer_ps = at_ps,
            OpStep::Transferred => op.transferred_ps = at_ps,
            OpStep::Again => {
                op.failed.push(op.last_try(at_ps));
                if let (Some(events), Some(info)) = (&mut self.events, &op.info) {
                    events.op(info, &op.times());
                }
            }
        }
    }

    fn op_done(&mut self, op: FlashOpId, _: u64) {
        let op = self.operation(op).clone();
        if let (Some(events), Some(info)) = (&mut self.events, &op.info) {
            events.op(info, &op.times());
        }
        self.ended = Some(op);
    }

    fn adopt(&mut self, command: CommandId, at_ps: u64) {
        if let Some(op) = &self.ended {
            follow(place(&mut self.requests, command, NOTHING), op, at_ps);
        }
    }

    fn settled(&mut self, command: CommandId, at_ps: u64, unloaded_ps: u64, arrives_ps: u64) {
        let request = place(&mut self.requests, command, NOTHING);
        match &self.ended {
            Some(op) => follow(request, op, at_ps),
            None => {
                if request.info.op == "read" {
                    request.mark(Part::MapFlash, request.asked_ps.min(at_ps));
                }
                request.mark(Part::Memory, at_ps);
            }
        }
        let alone_ps = unloaded_ps + request.wire_ps;
        let wait_ps = (arrives_ps - at_ps).saturating_sub(alone_ps);
        request.mark(Part::LinkWait, at_ps + wait_ps);
        request.mark(Part::Link, arrives_ps);
    }

    fn completed(&mut self, command: CommandId, at_ps: u64, ends_request: bool) {
        let request = self.request(command);
        request.mark(Part::Completion, at_ps);
        request.active = false;
        let (parts_ps, info, start_ps) = (request.parts_ps, request.info, request.start_ps);
        let slices = request.slices.take();
        if ends_request {
            self.done.push_back(parts_ps);
        }
        if let (Some(events), Some(slices)) = (&mut self.events, slices) {
            events.request(command, &info, start_ps, &slices, at_ps);
        }
    }

    fn victim(&mut self, superblock: Superblock, cause: &'static str, valid: u32, at_ps: u64) {
        if let Some(events) = &mut self.events {
            events.victim(superblock, cause, valid, at_ps);
        }
    }

    fn erased(&mut self, superblock: Superblock, at_ps: u64) {
        if let Some(events) = &mut self.events {
            events.erased(superblock, at_ps);
        }
    }

    fn next_parts(&mut self) -> Option<PartsPs> {
        self.done.pop_front()
    }
}
