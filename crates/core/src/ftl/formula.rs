//! Where the data of a preconditioned drive lies, as a formula: nothing is stored until it changes.
//!
//! *Sequential*: the whole drive written once in order; superblocks full, one after the other.
//!
//! *Random*: the state uniform random writes lead to. Superblocks then hold valid data by age: in
//! first-in, first-out garbage collection (and in greedy collection of large blocks, which behaves the same
//! under uniform traffic) a slot survives each further write with the same probability, so the
//! valid share falls as exp(-c x) with age x (Desnoyers, SYSTOR 2012, section 3); c follows from
//! the mean, which is the share of user data. Which address lies where is a seeded permutation, and
//! valid slots are spread evenly over their superblock.

use super::permutation::Permutation;
use crate::ids::{Lpn, Ppn};
use crate::rng::mix;
use serde::{Deserialize, Serialize};

/// Initial contents of a drive.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Nothing was ever written.
    None,
    /// Written once, in order.
    Sequential,
    /// In the steady state of uniform random writes.
    Random,
}

/// Where the initial data lies.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Formula {
    user_slots: u32,
    superblock_slots: u32,
    /// How it is spread; in order from the first slot on where it is not.
    spread: Option<Spread>,
}

/// The steady state of random writes.
#[derive(Clone, Serialize, Deserialize, Debug)]
struct Spread {
    /// Valid slots in all superblocks before superblock j; the last entry is all of them.
    starts: Vec<u32>,
    /// For each 2^`hint_shift` slots, the superblock where they start.
    hints: Vec<u32>,
    hint_shift: u32,
    order: Permutation,
}

impl Formula {
    /// The whole drive written once in order.
    #[must_use]
    pub fn sequential(user_slots: u32, superblock_slots: u32) -> Self {
        Formula {
            user_slots,
            superblock_slots,
            spread: None,
        }
    }

    /// The steady state of uniform random writes over `superblocks` superblocks, oldest first.
    ///
    /// # Panics
    /// If the data does not fit.
    #[must_use]
    pub fn random(user_slots: u32, superblock_slots: u32, superblocks: u32, seed: u64) -> Self {
        let share = f64::from(user_slots) / (f64::from(superblocks) * f64::from(superblock_slots));
        assert!(share <= 1.0, "user data does not fit");
        let decay = decay_for_mean(share);
        // Share of all valid slots in superblocks younger than age x; age 1 is the oldest.
        let younger = |x: f64| {
            if decay < 1e-9 {
                x
            } else {
                (1.0 - (-decay * x).exp()) / (1.0 - (-decay).exp())
            }
        };
        let mut starts = Vec::with_capacity(superblocks as usize + 1);
        let mut last = 0u32;
        for j in 0..=superblocks {
            let age = 1.0 - f64::from(j) / f64::from(superblocks);
            let before = ((1.0 - younger(age)) * f64::from(user_slots)).round() as u32;
            // Later superblocks must have room for the rest, this one for its own.
            let rest = u64::from(superblocks - j) * u64::from(superblock_slots);
            let least = u64::from(user_slots).saturating_sub(rest) as u32;
            let most = last.saturating_add(if j == 0 { 0 } else { superblock_slots });
            last = before.clamp(least.max(last), most.min(user_slots));
            starts.push(last);
        }
        assert_eq!(last, user_slots, "every slot has a place");
        let order = Permutation::new(user_slots, mix(seed));
        Formula {
            user_slots,
            superblock_slots,
            spread: Some(Spread::new(superblock_slots, starts, order)),
        }
    }

    /// Superblocks in use; they are numbered from 0.
    #[must_use]
    pub fn superblocks(&self) -> u32 {
        match &self.spread {
            Some(spread) => spread.starts.len() as u32 - 1,
            None => self.user_slots.div_ceil(self.superblock_slots),
        }
    }

    /// Valid slots of superblock `j`.
    #[must_use]
    pub fn valid_slots(&self, j: u32) -> u32 {
        match &self.spread {
            Some(spread) => spread.starts[j as usize + 1] - spread.starts[j as usize],
            None => (self.user_slots - j * self.superblock_slots).min(self.superblock_slots),
        }
    }

    /// Where a logical page lies.
    #[inline]
    #[must_use]
    pub fn locate(&self, lpn: Lpn) -> Ppn {
        debug_assert!(lpn.0 < self.user_slots);
        match &self.spread {
            Some(spread) => spread.slot_of_rank(spread.order.forward(lpn.0), self.superblock_slots),
            None => Ppn(lpn.0),
        }
    }

    /// Whether a logical page lies there.
    #[inline]
    #[must_use]
    pub fn holds(&self, ppn: Ppn) -> bool {
        match &self.spread {
            Some(spread) => spread.rank(ppn, self.superblock_slots).is_some(),
            None => ppn.0 < self.user_slots,
        }
    }

    /// Which logical page lies there, if any.
    #[inline]
    #[must_use]
    pub fn owner(&self, ppn: Ppn) -> Option<Lpn> {
        match &self.spread {
            Some(spread) => {
                let rank = spread.rank(ppn, self.superblock_slots)?;
                Some(Lpn(spread.order.inverse(rank)))
            }
            None => (ppn.0 < self.user_slots).then_some(Lpn(ppn.0)),
        }
    }
}

impl Spread {
    fn new(superblock_slots: u32, starts: Vec<u32>, order: Permutation) -> Self {
        let user_slots = starts[starts.len() - 1];
        let hint_shift = superblock_slots.ilog2().saturating_sub(1);
        let mut hints = Vec::with_capacity((user_slots >> hint_shift) as usize + 1);
        let mut j = 0;
        for bucket in 0..=(user_slots >> hint_shift) {
            while starts[j + 1] <= bucket << hint_shift && j + 2 < starts.len() {
                j += 1;
            }
            hints.push(j as u32);
        }
        Spread {
            starts,
            hints,
            hint_shift,
            order,
        }
    }

    /// Where the page of a rank lies.
    #[inline(never)]
    fn slot_of_rank(&self, rank: u32, superblock_slots: u32) -> Ppn {
        let mut j = self.hints[(rank >> self.hint_shift) as usize] as usize;
        while self.starts[j + 1] <= rank {
            j += 1;
        }
        let start = self.starts[j];
        let valid = self.starts[j + 1] - start;
        let slot = u64::from(rank - start) * u64::from(superblock_slots) / u64::from(valid);
        Ppn(j as u32 * superblock_slots + slot as u32)
    }

    /// Rank of the page that lies there, if any.
    #[inline]
    fn rank(&self, ppn: Ppn, superblock_slots: u32) -> Option<u32> {
        let j = (ppn.0 / superblock_slots) as usize;
        let (&start, &end) = (self.starts.get(j)?, self.starts.get(j + 1)?);
        let slots = u64::from(superblock_slots);
        let slot = u64::from(ppn.0 - j as u32 * superblock_slots);
        let valid = u64::from(end - start);
        let k = (slot * valid).div_ceil(slots);
        if k >= valid || k * slots / valid != slot {
            return None;
        }
        Some(start + k as u32)
    }
}

/// The c for which (1 - e^-c) / c, the mean of e^(-c x) over ages 0 to 1, equals `mean`.
fn decay_for_mean(mean: f64) -> f64 {
    let (mut low, mut high) = (0.0f64, 64.0f64);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        let value = if middle < 1e-9 {
            1.0
        } else {
            (1.0 - (-middle).exp()) / middle
        };
        if value > mean {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(formula: &Formula, user_slots: u32, superblock_slots: u32) {
        let total = formula.superblocks() * superblock_slots;
        let mut owned = 0;
        for ppn in 0..total {
            if let Some(lpn) = formula.owner(Ppn(ppn)) {
                assert_eq!(formula.locate(lpn), Ppn(ppn));
                owned += 1;
            }
        }
        assert_eq!(owned, user_slots);
        let valid: u32 = (0..formula.superblocks())
            .map(|j| formula.valid_slots(j))
            .sum();
        assert_eq!(valid, user_slots);
    }

    proptest! {
        #![proptest_config(lodger_testing::config(64))]
        #[test]
        fn locate_and_owner_are_inverse(user in 1u32..4000, slots in 2u32..200, spare in 0u32..9, seed: u64) {
            check(&Formula::sequential(user, slots), user, slots);
            check(&Formula::random(user, slots, user.div_ceil(slots) + spare, seed), user, slots);
        }
    }

    #[test]
    fn older_superblocks_of_a_random_drive_hold_less() {
        let formula = Formula::random(80_000, 1000, 100, 1);
        assert!(formula.valid_slots(0) < formula.valid_slots(50));
        assert!(formula.valid_slots(50) < formula.valid_slots(99));
    }
}
