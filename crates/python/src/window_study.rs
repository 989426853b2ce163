//! The experiments of `lodger_run::window_study`, for the studies.

use crate::drive::Drive;
use crate::errors::OrRaise;
use crate::supervise::{Stop, supervise};
use lodger_run::window_study::{self as experiments, Figures};
use lodger_run::{Error, HmbChoice, RunConfig};
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// Runs one of the experiments at one size and returns its figures by name: `latency` (nanoseconds),
/// `bandwidth` (megabytes per second), `cuts` (as many as said) or `energy` (of the whole window).
#[pyfunction]
#[pyo3(signature = (experiment, drive, *, bytes, cuts, precondition, seed, stop))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub fn window_study(
    py: Python<'_>,
    experiment: &str,
    drive: &Drive,
    bytes: u64,
    cuts: u32,
    precondition: &str,
    seed: u64,
    stop: Option<&Stop>,
) -> PyResult<BTreeMap<&'static str, f64>> {
    let config = RunConfig {
        drive: drive.to_run(),
        hmb: HmbChoice::Off,
        precondition: crate::simulate::precondition(precondition).or_raise(py)?,
        seed,
    };
    let found = supervise(py, None, stop, |_| {
        let figures: Figures = match experiment {
            "latency" => experiments::latency(&config, bytes)?,
            "bandwidth" => experiments::bandwidth(&config, bytes)?,
            "cuts" => experiments::cuts(&config, bytes, cuts)?,
            "energy" => experiments::energy(&config)?,
            _ => {
                return Err(Error::input(format!(
                    "`experiment` must be `latency`, `bandwidth`, `cuts` or `energy`, found `{}`",
                    experiment.escape_debug()
                )));
            }
        };
        Ok(figures.into_iter().collect())
    })?;
    found.or_raise(py)
}
