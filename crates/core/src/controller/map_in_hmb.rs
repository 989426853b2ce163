//! The map's share of host memory, as bytes: entries in cache lines, protected by line.
//!
//! A translation page stands in a *place* of fixed size. With `mac` it looks so:
//!
//! ```text
//! line of versions   tag 8 B | major number 4 B | 83 versions of 5 bits
//! lines of entries   tag 8 B | 14 entries of 4 B, encrypted                    (74 of them)
//! ```
//!
//! Protected by entry, every entry would need 4 bytes more; protected by page, every look-up would
//! need the page. By line, a look-up takes one line, but a line played back would pass unless the
//! drive knew which is the newest. A number for each line is too much for a controller's memory
//! (32 bits for 64 bytes: 2 MiB for 38), so the numbers stand in host memory too, and the drive keeps
//! one *epoch* for each place: 32 bits for 4800 bytes, 33 KiB for 38 MiB. Every change of a page
//! advances its epoch; the tag of the line of versions covers the epoch, the tag of a line of
//! entries its version. This is the two-level counter tree of memory encryption engines (Rogers et
//! al., MICRO 2007; split counters: Yan et al., ISCA 2006).
//!
//! When a version wraps, the page is encoded anew under another major number; when an epoch wraps
//! (after 2^32 changes of one place), the keys are rotated and every page is encoded anew. A guess
//! passes with probability 2^-64.
//!
//! With `crc`, lines of 15 entries and a CRC-32 over address and entries: accidents are found, but
//! neither a lost write (the line before it is genuine too) nor malice.

use super::host_memory::{HostMemory, Lent};
use super::integrity::{Epochs, Keys, Rejected};
use crate::ids::{Lpn, TranslationPage};
use crate::spec::{ENTRIES_PER_TRANSLATION_PAGE, Integrity, LINE_BYTES, VERSIONS_PER_LINE};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const LINE: usize = LINE_BYTES as usize;
const ENTRIES: u32 = ENTRIES_PER_TRANSLATION_PAGE as u32;
/// Largest version of a line: 5 bits.
const VERSION_MAX: u32 = 31;
/// Bits of an epoch.
pub const EPOCH_BITS: u32 = 32;

type Line = [u8; LINE];

/// A line of entries: where it is and which of the lines that were there.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
struct Nonce {
    page: TranslationPage,
    place: u32,
    line: u32,
    major: u32,
    version: u32,
}

impl Nonce {
    /// With the number of a block of key stream, or none for the tag.
    fn message(&self, block: u32) -> [u8; 24] {
        let words = [
            self.page.0,
            self.place,
            self.line,
            self.major,
            self.version,
            block,
        ];
        let mut bytes = [0; 24];
        for (bytes, word) in bytes.chunks_exact_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

/// The versions of a page's lines.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
struct Versions(#[serde(with = "crate::arrays")] Line);

impl Versions {
    fn fresh(major: u32) -> Self {
        let mut line = [0; LINE];
        line[8..12].copy_from_slice(&major.to_le_bytes());
        Versions(line)
    }

    fn major(&self) -> u32 {
        let bytes = self.0[8..12].try_into().expect("4 bytes");
        u32::from_le_bytes(bytes)
    }

    fn bits(line: u32) -> impl Iterator<Item = (usize, u32, u32)> {
        debug_assert!(u64::from(line) < VERSIONS_PER_LINE);
        (0..5).map(move |bit| {
            let at = line * 5 + bit;
            (12 + at as usize / 8, at % 8, bit)
        })
    }

    fn get(&self, line: u32) -> u32 {
        Self::bits(line).fold(0, |version, (byte, shift, bit)| {
            version | u32::from(self.0[byte] >> shift & 1) << bit
        })
    }

    fn set(&mut self, line: u32, version: u32) {
        for (byte, shift, bit) in Self::bits(line) {
            self.0[byte] &= !(1 << shift);
            self.0[byte] |= ((version >> bit & 1) as u8) << shift;
        }
    }
}

/// Where the map stands in host memory, and what the drive keeps to trust it.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct MapInHmb {
    integrity: Integrity,
    keys: Keys,
    epochs: Epochs,
    epoch_bits: u32,
    base: u64,
    unit_bytes: u64,
    unit_pages: u32,
    /// Frame of each unit held.
    frames: BTreeMap<u32, u32>,
    /// The keys were rotated: every page held must be written anew ([`MapInHmb::write_page`]).
    pub rotated: bool,
}

impl MapInHmb {
    /// A map without a place.
    #[must_use]
    pub fn new(integrity: Integrity, seed: u64, epoch_bits: u32) -> Self {
        MapInHmb {
            integrity,
            keys: Keys::new(seed),
            epochs: Epochs::new(0, epoch_bits),
            epoch_bits,
            base: 0,
            unit_bytes: 0,
            unit_pages: 1,
            frames: BTreeMap::new(),
            rotated: false,
        }
    }

    /// The map stands at `base` from now on: `units` units of `unit_bytes` bytes. It holds nothing
    /// yet, and nothing written before passes any more.
    ///
    /// # Panics
    /// If a unit's pages do not fit into `unit_bytes`: a drive whose entries take less than 4 bytes
    /// there can be modelled, but not with bytes.
    pub fn lay_out(&mut self, base: u64, units: u32, unit_bytes: u64, unit_pages: u32) {
        let needed = u64::from(unit_pages) * self.integrity.plain_page_bytes();
        assert!(
            units == 0 || unit_bytes >= needed,
            "entries of host memory that is kept as bytes take at least 4 bytes"
        );
        self.base = base;
        self.unit_bytes = unit_bytes;
        self.unit_pages = unit_pages;
        self.frames.clear();
        self.epochs = Epochs::new(units * unit_pages, self.epoch_bits);
        self.keys = self.keys.rotated();
    }

    /// A unit stands in `frame`; its pages must be written.
    pub fn came(&mut self, unit: u32, frame: u32) {
        self.frames.insert(unit, frame);
    }

    /// A unit has no place any more.
    pub fn gone(&mut self, unit: u32) {
        self.frames.remove(&unit);
    }

    /// Pages of the units held.
    pub fn pages(&self) -> impl Iterator<Item = TranslationPage> + '_ {
        let pages = self.unit_pages;
        self.frames
            .keys()
            .flat_map(move |unit| unit * pages..(unit + 1) * pages)
            .map(TranslationPage)
    }

    /// What the drive keeps in its own memory for it, bits.
    #[must_use]
    pub fn drive_memory_bits(&self) -> u64 {
        match self.integrity {
            Integrity::Mac => self.epochs.memory_bits(),
            Integrity::None | Integrity::Crc => 0,
        }
    }

    /// Whether a page stands in host memory.
    #[must_use]
    pub fn holds(&self, page: TranslationPage) -> bool {
        self.place(page).is_some()
    }

    fn place(&self, page: TranslationPage) -> Option<u32> {
        let frame = self.frames.get(&(page.0 / self.unit_pages))?;
        Some(frame * self.unit_pages + page.0 % self.unit_pages)
    }

    /// First byte of a page's place, and bytes it takes there.
    #[must_use]
    pub fn bytes_of(&self, page: TranslationPage) -> Option<(u64, u64)> {
        let bytes = self.integrity.plain_page_bytes();
        self.place(page).map(|place| (self.offset(place), bytes))
    }

    fn offset(&self, place: u32) -> u64 {
        let (frame, page) = (place / self.unit_pages, place % self.unit_pages);
        let page_bytes = self.integrity.plain_page_bytes();
        self.base + u64::from(frame) * self.unit_bytes + u64::from(page) * page_bytes
    }

    fn line_offset(&self, place: u32, line: u32) -> u64 {
        let versions = u64::from(self.integrity == Integrity::Mac);
        self.offset(place) + (versions + u64::from(line)) * LINE_BYTES
    }

    fn entries_per_line(&self) -> u32 {
        (self.integrity.line_data_bytes() / 4) as u32
    }

    fn lines(&self) -> u32 {
        ENTRIES.div_ceil(self.entries_per_line())
    }

    /// The entry of a logical page; `None` if its translation page does not stand in host memory.
    ///
    /// # Errors
    /// [`Rejected`] if its line, or that of its version, is not what the drive wrote last.
    pub fn entry<M: HostMemory>(
        &self,
        memory: &Lent<M>,
        lpn: Lpn,
    ) -> Result<Option<u32>, Rejected> {
        let page = TranslationPage(lpn.0 / ENTRIES);
        let Some(place) = self.place(page) else {
            return Ok(None);
        };
        let index = lpn.0 % ENTRIES;
        let line = index / self.entries_per_line();
        let versions = self.versions(memory, page, place)?;
        let entries = self.read_line(memory, page, place, line, &versions)?;
        Ok(Some(entry_of(&entries, index % self.entries_per_line())))
    }

    /// Number of a page's lines that are not what the drive wrote last.
    #[must_use]
    pub fn rejected_lines<M: HostMemory>(&self, memory: &Lent<M>, page: TranslationPage) -> u32 {
        let Some(place) = self.place(page) else {
            return 0;
        };
        let Ok(versions) = self.versions(memory, page, place) else {
            return self.lines();
        };
        let check = |line: &u32| {
            self.read_line(memory, page, place, *line, &versions)
                .is_err()
        };
        (0..self.lines()).filter(check).count() as u32
    }

    /// Changes the entry of a logical page that stands in host memory.
    ///
    /// # Errors
    /// [`Rejected`] if its line is not what the drive wrote last: the page must be written anew.
    pub fn set_entry<M: HostMemory>(
        &mut self,
        memory: &mut Lent<M>,
        lpn: Lpn,
        entry: u32,
    ) -> Result<(), Rejected> {
        let page = TranslationPage(lpn.0 / ENTRIES);
        let Some(place) = self.place(page) else {
            return Ok(());
        };
        let per_line = self.entries_per_line();
        let (line, at) = (lpn.0 % ENTRIES / per_line, lpn.0 % ENTRIES % per_line);
        let mut versions = self.versions(memory, page, place)?;
        let mut entries = self.read_line(memory, page, place, line, &versions)?;
        let from = at as usize * 4;
        entries[from..from + 4].copy_from_slice(&entry.to_le_bytes());
        let version = versions.get(line);
        if self.integrity == Integrity::Mac && version == VERSION_MAX {
            return self.encode_anew(memory, page, place, (line, entries));
        }
        if self.integrity == Integrity::Mac {
            versions.set(line, version + 1);
            self.advance(place);
            self.write_versions(memory, page, place, &mut versions);
        }
        self.write_line(memory, page, place, line, &versions, &entries);
        Ok(())
    }

    /// A line's version has wrapped: the page is written anew under another major number, with
    /// `changed` in place of that line.
    fn encode_anew<M: HostMemory>(
        &mut self,
        memory: &mut Lent<M>,
        page: TranslationPage,
        place: u32,
        changed: (u32, Line),
    ) -> Result<(), Rejected> {
        let versions = self.versions(memory, page, place)?;
        let mut lines = Vec::with_capacity(self.lines() as usize);
        for line in 0..self.lines() {
            lines.push(match changed {
                (at, entries) if at == line => entries,
                _ => self.read_line(memory, page, place, line, &versions)?,
            });
        }
        let per_line = self.entries_per_line();
        self.write_page(memory, page, |index| {
            entry_of(&lines[(index / per_line) as usize], index % per_line)
        });
        Ok(())
    }

    /// Writes all entries of a page that stands in host memory.
    pub fn write_page<M: HostMemory>(
        &mut self,
        memory: &mut Lent<M>,
        page: TranslationPage,
        entry: impl Fn(u32) -> u32,
    ) {
        let Some(place) = self.place(page) else {
            return;
        };
        // An epoch never comes back under the same keys, so nor does this major number.
        let mut versions = Versions::fresh(0);
        if self.integrity == Integrity::Mac {
            self.advance(place);
            versions = Versions::fresh(self.epochs.get(place));
            self.write_versions(memory, page, place, &mut versions);
        }
        let per_line = self.entries_per_line();
        for line in 0..self.lines() {
            let mut entries = [0; LINE];
            for at in 0..per_line {
                let index = line * per_line + at;
                let value = if index < ENTRIES { entry(index) } else { 0 };
                entries[at as usize * 4..][..4].copy_from_slice(&value.to_le_bytes());
            }
            self.write_line(memory, page, place, line, &versions, &entries);
        }
    }

    fn advance(&mut self, place: u32) {
        if self.epochs.advance(place) {
            self.keys = self.keys.rotated();
            self.rotated = true;
        }
    }

    /// The page's versions, if they are what the drive wrote last.
    fn versions<M: HostMemory>(
        &self,
        memory: &Lent<M>,
        page: TranslationPage,
        place: u32,
    ) -> Result<Versions, Rejected> {
        let mut versions = Versions::fresh(0);
        if self.integrity == Integrity::Mac {
            memory.read(self.offset(place), &mut versions.0)?;
            let genuine = self.versions_tag(page, place, &versions);
            if versions.0[..8] != genuine {
                return Err(Rejected);
            }
        }
        Ok(versions)
    }

    fn write_versions<M: HostMemory>(
        &self,
        memory: &mut Lent<M>,
        page: TranslationPage,
        place: u32,
        versions: &mut Versions,
    ) {
        let tag = self.versions_tag(page, place, versions);
        versions.0[..8].copy_from_slice(&tag);
        memory.write(self.offset(place), &versions.0);
    }

    fn versions_tag(&self, page: TranslationPage, place: u32, versions: &Versions) -> [u8; 8] {
        let mut message = [0; 12 + LINE - 8];
        message[..4].copy_from_slice(&page.0.to_le_bytes());
        message[4..8].copy_from_slice(&place.to_le_bytes());
        message[8..12].copy_from_slice(&self.epochs.get(place).to_le_bytes());
        message[12..].copy_from_slice(&versions.0[8..]);
        self.keys.tag(&message).to_le_bytes()
    }

    /// The entries of a line, in clear, from byte 0.
    fn read_line<M: HostMemory>(
        &self,
        memory: &Lent<M>,
        page: TranslationPage,
        place: u32,
        line: u32,
        versions: &Versions,
    ) -> Result<Line, Rejected> {
        let mut bytes = [0; LINE];
        memory.read(self.line_offset(place, line), &mut bytes)?;
        let data = self.integrity.line_data_bytes() as usize;
        let (check, body) = bytes.split_at(LINE - data);
        let mut entries = [0; LINE];
        entries[..data].copy_from_slice(body);
        let nonce = Nonce {
            page,
            place,
            line,
            major: versions.major(),
            version: versions.get(line),
        };
        if self.check(&nonce, body)[..check.len()] != *check {
            return Err(Rejected);
        }
        self.crypt(&nonce, &mut entries);
        Ok(entries)
    }

    fn write_line<M: HostMemory>(
        &self,
        memory: &mut Lent<M>,
        page: TranslationPage,
        place: u32,
        line: u32,
        versions: &Versions,
        entries: &Line,
    ) {
        let nonce = Nonce {
            page,
            place,
            line,
            major: versions.major(),
            version: versions.get(line),
        };
        let data = self.integrity.line_data_bytes() as usize;
        let mut body = *entries;
        self.crypt(&nonce, &mut body);
        let mut bytes = [0; LINE];
        bytes[LINE - data..].copy_from_slice(&body[..data]);
        let check = self.check(&nonce, &bytes[LINE - data..]);
        bytes[..LINE - data].copy_from_slice(&check[..LINE - data]);
        memory.write(self.line_offset(place, line), &bytes);
    }

    /// Checksum or tag of a line as it stands in host memory.
    fn check(&self, nonce: &Nonce, body: &[u8]) -> [u8; 8] {
        let mut message = [0; 24 + LINE];
        // No block of key stream has this number.
        message[..24].copy_from_slice(&nonce.message(u32::MAX));
        message[24..24 + body.len()].copy_from_slice(body);
        let message = &message[..24 + body.len()];
        match self.integrity {
            Integrity::None => [0; 8],
            Integrity::Crc => u64::from(crc32fast::hash(message)).to_le_bytes(),
            Integrity::Mac => self.keys.tag(message).to_le_bytes(),
        }
    }

    /// Encrypts or decrypts a line's entries: the nonce never comes back under the same keys.
    fn crypt(&self, nonce: &Nonce, entries: &mut Line) {
        if self.integrity != Integrity::Mac {
            return;
        }
        for (block, bytes) in (0..).zip(entries[..LINE - 8].chunks_exact_mut(8)) {
            let stream = self.keys.stream(&nonce.message(block)).to_le_bytes();
            bytes.iter_mut().zip(stream).for_each(|(b, s)| *b ^= s);
        }
    }
}

fn entry_of(entries: &Line, at: u32) -> u32 {
    let from = at as usize * 4;
    u32::from_le_bytes(entries[from..from + 4].try_into().expect("4 bytes"))
}

#[cfg(test)]
mod tests {
    use super::super::host_memory::Bytes;
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// Two units of one page, with epochs of few bits so that they wrap.
    fn map_in_hmb(integrity: Integrity, epoch_bits: u32) -> (MapInHmb, Lent<Bytes>) {
        let mut map = MapInHmb::new(integrity, 1, epoch_bits);
        let unit_bytes = integrity.plain_page_bytes();
        map.lay_out(64, 2, unit_bytes, 1);
        let memory = Lent::new(Bytes(vec![0; 64 + 2 * unit_bytes as usize]));
        (map, memory)
    }

    fn rewrite(map: &mut MapInHmb, memory: &mut Lent<Bytes>, naive: &HashMap<u32, u32>) {
        while std::mem::take(&mut map.rotated) {
            let pages: Vec<_> = map.pages().collect();
            for page in pages {
                map.write_page(memory, page, |at| naive[&(page.0 * ENTRIES + at)]);
            }
        }
    }

    #[test]
    fn a_page_takes_what_the_spec_says() {
        let bytes = |integrity: Integrity| integrity.plain_page_bytes();
        assert_eq!(bytes(Integrity::None), 4096);
        assert_eq!(bytes(Integrity::Crc), 69 * 64, "15 entries a line");
        assert_eq!(
            bytes(Integrity::Mac),
            75 * 64,
            "14 entries a line, one line of versions"
        );
        // 38 MiB of host memory: 8301 places, 33 KiB of the drive's memory.
        let mut map = MapInHmb::new(Integrity::Mac, 1, EPOCH_BITS);
        map.lay_out(0, (38 << 20) / 4800, 4800, 1);
        assert_eq!(map.drive_memory_bits().div_ceil(8 << 10), 33);
    }

    proptest! {
        #![proptest_config(lodger_testing::config(48))]
        /// Entries change, units come and go, versions and epochs wrap; each entry is what it was
        /// set to, and no line that stood there before passes in place of another.
        #[test]
        fn entries_are_what_they_were_set_to_and_old_lines_never_pass(
            changes in prop::collection::vec((0u32..3, 0u32..ENTRIES, any::<bool>(), any::<u32>()), 1..120),
            which in 0usize..3,
        ) {
            let integrity = [Integrity::None, Integrity::Crc, Integrity::Mac][which];
            let (mut map, mut memory) = map_in_hmb(integrity, 6);
            let mut naive: HashMap<u32, u32> = (0..3 * ENTRIES).map(|lpn| (lpn, !lpn)).collect();
            let mut old = vec![memory.memory.0.clone()];
            for (page, index, hot, value) in changes {
                // Page 2 takes the place of page 0 and the other way round.
                let held = map.holds(TranslationPage(page));
                if !held {
                    let frame = u32::from(page == 1);
                    (0..3).filter(|&other| u32::from(other == 1) == frame).for_each(|o| map.gone(o));
                    map.came(page, frame);
                    map.write_page(&mut memory, TranslationPage(page), |at| naive[&(page * ENTRIES + at)]);
                }
                let lpn = page * ENTRIES + if hot { index % 3 } else { index };
                naive.insert(lpn, value);
                prop_assert_eq!(map.set_entry(&mut memory, Lpn(lpn), value), Ok(()));
                rewrite(&mut map, &mut memory, &naive);
                for lpn in [lpn, page * ENTRIES, page * ENTRIES + ENTRIES - 1] {
                    prop_assert_eq!(map.entry(&memory, Lpn(lpn)), Ok(Some(naive[&lpn])));
                }
                prop_assert_eq!(map.rejected_lines(&memory, TranslationPage(page)), 0);
                old.push(memory.memory.0.clone());
                if integrity == Integrity::Mac {
                    replay(&map, &memory, &old, TranslationPage(page), index as usize)?;
                }
            }
        }
    }

    /// Plays old lines of a page back: one of its lines, and all of them.
    fn replay(
        map: &MapInHmb,
        memory: &Lent<Bytes>,
        old: &[Vec<u8>],
        page: TranslationPage,
        choice: usize,
    ) -> Result<(), TestCaseError> {
        let (from, count) = map.bytes_of(page).expect("it is held");
        let (from, count) = (from as usize, count as usize);
        let then = &old[choice % old.len()];
        for (at, bytes) in [(from, count), (from + choice % 75 * LINE, LINE)] {
            let mut played = memory.clone();
            played.memory.0[at..at + bytes].copy_from_slice(&then[at..at + bytes]);
            let changed = played.memory.0 != memory.memory.0;
            prop_assert_eq!(map.rejected_lines(&played, page) > 0, changed);
        }
        Ok(())
    }

    #[test]
    fn the_same_entries_never_look_the_same_twice() {
        let (mut map, mut memory) = map_in_hmb(Integrity::Mac, EPOCH_BITS);
        map.came(0, 0);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..20 {
            map.write_page(&mut memory, TranslationPage(0), |_| 7);
            for _ in 0..40 {
                map.set_entry(&mut memory, Lpn(0), 7).unwrap();
                assert!(seen.insert(memory.memory.0[64 + LINE..64 + 2 * LINE].to_vec()));
            }
        }
    }
}
