//! The whole probe: experiments in their order, within a budget, and what is concluded.

use crate::bench::{Bench, Series, Stop, Usage};
use crate::experiment::{ALL, About};
use crate::findings::Findings;
use crate::infer::{self, Verdict};
use crate::stats;
use crate::target::{Description, Target};
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
    /// Its number, from 0.
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
    let count = plan.len();
    let at = std::cell::Cell::new(("", 0usize));
    let mut look = |now: Duration| {
        let (experiment, index) = at.get();
        watch(Progress {
            experiment,
            index,
            count,
            elapsed: now.saturating_sub(started),
        })
    };
    let deadline = started.saturating_add(options.budget);
    let mut bench = Bench::new(target, deadline, options.may_write, options.seed, &mut look);
    let mut findings = Findings::default();
    let mut course = Course::default();
    for (about, run) in ALL {
        let Some(index) = plan.iter().position(|planned| planned.name == about.name) else {
            continue;
        };
        if course.partial {
            course.skip(about.name, "the probe ended before");
            continue;
        }
        at.set((about.name, index));
        let result = watch_drift(
            &mut bench,
            &mut findings,
            &mut course.reference,
            about.writes,
        )
        .and_then(|()| run(&mut bench, &mut findings));
        course.note(about.name, result);
    }
    let elapsed = bench.now().saturating_sub(started);
    let (usage, raw) = (bench.usage, std::mem::take(&mut bench.raw));
    drop(bench);
    let roles = infer::verdicts(&mut findings, &description);
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

/// How a probe went so far.
#[derive(Default)]
struct Course {
    skipped: Vec<Skipped>,
    partial: bool,
    interrupted: bool,
    reference: Option<f64>,
}

impl Course {
    fn skip(&mut self, experiment: &'static str, reason: impl Into<String>) {
        self.skipped.push(Skipped {
            experiment,
            reason: reason.into(),
        });
    }

    fn note(&mut self, experiment: &'static str, result: Result<(), Stop>) {
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
/// (heat, throttling, a neighbour) does not give results that can be compared.
fn watch_drift(
    bench: &mut Bench<'_>,
    findings: &mut Findings,
    reference: &mut Option<f64>,
    writes: bool,
) -> Result<(), Stop> {
    if writes {
        // What was written before may lie in faster flash.
        return Ok(());
    }
    let page = bench.page();
    let start = (bench.capacity() / 10 * 9) >> 20 << 20;
    let room = (1u64 << 20).min(bench.capacity() - start) / page;
    let mut latencies = Vec::new();
    for _ in 0..80 {
        let at = start + bench.below(room) * page;
        bench.read_pages([at], 1, &mut latencies)?;
    }
    let now = stats::median(&latencies[16..]);
    let first = *reference.get_or_insert(now);
    let ratio = now / first.max(1.0);
    // The largest change so far.
    let worst = findings.drift.unwrap_or(1.0);
    if ratio.ln().abs() >= worst.ln().abs() {
        findings.drift = Some(ratio);
    }
    Ok(())
}
