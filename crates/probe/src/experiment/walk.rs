//! A walk over the drive, one place to each caching unit, and how long ago a place may have been visited
//! to be still at hand.
//!
//! Places are visited in an order in which neighbours lie far apart, none twice before all have been. What
//! was visited `age` places ago is at hand as long as the cache holds `age` units, whether it replaces by
//! use, by age or by second chance, and in 2Q's place on probation: the share of hits falls from one to
//! none at one age. With random replacement it falls bit by bit. Places are asked from the youngest to the
//! oldest, since those that hit push nothing out, and no farther than a few that miss.

use super::levels::Levels;
use super::own::Own;
use super::samples::{self, KEPT};
use super::{enter, kept, turns};
use crate::bench::{Bench, Stop};
use crate::stats::Estimate;
use crate::target::HmbState;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

/// Looks that tell the edge of a profile, and the ages between two of them as a share of the edge when it
/// is known well enough.
const LOOKS: usize = 80;
/// Least looks: where it is not known yet whether there is an edge, and where it is.
const LOOKS_FIRST: usize = 60;
const LOOKS_MIN: usize = 36;
pub(super) const FINE: f64 = 0.003;
/// Times that an edge is looked at anew.
const ZOOMS_MAX: usize = 10;
/// Misses in a row that end a pass, at least; where noise makes hits look like misses, as many as come by chance in fewer
/// looks than this.
const MISSES_MIN: u32 = 4;
const MISSES_MAX: u32 = 8;
const BY_CHANCE: f64 = 1e-5;
/// Looks on the wrong side of an edge, as a share of all, up to which there is one: with random
/// replacement it is more than a quarter.
const WRONG_MAX: f64 = 0.13;
/// Passes of a profile at most: small caches are looked at several times.
const PASSES_MAX: usize = 40;
/// Most places that are visited without rest, and of units of several translation pages, as far as that is known.
const RUN: u64 = 1024;
const RUN_OF_LARGE: u64 = 8;
/// Rest for each miss in any case: less than it takes to read it.
const PER_MISS: Duration = Duration::from_micros(50);
/// Longest rest that is tried.
const REST_MAX: Duration = Duration::from_secs(1);
/// Addresses of one translation page with entries of 4 B, and of a stretch whose entries surely come together.
pub(super) const TRANSLATED: u64 = 4 << 20;
const NEAR_BYTES: u64 = 2 << 20;
/// Places visited last, whose entries are surely at hand.
const RECENT: usize = 4;
/// Visits after which there is nothing more to be had of places without a page that tells.
pub(super) const VISITS_MAX: usize = 64;

/// Rest for the drive to complete large units in the background.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    /// After each run of reads that missed.
    pub base: Duration,
    /// For each read that missed.
    pub per_miss: Duration,
}

impl Pace {
    /// Before anything is known of the drive: enough for units of 256 KiB of map, read page by page.
    pub const UNKNOWN: Pace = Pace {
        base: Duration::from_millis(60),
        per_miss: Duration::from_millis(2),
    };

    pub fn rest(&self, bench: &mut Bench<'_>, misses: usize) -> Result<(), Stop> {
        if misses == 0 {
            return Ok(());
        }
        let misses = u32::try_from(misses).unwrap_or(u32::MAX);
        bench.idle(self.base + self.per_miss.saturating_mul(misses))
    }
}

/// Places in an order, and where in it one is.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    /// Size of a place, bytes.
    pub place_bytes: u64,
    /// Places on the drive.
    pub places: u64,
    pub pace: Pace,
    /// Units that certainly fit: a run of misses stays below them.
    pub fit: u64,
    /// State of host memory to enter before each profile, through none at all, so that nothing is left of
    /// what was before: what 2Q trusts it does not give away.
    pub renewed: Option<HmbState>,
    /// What the drive's own memory holds, where host memory is looked at.
    pub own: Option<Own>,
    /// Ages that were asked for, and latencies, ns.
    pub seen: Vec<(u64, f64)>,
    /// Pages of places that are of the fastest kind, where there are several kinds.
    chosen: HashMap<u64, u64>,
    /// At the last age that was tried nothing could be told: the drive keeps the very pages that would tell.
    pub is_blind: bool,
    /// What was visited last.
    recent: VecDeque<u64>,
    step: u64,
    /// Number of the next place.
    pub at: u64,
}

/// One look: how many places ago, and whether it missed.
type Look = (u64, bool);

/// What a profile shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Edge {
    /// All older places miss, all younger ones hit.
    At(Estimate),
    /// Places miss now and then; half of them do at about this age.
    Gradual(f64),
    /// None missed.
    Beyond,
    /// There was nothing to look at: the drive keeps the very pages that would tell.
    Blind,
}

impl Walk {
    pub fn new(bench: &mut Bench<'_>, place_bytes: u64, pace: Pace) -> Self {
        let places = (bench.capacity() / place_bytes).max(1);
        Walk {
            place_bytes,
            places,
            pace,
            fit: 4,
            renewed: None,
            own: None,
            seen: Vec::new(),
            chosen: HashMap::new(),
            is_blind: false,
            recent: VecDeque::new(),
            step: turns::golden_step(places),
            at: bench.below(places),
        }
    }

    /// Where a place starts, by its number.
    fn start(&self, number: u64) -> u64 {
        let place = u128::from(number % self.places) * u128::from(self.step);
        (place % u128::from(self.places)) as u64 * self.place_bytes
    }

    /// A page of a place: the one that was chosen, or any.
    fn page(&self, bench: &mut Bench<'_>, number: u64) -> u64 {
        if let Some(at) = self.chosen.get(&(number % self.places)) {
            return *at;
        }
        page_of(bench, self.start(number), self.place_bytes)
    }

    /// Visits the next places; returns latencies.
    pub fn ahead(
        &mut self,
        bench: &mut Bench<'_>,
        count: u64,
        levels: &Levels,
    ) -> Result<Vec<f64>, Stop> {
        let first = self.at;
        self.at += count;
        let apart = self.apart(levels);
        self.visit(bench, first..first + count, (levels, apart))
    }

    /// Units of the drive's own memory, bytes, where several make a place of which one page tells. The entry of a page
    /// that missed stands in such a unit as well, and is found there when host memory has long lost it. Who visits a
    /// place reads in another unit than that of the page that tells, then: what hits in host memory is not copied.
    pub fn apart(&self, levels: &Levels) -> Option<u64> {
        let own = self
            .own
            .filter(|own| (1..=self.place_bytes / 2).contains(&own.bytes))?;
        levels.pages_below_ns.map(|_| own.bytes)
    }

    /// A page of a place in another stretch of so many bytes than this one.
    fn page_apart(&self, bench: &mut Bench<'_>, at: u64, apart: u64) -> u64 {
        let start = at / self.place_bytes * self.place_bytes;
        let stretches = self.place_bytes / apart;
        let stretch = (at - start) / apart + 1 + bench.below(stretches - 1);
        page_of(bench, start + stretch % stretches * apart, apart)
    }

    fn visit(
        &mut self,
        bench: &mut Bench<'_>,
        mut numbers: impl Iterator<Item = u64>,
        (levels, apart): (&Levels, Option<u64>),
    ) -> Result<Vec<f64>, Stop> {
        // Units of several translation pages are completed in the background, and what gives way to them
        // does so late.
        let longest = if self.place_bytes > TRANSLATED || levels.pages_below_ns.is_some() {
            RUN_OF_LARGE
        } else {
            RUN
        };
        let run = (self.fit / 4).clamp(1, longest) as usize;
        let mut latencies = Vec::new();
        loop {
            let numbers: Vec<u64> = numbers.by_ref().take(run).collect();
            let page = |n: &u64| match (apart, self.page(bench, *n)) {
                (Some(apart), at) => self.page_apart(bench, at, apart),
                (None, at) => at,
            };
            let offsets: Vec<u64> = numbers.iter().map(page).collect();
            if offsets.is_empty() {
                return Ok(latencies);
            }
            let mut took = Vec::with_capacity(offsets.len());
            bench.read_pages(offsets.iter().copied(), 1, &mut took)?;
            self.recent.extend(&offsets);
            let old = self.recent.len().saturating_sub(RECENT);
            self.recent.drain(..old);
            let slow = took.iter().filter(|ns| **ns > levels.threshold_ns);
            self.pace.rest(bench, slow.count())?;
            let Some(below_ns) = levels.pages_below_ns else {
                latencies.extend(took);
                continue;
            };
            for ((number, at), ns) in numbers.into_iter().zip(offsets).zip(took) {
                let place = number % self.places;
                if self.chosen.get(&place) == Some(&at) {
                    latencies.extend(Some(ns).filter(|ns| *ns > KEPT * levels.fast_ns));
                } else if apart.is_none() || !self.chosen.contains_key(&place) {
                    let at = apart.map_or(at, |apart| self.page_apart(bench, at, apart));
                    let stretch = (self.near(at), self.place_bytes.min(NEAR_BYTES));
                    let found = samples::choose(bench, stretch, below_ns)?;
                    self.chosen.extend(found.map(|found| (place, found.0)));
                }
            }
        }
    }

    /// Fills a read cache with pages whose entries are at hand: those next to what was visited last.
    pub fn push_kept(&self, bench: &mut Bench<'_>, levels: &Levels) -> Result<(), Stop> {
        let stretch = self.place_bytes.max(TRANSLATED);
        let most = stretch / bench.page();
        let mut left = levels.kept_pages;
        for at in self.recent.iter().rev() {
            kept::push(bench, at / stretch * stretch, left.min(most))?;
            left = left.saturating_sub(most);
        }
        Ok(())
    }

    /// Visits places again.
    pub fn again(
        &mut self,
        bench: &mut Bench<'_>,
        numbers: Range<u64>,
        levels: &Levels,
    ) -> Result<Vec<f64>, Stop> {
        self.push_kept(bench, levels)?;
        self.visit(bench, numbers, (levels, None))
    }

    /// Start of a stretch around a page of a place whose entries came with that page's.
    fn near(&self, at: u64) -> u64 {
        let stretch = self.place_bytes.min(NEAR_BYTES);
        at / stretch * stretch
    }

    /// Reads the place that was visited `age` places ago, the last one being 1. Nothing where it has no page
    /// that tells.
    pub fn look(
        &self,
        bench: &mut Bench<'_>,
        levels: &Levels,
        age: u64,
    ) -> Result<Option<f64>, Stop> {
        let number = (self.at + self.places * 2).saturating_sub(age);
        let by_kind = levels.pages_below_ns.is_some();
        if by_kind && !self.chosen.contains_key(&(number % self.places)) {
            return Ok(None);
        }
        let at = self.page(bench, number);
        let mut latency = Vec::with_capacity(1);
        bench.read_pages([at], 1, &mut latency)?;
        let is_kept = by_kind && latency[0] < KEPT * levels.fast_ns;
        Ok(Some(latency[0]).filter(|_| !is_kept))
    }

    /// Walks and asks for places of ages `from` to `to`, in as many passes as it takes to know enough.
    fn profile(
        &mut self,
        bench: &mut Bench<'_>,
        levels: &Levels,
        (from, to): (u64, u64),
        least: usize,
    ) -> Result<Vec<Look>, Stop> {
        let mut looks = Vec::new();
        let span = (to - from + 1) as usize;
        let enough = misses_that_end(levels);
        for pass in 0..PASSES_MAX {
            // Where nothing hits, more of the same tells nothing.
            let is_hopeless =
                pass > 0 && looks.iter().all(|look: &Look| look.1) || pass > 3 && looks.is_empty();
            if looks.len() >= least || is_hopeless {
                break;
            }
            renew(bench, self.renewed)?;
            self.ahead(bench, to, levels)?;
            self.push_kept(bench, levels)?;
            let mut in_a_row = 0;
            let mut misses = 0;
            let count = span.min(LOOKS);
            for i in 0..count {
                // Every pass asks for other ages where not all can be asked for.
                let shift = pass as f64 * 0.618 % 1.0;
                let age = from + ((i as f64 + shift) * span as f64 / count as f64) as u64;
                let age = age.min(to);
                let Some(latency) = self.look(bench, levels, age)? else {
                    continue;
                };
                self.seen.push((age, latency));
                let slow = latency > levels.threshold_ns;
                looks.push((age + misses, slow));
                if slow {
                    misses += 1;
                    in_a_row += 1;
                    if in_a_row == enough {
                        break;
                    }
                } else {
                    in_a_row = 0;
                }
            }
            self.pace.rest(bench, misses as usize)?;
        }
        Ok(looks)
    }

    /// Rest that large units need: as long as it takes until the ends of units hit whose beginnings missed,
    /// and as much again. Of many at once, for a few are completed while the next are asked for.
    pub fn learned_pace(&mut self, bench: &mut Bench<'_>, levels: &Levels) -> Result<Pace, Stop> {
        if levels.pages_below_ns.is_some() {
            // Which page ends a unit cannot be chosen: as long as all of it takes, read one by one.
            let pages = self.place_bytes.div_ceil(TRANSLATED) as u32;
            let each = Duration::from_nanos(levels.slow_ns as u64);
            return Ok(Pace {
                base: Duration::from_millis(1),
                per_miss: PER_MISS + each.saturating_mul(pages).min(REST_MAX),
            });
        }
        let count = (self.fit / 2).clamp(1, 256);
        let slow = |ns: &f64| *ns > levels.threshold_ns;
        let mut rest = Duration::ZERO;
        while rest < REST_MAX {
            let mut starts: Vec<u64> = (self.at..self.at + count).map(|n| self.start(n)).collect();
            self.at += count;
            let (mut first, mut last) = (Vec::new(), Vec::new());
            bench.read_pages(starts.iter().copied(), 1, &mut first)?;
            // What was asked for last is completed last; more than some would leave it time.
            starts.reverse();
            first.reverse();
            starts.truncate(16);
            bench.idle(rest)?;
            let end = self.place_bytes - bench.page();
            bench.read_pages(starts.iter().map(|at| at + end), 1, &mut last)?;
            let both = || first.iter().zip(&last).filter(|(first, _)| slow(first));
            let (asked, late) = (
                both().count(),
                both().filter(|(_, last)| slow(last)).count(),
            );
            if late * 16 <= asked && asked > 0 {
                return Ok(Pace {
                    base: rest.min(Duration::from_millis(1)),
                    per_miss: PER_MISS + rest * 2 / count as u32,
                });
            }
            // What is still on its way must not hold up the next try.
            bench.idle(REST_MAX)?;
            rest = (2 * rest).max(Duration::from_micros(500));
        }
        Ok(Pace::UNKNOWN)
    }

    /// Doubles the age until what was visited then is no longer at hand: an age that was and one that was
    /// not, or none up to `most`.
    pub fn bracket(
        &mut self,
        bench: &mut Bench<'_>,
        levels: &Levels,
        (from, most): (u64, u64),
    ) -> Result<(u64, Option<u64>), Stop> {
        let (mut low, mut walked, mut asked, mut to) = (0, 0, 0, from.min(most));
        loop {
            self.ahead(bench, to - walked, levels)?;
            self.push_kept(bench, levels)?;
            walked = to;
            let count = (to / 2).clamp(2, 12);
            let (mut slow, mut seen) = (0, 0);
            for i in 0..count {
                let age = (walked - asked).saturating_sub(i).max(1);
                if let Some(latency) = self.look(bench, levels, age)? {
                    seen += 1;
                    slow += u64::from(latency > levels.threshold_ns);
                }
            }
            self.pace.rest(bench, slow as usize)?;
            asked += count;
            // The youngest places are in a read cache: their pages have just been picked.
            let is_told = 2 * seen >= count;
            if is_told && 2 * slow > seen {
                return Ok((low, Some(walked)));
            }
            self.is_blind = !is_told;
            if is_told {
                low = walked.saturating_sub(asked);
                self.fit = self.fit.max(low);
            }
            if walked >= most {
                return Ok((low, None));
            }
            to = (2 * walked).min(most);
        }
    }

    /// The edge, looked for between two ages.
    pub fn edge(
        &mut self,
        bench: &mut Bench<'_>,
        levels: &Levels,
        (low, high): (u64, u64),
    ) -> Result<Edge, Stop> {
        let (mut from, mut to) = (low.max(1), high.min(self.places).max(low.max(1)));
        let mut known = None;
        // Each look at less of it is some ten times finer.
        for _ in 0..ZOOMS_MAX {
            let least = if known.is_none() {
                LOOKS_FIRST
            } else {
                LOOKS_MIN
            };
            let looks = self.profile(bench, levels, (from, to), least)?;
            let Some(fit) = Fit::of(&looks, (from, to)) else {
                return Ok(known.map_or(Edge::Blind, Edge::At));
            };
            let noise = f64::midpoint(levels.false_slow, levels.false_fast);
            if fit.wrong > WRONG_MAX + noise {
                return Ok(known.map_or(Edge::Gradual(fit.edge), Edge::At));
            }
            let gap = ((to - from) as f64 / LOOKS as f64).max(1.0);
            if fit.edge <= from as f64 && from > 1 {
                (from, to) = ((from / 4).max(1), from + 2 * gap as u64);
                continue;
            }
            if fit.all_hit {
                if to >= self.places {
                    return Ok(Edge::Beyond);
                }
                (from, to) = (to - (to - from) / 4, (3 * to - 2 * from).min(self.places));
                continue;
            }
            known = Some(Estimate::new(fit.edge, fit.low, fit.high));
            if gap <= 1.0 || gap <= FINE * fit.edge {
                break;
            }
            from = ((fit.low - 4.0 * gap) as u64).max(1);
            to = ((fit.high + 4.0 * gap) as u64).min(self.places);
        }
        // Not found is not "none".
        Ok(known.map_or(Edge::Blind, Edge::At))
    }
}

/// Gives host memory anew, if that is what state there is to come to: what it held is gone.
pub(super) fn renew(bench: &mut Bench<'_>, state: Option<HmbState>) -> Result<(), Stop> {
    if let Some(state) = state {
        enter(bench, Some(HmbState::Off))?;
        enter(bench, Some(state))?;
    }
    Ok(())
}

/// A page of a stretch, drawn at random.
pub(crate) fn page_of(bench: &mut Bench<'_>, start: u64, bytes: u64) -> u64 {
    let page = bench.page();
    let last = bench.capacity() / page - 1;
    (start / page + bench.below((bytes / page).max(1))).min(last) * page
}

/// Misses in a row that are no chance.
fn misses_that_end(levels: &Levels) -> u32 {
    let chance = BY_CHANCE.ln() / levels.false_slow.clamp(1e-6, 0.5).ln();
    (chance.ceil() as u32).clamp(MISSES_MIN, MISSES_MAX)
}

/// The edge that leaves the fewest looks on the wrong side.
#[derive(Clone, Copy, Debug)]
struct Fit {
    edge: f64,
    /// Edges that leave one more there.
    low: f64,
    high: f64,
    /// Share of looks on the wrong side.
    wrong: f64,
    all_hit: bool,
}

impl Fit {
    /// Over looks at ages of a range; nothing if there are none.
    fn of(looks: &[Look], (from, to): (u64, u64)) -> Option<Fit> {
        let mut sorted = looks.to_vec();
        sorted.sort_unstable();
        let mut wrong = sorted.iter().filter(|look| !look.1).count();
        // An edge between one look and the next; errors and the ages between which it lies.
        let mut spans = vec![(wrong, from - 1, sorted.first()?.0 - 1)];
        for (i, (age, slow)) in sorted.iter().enumerate() {
            if *slow {
                wrong += 1;
            } else {
                wrong -= 1;
            }
            let next = sorted.get(i + 1).map_or(to.max(*age), |look| look.0 - 1);
            spans.push((wrong, *age, next));
        }
        spans.retain(|(_, start, end)| start <= end);
        let least = spans.iter().map(|span| span.0).min()?;
        let within = |more: usize| {
            let mut of = spans
                .iter()
                .filter(|span| span.0 <= least + more)
                .peekable();
            let low = of.peek().map_or(0, |span| span.1);
            (low as f64, of.last().map_or(0, |span| span.2) as f64)
        };
        let ((best_low, best_high), (low, high)) = (within(0), within(1));
        Some(Fit {
            edge: f64::midpoint(best_low, best_high),
            low,
            high,
            wrong: least as f64 / looks.len() as f64,
            all_hit: best_high >= to as f64,
        })
    }
}

#[cfg(test)]
mod tests;
