//! Emptying superblocks (garbage collection): which slots of the victim are read next, and what waits to be rewritten.

use super::{Ftl, Oob, Owned, Owner, State};
use crate::ids::{Lpn, Ppn, Superblock};
use crate::nand::{Cause, SlotMask};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Who empties a superblock. Each goes on by itself.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mover {
    /// Garbage collection and static wear levelling.
    Gc = 0,
    /// Garbage collection of a superblock of translation pages, beside data: chosen in its turn, or because it has
    /// become much emptier than the victim under way. A map that is written back for each page moved would else
    /// use up all room before that victim is done.
    Map = 1,
    /// Folding of the single-bit cache.
    Fold = 2,
}

/// How many there are.
pub const MOVERS: usize = 3;

/// Valid data of a victim's slot that is being relocated.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
pub struct Move {
    /// Whose page it is.
    pub owner: Owner,
    /// Sequence number of the data.
    pub sequence: u32,
    /// Where it is taken from.
    pub from: Ppn,
    /// What it is moved for.
    pub cause: Cause,
}

impl Move {
    /// The logical page that it is the data of, if it is data.
    #[must_use]
    pub fn page(&self) -> Option<Lpn> {
        match self.owner.get() {
            Some(Owned::Data(lpn)) => Some(lpn),
            _ => None,
        }
    }
}

/// A superblock whose valid data is being read.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
pub struct Collecting {
    /// Superblock that is emptied.
    pub victim: Superblock,
    /// What it is emptied for.
    pub cause: Cause,
    /// First slot not looked at yet.
    cursor: u32,
    end: u32,
}

/// Garbage collection of superblocks: one victim is read at a time, while earlier ones may still wait for
/// their last relocations.
#[derive(Clone, Serialize, Deserialize, Debug, Default)]
pub struct Collector {
    /// The victim being read.
    pub current: Option<Collecting>,
    /// Data slots read and waiting for a program unit of their own.
    pub staged: VecDeque<Move>,
    /// Translation pages likewise.
    pub staged_pages: VecDeque<Move>,
    /// Reads under way.
    pub reads: u32,
    /// Programs of moved data under way.
    pub programs: u32,
}

impl Collector {
    /// Starts to empty a superblock.
    pub fn start(&mut self, ftl: &mut Ftl, victim: Superblock, cause: Cause) {
        assert!(self.current.is_none());
        assert_eq!(ftl.blocks[victim].state, State::Closed);
        ftl.blocks.add_victim(victim);
        let first = ftl.geometry.first_ppn(victim).0;
        let usable = ftl.geometry.usable_slots(ftl.blocks[victim].mode);
        self.current = Some(Collecting {
            victim,
            cause,
            cursor: first,
            end: first + usable,
        });
    }

    /// Whether nothing is being read, waiting or being programmed.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.current.is_none()
            && self.reads == 0
            && self.programs == 0
            && self.staged.is_empty()
            && self.staged_pages.is_empty()
    }

    /// Whether something that was read is yet to be programmed.
    #[inline]
    #[must_use]
    pub fn has_staged(&self) -> bool {
        !self.staged.is_empty() || !self.staged_pages.is_empty()
    }

    /// Whether what has been read waits for more to fill a program operation with, and nothing else of it is under way.
    #[must_use]
    pub fn waits_for_company(&self) -> bool {
        self.has_staged() && self.reads == 0 && self.programs == 0
    }

    /// The next group of the victim that holds current data: its first slot and a bit for each
    /// such slot. `None` when the victim has been read to its end.
    pub fn next_group(&mut self, ftl: &Ftl) -> Option<(Ppn, SlotMask, Cause)> {
        let collecting = self.current.as_mut()?;
        // What was left in it was overwritten meanwhile, or never was: no group need be looked at.
        if ftl.blocks[collecting.victim].valid == 0 {
            collecting.cursor = collecting.end;
        }
        let group_slots = ftl.geometry.group_slots;
        while collecting.cursor < collecting.end {
            let group = collecting.cursor;
            collecting.cursor += group_slots;
            let mask = ftl.current_slots(Ppn(group));
            if mask != 0 {
                return Some((Ppn(group), mask, collecting.cause));
            }
        }
        None
    }

    /// A group has been read: its slots wait to be rewritten.
    pub fn stage(&mut self, ftl: &mut Ftl, group: Ppn, mask: SlotMask, cause: Cause) {
        let victim = ftl.geometry.superblock(group);
        let mut rest = mask;
        while rest != 0 {
            let from = Ppn(group.0 + rest.trailing_zeros());
            rest &= rest - 1;
            // What was overwritten meanwhile need not be moved.
            let Some(Oob { owner, sequence }) = ftl.current(from) else {
                continue;
            };
            ftl.blocks[victim].moves += 1;
            let staged = match owner.get() {
                Some(Owned::Map(_)) => &mut self.staged_pages,
                _ => &mut self.staged,
            };
            staged.push_back(Move {
                owner,
                sequence,
                from,
                cause,
            });
        }
    }
}

impl std::fmt::Display for Collector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let reading = self.current.map(|current| current.victim.0);
        let staged = self.staged.len() + self.staged_pages.len();
        let Collector {
            reads, programs, ..
        } = self;
        write!(
            f,
            "reading {reading:?}, {reads} reads, {staged} slots staged, {programs} programs"
        )
    }
}
