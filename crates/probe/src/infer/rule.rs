//! By which rule a verdict was reached, and how often that rule was right.

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
    pub const ALL: [Rule; 19] = [
        Rule::MapFlat,
        Rule::MapFlatEitherWay,
        Rule::MapNowhere,
        Rule::MapWhole,
        Rule::MapEdge,
        Rule::MapFarther,
        Rule::MapLittleFarther,
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

    /// How sure a verdict by this rule is when `agree` of `runs` runs came to it.
    #[must_use]
    pub fn confidence(self, agree: usize, runs: usize) -> f64 {
        if agree < runs {
            // By the runs alone: Jeffreys' estimate of how often the next one would agree.
            let by_runs = (agree as f64 + 0.5) / (runs as f64 + 1.0);
            return by_runs.min(self.measured());
        }
        self.measured()
    }

    /// Why it does not get surer.
    pub(crate) fn limit(self) -> String {
        "this rule itself is not surer than that, however often it is applied".to_owned()
    }

    const fn measured(self) -> f64 {
        match self {
            Rule::MapFarther => 0.99,
            Rule::MapEdge
            | Rule::ReadAgain
            | Rule::ReadAgainWithHost
            | Rule::WaitsForFastToRead
            | Rule::ThroughHost
            | Rule::PastHost => 0.97,
            Rule::MapFlat
            | Rule::MapWhole
            | Rule::NotReadAgain
            | Rule::Ahead
            | Rule::Waits
            | Rule::AheadOnlyWithHost => 0.95,
            Rule::MapFlatEitherWay | Rule::MapNowhere | Rule::MapLittleFarther => 0.9,
            Rule::WaitsForFast | Rule::MoreAheadWithHost | Rule::AheadAlike => 0.85,
        }
    }
}
