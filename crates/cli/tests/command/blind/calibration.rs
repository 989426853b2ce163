//! How often is each rule of the prober right, and how far off are its intervals? Counted over drives
//! drawn at random: the source of the table in `crates/probe/src/infer/rule.rs`.

use super::{Planted, Subject};
use lodger_probe::{Outcome, Role, Rule, Verdict};
use std::collections::BTreeMap;

/// Every so manieth drive is probed twice: what do two runs that agree tell?
const TWICE_EVERY: u64 = 3;

/// Right of so many.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    right: u32,
    of: u32,
}

impl Share {
    fn count(&mut self, right: bool) {
        self.of += 1;
        self.right += u32::from(right);
    }
}

/// What was counted.
#[derive(Debug, Default)]
pub struct Record {
    once: BTreeMap<Rule, Share>,
    twice: BTreeMap<Rule, Share>,
    /// Distance from the truth as a multiple of the distance to that end of the interval, by role.
    misses: BTreeMap<&'static str, Vec<f64>>,
    /// The same for the difference of two runs and the intervals of both.
    repeats: BTreeMap<String, Vec<f64>>,
}

/// Whether this drive is probed twice.
pub fn is_twice(seed: u64) -> bool {
    seed.is_multiple_of(TWICE_EVERY)
}

fn planted(subject: &Subject, role: Role) -> Planted {
    match role {
        Role::Map => subject.map,
        Role::ReadCache => subject.read_cache,
        Role::WriteBuffer => subject.write_buffer,
    }
}

impl Record {
    /// Counts one drive, probed once or twice.
    pub fn count(
        &mut self,
        seed: u64,
        subject: &Subject,
        first: &Outcome,
        second: Option<&Outcome>,
    ) {
        for role in Role::ALL {
            let planted = planted(subject, role);
            let Some(verdict) = first.roles.get(role.name()) else {
                continue;
            };
            let again = second.and_then(|outcome| outcome.roles.get(role.name()));
            if let Some(again) = again.filter(|again| again.tier != verdict.tier) {
                println!(
                    "{seed} {}: {}\n    again: {}",
                    role.name(),
                    verdict.evidence,
                    again.evidence
                );
            }
            self.count_verdict(seed, role, &planted, verdict, again);
        }
        assert_announced(first);
        for (experiment, spent) in &first.spent {
            println!(
                "cost {seed} {} {} {experiment} {:.1} {} {}",
                first.target.capacity_bytes >> 30,
                first.target.hmb.can_switch(),
                spent.time.as_secs_f64(),
                spent.read_bytes >> 20,
                spent.written_bytes >> 20
            );
        }
        let Some(second) = second else { return };
        for (name, quantity) in &first.findings.quantities {
            let Some(again) = second.findings.quantities.get(name) else {
                continue;
            };
            let (a, b) = (quantity.value, again.value);
            let half = |low: f64, high: f64| (high - low) / 2.0;
            let width = half(a.low, a.high).hypot(half(b.low, b.high));
            if width.is_finite() {
                let ratio = (a.estimate - b.estimate).abs() / width.max(f64::MIN_POSITIVE);
                let base = name.strip_suffix("_on").or(name.strip_suffix("_off"));
                let base = base.unwrap_or(name).to_owned();
                self.repeats.entry(base).or_default().push(ratio);
            }
        }
    }

    fn count_verdict(
        &mut self,
        seed: u64,
        role: Role,
        planted: &Planted,
        verdict: &Verdict,
        again: Option<&Verdict>,
    ) {
        let right = verdict.tier.name() == planted.tier;
        let Some(rule) = verdict.rule else {
            println!(
                "calibrate {seed} {} undecided - - {:?}",
                role.name(),
                again.map(|v| v.tier)
            );
            return;
        };
        self.once.entry(rule).or_default().count(right);
        let agree = again.map(|again| again.tier == verdict.tier);
        if agree == Some(true) {
            self.twice.entry(rule).or_default().count(right);
        }
        let mut miss = None;
        if let (true, Some(bytes), Some(size)) = (right, planted.bytes, verdict.size_bytes) {
            let (off, width) = if bytes < size.estimate {
                (size.estimate - bytes, size.estimate - size.low)
            } else {
                (bytes - size.estimate, size.high - size.estimate)
            };
            let ratio = if off == 0.0 {
                0.0
            } else {
                off / width.max(f64::MIN_POSITIVE)
            };
            self.misses.entry(role.name()).or_default().push(ratio);
            miss = Some(ratio);
        }
        println!(
            "calibrate {seed} {} {rule:?} {right} {miss:?} {agree:?}",
            role.name()
        );
    }

    /// The table, as it stands in the source.
    pub fn table(&self) -> String {
        let mut out = String::from("rule: right of cases; right of those where two runs agree\n");
        for rule in Rule::all() {
            let once = self.once.get(&rule).copied().unwrap_or_default();
            let twice = self.twice.get(&rule).copied().unwrap_or_default();
            out += &format!(
                "{rule:?}: {} of {}; {} of {}\n",
                once.right, once.of, twice.right, twice.of
            );
        }
        out += "size: cases, covered, factor by which 95 % are\n";
        for (role, misses) in &self.misses {
            out += &coverage(role, misses);
        }
        out += "difference of two runs: cases, within both intervals, factor by which 95 % are\n";
        for (name, ratios) in &self.repeats {
            out += &coverage(name, ratios);
        }
        out
    }
}

fn coverage(name: &str, ratios: &[f64]) -> String {
    let mut sorted = ratios.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let covered = sorted.iter().filter(|ratio| **ratio <= 1.0).count();
    // The next one lies below the k-th of n with a probability of k / (n + 1).
    let rank = (0.95 * (sorted.len() as f64 + 1.0)).ceil() as usize;
    let factor = sorted
        .get(rank - 1)
        .map_or("more cases needed".to_owned(), |r| format!("{r:.2}"));
    format!("{name}: {}, {covered}, {factor}\n", sorted.len())
}

/// No more is written than was announced.
pub fn assert_announced(outcome: &Outcome) {
    let announced = outcome.expected.iter().map(|e| e.cost.written_bytes);
    let (announced, written) = (announced.sum::<u64>(), outcome.usage.written_bytes);
    assert!(
        written <= announced,
        "{written} bytes written of {announced}"
    );
}

/// Chances that at least, and at most, so many of some verdicts are wrong if they are as sure as they
/// say (the exact distribution of a sum of unequal coins).
pub fn chances(confidences: &[f64], wrong: usize) -> (f64, f64) {
    let mut shares = vec![1.0];
    for confidence in confidences {
        shares.push(0.0);
        for i in (0..shares.len()).rev() {
            let one_less = if i == 0 { 0.0 } else { shares[i - 1] };
            shares[i] = shares[i] * confidence + one_less * (1.0 - confidence);
        }
    }
    let at_least = shares[wrong.min(shares.len())..].iter().sum();
    let at_most = shares[..(wrong + 1).min(shares.len())].iter().sum();
    (at_least, at_most)
}
