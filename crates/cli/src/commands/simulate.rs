//! `lodger simulate`.

mod recorded;

use super::Streams;
use crate::args::{ReportFormat, SimulateArgs};
use crate::error::Error;
use crate::inputs;
use crate::interrupt;
use crate::output::{self, OutputFile};
use crate::timeline::TimelineFile;
use crate::watch::Watch;
use lodger_run::report::{self, Report};
use lodger_run::{Breakdown, FioLogs, Recorder, RunConfig, RunResult, Workload};
use std::path::Path;

pub(super) fn run(args: &SimulateArgs, streams: &mut Streams<'_>) -> Result<(), Error> {
    if let Some(recording) = inputs::recording(&args.workload, &args.trace)? {
        return recorded::run(args, recording, streams);
    }
    let config = inputs::config(&args.drive, args.hmb.choice()?, &args.run)?;
    let source = inputs::workload(&args.workload, &args.trace)?.choose(args.logging.choice()?)?;
    for note in source.notes() {
        streams.note("note", &note);
    }
    let (workload, notes) = source.into_workload(config.spec(), config.seed)?;
    for note in notes {
        streams.note("note", &note);
    }
    // Before the work, which may take long: what cannot be written is said at once.
    let file = output::begin(args.report.output.as_deref())?;
    let log = output::begin(args.time.latency_log.as_deref())?;
    let timeline = TimelineFile::begin(&args.time)?;
    let submit_ps = config.spec().host.submit_ps;
    let jobs = workload.jobs.iter().map(|job| job.logs.as_deref());
    let logs = FioLogs::create(jobs, submit_ps, |name| OutputFile::create(Path::new(name)))?;
    let watch = Watch::new(log, submit_ps).writing(logs);
    interrupt::check()?;
    let (result, watch, timeline) = watched(args, &config, workload, (watch, timeline))?;
    let (mut logs, silent) = watch.finish()?;
    logs.extend(timeline);
    if result.interrupted {
        return Err(Error::interrupted());
    }
    for job in silent {
        let name = &result.jobs[job].name;
        let text = format!("nothing of job `{name}` has counted: its log files are empty");
        streams.note("warning", &text);
    }
    for warning in &result.warnings {
        streams.note("warning", warning);
    }
    let report = Report {
        config: &config,
        result: &result,
    };
    output::finish(file, streams.stdout, &told(args, report))?;
    for log in logs {
        log.commit()?;
    }
    match result.jobs.iter().map(|job| job.errors).sum::<u64>() {
        0 => Ok(()),
        refused => Err(Error::failed(format!(
            "the drive refused {refused} requests"
        ))),
    }
}

/// Runs it under the eyes of all who are asked for; for those who are not, nothing is done.
fn watched(
    args: &SimulateArgs,
    config: &RunConfig,
    workload: Workload,
    (mut watch, timeline): (Watch, Option<TimelineFile>),
) -> Result<(RunResult, Watch, Option<OutputFile>), Error> {
    if timeline.is_none() && !args.time.breakdown {
        let result = lodger_run::run(config, workload, &mut watch)?;
        return Ok((result, watch, None));
    }
    let submit_ps = config.spec().host.submit_ps;
    let over_time = timeline.as_ref();
    let over_time = over_time.map(|file| file.timeline(config.spec(), submit_ps));
    let mut all = (watch, (over_time, Breakdown::default()));
    let mut result = if args.time.breakdown {
        let tracer = Recorder::default();
        let (result, _) = lodger_run::run_traced(config, workload, &mut all, tracer)?;
        result
    } else {
        lodger_run::run(config, workload, &mut all)?
    };
    let (watch, (over_time, breakdown)) = all;
    if args.time.breakdown {
        result.breakdown = Some(breakdown.finish(&result));
    }
    let timeline = match (timeline, over_time) {
        (Some(file), Some(over_time)) => Some(file.write(over_time, &result)?),
        _ => None,
    };
    Ok((result, watch, timeline))
}

fn told(args: &SimulateArgs, report: Report<'_>) -> String {
    match args.report.output_format {
        ReportFormat::Normal => report::text(report),
        ReportFormat::Json => report::json(report, false),
        ReportFormat::JsonPlus => report::json(report, true),
    }
}
