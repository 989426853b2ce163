//! Does the drive read ahead after one read, and how far?
//!
//! Then every read of a pair has the flash busy with what follows it, and pairs wait for that as well: stripes look longer than they
//! are, by what is read ahead, and dies fewer. So pages are brought to hand by a read of what follows them: that is kept, and
//! nothing is left to be read ahead when they are read themselves.

use super::beside;
use crate::bench::{Bench, Stop};
use crate::stats;
use std::time::Duration;

/// Looks at each distance.
const LOOKS: u64 = 40;
/// What was read ahead takes less than this share of what was not.
const QUICK: f64 = 0.9;
/// Farthest that is followed: pairs nearer than some times that tell nothing.
pub(super) const FARTHEST: u64 = 8;

/// Reads that it takes at most.
pub(super) const READS: u64 = 6 * 3 * LOOKS;

/// Pages that are read ahead of a single one; more than [`FARTHEST`] where it is that or more.
pub(super) fn pages(bench: &mut Bench<'_>, room: u64) -> Result<u64, Stop> {
    // Pages before it come with it where whole pages of flash are kept, and not where it reads ahead.
    let before = next_to(bench, room, -1)?;
    let is_quick = |after: &[f64]| {
        let middle = stats::median(after);
        middle < stats::quantile(&before, 0.1) && middle < QUICK * stats::median(&before)
    };
    let mut distance = 1;
    while distance <= FARTHEST && is_quick(&next_to(bench, room, distance as i64)?) {
        distance *= 2;
    }
    // Between half of that and that it ends.
    Ok(distance - 1)
}

/// What pages at a distance from one that was just read take, ns.
fn next_to(bench: &mut Bench<'_>, room: u64, distance: i64) -> Result<Vec<f64>, Stop> {
    let page = bench.page();
    let mut times = Vec::new();
    for _ in 0..LOOKS {
        let at = 2 * super::BESIDE + bench.below(room);
        let next = at.saturating_add_signed(distance);
        for first in [beside(at, next), at] {
            bench.read_pages([first * page], 1, &mut Vec::new())?;
            bench.idle(Duration::from_millis(1))?;
        }
        bench.read_pages([next * page], 1, &mut times)?;
    }
    Ok(times)
}
