//! How many distinct pages are touched, in bounded memory and time.

use super::PAGE_BYTES;
use std::collections::HashMap;

/// Pages in one bitmap: 2 MiB of the volume in 64 bytes.
const CHUNK_PAGES: u64 = 512;

/// Most bitmaps kept: 2 TiB touched densely, in about 100 MB.
const CHUNKS_MAX: usize = 1 << 20;

/// Most bitmaps visited, so that a file of enormous requests cannot keep us busy for ever.
const VISITS_MAX: u64 = 1 << 30;

/// A set of pages.
pub(super) struct Footprint {
    chunks: Vec<[u64; CHUNK_PAGES as usize / 64]>,
    at: HashMap<u64, u32>,
    /// The chunk touched last, with its index: requests come in runs.
    last: Option<(u64, usize)>,
    pages: u64,
    visits_left: u64,
    lower_bound: bool,
}

impl Footprint {
    pub(super) fn new() -> Self {
        Self {
            chunks: Vec::new(),
            at: HashMap::new(),
            last: None,
            pages: 0,
            visits_left: VISITS_MAX,
            lower_bound: false,
        }
    }

    pub(super) fn pages(&self) -> u64 {
        self.pages
    }

    pub(super) fn is_lower_bound(&self) -> bool {
        self.lower_bound
    }

    /// Adds the pages of a range that is not empty.
    pub(super) fn add(&mut self, offset_bytes: u64, length_bytes: u64) {
        let first = offset_bytes / PAGE_BYTES;
        let last = offset_bytes.saturating_add(length_bytes - 1) / PAGE_BYTES;
        let mut page = first;
        while page <= last {
            if self.visits_left == 0 {
                self.lower_bound = true;
                return;
            }
            self.visits_left -= 1;
            let chunk_last = page | (CHUNK_PAGES - 1);
            let until = last.min(chunk_last);
            match self.chunk(page / CHUNK_PAGES) {
                Some(chunk) => self.mark(chunk, page % CHUNK_PAGES, until % CHUNK_PAGES),
                None => self.lower_bound = true,
            }
            page = chunk_last + 1;
        }
    }

    fn chunk(&mut self, number: u64) -> Option<usize> {
        if let Some((last, index)) = self.last
            && last == number
        {
            return Some(index);
        }
        let index = match self.at.get(&number) {
            Some(&index) => index as usize,
            None if self.chunks.len() == CHUNKS_MAX => return None,
            None => {
                self.at.insert(number, self.chunks.len() as u32);
                self.chunks.push([0; CHUNK_PAGES as usize / 64]);
                self.chunks.len() - 1
            }
        };
        self.last = Some((number, index));
        Some(index)
    }

    fn mark(&mut self, chunk: usize, first: u64, last: u64) {
        let words = &mut self.chunks[chunk];
        for word in first / 64..=last / 64 {
            let from = first.max(word * 64) % 64;
            let to = last.min(word * 64 + 63) % 64;
            let mask = (u64::MAX << from) & (u64::MAX >> (63 - to));
            let bits = &mut words[word as usize];
            self.pages += u64::from((mask & !*bits).count_ones());
            *bits |= mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        #[test]
        fn counts_what_a_plain_set_counts(
            ranges in prop::collection::vec((0u64..1 << 24, 1u64..1 << 22), 0..20)
        ) {
            let mut footprint = Footprint::new();
            let mut plain = BTreeSet::new();
            for (offset, length) in ranges {
                footprint.add(offset, length);
                plain.extend(offset / PAGE_BYTES..=(offset + length - 1) / PAGE_BYTES);
            }
            prop_assert_eq!(footprint.pages(), plain.len() as u64);
            prop_assert!(!footprint.is_lower_bound());
        }
    }

    #[test]
    fn enormous_requests_are_given_up_on_and_said_so() {
        let mut footprint = Footprint::new();
        footprint.visits_left = 10_000;
        footprint.add(u64::MAX - (1 << 60), 1 << 60);
        assert!(footprint.is_lower_bound());
        assert!(footprint.pages() <= 10_000 * CHUNK_PAGES);
    }
}
