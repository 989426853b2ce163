//! What becomes of the map's share of host memory, for those who keep it as bytes.

use super::{MapRole, MapTier};
use crate::ids::TranslationPage;
use crate::spec::{Integrity, MapTierSpec, Tier};
use serde::{Deserialize, Serialize};

/// What happened to the map's share of host memory; recorded where that is kept as bytes.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// A unit is complete in this frame.
    Came(u32, u32),
    /// A page is read back: it was used elsewhere, or differs from flash and stands nowhere else.
    ReadBack(TranslationPage),
    /// A unit gave way.
    Gone(u32),
}

impl MapRole {
    /// Bytes of host memory in use: units held, in the size they take there.
    #[must_use]
    pub fn hmb_used_bytes(&self) -> u64 {
        self.tiers
            .iter()
            .zip(&self.spec.tiers)
            .filter(|(tier, _)| tier.tier.is_granted())
            .map(|(tier, spec)| {
                if let Some(bytes) = tier.compressed_bytes() {
                    return bytes;
                }
                let units = u64::from(tier.cache.len());
                match spec.integrity {
                    Integrity::None => {
                        units
                            * u64::from(spec.unit_translation_pages)
                            * crate::spec::ENTRIES_PER_TRANSLATION_PAGE
                            * u64::from(spec.entry_millibytes)
                            / 1000
                    }
                    Integrity::Crc | Integrity::Mac => units * spec.unit_bytes(),
                }
            })
            .sum()
    }

    pub(super) fn record_arrival(&mut self, place: usize, unit: u32) {
        // A unit that went on at once (exclusive tiers) has no frame.
        if self.records_moves
            && let Some(frame) = self.tiers[place].cache.frame(unit)
        {
            self.record(place, Moved::Came(unit, frame));
        }
    }

    pub(super) fn record(&mut self, place: usize, moved: Moved) {
        if self.records_moves && self.tiers[place].tier.is_granted() {
            self.moved.push_back(moved);
        }
    }

    /// A page that differs from flash comes from a memory that holds it, to be written there.
    pub(super) fn read_back(&mut self, place: usize, page: TranslationPage) {
        self.migrate(place, page, false);
        self.record(place, Moved::ReadBack(page));
    }

    /// Nearest memory that answers look-ups of a page; no effect on replacement.
    #[must_use]
    pub fn served_by(&self, page: TranslationPage) -> Option<Tier> {
        let serves = |tier: &&MapTier| tier.holds_all || tier.cache.is_ready(tier.unit(page));
        self.tiers.iter().find(serves).map(|tier| tier.tier)
    }

    /// Units that host memory has room for, and their size.
    #[must_use]
    pub fn hmb_units(&self) -> Option<(u32, &MapTierSpec)> {
        let place = self.tiers.iter().position(|tier| tier.tier.is_granted())?;
        Some((self.tiers[place].cache.capacity(), &self.spec.tiers[place]))
    }
}
