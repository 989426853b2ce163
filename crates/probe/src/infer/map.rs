//! Where the address map's cache lives, and what it takes there.

mod contest;
mod grants;
mod overlap;
mod taken;

use super::{Arms, INTERRUPTED, Rule, SAME, Tier, Verdict, arms, drifted};
use super::{flash_seen, held_text, size_text, told};
use crate::experiment::levels::Levels;
use crate::experiment::samples::FLAT_MAX;
use crate::findings::{Findings, Held};
use crate::report::Figure;
use crate::role::{self, About};
use crate::stats::Estimate;
use crate::target::{Description, HmbSwitch};
use std::collections::BTreeMap;

/// What the prober knows of it.
pub(crate) const ABOUT: About = About {
    name: "map",
    title: "address map",
    subject: "address map",
    experiments: &["map-cache"],
    is_read_only: true,
    rules: rules::ALL,
    // As computed, 486 of 489 are covered, ranges among them.
    size_width: 1.0,
    verdict,
    figures: &[
        Figure {
            marks: &["map_reach_on"],
            expects: "Speaks against \"device\" or \"none\" where the curves of host memory on and off lie apart, or where \
                  one rises from 1 GiB on although all of the map is said to be at hand. Speaks for \"hmb\" where \
                  they lie apart between the two reaches.",
            ..Figure::of(
                "working set latency",
                "Working set against latency",
                "Random reads, 32 in flight, over more and more of the drive.",
            )
        },
        Figure {
            dots: true,
            expects: "Speaks for the verdict where low points end at one number of places, and for host memory where \
                  that number is larger with it on.",
            ..Figure::of(
                "map cache",
                "How long ago may a place have been read?",
                "Each point is one read of a place, by how many other places were read since its last time. Low: \
             its map entry was still at hand.",
            )
        },
        Figure {
            marks: &["map_reach_on"],
            expects: "Fast up to the reach, slow beyond.",
            ..Figure::of(
                "reach",
                "Reach",
                "The longest stretch over which random reads stay fast.",
            )
        },
        Figure {
            dots: true,
            expects: "Points on a line speak for a map in host memory; its slope is what an entry takes.",
            ..Figure::of(
                "reach of host memory",
                "Reach against host memory given",
                "Amounts that were tried, and nothing between them.",
            )
        },
    ],
};

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The map cache, by state of host memory (`on`, `off`, `as found`).
    pub arms: BTreeMap<&'static str, MapArm>,
    /// Reach with host memory on and off, bytes, when both were looked at again; none where that look showed no edge.
    pub again: Vec<(Option<Held>, Option<Held>)>,
    /// Reach for each amount of host memory given, bytes.
    pub reach_of_grant: Vec<(u64, Held)>,
    /// The drive uses the largest power of two of what it is given.
    pub rounds_down: bool,
    /// What several amounts of host memory reach contradicts itself.
    pub is_off_line: bool,
}

impl role::Finds for Found {
    fn is_seen(&self) -> bool {
        !self.arms.is_empty()
    }
}

/// The map cache in one state of host memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MapArm {
    /// Latency of a read whose entry is at hand and of one whose is not; none if there is only one
    /// level.
    pub levels: Option<Levels>,
    /// The level that there is in any case, ns.
    pub near_ns: f64,
    /// The same as a mean, to compare with means of other experiments.
    pub near_mean_ns: f64,
    /// Share of reads far from each other that may have waited for their map entry, by how much longer they
    /// took on average than reads near each other.
    pub missed: Estimate,
    /// Caching units held.
    pub units: Held,
    /// Pairs of places showed how large a unit is: else `units` counts places, of which two may lie in one unit.
    pub unit_is_told: bool,
    /// Addresses covered, bytes.
    pub reach_bytes: Held,
    /// Median read whose entry comes from the largest memory, ns.
    pub hit_ns: f64,
    /// Median slow read of a place that had been read before, ns. Its entry may have come from a memory that is
    /// nearly as far as flash.
    pub slow_again_ns: Option<f64>,
}

impl MapArm {
    /// Whether pages are of several kinds, and those of the fastest told its levels.
    #[must_use]
    pub fn is_by_kind(&self) -> bool {
        self.levels
            .is_some_and(|levels| levels.pages_below_ns.is_some())
    }
}

/// The rules by which it is told where it lives.
pub mod rules {
    use crate::infer::rule::Rule;

    /// Reads all over the drive are as fast as near ones, and there is no host memory to hold it.
    pub const FLAT: Rule = Rule::counted("MapFlat", 13, 13);
    /// The same, host memory on or off.
    pub const FLAT_EITHER_WAY: Rule = Rule::counted("MapFlatEitherWay", 77, 77);
    /// No two places stay at hand.
    pub const NOWHERE: Rule = Rule::counted("MapNowhere", 0, 0);
    /// After one round, all places are at hand.
    pub const WHOLE: Rule = Rule::counted("MapWhole", 0, 0);
    /// An edge, and there is no host memory to move it.
    pub const EDGE: Rule = Rule::counted("MapEdge", 99, 99);
    /// An edge that host memory does not move. Another drive of the generator with host memory was wrong before (seed 300053).
    pub const EDGE_EITHER_WAY: Rule = Rule::counted("MapEdgeEitherWay", 4, 5);
    /// More than twice as far with host memory.
    pub const FARTHER: Rule = Rule::counted("MapFarther", 191, 191);
    /// Somewhat farther with host memory.
    pub const LITTLE_FARTHER: Rule = Rule::counted("MapLittleFarther", 1, 1);
    /// An edge without host memory, told by pages of the fastest kind.
    pub const EDGE_OF_KIND: Rule = Rule::counted("MapEdgeOfKind", 43, 43);
    /// An edge that host memory does not move, told by pages of the fastest kind.
    pub const EDGE_OF_KIND_EITHER_WAY: Rule = Rule::counted("MapEdgeOfKindEitherWay", 4, 4);
    /// More than twice as far with host memory, told by pages of the fastest kind.
    pub const FARTHER_OF_KIND: Rule = Rule::counted("MapFartherOfKind", 116, 116);

    pub(super) const ALL: &[Rule] = &[
        FLAT,
        FLAT_EITHER_WAY,
        NOWHERE,
        WHOLE,
        EDGE,
        EDGE_EITHER_WAY,
        FARTHER,
        LITTLE_FARTHER,
        EDGE_OF_KIND,
        EDGE_OF_KIND_EITHER_WAY,
        FARTHER_OF_KIND,
    ];
}

/// What an entry of the map takes at least, 4 bytes for 4 KiB (Kim & Kim 2020; Jeong et al. 2017), and at
/// most: 8 bytes, where the map goes beyond what 4 can name or keeps more than a place. Neither shows from
/// outside, and nor does a map that is compressed.
const MAP_SHARE: f64 = 1.0 / 1024.0;
const MAP_SHARE_MAX: f64 = 2.0 * MAP_SHARE;
/// Said of every size that is told from them.
const COMPRESSED: &str =
    "; the size counts 4 to 8 B an entry, and a map that is compressed takes less";
/// What an edge may be off by beyond its interval.
const SLACK: f64 = 0.01;
/// Looks that an edge rests on at least.
const LOOKS: f64 = 36.0;

const KINDS: &str = "latencies differ from page to page by as much as a map miss adds, and pages of one kind \
                     could not be told apart: with and without a miss look alike";
const NO_FLASH: &str = "reads far from each other take no longer than reads near each other, and no two of them get \
                        in each other's way: nothing shows that there is flash behind them, and it may never have \
                        been written, for such reads are answered without flash";
const WITH_DRIVER: &str = "this shows what is always at hand, not where: the host's driver may keep entries and \
                           send them with reads (HPB)";

/// Reads far from each other are as fast as reads near each other, and that was shown.
fn is_flat(arm: &MapArm) -> bool {
    arm.levels.is_none() && arm.missed.high < FLAT_MAX
}

/// Neither two levels nor one could be shown.
fn is_open(arm: &MapArm) -> bool {
    arm.levels.is_none() && !is_flat(arm)
}

/// Memory for entries that reach so far.
fn memory(reach: Estimate) -> Estimate {
    Estimate::new(
        reach.estimate * MAP_SHARE,
        reach.low * MAP_SHARE,
        reach.high * MAP_SHARE_MAX,
    )
}

pub(super) fn verdict(findings: &mut Findings, about: &Description) -> Verdict {
    let mut verdict = told_by_arms(findings, about);
    // An interval that is wider for what an edge may be off by does not end beyond the addresses that there are.
    let capacity = about.capacity_bytes as f64;
    let within = |reach: &mut Estimate| reach.high = reach.high.min(capacity.max(reach.estimate));
    verdict.reach_bytes.iter_mut().for_each(within);
    let reaches = findings.quantities.iter_mut();
    let reaches = reaches.filter(|(name, _)| name.starts_with("map_reach"));
    reaches.for_each(|(_, reach)| within(&mut reach.value));
    verdict
}

fn told_by_arms(findings: &mut Findings, about: &Description) -> Verdict {
    if let Some(reason) = drifted(findings) {
        return Verdict::unclear(reason);
    }
    let capacity = about.capacity_bytes as f64;
    let flash = flash_seen(findings);
    match arms(&findings.roles.map.arms, about) {
        Arms::Missing => Verdict::undecided(INTERRUPTED),
        Arms::Both(on, off) => {
            let (on, off) = (*on, *off);
            let verdict = map_switched(findings, about, &on, &off);
            let verdict = contest::by_copies(about, &off, verdict);
            let verdict = contest::by_background(findings, verdict);
            overlap::allowed_for(findings, verdict)
        }
        Arms::DriveOnly(arm) | Arms::Unswitched(arm, _) if is_open(arm) => Verdict::unclear(KINDS),
        Arms::DriveOnly(arm) if is_flat(arm) && flash => {
            let text = format!(
                "{}, and the drive asks for no host memory",
                flat_text(arm, "")
            );
            let verdict = flat(rules::FLAT, text, &[arm], capacity);
            match contest::against_flat(findings, arm) {
                Some(other) => verdict.contested(&other),
                None => with_driver(about, verdict),
            }
        }
        Arms::Unswitched(arm, open) if is_flat(arm) && flash => {
            Verdict::undecided(format!("{}; {open}", flat_text(arm, "")))
        }
        Arms::DriveOnly(arm) | Arms::Unswitched(arm, _) if is_flat(arm) => {
            Verdict::undecided(NO_FLASH)
        }
        Arms::DriveOnly(arm) => {
            let edges = [rules::EDGE, rules::EDGE_OF_KIND];
            let verdict = with_driver(about, map_on_drive(arm, capacity, edges));
            let verdict = contest::by_background(findings, verdict);
            overlap::allowed_for(findings, verdict)
        }
        Arms::Unswitched(arm, open) => Verdict::undecided(format!(
            "reads are fast over {}; {open}",
            held_text(&arm.reach_bytes)
        )),
    }
}

/// Where the host's driver may have a part in it, no memory is named.
fn with_driver(about: &Description, verdict: Verdict) -> Verdict {
    if about.hmb == HmbSwitch::MapWithDriver && verdict.tier == Tier::Device {
        return verdict.withdrawn(WITH_DRIVER);
    }
    verdict
}

fn flat_text(arm: &MapArm, state: &str) -> String {
    format!(
        "first reads of a stretch take no longer than reads of the same stretch after it{state}: {:.1} us on \
         average, and at most {:.1} % of them can have waited for the map",
        arm.near_mean_ns / 1e3,
        100.0 * arm.missed.high.max(0.001)
    )
}

/// The whole map is at hand. No surer than the share of misses that would not have shown.
fn flat(rule: Rule, text: String, arms: &[&MapArm], capacity: f64) -> Verdict {
    let missed = arms.iter().map(|arm| arm.missed.high.max(0.0));
    let missed = missed.fold(0.0, f64::max);
    let reach = Estimate::new(capacity, capacity * (1.0 - missed), capacity);
    Verdict::new(Tier::Device, rule, text + COMPRESSED)
        .between(memory(reach))
        .reach(reach)
        .borne_out(1.0 - missed / 2.0)
}

/// The unit, where pairs of places showed one. Without them reach by place is not a unit: on a small drive, or where what was
/// read last is not what stays (random, 2Q, S3-FIFO), many places at hand lie in units that others brought.
fn told_unit(arm: &MapArm) -> Option<Estimate> {
    unit_of(arm).filter(|_| arm.unit_is_told)
}

/// Reach by place: the unit, or what is left out of account beyond whole ones.
fn unit_of(arm: &MapArm) -> Option<Estimate> {
    match (arm.units, arm.reach_bytes) {
        (Held::UpTo(units), Held::UpTo(reach)) if units.estimate >= 2.0 => Some(Estimate::new(
            reach.estimate / units.estimate,
            reach.low / units.high,
            reach.high / units.low,
        )),
        _ => None,
    }
}

/// By one of two rules where there is an edge: the second if pages of one kind showed it.
fn map_on_drive(arm: &MapArm, capacity: f64, edges: [Rule; 2]) -> Verdict {
    let seen = |what: &str| {
        let (fast, slow) = arm.levels.map_or((arm.near_ns, 0.0), |levels| {
            (levels.fast_ns, levels.slow_ns)
        });
        format!(
            "reads take {:.1} us while the map is at hand and {:.1} us when it is not{}; {what}",
            fast / 1e3,
            slow / 1e3,
            of_kind(arm)
        )
    };
    let fit = arm.levels.map_or(1.0, |levels| told(&levels, LOOKS));
    let kind = arm.is_by_kind();
    match arm.reach_bytes {
        Held::Nothing => Verdict::new(
            Tier::None,
            rules::NOWHERE,
            seen("no two places stay at hand"),
        ),
        Held::Everything(_) if kind => met_none("all places are at hand after one round"),
        Held::Everything(_) => {
            let all = Estimate::new(capacity, capacity, capacity);
            let text = seen("after one round, all places are at hand") + COMPRESSED;
            Verdict::new(Tier::Device, rules::WHOLE, text)
                .between(memory(all))
                .reach(all)
        }
        Held::UpTo(reach) => {
            let text = format!(
                "{} are at hand, whatever host memory there is{COMPRESSED}",
                size_text(reach.estimate)
            );
            let rule = edges[usize::from(kind)];
            let reach = with_slack(reach);
            let verdict = Verdict::new(Tier::Device, rule, seen(&text));
            let mut verdict = verdict.between(memory(reach));
            verdict.unit_bytes = told_unit(arm);
            verdict.reach(reach)
        }
    }
    .borne_out(fit)
}

/// Looks that kinds of pages led astray move an edge by a few units of many.
fn with_slack(reach: Estimate) -> Estimate {
    let slack = SLACK * reach.estimate;
    Estimate::new(reach.estimate, reach.low - slack, reach.high + slack)
}

/// Of which pages that is true.
fn of_kind(arm: &MapArm) -> &'static str {
    match arm.is_by_kind() {
        true => " (pages of the fastest kind, each read with its entry at hand and without)",
        false => "",
    }
}

/// Slow reads were seen, so that some place is not at hand: scans that meet none show nothing.
fn met_none(both: &str) -> Verdict {
    Verdict::unclear(format!("some reads wait for the map, yet {both}"))
}

fn map_switched(
    findings: &mut Findings,
    about: &Description,
    on: &MapArm,
    off: &MapArm,
) -> Verdict {
    let capacity = about.capacity_bytes as f64;
    let (with, without) = (on.reach_bytes.amount(), off.reach_bytes.amount());
    if is_open(on) || is_open(off) {
        return Verdict::unclear(KINDS);
    }
    if is_flat(on) && is_flat(off) {
        return flat_either_way(findings, on, off, capacity);
    }
    let both = format!(
        "reads stay fast over {} with host memory on and over {} with it off{}",
        held_text(&on.reach_bytes),
        held_text(&off.reach_bytes),
        of_kind(on)
    );
    if with == 0.0 && without == 0.0 {
        return Verdict::new(Tier::None, rules::NOWHERE, both);
    }
    if with.is_infinite() && without.is_infinite() {
        return met_none(&both);
    }
    if with == without || (with < SAME * without && without < SAME * with) {
        return no_difference(findings, (on, off), both, capacity);
    }
    if with < without {
        return Verdict::unclear(format!(
            "{both}: less with it than without is not understood"
        ));
    }
    if let Some(why) = contest::by_few_units(on, off, capacity) {
        return Verdict::unclear(format!("{both}, yet {why}"));
    }
    let both = match contest::by_looks(&findings.roles.map.again, on, off) {
        Ok(looks) => both + &looks,
        Err(why) => return Verdict::unclear(format!("{both}, yet {why}")),
    };
    let kind = on.is_by_kind() || off.is_by_kind();
    let rule = match (with > 2.0 * without, kind) {
        (true, false) => rules::FARTHER,
        (true, true) => rules::FARTHER_OF_KIND,
        (false, _) => rules::LITTLE_FARTHER,
    };
    let levels = on.levels.or(off.levels);
    let fit = levels.map_or(1.0, |levels| told(&levels, LOOKS));
    let mut verdict = Verdict::new(Tier::Hmb, rule, both).borne_out(fit);
    verdict.reach_bytes = match on.reach_bytes {
        Held::UpTo(reach) => Some(reach),
        _ => Some(Estimate::new(capacity, capacity, capacity)),
    };
    if findings.busy.is_none() {
        verdict = taken::hmb_size(findings, about, (on, off), verdict);
    }
    match contest::against_farther(findings, (on, off)).filter(|_| kind) {
        Some(other) => verdict.contested(&other),
        None => verdict,
    }
}

/// No state shows a second level.
fn flat_either_way(findings: &Findings, on: &MapArm, off: &MapArm, capacity: f64) -> Verdict {
    if !flash_seen(findings) {
        return Verdict::undecided(NO_FLASH);
    }
    if let Some(why) = contest::by_nearness(on, off) {
        return Verdict::undecided(why);
    }
    let text = flat_text(on, ", host memory on or off");
    let verdict = flat(rules::FLAT_EITHER_WAY, text, &[on, off], capacity);
    let other = contest::against_flat(findings, on);
    match other.or_else(|| contest::against_no_difference(findings)) {
        Some(other) => verdict.contested(&other),
        None => verdict,
    }
}

/// As far as edges tell.
fn no_difference(
    findings: &Findings,
    (on, off): (&MapArm, &MapArm),
    both: String,
    capacity: f64,
) -> Verdict {
    if let Some(other) = contest::by_latency(on, off) {
        return Verdict::unclear(format!("{both}, yet {other}"));
    }
    let edges = [rules::EDGE_EITHER_WAY, rules::EDGE_OF_KIND_EITHER_WAY];
    let mut verdict = map_on_drive(off, capacity, edges);
    verdict.evidence = format!("{both}: no difference{COMPRESSED}");
    match contest::against_no_difference(findings) {
        Some(other) => verdict.contested(&other),
        None => contest::by_distance(findings, off, verdict),
    }
}

#[cfg(test)]
mod tests;
