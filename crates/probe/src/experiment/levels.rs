//! What is a hit and what a miss? Two levels of latency, and how well single reads tell them apart.

use crate::stats;

/// Levels nearer to each other than this are one level.
const RATIO_MIN: f64 = 1.18;
/// Hits that noise holds up are no slower than their median times this.
const STRAYS: f64 = 1.14;
/// The fastest misses of several kinds are at least so much slower than the slowest hits.
const RATIO_KIND: f64 = 1.1;

/// Two levels of latency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Levels {
    /// Median of the fast level, ns.
    pub fast_ns: f64,
    /// Median of the slow level, ns.
    pub slow_ns: f64,
    /// What is faster than this is surely not of the slow level, ns. Where pages differ, what a miss takes
    /// depends on the translation page that it reads, and lies well below the median now and then.
    pub least_slow_ns: f64,
    /// Slower reads count as slow, ns.
    pub threshold_ns: f64,
    /// Share of the fast level's reads above the threshold.
    pub false_slow: f64,
    /// Share of the slow level's reads below it.
    pub false_fast: f64,
    /// Only of pages that are read faster than this while their entry is at hand, ns: pages that share cells
    /// differ by more than a miss adds.
    pub pages_below_ns: Option<f64>,
    /// Reads that push a page out of a read cache, where pages are picked and read again.
    pub kept_pages: u64,
}

impl Levels {
    /// Levels of two samples, if they can be told apart: medians far enough from each other, and
    /// few reads on the wrong side.
    #[must_use]
    pub fn of(fast: &[f64], slow: &[f64]) -> Option<Self> {
        let (fast_ns, slow_ns) = (stats::median(fast), stats::median(slow));
        let threshold_ns = (fast_ns * slow_ns).sqrt();
        let wrong = |values: &[f64], slow: bool| {
            let count = values.iter().filter(|v| (**v > threshold_ns) == slow);
            count.count() as f64 / values.len().max(1) as f64
        };
        let levels = Levels {
            fast_ns,
            slow_ns,
            least_slow_ns: slow_ns,
            threshold_ns,
            false_slow: wrong(fast, true),
            false_fast: wrong(slow, false),
            pages_below_ns: None,
            kept_pages: 0,
        };
        let told_apart =
            slow_ns > RATIO_MIN * fast_ns && levels.false_slow < 0.1 && levels.false_fast < 0.25;
        told_apart.then_some(levels)
    }

    /// The same of pages of one kind, of which each was read with its entry at hand (not slower than
    /// `below_ns`) and without. Misses are of several kinds, for so are translation pages: what tells is
    /// where the fastest of them begin, not where their median lies.
    #[must_use]
    pub fn of_kind(warm: &[f64], cold: &[f64], below_ns: f64) -> Option<Self> {
        let beyond = below_ns.max(STRAYS * stats::median(warm));
        let slow: Vec<f64> = cold.iter().copied().filter(|ns| *ns > beyond).collect();
        // A few outliers are no level.
        if slow.len() * 20 < cold.len() {
            return None;
        }
        let levels = Levels::of(warm, &slow)?;
        let least_slow_ns = stats::quantile(&slow, 0.05);
        let threshold_ns = (beyond * least_slow_ns).sqrt();
        let above = |values: &[f64]| values.iter().filter(|v| **v > threshold_ns).count() as f64;
        // Misses as fast as hits were left out of the slow ones. Noise acts on both alike: the median miss, with what
        // hits differ from theirs by.
        let noise = |ns: &&f64| levels.slow_ns * **ns / levels.fast_ns <= threshold_ns;
        let left_out = warm.iter().filter(noise).count() as f64 / warm.len().max(1) as f64;
        let found = Levels {
            least_slow_ns,
            threshold_ns,
            false_slow: above(warm) / warm.len().max(1) as f64,
            false_fast: left_out.max(1.0 - above(&slow) / slow.len().max(1) as f64),
            pages_below_ns: Some(below_ns),
            ..levels
        };
        // Kinds of misses that begin where hits end tell nothing by a threshold.
        (least_slow_ns > RATIO_KIND * beyond).then_some(found)
    }

    /// Share of slow reads in a sample, wrong classifications taken off.
    #[must_use]
    pub fn slow_share(&self, latencies: &[f64]) -> f64 {
        let above = latencies.iter().filter(|v| **v > self.threshold_ns).count();
        let share = above as f64 / latencies.len().max(1) as f64;
        let power = 1.0 - self.false_slow - self.false_fast;
        ((share - self.false_slow) / power).clamp(0.0, 1.0)
    }

    /// Share of reads that are told wrongly, of that level of which more are.
    #[must_use]
    pub fn overlap(&self) -> f64 {
        self.false_slow.max(self.false_fast)
    }

    /// Whether a sample has more slow reads than chance and noise explain.
    #[must_use]
    pub fn is_beyond(&self, latencies: &[f64]) -> bool {
        let n = latencies.len().max(1) as f64;
        let chance = (self.false_slow.max(0.005) / n).sqrt();
        self.slow_share(latencies) > 0.025 + 3.0 * chance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seed 95056: hits take 89 us, and misses that much and what the kind of their translation page takes.
    /// With the threshold between the medians, the fastest kind of misses counted as hits.
    #[test]
    fn a_miss_that_reads_a_fast_translation_page_is_a_miss() {
        let jitter = |i: usize| f64::from(i as u32 % 9) - 4.0;
        let warm: Vec<f64> = (0..400).map(|i| 89_000.0 + 800.0 * jitter(i)).collect();
        let kinds = [143_500.0, 175_000.0, 222_000.0, 292_000.0];
        let cold: Vec<f64> = (0..400).map(|i| kinds[i % 4] + 900.0 * jitter(i)).collect();
        let levels = Levels::of_kind(&warm, &cold, 99_000.0).expect("two levels");
        assert!(
            (105_000.0..135_000.0).contains(&levels.threshold_ns),
            "{levels:?}"
        );
        assert_eq!((levels.false_slow, levels.false_fast), (0.0, 0.0));
        assert!(levels.least_slow_ns < 150_000.0, "{levels:?}");
    }

    #[test]
    fn misses_that_begin_where_hits_end_are_not_told_by_a_threshold() {
        let warm: Vec<f64> = (0..400).map(|i| 89.0 + f64::from(i % 9)).collect();
        let cold: Vec<f64> = (0..400).map(|i| 89.0 + f64::from(i % 200)).collect();
        assert_eq!(Levels::of_kind(&warm, &cold, 99.0), None);
    }
}
