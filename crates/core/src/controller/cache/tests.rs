//! What all policies must keep, and the kit with which each is held against a textbook's version.

use super::*;
use crate::table::Table;
use proptest::prelude::*;

/// A policy as its paper has it: lists of keys, no indices, no frames.
pub(super) trait Textbook {
    /// A key is asked for. Returns whether it was held; if not, it is now.
    fn ask(&mut self, key: u32) -> bool;
    /// The keys that are held, in any order.
    fn held(&self) -> Vec<u32>;
}

/// The cache holds the same keys as the textbook's after each key asked for.
pub(super) fn agrees(
    policy: Replacement,
    capacity: u32,
    keys: &[u32],
    textbook: &mut impl Textbook,
) {
    let mut cache = Cache::new(Direct::new(64), capacity, policy, 1);
    for (step, &key) in keys.iter().enumerate() {
        assert_eq!(ask(&mut cache, key), textbook.ask(key), "step {step}");
        let mut held: Vec<u32> = cache.keys().collect();
        held.sort_unstable();
        let mut expected = textbook.held();
        expected.sort_unstable();
        assert_eq!(held, expected, "step {step}");
    }
}

/// Asks for a key, which is held afterwards. Returns whether it was before.
pub(super) fn ask(cache: &mut Cache<Direct>, key: u32) -> bool {
    let hit = cache.touch(key);
    if !hit {
        assert_ne!(cache.insert(key, false), Inserted::Full);
    }
    hit
}

/// Keys of which some come often, for caches of few frames.
pub(super) fn keys() -> impl Strategy<Value = Vec<u32>> {
    let key = prop_oneof![0u32..64, 0u32..64, 0u32..6];
    prop::collection::vec(key, 0..400)
}

proptest! {
    #![proptest_config(lodger_testing::config(256))]

    #[test]
    fn no_policy_loses_or_doubles_a_key(
        capacity in 1u32..20,
        steps in prop::collection::vec((0u32..64, 0u32..12), 0..400),
    ) {
        for policy in Replacement::ALL {
            let mut cache = Cache::new(Table::with_capacity(32), capacity, policy, 1);
            let mut ready = std::collections::BTreeSet::new();
            let mut pinned = std::collections::BTreeSet::new();
            for &(key, what) in &steps {
                let held = ready.contains(&key) || pinned.contains(&key);
                prop_assert_eq!(cache.contains(key), held);
                prop_assert_eq!(cache.is_ready(key), ready.contains(&key));
                match what {
                    0 => {
                        cache.remove(key);
                        ready.remove(&key);
                        pinned.remove(&key);
                    }
                    1 => match cache.evict() {
                        Some(gone) => prop_assert!(ready.remove(&gone)),
                        None => prop_assert!(ready.is_empty()),
                    },
                    2 if pinned.remove(&key) => {
                        cache.unpin(key);
                        ready.insert(key);
                    }
                    _ if cache.touch(key) => prop_assert!(ready.contains(&key)),
                    _ if held => {}
                    _ => {
                        match cache.insert(key, what < 6) {
                            Inserted::Evicted(gone) => prop_assert!(ready.remove(&gone)),
                            Inserted::Free => {}
                            Inserted::Full => {
                                prop_assert!(pinned.len() == capacity as usize);
                                continue;
                            }
                        }
                        if what < 6 { pinned.insert(key); } else { ready.insert(key); }
                    }
                }
                prop_assert!(cache.len() <= capacity);
                prop_assert_eq!(cache.len() as usize, ready.len() + pinned.len());
            }
        }
    }
}

#[test]
fn a_pinned_key_neither_hits_nor_gives_way() {
    for policy in Replacement::ALL {
        let mut cache = Cache::new(Direct::new(8), 2, policy, 1);
        cache.insert(1, true);
        cache.insert(2, false);
        assert!(!cache.touch(1));
        assert_eq!(cache.insert(3, true), Inserted::Evicted(2));
        assert_eq!(cache.insert(4, false), Inserted::Full);
        cache.unpin(1);
        assert!(cache.touch(1));
        assert_eq!(cache.insert(4, false), Inserted::Evicted(1));
    }
}

/// Fifty keys that a nearer memory takes as they are used, and gives back when it has no room for them any more; then a scan of keys that are
/// used once.
#[test]
fn what_is_given_back_is_not_new() {
    let kept = |policy, is_expected: bool| {
        let mut cache = Cache::new(Direct::new(10_000), 100, policy, 1);
        (0..50).for_each(|key| _ = ask(&mut cache, key));
        for key in 0..50 {
            cache.remove(key);
            if is_expected {
                cache.expect_back(key);
            }
            cache.insert(key, false);
        }
        (1_000..9_000).for_each(|key| _ = ask(&mut cache, key));
        (0..50).filter(|&key| cache.contains(key)).count()
    };
    for policy in [Replacement::Arc, Replacement::TwoQ, Replacement::S3Fifo] {
        assert_eq!(kept(policy, true), 50, "{policy:?}");
        assert_eq!(kept(policy, false), 0, "{policy:?}");
    }
    assert_eq!(kept(Replacement::Lru, true), 0, "it goes by the last use");
}
