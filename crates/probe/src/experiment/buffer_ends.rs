//! Write buffers that bursts do not measure: smaller than a few writes, or larger than the longest burst.
//!
//! A buffer that one write overflows makes that write wait for flash: single writes of growing size to a drive at
//! rest leave the line of the smaller ones. Of a buffer that the longest burst does not fill, flush
//! after shorter bursts tells how much of it was still ahead of flash: it is larger than that.

use super::burst::{Kind, standstill};
use super::knee;
use crate::bench::{Bench, Stop};
use crate::infer::write_buffer::WriteBufferArm;
use crate::stats::{self, Estimate};
use crate::target::Io;
use std::time::Duration;

/// Largest single write, pages.
const PAGES_MAX: u64 = 128;
/// Pages of the write that, beside one of a page, tells what each page takes.
const LINE_PAGES: u64 = 4;
/// Writes of each size.
const EACH: usize = 7;
/// Flash may take part of a write that takes longer to arrive than this share of what a flush waits for.
const ARRIVES: f64 = 0.6;
/// Share of the wait by which a write that overflows a buffer takes longer than the largest that does not.
const JUMPS: f64 = 0.5;
/// At its end a burst must be ahead of flash by so many times what it was at its middle: less, and flash keeps
/// up with it.
const GROWS: f64 = 1.1;
/// How finely a bound is looked for, as a share of it, and bursts that must agree on it: each writes much.
const COARSE: f64 = 0.2;
const VOTES: usize = 3;
/// Bursts that take more time than this for as many bytes are not alike; the last writes may be those that the host
/// held up.
const AS_FAST: f64 = 1.02;
const ALL_BUT_STRAYS: f64 = 0.98;
const REST: Duration = Duration::from_millis(10);

/// Size of a buffer that a single write overflows.
pub(super) fn smaller(
    bench: &mut Bench<'_>,
    arm: &WriteBufferArm,
    series: &str,
) -> Result<Option<Estimate>, Stop> {
    let page = bench.page();
    let flush_ns = arm.program_ns();
    let waits_ns = arm.waits_ns();
    let most = (u64::from(bench.description().transfer_bytes_max) / page).min(PAGES_MAX);
    if most <= LINE_PAGES {
        return Ok(None);
    }
    let one = write(bench, 1)?;
    let some = write(bench, LINE_PAGES)?;
    let per_page = if some > one + waits_ns {
        0.0
    } else {
        (some - one).max(0.0) / (LINE_PAGES - 1) as f64
    };
    let (low, high) = knee(2, most, 0.0, |pages| {
        let latency = write(bench, pages)?;
        let point = ((pages * page) as f64, latency / 1e3);
        bench.note(series, "bytes of one write", "write latency, us", point);
        // A line of so few points is not exact.
        let line = one + 1.2 * per_page * (pages - 1) as f64;
        Ok(latency > line + waits_ns)
    })?;
    let Some(high) = high.filter(|high| per_page * *high as f64 <= ARRIVES * flush_ns) else {
        return Ok(None);
    };
    let low = low.max(1);
    // A line of two points leads astray far from them. What overflows a buffer waits all at once.
    let longer = 1.2 * per_page * (high - low) as f64 + JUMPS * waits_ns;
    if write(bench, high)? < write(bench, low)? + longer {
        return Ok(None);
    }
    let [low, high] = [low, high].map(|pages| (pages * page) as f64);
    Ok(Some(Estimate::new(low, low, high)))
}

/// Median latency of single writes of so many pages to a drive at rest, ns.
fn write(bench: &mut Bench<'_>, pages: u64) -> Result<f64, Stop> {
    let bytes = pages * bench.page();
    let start = bench.capacity() / 8 * 5 / bytes * bytes;
    let mut latencies = Vec::new();
    for i in 0..EACH as u64 {
        bench.flush()?;
        bench.idle(REST)?;
        let io = [Io::write(start + i * bytes, bytes as u32)];
        latencies.push(bench.batch(&io, 1)?[0].latency_ns as f64);
    }
    Ok(stats::median(&latencies))
}

/// What a buffer holds at least that a burst of so many bytes does not fill: what is ahead of flash at its
/// end, if there was by far less at half of it. What does not grow is on its way through the drive, as in one
/// whose flash keeps up.
pub(super) fn larger(
    bench: &mut Bench<'_>,
    kind: Kind,
    bytes: u64,
) -> Result<Option<Estimate>, Stop> {
    let mut bursts = Vec::new();
    for _ in 0..VOTES {
        bursts.push(kind.burst(bench, bytes)?);
    }
    let Some(late) = ahead_at_least(bench, kind, &bursts, (0.9, 0.95))? else {
        return Ok(None);
    };
    let Some(early) = ahead_at_least(bench, kind, &bursts, (0.45, 0.5))? else {
        return Ok(Some(Estimate::at_least(late.0)));
    };
    Ok((late.0 > GROWS * early.1).then(|| Estimate::at_least(late.0)))
}

/// Bytes that are ahead of flash at one moment of bursts: a bound that all of them keep to, and one that one of
/// them does not. None where there is no such bound: then one burst differs from the next by as much.
fn ahead_at_least(
    bench: &mut Bench<'_>,
    kind: Kind,
    bursts: &[Vec<f64>],
    window: (f64, f64),
) -> Result<Option<(f64, f64)>, Stop> {
    let moment = standstill(kind, &bursts[0], window);
    let writes = ((moment.acknowledged - kind.first as f64) / kind.chunk as f64) as usize;
    let latest_ns = bursts
        .iter()
        .filter_map(|done| done.get(writes))
        .fold(moment.at_ns, |latest, at| latest.max(*at));
    let page = bench.page();
    let (mut least, mut most) = (0.0, moment.acknowledged);
    while most - least > COARSE * most && most > kind.chunk as f64 {
        let middle = f64::midpoint(least, most);
        let bytes = ((moment.acknowledged - middle) as u64 / page * page).max(page);
        if is_late(bench, kind, bytes, latest_ns, bursts)? {
            least = middle;
        } else {
            most = middle;
        }
    }
    Ok((least > kind.chunk as f64).then_some((least, most)))
}

/// Whether so many bytes are not in flash at a time, however often that is tried. A burst that is acknowledged more
/// slowly than those before finds the drive in another state, with its fast flash used up, and tells nothing.
fn is_late(
    bench: &mut Bench<'_>,
    kind: Kind,
    bytes: u64,
    at_ns: f64,
    bursts: &[Vec<f64>],
) -> Result<bool, Stop> {
    let writes = (bytes as f64 * ALL_BUT_STRAYS / kind.chunk as f64) as usize;
    let of_bursts = bursts.iter().filter_map(|done| done.get(writes));
    let slowest_ns = of_bursts.fold(0.0, |slowest: f64, at| slowest.max(*at));
    for _ in 0..VOTES {
        let (done, in_flash_ns) = kind.burst_in_flash(bench, bytes)?;
        let as_fast = done
            .get(writes)
            .is_none_or(|at| *at <= AS_FAST * slowest_ns);
        if in_flash_ns <= at_ns || !as_fast {
            return Ok(false);
        }
    }
    Ok(true)
}
