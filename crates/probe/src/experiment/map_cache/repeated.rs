//! Does the same memory reach as far each time it is looked at? Host memory off and on again, in turn.
//!
//! What a policy makes of its memory differs from one time to the next: ARC gives what was read once more room or less, and of
//! few units that are replaced at random a round now and then meets none that has gone. One look at each state takes such a
//! difference for host memory's.

use super::super::{enter, own::Own};
use super::{Before, Kinds, SAME, measure};
use crate::bench::{Bench, Stop};
use crate::findings::{Findings, Held};
use crate::infer::map::MapArm;
use crate::target::HmbState;

/// Looks at each state in all. Where one state alone reaches one of two distances by the toss of a coin, three pairs in a row say
/// the same by chance in 1 of 64 drives; each pair more takes half a minute to two.
const LOOKS: usize = 3;
/// No policy was seen to make more than 2.3 times as much of the same memory in one look as in another: what host memory reaches
/// beyond so many times the drive's own is no chance. Chosen, with room for what was not seen.
const APART: f64 = 4.0;

/// Looks again, as far as both states may be the same, and until one pair says so.
pub(super) fn run(bench: &mut Bench<'_>, findings: &mut Findings) -> Result<(), Stop> {
    findings.roles.map.again.clear();
    let arm = |name: &str| findings.roles.map.arms.get(name).copied();
    let (Some(on), Some(off)) = (arm("on"), arm("off")) else {
        return Ok(());
    };
    if !is_near(&on, &off) {
        return Ok(());
    }
    let levels = on.levels.or(off.levels);
    for look in 2..=LOOKS {
        let mut reach = |state: HmbState, name: &str| {
            enter(bench, Some(state))?;
            let is_on = state == HmbState::On;
            let before = Before {
                levels,
                kinds: Kinds::Now,
                own: Own::of(&off).filter(|_| is_on),
            };
            let series = format!("map cache, host memory {name}, look {look}");
            let (arm, _) = measure(bench, before, Some(state).filter(|_| is_on), &series)?;
            // A look that shows no levels shows no edge either.
            Ok::<Option<Held>, Stop>(arm.levels.map(|_| arm.reach_bytes))
        };
        let (off, on) = (reach(HmbState::Off, "off")?, reach(HmbState::On, "on")?);
        findings.roles.map.again.push((on, off));
        let is_farther = on
            .zip(off)
            .is_some_and(|(on, off)| on.amount() >= SAME * off.amount());
        if !is_farther {
            return Ok(());
        }
    }
    Ok(())
}

/// Whether host memory reaches farther, yet not by more than one policy may make of the same memory.
fn is_near(on: &MapArm, off: &MapArm) -> bool {
    if on.levels.is_none() && off.levels.is_none() {
        return false;
    }
    let (with, without) = (on.reach_bytes.most(), off.reach_bytes.most());
    with > SAME * without && with < APART * without
}
