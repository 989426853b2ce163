//! All jobs of a run together. Jobs of a stage run at the same time: it lasts from the first that counts to the end of the
//! last, where a group of fio's lasts as long as its longest job, whenever that began (`startdelay`). Stages follow each
//! other: their times add up, and rates are those of all that time.

use super::{KINDS, SYNC};
use crate::stats::{Direction, JobResult};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// What became of each direction, and of all requests.
pub(crate) struct Together {
    directions: [Direction; KINDS.len()],
    /// Reads, writes and trims: flushes are no requests of fio's sums.
    pub(crate) all: Direction,
}

impl Together {
    pub(crate) fn of(jobs: &[JobResult]) -> Self {
        let mut together = Self {
            directions: Default::default(),
            all: Direction::default(),
        };
        let stages: BTreeSet<u32> = jobs.iter().map(|job| job.stage).collect();
        for stage_number in stages {
            let same_time = || jobs.iter().filter(|job| job.stage == stage_number);
            let mut all = Direction::default();
            for (at, sum) in together.directions.iter_mut().enumerate() {
                let mut stage = Direction::default();
                for job in same_time() {
                    stage.merge(of_kind(job, at));
                }
                if KINDS[at] != SYNC {
                    all.merge(&stage);
                }
                stage.runtime_ps += apart_ps(same_time().filter(|job| of_kind(job, at).ios > 0));
                follow(sum, &stage);
            }
            let busy = |job: &&JobResult| job.read.ios + job.write.ios + job.trim.ios > 0;
            all.runtime_ps += apart_ps(same_time().filter(busy));
            follow(&mut together.all, &all);
        }
        together
    }

    /// The directions that have requests, and flushes, by name.
    pub(crate) fn busy(self) -> impl Iterator<Item = (&'static str, Direction)> {
        let all = KINDS.into_iter().zip(self.directions);
        all.filter(|(_, direction)| direction.ios > 0)
    }

    /// Rates, by direction.
    pub(super) fn json(self) -> Value {
        let rates = |direction: &Direction| {
            json!({
                "iops": direction.ios_per_second(),
                "bw_bytes": direction.bytes_per_second(),
            })
        };
        let mut out = Map::new();
        out.insert("all".to_owned(), rates(&self.all));
        let busy = self.busy().filter(|(name, _)| *name != SYNC);
        out.extend(busy.map(|(name, direction)| (name.to_owned(), rates(&direction))));
        Value::Object(out)
    }
}

/// What a job did of one of [`KINDS`].
fn of_kind(job: &JobResult, at: usize) -> &Direction {
    [&job.read, &job.write, &job.trim, &job.sync][at]
}

/// How much longer jobs take from the first one's start to the last one's end than the longest of them alone.
fn apart_ps<'a>(jobs: impl Iterator<Item = &'a JobResult>) -> u64 {
    let (mut first_ps, mut last_ps, mut longest_ps) = (u64::MAX, 0, 0);
    for job in jobs {
        first_ps = first_ps.min(job.start_ps);
        last_ps = last_ps.max(job.end_ps);
        longest_ps = longest_ps.max(job.runtime_ps());
    }
    last_ps.saturating_sub(first_ps).saturating_sub(longest_ps)
}

/// Adds a stage that came after all in `sum`.
fn follow(sum: &mut Direction, stage: &Direction) {
    let before_ps = sum.runtime_ps;
    sum.merge(stage);
    sum.runtime_ps = before_ps + stage.runtime_ps;
}

#[cfg(test)]
mod tests {
    use super::*;
    use lodger_core::time::S;

    fn direction(ios: u64, runtime_ps: u64) -> Direction {
        // Its other fields are the counting's own.
        let mut direction = Direction::default();
        direction.ios = ios;
        direction.bytes = 4096 * ios;
        direction.runtime_ps = runtime_ps;
        direction
    }

    /// A thousand requests in each of two seconds, one after the other by `startdelay` or at the same time (the null).
    #[test]
    fn jobs_that_begin_later_do_not_make_more_at_once() {
        let job = |start_ps: u64| {
            let mut job = JobResult::recorded("j");
            (job.start_ps, job.end_ps) = (start_ps, start_ps + S);
            job.read = direction(1000, S);
            job
        };
        for (starts_s, iops) in [([0, 1], 1000.0), ([0, 0], 2000.0), ([0, 3], 500.0)] {
            let jobs = starts_s.map(|start_s| job(start_s * S));
            let together = Together::of(&jobs);
            assert_eq!(together.all.ios_per_second(), iops, "{starts_s:?}");
            assert_eq!(
                together.directions[0].ios_per_second(),
                iops,
                "{starts_s:?}"
            );
        }
    }

    #[test]
    fn rates_of_stages_are_those_of_their_time_together() {
        let mut sum = Direction::default();
        follow(&mut sum, &direction(3000, S));
        follow(&mut sum, &Direction::default());
        follow(&mut sum, &direction(1000, 3 * S));
        assert_eq!(sum.ios_per_second(), 1000.0);
        assert_eq!(sum.bytes_per_second(), 4_096_000.0);
    }
}
