//! Values drawn from captured distributions, with integers only.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Draws in proportion to weights.
#[derive(Clone, Debug)]
pub struct Weighted<T> {
    values: Vec<T>,
    /// Sums of the weights up to each value.
    sums: Vec<u64>,
}

impl<T: Copy> Weighted<T> {
    /// `None` if all weights are 0, or their sum is too large for 64 bits.
    pub fn new(pairs: impl IntoIterator<Item = (T, u64)>) -> Option<Self> {
        let (mut values, mut sums, mut sum) = (Vec::new(), Vec::new(), 0u64);
        for (value, weight) in pairs {
            if weight > 0 {
                sum = sum.checked_add(weight)?;
                values.push(value);
                sums.push(sum);
            }
        }
        (sum > 0).then_some(Self { values, sums })
    }

    /// One value.
    pub fn draw(&self, dice: &mut Dice) -> T {
        let all = self.sums[self.sums.len() - 1];
        let at = dice.below(all);
        self.values[self.sums.partition_point(|&sum| sum <= at)]
    }
}

/// Random numbers by seed.
#[derive(Clone, Debug)]
pub struct Dice(Xoshiro256PlusPlus);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A sequence of its own; this one goes on 2^128 numbers later, so that the two never meet.
    fn split_off(&mut self) -> Self {
        let own = self.clone();
        self.0.jump();
        own
    }

    /// A number below `bound`, which is not 0 (bias below `bound` / 2^64).
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

/// A sequence for each thing that is left to chance. Ways of committing write the journal at different times, and it is
/// the same transactions that they are compared by.
#[derive(Clone, Debug)]
pub struct Chance {
    pub transactions: Dice,
    pub journal: Dice,
    pub locks: Dice,
}

impl Chance {
    pub fn new(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        Self {
            transactions: dice.split_off(),
            journal: dice.split_off(),
            locks: dice.split_off(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_the_weights() {
        let weighted = Weighted::new([('a', 1), ('b', 0), ('c', 3)]).expect("weights");
        let mut dice = Dice::new(5);
        let drawn: Vec<char> = (0..4000).map(|_| weighted.draw(&mut dice)).collect();
        let share = |c| drawn.iter().filter(|&&d| d == c).count();
        assert_eq!(share('b'), 0);
        assert!((900..1100).contains(&share('a')), "{}", share('a'));
        assert!(Weighted::new([('a', 0)]).is_none());
        assert!(Weighted::new([('a', u64::MAX), ('b', 1)]).is_none());
    }
}
