//! `simulate`, and the reports on what it found.

use crate::columns;
use crate::drive::Drive;
use crate::errors::{self, OrRaise};
use crate::log::Log;
use crate::supervise::{Control, Stop, supervise};
use crate::workload::Workload;
use lodger_core::{Completion, Precondition, Request};
use lodger_run::report::{self, Report, compare};
use lodger_run::timeline::{Interval, Table, Values};
use lodger_run::{
    Breakdown, Error, HmbChoice, Observer, Progress, Recorder, RunConfig, RunResult, Timeline,
    Workload as Asked,
};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict};
use std::ops::ControlFlow;

/// Watches one run.
struct Watch<'c> {
    control: &'c Control,
    log: Option<Log>,
}

impl Observer for Watch<'_> {
    #[inline]
    fn completed(&mut self, job: usize, request: &Request, completion: &Completion) {
        if let Some(log) = &mut self.log {
            log.push(job, request, completion);
        }
    }

    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        self.control.beat(progress)
    }
}

/// A finished run, from which the reports are made.
#[pyclass(frozen, module = "lodger._native")]
#[derive(Debug)]
pub struct Run {
    config: RunConfig,
    /// What was said of host memory: its cap, and an exact offer.
    hmb: Option<String>,
    hmb_offer: Option<String>,
    result: RunResult,
    notes: Vec<String>,
    log: Option<Py<PyDict>>,
    over_time: Option<Table>,
}

impl Run {
    fn report(&self) -> Report<'_> {
        Report {
            config: &self.config,
            result: &self.result,
        }
    }
}

#[pymethods]
impl Run {
    /// The report as JSON, with the bins of the histograms or without.
    fn json(&self, py: Python<'_>, bins: bool) -> String {
        py.detach(|| report::json(self.report(), bins))
    }

    /// The report for people.
    fn text(&self) -> String {
        report::text(self.report())
    }

    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes
            .iter()
            .map(|note| errors::in_python(note))
            .collect()
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        let over_time = self.over_time.as_ref().and_then(Table::warning);
        let run = self.result.warnings.iter().cloned();
        run.chain(over_time).collect()
    }

    /// Columns of the log as bytes.
    #[getter]
    fn log(&self, py: Python<'_>) -> Option<Py<PyDict>> {
        self.log.as_ref().map(|log| log.clone_ref(py))
    }

    /// Columns over time: what kind of numbers, the numbers as bytes, and which of them are there.
    #[getter]
    fn timeline<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.over_time
            .as_ref()
            .map(|table| columns_over_time(py, table))
            .transpose()
    }

    /// The report as a page, where the run was followed and told over time.
    fn page(&self, workload: &str) -> Option<String> {
        let table = self.over_time.as_ref()?;
        self.result.breakdown.as_ref()?;
        Some(report::page(workload, self.report(), table))
    }
}

fn columns_over_time<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    for column in &table.columns {
        let (kind, bits, there): (_, Vec<u64>, Vec<u8>) = match &column.values {
            Values::Whole(values) => (
                "whole",
                values.iter().map(|value| value.unwrap_or(0)).collect(),
                values
                    .iter()
                    .map(|value| u8::from(value.is_some()))
                    .collect(),
            ),
            Values::Real(values) => (
                "real",
                values
                    .iter()
                    .map(|value| value.unwrap_or(0.0).to_bits())
                    .collect(),
                values
                    .iter()
                    .map(|value| u8::from(value.is_some()))
                    .collect(),
            ),
        };
        let cells = (
            kind,
            columns::from_u64(py, &bits)?,
            PyByteArray::new(py, &there),
        );
        out.set_item(&column.name, cells)?;
    }
    Ok(out)
}

/// What was written before.
pub fn precondition(word: &str) -> Result<Precondition, Error> {
    match word {
        "none" => Ok(Precondition::None),
        "sequential" => Ok(Precondition::Sequential),
        "random" => Ok(Precondition::Random),
        _ => Err(Error::input(format!(
            "`precondition` must be `none`, `sequential` or `random`, found `{}`",
            word.escape_debug()
        ))),
    }
}

/// How long the intervals of a timeline are: `auto`, or a time with its unit.
fn interval(word: &str) -> Result<Interval, Error> {
    match word {
        "auto" => Ok(Interval::Chosen),
        word => word.parse().map_err(in_python),
    }
}

/// The option of the command is an argument here.
fn in_python(error: Error) -> Error {
    let named = |text: String| text.replace("`--timeline-interval`", "`timeline`");
    Error {
        message: named(error.message),
        hint: Some(
            "give a time such as `timeline=\"100ms\"`, or `timeline=True` for one that fits"
                .to_owned(),
        ),
        ..error
    }
}

/// What a run leaves behind.
struct Ran {
    result: RunResult,
    log: Option<Log>,
    over_time: Option<Table>,
}

/// Runs it under the eyes of all who are asked for.
fn watched(
    config: &RunConfig,
    workload: Asked,
    watch: Watch<'_>,
    over_time: Option<Interval>,
    breakdown: bool,
) -> Result<Ran, Error> {
    let (spec, submit_ps) = (config.spec(), config.spec().host.submit_ps);
    let over_time = over_time.map(|interval| Timeline::new(interval, spec, submit_ps));
    let result;
    let mut all = (watch, (over_time, None));
    if breakdown {
        all.1.1 = Some(Breakdown::default());
        result = lodger_run::run_traced(config, workload, &mut all, Recorder::keeping(None))?.0;
    } else {
        result = lodger_run::run(config, workload, &mut all)?;
    }
    let (watch, (over_time, breakdown)) = all;
    let mut result = result;
    if result.interrupted {
        return Err(Error::interrupted());
    }
    result.breakdown = breakdown.map(|breakdown| breakdown.finish(&result));
    let over_time = over_time.map(|seen| seen.finish(&result));
    Ok(Ran {
        result,
        log: watch.log,
        over_time,
    })
}

/// Runs a workload on a drive.
#[pyfunction]
#[pyo3(signature = (workload, drive, *, hmb, hmb_offer, precondition, seed, log, timeline, breakdown, progress, stop))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub fn simulate(
    py: Python<'_>,
    workload: &Workload,
    drive: &Drive,
    hmb: Option<String>,
    hmb_offer: Option<String>,
    precondition: &str,
    seed: u64,
    log: bool,
    timeline: Option<&str>,
    breakdown: bool,
    progress: Option<Py<PyAny>>,
    stop: Option<&Stop>,
) -> PyResult<Run> {
    let config = RunConfig {
        drive: drive.to_run(),
        hmb: HmbChoice::parse(hmb.as_deref(), hmb_offer.as_deref()).or_raise(py)?,
        precondition: self::precondition(precondition).or_raise(py)?,
        seed,
    };
    let over_time = timeline.map(interval).transpose().or_raise(py)?;
    let source = workload.source();
    let ran = supervise(py, progress.as_ref(), stop, |control| {
        let watch = Watch {
            control,
            log: log.then(Log::default),
        };
        let (workload, notes) = source.workload(config.spec(), seed)?;
        Ok::<_, Error>((
            watched(&config, workload, watch, over_time, breakdown)?,
            notes,
        ))
    })?;
    let (ran, notes) = ran.or_raise(py)?;
    let submit_ps = config.spec().host.submit_ps;
    let log = ran
        .log
        .map(|log| log.columns(py, &ran.result, submit_ps))
        .transpose()?;
    Ok(Run {
        config,
        hmb,
        hmb_offer,
        result: ran.result,
        notes,
        log: log.map(Bound::unbind),
        over_time: ran.over_time,
    })
}

/// What is said of host memory, in one spelling: `off` and `0B` are the same.
#[pyfunction]
#[pyo3(signature = (hmb, hmb_offer))]
pub fn hmb_choice(py: Python<'_>, hmb: Option<&str>, hmb_offer: Option<&str>) -> PyResult<String> {
    let choice = HmbChoice::parse(hmb, hmb_offer).or_raise(py)?;
    Ok(format!("{choice:?}"))
}

/// Raises what `simulate` would raise before the first request; returns the bytes of host memory that
/// the drive would be granted.
#[pyfunction]
#[pyo3(signature = (workload, drive, *, hmb, hmb_offer, precondition, seed))]
pub fn check_run(
    py: Python<'_>,
    workload: &Workload,
    drive: &Drive,
    hmb: Option<&str>,
    hmb_offer: Option<&str>,
    precondition: &str,
    seed: u64,
) -> PyResult<u64> {
    let config = RunConfig {
        drive: drive.to_run(),
        hmb: HmbChoice::parse(hmb, hmb_offer).or_raise(py)?,
        precondition: self::precondition(precondition).or_raise(py)?,
        seed,
    };
    let source = workload.source();
    let checked = py.detach(|| {
        source.workload(config.spec(), seed)?;
        Ok::<_, Error>(config.hmb.negotiate(config.spec())?.0.granted_bytes)
    });
    checked.or_raise(py)
}

fn variants<'r>(runs: &'r [PyRef<'_, Run>]) -> Vec<compare::Variant<'r>> {
    runs.iter()
        .map(|run| compare::Variant {
            given: compare::Given {
                hmb: run.hmb.as_deref(),
                hmb_offer: run.hmb_offer.as_deref(),
            },
            report: run.report(),
        })
        .collect()
}

/// The table of `lodger compare`.
#[pyfunction]
pub fn compare_text(runs: Vec<PyRef<'_, Run>>) -> String {
    compare::text(&variants(&runs))
}

/// The page of `lodger compare --report`, where all runs were told over time.
#[pyfunction]
pub fn compare_page(workload: &str, runs: Vec<PyRef<'_, Run>>) -> Option<String> {
    let tables = runs.iter().map(|run| run.over_time.clone());
    let over_time: Vec<Table> = tables.collect::<Option<_>>()?;
    Some(report::comparison_page(
        workload,
        &variants(&runs),
        &over_time,
    ))
}
