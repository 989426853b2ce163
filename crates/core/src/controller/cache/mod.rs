//! Which units a bounded memory holds, and which gives way: the heart of map and read cache.
//!
//! A replacement policy is a file here that implements `Policy`, its `mod` line below, and its line
//! (word, variant, meaning) in `spec/policies.rs`, from which parser and documentation follow. What all of them
//! share is in `frames.rs`: the frames, two lists through them, and that a pinned frame stands in no list.

mod arc;
mod clock;
mod fifo;
mod frames;
mod ghosts;
mod index;
mod lru;
mod random;
mod s3_fifo;
#[cfg(test)]
mod tests;
mod two_q;

pub use index::{Direct, Index};

use crate::spec::Replacement;
use crate::spec::policies::each_replacement;
use frames::{Frames, ListId};
use serde::{Deserialize, Serialize};

/// What a policy decides. It hears of every key that comes, is used or becomes ready, and names the one
/// that gives way.
trait Policy: Sized {
    /// For a cache of so many frames.
    fn new(capacity: u32, seed: u64) -> Self;

    /// What a ready frame holds was used.
    fn used(&mut self, frames: &mut Frames, at: u32);

    /// A key that is not held is about to take a frame. Returns the list that it had left, if that is
    /// remembered.
    #[inline]
    fn arrives(&mut self, _frames: &Frames, _key: u32) -> Option<ListId> {
        None
    }

    /// What a frame holds becomes ready: it goes to a list.
    #[inline]
    fn admit(&mut self, frames: &mut Frames, at: u32) {
        frames.link(at, ListId::Main);
    }

    /// The frame that gives way to a key that had `left` a list (as [`Policy::arrives`] said); `None` when
    /// all are pinned. It stays in its list.
    fn victim(&mut self, frames: &mut Frames, left: Option<ListId>) -> Option<u32>;
}

/// One variant for each policy, and a match for each function of `Policy`.
macro_rules! dispatch {
    ($($variant:ident($module:ident) $word:literal, $meaning:literal;)*) => {
        #[derive(Clone, Serialize, Deserialize, Debug)]
        enum AnyPolicy {
            $($variant($module::$variant),)*
        }

        impl AnyPolicy {
            fn new(replacement: Replacement, capacity: u32, seed: u64) -> Self {
                match replacement {
                    $(Replacement::$variant => {
                        AnyPolicy::$variant(Policy::new(capacity, seed))
                    })*
                }
            }

            #[inline]
            fn used(&mut self, frames: &mut Frames, at: u32) {
                match self {
                    $(AnyPolicy::$variant(policy) => policy.used(frames, at),)*
                }
            }

            #[inline]
            fn arrives(&mut self, frames: &Frames, key: u32) -> Option<ListId> {
                match self {
                    $(AnyPolicy::$variant(policy) => policy.arrives(frames, key),)*
                }
            }

            #[inline]
            fn admit(&mut self, frames: &mut Frames, at: u32) {
                match self {
                    $(AnyPolicy::$variant(policy) => policy.admit(frames, at),)*
                }
            }

            #[inline]
            fn victim(&mut self, frames: &mut Frames, left: Option<ListId>) -> Option<u32> {
                match self {
                    $(AnyPolicy::$variant(policy) => policy.victim(frames, left),)*
                }
            }
        }
    };
}
each_replacement!(dispatch);

/// What [`Cache::insert`] did.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// There was a free frame.
    Free,
    /// This key gave way.
    Evicted(u32),
    /// Every frame is pinned; nothing changed.
    Full,
}

/// A set of keys in a bounded number of frames.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Cache<I> {
    index: I,
    frames: Frames,
    policy: AnyPolicy,
    /// Keys that a nearer memory has and gives back, a bit each as far as there are any.
    expected: Vec<u64>,
}

impl<I: Index> Cache<I> {
    /// An empty cache of `capacity` frames.
    #[must_use]
    pub fn new(index: I, capacity: u32, replacement: Replacement, seed: u64) -> Self {
        Cache {
            index,
            frames: Frames::new(capacity),
            policy: AnyPolicy::new(replacement, capacity, seed),
            expected: Vec::new(),
        }
    }

    /// Frames in use.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.frames.used()
    }

    /// Nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Frames at most.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.frames.capacity()
    }

    /// Whether a key is held and ready (not pinned); no effect on replacement.
    #[inline]
    #[must_use]
    pub fn is_ready(&self, key: u32) -> bool {
        self.index
            .get(key)
            .is_some_and(|at| !self.frames[at].pinned)
    }

    /// Whether a key is held, ready or pinned; no effect on replacement.
    #[inline]
    #[must_use]
    pub fn contains(&self, key: u32) -> bool {
        self.index.get(key).is_some()
    }

    /// Frame of a key that is held, ready or pinned.
    #[must_use]
    pub fn frame(&self, key: u32) -> Option<u32> {
        self.index.get(key)
    }

    /// Looks a key up and counts the use. Pinned keys are not found.
    #[inline]
    pub fn touch(&mut self, key: u32) -> bool {
        let Some(at) = self.index.get(key) else {
            return false;
        };
        if self.frames[at].pinned {
            return false;
        }
        self.policy.used(&mut self.frames, at);
        true
    }

    /// Takes a key in, pinned (not found and not evicted until [`Cache::unpin`]) or ready. The key
    /// must not be held already.
    pub fn insert(&mut self, key: u32, pinned: bool) -> Inserted {
        debug_assert!(!self.contains(key));
        let free = self.frames.take_free();
        if free.is_none() && self.frames.all_pinned() {
            return Inserted::Full;
        }
        let left = match self.is_given_back(key) {
            true => Some(ListId::Main),
            false => self.policy.arrives(&self.frames, key),
        };
        let mut outcome = Inserted::Free;
        let at = if let Some(at) = free {
            at
        } else {
            let Some(victim) = self.policy.victim(&mut self.frames, left) else {
                return Inserted::Full;
            };
            let gone = self.frames[victim].key;
            self.frames.unlink(victim);
            self.index.remove(gone);
            outcome = Inserted::Evicted(gone);
            victim
        };
        self.index.set(key, at);
        let frame = &mut self.frames[at];
        frame.key = key;
        frame.pinned = pinned;
        frame.uses = 0;
        frame.left = left;
        if !pinned {
            self.policy.admit(&mut self.frames, at);
        }
        outcome
    }

    /// Lets the key go whose turn it is; `None` when all are pinned, or there is none.
    pub fn evict(&mut self) -> Option<u32> {
        let victim = self.policy.victim(&mut self.frames, None)?;
        let gone = self.frames[victim].key;
        self.remove(gone);
        Some(gone)
    }

    /// A pinned key becomes ready.
    pub fn unpin(&mut self, key: u32) {
        let at = self.index.get(key).expect("a pinned key is held");
        let frame = &mut self.frames[at];
        assert!(frame.pinned);
        frame.pinned = false;
        self.policy.admit(&mut self.frames, at);
    }

    /// Lets a key go.
    pub fn remove(&mut self, key: u32) {
        let Some(at) = self.index.get(key) else {
            return;
        };
        self.index.remove(key);
        self.frames.set_free(at);
    }

    /// A nearer memory has taken a key because it was used, and gives it back one day. It is then what was used again, and not new:
    /// policies that tell these apart would take all that comes from there for something that was never used.
    pub fn expect_back(&mut self, key: u32) {
        let word = key as usize / 64;
        if word >= self.expected.len() {
            self.expected.resize(word + 1, 0);
        }
        self.expected[word] |= 1 << (key % 64);
    }

    fn is_given_back(&mut self, key: u32) -> bool {
        let Some(word) = self.expected.get_mut(key as usize / 64) else {
            return false;
        };
        let bit = 1 << (key % 64);
        let was_expected = *word & bit != 0;
        *word &= !bit;
        was_expected
    }

    /// Every key held.
    pub fn keys(&self) -> impl Iterator<Item = u32> + '_ {
        self.frames.keys()
    }
}
