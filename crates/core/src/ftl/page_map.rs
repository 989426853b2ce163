//! The address map: where each logical page lies. Entries exist only where they differ from the
//! formula the drive was preconditioned by.

use super::formula::Formula;
use super::recovery::Trim;
use crate::ids::{Lpn, Ppn};

/// Entries of one chunk: small, because random writes touch one entry of many chunks.
const CHUNK: u32 = 64;
/// The entry still is what the formula says.
const UNTOUCHED: u32 = u32::MAX - 1;
/// The page has no data.
const UNMAPPED: u32 = u32::MAX;
/// Chunk index of a chunk whose pages all lie where the formula says.
const CHUNK_UNTOUCHED: u32 = 0;

/// The address map.
#[derive(Debug)]
pub struct PageMap {
    /// Place of each chunk in `entries`, plus one. Zeroed memory, so untouched pages cost nothing.
    chunks: Vec<u32>,
    entries: Vec<[u32; CHUNK as usize]>,
    user_slots: u32,
    formula: Option<Formula>,
}

impl PageMap {
    /// The map of a preconditioned drive (or an empty one).
    #[must_use]
    pub fn new(user_slots: u32, formula: Option<Formula>) -> Self {
        PageMap {
            chunks: vec![CHUNK_UNTOUCHED; user_slots.div_ceil(CHUNK) as usize],
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

    #[inline]
    fn initial(&self, lpn: Lpn) -> Option<Ppn> {
        self.formula.as_ref().map(|formula| formula.locate(lpn))
    }

    /// Where a logical page lies.
    #[inline]
    #[must_use]
    pub fn get(&self, lpn: Lpn) -> Option<Ppn> {
        debug_assert!(lpn.0 < self.user_slots);
        match self.chunks[(lpn.0 / CHUNK) as usize] {
            CHUNK_UNTOUCHED => self.initial(lpn),
            place => match self.entries[place as usize - 1][(lpn.0 % CHUNK) as usize] {
                UNTOUCHED => self.initial(lpn),
                UNMAPPED => None,
                ppn => Some(Ppn(ppn)),
            },
        }
    }

    /// Sets where a logical page lies; returns where it lay before.
    #[inline]
    pub fn set(&mut self, lpn: Lpn, ppn: Option<Ppn>) -> Option<Ppn> {
        debug_assert!(lpn.0 < self.user_slots);
        let chunk = (lpn.0 / CHUNK) as usize;
        let place = match self.chunks[chunk] {
            CHUNK_UNTOUCHED => self.grow(chunk, UNTOUCHED),
            place => place,
        };
        let entry = &mut self.entries[place as usize - 1][(lpn.0 % CHUNK) as usize];
        let before = *entry;
        *entry = ppn.map_or(UNMAPPED, |ppn| ppn.0);
        match before {
            UNTOUCHED => self.initial(lpn),
            UNMAPPED => None,
            ppn => Some(Ppn(ppn)),
        }
    }

    #[cold]
    fn grow(&mut self, chunk: usize, fill: u32) -> u32 {
        self.entries.push([fill; CHUNK as usize]);
        let place = self.entries.len() as u32;
        self.chunks[chunk] = place;
        place
    }

    /// The formula the drive was preconditioned by.
    #[must_use]
    pub fn formula(&self) -> Option<&Formula> {
        self.formula.as_ref()
    }
}

/// The map being rebuilt from what is in flash: newest copies win.
pub struct Rebuild<'a> {
    map: &'a mut PageMap,
    /// Order of each entry's data, in the shape of the map's entries.
    sequences: Vec<[u32; CHUNK as usize]>,
}

impl<'a> Rebuild<'a> {
    /// Forgets every entry; where there were some, there is room for those that are found.
    pub fn new(map: &'a mut PageMap) -> Self {
        map.entries.fill([UNTOUCHED; CHUNK as usize]);
        let sequences = vec![[0; CHUNK as usize]; map.entries.len()];
        Rebuild { map, sequences }
    }

    /// A copy of a page was found. Two of the same order are the same data.
    #[inline]
    pub fn offer(&mut self, lpn: Lpn, ppn: Ppn, sequence: u32) {
        let (chunk, at) = ((lpn.0 / CHUNK) as usize, (lpn.0 % CHUNK) as usize);
        let place = match self.map.chunks[chunk] as usize {
            // Trimmed before its program operation was issued: it never had an entry.
            0 => self.grow(chunk),
            place => place,
        };
        let newest = &mut self.sequences[place - 1][at];
        if sequence >= *newest {
            *newest = sequence;
            self.map.entries[place - 1][at] = ppn.0;
        }
    }

    #[cold]
    fn grow(&mut self, chunk: usize) -> usize {
        self.sequences.push([0; CHUNK as usize]);
        self.map.grow(chunk, UNTOUCHED) as usize
    }

    /// Pages were trimmed: what is older is void.
    pub fn trim(&mut self, trim: &Trim) {
        for lpn in trim.from..trim.end {
            let (chunk, at) = ((lpn / CHUNK) as usize, (lpn % CHUNK) as usize);
            let place = self.map.chunks[chunk] as usize;
            // Where nothing was ever written or trimmed away, there is nothing to void.
            if place > 0 && self.sequences[place - 1][at] < trim.sequence {
                self.sequences[place - 1][at] = trim.sequence;
                self.map.entries[place - 1][at] = UNMAPPED;
            }
        }
    }
}

impl PageMap {
    /// Visits every entry that may differ from the formula: its page, where the formula has it, and
    /// what was found (`Some(None)`: trimmed). `keep` says whether the page lies where the formula
    /// has it; if not, and nothing was found, it has no data.
    pub fn settle(&mut self, mut keep: impl FnMut(Lpn, Option<Ppn>, Option<Option<Ppn>>) -> bool) {
        for chunk in 0..self.chunks.len() {
            let place = self.chunks[chunk] as usize;
            if place == 0 {
                continue;
            }
            for at in 0..CHUNK {
                let lpn = Lpn(chunk as u32 * CHUNK + at);
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
