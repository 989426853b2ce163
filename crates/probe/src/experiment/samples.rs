//! Reads near each other beside reads far apart: is there a second level of latency, and if none shows, is
//! that because there is none?
//!
//! Flash with several bits a cell reads its pages in times that differ by a factor of two and more, and a
//! map miss adds less than that: two levels in a mixture of kinds are no two levels. So nothing is
//! concluded from levels that cannot be told apart. "As fast far as near" is shown by pairs: the first
//! read of a stretch and reads of the same stretch just after it, whose mean difference must be less than a
//! few misses would make. Where there is a difference, pages of the fastest kind are picked by reading them
//! while their entry is at hand, and these same pages are read again when it is not.

use super::kept;
use super::levels::Levels;
use super::walk::{Pace, Walk, page_of};
use crate::bench::{Bench, Stop};
use crate::stats::{self, Estimate};
use std::time::Duration;

/// Stretches within one caching unit: where pages near each other are drawn from.
const STRETCH: u64 = 1 << 20;
/// Stretches looked at to begin with, reads near each other in each, and reads far apart.
const STRETCHES: usize = 96;
const NEAR: usize = 4;
const FAR: usize = 384;
/// Most stretches, where latencies differ from page to page.
const STRETCHES_MAX: usize = 1536;
/// A map miss adds at least this share of a fast read: flash in single-bit mode is read in a third of the
/// time at worst, and a read has other parts.
const MISS_MIN: f64 = 0.35;
/// Less than this share of misses is none, as far as a flat map goes.
pub(crate) const FLAT_MAX: f64 = 0.15;
/// Reads beyond so many times the 90th percentile are the host's doing.
const STRAY: f64 = 3.0;
/// Reads near each other that differ by more are of pages of several kinds.
const KINDS: f64 = 1.3;
/// Pages up to so much slower than the tenth percentile are of the fastest kind.
const KIND: f64 = 1.12;
/// Pages of that kind that are looked for, stretches and pages tried for them.
const POOL: usize = 400;
/// Of these, so many are read once more with their entry at hand: those that were picked for a fast read were lucky.
const AGAIN: usize = 200;
const TRIED: usize = 3000;
pub(super) const CANDIDATES: usize = 10;
/// Less than this share of a fast read comes from no flash: what was read before is kept.
pub(super) const KEPT: f64 = 0.6;
/// Reads that push a small memory's units out.
const PUSHED: u64 = 4096;
/// Least share of looks between two levels that makes a third one.
const THIRD: f64 = 0.05;
/// A level of its own has next to nothing so near to its threshold.
const GAP: f64 = 1.04;
/// Places for that.
const AGES: u64 = 400;

/// What was read.
pub(super) struct Samples {
    pub near: Vec<f64>,
    pub far: Vec<f64>,
    /// First read of a stretch, and the mean of those after it.
    pairs: Vec<(f64, f64)>,
}

impl Samples {
    pub fn take(bench: &mut Bench<'_>) -> Result<Self, Stop> {
        let mut samples = Samples {
            near: Vec::new(),
            far: Vec::new(),
            pairs: Vec::new(),
        };
        samples.pair(bench, STRETCHES, Duration::from_millis(5))?;
        for _ in 0..FAR {
            let start = stretch(bench);
            let at = page_of(bench, start, STRETCH);
            bench.read_pages([at], 1, &mut samples.far)?;
        }
        Ok(samples)
    }

    fn pair(
        &mut self,
        bench: &mut Bench<'_>,
        stretches: usize,
        rest: Duration,
    ) -> Result<(), Stop> {
        for _ in 0..stretches {
            let start = stretch(bench);
            let mut all = Vec::new();
            for i in 0..=NEAR {
                let at = page_of(bench, start, STRETCH);
                bench.read_pages([at], 1, &mut all)?;
                if i == 0 {
                    bench.idle(rest)?;
                }
            }
            let warm = all[1..].iter().sum::<f64>() / NEAR as f64;
            self.pairs.push((all[0], warm));
            self.near.extend(&all[1..]);
        }
        Ok(())
    }

    /// The levels, if there are two. Reads from far may partly hit (a large cache, a small drive), so the
    /// slow level is the upper of two groups.
    pub fn levels(&self) -> Option<Levels> {
        // Where pages differ, a miss of a fast page is no slower than a hit of a slow one (seed 98168).
        let kinds = stats::quantile(&self.near, 0.9) / stats::quantile(&self.near, 0.1);
        if kinds > KINDS {
            return None;
        }
        levels(&self.near, &self.far)
    }

    /// Mean of reads near each other, ns, strays aside.
    pub fn near_mean(&self) -> f64 {
        let most = STRAY * stats::quantile(&self.near, 0.9);
        self.near.iter().map(|ns| ns.min(most)).sum::<f64>() / self.near.len().max(1) as f64
    }

    /// Share of first reads that may have waited for their map entry, by the mean difference of pairs and
    /// the least that a miss adds.
    pub fn missed(&self) -> Estimate {
        let most = STRAY * stats::quantile(&self.near, 0.9);
        let differences: Vec<f64> = self
            .pairs
            .iter()
            .map(|(first, warm)| first.min(most) - warm.min(most))
            .collect();
        let n = differences.len().max(1) as f64;
        let mean = differences.iter().sum::<f64>() / n;
        let variance = differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / n;
        let error = 2.0 * (variance / n).sqrt();
        let least = MISS_MIN * stats::quantile(&self.near, 0.1);
        Estimate::new(mean, mean - error, mean + error).scaled(1.0 / least.max(1.0))
    }

    /// The same with as many pairs as it takes to know.
    pub fn settled(&mut self, bench: &mut Bench<'_>) -> Result<Estimate, Stop> {
        loop {
            let missed = self.missed();
            let is_known = missed.high < FLAT_MAX || missed.low > 0.0;
            if is_known || self.pairs.len() >= STRETCHES_MAX {
                return Ok(missed);
            }
            let more = self.pairs.len().min(STRETCHES_MAX - self.pairs.len());
            self.pair(bench, more, Duration::from_millis(1))?;
        }
    }
}

fn stretch(bench: &mut Bench<'_>) -> u64 {
    let stretches = (bench.capacity() / STRETCH).max(1);
    bench.below(stretches) * STRETCH
}

fn levels(near: &[f64], far: &[f64]) -> Option<Levels> {
    let middle = stats::median(near);
    let beyond = stats::quantile(near, 0.98).max(1.12 * middle);
    let slow: Vec<f64> = far.iter().copied().filter(|v| *v > beyond).collect();
    // A few outliers are no level.
    if slow.len() * 20 < far.len() {
        return None;
    }
    Levels::of(near, &slow)
}

/// Pages of the fastest kind, spread over the drive, with their latency while the entry is at hand.
pub(super) fn pool(bench: &mut Bench<'_>, below_ns: f64) -> Result<Vec<(u64, f64)>, Stop> {
    let mut found = Vec::new();
    for _ in 0..TRIED {
        if found.len() == POOL {
            break;
        }
        let start = stretch(bench);
        let at = page_of(bench, start, STRETCH);
        bench.read_pages([at], 1, &mut Vec::new())?;
        bench.idle(Duration::from_millis(1))?;
        found.extend(choose(bench, (start, STRETCH), below_ns)?);
    }
    bench.shuffle(&mut found);
    Ok(found)
}

/// A page of a stretch whose entry is at hand, of the fastest kind, and its latency.
pub(super) fn choose(
    bench: &mut Bench<'_>,
    (start, bytes): (u64, u64),
    below_ns: f64,
) -> Result<Option<(u64, f64)>, Stop> {
    for _ in 0..CANDIDATES {
        let at = page_of(bench, start, bytes);
        let mut latency = Vec::with_capacity(1);
        bench.read_pages([at], 1, &mut latency)?;
        if (KEPT * below_ns..=below_ns).contains(&latency[0]) {
            return Ok(Some((at, latency[0])));
        }
    }
    Ok(None)
}

/// Levels of pages of the fastest kind, each read with its entry at hand and without, and those pages. Leaves
/// them at hand.
pub(super) fn by_kind(bench: &mut Bench<'_>, samples: &Samples) -> Result<Option<Levels>, Stop> {
    let fast_ns = stats::quantile(&samples.near, 0.1);
    let below_ns = KIND * fast_ns;
    let Some(kept_pages) = kept::learned(bench)? else {
        return Ok(None);
    };
    let pool = pool(bench, below_ns)?;
    if pool.len() < POOL / 4 {
        return Ok(None);
    }
    push_out(bench, kept_pages)?;
    let warm = at_hand_again(bench, &pool)?;
    push_out(bench, kept_pages)?;
    let mut cold = Vec::new();
    bench.read_pages(pool.iter().map(|page| page.0), 1, &mut cold)?;
    cold.retain(|ns| *ns > KEPT * stats::median(&warm));
    if cold.len() < POOL / 8 || warm.len() < AGAIN / 8 {
        return Ok(None);
    }
    let found = Levels::of_kind(&warm, &cold, below_ns);
    Ok(found.map(|levels| Levels {
        kept_pages,
        ..levels
    }))
}

/// Pushes out what is at hand, and what a read cache keeps.
fn push_out(bench: &mut Bench<'_>, kept_pages: u64) -> Result<(), Stop> {
    let far: Vec<u64> = (0..PUSHED.max(kept_pages))
        .map(|_| {
            let start = stretch(bench);
            page_of(bench, start, STRETCH)
        })
        .collect();
    bench.read_pages(far, 32, &mut Vec::new())?;
    bench.idle(Duration::from_secs(2))
}

/// What pages of a pool take with their entry at hand, which a neighbour brings. What they took when they were picked is
/// less: where a host's noise is as large as a kind differs from the next, a fast read was a lucky one, and the share of
/// hits that look like misses came out as none (`--noise 6`: a sixth of them, and reaches up to 67 times too short).
fn at_hand_again(bench: &mut Bench<'_>, pool: &[(u64, f64)]) -> Result<Vec<f64>, Stop> {
    let mut warm = Vec::with_capacity(AGAIN);
    for (at, picked_ns) in pool.iter().take(AGAIN) {
        bench.read_pages([at ^ bench.page()], 1, &mut Vec::new())?;
        bench.idle(Duration::from_millis(1))?;
        let mut latency = Vec::with_capacity(1);
        bench.read_pages([*at], 1, &mut latency)?;
        warm.extend(latency.into_iter().filter(|ns| *ns > KEPT * picked_ns));
    }
    Ok(warm)
}

/// Levels of another state of host memory, as they are here: what pushes a page out of a read cache is learned anew, for a
/// cache in host memory is in one state only. Nothing where that cannot be known.
pub(super) fn carried_over(bench: &mut Bench<'_>, levels: Levels) -> Result<Option<Levels>, Stop> {
    if levels.pages_below_ns.is_none() {
        return Ok(Some(levels));
    }
    let kept_pages = kept::learned(bench)?;
    Ok(kept_pages.map(|kept_pages| Levels {
        kept_pages,
        ..levels
    }))
}

/// Host memory may be so far away that a hit there lies between the levels. Then what counts as slow lies
/// above that.
pub(super) fn above_a_third(bench: &mut Bench<'_>, levels: Levels) -> Result<Levels, Stop> {
    let mut walk = Walk::new(bench, STRETCH, Pace::UNKNOWN);
    walk.ahead(bench, AGES.min(walk.places), &levels)?;
    let mut seen = Vec::new();
    for age in (1..=AGES.min(walk.places)).step_by(2) {
        seen.extend(walk.look(bench, &levels, age)?);
    }
    Ok(Levels {
        threshold_ns: split(&seen, &levels).unwrap_or(levels.threshold_ns),
        ..levels
    })
}

/// Where the highest of three levels begins, if there are three. The widest gap is no better: where nothing
/// missed it lies between strays (seed 90032).
fn split(seen: &[f64], levels: &Levels) -> Option<f64> {
    let mut sorted: Vec<f64> = seen
        .iter()
        .copied()
        .filter(|ns| *ns > 1.12 * levels.fast_ns && *ns < 1.02 * levels.least_slow_ns)
        .collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let between: Vec<f64> = sorted
        .iter()
        .copied()
        .filter(|ns| *ns < levels.least_slow_ns / 1.1)
        .collect();
    if (between.len() as f64) < THIRD * seen.len() as f64 || between.len() < 6 {
        return None;
    }
    // Halfway from there to misses, if next to nothing lies there: misses that differ have no gap in them.
    let threshold = (stats::median(&between) * levels.least_slow_ns).sqrt();
    let near = |ns: &&f64| (threshold / GAP..threshold * GAP).contains(*ns);
    let there = sorted.iter().filter(near).count();
    (there * 10 <= between.len()).then_some(threshold)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: Vec<(f64, f64)>) -> Samples {
        Samples {
            near: pairs.iter().map(|pair| pair.1).collect(),
            far: Vec::new(),
            pairs,
        }
    }

    #[test]
    fn a_mixture_of_kinds_is_flat_only_where_pairs_say_so() {
        let kinds = [50.0, 85.0, 150.0];
        // Kinds of first and later reads have nothing to do with each other.
        let pairs = |miss: f64| {
            let all = (0..1536).map(|i| (kinds[i % 3] + miss, kinds[i / 3 % 3]));
            of(all.collect())
        };
        let (flat, missed) = (pairs(0.0).missed(), pairs(40.0).missed());
        assert!(flat.low < 0.0 && flat.high < 2.0 * FLAT_MAX, "{flat:?}");
        assert!(missed.low > FLAT_MAX, "{missed:?}");
    }

    #[test]
    fn a_hit_in_far_memory_is_no_miss() {
        let levels = Levels {
            fast_ns: 70.0,
            slow_ns: 132.0,
            least_slow_ns: 132.0,
            threshold_ns: 96.0,
            false_slow: 0.0,
            false_fast: 0.0,
            pages_below_ns: None,
            kept_pages: 0,
        };
        let near = |centre: f64| (0..60).map(move |i| centre + f64::from(i % 7) - 3.0);
        let seen: Vec<f64> = near(70.0).chain(near(104.0)).chain(near(132.0)).collect();
        let split = split(&seen, &levels).unwrap();
        assert!((108.0..129.0).contains(&split), "{split}");
        // What is as fast as the fastest misses are is no third level (seed 95028).
        let of_kinds = Levels {
            slow_ns: 250.0,
            least_slow_ns: 104.0,
            ..levels
        };
        let kinds: Vec<f64> = near(70.0).chain(near(107.0)).chain(near(250.0)).collect();
        assert_eq!(super::split(&kinds, &of_kinds), None);
        // Nothing misses, and a stray lies just below misses.
        let strays = near(70.0).chain(near(104.0)).chain([119.0, 131.0]);
        let split = super::split(&strays.collect::<Vec<f64>>(), &levels).unwrap();
        assert!((110.0..124.0).contains(&split), "{split}");
        let two: Vec<f64> = near(70.0).chain(near(132.0)).collect();
        assert_eq!(super::split(&two, &levels), None);
    }
}
