//! Pages of the map that wait to be written to flash.

use crate::ids::TranslationPage;
use crate::table::Table;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Each once, first come first.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct Writebacks {
    pages: VecDeque<TranslationPage>,
    /// The same, to be found.
    staged: Table,
}

impl Writebacks {
    pub(super) fn new() -> Self {
        Writebacks {
            pages: VecDeque::new(),
            staged: Table::with_capacity(64),
        }
    }

    #[inline]
    pub(super) fn has(&self, page: TranslationPage) -> bool {
        self.staged.get(page.0).is_some()
    }

    pub(super) fn add(&mut self, page: TranslationPage) {
        if !self.has(page) {
            self.staged.insert(page.0, 0);
            self.pages.push_back(page);
        }
    }

    pub(super) fn next(&mut self) -> Option<TranslationPage> {
        let page = self.pages.pop_front()?;
        self.staged.remove(page.0);
        Some(page)
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.pages.len()
    }
}
