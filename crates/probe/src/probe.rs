//! The whole probe: experiments in their order, within a budget, and what is concluded.

use crate::again;
use crate::bench::{Bench, Stop};
use crate::cost::Scale;
use crate::experiment::{ALL, About, enter, page_of};
use crate::findings::Findings;
use crate::infer::{self, Verdict};
use crate::outcome::{Expected, Outcome, Spent};
use crate::role::Role;
use crate::schedule::{Position, Schedule};
use crate::stats;
use crate::target::{Description, HmbState, Target};
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
    probe_and_keep(target, options, watch, &mut |_| {})
}

/// The same; `keep` gets what has come of it so far after each experiment, marked partial, for a machine
/// may go down in the middle of hours.
pub fn probe_and_keep(
    target: &mut dyn Target,
    options: &Options,
    watch: &mut dyn FnMut(Progress) -> bool,
    keep: &mut dyn FnMut(&Outcome),
) -> Outcome {
    let description = target.describe().clone();
    let started = target.now();
    let plan = plan(&options.experiments).unwrap_or_default();
    let at = Cell::new(Position::default());
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
    let mut schedule = Schedule::new(&plan, &at, &description, expected.clone(), deadline);
    let mut findings = Findings::default();
    let mut roles = BTreeMap::new();
    // What reads tell is settled before the first write, which changes what reads take.
    for writes in [false, true] {
        if bench.run() > 1 {
            bench.begin_run(options.seed ^ AFTER_READS, 1);
        }
        let mut keep = |bench: &Bench<'_>, schedule: &Schedule<'_>, findings: &Findings| {
            let so_far = Sofar {
                started,
                roles: &roles,
                expected: &expected,
            };
            keep(&so_far.outcome(bench, schedule, findings));
        };
        first_runs(&mut bench, &mut schedule, &mut findings, writes, &mut keep);
        let settled = again::verdicts(&mut bench, &mut findings, &mut schedule, options, writes);
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
        skipped: schedule.skipped,
        partial: schedule.partial,
        interrupted: schedule.interrupted,
        failed: schedule.failed,
        usage,
        raw,
        elapsed,
        expected,
        spent: schedule.spent,
    }
}

/// What an outcome in the middle of a probe is made of, beside what is under way.
struct Sofar<'a> {
    started: Duration,
    roles: &'a BTreeMap<&'static str, Verdict>,
    expected: &'a [Expected],
}

impl Sofar<'_> {
    fn outcome(&self, bench: &Bench<'_>, schedule: &Schedule<'_>, findings: &Findings) -> Outcome {
        let mut findings = findings.clone();
        let target = bench.description().clone();
        let mut roles = self.roles.clone();
        for role in Role::ALL {
            if let Some(verdict) = infer::verdict(role, &mut findings, &target) {
                roles.entry(role.name()).or_insert(verdict);
            }
        }
        if target.transport.hides().is_some() {
            findings.give_up_inside();
        }
        Outcome {
            target,
            roles,
            findings,
            skipped: schedule.skipped.clone(),
            partial: true,
            interrupted: schedule.interrupted,
            failed: schedule.failed.clone(),
            usage: bench.usage,
            raw: bench.raw.clone(),
            elapsed: bench.now().saturating_sub(self.started),
            expected: self.expected.to_vec(),
            spent: schedule.spent.clone(),
        }
    }
}

/// Hears of every experiment that was done.
type Keep<'a> = dyn FnMut(&Bench<'_>, &Schedule<'_>, &Findings) + 'a;

/// Stream of random numbers of what writes, where reads were repeated: none that a repetition has.
const AFTER_READS: u64 = 1 << 40;

/// Every planned experiment that writes, or of those that do not, once, as far as the budget goes.
fn first_runs(
    bench: &mut Bench<'_>,
    schedule: &mut Schedule<'_>,
    findings: &mut Findings,
    writes: bool,
    keep: &mut Keep<'_>,
) {
    let mut first = None;
    for (about, run) in ALL.iter().filter(|(about, _)| about.writes == writes) {
        if !schedule
            .plan
            .iter()
            .any(|planned| planned.name == about.name)
        {
            continue;
        }
        if !schedule.start(bench, about) {
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
            schedule.scale.read = Duration::from_nanos(latency_ns.estimate as u64);
        }
        let mut result = looked.and_then(|()| run(bench, findings));
        if let Err(Stop::Target(error)) = &result
            && schedule.goes_on(error)
        {
            // One place of a drive may be bad: elsewhere, once more.
            let said = format!("{}: {error}; it was done again from the start", about.name);
            findings.notes.push(said);
            result = run(bench, findings);
        }
        let spent = Spent {
            time: bench.now().saturating_sub(began),
            read_bytes: bench.usage.read_bytes - used.read_bytes,
            written_bytes: bench.usage.written_bytes - used.written_bytes,
        };
        schedule.spent.insert(about.name, spent);
        schedule.note(about.name, result);
        keep(bench, schedule, findings);
    }
    if !schedule.ended && first.is_some() {
        // The last experiment is done: what ends here is only the look at the drift.
        let _ = reference(bench, findings, &mut first);
    }
}

/// Stretches of the reference, and reads of each that count.
const STRETCHES: u64 = 64;
const READS: usize = 3;
/// Reads beyond so many times the 90th percentile are the host's doing.
const STRAY: f64 = 3.0;

/// Mean latency of reads near each other, of stretches all over the drive: pages of one stretch may be of
/// one kind, and what was read before may be kept. Of 64 stretches, in an interval of two standard errors.
fn mean_near_read(bench: &mut Bench<'_>) -> Result<stats::Estimate, Stop> {
    const BYTES: u64 = 1 << 20;
    let stretches = (bench.capacity() / BYTES).max(1);
    let mut all = Vec::new();
    for _ in 0..STRETCHES {
        let start = bench.below(stretches) * BYTES;
        for i in 0..=READS {
            let at = page_of(bench, start, BYTES);
            let mut latency = Vec::with_capacity(1);
            bench.read_pages([at], 1, &mut latency)?;
            if i > 0 {
                all.extend(latency);
            }
        }
    }
    let most = STRAY * stats::quantile(&all, 0.9);
    let means: Vec<f64> = all
        .chunks(READS)
        .map(|reads| reads.iter().map(|ns| ns.min(most)).sum::<f64>() / READS as f64)
        .collect();
    let n = means.len() as f64;
    let mean = means.iter().sum::<f64>() / n;
    let variance = means.iter().map(|of| (of - mean).powi(2)).sum::<f64>() / n;
    let error = 2.0 * (variance / n).sqrt();
    Ok(stats::Estimate::new(
        mean,
        (mean - error).max(1.0),
        mean + error,
    ))
}

/// Latency of reads near each other, before every experiment: a drive whose own speed changes
/// (heat, throttling, a neighbour) does not give results that can be compared. `first` is what it
/// was to begin with.
pub(crate) fn reference(
    bench: &mut Bench<'_>,
    findings: &mut Findings,
    first: &mut Option<stats::Estimate>,
) -> Result<(), Stop> {
    // Without it, a drive whose map is there alone would look slow.
    if bench.is_hmb_off() {
        enter(bench, Some(HmbState::On))?;
    }
    let now = mean_near_read(bench)?;
    let first = *first.get_or_insert(now);
    // Only as much of a change as chance does not explain.
    let (low, high) = (now.low / first.high, now.high / first.low);
    let ratio = 1.0f64.clamp(low.min(high), high.max(low));
    // The largest change so far.
    let worst = findings.drift.unwrap_or(1.0);
    if ratio.ln().abs() >= worst.ln().abs() {
        findings.drift = Some(ratio);
    }
    Ok(())
}
