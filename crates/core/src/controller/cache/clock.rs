//! Second chance: first in, first out, but what was used since it came stays for another round.

use super::Policy;
use super::frames::{Frames, ListId};
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct Clock;

impl Policy for Clock {
    fn new(_capacity: u32, _seed: u64) -> Self {
        Clock
    }

    #[inline]
    fn used(&mut self, frames: &mut Frames, at: u32) {
        frames[at].uses = 1;
    }

    fn victim(&mut self, frames: &mut Frames, _left: Option<ListId>) -> Option<u32> {
        loop {
            let at = frames.tail(ListId::Main)?;
            if frames[at].uses == 0 {
                return Some(at);
            }
            frames[at].uses = 0;
            frames.move_to_head(at, ListId::Main);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Textbook, agrees, keys};
    use crate::spec::Replacement;
    use proptest::prelude::*;

    /// Keys and whether they were used since they came to the back.
    struct Naive(Vec<(u32, bool)>, usize);

    impl Textbook for Naive {
        fn ask(&mut self, key: u32) -> bool {
            if let Some(entry) = self.0.iter_mut().find(|entry| entry.0 == key) {
                entry.1 = true;
                return true;
            }
            if self.0.len() == self.1 {
                while self.0[0].1 {
                    let (spared, _) = self.0.remove(0);
                    self.0.push((spared, false));
                }
                self.0.remove(0);
            }
            self.0.push((key, false));
            false
        }
        fn held(&self) -> Vec<u32> {
            self.0.iter().map(|entry| entry.0).collect()
        }
    }

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        #[test]
        fn clock_does_what_the_textbook_says(capacity in 1u32..20, keys in keys()) {
            let mut naive = Naive(Vec::new(), capacity as usize);
            agrees(Replacement::Clock, capacity, &keys, &mut naive);
        }
    }
}
