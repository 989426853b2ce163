//! S3-FIFO (Yang et al., SOSP 2023): a small queue for what is new, a main queue, and the keys that left
//! the small one unused, all first in, first out.
//!
//! The small queue (`New`) has a tenth of the frames, the main one (`Main`) the rest, and as many keys are
//! remembered as the main one has frames. What was used more than once in the small queue moves on to the main
//! one; there, what was used since it came to the back of the queue stays for another round. As in the authors'
//! own code, each victim is looked for anew: from the main queue while that has more than its share,
//! otherwise from the small one; and a key counts as remembered if it is before another has given way to it.

use super::Policy;
use super::frames::{Frames, ListId};
use super::ghosts::Ring;
use serde::{Deserialize, Serialize};

/// Two bits are all the policy keeps of a key's uses.
const USES_MAX: u8 = 3;
/// Uses that move a key from the small queue to the main one.
const USES_TO_MOVE: u8 = 2;

#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct S3Fifo {
    /// Frames of the main queue's share.
    main_max: u32,
    /// Keys that left the small queue.
    left: Ring,
}

impl Policy for S3Fifo {
    fn new(capacity: u32, _seed: u64) -> Self {
        let main_max = capacity.saturating_sub((capacity / 10).max(1));
        S3Fifo {
            main_max,
            left: Ring::new(main_max),
        }
    }

    #[inline]
    fn used(&mut self, frames: &mut Frames, at: u32) {
        let uses = &mut frames[at].uses;
        *uses = (*uses + 1).min(USES_MAX);
    }

    fn arrives(&mut self, _frames: &Frames, key: u32) -> Option<ListId> {
        self.left.recall(key).then_some(ListId::New)
    }

    fn admit(&mut self, frames: &mut Frames, at: u32) {
        let list = match frames[at].left {
            Some(_) => ListId::Main,
            None => ListId::New,
        };
        frames.link(at, list);
    }

    fn victim(&mut self, frames: &mut Frames, _left: Option<ListId>) -> Option<u32> {
        loop {
            let from_main =
                frames.len(ListId::Main) > self.main_max || frames.len(ListId::New) == 0;
            if from_main {
                let at = frames.tail(ListId::Main)?;
                if frames[at].uses == 0 {
                    return Some(at);
                }
                frames[at].uses -= 1;
                frames.move_to_head(at, ListId::Main);
            } else {
                let at = frames.tail(ListId::New)?;
                if frames[at].uses < USES_TO_MOVE {
                    self.left.remember(frames[at].key);
                    return Some(at);
                }
                frames[at].uses = 0;
                frames.move_to_head(at, ListId::Main);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Textbook, agrees, ask, keys};
    use super::super::{Cache, Direct};
    use crate::spec::Replacement;
    use proptest::prelude::*;

    /// The fronts give way first. `ghosts` has the last keys that left `small`, or nothing in the place
    /// of one that came back.
    #[derive(Default)]
    struct Naive {
        small: Vec<(u32, u32)>,
        main: Vec<(u32, u32)>,
        ghosts: Vec<Option<u32>>,
        capacity: usize,
    }

    impl Naive {
        fn small_share(&self) -> usize {
            (self.capacity / 10).max(1)
        }

        fn evict_small(&mut self) {
            while !self.small.is_empty() {
                let (key, freq) = self.small.remove(0);
                if freq > 1 {
                    self.main.push((key, 0));
                    if self.main.len() > self.capacity - self.small_share() {
                        return self.evict_main();
                    }
                } else {
                    self.ghosts.push(Some(key));
                    if self.ghosts.len() > self.capacity - self.small_share() {
                        self.ghosts.remove(0);
                    }
                    return;
                }
            }
            self.evict_main();
        }

        fn evict_main(&mut self) {
            loop {
                let (key, freq) = self.main.remove(0);
                if freq == 0 {
                    return;
                }
                self.main.push((key, freq - 1));
            }
        }
    }

    impl Textbook for Naive {
        fn ask(&mut self, key: u32) -> bool {
            let mut held = self.small.iter_mut().chain(&mut self.main);
            if let Some(entry) = held.find(|entry| entry.0 == key) {
                entry.1 = (entry.1 + 1).min(3);
                return true;
            }
            let ghost = self.ghosts.iter_mut().find(|ghost| **ghost == Some(key));
            let remembered = ghost.map(|ghost| *ghost = None).is_some();
            if self.small.len() + self.main.len() == self.capacity {
                if self.small.len() >= self.small_share() {
                    self.evict_small();
                } else {
                    self.evict_main();
                }
            }
            let queue = if remembered {
                &mut self.main
            } else {
                &mut self.small
            };
            queue.push((key, 0));
            false
        }

        fn held(&self) -> Vec<u32> {
            let held = self.small.iter().chain(&self.main);
            held.map(|entry| entry.0).collect()
        }
    }

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        #[test]
        fn s3_fifo_does_what_the_paper_says(capacity in 1u32..30, keys in keys()) {
            let mut naive = Naive { capacity: capacity as usize, ..Naive::default() };
            agrees(Replacement::S3Fifo, capacity, &keys, &mut naive);
        }
    }

    #[test]
    fn one_hit_wonders_leave_by_the_small_queue() {
        let mut cache = Cache::new(Direct::new(10_000), 100, Replacement::S3Fifo, 1);
        // Fills both queues' shares with what is used three times each, then lets it move on.
        for _ in 0..3 {
            (0..90).for_each(|key| _ = ask(&mut cache, key));
        }
        let kept = |cache: &Cache<Direct>| (0..90).filter(|&key| cache.contains(key)).count();
        (1_000..9_000).for_each(|key| _ = ask(&mut cache, key));
        assert_eq!(kept(&cache), 90);
        // Each of the scan was there for as long as the small queue is: ten others.
        assert!((8_990..9_000).all(|key| cache.contains(key)));
        assert!(!cache.contains(8_989));
    }

    #[test]
    fn what_comes_back_while_remembered_goes_to_the_main_queue() {
        let mut cache = Cache::new(Direct::new(10_000), 100, Replacement::S3Fifo, 1);
        (0..101).for_each(|key| _ = ask(&mut cache, key));
        assert!(!cache.contains(0));
        ask(&mut cache, 0);
        (1_000..1_080).for_each(|key| _ = ask(&mut cache, key));
        assert!(cache.contains(0));
    }
}
