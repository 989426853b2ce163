//! A hash table from `u32` to `u32` for a bounded number of keys: open addressing, linear probing,
//! backward-shift deletion. The standard map costs several times more in the path of every request,
//! and its iteration order would have to be kept out of results.

use crate::ids::NONE;
use serde::{Deserialize, Serialize};

/// Table from `u32` keys to `u32` values.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Table {
    /// Key and value side by side: one cache line per look-up. Key `NONE` marks a free place.
    places: Vec<(u32, u32)>,
    len: usize,
    shift: u32,
}

impl Table {
    /// For up to `keys` keys without growing.
    #[must_use]
    pub fn with_capacity(keys: usize) -> Self {
        let places = (keys * 2).next_power_of_two().max(8);
        Table {
            places: vec![(NONE, 0); places],
            len: 0,
            shift: 64 - places.trailing_zeros(),
        }
    }

    /// Keys at present.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// No keys at present.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Fibonacci hashing: spreads runs of neighbouring keys.
    #[inline]
    fn home(&self, key: u32) -> usize {
        (u64::from(key).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    #[inline]
    fn find(&self, key: u32) -> Result<usize, usize> {
        debug_assert!(key != NONE);
        let mask = self.places.len() - 1;
        let mut at = self.home(key);
        loop {
            let place = self.places[at].0;
            if place == key {
                return Ok(at);
            }
            if place == NONE {
                return Err(at);
            }
            at = (at + 1) & mask;
        }
    }

    /// Value of a key.
    #[inline]
    #[must_use]
    pub fn get(&self, key: u32) -> Option<u32> {
        self.find(key).ok().map(|at| self.places[at].1)
    }

    /// Sets the value of a key.
    #[inline]
    pub fn insert(&mut self, key: u32, value: u32) {
        self.insert_unless(key, value, |_| false);
    }

    /// Sets the value of a key, unless it has one that is to be kept. Returns the one it had.
    #[inline(always)]
    pub fn insert_unless(
        &mut self,
        key: u32,
        value: u32,
        is_kept: impl FnOnce(u32) -> bool,
    ) -> Option<u32> {
        match self.find(key) {
            Ok(at) => {
                let had = self.places[at].1;
                if !is_kept(had) {
                    self.places[at].1 = value;
                }
                Some(had)
            }
            Err(at) => {
                self.places[at] = (key, value);
                self.len += 1;
                if self.len * 2 > self.places.len() {
                    self.grow();
                }
                None
            }
        }
    }

    /// All keys and values, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.places.iter().copied().filter(|place| place.0 != NONE)
    }

    /// Removes a key; returns its value.
    #[inline]
    pub fn remove(&mut self, key: u32) -> Option<u32> {
        let at = self.find(key).ok()?;
        let value = self.places[at].1;
        self.empty(at);
        Some(value)
    }

    /// Removes a key that has this value.
    #[inline(always)]
    pub fn remove_pair(&mut self, key: u32, value: u32) {
        if let Ok(at) = self.find(key)
            && self.places[at].1 == value
        {
            self.empty(at);
        }
    }

    #[inline]
    fn empty(&mut self, mut hole: usize) {
        let mask = self.places.len() - 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let (next_key, _) = self.places[at];
            if next_key == NONE {
                break;
            }
            // A key may move back into the hole unless its home lies between hole and key.
            let distance_home = at.wrapping_sub(self.home(next_key)) & mask;
            let distance_hole = at.wrapping_sub(hole) & mask;
            if distance_home >= distance_hole {
                self.places[hole] = self.places[at];
                hole = at;
            }
        }
        self.places[hole].0 = NONE;
        self.len -= 1;
    }

    #[cold]
    fn grow(&mut self) {
        let mut larger = Table::with_capacity(self.places.len());
        for &(key, value) in self.places.iter().filter(|place| place.0 != NONE) {
            larger.insert(key, value);
        }
        *self = larger;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        #[test]
        fn agrees_with_the_standard_map(steps in prop::collection::vec((0u32..5, 0u32..64, 0u32..1000), 0..600)) {
            let mut table = Table::with_capacity(4);
            let mut model = HashMap::new();
            for (what, key, value) in steps {
                match what {
                    0 => {
                        table.insert(key, value);
                        model.insert(key, value);
                    }
                    1 => prop_assert_eq!(table.remove(key), model.remove(&key)),
                    2 => {
                        let is_kept = |had: u32| had < 500;
                        let had = model.get(&key).copied();
                        if !had.is_some_and(is_kept) {
                            model.insert(key, value);
                        }
                        prop_assert_eq!(table.insert_unless(key, value, is_kept), had);
                    }
                    3 => {
                        // Every second time the value that it has.
                        let had = model.get(&key).copied().unwrap_or(0);
                        let value = had + value % 2;
                        table.remove_pair(key, value);
                        model.retain(|&of, &mut has| of != key || has != value);
                    }
                    _ => prop_assert_eq!(table.get(key), model.get(&key).copied()),
                }
                prop_assert_eq!(table.len(), model.len());
            }
        }
    }
}
