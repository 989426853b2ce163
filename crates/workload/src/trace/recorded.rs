//! How long requests took when a trace was recorded: what a simulated drive can be held against.

use super::format::field::{Done, Raw, SECTOR_BYTES};
use lodger_core::time::NS;
use lodger_core::{Histogram, Op};
use std::collections::HashMap;

/// Latencies of the requests of a trace, as its file has them: from the host's request or its issue to the drive until
/// it was done.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// Of reads.
    pub read: Histogram,
    /// Of writes.
    pub write: Histogram,
    /// Of trims.
    pub trim: Histogram,
}

/// Operations by the number that [`Latency`] has for them. Those of flushes are not counted.
const OPS: [Op; 4] = [Op::Read, Op::Write, Op::Trim, Op::Flush];

/// One latency in 8 bytes: nanoseconds (46 bits, 19 hours), operation (2), stream (16).
#[derive(Clone, Copy, Debug)]
struct Latency(u64);

impl Latency {
    const NS_MAX: u64 = (1 << 46) - 1;

    fn new(stream: u16, op: Op, took_ps: u64) -> Self {
        let ns = (took_ps / NS).min(Self::NS_MAX);
        let op = OPS.iter().position(|known| *known == op).unwrap_or(0);
        Latency(ns << 18 | (op as u64) << 16 | u64::from(stream))
    }

    fn ns(self) -> u64 {
        self.0 >> 18
    }

    fn op(self) -> Op {
        OPS[(self.0 >> 16 & 3) as usize]
    }

    fn stream(self) -> usize {
        (self.0 & 0xffff) as usize
    }
}

/// What happened to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// All of it is done, or the first part of what was left.
    Done,
    /// The host took it back, to give it to the drive again.
    TakenBack,
    /// It was given to the drive, perhaps behind a flush of its own.
    Issued { preflush: bool },
    /// What happened meanwhile, to whatever requests, was lost.
    Lost,
}

/// Of which request is told by its place and operation: the kernel names no other.
#[derive(Clone, Copy, Debug)]
struct Event {
    time_ps: u64,
    offset_bytes: u64,
    sectors: u32,
    /// Which of the trace's requests was issued, if it is one of them.
    record: u32,
    /// The how many-th it is of all that are put in order.
    number: u32,
    stream: u16,
    what: What,
    op: Op,
}

/// The place of flushes, which have no address: no request begins there.
pub(super) const FLUSH_AT: u64 = u64::MAX;

/// What is no request of the trace, or is more than can be counted here.
pub(super) const NO_RECORD: u32 = u32::MAX;

/// Stream, operation, address.
type Place = (u16, u8, u64);

impl Event {
    fn place(&self) -> Place {
        (self.stream, self.op as u8, self.offset_bytes)
    }

    fn is_issue(&self) -> bool {
        matches!(self.what, What::Issued { .. })
    }

    fn has_preflush(&self) -> bool {
        self.what == What::Issued { preflush: true }
    }
}

/// A request that was given to the drive and is not done yet, as a whole.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    /// As it was issued first.
    issue: Event,
    /// What of it is done.
    done_sectors: u32,
    /// When that was.
    done_ps: u64,
    /// It was taken back, and not given to the drive again: how often events had been lost by then.
    taken_back: Option<u32>,
    /// There is more to it than its issue and its end: all that happened to it is in the history.
    has_history: bool,
}

impl UnderWay {
    fn left(&self) -> u32 {
        self.issue.sectors - self.done_sectors
    }

    /// Whether this issue of its place is one of the same request again. What was lost since it was taken back may have
    /// been its end.
    fn is_issued_again(&self, event: &Event, losses: u32) -> bool {
        self.taken_back == Some(losses)
            && event.sectors >= self.left()
            && event.has_preflush() == self.issue.has_preflush()
    }

    /// Whether it is what was taken back at its place, and no other that was never begun.
    fn is_taken_back_by(&self, event: &Event) -> bool {
        event.sectors == 0 || event.sectors == self.left()
    }
}

/// A request of which both are known.
#[derive(Clone, Copy, Debug)]
struct Pair {
    issued_ps: u64,
    offset_bytes: u64,
    latency: Latency,
    sectors: u32,
    record: u32,
}

/// A request that was issued again after it had been taken back: the same, and no other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Again {
    pub(super) record: u32,
    pub(super) stream: u16,
    /// What of it has been issued before: it may have grown by a merge meanwhile.
    pub(super) bytes: u64,
    /// So has the flush before it.
    pub(super) preflush: bool,
}

/// Latencies as a file is read.
///
/// Issue and end are put together as they come, until one comes that is earlier than one before it: blktrace keeps a
/// file for each CPU, and where those stand one behind the other an end may stand before its issue. From then on all
/// are kept, and put together in the order of time at the end.
///
/// A request that is taken back (the drive had no room for it) and issued again is one, from its first issue on; one whose
/// parts end one after the other ends with the last. What happened to such a one is kept as it is: put together anew, it may
/// be another's.
#[derive(Debug, Default)]
pub(super) struct Latencies {
    /// What comes out of order is refused: nothing is kept for that.
    in_order_only: bool,
    /// Those that a line says by itself.
    known: Vec<Latency>,
    pairs: Vec<Pair>,
    /// Latencies of requests in the history.
    of_history: Vec<Latency>,
    /// All events of requests that were taken back, ended in parts or have a flush before them, and what was lost.
    history: Vec<Event>,
    /// Given to the drive and not done yet, by the place of what is left.
    under_way: HashMap<Place, UnderWay>,
    /// How often events were lost.
    losses: u32,
    /// Ends without an issue, and issues that another followed: what they belong to may still come.
    alone: Vec<Event>,
    /// Issued once more, and not told yet.
    again: Vec<Again>,
    /// The time of the last event, and the latest of all.
    last_ps: u64,
    latest_ps: u64,
    /// Everything so far, once something was out of order.
    out_of_order: Option<Vec<Event>>,
    /// What was counted before the end.
    counted: Option<Box<Recorded>>,
}

impl Latencies {
    pub(super) fn new(in_order_only: bool) -> Self {
        Latencies {
            in_order_only,
            ..Latencies::default()
        }
    }

    pub(super) fn took(&mut self, stream: u16, op: Op, took_ps: u64) {
        self.known.push(Latency::new(stream, op, took_ps));
    }

    /// Given to the drive.
    pub(super) fn issued(&mut self, stream: u16, raw: &Raw<'_>, record: u32, time_ps: u64) {
        self.add(Event {
            time_ps,
            offset_bytes: place_of(raw.op, raw.offset_bytes),
            sectors: sectors(raw.length_bytes),
            record,
            number: 0,
            stream,
            what: What::Issued {
                preflush: raw.preflush,
            },
            op: raw.op,
        });
    }

    /// All of it, or a part of it, is done, or it was taken back.
    pub(super) fn done(&mut self, stream: u16, done: &Done<'_>, time_ps: u64) {
        self.add(Event {
            time_ps,
            offset_bytes: place_of(done.op, done.offset_bytes),
            sectors: sectors(done.length_bytes),
            record: NO_RECORD,
            number: 0,
            stream,
            what: match done.is_taken_back {
                true => What::TakenBack,
                false => What::Done,
            },
            op: done.op,
        });
    }

    /// Events were lost here.
    pub(super) fn lost(&mut self) {
        self.add(Event {
            time_ps: self.last_ps,
            offset_bytes: FLUSH_AT,
            sectors: 0,
            record: NO_RECORD,
            number: 0,
            // No stream's.
            stream: u16::MAX,
            what: What::Lost,
            op: Op::Flush,
        });
    }

    fn add(&mut self, event: Event) {
        if event.time_ps < self.latest_ps && self.out_of_order.is_none() {
            self.out_of_order = Some(self.take_apart());
        }
        self.last_ps = event.time_ps;
        self.latest_ps = self.latest_ps.max(event.time_ps);
        match &mut self.out_of_order {
            Some(events) => events.push(event),
            None => self.put_together(event),
        }
    }

    fn put_together(&mut self, event: Event) {
        match event.what {
            What::Issued { .. } => self.begin(event),
            What::TakenBack => self.take_back(event),
            What::Done => self.end(event),
            What::Lost => {
                self.losses = self.losses.wrapping_add(1);
                self.keep_history([event]);
            }
        }
    }

    fn begin(&mut self, event: Event) {
        let is_again = |request: &&mut UnderWay| request.is_issued_again(&event, self.losses);
        let known = self.under_way.get_mut(&event.place());
        if let Some(request) = known.filter(is_again) {
            let known = request.left();
            let more = event.sectors - known;
            self.again.push(Again {
                record: event.record,
                stream: event.stream,
                bytes: u64::from(known) * SECTOR_BYTES,
                preflush: event.has_preflush(),
            });
            request.taken_back = None;
            request.issue.sectors = request.issue.sectors.saturating_add(more);
            return self.keep_history([event]);
        }
        let has_history = event.has_preflush();
        self.keep_history(has_history.then_some(event));
        let request = UnderWay {
            issue: event,
            done_sectors: 0,
            done_ps: 0,
            taken_back: None,
            has_history,
        };
        self.wait_for_end(event.place(), request);
    }

    fn take_back(&mut self, event: Event) {
        let known = self.under_way.get_mut(&event.place());
        // Some drivers take back what they have not begun: that was never issued.
        let Some(request) = known.filter(|request| request.is_taken_back_by(&event)) else {
            return self.leave_alone(event);
        };
        request.taken_back = Some(self.losses);
        let first = (!request.has_history).then_some(request.issue);
        request.has_history = true;
        self.keep_history(first.into_iter().chain([event]));
    }

    fn wait_for_end(&mut self, place: Place, request: UnderWay) {
        if let Some(before) = self.under_way.insert(place, request) {
            self.leave(before);
        }
    }

    fn end(&mut self, event: Event) {
        let Some(mut request) = self.under_way.remove(&event.place()) else {
            return self.leave_alone(event);
        };
        let is_whole = event.sectors == 0 || event.sectors >= request.left();
        request.done_ps = event.time_ps;
        if !is_whole || request.has_history {
            let first = (!request.has_history).then_some(request.issue);
            request.has_history = true;
            self.keep_history(first.into_iter().chain([event]));
        }
        if is_whole {
            return self.pair(&request);
        }
        request.done_sectors += event.sectors;
        request.taken_back = None;
        let (stream, op, offset_bytes) = event.place();
        let rest = offset_bytes.saturating_add(u64::from(event.sectors) * SECTOR_BYTES);
        self.wait_for_end((stream, op, rest), request);
    }

    /// Of a request whose end does not come: the last of its parts that was seen ended it, if any was.
    fn leave(&mut self, request: UnderWay) {
        match request.done_sectors {
            0 if request.has_history => {}
            0 => self.leave_alone(request.issue),
            _ => self.pair(&request),
        }
    }

    fn leave_alone(&mut self, event: Event) {
        if !self.in_order_only {
            self.alone.push(event);
        }
    }

    fn keep_history(&mut self, events: impl IntoIterator<Item = Event>) {
        if !self.in_order_only {
            self.history.extend(events);
        }
    }

    fn pair(&mut self, request: &UnderWay) {
        let issue = &request.issue;
        let latency = Latency::new(issue.stream, issue.op, request.done_ps - issue.time_ps);
        if request.has_history {
            return self.of_history.push(latency);
        }
        self.pairs.push(Pair {
            issued_ps: issue.time_ps,
            offset_bytes: issue.offset_bytes,
            latency,
            sectors: issue.sectors,
            record: issue.record,
        });
    }

    /// All events that were put together or wait for it, as if none had been.
    fn take_apart(&mut self) -> Vec<Event> {
        let mut events = std::mem::take(&mut self.alone);
        self.of_history.clear();
        self.again.clear();
        for pair in std::mem::take(&mut self.pairs) {
            let issue = Event {
                time_ps: pair.issued_ps,
                offset_bytes: pair.offset_bytes,
                sectors: pair.sectors,
                record: pair.record,
                number: 0,
                stream: pair.latency.stream() as u16,
                what: What::Issued { preflush: false },
                op: pair.latency.op(),
            };
            let end = Event {
                time_ps: pair.issued_ps + pair.latency.ns() * NS,
                what: What::Done,
                ..issue
            };
            events.extend([issue, end]);
        }
        events.append(&mut self.history);
        let under_way = std::mem::take(&mut self.under_way).into_values();
        let plain = under_way.filter(|request| !request.has_history);
        events.extend(plain.map(|request| request.issue));
        events
    }

    /// Puts together what is left once all has been read.
    pub(super) fn settle(&mut self) {
        // Nothing comes any more that could be out of order.
        self.in_order_only = true;
        let mut events = self.out_of_order.take().unwrap_or_default();
        for (event, number) in events.iter_mut().zip(0..) {
            event.number = number;
        }
        events.sort_unstable_by_key(|e| (e.time_ps, e.place(), e.number));
        for at_once in events.chunk_by(|a, b| (a.time_ps, a.place()) == (b.time_ps, b.place())) {
            self.put_together_at_once(at_once);
        }
        for (_, request) in std::mem::take(&mut self.under_way) {
            self.leave(request);
        }
    }

    /// Events of one place and one moment, in the order in which they were read: files of CPUs may stand in any order, so what
    /// was issued before ends or is taken back before another is issued there.
    fn put_together_at_once(&mut self, events: &[Event]) {
        let mut issues = events.iter().filter(|e| e.is_issue()).peekable();
        let mut others = events.iter().filter(|e| !e.is_issue()).peekable();
        while let (Some(issue), Some(other)) = (issues.peek(), others.peek()) {
            let request = self.under_way.get(&issue.place());
            let waits = request.is_some_and(|request| request.taken_back.is_none());
            let is_first = other.what == What::TakenBack || issue.number < other.number;
            let next = match !waits && is_first {
                true => issues.next(),
                false => others.next(),
            };
            next.into_iter().for_each(|event| self.put_together(*event));
        }
        for event in issues.chain(others) {
            self.put_together(*event);
        }
    }

    /// What was issued again since this was asked last.
    pub(super) fn issued_again(&mut self) -> Vec<Again> {
        std::mem::take(&mut self.again)
    }

    /// Those of the streams that are wanted, if any.
    pub(super) fn finish(&mut self, wanted: &[bool]) -> Option<Box<Recorded>> {
        self.count(|stream| wanted[stream]);
        self.counted.take()
    }

    /// Whether nothing was earlier than something before it.
    #[inline]
    pub(super) fn are_in_order(&self) -> bool {
        self.out_of_order.is_none()
    }

    /// Counts what is known so far, where all of it is wanted and what comes out of order is refused: nothing of it is kept then.
    pub(super) fn count_in_order(&mut self) {
        debug_assert!(
            self.are_in_order(),
            "what is counted cannot be put together anew"
        );
        self.count(|_| true);
    }

    fn count(&mut self, is_wanted: impl Fn(usize) -> bool) {
        let pairs = self.pairs.drain(..).map(|pair| pair.latency);
        let all = self.known.drain(..).chain(pairs);
        let all = all.chain(self.of_history.drain(..));
        for latency in all.filter(|latency| is_wanted(latency.stream())) {
            if latency.op() == Op::Flush {
                continue;
            }
            let recorded = self.counted.get_or_insert_default();
            let histogram = match latency.op() {
                Op::Write => &mut recorded.write,
                Op::Trim => &mut recorded.trim,
                Op::Read | Op::Flush => &mut recorded.read,
            };
            histogram.record(latency.ns());
        }
    }
}

fn place_of(op: Op, offset_bytes: u64) -> u64 {
    match op {
        Op::Flush => FLUSH_AT,
        _ => offset_bytes,
    }
}

/// Whole sectors, which is what the formats that tell issue and end apart count in.
fn sectors(length_bytes: u64) -> u32 {
    u32::try_from(length_bytes / SECTOR_BYTES).unwrap_or(u32::MAX)
}
