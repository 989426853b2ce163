//! Looks at all superblocks: which to empty next. There are thousands, and while data waits for room garbage
//! collection asks again after each command; so what a look found is kept for as long as it holds.

use super::{Block, State, Superblocks};
use crate::ftl::victim::{self, Candidate, Choice};
use crate::ids::Superblock;
use crate::nand::CellMode;
use crate::spec::GcPolicy;

/// What the last looks found.
#[derive(Clone, Debug, Default)]
pub(super) struct Looks {
    /// Whether a superblock lies too still, and which.
    worn: Option<Option<Superblock>>,
    emptiest: Option<Emptiest>,
}

/// Slots in use of the emptiest closed superblocks of ordinary mode, as bounds: [`u32::MAX`] where there
/// is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emptiest {
    /// No superblock of data has fewer, whatever has been superseded since the look.
    pub data_at_least: u32,
    /// One of data has no more: what was found.
    pub data_at_most: u32,
    /// One of translation pages has no more.
    pub map_at_most: u32,
}

impl Emptiest {
    /// Whether the emptiest of all is one of translation pages.
    #[must_use]
    pub fn is_map(&self) -> bool {
        self.map_at_most < self.data_at_least
    }
}

impl Looks {
    /// Superblocks have been closed, chosen or erased.
    #[inline]
    pub(super) fn forget(&mut self) {
        *self = Looks::default();
    }

    /// The data of a slot, wherever, was superseded.
    #[inline]
    pub(super) fn buried(&mut self) {
        if let Some(emptiest) = &mut self.emptiest {
            emptiest.data_at_least = emptiest.data_at_least.saturating_sub(1);
        }
    }
}

impl Superblocks {
    /// Chooses the victim among the closed ones of ordinary mode, or of those that stand apart for
    /// single-bit mode.
    pub fn choose_victim(&mut self, policy: GcPolicy, mode: CellMode) -> Option<Superblock> {
        let mut fewest = [u32::MAX; 2];
        let mut rng = self.rng.clone();
        let candidates = self.closed(mode).map(|(superblock, block)| {
            let of_kind = &mut fewest[usize::from(block.is_map())];
            *of_kind = block.valid.min(*of_kind);
            Candidate::new(superblock, block)
        });
        let choice = Choice {
            candidates,
            usable_slots: self.geometry.usable_slots(mode),
            now: self.closings,
        };
        let chosen = victim::choose(policy, choice, &mut rng);
        self.rng = rng;
        if mode == CellMode::Native {
            let [data, map] = fewest;
            self.looks.emptiest = Some(Emptiest {
                data_at_least: data,
                data_at_most: data,
                map_at_most: map,
            });
        }
        chosen
    }

    /// What of the superblocks that stand apart for single-bit mode is to be emptied next: when all are full, or in idle
    /// time, one after the other.
    pub fn next_to_fold(&mut self, idle: bool) -> Option<Superblock> {
        let under_way = self.victims.iter().filter(|victim| victim.is_apart);
        if !(idle || self.apart_is_full()) || under_way.count() > 1 {
            return None;
        }
        self.choose_victim(GcPolicy::Fifo, CellMode::Slc)
    }

    /// What the last choice of a victim of ordinary mode saw, if it still holds.
    #[inline]
    #[must_use]
    pub fn emptiest(&self) -> Option<Emptiest> {
        let known = self.looks.emptiest?;
        debug_assert!(self.bounds_hold(&known));
        Some(known)
    }

    fn bounds_hold(&self, known: &Emptiest) -> bool {
        let fewest = |is_map| {
            let of_kind = self
                .closed(CellMode::Native)
                .filter(|(_, block)| block.is_map() == is_map);
            of_kind
                .map(|(_, block)| block.valid)
                .min()
                .unwrap_or(u32::MAX)
        };
        let data = fewest(false);
        let is_data =
            data == u32::MAX || (known.data_at_least..=known.data_at_most).contains(&data);
        is_data && fewest(true) <= known.map_at_most
    }

    /// Closed superblocks that nothing is being written to any more: of ordinary mode, or those that stand apart.
    fn closed(&self, mode: CellMode) -> impl Iterator<Item = (Superblock, &Block)> {
        let all = self.all_closed();
        all.filter(move |(superblock, block)| match mode {
            CellMode::Slc => self.is_apart(*superblock),
            CellMode::Native => block.mode == mode,
        })
    }

    fn all_closed(&self) -> impl Iterator<Item = (Superblock, &Block)> {
        let all = (0u32..).map(Superblock).zip(&self.blocks);
        all.filter(|(_, block)| block.state == State::Closed && block.programs == 0)
    }

    /// The emptiest ordinary superblock that runs in single-bit mode, the one closed first of several, unless that one
    /// holds less.
    #[must_use]
    pub fn emptiest_borrowed(&self, unless: Option<Superblock>) -> Option<Superblock> {
        if self.borrowed == 0 {
            return None;
        }
        let most = unless.map_or(u32::MAX, |other| self[other].valid);
        let is_borrowed = |(superblock, block): &(Superblock, &Block)| {
            block.mode.is_slc() && !self.is_apart(*superblock)
        };
        let borrowed = self.all_closed().filter(is_borrowed);
        let emptiest = borrowed.min_by_key(|(_, block)| (block.valid, block.closed_at));
        let (superblock, block) = emptiest?;
        (block.valid <= most).then_some(superblock)
    }

    /// A closed superblock of ordinary mode of which nothing is current.
    #[must_use]
    pub fn dead(&self) -> Option<Superblock> {
        let mut closed = self.closed(CellMode::Native);
        closed.find_map(|(superblock, block)| (block.valid == 0).then_some(superblock))
    }

    /// For how long a superblock has been closed, in superblocks that were.
    #[must_use]
    pub fn closed_for(&self, superblock: Superblock) -> u64 {
        self.closings - self[superblock].closed_at
    }

    /// The closed superblock whose data has lain still the longest in wear terms, when the spread
    /// of erase counts has reached `threshold`, which is the same at each call.
    #[must_use]
    pub fn worn_unevenly(&mut self, threshold: u32) -> Option<Superblock> {
        if threshold == 0 {
            return None;
        }
        if let Some(worn) = self.looks.worn {
            debug_assert_eq!(worn, self.look_for_worn(threshold), "nothing has changed");
            return worn;
        }
        let worn = self.look_for_worn(threshold);
        self.looks.worn = Some(worn);
        worn
    }

    fn look_for_worn(&self, threshold: u32) -> Option<Superblock> {
        let in_use = |block: &&Block| !block.mode.is_slc() && block.state != State::Retired;
        let ordinary = self.blocks.iter().filter(in_use);
        let most = ordinary.map(|block| block.erases).max()?;
        let (superblock, coldest) = self
            .closed(CellMode::Native)
            .min_by_key(|(_, block)| (block.erases, block.closed_at))?;
        (most - coldest.erases >= threshold).then_some(superblock)
    }
}
