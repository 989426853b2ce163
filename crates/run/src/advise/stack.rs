//! LRU stack distances: one pass over a reference stream gives the hits of every cache size.
//!
//! The distance of a reference is the number of different keys used since the key's last use,
//! itself included; an LRU cache of `n` units hits exactly those with a distance of `n` at most
//! (Mattson et al., IBM Systems Journal 1970). [`Distances`] counts it with a Fenwick tree over time, in
//! O(log n) of the keys seen, however long the stream is. [`Sampled`] follows every key while there
//! are few, and beyond that a fixed number of them chosen by hash (SHARDS, Waldspurger et al.,
//! FAST 2015), so that its memory and time are bounded whatever the footprint.

use std::collections::BinaryHeap;

/// Exact distances of a stream of keys.
#[derive(Debug)]
pub struct Distances {
    /// By key: one more than the moment of its last use; 0 for never.
    last: Vec<u32>,
    /// Moments of uses, a key each: which key, to renumber them.
    key_at: Vec<u32>,
    /// Fenwick tree over moments: 1 where some key was last used. Place 0 is not used.
    tree: Vec<u32>,
    /// Moments used so far; those behind are free.
    now: u32,
    /// Keys with a last use.
    keys: u32,
}

/// Moments to begin with; a power of two.
const FIRST_MOMENTS: usize = 1024;
/// Stands in `key_at` for a moment that is no key's last use any more.
const NOBODY: u32 = u32::MAX;

impl Default for Distances {
    fn default() -> Self {
        Distances {
            last: Vec::new(),
            key_at: vec![NOBODY; FIRST_MOMENTS],
            tree: vec![0; FIRST_MOMENTS + 1],
            now: 0,
            keys: 0,
        }
    }
}

impl Distances {
    /// Uses a key. Returns its distance, 1 for the key used just before; `None` the first time.
    pub fn touch(&mut self, key: u32) -> Option<u32> {
        let distance = self.distance(key);
        self.forget(key);
        if self.now as usize == self.key_at.len() {
            self.renumber();
        }
        self.now += 1;
        self.last[key as usize] = self.now;
        self.key_at[self.now as usize - 1] = key;
        self.add(self.now, 1);
        self.keys += 1;
        distance
    }

    /// The distance a use of the key would have now; `None` if it was never used.
    #[must_use]
    pub fn distance(&self, key: u32) -> Option<u32> {
        let last = *self.last.get(key as usize).filter(|last| **last > 0)?;
        Some(self.keys - self.count_to(last) + 1)
    }

    /// Forgets a key as if it had never been used.
    pub fn forget(&mut self, key: u32) {
        if self.last.len() <= key as usize {
            self.last.resize(key as usize + 1, 0);
        }
        let last = std::mem::take(&mut self.last[key as usize]);
        if last > 0 {
            self.key_at[last as usize - 1] = NOBODY;
            self.add(last, u32::MAX);
            self.keys -= 1;
        }
    }

    /// Keys in use.
    #[cfg(test)]
    pub fn keys(&self) -> u32 {
        self.keys
    }

    /// Adds to the count of a moment; `u32::MAX` takes one away.
    fn add(&mut self, moment: u32, amount: u32) {
        let mut at = moment as usize;
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].wrapping_add(amount);
            at += at & at.wrapping_neg();
        }
    }

    /// Keys last used at this moment or before.
    fn count_to(&self, moment: u32) -> u32 {
        let mut at = moment as usize;
        let mut sum = 0;
        while at > 0 {
            sum += self.tree[at];
            at &= at - 1;
        }
        sum
    }

    /// Closes the gaps between moments, so that time never outgrows twice the number of keys.
    fn renumber(&mut self) {
        self.key_at.retain(|key| *key != NOBODY);
        self.now = self.key_at.len() as u32;
        for (moment, key) in self.key_at.iter().enumerate() {
            self.last[*key as usize] = moment as u32 + 1;
        }
        let moments = ((self.now as usize + 1) * 2)
            .next_power_of_two()
            .max(FIRST_MOMENTS);
        self.key_at.resize(moments, NOBODY);
        self.tree.clear();
        self.tree.resize(moments + 1, 0);
        for moment in 1..=moments {
            self.tree[moment] += u32::from(moment <= self.now as usize);
            let parent = moment + (moment & moment.wrapping_neg());
            if parent <= moments {
                self.tree[parent] += self.tree[moment];
            }
        }
    }
}

/// Keys followed at the same time: a terabyte in pages of 4 MiB is exact, and the standard error of
/// a ratio from so many samples is far below a percentage point (SHARDS: 0.01 with 2^13).
pub const KEYS_MAX: usize = 1 << 18;
/// The same where the stream is long: a touch of few keys is quick, and there are many to come.
pub const KEYS_MAX_LONG: usize = 1 << 14;
/// References from which on a stream is long: following every key would take minutes.
pub const LONG: u64 = 50_000_000;

/// Hashes are below this.
const HASH_END: u64 = 1 << 32;

/// Distances of as many keys as there are, or of a sample of them, with a histogram.
#[derive(Debug)]
pub struct Sampled {
    distances: Distances,
    /// Keys with a hash below this are followed.
    threshold: u64,
    /// Keys followed, the one with the largest hash first.
    followed: BinaryHeap<(u32, u32)>,
    keys_max: usize,
    /// References by estimated distance, in units.
    at: Vec<f64>,
    /// References to keys never used before.
    first: f64,
    /// References counted, followed or not.
    counted: u64,
}

impl Sampled {
    /// Follows at most `keys_max` keys.
    #[must_use]
    pub fn new(keys_max: usize) -> Self {
        assert!(keys_max > 0);
        Sampled {
            distances: Distances::default(),
            threshold: HASH_END,
            followed: BinaryHeap::new(),
            keys_max,
            at: Vec::new(),
            first: 0.0,
            counted: 0,
        }
    }

    /// Uses a key. Whether the use is `counted` in the histogram is the caller's: what a write
    /// brings in takes room but is no look-up.
    pub fn touch(&mut self, key: u32, counted: bool) {
        self.counted += u64::from(counted);
        let hash = hash(key);
        if u64::from(hash) >= self.threshold {
            return;
        }
        let distance = self.distances.touch(key);
        if counted {
            self.count(distance);
        }
        if distance.is_none() {
            self.followed.push((hash, key));
            self.keep_to_limit();
        }
    }

    fn count(&mut self, distance: Option<u32>) {
        let share = self.share();
        let Some(distance) = distance else {
            self.first += 1.0 / share;
            return;
        };
        // One of `share x n` sampled keys stands for n.
        let distance = ((f64::from(distance) / share) as usize).max(1);
        if self.at.len() <= distance {
            self.at.resize(distance + 1, 0.0);
        }
        self.at[distance] += 1.0 / share;
    }

    fn keep_to_limit(&mut self) {
        while self.followed.len() > self.keys_max {
            let (largest, _) = *self.followed.peek().expect("more than none are followed");
            self.threshold = u64::from(largest);
            while let Some(&(hash, key)) = self.followed.peek()
                && u64::from(hash) >= self.threshold
            {
                self.followed.pop();
                self.distances.forget(key);
            }
        }
    }

    /// Share of all keys that is followed; 1 while exact.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.threshold as f64 / HASH_END as f64
    }

    /// Estimated number of different keys.
    #[cfg(test)]
    pub fn keys(&self) -> u64 {
        (f64::from(self.distances.keys()) / self.share()).round() as u64
    }

    /// What was counted.
    #[must_use]
    pub fn histogram(&self) -> Histogram {
        // The sample holds more or fewer of the busy keys than its share. SHARDS-adj blames the
        // shortest distances for the difference; here the drive's own memory has taken those
        // away, so it is spread over all.
        let sampled = self.at.iter().sum::<f64>() + self.first;
        let scale = if self.threshold < HASH_END && sampled > 0.0 {
            self.counted as f64 / sampled
        } else {
            1.0
        };
        let mut hits = 0.0;
        let mut up_to = vec![0.0];
        for count in self.at.iter().skip(1) {
            hits += count * scale;
            up_to.push(hits);
        }
        Histogram {
            up_to,
            counted: self.counted,
        }
    }
}

/// Hits of every capacity.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// Hits of a cache of so many units.
    up_to: Vec<f64>,
    /// References.
    pub counted: u64,
}

impl Histogram {
    /// Hits of an LRU cache of `units`.
    #[must_use]
    pub fn hits(&self, units: u64) -> f64 {
        let at = (units as usize).min(self.up_to.len() - 1);
        self.up_to[at].clamp(0.0, self.counted as f64)
    }

    /// The smallest capacity with all the hits there can be, units.
    #[must_use]
    pub fn units_for_all(&self) -> u64 {
        let all = self.hits(u64::MAX);
        self.up_to.partition_point(|hits| *hits < all) as u64
    }
}

/// A mixer with good low and high bits (Steele et al., OOPSLA 2014, `SplitMix`).
fn hash(key: u32) -> u32 {
    let mut mixed = (u64::from(key) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((mixed ^ (mixed >> 31)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A list of keys, the last used first.
    #[derive(Default)]
    struct Naive(Vec<u32>);

    impl Naive {
        fn touch(&mut self, key: u32) -> Option<u32> {
            let at = self.0.iter().position(|known| *known == key);
            if let Some(at) = at {
                self.0.remove(at);
            }
            self.0.insert(0, key);
            at.map(|at| at as u32 + 1)
        }
    }

    /// Hits of an LRU cache of so many units, by simulation.
    fn hits(keys: &[u32], units: usize) -> usize {
        let mut held: Vec<u32> = Vec::new();
        let mut hits = 0;
        for &key in keys {
            if let Some(at) = held.iter().position(|known| *known == key) {
                held.remove(at);
                hits += 1;
            }
            held.insert(0, key);
            held.truncate(units);
        }
        hits
    }

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        #[test]
        fn distances_are_those_of_a_list(
            steps in prop::collection::vec((0u32..300, 0u32..20), 0..4000),
        ) {
            let mut distances = Distances::default();
            let mut naive = Naive::default();
            for (key, what) in steps {
                if what == 0 {
                    distances.forget(key);
                    naive.0.retain(|known| *known != key);
                } else {
                    prop_assert_eq!(distances.touch(key), naive.touch(key));
                }
                prop_assert_eq!(distances.keys() as usize, naive.0.len());
            }
        }

        #[test]
        fn the_histogram_has_the_hits_of_every_capacity(
            keys in prop::collection::vec(0u32..40, 0..600),
        ) {
            let mut sampled = Sampled::new(64);
            for &key in &keys {
                sampled.touch(key, true);
            }
            let histogram = sampled.histogram();
            for units in 0..50 {
                prop_assert_eq!(histogram.hits(units) as usize, hits(&keys, units as usize));
            }
            let all = histogram.units_for_all();
            prop_assert_eq!(histogram.hits(all), histogram.hits(u64::MAX));
            prop_assert!(all == 0 || histogram.hits(all - 1) < histogram.hits(all));
        }

        #[test]
        fn a_sample_keeps_its_bounds(
            keys in prop::collection::vec(0u32..5000, 0..3000),
            keys_max in 1usize..200,
        ) {
            let mut sampled = Sampled::new(keys_max);
            for &key in &keys {
                sampled.touch(key, true);
                prop_assert!(sampled.followed.len() <= keys_max);
                prop_assert_eq!(sampled.distances.keys() as usize, sampled.followed.len());
            }
            let histogram = sampled.histogram();
            let mut before = 0.0;
            for units in 0..6000 {
                let hits = histogram.hits(units);
                prop_assert!(hits <= keys.len() as f64 && hits >= before - 1e-6 * hits);
                before = hits;
            }
        }
    }

    proptest! {
        #![proptest_config(lodger_testing::config(24))]

        #[test]
        fn a_sample_is_near_the_naive_model(keys in 600u32..3000, seed in any::<u64>()) {
            let stream = skewed(8000, keys, seed);
            let mut sampled = Sampled::new(512);
            let mut naive = Naive::default();
            let mut distances: Vec<u32> = Vec::new();
            for &key in &stream {
                sampled.touch(key, true);
                distances.extend(naive.touch(key));
            }
            distances.sort_unstable();
            let histogram = sampled.histogram();
            for units in (0..3000).step_by(100) {
                let hits = distances.partition_point(|distance| *distance <= units);
                let error = histogram.hits(u64::from(units)) - hits as f64;
                // Three standard errors of a share of 512 samples.
                let bound = 3.0 * 0.5 / 512f64.sqrt() * stream.len() as f64;
                prop_assert!(error.abs() < bound, "{units} of {keys}: {error}");
            }
        }
    }

    /// A stream with a hot and a cold part: 80 % of the uses go to 20 % of the keys.
    fn skewed(count: usize, keys: u32, seed: u64) -> Vec<u32> {
        let mut rng = lodger_core::rng::Rng::new(seed);
        (0..count)
            .map(|_| {
                if rng.below(10) < 8 {
                    rng.below(keys / 5)
                } else {
                    rng.below(keys)
                }
            })
            .collect()
    }

    #[test]
    fn a_sample_of_a_large_footprint_is_within_two_points() {
        let keys = skewed(600_000, 60_000, 7);
        let mut exact = Sampled::new(usize::MAX);
        let mut sampled = Sampled::new(8192);
        for &key in &keys {
            exact.touch(key, true);
            sampled.touch(key, true);
        }
        assert!(sampled.share() < 0.2 && exact.share() == 1.0);
        let error = sampled.keys() as f64 / exact.keys() as f64 - 1.0;
        assert!(error.abs() < 0.05, "footprint off by {error}");
        let (exact, sampled) = (exact.histogram(), sampled.histogram());
        for units in (0..66_000).step_by(1000) {
            let error = (exact.hits(units) - sampled.hits(units)) / keys.len() as f64;
            assert!(error.abs() < 0.02, "{units} units: off by {error}");
        }
    }

    #[test]
    fn what_is_not_counted_takes_room_all_the_same() {
        let mut sampled = Sampled::new(16);
        sampled.touch(1, true);
        sampled.touch(2, false);
        sampled.touch(1, true);
        let histogram = sampled.histogram();
        assert_eq!(histogram.counted, 2);
        assert_eq!((histogram.hits(1), histogram.hits(2)), (0.0, 1.0));
    }
}
