//! Replacement: does the map cache replace the least recently used, or any?
//!
//! **Method.** A fifth more places than the cache holds are read in turn, then at random. A cyclic
//! scan never hits with LRU, FIFO or CLOCK; with random replacement a share `h = exp(-1.2 (1 - h))`
//! does. At random, every policy hits five times in six.
//!
//! **Cost.** A few times as many reads as the cache has units. Writes nothing.
//!
//! **Cannot tell** LRU from FIFO or CLOCK: all three lose a cyclic scan.

use super::map_cache::fresh_page;
use super::{About, enter};
use crate::bench::{Bench, Stop};
use crate::findings::{Findings, Held};
use crate::stats;
use crate::target::HmbState;
use std::time::Duration;

/// What is said before it starts.
pub const ABOUT: About = About {
    name: "replacement",
    question: "which part of the map gives way when the cache is full?",
    method: "a fifth more places than the cache holds are read in turn, then at random",
    limits: "LRU, FIFO and CLOCK look alike",
    writes: false,
    read_bytes: 1 << 30,
    written_bytes: 0,
};

/// Larger caches take too long to wear in.
const UNITS_MAX: f64 = 40_000.0;

/// Does it.
pub fn run(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Stop> {
    let arm = findings.map.get("on").or(findings.map.get("as found"));
    let Some(arm) = arm.or(findings.map.get("off")).copied() else {
        return Err(Stop::Skip("it needs what map-cache finds".to_owned()));
    };
    let (Some(levels), Held::UpTo(units)) = (arm.levels, arm.units) else {
        return Err(Stop::Skip("no edge of the map cache was found".to_owned()));
    };
    if units.estimate > UNITS_MAX || units.estimate < 8.0 {
        return Err(Stop::Skip(format!(
            "the map cache has {:.0} units: too few or too many",
            units.estimate
        )));
    }
    if bench.can_switch_hmb() {
        enter(bench, Some(HmbState::On))?;
    }
    let places = (units.estimate * 1.2) as u64;
    let spacing = bench.capacity() / places;
    let mut hits = [0.0; 2];
    for (random, share) in [false, true].into_iter().zip(&mut hits) {
        let mut measured = Vec::new();
        for round in 0..4 {
            let order: Vec<u64> = (0..places)
                .map(|i| if random { bench.below(places) } else { i })
                .map(|place| place * spacing)
                .collect();
            let order: Vec<u64> = order
                .into_iter()
                .map(|at| fresh_page(bench, at, spacing))
                .collect();
            measured.clear();
            bench.read_pages(order, 1, &mut measured)?;
            if round < 3 {
                bench.idle(Duration::from_millis(20))?;
            }
        }
        *share = 1.0 - levels.slow_share(&measured);
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
        (c, r) if c < 0.1 && r > 0.5 => "recency (LRU, FIFO or CLOCK)",
        (c, r) if (0.5..0.85).contains(&c) && r > 0.5 => "random",
        (_, r) if r < 0.3 => "by segment: beyond the reach nearly nothing hits",
        _ => "undecided",
    });
    Ok(())
}
