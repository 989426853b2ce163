//! `lodger simulate` of a recording of a live drive.

use super::told;
use crate::args::{PreconditionArg, SimulateArgs};
use crate::commands::Streams;
use crate::error::Error;
use crate::timeline::TimelineFile;
use crate::watch::Watch;
use crate::{inputs, interrupt, output};
use lodger_run::replay::{self, Replayed};
use lodger_run::report::Report;
use lodger_run::{FioLogs, HmbChoice};
use lodger_workload::live::Reader;
use std::io::BufRead;
use std::path::Path;

pub(super) fn run(
    args: &SimulateArgs,
    recording: Reader<Box<dyn BufRead>>,
    streams: &mut Streams<'_>,
) -> Result<(), Error> {
    let name = inputs::named(&args.workload);
    let logging = args.logging.choice(args.commit.as_deref())?.option();
    let given = [
        (args.hmb.choice()? != HmbChoice::default(), "--hmb"),
        (logging.is_some(), logging.unwrap_or_default()),
        (
            args.run.precondition != PreconditionArg::default(),
            "--precondition",
        ),
        (args.stream, "--stream"),
    ];
    let follows = [
        (args.time.breakdown, "--breakdown"),
        (args.time.trace_events.is_some(), "--trace-events"),
        (args.page.is_some(), "--report"),
    ];
    let refused = |option: &str| {
        Error::input(format!(
            "`{option}` is for other workloads, and `{name}` is a recording of a live drive"
        ))
    };
    if let Some((_, option)) = follows.iter().find(|(is_given, _)| *is_given) {
        return Err(refused(option).hint("`--timeline` tells what happened over time"));
    }
    if let Some((_, option)) = given.iter().find(|(is_given, _)| *is_given) {
        return Err(refused(option).hint("the recording says all of this itself"));
    }
    let config = inputs::config(&args.drive, HmbChoice::Off, &args.run)?;
    let file = output::begin(args.report.output.as_deref())?;
    let log = output::begin(args.time.latency_log.as_deref())?;
    let timeline = TimelineFile::begin(&args.time)?;
    let none = FioLogs::create(std::iter::empty(), 0, |name| {
        output::OutputFile::create(Path::new(name))
    })?;
    // The live drive ends at the link: what a host takes beside is not in the recording.
    let watch = Watch::new(log, 0).writing(none);
    interrupt::check()?;
    let observed = timeline.as_ref();
    let mut watch = (watch, observed.map(|file| file.timeline(config.spec(), 0)));
    let replayed = replay::replay(&config, recording, &name, &mut watch)?;
    if replayed.result.interrupted {
        return Err(Error::interrupted());
    }
    let (watch, observed) = watch;
    let timeline = match (timeline, observed) {
        (Some(file), Some(observed)) => Some(file.write(observed, &replayed.result, streams)?),
        _ => None,
    };
    let (mut logs, _) = watch.finish()?;
    logs.extend(timeline);
    for warning in &replayed.result.warnings {
        streams.warning(warning);
    }
    let report = Report {
        config: &replayed.config,
        result: &replayed.result,
    };
    output::finish(file, streams.stdout, &told(args, report))?;
    for log in logs {
        log.commit()?;
    }
    judge(&replayed, &name, streams)
}

/// Says whether completions were those of the live drive; the same drive must have given them.
fn judge(replayed: &Replayed, name: &str, streams: &mut Streams<'_>) -> Result<(), Error> {
    let Replayed {
        head,
        compared,
        different,
        ..
    } = replayed;
    streams.note(&format!(
            "recording of `{}` with seed {}, by lodger {}: {compared} completions, {different} at another time than live",
            head.drive, head.seed, head.by
        ),
    );
    if replayed.is_cut {
        streams.warning(
            "the recording is cut off: its server was killed, or had no room to write the rest",
        );
    }
    if replayed.left > 0 {
        let text = format!(
            "{} commands were under way when the recording ended",
            replayed.left
        );
        streams.note(&text);
    }
    for doubt in &replayed.doubts {
        let text = format!(
            "completions may differ from the live drive's: {}",
            replay::told(*doubt)
        );
        streams.warning(&text);
    }
    match &replayed.first_difference {
        Some(first) if replayed.is_same && replayed.doubts.is_empty() => {
            let message = format!(
                "recording `{name}`: {different} completions are not those of the live drive"
            );
            Err(Error::failed(message).hint(format!("the first: {first}")))
        }
        Some(_) if !replayed.is_same => {
            let text = "this is another drive, seed or version than was recorded: it gives completions of its own";
            streams.note(text);
            Ok(())
        }
        _ => Ok(()),
    }
}
