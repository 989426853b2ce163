//! Map cache by amount of host memory: what does one byte of it reach?

use super::enter;
use super::map_cache::{REACH_SERIES, SAME, count_units};
use super::walk::Walk;
use crate::bench::{Bench, Stop};
use crate::findings::{Findings, Held};
use crate::stats::Estimate;
use crate::target::{HmbState, HmbSwitch};

/// A reach that is surely more than the drive's own memory, as a multiple of that.
const OWN: f64 = 2.0;

/// Keeps what an amount of host memory reaches.
fn note_reach(findings: &mut Findings, given: u64, reach: Estimate) {
    let name = if given.is_multiple_of(1 << 20) {
        format!("map_reach_{}MiB", given >> 20)
    } else {
        format!("map_reach_{}KiB", given >> 10)
    };
    findings.quantity(&name, "bytes", reach);
    findings
        .roles
        .map
        .reach_of_grant
        .push((given, Held::UpTo(reach)));
}

/// Reach with several amounts of host memory: what one byte of it reaches.
pub(super) fn run(
    bench: &mut Bench<'_>,
    findings: &mut Findings,
    walk: Option<Walk>,
) -> Result<(), Stop> {
    let HmbSwitch::Sizes {
        granted_bytes,
        min_bytes,
        ..
    } = bench.description().hmb
    else {
        return Ok(());
    };
    let (Some(on), Some(off)) = (
        findings.roles.map.arms.get("on"),
        findings.roles.map.arms.get("off"),
    ) else {
        return Ok(());
    };
    let (Some(levels), Some(walk)) = (on.levels, walk) else {
        return Ok(());
    };
    // In places as large as a unit of host memory, a unit of the drive's own memory counts as one at most.
    let unit = walk.place_bytes as f64;
    let by_itself = off.reach_bytes.amount().min(off.units.amount() * unit);
    // Where all is held, smaller amounts tell what of it is needed.
    let most = match on.reach_bytes {
        Held::UpTo(reach) => reach.estimate,
        _ => bench.capacity() as f64,
    };
    if most < SAME * by_itself {
        return Ok(());
    }
    if let Held::UpTo(reach) = on.reach_bytes {
        note_reach(findings, granted_bytes, reach);
    }
    for bytes in amounts(granted_bytes, min_bytes) {
        enter(bench, Some(HmbState::Bytes(bytes)))?;
        let own = walk.own;
        let mut walk = Walk::new(bench, walk.place_bytes, walk.pace);
        walk.own = own;
        // No more than proportion leads to expect, or what the drive's own memory adds.
        let share = bytes as f64 / granted_bytes as f64;
        let units = (share * most + by_itself.min(most)) / unit;
        walk.fit = (units / 16.0) as u64;
        walk.renewed = Some(HmbState::Bytes(bytes));
        let range = ((0.2 * units) as u64, (1.05 * units) as u64 + 2);
        let series = format!("map cache, host memory {} KiB", bytes >> 10);
        let found = count_units(bench, &levels, &mut walk, range, &series)?.0;
        if let Held::UpTo(found) = found
            && found.estimate * unit > OWN * by_itself
        {
            let found = found.scaled(unit);
            let point = (bytes as f64, found.estimate);
            bench.note(REACH_SERIES.0, REACH_SERIES.1, REACH_SERIES.2, point);
            note_reach(findings, bytes, found);
        }
    }
    enter(bench, Some(HmbState::On))
}

/// Amounts of host memory to try below what is given: powers of two for drives that use no other amounts;
/// parts in between for those that keep other things there as well, so that the first bytes reach nothing.
fn amounts(granted_bytes: u64, min_bytes: u64) -> Vec<u64> {
    let power = 1u64 << granted_bytes.max(1).ilog2();
    let mut sizes = vec![
        power,
        power / 2,
        power / 4,
        power / 4 * 3,
        granted_bytes / 8 * 7,
    ];
    sizes.retain_mut(|bytes| {
        *bytes = *bytes / 4096 * 4096;
        *bytes >= min_bytes.max(4096) && *bytes < granted_bytes
    });
    sizes.sort_unstable();
    sizes.dedup();
    sizes.reverse();
    sizes
}
