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

/// Latencies as a file is read, and requests that are not done yet.
#[derive(Debug, Default)]
pub(super) struct Latencies {
    known: Vec<Latency>,
    /// When and what was given to the drive, by stream and address.
    under_way: HashMap<(u16, u64), (u64, Op)>,
}

impl Latencies {
    pub(super) fn took(&mut self, stream: u16, op: Op, took_ps: u64) {
        if let Some(op) = OPS.iter().position(|known| *known == op) {
            self.known.push(Latency::new(took_ps / NS, op, stream));
        }
    }

    /// Given to the drive; again, if the host had to take it back.
    pub(super) fn issued(&mut self, stream: u16, raw: &Raw<'_>, time_ps: u64) {
        if raw.op != Op::Flush {
            let place = (stream, raw.offset_bytes);
            self.under_way.insert(place, (time_ps, raw.op));
        }
    }

    pub(super) fn done(&mut self, stream: u16, offset_bytes: u64, time_ps: u64) {
        if let Some((issued_ps, op)) = self.under_way.remove(&(stream, offset_bytes))
            && let Some(took_ps) = time_ps.checked_sub(issued_ps)
        {
            self.took(stream, op, took_ps);
        }
    }

    /// Those of the streams that are wanted, if any.
    pub(super) fn finish(&mut self, wanted: &[bool]) -> Option<Box<Recorded>> {
        let known = std::mem::take(&mut self.known).into_iter();
        let mut recorded: Option<Box<Recorded>> = None;
        for latency in known.filter(|latency| wanted[latency.stream()]) {
            let recorded = recorded.get_or_insert_default();
            let histogram = match latency.op() {
                Op::Write => &mut recorded.write,
                Op::Trim => &mut recorded.trim,
                Op::Read | Op::Flush => &mut recorded.read,
            };
            histogram.record(latency.ns());
        }
        recorded
    }
}
