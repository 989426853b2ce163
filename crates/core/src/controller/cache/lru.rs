//! Least recently used.

use super::Policy;
use super::frames::{Frames, ListId};
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct Lru;

impl Policy for Lru {
    fn new(_capacity: u32, _seed: u64) -> Self {
        Lru
    }

    #[inline]
    fn used(&mut self, frames: &mut Frames, at: u32) {
        frames.move_to_head(at, ListId::Main);
    }

    #[inline]
    fn victim(&mut self, frames: &mut Frames, _left: Option<ListId>) -> Option<u32> {
        frames.tail(ListId::Main)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Textbook, agrees, keys};
    use crate::spec::Replacement;
    use proptest::prelude::*;

    /// The key at the front was not used for the longest time.
    struct Naive(Vec<u32>, usize);

    impl Textbook for Naive {
        fn ask(&mut self, key: u32) -> bool {
            let hit = self.0.contains(&key);
            self.0.retain(|&held| held != key);
            if self.0.len() == self.1 {
                self.0.remove(0);
            }
            self.0.push(key);
            hit
        }
        fn held(&self) -> Vec<u32> {
            self.0.clone()
        }
    }

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        #[test]
        fn lru_does_what_the_textbook_says(capacity in 1u32..20, keys in keys()) {
            let mut naive = Naive(Vec::new(), capacity as usize);
            agrees(Replacement::Lru, capacity, &keys, &mut naive);
        }
    }
}
