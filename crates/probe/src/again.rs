//! Runs the experiments of a role again, until it is as sure as was asked for.

use crate::bench::{Bench, Stop};
use crate::experiment;
use crate::findings::{Findings, Quantity};
use crate::infer::{self, Verdict};
use crate::probe::{Options, reference};
use crate::replicate::{self, Outlook};
use crate::role::Role;
use crate::schedule::{self, Schedule};
use crate::stats::Estimate;
use std::collections::{BTreeMap, BTreeSet};

/// Runs during which the drive's own latency may move before that is taken for its nature: the first,
/// and the one that was to take its place.
const DRIFTED_MAX: usize = 2;

/// What one run found about a role.
struct Run {
    findings: Findings,
    verdict: Verdict,
    is_steady: bool,
}

/// All runs for one role.
struct Runs {
    role: Role,
    all: Vec<Run>,
}

impl Runs {
    /// The steady ones, or, if there are none, all.
    fn counted(&self) -> Vec<&Run> {
        let steady: Vec<&Run> = self.all.iter().filter(|run| run.is_steady).collect();
        if steady.is_empty() {
            self.all.iter().collect()
        } else {
            steady
        }
    }

    fn verdict(&self) -> Option<Verdict> {
        let verdicts: Vec<&Verdict> = self.counted().iter().map(|run| &run.verdict).collect();
        replicate::agreed(&verdicts)
    }

    fn drifted(&self) -> usize {
        self.all.iter().filter(|run| !run.is_steady).count()
    }

    fn push(&mut self, findings: Findings, verdict: Verdict) {
        let is_steady = !self.role.is_read_only() || infer::drifted(&findings).is_none();
        self.all.push(Run {
            findings,
            verdict,
            is_steady,
        });
    }

    /// Replaces what the first run found by what the runs found together.
    fn merge_into(&self, findings: &mut Findings) {
        let counted = self.counted();
        let verdicts: Vec<&Verdict> = counted.iter().map(|run| &run.verdict).collect();
        let agreeing: Vec<&Run> = replicate::majority(&verdicts)
            .iter()
            .map(|i| counted[*i])
            .collect();
        let Some(lead) = agreeing.first() else { return };
        findings.roles.take(self.role, &lead.findings.roles);
        // The first run's numbers stand beside those of all other experiments.
        let names: BTreeSet<&String> = self.all[1..]
            .iter()
            .flat_map(|run| run.findings.quantities.keys())
            .collect();
        for name in names {
            let found: Vec<&Quantity> = agreeing
                .iter()
                .filter_map(|run| run.findings.quantities.get(name))
                .collect();
            let values: Vec<Estimate> = found.iter().map(|quantity| quantity.value).collect();
            if let Some(quantity) = found.first() {
                findings.quantity(name, quantity.unit, replicate::combined(&values));
            }
        }
        if self.drifted() > 0 && agreeing.iter().all(|run| run.is_steady) {
            findings.notes.push(format!(
                "{}: {} of {} runs were discarded, because the drive's own latency moved meanwhile",
                self.role.name(),
                self.drifted(),
                self.all.len()
            ));
        }
    }
}

/// Verdicts on the roles that were looked for with writes, or without, each by as many runs as it takes.
/// `findings` are those of the first runs, and then those of all runs together.
pub(crate) fn verdicts(
    bench: &mut Bench<'_>,
    findings: &mut Findings,
    schedule: &mut Schedule<'_>,
    options: &Options,
    writes: bool,
) -> BTreeMap<&'static str, Verdict> {
    let about = bench.description().clone();
    let mut roles = BTreeMap::new();
    // All first, for what is put together of several runs is no longer what one run found.
    let firsts: Vec<(Role, Verdict)> = Role::ALL
        .into_iter()
        .filter(|role| role.is_read_only() != writes)
        .filter_map(|role| Some((role, infer::verdict(role, findings, &about)?)))
        .collect();
    let first_findings = findings.clone();
    for (role, first) in firsts {
        let mut runs = Runs {
            role,
            all: Vec::new(),
        };
        runs.push(first_findings.clone(), first.clone());
        let reason = settle(bench, &mut runs, schedule, options);
        let mut verdict = runs.verdict().unwrap_or(first);
        if runs.all.len() > 1 {
            runs.merge_into(findings);
        }
        if let Some(reason) = reason {
            let asked = format!("{:.3}", 100.0 * options.confidence);
            let asked = asked.trim_end_matches('0').trim_end_matches('.');
            verdict.evidence += &format!("; not the {asked} % asked for: {reason}");
        }
        roles.insert(role.name(), verdict);
    }
    roles
}

/// Repeats while that helps; otherwise says why it does not.
fn settle(
    bench: &mut Bench<'_>,
    runs: &mut Runs,
    schedule: &mut Schedule<'_>,
    options: &Options,
) -> Option<String> {
    loop {
        match replicate::outlook(&runs.verdict()?, options.confidence) {
            Outlook::Reached | Outlook::Missing => return None,
            Outlook::NoHelp(reason) => return Some(reason),
            Outlook::Another => {}
        }
        if runs.drifted() >= DRIFTED_MAX {
            return Some("the drive's own latency moves whenever it is measured".to_owned());
        }
        if schedule.ended {
            return Some("the probe ended before it could be repeated".to_owned());
        }
        let planned = schedule.planned(runs.role.experiments());
        if planned.is_empty() {
            return Some("its experiments were not done to the end".to_owned());
        }
        let (takes, left) = (schedule.spent(&planned), schedule.left(bench.now()));
        let (kept, names) = schedule.kept_for_writes(left, runs.role.is_read_only());
        if takes.time + kept > left {
            let [takes, left] = [takes.time, left].map(schedule::show);
            return Some(format!(
                "another run takes {takes}, and {left} of the budget are left{names}"
            ));
        }
        if schedule.limit_again(bench, kept) < takes.written_bytes {
            return Some("another run would write more than was announced".to_owned());
        }
        let number = runs.all.len() + 1;
        let stream = (runs.role as u64 + 1) << 32 | number as u64;
        bench.begin_run(options.seed ^ stream, number);
        let mut found = runs.all[0].findings.without(runs.role);
        match once(bench, runs.role, &planned, schedule, &mut found) {
            Ok(()) => {}
            Err(Stop::Budget) => return Some("the budget ended during another run".to_owned()),
            Err(Stop::Skip(reason)) => return Some(reason),
            Err(stop) => {
                schedule.note(planned[0], Err(stop));
                return Some("another run was not finished".to_owned());
            }
        }
        let about = bench.description().clone();
        let verdict = infer::verdict(runs.role, &mut found, &about)?;
        runs.push(found, verdict);
    }
}

/// The experiments of a role once more.
fn once(
    bench: &mut Bench<'_>,
    role: Role,
    planned: &[&'static str],
    schedule: &mut Schedule<'_>,
    found: &mut Findings,
) -> Result<(), Stop> {
    let mut first = None;
    for (about, run) in experiment::ALL {
        if !planned.contains(&about.name) {
            continue;
        }
        let ends = bench
            .now()
            .saturating_add(schedule.spent(&[about.name]).time);
        schedule.begin(about.name, ends);
        if role.is_read_only() {
            reference(bench, found, &mut first)?;
        }
        run(bench, found)?;
    }
    if role.is_read_only() {
        reference(bench, found, &mut first)?;
    }
    Ok(())
}
