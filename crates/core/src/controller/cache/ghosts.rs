//! Keys that are held no more, remembered because their coming back says something.

use crate::ids::NONE;
use crate::table::Table;

/// The last keys that were put in, as many as there are places. A key that comes back leaves its
/// place empty until its turn.
#[derive(Debug)]
pub(super) struct Ring {
    keys: Vec<u32>,
    at: usize,
    members: Table,
}

impl Ring {
    pub(super) fn new(places: u32) -> Self {
        Ring {
            keys: vec![NONE; places as usize],
            at: 0,
            members: Table::with_capacity(places as usize),
        }
    }

    pub(super) fn remember(&mut self, key: u32) {
        if self.keys.is_empty() {
            return;
        }
        let old = std::mem::replace(&mut self.keys[self.at], key);
        if old != NONE && self.members.get(old) == Some(self.at as u32) {
            self.members.remove(old);
        }
        self.members.insert(key, self.at as u32);
        self.at = (self.at + 1) % self.keys.len();
    }

    /// Whether a key is remembered; it is not any more.
    pub(super) fn recall(&mut self, key: u32) -> bool {
        self.members.remove(key).is_some()
    }
}
