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

/// Operations that have latencies, by the number that [`Latency`] has for them.
const OPS: [Op; 3] = [Op::Read, Op::Write, Op::Trim];

/// One latency in 8 bytes: nanoseconds (46 bits, 19 hours), operation (2), stream (16).
#[derive(Clone, Copy, Debug)]
struct Latency(u64);

impl Latency {
    const NS_MAX: u64 = (1 << 46) - 1;

    fn new(ns: u64, op: usize, stream: u16) -> Self {
        Latency(ns.min(Self::NS_MAX) << 18 | (op as u64) << 16 | u64::from(stream))
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// All of it is done, or the first part of what was left.
    Done,
    /// The host took it back, to give it to the drive again.
    TakenBack,
    /// It was given to the drive.
    Issued,
}

/// Of which request is told by its place: the kernel names no other.
#[derive(Clone, Copy, Debug)]
struct Event {
    time_ps: u64,
    offset_bytes: u64,
    sectors: u32,
    /// Which of the trace's requests was issued, if it is one of them.
    record: u32,
    stream: u16,
    what: What,
    op: Op,
}

/// The place of flushes, which have no address: no request begins there.
pub(super) const FLUSH_AT: u64 = u64::MAX;

/// What is no request of the trace, or is more than can be counted here.
pub(super) const NO_RECORD: u32 = u32::MAX;

impl Event {
    fn place(&self) -> (u16, u64) {
        (self.stream, self.offset_bytes)
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
    /// It was taken back, and not given to the drive again.
    is_taken_back: bool,
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
}

/// Latencies as a file is read.
///
/// Issue and end are put together as they come, until one comes that is earlier than one before it: blktrace keeps a
/// file for each CPU, and where those stand one behind the other an end may stand before its issue. From then on all
/// are kept, and put together in the order of time at the end.
///
/// A request that is taken back (the drive had no room for it) and issued again is one, from its first issue on; one whose
/// parts end one after the other ends with the last.
#[derive(Debug, Default)]
pub(super) struct Latencies {
    /// Those that a line says by itself.
    known: Vec<Latency>,
    pairs: Vec<Pair>,
    /// Given to the drive and not done yet, by stream and address of what is left.
    under_way: HashMap<(u16, u64), UnderWay>,
    /// Ends without an issue, and issues that another followed: what they belong to may still come.
    alone: Vec<Event>,
    /// Issued once more, and not told yet.
    again: Vec<Again>,
    latest_ps: u64,
    /// Everything so far, once something was out of order.
    out_of_order: Option<Vec<Event>>,
    /// What was counted before the end.
    counted: Option<Box<Recorded>>,
}

impl Latencies {
    pub(super) fn took(&mut self, stream: u16, op: Op, took_ps: u64) {
        self.known.extend(latency(stream, op, took_ps));
    }

    /// Given to the drive.
    pub(super) fn issued(&mut self, stream: u16, raw: &Raw<'_>, record: u32, time_ps: u64) {
        self.add(Event {
            time_ps,
            offset_bytes: place_of(raw.op, raw.offset_bytes),
            sectors: sectors(raw.length_bytes),
            record,
            stream,
            what: What::Issued,
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
            stream,
            what: match done.is_taken_back {
                true => What::TakenBack,
                false => What::Done,
            },
            op: done.op,
        });
    }

    fn add(&mut self, event: Event) {
        if event.time_ps < self.latest_ps && self.out_of_order.is_none() {
            self.out_of_order = Some(self.take_apart());
        }
        self.latest_ps = self.latest_ps.max(event.time_ps);
        match &mut self.out_of_order {
            Some(events) => events.push(event),
            None => self.put_together(event),
        }
    }

    fn put_together(&mut self, event: Event) {
        match event.what {
            What::Issued => self.begin(event),
            What::TakenBack => match self.under_way.get_mut(&event.place()) {
                Some(request) => request.is_taken_back = true,
                // Some drivers take back what they have not begun: that was never issued.
                None => self.alone.push(event),
            },
            What::Done => self.end(event),
        }
    }

    fn begin(&mut self, event: Event) {
        if let Some(request) = self.under_way.get_mut(&event.place())
            && request.is_taken_back
        {
            request.is_taken_back = false;
            let known = request.issue.sectors - request.done_sectors;
            let more = event.sectors.saturating_sub(known);
            request.issue.sectors = request.issue.sectors.saturating_add(more);
            self.again.push(Again {
                record: event.record,
                stream: event.stream,
                bytes: u64::from(known) * SECTOR_BYTES,
            });
            return;
        }
        self.wait_for_end(
            event.place(),
            UnderWay {
                issue: event,
                done_sectors: 0,
                done_ps: 0,
                is_taken_back: false,
            },
        );
    }

    fn wait_for_end(&mut self, place: (u16, u64), request: UnderWay) {
        if let Some(before) = self.under_way.insert(place, request) {
            self.leave(before);
        }
    }

    fn end(&mut self, event: Event) {
        let Some(mut request) = self.under_way.remove(&event.place()) else {
            return self.alone.push(event);
        };
        let left = request.issue.sectors - request.done_sectors;
        request.done_ps = event.time_ps;
        if event.sectors == 0 || event.sectors >= left {
            return self.pair(&request);
        }
        request.done_sectors += event.sectors;
        request.is_taken_back = false;
        let (stream, offset_bytes) = event.place();
        let rest = offset_bytes.saturating_add(u64::from(event.sectors) * SECTOR_BYTES);
        self.wait_for_end((stream, rest), request);
    }

    /// Of a request whose end does not come: the last of its parts that was seen ended it, if any was.
    fn leave(&mut self, request: UnderWay) {
        match request.done_sectors {
            0 => self.alone.push(request.issue),
            _ => self.pair(&request),
        }
    }

    fn pair(&mut self, request: &UnderWay) {
        let issue = &request.issue;
        let took_ps = request.done_ps - issue.time_ps;
        let latency = latency(issue.stream, issue.op, took_ps);
        self.pairs.extend(latency.map(|latency| Pair {
            issued_ps: issue.time_ps,
            offset_bytes: issue.offset_bytes,
            latency,
            sectors: issue.sectors,
            record: issue.record,
        }));
    }

    /// All events that were put together or wait for it.
    fn take_apart(&mut self) -> Vec<Event> {
        let mut events = std::mem::take(&mut self.alone);
        for request in std::mem::take(&mut self.under_way).into_values() {
            let issue = request.issue;
            let part = Event {
                time_ps: request.done_ps,
                sectors: request.done_sectors,
                what: What::Done,
                ..issue
            };
            let rest = u64::from(request.done_sectors) * SECTOR_BYTES;
            let taken_back = Event {
                time_ps: issue.time_ps.max(request.done_ps),
                offset_bytes: issue.offset_bytes.saturating_add(rest),
                what: What::TakenBack,
                ..issue
            };
            events.push(issue);
            events.extend((request.done_sectors > 0).then_some(part));
            events.extend(request.is_taken_back.then_some(taken_back));
        }
        for pair in std::mem::take(&mut self.pairs) {
            let issue = Event {
                time_ps: pair.issued_ps,
                offset_bytes: pair.offset_bytes,
                sectors: pair.sectors,
                record: pair.record,
                stream: pair.latency.stream() as u16,
                what: What::Issued,
                op: pair.latency.op(),
            };
            let end = Event {
                time_ps: pair.issued_ps + pair.latency.ns() * NS,
                what: What::Done,
                ..issue
            };
            events.extend([issue, end]);
        }
        events
    }

    /// Puts together what is left once all has been read.
    pub(super) fn settle(&mut self) {
        let mut events = self.out_of_order.take().unwrap_or_default();
        // Of equal times the end comes first: what follows it at once is another request.
        events.sort_unstable_by_key(|e| (e.time_ps, e.what, e.place(), e.record));
        for event in events {
            self.put_together(event);
        }
        for (_, request) in std::mem::take(&mut self.under_way) {
            self.leave(request);
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

    /// Counts what is known so far, where all of it is wanted and what comes out of order is refused: nothing of it is kept then,
    /// and what was left alone stays alone.
    pub(super) fn count_in_order(&mut self) {
        debug_assert!(
            self.are_in_order(),
            "what is counted cannot be put together anew"
        );
        self.count(|_| true);
        self.alone.clear();
    }

    fn count(&mut self, is_wanted: impl Fn(usize) -> bool) {
        let pairs = self.pairs.drain(..).map(|pair| pair.latency);
        let all = self.known.drain(..).chain(pairs);
        for latency in all.filter(|latency| is_wanted(latency.stream())) {
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

/// `None` for operations that have none.
fn latency(stream: u16, op: Op, took_ps: u64) -> Option<Latency> {
    let op = OPS.iter().position(|known| *known == op)?;
    Some(Latency::new(took_ps / NS, op, stream))
}
