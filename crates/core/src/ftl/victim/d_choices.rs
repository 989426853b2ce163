//! The emptiest of `ftl.gc_choices` superblocks picked at random.

use super::{Candidate, Choice};
use crate::rng::Rng;

pub(super) fn choose<C: Iterator<Item = Candidate>>(
    choice: Choice<C>,
    choices: u32,
    rng: &mut Rng,
) -> Option<Candidate> {
    let closed: Vec<Candidate> = choice.candidates.collect();
    let picks = if closed.is_empty() { 0 } else { choices.max(1) };
    (0..picks)
        .map(|_| closed[rng.below(closed.len() as u32) as usize])
        .min_by_key(Candidate::emptiest_first)
}
