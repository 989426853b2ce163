//! A list as long as the drive is large, of which only what is touched takes memory.

use crate::table::Table;
use serde::{Deserialize, Serialize};

/// What has been touched of a list, by number. What the rest is, its owner knows.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Sparse<T> {
    /// Place in `touched` by number.
    places: Table,
    /// In the order in which it was touched first.
    touched: Vec<(u32, T)>,
}

impl<T> Default for Sparse<T> {
    fn default() -> Self {
        Sparse {
            places: Table::with_capacity(64),
            touched: Vec::new(),
        }
    }
}

impl<T> Sparse<T> {
    /// An element, if it was touched.
    #[inline]
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&T> {
        let place = self.places.get(number)?;
        Some(&self.touched[place as usize].1)
    }

    /// An element, if it was touched, to be changed.
    #[inline]
    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        let place = self.places.get(number)?;
        Some(&mut self.touched[place as usize].1)
    }

    /// An element to be changed; one that was not touched yet is what `untouched` says.
    #[inline]
    pub fn touch(&mut self, number: u32, untouched: impl FnOnce() -> T) -> &mut T {
        let place = self.places.get(number).unwrap_or_else(|| {
            let place = self.touched.len() as u32;
            self.places.insert(number, place);
            self.touched.push((number, untouched()));
            place
        });
        &mut self.touched[place as usize].1
    }

    /// What was touched, in the order in which it first was.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.touched
            .iter()
            .map(|(number, element)| (*number, element))
    }

    /// The same, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        let touched = self.touched.iter_mut();
        touched.map(|(number, element)| (*number, element))
    }

    /// The numbers of what was touched, the lowest first.
    #[must_use]
    pub fn numbers(&self) -> Vec<u32> {
        let mut numbers: Vec<u32> = self.iter().map(|(number, _)| number).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Nothing has been touched any more.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(lodger_testing::config(128))]

        /// A naive list holds all of it.
        #[test]
        fn agrees_with_a_list_of_everything(steps in prop::collection::vec((0u32..500, 0u64..9), 0..300)) {
            let untouched = |number: u32| u64::from(number) * 10;
            let mut sparse = Sparse::default();
            let mut all: Vec<u64> = (0..500).map(untouched).collect();
            let mut touched = std::collections::BTreeSet::new();
            for (number, more) in steps {
                match more {
                    0 => prop_assert_eq!(sparse.get_mut(number).is_some(), touched.contains(&number)),
                    _ => {
                        *sparse.touch(number, || untouched(number)) += more;
                        all[number as usize] += more;
                        touched.insert(number);
                    }
                }
                let now = sparse.get(number).copied().unwrap_or(untouched(number));
                prop_assert_eq!(now, all[number as usize]);
            }
            prop_assert_eq!(sparse.numbers(), touched.into_iter().collect::<Vec<u32>>());
            let sum: u64 = sparse.iter().map(|(number, element)| element - untouched(number)).sum();
            let wanted: u64 = (0..500).zip(&all).map(|(number, element)| element - untouched(number)).sum();
            prop_assert_eq!(sum, wanted);
        }
    }
}
