//! Which host data is likely to be overwritten soon.
//!
//! What replaces data that lived shortly will live shortly, too. So the lifespan of the data that a write
//! replaces is compared with the mean lifespan of all that was replaced lately. Where a tenth of the pages
//! takes nine tenths of the writes, that mean is nine times the lifespan of hot data and a ninth of that of
//! cold data. (Wang et al., "Separating Data via Block Invalidation Time Inference", FAST 2022, compare with
//! the lifespan of superblocks of hot data instead; that was not held against this.)
//!
//! Time is counted in program operations and trims. A drive knows the age of what it replaces from
//! out-of-band data it once wrote; how it keeps that at hand is not modelled.

use super::{Ftl, Oob};
use crate::ids::Ppn;
use serde::{Deserialize, Serialize};

/// The mean follows the load within this part of a drive write.
const WINDOW_OF_DRIVE: u32 = 16;

/// Mean lifespan of data that was replaced lately, program operations and trims.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
pub struct Lifespan {
    /// Pages the mean goes over.
    window: u64,
    /// The mean times the window.
    sum: u64,
}

impl Lifespan {
    pub fn new(user_slots: u32) -> Self {
        Lifespan {
            window: u64::from(user_slots / WINDOW_OF_DRIVE).max(1),
            sum: 0,
        }
    }

    fn add(&mut self, life: u32) {
        self.sum = self.sum - self.sum / self.window + u64::from(life);
    }

    fn is_above(self, life: u32) -> bool {
        u64::from(life) * self.window < self.sum
    }
}

impl Ftl {
    /// Whether data that replaces what lies at `old` (`None`: nothing) is expected to last.
    pub fn expects_to_last(&mut self, old: Option<Ppn>) -> bool {
        let Some(Oob { sequence, .. }) = old.and_then(|ppn| self.current(ppn)) else {
            return true;
        };
        let life = self.sequence - sequence;
        self.lifespan.add(life);
        !self.lifespan.is_above(life)
    }
}
