//! Robust statistics: medians instead of means, because latencies have outliers; intervals beside
//! every estimate.

use statrs::distribution::{ContinuousCDF, Normal};
use statrs::statistics::{Data, OrderStatistics};

/// What intervals claim to cover.
pub const CONFIDENCE: f64 = 0.95;

/// Median; 0 of nothing.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// Quantile `q` of 0 to 1; 0 of nothing.
#[must_use]
pub fn quantile(values: &[f64], q: f64) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    Data::new(values.to_vec()).quantile(q)
}

/// Median absolute deviation, scaled to the standard deviation of normal data.
#[must_use]
pub fn spread(values: &[f64]) -> f64 {
    let centre = median(values);
    let distances: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    1.4826 * median(&distances)
}

/// The shortest interval that holds half of the values and one: as long as fewer than half are strays,
/// on whichever side, it lies where the others are (least median of squares, Rousseeuw 1984).
#[must_use]
pub fn shortest_half(values: &[f64]) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let half = sorted.len() / 2;
    let ends = sorted.iter().zip(sorted.iter().skip(half));
    ends.map(|(low, high)| (*low, *high))
        .min_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0)))
        .unwrap_or((0.0, 0.0))
}

/// Two-sided quantile of the standard normal distribution for [`CONFIDENCE`].
pub(crate) fn z() -> f64 {
    Normal::standard().inverse_cdf(f64::midpoint(1.0, CONFIDENCE))
}

/// An estimate with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Best guess.
    pub estimate: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end; infinite where there is only a lower bound.
    pub high: f64,
}

impl Estimate {
    /// An estimate between bounds.
    #[must_use]
    pub const fn new(estimate: f64, low: f64, high: f64) -> Self {
        Estimate {
            estimate,
            low,
            high,
        }
    }

    /// A value known to be at least this.
    #[must_use]
    pub const fn at_least(low: f64) -> Self {
        Estimate {
            estimate: low,
            low,
            high: f64::INFINITY,
        }
    }

    /// The same in another unit.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Estimate {
            estimate: self.estimate * factor,
            low: self.low * factor,
            high: self.high * factor,
        }
    }

    /// The same with ends that lie `factor` times as far away; nothing below 0 where it was not.
    #[must_use]
    pub fn wider(self, factor: f64) -> Self {
        let low = self.estimate - factor * (self.estimate - self.low);
        Estimate {
            low: if self.low >= 0.0 { low.max(0.0) } else { low },
            high: self.estimate + factor * (self.high - self.estimate),
            ..self
        }
    }

    /// Whether the two intervals have anything in common.
    #[must_use]
    pub fn overlaps(&self, other: &Estimate) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// Median with the interval that order statistics give: no assumption about the distribution.
#[must_use]
pub fn median_interval(values: &[f64]) -> Estimate {
    let n = values.len() as f64;
    let half = z() * n.sqrt() / (2.0 * n.max(1.0));
    Estimate {
        estimate: median(values),
        low: quantile(values, (0.5 - half).max(0.0)),
        high: quantile(values, (0.5 + half).min(1.0)),
    }
}

/// By how many standard deviations of chance values of the first sample are larger than those of the second (Mann and
/// Whitney 1947): ranks do not ask how values are distributed, and some strays move them little.
#[must_use]
pub fn rank_z(larger: &[f64], smaller: &[f64]) -> f64 {
    let (n, m) = (larger.len() as f64, smaller.len() as f64);
    let wins = |a: &f64| -> f64 {
        let of = smaller.iter().map(|b| match a.total_cmp(b) {
            std::cmp::Ordering::Greater => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Less => 0.0,
        });
        of.sum()
    };
    let won: f64 = larger.iter().map(wins).sum();
    let spread = (n * m * (n + m + 1.0) / 12.0).sqrt();
    (won - n * m / 2.0) / spread.max(1.0)
}

/// Share of `hits` in `n` trials with Wilson's score interval.
#[must_use]
pub fn share(hits: usize, n: usize) -> Estimate {
    if n == 0 {
        return Estimate::new(0.5, 0.0, 1.0);
    }
    let (n, p, z) = (n as f64, hits as f64 / n as f64, z());
    let centre = (p + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    Estimate::new(p, (centre - half).max(0.0), (centre + half).min(1.0))
}

/// A series as two straight lines that meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hinge {
    /// Index at which they meet.
    pub at: usize,
    /// Slope of the first, per index.
    pub before: f64,
    /// Slope of the second.
    pub after: f64,
    /// Sum of squared deviations, as a share of what one straight line leaves.
    pub left: f64,
}

/// The two lines that leave the least sum of squared deviations, each over a sixteenth of the series at least;
/// none where it is too short.
#[must_use]
pub fn hinge(series: &[f64]) -> Option<Hinge> {
    let n = series.len();
    let edge = (n / 16).max(3);
    if n < 4 * edge {
        return None;
    }
    // In deviations from the straight line through the ends, which lose no digits.
    let slope = (series[n - 1] - series[0]) / (n - 1) as f64;
    let values: Vec<f64> = (0..n)
        .map(|i| series[i] - slope * i as f64 - series[0])
        .collect();
    let line = left_by(&values, None);
    let fits = (edge..n - edge).map(|at| (at, left_by(&values, Some(at))));
    let (at, best) = fits.min_by(|a, b| a.1.left.total_cmp(&b.1.left))?;
    Some(Hinge {
        at,
        before: slope + best.slope,
        after: slope + best.slope + best.more,
        left: best.left / line.left.max(f64::MIN_POSITIVE),
    })
}

struct Fit {
    slope: f64,
    more: f64,
    left: f64,
}

/// Least squares of a line, or of one that changes its slope at an index.
fn left_by(values: &[f64], at: Option<usize>) -> Fit {
    let n = values.len() as f64;
    let bent = |i: usize| at.map_or(0.0, |at| i.saturating_sub(at) as f64);
    let mean = |of: &dyn Fn(usize) -> f64| (0..values.len()).map(of).sum::<f64>() / n;
    let (mx, mz, my) = (mean(&|i| i as f64), mean(&bent), mean(&|i| values[i]));
    let (mut xx, mut xz, mut zz, mut xy, mut zy, mut yy) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
    for (i, value) in values.iter().enumerate() {
        let (x, z, y) = (i as f64 - mx, bent(i) - mz, value - my);
        (xx, xz, zz) = (xx + x * x, xz + x * z, zz + z * z);
        (xy, zy, yy) = (xy + x * y, zy + z * y, yy + y * y);
    }
    let determinant = xx * zz - xz * xz;
    let (slope, more) = if at.is_some() && determinant > 0.0 {
        (
            (xy * zz - zy * xz) / determinant,
            (zy * xx - xy * xz) / determinant,
        )
    } else {
        (xy / xx, 0.0)
    };
    Fit {
        slope,
        more,
        left: (yy - slope * xy - more * zy).max(0.0),
    }
}

/// Where the level of a series changes: the segmentation with the least sum of squared deviations
/// plus `penalty` per change, found exactly by dynamic programming (optimal partitioning, Jackson
/// et al., 2005). Quadratic in the length, which is a few hundred here. Returns the first index of
/// every segment but the first.
#[must_use]
pub fn change_points(series: &[f64], penalty: f64) -> Vec<usize> {
    let n = series.len();
    let mut sums = vec![(0.0, 0.0)];
    for value in series {
        let (sum, squares) = sums[sums.len() - 1];
        sums.push((sum + value, squares + value * value));
    }
    let cost = |from: usize, to: usize| {
        let sum = sums[to].0 - sums[from].0;
        (sums[to].1 - sums[from].1 - sum * sum / (to - from) as f64).max(0.0)
    };
    let mut best = vec![(-penalty, 0usize)];
    for to in 1..=n {
        let candidates = (0..to).map(|from| (best[from].0 + cost(from, to) + penalty, from));
        let least = candidates.fold((f64::INFINITY, 0), |a, b| if b.0 < a.0 { b } else { a });
        best.push(least);
    }
    let mut points = Vec::new();
    let mut at = n;
    while at > 0 {
        at = best[at].1;
        if at > 0 {
            points.push(at);
        }
    }
    points.reverse();
    points
}

/// Slope of the line through the points, as the median of the slopes of all pairs (Theil, Sen).
#[must_use]
pub fn slope(points: &[(f64, f64)]) -> f64 {
    let mut slopes = Vec::new();
    for (i, a) in points.iter().enumerate() {
        for b in &points[i + 1..] {
            if b.0 > a.0 {
                slopes.push((b.1 - a.1) / (b.0 - a.0));
            }
        }
    }
    median(&slopes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every segmentation there is.
    fn exhaustive(series: &[f64], penalty: f64) -> f64 {
        let n = series.len();
        let deviation = |part: &[f64]| {
            let mean = part.iter().sum::<f64>() / part.len() as f64;
            part.iter().map(|v| (v - mean).powi(2)).sum::<f64>()
        };
        (0..1u32 << (n - 1))
            .map(|cuts| {
                let mut total = 0.0;
                let mut from = 0;
                for at in 1..=n {
                    if at == n || cuts >> (at - 1) & 1 == 1 {
                        total += deviation(&series[from..at]);
                        from = at;
                    }
                }
                total + penalty * f64::from(cuts.count_ones())
            })
            .fold(f64::INFINITY, f64::min)
    }

    fn cost_of(series: &[f64], points: &[usize], penalty: f64) -> f64 {
        let mut ends: Vec<usize> = points.to_vec();
        ends.push(series.len());
        let mut from = 0;
        let mut total = penalty * points.len() as f64;
        for end in ends {
            let part = &series[from..end];
            let mean = part.iter().sum::<f64>() / part.len() as f64;
            total += part.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
            from = end;
        }
        total
    }

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        #[test]
        fn change_points_are_the_best_there_are(
            series in prop::collection::vec(-10.0..10.0f64, 1..10),
            penalty in 0.1..50.0f64,
        ) {
            let points = change_points(&series, penalty);
            let found = cost_of(&series, &points, penalty);
            prop_assert!((found - exhaustive(&series, penalty)).abs() < 1e-6);
        }

        #[test]
        fn an_outlier_does_not_move_the_median_far(values in prop::collection::vec(90.0..110.0f64, 9..40)) {
            let mut with = values.clone();
            with.push(1e9);
            prop_assert!((median(&with) - median(&values)).abs() < 20.0);
        }
    }

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        #[test]
        fn the_shortest_half_is_where_most_are(
            good in prop::collection::vec(90.0..110.0f64, 10..20),
            strays in prop::collection::vec(-1e6..1e6f64, 0..9),
        ) {
            let all: Vec<f64> = good.iter().chain(&strays).copied().collect();
            let (low, high) = shortest_half(&all);
            prop_assert!(high - low <= 20.0);
            let inside = all.iter().filter(|v| (low..=high).contains(*v)).count();
            prop_assert!(inside > all.len() / 2);
            // It has a good value in it, for there are too few others.
            prop_assert!(good.iter().any(|v| (low..=high).contains(v)));
        }
    }

    #[test]
    fn a_bend_is_found_where_it_is() {
        let noise = |i: usize| f64::from((i as u32 * 7919) % 13) - 6.0;
        let bent = |i: usize| 10.0 * i as f64 + 3.0 * i.saturating_sub(150) as f64 + noise(i);
        let series: Vec<f64> = (0..400).map(bent).collect();
        let found = hinge(&series).unwrap();
        assert!(found.at.abs_diff(150) < 4, "{found:?}");
        assert!((found.before - 10.0).abs() < 0.1 && (found.after - 13.0).abs() < 0.1);
        assert!(found.left < 0.01, "{found:?}");
        let straight: Vec<f64> = (0..400).map(|i| 10.0 * i as f64 + noise(i)).collect();
        assert!(hinge(&straight).unwrap().left > 0.8);
        assert_eq!(hinge(&series[..8]), None);
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        let series: Vec<f64> = (0..60).map(|i| if i < 37 { 1.0 } else { 2.0 }).collect();
        assert_eq!(change_points(&series, 0.5), [37]);
        assert_eq!(change_points(&[1.0; 40], 0.5), [0usize; 0]);
    }

    #[test]
    fn wilson_covers_what_it_claims() {
        // Exact coverage for n = 200 and a true share of 10 %.
        let (n, p) = (200usize, 0.1f64);
        let mut probability = (1.0 - p).powi(n as i32);
        let mut covered = 0.0;
        for hits in 0..=n {
            let interval = share(hits, n);
            if interval.low <= p && p <= interval.high {
                covered += probability;
            }
            probability *= (n - hits) as f64 / (hits + 1) as f64 * p / (1.0 - p);
        }
        assert!((0.93..0.98).contains(&covered), "{covered}");
    }
}
