//! `lodger simulate`.

mod recorded;

use super::Streams;
use crate::args::{ReportFormat, SimulateArgs};
use crate::error::Error;
use crate::inputs;
use crate::interrupt;
use crate::output::{self, OutputFile};
use crate::timeline::TimelineFile;
use crate::trace_events::TraceEventsFile;
use crate::watch::Watch;
use lodger_core::time::S;
use lodger_run::report::{self, Report};
use lodger_run::timeline::Interval;
use lodger_run::{
    Breakdown, FioLogs, LoggingChoice, Recorder, RunConfig, RunResult, Timeline, Workload,
};
use std::path::{Path, PathBuf};

pub(super) fn run(args: &SimulateArgs, streams: &mut Streams<'_>) -> Result<u8, Error> {
    // A recording comes by itself.
    let only = match (
        &args.workload[..],
        &args.fio.options[..],
        &args.fio.sections[..],
    ) {
        ([only], [], []) => Some(only),
        _ => None,
    };
    if let Some(only) = only
        && let Some(recording) = inputs::recording(only, &args.trace)?
    {
        return recorded::run(args, recording, streams).map(|()| 0);
    }
    let config = inputs::config(&args.drive, args.hmb.choice()?, &args.run)?;
    let workload = match args.stream {
        false => kept(args, &config, streams)?,
        true => streamed(args, only, &config)?,
    };
    // Before the work, which may take long: what cannot be written is said at once.
    let file = output::begin(args.report.output.as_deref())?;
    let log = output::begin(args.time.latency_log.as_deref())?;
    let extra = Extra {
        timeline: TimelineFile::begin(&args.time)?,
        trace_events: TraceEventsFile::begin(&args.time)?,
        page: output::begin(args.page.as_deref())?,
    };
    let submit_ps = config.spec().host.submit_ps;
    let jobs = workload.jobs.iter().map(|job| job.logs.as_deref());
    let logs = FioLogs::create(jobs, submit_ps, |name| OutputFile::create(Path::new(name)))?;
    let watch = Watch::new(log, submit_ps).writing(logs);
    interrupt::check()?;
    let (result, watch, extra) = watched(args, &config, workload, (watch, extra), streams)?;
    let (mut logs, silent) = watch.finish()?;
    let Written { files, notes } = extra;
    logs.extend(files);
    for note in &result.notes {
        streams.note(note);
    }
    let report = Report {
        config: &config,
        result: &result,
    };
    if result.interrupted {
        return partial(args, file, report, streams);
    }
    for job in silent {
        let name = &result.jobs[job].name;
        let text = format!("nothing of job `{name}` has counted: its log files are empty");
        streams.warning(&text);
    }
    for warning in &result.warnings {
        streams.warning(warning);
    }
    output::finish(file, streams.stdout, &told(args, report))?;
    for log in logs {
        log.commit()?;
    }
    // What they tell of is there now.
    for note in notes {
        streams.note(&note);
    }
    none_refused(&result)
}

/// What the drive has refused fails the run.
fn none_refused(result: &RunResult) -> Result<u8, Error> {
    match result.jobs.iter().map(|job| job.errors).sum::<u64>() {
        0 => Ok(0),
        1 => Err(Error::failed("the drive refused a request")),
        refused => Err(Error::failed(format!(
            "the drive refused {refused} requests"
        ))),
    }
}

/// A trace that is read while it is simulated.
fn streamed(
    args: &SimulateArgs,
    only: Option<&PathBuf>,
    config: &RunConfig,
) -> Result<Workload, Error> {
    let Some(path) = only else {
        let message = "`--stream` is for one trace, and jobs or several workloads are given";
        return Err(Error::input(message).hint("leave it out"));
    };
    if args.logging.choice(args.commit.as_deref())? != LoggingChoice::default() {
        let message =
            "`--stream` is for traces, `--commit` and its like for models of database logging";
        return Err(Error::input(message).hint("leave one of them out"));
    }
    inputs::streamed(path, &args.trace, config.spec())
}

/// The workload, read as a whole.
fn kept(
    args: &SimulateArgs,
    config: &RunConfig,
    streams: &mut Streams<'_>,
) -> Result<Workload, Error> {
    let source = inputs::workloads(&args.workload, &args.fio, &args.trace)?;
    let source = source.choose(args.logging.choice(args.commit.as_deref())?)?;
    for note in source.notes() {
        streams.note(&note);
    }
    let (workload, notes) = source.into_workload(config.spec(), config.seed)?;
    for note in notes {
        streams.note(&note);
    }
    Ok(workload)
}

/// What was simulated until the user stopped it, marked as part of a run. Curves and logs of a part would look like those
/// of a whole: there are none.
fn partial(
    args: &SimulateArgs,
    file: Option<OutputFile>,
    report: Report<'_>,
    streams: &mut Streams<'_>,
) -> Result<u8, Error> {
    output::finish(file, streams.stdout, &told(args, report))?;
    let simulated_s = report.result.simulated_ps as f64 / S as f64;
    let text = format!(
        "interrupted: the report tells of the first {simulated_s:.6} s; no other file was written"
    );
    streams.warning(&text);
    Ok(interrupt::exit_status())
}

/// Who looks at a run beside [`Watch`], and where it is written.
struct Extra {
    timeline: Option<TimelineFile>,
    trace_events: Option<TraceEventsFile>,
    page: Option<OutputFile>,
}

/// Files to be put in their places, and what is to be said once they are.
#[derive(Default)]
struct Written {
    files: Vec<OutputFile>,
    notes: Vec<String>,
}

/// Runs it under the eyes of all who are asked for; for those who are not, nothing is done. Of a run that was
/// interrupted no file is written.
fn watched(
    args: &SimulateArgs,
    config: &RunConfig,
    workload: Workload,
    (mut watch, extra): (Watch, Extra),
    streams: &mut Streams<'_>,
) -> Result<(RunResult, Watch, Written), Error> {
    let Extra {
        timeline,
        trace_events,
        page,
    } = extra;
    let breaks_down = args.time.breakdown || page.is_some();
    let follows = breaks_down || trace_events.is_some();
    if timeline.is_none() && !follows {
        let result = lodger_run::run(config, workload, &mut watch)?;
        return Ok((result, watch, Written::default()));
    }
    let submit_ps = config.spec().host.submit_ps;
    let over_time = timeline.as_ref();
    let over_time = over_time.map(|file| file.timeline(config.spec(), submit_ps));
    let for_page = page.is_some();
    let for_page = for_page.then(|| Timeline::new(Interval::default(), config.spec(), submit_ps));
    let breakdown = breaks_down.then(Breakdown::default);
    let mut all = (watch, ((over_time, for_page), breakdown));
    let (mut result, events) = if follows {
        let tracer = Recorder::keeping(trace_events.as_ref().map(TraceEventsFile::events));
        let (result, tracer) = lodger_run::run_traced(config, workload, &mut all, tracer)?;
        (result, tracer.into_events())
    } else {
        (lodger_run::run(config, workload, &mut all)?, None)
    };
    let (watch, ((over_time, for_page), breakdown)) = all;
    result.breakdown = breakdown.map(|breakdown| breakdown.finish(&result));
    let mut written = Written::default();
    let (page, timeline, trace_events) = match result.interrupted {
        true => (None, None, None),
        false => (page, timeline, trace_events),
    };
    if let (Some(file), Some(for_page)) = (page, for_page) {
        let report = Report {
            config,
            result: &result,
        };
        let over_time = for_page.finish(&result);
        let page = report::page(&inputs::all_shown(&args.workload), report, &over_time);
        written.files.push(file.holding(&page)?);
    }
    if !args.time.breakdown {
        result.breakdown = None;
    }
    if let (Some(file), Some(over_time)) = (timeline, over_time) {
        written.files.push(file.write(over_time, &result, streams)?);
    }
    if let (Some(file), Some(events)) = (trace_events, events) {
        let (file, note) = file.write(events)?;
        written.files.push(file);
        written.notes.push(note);
    }
    Ok((result, watch, written))
}

fn told(args: &SimulateArgs, report: Report<'_>) -> String {
    match args.report.output_format {
        ReportFormat::Normal => report::text(report),
        ReportFormat::Json => report::json(report, false),
        ReportFormat::JsonPlus => report::json(report, true),
        ReportFormat::Terse => report::terse(report),
    }
}
