//! Request size: from which size on is one request no longer served at once?
//!
//! **Method.** Algorithms 1 and 2 of Kim & Kim (PLOS ONE 2020), nearly as printed. Other data is read,
//! then one request of `s` bytes is read, and read again; a drive that keeps what it read saves time
//! until `s` no longer fits. After a flush and a rest one request of `s` bytes is written; where it no
//! longer fits the write buffer it waits for flash. `s` grows from 8 KiB (reads) or 64 KiB (writes) to
//! 2 MiB; change points of the time saved, and of what a write takes beyond a straight line, are the
//! knees, looked at once more in steps of a page. With host memory on and off. `map-cache`,
//! `read-cache` and `write-buffer` answer the same by other methods; where the two disagree, a note
//! says so.
//!
//! **Mended.** The offsets `S_SSD - S - 1` of both listings are one sector off the last that fits, and
//! not aligned. Line 3 of the second one writes `S_CACHE`, which is the first one's, where `S_BUFFER` is
//! meant. Both use offset 0 every time and read or write 512 MB of other data in between: here reads go
//! to a new place each time, and 4 MiB in between are enough to fill what a request of 2 MiB may fit.
//! The map entry of a new place is brought by a read beside it, or the first read would pay for it and
//! the second not. The first write into a full buffer, which the paper times only to compare, is left
//! out. The paper's eye finds the knees; here it is the same statistics as elsewhere.
//!
//! **Cost.** Reads: 2.5 GiB for each state of host memory, 15 s on a drive, most of it rest. Writes:
//! 400 MiB each, destroys data.
//!
//! **Cannot tell** a knee beyond 2 MiB, nor a write buffer below 128 KiB. A request above the largest
//! transfer goes as several commands at once, as Linux sends it: parts that still hit then hide those
//! that do not behind the link, and the knee shows late or not at all. So it does where each page is
//! a hit or a miss for itself, which gives a bend and no jump.

use super::{About, arms, enter};
use crate::bench::{Bench, Stop};
use crate::cost::{Cost, Scale};
use crate::findings::{Findings, Held};
use crate::stats::{self, Estimate};
use crate::target::{Io, Op};
use std::time::Duration;

/// What is said before the reads.
pub const ABOUT: About = About {
    name: "request-size",
    question: "up to which size is one request read again without flash?",
    method: "one request of growing size is read twice, host memory on and off",
    limits: "a knee beyond 2 MiB, or of requests that are cut into several commands",
    writes: false,
    cost,
};

/// What is said before the writes.
pub const ABOUT_WRITES: About = About {
    name: "request-size-write",
    question: "up to which size is one request written without waiting for flash?",
    method: "one request of growing size is written to a rested drive, host memory on and off",
    limits: "a knee below 128 KiB or beyond 2 MiB, or of requests that are cut into several commands",
    writes: true,
    cost: cost_of_writes,
};

fn cost(scale: &Scale) -> Cost {
    let read_bytes = u64::from(scale.states) * (5 << 29);
    Cost {
        read_bytes,
        ..Cost::reads(read_bytes / scale.page_bytes / 16, scale)
    }
    .resting(Duration::from_secs(7) * scale.states)
}

fn cost_of_writes(scale: &Scale) -> Cost {
    Cost::default()
        .resting(Duration::from_secs(7) * scale.states)
        .writing(u64::from(scale.states) * (400 << 20))
}

/// Sizes as in the paper: `S_MIN` of reads and of writes, `S_MAX`.
const READ_MIN: u64 = 8 << 10;
const WRITE_MIN: u64 = 64 << 10;
const SIZE_MAX: u64 = 2 << 20;
/// Steps below and above [`DENSE`].
const STEPS: [u64; 2] = [8 << 10, 32 << 10];
const DENSE: u64 = 128 << 10;
/// Requests of each size.
const TIMES: usize = 5;
/// Other data in between, bytes.
const OTHER_BYTES: u64 = 2 * SIZE_MAX;
/// A new place starts at a multiple of this: few map entries are in play.
const PLACE: u64 = 4 << 20;
/// For large units of the map to be completed, and for the buffer to come to rest.
const REST: Duration = Duration::from_millis(20);
/// A knee loses this share of the time saved.
const LOST: f64 = 0.4;
/// A read again that saves less than this share of the first one saves nothing.
const SAVED_MIN: f64 = 0.1;
/// A write that takes longer than a straight line by this factor's logarithm has waited.
const WAITED: f64 = 0.1;
/// Sizes that make a line, at least.
const LINE_MIN: usize = 4;

/// Reads, and reads again.
pub fn run(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Stop> {
    for (name, state) in arms(bench) {
        enter(bench, state)?;
        let mut sweep = Sweep::default();
        sweep.measure(bench, Op::Read, &coarse(bench, READ_MIN))?;
        if let Some(at) = knee_of_reads(&sweep) {
            sweep.measure(bench, Op::Read, &between(bench, &sweep, at))?;
        }
        let knee = knee_of_reads(&sweep);
        for (kind, of) in [("first", 0), ("again", 1)] {
            sweep.note(
                bench,
                &format!("read request, host memory {name}: {kind}"),
                of,
            );
        }
        keep(findings, "read_again_knee_bytes", name, &sweep, knee);
        compare_reads(bench, findings, name, &sweep, knee);
    }
    Ok(())
}

/// Writes.
pub fn run_writes(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Stop> {
    bench.needs_writing()?;
    if let Some(reason) = &bench.description().no_flush {
        return Err(Stop::Skip(reason.clone()));
    }
    for (name, state) in arms(bench) {
        enter(bench, state)?;
        let mut sweep = Sweep::default();
        sweep.measure(bench, Op::Write, &coarse(bench, WRITE_MIN))?;
        if let Some(at) = knee_of_writes(&sweep) {
            sweep.measure(bench, Op::Write, &between(bench, &sweep, at))?;
        }
        let knee = knee_of_writes(&sweep);
        sweep.note(bench, &format!("write request, host memory {name}"), 0);
        keep(findings, "write_knee_bytes", name, &sweep, knee);
        compare_writes(bench, findings, name, &sweep, knee);
    }
    Ok(())
}

/// Latencies by size.
#[derive(Default)]
struct Sweep {
    /// Size in bytes; medians of the first and, for reads, of the second request, ns.
    points: Vec<(u64, [f64; 2])>,
}

impl Sweep {
    /// Adds sizes.
    fn measure(&mut self, bench: &mut Bench<'_>, op: Op, sizes: &[u64]) -> Result<(), Stop> {
        for &size in sizes {
            let mut taken = [Vec::new(), Vec::new()];
            for _ in 0..TIMES {
                match op {
                    Op::Read => {
                        let start = new_place(bench)?;
                        taken[0].push(request(bench, op, start, size)?);
                        taken[1].push(request(bench, op, start, size)?);
                    }
                    Op::Write => {
                        bench.flush()?;
                        bench.idle(REST)?;
                        let start = bench.capacity() / 2 / PLACE * PLACE;
                        taken[0].push(request(bench, op, start, size)?);
                    }
                }
            }
            let medians = taken.map(|times| stats::median(&times));
            self.points.push((size, medians));
        }
        self.points.sort_unstable_by_key(|point| point.0);
        Ok(())
    }

    fn note(&self, bench: &mut Bench<'_>, series: &str, of: usize) {
        for (size, medians) in &self.points {
            let point = (*size as f64, medians[of] / 1e3);
            bench.note(series, "request size, bytes", "latency, us", point);
        }
    }

    fn size(&self, at: usize) -> u64 {
        self.points[at].0
    }
}

fn coarse(bench: &Bench<'_>, from: u64) -> Vec<u64> {
    let to = SIZE_MAX.min(bench.capacity() / 32);
    let page = bench.page();
    let (mut size, mut sizes) = (from.next_multiple_of(page), Vec::new());
    while size <= to {
        sizes.push(size);
        size += STEPS[usize::from(size >= DENSE)].next_multiple_of(page);
    }
    sizes
}

/// Every page from the last size before the knee to the first one behind it.
fn between(bench: &Bench<'_>, sweep: &Sweep, at: usize) -> Vec<u64> {
    let (from, to) = (sweep.size(at - 1), sweep.size(at));
    let step = bench.page() as usize;
    (from..to).step_by(step).skip(1).collect()
}

/// Reads other data, and brings the map entries of a place that has not been read.
fn new_place(bench: &mut Bench<'_>) -> Result<u64, Stop> {
    let places = (bench.capacity() / PLACE).max(1);
    let other = bench.below(places) * PLACE;
    request(
        bench,
        Op::Read,
        other,
        OTHER_BYTES.min(bench.capacity() - other),
    )?;
    let start = bench.below(places) * PLACE;
    let page = bench.page();
    let beside = (1..=PLACE >> 20).map(|mib| start + (mib << 20) - page);
    let beside: Vec<u64> = beside.filter(|at| at + page <= bench.capacity()).collect();
    bench.read_pages(beside, 1, &mut Vec::new())?;
    bench.idle(REST)?;
    Ok(start)
}

/// One request as an operating system sends it: in as many commands as it takes, all at once. From
/// its start to the end of the last, ns.
fn request(bench: &mut Bench<'_>, op: Op, start: u64, bytes: u64) -> Result<f64, Stop> {
    let page = bench.page();
    let most = u64::from(bench.description().transfer_bytes_max) / page * page;
    let most = most.max(page);
    let parts = (0..bytes).step_by(most as usize).map(|at| Io {
        op,
        offset: start + at,
        bytes: most.min(bytes - at) as u32,
    });
    let parts: Vec<Io> = parts.collect();
    let samples = bench.batch(&parts, parts.len() as u32)?;
    let end = samples.iter().map(|sample| sample.completed_ns()).max();
    Ok(end.unwrap_or(0) as f64)
}

/// Noise of single points: their differences, without the few that are changes.
fn noise(series: &[f64]) -> f64 {
    let differences: Vec<f64> = series.windows(2).map(|pair| pair[1] - pair[0]).collect();
    stats::spread(&differences) / std::f64::consts::SQRT_2
}

/// Where the level of a series changes, and whether all levels from there on satisfy a condition:
/// the first such place.
fn first_change(
    series: &[f64],
    least: f64,
    for_good: impl Fn(usize, f64) -> bool,
) -> Option<usize> {
    let noise = noise(series).max(least);
    let penalty = 3.0 * noise * noise * (series.len() as f64).ln();
    let changes = stats::change_points(series, penalty);
    let end = series.len();
    let ends = changes.iter().skip(1).chain([&end]);
    let levels: Vec<f64> = changes
        .iter()
        .zip(ends)
        .map(|(from, to)| stats::median(&series[*from..*to]))
        .collect();
    let all = |i: usize| levels[i..].iter().all(|level| for_good(changes[i], *level));
    (0..changes.len()).find(|i| all(*i)).map(|i| changes[i])
}

/// The first size whose second read saves much less than those of smaller ones, and all behind it.
fn knee_of_reads(sweep: &Sweep) -> Option<usize> {
    let points = sweep.points.iter();
    let (first, saved): (Vec<f64>, Vec<f64>) = points.map(|(_, [a, b])| (*a, a - b)).unzip();
    first_change(&saved, 1.0, |at, level| {
        let before = stats::median(&saved[..at]);
        before > SAVED_MIN * stats::median(&first[..at]) && level < (1.0 - LOST) * before
    })
}

/// The first size whose write takes longer than a straight line through smaller ones, and all behind
/// it. Which ones are smaller, is found by and by, from few to all.
fn knee_of_writes(sweep: &Sweep) -> Option<usize> {
    let points = sweep.points.iter();
    let points: Vec<(f64, f64)> = points
        .map(|(size, [took, _])| (*size as f64, *took))
        .collect();
    let fractions = [8, 4, 2, 1].map(|part| points.len() / part);
    fractions.into_iter().find_map(|below| {
        let mut below = below.max(LINE_MIN);
        for _ in 0..8 {
            let found = leaves_line(&points, below)?;
            if found == below {
                return Some(found);
            }
            below = found;
        }
        None
    })
}

/// Where all points leave the line through those before `below`.
fn leaves_line(points: &[(f64, f64)], below: usize) -> Option<usize> {
    let line = points.get(..below)?;
    let slope = stats::slope(line);
    let starts: Vec<f64> = line.iter().map(|(s, took)| took - slope * s).collect();
    let start = stats::median(&starts);
    let beyond = |(s, took): &(f64, f64)| (took / (start + slope * s).max(0.1 * took)).ln();
    let beyond: Vec<f64> = points.iter().map(beyond).collect();
    first_change(&beyond, 0.01, |at, level| at >= LINE_MIN && level > WAITED)
}

fn suffixed(base: &str, name: &str) -> String {
    if name == "as found" {
        base.to_owned()
    } else {
        format!("{base}_{name}")
    }
}

/// What fits is the last size before the knee; the first one behind it does not.
fn keep(findings: &mut Findings, base: &str, name: &str, sweep: &Sweep, knee: Option<usize>) {
    if let Some(value) = knee.map(|at| interval(sweep, at)) {
        findings.quantity(&suffixed(base, name), "bytes", value);
    }
}

fn interval(sweep: &Sweep, at: usize) -> Estimate {
    let (fits, fits_not) = (sweep.size(at - 1) as f64, sweep.size(at) as f64);
    // A point at the edge may be on the wrong side by chance.
    Estimate::new(fits, 2.0 * fits - fits_not, fits_not)
}

/// Why the knee of one request need not be where single pages say it is.
fn reason(bench: &Bench<'_>, size: f64, alone: &str) -> String {
    let most = f64::from(bench.description().transfer_bytes_max);
    if size > most {
        return format!(
            "requests above {:.0} KiB go as several commands, and those that still hit hide the others",
            most / 1024.0
        );
    }
    alone.to_owned()
}

fn compare_reads(
    bench: &Bench<'_>,
    findings: &mut Findings,
    name: &str,
    sweep: &Sweep,
    knee: Option<usize>,
) {
    let Some(arm) = findings.roles.read_cache.arms.get(name) else {
        return;
    };
    let found = knee.map(|at| interval(sweep, at));
    let largest = sweep.points.last().map_or(0, |point| point.0) as f64;
    let pages = match arm.bytes {
        Held::UpTo(pages) if pages.high < largest || found.is_some() => Some(pages),
        Held::Nothing => None,
        // Beyond the largest request: as it should be if there is no knee.
        _ if found.is_none() => return,
        _ => None,
    };
    let size = pages.map_or(0.0, |pages| pages.estimate);
    let alone = "perhaps the cache serves pages one by one, so that a request that fits in part is a bend \
                 and no jump; or it does not take in what is read in one piece";
    // What is longer by either count goes in parts.
    let longest = found.map_or(size, |found| found.estimate.max(size));
    let reason = reason(bench, longest, alone);
    note_disagreement(findings, "read again", name, found, pages, &reason);
}

fn compare_writes(
    bench: &Bench<'_>,
    findings: &mut Findings,
    name: &str,
    sweep: &Sweep,
    knee: Option<usize>,
) {
    let Some(arm) = findings.roles.write_buffer.arms.get(name) else {
        return;
    };
    let found = knee.map(|at| interval(sweep, at));
    let largest = sweep.points.last().map_or(0, |point| point.0) as f64;
    let Some(bursts) = arm
        .bytes
        .filter(|bytes| bytes.high < largest || found.is_some())
    else {
        return;
    };
    let alone = "flash takes part of a request while the rest of it arrives";
    let reason = reason(bench, bursts.estimate, alone);
    note_disagreement(findings, "written", name, found, Some(bursts), &reason);
}

fn note_disagreement(
    findings: &mut Findings,
    done: &str,
    name: &str,
    literal: Option<Estimate>,
    other: Option<Estimate>,
    reason: &str,
) {
    let agree = match (literal, other) {
        (None, None) => true,
        (Some(a), Some(b)) => a.overlaps(&b),
        _ => false,
    };
    if agree {
        return;
    }
    let text = |size: Option<Estimate>| {
        size.map_or("no knee".to_owned(), |size| {
            format!("{:.0} KiB", size.estimate / 1024.0)
        })
    };
    findings.notes.push(format!(
        "host memory {name}: requests of growing size, {done}, show {}, the other method {}: {reason}",
        text(literal),
        text(other)
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;

    fn sweep(of: impl Fn(u64) -> [f64; 2]) -> Sweep {
        // What differs from size to size without reason.
        let ripple = |kib: u64| 1.0 + 0.01 * ((kib * 7 % 11) as f64 - 5.0) / 5.0;
        let sizes = (64..=2048).step_by(32);
        let points = sizes.map(|kib| (kib * KIB, of(kib).map(|took| took * ripple(kib))));
        Sweep {
            points: points.collect(),
        }
    }

    #[test]
    fn a_knee_of_reads_is_where_nothing_is_saved_any_more() {
        for knee in [160, 512, 1024] {
            let saved = |kib| if kib <= knee { 80_000.0 } else { 0.0 };
            let link = |kib| 90_000.0 + 300.0 * kib as f64;
            let found = sweep(|kib| [link(kib), link(kib) - saved(kib)]);
            let at = knee_of_reads(&found).expect("a knee");
            assert_eq!(found.size(at - 1), knee * KIB);
        }
        let flat = sweep(|kib| [90_000.0 + 300.0 * kib as f64; 2]);
        assert_eq!(knee_of_reads(&flat), None);
        let all = sweep(|kib| {
            [
                190_000.0 + 300.0 * kib as f64,
                20_000.0 + 300.0 * kib as f64,
            ]
        });
        assert_eq!(knee_of_reads(&all), None);
    }

    #[test]
    fn a_knee_of_writes_is_where_they_leave_their_line() {
        for knee in [256, 960, 1600] {
            let waits = |kib| if kib <= knee { 0.0 } else { 300_000.0 };
            // Behind it the line is steeper as well.
            let more = |kib: u64| kib.saturating_sub(knee) as f64 * 250.0;
            let found = sweep(|kib| [30_000.0 + 600.0 * kib as f64 + waits(kib) + more(kib), 0.0]);
            let at = knee_of_writes(&found).expect("a knee");
            assert_eq!(found.size(at - 1), knee * KIB);
        }
        let line = sweep(|kib| [30_000.0 + 600.0 * kib as f64, 0.0]);
        assert_eq!(knee_of_writes(&line), None);
        // One slow request is no knee.
        let one = sweep(|kib| {
            [
                30_000.0 + 600.0 * kib as f64 + if kib == 704 { 2e6 } else { 0.0 },
                0.0,
            ]
        });
        assert_eq!(knee_of_writes(&one), None);
    }
}
