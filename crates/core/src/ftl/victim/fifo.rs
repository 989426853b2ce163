//! The superblock that was filled first: all are worn alike.

use super::{Candidate, Choice};

pub(super) fn choose<C: Iterator<Item = Candidate>>(choice: Choice<C>) -> Option<Candidate> {
    choice
        .candidates
        .min_by_key(|candidate| candidate.closed_at)
}
