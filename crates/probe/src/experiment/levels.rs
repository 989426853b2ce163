//! What is a hit and what a miss? Two levels of latency, and how well single reads tell them apart.

use crate::stats;

/// Levels nearer to each other than this are one level.
const RATIO_MIN: f64 = 1.18;

/// Two levels of latency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Levels {
    /// Median of the fast level, ns.
    pub fast_ns: f64,
    /// Median of the slow level, ns.
    pub slow_ns: f64,
    /// Slower reads count as slow, ns.
    pub threshold_ns: f64,
    /// Share of the fast level's reads above the threshold.
    pub false_slow: f64,
    /// Share of the slow level's reads below it.
    pub false_fast: f64,
    /// Only of pages that are read faster than this while their entry is at hand, ns: pages that share cells
    /// differ by more than a miss adds.
    pub pages_below_ns: Option<f64>,
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
            threshold_ns,
            false_slow: wrong(fast, true),
            false_fast: wrong(slow, false),
            pages_below_ns: None,
        };
        let told_apart =
            slow_ns > RATIO_MIN * fast_ns && levels.false_slow < 0.1 && levels.false_fast < 0.25;
        told_apart.then_some(levels)
    }

    /// Share of slow reads in a sample, wrong classifications taken off.
    #[must_use]
    pub fn slow_share(&self, latencies: &[f64]) -> f64 {
        let above = latencies.iter().filter(|v| **v > self.threshold_ns).count();
        let share = above as f64 / latencies.len().max(1) as f64;
        let power = 1.0 - self.false_slow - self.false_fast;
        ((share - self.false_slow) / power).clamp(0.0, 1.0)
    }

    /// Whether a sample has more slow reads than chance and noise explain.
    #[must_use]
    pub fn is_beyond(&self, latencies: &[f64]) -> bool {
        let n = latencies.len().max(1) as f64;
        let chance = (self.false_slow.max(0.005) / n).sqrt();
        self.slow_share(latencies) > 0.025 + 3.0 * chance
    }
}
