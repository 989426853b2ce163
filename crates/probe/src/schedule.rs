//! How a probe goes: what is under way, what it took, what the budget still has room for.

use crate::bench::{Bench, Stop};
use crate::cost::Scale;
use crate::experiment::About;
use crate::outcome::{Expected, Skipped, Spent};
use crate::target::{Description, TargetError};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

/// Expectations are not corrected by what took less than this.
const TELLING: Duration = Duration::from_secs(5);
/// What is kept for later experiments may take longer than expected, by this factor.
const LONGER: f64 = 1.5;
/// Corrections beyond this say more about one experiment than about the next.
const CORRECTION_MAX: f64 = 4.0;
/// A drive with more errors than this is failing altogether.
const ERRORS_MAX: u32 = 12;

/// Where a probe is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Position {
    pub(crate) experiment: &'static str,
    pub(crate) index: usize,
    /// When this experiment should end, on the target's clock.
    pub(crate) ends: Duration,
    /// What comes after it.
    pub(crate) then: Duration,
}

/// How a probe went so far.
pub(crate) struct Schedule<'a> {
    pub(crate) plan: &'a [&'static About],
    at: &'a Cell<Position>,
    expected: Vec<Expected>,
    deadline: Duration,
    /// What costs depend on, as far as it is known by now.
    pub(crate) scale: Scale,
    pub(crate) spent: BTreeMap<&'static str, Spent>,
    pub(crate) skipped: Vec<Skipped>,
    /// Something was not done that should have been.
    pub(crate) partial: bool,
    /// Nothing more will be done.
    pub(crate) ended: bool,
    /// Why the target ended it.
    pub(crate) failed: Option<String>,
    /// Transfers that the drive answered with an error.
    errors: u32,
    pub(crate) interrupted: bool,
}

impl<'a> Schedule<'a> {
    pub(crate) fn new(
        plan: &'a [&'static About],
        at: &'a Cell<Position>,
        drive: &Description,
        expected: Vec<Expected>,
        deadline: Duration,
    ) -> Self {
        Schedule {
            plan,
            at,
            expected,
            deadline,
            scale: Scale::of(drive),
            spent: BTreeMap::new(),
            skipped: Vec::new(),
            partial: false,
            ended: false,
            failed: None,
            errors: 0,
            interrupted: false,
        }
    }

    /// Time left of the budget.
    pub(crate) fn left(&self, now: Duration) -> Duration {
        self.deadline.saturating_sub(now)
    }

    /// Time that an experiment is expected to take, by what those before took; nothing for one that
    /// is skipped at once.
    fn takes(&self, name: &str) -> Duration {
        let Some(expected) = self.expected.iter().find(|e| e.experiment == name) else {
            return Duration::ZERO;
        };
        let done = self.expected.iter().filter_map(|e| {
            let spent = self.spent.get(e.experiment)?;
            Some((spent.time, e.cost.time(&self.scale)))
        });
        let (mut took, mut thought) = (TELLING, TELLING);
        for (spent, expected) in done {
            took += spent;
            thought += expected;
        }
        let ratio = took.as_secs_f64() / thought.as_secs_f64();
        let ratio = ratio.clamp(1.0 / CORRECTION_MAX, CORRECTION_MAX);
        expected.cost.time(&self.scale).mul_f64(ratio)
    }

    /// Planned experiments after this one.
    fn after(&self, about: &About) -> &'a [&'static About] {
        let at = self
            .plan
            .iter()
            .position(|planned| planned.name == about.name);
        at.map_or(&[], |at| &self.plan[at + 1..])
    }

    /// Whether an experiment is begun. It is not if it does not fit into what is left of the budget,
    /// or if nothing would be left for those that verdicts rest on; then that is noted.
    pub(crate) fn start(&mut self, bench: &mut Bench<'_>, about: &About) -> bool {
        if self.ended {
            self.skip(about.name, "the probe ended before");
            return false;
        }
        let (now, takes) = (bench.now(), self.takes(about.name));
        let left = self.left(now);
        // Kept for those that verdicts rest on and that fit at all.
        let kept: Vec<(&str, Duration)> = self
            .after(about)
            .iter()
            .filter(|later| later.decides())
            .map(|later| (later.name, self.takes(later.name)))
            .filter(|(_, time)| !time.is_zero() && *time < left)
            .collect();
        let reserve = sum(&kept);
        let room = if about.decides() {
            left
        } else {
            left.saturating_sub(reserve)
        };
        if takes > room {
            let kept = if takes > left {
                String::new()
            } else {
                names(&kept)
            };
            let text = format!(
                "it takes about {}, and {} of the budget are left{kept}",
                show(takes),
                show(left)
            );
            self.partial = true;
            self.skip(about.name, text);
            return false;
        }
        self.begin(about.name, now.saturating_add(takes));
        // Longer than expected is fine, but not at the cost of the others.
        let end = now.saturating_add(takes.max(left.saturating_sub(reserve)));
        let expected = self.expected.iter().find(|e| e.experiment == about.name);
        bench.limit(end, expected.map_or(0, |e| e.cost.written_bytes));
        true
    }

    /// Says which experiment is under way, and until when.
    pub(crate) fn begin(&mut self, experiment: &'static str, ends: Duration) {
        let index = self.plan.iter().position(|about| about.name == experiment);
        let index = index.unwrap_or(self.at.get().index);
        let later = &self.plan[(index + 1).min(self.plan.len())..];
        let later = later
            .iter()
            .filter(|about| !self.spent.contains_key(about.name));
        let then = later.map(|about| self.takes(about.name)).sum();
        self.at.set(Position {
            experiment,
            index,
            ends,
            then,
        });
    }

    /// Time kept for the experiments that are still to come and write, while what only reads is run again,
    /// and their names, to be said: everything is done once before anything is done twice.
    pub(crate) fn kept_for_writes(&self, left: Duration, is_reading: bool) -> (Duration, String) {
        let later = self.plan.iter().filter(|about| is_reading && about.writes);
        let kept: Vec<(&str, Duration)> = later
            .filter(|about| !self.spent.contains_key(about.name))
            .map(|about| (about.name, self.takes(about.name)))
            .filter(|(_, time)| !time.is_zero() && *time < left)
            .collect();
        (sum(&kept), names(&kept))
    }

    /// Limits what an experiment that is run again takes: the budget but for what is `kept`, and what was
    /// announced to be written, may be used up. Bytes of the latter that are left.
    pub(crate) fn limit_again(&self, bench: &mut Bench<'_>, kept: Duration) -> u64 {
        let announced = self.expected.iter().map(|e| e.cost.written_bytes);
        let left = announced
            .sum::<u64>()
            .saturating_sub(bench.usage.written_bytes);
        bench.limit(self.deadline.saturating_sub(kept), left);
        left
    }

    /// Those of some experiments that were planned and done.
    pub(crate) fn planned(&self, names: &[&'static str]) -> Vec<&'static str> {
        let done = |name: &&&str| self.spent.contains_key(**name);
        names.iter().filter(done).copied().collect()
    }

    /// What the first runs of some experiments took.
    pub(crate) fn spent(&self, experiments: &[&str]) -> Spent {
        let mut all = Spent::default();
        for spent in experiments.iter().filter_map(|name| self.spent.get(name)) {
            all.time += spent.time;
            all.read_bytes += spent.read_bytes;
            all.written_bytes += spent.written_bytes;
        }
        all
    }

    fn skip(&mut self, experiment: &'static str, reason: impl Into<String>) {
        self.skipped.push(Skipped {
            experiment,
            reason: reason.into(),
        });
    }

    /// Whether a drive that answered with an error is asked on: a sector may be bad, and the rest good.
    pub(crate) fn goes_on(&mut self, error: &TargetError) -> bool {
        if matches!(error, TargetError::Io { .. } | TargetError::Short { .. }) {
            self.errors += 1;
            return self.errors <= ERRORS_MAX;
        }
        false
    }

    /// Keeps how an experiment ended.
    pub(crate) fn note(&mut self, experiment: &'static str, result: Result<(), Stop>) {
        let reason = match result {
            Ok(()) => return,
            Err(Stop::Skip(reason)) => return self.skip(experiment, reason),
            Err(Stop::Budget) => "the time it could have of the budget was used up".to_owned(),
            Err(Stop::Interrupted) => {
                self.interrupted = true;
                self.ended = true;
                "interrupted".to_owned()
            }
            Err(Stop::Target(error)) => {
                if !self.goes_on(&error) {
                    self.ended = true;
                    self.failed = Some(error.to_string());
                }
                error.to_string()
            }
        };
        self.partial = true;
        self.skip(experiment, reason);
    }
}

/// Time to keep for experiments.
fn sum(kept: &[(&str, Duration)]) -> Duration {
    let times = kept.iter().map(|(_, time)| *time);
    times.sum::<Duration>().mul_f64(LONGER)
}

/// What time is kept for, as the end of a sentence.
fn names(kept: &[(&str, Duration)]) -> String {
    let names: Vec<&str> = kept.iter().map(|(name, _)| *name).collect();
    if names.is_empty() {
        return String::new();
    }
    format!(", kept for {}", names.join(", "))
}

/// A time for people.
pub(crate) fn show(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 1.0 {
        return format!("{:.1} s", seconds);
    }
    if seconds < 120.0 {
        return format!("{:.0} s", seconds.ceil());
    }
    format!("{:.0} min", (seconds / 60.0).ceil())
}
