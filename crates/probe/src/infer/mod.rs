//! From findings to verdicts: which role lives on which tier. Every verdict names its evidence, and
//! "undecided" is one.

pub mod map;
pub mod read_cache;
mod rule;
pub mod write_buffer;

pub use rule::Rule;

use crate::experiment::levels::Levels;
use crate::findings::{Findings, Held};
use crate::infer::map::MapArm;
use crate::role::Role;
use crate::stats::Estimate;
use crate::target::{Description, HmbSwitch};
use std::collections::BTreeMap;

/// Where a role lives, as far as can be told from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Host memory the drive was given.
    Hmb,
    /// Memory on the drive.
    Device,
    /// Flash in single-bit mode.
    Slc,
    /// There is no such thing.
    None,
    /// It cannot be told.
    Undecided,
}

impl Tier {
    /// All of them.
    pub const ALL: [Tier; 5] = [
        Tier::Hmb,
        Tier::Device,
        Tier::Slc,
        Tier::None,
        Tier::Undecided,
    ];

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Tier::Hmb => "hmb",
            Tier::Device => "device",
            Tier::Slc => "slc",
            Tier::None => "none",
            Tier::Undecided => "undecided",
        }
    }
}

/// What is concluded about a role.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Where it lives.
    pub tier: Tier,
    /// How sure that is.
    pub confidence: f64,
    /// By which rule it was reached; none when undecided.
    pub rule: Option<Rule>,
    /// It is undecided for a reason that another run may do away with: noise, not what is missing.
    pub is_passing: bool,
    /// Runs of the experiments it rests on.
    pub runs: usize,
    /// Those of them that say the same.
    pub agree: usize,
    /// How far this drive's own measurements bear it out, 0 to 1: it is no surer than that.
    pub fit: f64,
    /// Memory it takes, bytes. Of a map of which nothing is known but what it reaches, 4 to 8 B an entry.
    pub size_bytes: Option<Estimate>,
    /// Of the size only the ends are known: its estimate is no likelier than what else lies between.
    pub size_is_range: bool,
    /// For the map, bytes of addresses whose entries are at hand.
    pub reach_bytes: Option<Estimate>,
    /// What it keeps at once: for the map, bytes of addresses of one caching unit.
    pub unit_bytes: Option<Estimate>,
    /// Why.
    pub evidence: String,
}

impl Verdict {
    pub(crate) fn new(tier: Tier, rule: Rule, evidence: impl Into<String>) -> Self {
        Verdict {
            tier,
            confidence: rule.confidence(1, 1),
            rule: Some(rule),
            is_passing: false,
            runs: 1,
            agree: 1,
            fit: 1.0,
            size_bytes: None,
            size_is_range: false,
            reach_bytes: None,
            unit_bytes: None,
            evidence: evidence.into(),
        }
    }

    /// What is missing will be missing the next time.
    pub(crate) fn undecided(evidence: impl Into<String>) -> Self {
        Verdict {
            tier: Tier::Undecided,
            confidence: 0.0,
            rule: None,
            is_passing: false,
            runs: 1,
            agree: 1,
            fit: 1.0,
            size_bytes: None,
            size_is_range: false,
            reach_bytes: None,
            unit_bytes: None,
            evidence: evidence.into(),
        }
    }

    /// What was found makes no sense; another run may.
    pub(crate) fn unclear(evidence: impl Into<String>) -> Self {
        Verdict {
            is_passing: true,
            ..Self::undecided(evidence)
        }
    }

    /// Undecided after all, for a reason that comes with the drive or the host.
    fn withdrawn(self, why: &str) -> Self {
        Verdict {
            size_bytes: self.size_bytes,
            size_is_range: self.size_is_range,
            reach_bytes: self.reach_bytes,
            unit_bytes: self.unit_bytes,
            ..Self::undecided(format!("{}; {why}", self.evidence))
        }
    }

    /// Another experiment says otherwise.
    fn contested(self, by: &str) -> Self {
        Self::unclear(format!("contested: {}; yet {by}", self.evidence))
    }

    /// No surer than this drive's measurements allow.
    fn borne_out(mut self, fit: f64) -> Self {
        self.fit = self.fit.min(fit.clamp(0.0, 1.0));
        self.confidence = self.confidence.min(self.fit);
        self
    }

    fn reach(mut self, reach: Estimate) -> Self {
        self.reach_bytes = Some(reach);
        self
    }

    /// A size between two ends, neither of which is likelier than the other.
    fn between(mut self, size: Estimate) -> Self {
        self.size_bytes = Some(size);
        self.size_is_range = size.high > RANGE * size.low;
        self
    }

    pub(crate) fn size(mut self, size: Option<Estimate>) -> Self {
        self.size_bytes = size;
        self
    }
}

/// Ends further apart than this leave a range instead of a number.
const RANGE: f64 = 1.05;
/// Amounts nearer than this are the same.
const SAME: f64 = 1.2;

/// What one run says about a role; nothing if it was not looked for.
#[must_use]
pub fn verdict(role: Role, findings: &mut Findings, about: &Description) -> Option<Verdict> {
    let known = role.about();
    let seen = findings.roles.is_seen(role);
    let mut verdict = seen.then(|| (known.verdict)(findings, about))?;
    let width = known.size_width;
    verdict.size_bytes = verdict.size_bytes.map(|size| size.wider(width));
    Some(match about.transport.hides() {
        Some(why) => Verdict::undecided(format!("{}; {why}", verdict.evidence)),
        None => within_grant(verdict, about),
    })
}

/// What lies in host memory takes no more of it than was given: less is known to be there, or nothing.
fn within_grant(mut verdict: Verdict, about: &Description) -> Verdict {
    let (Tier::Hmb, Some(granted)) = (verdict.tier, about.hmb.granted_bytes()) else {
        return verdict;
    };
    let granted = granted as f64;
    let Some(size) = &mut verdict.size_bytes else {
        return verdict;
    };
    if granted <= 0.0 {
        return verdict;
    }
    if size.low > granted {
        // Another run would not change what was given.
        return Verdict::undecided(format!(
            "contested: {}; yet no more than {} of host memory were given, which cannot hold that",
            verdict.evidence,
            size_text(granted)
        ));
    }
    size.estimate = size.estimate.min(granted);
    size.high = size.high.min(granted);
    verdict
}

/// How unlikely it is that levels which overlap led astray: that most of `looks` looks were told wrongly
/// (Hoeffding 1963).
fn told(levels: &Levels, looks: f64) -> f64 {
    most(1.0 - levels.false_slow.max(levels.false_fast), looks)
}

/// How unlikely it is that most of `looks` looks say so by chance, where this share of them does.
fn most(share: f64, looks: f64) -> f64 {
    1.0 - (-2.0 * looks * (share - 0.5).max(0.0).powi(2)).exp()
}

/// How a pair of states differs, or what there is without a switch.
enum Arms<'a, T> {
    Both(&'a T, &'a T),
    /// The drive uses no host memory: what there is, is on the drive.
    DriveOnly(&'a T),
    /// Host memory may be in use and cannot be turned off, or is not given: what that leaves open.
    Unswitched(&'a T, &'static str),
    Missing,
}

fn arms<'a, T>(found: &'a BTreeMap<&'static str, T>, about: &Description) -> Arms<'a, T> {
    match (found.get("on"), found.get("off"), found.get("as found")) {
        (Some(on), Some(off), _) => Arms::Both(on, off),
        (_, _, Some(arm)) if matches!(about.hmb, HmbSwitch::NotUsed | HmbSwitch::MapWithDriver) => {
            Arms::DriveOnly(arm)
        }
        (_, _, Some(arm)) if matches!(about.hmb, HmbSwitch::NotGiven(_)) => {
            Arms::Unswitched(arm, NOT_GIVEN)
        }
        (_, _, Some(arm)) => Arms::Unswitched(arm, UNSWITCHED),
        _ => Arms::Missing,
    }
}

const UNSWITCHED: &str = "host memory cannot be turned off from here, so on the drive and in host \
                          memory look alike";
const NOT_GIVEN: &str =
    "the drive asks for host memory and was given none, so what it would keep there does not show";
const INTERRUPTED: &str = "only one state of host memory was measured";

fn size_text(bytes: f64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let number = format!("{value:.4}");
    let number = number.trim_end_matches('0').trim_end_matches('.');
    format!("{number} {}", units[unit])
}

fn held_text(held: &Held) -> String {
    match held {
        Held::Nothing => "nothing".to_owned(),
        Held::UpTo(estimate) => size_text(estimate.estimate),
        Held::Everything(_) => "everything that was tried".to_owned(),
    }
}

/// There are marks of flash behind the addresses: without them, flat latency proves nothing. Reads of one
/// die that get in each other's way are one; reads that take a second one once a limited stretch is left
/// are another, for only a drive that has its map in flash does that.
fn flash_seen(findings: &Findings) -> bool {
    let two_reads = |arm: &MapArm| arm.levels.is_some() && matches!(arm.reach_bytes, Held::UpTo(_));
    findings.collisions == Some(true) || findings.roles.map.arms.values().any(two_reads)
}

pub(crate) fn drifted(findings: &Findings) -> Option<String> {
    let drift = findings.drift?;
    let moved = !(0.8..=1.25).contains(&drift);
    moved.then(|| {
        format!("the drive's own latency changed by a factor of {drift:.2} while it was probed")
    })
}
