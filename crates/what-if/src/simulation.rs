//! A job on a drive.

use crate::question::{Run, files, too_long, within_limits};
use lodger_core::observe::{Counters, PartsPs};
use lodger_run::report::{Report, json_value};
use lodger_run::timeline::{Interval, Table, Values};
use lodger_run::{
    Breakdown, Completion, DriveState, Error, Observer, Progress, Recorder, Request, RunConfig,
    RunResult, Timeline, WorkloadFile, run, run_traced,
};
use lodger_workload::fio::Beside;
use serde_json::{Map, Value, json};
use std::ops::ControlFlow;

/// What messages call the job file, as `lodger simulate -` does.
const NAME: &str = "-";

/// Watches the last job: those before it let the drive settle.
struct Measured {
    last: usize,
    /// What the drive had counted when the last job began; it is looked at in the first instant after that.
    before: Option<Counters>,
    looks: bool,
    breakdown: Option<Breakdown>,
}

impl Observer for Measured {
    fn begins(&mut self, job: usize, counted_from_ps: u64) {
        self.looks |= job == self.last;
        self.breakdown.begins(job, counted_from_ps);
    }

    fn went(&mut self, job: usize, request: &Request, completion: &Completion, parts_ps: &PartsPs) {
        if job == self.last {
            self.breakdown.went(job, request, completion, parts_ps);
        }
    }

    fn next_look_ps(&self) -> u64 {
        match self.looks {
            true => 0,
            false => u64::MAX,
        }
    }

    fn look(&mut self, drive: &DriveState) {
        if std::mem::take(&mut self.looks) {
            self.before = Some(drive.counters.clone());
        }
    }

    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        within_limits(progress)
    }
}

/// # Errors
/// If the drive or the job is wrong, or the run too long.
pub(crate) fn answer(question: &Run) -> Result<Value, Error> {
    let config = question.setup.config()?;
    let file = WorkloadFile::Fio {
        name: NAME.to_owned(),
        text: question.job.clone(),
        files: files(),
        beside: Beside::default(),
    };
    let (workload, _) = file.workload(config.spec(), config.seed)?;
    let submit_ps = config.spec().host.submit_ps;
    let timeline = question.timeline;
    let timeline = timeline.then(|| Timeline::new(Interval::Chosen, config.spec(), submit_ps));
    let breakdown = question.breakdown.then(Breakdown::default);
    let measured = Measured {
        last: workload.jobs.len().saturating_sub(1),
        before: None,
        looks: false,
        breakdown: breakdown.clone(),
    };
    let mut all = (measured, (timeline, breakdown));
    let mut result = match question.breakdown {
        true => run_traced(&config, workload, &mut all, Recorder::keeping(None))?.0,
        false => run(&config, workload, &mut all)?,
    };
    if result.interrupted {
        return Err(too_long());
    }
    let (measured, (timeline, breakdown)) = all;
    let of_last_job = of_last_job(&config, result.clone(), measured);
    result.breakdown = breakdown.map(|breakdown| breakdown.finish(&result));
    let report = report(&config, &result);
    let mut answer = json!({"report": report, "measured": of_last_job});
    if let Some(timeline) = timeline {
        answer["over_time"] = columns(timeline.finish(&result));
    }
    Ok(answer)
}

fn report(config: &RunConfig, result: &RunResult) -> Value {
    json_value(Report { config, result }, false)
}

/// Look-ups of the map and parts of requests' time, as the report tells them of the whole run.
fn of_last_job(config: &RunConfig, mut result: RunResult, measured: Measured) -> Value {
    if let Some(before) = measured.before {
        let map = &mut result.counters.map;
        map.lookups -= before.map.lookups;
        map.misses -= before.map.misses;
        for (hits, before) in map.hits.iter_mut().zip(before.map.hits) {
            *hits -= before;
        }
        // A stale entry of the host's is taken back when it is found out.
        let hpb = &mut result.counters.hpb;
        hpb.used = hpb.used.saturating_sub(before.hpb.used);
    }
    let breakdown = measured.breakdown;
    result.breakdown = breakdown.map(|breakdown| breakdown.finish(&result));
    let mut lodger = report(config, &result)["lodger"].take();
    json!({"map": lodger["map"].take(), "breakdown": lodger["breakdown"].take()})
}

fn columns(table: Table) -> Value {
    let columns = table.columns.into_iter().map(|column| {
        let values = match column.values {
            Values::Whole(values) => json!(values),
            Values::Real(values) => json!(values),
        };
        (column.name, values)
    });
    Value::Object(columns.collect::<Map<_, _>>())
}
