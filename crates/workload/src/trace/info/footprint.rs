//! How many distinct pages are touched, in bounded memory and time.

use super::PAGE_BYTES;
use std::collections::BTreeMap;

/// Pages in one bitmap: 2 MiB of the volume in 64 bytes.
const CHUNK_PAGES: u64 = 512;

/// Most bitmaps, and most runs of whole chunks, kept: 2 TiB touched piecemeal, in about 100 MB.
const CHUNKS_MAX: usize = 1 << 20;

/// A set of pages: bitmaps of chunks touched in part, and runs of chunks touched whole, so that an
/// enormous request takes no longer than a small one.
pub(super) struct Footprint {
    chunks: Vec<[u64; CHUNK_PAGES as usize / 64]>,
    at: BTreeMap<u64, u32>,
    /// First and last chunk of each run; runs neither overlap nor touch.
    whole: BTreeMap<u64, u64>,
    /// The chunk touched last, with its index: requests come in runs.
    last: Option<(u64, usize)>,
    pages: u64,
    chunks_max: usize,
    lower_bound: bool,
}

impl Footprint {
    pub(super) fn new() -> Self {
        Self {
            chunks: Vec::new(),
            at: BTreeMap::new(),
            whole: BTreeMap::new(),
            last: None,
            pages: 0,
            chunks_max: CHUNKS_MAX,
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
        let (first_chunk, last_chunk) = (first / CHUNK_PAGES, last / CHUNK_PAGES);
        if first_chunk == last_chunk {
            self.mark(first_chunk, first % CHUNK_PAGES, last % CHUNK_PAGES);
            return;
        }
        self.mark(first_chunk, first % CHUNK_PAGES, CHUNK_PAGES - 1);
        self.mark(last_chunk, 0, last % CHUNK_PAGES);
        if last_chunk - first_chunk > 1 {
            self.mark_whole(first_chunk + 1, last_chunk - 1);
        }
    }

    /// Every page of a run of chunks.
    fn mark_whole(&mut self, first: u64, last: u64) {
        if self.whole.len() >= self.chunks_max {
            self.lower_bound = true;
            return;
        }
        // Bitmaps in the run have been counted; they are empty places from now on.
        let within: Vec<(u64, u32)> = self.at.range(first..=last).map(|(k, v)| (*k, *v)).collect();
        for (chunk, index) in within {
            self.at.remove(&chunk);
            let bits = self.chunks[index as usize].iter();
            self.pages -= bits.map(|word| u64::from(word.count_ones())).sum::<u64>();
        }
        self.last = None;
        // Runs that overlap or touch become one.
        let (mut from, mut to, mut known) = (first, last, 0);
        while let Some((&start, &end)) = self.whole.range(..=to + 1).next_back()
            && end + 1 >= from
        {
            self.whole.remove(&start);
            known += end - start + 1;
            (from, to) = (from.min(start), to.max(end));
        }
        self.whole.insert(from, to);
        self.pages += (to - from + 1 - known) * CHUNK_PAGES;
    }

    fn chunk(&mut self, number: u64) -> Option<usize> {
        if let Some((last, index)) = self.last
            && last == number
        {
            return Some(index);
        }
        let index = match self.at.get(&number) {
            Some(&index) => index as usize,
            None if self.chunks.len() >= self.chunks_max => {
                self.lower_bound = true;
                return None;
            }
            None => {
                self.at.insert(number, self.chunks.len() as u32);
                self.chunks.push([0; CHUNK_PAGES as usize / 64]);
                self.chunks.len() - 1
            }
        };
        self.last = Some((number, index));
        Some(index)
    }

    /// Some pages of a chunk.
    fn mark(&mut self, chunk: u64, first: u64, last: u64) {
        let run = self.whole.range(..=chunk).next_back();
        if run.is_some_and(|(_, end)| *end >= chunk) {
            return;
        }
        let Some(index) = self.chunk(chunk) else {
            return;
        };
        let words = &mut self.chunks[index];
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
            ranges in prop::collection::vec((0u64..1 << 24, 1u64..1 << 23), 0..20)
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
    fn an_enormous_request_is_counted_at_once() {
        let mut footprint = Footprint::new();
        footprint.add(0, 3_222_310_400_000 * 512);
        assert_eq!(
            footprint.pages(),
            (3_222_310_400_000u64 * 512).div_ceil(PAGE_BYTES)
        );
        footprint.add(4096, 1 << 50);
        footprint.add(u64::MAX - (1 << 60), 1 << 60);
        assert!(!footprint.is_lower_bound());
        assert!(footprint.chunks.len() < 8);
    }

    #[test]
    fn what_does_not_fit_is_given_up_on_and_said_so() {
        let mut footprint = Footprint::new();
        footprint.chunks_max = 10;
        for number in 0..20 {
            footprint.add(number << 22, 4096);
        }
        assert!(footprint.is_lower_bound());
        assert_eq!(footprint.pages(), 10);
    }
}
