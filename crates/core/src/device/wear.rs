//! Flash that fails: room that leaves failed blocks out, programs done again, data written anew before it cannot be
//! read, and what is left at the end of a drive's life. Where nothing ages, none of this does anything.
//!
//! A superblock whose block has failed on a die is used on, without the rest of that block, until it is collected in its
//! turn. After its erase a spare block of the die takes the place of the bad one. A die without spares left costs the
//! superblock: it is retired, and the drive has less room to collect garbage in. When one more retirement would leave less than
//! collection needs, in the long run or at that moment, the drive takes no more writes and trims; all it holds can be read.

use super::background::Background;
use super::board::Board;
use super::programs::Program;
use crate::controller::Lost;
use crate::ftl::{Contradiction, Found, Ftl, Moved, Mover, ProgramUnit, State, Stream};
use crate::ids::{FlashOpId, Ppn, Superblock};
use crate::nand::{Ageing, Array, Cause, CellMode, Decoded, FlashOp, OpKind};
use crate::observe::Tracer;
use serde::{Deserialize, Serialize};

/// Superblocks that wait to be written anew: more are asked for again by the reads that find them so.
const REFRESHES_MAX: usize = 64;

/// Room for one program operation, where no block has failed. What has failed is left out as long as there is enough
/// without it; then the drive comes to its end.
#[inline]
pub(super) fn allocate(
    ftl: &mut Ftl,
    array: &mut Array,
    stream: Stream,
    relocating: bool,
) -> Option<ProgramUnit> {
    loop {
        let unit = ftl.allocate(stream, relocating)?;
        if !array.is_bad(unit.ppn, unit.mode) {
            return Some(unit);
        }
        if ftl.shares_room(stream) && !ftl.can_lose(unit.slots) {
            end(array, ftl);
            return Some(unit);
        }
        ftl.skip(&unit);
    }
}

/// What the drive owes its flash.
#[derive(Clone, Serialize, Deserialize, Debug, Default)]
pub(super) struct Upkeep {
    /// Superblocks whose data is to be written anew.
    refreshes: Vec<Superblock>,
    /// That of the last refresh.
    refreshed: Option<Superblock>,
}

impl Upkeep {
    /// Whether it has something to do.
    #[inline]
    pub fn is_due(&self) -> bool {
        !self.refreshes.is_empty()
    }

    fn ask_for(&mut self, superblock: Superblock) {
        if self.refreshes.len() < REFRESHES_MAX
            && self.refreshed != Some(superblock)
            && !self.refreshes.contains(&superblock)
        {
            self.refreshes.push(superblock);
        }
    }
}

/// A read has passed the decoder, or has not. What is lost is marked so, where it lies.
#[cold]
pub(super) fn decode(
    board: &mut Board<impl Tracer>,
    (background, ftl, lost): (&mut Background, &Ftl, &mut Lost),
    index: FlashOpId,
) -> Decoded {
    let op = board.array.ops[index];
    let decoded = op.decoded();
    let counted = &mut board.counters.ageing;
    if decoded == Decoded::Again {
        counted.retries += 1;
        counted.soft_reads += u64::from(op.next_is_soft());
        if board.array.wants_refresh(&op, board.engine.now().ps())
            && ftl.blocks[op.superblock].state == State::Closed
        {
            background.upkeep.ask_for(op.superblock);
        }
        board.array.retry(&mut board.engine, index);
        return decoded;
    }
    if decoded == Decoded::Never {
        counted.uncorrectable += 1;
        let slots = (0..u128::BITS).filter(|slot| op.mask >> slot & 1 != 0);
        for ppn in slots.map(|slot| Ppn(op.ppn.0 + slot)) {
            lost.restore(ppn, u8::MAX);
        }
    }
    decoded
}

/// Starts to write a superblock anew, if one waits for it and there is room.
pub(super) fn refresh(
    board: &mut Board<impl Tracer>,
    background: &mut Background,
    ftl: &mut Ftl,
) -> bool {
    let upkeep = &mut background.upkeep;
    if upkeep.refreshes.is_empty() {
        return false;
    }
    // Those that have been collected meanwhile, or are being, need it no more.
    let blocks = &ftl.blocks;
    upkeep
        .refreshes
        .retain(|&superblock| blocks[superblock].state == State::Closed);
    let slots = i64::from(ftl.geometry().superblock_slots);
    let ready = |superblock: &Superblock| {
        let block = &ftl.blocks[*superblock];
        block.programs == 0 && block.mode == CellMode::Native
    };
    let has_room = ftl.gc_slots_left() >= 2 * slots;
    let Some(at) = upkeep.refreshes.iter().position(ready).filter(|_| has_room) else {
        return false;
    };
    let superblock = upkeep.refreshes.remove(at);
    upkeep.refreshed = Some(superblock);
    board.counters.ageing.refreshes += 1;
    background.collectors[Mover::Gc as usize].start(ftl, superblock, Cause::Wear);
    true
}

/// Gives a program that has failed another place; `None` where there is none, which is the end of the drive's life. Returns
/// where it went, and how many of its slots hold something.
pub(super) fn relocate(
    ftl: &mut Ftl,
    array: &mut Array,
    program: &Program,
    moved: impl FnMut(Moved),
) -> Option<(ProgramUnit, u32)> {
    let stream = ftl.blocks[ftl.geometry().superblock(program.ppn)].stream;
    let (beside, within) = match ftl.shares_room(stream) {
        true => (None, stream),
        // As new data, or else as what is moved.
        false => (Some(stream), ftl.relocation_stream()),
    };
    let unit = beside.and_then(|stream| allocate(ftl, array, stream, false));
    let unit = unit.or_else(|| {
        ftl.can_lose(program.slots)
            .then(|| allocate(ftl, array, within, true))
            .flatten()
    })?;
    let filled = ftl.rewrite(program.ppn, program.slots, &unit, moved);
    Some((unit, filled))
}

/// A superblock has been erased on all dies: it is used again, or not any more.
pub(super) fn free(board: &mut Board<impl Tracer>, ftl: &mut Ftl, superblock: Superblock) {
    let (replaced, is_whole) = board.array.erased(superblock);
    if is_whole && replaced == 0 {
        ftl.blocks.erased(superblock);
        return;
    }
    board.counters.ageing.replaced_blocks += u64::from(replaced);
    if !is_whole && ftl.can_retire(superblock) {
        board.counters.ageing.retired_superblocks += 1;
        ftl.retire(superblock);
        return;
    }
    if !is_whole {
        end(&mut board.array, ftl);
    }
    ftl.blocks.erased(superblock);
}

/// The drive has come to the end of its life: no new data is taken, and nothing fails any more. What is still to be
/// written is the rest of what it holds, and a model that let that fail, too, would have to lose it.
pub(super) fn end(array: &mut Array, ftl: &mut Ftl) {
    ftl.wear_out();
    if let Some(ageing) = array.ageing() {
        ageing.end();
    }
}

/// Flash is taken over as it was found, by a drive that knows how it has aged.
pub(super) fn restore(
    board: &mut Board<impl Tracer>,
    kept: Option<&Ageing>,
    found: &Found,
) -> Result<(), Contradiction> {
    match (board.array.ageing(), kept) {
        (None, None) => Ok(()),
        (Some(own), Some(kept)) if kept.fits(own) => {
            *own = kept.clone();
            own.found(found.superblocks.iter().map(|found| found.erases));
            Ok(())
        }
        _ => Err(Contradiction::Rest),
    }
}

/// An operation has ended: whether it has failed.
#[inline]
pub(super) fn has_failed(board: &mut Board<impl Tracer>, op: &FlashOp) -> bool {
    let failed = board.array.has_failed(op);
    if failed {
        board
            .counters
            .ageing
            .count_failure(op.kind == OpKind::Erase);
    }
    failed
}
