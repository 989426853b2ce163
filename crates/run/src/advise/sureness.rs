//! How sure the answer is: percentiles of few requests, tails that means do not show, what another seed says, and
//! sizes that nobody has looked at.

use super::goal::{Goal, Slo};
use super::measure::{self, BEYOND_MIN, Run, Tally};
use super::report::with;
use super::search::{Found, Make, Runs};
use super::text::{as_typed, grouped, percent, short, time};
use super::{Advice, largest_advised};
use crate::config::RunConfig;
use crate::{Error, ErrorKind};
use std::collections::BTreeSet;

/// What is worth a word of a tail where the goal does not say how much is lost.
const LOSS_MIN: f64 = 0.05;
/// A tail scatters: less is no difference worth a word.
const TAIL_LONGER_MIN: f64 = 0.2;
/// A mean, or a rate, this close to what is wanted may be chance.
const NEAR: f64 = 0.03;
/// Of so few runs two more are a good part of the time: then only what is closer yet.
const FEW_RUNS: usize = 6;
const NEAR_OF_FEW: f64 = 0.01;
/// The same of a percentile.
const NEAR_OF_TAILS: f64 = 0.1;

/// The run that decided most narrowly, once more with another seed.
#[derive(Clone, Debug)]
pub struct Again {
    /// The other seed.
    seed: u64,
    /// Which size.
    bytes: u64,
    /// Its run.
    run: Run,
    /// The reference's, where it is what the goal is about.
    reference: Option<Run>,
}

impl Again {
    /// Simulations made for it.
    pub fn count(&self) -> usize {
        1 + usize::from(self.reference.is_some())
    }

    fn reference(&self) -> &Run {
        self.reference.as_ref().unwrap_or(&self.run)
    }
}

/// Runs the size again that decided most narrowly, if another seed may turn the answer round.
///
/// # Errors
/// If it is interrupted.
pub fn look_again(
    config: &RunConfig,
    make: &Make<'_>,
    tally: &Tally<'_>,
    goal: Goal,
    found: Found,
    runs: &Runs<'_>,
    reference: (u64, &Run),
) -> Result<Option<Again>, Error> {
    let deciding = match found {
        Found::Off => vec![0],
        Found::Size {
            enough_bytes,
            below_bytes,
        } => vec![enough_bytes, below_bytes],
        Found::Nothing { best_bytes } => vec![best_bytes],
    };
    let margin = |bytes: &u64| Some((*bytes, goal.margin(runs.get(*bytes)?, reference.1).abs()));
    let closest = deciding.iter().filter_map(margin);
    let closest = closest.min_by(|a, b| a.1.total_cmp(&b.1));
    let near = match goal {
        Goal::Slo(Slo::Percentile(..)) => NEAR_OF_TAILS,
        _ if runs.all().count() < FEW_RUNS => NEAR_OF_FEW,
        _ => NEAR,
    };
    // The reference itself is as good as itself with any seed.
    let is_other = |bytes: u64| matches!(goal, Goal::Slo(_)) || !runs.is_same(bytes, reference.0);
    let Some((bytes, _)) = closest.filter(|(bytes, margin)| *margin < near && is_other(*bytes))
    else {
        return Ok(None);
    };
    let seed = config.seed.wrapping_add(1);
    let config = RunConfig {
        seed,
        ..config.clone()
    };
    let again = |bytes: u64| -> Result<Run, Error> {
        Ok(measure::measure(&config, make(seed)?, bytes, None, tally)?.0)
    };
    let is_compared = matches!(goal, Goal::Within(_));
    tally.expect(1 + usize::from(is_compared));
    let (run, all) = rayon::join(
        || again(bytes),
        || is_compared.then(|| again(reference.0)).transpose(),
    );
    let (run, reference) = match (run, all) {
        (Ok(run), Ok(reference)) => (run, reference),
        (Err(error), _) | (_, Err(error)) if error.kind == ErrorKind::Interrupted => {
            return Err(error);
        }
        // The answer stands without it.
        _ => return Ok(None),
    };
    Ok(Some(Again {
        seed,
        bytes,
        run,
        reference,
    }))
}

/// Whether the other seed decides otherwise.
pub(super) fn is_turned_round(advice: &Advice) -> bool {
    advice.again.as_ref().is_some_and(|again| {
        let run = advice.run(again.bytes).unwrap_or(&advice.reference);
        advice.goal.is_met(run, &advice.reference)
            != advice.goal.is_met(&again.run, again.reference())
    })
}

/// What decided, and how far two seeds are apart in it.
pub(super) fn another_seed(advice: &Advice) -> Option<String> {
    let again = advice.again.as_ref()?;
    let (run, goal) = (advice.run(again.bytes)?, advice.goal);
    let margin = goal.margin(run, &advice.reference);
    let other = goal.margin(&again.run, again.reference());
    if !is_turned_round(advice) && margin.abs() >= (margin - other).abs() {
        return None;
    }
    let says = match is_turned_round(advice) {
        true => "another seed says otherwise",
        false => "another seed may say otherwise",
    };
    let (size, seed) = (with(again.bytes), again.seed);
    // Minus nothing is nothing.
    let loss = |share: f64, margin: f64| percent((share - margin).max(0.0));
    Some(match goal {
        Goal::Within(share) => format!(
            "{says}: {size} the loss is {} with this seed and {} with `--seed {seed}`, where {} % are allowed",
            loss(share, margin),
            loss(share, other),
            as_typed(share),
        ),
        Goal::Slo(_) => format!(
            "{says}: {size} {} with this seed, {} with `--seed {seed}` ({})",
            goal.achieved(run),
            goal.achieved(&again.run),
            goal.words(run),
        ),
    })
}

/// A promise on a percentile that a handful of requests decide.
pub(super) fn few_requests(advice: &Advice) -> Option<String> {
    let Goal::Slo(Slo::Percentile(percent, _)) = advice.goal else {
        return None;
    };
    let decided = match advice.found {
        Found::Nothing { best_bytes } => Some(best_bytes),
        found => found.enough_bytes(),
    };
    // The slower run of a given time has fewer.
    let runs = [
        decided.and_then(|bytes| advice.run(bytes)),
        Some(&advice.reference),
    ];
    let run = (runs.into_iter().flatten()).min_by_key(|run| run.decisive_count())?;
    let (count, kind) = (run.decisive_count(), run.subject.name());
    let beyond = measure::beyond(count, percent);
    if beyond >= BEYOND_MIN {
        return None;
    }
    let count = grouped(count);
    if percent >= 100.0 {
        return Some(format!(
            "p100 of {count} {kind} is the slowest of them, a single one: another seed, or a longer run, has another"
        ));
    }
    let needed = (BEYOND_MIN / (1.0 - percent / 100.0)).round() as u64;
    Some(format!(
        "p{percent} of {count} {kind} rests on the slowest {}, which may be chance; let the load run for longer, to {} {kind} \
         or more, before such a promise is believed",
        match beyond < 2.0 {
            true => "alone".to_owned(),
            false => short(beyond.floor()),
        },
        grouped(needed),
    ))
}

/// The slowest requests may lose by much where the mean loses little.
pub(super) fn tail_that_loses(advice: &Advice) -> Option<String> {
    let bytes = advice.found.enough_bytes()?;
    let (run, then) = (advice.run(bytes)?, &advice.reference);
    let (allowed, promised, about) = match advice.goal {
        Goal::Within(share) => (share, 0.0, "means".to_owned()),
        Goal::Slo(Slo::Mean(_)) => (LOSS_MIN, 0.0, "means".to_owned()),
        Goal::Slo(Slo::Iops(_)) => (LOSS_MIN, 0.0, "requests a second".to_owned()),
        Goal::Slo(Slo::Percentile(percent, _)) => (LOSS_MIN, percent, format!("p{percent}")),
    };
    let longer_min = TAIL_LONGER_MIN.max(2.0 * allowed);
    let longer = |percent: f64| {
        let (now, then) = (
            run.sure_percentile_ns(percent)?,
            then.sure_percentile_ns(percent)?,
        );
        let loss = now as f64 / then.max(1) as f64 - 1.0;
        (percent > promised && loss > longer_min).then_some((percent, now, then, loss))
    };
    let (percentile, now, then, loss) = [99.0, 99.9]
        .into_iter()
        .filter_map(longer)
        .max_by(|a, b| a.3.total_cmp(&b.3))?;
    Some(format!(
        "the answer is about {about}: {} p{percentile}{} is {} and not {} ({} longer); `--slo p{percentile}=LIMIT` asks for a \
         bound on it",
        with(bytes),
        run.of_subject(),
        time(now as f64),
        time(then as f64),
        percent(loss),
    ))
}

/// That no size was found is no proof that there is none: between two sizes a percentile may be better than at both.
pub(super) fn sizes_between(advice: &Advice) -> Option<String> {
    if !matches!(advice.found, Found::Nothing { .. }) {
        return None;
    }
    let place = &advice.place;
    let known: BTreeSet<_> = (advice.rows.iter())
        .map(|(bytes, _)| place.effect(*bytes))
        .collect();
    let useful_bytes = advice
        .curve
        .as_ref()
        .map_or(u64::MAX, |curve| curve.useful_bytes);
    let up_to_bytes = largest_advised(advice.goal, place).min(useful_bytes);
    let between = place.grants(0, up_to_bytes).into_iter();
    let between = between.filter(|bytes| !known.contains(&place.effect(*bytes)));
    match between.count() {
        0 => None,
        count => Some(format!(
            "{} between those of the table were not simulated, and may do better: latencies need not fall from each size to \
             the next",
            match count {
                1 => "1 size".to_owned(),
                count => format!("{} sizes", grouped(count as u64)),
            }
        )),
    }
}
