//! The drive's map cache at one size of host memory, without the drive's time.
//!
//! Replacement policies other than LRU have no stack distances. For them the drive's own cache is
//! fed with the references, once for each size, every translation page arriving at once.

use lodger_core::controller::MapRole;
use lodger_core::controller::cache::{Cache, Direct, Inserted};
use lodger_core::spec::{MapRoleSpec, MapTierSpec, Tier};

/// The map cache of one size.
#[derive(Debug)]
pub struct Shadow {
    /// Nearest first.
    tiers: Vec<Held>,
    exclusive: bool,
    /// Look-ups that found their page.
    pub hits: u64,
}

#[derive(Debug)]
struct Held {
    unit_pages: u32,
    /// The whole map fits.
    all: bool,
    cache: Cache<Direct>,
}

impl Held {
    fn contains(&self, page: u32) -> bool {
        self.all || self.cache.contains(page / self.unit_pages)
    }
}

impl Shadow {
    /// A cache of a map of `pages` translation pages with `map_bytes` of host memory.
    #[must_use]
    pub fn new(spec: &MapRoleSpec, pages: u32, map_bytes: u64, seed: u64) -> Self {
        let held = |tier: &MapTierSpec| {
            let bytes = if tier.tier == Tier::Hmb {
                map_bytes
            } else {
                tier.bytes
            };
            let units = pages.div_ceil(tier.unit_translation_pages);
            let capacity = MapRole::units_that_fit(tier, bytes).min(units);
            Held {
                unit_pages: tier.unit_translation_pages,
                all: tier.tier != Tier::Hmb && capacity == units,
                cache: Cache::new(Direct::new(units), capacity, spec.replacement, seed),
            }
        };
        Shadow {
            tiers: spec.tiers.iter().map(held).collect(),
            exclusive: spec.exclusive,
            hits: 0,
        }
    }

    /// A command, or a write that must be merged with what is there, looks a page up. Of a page
    /// never `written`, there is nothing to be read from flash.
    pub fn look_up(&mut self, page: u32, written: bool, counted: bool) {
        for place in 0..self.tiers.len() {
            let tier = &mut self.tiers[place];
            let unit = page / tier.unit_pages;
            if tier.all || tier.cache.touch(unit) {
                if place > 0 && self.exclusive {
                    self.tiers[place].cache.remove(unit);
                    self.install(0, unit);
                }
                self.hits += u64::from(counted);
                return;
            }
        }
        if written {
            self.bring(page, true);
        } else {
            self.hits += u64::from(counted);
        }
    }

    /// Entries of a page change: it is brought in unless it is held.
    pub fn update(&mut self, page: u32, written: bool) {
        if !self.tiers.iter().any(|tier| tier.contains(page)) {
            self.bring(page, written);
        }
    }

    /// A page arrives. Larger units come from flash as a whole, so not with a page just begun.
    fn bring(&mut self, page: u32, from_flash: bool) {
        for place in 0..self.tiers.len() {
            let unit_pages = self.tiers[place].unit_pages;
            let takes = if unit_pages > 1 {
                from_flash
            } else {
                place == 0 || !self.exclusive
            };
            if takes {
                self.install(place, page / unit_pages);
            }
        }
    }

    fn install(&mut self, place: usize, unit: u32) {
        let tier = &mut self.tiers[place];
        if tier.all || tier.cache.capacity() == 0 || tier.cache.contains(unit) {
            return;
        }
        if let Inserted::Evicted(gone) = tier.cache.insert(unit, false)
            && self.exclusive
            && place + 1 < self.tiers.len()
        {
            self.install(place + 1, gone);
        }
    }
}
