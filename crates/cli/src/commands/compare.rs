//! `lodger compare`.

use super::Streams;
use crate::args::{CompareArgs, PlainFormat};
use crate::error::Error;
use crate::inputs::{self, Source};
use crate::output;
use crate::report::Report;
use crate::report::compare::{self, Variant};
use crate::run::{self, RunConfig, RunResult};
use crate::watch::Watch;

pub(super) fn run(args: &CompareArgs, streams: &mut Streams<'_>) -> Result<(), Error> {
    if args.drives.len() * args.hmb.len().max(1) < 2 {
        let message = "there is nothing to compare: one drive with one amount of host memory";
        return Err(Error::input(message).hint(
            "give `--drive` twice or `--hmb off,64MiB`; `lodger simulate` runs a single drive",
        ));
    }
    let hmbs: Vec<Option<&str>> = match &args.hmb[..] {
        [] => vec![None],
        some => some.iter().map(|text| Some(text.trim())).collect(),
    };
    let mut configs: Vec<(Option<&str>, RunConfig)> = Vec::new();
    for drive in &args.drives {
        for hmb in &hmbs {
            configs.push((*hmb, inputs::config(drive, *hmb, &args.run)?));
        }
    }
    let source = Source::open(&args.workload, &args.trace)?;
    for note in source.notes() {
        streams.note("note", &note);
    }
    let file = output::begin(args.output.file.as_deref())?;
    let mut results: Vec<RunResult> = Vec::new();
    for (hmb, config) in &configs {
        results.push(run_one(config, *hmb, &source, streams)?);
    }
    let variants: Vec<Variant<'_>> = configs
        .iter()
        .zip(&results)
        .map(|((hmb, config), result)| Variant {
            hmb: *hmb,
            report: Report { config, result },
        })
        .collect();
    let text = match args.output.format {
        PlainFormat::Normal => compare::text(&variants),
        PlainFormat::Json => compare::json(&variants),
    };
    output::finish(file, streams.stdout, &text)
}

fn run_one(
    config: &RunConfig,
    hmb: Option<&str>,
    source: &Source,
    streams: &mut Streams<'_>,
) -> Result<RunResult, Error> {
    let drive = &config.drive;
    let (workload, notes) = source.workload(&drive.parsed.spec, config.seed)?;
    let which = match hmb {
        Some(hmb) => format!("{} with `--hmb {hmb}`", drive.name),
        None => drive.name.clone(),
    };
    for note in notes {
        streams.note("note", &format!("{which}: {note}"));
    }
    let mut watch = Watch::new(None, drive.parsed.spec.host.submit_ps);
    let result = run::run(config, workload, &mut watch)?;
    watch.finish()?;
    if result.interrupted {
        return Err(Error::interrupted());
    }
    for warning in &result.warnings {
        streams.note("warning", &format!("{which}: {warning}"));
    }
    Ok(result)
}
