//! Any.

use super::Policy;
use super::frames::{Frames, ListId};
use crate::rng::Rng;
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct Random(Rng);

impl Policy for Random {
    fn new(_capacity: u32, seed: u64) -> Self {
        Random(Rng::new(seed))
    }

    #[inline]
    fn used(&mut self, _frames: &mut Frames, _at: u32) {}

    fn victim(&mut self, frames: &mut Frames, _left: Option<ListId>) -> Option<u32> {
        if frames.len(ListId::Main) == 0 {
            return None;
        }
        loop {
            let at = self.0.below(frames.ever_used());
            if frames[at].is_in(ListId::Main) {
                return Some(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::ask;
    use super::super::{Cache, Direct};
    use crate::spec::Replacement;

    #[test]
    fn a_cyclic_scan_one_unit_larger_than_the_cache_never_hits_lru_and_mostly_hits_random() {
        // Kim & Kim's map-cache experiment scans cyclically: the policy can be told from outside.
        let hits = |policy| {
            let mut cache = Cache::new(Direct::new(128), 100, policy, 7);
            let scan = (0..5_000u32).map(|step| step % 105);
            scan.filter(|&key| ask(&mut cache, key)).count()
        };
        assert_eq!(hits(Replacement::Lru), 0);
        assert!(hits(Replacement::Random) > 4_000);
    }
}
