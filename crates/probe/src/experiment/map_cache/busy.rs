//! Is the drive busy with its map while it is asked? Then what was counted is not what fits.

use super::super::{enter, parallelism};
use crate::bench::{Bench, Stop};
use crate::findings::Findings;
use crate::target::HmbState;

/// Misses that take longer with host memory than without by more than this wait for something else as well.
const SLOWER: f64 = 1.1;

/// Whether the drive was busy with its map meanwhile: units that are completed in the background are there in part for
/// long, so that what is at hand is counted wrongly, and what reads take is not theirs alone.
pub(super) fn note(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Stop> {
    if findings
        .roles
        .map
        .arms
        .values()
        .all(|arm| arm.levels.is_none())
    {
        return Ok(());
    }
    if bench.can_switch_hmb() {
        enter(bench, Some(HmbState::On))?;
    }
    let late = parallelism::busy(bench)?.map(|share| {
        format!(
            "{:.0} % of reads are late though their map entries were just brought",
            100.0 * share
        )
    });
    findings.busy = late.or_else(|| slower_misses(findings));
    if findings.busy.is_some() {
        let is_told_by_units = |name: &str| {
            ["map_reach", "hit_", "miss"]
                .iter()
                .any(|of| name.starts_with(of))
        };
        findings
            .quantities
            .retain(|name, _| !is_told_by_units(name));
    }
    Ok(())
}

/// Misses that wait for more than their own translation page, as they do not without host memory: the rest of a unit is read
/// at the same time.
fn slower_misses(findings: &Findings) -> Option<String> {
    let slow_ns = |name: &str| {
        let levels = findings.roles.map.arms.get(name)?.levels?;
        levels.pages_below_ns.is_none().then_some(levels.slow_ns)
    };
    let (on, off) = (slow_ns("on")?, slow_ns("off")?);
    (on > SLOWER * off).then(|| {
        format!(
            "reads whose entry comes from flash take {:.1} us with host memory on and {:.1} us with it off",
            on / 1e3,
            off / 1e3
        )
    })
}
