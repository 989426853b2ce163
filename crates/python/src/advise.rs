//! `advise`.

use crate::drive::Drive;
use crate::errors::OrRaise;
use crate::simulate::precondition;
use crate::supervise::{Stop, supervise};
use crate::workload::Workload;
use lodger_run::advise::{self as advising, Goal, parse_within};
use lodger_run::{Error, HmbChoice, RunConfig};
use pyo3::prelude::*;

/// Advice on host memory.
#[pyclass(frozen, module = "lodger._native")]
#[derive(Debug)]
pub struct Advice(advising::Advice);

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

    /// Whether some size meets the goal.
    #[getter]
    fn found(&self) -> bool {
        self.0.is_met()
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
    let config = RunConfig {
        drive: drive.to_run(),
        hmb: HmbChoice::Negotiated,
        precondition: self::precondition(precondition).or_raise(py)?,
        seed,
    };
    let source = workload.source();
    let spec = config.spec();
    let make = || Ok(source.workload(spec, seed)?.0);
    let advice = supervise(py, progress.as_ref(), stop, |control| {
        advising::advise(&config, &make, goal, &|progress, _| control.beat(progress))
    })?;
    Ok(Advice(advice.or_raise(py)?))
}
