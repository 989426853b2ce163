//! A seeded permutation of `0..n` in constant memory: where a randomly filled drive keeps what.

use crate::rng::mix;
use serde::{Deserialize, Serialize};

const ROUNDS: usize = 4;

/// Permutation of `0..n` by a Feistel network over two unequal digits.
///
/// A number is split into a digit below `a` and one below `b`, with `a * b` just above `n`; each
/// round adds a hash of one digit to the other. Results outside `0..n` are walked on from, which is
/// rare because `a * b - n < a + b`.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Permutation {
    n: u32,
    a: u32,
    b: u32,
    keys: [u32; ROUNDS],
}

impl Permutation {
    /// The permutation of `0..n` that belongs to `seed`.
    #[must_use]
    pub fn new(n: u32, seed: u64) -> Self {
        let a = (f64::from(n.max(1)).sqrt().ceil() as u32).max(1);
        let b = n.max(1).div_ceil(a);
        let mut key = seed;
        let keys = std::array::from_fn(|_| {
            key = mix(key);
            key as u32
        });
        Permutation { n, a, b, keys }
    }

    /// A digit below `bound` that depends on `value` and the round's key.
    #[inline]
    fn round(&self, value: u32, round: usize, bound: u32) -> u32 {
        let mut x = u64::from(value ^ self.keys[round]).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        x ^= x >> 29;
        x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (((x >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// Where `value` goes.
    #[inline]
    #[must_use]
    pub fn forward(&self, value: u32) -> u32 {
        debug_assert!(value < self.n);
        let mut value = value;
        loop {
            let mut high = value / self.b;
            let mut low = value - high * self.b;
            for round in 0..ROUNDS {
                if round % 2 == 0 {
                    high = add(high, self.round(low, round, self.a), self.a);
                } else {
                    low = add(low, self.round(high, round, self.b), self.b);
                }
            }
            value = high * self.b + low;
            if value < self.n {
                return value;
            }
        }
    }

    /// What goes to `value`.
    #[inline]
    #[must_use]
    pub fn inverse(&self, value: u32) -> u32 {
        debug_assert!(value < self.n);
        let mut value = value;
        loop {
            let mut high = value / self.b;
            let mut low = value - high * self.b;
            for round in (0..ROUNDS).rev() {
                if round % 2 == 0 {
                    high = add(high, self.a - self.round(low, round, self.a), self.a);
                } else {
                    low = add(low, self.b - self.round(high, round, self.b), self.b);
                }
            }
            value = high * self.b + low;
            if value < self.n {
                return value;
            }
        }
    }
}

/// Sum modulo `bound`, for terms at most `bound`. Does not overflow: `bound` is at most 2^17.
#[inline]
fn add(x: u32, y: u32, bound: u32) -> u32 {
    let sum = x + y;
    if sum >= bound { sum - bound } else { sum }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        #[test]
        fn inverse_undoes_forward(n in 1u32.., seed: u64, pick: u32) {
            let permutation = Permutation::new(n, seed);
            let value = pick % n;
            prop_assert_eq!(permutation.inverse(permutation.forward(value)), value);
        }
    }

    #[test]
    fn every_value_is_met_once() {
        for n in [1, 2, 3, 7, 64, 1000, 4097] {
            let permutation = Permutation::new(n, 5);
            let mut seen = vec![false; n as usize];
            for value in 0..n {
                seen[permutation.forward(value) as usize] = true;
            }
            assert!(seen.iter().all(|&hit| hit), "n = {n}");
        }
    }

    #[test]
    fn neighbours_are_torn_apart() {
        let permutation = Permutation::new(1 << 20, 1);
        let near = (0..10_000u32)
            .filter(|&v| permutation.forward(v).abs_diff(permutation.forward(v + 1)) < 1000)
            .count();
        // A random permutation puts about 0.2 % of neighbours within 1000 of a million.
        assert!(near < 60, "{near} of 10000 neighbours stayed near");
    }
}
