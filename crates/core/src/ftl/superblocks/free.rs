//! Free superblocks of one mode, in the order in which they are opened.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;

/// A free superblock. Sorted by wear, where that decides which is opened, then in the order they were
/// freed.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Free {
    pub erases: u32,
    pub freed_at: u64,
    pub number: u32,
}

impl Free {
    /// One that was never opened: free from the start, in the order of the numbers.
    fn fresh(number: u32) -> Self {
        Free {
            erases: 0,
            freed_at: u64::from(number),
            number,
        }
    }
}

/// All free superblocks of a mode. A drive of terabytes has a million that were never opened: those are a range.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct FreeList {
    fresh: Range<u32>,
    others: BTreeSet<Free>,
}

impl FreeList {
    /// Superblocks of these numbers, none of which was ever opened.
    pub fn new(fresh: Range<u32>) -> Self {
        FreeList {
            fresh,
            others: BTreeSet::new(),
        }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.fresh.len() + self.others.len()
    }

    fn first_fresh(&self) -> Option<Free> {
        (!self.fresh.is_empty()).then(|| Free::fresh(self.fresh.start))
    }

    /// Takes the first of all or, for data that will lie still, the first of those with the most erases.
    pub fn take(&mut self, most_worn: bool) -> Option<u32> {
        let erases = match most_worn {
            true => self.others.last().map_or(0, |last| last.erases),
            false => 0,
        };
        let first_worn = Free {
            erases,
            freed_at: 0,
            number: 0,
        };
        let other = self.others.range(first_worn..).next().copied();
        let fresh = self.first_fresh().filter(|_| erases == 0);
        let next = other.into_iter().chain(fresh).min()?;
        if fresh == Some(next) {
            self.fresh.start += 1;
        } else {
            self.others.remove(&next);
        }
        Some(next.number)
    }

    pub fn insert(&mut self, free: Free) {
        self.others.insert(free);
    }

    /// It is not free any more, whatever its place.
    pub fn remove(&mut self, number: u32) {
        if !self.fresh.contains(&number) {
            self.others.retain(|free| free.number != number);
            return;
        }
        let before = self.fresh.start..number;
        self.others.extend(before.map(Free::fresh));
        self.fresh.start = number + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        #[test]
        fn agrees_with_one_sorted_set(
            count in 0u32..12,
            steps in prop::collection::vec((0u8..4, 0u32..3, 0u32..16), 0..60),
        ) {
            let mut list = FreeList::new(0..count);
            let mut model: BTreeSet<Free> = (0..count).map(Free::fresh).collect();
            for (at, (kind, erases, number)) in steps.into_iter().enumerate() {
                match kind {
                    0 | 1 => {
                        let most = model.last().map_or(0, |last| last.erases);
                        let wanted = if kind == 1 { most } else { 0 };
                        let first = model.iter().find(|free| free.erases >= wanted).copied();
                        prop_assert_eq!(list.take(kind == 1), first.map(|free| free.number));
                        first.map(|free| model.remove(&free));
                    }
                    2 => {
                        list.remove(number);
                        model.retain(|free| free.number != number);
                    }
                    _ if model.iter().all(|free| free.number != number) => {
                        let freed_at = u64::from(count) + at as u64;
                        let free = Free { erases, freed_at, number };
                        list.insert(free);
                        model.insert(free);
                    }
                    _ => {}
                }
                prop_assert_eq!(list.len(), model.len());
            }
        }
    }
}
