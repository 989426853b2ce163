//! The address map: where each logical page lies. Entries exist only where they differ from the
//! formula the drive was preconditioned by.

use super::chunks::{CHUNK_UNMAPPED, CHUNK_UNTOUCHED, Chunks};
use super::formula::Formula;
use super::recovery::Trim;
use crate::ids::{Lpn, Ppn};
use lodger_prefetch::prefetch;
use serde::{Deserialize, Serialize};

/// Entries of one chunk: small, because random writes touch one entry of many chunks.
const CHUNK: u32 = 64;
/// The entry still is what the formula says.
const UNTOUCHED: u32 = u32::MAX - 1;
/// The page has no data.
const UNMAPPED: u32 = u32::MAX;

/// The address map.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct PageMap {
    /// Place of each chunk in `entries`, plus one.
    chunks: Chunks,
    #[serde(with = "crate::arrays::list")]
    entries: Vec<[u32; CHUNK as usize]>,
    user_slots: u32,
    formula: Option<Formula>,
}

impl PageMap {
    /// The map of a preconditioned drive (or an empty one).
    #[must_use]
    pub fn new(user_slots: u32, formula: Option<Formula>) -> Self {
        PageMap {
            chunks: Chunks::new(user_slots.div_ceil(CHUNK)),
            entries: Vec::new(),
            user_slots,
            formula,
        }
    }

    /// Number of logical pages.
    #[must_use]
    pub fn user_slots(&self) -> u32 {
        self.user_slots
    }

    #[inline(always)]
    fn initial(&self, lpn: Lpn) -> Option<Ppn> {
        self.formula.as_ref().map(|formula| formula.locate(lpn))
    }

    /// Where a logical page lies.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, lpn: Lpn) -> Option<Ppn> {
        debug_assert!(lpn.0 < self.user_slots);
        match self.chunk(lpn) {
            CHUNK_UNTOUCHED => self.initial(lpn),
            CHUNK_UNMAPPED => None,
            place => match self.entries[place as usize - 1][(lpn.0 % CHUNK) as usize] {
                UNTOUCHED => self.initial(lpn),
                UNMAPPED => None,
                ppn => Some(Ppn(ppn)),
            },
        }
    }

    /// Where the entry of a page is, is needed soon.
    #[inline(always)]
    pub fn expect_chunk(&self, lpn: Lpn) {
        self.chunks.expect(lpn.0 / CHUNK);
    }

    /// The entry of a page is needed soon; where it is was expected before.
    #[inline(always)]
    pub fn expect(&self, lpn: Lpn) {
        let place = self.chunk(lpn);
        if place != CHUNK_UNTOUCHED && place != CHUNK_UNMAPPED {
            let at = (place as usize - 1) * CHUNK as usize + (lpn.0 % CHUNK) as usize;
            prefetch(self.entries.as_flattened(), at);
        }
    }

    /// Brings the entries of all these pages close, at once.
    pub fn touch(&self, pages: impl Iterator<Item = Lpn> + Clone) {
        self.touch_chunks(pages.clone());
        std::hint::black_box(pages.fold(0, |sum, lpn| match self.chunk(lpn) {
            CHUNK_UNTOUCHED | CHUNK_UNMAPPED => sum,
            place => sum ^ self.entries[place as usize - 1][(lpn.0 % CHUNK) as usize],
        }));
    }

    /// What leads to them. A loop for each level: what one pass waits for, it waits for all together.
    pub fn touch_chunks(&self, pages: impl Iterator<Item = Lpn>) {
        std::hint::black_box(pages.fold(0, |sum, lpn| sum ^ self.chunk(lpn)));
    }

    #[inline(always)]
    fn chunk(&self, lpn: Lpn) -> u32 {
        self.chunks.get(lpn.0 / CHUNK)
    }

    /// Sets where a logical page lies; returns where it lay before.
    #[inline(always)]
    pub fn set(&mut self, lpn: Lpn, ppn: Option<Ppn>) -> Option<Ppn> {
        let entry = ppn.map_or(UNMAPPED, |ppn| ppn.0);
        match std::mem::replace(self.entry(lpn), entry) {
            UNTOUCHED => self.initial(lpn),
            UNMAPPED => None,
            before => Some(Ppn(before)),
        }
    }

    /// Sets where a logical page lies, whatever was there.
    #[inline]
    pub fn put(&mut self, lpn: Lpn, ppn: Ppn) {
        *self.entry(lpn) = ppn.0;
    }

    #[inline]
    fn entry(&mut self, lpn: Lpn) -> &mut u32 {
        debug_assert!(lpn.0 < self.user_slots);
        let chunk = lpn.0 / CHUNK;
        let place = match self.chunks.get(chunk) {
            CHUNK_UNTOUCHED => self.grow(chunk, UNTOUCHED),
            CHUNK_UNMAPPED => self.grow(chunk, UNMAPPED),
            place => place,
        };
        &mut self.entries[place as usize - 1][(lpn.0 % CHUNK) as usize]
    }

    /// Pages `from..to` have no data any more. `gone` hears where each lay; with `void`, only of those
    /// that do not lie where the formula says. Returns whether any had data.
    pub fn clear(&mut self, from: u32, to: u32, void: bool, mut gone: impl FnMut(Ppn)) -> bool {
        let mut changed = false;
        for (chunk, pages, whole) in chunks(from, to, self.user_slots) {
            match self.chunks.get(chunk) {
                CHUNK_UNMAPPED => continue,
                CHUNK_UNTOUCHED if self.formula.is_none() => continue,
                CHUNK_UNTOUCHED if whole => {
                    changed = true;
                    let lay = pages
                        .filter(|_| !void)
                        .filter_map(|lpn| self.initial(Lpn(lpn)));
                    lay.for_each(&mut gone);
                    self.chunks.set(chunk, CHUNK_UNMAPPED);
                    continue;
                }
                _ => {}
            }
            for lpn in pages.map(Lpn) {
                let was_moved = self.is_moved(lpn);
                if let Some(ppn) = self.set(lpn, None) {
                    changed = true;
                    if was_moved || !void {
                        gone(ppn);
                    }
                }
            }
        }
        changed
    }

    /// Whether a page's entry does not follow the formula.
    fn is_moved(&self, lpn: Lpn) -> bool {
        match self.chunk(lpn) {
            CHUNK_UNTOUCHED => false,
            CHUNK_UNMAPPED => true,
            place => self.entries[place as usize - 1][(lpn.0 % CHUNK) as usize] != UNTOUCHED,
        }
    }

    #[cold]
    fn grow(&mut self, chunk: u32, fill: u32) -> u32 {
        self.entries.push([fill; CHUNK as usize]);
        let place = self.entries.len() as u32;
        self.chunks.set(chunk, place);
        place
    }

    /// The formula the drive was preconditioned by.
    #[must_use]
    pub fn formula(&self) -> Option<&Formula> {
        self.formula.as_ref()
    }
}

/// The chunks that pages `from..to` lie in: number, pages, whether those are all of it.
fn chunks(
    from: u32,
    to: u32,
    user_slots: u32,
) -> impl Iterator<Item = (u32, std::ops::Range<u32>, bool)> {
    (from / CHUNK..to.div_ceil(CHUNK)).map(move |chunk| {
        let (first, end) = (chunk * CHUNK, ((chunk + 1) * CHUNK).min(user_slots));
        let pages = first.max(from)..end.min(to);
        let whole = pages == (first..end);
        (chunk, pages, whole)
    })
}

/// The map being rebuilt from what is in flash: newest copies win.
pub struct Rebuild<'a> {
    map: &'a mut PageMap,
    /// Sequence number of each entry's data, in the shape of the map's entries.
    sequences: Vec<[u32; CHUNK as usize]>,
}

impl<'a> Rebuild<'a> {
    /// Forgets every entry; where there were some, there is room for those that are found.
    pub fn new(map: &'a mut PageMap) -> Self {
        map.entries.fill([UNTOUCHED; CHUNK as usize]);
        map.chunks.forget_unmapped();
        let sequences = vec![[0; CHUNK as usize]; map.entries.len()];
        Rebuild { map, sequences }
    }

    /// A copy of a page was found. Two with the same sequence number are the same data; returns whether this is
    /// such a second one.
    #[inline]
    pub fn offer(&mut self, lpn: Lpn, ppn: Ppn, sequence: u32) -> bool {
        let (chunk, at) = (lpn.0 / CHUNK, (lpn.0 % CHUNK) as usize);
        let place = match self.map.chunks.get(chunk) as usize {
            // Trimmed before its program operation was issued: it never had an entry.
            0 => self.grow(chunk),
            place => place,
        };
        let newest = &mut self.sequences[place - 1][at];
        let entry = &mut self.map.entries[place - 1][at];
        let is_second = sequence == *newest && *entry != UNTOUCHED;
        if sequence >= *newest {
            *newest = sequence;
            *entry = ppn.0;
        }
        is_second
    }

    #[cold]
    fn grow(&mut self, chunk: u32) -> usize {
        self.sequences.push([0; CHUNK as usize]);
        self.map.grow(chunk, UNTOUCHED) as usize
    }

    /// Pages were trimmed: older data of theirs is invalid.
    pub fn trim(&mut self, trim: &Trim) {
        for (chunk, pages, whole) in chunks(trim.from, trim.end, self.map.user_slots) {
            let place = match self.map.chunks.get(chunk) {
                CHUNK_UNTOUCHED if whole && self.map.formula.is_some() => {
                    self.map.chunks.set(chunk, CHUNK_UNMAPPED);
                    continue;
                }
                // Where nothing was ever written or trimmed away, there is nothing to void.
                CHUNK_UNTOUCHED | CHUNK_UNMAPPED => continue,
                place => place as usize - 1,
            };
            for at in pages.map(|lpn| (lpn % CHUNK) as usize) {
                if self.sequences[place][at] < trim.sequence {
                    self.sequences[place][at] = trim.sequence;
                    self.map.entries[place][at] = UNMAPPED;
                }
            }
        }
    }
}

impl PageMap {
    /// Visits every entry that may differ from the formula: its page, where the formula has it, and
    /// what was found (`Some(None)`: trimmed). `keep` says whether the page lies where the formula
    /// has it; if not, and nothing was found, it has no data. With `void` nothing lies where the
    /// formula has it, and pages of which nothing was found are left out.
    pub fn adopt_found(
        &mut self,
        void: bool,
        mut keep: impl FnMut(Lpn, Option<Ppn>, Option<Option<Ppn>>) -> bool,
    ) {
        for chunk in self.chunks.in_touched_blocks() {
            let place = match self.chunks.get(chunk) {
                CHUNK_UNTOUCHED => continue,
                CHUNK_UNMAPPED if void => continue,
                CHUNK_UNMAPPED => {
                    let first = chunk * CHUNK;
                    for lpn in (first..(first + CHUNK).min(self.user_slots)).map(Lpn) {
                        keep(lpn, self.initial(lpn), Some(None));
                    }
                    continue;
                }
                place => place as usize,
            };
            for at in 0..CHUNK {
                let lpn = Lpn(chunk * CHUNK + at);
                if lpn.0 >= self.user_slots {
                    break;
                }
                let entry = self.entries[place - 1][at as usize];
                let found = match entry {
                    UNTOUCHED => None,
                    UNMAPPED => Some(None),
                    ppn => Some(Some(Ppn(ppn))),
                };
                let kept = keep(lpn, self.initial(lpn), found);
                if !kept && entry == UNTOUCHED {
                    self.entries[place - 1][at as usize] = UNMAPPED;
                }
            }
        }
    }
}
