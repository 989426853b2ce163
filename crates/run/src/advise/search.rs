//! Which sizes to simulate, and the smallest that is enough.

use super::curve::{Curve, thinned};
use super::goal::Goal;
use super::measure::{self, Run, Tally};
use super::place::Place;
use crate::Error;
use crate::config::RunConfig;
use lodger_core::spec::{ENTRIES_PER_TRANSLATION_PAGE, Integrity};
use lodger_workload::Workload;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Rounds of two simulations each that close in on the answer.
const ROUNDS_MAX: usize = 4;

/// Sizes that are looked at where the ends do not tell what lies between them.
const BETWEEN: usize = 8;

/// Makes the workload with a seed, as often as it is run.
pub type Make<'m> = dyn Fn(u64) -> Result<Workload, Error> + Sync + 'm;

/// The runs made so far, by what they amount to: sizes of equal effect share one.
pub struct Runs<'a> {
    config: &'a RunConfig,
    make: &'a Make<'a>,
    tally: &'a Tally<'a>,
    place: &'a Place,
    /// From so many units on nothing ever gives way: more make no difference.
    units_enough: u32,
    runs: BTreeMap<(u64, u32), Run>,
}

impl<'a> Runs<'a> {
    /// Begins with one run.
    #[must_use]
    pub fn new(
        config: &'a RunConfig,
        make: &'a Make<'a>,
        tally: &'a Tally<'a>,
        place: &'a Place,
        first: Run,
    ) -> Self {
        let mut runs = Runs {
            config,
            make,
            tally,
            place,
            units_enough: units_enough(config, place, &first),
            runs: BTreeMap::new(),
        };
        runs.add(first);
        runs
    }

    /// Keeps a run, unless one amounts to the same.
    pub fn add(&mut self, run: Run) {
        self.runs.entry(self.key(run.hmb_bytes)).or_insert(run);
    }

    /// What a grant amounts to.
    fn key(&self, hmb_bytes: u64) -> (u64, u32) {
        let (data_bytes, units) = self.place.effect(hmb_bytes);
        (data_bytes, units.min(self.units_enough))
    }

    /// The run of a size, or of one that amounts to the same; `None` if it was not simulated.
    #[must_use]
    pub fn get(&self, hmb_bytes: u64) -> Option<&Run> {
        self.runs.get(&self.key(hmb_bytes))
    }

    /// Whether two sizes amount to the same.
    #[must_use]
    pub fn is_same(&self, one_bytes: u64, other_bytes: u64) -> bool {
        self.key(one_bytes) == self.key(other_bytes)
    }

    /// All runs, the smallest size first.
    pub fn all(&self) -> impl Iterator<Item = &Run> {
        self.runs.values()
    }

    /// Simulates the sizes that no run stands for yet, side by side.
    ///
    /// # Errors
    /// If a run fails; of several, the error of the smallest size is told.
    pub fn simulate(&mut self, sizes: &[u64]) -> Result<(), Error> {
        let mut wanted: BTreeMap<(u64, u32), u64> = BTreeMap::new();
        for &size in sizes {
            if self.get(size).is_none() {
                let smallest = wanted.entry(self.key(size)).or_insert(size);
                *smallest = (*smallest).min(size);
            }
        }
        let wanted: Vec<_> = wanted.into_iter().collect();
        self.tally.expect(wanted.len());
        let done: Vec<Result<_, Error>> = wanted
            .par_iter()
            .map(|&(key, size)| {
                let workload = (self.make)(self.config.seed)?;
                let run = measure::measure(self.config, workload, size, None, self.tally)?;
                Ok((key, run.0))
            })
            .collect();
        for result in done {
            let (key, run) = result?;
            self.runs.insert(key, run);
        }
        Ok(())
    }
}

/// When nothing gave way in a run, what it held is enough, and more would change nothing at all.
fn units_enough(config: &RunConfig, place: &Place, run: &Run) -> u32 {
    let exclusive = config.drive.parsed.spec.roles.map.exclusive;
    let Some(tier) = place
        .map
        .as_ref()
        .filter(|_| run.evictions == 0 && !exclusive)
    else {
        return u32::MAX;
    };
    let map_bytes = run.used_bytes.saturating_sub(place.data_bytes);
    let held = if tier.integrity == Integrity::None {
        let unit_millibytes = u128::from(tier.unit_translation_pages)
            * u128::from(ENTRIES_PER_TRANSLATION_PAGE)
            * u128::from(tier.entry_millibytes);
        (u128::from(map_bytes) * 1000).div_ceil(unit_millibytes) as u32
    } else {
        (map_bytes / tier.unit_bytes()) as u32
    };
    // With every unit pinned a full cache turns away instead of evicting: then it says nothing.
    if held < place.units(run.hmb_bytes) {
        held
    } else {
        u32::MAX
    }
}

/// What the search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Without any host memory the goal is met.
    Off,
    /// The smallest size that meets it, and the largest below that is known not to, bytes.
    Size {
        /// Enough.
        enough_bytes: u64,
        /// Not enough.
        below_bytes: u64,
    },
    /// None meets it; this one comes nearest, bytes.
    Nothing {
        /// The best size.
        best_bytes: u64,
    },
}

impl Found {
    /// The size that is enough, if one is.
    #[must_use]
    pub fn enough_bytes(self) -> Option<u64> {
        match self {
            Found::Off => Some(0),
            Found::Size { enough_bytes, .. } => Some(enough_bytes),
            Found::Nothing { .. } => None,
        }
    }
}

/// Some sizes from the least that the drive takes up to `up_to_bytes`.
pub fn between(place: &Place, up_to_bytes: u64) -> Vec<u64> {
    thinned(place.grants(0, up_to_bytes), BETWEEN)
}

/// Finds the smallest size that meets the goal, of those up to `up_to_bytes`.
///
/// # Errors
/// If a run fails.
pub fn smallest(
    runs: &mut Runs<'_>,
    goal: &Goal,
    curve: Option<&Curve>,
    reference_bytes: u64,
    up_to_bytes: u64,
) -> Result<Found, Error> {
    let reference = runs
        .get(reference_bytes)
        .expect("the reference was run")
        .clone();
    let sizes = distinct(runs, up_to_bytes);
    let meets = |runs: &Runs<'_>, at: usize| {
        let run = runs.get(sizes[at]);
        run.map(|run| goal.is_met(run, &reference))
    };
    let tested = |runs: &Runs<'_>, met| (0..sizes.len()).find(|at| meets(runs, *at) == Some(met));
    runs.simulate(&[0])?;
    if tested(runs, true).is_none() {
        // What is best may lie in between: of percentiles it often does.
        runs.simulate(&between(runs.place, up_to_bytes))?;
    }
    let Some(mut enough) = tested(runs, true) else {
        let runs = sizes
            .iter()
            .filter_map(|size| Some((*size, runs.get(*size)?)));
        let best = runs.min_by(|a, b| goal.badness(a.1).total_cmp(&goal.badness(b.1)));
        let best_bytes = best.map_or(0, |(size, _)| size);
        return Ok(Found::Nothing { best_bytes });
    };
    if enough == 0 {
        return Ok(Found::Off);
    }
    let mut below = last_failed(runs, enough, &meets);
    for round in 0..ROUNDS_MAX {
        if enough - below == 1 {
            break;
        }
        let guided = if round == 0 {
            guess(runs, goal, curve, &sizes, (below, enough), &reference)
        } else {
            None
        };
        let probes = match guided {
            Some(at) => [at.saturating_sub(1).max(below + 1), at],
            None => {
                let third = (enough - below).div_ceil(3);
                [below + third, (below + 2 * third).min(enough - 1)]
            }
        };
        runs.simulate(&probes.map(|at| sizes[at]))?;
        for at in probes.into_iter().rev() {
            if meets(runs, at) == Some(true) {
                enough = at;
            }
        }
        below = last_failed(runs, enough, &meets);
    }
    Ok(Found::Size {
        enough_bytes: sizes[enough],
        below_bytes: sizes[below],
    })
}

fn last_failed(
    runs: &Runs<'_>,
    enough: usize,
    meets: &dyn Fn(&Runs<'_>, usize) -> Option<bool>,
) -> usize {
    let failed = (0..enough).rev().find(|at| meets(runs, *at) == Some(false));
    failed.expect("without host memory the goal is missed")
}

/// Sizes that amount to something different each, ascending; the first is none at all.
fn distinct(runs: &Runs<'_>, up_to_bytes: u64) -> Vec<u64> {
    let mut sizes = vec![0];
    let mut grants = runs.place.grants(0, up_to_bytes);
    grants.push(up_to_bytes);
    for grant in grants {
        if runs.key(grant) != runs.key(sizes[sizes.len() - 1]) {
            sizes.push(grant);
        }
    }
    sizes
}

/// Where the goal will probably be met, if latency falls in proportion to the look-ups that miss.
fn guess(
    runs: &Runs<'_>,
    goal: &Goal,
    curve: Option<&Curve>,
    sizes: &[u64],
    (below, enough): (usize, usize),
    reference: &Run,
) -> Option<usize> {
    let curve = curve?;
    let (cost_below, wanted) = goal.cost(runs.get(sizes[below])?, reference)?;
    let (cost_enough, _) = goal.cost(runs.get(sizes[enough])?, reference)?;
    let way = ((cost_below - wanted) / (cost_below - cost_enough)).clamp(0.0, 1.0);
    let (from, to) = (
        curve.hit_ratio(sizes[below]),
        curve.hit_ratio(sizes[enough]),
    );
    let needed = from + (to - from) * way;
    if way.is_nan() || to <= from {
        return None;
    }
    (below + 1..enough).find(|at| curve.hit_ratio(sizes[*at]) >= needed)
}
