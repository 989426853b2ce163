//! Which superblock garbage collection empties next. A policy is a file here with a function `choose`, its
//! `mod` line and its arm below, and its line (variant, word, meaning) in `spec/policies.rs`.

mod cost_benefit;
mod d_choices;
mod fifo;
mod greedy;

use super::superblocks::Block;
use crate::ids::Superblock;
use crate::rng::Rng;
use crate::spec::GcPolicy;
use serde::{Deserialize, Serialize};

/// What a policy may know of a superblock it could choose.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
pub(super) struct Candidate {
    superblock: Superblock,
    /// Slots whose data is current.
    valid: u32,
    /// When it was closed, in allocation order.
    closed_at: u64,
}

impl Candidate {
    pub(super) fn new(superblock: Superblock, block: &Block) -> Self {
        Candidate {
            superblock,
            valid: block.valid,
            closed_at: block.closed_at,
        }
    }

    /// The emptier comes first; of equals the older, so that the order never depends on the numbers.
    fn emptiest_first(&self) -> (u32, u64) {
        (self.valid, self.closed_at)
    }
}

/// The superblocks to choose from.
pub(super) struct Choice<C> {
    /// Closed ones of one mode, by number.
    pub(super) candidates: C,
    /// Slots of a superblock in that mode.
    pub(super) usable_slots: u32,
    /// When the next one will be closed, in allocation order.
    pub(super) now: u64,
}

/// The superblock that a policy takes; `None` if there is none to choose from.
pub(super) fn choose<C: Iterator<Item = Candidate>>(
    policy: GcPolicy,
    choice: Choice<C>,
    rng: &mut Rng,
) -> Option<Superblock> {
    let chosen = match policy {
        GcPolicy::Greedy => greedy::choose(choice),
        GcPolicy::Fifo => fifo::choose(choice),
        GcPolicy::CostBenefit => cost_benefit::choose(choice),
        GcPolicy::DChoices(choices) => d_choices::choose(choice, choices, rng),
    };
    chosen.map(|candidate| candidate.superblock)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Superblocks of 100 slots: valid slots and when each was closed.
    fn chosen(policy: GcPolicy, blocks: &[(u32, u64)], seed: u64) -> Option<u32> {
        let candidates = blocks
            .iter()
            .zip(0u32..)
            .map(|(&(valid, closed_at), number)| {
                let superblock = Superblock(number);
                Candidate {
                    superblock,
                    valid,
                    closed_at,
                }
            });
        let choice = Choice {
            candidates,
            usable_slots: 100,
            now: 10,
        };
        choose(policy, choice, &mut Rng::new(seed)).map(|superblock| superblock.0)
    }

    #[test]
    fn each_policy_chooses_as_its_name_says() {
        // The emptiest, an older one nearly as empty, the oldest one nearly full.
        let blocks = [(10, 9), (15, 2), (95, 1)];
        assert_eq!(chosen(GcPolicy::Greedy, &blocks, 1), Some(0));
        assert_eq!(chosen(GcPolicy::CostBenefit, &blocks, 1), Some(1));
        assert_eq!(chosen(GcPolicy::Fifo, &blocks, 1), Some(2));
        // Of as many picks as this all are compared.
        assert_eq!(chosen(GcPolicy::DChoices(1000), &blocks, 1), Some(0));
    }

    #[test]
    fn one_choice_is_any_and_more_choices_find_emptier_ones() {
        let blocks: Vec<(u32, u64)> = (0..100).map(|number| (number, u64::from(number))).collect();
        let mean = |choices| {
            let sum: u32 = (0..400)
                .map(|seed| chosen(GcPolicy::DChoices(choices), &blocks, seed).unwrap())
                .sum();
            f64::from(sum) / 400.0
        };
        // Of d uniform picks the least is at 1 / (d + 1) of the range.
        assert!((mean(1) - 49.5).abs() < 6.0);
        assert!((mean(4) - 19.6).abs() < 4.0);
    }

    #[test]
    fn of_equals_the_older_is_chosen_and_of_none_none() {
        let policies = GcPolicy::WORDS.iter().map(|entry| entry.word);
        for policy in policies.map(|word| GcPolicy::from_word(word, 1000).unwrap()) {
            assert_eq!(chosen(policy, &[(50, 5), (50, 3), (50, 4)], 1), Some(1));
            assert_eq!(chosen(policy, &[], 1), None);
        }
    }
}
