//! Do pairs a whole round apart wait for a die, or for the bus that leads to several?
//!
//! Where the bus of a channel takes about as long as the flash, two reads of one channel wait for each other as well, and what
//! comes round after each whole round are channels. Then of the pairs that lie whole rounds apart only some share a die, too,
//! and these wait longer; of dies all wait alike.

use super::{DISTANCE_MAX, PAIRS, Pairs};
use crate::bench::{Bench, Stop};
use crate::experiment::layout::Layout;

/// Rounds looked at: up to half as many dies of one channel are told from each other.
const ROUNDS_MAX: u64 = 16;
/// Waits for a die, which the bus comes on top of, are longer than those for a bus by this at least.
const LONGER: f64 = 1.25;

/// Pairs at each distance.
const PAIRS_EACH: u64 = 3 * PAIRS;
/// Beyond so many times what does not wait, a pair was held up by the host.
const STRAY: f64 = 3.0;

/// Reads that it takes at most.
pub(super) const READS: u64 = 5 * ROUNDS_MAX * PAIRS_EACH;

/// After how many rounds pairs share a die and not the bus alone; 1 where each round is one of dies. `fast`: what pairs are told
/// by that do not wait.
pub(super) fn rounds_of_dies(
    bench: &mut Bench<'_>,
    (kind, room): (Pairs, u64),
    layout: Layout,
    fast: f64,
) -> Result<usize, Stop> {
    let mut waits = Vec::new();
    for rounds in 1..=ROUNDS_MAX {
        let distance = (rounds as f64 * layout.round).round() as u64;
        if distance > DISTANCE_MAX {
            break;
        }
        let mut times = Vec::new();
        for _ in 0..PAIRS_EACH {
            times.extend(kind.pair(bench, distance, room)?);
        }
        // Pages of two kinds have no median to rely on; strays of the host do not count.
        times.retain(|time| *time < STRAY * fast);
        if times.is_empty() {
            return Ok(1);
        }
        waits.push(times.iter().sum::<f64>() / times.len() as f64 - fast);
    }
    Ok(period(&waits))
}

/// How often one of the waits is longer than all others, the first of one round; 1 where none is.
fn period(waits: &[f64]) -> usize {
    let is_one = |period: &usize| {
        let (mut shortest, mut longest) = (f64::MAX, 0.0f64);
        for (wait, rounds) in waits.iter().zip(1..) {
            if rounds % period == 0 {
                shortest = shortest.min(*wait);
            } else {
                longest = longest.max(*wait);
            }
        }
        shortest > LONGER * longest
    };
    (2..=waits.len() / 2).find(is_one).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::period;

    #[test]
    fn every_fourth_wait_is_for_a_die() {
        let of = |rounds: i32| {
            if rounds % 4 == 0 {
                50.0
            } else {
                21.0 + f64::from(rounds % 3)
            }
        };
        let waits: Vec<f64> = (1..=16).map(of).collect();
        assert_eq!(period(&waits), 4);
        // Once is no period.
        assert_eq!(period(&waits[..7]), 1);
    }

    #[test]
    fn waits_that_spread_have_no_period() {
        // As met on a drive with two kinds of pages.
        let waits = [
            35.1, 32.5, 32.5, 21.5, 33.3, 43.0, 32.9, 45.4, 33.6, 21.8, 34.1, 33.9, 32.6, 27.1,
            34.2, 43.1,
        ];
        assert_eq!(period(&waits), 1);
        assert_eq!(period(&[40.0; 16]), 1);
    }
}
