//! Places read in turn, round after round, until what the drive keeps has settled.
//!
//! With LRU, one round over places that fit makes the next one hit. Other policies keep what earlier
//! rounds over other places left behind, and lose it only bit by bit; with random replacement it
//! takes many rounds. So a look that misses some but not all is repeated while that still helps, and
//! a cache that replaces at random is not measured by its edge but by the share of hits beyond it.

use super::levels::Levels;
use crate::bench::{Bench, Stop};
use crate::stats::Estimate;

/// Most rounds that a look is repeated.
const ROUNDS_MAX: u32 = 6;
/// Rounds after which random replacement has forgotten what was before.
const ROUNDS_RANDOM: u32 = 14;

/// Numbers below `n` in an order in which neighbours lie far apart: steps of the golden ratio.
pub(super) fn spread(n: u64) -> Vec<u64> {
    let step = golden_step(n);
    (0..n)
        .map(|i| (u128::from(i) * u128::from(step) % u128::from(n)) as u64)
        .collect()
}

/// Step near the golden ratio of `n` that reaches all numbers below it.
pub(super) fn golden_step(n: u64) -> u64 {
    let mut step = ((n as f64 * 0.618_033_988_75) as u64).max(1);
    while gcd(step, n) != 1 {
        step += 1;
    }
    step
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Share of slow reads once the drive has settled. `round` reads all places once, or, when told to
/// measure, as many as tell something.
pub(super) fn settled(
    bench: &mut Bench<'_>,
    levels: &Levels,
    mut round: impl FnMut(&mut Bench<'_>, bool) -> Result<Vec<f64>, Stop>,
) -> Result<Settled, Stop> {
    round(bench, false)?;
    let mut measured = round(bench, true)?;
    let mut share = levels.slow_share(&measured);
    for _ in 0..ROUNDS_MAX {
        if !levels.is_beyond(&measured) {
            break;
        }
        round(bench, false)?;
        measured = round(bench, true)?;
        let now = levels.slow_share(&measured);
        let helped = now < 0.93 * share;
        share = now;
        if !helped {
            break;
        }
    }
    Ok(Settled {
        share,
        beyond: levels.is_beyond(&measured),
        latency_ns: crate::stats::median(&measured),
    })
}

/// How a look ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Settled {
    /// Share of slow reads.
    pub share: f64,
    /// More of them than chance explains.
    pub beyond: bool,
    /// Median latency, ns.
    pub latency_ns: f64,
}

impl Settled {
    /// Some hits beyond the edge in a cyclic scan: no policy that goes by age or use gives that.
    pub fn looks_random(&self) -> bool {
        (0.12..0.93).contains(&self.share)
    }
}

/// Capacity of a cache with random replacement from a cyclic scan of `n` places: a place survives a
/// round with probability `h = exp(-n (1 - h) / c)`. `round` reads all places once.
pub(super) fn random_capacity(
    bench: &mut Bench<'_>,
    levels: &Levels,
    n: u64,
    mut round: impl FnMut(&mut Bench<'_>, bool) -> Result<Vec<f64>, Stop>,
) -> Result<Option<Estimate>, Stop> {
    let mut measured = Vec::new();
    for i in 0..ROUNDS_RANDOM {
        let latencies = round(bench, false)?;
        if i + 4 >= ROUNDS_RANDOM {
            measured.extend(latencies);
        }
    }
    Ok(capacity_of(levels, n, &measured))
}

/// The same from the latencies of rounds over `n` places once the past is forgotten.
pub(super) fn capacity_of(levels: &Levels, n: u64, measured: &[f64]) -> Option<Estimate> {
    let hits = 1.0 - levels.slow_share(measured);
    if !(0.03..0.97).contains(&hits) {
        return None;
    }
    let capacity = |hits: f64| -(n as f64) * (1.0 - hits) / hits.ln();
    // What hit in one round is as likely to hit in the next as what did not: all reads count. And half of
    // the reads that are told wrongly.
    let told = f64::midpoint(levels.false_slow, levels.false_fast) / 2.0;
    let error = 2.0 * (hits * (1.0 - hits) / measured.len() as f64).sqrt() + 0.004 + told;
    let (low, high) = ((hits - error).max(0.01), (hits + error).min(0.99));
    Some(Estimate::new(capacity(hits), capacity(low), capacity(high)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_order_has_every_place_once() {
        for n in [1, 2, 7, 64, 1000] {
            let mut order = spread(n);
            order.sort_unstable();
            assert_eq!(order, (0..n).collect::<Vec<_>>());
        }
    }
}
