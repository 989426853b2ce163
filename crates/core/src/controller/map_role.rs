//! Role `map`: which parts of the address map are close at hand, on which memory, and what must be
//! read from or written to flash because they are not.
//!
//! The map is read from flash by translation pages (4 KiB, 1024 entries). Each memory of the role
//! keeps *units* of one or more translation pages. A unit larger than the page a request waits for
//! is completed in the background; its place is taken from another unit at once, so that with more
//! units in use than fit, most of the memory can be in the state of being filled. That is the
//! "replacement by segment" which explains the sharp drop beyond the reach (docs/concepts).

mod compressed;
mod filling;
mod fills;
mod host;
mod queue;
mod recovery;
mod writebacks;

pub use host::Moved;

use super::TierMigrations;
use super::cache::{Cache, Direct, Inserted};
use super::encoding::Encoder;
use crate::ids::{BufferSlot, CommandId, FillingId, TranslationPage};
use crate::spec::{Encoding, Integrity, MapRoleSpec, MapTierSpec, Tier};
use compressed::Compressed;
use filling::Filling;
use fills::Fills;
pub use fills::{Asker, Change};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use writebacks::Writebacks;

/// What a look-up found.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// In this memory, by its index in the role's list.
    Tier(usize),
    /// Changed, out of every memory, and in the drive until it is written: what flash has is older.
    Waiting,
    /// In no memory, and in flash neither: nothing of it was ever written, or all was trimmed. The directory says so.
    Unmapped,
    /// In no memory: the translation page must be read from flash.
    Nowhere,
}

impl Lookup {
    /// Memory that the answer comes from, by its index in the role's list: the directory, and pages that wait to be written,
    /// stand in the nearest.
    #[inline]
    #[must_use]
    pub fn answered_by(self) -> Option<usize> {
        match self {
            Lookup::Tier(place) => Some(place),
            Lookup::Waiting | Lookup::Unmapped => Some(0),
            Lookup::Nowhere => None,
        }
    }
}

/// Who waits for a translation page.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub enum Waiter {
    /// A command that reads pages of it.
    Command(CommandId),
    /// Data in a slot of the write buffer that is to be merged with what one of its pages holds.
    Merge(BufferSlot),
}

#[derive(Clone, Serialize, Deserialize, Debug)]
struct MapTier {
    tier: Tier,
    unit_pages: u32,
    /// Everything fits: no look-up can miss once the drive has started.
    holds_all: bool,
    cache: Cache<Direct>,
    /// Its pages are compressed.
    compressed: Option<Compressed>,
}

impl MapTier {
    #[inline]
    fn unit(&self, page: TranslationPage) -> u32 {
        page.0 / self.unit_pages
    }

    /// Pages that its cache has room for, whatever is in them; 0 where no cache is needed.
    fn pages_surely(&self) -> u32 {
        match &self.compressed {
            Some(held) => held.surely().min(u64::from(u32::MAX)) as u32,
            None => self.cache.capacity().saturating_mul(self.unit_pages),
        }
    }
}

/// The map cache: which translation pages stand in which memory.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct MapRole {
    spec: MapRoleSpec,
    tiers: Vec<MapTier>,
    pages: u32,
    seed: u64,
    /// Bit per translation page: differs from flash.
    dirty: Vec<u64>,
    writebacks: Writebacks,
    fills: Fills,
    filling: Filling,
    /// Units that gave way, by tier.
    pub evictions: [u64; crate::observe::TIERS_MAX],
    /// Exclusive tiers: units that moved to host memory and from it and were not charged yet.
    pub migrations: TierMigrations,
    /// Whether any memory holds compressed pages.
    compresses: bool,
    encoder: Encoder,
    /// Whether `moved` is wanted.
    pub records_moves: bool,
    /// What happened to the share of host memory, oldest first.
    pub moved: VecDeque<Moved>,
}

impl MapRole {
    /// An empty cache for a map of `pages` translation pages. `hmb_bytes` is what the host grants
    /// and the drive can use.
    #[must_use]
    pub fn new(spec: &MapRoleSpec, pages: u32, hmb_bytes: u64, seed: u64) -> Self {
        let mut role = MapRole {
            spec: spec.clone(),
            tiers: Vec::new(),
            pages,
            seed,
            dirty: vec![0; pages.div_ceil(64) as usize],
            writebacks: Writebacks::new(),
            fills: Fills::new(spec.fills_in_flight),
            filling: Filling::new(spec.background_reads),
            migrations: TierMigrations::default(),
            evictions: [0; crate::observe::TIERS_MAX],
            compresses: spec
                .tiers
                .iter()
                .any(|tier| tier.encoding != Encoding::Flat),
            encoder: Encoder::default(),
            records_moves: false,
            moved: VecDeque::new(),
        };
        role.tiers = spec
            .tiers
            .iter()
            .map(|tier| role.build_tier(tier, hmb_bytes))
            .collect();
        role
    }

    fn build_tier(&self, spec: &MapTierSpec, hmb_bytes: u64) -> MapTier {
        let bytes = if spec.tier.is_granted() {
            hmb_bytes
        } else {
            spec.bytes
        };
        let units = self.pages.div_ceil(spec.unit_translation_pages);
        let compressed = Compressed::new(spec, self.pages, bytes);
        // Of compressed pages, how many fit is seen when they are there.
        let (capacity, surely) = match &compressed {
            Some(held) if held.is_usable() => (units, held.surely()),
            Some(_) => (0, 0),
            None => {
                let capacity = Self::units_that_fit(spec, bytes);
                (capacity, u64::from(capacity))
            }
        };
        let holds_all = !spec.tier.is_granted() && surely >= u64::from(units);
        let held = if holds_all { 0 } else { capacity.min(units) };
        MapTier {
            tier: spec.tier,
            unit_pages: spec.unit_translation_pages,
            holds_all,
            cache: Cache::new(Direct::new(units), held, self.spec.replacement, self.seed),
            compressed,
        }
    }

    /// Units of a tier that fit into `bytes`.
    #[must_use]
    pub fn units_that_fit(spec: &MapTierSpec, bytes: u64) -> u32 {
        if spec.integrity != Integrity::None || spec.encoding != Encoding::Flat {
            return (bytes / spec.unit_bytes()).min(u64::from(u32::MAX)) as u32;
        }
        let unit_millibytes = u128::from(spec.unit_translation_pages)
            * u128::from(crate::spec::ENTRIES_PER_TRANSLATION_PAGE)
            * u128::from(spec.entry_millibytes);
        (u128::from(bytes) * 1000 / unit_millibytes).min(u128::from(u32::MAX)) as u32
    }

    /// The memory of that index in the role's list.
    #[inline]
    #[must_use]
    pub fn tier(&self, place: usize) -> Tier {
        self.tiers[place].tier
    }

    /// Looks a page up on the role's memories, nearest first, and counts the use.
    #[inline(always)]
    pub fn look_up(&mut self, page: TranslationPage) -> Lookup {
        for (place, tier) in self.tiers.iter_mut().enumerate() {
            if tier.holds_all || tier.cache.touch(page.0 / tier.unit_pages) {
                if place > 0 && self.spec.exclusive {
                    self.promote(page, place);
                }
                return Lookup::Tier(place);
            }
        }
        if self.writebacks.has(page) {
            return Lookup::Waiting;
        }
        Lookup::Nowhere
    }

    /// Exclusive tiers: what is used moves to the nearest memory; out of one that holds all anyway it
    /// is copied.
    fn promote(&mut self, page: TranslationPage, from: usize) {
        let unit = self.tiers[from].unit(page);
        if self.tiers[from].holds_all {
            self.install(0, unit);
            return;
        }
        self.tiers[from].cache.remove(unit);
        self.tiers[from].cache.expect_back(unit);
        self.migrate(from, page, false);
        if let Some(compressed) = &mut self.tiers[from].compressed {
            compressed.let_go(unit);
        }
        self.record(from, Moved::ReadBack(page));
        self.record(from, Moved::Gone(unit));
        self.install(0, unit);
    }

    /// Puts a complete unit on a tier; what gives way moves on (exclusive) or is written back.
    fn install(&mut self, place: usize, unit: u32) {
        if self.tiers[place].holds_all
            || self.tiers[place].cache.capacity() == 0
            || self.tiers[place].cache.contains(unit)
        {
            return;
        }
        if !self.install_compressed(place, unit) {
            match self.tiers[place].cache.insert(unit, false) {
                Inserted::Evicted(gone) => self.gave_way(place, gone),
                Inserted::Free => {}
                Inserted::Full => return,
            }
        }
        self.record_arrival(place, unit);
    }

    /// A unit has given way: it moves on (exclusive) or is written back if need be.
    fn gave_way(&mut self, place: usize, gone: u32) {
        self.evictions[place] += 1;
        if self.spec.exclusive && place + 1 < self.tiers.len() {
            self.migrate(place + 1, TranslationPage(gone), true);
            self.install(place + 1, gone);
        }
        self.left(place, gone);
    }

    /// A unit has left a tier: pages that differ from flash and stand nowhere else are staged.
    fn left(&mut self, place: usize, unit: u32) {
        let unit_pages = self.tiers[place].unit_pages;
        let first = unit * unit_pages;
        for page in first..(first + unit_pages).min(self.pages) {
            let page = TranslationPage(page);
            if self.is_dirty(page) && !self.is_held(page) {
                self.stage(page);
                self.read_back(place, page);
            }
        }
        self.record(place, Moved::Gone(unit));
    }

    fn is_held(&self, page: TranslationPage) -> bool {
        self.place_of(page).is_some()
    }

    /// Nearest memory that holds a page.
    fn place_of(&self, page: TranslationPage) -> Option<usize> {
        let holds = |tier: &MapTier| tier.holds_all || tier.cache.contains(tier.unit(page));
        self.tiers.iter().position(holds)
    }

    #[inline]
    fn is_dirty(&self, page: TranslationPage) -> bool {
        self.dirty[page.index() / 64] >> (page.0 % 64) & 1 != 0
    }

    #[inline]
    fn mark(&mut self, page: TranslationPage) {
        self.dirty[page.index() / 64] |= 1 << (page.0 % 64);
    }

    fn stage(&mut self, page: TranslationPage) {
        self.dirty[page.index() / 64] &= !(1 << (page.0 % 64));
        self.writebacks.add(page);
    }

    /// An entry of a page changes. Returns the memory that takes the change, `Waiting` included; `Nowhere` when the page
    /// must be brought in first ([`MapRole::fill`]) or made ([`MapRole::create`]).
    // Called from several places: left alone it is a call for each page written.
    #[inline(always)]
    pub fn update(&mut self, page: TranslationPage) -> Lookup {
        // The farthest copy is the one that outlives the others.
        for place in (0..self.tiers.len()).rev() {
            let tier = &self.tiers[place];
            if tier.holds_all {
                return Lookup::Tier(place);
            }
            if tier.cache.contains(tier.unit(page)) {
                self.mark(page);
                return Lookup::Tier(place);
            }
        }
        if self.writebacks.has(page) {
            return Lookup::Waiting;
        }
        Lookup::Nowhere
    }

    /// A page of which nothing is in flash gets its first entry: it starts empty, nothing needs to
    /// be read.
    pub fn create(&mut self, page: TranslationPage) {
        self.mark(page);
        self.arrive(page);
    }

    /// A whole page is in the controller: tiers with units of one page take it.
    fn arrive(&mut self, page: TranslationPage) {
        let places = if self.spec.exclusive {
            1
        } else {
            self.tiers.len()
        };
        for place in 0..places {
            if self.tiers[place].unit_pages == 1 {
                self.install(place, page.0);
            }
        }
        if self.is_dirty(page) && !self.is_held(page) {
            self.stage(page);
        }
    }

    /// Tiers with larger units make room for the page's unit and have it completed; `evicts`: others may give way.
    fn claim_units(&mut self, page: TranslationPage, evicts: bool) {
        for place in 0..self.tiers.len() {
            let tier = &mut self.tiers[place];
            let unit = tier.unit(page);
            if tier.unit_pages == 1
                || tier.holds_all
                || tier.cache.capacity() == 0
                || tier.cache.contains(unit)
                || (!evicts && tier.cache.len() >= tier.cache.capacity())
            {
                continue;
            }
            let outcome = tier.cache.insert(unit, true);
            if outcome == Inserted::Full {
                continue;
            }
            let first = unit * tier.unit_pages;
            let end_page = (first + tier.unit_pages).min(self.pages);
            self.filling.start(place, unit, first..end_page);
            if let Inserted::Evicted(gone) = outcome {
                self.evictions[place] += 1;
                self.left(place, gone);
            }
        }
    }

    /// The next pages to read in the background: the first, and where the unit ends. The caller says with
    /// [`MapRole::background_issued`] how many pages one read brings.
    #[inline]
    #[must_use]
    pub fn next_background(&self) -> Option<(TranslationPage, u32)> {
        let pages = self.filling.next()?;
        Some((TranslationPage(pages.start), pages.end))
    }

    /// Whether the pages announced by [`MapRole::next_background`] are to be sent to the host.
    #[must_use]
    pub fn next_background_is_sent(&self) -> bool {
        let memory = self.filling.next_memory();
        memory.is_some_and(|place| self.tiers[place].tier.is_granted())
    }

    /// Units in memory that the host granted are not read on for now, or are again.
    pub fn hold_sent_units(&mut self, held: bool) {
        for (place, tier) in self.tiers.iter().enumerate() {
            if tier.tier.is_granted() {
                self.filling.hold(place, held);
            }
        }
    }

    /// `pages` pages of the unit announced by [`MapRole::next_background`] are being read. Returns the
    /// unit, for [`MapRole::background_done`].
    pub fn background_issued(&mut self, pages: u32) -> FillingId {
        self.filling.issued(pages)
    }

    /// The next page of the unit announced by [`MapRole::next_background`] is not in flash.
    pub fn background_absent(&mut self) {
        if let Some((place, unit)) = self.filling.skipped() {
            self.complete(place, unit);
        }
    }

    /// A background read of a unit has ended. Returns the unit's memory.
    pub fn background_done(&mut self, filling: FillingId) -> Tier {
        let tier = self.tiers[self.filling.memory_of(filling)].tier;
        if let Some((place, unit)) = self.filling.done(filling) {
            self.complete(place, unit);
        }
        tier
    }

    /// All pages of a unit are here: it becomes usable.
    fn complete(&mut self, place: usize, unit: u32) {
        let tier = &mut self.tiers[place];
        tier.cache.unpin(unit);
        if self.records_moves
            && tier.tier.is_granted()
            && let Some(frame) = tier.cache.frame(unit)
        {
            self.moved.push_back(Moved::Came(unit, frame));
        }
    }

    /// Pages waiting to be written to flash.
    #[inline]
    #[must_use]
    pub fn writebacks(&self) -> usize {
        self.writebacks.len()
    }

    /// Takes the next page to be written to flash.
    pub fn pop_writeback(&mut self) -> Option<TranslationPage> {
        self.writebacks.next()
    }

    /// Whether a memory of the drive holds the whole map: no page of it gives way, so that none is written to flash while the drive works.
    #[must_use]
    pub fn holds_all(&self) -> bool {
        self.tiers.iter().any(|tier| tier.holds_all)
    }

    /// Changed pages that may wait to be written beside those that the memories hold: a quarter of them. `None` where they
    /// have room for none.
    #[must_use]
    pub fn waiting_max(&self) -> Option<u32> {
        let held = self.tiers.iter().map(MapTier::pages_surely);
        let held = held.fold(0, u32::saturating_add);
        (held > 0).then_some(held / 4)
    }

    /// Changed pages that memories hold come to those that wait to be written until those are `wanted`, and stay where they are:
    /// they are written with the others, and need not be when they give way.
    pub fn stage_more(&mut self, wanted: usize) {
        for place in 0..self.tiers.len() {
            let Some(room) = wanted.checked_sub(self.writebacks.len()) else {
                return;
            };
            let tier = &self.tiers[place];
            let pages = |unit: u32| (unit * tier.unit_pages..).take(tier.unit_pages as usize);
            let held = tier.cache.keys().flat_map(pages).map(TranslationPage);
            let changed = held.filter(|page| page.0 < self.pages && self.is_dirty(*page));
            let changed: Vec<_> = changed.take(room).collect();
            for page in changed {
                self.stage(page);
                self.read_back(place, page);
            }
        }
    }

    /// Whether a page is being read or stands among those to be written.
    #[must_use]
    pub fn is_busy(&self, page: TranslationPage) -> bool {
        self.fills.has(page) || self.writebacks.has(page)
    }

    /// Whether a page that arrives is copied to memory the host granted.
    #[must_use]
    pub fn spreads_to_host(&self) -> bool {
        let places = if self.spec.exclusive {
            1
        } else {
            self.tiers.len()
        };
        self.tiers[..places]
            .iter()
            .any(|held| held.tier.is_granted() && held.unit_pages == 1 && held.cache.capacity() > 0)
    }

    /// A page has lost all its entries (trim): nothing of it needs to be written.
    pub fn discard(&mut self, page: TranslationPage) {
        self.dirty[page.index() / 64] &= !(1 << (page.0 % 64));
    }

    /// Gives the host memory up or takes another amount; units held there are lost, what differs
    /// from flash is staged.
    pub fn set_hmb(&mut self, hmb_bytes: u64) {
        for place in 0..self.tiers.len() {
            if !self.tiers[place].tier.is_granted() {
                continue;
            }
            let held: Vec<u32> = self.tiers[place].cache.keys().collect();
            self.filling.give_up(place);
            let spec = self.spec.tiers[place].clone();
            let mut tier = self.build_tier(&spec, hmb_bytes);
            if let (Some(new), Some(old)) =
                (&mut tier.compressed, &mut self.tiers[place].compressed)
            {
                new.keep_sizes(old);
            }
            self.tiers[place] = tier;
            for unit in held {
                self.left(place, unit);
            }
        }
    }
}
