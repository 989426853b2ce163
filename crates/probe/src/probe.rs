//! The whole probe: experiments in their order, within a budget, and what is concluded.

use crate::again;
use crate::bench::{Bench, Series, Stop, Usage};
use crate::experiment::{ALL, About};
use crate::findings::Findings;
use crate::infer::Verdict;
use crate::stats;
use crate::target::{Description, Target};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::Duration;

/// What to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// Experiments by name; all when empty.
    pub experiments: Vec<String>,
    /// Time the target may be kept busy.
    pub budget: Duration,
    /// The user has consented to lose the data.
    pub may_write: bool,
    /// Of everything drawn at random.
    pub seed: u64,
    /// How sure each verdict should be, 0 to 1: experiments are run again as long as that helps.
    pub confidence: f64,
}

/// An experiment that was not done, or not to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its name.
    pub experiment: &'static str,
    /// Why.
    pub reason: String,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// What was probed.
    pub target: Description,
    /// What is concluded.
    pub roles: BTreeMap<&'static str, Verdict>,
    /// What was found.
    pub findings: Findings,
    /// What was not done.
    pub skipped: Vec<Skipped>,
    /// It ended before its time.
    pub partial: bool,
    /// The user stopped it.
    pub interrupted: bool,
    /// What was done to the drive.
    pub usage: Usage,
    /// Every point measured.
    pub raw: BTreeMap<String, Series>,
    /// Time it took on the target's clock.
    pub elapsed: Duration,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The experiment under way.
    pub experiment: &'static str,
    /// Its number, from 0; that of the last one when experiments are run again.
    pub index: usize,
    /// How many there are.
    pub count: usize,
    /// Time on the target's clock since the start.
    pub elapsed: Duration,
}

/// The experiments that would be done, in their order.
///
/// # Errors
/// A name that is none.
pub fn plan(names: &[String]) -> Result<Vec<&'static About>, String> {
    for name in names {
        if !ALL.iter().any(|(about, _)| about.name == name) {
            return Err(name.clone());
        }
    }
    let wanted = |about: &About| names.is_empty() || names.iter().any(|name| name == about.name);
    Ok(ALL
        .iter()
        .map(|(about, _)| about)
        .filter(|about| wanted(about))
        .collect())
}

/// Probes a target. `watch` hears now and then how far it is, and answers whether to go on.
/// Host memory is left as it was found, however this ends.
pub fn probe(
    target: &mut dyn Target,
    options: &Options,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Outcome {
    let description = target.describe().clone();
    let started = target.now();
    let plan = plan(&options.experiments).unwrap_or_default();
    let at = Cell::new(("", 0usize));
    let mut look = |now: Duration| {
        let (experiment, index) = at.get();
        watch(Progress {
            experiment,
            index,
            count: plan.len(),
            elapsed: now.saturating_sub(started),
        })
    };
    let deadline = started.saturating_add(options.budget);
    let mut bench = Bench::new(target, deadline, options.may_write, options.seed, &mut look);
    let mut course = Course::new(&plan, &at);
    let mut findings = first_runs(&mut bench, &mut course);
    let roles = again::verdicts(&mut bench, &mut findings, &mut course, options);
    let elapsed = bench.now().saturating_sub(started);
    let (usage, raw) = (bench.usage, std::mem::take(&mut bench.raw));
    drop(bench);
    Outcome {
        target: description,
        roles,
        findings,
        skipped: course.skipped,
        partial: course.partial,
        interrupted: course.interrupted,
        usage,
        raw,
        elapsed,
    }
}

/// Every planned experiment once.
fn first_runs(bench: &mut Bench<'_>, course: &mut Course<'_>) -> Findings {
    let mut findings = Findings::default();
    let mut first = None;
    let mut is_read_only = true;
    for (about, run) in ALL {
        if !course.plan.iter().any(|planned| planned.name == about.name) {
            continue;
        }
        if course.partial {
            course.skip(about.name, "the probe ended before");
            continue;
        }
        course.begin(about.name);
        let began = bench.now();
        is_read_only &= !about.writes;
        // What was written before may lie in faster flash.
        let looked = if is_read_only {
            reference(bench, &mut findings, &mut first)
        } else {
            Ok(())
        };
        let result = looked.and_then(|()| run(bench, &mut findings));
        course
            .spent
            .insert(about.name, bench.now().saturating_sub(began));
        course.note(about.name, result);
    }
    if is_read_only && !course.partial && first.is_some() {
        // The last experiment is done: what ends here is only the look at the drift.
        let _ = reference(bench, &mut findings, &mut first);
    }
    findings
}

/// How a probe went so far.
pub(crate) struct Course<'a> {
    plan: &'a [&'static About],
    at: &'a Cell<(&'static str, usize)>,
    spent: BTreeMap<&'static str, Duration>,
    skipped: Vec<Skipped>,
    /// It ended before its time.
    pub(crate) partial: bool,
    interrupted: bool,
}

impl<'a> Course<'a> {
    fn new(plan: &'a [&'static About], at: &'a Cell<(&'static str, usize)>) -> Self {
        Course {
            plan,
            at,
            spent: BTreeMap::new(),
            skipped: Vec::new(),
            partial: false,
            interrupted: false,
        }
    }

    /// Says which experiment is under way.
    pub(crate) fn begin(&mut self, experiment: &'static str) {
        let index = self.plan.iter().position(|about| about.name == experiment);
        self.at.set((experiment, index.unwrap_or(self.at.get().1)));
    }

    /// Those of some experiments that were planned and done.
    pub(crate) fn planned(&self, names: &[&'static str]) -> Vec<&'static str> {
        let done = |name: &&&str| self.spent.contains_key(**name);
        names.iter().filter(done).copied().collect()
    }

    /// Time that the first run of an experiment took.
    pub(crate) fn spent(&self, experiment: &str) -> Duration {
        self.spent.get(experiment).copied().unwrap_or_default()
    }

    fn skip(&mut self, experiment: &'static str, reason: impl Into<String>) {
        self.skipped.push(Skipped {
            experiment,
            reason: reason.into(),
        });
    }

    /// Keeps how an experiment ended.
    pub(crate) fn note(&mut self, experiment: &'static str, result: Result<(), Stop>) {
        let reason = match result {
            Ok(()) => return,
            Err(Stop::Skip(reason)) => return self.skip(experiment, reason),
            Err(Stop::Budget) => "the budget was used up".to_owned(),
            Err(Stop::Interrupted) => {
                self.interrupted = true;
                "interrupted".to_owned()
            }
            Err(Stop::Target(error)) => error.to_string(),
        };
        self.partial = true;
        self.skip(experiment, reason);
    }
}

/// Latency of reads near each other, before every experiment: a drive whose own speed changes
/// (heat, throttling, a neighbour) does not give results that can be compared. `first` is what it
/// was to begin with.
pub(crate) fn reference(
    bench: &mut Bench<'_>,
    findings: &mut Findings,
    first: &mut Option<f64>,
) -> Result<(), Stop> {
    let page = bench.page();
    let start = (bench.capacity() / 10 * 9) >> 20 << 20;
    let room = (1u64 << 20).min(bench.capacity() - start) / page;
    let mut latencies = Vec::new();
    for _ in 0..80 {
        let at = start + bench.below(room) * page;
        bench.read_pages([at], 1, &mut latencies)?;
    }
    let now = stats::median(&latencies[16..]);
    let first = *first.get_or_insert(now);
    let ratio = now / first.max(1.0);
    // The largest change so far.
    let worst = findings.drift.unwrap_or(1.0);
    if ratio.ln().abs() >= worst.ln().abs() {
        findings.drift = Some(ratio);
    }
    Ok(())
}
