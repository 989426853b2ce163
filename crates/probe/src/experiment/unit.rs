//! The caching unit: which addresses come to hand together?
//!
//! Pairs of places are read, all the first ones, then all the second ones. A second one is at hand if it lies
//! in the unit of its first. Units are taken to start at multiples of their size, a whole number of MiB: of
//! all such sizes, the one is looked for under which pairs within a unit hit and others do not. Distances are
//! drawn on a logarithmic scale, so that pairs tell units of all sizes apart.

use super::levels::Levels;
use super::walk::{Pace, page_of};
use crate::bench::{Bench, Stop};

const MIB: u64 = 1 << 20;
/// Largest unit looked for: 2048 translation pages of 4 MiB each, 8 MiB of map.
const UNIT_MAX_MIB: u64 = 8192;
/// Pairs, and how many of the first ones are read before the second ones: more than a small memory in
/// front holds, so that it does not answer.
const PAIRS: usize = 400;
const BATCH_MAX: u64 = 128;
/// Least difference of the shares of hits within units and beyond them: less than half where much of the
/// drive is at hand.
const TOLD: f64 = 0.25;
/// How much likelier, as a logarithm, a size must make what is seen than none: chance among eight thousand
/// sizes gets there in less than one of 100 cases.
const LIKELIER: f64 = 14.0;
/// By how much it has to be likelier than any other size, of a thousand to one: of a unit of 256 MiB that was not the
/// likeliest of all, single runs said 93, 156, 171 and 398 MiB.
const SURER: f64 = 7.0;
/// Sizes no farther apart than one part of so many are the same.
const ALIKE: u64 = 50;

/// Pair of places and whether the second one missed.
type Pair = (u64, u64, bool);

/// Bytes of a unit; nothing where no size explains what is seen. `fit` units surely fit the cache. Only
/// pages of the `pool` tell, if there is one.
pub(super) fn find(
    bench: &mut Bench<'_>,
    levels: &Levels,
    fit: u64,
    pace: Pace,
    pool: Option<&[(u64, f64)]>,
) -> Result<Option<u64>, Stop> {
    let batch = (fit / 3).clamp(2, BATCH_MAX) as usize;
    let wanted = pool.map_or(PAIRS, |pool| pool.len().min(PAIRS));
    let mut pairs: Vec<Pair> = Vec::with_capacity(wanted);
    let mut pool = pool.map(|pool| pool.iter());
    while pairs.len() < wanted {
        let drawn: Vec<(u64, u64)> = match &mut pool {
            None => (0..batch).map(|_| pair(bench)).collect(),
            Some(pool) => {
                let seconds: Vec<u64> = pool.by_ref().take(batch).map(|page| page.0).collect();
                let pairs = seconds.into_iter();
                pairs.map(|second| pair_of(bench, second)).collect()
            }
        };
        let batch = drawn.len();
        if batch == 0 {
            break;
        }
        let mut latencies = Vec::new();
        bench.read_pages(drawn.iter().map(|pair| pair.0), 1, &mut latencies)?;
        pace.rest(bench, batch)?;
        latencies.clear();
        bench.read_pages(drawn.iter().map(|pair| pair.1), 1, &mut latencies)?;
        let slow = latencies.iter().map(|ns| *ns > levels.threshold_ns);
        let seen = drawn.iter().zip(slow);
        pairs.extend(seen.map(|((first, second), slow)| (*first, *second, slow)));
        let misses = pairs.iter().rev().take(batch).filter(|pair| pair.2);
        pace.rest(bench, misses.count())?;
    }
    Ok(explained(&pairs, levels))
}

fn distance(bench: &mut Bench<'_>) -> u64 {
    let largest = (UNIT_MAX_MIB * MIB).min(bench.capacity() / 4).max(2 * MIB);
    let share = bench.below(1 << 20) as f64 / f64::from(1 << 20);
    let least = MIB as f64 / 2.0;
    (least * (largest as f64 / least).powf(share)) as u64
}

/// A page, and one before or after it.
fn pair_of(bench: &mut Bench<'_>, second: u64) -> (u64, u64) {
    let distance = distance(bench);
    let after = (second + distance).min(bench.capacity() - bench.page());
    let first = second.checked_sub(distance).unwrap_or(after);
    (first / bench.page() * bench.page(), second)
}

fn pair(bench: &mut Bench<'_>) -> (u64, u64) {
    let distance = distance(bench);
    let room = bench.capacity() - distance;
    let first = page_of(bench, 0, room);
    (first, page_of(bench, first + distance, bench.page()))
}

/// The size under which hits and misses are told best by whether a pair lies within a unit.
fn explained(pairs: &[Pair], levels: &Levels) -> Option<u64> {
    let slow = pairs.iter().filter(|pair| pair.2).count();
    let none = log_likelihood(pairs.len() as f64, slow as f64);
    let mut best = (none + LIKELIER, 0, 0.0);
    let mut of_size = Vec::with_capacity(UNIT_MAX_MIB as usize);
    for mib in 1..=UNIT_MAX_MIB {
        let unit = mib * MIB;
        // Of those within a unit and of the others: all, misses.
        let mut counts = [[0.0_f64; 2]; 2];
        for (first, second, slow) in pairs {
            let of = &mut counts[usize::from(first / unit != second / unit)];
            of[0] += 1.0;
            of[1] += f64::from(u8::from(*slow));
        }
        let likelihood: f64 = counts
            .iter()
            .map(|[all, slow]| log_likelihood(*all, *slow))
            .sum();
        let share = |[all, slow]: [f64; 2]| slow / all.max(1.0);
        let told = share(counts[1]) - share(counts[0]);
        of_size.push((unit, likelihood));
        if likelihood > best.0 && told > 0.0 {
            best = (likelihood, unit, told);
        }
    }
    let power = 1.0 - levels.false_slow - levels.false_fast;
    // What hits because it lies near is explained by many sizes alike, each no better than the next.
    let is_other = |unit: u64| unit.abs_diff(best.1) * ALIKE > best.1;
    let is_rival =
        |(unit, likelihood): &(u64, f64)| is_other(*unit) && *likelihood > best.0 - SURER;
    (best.2 > TOLD * power && !of_size.iter().any(is_rival)).then_some(best.1)
}

/// Of so many misses of so many, at the rate that fits them best.
fn log_likelihood(all: f64, slow: f64) -> f64 {
    let term = |part: f64| {
        if part > 0.0 {
            part * (part / all).ln()
        } else {
            0.0
        }
    };
    term(slow) + term(all - slow)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    const LEVELS: Levels = Levels {
        fast_ns: 1.0,
        slow_ns: 2.0,
        least_slow_ns: 2.0,
        threshold_ns: 1.4,
        false_slow: 0.02,
        false_fast: 0.02,
        pages_below_ns: None,
        kept_pages: 0,
    };

    /// Pairs on a drive of 256 GiB, of which one in `strays` is told wrongly.
    fn pairs(unit: u64, seed: u64, strays: u64) -> Vec<Pair> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        (0..PAIRS)
            .map(|_| {
                let first = rng.next_u64() % (255 * 1024 * MIB);
                let distance = (MIB / 2) << (rng.next_u64() % 11);
                let second = first + distance + rng.next_u64() % distance;
                let stray = rng.next_u64() % strays == 0;
                (first, second, (first / unit != second / unit) != stray)
            })
            .collect()
    }

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        #[test]
        fn the_unit_is_found_to_the_mib(mib in 2u64..400, seed in 0u64..1000) {
            prop_assert_eq!(explained(&pairs(mib * MIB, seed, 30), &LEVELS), Some(mib * MIB));
        }

        /// Few pairs lie within the smallest unit: seven in a hundred cases leave it open.
        #[test]
        fn the_smallest_unit_is_found_or_left_open(seed in 0u64..1000) {
            let found = explained(&pairs(MIB, seed, 30), &LEVELS);
            prop_assert!(found.is_none_or(|unit| unit == MIB), "{:?}", found);
        }
    }

    /// Found with the seed 518.
    #[test]
    fn pairs_of_which_too_few_lie_within_a_unit_show_none() {
        assert_eq!(explained(&pairs(MIB, 518, 30), &LEVELS), None);
        assert_eq!(explained(&pairs(MIB, 1, 30), &LEVELS), Some(MIB));
    }

    /// Of a unit of 256 MiB that is not completed when it is asked for, single runs said 93, 156, 171 and 398 MiB.
    #[test]
    fn pairs_that_hit_the_oftener_the_nearer_they_lie_show_no_unit() {
        for seed in 0..40 {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut near = || {
                let first = rng.next_u64() % (120 * 1024 * MIB);
                let octave = rng.next_u64() % 14;
                let distance = (MIB / 2) << octave;
                let misses = 4 + octave * 5 / 13;
                (first, first + distance, rng.next_u64() % 12 < misses)
            };
            let pairs: Vec<Pair> = (0..PAIRS).map(|_| near()).collect();
            assert_eq!(explained(&pairs, &LEVELS), None, "{seed}");
        }
    }

    #[test]
    fn pairs_that_hit_at_random_show_no_unit() {
        assert_eq!(explained(&pairs(MIB, 1, 2), &LEVELS), None);
    }
}
