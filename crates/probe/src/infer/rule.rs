//! By which rule a verdict was reached, and how often that rule was right.

use super::Role;

/// A way to conclude where a role lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Map: reads all over the drive are as fast as near ones, and there is no host memory to hold it.
    MapFlat,
    /// Map: the same, host memory on or off.
    MapFlatEitherWay,
    /// Map: no two places stay at hand.
    MapNowhere,
    /// Map: after one round, all places are at hand.
    MapWhole,
    /// Map: an edge that host memory does not move.
    MapEdge,
    /// Map: more than twice as far with host memory.
    MapFarther,
    /// Map: somewhat farther with host memory.
    MapLittleFarther,
    /// Map: an edge that host memory does not move, told by pages of the fastest kind.
    MapEdgeOfKind,
    /// Map: more than twice as far with host memory, told by pages of the fastest kind.
    MapFartherOfKind,
    /// Read cache: a read again takes as long as the first one.
    NotReadAgain,
    /// Read cache: so much is read again fast, whatever host memory there is.
    ReadAgain,
    /// Read cache: more is read again fast with host memory.
    ReadAgainWithHost,
    /// Write buffer: writes are acknowledged ahead of flash, and there is no host memory.
    Ahead,
    /// Write buffer: writes wait for flash that programs fast.
    WaitsForFast,
    /// Write buffer: the same, and what was just written is read faster than what was there before.
    WaitsForFastToRead,
    /// Write buffer: writes wait for flash.
    Waits,
    /// Write buffer: writes wait for flash only without host memory.
    AheadOnlyWithHost,
    /// Write buffer: more is acknowledged ahead of flash with host memory.
    MoreAheadWithHost,
    /// Write buffer: single writes take another time with host memory, whatever the size.
    ThroughHost,
    /// Write buffer: as much ahead of flash with host memory as without.
    AheadAlike,
    /// Write buffer: single writes take no notice of host memory.
    PastHost,
}

impl Rule {
    /// All of them.
    pub const ALL: [Rule; 21] = [
        Rule::MapFlat,
        Rule::MapFlatEitherWay,
        Rule::MapNowhere,
        Rule::MapWhole,
        Rule::MapEdge,
        Rule::MapFarther,
        Rule::MapLittleFarther,
        Rule::MapEdgeOfKind,
        Rule::MapFartherOfKind,
        Rule::NotReadAgain,
        Rule::ReadAgain,
        Rule::ReadAgainWithHost,
        Rule::Ahead,
        Rule::WaitsForFast,
        Rule::WaitsForFastToRead,
        Rule::Waits,
        Rule::AheadOnlyWithHost,
        Rule::MoreAheadWithHost,
        Rule::ThroughHost,
        Rule::AheadAlike,
        Rule::PastHost,
    ];

    /// What was counted over simulated drives drawn at random, each verdict against what was planted.
    ///
    /// Source for map and read cache: `LODGER_PROBE_CALIBRATE=1 LODGER_PROBE_ALL=0 LODGER_PROBE_WRITES=0
    /// LODGER_PROBE_FIRST=98201 LODGER_PROBE_DRIVES=150 cargo test --release -p lodger --test probe_blind every_rule --
    /// --nocapture`. For write buffers, of an earlier generator and version (commit f90fff2): 300 drives from seed
    /// 50001 on, with writes, of which every third was probed twice.
    const fn record(self) -> Record {
        match self {
            Rule::MapFlat => record(5, 5),
            Rule::MapFlatEitherWay => record(6, 6),
            Rule::MapNowhere => record(0, 0),
            Rule::MapWhole => record(0, 0),
            Rule::MapEdge => record(28, 28),
            Rule::MapFarther => record(56, 56),
            Rule::MapLittleFarther => record(0, 0),
            Rule::MapEdgeOfKind => record(14, 14),
            Rule::MapFartherOfKind => record(36, 36),
            Rule::NotReadAgain => record(61, 61),
            Rule::ReadAgain => record(66, 66),
            Rule::ReadAgainWithHost => record(23, 23),
            Rule::Ahead => record(72, 72),
            Rule::WaitsForFast => record(1, 1),
            Rule::WaitsForFastToRead => record(43, 43),
            Rule::Waits => record(23, 23),
            Rule::AheadOnlyWithHost => record(0, 0),
            Rule::MoreAheadWithHost => record(0, 0),
            Rule::ThroughHost => record(68, 68),
            Rule::AheadAlike => record(0, 0),
            Rule::PastHost => record(91, 91),
        }
    }

    /// How sure a verdict by this rule is when `agree` of `runs` runs came to it. Where all agree: how
    /// often the rule was right, and no more than that, for the same rule on the same drive goes wrong in the
    /// same way again. Where not all do: at most how often the next run would agree.
    #[must_use]
    pub fn confidence(self, agree: usize, runs: usize) -> f64 {
        let record = self.record();
        let measured = expected_share(record.right, record.cases);
        if agree < runs {
            return measured.min(expected_share(agree as u32, runs as u32));
        }
        measured
    }

    /// Why it does not get surer.
    pub(crate) fn limit(self) -> String {
        let Record { right, cases, .. } = self.record();
        if cases == 0 {
            return "no simulated drive has shown how often this rule is right".to_owned();
        }
        format!(
            "this rule was right on {right} of {cases} simulated drives, and repeating it adds nothing"
        )
    }
}

/// How often a rule was right.
#[derive(Clone, Copy, Debug)]
struct Record {
    /// Verdicts by it in one run.
    cases: u32,
    /// Right ones.
    right: u32,
}

const fn record(right: u32, cases: u32) -> Record {
    Record { cases, right }
}

/// Share to expect next after `right` of `cases` (Jeffreys' prior): never certain, and even odds where
/// nothing is known.
fn expected_share(right: u32, cases: u32) -> f64 {
    (f64::from(right) + 0.5) / (f64::from(cases) + 1.0)
}

/// How much wider than computed the interval of a size must be to cover the planted one in 95 of 100
/// cases. Source: as above, and for write buffers 160 drives from seeds 90001 and 95001 on.
pub(crate) const fn size_width(role: Role) -> f64 {
    match role {
        // As computed, 144 of 145 are covered, ranges among them.
        Role::Map => 1.0,
        // With this, 87 of 89.
        Role::ReadCache => 1.1,
        // With this, 91 of 95. Some find single-bit flash used up, and no width covers them.
        Role::WriteBuffer => 2.65,
    }
}
