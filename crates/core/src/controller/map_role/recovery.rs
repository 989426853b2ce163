//! The map role before a shutdown and after a power cut.

use super::MapRole;
use crate::ids::TranslationPage;

impl MapRole {
    /// After a power cut: a page's copy in flash is older than the map, and must be written.
    pub fn recover(&mut self, page: TranslationPage) {
        if !self.tiers.iter().any(|tier| tier.holds_all) {
            self.stage(page);
        }
    }

    /// Everything that differs from flash is to be written (shutdown).
    pub fn stage_all(&mut self) {
        for page in (0..self.pages).map(TranslationPage) {
            if self.is_dirty(page) {
                self.stage(page);
            }
        }
    }
}
