//! Which units a bounded memory holds, and which gives way: the heart of map and read cache.

use crate::ids::NONE;
use crate::rng::Rng;
use crate::spec::Replacement;
use crate::table::Table;

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
#[derive(Debug)]
pub struct Direct(Vec<u32>);

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

#[derive(Clone, Copy, Debug)]
struct Frame {
    key: u32,
    previous: u32,
    next: u32,
    /// List the frame stands in: 0 and 1, or none while pinned or free.
    list: u8,
    referenced: bool,
    pinned: bool,
}

const NO_LIST: u8 = 2;
/// List of 2Q's first-time units; the other policies use list 0 alone.
const PROBATION: u8 = 1;

#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
    len: u32,
}

/// What [`Cache::insert`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// There was a free frame.
    Free,
    /// This key gave way.
    Evicted(u32),
    /// Every frame is pinned; nothing changed.
    Full,
}

/// A set of keys in a bounded number of frames.
#[derive(Debug)]
pub struct Cache<I> {
    index: I,
    frames: Vec<Frame>,
    free: Vec<u32>,
    capacity: u32,
    lists: [List; 2],
    policy: Replacement,
    rng: Rng,
    ghosts: Ghosts,
}

/// Keys 2Q remembers after they left probation.
#[derive(Debug)]
struct Ghosts {
    ring: Vec<u32>,
    at: usize,
    members: Table,
}

impl Ghosts {
    fn new(capacity: u32) -> Self {
        Ghosts {
            ring: vec![NONE; capacity as usize],
            at: 0,
            members: Table::with_capacity(capacity as usize),
        }
    }

    fn remember(&mut self, key: u32) {
        if self.ring.is_empty() {
            return;
        }
        let old = std::mem::replace(&mut self.ring[self.at], key);
        if old != NONE && self.members.get(old) == Some(self.at as u32) {
            self.members.remove(old);
        }
        self.members.insert(key, self.at as u32);
        self.at = (self.at + 1) % self.ring.len();
    }

    fn recall(&mut self, key: u32) -> bool {
        self.members.remove(key).is_some()
    }
}

impl<I: Index> Cache<I> {
    /// An empty cache of `capacity` frames.
    #[must_use]
    pub fn new(index: I, capacity: u32, policy: Replacement, seed: u64) -> Self {
        // 2Q's authors recommend a ghost list of half the cache.
        let ghosts = if policy == Replacement::TwoQ {
            capacity / 2
        } else {
            0
        };
        Cache {
            index,
            frames: Vec::new(),
            free: Vec::new(),
            capacity,
            lists: [List {
                head: NONE,
                tail: NONE,
                len: 0,
            }; 2],
            policy,
            rng: Rng::new(seed),
            ghosts: Ghosts::new(ghosts),
        }
    }

    /// Frames in use.
    #[must_use]
    pub fn len(&self) -> u32 {
        (self.frames.len() - self.free.len()) as u32
    }

    /// Nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Frames at most.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Whether a key is held and ready (not pinned); no effect on replacement.
    #[inline]
    #[must_use]
    pub fn is_ready(&self, key: u32) -> bool {
        self.index
            .get(key)
            .is_some_and(|frame| !self.frames[frame as usize].pinned)
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
        let frame = &mut self.frames[at as usize];
        if frame.pinned {
            return false;
        }
        match self.policy {
            Replacement::Lru => {
                if self.lists[0].head != at {
                    self.unlink(at);
                    self.link(at, 0);
                }
            }
            Replacement::TwoQ => {
                if frame.list != PROBATION && self.lists[0].head != at {
                    self.unlink(at);
                    self.link(at, 0);
                }
            }
            Replacement::Clock => frame.referenced = true,
            Replacement::Fifo | Replacement::Random => {}
        }
        true
    }

    /// Takes a key in, pinned (not found and not evicted until [`Cache::unpin`]) or ready. The key
    /// must not be held already.
    pub fn insert(&mut self, key: u32, pinned: bool) -> Inserted {
        debug_assert!(!self.contains(key));
        let mut outcome = Inserted::Free;
        let at = if let Some(at) = self.free.pop() {
            at
        } else if (self.frames.len() as u32) < self.capacity {
            self.frames.push(Frame {
                key: NONE,
                previous: NONE,
                next: NONE,
                list: NO_LIST,
                referenced: false,
                pinned: false,
            });
            self.frames.len() as u32 - 1
        } else {
            let Some(victim) = self.victim() else {
                return Inserted::Full;
            };
            let gone = self.frames[victim as usize].key;
            if self.frames[victim as usize].list == PROBATION {
                self.ghosts.remember(gone);
            }
            self.unlink(victim);
            self.index.remove(gone);
            outcome = Inserted::Evicted(gone);
            victim
        };
        self.index.set(key, at);
        let frame = &mut self.frames[at as usize];
        frame.key = key;
        frame.pinned = pinned;
        frame.referenced = false;
        if !pinned {
            self.admit(at, key);
        }
        outcome
    }

    /// Lets the key go whose turn it is; `None` when all are pinned, or there is none.
    pub fn evict(&mut self) -> Option<u32> {
        let victim = self.victim()?;
        let gone = self.frames[victim as usize].key;
        if self.frames[victim as usize].list == PROBATION {
            self.ghosts.remember(gone);
        }
        self.remove(gone);
        Some(gone)
    }

    /// A pinned key becomes ready.
    pub fn unpin(&mut self, key: u32) {
        let at = self.index.get(key).expect("a pinned key is held");
        let frame = &mut self.frames[at as usize];
        assert!(frame.pinned);
        frame.pinned = false;
        self.admit(at, key);
    }

    /// Lets a key go.
    pub fn remove(&mut self, key: u32) {
        let Some(at) = self.index.get(key) else {
            return;
        };
        self.unlink(at);
        self.index.remove(key);
        self.frames[at as usize].key = NONE;
        self.frames[at as usize].pinned = false;
        self.free.push(at);
    }

    /// Every key held.
    pub fn keys(&self) -> impl Iterator<Item = u32> + '_ {
        self.frames
            .iter()
            .map(|frame| frame.key)
            .filter(|&key| key != NONE)
    }

    fn admit(&mut self, at: u32, key: u32) {
        let first_time = self.policy == Replacement::TwoQ && !self.ghosts.recall(key);
        self.link(at, if first_time { PROBATION } else { 0 });
    }

    /// The frame that gives way; `None` when all are pinned.
    fn victim(&mut self) -> Option<u32> {
        match self.policy {
            Replacement::Random => {
                let total = self.lists[0].len;
                if total == 0 {
                    return None;
                }
                loop {
                    let at = self.rng.below(self.frames.len() as u32);
                    if self.frames[at as usize].list == 0 {
                        return Some(at);
                    }
                }
            }
            Replacement::TwoQ => {
                // A quarter of the frames for units seen once, as its authors recommend.
                let probation = self.lists[PROBATION as usize];
                let from = if probation.len > self.len() / 4 || self.lists[0].len == 0 {
                    probation
                } else {
                    self.lists[0]
                };
                (from.tail != NONE).then_some(from.tail)
            }
            Replacement::Clock => loop {
                let at = self.lists[0].tail;
                if at == NONE {
                    return None;
                }
                if !std::mem::take(&mut self.frames[at as usize].referenced) {
                    return Some(at);
                }
                self.unlink(at);
                self.link(at, 0);
            },
            Replacement::Lru | Replacement::Fifo => {
                let at = self.lists[0].tail;
                (at != NONE).then_some(at)
            }
        }
    }

    #[inline]
    fn link(&mut self, at: u32, list: u8) {
        let head = self.lists[list as usize].head;
        let frame = &mut self.frames[at as usize];
        frame.list = list;
        frame.previous = NONE;
        frame.next = head;
        if head == NONE {
            self.lists[list as usize].tail = at;
        } else {
            self.frames[head as usize].previous = at;
        }
        self.lists[list as usize].head = at;
        self.lists[list as usize].len += 1;
    }

    #[inline]
    fn unlink(&mut self, at: u32) {
        let Frame {
            previous,
            next,
            list,
            ..
        } = self.frames[at as usize];
        if list == NO_LIST {
            return;
        }
        let ends = &mut self.lists[list as usize];
        ends.len -= 1;
        if previous == NONE {
            ends.head = next;
        } else {
            self.frames[previous as usize].next = next;
        }
        if next == NONE {
            self.lists[list as usize].tail = previous;
        } else {
            self.frames[next as usize].previous = previous;
        }
        self.frames[at as usize].list = NO_LIST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a textbook would write: a list of keys, the next to give way first.
    struct Naive {
        keys: Vec<(u32, bool)>,
        capacity: usize,
        policy: Replacement,
    }

    impl Naive {
        fn touch(&mut self, key: u32) -> bool {
            let Some(at) = self.keys.iter().position(|entry| entry.0 == key) else {
                return false;
            };
            match self.policy {
                Replacement::Lru => {
                    let entry = self.keys.remove(at);
                    self.keys.push(entry);
                }
                Replacement::Clock => self.keys[at].1 = true,
                _ => {}
            }
            true
        }

        fn insert(&mut self, key: u32) -> Option<u32> {
            let mut gone = None;
            if self.keys.len() == self.capacity {
                while self.keys[0].1 {
                    let entry = self.keys.remove(0);
                    self.keys.push((entry.0, false));
                }
                gone = Some(self.keys.remove(0).0);
            }
            self.keys.push((key, false));
            gone
        }
    }

    fn agrees(policy: Replacement, capacity: u32, keys: &[u32]) {
        let mut cache = Cache::new(Direct::new(64), capacity, policy, 1);
        let mut naive = Naive {
            keys: Vec::new(),
            capacity: capacity as usize,
            policy,
        };
        for &key in keys {
            let hit = cache.touch(key);
            assert_eq!(hit, naive.touch(key));
            if !hit {
                let gone = match cache.insert(key, false) {
                    Inserted::Evicted(gone) => Some(gone),
                    other => {
                        assert_eq!(other, Inserted::Free);
                        None
                    }
                };
                assert_eq!(gone, naive.insert(key));
            }
        }
    }

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        #[test]
        fn lru_fifo_and_clock_do_what_the_textbook_says(
            capacity in 1u32..20,
            keys in prop::collection::vec(0u32..64, 0..400),
        ) {
            for policy in [Replacement::Lru, Replacement::Fifo, Replacement::Clock] {
                agrees(policy, capacity, &keys);
            }
        }

        #[test]
        fn no_policy_loses_or_doubles_a_key(
            capacity in 1u32..20,
            keys in prop::collection::vec((0u32..64, 0u32..8), 0..400),
        ) {
            for policy in [Replacement::TwoQ, Replacement::Random, Replacement::Lru] {
                let mut cache = Cache::new(Table::with_capacity(32), capacity, policy, 1);
                let mut held = std::collections::BTreeSet::new();
                for &(key, what) in &keys {
                    prop_assert_eq!(cache.contains(key), held.contains(&key));
                    match what {
                        0 => { cache.remove(key); held.remove(&key); }
                        _ if cache.touch(key) => {}
                        _ => {
                            if let Inserted::Evicted(gone) = cache.insert(key, false) {
                                prop_assert!(held.remove(&gone));
                            }
                            held.insert(key);
                        }
                    }
                    prop_assert!(cache.len() <= capacity);
                    prop_assert_eq!(cache.len() as usize, held.len());
                }
            }
        }
    }

    #[test]
    fn a_pinned_key_neither_hits_nor_gives_way() {
        let mut cache = Cache::new(Direct::new(8), 2, Replacement::Lru, 1);
        cache.insert(1, true);
        cache.insert(2, false);
        assert!(!cache.touch(1));
        assert_eq!(cache.insert(3, true), Inserted::Evicted(2));
        assert_eq!(cache.insert(4, false), Inserted::Full);
        cache.unpin(1);
        assert!(cache.touch(1));
        assert_eq!(cache.insert(4, false), Inserted::Evicted(1));
    }

    #[test]
    fn a_cyclic_scan_one_unit_larger_than_the_cache_never_hits_lru_and_mostly_hits_random() {
        // Kim & Kim's map-cache experiment scans cyclically: the policy can be told from outside.
        let hits = |policy| {
            let mut cache = Cache::new(Direct::new(128), 100, policy, 7);
            (0..5_000u32)
                .filter(|step| {
                    let key = step % 105;
                    let hit = cache.touch(key);
                    if !hit {
                        cache.insert(key, false);
                    }
                    hit
                })
                .count()
        };
        assert_eq!(hits(Replacement::Lru), 0);
        assert!(hits(Replacement::Random) > 4_000);
    }

    #[test]
    fn two_q_keeps_what_is_used_twice_through_a_long_scan() {
        let mut cache = Cache::new(Direct::new(4096), 16, Replacement::TwoQ, 1);
        let mut use_key = |key| {
            if !cache.touch(key) {
                cache.insert(key, false);
            }
        };
        // Seen, pushed out of probation, seen again while remembered: now in the main list.
        use_key(0);
        (1..17).for_each(&mut use_key);
        use_key(0);
        (100..2000).for_each(&mut use_key);
        assert!(cache.contains(0));
    }
}
