//! ARC (Megiddo and Modha, FAST 2003): one list of what was used once and one of what was used again, both
//! LRU, and a share of the frames for the first that follows which of them loses keys too early.
//!
//! The paper's T1 and T2 are the lists `New` and `Main`, B1 and B2 the keys that left them. The share
//! moves by whole frames: the paper's quotients are rounded down. Pinned frames stand in neither list, and
//! a key that is let go otherwise than by its turn is not remembered; the paper knows neither.

use super::Policy;
use super::frames::{Frames, ListId};
use super::ghosts::Lists;
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct Arc {
    /// Frames that the list of what is new should have: the paper's p.
    new_target: u32,
    left: Lists,
}

impl Policy for Arc {
    fn new(capacity: u32, _seed: u64) -> Self {
        Arc {
            new_target: 0,
            left: Lists::new(capacity.saturating_mul(2)),
        }
    }

    #[inline]
    fn used(&mut self, frames: &mut Frames, at: u32) {
        frames.move_to_head(at, ListId::Main);
    }

    fn arrives(&mut self, frames: &Frames, key: u32) -> Option<ListId> {
        let left = self.left.list(key)?;
        let (new, main) = (self.left.len(ListId::New), self.left.len(ListId::Main));
        // The list that a key left is longer than nothing: no quotient is by zero.
        self.new_target = match left {
            ListId::New => (self.new_target + (main / new).max(1)).min(frames.capacity()),
            ListId::Main => self.new_target.saturating_sub((new / main).max(1)),
        };
        self.left.forget(key);
        Some(left)
    }

    fn admit(&mut self, frames: &mut Frames, at: u32) {
        if frames[at].left.is_some() {
            frames.link(at, ListId::Main);
            return;
        }
        frames.link(at, ListId::New);
        // With frames that were pinned when another gave way, the two can come to be more.
        while frames.len(ListId::New) + self.left.len(ListId::New) > frames.capacity() {
            self.left.forget_oldest(ListId::New);
        }
    }

    fn victim(&mut self, frames: &mut Frames, left: Option<ListId>) -> Option<u32> {
        let (new, main) = (frames.len(ListId::New), frames.len(ListId::Main));
        if left.is_none() {
            let (left_new, left_main) = (self.left.len(ListId::New), self.left.len(ListId::Main));
            if new + left_new >= frames.capacity() {
                if left_new == 0 {
                    // All that is held is new: what has been there longest goes and is forgotten.
                    return frames.tail(ListId::New);
                }
                self.left.forget_oldest(ListId::New);
            } else if new + main + left_new + left_main >= 2 * frames.capacity() {
                self.left.forget_oldest(ListId::Main);
            }
        }
        let too_many =
            new > self.new_target || (left == Some(ListId::Main) && new == self.new_target);
        let list = if (new > 0 && too_many) || main == 0 {
            ListId::New
        } else {
            ListId::Main
        };
        let at = frames.tail(list)?;
        self.left.remember(frames[at].key, list);
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Textbook, agrees, ask, keys};
    use super::super::{Cache, Direct};
    use crate::spec::Replacement;
    use proptest::prelude::*;

    /// Figure 4 of the paper, line by line. The last of each list is its most recent.
    #[derive(Default)]
    struct Naive {
        t1: Vec<u32>,
        t2: Vec<u32>,
        b1: Vec<u32>,
        b2: Vec<u32>,
        p: usize,
        c: usize,
    }

    fn take(list: &mut Vec<u32>, key: u32) -> bool {
        let before = list.len();
        list.retain(|&held| held != key);
        list.len() < before
    }

    impl Naive {
        fn replace(&mut self, in_b2: bool) {
            let t1 = self.t1.len();
            if t1 >= 1 && ((in_b2 && t1 == self.p) || t1 > self.p) {
                let demoted = self.t1.remove(0);
                self.b1.push(demoted);
            } else {
                let demoted = self.t2.remove(0);
                self.b2.push(demoted);
            }
        }
    }

    impl Textbook for Naive {
        fn ask(&mut self, key: u32) -> bool {
            let (b1, b2) = (self.b1.len(), self.b2.len());
            if take(&mut self.t1, key) || take(&mut self.t2, key) {
                self.t2.push(key);
                return true;
            }
            if self.b1.contains(&key) {
                self.p = self.c.min(self.p + if b1 >= b2 { 1 } else { b2 / b1 });
                self.replace(false);
                take(&mut self.b1, key);
                self.t2.push(key);
                return false;
            }
            if self.b2.contains(&key) {
                self.p = self.p.saturating_sub(if b2 >= b1 { 1 } else { b1 / b2 });
                self.replace(true);
                take(&mut self.b2, key);
                self.t2.push(key);
                return false;
            }
            let held = self.t1.len() + self.t2.len();
            if self.t1.len() + b1 == self.c {
                if self.t1.len() < self.c {
                    self.b1.remove(0);
                    self.replace(false);
                } else {
                    self.t1.remove(0);
                }
            } else if held + b1 + b2 >= self.c {
                if held + b1 + b2 == 2 * self.c {
                    self.b2.remove(0);
                }
                self.replace(false);
            }
            self.t1.push(key);
            false
        }

        fn held(&self) -> Vec<u32> {
            [self.t1.clone(), self.t2.clone()].concat()
        }
    }

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        #[test]
        fn arc_does_what_the_paper_says(capacity in 1u32..20, keys in keys()) {
            let mut naive = Naive { c: capacity as usize, ..Naive::default() };
            agrees(Replacement::Arc, capacity, &keys, &mut naive);
        }
    }

    /// A working set used twice, then a scan of keys used once, then the working set: how much of it is
    /// still there.
    fn kept_through_a_scan(policy: Replacement) -> usize {
        let mut cache = Cache::new(Direct::new(10_000), 100, policy, 1);
        for _ in 0..2 {
            (0..50).for_each(|key| _ = ask(&mut cache, key));
        }
        (1_000..9_000).for_each(|key| _ = ask(&mut cache, key));
        (0..50).filter(|&key| cache.contains(key)).count()
    }

    #[test]
    fn arc_is_scan_resistant_and_lru_is_not() {
        assert_eq!(kept_through_a_scan(Replacement::Arc), 50);
        assert_eq!(kept_through_a_scan(Replacement::Lru), 0);
    }
}
