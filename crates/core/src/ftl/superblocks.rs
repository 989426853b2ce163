//! The state of every superblock, and which one to open or collect next.

mod free;
mod looks;
mod restore;

use super::Owner;
use super::Stream;
use crate::ids::{Ppn, Superblock};
use crate::nand::{CellMode, Geometry};
use crate::rng::Rng;
use free::{Free, FreeList};
use looks::Looks;
use serde::{Deserialize, Serialize};

/// What a superblock is used for at present.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Erased, and not opened since.
    Free,
    /// Being filled by a stream.
    Open,
    /// Full: it takes no more data.
    Closed,
    /// A victim whose valid data is being moved.
    Collecting,
    /// Holds nothing valid; its erase is under way.
    Erasing,
    /// A block of it is bad, and no spare one is left: it is not used any more.
    Retired,
}

/// What a page's spare area says beside its data: out-of-band data, which recovery reads.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub struct Oob {
    /// Whose data it is.
    pub owner: Owner,
    /// Sequence number of the data, which it keeps when it is moved; see [`super::Ftl::allocate`].
    pub sequence: u32,
}

impl Oob {
    /// Of a slot that holds nothing, or nothing that can be read.
    pub const NOTHING: Oob = Oob {
        owner: Owner::PADDING,
        sequence: 0,
    };
}

/// One superblock.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Block {
    /// What it is used for.
    pub state: State,
    /// It runs in.
    #[serde(rename = "slc")]
    pub mode: CellMode,
    /// Whose data it was opened for last.
    pub stream: Stream,
    /// Slots whose data is current.
    pub valid: u32,
    /// Times that it has been erased.
    pub erases: u32,
    /// Programs issued and not done.
    pub programs: u32,
    /// Reads issued and not done; an erase waits for them.
    pub reads: u32,
    /// Slots being relocated, whose data is not in its new slot yet.
    pub moves: u32,
    /// Dies whose erase is not done.
    pub erasing: u32,
    /// When it was closed, in allocation order.
    pub closed_at: u64,
    /// Sequence of the last program operation issued to it.
    pub programmed_at: u32,
    /// Sequence of the last program operation issued that superseded data in it.
    pub superseded_at: u32,
    /// Sequence of the last trim of data in it.
    pub trimmed_at: u32,
    /// What each slot holds, from the moment it is opened; absent while the formula says it.
    pub oob: Option<Box<[Oob]>>,
    /// Bit per slot: its data was superseded. Absent while none was.
    pub dead: Option<Box<[u64]>>,
}

impl Block {
    fn new(mode: CellMode) -> Self {
        Block {
            state: State::Free,
            mode,
            stream: Stream::Host,
            valid: 0,
            erases: 0,
            programs: 0,
            reads: 0,
            moves: 0,
            erasing: 0,
            closed_at: 0,
            programmed_at: 0,
            superseded_at: 0,
            trimmed_at: 0,
            oob: None,
            dead: None,
        }
    }

    /// Was opened for translation pages.
    #[inline]
    #[must_use]
    pub fn is_map(&self) -> bool {
        self.stream == Stream::Map
    }

    /// The data of a slot has been superseded.
    #[inline]
    fn invalidate(&mut self, offset: u32, slots: u32) {
        debug_assert!(self.valid > 0);
        self.valid -= 1;
        let dead = self
            .dead
            .get_or_insert_with(|| vec![0; slots.div_ceil(64) as usize].into_boxed_slice());
        debug_assert!(dead[offset as usize / 64] >> (offset % 64) & 1 == 0);
        dead[offset as usize / 64] |= 1 << (offset % 64);
    }

    /// The data of a slot turns out to be current after all (recovery).
    pub fn revalidate(&mut self, offset: u32) {
        let dead = self.dead.as_mut().expect("everything was buried");
        assert!(
            dead[offset as usize / 64] >> (offset % 64) & 1 != 0,
            "found once"
        );
        dead[offset as usize / 64] &= !(1 << (offset % 64));
        self.valid += 1;
    }

    /// Nothing of the first `count` slots is current.
    pub fn bury_first(&mut self, count: u32, slots: u32) {
        let mut dead = vec![0u64; slots.div_ceil(64) as usize].into_boxed_slice();
        let (whole, rest) = ((count / 64) as usize, count % 64);
        dead[..whole].fill(u64::MAX);
        if rest > 0 {
            dead[whole] = (1 << rest) - 1;
        }
        self.dead = Some(dead);
    }

    /// It holds what lay there from the start.
    #[must_use]
    pub fn is_initial(&self) -> bool {
        self.oob.is_none() && self.state == State::Closed
    }

    /// An erase was interrupted: nothing can be read, not even what lay there from the start, and it must be done again.
    pub fn wipe(&mut self, slots: u32) {
        self.oob = Some(vec![Oob::NOTHING; slots as usize].into_boxed_slice());
        self.dead = None;
        self.valid = 0;
        self.state = State::Collecting;
    }

    /// Whether the data of a slot was superseded.
    #[inline]
    #[must_use]
    pub fn is_dead(&self, offset: u32) -> bool {
        self.dead
            .as_ref()
            .is_some_and(|dead| dead[offset as usize / 64] >> (offset % 64) & 1 != 0)
    }
}

/// A superblock that is being emptied or erased.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
pub struct Victim {
    /// Superblock that was chosen.
    pub superblock: Superblock,
    /// Stands apart for single-bit mode: its room is not room for anything else.
    pub is_apart: bool,
    /// Opened for translation pages.
    pub is_map: bool,
    /// Slots that were to be moved when it was chosen.
    pub valid_at_start: u32,
}

/// All superblocks.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Superblocks {
    geometry: Geometry,
    blocks: Vec<Block>,
    /// The first of those that always run in single-bit mode.
    first_apart: u32,
    /// Free ordinary superblocks, and those that stand apart for single-bit mode.
    free: [FreeList; 2],
    /// Ordinary ones that run in single-bit mode until they are erased.
    borrowed: u32,
    /// Being emptied or erased, in the order they were chosen.
    victims: Vec<Victim>,
    /// Closed ones that were opened for translation pages.
    closed_map: Vec<Superblock>,
    wear_dynamic: bool,
    closings: u64,
    freeings: u64,
    retired: u32,
    worn_out: bool,
    rng: Rng,
    /// What the last looks at all of them found.
    #[serde(skip)]
    looks: Looks,
}

impl Superblocks {
    /// The last `slc_count` stand apart for single-bit mode. In the first ones data lies from the start: `initial` says
    /// how many slots of each are valid, and whether they are translation pages. The others are free.
    #[must_use]
    pub fn new(
        geometry: Geometry,
        slc_count: u32,
        mut initial: impl Iterator<Item = (u32, bool)>,
        wear_dynamic: bool,
        seed: u64,
    ) -> Self {
        let ordinary = geometry.superblocks - slc_count;
        let (mut closed_map, mut written) = (Vec::new(), 0);
        // In one go: a drive of terabytes may have a million.
        let block = |number| {
            let mut block = Block::new(match number < ordinary {
                true => CellMode::Native,
                false => CellMode::Slc,
            });
            if let Some((valid, is_map)) = initial.next() {
                assert!(!block.mode.is_slc(), "data lies in ordinary superblocks");
                block.valid = valid;
                block.state = State::Closed;
                block.closed_at = u64::from(number);
                if is_map {
                    block.stream = Stream::Map;
                    closed_map.push(Superblock(number));
                }
                written += 1;
            }
            block
        };
        Superblocks {
            geometry,
            blocks: (0..geometry.superblocks).map(block).collect(),
            first_apart: ordinary,
            borrowed: 0,
            free: [
                FreeList::new(written..ordinary),
                FreeList::new(ordinary..geometry.superblocks),
            ],
            victims: Vec::new(),
            closed_map,
            wear_dynamic,
            closings: u64::from(written),
            freeings: u64::from(geometry.superblocks),
            retired: 0,
            worn_out: false,
            rng: Rng::new(seed),
            looks: Looks::default(),
        }
    }

    /// Whether a superblock stands apart for single-bit mode.
    #[inline]
    #[must_use]
    pub fn is_apart(&self, superblock: Superblock) -> bool {
        superblock.0 >= self.first_apart
    }

    /// That a superblock runs in where nothing is borrowed.
    #[inline]
    fn home_mode(&self, superblock: Superblock) -> CellMode {
        match self.is_apart(superblock) {
            true => CellMode::Slc,
            false => CellMode::Native,
        }
    }

    /// Whether some stand apart for single-bit mode, and none of these is free.
    #[inline]
    #[must_use]
    pub fn apart_is_full(&self) -> bool {
        self.first_apart < self.geometry.superblocks && self.free_count(CellMode::Slc) == 0
    }

    /// Whether a superblock that stands apart is being erased.
    #[must_use]
    pub fn erases_apart(&self) -> bool {
        let mut apart = self.victims.iter().filter(|victim| victim.is_apart);
        apart.any(|victim| self[victim.superblock].state == State::Erasing)
    }

    /// Ordinary superblocks that run in single-bit mode at present.
    #[inline]
    #[must_use]
    pub fn borrowed(&self) -> u32 {
        self.borrowed
    }

    /// Superblocks that are being emptied or erased.
    #[inline]
    #[must_use]
    pub fn victims(&self) -> &[Victim] {
        &self.victims
    }

    /// Starts to empty a superblock, or to erase one that holds nothing.
    pub fn add_victim(&mut self, superblock: Superblock) {
        self.looks.forget();
        let is_apart = self.is_apart(superblock);
        let block = &mut self.blocks[superblock.index()];
        assert!(matches!(block.state, State::Closed | State::Collecting));
        assert_eq!(block.programs, 0);
        block.state = State::Collecting;
        if block.is_map() {
            self.closed_map.retain(|&closed| closed != superblock);
        }
        self.victims.push(Victim {
            superblock,
            is_apart,
            is_map: block.is_map(),
            valid_at_start: block.valid,
        });
    }

    /// Nothing is being emptied or erased any more: power was cut, and states are as recovery found
    /// them.
    pub fn forget_victims(&mut self) {
        self.looks.forget();
        self.victims.clear();
        let blocks = (0..).map(Superblock).zip(&self.blocks);
        let closed = blocks.filter(|(_, block)| block.is_map() && block.state == State::Closed);
        self.closed_map = closed.map(|(superblock, _)| superblock).collect();
    }

    /// Slots of the closed superblocks of translation pages.
    #[must_use]
    pub fn closed_map_slots(&self) -> i64 {
        self.closed_map.len() as i64 * i64::from(self.geometry.superblock_slots)
    }

    /// The closed superblock of translation pages that holds the fewest of use.
    #[must_use]
    pub fn emptiest_of_map(&self) -> Option<Superblock> {
        let idle = self.closed_map.iter().filter(|&&s| self[s].programs == 0);
        idle.copied()
            .min_by_key(|&superblock| (self[superblock].valid, self[superblock].closed_at))
    }

    /// Free superblocks: those that stand apart for single-bit mode, or the others.
    #[inline]
    #[must_use]
    pub fn free_count(&self, mode: CellMode) -> u32 {
        self.free[mode.index()].len() as u32
    }

    /// All superblocks, by number.
    #[must_use]
    pub fn all(&self) -> &[Block] {
        &self.blocks
    }

    /// Opens a free superblock for a stream. Data that will lie still takes the one with the most
    /// erases, other data the one with the fewest (dynamic wear levelling). Single-bit mode borrows an ordinary
    /// one where none is left of its own.
    pub fn open(&mut self, stream: Stream) -> Option<Superblock> {
        let mode = stream.mode();
        let cold = matches!(stream, Stream::Gc | Stream::Cold | Stream::Wear);
        let home = match self.free_count(mode) {
            0 => CellMode::Native,
            _ => mode,
        };
        let number = self.free[home.index()].take(cold)?;
        let slots = self.geometry.usable_slots(mode) as usize;
        let block = &mut self.blocks[number as usize];
        assert_eq!(block.state, State::Free);
        assert_eq!(block.valid, 0);
        block.state = State::Open;
        block.stream = stream;
        block.mode = mode;
        self.borrowed += u32::from(mode != home);
        block.oob = Some(vec![Oob::NOTHING; slots].into_boxed_slice());
        Some(Superblock(number))
    }

    /// A superblock is free from now on.
    fn set_free(&mut self, superblock: Superblock) {
        let home = self.home_mode(superblock);
        let block = &mut self.blocks[superblock.index()];
        self.borrowed -= u32::from(block.mode != home);
        block.mode = home;
        block.state = State::Free;
        block.oob = None;
        block.dead = None;
        block.valid = 0;
        let free = Free {
            erases: if self.wear_dynamic { block.erases } else { 0 },
            freed_at: self.freeings,
            number: superblock.0,
        };
        self.freeings += 1;
        self.free[home.index()].insert(free);
    }

    /// An open superblock turns out to be erased still.
    pub fn unopen(&mut self, superblock: Superblock) {
        let block = &mut self.blocks[superblock.index()];
        assert_eq!(block.state, State::Open);
        self.set_free(superblock);
    }

    /// Marks an open superblock as full.
    pub fn close(&mut self, superblock: Superblock) {
        let block = &mut self.blocks[superblock.index()];
        assert_eq!(block.state, State::Open);
        block.state = State::Closed;
        block.closed_at = self.closings;
        if block.is_map() {
            self.closed_map.push(superblock);
        }
        self.closings += 1;
        self.looks.forget();
    }

    /// A program operation has ended.
    #[inline]
    pub fn programmed(&mut self, superblock: Superblock) {
        let block = &mut self.blocks[superblock.index()];
        block.programs -= 1;
        if block.programs == 0 && block.state == State::Closed {
            self.looks.forget();
        }
    }

    /// The data of a slot has been superseded.
    #[inline]
    pub fn invalidate(&mut self, superblock: Superblock, offset: u32) -> &mut Block {
        self.looks.buried();
        let block = &mut self.blocks[superblock.index()];
        block.invalidate(offset, self.geometry.superblock_slots);
        block
    }

    /// Nothing that lay in a superblock from the start is current.
    pub fn void(&mut self, superblock: Superblock) -> &mut Block {
        self.looks.forget();
        let slots = self.geometry.superblock_slots;
        let block = &mut self.blocks[superblock.index()];
        block.bury_first(slots, slots);
        block.valid = 0;
        block
    }

    /// Frees a superblock whose last die has been erased.
    pub fn erased(&mut self, superblock: Superblock) {
        let block = &mut self.blocks[superblock.index()];
        assert_eq!(block.state, State::Erasing);
        assert_eq!(block.valid, 0);
        block.erases += 1;
        self.looks.forget();
        self.set_free(superblock);
        self.victims
            .retain(|victim| victim.superblock != superblock);
    }

    /// A superblock whose last die has been erased is not used any more.
    pub fn retire(&mut self, superblock: Superblock) {
        self.erased(superblock);
        let block = &mut self.blocks[superblock.index()];
        block.state = State::Retired;
        let mode = block.mode;
        self.free[mode.index()].remove(superblock.0);
        self.retired += u32::from(mode == CellMode::Native);
    }

    /// Superblocks of ordinary mode that are not used any more.
    #[must_use]
    pub fn retired(&self) -> u32 {
        self.retired
    }

    /// No new data is taken.
    pub fn wear_out(&mut self) {
        self.worn_out = true;
    }

    /// Whether no new data is taken.
    #[inline]
    #[must_use]
    pub fn is_worn_out(&self) -> bool {
        self.worn_out
    }

    /// That the superblock of a physical page runs in.
    #[inline]
    #[must_use]
    pub fn mode_of(&self, ppn: Ppn) -> CellMode {
        self.blocks[self.geometry.superblock(ppn).index()].mode
    }
}

impl std::ops::Index<Superblock> for Superblocks {
    type Output = Block;
    #[inline]
    fn index(&self, superblock: Superblock) -> &Block {
        &self.blocks[superblock.index()]
    }
}

impl std::ops::IndexMut<Superblock> for Superblocks {
    #[inline]
    fn index_mut(&mut self, superblock: Superblock) -> &mut Block {
        &mut self.blocks[superblock.index()]
    }
}
