//! fio's random map: which blocks of a range were visited, where requests are of several lengths.

/// Bits in a word.
const BITS: u64 = 64;

/// A bit for every block, and over each level a bit for every word of it that is full.
#[derive(Clone, Debug)]
pub(super) struct RandomMap {
    blocks: u64,
    /// From the blocks' own bits up to a single word.
    levels: Vec<Vec<u64>>,
}

impl RandomMap {
    /// A map of `blocks` blocks (at least 1), none visited.
    pub(super) fn new(blocks: u64) -> Self {
        assert!(blocks > 0);
        let mut levels = Vec::new();
        let mut bits = blocks;
        loop {
            let words = bits.div_ceil(BITS);
            // Zeroed memory takes no room until it is touched.
            let mut level = vec![0u64; words as usize];
            if !bits.is_multiple_of(BITS) {
                // What lies beyond the end is never free.
                level[words as usize - 1] = u64::MAX << (bits % BITS);
            }
            levels.push(level);
            if words == 1 {
                return Self { blocks, levels };
            }
            bits = words;
        }
    }

    /// Forgets every visit.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.blocks);
    }

    fn is_free(&self, block: u64) -> bool {
        block < self.blocks && self.levels[0][(block / BITS) as usize] >> (block % BITS) & 1 == 0
    }

    /// The first block from `from` on that was not visited, or else the first of all.
    pub(super) fn free(&self, from: u64) -> Option<u64> {
        if self.is_free(from) {
            return Some(from);
        }
        self.free_from(from).or_else(|| self.free_from(0))
    }

    fn free_from(&self, from: u64) -> Option<u64> {
        let mut place = from;
        for (level, words) in self.levels.iter().enumerate() {
            let word = *words.get((place / BITS) as usize)?;
            let free = !word & (u64::MAX << (place % BITS));
            if free != 0 {
                return Some(self.down(
                    level,
                    place / BITS * BITS + u64::from(free.trailing_zeros()),
                ));
            }
            place = place / BITS + 1;
        }
        None
    }

    /// The first free block below a bit of a level.
    fn down(&self, level: usize, mut place: u64) -> u64 {
        for words in self.levels[..level].iter().rev() {
            let word = words[place as usize];
            place = place * BITS + u64::from(word.trailing_ones());
        }
        place
    }

    /// Visits up to `count` blocks from `first` on and stops before one that was visited. Returns how many.
    pub(super) fn visit(&mut self, first: u64, count: u64) -> u64 {
        let mut visited = 0;
        while visited < count && self.is_free(first + visited) {
            self.set(first + visited);
            visited += 1;
        }
        visited
    }

    fn set(&mut self, block: u64) {
        let mut place = block;
        for words in &mut self.levels {
            let word = &mut words[(place / BITS) as usize];
            *word |= 1 << (place % BITS);
            if *word != u64::MAX {
                return;
            }
            place /= BITS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(lodger_testing::config(64))]

        #[test]
        fn it_is_a_list_of_flags(
            blocks in prop_oneof![1u64..200, 4000u64..4200, 260_000u64..270_000],
            visits in prop::collection::vec((any::<u64>(), 1u64..300), 1..200),
        ) {
            let mut map = RandomMap::new(blocks);
            let mut naive = vec![false; blocks as usize];
            for (place, count) in visits {
                let from = place % blocks;
                let after = (from..blocks).chain(0..blocks);
                let expected = after.into_iter().find(|b| !naive[*b as usize]);
                prop_assert_eq!(map.free(from), expected);
                let Some(first) = expected else { break };
                let free = naive[first as usize..].iter().take(count as usize);
                let free = free.take_while(|visited| !**visited).count();
                prop_assert_eq!(map.visit(first, count), free as u64);
                naive[first as usize..][..free].fill(true);
            }
        }
    }

    #[test]
    fn every_block_is_found_once() {
        for blocks in [1, 63, 64, 65, 4095, 4096, 4097, 262_145] {
            let mut map = RandomMap::new(blocks);
            let mut found = 0;
            while let Some(block) = map.free(blocks / 2) {
                assert_eq!(map.visit(block, 1), 1);
                found += 1;
            }
            assert_eq!(found, blocks);
            assert_eq!(map.visit(0, 5), 0);
            map.clear();
            assert_eq!(map.visit(0, u64::MAX), blocks);
        }
    }
}
