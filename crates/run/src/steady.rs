//! Whether a rate keeps still: fio's `steadystate`.

use lodger_workload::fio::Steady;
use std::collections::VecDeque;

/// What came of looking for a steady state.
#[derive(Clone, Debug, PartialEq)]
pub struct SteadyResult {
    /// What was looked for.
    pub wanted: Steady,
    /// It was found, and ended the job.
    pub attained: bool,
    /// What was compared with the limit last.
    pub criterion: f64,
    /// Largest distance of a rate from the mean, where that is what counts.
    pub deviation: f64,
    /// Slope of the rates per second, where that is what counts.
    pub slope: f64,
    /// Requests and bytes in each of the last seconds, the oldest first.
    pub seconds: VecDeque<(u64, u64)>,
}

impl SteadyResult {
    pub(crate) fn new(wanted: Steady) -> Self {
        Self {
            wanted,
            attained: false,
            criterion: 0.0,
            deviation: 0.0,
            slope: 0.0,
            seconds: VecDeque::new(),
        }
    }

    /// Takes the requests and bytes of another second; whether the state is steady.
    pub(crate) fn add(&mut self, ios: u64, bytes: u64) -> bool {
        let wanted = self.wanted;
        let count = wanted.duration_s as usize;
        if self.seconds.len() == count {
            self.seconds.pop_front();
        }
        self.seconds.push_back((ios, bytes));
        if self.seconds.len() < count {
            return false;
        }
        let rates = self.seconds.iter();
        let rates = rates.map(|&(ios, bytes)| if wanted.iops { ios } else { bytes } as f64);
        let mean = rates.clone().sum::<f64>() / count as f64;
        let found = if wanted.slope {
            self.slope = slope(rates.enumerate(), mean, count);
            self.slope
        } else {
            self.deviation = rates.map(|rate| (rate - mean).abs()).fold(0.0, f64::max);
            self.deviation
        };
        self.criterion = if wanted.percent {
            100.0 * found / mean
        } else {
            found
        };
        // Nothing at all has no share, and is not steady.
        self.attained = self.criterion.abs() < wanted.limit;
        self.attained
    }

    /// Mean of what was seen, over the whole window as in fio: requests and bytes per second.
    pub(crate) fn means(&self) -> (u64, u64) {
        let sum = |of: fn(&(u64, u64)) -> u64| self.seconds.iter().map(of).sum::<u64>();
        let count = self.wanted.duration_s;
        (
            sum(|second| second.0) / count,
            sum(|second| second.1) / count,
        )
    }
}

/// Slope of the line of least squares.
fn slope(rates: impl Iterator<Item = (usize, f64)>, mean: f64, count: usize) -> f64 {
    let middle = (count as f64 - 1.0) / 2.0;
    let (mut up, mut across) = (0.0, 0.0);
    for (second, rate) in rates {
        let distance = second as f64 - middle;
        up += distance * (rate - mean);
        across += distance * distance;
    }
    up / across
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detector(iops: bool, slope: bool, limit: f64, percent: bool) -> SteadyResult {
        SteadyResult::new(Steady {
            iops,
            slope,
            limit,
            percent,
            duration_s: 3,
            ramp_ps: 0,
        })
    }

    #[test]
    fn a_slope_is_what_fio_says_it_is() {
        // fio 3.33: 202 and 200 requests have a slope of -2, which is -0.995025 % of their mean.
        let mut found = detector(true, true, 10.0, true);
        found.wanted.duration_s = 2;
        assert!(!found.add(202, 0) && found.add(200, 0));
        assert!((found.slope + 2.0).abs() < 1e-9);
        assert!((found.criterion + 0.995_025).abs() < 1e-6);
        assert_eq!(found.means().0, 201);
    }

    #[test]
    fn every_rate_has_to_be_near_the_mean() {
        let mut found = detector(false, false, 10.0, true);
        assert!(!found.add(0, 80) && !found.add(0, 100) && !found.add(0, 120));
        assert!((found.criterion - 20.0).abs() < 1e-9);
        // Three seconds are looked at, not more: 100, 120, 110, then 120, 110, 115.
        assert!(found.add(0, 110));
        assert!((found.deviation - 10.0).abs() < 1e-9);
        let mut found = detector(false, false, 10.0, false);
        assert!(!found.add(0, 100) && !found.add(0, 120) && !found.add(0, 110));
        assert!(found.add(0, 115) && (found.deviation - 5.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_is_not_steady() {
        let mut found = detector(true, false, 50.0, true);
        assert!(!(0..9).any(|_| found.add(0, 0)));
    }
}
