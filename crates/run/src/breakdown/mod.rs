//! Where each microsecond of a request went: means, and what the requests near a percentile met.

mod recorder;
mod told;

pub use recorder::Recorder;
pub(crate) use told::{json, rows, text};

use crate::runner::{Observer, RunResult};
use crate::stats::direction_of;
use lodger_core::observe::{Histogram, PARTS, Part, PartsPs};
use lodger_core::{Completion, Request, Status};
use std::collections::BTreeMap;

/// Fewest requests that speak for a percentile, where there are as many.
const NEAR_MIN: u64 = 10;
/// Percentiles told: name in results, and per cent.
pub(crate) const PERCENTILES: [(&str, f64); 3] = [("p50", 50.0), ("p99", 99.0), ("p99_9", 99.9)];

/// Sums over requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// How many there were.
    pub requests: u64,
    /// Their time in each part, picoseconds.
    pub parts_ps: [u128; PARTS],
}

impl Sum {
    fn add(&mut self, parts_ps: &PartsPs) {
        self.requests += 1;
        for (sum, ps) in self.parts_ps.iter_mut().zip(parts_ps) {
            *sum += u128::from(*ps);
        }
    }

    fn merge(&mut self, other: &Sum) {
        self.requests += other.requests;
        for (sum, more) in self.parts_ps.iter_mut().zip(other.parts_ps) {
            *sum += more;
        }
    }

    /// Mean time in one part, nanoseconds; 0 without requests.
    #[must_use]
    pub fn mean_ns(&self, part: Part) -> f64 {
        self.mean(self.parts_ps[part as usize])
    }

    /// Mean latency, from submission to completion, nanoseconds: that of all parts.
    #[must_use]
    pub fn latency_ns(&self) -> f64 {
        self.mean(self.parts_ps.iter().sum())
    }

    fn mean(&self, sum_ps: u128) -> f64 {
        match self.requests {
            0 => 0.0,
            requests => sum_ps as f64 / (requests as f64 * 1e3),
        }
    }
}

/// Requests of one direction, by their latency.
#[derive(Clone, Debug, Default)]
pub struct Direction {
    /// By bucket of fio's histogram.
    buckets: BTreeMap<usize, Sum>,
}

impl Direction {
    fn add(&mut self, latency_ps: u64, parts_ps: &PartsPs) {
        let bucket = Histogram::bucket(latency_ps / 1_000);
        self.buckets.entry(bucket).or_default().add(parts_ps);
    }

    fn merge(&mut self, other: &Direction) {
        for (bucket, sum) in &other.buckets {
            self.buckets.entry(*bucket).or_default().merge(sum);
        }
    }

    /// All requests.
    #[must_use]
    pub fn all(&self) -> Sum {
        let mut all = Sum::default();
        self.buckets.values().for_each(|sum| all.merge(sum));
        all
    }

    /// The requests whose latency is that of a percentile, to fio's buckets; their neighbours, too, where
    /// those are fewer than ten.
    #[must_use]
    pub fn near(&self, percent: f64) -> Sum {
        let sums: Vec<&Sum> = self.buckets.values().collect();
        let requests: u64 = sums.iter().map(|sum| sum.requests).sum();
        let wanted = percent / 100.0 * requests as f64;
        let mut before = 0;
        let at = sums.iter().position(|sum| {
            before += sum.requests;
            before as f64 >= wanted
        });
        let Some(at) = at else {
            return Sum::default();
        };
        let mut near = sums[at].clone();
        let (mut from, mut to) = (at, at);
        while near.requests < NEAR_MIN.min(requests) {
            if to + 1 < sums.len() {
                to += 1;
                near.merge(sums[to]);
            }
            if from > 0 && near.requests < NEAR_MIN {
                from -= 1;
                near.merge(sums[from]);
            }
        }
        near
    }
}

/// Where the time of the requests went that the report counts: reads, writes, trims, flushes.
#[derive(Clone, Debug, Default)]
pub struct Breakdown {
    /// By direction, in that order.
    pub directions: [Direction; 4],
    /// By job: from when on its requests count, and those before, which count only if the job ends in its ramp.
    ramps: Vec<(u64, [Direction; 4])>,
}

impl Breakdown {
    /// The run is over, and came to this.
    #[must_use]
    pub fn finish(mut self, result: &RunResult) -> Self {
        for ((counted_from_ps, ramp), job) in
            std::mem::take(&mut self.ramps).iter().zip(&result.jobs)
        {
            if job.start_ps < *counted_from_ps {
                for (ours, theirs) in self.directions.iter_mut().zip(ramp) {
                    ours.merge(theirs);
                }
            }
        }
        self
    }
}

impl Observer for Breakdown {
    fn begins(&mut self, job: usize, counted_from_ps: u64) {
        if self.ramps.len() <= job {
            self.ramps.resize_with(job + 1, Default::default);
        }
        self.ramps[job].0 = counted_from_ps;
    }

    fn went(&mut self, job: usize, _: &Request, completion: &Completion, parts_ps: &PartsPs) {
        let latency_ps = completion.completed_ps - completion.submitted_ps;
        assert_eq!(
            parts_ps.iter().sum::<u64>(),
            latency_ps,
            "the parts of a request are not its latency: {completion:?}"
        );
        if completion.status != Status::Success {
            return;
        }
        let direction = direction_of(completion.op);
        let (counted_from_ps, ramp) = &mut self.ramps[job];
        let directions = match completion.submitted_ps < *counted_from_ps {
            true => ramp,
            false => &mut self.directions,
        };
        directions[direction].add(latency_ps, parts_ps);
    }
}
