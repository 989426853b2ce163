//! The null of pairs: the same two pages, brought to hand in the same way, and read one after the other. What takes
//! longer then is no die that both wait for: map entries that do not stay at hand together, or a drive that is busy
//! with something of its own, as completing large units of the map.

use super::{Pairs, beside};
use crate::bench::{Bench, Stop};
use crate::stats;
use std::time::Duration;

/// Pairs that are read one after the other.
pub(super) const PAIRS: u64 = 256;
/// Fewer of them, as where pages are kept once read, tell nothing.
const TOLD_MIN: usize = 64;
/// Later than most by this.
const LATE: f64 = 1.25;
/// Share of them that may be late: what the host holds up, and a few of a drive that completes small units.
const LATE_MAX: f64 = 0.1;
/// Reads of two pages brought to hand take longer by no more than this than those of one.
const ALIKE: f64 = 1.15;
/// Beyond so many times the 90th percentile, a read was held up by the host.
const STRAY: f64 = 2.0;
/// Pairs of which even the fastest tenth takes longer than this, as a multiple of reads one after the other, all wait.
const ALL_WAIT: f64 = 1.2;

/// What reads one after the other take.
pub(super) struct Alone {
    /// What pairs are told by, had the two nothing to do with each other.
    times: Vec<f64>,
    /// What single reads take whose neighbour was just read, ns, and the first of two whose neighbours were.
    direct_ns: f64,
    first_ns: f64,
}

/// Mean without strays: of pages of two kinds the median is now one, now the other.
fn usual(times: &[f64]) -> f64 {
    let most = STRAY * stats::quantile(times, 0.9);
    let told: Vec<f64> = times.iter().copied().filter(|ns| *ns < most).collect();
    told.iter().sum::<f64>() / told.len().max(1) as f64
}

impl Alone {
    /// Of pages at the distances that pairs far from each other have.
    pub fn measured(
        bench: &mut Bench<'_>,
        kind: Pairs,
        (room, distance_max): (u64, u64),
    ) -> Result<Self, Stop> {
        let page = bench.page();
        let (mut times, mut direct, mut firsts) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..PAIRS {
            let first = bench.below(room);
            let second = first + 1 + bench.below(distance_max);
            let both = [first, second].map(|at| at * page);
            kind.warm(bench, first, second)?;
            let mut rounds = [Vec::new(), Vec::new()];
            for round in &mut rounds[..kind.rounds()] {
                bench.read_pages(both, 1, round)?;
            }
            firsts.push(rounds[0][0]);
            times.extend(kind.told_by_rounds(&rounds));
            let at = bench.below(room);
            bench.read_pages([beside(at, at) * page], 1, &mut Vec::new())?;
            bench.idle(Duration::from_millis(1))?;
            bench.read_pages([at * page], 1, &mut direct)?;
        }
        Ok(Alone {
            times,
            direct_ns: usual(&direct),
            first_ns: usual(&firsts),
        })
    }

    /// What pairs are told by, had the two nothing to do with each other.
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// Why pairs tell nothing of dies, if they do not.
    pub fn against_pairs(&self) -> Option<String> {
        if self.first_ns > ALIKE * self.direct_ns {
            return Some(format!(
                "dies are not looked for: reads take {:.1} us where the page next to them was read just before, and {:.1} us \
                 where one other was read between: map entries of two pages do not stay at hand together, and what two \
                 reads at once wait for is not known",
                self.direct_ns / 1e3,
                self.first_ns / 1e3
            ));
        }
        self.busy().map(|share| {
            format!(
                "dies are not looked for: {:.0} % of reads one after the other are late as well, as where the drive is busy \
                 with something of its own, such as completing large units of its map, or where map entries lie in memories \
                 at different distances",
                100.0 * share
            )
        })
    }

    /// Share of them that are late, where it is more than chance.
    pub fn busy(&self) -> Option<f64> {
        let most = stats::quantile(&self.times, 0.25);
        let late = self.times.iter().filter(|time| **time > LATE * most);
        let share = late.count() as f64 / self.times.len().max(1) as f64;
        (self.times.len() >= TOLD_MIN && share > LATE_MAX).then_some(share)
    }

    /// Whether every two reads at once take longer than one after the other.
    pub fn all_wait(&self, pairs: &[f64]) -> bool {
        stats::quantile(pairs, 0.1) > ALL_WAIT * stats::median(&self.times)
    }
}

#[cfg(test)]
mod tests {
    use super::usual;

    /// Half of the pages take 70 us and half 178: dies were "not looked for", as medians of the same reads differed.
    #[test]
    fn reads_of_pages_of_two_kinds_are_alike_whichever_are_more() {
        let of = |fast: usize| [vec![70.0; fast], vec![178.0; 256 - fast], vec![9e3; 1]].concat();
        let (few, many) = (usual(&of(120)), usual(&of(136)));
        assert!((few / many - 1.0).abs() < 0.1, "{few} {many}");
    }
}
