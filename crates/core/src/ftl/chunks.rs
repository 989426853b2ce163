//! Where the entries of each chunk of the address map are: a table in blocks, and blocks that nothing has touched are one.
//!
//! So what a drive's size takes is an entry a block; a table of all chunks would have to be cleared for each run, and
//! a drive that is only read, by its formula, would miss the processor's caches at each look.

use lodger_prefetch::prefetch;
use serde::{Deserialize, Serialize};

/// Place of a chunk whose pages all lie where the formula says.
pub(super) const CHUNK_UNTOUCHED: u32 = 0;
/// Place of a chunk whose pages all have no data.
pub(super) const CHUNK_UNMAPPED: u32 = u32::MAX;
/// Chunks of a block: 4 KiB of the table, 256 MiB of the drive.
const BLOCK: u32 = 1024;
/// Where the block begins in which all chunks are untouched.
const UNTOUCHED: u32 = 0;

/// Where the entries of each chunk are.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct Chunks {
    /// Where each block begins in `places`.
    blocks: Vec<u32>,
    /// What stands in the blocks, that of untouched chunks first.
    #[serde(with = "crate::arrays::sparse")]
    places: Vec<u32>,
}

impl Chunks {
    /// So many, untouched.
    pub(super) fn new(count: u32) -> Self {
        Chunks {
            blocks: vec![UNTOUCHED; count.div_ceil(BLOCK) as usize],
            places: vec![CHUNK_UNTOUCHED; BLOCK as usize],
        }
    }

    /// Where a chunk's entries are.
    #[inline(always)]
    pub(super) fn get(&self, chunk: u32) -> u32 {
        let start = self.blocks[(chunk / BLOCK) as usize];
        self.places[(start + chunk % BLOCK) as usize]
    }

    /// Where a chunk's entries are is asked soon.
    #[inline(always)]
    pub(super) fn expect(&self, chunk: u32) {
        let start = self.blocks[(chunk / BLOCK) as usize];
        prefetch(&self.places, (start + chunk % BLOCK) as usize);
    }

    /// A chunk's entries are there from now on.
    pub(super) fn set(&mut self, chunk: u32, place: u32) {
        let start = &mut self.blocks[(chunk / BLOCK) as usize];
        if *start == UNTOUCHED {
            *start = self.places.len() as u32;
            let end = self.places.len() + BLOCK as usize;
            self.places.resize(end, CHUNK_UNTOUCHED);
        }
        self.places[(*start + chunk % BLOCK) as usize] = place;
    }

    /// Chunks without data are untouched again.
    pub(super) fn forget_unmapped(&mut self) {
        let places = self.places.iter_mut();
        let unmapped = places.filter(|place| **place == CHUNK_UNMAPPED);
        unmapped.for_each(|place| *place = CHUNK_UNTOUCHED);
    }

    /// The chunks of all blocks in which something was touched, in order.
    pub(super) fn in_touched_blocks(&self) -> impl Iterator<Item = u32> + use<> {
        let blocks = (0u32..).zip(&self.blocks);
        let touched = blocks.filter(|(_, start)| **start != UNTOUCHED);
        let numbers: Vec<u32> = touched.map(|(block, _)| block).collect();
        let chunks = |block| block * BLOCK..(block + 1) * BLOCK;
        numbers.into_iter().flat_map(chunks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(lodger_testing::config(128))]

        /// A naive list holds all of it.
        #[test]
        fn agrees_with_a_list_of_all_chunks(steps in prop::collection::vec((0u32..5000, 0u32..9), 0..100)) {
            let (mut chunks, mut all) = (Chunks::new(5000), vec![CHUNK_UNTOUCHED; 5000]);
            for (chunk, place) in steps {
                match place {
                    0 => {
                        chunks.forget_unmapped();
                        all.iter_mut().for_each(|place| if *place == CHUNK_UNMAPPED { *place = CHUNK_UNTOUCHED });
                    }
                    1 | 2 => {
                        chunks.set(chunk, CHUNK_UNMAPPED);
                        all[chunk as usize] = CHUNK_UNMAPPED;
                    }
                    place => {
                        chunks.set(chunk, place);
                        all[chunk as usize] = place;
                    }
                }
            }
            let now: Vec<u32> = (0..5000).map(|chunk| chunks.get(chunk)).collect();
            prop_assert_eq!(&now, &all);
            let listed: Vec<u32> = chunks.in_touched_blocks().collect();
            prop_assert!(listed.is_sorted());
            for (chunk, place) in (0..).zip(all) {
                prop_assert!(place == CHUNK_UNTOUCHED || listed.binary_search(&chunk).is_ok());
            }
        }
    }
}
