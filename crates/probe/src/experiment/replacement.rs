//! Replacement: which part of the map gives way when the cache is full?
//!
//! **Method.** A fifth more places than the cache holds are read in turn, then at random. A cyclic
//! scan never hits with LRU, FIFO or CLOCK; with random replacement a share `h = exp(-1.2 (1 - h))`
//! does, and those that hit in one round are as likely to hit in the next as those that did not. At
//! random, every policy hits five times in six. Where the cyclic scan never hits, places are
//! read, some of them touched again, and new ones pushed in: which of them are left tells LRU, FIFO
//! and CLOCK apart (`turnover.rs`).
//!
//! **Cost.** Some 20 times as many reads as the cache has units, and at most 40,000 for small ones.
//! Writes nothing.
//!
//! **Cannot tell** the policy of a cache that covers more than some 45 % of the drive: there are not
//! enough places to push out what it holds; nor of one with fewer than 12 units, nor any other policy
//! than those four: undecided.

use super::levels::Levels;
use super::map_cache::fresh_page;
use super::turnover::{Cache, HELD_MIN, Left, THINGS};
use super::walk::TRANSLATED;
use super::{About, enter};
use crate::bench::{Bench, Stop};
use crate::cost::{Cost, Scale};
use crate::findings::{Findings, Held};
use crate::infer::map::MapArm;
use crate::stats::{self, Estimate};
use crate::target::HmbState;
use std::time::Duration;

/// What is said before it starts.
pub const ABOUT: About = About {
    name: "replacement",
    question: "which part of the map gives way when the cache is full?",
    method: "places are read in turn and at random; touched ones are pushed out by new ones",
    limits: "policies other than LRU, FIFO, CLOCK and random; caches of more than 45 % of the drive",
    writes: false,
    cost,
};

/// Some twenty times as many reads as the cache has units, of which most have a few thousand at most.
fn cost(scale: &Scale) -> Cost {
    Cost::reads(40_000 + 20 * scale.mib().min(4_000), scale)
}

/// Larger caches take too long to wear in.
const UNITS_MAX: f64 = 40_000.0;
/// Units of more translation pages than this are segments, whatever an entry takes.
const SEGMENT_MIN: f64 = 2.0;
/// Most reads on the wrong side of the threshold between hits and misses that leave nothing to explain.
const WRONG_MAX: f64 = 0.05;

/// Does it.
pub fn run(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Stop> {
    let (arm, levels, units) = told_by(findings)?;
    if bench.can_switch_hmb() {
        enter(bench, Some(HmbState::On))?;
    }
    let places = (units.estimate * 1.2) as u64;
    let spacing = bench.capacity() / places;
    let mut hits = [0.0; 2];
    let mut forgets = false;
    for (random, share) in [false, true].into_iter().zip(&mut hits) {
        let (mut before, mut measured) = (Vec::new(), Vec::new());
        for round in 0..4 {
            let order: Vec<u64> = (0..places)
                .map(|i| if random { bench.below(places) } else { i })
                .map(|place| place * spacing)
                .collect();
            let order: Vec<u64> = order
                .into_iter()
                .map(|at| fresh_page(bench, at, spacing))
                .collect();
            before = std::mem::take(&mut measured);
            bench.read_pages(order, 1, &mut measured)?;
            if round < 3 {
                bench.idle(Duration::from_millis(20))?;
            }
        }
        *share = 1.0 - levels.slow_share(&measured);
        if !random {
            forgets = !remembers(levels, &before, &measured);
        }
    }
    let [cyclic, random] = hits;
    findings.replacement = Some((cyclic, random));
    let trials = places as usize;
    for (name, share) in [
        ("map_cyclic_hit_ratio", cyclic),
        ("map_random_hit_ratio", random),
    ] {
        let hits = (share * trials as f64).round() as usize;
        findings.quantity(name, "ratio", stats::share(hits, trials));
    }
    findings.replacement_verdict = Some(match (cyclic, random) {
        (c, r) if c < 0.1 && r > 0.5 => {
            let left = push_out(bench, levels, arm, findings)?;
            left.and_then(|left| left.policy()).unwrap_or("undecided")
        }
        (c, r) if (0.5..0.85).contains(&c) && r > 0.5 && forgets => "random",
        (c, r) if c < 0.1 && r < 0.3 && shows_segments(&levels, &arm) => "by segment",
        _ => "undecided",
    });
    Ok(())
}

/// What map-cache has found that it rests on, unless that hides what misses.
fn told_by(findings: &Findings) -> Result<(MapArm, Levels, Estimate), Stop> {
    let arm = findings
        .roles
        .map
        .arms
        .get("on")
        .or(findings.roles.map.arms.get("as found"));
    let Some(arm) = arm.or(findings.roles.map.arms.get("off")).copied() else {
        return Err(Stop::Skip("it needs what map-cache finds".to_owned()));
    };
    let (Some(levels), Held::UpTo(units)) = (arm.levels, arm.units) else {
        return Err(Stop::Skip("no edge of the map cache was found".to_owned()));
    };
    // Which of them are told by pages of the fastest kind, and reads of all others count as misses.
    if arm.is_by_kind() {
        return Err(Stop::Skip(
            "pages differ in latency by as much as a map miss adds: which reads miss does not show"
                .to_owned(),
        ));
    }
    if let Some(why) = &findings.busy {
        return Err(Stop::Skip(format!(
            "{why}: the drive is busy with something of its own, and which reads miss does not show"
        )));
    }
    if units.estimate > UNITS_MAX || units.estimate < 8.0 {
        return Err(Stop::Skip(format!(
            "the map cache has {:.0} units: too few or too many",
            units.estimate
        )));
    }
    Ok((arm, levels, units))
}

/// Whether few hits at random can be units of several translation pages that give way as one: there must be such
/// units, and reads on the wrong side of the threshold no explanation.
fn shows_segments(levels: &Levels, arm: &MapArm) -> bool {
    let (Held::UpTo(units), Held::UpTo(reach)) = (arm.units, arm.reach_bytes) else {
        return false;
    };
    let is_large = reach.low / units.high > SEGMENT_MIN * TRANSLATED as f64;
    is_large && levels.false_slow.max(levels.false_fast) < WRONG_MAX
}

/// Whether it makes a difference to a place in one round of a scan what it was in the round before.
/// With random replacement it does not; a cache with a place on probation (2Q) takes back what it
/// has just lost, and loses something else.
fn remembers(levels: Levels, before: &[f64], after: &[f64]) -> bool {
    let hits = |earlier: bool| {
        let both = before.iter().zip(after);
        let of = both.filter(|(before, _)| (**before <= levels.threshold_ns) == earlier);
        let of: Vec<f64> = of.map(|(_, after)| *after).collect();
        let hits = of.iter().filter(|took| **took <= levels.threshold_ns);
        stats::share(hits.count(), of.len())
    };
    let (again, anew) = (hits(true), hits(false));
    (again.estimate - anew.estimate).abs() > 0.1 && !again.overlaps(&anew)
}

/// What is left of some places after others were pushed in; none where there are not enough of them.
fn push_out(
    bench: &mut Bench<'_>,
    levels: Levels,
    arm: MapArm,
    findings: &mut Findings,
) -> Result<Option<Left>, Stop> {
    let (Held::UpTo(units), Held::UpTo(reach)) = (arm.units, arm.reach_bytes) else {
        return Ok(None);
    };
    let held = units.estimate;
    // Two places in one unit are one thing.
    let unit_bytes = (reach.high / units.low).max(1.0);
    let things = ((1.0 + 2.0 * THINGS) * held).min(bench.capacity() as f64 / unit_bytes) as u64;
    if held < HELD_MIN || (things as f64) < THINGS * held {
        return Ok(None);
    }
    let spacing = bench.capacity() / things;
    let place = |bench: &mut Bench<'_>, thing: u64| fresh_page(bench, thing * spacing, spacing);
    let left = Cache::new(levels, held, things, &place).left(bench)?;
    for (name, share) in [
        ("map_left_touched", left.touched),
        ("map_left_untouched", left.untouched),
        ("map_left_read_first", left.read_first),
        ("map_left_touched_first", left.touched_first),
    ] {
        findings.quantity(name, "ratio", share);
    }
    Ok(Some(left))
}
