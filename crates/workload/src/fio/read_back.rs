//! What `verify` reads back: the writes of a pass, in fio's order.

use std::collections::{BTreeMap, VecDeque};

/// Blocks written and not read back yet.
#[derive(Clone, Debug)]
pub(super) enum Written {
    /// With a random map no block is written twice: in the order they were written.
    Once(VecDeque<(u64, u64)>),
    /// Otherwise by offset; as in fio, a write replaces every one that it overlaps, whole.
    Latest(BTreeMap<u64, u64>),
}

impl Written {
    pub(super) fn new(once: bool) -> Self {
        if once {
            Written::Once(VecDeque::new())
        } else {
            Written::Latest(BTreeMap::new())
        }
    }

    pub(super) fn add(&mut self, offset: u64, length: u64) {
        match self {
            Written::Once(list) => list.push_back((offset, length)),
            Written::Latest(tree) => {
                // Entries do not overlap each other, so only the one before the end may reach in.
                while let Some((&other, &reach)) = tree.range(..offset + length).next_back()
                    && other + reach > offset
                {
                    tree.remove(&other);
                }
                tree.insert(offset, length);
            }
        }
    }

    /// The next block to read.
    pub(super) fn take(&mut self) -> Option<(u64, u64)> {
        match self {
            Written::Once(list) => list.pop_front(),
            Written::Latest(tree) => tree.pop_first(),
        }
    }

    /// Where the next block to read begins.
    pub(super) fn first(&self) -> Option<u64> {
        match self {
            Written::Once(list) => list.front().map(|(offset, _)| *offset),
            Written::Latest(tree) => tree.first_key_value().map(|(offset, _)| *offset),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Written::Once(list) => list.len(),
            Written::Latest(tree) => tree.len(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match self {
            Written::Once(list) => list.is_empty(),
            Written::Latest(tree) => tree.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_write_replaces_what_it_overlaps() {
        let mut written = Written::new(false);
        for (offset, length) in [(0, 8), (8, 8), (32, 8), (4, 8), (40, 4), (36, 8)] {
            written.add(offset, length);
        }
        let order: Vec<_> = std::iter::from_fn(|| written.take()).collect();
        assert_eq!(order, [(4, 8), (36, 8)]);
        assert!(written.is_empty());
    }

    proptest! {
        #[test]
        fn entries_never_overlap_and_the_last_write_is_among_them(writes in prop::collection::vec((0u64..200, 1u64..20), 1..60)) {
            let mut written = Written::new(false);
            let mut naive: Vec<(u64, u64)> = Vec::new();
            for &(offset, length) in &writes {
                written.add(offset, length);
                naive.retain(|(other, reach)| other + reach <= offset || offset + length <= *other);
                naive.push((offset, length));
            }
            naive.sort_unstable();
            let order: Vec<_> = std::iter::from_fn(|| written.take()).collect();
            prop_assert_eq!(order, naive);
        }
    }
}
