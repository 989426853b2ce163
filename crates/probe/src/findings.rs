//! What the experiments found, before anything is concluded from it.

use crate::role::{self, Role};
use crate::stats::Estimate;
use std::collections::BTreeMap;

/// How much of something is held, as a scan found it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Held {
    /// Nothing is: every look is slow.
    Nothing,
    /// So much.
    UpTo(Estimate),
    /// At least so much: nothing was ever slow.
    Everything(f64),
}

impl Held {
    /// The most that was seen to be held.
    #[must_use]
    pub fn most(&self) -> f64 {
        match self {
            Held::Nothing => 0.0,
            Held::UpTo(estimate) => estimate.estimate,
            Held::Everything(seen) => *seen,
        }
    }

    /// As a number to compare: 0 for nothing, infinite for everything.
    #[must_use]
    pub fn amount(&self) -> f64 {
        match self {
            Held::Nothing => 0.0,
            Held::UpTo(estimate) => estimate.estimate,
            Held::Everything(_) => f64::INFINITY,
        }
    }
}

/// A number with its interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    /// The number.
    pub value: Estimate,
    /// Its unit.
    pub unit: &'static str,
    /// How sure it is that the interval covers the truth.
    pub confidence: f64,
}

/// How often a number of a second run lies within the intervals of both: 1936 of 2182 numbers of 100
/// drives drawn at random, written to between the runs (as in `infer/rule.rs`, of the 300 drives every third;
/// without numbers that fewer than 30 have).
const REPEATED: f64 = 0.89;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// What was found about each role.
    pub roles: role::Found,
    /// Shares of hits of a cyclic and of a random scan a fifth beyond the cache.
    pub replacement: Option<(f64, f64)>,
    /// What the cache replaces by, as far as that can be told.
    pub replacement_verdict: Option<&'static str>,
    /// Bytes written at the fast rate before the rate fell for good.
    pub cliff_bytes: Option<Estimate>,
    /// Two reads of one die take longer than two of different dies: the marks of flash.
    pub collisions: Option<bool>,
    /// What the second of two reads of one die waits for, ns: about what a read of flash takes.
    pub flash_wait_ns: Option<f64>,
    /// What shows that the drive is busy with something of its own while it is asked, as with large units of its map that
    /// it completes in the background.
    pub busy: Option<String>,
    /// Median page read, random and sequential, ns.
    pub read_ahead: Option<(f64, f64)>,
    /// Mean latency of random reads over a span of so many bytes, ns, by state of host memory.
    pub spans: BTreeMap<&'static str, Vec<(f64, f64)>>,
    /// Everything with a number.
    pub quantities: BTreeMap<String, Quantity>,
    /// How far the reference latency moved, as a ratio of last to first.
    pub drift: Option<f64>,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

impl Findings {
    /// What another run for a role starts from: what others found and it builds on, but none of its own.
    #[must_use]
    pub fn without(&self, role: Role) -> Self {
        let mut rest = Findings {
            quantities: BTreeMap::new(),
            notes: Vec::new(),
            drift: None,
            ..self.clone()
        };
        rest.roles.take(role, &role::Found::default());
        rest
    }

    /// Leaves what was timed, and gives up what it would mean for a drive's inside: sizes, counts, shares,
    /// and which reads found their map entry at hand.
    pub fn give_up_inside(&mut self) {
        let timed = |name: &str, unit: &str| {
            let inside = ["map_", "hit_", "miss"];
            ["us", "1/s", "MB/s"].contains(&unit) && !inside.iter().any(|of| name.starts_with(of))
        };
        self.quantities
            .retain(|name, quantity| timed(name, quantity.unit));
        self.replacement_verdict = None;
    }

    /// Keeps a number.
    pub fn quantity(&mut self, name: &str, unit: &'static str, value: Estimate) {
        let quantity = Quantity {
            value,
            unit,
            confidence: REPEATED,
        };
        self.quantities.insert(name.to_owned(), quantity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_need_not_be_a_drive_has_times_and_rates_but_no_inside() {
        let mut findings = Findings {
            replacement_verdict: Some("LRU"),
            ..Findings::default()
        };
        for (name, unit) in [
            ("read_near", "us"),
            ("random_read_qd1", "1/s"),
            ("write_rate_fast", "MB/s"),
            ("map_hit", "us"),
            ("hit_hmb", "us"),
            ("miss", "us"),
            ("parallel_units", "count"),
            ("stripe", "bytes"),
            ("map_reach_64MiB", "bytes"),
            ("map_cyclic_hit_ratio", "ratio"),
        ] {
            findings.quantity(name, unit, Estimate::new(1.0, 1.0, 1.0));
        }
        findings.give_up_inside();
        let left: Vec<&String> = findings.quantities.keys().collect();
        assert_eq!(left, ["random_read_qd1", "read_near", "write_rate_fast"]);
        assert_eq!(findings.replacement_verdict, None);
    }
}
