//! The whole probe: experiments in their order, within a budget, and what is concluded.

use crate::again;
use crate::bench::{Bench, Series, Stop, Usage};
use crate::cost::{Cost, Scale};
use crate::course::{At, Course};
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
    /// How sure each verdict should be, 0 to 1: experiments are run again as long as that helps. 0 for
    /// one run of everything.
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
    /// What the experiments were expected to take before they began.
    pub expected: Vec<Expected>,
    /// What the first run of each experiment took.
    pub spent: BTreeMap<&'static str, Spent>,
}

/// What an experiment took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Time on the target's clock.
    pub time: Duration,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
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
    /// Time it will go on, as far as can be told, without experiments that are run again.
    pub left: Duration,
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

/// What an experiment is expected to take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Its name.
    pub experiment: &'static str,
    /// What it takes.
    pub cost: Cost,
    /// Time that comes to on the target.
    pub time: Duration,
}

/// What the experiments of a plan are expected to take before anything is known of the drive's speed.
/// Those that may not write take nothing.
#[must_use]
pub fn expected(plan: &[&'static About], drive: &Description, may_write: bool) -> Vec<Expected> {
    let scale = Scale::of(drive);
    let may_write = may_write && drive.no_write.is_none();
    let done = plan.iter().filter(|about| may_write || !about.writes);
    done.map(|about| {
        let cost = (about.cost)(&scale);
        Expected {
            experiment: about.name,
            cost,
            time: cost.time(&scale),
        }
    })
    .collect()
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
    let at = Cell::new(At::default());
    let mut look = |now: Duration| {
        let at = at.get();
        let of_this = at.ends.saturating_sub(now);
        watch(Progress {
            experiment: at.experiment,
            index: at.index,
            count: plan.len(),
            elapsed: now.saturating_sub(started),
            left: of_this.saturating_add(at.then),
        })
    };
    let deadline = started.saturating_add(options.budget);
    let mut bench = Bench::new(target, deadline, options.may_write, options.seed, &mut look);
    let expected = expected(&plan, &description, options.may_write);
    let mut course = Course::new(&plan, &at, &description, expected.clone(), deadline);
    let mut findings = Findings::default();
    let mut roles = BTreeMap::new();
    // What reads tell is settled before the first write, which changes what reads take.
    for writes in [false, true] {
        if bench.run() > 1 {
            bench.begin_run(options.seed ^ AFTER_READS, 1);
        }
        first_runs(&mut bench, &mut course, &mut findings, writes);
        let settled = again::verdicts(&mut bench, &mut findings, &mut course, options, writes);
        roles.extend(settled);
    }
    if description.transport.hides().is_some() {
        findings.give_up_inside();
    }
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
        expected,
        spent: course.spent,
    }
}

/// Stream of random numbers of what writes, where reads were repeated: none that a repetition has.
const AFTER_READS: u64 = 1 << 40;

/// Every planned experiment that writes, or of those that do not, once, as far as the budget goes.
fn first_runs(
    bench: &mut Bench<'_>,
    course: &mut Course<'_>,
    findings: &mut Findings,
    writes: bool,
) {
    let mut first = None;
    for (about, run) in ALL.iter().filter(|(about, _)| about.writes == writes) {
        if !course.plan.iter().any(|planned| planned.name == about.name) {
            continue;
        }
        if !course.start(bench, about) {
            continue;
        }
        let (began, used) = (bench.now(), bench.usage);
        // What was written before may lie in faster flash.
        let looked = if writes {
            Ok(())
        } else {
            reference(bench, findings, &mut first)
        };
        if let Some(latency_ns) = first {
            course.scale.read = Duration::from_nanos(latency_ns as u64);
        }
        let result = looked.and_then(|()| run(bench, findings));
        let spent = Spent {
            time: bench.now().saturating_sub(began),
            read_bytes: bench.usage.read_bytes - used.read_bytes,
            written_bytes: bench.usage.written_bytes - used.written_bytes,
        };
        course.spent.insert(about.name, spent);
        course.note(about.name, result);
    }
    if !course.ended && first.is_some() {
        // The last experiment is done: what ends here is only the look at the drift.
        let _ = reference(bench, findings, &mut first);
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
