//! Division by a number that stays the same, as a multiplication.

use serde::{Deserialize, Serialize};

/// A divisor of 32-bit numbers. Where a page lies takes half a dozen divisions, one after the other, and each
/// takes the processor three times as long as a multiplication.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
pub struct Divisor {
    by: u32,
    /// (2^64 - 1) / `by`. Times n + 1 it is below (n + 1) / `by` by at most 1 / `by` in units of 2^64, so that its
    /// whole part is n / `by` for every n and `by` below 2^32 (Robison, ARITH 2005).
    reciprocal: u64,
}

impl Divisor {
    /// # Panics
    /// By zero.
    #[must_use]
    pub const fn new(by: u32) -> Self {
        Divisor {
            by,
            reciprocal: u64::MAX / by as u64,
        }
    }

    /// Quotient and remainder.
    #[inline]
    #[must_use]
    pub fn divide(self, number: u32) -> (u32, u32) {
        let product = u128::from(self.reciprocal) * (u128::from(number) + 1);
        let quotient = (product >> 64) as u32;
        (quotient, number - quotient * self.by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(number: u32, by: u32) {
        let found = Divisor::new(by).divide(number);
        assert_eq!(found, (number / by, number % by), "{number} / {by}");
    }

    #[test]
    fn is_exact_at_the_edges() {
        for by in [
            1,
            2,
            3,
            7,
            1 << 16,
            (1 << 31) - 1,
            1 << 31,
            u32::MAX - 1,
            u32::MAX,
        ] {
            for number in [0, 1, by - 1, by, by.wrapping_add(1), u32::MAX - 1, u32::MAX] {
                check(number, by);
            }
        }
    }

    proptest! {
        #![proptest_config(lodger_testing::config(1024))]
        #[test]
        fn agrees_with_division(number: u32, wide in 1u32.., narrow in 1u32..100_000) {
            check(number, wide);
            check(number, narrow);
            check(number - number % narrow, narrow);
            check((number - number % narrow).saturating_sub(1), narrow);
        }
    }
}
