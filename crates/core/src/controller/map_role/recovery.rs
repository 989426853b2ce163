//! The map role before a shutdown and after a power cut.

use super::MapRole;
use crate::ids::TranslationPage;

impl MapRole {
    /// After a power cut: a page's copy in flash is older than the map, and must be written.
    pub fn recover(&mut self, page: TranslationPage) {
        if !self.holds_all() {
            self.stage(page);
        }
    }

    /// Whether memory knows of changes of a page that its copy in flash does not have.
    #[must_use]
    pub fn is_newer_than_flash(&self, page: TranslationPage) -> bool {
        self.fills.changes(page) || self.is_dirty(page) || self.writebacks.has(page)
    }

    /// Everything that differs from flash is to be written (shutdown).
    pub fn stage_all(&mut self) {
        for page in (0..self.pages).map(TranslationPage) {
            if self.is_dirty(page) {
                self.stage(page);
                if let Some(place) = self.place_of(page) {
                    self.read_back(place, page);
                }
            }
        }
    }
}
