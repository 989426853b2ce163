//! Firmware cores: commands take the one that is free first.

use crate::engine::{Now, Timeline};
use serde::{Deserialize, Serialize};

/// The firmware cores, each of which does one thing at a time.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Cores(Vec<Timeline>);

impl Cores {
    /// `count` idle cores.
    #[must_use]
    pub fn new(count: u32) -> Self {
        Cores(vec![Timeline::default(); count as usize])
    }

    #[inline]
    fn first_free(&self) -> usize {
        let (mut first, mut first_ps) = (0, u64::MAX);
        for (core, timeline) in self.0.iter().enumerate() {
            if timeline.free_at_ps() < first_ps {
                (first, first_ps) = (core, timeline.free_at_ps());
            }
        }
        first
    }

    /// When work that comes now would begin.
    #[inline]
    #[must_use]
    pub fn begin_ps(&self, now: Now) -> u64 {
        self.0[self.first_free()].free_at_ps().max(now.ps())
    }

    /// Work of `duration_ps` on the core that is free first; returns its end.
    #[inline]
    pub fn book(&mut self, now: Now, duration_ps: u64) -> u64 {
        let first = self.first_free();
        self.0[first].book(now, duration_ps)
    }

    /// Power is gone: no core has anything to do.
    pub fn drop_all(&mut self) {
        self.0.iter_mut().for_each(Timeline::drop_all);
    }

    /// Time each core worked.
    #[must_use]
    pub fn busy_ps(&self) -> Vec<u64> {
        self.0.iter().map(Timeline::busy_ps).collect()
    }
}
