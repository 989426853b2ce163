//! Flash translation layer: where data lies, where new data goes, what is collected next.
//!
//! Nothing here takes time: the device asks, is told what to read and program, and does so.

mod batch;
mod chunks;
mod collecting;
mod directory;
mod formula;
mod owner;
mod pacing;
mod page_map;
mod permutation;
mod recovery;
mod restore;
mod rewrite;
mod stream;
mod superblocks;
mod temperature;
mod victim;
mod wear;

pub use collecting::{Collecting, Collector, MOVERS, Move, Mover};
pub use formula::{Formula, Precondition};
pub use owner::{Owned, Owner};
pub use pacing::{Pacer, Sustained, WHOLE};
pub use recovery::{LostUnit, Scan, Trim};
pub use restore::{Contradiction, Found, FoundSuperblock, Rest, Written};
pub use rewrite::Moved;
pub use stream::Stream;
pub use superblocks::{Block, Oob, State, Superblocks, Victim};
pub use wear::Wear;

use crate::ids::{Lpn, Ppn, Superblock, TranslationPage};
use crate::nand::{CellMode, Geometry, Place, SlotMask};
use crate::spec::{DriveSpec, ENTRIES_PER_TRANSLATION_PAGE, SLOT_BYTES};
use directory::Directory;
use page_map::PageMap;
use recovery::FoundStale;
use serde::{Deserialize, Serialize};
use stream::STREAMS;
use temperature::Lifespan;

/// Sequence number from which on the host can write and trim no more: program operations and trims have 32 bits of them,
/// two to a trim. What is left, a sixteenth, is for data that is in the drive already: to write the buffer and the map,
/// to collect garbage and to recover, again and again. At 64 KiB for each program operation a drive has then
/// programmed 240 TiB.
pub const LAST_FOR_NEW_DATA: u32 = u32::MAX - (1 << 28);

/// Room for one program operation.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub struct ProgramUnit {
    /// Physical page number of its first slot.
    pub ppn: Ppn,
    /// Number of slots.
    pub slots: u32,
    /// That the superblock runs in.
    pub mode: CellMode,
    /// Sequence number of the program operation, and of the new data it carries.
    pub sequence: u32,
}

#[derive(Clone, Serialize, Deserialize, Copy, Debug, Default)]
struct Open {
    superblock: Option<Superblock>,
    next_slot: u32,
}

/// The translation layer's state.
#[derive(Clone, Serialize, Deserialize)]
pub struct Ftl {
    geometry: Geometry,
    map: PageMap,
    directory: Directory,
    /// All superblocks.
    pub blocks: Superblocks,
    open: [Open; STREAMS],
    /// Sequence number of the last program operation or trim.
    sequence: u32,
    reserve: u32,
    /// Superblocks kept for blocks that fail.
    failures: u32,
    /// `gc_start_superblocks`, those that short blocks have under way, and those kept for failures.
    gc_start: u32,
    /// Superblocks without which garbage still can be collected.
    retirable: u32,
    /// Share of the flash that holds nothing which may run in single-bit mode, in thousandths.
    slc_dynamic_permille: u32,
    /// Stream that relocated data goes to: one of its own, or one of host data.
    relocation_stream: Stream,
    /// Stream of new data that has lasted.
    lasting_stream: Stream,
    /// How long data lasts that is replaced (with hot/cold streams).
    lifespan: Lifespan,
    /// Pages of the map whose copy in flash the last recovery found old.
    found_stale: FoundStale,
    /// Slots given out so far, padding included: in ordinary mode, in single-bit mode.
    allocated_slots: [u64; 2],
    /// How far what a map of many superblocks has left behind goes up and down (`pacing.rs`).
    map_swing_superblocks: u32,
    /// The least of that of late.
    map_least_slots: i64,
}

impl Ftl {
    /// The translation layer of a drive in its initial state.
    #[must_use]
    pub fn new(spec: &DriveSpec, precondition: Precondition, seed: u64) -> Self {
        let geometry = Geometry::new(&spec.nand);
        let user_slots = (spec.capacity_bytes / SLOT_BYTES) as u32;
        let ftl = &spec.ftl;
        let translation_pages = user_slots.div_ceil(ENTRIES_PER_TRANSLATION_PAGE as u32);
        let map_blocks = translation_pages.div_ceil(geometry.superblock_slots);
        let formula = match precondition {
            Precondition::None => None,
            Precondition::Sequential => {
                Some(Formula::sequential(user_slots, geometry.superblock_slots))
            }
            Precondition::Random => {
                let data_blocks = Self::steady_data_superblocks(spec, map_blocks);
                let slots = geometry.superblock_slots;
                Some(Formula::random(user_slots, slots, data_blocks, seed))
            }
        };
        let mut directory = Directory::new(translation_pages);
        let data_blocks = formula.as_ref().map_or(0, Formula::superblocks);
        let written = formula.as_ref().map_or(0, |_| data_blocks + map_blocks);
        let valid = |number| {
            let formula = formula.as_ref()?;
            let valid = initial_valid(formula, translation_pages, &geometry, number);
            Some((valid, number >= data_blocks))
        };
        let blocks = Superblocks::new(
            geometry,
            ftl.slc_superblocks,
            (0..written).filter_map(valid),
            ftl.wear_dynamic,
            seed,
        );
        if formula.is_some() {
            directory.precondition(Ppn(data_blocks * geometry.superblock_slots));
        }
        Ftl {
            geometry,
            map: PageMap::new(user_slots, formula),
            directory,
            blocks,
            open: [Open::default(); STREAMS],
            sequence: 0,
            reserve: ftl.gc_reserve_superblocks,
            failures: spec.nand.failures_superblocks(),
            gc_start: Self::gc_start_of(spec),
            retirable: Self::retirable_of(spec),
            slc_dynamic_permille: ftl.slc_dynamic_permille,
            relocation_stream: Stream::of_relocated(ftl),
            lasting_stream: Stream::of_lasting(ftl),
            lifespan: Lifespan::new(user_slots),
            found_stale: FoundStale::default(),
            allocated_slots: [0; 2],
            map_swing_superblocks: Self::swing_superblocks(
                ftl,
                translation_pages,
                geometry.superblock_slots,
            ),
            map_least_slots: 0,
        }
    }

    /// Slots in use of a superblock at the start.
    fn initial_valid(&self, number: u32) -> u32 {
        self.map.formula().map_or(0, |formula| {
            initial_valid(formula, self.directory.pages(), &self.geometry, number)
        })
    }

    /// Shape of the array.
    #[inline]
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Number of logical pages.
    #[inline]
    #[must_use]
    pub fn user_slots(&self) -> u32 {
        self.map.user_slots()
    }

    /// Where a logical page lies.
    #[inline]
    #[must_use]
    pub fn locate(&self, lpn: Lpn) -> Option<Ppn> {
        self.map.get(lpn)
    }

    /// Where a logical page lay when the drive was in its initial state.
    #[must_use]
    pub fn initial(&self, lpn: Lpn) -> Option<Ppn> {
        self.map.formula().map(|formula| formula.locate(lpn))
    }

    /// Entries of a translation page; `u32::MAX` for logical pages without data.
    pub fn entries_of(
        &self,
        page: TranslationPage,
        into: &mut [u32; ENTRIES_PER_TRANSLATION_PAGE as usize],
    ) {
        let first = page.0 * ENTRIES_PER_TRANSLATION_PAGE as u32;
        for (lpn, entry) in (first..).zip(into) {
            let there = lpn < self.user_slots();
            let ppn = there.then(|| self.map.get(Lpn(lpn))).flatten();
            *entry = ppn.map_or(u32::MAX, |ppn| ppn.0);
        }
    }

    /// Where in the array a physical page lies.
    #[inline]
    #[must_use]
    pub fn place(&self, ppn: Ppn) -> Place {
        self.geometry.place(ppn, self.blocks.mode_of(ppn))
    }

    /// Where a translation page lies; `None` while nothing of it was ever written to flash.
    #[inline]
    #[must_use]
    pub fn locate_translation(&self, page: TranslationPage) -> Option<Ppn> {
        self.directory.get(page)
    }

    /// Whether a stream could be given room now. Streams of new data leave the reserve alone, so
    /// that garbage collection can always go on.
    #[must_use]
    pub fn has_room(&self, stream: Stream) -> bool {
        let open = &self.open[stream as usize];
        let mode = stream.mode();
        let slots = i64::from(self.geometry.superblock_slots);
        // Where garbage collection shares the stream, what it took from the reserve is its alone.
        let (is_shared, kept) = match stream {
            Stream::Host | Stream::Cold => (self.relocation_stream == stream, self.failures),
            Stream::Map => (true, 0),
            Stream::Gc | Stream::Slc | Stream::Wear => (false, 0),
        };
        let reserve = i64::from(self.reserve + kept) * slots;
        if is_shared && self.gc_slots_left() < reserve {
            return false;
        }
        if open.superblock.is_some() && open.next_slot < self.geometry.usable_slots(mode) {
            return true;
        }
        let free = self.blocks.free_count(mode) > 0;
        match stream {
            // What the map opens is still there for moves, until it is written.
            Stream::Gc | Stream::Map | Stream::Wear => free,
            Stream::Slc => free || self.may_borrow(),
            Stream::Host | Stream::Cold => free && self.gc_slots_left() >= reserve + slots,
        }
    }

    /// Whether single-bit mode takes superblocks that hold nothing at all (`ftl.slc_dynamic`).
    #[must_use]
    pub fn borrows(&self) -> bool {
        self.slc_dynamic_permille > 0
    }

    /// Whether single-bit mode may take another of the superblocks that hold nothing, of which it already has some: up to
    /// its share of those, and none that garbage collection would miss.
    #[must_use]
    pub fn may_borrow(&self) -> bool {
        if !self.borrows() {
            return false;
        }
        let free = self.blocks.free_count(CellMode::Native);
        // What is left must be room enough to collect nothing (`ftl/pacing.rs`).
        let kept = self.enough_superblocks() + 1;
        let borrowed = self.blocks.borrowed();
        let most = u64::from((free + borrowed).saturating_sub(kept))
            * u64::from(self.slc_dynamic_permille)
            / 1000;
        free > kept && u64::from(borrowed) < most
    }

    /// Room for one program operation of a stream. `relocating` data may use the reserve.
    ///
    /// Program operations and trims are numbered in one sequence: that of new data is the number of
    /// the operation that first brings it to flash. Whatever has the highest number is newest.
    ///
    /// # Panics
    /// After 2^28 of them beyond [`LAST_FOR_NEW_DATA`]: without new data a drive has not so much to do.
    pub fn allocate(&mut self, stream: Stream, relocating: bool) -> Option<ProgramUnit> {
        let mode = stream.mode();
        let usable = self.geometry.usable_slots(mode);
        if !relocating && !self.has_room(stream) {
            return None;
        }
        let stream = self.with_room(stream, relocating);
        let open = self.open[stream as usize];
        if open.superblock.is_none() || open.next_slot == usable {
            // The full one was closed when its last unit was given out; a free one comes next.
            let superblock = self.blocks.open(stream)?;
            self.open[stream as usize] = Open {
                superblock: Some(superblock),
                next_slot: 0,
            };
        }
        self.follow_map();
        let sequence = self.next_sequence();
        let open = &mut self.open[stream as usize];
        let superblock = open.superblock.expect("a superblock was opened");
        let slots = self.geometry.unit_slots(mode);
        let ppn = Ppn(self.geometry.first_ppn(superblock).0 + open.next_slot);
        open.next_slot += slots;
        self.allocated_slots[mode.index()] += u64::from(slots);
        let block = &mut self.blocks[superblock];
        block.programs += 1;
        block.programmed_at = sequence;
        if open.next_slot == usable {
            open.superblock = None;
            self.blocks.close(superblock);
        }
        Some(ProgramUnit {
            ppn,
            slots,
            mode,
            sequence,
        })
    }

    /// A place on the die that the next program operation of a stream goes to.
    #[must_use]
    pub fn next_place(&self, stream: Stream) -> Ppn {
        let open = &self.open[stream as usize];
        let next = |superblock| Ppn(self.geometry.first_ppn(superblock).0 + open.next_slot);
        // A superblock that is yet to be opened begins on the first die, as all do.
        open.superblock.map_or(Ppn(0), next)
    }

    /// Stream that relocated data goes to.
    #[must_use]
    pub fn relocation_stream(&self) -> Stream {
        self.relocation_stream
    }

    /// Whether there are sequence numbers left for what the host writes and trims, and flash that is not worn out.
    #[inline]
    #[must_use]
    pub fn takes_new_data(&self) -> bool {
        self.sequence < LAST_FOR_NEW_DATA && !self.is_worn_out()
    }

    /// Sequence number of the last program operation or trim.
    #[must_use]
    pub fn sequence(&self) -> u32 {
        self.sequence
    }

    /// Translation pages of the whole map.
    #[must_use]
    pub fn translation_pages(&self) -> u32 {
        self.directory.pages()
    }

    fn next_sequence(&mut self) -> u32 {
        self.sequence = self
            .sequence
            .checked_add(1)
            .expect("fewer than 2^32 programs");
        self.sequence
    }

    /// A program operation has ended.
    #[inline]
    pub fn programmed(&mut self, ppn: Ppn) {
        let superblock = self.geometry.superblock(ppn);
        self.blocks.programmed(superblock);
    }

    /// A logical page's data with that sequence number goes to `ppn`, in the last unit allocated.
    // Called from three places, one of which needs it once in a drive's life, it was inlined no more: 1.6 % of a write.
    #[inline(always)]
    pub fn bind(&mut self, lpn: Lpn, ppn: Ppn, sequence: u32) {
        let before = self.map.set(lpn, Some(ppn));
        self.supersede(before);
        self.mark_valid(ppn, Owner::data(lpn), sequence);
    }

    /// A translation page with that sequence number goes to `ppn`, in the last unit allocated.
    pub fn bind_translation(&mut self, page: TranslationPage, ppn: Ppn, sequence: u32) {
        let before = self.directory.set(page, Some(ppn));
        self.supersede(before);
        self.mark_valid(ppn, Owner::map(page), sequence);
    }

    /// A trim begins; returns its sequence number. The number before it is that of the data it voids on the
    /// way to flash ([`Ftl::leave_trimmed`]).
    pub fn begin_trim(&mut self) -> u32 {
        self.next_sequence();
        self.next_sequence()
    }

    /// Data already trimmed goes to `ppn`: nothing points to it, but until the trim is safe a power
    /// cut brings it back.
    pub fn leave_trimmed(&mut self, lpn: Lpn, ppn: Ppn, trim: u32) {
        self.mark_valid(ppn, Owner::data(lpn), trim - 1);
        let block = self.invalidate(ppn);
        block.trimmed_at = block.trimmed_at.max(trim);
    }

    /// Logical pages `from..to` have no data any more, by the last trim begun; returns whether any
    /// had. `void`: [`Ftl::void_initial`] has seen to those that were never written since the start. `dead`: told of
    /// each physical page that held their data.
    pub fn unbind(&mut self, from: u32, to: u32, void: bool, mut dead: impl FnMut(Ppn)) -> bool {
        let (geometry, blocks, sequence) = (&self.geometry, &mut self.blocks, self.sequence);
        self.map.clear(from, to, void, |ppn| {
            let (superblock, offset) = geometry.split(ppn);
            blocks.invalidate(superblock, offset).trimmed_at = sequence;
            dead(ppn);
        })
    }

    /// All logical pages are being trimmed, by a trim with this sequence number (0: one that is safe): none lies
    /// any more where it lay at the start.
    pub fn void_initial(&mut self, trim: u32) {
        let data_blocks = self.map.formula().map_or(0, Formula::superblocks);
        for superblock in (0..data_blocks).map(Superblock) {
            let block = &self.blocks[superblock];
            if block.oob.is_none() && block.valid > 0 {
                self.blocks.void(superblock).trimmed_at = trim;
            }
        }
    }

    /// A translation page has no entries any more, by the last trim begun.
    pub fn unbind_translation(&mut self, page: TranslationPage) {
        let before = self.directory.set(page, None);
        self.trim(before);
    }

    /// Data is superseded by the last unit allocated.
    #[inline]
    fn supersede(&mut self, before: Option<Ppn>) {
        if let Some(ppn) = before {
            let sequence = self.sequence;
            self.invalidate(ppn).superseded_at = sequence;
        }
    }

    fn trim(&mut self, before: Option<Ppn>) {
        if let Some(ppn) = before {
            let sequence = self.sequence;
            self.invalidate(ppn).trimmed_at = sequence;
        }
    }

    #[inline]
    fn invalidate(&mut self, ppn: Ppn) -> &mut Block {
        let (superblock, offset) = self.geometry.split(ppn);
        self.blocks.invalidate(superblock, offset)
    }

    #[inline]
    fn mark_valid(&mut self, ppn: Ppn, owner: Owner, sequence: u32) {
        let (superblock, offset) = self.geometry.split(ppn);
        let block = &mut self.blocks[superblock];
        block.valid += 1;
        let oob = block.oob.as_mut().expect("data goes to opened superblocks");
        oob[offset as usize] = Oob { owner, sequence };
    }

    /// Whose data a slot holds, if it is current.
    #[inline]
    #[must_use]
    pub fn current_owner(&self, ppn: Ppn) -> Option<Owned> {
        self.current(ppn)?.owner.get()
    }

    /// Like [`Ftl::current_owner`], with the sequence number of the data; 0 for what lay there from the start.
    #[inline]
    #[must_use]
    pub fn current(&self, ppn: Ppn) -> Option<Oob> {
        let (superblock, offset) = self.geometry.split(ppn);
        let block = &self.blocks[superblock];
        if block.is_dead(offset) {
            return None;
        }
        let oob = match &block.oob {
            Some(oob) => oob.get(offset as usize).copied().unwrap_or(Oob::NOTHING),
            None => Oob {
                owner: self.initial_owner(ppn),
                sequence: 0,
            },
        };
        (!oob.owner.is_padding()).then_some(oob)
    }

    /// Whether a slot's data, known to have been written, is still current.
    #[inline]
    #[must_use]
    pub fn is_current(&self, ppn: Ppn) -> bool {
        let (superblock, offset) = self.geometry.split(ppn);
        !self.blocks[superblock].is_dead(offset)
    }

    /// The slots of a group whose data is current, a bit each.
    #[inline]
    #[must_use]
    pub fn current_slots(&self, group: Ppn) -> SlotMask {
        let (superblock, offset) = self.geometry.split(group);
        let block = &self.blocks[superblock];
        let mut mask: SlotMask = 0;
        for slot in 0..self.geometry.group_slots {
            let held = match &block.oob {
                Some(oob) => !oob[(offset + slot) as usize].owner.is_padding(),
                None => self.was_initially_held(Ppn(group.0 + slot)),
            };
            mask |= SlotMask::from(held && !block.is_dead(offset + slot)) << slot;
        }
        mask
    }

    fn was_initially_held(&self, ppn: Ppn) -> bool {
        self.map.formula().is_some_and(|formula| formula.holds(ppn))
            || self.directory.initial_owner(ppn).is_some()
    }

    fn initial_owner(&self, ppn: Ppn) -> Owner {
        match self.map.formula().and_then(|formula| formula.owner(ppn)) {
            Some(lpn) => Owner::data(lpn),
            None => self
                .directory
                .initial_owner(ppn)
                .map_or(Owner::PADDING, Owner::map),
        }
    }

    /// Checks that map, reverse map and valid counts agree, and that no superblock is lost.
    ///
    /// # Panics
    /// If they do not. Visits every logical page: for tests and small drives.
    pub fn check(&self) {
        let mut valid = vec![0u32; self.geometry.superblocks as usize];
        for lpn in 0..self.user_slots() {
            if let Some(ppn) = self.map.get(Lpn(lpn)) {
                assert_eq!(
                    self.current_owner(ppn),
                    Some(Owned::Data(Lpn(lpn))),
                    "map and reverse map disagree"
                );
                valid[self.geometry.superblock(ppn).index()] += 1;
            }
        }
        for page in 0..self.directory.pages() {
            let page = TranslationPage(page);
            if let Some(ppn) = self.directory.get(page) {
                assert_eq!(self.current_owner(ppn), Some(Owned::Map(page)));
                valid[self.geometry.superblock(ppn).index()] += 1;
            }
        }
        let mut free = 0;
        for (number, block) in self.blocks.all().iter().enumerate() {
            assert_eq!(
                block.valid, valid[number],
                "valid count of superblock {number}"
            );
            free += u32::from(block.state == State::Free);
        }
        assert_eq!(
            free,
            CellMode::ALL
                .map(|mode| self.blocks.free_count(mode))
                .iter()
                .sum(),
            "free superblocks are those in the free lists"
        );
        let all = (0u32..).map(Superblock).zip(self.blocks.all());
        let borrowed = all.filter(|(superblock, block)| {
            let is_apart = self.blocks.is_apart(*superblock);
            let can_be = block.mode.is_slc() || !is_apart;
            assert!(can_be, "what stands apart stays in single-bit mode");
            assert!(block.state != State::Free || block.mode.is_slc() == is_apart);
            block.mode.is_slc() && !is_apart
        });
        assert_eq!(borrowed.count() as u32, self.blocks.borrowed());
        self.check_map_garbage();
    }
}

/// Slots in use of a superblock of a preconditioned drive: data first, then the map's pages.
fn initial_valid(formula: &Formula, pages: u32, geometry: &Geometry, number: u32) -> u32 {
    match number.checked_sub(formula.superblocks()) {
        None => formula.valid_slots(number),
        Some(before) => pages
            .saturating_sub(before.saturating_mul(geometry.superblock_slots))
            .min(geometry.superblock_slots),
    }
}
