//! fio's `latency_target`: the deepest queue whose requests keep a latency.
//!
//! The job begins with one request at a time. After each window it doubles the depth if enough requests kept the target,
//! and goes back to the middle of the last good depth and the bad one if not.

use super::ini::Setting;
use super::value;
use crate::WorkloadError;

/// Picoseconds in a microsecond: fio's unit of these times.
const US: u64 = 1_000_000;
/// Windows in a row that keep the target just below a depth that did not, until that one is tried again, as in fio.
const AGAIN_AFTER: u32 = 3;

/// The latency to be kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyGoal {
    /// Longest latency of a request that keeps it, picoseconds.
    pub target_ps: u64,
    /// Depths are judged after so much time, picoseconds.
    pub window_ps: u64,
    /// Share of the requests that have to keep it, per cent.
    pub percentile: f64,
    /// The job goes on once the depth is found, and keeps adjusting it.
    pub keeps_on: bool,
}

/// What a job section says about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LatencyOptions(LatencyGoal);

impl Default for LatencyOptions {
    fn default() -> Self {
        Self(LatencyGoal {
            target_ps: 0,
            window_ps: 0,
            percentile: 100.0,
            keeps_on: false,
        })
    }
}

impl LatencyOptions {
    /// Takes an option, if it is one of these.
    pub(super) fn apply(&mut self, name: &str, s: &Setting) -> Result<bool, WorkloadError> {
        match name {
            "latency_target" => self.0.target_ps = s.time_ps(US)?,
            "latency_window" => self.0.window_ps = s.time_ps(US)?,
            "latency_percentile" => {
                let percent = value::float(s.text());
                let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
                self.0.percentile = percent.ok_or_else(|| s.must("between 0 and 100"))?;
            }
            "latency_run" => self.0.keeps_on = s.flag()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What to keep, if anything: without a target nothing, as in fio.
    pub(super) fn goal(&self) -> Option<LatencyGoal> {
        (self.0.target_ps > 0).then_some(self.0)
    }
}

/// What the search wants of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// It may submit.
    Go,
    /// It has as many in flight as it may.
    Blocked,
    /// It is at its end.
    End,
}

/// The search for the depth.
#[derive(Clone, Debug)]
pub(super) struct Search {
    goal: LatencyGoal,
    /// fio's `iodepth`.
    most: u32,
    depth: u32,
    /// The deepest that kept the target, and the shallowest that did not, if one did not. (fio has its `iodepth` for none,
    /// and finds no end where just that one fails.)
    low: u32,
    high: Option<u32>,
    good_in_a_row: u32,
    /// The window under way.
    since_ps: u64,
    ios: u64,
    late: u64,
    /// What is in flight of a deeper queue comes back first, and says nothing about the new depth.
    quiesces: bool,
    /// The depth is found, and this window is the last; whether it began since the last question.
    is_last: bool,
    began_last: bool,
    ended: bool,
    missed: bool,
}

impl Search {
    pub(super) fn new(goal: LatencyGoal, most: u32) -> Self {
        Self {
            goal,
            most,
            depth: 1,
            low: 1,
            high: None,
            good_in_a_row: 0,
            since_ps: 0,
            ios: 0,
            late: 0,
            quiesces: false,
            is_last: false,
            began_last: false,
            ended: false,
            missed: false,
        }
    }

    pub(super) fn goal(&self) -> LatencyGoal {
        self.goal
    }

    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// One request at a time took too long, too.
    pub(super) fn has_missed(&self) -> bool {
        self.missed
    }

    /// Whether the last window has begun since this was asked last: what came before it does not count, as in fio.
    pub(super) fn begins_last(&mut self) -> bool {
        std::mem::take(&mut self.began_last)
    }

    pub(super) fn start(&mut self, now_ps: u64) {
        self.begin_window(now_ps);
    }

    fn begin_window(&mut self, now_ps: u64) {
        (self.since_ps, self.ios, self.late) = (now_ps, 0, 0);
    }

    /// A request of this latency has completed.
    pub(super) fn completed(&mut self, latency_ps: u64) {
        if self.quiesces {
            return;
        }
        self.ios += 1;
        if latency_ps > self.goal.target_ps {
            self.late += 1;
            // Where all have to keep it, one that does not is enough.
            if self.goal.percentile >= 100.0 {
                self.failed();
            }
        }
    }

    /// Asked before each request.
    pub(super) fn look(&mut self, now_ps: u64, in_flight: u32) -> Wish {
        if self.quiesces && !self.ended {
            if in_flight > 0 {
                return Wish::Blocked;
            }
            self.quiesces = false;
            self.begin_window(now_ps);
        }
        if self.ios > 0 && now_ps - self.since_ps >= self.goal.window_ps && !self.ended {
            let kept = (self.ios - self.late) as f64 * 100.0 / self.ios as f64;
            if kept >= self.goal.percentile {
                self.succeeded();
            } else {
                self.failed();
            }
            self.begin_window(now_ps);
        }
        match self.ended {
            true => Wish::End,
            false if in_flight >= self.depth || (self.quiesces && in_flight > 0) => Wish::Blocked,
            false => Wish::Go,
        }
    }

    /// At depth 1 there is nothing to give up: where all have to keep the target fio ends the job with an error, and where a
    /// share has to it goes on and looks again.
    fn failed(&mut self) {
        if self.depth == 1 {
            self.missed = true;
            self.ended = self.goal.percentile >= 100.0;
            return;
        }
        self.high = Some(self.depth);
        if self.depth == self.low {
            self.low -= 1;
        }
        self.depth = u32::midpoint(self.depth, self.low);
        self.good_in_a_row = 0;
        self.quiesces = true;
    }

    fn succeeded(&mut self) {
        let before = self.depth;
        self.missed = false;
        self.low = self.depth;
        if let Some(high) = &mut self.high
            && self.depth + 1 == *high
        {
            self.good_in_a_row += 1;
            if self.good_in_a_row >= AGAIN_AFTER {
                *high += 1;
                self.good_in_a_row = 0;
            }
        }
        // Up to the first failure it doubles; from then on it halves what is left.
        self.depth = match self.high {
            None => self.depth.saturating_mul(2),
            Some(high) => u32::midpoint(self.depth, high),
        };
        self.depth = self.depth.clamp(1, self.most);
        if self.depth == before && !self.goal.keeps_on {
            if self.is_last {
                self.ended = true;
            } else {
                (self.is_last, self.began_last) = (true, true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goal(percentile: f64) -> LatencyGoal {
        LatencyGoal {
            target_ps: 100,
            window_ps: 1000,
            percentile,
            keeps_on: false,
        }
    }

    /// A drive whose latency is `per` a request in flight: the deepest queue that keeps 100 is found, and used to the end.
    fn found(percentile: f64, most: u32, per: u64) -> (u32, bool) {
        let mut search = Search::new(goal(percentile), most);
        search.start(0);
        let (mut now_ps, mut windows) = (0, 0);
        loop {
            match search.look(now_ps, 0) {
                Wish::End => return (search.depth(), search.has_missed()),
                Wish::Blocked => unreachable!("nothing is in flight"),
                Wish::Go => {}
            }
            let depth = search.depth();
            assert!((1..=most).contains(&depth));
            assert_eq!(search.look(now_ps, depth), Wish::Blocked);
            for _ in 0..depth {
                search.completed(u64::from(depth) * per);
            }
            now_ps += 500;
            windows += 1;
            if windows == 1000 {
                assert!(search.has_missed(), "it finds no end");
                assert_eq!(search.depth(), 1);
                return (0, true);
            }
        }
    }

    #[test]
    fn the_deepest_queue_that_keeps_the_target_is_found() {
        for percentile in [99.0, 100.0] {
            for most in [1, 2, 7, 32, 128] {
                for per in 1..=60 {
                    let best = (100 / per).min(u64::from(most)) as u32;
                    assert_eq!(found(percentile, most, per), (best, false), "{most} {per}");
                }
            }
            // fio 3.33 ends at once where all have to keep it, and else goes on at depth 1 as long as the job does.
            let ends_at = if percentile < 100.0 { 0 } else { 1 };
            assert_eq!(found(percentile, 32, 101), (ends_at, true));
        }
    }
}
