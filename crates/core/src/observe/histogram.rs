//! Latency histogram with fio's own buckets, so that percentiles and `bins` mean what they mean
//! there: 64 buckets per power of two, relative error below 1 % (fio's `stat.h`, FIO_IO_U_PLAT_BITS). fio's end at 17 s, and
//! whatever takes longer is 17 s there; a simulated drive may well keep a request for minutes, and these end at ten hours.

use serde::{Deserialize, Serialize};

const BITS: u32 = 6;
const PER_GROUP: u64 = 1 << BITS;
const GROUPS: usize = 40;

/// Histogram of durations in nanoseconds.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    sum_ns: f64,
    squares: f64,
    min_ns: u64,
    max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram {
            counts: vec![0; GROUPS * PER_GROUP as usize],
            total: 0,
            sum_ns: 0.0,
            squares: 0.0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }
}

impl Histogram {
    /// The bucket that a duration falls into.
    #[inline]
    #[must_use]
    pub fn bucket(ns: u64) -> usize {
        if ns < 2 * PER_GROUP {
            return ns as usize;
        }
        let msb = 63 - ns.leading_zeros();
        let error_bits = msb - BITS;
        let base = u64::from(error_bits + 1) << BITS;
        let offset = (PER_GROUP - 1) & (ns >> error_bits);
        ((base + offset) as usize).min(GROUPS * PER_GROUP as usize - 1)
    }

    /// The middle of a bucket: the value fio reports for everything in it.
    fn middle(bucket: usize) -> u64 {
        let bucket = bucket as u64;
        if bucket < 2 * PER_GROUP {
            return bucket;
        }
        let error_bits = (bucket >> BITS) - 1;
        let base = 1u64 << (error_bits + u64::from(BITS));
        let k = bucket % PER_GROUP;
        // fio: base + ((k + 0.5) * (1 << error_bits)), cut to an integer.
        base + (k << error_bits) + (1 << error_bits) / 2
    }

    /// Adds a duration.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.counts[Self::bucket(ns)] += 1;
        self.total += 1;
        let value = ns as f64;
        self.sum_ns += value;
        self.squares += value * value;
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds another histogram's durations.
    pub fn merge(&mut self, other: &Histogram) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
        self.sum_ns += other.sum_ns;
        self.squares += other.squares;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.total
    }

    /// Smallest, ns; 0 when empty.
    #[must_use]
    pub fn min_ns(&self) -> u64 {
        if self.total == 0 { 0 } else { self.min_ns }
    }

    /// Largest value, ns.
    #[must_use]
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Mean, ns; 0 when empty.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        if self.total == 0 {
            0.0
        } else {
            self.sum_ns / self.total as f64
        }
    }

    /// Standard deviation of the sample, ns; 0 below two durations.
    #[must_use]
    pub fn stddev_ns(&self) -> f64 {
        if self.total < 2 {
            return 0.0;
        }
        let n = self.total as f64;
        ((self.squares - self.sum_ns * self.sum_ns / n) / (n - 1.0))
            .max(0.0)
            .sqrt()
    }

    /// Value below which `percent` per cent of durations lie, as fio computes it, ns; 0 when empty.
    #[must_use]
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        let wanted = percent / 100.0 * self.total as f64;
        let mut sum = 0;
        for (bucket, &count) in self.counts.iter().enumerate() {
            sum += count;
            if count > 0 && sum as f64 >= wanted {
                // The middle of a bucket may lie beyond all that fell into it.
                return Self::middle(bucket).clamp(self.min_ns, self.max_ns);
            }
        }
        0
    }

    /// Non-empty buckets: the value reported for a bucket (ns) and how many durations it holds.
    pub fn bins(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(bucket, &count)| (Self::middle(bucket), count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        #[test]
        fn a_bucket_is_within_one_per_cent(ns in prop_oneof![0u64..(1 << 33), 0u64..(1 << 45)]) {
            let middle = Histogram::middle(Histogram::bucket(ns));
            prop_assert!(middle.abs_diff(ns) as f64 <= ns as f64 * 0.01 + 0.5, "{ns} -> {middle}");
        }

        #[test]
        fn percentiles_agree_with_sorting(mut values in prop::collection::vec(0u64..1_000_000, 1..500), percent in 0.1f64..100.0) {
            let mut histogram = Histogram::default();
            for &value in &values {
                histogram.record(value);
            }
            values.sort_unstable();
            let rank = ((percent / 100.0 * values.len() as f64).ceil() as usize).max(1) - 1;
            let exact = values[rank] as f64;
            let reported = histogram.percentile_ns(percent) as f64;
            prop_assert!((reported - exact).abs() <= exact * 0.01 + 0.5, "{reported} against {exact}");
        }
    }

    #[test]
    fn no_percentile_is_above_the_maximum_or_below_the_minimum() {
        let mut histogram = Histogram::default();
        histogram.record(1_000_001);
        histogram.record(1_000_001);
        for percent in [0.1, 1.0, 50.0, 99.99, 100.0] {
            assert_eq!(histogram.percentile_ns(percent), 1_000_001);
        }
        // The first of a bucket, whose middle is above it.
        let first = 1 << 21;
        assert!(Histogram::middle(Histogram::bucket(first)) > first);
        histogram.record(first);
        assert_eq!(histogram.percentile_ns(100.0), first);
        assert_eq!(
            histogram.percentile_ns(50.0),
            1_000_001.max(Histogram::middle(Histogram::bucket(1_000_001)))
        );
    }

    /// fio's last bucket held all of them: a p99 of 17.1 s beside a mean of 28 s met a goal of 18 s.
    #[test]
    fn what_takes_longer_than_fio_can_tell_is_told() {
        let mut histogram = Histogram::default();
        (18..=40).for_each(|s| histogram.record(s * 1_000_000_000));
        let p50_s = histogram.percentile_ns(50.0) as f64 / 1e9;
        assert!((28.5..29.5).contains(&p50_s), "{p50_s}");
        assert!(histogram.percentile_ns(1.0) < histogram.percentile_ns(99.0));
    }

    #[test]
    fn an_empty_histogram_reports_zeros() {
        let histogram = Histogram::default();
        assert_eq!(histogram.percentile_ns(99.0), 0);
        assert_eq!((histogram.min_ns(), histogram.max_ns()), (0, 0));
    }
}
