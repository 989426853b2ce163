//! Role `read_cache`: data read from flash, kept for the next reader.

use super::ReadAhead;
use super::cache::Cache;
use crate::ids::{Lpn, Ppn};
use crate::spec::{ReadAheadSpec, ReadCacheSpec, SLOT_BYTES, Tier};
use crate::table::Table;
use serde::{Deserialize, Serialize};

/// The read cache.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct ReadCache {
    /// Which memory it stands on.
    pub tier: Tier,
    /// Only a command whose data is all there is served from it.
    pub whole_commands: bool,
    slots: Cache<Table>,
    /// What is read into it before it is asked for.
    pub ahead: Option<ReadAhead>,
}

impl ReadCache {
    /// An empty cache as the spec says; `bytes` may be less than it wants (host memory).
    #[must_use]
    pub fn new(spec: &ReadCacheSpec, ahead: Option<&ReadAheadSpec>, bytes: u64, seed: u64) -> Self {
        let slots = (bytes / SLOT_BYTES) as u32;
        ReadCache {
            tier: spec.tier,
            whole_commands: spec.whole_commands,
            slots: Cache::new(
                Table::with_capacity(slots as usize),
                slots,
                spec.replacement,
                seed,
            ),
            ahead: ahead.map(ReadAhead::new),
        }
    }

    /// Whether a page is held.
    #[must_use]
    pub fn contains(&self, lpn: Lpn) -> bool {
        self.slots.contains(lpn.0)
    }

    /// Whether a physical page is on its way from flash into it.
    #[inline]
    #[must_use]
    pub fn is_coming(&self, ppn: Ppn) -> bool {
        let ahead = self.ahead.as_ref();
        ahead.is_some_and(|ahead| ahead.is_coming(ppn))
    }

    /// Pages it has room for.
    #[must_use]
    pub fn pages(&self) -> u32 {
        self.slots.capacity()
    }

    /// Which of its places a page stands in.
    #[must_use]
    pub fn frame(&self, lpn: Lpn) -> Option<u32> {
        self.slots.frame(lpn.0)
    }

    /// Whether a page is held; counts the use.
    #[inline]
    pub fn touch(&mut self, lpn: Lpn) -> bool {
        self.slots.touch(lpn.0)
    }

    /// Whether it has any memory: none while the host gives none.
    #[inline]
    #[must_use]
    pub fn holds_any(&self) -> bool {
        self.slots.capacity() > 0
    }

    /// Keeps a page that was read from flash.
    #[inline]
    pub fn keep(&mut self, lpn: Lpn) {
        if self.holds_any() && !self.slots.touch(lpn.0) {
            self.slots.insert(lpn.0, false);
        }
    }

    /// Forgets pages that were trimmed.
    pub fn forget_all(&mut self, pages: std::ops::Range<u32>) {
        if pages.len() <= self.slots.len() as usize {
            pages.for_each(|page| self.slots.remove(page));
            return;
        }
        let held: Vec<u32> = self.slots.keys().collect();
        let trimmed = held.into_iter().filter(|page| pages.contains(page));
        trimmed.for_each(|page| self.slots.remove(page));
    }

    /// Forgets a page that was overwritten.
    #[inline]
    pub fn forget(&mut self, lpn: Lpn) {
        self.slots.remove(lpn.0);
    }
}
