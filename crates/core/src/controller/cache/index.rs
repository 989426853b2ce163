//! Which frame a key stands in.

use crate::table::Table;
use serde::{Deserialize, Serialize};

/// Finds the frame of a key.
pub trait Index {
    /// Frame of a key.
    fn get(&self, key: u32) -> Option<u32>;
    /// Sets the frame of a key.
    fn set(&mut self, key: u32, frame: u32);
    /// Forgets a key.
    fn remove(&mut self, key: u32);
}

/// One place for every possible key: fastest, for a few million keys at most.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Direct(#[serde(with = "crate::arrays::sparse")] Vec<u32>);

impl Direct {
    /// For keys below `keys`. Zeroed memory, so untouched pages cost nothing.
    #[must_use]
    pub fn new(keys: u32) -> Self {
        Direct(vec![0; keys as usize])
    }
}

impl Index for Direct {
    #[inline]
    fn get(&self, key: u32) -> Option<u32> {
        self.0[key as usize].checked_sub(1)
    }
    #[inline]
    fn set(&mut self, key: u32, frame: u32) {
        self.0[key as usize] = frame + 1;
    }
    #[inline]
    fn remove(&mut self, key: u32) {
        self.0[key as usize] = 0;
    }
}

impl Index for Table {
    #[inline]
    fn get(&self, key: u32) -> Option<u32> {
        Table::get(self, key)
    }
    #[inline]
    fn set(&mut self, key: u32, frame: u32) {
        self.insert(key, frame);
    }
    #[inline]
    fn remove(&mut self, key: u32) {
        Table::remove(self, key);
    }
}
