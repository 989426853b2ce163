//! A job on a drive.

use crate::question::{Run, files, too_long, within_limits};
use lodger_core::observe::{Counters, PartsPs, TIERS_MAX};
use lodger_run::report::{Report, json_value};
use lodger_run::timeline::{Interval, Table, Values};
use lodger_run::{
    Breakdown, Completion, DriveState, Error, Observer, Progress, Ramp, Recorder, Request,
    RunConfig, RunResult, Timeline, WorkloadFile, run, run_traced,
};
use lodger_workload::fio::Beside;
use serde_json::{Map, Value, json};
use std::ops::ControlFlow;

/// What messages call the job file, as `lodger simulate -` does.
const NAME: &str = "-";

/// Look-ups of the map, misses, entries of the host's that were used, and from [`HITS_AT`] on hits by memory.
type Lookups = [u64; HITS_AT + TIERS_MAX];
const HITS_AT: usize = 3;

fn lookups(counters: &Counters) -> Lookups {
    let map = &counters.map;
    let mut all = Lookups::default();
    all[..HITS_AT].copy_from_slice(&[map.lookups, map.misses, counters.hpb.used]);
    all[HITS_AT..].copy_from_slice(&map.hits);
    all
}

/// Watches the last job: those before it let the drive settle.
struct Measured {
    last: usize,
    /// What the drive had counted when the last job began; it is looked at in the first instant after that.
    before: Option<Lookups>,
    /// The same, when the ramp under way began.
    ramp_began: Lookups,
    /// Of ramps that were over before the last job began.
    skipped: Lookups,
    looks: bool,
    breakdown: Option<Breakdown>,
}

impl Observer for Measured {
    fn begins(&mut self, job: usize, counted_from_ps: u64) {
        self.looks |= job == self.last;
        self.breakdown.begins(job, counted_from_ps);
    }

    /// Ramps are left out of the drive's numbers.
    fn ramp(&mut self, ramp: Ramp, drive: &DriveState) {
        match ramp {
            Ramp::Begins => self.ramp_began = lookups(&drive.counters),
            Ramp::Counts => {}
            Ramp::Ends if self.before.is_some() => self.before = Some(self.ramp_began),
            Ramp::Ends => {
                let now = lookups(&drive.counters);
                for (at, skipped) in self.skipped.iter_mut().enumerate() {
                    *skipped += now[at].saturating_sub(self.ramp_began[at]);
                }
            }
        }
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
            self.before = Some(lookups(&drive.counters));
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
        ramp_began: Lookups::default(),
        skipped: Lookups::default(),
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
        let all = lookups(&result.counters);
        // A stale entry of the host's is taken back when it is found out.
        let own = |at: usize| (all[at] + measured.skipped[at]).saturating_sub(before[at]);
        let map = &mut result.counters.map;
        (map.lookups, map.misses, result.counters.hpb.used) = (own(0), own(1), own(2));
        for (at, hits) in map.hits.iter_mut().enumerate() {
            *hits = own(HITS_AT + at);
        }
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
