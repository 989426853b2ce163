//! What the answer does not say by itself: of single jobs, of less memory that would be better, of a drive that does not keep up.

use super::goal::Goal;
use super::measure::Run;
use super::report::{achieved, with};
use super::text::{count, percent, time};
use super::{Advice, Loss};

/// What is worth a word where the goal does not say how much is lost.
const LOSS_MIN: f64 = 0.05;
/// Rates of an open loop that differ by more are not the workload's.
const RATES_DIFFER: f64 = 0.02;

/// Jobs that the size found costs more than the goal allows, as the goal is of all of them together.
pub(super) fn jobs_that_lose(advice: &Advice) -> Option<String> {
    let bytes = advice.found.enough_bytes()?;
    let run = advice.run(bytes)?;
    let allowed = match advice.goal {
        Goal::Within(share) => share,
        Goal::Slo(_) => LOSS_MIN,
    };
    let then = &advice.reference.jobs;
    if then.len() < 2 {
        return None;
    }
    let pairs = run.jobs.iter().zip(then);
    let mut losing: Vec<_> = pairs
        .map(|(now, then)| (now, then, now.mean_ns / then.mean_ns - 1.0))
        .filter(|(_, _, loss)| loss.is_finite() && *loss > allowed)
        .collect();
    losing.sort_by(|a, b| b.2.total_cmp(&a.2));
    let (now, then, loss) = losing.first()?;
    let others = match losing.len() - 1 {
        0 => String::new(),
        1 => ", and one more job".to_owned(),
        more => format!(", and {more} more jobs"),
    };
    Some(format!(
        "the answer is about all jobs together: {} a request of job `{}` takes {} and not {} ({} longer){others}",
        with(bytes),
        now.name,
        time(now.mean_ns),
        time(then.mean_ns),
        percent(*loss),
    ))
}

/// A smaller size that does better than the yardstick.
pub(super) fn less_is_better(advice: &Advice) -> Option<String> {
    let top = advice.place.yardstick_bytes();
    let gain = |run: &Run| {
        let Loss { rate, mean, .. } = advice.loss(run);
        (-rate).max(-mean)
    };
    let rows = advice.rows.iter().filter(|(bytes, _)| *bytes < top);
    let (bytes, run) = rows.max_by(|a, b| gain(&a.1).total_cmp(&gain(&b.1)))?;
    (gain(run) >= LOSS_MIN).then(|| {
        format!(
            "more is not better here: {} {}, {} {}",
            achieved(advice, run),
            with(*bytes),
            achieved(advice, &advice.reference),
            with(top),
        )
    })
}

/// Requests that come at instants of their own, and a drive that is slower than they come.
pub(super) fn falls_behind(advice: &Advice) -> Option<String> {
    if !advice.is_open_loop() {
        return None;
    }
    let rates = advice.rows.iter().map(|(_, run)| run.iops);
    let (least, most) = rates.fold((f64::MAX, 0.0f64), |(least, most), rate| {
        (least.min(rate), most.max(rate))
    });
    (least < most * (1.0 - RATES_DIFFER)).then(|| {
        format!(
            "the drive does not keep up with the recorded instants at every size ({} to {} requests a second): they queue, \
             and what a size costs is how long the queue gets, which small changes move much; `--replay closed` shows what \
             the drive could do",
            count(least),
            count(most),
        )
    })
}
