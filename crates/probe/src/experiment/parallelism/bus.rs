//! Do pairs a whole round apart wait for a die, or for the bus that leads to several?
//!
//! Where the bus of a channel takes about as long as the flash, two reads of one channel wait for each other as well, and what
//! comes round after each whole round are channels. Then of the pairs that lie whole rounds apart only some share a die, too,
//! and these wait longer; of dies all wait alike. So do channels, where the flash is read in less time than the bus takes for a page:
//! these cannot be told from dies, and no number is given.

use super::{DISTANCE_MAX, PAIRS, Pairs};
use crate::bench::{Bench, Stop};
use crate::experiment::layout::Layout;
use crate::stats;

/// Rounds looked at: up to half as many dies of one channel are told from each other.
const ROUNDS_MAX: u64 = 16;
/// Waits for a die, which the bus comes on top of, are longer than those for a bus by this at least.
const LONGER: f64 = 1.25;

/// Pairs that share a channel alone wait for a page on the bus: where all wait for hardly more than that, they may.
const BUS: f64 = 1.25;
/// Waits no longer than this may be for a bus of which nothing is known: what 4 KiB take on one of 137 MT/s, ns.
pub(super) const SLOW_BUS_NS: f64 = 30e3;

/// Pairs at each distance.
const PAIRS_EACH: u64 = 3 * PAIRS;
/// Beyond so many times what does not wait, a pair was held up by the host.
const STRAY: f64 = 3.0;

/// Reads that it takes at most.
pub(super) const READS: u64 = 5 * ROUNDS_MAX * PAIRS_EACH;

/// What pairs whole rounds apart have told, beyond what pairs are told by that do not wait.
pub(super) struct Rounds {
    /// After how many rounds pairs share a die and not the bus alone; 1 where each round is one of dies.
    pub of_dies: usize,
    /// What those wait: two reads of the flash, one after the other. Nothing where rounds are too long.
    pub wait: Option<f64>,
    /// What those wait that wait the least.
    pub least: f64,
}

impl Rounds {
    /// Nothing is known of pairs as far apart.
    pub const UNKNOWN: Rounds = Rounds {
        of_dies: 1,
        wait: None,
        least: f64::INFINITY,
    };

    /// Whether all of them may wait for a bus alone, on which a page takes `page_ns` at most, where that is known; `unit_ns` is what waits are told in.
    pub fn may_be_channels(&self, page_ns: Option<f64>, unit_ns: f64) -> bool {
        let bus_ns = page_ns.map_or(SLOW_BUS_NS, |page_ns| BUS * page_ns);
        self.of_dies == 1 && self.least * unit_ns < bus_ns
    }
}

/// Looks for them. `fast`: what pairs are told by that do not wait.
pub(super) fn rounds_of_dies(
    bench: &mut Bench<'_>,
    (kind, room): (Pairs, u64),
    layout: Layout,
    fast: f64,
) -> Result<Rounds, Stop> {
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
            return Ok(Rounds::UNKNOWN);
        }
        waits.push(times.iter().sum::<f64>() / times.len() as f64 - fast);
    }
    let of_dies = period(&waits);
    let of_one = waits.chunks_exact(of_dies).map(|some| some[of_dies - 1]);
    let of_one: Vec<f64> = of_one.collect();
    Ok(Rounds {
        of_dies,
        wait: (!of_one.is_empty()).then(|| stats::median(&of_one)),
        least: stats::quantile(&waits, 0.2),
    })
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
    use super::{Rounds, period};

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

    /// Flash of 6.2 us behind a bus of 400 MT/s: 4 channels were told for 16 dies.
    #[test]
    fn waits_no_longer_than_the_bus_takes_may_be_for_channels() {
        let of = |least| Rounds {
            of_dies: 1,
            wait: Some(least),
            least,
        };
        assert!(of(8_400.0).may_be_channels(Some(7_300.0), 1.0));
        assert!(!of(15_500.0).may_be_channels(Some(11_000.0), 1.0));
        // As a share of what a page takes.
        assert!(of(0.2).may_be_channels(Some(8_000.0), 40_000.0));
        assert!(!Rounds::UNKNOWN.may_be_channels(Some(8_000.0), 1.0));
        // Pages of 4 KiB behind a bus of 150 MT/s.
        assert!(of(27_566.0).may_be_channels(None, 1.0));
        assert!(!of(39_000.0).may_be_channels(None, 1.0));
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
