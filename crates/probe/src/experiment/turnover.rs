//! Which of the things a cache holds gives way? By what is left after a push of new ones.
//!
//! With a cache of `C` things that holds something else: nine tenths of `C` new ones are read in an
//! order, then the first five tenths again in reverse order (touched), then new ones are pushed in.
//!
//! | pushed | LRU | CLOCK | FIFO |
//! |---|---|---|---|
//! | 0.35 `C` | untouched ones go | untouched ones go | touched ones go |
//! | 0.8 `C` | those touched first go | those read first go | all go |
//!
//! CLOCK gives the touched ones their second chance all at once, and lines them up anew in the order in
//! which they were first read. A cache with a place on probation for what is new (2Q) looks like FIFO
//! in both; but what it takes back soon after it gave way stays in spite of a push of 1.5 `C`.
//! Shares are well inside of where the edges are expected, for `C` is known to a few per cent only.

use super::levels::Levels;
use super::turns;
use crate::bench::{Bench, Stop};
use crate::stats::{self, Estimate};
use std::time::Duration;

/// Parts of the cache: read anew, touched, pushed in the two trials.
const READ: f64 = 0.9;
const TOUCHED: f64 = 0.5;
const SHORT_PUSH: f64 = 0.35;
const LONG_PUSH: f64 = 0.8;
/// Fewest things of a cache whose parts can be told from each other.
pub(super) const HELD_MIN: f64 = 12.0;
/// Different things that the trials need, as a multiple of the cache.
pub(super) const THINGS: f64 = 2.2;
/// Looks at each part, in all trials, and the trials that they may take.
const LOOKS: usize = 150;
const TRIALS_MAX: usize = 60;
/// Part of the cache that one trial looks at, for every look may push something out.
const LOOKED_AT: f64 = 0.03;
const REST: Duration = Duration::from_millis(20);

/// A cache, and how to ask it.
pub(super) struct Cache<'a> {
    pub levels: Levels,
    /// What it holds.
    pub held: f64,
    /// Where a thing is on the drive: one of its pages, by its number.
    pub place: &'a dyn Fn(&mut Bench<'_>, u64) -> u64,
    /// Numbers of all things, in an order.
    order: Vec<u64>,
    at: usize,
}

/// What is left of the parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Left {
    /// Of those that were to be touched, when they were touched.
    pub touched_at_all: Estimate,
    /// After the short push: of those touched, those read first and not touched, those read last.
    pub touched: Estimate,
    pub untouched: Estimate,
    pub youngest: Estimate,
    /// After the long push: of those read first, which were touched last, and the other way round.
    pub read_first: Estimate,
    pub touched_first: Estimate,
    /// Of those taken back soon after they had given way, after a long push.
    pub taken_back: Estimate,
}

impl<'a> Cache<'a> {
    /// A cache of `held` things out of `things`.
    pub fn new(
        levels: Levels,
        held: f64,
        things: u64,
        place: &'a dyn Fn(&mut Bench<'_>, u64) -> u64,
    ) -> Self {
        Cache {
            levels,
            held,
            place,
            order: turns::spread(things),
            at: 0,
        }
    }

    /// The next things of the round that are none of `but`.
    fn next(&mut self, share: f64, but: &[u64]) -> Vec<u64> {
        let count = ((share * self.held).round() as usize).max(1);
        let mut taken = Vec::with_capacity(count);
        let but: std::collections::HashSet<u64> = but.iter().copied().collect();
        // Once round at most.
        for _ in 0..self.order.len() {
            if taken.len() == count {
                break;
            }
            let thing = self.order[self.at];
            self.at = (self.at + 1) % self.order.len();
            if !but.contains(&thing) {
                taken.push(thing);
            }
        }
        taken
    }

    fn read(&self, bench: &mut Bench<'_>, things: &[u64]) -> Result<Vec<f64>, Stop> {
        let places: Vec<u64> = things
            .iter()
            .map(|thing| (self.place)(bench, *thing))
            .collect();
        let mut latencies = Vec::with_capacity(places.len());
        bench.read_pages(places, 1, &mut latencies)?;
        Ok(latencies)
    }

    /// Reads a few things of a part, evenly spread.
    fn look(&self, bench: &mut Bench<'_>, part: &[u64], into: &mut Vec<f64>) -> Result<(), Stop> {
        let count = self.looks().min(part.len());
        let step = part.len() as f64 / count.max(1) as f64;
        let some: Vec<u64> = (0..count)
            .map(|i| part[(i as f64 * step) as usize])
            .collect();
        into.extend(self.read(bench, &some)?);
        Ok(())
    }

    fn looks(&self) -> usize {
        ((LOOKED_AT * self.held) as usize).clamp(1, LOOKS)
    }

    /// Part of a list from one share of the cache to another.
    fn part<'b>(&self, things: &'b [u64], from: f64, to: f64) -> &'b [u64] {
        let at = |share: f64| ((share * self.held).round() as usize).min(things.len());
        let (from, to) = (at(from), at(to));
        &things[from..to.max(from + 1).min(things.len())]
    }

    /// Fills the cache with other things, reads new ones and touches the first of them. Latencies of
    /// the touches are kept.
    fn fill(&mut self, bench: &mut Bench<'_>, touches: &mut Vec<f64>) -> Result<Vec<u64>, Stop> {
        let other = self.next(1.1, &[]);
        self.read(bench, &other)?;
        let read = self.next(READ, &[]);
        self.read(bench, &read)?;
        bench.idle(REST)?;
        let mut again = self.part(&read, 0.0, TOUCHED).to_vec();
        again.reverse();
        touches.extend(self.read(bench, &again)?);
        Ok(read)
    }

    /// All trials.
    pub fn left(&mut self, bench: &mut Bench<'_>) -> Result<Left, Stop> {
        let trials = LOOKS.div_ceil(self.looks()).min(TRIALS_MAX);
        let mut seen: [Vec<f64>; 7] = Default::default();
        for _ in 0..trials {
            let read = self.fill(bench, &mut seen[0])?;
            let pushed = self.next(SHORT_PUSH, &read);
            self.read(bench, &pushed)?;
            bench.idle(REST)?;
            self.look(bench, self.part(&read, 0.0, 0.15), &mut seen[1])?;
            self.look(bench, self.part(&read, READ - 0.1, READ), &mut seen[3])?;
            self.look(
                bench,
                self.part(&read, TOUCHED, TOUCHED + 0.15),
                &mut seen[2],
            )?;
            let read = self.fill(bench, &mut seen[0])?;
            let pushed = self.next(LONG_PUSH, &read);
            self.read(bench, &pushed)?;
            bench.idle(REST)?;
            self.look(bench, self.part(&read, 0.0, 0.1), &mut seen[4])?;
            self.look(
                bench,
                self.part(&read, TOUCHED - 0.1, TOUCHED),
                &mut seen[5],
            )?;
            self.take_back(bench, &mut seen[6])?;
        }
        let share = |of: &[f64]| {
            let hits = (1.0 - self.levels.slow_share(of)) * of.len() as f64;
            stats::share(hits.round() as usize, of.len())
        };
        let [
            at_all,
            touched,
            untouched,
            youngest,
            read_first,
            touched_first,
            back,
        ] = &seen;
        Ok(Left {
            touched_at_all: share(at_all),
            touched: share(touched),
            untouched: share(untouched),
            youngest: share(youngest),
            read_first: share(read_first),
            touched_first: share(touched_first),
            taken_back: share(back),
        })
    }

    /// Some things give way, are read again at once, and then more is pushed in than the cache holds.
    fn take_back(&mut self, bench: &mut Bench<'_>, seen: &mut Vec<f64>) -> Result<(), Stop> {
        let some = self.next(0.1, &[]);
        self.read(bench, &some)?;
        let pushed = self.next(1.1, &some);
        self.read(bench, &pushed)?;
        self.read(bench, &some)?;
        let pushed = self.next(1.5, &some);
        self.read(bench, &pushed)?;
        bench.idle(REST)?;
        self.look(bench, &some, seen)
    }
}

impl Left {
    /// What the cache replaces by, if what is left fits one policy only.
    pub fn policy(&self) -> Option<&'static str> {
        let stays = |share: &Estimate| share.estimate > 0.8 && share.low > 0.7;
        let goes = |share: &Estimate| share.estimate < 0.2 && share.high < 0.3;
        if !stays(&self.touched_at_all) || !stays(&self.youngest) || !goes(&self.taken_back) {
            return None;
        }
        if goes(&self.touched) {
            let fifo =
                stays(&self.untouched) && goes(&self.read_first) && goes(&self.touched_first);
            return fifo.then_some("fifo");
        }
        if !stays(&self.touched) || !goes(&self.untouched) {
            return None;
        }
        if stays(&self.read_first) && goes(&self.touched_first) {
            return Some("lru");
        }
        (goes(&self.read_first) && stays(&self.touched_first)).then_some("clock")
    }
}
