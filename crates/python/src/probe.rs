//! `probe`: simulated drives, asked from outside.

use crate::drive::Drive;
use crate::errors::OrRaise;
use crate::simulate::precondition;
use crate::supervise::{Control, Stop, supervise};
use lodger_probe::{Options, Outcome, experiment, report};
use lodger_run::{Error, HmbChoice, Progress, RunConfig};
use lodger_sim_target::{Noise, SimTarget};
use pyo3::prelude::*;
use std::time::Duration;

/// What was found inside a drive.
#[pyclass(frozen, module = "lodger._native")]
pub struct Probed(Outcome);

#[pymethods]
impl Probed {
    /// The report as JSON, with every point measured.
    fn json(&self) -> String {
        format!("{:#}\n", report::json(&self.0, true))
    }

    /// The report for people.
    fn text(&self) -> String {
        report::text(&self.0)
    }

    /// The report as a page with plots.
    fn page(&self) -> String {
        report::html(&self.0)
    }

    /// A drive file made from the findings.
    fn drive_file(&self, py: Python<'_>) -> PyResult<String> {
        let made = lodger_sim_target::drive_file(&self.0).map_err(|reason| {
            Error::failed(format!("no drive file can be made: {reason}"))
                .hint("a drive file needs what only writing shows: probe with `destroy_data=True`")
        });
        made.or_raise(py)
    }
}

/// Names of the experiments.
#[pyfunction]
pub fn experiments() -> Vec<&'static str> {
    experiment::ALL
        .iter()
        .map(|(about, _)| about.name)
        .collect()
}

fn planned(options: &Options) -> Result<(), Error> {
    lodger_probe::plan(&options.experiments).map_err(|name| {
        let message = format!("no experiment is called `{}`", name.escape_debug());
        Error::input(message).hint(format!("the experiments are {}", experiments().join(", ")))
    })?;
    Ok(())
}

fn beat(control: &Control, now: lodger_probe::Progress) -> bool {
    let progress = Progress {
        requests: now.index as u64,
        expected: Some(now.count as u64),
        expected_ps: None,
        simulated_ps: (now.elapsed.as_nanos() as u64).saturating_mul(1000),
    };
    control.beat(progress).is_continue()
}

/// Probes a simulated drive.
#[pyfunction]
#[pyo3(signature = (drive, *, hmb, hmb_offer, precondition, seed, experiments, destroy_data, noise,
                    confidence, budget_s, progress, stop))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub fn probe(
    py: Python<'_>,
    drive: &Drive,
    hmb: Option<String>,
    hmb_offer: Option<String>,
    precondition: &str,
    seed: u64,
    experiments: Vec<String>,
    destroy_data: bool,
    noise: f64,
    confidence: f64,
    budget_s: f64,
    progress: Option<Py<PyAny>>,
    stop: Option<&Stop>,
) -> PyResult<Probed> {
    let config = RunConfig {
        drive: drive.to_run(),
        hmb: HmbChoice::parse(hmb.as_deref(), hmb_offer.as_deref()).or_raise(py)?,
        precondition: self::precondition(precondition).or_raise(py)?,
        seed,
    };
    let options = Options {
        experiments,
        budget: Duration::try_from_secs_f64(budget_s).unwrap_or(Duration::MAX),
        may_write: destroy_data,
        seed,
        confidence,
    };
    planned(&options).or_raise(py)?;
    let noise = match noise {
        0.0 => Noise::NONE,
        factor => Noise::default().times(factor),
    };
    let probed = supervise(py, progress.as_ref(), stop, |control| {
        let mut target = SimTarget::open(&config, noise, seed)?;
        let outcome = lodger_probe::probe(&mut target, &options, &mut |now| beat(control, now));
        match outcome.interrupted {
            true => Err(Error::interrupted()),
            false => Ok(Probed(outcome)),
        }
    })?;
    probed.or_raise(py)
}
