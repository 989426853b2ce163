//! Does the data of writes go through host memory? By what single writes take with it and without it.

use crate::findings::Findings;
use crate::stats::Estimate;
use statrs::distribution::{ContinuousCDF, Normal};

/// A ratio of single writes beyond this, up or down, means that host memory is in their way: data that
/// crosses the link once more takes longer by a third and more.
const THROUGH: f64 = 1.1;
/// Within this, they take no notice of it, if that they do may be chance.
const PAST: f64 = 1.07;
/// How far a ratio must lie above 1 for that to be no chance, as a multiple of its interval's width to that side: three standard errors.
const SURELY: f64 = 1.5;
/// The fastest link of a drive, PCIe 5.0 x4 with 128 B to a packet, bytes/s: what crosses it once more takes so long at least.
const LINK_MAX: f64 = 15.0e9;
/// Data moves on as it comes, in pieces of so many bytes at most: a second way takes longer by the last of them.
const PIECE_BYTES: u64 = 32 << 10;

/// What single writes of one size take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WritePath {
    /// With host memory on, as a multiple of that with it off.
    pub ratio: Estimate,
    /// With it off, ns.
    pub off_ns: f64,
}

impl WritePath {
    /// Whether the ratio may be that of a second way over the fastest link: its interval does not end nearer to 1 than to what such
    /// a way makes of it. (That is no strict least: where it is 1.05 by this reckoning, 1.04 to 1.05 was measured.)
    fn may_be_twice(&self, bytes: u64) -> bool {
        let again_ns = bytes.min(PIECE_BYTES) as f64 / LINK_MAX * 1e9;
        self.ratio.high > 1.0 + again_ns / self.off_ns.max(1.0) / 2.0
    }

    /// Host memory is in their way.
    fn is_through(&self) -> bool {
        self.ratio.low > THROUGH || self.ratio.high < 1.0 / THROUGH
    }

    /// They take longer for another reason than chance, by as much as a second way over a fast link may take, and by no more.
    fn is_slightly_longer(&self, bytes: u64) -> bool {
        let ratio = &self.ratio;
        let is_no_chance = ratio.estimate - SURELY * (ratio.estimate - ratio.low) > 1.0;
        is_no_chance && self.may_be_twice(bytes) && ratio.high < THROUGH
    }

    /// Whether more looks would tell more: writes of so many bytes may go through host memory, as fast links are, and do not surely.
    pub(crate) fn is_open(&self, bytes: u64) -> bool {
        !self.is_through() && self.may_be_twice(bytes)
    }
}

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
    /// They take longer by a few per cent: as much as a second way over a fast link may take.
    Slightly,
    Unclear,
}

/// How far the ratios bear that out.
pub(super) fn path_fit(findings: &Findings, path: Path) -> f64 {
    let writes = findings.roles.write_buffer.write_path.values();
    let mut ratios = writes.map(|writes| &writes.ratio);
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
    let sizes = &findings.roles.write_buffer.write_path;
    let within = |writes: &WritePath| writes.ratio.high < PAST && writes.ratio.low > 1.0 / PAST;
    // A single page is short beside what else a command takes: larger writes must agree.
    match sizes.last_key_value() {
        Some((_, writes)) if writes.is_through() => Path::Through,
        Some((bytes, writes)) if writes.is_slightly_longer(*bytes) => Path::Slightly,
        Some(_) if sizes.values().all(within) => Path::Past,
        _ => Path::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes of 128 KiB in 42 us, of which a second way over the fastest link takes 2.2: 1.05 times as long.
    fn of(estimate: f64, low: f64, high: f64) -> Path {
        let mut findings = Findings::default();
        let writes = WritePath {
            ratio: Estimate::new(estimate, low, high),
            off_ns: 42_000.0,
        };
        let sizes = &mut findings.roles.write_buffer.write_path;
        sizes.insert(128 << 10, writes);
        path(&findings)
    }

    #[test]
    fn what_a_second_way_over_a_fast_link_takes_is_neither_past_nor_through() {
        assert_eq!(of(1.05, 1.04, 1.06), Path::Slightly);
        // A way that took a little less than was reckoned: seed 0 of an rc100-480, "device", 0.997.
        assert_eq!(of(1.044, 1.04, 1.05), Path::Slightly);
        // Less than that, however surely it is more than nothing, and writes that take less.
        assert_eq!(of(1.005, 1.003, 1.011), Path::Past);
        assert_eq!(of(0.995, 0.993, 0.997), Path::Past);
        // More, yet not surely as much as host memory that is reached entry by entry: another run may tell.
        assert_eq!(of(1.12, 1.09, 1.15), Path::Unclear);
        assert_eq!(of(1.4, 1.3, 1.5), Path::Through);
    }
}
