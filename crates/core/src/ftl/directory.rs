//! Where each translation page lies (the "global translation directory", held in SRAM and saved in
//! the drive's boot area; a thousandth of a thousandth of the capacity).

use crate::ids::{Ppn, TranslationPage};
use serde::{Deserialize, Serialize};

/// Entry of a translation page that lies where preconditioning put it.
const INITIAL: u32 = 0;
/// Entry of a translation page that is not in flash.
const ABSENT: u32 = u32::MAX;

/// Where each translation page lies in flash.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Directory {
    /// Physical page plus one. Zeroed memory, so untouched pages cost nothing.
    #[serde(with = "crate::arrays::sparse")]
    entries: Vec<u32>,
    /// Where the first page of a preconditioned drive lies; the others follow it in order.
    base: Option<Ppn>,
    /// Pages that are in flash.
    present: u32,
}

impl Directory {
    /// Of a drive that holds nothing.
    #[must_use]
    pub fn new(pages: u32) -> Self {
        Directory {
            entries: vec![INITIAL; pages as usize],
            base: None,
            present: 0,
        }
    }

    /// All translation pages lie in order from `base` on.
    pub fn precondition(&mut self, base: Ppn) {
        self.base = Some(base);
        self.present = self.pages();
    }

    /// Number of translation pages.
    #[must_use]
    pub fn pages(&self) -> u32 {
        self.entries.len() as u32
    }

    /// Number of those that are in flash.
    #[must_use]
    pub fn present(&self) -> u32 {
        self.present
    }

    #[inline]
    fn decode(&self, page: TranslationPage, entry: u32) -> Option<Ppn> {
        match entry {
            INITIAL => self.base.map(|base| Ppn(base.0 + page.0)),
            ABSENT => None,
            ppn => Some(Ppn(ppn - 1)),
        }
    }

    /// Where a translation page lies.
    #[inline]
    #[must_use]
    pub fn get(&self, page: TranslationPage) -> Option<Ppn> {
        self.decode(page, self.entries[page.index()])
    }

    /// Sets where a translation page lies; returns where it lay before.
    #[inline]
    pub fn set(&mut self, page: TranslationPage, ppn: Option<Ppn>) -> Option<Ppn> {
        let entry = ppn.map_or(ABSENT, |ppn| ppn.0 + 1);
        let before = std::mem::replace(&mut self.entries[page.index()], entry);
        let before = self.decode(page, before);
        self.present += u32::from(ppn.is_some());
        self.present -= u32::from(before.is_some());
        before
    }

    /// All pages lie where they lay at the start.
    pub fn restart(&mut self) {
        self.entries.fill(INITIAL);
        self.present = self.base.map_or(0, |_| self.pages());
    }

    /// Where a translation page lay at the start.
    #[must_use]
    pub fn initial(&self, page: TranslationPage) -> Option<Ppn> {
        self.decode(page, INITIAL)
    }

    /// Which translation page lay there at the start.
    #[must_use]
    pub fn initial_owner(&self, ppn: Ppn) -> Option<TranslationPage> {
        let page = ppn.0.checked_sub(self.base?.0)?;
        (page < self.pages()).then_some(TranslationPage(page))
    }
}
