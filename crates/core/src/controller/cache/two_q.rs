//! 2Q (Johnson and Shasha, VLDB 1994), the simplified version: what is new goes to a first-in-first-out
//! list, and only what comes back after it left there goes to the main list, which is LRU.

use super::Policy;
use super::frames::{Frames, ListId};
use super::ghosts::Ring;
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct TwoQ {
    /// Keys that left the list of what is new.
    left: Ring,
}

impl Policy for TwoQ {
    fn new(capacity: u32, _seed: u64) -> Self {
        // Its authors recommend half the cache.
        TwoQ {
            left: Ring::new(capacity / 2),
        }
    }

    #[inline]
    fn used(&mut self, frames: &mut Frames, at: u32) {
        if frames[at].is_in(ListId::Main) {
            frames.move_to_head(at, ListId::Main);
        }
    }

    fn admit(&mut self, frames: &mut Frames, at: u32) {
        let given_back = frames[at].left.is_some();
        let list = match self.left.recall(frames[at].key) || given_back {
            true => ListId::Main,
            false => ListId::New,
        };
        frames.link(at, list);
    }

    fn victim(&mut self, frames: &mut Frames, _left: Option<ListId>) -> Option<u32> {
        // A quarter of the frames for what is new, as its authors recommend.
        let new = frames.len(ListId::New);
        let from_new = new > frames.used() / 4 || frames.len(ListId::Main) == 0;
        let list = if from_new { ListId::New } else { ListId::Main };
        let at = frames.tail(list)?;
        if from_new {
            self.left.remember(frames[at].key);
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Textbook, agrees, ask, keys};
    use super::super::{Cache, Direct};
    use crate::spec::Replacement;
    use proptest::prelude::*;

    /// The fronts give way first. `left` has the last keys that left `new`, or nothing in the place of
    /// one that came back.
    struct Naive {
        new: Vec<u32>,
        main: Vec<u32>,
        left: Vec<Option<u32>>,
        capacity: usize,
    }

    impl Textbook for Naive {
        fn ask(&mut self, key: u32) -> bool {
            if self.new.contains(&key) {
                return true;
            }
            if self.main.contains(&key) {
                self.main.retain(|&held| held != key);
                self.main.push(key);
                return true;
            }
            if self.new.len() + self.main.len() == self.capacity {
                if self.new.len() > self.capacity / 4 || self.main.is_empty() {
                    let gone = self.new.remove(0);
                    self.left.push(Some(gone));
                    if self.left.len() > self.capacity / 2 {
                        self.left.remove(0);
                    }
                } else {
                    self.main.remove(0);
                }
            }
            match self.left.iter_mut().find(|left| **left == Some(key)) {
                Some(left) => {
                    *left = None;
                    self.main.push(key);
                }
                None => self.new.push(key),
            }
            false
        }
        fn held(&self) -> Vec<u32> {
            [self.new.clone(), self.main.clone()].concat()
        }
    }

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        #[test]
        fn two_q_does_what_the_textbook_says(capacity in 1u32..20, keys in keys()) {
            let (new, main, left) = Default::default();
            let capacity_keys = capacity as usize;
            let mut naive = Naive { new, main, left, capacity: capacity_keys };
            agrees(Replacement::TwoQ, capacity, &keys, &mut naive);
        }
    }

    #[test]
    fn two_q_keeps_what_is_used_twice_through_a_long_scan() {
        let mut cache = Cache::new(Direct::new(4096), 16, Replacement::TwoQ, 1);
        // Seen, pushed out of the list of what is new, seen again while remembered: now in the main list.
        ask(&mut cache, 0);
        (1..17).for_each(|key| _ = ask(&mut cache, key));
        ask(&mut cache, 0);
        (100..2000).for_each(|key| _ = ask(&mut cache, key));
        assert!(cache.contains(0));
    }
}
