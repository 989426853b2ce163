//! `lodger compare`.

mod columns;

use self::columns::{Column, Columns};
use super::Streams;
use crate::args::{CompareArgs, TableFormat};
use crate::error::{Error, ErrorKind};
use crate::inputs;
use crate::interrupt;
use crate::output::{self, OutputFile};
use crate::side_by_side;
use lodger_run::report::compare::{self, Given, Variant};
use lodger_run::report::{Report, comparison_page};
use lodger_run::timeline::{Interval, Table};
use lodger_run::{HmbChoice, RunConfig, RunResult, Timeline, Workload, WorkloadFile};
use std::num::NonZeroUsize;

pub(super) fn run(args: &CompareArgs, streams: &mut Streams<'_>) -> Result<(), Error> {
    let given = given(args);
    let runs = check(args, &given)?;
    if runs < 2 && args.commit.is_empty() {
        return Err(nothing_to_compare(args));
    }
    let sources = sources(args, streams)?;
    // Only now is it known whether the workload commits at all.
    if runs < 2 {
        return Err(nothing_to_compare(args));
    }
    let runs = planned(args, &given, &sources)?;
    let file = output::begin(args.output.file.as_deref())?;
    let page = output::begin(args.page.as_deref())?;
    let (results, over_time) = run_all(&runs, args.workers.count(), page.is_some(), streams)?;
    let variants: Vec<Variant<'_>> = runs
        .iter()
        .zip(&results)
        .map(|(run, result)| Variant {
            given: run.given,
            report: Report {
                config: &run.config,
                result,
            },
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

/// A run to be.
struct Planned<'a> {
    given: Given<'a>,
    config: RunConfig,
    commit: Option<&'a str>,
    source: &'a WorkloadFile,
}

impl Planned<'_> {
    fn made(&self) -> Result<(), Error> {
        let made = self.source.workload(self.config.spec(), self.config.seed);
        made.map(drop)
    }

    /// An error of this run, which has others beside it.
    fn blamed(&self, error: Error) -> Error {
        if error.kind != ErrorKind::Input || error.message.contains(&self.config.drive.name) {
            return error;
        }
        Error {
            message: format!("{}: {}", self.called(), error.message),
            ..error
        }
    }

    /// What messages call it.
    fn called(&self) -> String {
        let mut options = Vec::new();
        match (self.given.hmb, self.given.hmb_offer) {
            (Some(hmb), _) => options.push(format!("`--hmb {hmb}`")),
            (None, Some(offer)) => options.push(format!("`--hmb-offer {offer}`")),
            (None, None) => {}
        }
        options.extend(self.commit.map(|commit| format!("`--commit {commit}`")));
        match &self.config.drive.name {
            drive if options.is_empty() => drive.clone(),
            drive => format!("{drive} with {}", options.join(" and ")),
        }
    }
}

fn nothing_to_compare(args: &CompareArgs) -> Error {
    let message = "there is nothing to compare: one drive with one amount of host memory";
    let several = args.drives.iter().find(|name| name.contains(','));
    if let Some(several) = several {
        let names = several.split(',').filter(|name| !name.is_empty());
        let options: Vec<String> = names.map(|name| format!("--drive {name}")).collect();
        let options = options.join(" ");
        return Error::input(message).hint(format!(
            "`--drive` takes one name, and may be given again: {options}"
        ));
    }
    Error::input(message)
        .hint("give `--drive` twice or `--hmb off,64MiB`; `lodger simulate` runs a single drive")
}

/// How many runs there are; all that is said of them makes sense, and none is there twice.
fn check(args: &CompareArgs, given: &[Given<'_>]) -> Result<usize, Error> {
    let choices = given.iter();
    let mut choices = choices.map(|given| HmbChoice::parse(given.hmb, given.hmb_offer));
    choices.try_for_each(|choice| choice.map(drop))?;
    let mut commits = args.commit.iter();
    commits.try_for_each(|commit| args.logging.choice(Some(commit.trim())).map(drop))?;
    once("--drive", args.drives.iter().map(String::as_str))?;
    once("--hmb", args.hmb.iter().map(|text| text.trim()))?;
    once("--hmb-offer", args.hmb_offer.iter().map(|text| text.trim()))?;
    once("--commit", args.commit.iter().map(|text| text.trim()))?;
    Ok(args.drives.len() * given.len() * args.commit.len().max(1))
}

/// Every drive with every amount of host memory and every way to commit.
fn planned<'a>(
    args: &'a CompareArgs,
    given: &[Given<'a>],
    sources: &'a [(Option<&'a str>, WorkloadFile)],
) -> Result<Vec<Planned<'a>>, Error> {
    let mut runs = Vec::new();
    for drive in &args.drives {
        for given in given {
            let choice = HmbChoice::parse(given.hmb, given.hmb_offer)?;
            let config = inputs::config(drive, choice, &args.run)?;
            runs.extend(sources.iter().map(|(commit, source)| Planned {
                given: *given,
                config: config.clone(),
                commit: *commit,
                source,
            }));
        }
    }
    // Read before any output is begun, with all that is included; not every drive can commit in every way.
    for (at, run) in runs.iter().enumerate() {
        if at == 0 || run.source.is_logging() {
            run.made().map_err(|error| {
                // What is wrong for every drive is wrong with the workload.
                let is_of_drive = runs
                    .iter()
                    .any(|other| other.made().err().as_ref() != Some(&error));
                match is_of_drive {
                    true => run.blamed(error),
                    false => error,
                }
            })?;
        }
    }
    Ok(runs)
}

/// The workload, once for each way to commit.
fn sources<'a>(
    args: &'a CompareArgs,
    streams: &mut Streams<'_>,
) -> Result<Vec<(Option<&'a str>, WorkloadFile)>, Error> {
    let source = inputs::workload(&args.workload, &args.trace)?;
    for note in source.notes() {
        streams.note(&note);
    }
    if args.commit.is_empty() {
        return Ok(vec![(None, source.choose(args.logging.choice(None)?)?)]);
    }
    let commits = args.commit.iter().map(|text| Some(text.trim()));
    commits
        .map(|commit| Ok((commit, source.clone().choose(args.logging.choice(commit)?)?)))
        .collect()
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

/// What a run came to.
struct Ran {
    result: RunResult,
    over_time: Option<Table>,
}

/// What had to be done to a workload.
type Notes = Vec<String>;

/// All runs, several at a time; the user hears of each as if they had been made one after the other.
fn run_all(
    runs: &[Planned<'_>],
    workers: NonZeroUsize,
    is_told_over_time: bool,
    streams: &mut Streams<'_>,
) -> Result<(Vec<RunResult>, Vec<Table>), Error> {
    let columns = Columns::new(runs.len());
    let (mut results, mut over_time) = (Vec::new(), Vec::new());
    let called = |index: usize| runs[index].called();
    let ended = side_by_side::each(
        runs.len(),
        workers,
        |index, wanted| {
            let column = columns.column(index, wanted);
            run_one(&runs[index], is_told_over_time, column)
        },
        |(ran, notes): (Ran, Notes)| {
            let which = called(results.len());
            columns.beside(|| tell(&which, &notes, &ran.result.warnings, streams));
            results.push(ran.result);
            over_time.extend(ran.over_time);
        },
    );
    ended.map_err(|(error, notes)| {
        let at = results.len();
        columns.beside(|| tell(&called(at), &notes, &[], streams));
        runs[at].blamed(error)
    })?;
    Ok((results, over_time))
}

fn tell(which: &str, notes: &[String], warnings: &[String], streams: &mut Streams<'_>) {
    for note in notes {
        streams.note(&format!("{which}: {note}"));
    }
    for warning in warnings {
        streams.warning(&format!("{which}: {warning}"));
    }
}

/// A run, and what it did over time if that is asked for; with either end, what had to be done to its workload.
fn run_one(
    planned: &Planned<'_>,
    is_told_over_time: bool,
    column: Column<'_>,
) -> Result<(Ran, Notes), (Error, Notes)> {
    let config = &planned.config;
    let made =
        interrupt::check().and_then(|()| planned.source.workload(config.spec(), config.seed));
    let (workload, notes) = made.map_err(|error| (error, Notes::new()))?;
    match simulate(config, workload, is_told_over_time, column) {
        Ok(ran) => Ok((ran, notes)),
        Err(error) => Err((error, notes)),
    }
}

fn simulate(
    config: &RunConfig,
    workload: Workload,
    is_told_over_time: bool,
    column: Column<'_>,
) -> Result<Ran, Error> {
    let (spec, submit_ps) = (config.spec(), config.spec().host.submit_ps);
    let over_time = is_told_over_time.then(|| Timeline::new(Interval::default(), spec, submit_ps));
    let mut all = (column, over_time);
    let result = lodger_run::run(config, workload, &mut all)?;
    if result.interrupted {
        return Err(Error::interrupted());
    }
    let over_time = all.1.map(|over_time| over_time.finish(&result));
    Ok(Ran { result, over_time })
}
