//! What noise leaves of a reach: single reads with and without their map entry at hand may look alike.

use crate::findings::Findings;
use crate::infer::{Tier, Verdict};
use crate::stats::Estimate;

/// Share of single reads told wrongly from which on an edge may lie beside where looks show it. Fitted: below, none of the
/// edges of `tiny`, `ex900` and `m730` with noise did.
const SHARP: f64 = 0.05;
/// The same from which on it may lie anywhere. Fitted, too: with 11 % those were off by a ninth at most, with 16 % by half.
const BLURRED: f64 = 0.12;
/// Ends lie farther away by so many times the share told wrongly: twice what edges were seen to be off.
const ALLOWED: f64 = 2.0;

/// An edge that is not sharp lies between ends farther apart, by the share of reads told wrongly, or is not told. That one
/// state reaches farther than the other shows all the same.
pub(super) fn allowed_for(findings: &mut Findings, mut verdict: Verdict) -> Verdict {
    let map = &findings.roles.map;
    let overlaps = map.arms.values().filter_map(|arm| arm.levels);
    let most = overlaps.map(|levels| levels.overlap()).fold(0.0, f64::max);
    if verdict.tier == Tier::Undecided || most <= SHARP {
        return verdict;
    }
    let share = format!(
        "noise makes {:.0} % of single reads look as if their map entry were where it is not",
        100.0 * most
    );
    if most > BLURRED || map.is_off_line {
        (verdict.size_bytes, verdict.reach_bytes, verdict.unit_bytes) = (None, None, None);
        findings.quantities.retain(|name, _| !is_of_edges(name));
        verdict.evidence += &format!(
            "; {share}: how far it reaches, in what units and with how much does not show"
        );
        return verdict;
    }
    let wider = |of: Estimate| Estimate {
        low: of.low * (1.0 - ALLOWED * most),
        high: of.high * (1.0 + ALLOWED * most),
        ..of
    };
    verdict.size_bytes = verdict.size_bytes.map(wider);
    verdict.reach_bytes = verdict.reach_bytes.map(wider);
    for (name, quantity) in &mut findings.quantities {
        if is_of_edges(name) {
            quantity.value = wider(quantity.value);
        }
    }
    verdict.evidence += &format!("; {share}, which the intervals allow for");
    verdict
}

/// Numbers that edges tell.
fn is_of_edges(name: &str) -> bool {
    name.starts_with("map_reach") || name == "map_bytes_per_entry"
}
