//! What comes of a probe.

use crate::bench::{Series, Usage};
use crate::cost::Cost;
use crate::findings::Findings;
use crate::infer::Verdict;
use crate::target::Description;
use std::collections::BTreeMap;
use std::time::Duration;

/// An experiment that was not done, or not to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Its name.
    pub experiment: &'static str,
    /// Why.
    pub reason: String,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// What was probed.
    pub target: Description,
    /// What is concluded.
    pub roles: BTreeMap<&'static str, Verdict>,
    /// What was found.
    pub findings: Findings,
    /// What was not done.
    pub skipped: Vec<Skipped>,
    /// It ended before its time.
    pub partial: bool,
    /// The user stopped it.
    pub interrupted: bool,
    /// The target ended it, and how: it has gone, or fails altogether.
    pub failed: Option<String>,
    /// What was done to the drive.
    pub usage: Usage,
    /// Every point measured.
    pub raw: BTreeMap<String, Series>,
    /// Time it took on the target's clock.
    pub elapsed: Duration,
    /// What the experiments were expected to take before they began.
    pub expected: Vec<Expected>,
    /// What the first run of each experiment took.
    pub spent: BTreeMap<&'static str, Spent>,
}

/// What an experiment took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Time on the target's clock.
    pub time: Duration,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// What an experiment is expected to take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Its name.
    pub experiment: &'static str,
    /// What it takes.
    pub cost: Cost,
    /// Time that comes to on the target.
    pub time: Duration,
}
