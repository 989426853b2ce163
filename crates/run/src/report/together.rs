//! All jobs of a run together. Jobs of a stage run at the same time: as in a group of fio's, the longest counts. Stages follow
//! each other: their times add up, and rates are those of all that time.

use super::DIRECTIONS;
use crate::runner::RunResult;
use crate::stats::Direction;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// What became of each direction, and of all requests.
pub(crate) struct Together {
    directions: [Direction; 3],
    pub(crate) all: Direction,
}

impl Together {
    pub(crate) fn of(result: &RunResult) -> Self {
        let mut together = Self {
            directions: Default::default(),
            all: Direction::default(),
        };
        let stages: BTreeSet<u32> = result.jobs.iter().map(|job| job.stage).collect();
        for stage_number in stages {
            let same_time = || result.jobs.iter().filter(|job| job.stage == stage_number);
            let mut all = Direction::default();
            for (at, sum) in together.directions.iter_mut().enumerate() {
                let mut stage = Direction::default();
                for job in same_time() {
                    stage.merge([&job.read, &job.write, &job.trim][at]);
                }
                follow(sum, &stage);
                all.merge(&stage);
            }
            follow(&mut together.all, &all);
        }
        together
    }

    /// The directions that have requests, by name.
    pub(crate) fn busy(self) -> impl Iterator<Item = (&'static str, Direction)> {
        let all = DIRECTIONS.into_iter().zip(self.directions);
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
        out.extend(
            self.busy()
                .map(|(name, direction)| (name.to_owned(), rates(&direction))),
        );
        Value::Object(out)
    }
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
