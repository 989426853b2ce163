//! `advise`.

use crate::drive::Drive;
use crate::errors::OrRaise;
use crate::simulate::precondition;
use crate::supervise::{Stop, supervise};
use crate::workload::Workload;
use lodger_run::advise::{self as advising, Advised, Goal, parse_within};
use lodger_run::{Error, HmbChoice, RunConfig, window_advice};
use pyo3::prelude::*;

/// Advice on host memory or on a byte window.
#[pyclass(frozen, module = "lodger._native")]
pub struct Advice(Box<dyn Advised + Send + Sync>);

impl std::fmt::Debug for Advice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.text())
    }
}

#[pymethods]
impl Advice {
    /// The report as JSON.
    fn json(&self) -> String {
        format!("{:#}\n", self.0.json())
    }

    /// The report for people.
    fn text(&self) -> String {
        self.0.text()
    }

    /// The report as a page with curves.
    fn page(&self, workload: &str) -> String {
        self.0.page(workload)
    }

    /// Whether some size meets the goal, or the window pays.
    #[getter]
    fn is_yes(&self) -> bool {
        self.0.is_yes()
    }
}

/// Finds out how much host memory is enough.
#[pyfunction]
#[pyo3(signature = (workload, drive, *, slo, within, precondition, seed, progress, stop))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub fn advise(
    py: Python<'_>,
    workload: &Workload,
    drive: &Drive,
    slo: Option<&str>,
    within: Option<&str>,
    precondition: &str,
    seed: u64,
    progress: Option<Py<PyAny>>,
    stop: Option<&Stop>,
) -> PyResult<Advice> {
    let goal = match (slo, within) {
        (Some(_), Some(_)) => {
            let error = Error::input("`slo` and `within` exclude each other");
            return Err(error.hint("leave one of them out")).or_raise(py);
        }
        (Some(slo), None) => Goal::Slo(slo.parse().or_raise(py)?),
        (None, Some(within)) => parse_within(within).or_raise(py)?,
        (None, None) => Goal::default(),
    };
    let config = config(py, drive, precondition, seed)?;
    let source = workload.source();
    let spec = config.spec();
    if source.is_logging() && spec.roles.window.is_some() {
        let message =
            "for database logging on this drive the question is whether its byte window pays";
        return Err(Error::input(message).hint("call `lodger.advise_window`")).or_raise(py);
    }
    let make = |seed| Ok(source.workload(spec, seed)?.0);
    let advice = supervise(py, progress.as_ref(), stop, |control| {
        advising::advise(&config, &make, goal, &|progress, _| control.beat(progress))
    })?;
    Ok(Advice(Box::new(advice.or_raise(py)?)))
}

/// Finds out whether a byte window pays for a database's commits.
#[pyfunction]
#[pyo3(signature = (workload, drive, *, precondition, seed, progress, stop))]
pub fn advise_window(
    py: Python<'_>,
    workload: &Workload,
    drive: &Drive,
    precondition: &str,
    seed: u64,
    progress: Option<Py<PyAny>>,
    stop: Option<&Stop>,
) -> PyResult<Advice> {
    let config = config(py, drive, precondition, seed)?;
    let source = workload.source();
    let advice = supervise(py, progress.as_ref(), stop, |control| {
        window_advice::advise(&config, &source, &|progress, _| control.beat(progress))
    })?;
    Ok(Advice(Box::new(advice.or_raise(py)?)))
}

fn config(py: Python<'_>, drive: &Drive, precondition: &str, seed: u64) -> PyResult<RunConfig> {
    Ok(RunConfig {
        drive: drive.to_run(),
        hmb: HmbChoice::Negotiated,
        precondition: self::precondition(precondition).or_raise(py)?,
        seed,
    })
}
