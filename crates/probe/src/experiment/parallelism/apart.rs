//! Dies by pairs far from each other, where neighbours do not collide: two pages of 4 KiB in one page of flash are read at once,
//! or the drive was written in another order.
//!
//! Any two pages far from each other share one of `n` dies once in `n` times, and take up to twice as long, which no outlier of the host does so
//! regularly. Where addresses go round the dies in order, these pairs return at whole rounds.

use super::alone::Alone;
use super::{DISTANCE_MAX, Pairs, beside, collisions, layout, note};
use crate::bench::{Bench, Stop};
use crate::experiment::flash_page;
use crate::findings::Findings;
use crate::stats::{self, Estimate};
use std::time::Duration;

/// Pairs at random distances.
pub(super) const PAIRS: u64 = 2000;
/// Pages of the prober that one read of the flash may fetch: 256 KiB with all planes.
const FETCHED_MAX: usize = 64;
/// Single reads that tell what pairs take by chance.
const SINGLES: u64 = 400;
/// Longer than most by this, and up to the next, is late.
const LATE: f64 = 1.25;
const BEYOND: f64 = 2.1;
/// Least share of pairs that is no chance.
const REGULAR: f64 = 0.01;

/// Does it; `alone`: what the same reads take one after the other.
pub(super) fn measure(
    bench: &mut Bench<'_>,
    findings: &mut Findings,
    (kind, room): (Pairs, u64),
    alone: &Alone,
) -> Result<(), Stop> {
    let times = pairs(bench, kind, room)?;
    let (twice, beyond) = late(&times);
    let chance = match kind {
        Pairs::Plain => late(&by_chance(bench, room)?).0,
        Pairs::BesideAlone { .. } => late(alone.times()).0,
    };
    let regular = twice > REGULAR + 2.0 * chance;
    let collide = regular && twice > 3.0 * beyond;
    findings.collisions = Some(collide);
    if !collide {
        findings.notes.push(
            "no two reads get in each other's way: no sign of flash dies behind the addresses"
                .to_owned(),
        );
        return Ok(());
    }
    let most = stats::quantile(&times, 0.25);
    let is_late = |time: &&f64| (LATE * most..BEYOND * most).contains(*time);
    let late: Vec<f64> = times.iter().filter(is_late).copied().collect();
    let wait_ns = (stats::median(&late) - most) * kind.unit_ns();
    let shares = collisions(bench, kind, (most * stats::median(&late)).sqrt(), room)?;
    if let Some(layout) = layout::of(&shares, FETCHED_MAX) {
        let stripe = layout.stripe();
        let flash_page = flash_page::measure(bench, wait_ns, stripe, room)?;
        note(
            findings,
            bench.page() as f64,
            Some(layout),
            stripe,
            flash_page,
        );
        return Ok(());
    }
    let share = stats::share(late.len(), times.len());
    // Some of them may be late by chance.
    let least = (share.low - 2.0 * chance).max(0.1 * share.low);
    let units = Estimate::new(1.0 / share.estimate, 1.0 / share.high, 1.0 / least);
    findings.quantity("parallel_units", "count", units);
    findings.notes.push(
        "neighbours in address lie on different dies more often than not: pages are small, or the drive was \
         written in another order"
            .to_owned(),
    );
    Ok(())
}

/// Whether more pairs than chance explains take longer than the slowest page: where pages differ and are kept once read.
pub(super) fn are_late(bench: &mut Bench<'_>, room: u64) -> Result<bool, Stop> {
    let times = pairs(bench, Pairs::Plain, room)?;
    let chance = by_chance(bench, room)?;
    let slowest = stats::quantile(&chance, 0.98);
    let share = |times: &[f64], from: f64, to: f64| {
        let is_late = |time: &&f64| (from * slowest..to * slowest).contains(*time);
        times.iter().filter(is_late).count() as f64 / times.len().max(1) as f64
    };
    let twice = share(&times, 1.1, BEYOND);
    let beyond = share(&times, BEYOND, f64::INFINITY);
    Ok(twice > REGULAR + 2.0 * share(&chance, 1.1, BEYOND) && twice > 3.0 * beyond)
}

/// What pairs at random distances are told by.
fn pairs(bench: &mut Bench<'_>, kind: Pairs, room: u64) -> Result<Vec<f64>, Stop> {
    let mut times = Vec::new();
    for _ in 0..PAIRS {
        let distance = 1 + bench.below(DISTANCE_MAX);
        times.extend(kind.pair(bench, distance, room)?);
    }
    Ok(times)
}

/// Shares of pairs that take up to twice as long as most, and longer than that.
fn late(times: &[f64]) -> (f64, f64) {
    // Of two dies, half of the pairs share one.
    let most = stats::quantile(times, 0.25);
    let share = |from: f64, to: f64| {
        let inside = times
            .iter()
            .filter(|time| (from * most..to * most).contains(time));
        inside.count() as f64 / times.len().max(1) as f64
    };
    (share(LATE, BEYOND), share(BEYOND, f64::INFINITY))
}

/// Times of pairs as they would be if two reads had nothing to do with each other and only spread
/// as single reads do.
fn by_chance(bench: &mut Bench<'_>, room: u64) -> Result<Vec<f64>, Stop> {
    let page = bench.page();
    let mut singles = Vec::new();
    for _ in 0..SINGLES {
        let at = bench.below(room);
        let mut ignored = Vec::new();
        bench.read_pages([beside(at, at) * page], 1, &mut ignored)?;
        bench.idle(Duration::from_millis(1))?;
        bench.read_pages([at * page], 1, &mut singles)?;
    }
    let mut pairs = Vec::new();
    for _ in 0..PAIRS {
        let a = singles[bench.below(SINGLES) as usize];
        pairs.push(a.max(singles[bench.below(SINGLES) as usize]));
    }
    Ok(pairs)
}
