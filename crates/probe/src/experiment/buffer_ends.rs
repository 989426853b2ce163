//! Write buffers that bursts do not measure: smaller than a few writes, or larger than the longest burst.
//!
//! A buffer that one write overflows makes that write wait for flash: single writes of growing size to a drive at
//! rest leave the line of the smaller ones. Of a buffer that the longest burst does not fill, flush
//! after shorter bursts tells how much of it was still ahead of flash: it is larger than that.

use super::burst::{Kind, ahead_at, standstill};
use super::knee;
use crate::bench::{Bench, Stop};
use crate::findings::WriteBufferArm;
use crate::stats::{self, Estimate};
use crate::target::Io;
use std::time::Duration;

/// Largest single write, pages.
const PAGES_MAX: u64 = 128;
/// Pages of the write that, beside one of a page, tells what each page takes.
const LINE_PAGES: u64 = 4;
/// Writes of each size.
const EACH: usize = 7;
/// Share of what a flush waits for that a write which waits for flash takes longer at least.
const WAITS: f64 = 0.4;
const WAITS_MIN_NS: f64 = 30_000.0;
/// Flash may take part of a write that takes longer to arrive than this share of what a flush waits for.
const ARRIVES: f64 = 0.6;
/// Share of a burst that must still be ahead of flash at its end: less, and flash keeps up with it.
const AHEAD: f64 = 0.25;
const REST: Duration = Duration::from_millis(10);

/// Size of a buffer that a single write overflows.
pub(super) fn smaller(
    bench: &mut Bench<'_>,
    arm: &WriteBufferArm,
    series: &str,
) -> Result<Option<Estimate>, Stop> {
    let page = bench.page();
    let flush_ns = arm.flush_dirty_ns - arm.flush_clean_ns;
    let waits_ns = (WAITS * flush_ns).max(WAITS_MIN_NS);
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
    let [low, high] = [low.max(1), high].map(|pages| (pages * page) as f64);
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

/// What a buffer holds at least that a burst of so many bytes does not fill.
pub(super) fn larger(
    bench: &mut Bench<'_>,
    kind: Kind,
    bytes: u64,
) -> Result<Option<Estimate>, Stop> {
    let done = kind.burst(bench, bytes)?;
    let moment = standstill(kind, &done, (0.9, 0.95));
    let ahead = ahead_at(bench, kind, &moment, None)?.0;
    Ok((ahead > AHEAD * moment.acknowledged).then(|| Estimate::at_least(ahead)))
}
