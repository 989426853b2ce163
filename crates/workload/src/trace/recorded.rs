//! How long requests took when a trace was recorded: what a simulated drive can be held against.

use super::format::field::Raw;
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

/// A request was given to the drive, or is done.
#[derive(Clone, Copy, Debug)]
struct Event {
    time_ps: u64,
    offset_bytes: u64,
    stream: u16,
    /// What was given to the drive; `None` once it is done.
    given: Option<Op>,
}

impl Event {
    fn place(&self) -> (u16, u64) {
        (self.stream, self.offset_bytes)
    }
}

/// A request of which both are known.
#[derive(Clone, Copy, Debug)]
struct Pair {
    issued_ps: u64,
    offset_bytes: u64,
    latency: Latency,
}

/// Latencies as a file is read.
///
/// Issue and end are put together as they come, until one comes that is earlier than one before it: blktrace keeps a
/// file for each CPU, and where those stand one behind the other an end may stand before its issue. From then on all
/// are kept, and put together in the order of time at the end.
#[derive(Debug, Default)]
pub(super) struct Latencies {
    /// Those that a line says by itself.
    known: Vec<Latency>,
    pairs: Vec<Pair>,
    /// Given to the drive and not done yet, by stream and address.
    under_way: HashMap<(u16, u64), Event>,
    /// Ends without an issue, and issues that another followed: what they belong to may still come.
    alone: Vec<Event>,
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

    /// Given to the drive; again, if the host had to take it back.
    pub(super) fn issued(&mut self, stream: u16, raw: &Raw<'_>, time_ps: u64) {
        if raw.op != Op::Flush {
            self.add(Event {
                time_ps,
                offset_bytes: raw.offset_bytes,
                stream,
                given: Some(raw.op),
            });
        }
    }

    pub(super) fn done(&mut self, stream: u16, offset_bytes: u64, time_ps: u64) {
        self.add(Event {
            time_ps,
            offset_bytes,
            stream,
            given: None,
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
        if event.given.is_some() {
            let before = self.under_way.insert(event.place(), event);
            self.alone.extend(before);
            return;
        }
        let Some(issue) = self.under_way.remove(&event.place()) else {
            return self.alone.push(event);
        };
        let took_ps = event.time_ps - issue.time_ps;
        let latency = issue
            .given
            .and_then(|op| latency(event.stream, op, took_ps));
        self.pairs.extend(latency.map(|latency| Pair {
            issued_ps: issue.time_ps,
            offset_bytes: issue.offset_bytes,
            latency,
        }));
    }

    /// All events that were put together or wait for it.
    fn take_apart(&mut self) -> Vec<Event> {
        let mut events = std::mem::take(&mut self.alone);
        events.extend(std::mem::take(&mut self.under_way).into_values());
        for pair in std::mem::take(&mut self.pairs) {
            let issue = Event {
                time_ps: pair.issued_ps,
                offset_bytes: pair.offset_bytes,
                stream: pair.latency.stream() as u16,
                given: Some(pair.latency.op()),
            };
            let end = Event {
                time_ps: pair.issued_ps + pair.latency.ns() * NS,
                given: None,
                ..issue
            };
            events.extend([issue, end]);
        }
        events
    }

    /// Those of the streams that are wanted, if any.
    pub(super) fn finish(&mut self, wanted: &[bool]) -> Option<Box<Recorded>> {
        let mut events = self.out_of_order.take().unwrap_or_default();
        // Of equal times the end comes first: what follows it at once is another request.
        events.sort_unstable_by_key(|event| (event.time_ps, event.given.is_some(), event.place()));
        for event in events {
            self.put_together(event);
        }
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

/// `None` for operations that have none.
fn latency(stream: u16, op: Op, took_ps: u64) -> Option<Latency> {
    let op = OPS.iter().position(|known| *known == op)?;
    Some(Latency::new(took_ps / NS, op, stream))
}
