//! The one kind of contents that tests have: pages that follow the data through buffer, flash and byte
//! window, whatever a page consists of.

use super::kept::Kept;
use lodger_core::device::{Contents, MapEntries, PageBytes, Programmed, Source, Spare};
use lodger_core::ftl::{Owned, Trim};
use lodger_core::ids::{BufferSlot, Lpn, Ppn};
use std::collections::HashMap;

pub const PAGE: usize = 4096;
pub const SECTOR: usize = 512;

/// What a page is to a test.
pub trait Page: Clone {
    /// [`Contents::HAS_BYTES`].
    const HAS_BYTES: bool = false;
    /// The smallest part that is told apart.
    type Cell: Copy;

    /// Its cells, as many for each sector.
    fn cells(&self) -> &[Self::Cell];
    fn cells_mut(&mut self) -> &mut [Self::Cell];
    /// What a request with this tag writes to a page.
    fn written(tag: u32, lpn: Lpn) -> Self;
    /// A page that nobody has written.
    fn unwritten() -> Self;
    /// An erased or torn page: reading it is an error that tests look for.
    fn lost() -> Self;
    /// What a call of the byte window writes to a byte.
    fn mark(tag: u32) -> Self::Cell;
    /// The page as the bytes that host memory holds, and back. Only with bytes.
    fn to_bytes(&self) -> PageBytes {
        unreachable!("has no bytes")
    }
    fn of_bytes(_: &PageBytes) -> Self {
        unreachable!("has no bytes")
    }
}

/// Lays the sectors of a mask over a page.
pub fn overlay<P: Page>(onto: &mut P, from: &P, sectors: u8) {
    let size = from.cells().len() / 8;
    for sector in (0..8).filter(|sector| sectors >> sector & 1 != 0) {
        let range = sector * size..(sector + 1) * size;
        onto.cells_mut()[range.clone()].copy_from_slice(&from.cells()[range]);
    }
}

/// For each sector the tag of the request that wrote it; 0 for nobody.
pub type SectorTags = [u32; 8];

/// A cell whose contents are lost.
pub const LOST: u32 = u32::MAX;

impl Page for SectorTags {
    type Cell = u32;

    fn cells(&self) -> &[u32] {
        self
    }
    fn cells_mut(&mut self) -> &mut [u32] {
        self
    }
    fn written(tag: u32, _: Lpn) -> Self {
        [tag; 8]
    }
    fn unwritten() -> Self {
        [0; 8]
    }
    fn lost() -> Self {
        [LOST; 8]
    }
    fn mark(tag: u32) -> u32 {
        tag
    }
}

/// For each byte the tag of the request or call that wrote it; 0 for nobody.
pub type ByteTags = Box<[u32; PAGE]>;

impl Page for ByteTags {
    type Cell = u32;

    fn cells(&self) -> &[u32] {
        &**self
    }
    fn cells_mut(&mut self) -> &mut [u32] {
        &mut **self
    }
    fn written(tag: u32, _: Lpn) -> Self {
        Box::new([tag; PAGE])
    }
    fn unwritten() -> Self {
        Box::new([0; PAGE])
    }
    fn lost() -> Self {
        Box::new([LOST; PAGE])
    }
    fn mark(tag: u32) -> u32 {
        tag
    }
}

/// Bytes, as [`sector_bytes`] makes them.
pub type SectorBytes = Box<PageBytes>;

/// What a request writes to a sector: who, and where.
pub fn sector_bytes(tag: u32, lpn: u32, sector: u32) -> [u8; SECTOR] {
    let mut bytes = [0; SECTOR];
    if tag == 0 {
        return bytes;
    }
    let words = [tag, lpn, sector, tag ^ 0x5A5A_5A5A];
    for (at, word) in bytes.chunks_exact_mut(4).zip(words.iter().cycle()) {
        at.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

impl Page for SectorBytes {
    const HAS_BYTES: bool = true;
    type Cell = u8;

    fn cells(&self) -> &[u8] {
        &**self
    }
    fn cells_mut(&mut self) -> &mut [u8] {
        &mut **self
    }
    fn written(tag: u32, lpn: Lpn) -> Self {
        let mut page = Box::new([0; PAGE]);
        for (sector, bytes) in (0..).zip(page.chunks_exact_mut(SECTOR)) {
            bytes.copy_from_slice(&sector_bytes(tag, lpn.0, sector));
        }
        page
    }
    fn unwritten() -> Self {
        Box::new([0; PAGE])
    }
    fn lost() -> Self {
        Box::new([0xDB; PAGE])
    }
    fn mark(tag: u32) -> u8 {
        tag as u8
    }
    fn to_bytes(&self) -> PageBytes {
        **self
    }
    fn of_bytes(page: &PageBytes) -> Self {
        Box::new(*page)
    }
}

/// A physical page.
#[derive(Clone)]
enum Flash<P> {
    /// As it was when the test began.
    AtFirst,
    /// Erased or torn.
    Lost,
    /// Of no use any more: nothing is read there, nor programmed before an erase.
    Dead,
    Programmed(P),
}

/// Pages in buffer and flash and, where there is one, in the byte window; with `MAP` also what the
/// translation pages in flash say, and what lies in flash beside the data.
#[derive(Clone)]
pub struct Pages<P: Page, const MAP: bool = false> {
    flash: Vec<Flash<P>>,
    buffer: Vec<Option<P>>,
    /// What flash holds from before the first request.
    before: fn(Ppn) -> P,
    /// Tag, page, sectors and what they held, of every read.
    pub seen: Vec<(u32, u32, u8, P)>,
    map_pages: HashMap<Ppn, Box<MapEntries>>,
    /// Translation pages read and found as they must be.
    pub map_pages_read: u64,
    /// The byte window.
    pub window: Vec<P::Cell>,
    /// Bytes of the window that loads and copies took: where from, what they held.
    pub loaded: Vec<(usize, P::Cell)>,
    packets: HashMap<u32, [P::Cell; 64]>,
    /// What lies beside the data.
    pub kept: Kept,
    /// Pages that the drive has said it needs no more.
    pub discarded: u64,
}

/// Follows the tag of the request that wrote each sector.
pub type Tags = Pages<SectorTags>;

/// The same, and what the map in flash says.
pub type Media = Pages<SectorTags, true>;

impl<P: Page, const MAP: bool> Default for Pages<P, MAP> {
    /// What flash holds from before reads as if nobody had written it.
    fn default() -> Self {
        Pages {
            flash: Vec::new(),
            buffer: Vec::new(),
            before: |_| P::unwritten(),
            seen: Vec::new(),
            map_pages: HashMap::new(),
            map_pages_read: 0,
            window: Vec::new(),
            loaded: Vec::new(),
            packets: HashMap::new(),
            kept: Kept::default(),
            discarded: 0,
        }
    }
}

impl<P: Page, const MAP: bool> Pages<P, MAP> {
    /// What flash holds from before the first request.
    pub fn with_flash(before: fn(Ppn) -> P) -> Self {
        Pages {
            before,
            ..Pages::default()
        }
    }

    /// Nothing is in flash: what is read there before it is programmed is lost.
    pub fn empty() -> Self {
        Pages::with_flash(|_| P::lost())
    }

    /// Empty, with a byte window that nobody has stored to.
    pub fn with_window(bytes: u64) -> Self {
        let mut pages = Pages::empty();
        let page = P::unwritten();
        assert_eq!(page.cells().len(), PAGE, "a cell is a byte");
        let bytes = bytes as usize;
        pages.window = page.cells().iter().copied().cycle().take(bytes).collect();
        pages
    }

    /// What a page holds.
    pub fn at(&self, source: Source) -> P {
        match source {
            Source::Buffer(slot) => self.buffered(slot).clone(),
            Source::Flash(ppn) => match self.flash.get(ppn.index()) {
                None | Some(Flash::AtFirst) => (self.before)(ppn),
                Some(Flash::Lost | Flash::Dead) => P::lost(),
                Some(Flash::Programmed(page)) => page.clone(),
            },
            Source::Unwritten => P::unwritten(),
        }
    }

    fn buffered(&self, slot: BufferSlot) -> &P {
        let held = self.buffer.get(slot.index());
        held.and_then(Option::as_ref)
            .expect("the slot holds a page")
    }

    fn set_slot(&mut self, slot: BufferSlot, page: P) {
        if self.buffer.len() <= slot.index() {
            self.buffer.resize(slot.index() + 1, None);
        }
        self.buffer[slot.index()] = Some(page);
    }

    fn flash_up_to(&mut self, end: usize) {
        if self.flash.len() < end {
            self.flash.resize(end, Flash::AtFirst);
        }
    }

    fn put(&mut self, to: Ppn, page: P) {
        self.flash_up_to(to.index() + 1);
        let held = &mut self.flash[to.index()];
        assert!(
            !matches!(held, Flash::Programmed(_) | Flash::Dead),
            "{to:?} is programmed twice without an erase"
        );
        *held = Flash::Programmed(page);
    }

    /// Physical pages whose data a request has written and that can be read.
    pub fn programmed(&self) -> impl Iterator<Item = Ppn> {
        let held = (0..).map(Ppn).zip(&self.flash);
        held.filter(|(_, held)| matches!(held, Flash::Programmed(_)))
            .map(|(ppn, _)| ppn)
    }

    /// The drive is gone. Of program operations that had not ended nothing is left.
    pub fn without_drive(mut self) -> Self {
        for (ppn, held) in (0..).map(Ppn).zip(&mut self.flash) {
            if matches!(held, Flash::Programmed(_)) && !self.kept.is_programmed(ppn) {
                *held = Flash::Lost;
            }
        }
        self.map_pages
            .retain(|&ppn, _| self.kept.is_programmed(ppn));
        self.buffer.clear();
        self.seen.clear();
        self
    }

    fn lose_flash(&mut self, first: Ppn, slots: u32) {
        let range = first.index()..first.index() + slots as usize;
        self.flash_up_to(range.end);
        self.flash[range.clone()].fill(Flash::Lost);
        if MAP {
            self.map_pages
                .retain(|ppn, _| !range.contains(&ppn.index()));
        }
    }
}

impl<const MAP: bool> Pages<SectorTags, MAP> {
    /// Read tag, sector, value of every sector read.
    pub fn sectors_seen(&self) -> impl Iterator<Item = (u32, u64, u32)> {
        let sectors = |&(tag, lpn, sectors, page): &(u32, u32, u8, SectorTags)| {
            let read = (0..8u64).filter(move |sector| sectors >> sector & 1 != 0);
            read.map(move |sector| (tag, u64::from(lpn) * 8 + sector, page[sector as usize]))
        };
        self.seen.iter().flat_map(sectors)
    }
}

impl<P: Page, const MAP: bool> Contents for Pages<P, MAP> {
    const HAS_BYTES: bool = P::HAS_BYTES;
    const FOLLOWS_MAP: bool = MAP;
    const HEARS_OF_DEAD: bool = true;

    type Payload = u32;

    fn payload(tag: u32) -> u32 {
        tag
    }
    fn arrive(&mut self, &mut tag: &mut u32, lpn: Lpn, slot: BufferSlot, sectors: u8) {
        let mut page = P::unwritten();
        overlay(&mut page, &P::written(tag, lpn), sectors);
        self.set_slot(slot, page);
    }
    fn merge(&mut self, _: Lpn, slot: BufferSlot, source: Source, written: u8) {
        let mut page = self.at(source);
        overlay(&mut page, self.buffered(slot), written);
        self.set_slot(slot, page);
    }
    fn absorb(&mut self, from: BufferSlot, to: BufferSlot, sectors: u8) {
        let mut page = self.buffered(to).clone();
        overlay(&mut page, self.buffered(from), sectors);
        self.set_slot(to, page);
    }
    fn program(&mut self, from: BufferSlot, to: Ppn) {
        self.put(to, self.buffered(from).clone());
    }
    fn relocate(&mut self, _: Owned, from: Ppn, to: Ppn) {
        self.put(to, self.at(Source::Flash(from)));
        if let Some(held) = self.map_pages.get(&from).cloned() {
            self.map_pages.insert(to, held);
        }
    }
    fn discard(&mut self, ppn: Ppn) {
        // Whoever reads it all the same finds nothing.
        self.flash_up_to(ppn.index() + 1);
        self.flash[ppn.index()] = Flash::Dead;
        self.discarded += 1;
    }
    fn erase(&mut self, first: Ppn, slots: u32) {
        self.lose_flash(first, slots);
        if MAP {
            self.kept.erase(first, slots);
        }
    }
    fn tear(&mut self, first: Ppn, slots: u32) {
        self.lose_flash(first, slots);
    }
    fn keeps_spare(&self) -> bool {
        MAP
    }
    fn programmed(&mut self, unit: &Programmed, spare: impl Iterator<Item = Spare>) {
        self.kept.programmed(unit, spare);
    }
    fn record_trims(&mut self, trims: &[Trim]) {
        if MAP {
            self.kept.record_trims(trims);
        }
    }
    fn read(&mut self, &mut tag: &mut u32, lpn: Lpn, source: Source, sectors: u8) {
        self.seen.push((tag, lpn.0, sectors, self.at(source)));
    }

    fn write_map_page(&mut self, to: Ppn, entries: &MapEntries) {
        self.map_pages.insert(to, Box::new(*entries));
    }
    fn read_map_page(&mut self, from: Ppn, entries: &MapEntries, initial: &MapEntries) {
        let held = self.map_pages.get(&from).map_or(initial, |held| held);
        for (at, (held, now)) in held.iter().zip(entries).enumerate() {
            assert_eq!(
                held, now,
                "entry {at} of the translation page at {from:?} is stale"
            );
        }
        self.map_pages_read += 1;
    }

    fn page(&self, _: Lpn, source: Source) -> PageBytes {
        self.at(source).to_bytes()
    }
    fn set_buffered(&mut self, slot: BufferSlot, page: &PageBytes) {
        self.set_slot(slot, P::of_bytes(page));
    }
    fn read_bytes(&mut self, &mut tag: &mut u32, lpn: Lpn, page: &PageBytes, sectors: u8) {
        self.seen.push((tag, lpn.0, sectors, P::of_bytes(page)));
    }

    fn combine(&mut self, tag: u32, packet: u32, _: u32, mask: u64) {
        let empty = [P::lost().cells()[0]; 64];
        let bytes = self.packets.entry(packet).or_insert(empty);
        for byte in (0..64).filter(|byte| mask >> byte & 1 != 0) {
            bytes[byte] = P::mark(tag);
        }
    }
    fn deliver(&mut self, packet: u32, line: u32, mask: u64) {
        let bytes = self.packets[&packet];
        let here = self.window.chunks_exact_mut(64).nth(line as usize);
        let Some(here) = here else { return };
        for byte in (0..64).filter(|byte| mask >> byte & 1 != 0) {
            here[byte] = bytes[byte];
        }
    }
    fn load(&mut self, _: &mut u32, offset_bytes: u64, length_bytes: u64) {
        let range = offset_bytes as usize..(offset_bytes + length_bytes) as usize;
        for at in range {
            self.loaded
                .extend(self.window.get(at).map(|cell| (at, *cell)));
        }
    }
    fn load_held(&mut self, _: &mut u32, packet: u32, line: u32, mask: u64) {
        let bytes = self.packets[&packet];
        for byte in (0..64).filter(|byte| mask >> byte & 1 != 0) {
            let at = line as usize * 64 + byte;
            let mut loaded = self.loaded.iter_mut().rev();
            if let Some(known) = loaded.find(|known| known.0 == at) {
                known.1 = bytes[byte];
            }
        }
    }
    fn pin(&mut self, window_slot: u32, _: Lpn, source: Source) {
        let page = self.at(source);
        let here = self.window.chunks_exact_mut(PAGE).nth(window_slot as usize);
        if let Some(here) = here {
            here.copy_from_slice(page.cells());
        }
    }
    fn unpin(&mut self, window_slot: u32, slot: BufferSlot) {
        let mut page = P::unwritten();
        let here = self.window.chunks_exact(PAGE).nth(window_slot as usize);
        if let Some(here) = here {
            page.cells_mut().copy_from_slice(here);
            self.set_slot(slot, page);
        }
    }
    fn lose(&mut self, offset_bytes: u64, length_bytes: u64) {
        let range = offset_bytes as usize..(offset_bytes + length_bytes) as usize;
        if let Some(here) = self.window.get_mut(range) {
            here.fill(P::lost().cells()[0]);
        }
    }
}
