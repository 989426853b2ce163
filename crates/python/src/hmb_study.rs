//! The experiments of `lodger_run::hmb_study`, for the studies.

use crate::drive::Drive;
use crate::errors::OrRaise;
use crate::supervise::{Stop, supervise};
use lodger_run::hmb_study::{map_cache, read_cache, write_buffer};
use lodger_run::{Error, HmbChoice, RunConfig, Session};
use pyo3::prelude::*;

/// Latencies at each setting, picoseconds.
type Curves = (Vec<u64>, Vec<u64>);

/// Runs one of the experiments and returns two latencies in picoseconds for each setting:
/// `read_cache` and `write_buffer` (settings in bytes) the first and the second time,
/// `map_cache` (settings in sections) the mean and the largest of a round.
#[pyfunction]
#[pyo3(signature = (experiment, settings, drive, *, flood_bytes, hmb, hmb_offer, precondition, seed, stop))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub fn hmb_study(
    py: Python<'_>,
    experiment: &str,
    settings: Vec<u64>,
    drive: &Drive,
    flood_bytes: u64,
    hmb: Option<String>,
    hmb_offer: Option<String>,
    precondition: &str,
    seed: u64,
    stop: Option<&Stop>,
) -> PyResult<Curves> {
    let config = RunConfig {
        drive: drive.to_run(),
        hmb: HmbChoice::parse(hmb.as_deref(), hmb_offer.as_deref()).or_raise(py)?,
        precondition: crate::simulate::precondition(precondition).or_raise(py)?,
        seed,
    };
    let found = supervise(py, None, stop, |control| {
        let mut session = Session::open(&config)?;
        let watch = &mut |progress| control.beat(progress);
        let curves = match experiment {
            "read_cache" => read_cache(&mut session, &settings, flood_bytes, watch)?
                .iter()
                .map(|twice| (twice.first_ps, twice.again_ps))
                .unzip(),
            "write_buffer" => write_buffer(&mut session, &settings, flood_bytes, watch)?
                .iter()
                .map(|twice| (twice.first_ps, twice.again_ps))
                .unzip(),
            "map_cache" => map_cache(&mut session, &settings, watch)?
                .iter()
                .map(|round| (round.mean_ps, round.max_ps))
                .unzip(),
            _ => {
                return Err(Error::input(format!(
                    "`experiment` must be `read_cache`, `write_buffer` or `map_cache`, found `{}`",
                    experiment.escape_debug()
                )));
            }
        };
        Ok::<Curves, Error>(curves)
    })?;
    found.or_raise(py)
}
