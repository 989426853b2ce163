//! Parallel units: which addresses get in each other's way?
//!
//! **Method.** Two pages are read at the same time, the second `k` pages after the first. If one die
//! must serve both, the pair takes longer than if two dies do. The distances at which pairs collide
//! show the stripe (bytes that lie together) and, where they return, the number of parallel units. How many
//! bytes one read of the flash fetches, `flash_page.rs` asks.
//!
//! **Cost.** 70,000 reads; 20 s, most of it rest. Writes nothing.
//!
//! **Cannot tell** the stripe of a drive that was written at random: neighbours in address are then no
//! neighbours in flash; the number of units still shows in how often any two pages collide. Shows dies
//! and planes only as far as addresses go round them in order.

use super::layout::{self, Layout};
use super::{About, enter, flash_page};
use crate::bench::{Bench, Stop};
use crate::cost::{Cost, Scale};
use crate::findings::Findings;
use crate::stats::{self, Estimate};
use crate::target::{HmbState, Io};
use std::time::Duration;

/// What is said before it starts.
pub const ABOUT: About = About {
    name: "parallelism",
    question: "how many units work in parallel, how are addresses spread over them, and what does one read fetch?",
    method: "pairs of reads at once, at growing distance: pairs that share a die take longer",
    limits: "no stripe and no flash page on a drive that was written at random",
    writes: false,
    cost,
};

/// Of most pairs both reads and two more that bring their map entries, and a rest of 1 ms.
fn cost(scale: &Scale) -> Cost {
    let pairs = 320 + 64 * 4 * PAIRS + (SCANNED - 64) * PAIRS;
    Cost::reads(4 * pairs + flash_page::READS, scale).resting(Duration::from_millis(pairs))
}

/// Longest distance tried, pages.
const DISTANCE_MAX: u64 = 4096;
/// Pairs at random distances where neighbours do not collide.
const SCATTERED: u64 = 2000;
/// Distances that are scanned one by one, pages.
const SCANNED: u64 = 1024;
/// Pairs at each distance.
const PAIRS: u64 = 12;

/// Does it.
pub fn run(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Stop> {
    if bench.can_switch_hmb() {
        enter(bench, Some(HmbState::On))?;
    }
    let page = bench.page();
    let room = (bench.capacity() / page).saturating_sub(2 * DISTANCE_MAX);
    if room == 0 {
        return Err(Stop::Skip("the drive is too small".to_owned()));
    }
    let mut near = Vec::new();
    for i in 0..64 {
        near.push(pair(bench, 1 + i % 4, room)?);
    }
    let mut far = Vec::new();
    for _ in 0..256 {
        let k = 1 + bench.below(DISTANCE_MAX);
        far.push(pair(bench, k, room)?);
    }
    // At least half of the distant pairs lie on two units; neighbours share one.
    let fast = stats::quantile(&far, 0.45).min(stats::median(&near));
    let slow = stats::median(&near);
    let threshold = (fast * slow).sqrt();
    let share = |times: &[f64]| {
        let slow = times.iter().filter(|time| **time > threshold);
        slow.count() as f64 / times.len() as f64
    };
    // Latencies that spread widely by themselves do so for distant pairs as well.
    if slow <= 1.15 * fast || share(&near) < share(&far) + 0.25 {
        return scattered(bench, findings, room);
    }
    findings.collisions = Some(true);
    let shares = collisions(bench, threshold, room)?;
    let layout = layout::of(&shares);
    let stripe = layout.map(|layout| layout.stripe());
    let Some(stripe) = stripe.or_else(|| layout::first_triangle(&shares)) else {
        return Ok(());
    };
    let flash_page = flash_page::measure(bench, slow - fast, stripe, room)?;
    note(findings, page as f64, layout, stripe, flash_page);
    Ok(())
}

/// Keeps what was found, of layout and stripe in pages of the prober. A stripe holds whole flash pages, and a
/// round whole stripes.
fn note(
    findings: &mut Findings,
    page: f64,
    layout: Option<Layout>,
    stripe: Estimate,
    flash_page: Option<Estimate>,
) {
    let within =
        |value: f64, share: f64| Estimate::new(value, value * (1.0 - share), value * (1.0 + share));
    let mut stripe = stripe.scaled(page);
    if let Some(bytes) = flash_page {
        findings.quantity("flash_page", "bytes", bytes);
        let pages = (stripe.estimate / bytes.estimate).round();
        let whole = pages * bytes.estimate;
        if pages > 1.0 && (0.97 * stripe.low..=1.03 * stripe.high).contains(&whole) {
            stripe = within(whole, 0.02);
        }
    }
    findings.quantity("stripe", "bytes", stripe);
    let Some(layout) = layout else {
        return;
    };
    let round = layout.round * page;
    findings.quantity("round", "bytes", within(round, 0.02));
    let units = (round / stripe.estimate).round();
    let near = |end: f64| (round / end).clamp(0.9 * units, 1.1 * units);
    let units = Estimate::new(units, near(stripe.high), near(stripe.low));
    findings.quantity("parallel_units", "count", units);
}

/// Neighbours do not collide: the drive was written at random, or there are no dies. Any two pages
/// then share one of `n` dies once in `n` times, and take up to twice as long, which no outlier of
/// the host does so regularly.
fn scattered(bench: &mut Bench<'_>, findings: &mut Findings, room: u64) -> Result<(), Stop> {
    let mut times = Vec::new();
    for _ in 0..SCATTERED {
        let distance = 1 + bench.below(DISTANCE_MAX);
        times.push(pair(bench, distance, room)?);
    }
    let (twice, beyond) = late(&times);
    let chance = late(&by_chance(bench, room)?).0;
    let regular = twice > 0.01 + 2.0 * chance;
    let collide = regular && twice > 3.0 * beyond;
    findings.collisions = Some(collide);
    let hits = (twice * SCATTERED as f64) as usize;
    let share = stats::share(hits, SCATTERED as usize);
    if collide {
        let units = Estimate::new(1.0 / share.estimate, 1.0 / share.high, 1.0 / share.low);
        findings.quantity("parallel_units", "count", units);
        findings.notes.push(
            "neighbours in address are no neighbours in flash: the drive was written at random"
                .to_owned(),
        );
    } else {
        findings.notes.push(
            "no two reads get in each other's way: no sign of flash dies behind the addresses"
                .to_owned(),
        );
    }
    Ok(())
}

/// Shares of pairs that take up to twice as long as most, and longer than that.
fn late(times: &[f64]) -> (f64, f64) {
    let most = stats::quantile(times, 0.45);
    let share = |from: f64, to: f64| {
        let inside = times
            .iter()
            .filter(|time| (from * most..to * most).contains(time));
        inside.count() as f64 / times.len().max(1) as f64
    };
    (share(1.25, 2.1), share(2.1, f64::INFINITY))
}

/// Times of pairs as they would be if two reads had nothing to do with each other and only spread
/// as single reads do.
fn by_chance(bench: &mut Bench<'_>, room: u64) -> Result<Vec<f64>, Stop> {
    let page = bench.page();
    let mut singles = Vec::new();
    for _ in 0..400 {
        let at = bench.below(room);
        let mut ignored = Vec::new();
        bench.read_pages([at.saturating_sub(100) * page], 1, &mut ignored)?;
        bench.idle(Duration::from_millis(1))?;
        bench.read_pages([at * page], 1, &mut singles)?;
    }
    let mut pairs = Vec::new();
    for _ in 0..2000 {
        let a = singles[bench.below(400) as usize];
        pairs.push(a.max(singles[bench.below(400) as usize]));
    }
    Ok(pairs)
}

/// Time of a pair of reads, ns, at a random place.
fn pair(bench: &mut Bench<'_>, distance: u64, room: u64) -> Result<f64, Stop> {
    let page = bench.page();
    let first = bench.below(room);
    let second = first + distance;
    // Pages not far from both bring their map entries.
    let mut ignored = Vec::new();
    let warm = [first.saturating_sub(100), second + 100].map(|at| at * page);
    bench.read_pages(warm, 1, &mut ignored)?;
    bench.idle(Duration::from_millis(1))?;
    let ios = [first, second].map(|at| Io::read(at * page, page as u32));
    let samples = bench.batch(&ios, 2)?;
    let end = samples.iter().map(|s| s.completed_ns()).max().unwrap_or(0);
    Ok(end as f64)
}

/// Share of pairs that collide, at each distance from 1 page on.
fn collisions(bench: &mut Bench<'_>, threshold: f64, room: u64) -> Result<Vec<f64>, Stop> {
    let mut shares = Vec::new();
    for k in 1..=SCANNED {
        // The first triangle alone shows where there is no second: it needs more pairs.
        let pairs = if k <= 64 { 4 * PAIRS } else { PAIRS };
        let mut hits = 0;
        for _ in 0..pairs {
            hits += u64::from(pair(bench, k, room)? > threshold);
        }
        let share = hits as f64 / pairs as f64;
        bench.note(
            "pairs of reads",
            "distance, pages",
            "share that collides",
            (k as f64, share),
        );
        shares.push(share);
    }
    Ok(shares)
}
