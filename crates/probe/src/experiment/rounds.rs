//! Places that are visited round after round: caches that replace at random, and those that trust what returns.

use super::levels::Levels;
use super::walk::{FINE, VISITS_MAX, Walk};
use super::{knee, turns};
use crate::bench::{Bench, Stop};
use crate::stats::Estimate;

/// Reads from which the share of hits of random replacement is taken, and rounds that it may take and that
/// it takes to forget what was before.
const COUNTED: usize = 6_000;
const ROUNDS_MAX: usize = 60;
const ROUNDS_FORGET: usize = 10;
const TRIES: usize = 6;
/// Least looks at what was taken back.
const TAKEN_BACK_MIN: usize = 16;
/// Times that each half is visited alone, and least reads that measure after that.
const ROUNDS_HALF: usize = 3;
const WHOLE_MIN: usize = 240;

impl Walk {
    /// Units of a cache that replaces at random and holds about `about`: places are visited round after
    /// round, and the share of hits tells ([`turns::random_capacity`]).
    pub fn random_capacity(
        &mut self,
        bench: &mut Bench<'_>,
        levels: &Levels,
        about: f64,
    ) -> Result<Option<Estimate>, Stop> {
        let mut places = (1.3 * about) as u64;
        for _ in 0..TRIES {
            places = places.clamp(8, self.places.max(8));
            let first = self.at;
            self.at += places;
            let round = first..first + places;
            let mut measured = Vec::new();
            for _ in 0..ROUNDS_FORGET {
                measured = self.again(bench, round.clone(), levels)?;
            }
            // Where nearly all or few hit, their share tells little.
            let misses = levels.slow_share(&measured);
            if misses < 0.15 && places < self.places {
                places = places * 3 / 2;
                continue;
            }
            if misses > 0.7 && places > 8 {
                places = places * 2 / 3;
                continue;
            }
            for _ in 0..ROUNDS_MAX {
                if measured.len() >= COUNTED.max(3 * places as usize) {
                    break;
                }
                measured.extend(self.again(bench, round.clone(), levels)?);
            }
            return Ok(turns::capacity_of(levels, places, &measured));
        }
        Ok(None)
    }

    /// Whether what is taken back soon after it gave way stays while more is visited than `held`: what is
    /// visited once stays that long, and 2Q trusts what returns.
    pub fn takes_back(
        &mut self,
        bench: &mut Bench<'_>,
        levels: &Levels,
        held: f64,
    ) -> Result<bool, Stop> {
        let some = ((held / 10.0) as u64)
            .clamp(4, 64)
            .min((held / 3.0) as u64 + 1);
        let pushed = (1.2 * held) as u64 + 2;
        if some + 2 * pushed > self.places {
            return Ok(false);
        }
        let mut left = Vec::new();
        for _ in 0..VISITS_MAX {
            if left.len() >= TAKEN_BACK_MIN {
                break;
            }
            let first = self.at;
            self.at += some + 2 * pushed;
            for round in 0..3 {
                self.again(bench, first..first + some, levels)?;
                // Now these, now others, or the walk would come back to the first ones.
                let from = first + some + round % 2 * pushed;
                self.again(bench, from..from + pushed, levels)?;
            }
            left.extend(self.again(bench, first..first + some, levels)?);
        }
        Ok(levels.slow_share(&left) < 0.35)
    }

    /// Units of a cache that trusts what returns (2Q) and holds at least `least`. Each half of the places is
    /// visited a few times alone, so that it is taken in where the cache would hold on to something older
    /// for as long as all are visited in turn.
    pub fn by_halves(
        &mut self,
        bench: &mut Bench<'_>,
        levels: &Levels,
        least: u64,
    ) -> Result<Option<Estimate>, Stop> {
        let most = self.places;
        let mut is_blind = false;
        let (low, high) = knee(least, most, FINE, |places| {
            let first = self.at;
            self.at += places;
            let (middle, end) = (first + places / 2, first + places);
            for half in [first..middle, middle..end] {
                for _ in 0..ROUNDS_HALF {
                    self.again(bench, half.clone(), levels)?;
                }
            }
            let seen = turns::settled(bench, levels, |bench, _| {
                let mut latencies = Vec::new();
                for _ in 0..WHOLE_MIN {
                    latencies.extend(self.again(bench, first..end, levels)?);
                    if latencies.len() >= WHOLE_MIN {
                        break;
                    }
                    // All of it is read again from where no entry is needed.
                    is_blind |= latencies.is_empty();
                    if is_blind {
                        break;
                    }
                }
                Ok(latencies)
            })?;
            Ok(seen.beyond || is_blind)
        })?;
        if is_blind {
            return Ok(None);
        }
        // It gives way bit by bit, and is noticed to do so 1 % or 2 % beyond its edge.
        let low = low as f64;
        Ok(high.map(|high| Estimate::new(low, 0.97 * low, 1.01 * (high - 1) as f64)))
    }
}
