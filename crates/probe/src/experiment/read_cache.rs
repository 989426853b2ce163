//! Read cache: how much can be read again without flash?
//!
//! **Method.** Algorithm 1 of Kim & Kim (PLOS ONE 2020), adapted. Some pages that lie near each other
//! are read once, in random order, and then again in that order. While all of them fit a read cache,
//! the second round needs no flash and is fast. The largest number of which that is true is the
//! cache's size. With host memory on and off.
//!
//! **Mended.** The paper reads one request of growing size and fills the cache with 512 MB of other
//! data before each; its offset for that, `S_SSD - S_CACHE - 1`, is not aligned (read as blocks). Here
//! single pages are read, so that every one is a hit or a miss; fresh addresses take the place of
//! filling; and the random order keeps read-ahead out of the result.
//!
//! Before that, each half of them is read alone a few times: a cache that lets in only what returns soon
//! (2Q) would else hold on to what it had.
//!
//! **Cost.** Up to 1,000,000 reads of 4 KiB for each state of host memory: 2 s to 90 s. Writes nothing.
//!
//! **Cannot tell** a cache of less than two pages, nor one larger than 256 MiB from a drive that is
//! memory altogether.

use super::levels::Levels;
use super::{About, arms, enter, knee, turns};
use crate::bench::{Bench, Stop};
use crate::cost::{Cost, Scale};
use crate::findings::{Findings, Held};
use crate::infer::read_cache::ReadCacheArm;
use crate::stats::Estimate;

/// What is said before it starts.
pub const ABOUT: About = About {
    name: "read-cache",
    question: "does the drive keep data that was read, how much, and where?",
    method: "pages near each other are read twice in the same random order, host memory on and off",
    limits: "reads of a drive that was never written look like hits",
    writes: false,
    cost,
};

/// Rounds over caches of a few MiB; larger ones take up to ten times as long.
fn cost(scale: &Scale) -> Cost {
    let most = CACHE_BYTES_MAX.min(scale.capacity_bytes / 4) / scale.page_bytes;
    Cost::reads(u64::from(scale.states) * (9_000 + most / 4), scale)
}

/// Largest cache looked for, bytes.
const CACHE_BYTES_MAX: u64 = 256 << 20;
/// Pages near each other: within one caching unit of the map.
const NEAR_BYTES: u64 = 1 << 20;

/// Reads beyond so many times the 90th percentile are the host's doing.
const STRAY: f64 = 3.0;
/// Least reads that measure.
const MEASURED: usize = 240;
/// Times that each half is read alone.
const ROUNDS_HALF: u32 = 3;

/// Does it.
pub fn run(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Stop> {
    for (name, state) in arms(bench) {
        enter(bench, state)?;
        let arm = measure(bench, &format!("read cache, host memory {name}"))?;
        findings.roles.read_cache.arms.insert(name, arm);
    }
    Ok(())
}

/// Latencies of first reads whose map entry is at hand, and of the same reads at once again.
fn sample_levels(bench: &mut Bench<'_>) -> Result<(Vec<f64>, Vec<f64>), Stop> {
    let page = bench.page();
    let (mut again, mut first) = (Vec::new(), Vec::new());
    let regions = (bench.capacity() / NEAR_BYTES).max(1);
    for _ in 0..16 {
        let start = bench.below(regions) * NEAR_BYTES;
        let room = NEAR_BYTES.min(bench.capacity() - start) / page;
        let mut ignored = Vec::new();
        bench.read_pages([start], 1, &mut ignored)?;
        bench.idle(std::time::Duration::from_millis(2))?;
        for _ in 0..16 {
            let at = start + bench.below(room) * page;
            bench.read_pages([at], 1, &mut first)?;
            bench.read_pages([at], 1, &mut again)?;
        }
    }
    Ok((again, first))
}

fn measure(bench: &mut Bench<'_>, series: &str) -> Result<ReadCacheArm, Stop> {
    let (again, first) = sample_levels(bench)?;
    let saved = saved(&again, &first);
    let Some(levels) = Levels::of(&again, &first) else {
        let bytes = Held::Nothing;
        return Ok(ReadCacheArm {
            levels: None,
            saved,
            bytes,
        });
    };
    let page = bench.page();
    let most = (CACHE_BYTES_MAX.min(bench.capacity() / 4) / page).max(1);
    let (low, high) = knee(2, most, 0.004, |pages| {
        let order = order(bench, pages);
        read_by_halves(bench, &order)?;
        let seen = turns::settled(bench, &levels, |bench, measuring| {
            round(bench, &order, measuring)
        })?;
        let point = ((pages * page) as f64, seen.latency_ns / 1e3);
        bench.note(series, "bytes read again", "read latency, us", point);
        Ok(seen.beyond)
    })?;
    if let Some(bytes) = replaced_at_random(bench, &levels, high, most)? {
        return Ok(ReadCacheArm {
            levels: Some(levels),
            saved,
            bytes,
        });
    }
    let scale = page as f64;
    let bytes = match high {
        None => Held::Everything((most * page) as f64),
        Some(_) if low == 0 => Held::Nothing,
        Some(high) => {
            let slack = 0.01 * low as f64;
            let (low, high) = (low as f64, (high - 1) as f64);
            // A cache that gives way bit by bit (2Q) is noticed to do so 1 % or 2 % beyond its edge.
            Held::UpTo(Estimate::new(low, low - 2.0 * slack, high + slack).scaled(scale))
        }
    };
    Ok(ReadCacheArm {
        levels: Some(levels),
        saved,
        bytes,
    })
}

/// Share of a read's time that reading the same page again saves, by the mean difference of pairs. Strays
/// count as much as the slowest that are none.
fn saved(again: &[f64], first: &[f64]) -> Estimate {
    let most = STRAY * crate::stats::quantile(first, 0.9);
    let pairs = first.iter().zip(again);
    let differences: Vec<f64> = pairs.map(|(a, b)| a.min(most) - b.min(most)).collect();
    let n = differences.len().max(1) as f64;
    let mean = differences.iter().sum::<f64>() / n;
    let variance = differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / n;
    let error = 2.0 * (variance / n).sqrt();
    let whole = crate::stats::median(first).max(1.0);
    Estimate::new(mean, mean - error, mean + error).scaled(1.0 / whole)
}

/// Size of a cache that replaces at random; `None` if this one does not.
fn replaced_at_random(
    bench: &mut Bench<'_>,
    levels: &Levels,
    high: Option<u64>,
    most: u64,
) -> Result<Option<Held>, Stop> {
    let pages = high.unwrap_or(0) * 8 / 5;
    if pages < 24 || pages > most {
        return Ok(None);
    }
    let order = order(bench, pages);
    let once = |bench: &mut Bench<'_>, measuring| round(bench, &order, measuring);
    if !turns::settled(bench, levels, once)?.looks_random() {
        return Ok(None);
    }
    // What all fitted is held; less would be another reason for hits.
    let found = turns::random_capacity(bench, levels, pages, once)?;
    let found = found.filter(|held| held.high > 0.5 * high.unwrap_or(0) as f64);
    let scale = bench.page() as f64;
    Ok(found.map(|pages| Held::UpTo(pages.scaled(scale))))
}

/// Pages of a stretch not read before, in random order.
fn order(bench: &mut Bench<'_>, pages: u64) -> Vec<u64> {
    let page = bench.page();
    let places = (bench.capacity() / page).saturating_sub(pages).max(1);
    // From the start of a MiB where there is room, so that few map entries are in play.
    let start = bench.below(places) * page;
    let aligned = start / NEAR_BYTES * NEAR_BYTES;
    let mut order: Vec<u64> = (0..pages).map(|i| aligned + i * page).collect();
    bench.shuffle(&mut order);
    order
}

/// One half alone a few times, then the other. A cache that trusts only what returns soon (2Q) takes them
/// in, where it would hold on to something older for as long as all are read in turn.
fn read_by_halves(bench: &mut Bench<'_>, order: &[u64]) -> Result<(), Stop> {
    let (first, second) = order.split_at(order.len() / 2);
    let mut ignored = Vec::new();
    for half in [first, second] {
        for _ in 0..ROUNDS_HALF {
            ignored.clear();
            bench.read_pages(half.iter().copied(), 1, &mut ignored)?;
        }
    }
    Ok(())
}

/// Whole rounds: what is kept (2Q) need not lie evenly among the pages, and what is read more often than
/// the rest would be kept before it (CLOCK). To measure, as many as it takes to know enough.
fn round(bench: &mut Bench<'_>, order: &[u64], measuring: bool) -> Result<Vec<f64>, Stop> {
    let rounds = if measuring {
        MEASURED.div_ceil(order.len())
    } else {
        1
    };
    let wanted = rounds * order.len();
    let mut latencies = Vec::with_capacity(wanted);
    bench.read_pages(
        order.iter().copied().cycle().take(wanted),
        1,
        &mut latencies,
    )?;
    Ok(latencies)
}
