//! fio's `steadystate`: a job that ends once its rate keeps still.

use super::ini::Setting;
use super::value;
use crate::WorkloadError;

/// When a job's rate counts as steady.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// Requests per second are looked at, or else bytes per second.
    pub iops: bool,
    /// The slope of the rates has to be below the limit, or else the largest distance from their mean.
    pub slope: bool,
    /// The limit, in per cent of the mean or as it is.
    pub limit: f64,
    /// It is in per cent of the mean.
    pub percent: bool,
    /// The rates of so many seconds are looked at.
    pub duration_s: u64,
    /// Those of the job's first time are not, picoseconds.
    pub ramp_ps: u64,
}

/// What a job section says about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SteadyOptions(Steady);

impl Default for SteadyOptions {
    fn default() -> Self {
        // fio's own defaults, which show where only `ss_dur` is given.
        Self(Steady {
            iops: true,
            slope: true,
            limit: 0.01,
            percent: true,
            duration_s: 0,
            ramp_ps: 0,
        })
    }
}

/// Picoseconds in a second: fio looks at the rates so often.
const S: u64 = 1_000_000_000_000;
/// A day of rates.
const DURATION_S_MAX: u64 = 86_400;

impl SteadyOptions {
    /// Takes an option, if it is one of these.
    pub(super) fn apply(&mut self, name: &str, s: &Setting) -> Result<bool, WorkloadError> {
        match name {
            "steadystate" => self.criterion(s)?,
            "steadystate_duration" => {
                let duration_ps = s.time_ps(S)?;
                let seconds = duration_ps / S;
                // One value has no slope.
                let valid = seconds == 0 || (2..=DURATION_S_MAX).contains(&seconds);
                if !duration_ps.is_multiple_of(S) || !valid {
                    return Err(s.must("whole seconds between 2s and 1d, or 0"));
                }
                self.0.duration_s = seconds;
            }
            "steadystate_ramp_time" => self.0.ramp_ps = s.time_ps(S)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn criterion(&mut self, s: &Setting) -> Result<(), WorkloadError> {
        let must = || {
            s.must("iops, iops_slope, bw or bw_slope and a limit, such as `iops:2%` or `bw:500`")
        };
        let (name, limit) = s.text().split_once(':').ok_or_else(must)?;
        (self.0.iops, self.0.slope) = match name {
            "iops" => (true, false),
            "iops_slope" => (true, true),
            "bw" => (false, false),
            "bw_slope" => (false, true),
            _ => return Err(must()),
        };
        let number = limit.strip_suffix('%');
        self.0.percent = number.is_some();
        let number = value::float(number.unwrap_or(limit)).filter(|limit| *limit >= 0.0);
        self.0.limit = number.ok_or_else(must)?;
        Ok(())
    }

    /// What to look at, if anything: without a duration nothing, as in fio.
    pub(super) fn steady(&self) -> Option<Steady> {
        (self.0.duration_s > 0).then_some(self.0)
    }
}
