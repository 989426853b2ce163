//! Erases: a superblock is erased once nothing of it is needed any more, not even after a power cut.

use super::board::Board;
use super::programs::Programs;
use super::trims::Trims;
use crate::ftl::{Collector, Ftl, MOVERS, State};
use crate::ids::{DieId, Superblock};
use crate::nand::{Class, FlashOp};
use crate::observe::Tracer;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What erases have to do with.
pub(super) struct Around<'a, T> {
    pub board: &'a mut Board<T>,
    pub ftl: &'a mut Ftl,
    pub programs: &'a mut Programs,
    pub trims: &'a mut Trims,
    pub collectors: &'a [Collector; MOVERS],
    /// Recovery waits for room.
    pub reclaiming: bool,
}

/// Erases that cannot begin yet, and those that have their turn one after another.
#[derive(Clone, Serialize, Deserialize, Debug, Default)]
pub(super) struct Erases {
    /// They wait for programs that supersede what is in their superblocks, or for records of trims.
    held: Vec<Superblock>,
    /// Superblocks whose erases room waits for, one after another: the dies have been handed the first. All dies erase a
    /// superblock, and new data stands in one queue with that: behind two to four erases of 7 to 10 ms, writes waited for
    /// longer than they ever should.
    urgent: VecDeque<Superblock>,
}

impl Erases {
    /// Number of erases that wait.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Nothing waits any more.
    pub(super) fn drop_all(&mut self) {
        self.held.clear();
        self.urgent.clear();
    }

    /// Erases a victim once nothing of it is needed any more.
    pub(super) fn begin(&mut self, around: &mut Around<'_, impl Tracer>, superblock: Superblock) {
        let block = &around.ftl.blocks[superblock];
        let mut under_way = around
            .collectors
            .iter()
            .filter_map(|collector| collector.current);
        if block.state != State::Collecting
            || block.reads > 0
            || block.moves > 0
            || block.programs > 0
            || under_way.any(|collecting| collecting.victim == superblock)
        {
            return;
        }
        assert_eq!(
            block.valid, 0,
            "a superblock with current data must not be erased"
        );
        if self.holds(around, superblock) {
            return;
        }
        let ftl = &mut *around.ftl;
        // Where room is short, erases go before other work.
        let urgent = around.reclaiming || ftl.room_is_short();
        let is_wanted = urgent && !ftl.blocks.is_apart(superblock);
        let dies = ftl.geometry().dies;
        let block = &mut ftl.blocks[superblock];
        (block.state, block.erasing) = (State::Erasing, dies);
        if !is_wanted {
            hand_out(around, superblock, Class::Erase);
            return;
        }
        self.urgent.push_back(superblock);
        if self.urgent.len() == 1 {
            hand_out(around, superblock, Class::HostProgram);
        }
    }

    /// A superblock has been erased on all dies: the next has its turn.
    pub(super) fn ended(&mut self, around: &mut Around<'_, impl Tracer>, superblock: Superblock) {
        if self.urgent.front() != Some(&superblock) {
            return;
        }
        self.urgent.pop_front();
        if let Some(&next) = self.urgent.front() {
            hand_out(around, next, Class::HostProgram);
        }
    }

    /// Whether the erase of a superblock must wait: a power cut now would need what is in it,
    /// because what superseded it is not in flash yet.
    fn holds(&mut self, around: &mut Around<'_, impl Tracer>, superblock: Superblock) -> bool {
        let block = &around.ftl.blocks[superblock];
        let programmed = around
            .programs
            .sequences()
            .all(|sequence| sequence > block.superseded_at);
        let recorded = block.trimmed_at <= around.trims.saved_to();
        if programmed && recorded {
            self.held.retain(|&held| held != superblock);
            return false;
        }
        if !self.held.contains(&superblock) {
            self.held.push(superblock);
        }
        if !recorded {
            let trims = &mut around.trims;
            trims.write(around.board, around.programs, around.ftl);
        }
        true
    }

    /// Something has got to flash: erases may have waited for it.
    #[inline]
    pub(super) fn retry(&mut self, around: &mut Around<'_, impl Tracer>) {
        if self.held.is_empty() {
            return;
        }
        // What still has to wait puts itself on the list again.
        let mut held = std::mem::take(&mut self.held);
        for superblock in held.drain(..) {
            self.begin(around, superblock);
        }
        if self.held.is_empty() {
            self.held = held;
        }
    }
}

/// The dies are handed the erase of a superblock.
fn hand_out(around: &mut Around<'_, impl Tracer>, superblock: Superblock, class: Class) {
    let ftl = &*around.ftl;
    let (dies, mode) = (ftl.geometry().dies, ftl.blocks[superblock].mode);
    let place = ftl.place(ftl.geometry().first_ppn(superblock));
    let board = &mut *around.board;
    for die in 0..dies {
        board.counters.erases += 1;
        let op = FlashOp::erase(class, superblock.0, DieId(die), &place);
        board.array.enqueue(&mut board.engine, op, mode);
    }
}
