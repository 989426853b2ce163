//! Flash that fails: what a program operation carried that has failed is programmed again elsewhere, superblocks are not used
//! any more, and in the end no new data is taken.
//!
//! It keeps the sequence numbers it had, so that of two copies of a page the newer one wins after a power cut as
//! before. What has been superseded or trimmed meanwhile goes along: what superseded it may be lost in a power cut, and
//! then it is what counts.

use super::{Ftl, Oob, Owned, ProgramUnit, State, Stream};
use crate::ids::{Ppn, Superblock};

/// What a slot of a program operation carried has another place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Whose page it is.
    pub owner: Owned,
    /// Where it was to be.
    pub from: Ppn,
    /// Where it is to be now.
    pub to: Ppn,
    /// Sequence number of the operation that is to program it there.
    pub sequence: u32,
    /// It was not superseded or trimmed meanwhile.
    pub is_current: bool,
}

impl Ftl {
    /// What the operation of `slots` slots from `from` on carried goes to `to`, the last unit allocated. `moved` hears
    /// of each slot. Returns how many there are.
    pub fn rewrite(
        &mut self,
        from: Ppn,
        slots: u32,
        to: &ProgramUnit,
        mut moved: impl FnMut(Moved),
    ) -> u32 {
        let superblock = self.geometry.superblock(from);
        let first = from.0 - self.geometry.first_ppn(superblock).0;
        let mut filled = 0;
        for slot in 0..slots {
            let (old, offset) = (Ppn(from.0 + slot), first + slot);
            let block = &self.blocks[superblock];
            let (is_dead, superseded_at, trimmed_at) =
                (block.is_dead(offset), block.superseded_at, block.trimmed_at);
            let oob = block
                .oob
                .as_ref()
                .map_or(Oob::NOTHING, |oob| oob[offset as usize]);
            let Some(owned) = oob.owner.get() else {
                continue;
            };
            let new = Ppn(to.ppn.0 + filled);
            filled += 1;
            match owned {
                _ if is_dead => {
                    self.mark_valid(new, oob.owner, oob.sequence);
                    let block = self.invalidate(new);
                    block.superseded_at = block.superseded_at.max(superseded_at);
                    block.trimmed_at = block.trimmed_at.max(trimmed_at);
                }
                Owned::Data(lpn) => self.bind(lpn, new, oob.sequence),
                Owned::Map(page) => self.bind_translation(page, new, oob.sequence),
            }
            if let Some(oob) = &mut self.blocks[superblock].oob {
                oob[offset as usize] = Oob::NOTHING;
            }
            moved(Moved {
                owner: owned,
                from: old,
                to: new,
                sequence: to.sequence,
                is_current: !is_dead,
            });
        }
        filled
    }

    /// A unit has been given out whose block has failed: nothing is programmed there.
    pub fn skip(&mut self, unit: &ProgramUnit) {
        self.allocated_slots[unit.mode.index()] -= u64::from(unit.slots);
        self.programmed(unit.ppn);
    }

    /// Whether what a stream opens counts as room for what garbage collection moves.
    #[must_use]
    pub fn shares_room(&self, stream: Stream) -> bool {
        matches!(stream, Stream::Map | Stream::Wear) || stream == self.relocation_stream
    }

    /// Whether so many slots of that room can be done without now, because a block has failed: a victim can still be
    /// emptied then, and the reserve stays, without which the map that has to follow takes no room ([`Ftl::has_room`]). Each
    /// loss is checked so, what is being erased included: one that is not allowed does not happen, since
    /// with it the drive's life has ended. So what counts as room always is. What is open for translation pages is none for data.
    #[must_use]
    pub fn can_lose(&self, slots: u32) -> bool {
        let of_map = self.left_in(Stream::Map) + i64::from(slots);
        let left = self.gc_slots_left() + self.erasing_slots() - of_map;
        // What a victim under way still takes is out of that already; one that is being erased takes nothing.
        let mut victims = self.blocks.victims().iter();
        let is_moved = |superblock| self.blocks[superblock].state != State::Erasing;
        let takes = victims.any(|victim| !victim.is_apart && is_moved(victim.superblock));
        let superblocks = self.reserve + u32::from(!takes);
        left >= i64::from(superblocks) * i64::from(self.geometry.superblock_slots)
    }

    /// Whether a superblock that has been erased can be done without: in the long run, and now.
    #[must_use]
    pub fn can_retire(&self, superblock: Superblock) -> bool {
        self.blocks.is_apart(superblock)
            || self.blocks.retired() < self.retirable
                && self.can_lose(self.geometry.superblock_slots)
    }

    /// A superblock is not used any more.
    pub fn retire(&mut self, superblock: Superblock) {
        self.blocks.retire(superblock);
    }

    /// No new data is taken any more.
    pub fn wear_out(&mut self) {
        self.blocks.wear_out();
    }

    /// Whether no new data is taken any more because flash is worn out.
    #[inline]
    #[must_use]
    pub fn is_worn_out(&self) -> bool {
        self.blocks.is_worn_out()
    }
}
