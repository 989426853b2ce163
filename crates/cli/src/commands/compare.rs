//! `lodger compare`.

use super::Streams;
use crate::args::{CompareArgs, TableFormat};
use crate::error::Error;
use crate::inputs;
use crate::interrupt;
use crate::output::{self, OutputFile};
use crate::watch::{Run, Watch};
use lodger_run::report::compare::{self, Given, Variant};
use lodger_run::report::{Report, comparison_page};
use lodger_run::timeline::{Interval, Table};
use lodger_run::{HmbChoice, RunConfig, RunResult, Timeline, WorkloadFile};
use std::time::Instant;

pub(super) fn run(args: &CompareArgs, streams: &mut Streams<'_>) -> Result<(), Error> {
    let given = given(args);
    let choices = given
        .iter()
        .map(|given| HmbChoice::parse(given.hmb, given.hmb_offer));
    let choices = choices.collect::<Result<Vec<HmbChoice>, Error>>()?;
    if args.drives.len() * given.len() < 2 {
        let message = "there is nothing to compare: one drive with one amount of host memory";
        return Err(Error::input(message).hint(
            "give `--drive` twice or `--hmb off,64MiB`; `lodger simulate` runs a single drive",
        ));
    }
    once("--drive", args.drives.iter().map(String::as_str))?;
    once("--hmb", args.hmb.iter().map(|text| text.trim()))?;
    once("--hmb-offer", args.hmb_offer.iter().map(|text| text.trim()))?;
    let mut configs: Vec<(Given<'_>, RunConfig)> = Vec::new();
    for drive in &args.drives {
        for (given, &choice) in given.iter().zip(&choices) {
            configs.push((*given, inputs::config(drive, choice, &args.run)?));
        }
    }
    let source = inputs::workload(&args.workload, &args.trace)?.choose(args.logging.choice()?)?;
    for note in source.notes() {
        streams.note(&note);
    }
    // Read once before any output is begun, with all that it includes.
    if let Some((_, config)) = configs.first() {
        source.workload(config.spec(), config.seed)?;
    }
    let file = output::begin(args.output.file.as_deref())?;
    let page = output::begin(args.page.as_deref())?;
    let mut results: Vec<RunResult> = Vec::new();
    let mut over_time: Vec<Table> = Vec::new();
    let started = Instant::now();
    for (index, (given, config)) in configs.iter().enumerate() {
        let run = Run {
            index,
            count: configs.len(),
            name: called(config, *given),
            started,
        };
        let (result, table) = run_one(config, run, &source, page.is_some(), streams)?;
        results.push(result);
        over_time.extend(table);
    }
    let variants: Vec<Variant<'_>> = configs
        .iter()
        .zip(&results)
        .map(|((given, config), result)| Variant {
            given: *given,
            report: Report { config, result },
        })
        .collect();
    let text = match args.output.format {
        TableFormat::Normal => compare::text(&variants),
        TableFormat::Json => compare::json(&variants),
        TableFormat::Markdown => compare::markdown(&variants),
        TableFormat::Csv => compare::csv(&variants),
    };
    let shown = inputs::shown(&args.workload);
    let page = page.map(|page| page.holding(&comparison_page(&shown, &variants, &over_time)));
    let page = page.transpose()?;
    output::finish(file, streams.stdout, &text)?;
    page.map_or(Ok(()), OutputFile::commit)
}

/// What is said of host memory, a column of each drive each.
fn given(args: &CompareArgs) -> Vec<Given<'_>> {
    let caps = args.hmb.iter().map(|text| Given {
        hmb: Some(text.trim()),
        hmb_offer: None,
    });
    let offers = args.hmb_offer.iter().map(|text| Given {
        hmb: None,
        hmb_offer: Some(text.trim()),
    });
    let given: Vec<Given<'_>> = caps.chain(offers).collect();
    match given.len() {
        0 => vec![Given::default()],
        _ => given,
    }
}

/// Two equal columns are nobody's question.
fn once<'a>(option: &str, values: impl Iterator<Item = &'a str>) -> Result<(), Error> {
    let mut seen = Vec::new();
    for value in values {
        if seen.contains(&value) {
            let message = format!("`{option}` has `{}` twice", value.escape_debug());
            return Err(
                Error::input(message).hint("equal commands give equal results: leave one out")
            );
        }
        seen.push(value);
    }
    Ok(())
}

/// What messages call a run.
fn called(config: &RunConfig, given: Given<'_>) -> String {
    let drive = &config.drive.name;
    match (given.hmb, given.hmb_offer) {
        (Some(hmb), _) => format!("{drive} with `--hmb {hmb}`"),
        (None, Some(offer)) => format!("{drive} with `--hmb-offer {offer}`"),
        (None, None) => drive.clone(),
    }
}

/// A run, and what it did over time if that is asked for.
fn run_one(
    config: &RunConfig,
    run: Run,
    source: &WorkloadFile,
    is_told_over_time: bool,
    streams: &mut Streams<'_>,
) -> Result<(RunResult, Option<Table>), Error> {
    let (workload, notes) = source.workload(config.spec(), config.seed)?;
    let which = run.name.clone();
    for note in notes {
        streams.note(&format!("{which}: {note}"));
    }
    let (spec, submit_ps) = (config.spec(), config.spec().host.submit_ps);
    let over_time = is_told_over_time.then(|| Timeline::new(Interval::default(), spec, submit_ps));
    let mut all = (Watch::new(None, submit_ps).of(run), over_time);
    interrupt::check()?;
    let result = lodger_run::run(config, workload, &mut all)?;
    let (watch, over_time) = all;
    watch.finish()?;
    if result.interrupted {
        return Err(Error::interrupted());
    }
    for warning in &result.warnings {
        streams.warning(&format!("{which}: {warning}"));
    }
    let over_time = over_time.map(|over_time| over_time.finish(&result));
    Ok((result, over_time.transpose()?))
}
