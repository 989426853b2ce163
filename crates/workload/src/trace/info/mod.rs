//! What is in a trace: operations, sizes, addresses and times, as data and as text.

mod footprint;
mod text;

use super::{Trace, has_address};
use footprint::Footprint;
use lodger_core::time::{MS, S};
use lodger_core::{Histogram, Op};
use serde::Serialize;
use std::collections::HashMap;

/// Unit of the footprint: the mapping unit of nearly every drive.
pub const PAGE_BYTES: u64 = 4096;

/// Sizes named in [`Info::sizes`].
const SIZES_SHOWN: usize = 10;

/// Sizes told apart before the rest is counted together.
const SIZES_MAX: usize = 65_536;

/// Streams followed in telling sequential requests: more than programs usually interleave.
const STREAMS: usize = 16;

/// What is in a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Info {
    /// The file's name.
    pub name: String,
    /// All requests, flushes and trims among them.
    pub requests: u64,
    /// Reads.
    pub read: OpInfo,
    /// Writes.
    pub write: OpInfo,
    /// Trims (discards).
    pub trim: OpInfo,
    /// Flushes.
    pub flushes: u64,
    /// Writes with Force Unit Access.
    pub fua_writes: u64,
    /// Share of reads and writes that do not begin and end on a multiple of 4 KiB, 0 to 1.
    pub unaligned_4k_share: f64,
    /// Share of requests with an address that do not begin and end on a multiple of 512 B, 0 to 1.
    pub unaligned_512_share: f64,
    /// The most frequent sizes of reads and writes.
    pub sizes: Vec<SizeCount>,
    /// Lowest address of a read, write or trim, bytes.
    pub first_byte: u64,
    /// First byte after the highest address.
    pub end_byte: u64,
    /// Bytes of distinct 4 KiB pages that reads and writes touch.
    pub footprint_bytes: u64,
    /// Whether the footprint was too large to be counted to the end.
    pub footprint_is_lower_bound: bool,
    /// From the first request to the last, picoseconds.
    pub duration_ps: u64,
    /// Requests per second over the whole duration; 0 if all arrive at once.
    pub mean_rate_per_s: f64,
    /// Requests per second in the busiest window.
    pub peak_rate_per_s: f64,
    /// Length of that window, picoseconds: 1 s in traces of 10 s or more, otherwise 1 ms.
    pub peak_window_ps: u64,
    /// Time between one request and the next.
    pub interarrival: Interarrival,
    /// How long requests took when they were recorded, if the file says.
    pub recorded: Option<RecordedInfo>,
}

/// How long requests took when they were recorded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RecordedInfo {
    /// Reads.
    pub read: LatencyInfo,
    /// Writes.
    pub write: LatencyInfo,
}

/// Recorded latencies, nanoseconds; all 0 where there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LatencyInfo {
    /// How many are known.
    pub requests: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Half are no longer.
    pub p50_ns: u64,
    /// 99 in 100 are no longer.
    pub p99_ns: u64,
    /// 999 in 1000 are no longer.
    pub p99_9_ns: u64,
    /// Longest.
    pub max_ns: u64,
}

impl LatencyInfo {
    fn of(latencies: &Histogram) -> Self {
        if latencies.count() == 0 {
            return Self::default();
        }
        Self {
            requests: latencies.count(),
            mean_ns: latencies.mean_ns(),
            p50_ns: latencies.percentile_ns(50.0),
            p99_ns: latencies.percentile_ns(99.0),
            p99_9_ns: latencies.percentile_ns(99.9),
            max_ns: latencies.max_ns(),
        }
    }
}

/// Requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct OpInfo {
    /// How many.
    pub requests: u64,
    /// Their bytes together.
    pub bytes: u64,
    /// Share that begins where one of the 16 requests of the same kind before it ended, 0 to 1.
    pub sequential_share: f64,
}

/// How often a size occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SizeCount {
    /// The size.
    pub length_bytes: u64,
    /// Reads of it.
    pub reads: u64,
    /// Writes of it.
    pub writes: u64,
}

/// Times between one request and the next, picoseconds. The quickest check of a unit of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Interarrival {
    /// Shortest.
    pub min_ps: u64,
    /// 10 in 100 are no longer.
    pub p10_ps: u64,
    /// Half are no longer.
    pub p50_ps: u64,
    /// 90 in 100 are no longer.
    pub p90_ps: u64,
    /// 99 in 100 are no longer.
    pub p99_ps: u64,
    /// Longest.
    pub max_ps: u64,
}

/// Describes a trace.
#[must_use]
pub fn info(trace: &Trace) -> Info {
    let mut counts = Counts::new();
    for record in trace.records() {
        counts.add(&record);
    }
    let peak_window_ps = if trace.duration_ps() >= 10 * S { S } else { MS };
    let blocks = counts.read.requests + counts.write.requests;
    let duration_ps = trace.duration_ps();
    let requests = trace.len() as u64;
    let per_s = |n: u64, ps: u64| {
        if ps == 0 {
            0.0
        } else {
            n as f64 * S as f64 / ps as f64
        }
    };
    Info {
        name: trace.name().to_owned(),
        requests,
        read: counts.read.finish(),
        write: counts.write.finish(),
        trim: counts.trim.finish(),
        flushes: counts.flushes,
        fua_writes: counts.fua_writes,
        unaligned_4k_share: share(counts.unaligned_4k, blocks),
        unaligned_512_share: share(counts.unaligned_512, blocks + counts.trim.requests),
        first_byte: counts.first_byte.unwrap_or(0),
        end_byte: trace.end_bytes(),
        footprint_bytes: counts.footprint.pages().saturating_mul(PAGE_BYTES),
        footprint_is_lower_bound: counts.footprint.is_lower_bound(),
        sizes: counts.sizes(),
        duration_ps,
        mean_rate_per_s: per_s(requests.saturating_sub(1), duration_ps),
        peak_rate_per_s: per_s(peak(trace, peak_window_ps), peak_window_ps),
        peak_window_ps,
        recorded: trace.recorded().map(|all| RecordedInfo {
            read: LatencyInfo::of(&all.read),
            write: LatencyInfo::of(&all.write),
        }),
        interarrival: interarrival(trace),
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Requests of one kind while they are counted.
struct OpCounts {
    requests: u64,
    bytes: u64,
    sequential: u64,
    /// Where the last requests of the kind ended, oldest overwritten first.
    ends: [u64; STREAMS],
    oldest: usize,
}

impl OpCounts {
    fn new() -> Self {
        Self {
            requests: 0,
            bytes: 0,
            sequential: 0,
            // No request can begin here, as it would end beyond 2^64.
            ends: [u64::MAX; STREAMS],
            oldest: 0,
        }
    }

    fn add(&mut self, offset_bytes: u64, length_bytes: u64) {
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(length_bytes);
        let end = offset_bytes.saturating_add(length_bytes);
        // A stream that goes on keeps its place; a new one takes the oldest.
        let at = match self.ends.iter().position(|&end| end == offset_bytes) {
            Some(at) => {
                self.sequential += 1;
                at
            }
            None => {
                self.oldest = (self.oldest + 1) % STREAMS;
                self.oldest
            }
        };
        self.ends[at] = end;
    }

    fn finish(&self) -> OpInfo {
        OpInfo {
            requests: self.requests,
            bytes: self.bytes,
            sequential_share: share(self.sequential, self.requests),
        }
    }
}

/// Everything that one pass over the requests can count.
struct Counts {
    read: OpCounts,
    write: OpCounts,
    trim: OpCounts,
    flushes: u64,
    fua_writes: u64,
    unaligned_4k: u64,
    unaligned_512: u64,
    /// Reads and writes by size.
    by_size: HashMap<u64, (u64, u64)>,
    first_byte: Option<u64>,
    footprint: Footprint,
}

impl Counts {
    fn new() -> Self {
        Self {
            read: OpCounts::new(),
            write: OpCounts::new(),
            trim: OpCounts::new(),
            flushes: 0,
            fua_writes: 0,
            unaligned_4k: 0,
            unaligned_512: 0,
            by_size: HashMap::new(),
            first_byte: None,
            footprint: Footprint::new(),
        }
    }

    fn add(&mut self, record: &super::Record) {
        let (offset, length) = (record.offset_bytes, record.length_bytes);
        match record.op {
            Op::Read => self.read.add(offset, length),
            Op::Write => self.write.add(offset, length),
            Op::Trim => self.trim.add(offset, length),
            Op::Flush => self.flushes += 1,
        }
        if !has_address(record.op) {
            return;
        }
        self.first_byte = Some(self.first_byte.map_or(offset, |first| first.min(offset)));
        self.unaligned_512 += u64::from((offset | length) % 512 != 0);
        if record.op == Op::Trim {
            return;
        }
        self.fua_writes += u64::from(record.fua);
        self.unaligned_4k += u64::from((offset | length) % PAGE_BYTES != 0);
        self.footprint.add(offset, length);
        if self.by_size.len() < SIZES_MAX || self.by_size.contains_key(&length) {
            let (reads, writes) = self.by_size.entry(length).or_default();
            *reads += u64::from(record.op == Op::Read);
            *writes += u64::from(record.op == Op::Write);
        }
    }

    fn sizes(&self) -> Vec<SizeCount> {
        let mut sizes: Vec<SizeCount> = self
            .by_size
            .iter()
            .map(|(&length_bytes, &(reads, writes))| SizeCount {
                length_bytes,
                reads,
                writes,
            })
            .collect();
        // The size decides between equals, so that the order does not depend on the hash.
        sizes.sort_by_key(|size| {
            let often = std::cmp::Reverse(size.reads + size.writes);
            (often, size.length_bytes)
        });
        sizes.truncate(SIZES_SHOWN);
        sizes
    }
}

/// Most requests in one of the windows that follow each other from the first request on.
fn peak(trace: &Trace, window_ps: u64) -> u64 {
    let (mut window, mut in_window, mut most) = (0, 0, 0);
    for packed in &trace.records {
        let of = packed.time_ps / window_ps;
        if of != window {
            (window, in_window) = (of, 0);
        }
        in_window += 1;
        most = most.max(in_window);
    }
    most
}

fn interarrival(trace: &Trace) -> Interarrival {
    let mut gaps: Vec<u64> = trace
        .records
        .windows(2)
        .map(|pair| pair[1].time_ps - pair[0].time_ps)
        .collect();
    gaps.sort_unstable();
    let Some(last) = gaps.len().checked_sub(1) else {
        return Interarrival::default();
    };
    // Nearest rank: the smallest gap that is not exceeded by this many in 100.
    let at = |percent: usize| gaps[(gaps.len() * percent).div_ceil(100).max(1) - 1];
    Interarrival {
        min_ps: gaps[0],
        p10_ps: at(10),
        p50_ps: at(50),
        p90_ps: at(90),
        p99_ps: at(99),
        max_ps: gaps[last],
    }
}
