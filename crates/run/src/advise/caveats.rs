//! What the answer does not say by itself: of single jobs, of less memory that would be better, of a drive that does not keep up.

use super::goal::Goal;
use super::measure::{Run, Subject};
use super::report::{achieved, with};
use super::text::{count, grouped, percent, short, size, time};
use super::{Advice, Loss};
use lodger_core::Precondition;

/// What is worth a word where the goal does not say how much is lost.
const LOSS_MIN: f64 = 0.05;
/// A share of look-ups that is worth a word.
const WORTH_NAMING: f64 = 0.02;
/// Rates of an open loop that differ by more are not the workload's.
const RATES_DIFFER: f64 = 0.02;

/// Look-ups for each part of the map in use below which a run is a cold start more than anything else: with ten, a tenth
/// of them at most were the first of their part.
const LOOKUPS_PER_PART_MIN: f64 = 10.0;
/// Write amplification that differs by more is worth a word.
const WAF_DIFFERS: f64 = 0.05;
/// Of fewer writes it says little.
const WRITES_MIN: u64 = 1000;
/// Share of the parts of the map from which on those of one job are worth a word.
const WORTH_A_WORD_OF_PARTS: f64 = 0.05;
/// Share of what was written into empty room from which on a run tells of that more than of anything else.
const INTO_ROOM_MIN: f64 = 0.5;

/// A run that is over before memory is filled, or before what is written has met garbage collection, tells little of what
/// memory is worth.
pub(super) fn short_run(advice: &Advice) -> Option<String> {
    cold_start(advice).or_else(|| empty_cache(advice))
}

fn cold_start(advice: &Advice) -> Option<String> {
    let curve = advice.curve.as_ref()?;
    let is_cold = |lookups: u64, parts: u64| {
        lookups > 0 && (lookups as f64) < LOOKUPS_PER_PART_MIN * parts.max(1) as f64
    };
    if curve.hit_ratio(0) >= 1.0 - WORTH_NAMING {
        return None;
    }
    let (lookups, parts) = (curve.asked().lookups, curve.touched_pages());
    let all = is_cold(lookups, parts).then_some((lookups, parts, String::new()));
    // What one job asks for often hides what another has hardly begun to.
    let (lookups, parts, whose) = all.or_else(|| {
        let mut groups = curve.groups().iter();
        let cold = groups.find(|group| {
            group.parts as f64 >= WORTH_A_WORD_OF_PARTS * parts as f64
                && is_cold(group.lookups, group.parts)
        })?;
        let job = &advice.reference.jobs.get(cold.job?)?.name;
        Some((
            cold.lookups,
            cold.parts,
            format!(" that job `{job}` alone asks for"),
        ))
    })?;
    Some(format!(
        "short runs are cold starts: {} look-ups of {} parts of the map (4 MiB of addresses each){whose} are {} for each, and \
         memory is filled as a part is first asked for; where the load goes on for longer, let it here, too, before less \
         memory is called enough",
        grouped(lookups),
        grouped(parts),
        short(lookups as f64 / parts.max(1) as f64),
    ))
}

/// `--precondition random` names a steady state: what was written outside it has a warning of its own.
fn empty_cache(advice: &Advice) -> Option<String> {
    let run = &advice.reference;
    let are_many = run.write.count >= WRITES_MIN && run.write.count >= run.read.count;
    // What has been erased with nothing to be moved will be so again: that is the load itself.
    let goes_on = run.into_room >= 1.0 && run.has_erased;
    let is_empty = advice.precondition == Precondition::Sequential && !goes_on;
    if !are_many || !is_empty || run.into_room < INTO_ROOM_MIN {
        return None;
    }
    let room = match advice.drive.parsed.spec.ftl.slc_superblocks > 0 {
        true => "the single-bit cache",
        false => "free flash",
    };
    Some(format!(
        "short runs fill what is empty: {} of what was written went into {room}, which is empty at the start, before anything \
         had to be moved for it; where the load goes on for longer, let it here, too, or begin in the steady state (`--precondition \
         random`), before less memory is called enough",
        percent(run.into_room),
    ))
}

/// Writes that the size found costs more than the goal allows, where reads and all together lose less.
fn writes_that_lose(advice: &Advice) -> Option<String> {
    let Goal::Within(allowed) = advice.goal else {
        return None;
    };
    let bytes = advice.found.enough_bytes()?;
    let (run, then) = (advice.run(bytes)?, &advice.reference);
    if run.subject != Subject::Reads {
        return None;
    }
    let loss = run.write.mean_ns / then.write.mean_ns - 1.0;
    (loss.is_finite() && loss > allowed).then(|| {
        format!(
            "the answer is about reads, and all requests together: {} a write takes {} and not {} ({} longer)",
            with(bytes),
            time(run.write.mean_ns),
            time(then.write.mean_ns),
            percent(loss),
        )
    })
}

/// What latencies do not show of writes: how much is programmed for them.
pub(super) fn wear(advice: &Advice) -> Option<String> {
    let (top, run) = (advice.place.yardstick_bytes(), &advice.reference);
    // Of few writes most may still be in the buffer.
    let are_many = run.write.count >= WRITES_MIN && run.write.count * 10 >= run.read.count;
    let most = run.waf.filter(|waf| are_many && *waf > 0.0)?;
    // Least memory first: where most is lost.
    let (bytes, waf) = advice.rows.iter().find_map(|(bytes, run)| {
        let waf = run.waf.filter(|waf| (waf / most - 1.0).abs() > WAF_DIFFERS);
        waf.filter(|_| *bytes < top).map(|waf| (*bytes, waf))
    })?;
    Some(format!(
        "latencies do not show what is programmed: {waf:.2} bytes for each that the host writes {}, {most:.2} {} \
         (write amplification; `lodger compare` sets more of it side by side)",
        with(bytes),
        with(top),
    ))
}

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
        return writes_that_lose(advice);
    }
    let pairs = run.jobs.iter().zip(then);
    let mut losing: Vec<_> = pairs
        .map(|(now, then)| (now, then, now.mean_ns / then.mean_ns - 1.0))
        .filter(|(_, _, loss)| loss.is_finite() && *loss > allowed)
        .collect();
    losing.sort_by(|a, b| b.2.total_cmp(&a.2));
    let Some((now, then, loss)) = losing.first() else {
        return writes_that_lose(advice);
    };
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

/// Memory of the host that the drive does not ask for.
pub(super) fn driver_keeps(advice: &Advice) -> Option<String> {
    let hpb = advice.drive.parsed.spec.hpb.as_ref()?;
    let host = advice
        .reference
        .lookups
        .share(advice.reference.lookups.host);
    Some(format!(
        "beside what is advised the host's driver keeps up to {} of the map (`hpb.host_cache`), and {} of the look-ups come \
         with their entry from there; which do depends on it, so there is no curve",
        size(hpb.host_bytes()),
        percent(host.unwrap_or(0.0)),
    ))
}

/// A smaller size that does better than the yardstick.
pub(super) fn less_is_better(advice: &Advice) -> Option<String> {
    let top = advice.place.yardstick_bytes();
    let gain = |run: &Run| {
        let Loss { rate, mean, .. } = advice.loss(run);
        (-rate).max(-mean)
    };
    // The least of those that share a run: an amount that the drive takes nothing of is none.
    let rows = advice.rows.iter().rev().filter(|(bytes, _)| *bytes < top);
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
