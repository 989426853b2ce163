//! Physical pages that nobody reads any more, for contents that want to hear of them: what they held was
//! superseded or trimmed, and they wait until a power cut cannot bring it back.

use crate::ids::Ppn;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Pages that wait, each with the sequence number of what made it dead, in that order.
#[derive(Clone, Serialize, Deserialize, Debug, Default)]
pub(super) struct Dead(VecDeque<(u32, Ppn)>);

impl Dead {
    /// The last program operation, or trim, with this sequence number has made a page dead.
    pub(super) fn add(&mut self, sequence: u32, ppn: Ppn) {
        debug_assert!(self.0.back().is_none_or(|(last, _)| *last <= sequence));
        self.0.push_back((sequence, ppn));
    }

    /// All programs up to this sequence number have ended, and all trims are recorded: what of the pages no cut
    /// brings back.
    pub(super) fn settled(&mut self, settled_to: u32) -> impl Iterator<Item = Ppn> + '_ {
        let count = self
            .0
            .partition_point(|(sequence, _)| *sequence <= settled_to);
        self.0.drain(..count).map(|(_, ppn)| ppn)
    }

    /// Slots from `first` on are erased: there will be other pages.
    pub(super) fn erased(&mut self, first: Ppn, slots: u32) {
        self.0
            .retain(|(_, ppn)| ppn.0.wrapping_sub(first.0) >= slots);
    }

    /// The drive starts anew: which of them are dead, flash says.
    pub(super) fn drop_all(&mut self) {
        self.0.clear();
    }
}
