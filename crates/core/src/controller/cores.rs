//! Firmware cores: commands take the one that is free first.

use crate::engine::{Now, Timeline};
use serde::{Deserialize, Serialize};

/// The firmware cores, each of which does one thing at a time.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Cores {
    all: Vec<Timeline>,
    /// The one that is free first; of several, that of the smallest number.
    first: usize,
}

impl Cores {
    /// `count` idle cores.
    #[must_use]
    pub fn new(count: u32) -> Self {
        Cores {
            all: vec![Timeline::default(); count as usize],
            first: 0,
        }
    }

    /// When work that comes now would begin.
    #[inline]
    #[must_use]
    pub fn begin_ps(&self, now: Now) -> u64 {
        self.all[self.first].free_at_ps().max(now.ps())
    }

    /// Work of `duration_ps` on the core that is free first; returns its end.
    #[inline]
    pub fn book(&mut self, now: Now, duration_ps: u64) -> u64 {
        let end_ps = self.all[self.first].book(now, duration_ps);
        let mut first_ps = u64::MAX;
        for (core, timeline) in self.all.iter().enumerate() {
            if timeline.free_at_ps() < first_ps {
                (self.first, first_ps) = (core, timeline.free_at_ps());
            }
        }
        end_ps
    }

    /// Power is gone: no core has anything to do.
    pub fn drop_all(&mut self) {
        self.all.iter_mut().for_each(Timeline::drop_all);
        self.first = 0;
    }

    /// Time each core worked.
    #[must_use]
    pub fn busy_ps(&self) -> Vec<u64> {
        self.all.iter().map(Timeline::busy_ps).collect()
    }
}
