//! Does the data of writes go through host memory? By what single writes take with it and without it.

use crate::findings::Findings;
use crate::stats::Estimate;
use statrs::distribution::{ContinuousCDF, Normal};

/// A ratio of single writes beyond this, up or down, means that host memory is in their way: data that
/// crosses the link once more takes longer by a third and more.
const THROUGH: f64 = 1.1;
/// Within this, they take no notice of it, if that they do may be chance.
const PAST: f64 = 1.07;
/// Intervals that must lie beside 1 for that to be no chance, as a multiple of their own width to that side: three standard errors.
const SURELY: f64 = 1.5;
/// The fastest link of a drive, PCIe 5.0 x4 with 128 B to a packet, bytes/s: what crosses it once more takes so long at least.
const LINK_MAX: f64 = 15.0e9;
/// Data moves on as it comes, in pieces of so many bytes at most: a second way takes longer by the last of them.
const PIECE_BYTES: u64 = 32 << 10;

/// How sure it is that a ratio lies above a bound, its interval taken for that of a normal distribution.
fn above(ratio: &Estimate, bound: f64) -> f64 {
    let half = (ratio.estimate - ratio.low).max(1e-6);
    let spread = half / crate::stats::z();
    Normal::standard().cdf((ratio.estimate - bound) / spread)
}

/// The same below.
fn below(ratio: &Estimate, bound: f64) -> f64 {
    let mirrored = Estimate::new(-ratio.estimate, -ratio.high, -ratio.low);
    above(&mirrored, -bound)
}

/// Whether the data of writes goes through host memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Path {
    Through,
    Past,
    /// They take another time, yet one that a second way over the slowest of links would exceed by far.
    Slightly,
    Unclear,
}

/// How far the ratios bear that out.
pub(super) fn path_fit(findings: &Findings, path: Path) -> f64 {
    let mut ratios = findings.roles.write_buffer.write_path.values();
    match path {
        Path::Through => ratios.next_back().map_or(1.0, |ratio| {
            above(ratio, THROUGH).max(below(ratio, 1.0 / THROUGH))
        }),
        Path::Past => ratios
            .map(|ratio| below(ratio, THROUGH).min(above(ratio, 1.0 / THROUGH)))
            .fold(1.0, f64::min),
        Path::Unclear | Path::Slightly => 1.0,
    }
}

pub(super) fn path(findings: &Findings) -> Path {
    let beyond = |ratio: &Estimate| ratio.low > THROUGH || ratio.high < 1.0 / THROUGH;
    let within = |ratio: &Estimate| ratio.high < PAST && ratio.low > 1.0 / PAST;
    // A single page is short beside what else a command takes: larger writes must agree.
    match findings.roles.write_buffer.write_path.last_key_value() {
        Some((_, ratio)) if beyond(ratio) => Path::Through,
        Some((_, ratio)) if is_no_chance(ratio) => Path::Slightly,
        Some(_) if findings.roles.write_buffer.write_path.values().all(within) => Path::Past,
        _ => Path::Unclear,
    }
}

/// Whether a ratio lies beside 1 for another reason than chance.
fn is_no_chance(ratio: &Estimate) -> bool {
    let slower = ratio.estimate - SURELY * (ratio.estimate - ratio.low) > 1.0;
    slower || ratio.estimate + SURELY * (ratio.high - ratio.estimate) < 1.0
}

/// Whether more looks would tell more: writes of so many bytes may go through host memory, as fast links are, and do not surely.
pub(crate) fn is_open(ratio: &Estimate, bytes: u64, without_ns: f64) -> bool {
    let again_ns = bytes.min(PIECE_BYTES) as f64 / LINK_MAX * 1e9;
    let is_through = ratio.low > THROUGH || ratio.high < 1.0 / THROUGH;
    !is_through && ratio.high > 1.0 + again_ns / without_ns.max(1.0)
}
