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
use lodger_run::FioLogs;
use lodger_run::report::{self, Report};
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
    let (result, watch, timeline) = match timeline {
        None => {
            let mut watch = watch;
            let result = lodger_run::run(&config, workload, &mut watch)?;
            (result, watch, None)
        }
        Some(file) => {
            let mut watch = (watch, file.timeline(config.spec(), submit_ps));
            let result = lodger_run::run(&config, workload, &mut watch)?;
            let file = file.write(watch.1, &result)?;
            (result, watch.0, Some(file))
        }
    };
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

fn told(args: &SimulateArgs, report: Report<'_>) -> String {
    match args.report.output_format {
        ReportFormat::Normal => report::text(report),
        ReportFormat::Json => report::json(report, false),
        ReportFormat::JsonPlus => report::json(report, true),
    }
}
