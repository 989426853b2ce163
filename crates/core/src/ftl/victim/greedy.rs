//! The emptiest superblock: least to move now.

use super::{Candidate, Choice};

pub(super) fn choose<C: Iterator<Item = Candidate>>(choice: Choice<C>) -> Option<Candidate> {
    choice.candidates.min_by_key(Candidate::emptiest_first)
}
