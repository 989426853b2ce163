//! A random order over the blocks of a range that needs no map of the blocks done.
//!
//! fio keeps a bit for every block to visit each once. The same is had in constant memory from a
//! keyed bijection: the i-th block visited is `permutation(i)`.

use rand_xoshiro::rand_core::Rng;

/// A random bijection on `0..len`.
#[derive(Clone, Debug)]
pub(super) struct Permutation {
    len: u64,
    /// One less than the smallest power of two that is at least `len`.
    mask: u64,
    shift: u32,
    offset: u64,
    multipliers: [u64; 3],
}

impl Permutation {
    /// A permutation of `len` elements (at least 1) drawn from `rng`.
    pub(super) fn new(len: u64, rng: &mut impl Rng) -> Self {
        assert!(len > 0);
        let mask = u64::MAX.checked_shr((len - 1).leading_zeros()).unwrap_or(0);
        let bits = 64 - mask.leading_zeros();
        Self {
            len,
            mask,
            shift: bits.div_ceil(2).max(1),
            offset: rng.next_u64(),
            multipliers: std::array::from_fn(|_| rng.next_u64() | 1),
        }
    }

    /// Number of elements.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// The image of `index`, which must be below `len`.
    #[inline]
    pub(super) fn at(&self, index: u64) -> u64 {
        debug_assert!(index < self.len);
        let mut x = index;
        // Each step is a bijection on `0..=mask`. Walking the cycle until it is back inside
        // `0..len` keeps it one on `0..len`; more than half of the values lie inside.
        loop {
            x = x.wrapping_add(self.offset) & self.mask;
            for multiplier in self.multipliers {
                x ^= x >> self.shift;
                x = x.wrapping_mul(multiplier) & self.mask;
            }
            x ^= x >> self.shift;
            if x < self.len {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    fn rng(seed: u64) -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(seed)
    }

    #[test]
    fn visits_every_element_once() {
        for len in (1..70).chain([127, 128, 129, 1000, 4096, 4097, 65_535, 100_003]) {
            let permutation = Permutation::new(len, &mut rng(len));
            let mut seen = vec![false; len as usize];
            for i in 0..len {
                let x = permutation.at(i) as usize;
                assert!(!seen[x], "{x} twice in {len}");
                seen[x] = true;
            }
        }
    }

    #[test]
    fn the_largest_drive_stays_in_range() {
        for len in [1 << 54, (1 << 54) - 3, (1 << 53) + 1] {
            let permutation = Permutation::new(len, &mut rng(len));
            for i in (0..1000).chain(len - 1000..len) {
                assert!(permutation.at(i) < len);
            }
        }
    }

    /// Successive blocks must look independent: no bias towards a neighbourhood, a half, or a
    /// distance.
    #[test]
    fn order_looks_random() {
        let len = 1_000_000u64;
        for seed in 0..20 {
            let permutation = Permutation::new(len, &mut rng(seed));
            let draws: Vec<u64> = (0..20_000).map(|i| permutation.at(i)).collect();
            let mean = draws.iter().sum::<u64>() as f64 / draws.len() as f64 / len as f64;
            assert!((mean - 0.5).abs() < 0.015, "mean {mean}");
            let mut cells = [0u32; 64];
            for pair in draws.windows(2) {
                cells[(pair[0] * 8 / len * 8 + pair[1] * 8 / len) as usize] += 1;
            }
            let expected = 19_999.0 / 64.0;
            let chi2: f64 = cells
                .iter()
                .map(|&c| (f64::from(c) - expected).powi(2) / expected)
                .sum();
            // 63 degrees of freedom: mean 63, standard deviation 11.
            assert!(chi2 < 63.0 + 6.0 * 11.2, "chi2 {chi2} seed {seed}");
            let mut steps = std::collections::HashMap::new();
            for pair in draws.windows(2) {
                *steps.entry(pair[1].wrapping_sub(pair[0])).or_insert(0u32) += 1;
            }
            assert!(*steps.values().max().unwrap() < 12, "a favourite distance");
        }
    }
}
