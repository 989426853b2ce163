//! Memories that hold compressed translation pages: as many as fit by their size of now.

use super::super::encoding::{Encoder, Entries, flat_bytes, search_steps};
use super::{MapRole, MapTier};
use crate::ids::TranslationPage;
use crate::spec::{ENCODING_HEADER_BYTES, Encoding, Integrity, MapTierSpec, Tier};
use serde::{Deserialize, Serialize};

/// What a memory of compressed pages keeps beside its cache.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct Compressed {
    encoding: Encoding,
    integrity: Integrity,
    entry_millibytes: u32,
    capacity_bytes: u64,
    used_bytes: u64,
    /// Size of each page when it was measured last, right for all pages held; 0: not yet.
    sizes: Vec<u32>,
}

impl Compressed {
    /// For `pages` pages in `bytes` of memory; `None` for a flat map.
    pub(super) fn new(spec: &MapTierSpec, pages: u32, bytes: u64) -> Option<Self> {
        if spec.encoding == Encoding::Flat {
            return None;
        }
        Some(Compressed {
            encoding: spec.encoding,
            integrity: spec.integrity,
            entry_millibytes: spec.entry_millibytes,
            capacity_bytes: bytes,
            used_bytes: 0,
            sizes: vec![0; pages as usize],
        })
    }

    /// Sizes hold for pages kept elsewhere, which may come here, too.
    pub(super) fn keep_sizes(&mut self, old: &mut Self) {
        std::mem::swap(&mut self.sizes, &mut old.sizes);
    }

    /// Pages that fit whatever is in them.
    pub(super) fn surely(&self) -> u64 {
        let flat = ENCODING_HEADER_BYTES + flat_bytes(self.entry_millibytes);
        self.capacity_bytes / self.integrity.page_bytes(flat)
    }

    /// Whether there can be room for anything.
    pub(super) fn is_usable(&self) -> bool {
        self.surely() > 0
    }

    fn measure(&self, encoder: &mut Encoder, entries: &Entries) -> u32 {
        let bytes = encoder.bytes(entries, self.encoding, self.entry_millibytes);
        self.integrity.page_bytes(bytes) as u32
    }

    fn has_room(&self, more: u32) -> bool {
        self.used_bytes + u64::from(more) <= self.capacity_bytes
    }

    pub(super) fn took(&mut self, page: u32) {
        self.used_bytes += u64::from(self.sizes[page as usize]);
    }

    pub(super) fn let_go(&mut self, page: u32) {
        self.used_bytes -= u64::from(self.sizes[page as usize]);
    }

    fn is_flat(&self, bytes: u32) -> bool {
        u64::from(bytes) >= self.integrity.page_bytes(flat_bytes(self.entry_millibytes))
    }
}

impl MapTier {
    /// Memory in use by compressed pages, bytes.
    pub(super) fn compressed_bytes(&self) -> Option<u64> {
        self.compressed.as_ref().map(|held| held.used_bytes)
    }
}

impl MapRole {
    /// Whether any memory of the role holds compressed pages.
    #[inline]
    #[must_use]
    pub fn compresses(&self) -> bool {
        self.compresses
    }

    /// Whether any memory holds a page, so that it must be measured again when its entries change.
    #[must_use]
    pub fn is_kept(&self, page: TranslationPage) -> bool {
        self.is_held(page)
    }

    /// Whether a memory holds a page from the start that was never measured.
    #[must_use]
    pub fn is_unmeasured(&self, page: TranslationPage) -> bool {
        let sizes = |tier: &MapTier| {
            tier.compressed
                .as_ref()
                .map(|held| held.sizes[page.index()])
        };
        self.holds_all() && self.tiers.iter().any(|tier| sizes(tier) == Some(0))
    }

    /// Whether host memory holds a page.
    #[must_use]
    pub fn is_held_by_host(&self, page: TranslationPage) -> bool {
        let mut tiers = self.tiers.iter();
        tiers.any(|held| held.tier.is_granted() && held.cache.contains(held.unit(page)))
    }

    /// Page that is being read for those who wait.
    #[must_use]
    pub fn page_of(&self, fill: u32) -> TranslationPage {
        self.fills.page_of(fill)
    }

    /// These are the entries of a page from now on: it takes more room, or less, where it is held,
    /// and others give way.
    pub fn measure(&mut self, page: TranslationPage, entries: &Entries) {
        for place in 0..self.tiers.len() {
            let tier = &mut self.tiers[place];
            let Some(compressed) = &mut tier.compressed else {
                continue;
            };
            let held = tier.cache.contains(page.0);
            let bytes = compressed.measure(&mut self.encoder, entries);
            if held {
                compressed.let_go(page.0);
            }
            compressed.sizes[page.index()] = bytes;
            if held {
                compressed.took(page.0);
                self.make_room(place, 0);
            }
        }
    }

    /// A page moves to host memory or from it, if `place` is that.
    pub(super) fn migrate(&mut self, place: usize, page: TranslationPage, to_host: bool) {
        let tier = &self.tiers[place];
        if !tier.tier.is_granted() {
            return;
        }
        let migrations = &mut self.migrations;
        let bytes = tier
            .compressed
            .as_ref()
            .map(|held| held.sizes[page.index()]);
        let bytes = bytes.map(u64::from);
        match (bytes, to_host) {
            (None, true) => migrations.to_host += 1,
            (None, false) => migrations.from_host += 1,
            (Some(bytes), true) => migrations.to_host_bytes += bytes,
            (Some(bytes), false) => migrations.from_host_bytes += bytes,
        }
    }

    /// Pages give way until `bytes` more fit.
    fn make_room(&mut self, place: usize, bytes: u32) {
        loop {
            let tier = &mut self.tiers[place];
            let Some(compressed) = &mut tier.compressed else {
                return;
            };
            if compressed.has_room(bytes) {
                return;
            }
            let Some(gone) = tier.cache.evict() else {
                return;
            };
            compressed.let_go(gone);
            self.gave_way(place, gone);
        }
    }

    /// Puts a page on a memory of compressed pages. Returns false where that is none.
    pub(super) fn install_compressed(&mut self, place: usize, page: u32) -> bool {
        let Some(compressed) = &self.tiers[place].compressed else {
            return false;
        };
        if !compressed.is_usable() {
            return true;
        }
        self.make_room(place, compressed.sizes[page as usize]);
        let tier = &mut self.tiers[place];
        tier.cache.insert(page, false);
        if let Some(compressed) = &mut tier.compressed {
            compressed.took(page);
        }
        true
    }

    /// Bytes of a page on a memory, and whether a look-up must search it; `None` for a flat map.
    #[must_use]
    pub fn compressed_page(&self, place: usize, page: TranslationPage) -> Option<(u64, bool)> {
        let compressed = self.tiers[place].compressed.as_ref()?;
        let bytes = compressed.sizes[page.index()];
        Some((u64::from(bytes), !compressed.is_flat(bytes)))
    }

    /// Memory accesses of a look-up of a page.
    #[must_use]
    pub fn search_steps(&self, place: usize, page: TranslationPage) -> u64 {
        self.tiers[place].compressed.as_ref().map_or(1, |held| {
            search_steps(u64::from(held.sizes[page.index()]), held.entry_millibytes)
        })
    }

    /// Place of host memory in the role's list.
    #[must_use]
    pub fn place_in_host(&self) -> Option<usize> {
        self.tiers.iter().position(|held| held.tier.is_granted())
    }

    /// Compressed pages held, their bytes and the bytes there are, for each memory that has some.
    #[must_use]
    pub fn compressed_use(&self) -> Vec<(Tier, u32, u64, u64)> {
        let tiers = self.tiers.iter().filter_map(|tier| {
            let held = tier.compressed.as_ref()?;
            Some((
                tier.tier,
                tier.cache.len(),
                held.used_bytes,
                held.capacity_bytes,
            ))
        });
        tiers.collect()
    }

    /// Checks that sizes are those of the entries now, and that what is held fits.
    ///
    /// # Panics
    /// If not. For tests and small drives.
    pub fn check_compressed(&self, entries: impl Fn(TranslationPage) -> Entries) {
        let mut encoder = Encoder::default();
        for tier in &self.tiers {
            let Some(compressed) = &tier.compressed else {
                continue;
            };
            let mut used = 0;
            let known = |page: &u32| tier.holds_all && compressed.sizes[*page as usize] > 0;
            for page in (0..self.pages).filter(known) {
                let bytes = compressed.measure(&mut encoder, &entries(TranslationPage(page)));
                assert_eq!(
                    bytes, compressed.sizes[page as usize],
                    "size of page {page}"
                );
            }
            for page in tier.cache.keys() {
                let bytes = compressed.measure(&mut encoder, &entries(TranslationPage(page)));
                assert_eq!(
                    bytes, compressed.sizes[page as usize],
                    "size of page {page}"
                );
                used += u64::from(bytes);
            }
            assert_eq!(used, compressed.used_bytes, "bytes in use");
            assert!(used <= compressed.capacity_bytes, "what is held fits");
        }
    }
}
