//! Several runs of the same experiments, put together: what they agree on, and how far they lie apart.
//!
//! An experiment knows of one run only. Here are no measurements, only what follows from several.

use crate::infer::{Tier, Verdict};
use crate::stats::{self, Estimate};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Most runs of the experiments of one role: what five runs do not settle is not noise.
pub const RUNS_MAX: usize = 5;

/// One estimate of several. The centre is their median, so that one stray run does not move it far.
/// The interval has the typical width of the runs' own, for what all of them get wrong alike does not
/// average out, and to that, in quadrature, how far the runs lie apart.
///
/// # Panics
/// Never; of nothing it is 0.
#[must_use]
pub fn combined(runs: &[Estimate]) -> Estimate {
    if let [only] = runs {
        return *only;
    }
    let of = |part: fn(&Estimate) -> f64| runs.iter().map(part).collect::<Vec<f64>>();
    let centres = of(|run| run.estimate);
    let centre = stats::median(&centres);
    let apart = between(&centres);
    let half = |widths: Vec<f64>| stats::median(&widths).hypot(apart);
    Estimate {
        estimate: centre,
        low: centre - half(of(|run| run.estimate - run.low)),
        // Where a run saw no upper end, there is none.
        high: if runs.iter().any(|run| run.high.is_infinite()) {
            f64::INFINITY
        } else {
            centre + half(of(|run| run.high - run.estimate))
        },
    }
}

/// How far the centre of several runs may be off for their spread.
fn between(centres: &[f64]) -> f64 {
    let (low, high) = (stats::quantile(centres, 0.0), stats::quantile(centres, 1.0));
    let half_range = f64::midpoint(high, -low);
    let n = centres.len() as f64;
    if n < 3.0 {
        // Two runs tell no spread; the truth is looked for between them.
        return half_range;
    }
    let t = StudentsT::new(0.0, 1.0, n - 1.0).map_or(f64::INFINITY, |t| {
        t.inverse_cdf(f64::midpoint(1.0, stats::CONFIDENCE))
    });
    // The median of normal data spreads by sqrt(pi / 2) more than the mean.
    let error = std::f64::consts::FRAC_PI_2.sqrt() * stats::spread(centres) / n.sqrt();
    (t * error).min(half_range)
}

/// Which runs agree with the verdict that most of them reach: their indices; none if no verdict has
/// more than half of the runs.
#[must_use]
pub fn majority(runs: &[&Verdict]) -> Vec<usize> {
    let agreeing = |tier: Tier| -> Vec<usize> {
        let same = runs.iter().enumerate().filter(|(_, run)| run.tier == tier);
        same.map(|(i, _)| i).collect()
    };
    let groups = runs.iter().map(|run| agreeing(run.tier));
    groups
        .max_by_key(Vec::len)
        .filter(|most| 2 * most.len() > runs.len())
        .unwrap_or_default()
}

/// What several runs say about a role.
///
/// # Errors
/// Nothing, where there are no runs.
#[must_use]
pub fn agreed(runs: &[&Verdict]) -> Option<Verdict> {
    let first = *runs.first()?;
    if runs.len() == 1 {
        return Some(first.clone());
    }
    let most = majority(runs);
    let all = runs.len();
    let Some(lead) = most.first().map(|i| runs[*i]) else {
        let found: Vec<&str> = runs.iter().map(|run| run.tier.name()).collect();
        let found = found.join(", ");
        let mut verdict = Verdict::unclear(format!("{all} runs do not agree: {found}"));
        verdict.runs = all;
        return Some(verdict);
    };
    let mut verdict = lead.clone();
    (verdict.runs, verdict.agree) = (all, most.len());
    verdict.evidence += &format!("; {} of {all} runs agree", most.len());
    if lead.tier == Tier::Undecided {
        return Some(verdict);
    }
    let agreeing = || most.iter().map(|i| runs[*i]);
    // The rule that tells most of those by which the runs came to the same.
    let rules = agreeing().filter_map(|run| run.rule);
    let sure = |rule: &crate::Rule| rule.confidence(most.len(), all);
    let best = rules.max_by(|a, b| sure(a).total_cmp(&sure(b)));
    if let Some(rule) = best {
        // Another run measures once more, and makes no rule better.
        verdict.fit = agreeing().map(|run| run.fit).fold(0.0, f64::max);
        (verdict.rule, verdict.confidence) = (Some(rule), sure(&rule).min(verdict.fit));
    }
    let put_together = |of: fn(&Verdict) -> Option<Estimate>| {
        let found: Vec<Estimate> = agreeing().filter_map(of).collect();
        (!found.is_empty()).then(|| combined(&found))
    };
    verdict.size_bytes = put_together(|run| run.size_bytes);
    verdict.size_is_range = agreeing().any(|run| run.size_is_range);
    verdict.reach_bytes = put_together(|run| run.reach_bytes);
    verdict.unit_bytes = put_together(|run| run.unit_bytes);
    if let Some(size) = verdict.size_bytes {
        let stray = |run: &&Verdict| run.size_bytes.is_some_and(|own| !own.overlaps(&size));
        let strays = agreeing().filter(stray).count();
        if strays > 0 {
            verdict.evidence += &format!(", {strays} of them with a size far from the others");
        }
    }
    Some(verdict)
}

/// Whether one more run may bring a role to the confidence asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// It is sure enough.
    Reached,
    /// It may.
    Another,
    /// It will not: what is missing is not in the drive's or the host's hands, and was said.
    Missing,
    /// It will not, and why.
    NoHelp(String),
}

/// Whether one more run may help, after these. `verdict` is what they agree on.
#[must_use]
pub fn outlook(verdict: &Verdict, asked: f64) -> Outlook {
    if asked <= 0.0 || verdict.tier != Tier::Undecided && verdict.confidence >= asked {
        return Outlook::Reached;
    }
    if verdict.tier == Tier::Undecided && !verdict.is_passing {
        return Outlook::Missing;
    }
    if verdict.runs >= RUNS_MAX {
        return Outlook::NoHelp(format!("{RUNS_MAX} runs did not settle it"));
    }
    match verdict.rule {
        // All agree: more of them would make it surer only as far as the rule itself is.
        Some(rule) if verdict.agree == verdict.runs => {
            let next = verdict.runs + 1;
            if rule.confidence(next, next) >= asked {
                return Outlook::Another;
            }
            Outlook::NoHelp(rule.limit())
        }
        _ => Outlook::Another,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rule;
    use crate::infer::read_cache::rules;
    use proptest::prelude::*;

    fn estimate(centre: f64, half: f64) -> Estimate {
        Estimate::new(centre, centre - half, centre + half)
    }

    fn decided(tier: Tier, rule: Rule, size: f64) -> Verdict {
        Verdict::new(tier, rule, "seen").size(Some(estimate(size, 2.0)))
    }

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        #[test]
        fn one_stray_run_does_not_move_the_result_far(
            good in prop::collection::vec(99.0..101.0f64, 3..5),
            stray in 0.0..1e9f64,
        ) {
            let runs: Vec<Estimate> = good.iter().chain([&stray]).map(|c| estimate(*c, 1.0)).collect();
            let found = combined(&runs);
            prop_assert!((98.0..102.0).contains(&found.estimate), "{found:?}");
            prop_assert!(found.low <= found.estimate && found.estimate <= found.high);
        }

        #[test]
        fn several_runs_never_claim_to_be_finer_than_one(
            centres in prop::collection::vec(90.0..110.0f64, 1..6),
            half in 0.1..5.0f64,
        ) {
            let runs: Vec<Estimate> = centres.iter().map(|c| estimate(*c, half)).collect();
            let found = combined(&runs);
            prop_assert!(found.high - found.low >= 2.0 * half - 1e-9);
        }
    }

    /// Runs that each cover in 95 of 100, but for a spread of their own that they know nothing of.
    #[test]
    fn the_interval_of_several_runs_covers_a_spread_that_none_of_them_shows() {
        use rand_xoshiro::Xoshiro256PlusPlus;
        use rand_xoshiro::rand_core::{Rng as _, SeedableRng};
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut normal = || {
            let uniform = (0..12).map(|_| rng.next_u64() as f64 / u64::MAX as f64);
            uniform.sum::<f64>() - 6.0
        };
        for n in 2..=RUNS_MAX {
            let mut covered = 0;
            for _ in 0..2000 {
                let runs: Vec<Estimate> = (0..n)
                    .map(|_| estimate(normal() + 0.5 * normal(), 1.96))
                    .collect();
                let found = combined(&runs);
                covered += u32::from(found.low <= 0.0 && 0.0 <= found.high);
            }
            assert!(covered >= 1900, "{n} runs: {covered} of 2000");
        }
    }

    #[test]
    fn a_majority_of_the_runs_decides_and_is_less_sure_than_all() {
        let (a, b) = (
            decided(Tier::Hmb, rules::READ_AGAIN_WITH_HOST, 100.0),
            decided(Tier::Device, rules::READ_AGAIN, 50.0),
        );
        let all = agreed(&[&a, &a, &a]).unwrap();
        let most = agreed(&[&a, &b, &a]).unwrap();
        assert_eq!((all.agree, all.runs), (3, 3));
        assert_eq!((most.tier, most.agree, most.runs), (Tier::Hmb, 2, 3));
        assert!(most.confidence < all.confidence);
        assert!(
            most.evidence.contains("2 of 3 runs agree"),
            "{}",
            most.evidence
        );
        assert_eq!(most.size_bytes.unwrap().estimate, 100.0);
        let split = agreed(&[&a, &b]).unwrap();
        assert_eq!(split.tier, Tier::Undecided);
        assert_eq!(outlook(&split, 0.95), Outlook::Another);
    }

    #[test]
    fn what_cannot_be_seen_from_here_is_not_looked_for_again() {
        let missing = Verdict::undecided("host memory cannot be turned off");
        assert_eq!(outlook(&missing, 0.95), Outlook::Missing);
        let unclear = Verdict::unclear("less with it than without");
        assert_eq!(outlook(&unclear, 0.95), Outlook::Another);
        let runs = [&unclear; RUNS_MAX];
        assert!(matches!(
            outlook(&agreed(&runs).unwrap(), 0.95),
            Outlook::NoHelp(_)
        ));
    }
}
