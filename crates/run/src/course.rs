//! How latency goes on over the time that counts: a mean over all of it says nothing where it begins otherwise than it
//! goes on, as with caches that are cold or a single-bit cache that is empty.

use crate::report::number::duration_ns;
use crate::stats::JobResult;
use lodger_core::time::{NS, S};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Intervals kept; at least half of them are in use once a run takes longer than so many microseconds.
const INTERVALS: usize = 64;
/// The first intervals are of 2^20 ps, about a microsecond.
const SHIFT_MIN: u32 = 20;
/// Fewer requests tell nothing of their course.
const REQUESTS_MIN: u64 = 256;
/// Intervals that are the beginning. That both lie beyond all of the second half, 16 to 32, is chance in one of 77 to 280
/// runs; few of those are also as far off as below.
const FIRST: usize = 2;
/// How far the mean of all may be from that of the second half, as a share of it and in standard errors of it.
const TOLERANCE: f64 = 0.2;
const ERRORS_MAX: f64 = 3.0;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Interval {
    requests: u64,
    sum_ns: u64,
}

impl Interval {
    fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            sum_ns: self.sum_ns + other.sum_ns,
        }
    }

    fn mean_ns(self) -> Option<f64> {
        (self.requests > 0).then(|| self.sum_ns as f64 / self.requests as f64)
    }
}

/// Requests and their latency in intervals of one length, which doubles when the run outlasts them.
#[derive(Clone, Debug)]
pub struct Course {
    intervals: [Interval; INTERVALS],
    used: usize,
    shift: u32,
}

impl Default for Course {
    fn default() -> Self {
        Self {
            intervals: [Interval::default(); INTERVALS],
            used: 0,
            shift: SHIFT_MIN,
        }
    }
}

/// A run that begins otherwise than it goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beginning {
    /// How long the beginning is, at least.
    pub first_ps: u64,
    /// Mean latency in it, nanoseconds.
    pub first_ns: f64,
    /// Mean latency in the second half, nanoseconds.
    pub later_ns: f64,
    /// Mean latency of all, nanoseconds.
    pub mean_ns: f64,
}

impl Course {
    /// A request took so long; it completed so long after counting began.
    #[inline]
    pub(crate) fn record(&mut self, at_ps: u64, latency_ns: u64) {
        let mut place = (at_ps >> self.shift) as usize;
        if place >= INTERVALS {
            place = self.lengthen(at_ps);
        }
        let interval = &mut self.intervals[place];
        interval.requests += 1;
        interval.sum_ns = interval.sum_ns.saturating_add(latency_ns);
        self.used = self.used.max(place + 1);
    }

    #[cold]
    fn lengthen(&mut self, at_ps: u64) -> usize {
        while at_ps >> self.shift >= INTERVALS as u64 {
            self.shift += 1;
            for place in 0..INTERVALS / 2 {
                let pair = &self.intervals[2 * place..2 * place + 2];
                self.intervals[place] = pair[0].plus(pair[1]);
            }
            self.intervals[INTERVALS / 2..].fill(Interval::default());
            self.used = self.used.div_ceil(2);
        }
        (at_ps >> self.shift) as usize
    }

    /// How it begins, where that is beyond all of its second half and tells on the mean.
    #[must_use]
    pub fn beginning(&self) -> Option<Beginning> {
        let intervals = &self.intervals[..self.used];
        let sum = |some: &[Interval]| {
            some.iter()
                .copied()
                .fold(Interval::default(), Interval::plus)
        };
        let all = sum(intervals);
        if all.requests < REQUESTS_MIN || self.used < INTERVALS / 2 {
            return None;
        }
        let later = &intervals[self.used / 2..];
        let means = later.iter().filter_map(|interval| interval.mean_ns());
        let (least, most) = means.fold((f64::MAX, 0.0f64), |(least, most), ns| {
            (least.min(ns), most.max(ns))
        });
        let first = &intervals[..FIRST];
        let is_beyond = |beyond: &dyn Fn(f64) -> bool| {
            let mut means = first.iter().map(|interval| interval.mean_ns());
            means.all(|ns| ns.is_some_and(beyond))
        };
        if !is_beyond(&|ns| ns < least) && !is_beyond(&|ns| ns > most) {
            return None;
        }
        let (mean_ns, later_sum) = (all.mean_ns()?, sum(later));
        let later_ns = later_sum.mean_ns()?;
        let distance = |each: &Interval| each.sum_ns as f64 - later_ns * each.requests as f64;
        let squares: f64 = later.iter().map(|each| distance(each).powi(2)).sum();
        let error_ns = squares.sqrt() / later_sum.requests as f64;
        let tolerance_ns = (TOLERANCE * later_ns).max(ERRORS_MAX * error_ns);
        ((mean_ns - later_ns).abs() > tolerance_ns).then_some(Beginning {
            first_ps: (FIRST as u64) << self.shift,
            first_ns: sum(first).mean_ns()?,
            later_ns,
            mean_ns,
        })
    }
}

/// Who begins otherwise than it goes on: a job's number and the direction.
pub(crate) fn beginnings(jobs: &[JobResult]) -> Vec<(usize, &'static str, Beginning)> {
    let mut found = Vec::new();
    for (number, job) in jobs.iter().enumerate() {
        let directions = [
            ("read", &job.read),
            ("write", &job.write),
            ("trim", &job.trim),
        ];
        for (name, direction) in directions {
            let beginning = direction.course().and_then(Course::beginning);
            found.extend(beginning.map(|beginning| (number, name, beginning)));
        }
    }
    found
}

/// The list `lodger.beginnings`.
pub(crate) fn json(jobs: &[JobResult]) -> Vec<Value> {
    let found = beginnings(jobs).into_iter();
    let told = found.map(|(job, direction, beginning)| {
        json!({
            "jobname": jobs[job].name,
            "direction": direction,
            "first_s": beginning.first_ps as f64 / S as f64,
            "first_clat_ns": beginning.first_ns,
            "later_clat_ns": beginning.later_ns,
            "mean_clat_ns": beginning.mean_ns,
        })
    });
    told.collect()
}

/// A word about them, one for each direction.
pub(crate) fn words(jobs: &[JobResult]) -> Vec<String> {
    let mut each: BTreeMap<&str, Vec<(usize, Beginning)>> = BTreeMap::new();
    for (job, direction, beginning) in beginnings(jobs) {
        each.entry(direction).or_default().push((job, beginning));
    }
    let word = |(direction, found): (&str, Vec<(usize, Beginning)>)| {
        let (job, beginning) = found[0];
        let others = match found.len() - 1 {
            0 => String::new(),
            1 => " (one more job does, too)".to_owned(),
            more => format!(" ({more} more jobs do, too)"),
        };
        format!(
            "{direction}s of job `{}` begin otherwise than they go on{others}: {} in the first {}, {} in the second \
             half, so that the mean of {} is neither; `--timeline` shows it, and in a job file `ramp_time` leaves a beginning out",
            jobs[job].name,
            duration_ns(beginning.first_ns),
            duration_ns(beginning.first_ps as f64 / NS as f64),
            duration_ns(beginning.later_ns),
            duration_ns(beginning.mean_ns),
        )
    };
    each.into_iter().map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lodger_core::rng::Rng;
    use proptest::prelude::*;

    fn course(latencies_ns: impl IntoIterator<Item = u64>) -> Course {
        let (mut course, mut at_ps) = (Course::default(), 0);
        for ns in latencies_ns {
            at_ps += ns * NS;
            course.record(at_ps, ns);
        }
        course
    }

    proptest! {
        #![proptest_config(lodger_testing::config(64))]
        #[test]
        fn intervals_hold_what_completed_in_them(steps_ps in prop::collection::vec(0u64..1 << 30, 1..600)) {
            let (mut course, mut at_ps) = (Course::default(), 0);
            let mut naive = Vec::new();
            for step_ps in steps_ps {
                at_ps += step_ps;
                naive.push((at_ps, step_ps / NS));
                course.record(at_ps, step_ps / NS);
            }
            let mut expected = [Interval::default(); INTERVALS];
            for (at_ps, ns) in naive {
                let one = Interval { requests: 1, sum_ns: ns };
                let place = (at_ps >> course.shift) as usize;
                expected[place] = expected[place].plus(one);
            }
            prop_assert_eq!(course.intervals, expected);
            prop_assert_eq!(course.used, (at_ps >> course.shift) as usize + 1);
        }
    }

    #[test]
    fn what_becomes_slower_or_faster_begins_otherwise() {
        let slower = (0..10_000).map(|n| if n < 3000 { 60_000 } else { 450_000 });
        let found = course(slower).beginning().unwrap();
        assert!(
            (found.first_ns, found.later_ns) == (60_000.0, 450_000.0),
            "{found:?}"
        );
        let faster = (0..10_000).map(|n| 50_000 + 400_000 / (1 + n / 100));
        let found = course(faster).beginning().unwrap();
        assert!(found.first_ns > 2.0 * found.later_ns, "{found:?}");
    }

    #[test]
    fn what_varies_without_end_does_not() {
        // Now and then one takes a thousand times as long, wherever it may be.
        let found = (0..1000).filter(|seed| {
            let mut rng = Rng::new(*seed);
            let latency = |_| match rng.below(200) {
                0 => 20_000_000,
                _ => 20_000 + u64::from(rng.below(10_000)),
            };
            course((0..2000).map(latency)).beginning().is_some()
        });
        assert_eq!(found.count(), 0);
    }

    #[test]
    fn what_takes_turns_does_not() {
        let turns = (0..10_000).map(|n| if n / 700 % 2 == 0 { 20_000 } else { 90_000 });
        assert_eq!(course(turns).beginning(), None);
    }
}
