//! `simulate`, and the reports on what it found.

use crate::drive::Drive;
use crate::errors::OrRaise;
use crate::log::Log;
use crate::supervise::{Control, Stop, supervise};
use crate::workload::Workload;
use lodger_core::{Completion, Precondition, Request};
use lodger_run::report::{self, Report, compare};
use lodger_run::{Error, HmbChoice, Observer, Progress, RunConfig, RunResult};
use pyo3::prelude::*;
use pyo3::types::PyDict;
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
        self.notes.clone()
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.result.warnings.clone()
    }

    /// Columns of the log as bytes.
    #[getter]
    fn log(&self, py: Python<'_>) -> Option<Py<PyDict>> {
        self.log.as_ref().map(|log| log.clone_ref(py))
    }
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

/// Runs a workload on a drive.
#[pyfunction]
#[pyo3(signature = (workload, drive, *, hmb, hmb_offer, precondition, seed, log, progress, stop))]
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
    progress: Option<Py<PyAny>>,
    stop: Option<&Stop>,
) -> PyResult<Run> {
    let config = RunConfig {
        drive: drive.to_run(),
        hmb: HmbChoice::parse(hmb.as_deref(), hmb_offer.as_deref()).or_raise(py)?,
        precondition: self::precondition(precondition).or_raise(py)?,
        seed,
    };
    let source = workload.source();
    let ran = supervise(py, progress.as_ref(), stop, |control| {
        let mut watch = Watch {
            control,
            log: log.then(Log::default),
        };
        let (workload, notes) = source.workload(config.spec(), seed)?;
        let result = lodger_run::run(&config, workload, &mut watch)?;
        if result.interrupted {
            return Err(Error::interrupted());
        }
        Ok((result, notes, watch.log))
    })?;
    let (result, notes, log) = ran.or_raise(py)?;
    let submit_ps = config.spec().host.submit_ps;
    let log = log
        .map(|log| log.columns(py, &result, submit_ps))
        .transpose()?;
    Ok(Run {
        config,
        hmb,
        hmb_offer,
        result,
        notes,
        log: log.map(Bound::unbind),
    })
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

/// The table of `lodger compare`.
#[pyfunction]
pub fn compare_text(runs: Vec<PyRef<'_, Run>>) -> String {
    let variants: Vec<_> = runs
        .iter()
        .map(|run| compare::Variant {
            given: compare::Given {
                hmb: run.hmb.as_deref(),
                hmb_offer: run.hmb_offer.as_deref(),
            },
            report: run.report(),
        })
        .collect();
    compare::text(&variants)
}
