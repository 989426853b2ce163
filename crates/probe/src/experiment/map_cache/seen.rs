//! What the reads of a walk took: those that missed, those that hit, and those that were slow a second time.

use super::super::levels::Levels;
use super::super::samples::Samples;
use super::super::walk::Walk;
use crate::stats;

/// Fewer slow reads have no median that tells.
const SLOW_MIN: usize = 6;
/// The same where pages are of several kinds, and slow reads as well.
const SLOW_OF_KINDS_MIN: usize = 12;

/// Latencies of misses. Where pages are of several kinds, of those that were picked.
pub(super) fn misses(walk: &Walk, samples: &Samples, levels: &Levels) -> Vec<f64> {
    let mut misses: Vec<f64> = match levels.pages_below_ns {
        Some(_) => walk.seen.iter().map(|seen| seen.1).collect(),
        None => samples.far.clone(),
    };
    misses.retain(|ns| *ns > levels.threshold_ns);
    misses
}

/// Latencies of hits on what was visited longest ago: those that no small memory in front answers.
pub(super) fn far_hits(walk: &Walk, levels: &Levels) -> Option<Vec<f64>> {
    let hits = walk
        .seen
        .iter()
        .filter(|seen| seen.1 <= levels.threshold_ns);
    let mut hits: Vec<(u64, f64)> = hits.copied().collect();
    hits.sort_unstable_by_key(|seen| seen.0);
    let hits: Vec<f64> = hits[hits.len() / 3..].iter().map(|seen| seen.1).collect();
    (hits.len() >= 12).then_some(hits)
}

/// What slow reads of places that had been read before take, ns.
pub(super) fn slow_again(walk: &Walk, levels: &Levels) -> Option<f64> {
    let seen = walk.seen.iter().map(|seen| seen.1);
    let slow: Vec<f64> = seen.filter(|ns| *ns > levels.threshold_ns).collect();
    let least = match levels.pages_below_ns {
        None => SLOW_MIN,
        Some(_) => SLOW_OF_KINDS_MIN,
    };
    (slow.len() >= least).then(|| stats::median(&slow))
}
