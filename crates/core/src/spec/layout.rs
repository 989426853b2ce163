//! How many superblocks a drive has, and what for.
//!
//! A superblock is the block of one number on all dies and planes. The flash holds
//!
//! | term | superblocks | why |
//! |---|---|---|
//! | data | ceil(user slots x (1 + over-provisioning) / slots of a superblock) | user data and the spare that makes garbage collection cheap |
//! | map | ceil(translation pages x 9/8 / slots of a superblock) + 1 | the map's own pages, an eighth more so that collecting them is cheap, one being written |
//! | reserve | `gc_start_superblocks` + open superblocks | what garbage collection keeps free, and one open superblock of each data stream (host writes, a second one with hot/cold streams, one of garbage collection's own) |
//! | under way | program operations of moved data under way / those of a block | what garbage collection gives back only later; none where blocks are long |
//! | failures | 2 where blocks fail, or none | what programs and erases that fail take at once: the rest of a block, or a superblock that is retired, beside one that is open for the map |
//! | single-bit | `slc_superblocks` | the write cache, apart |
//!
//! In steady state the pacer (`ftl/pacing.rs`) keeps `gc_start_superblocks` + 2 and a part of one as room (beside a map
//! of more than four superblocks the same part of six and more), and what is invalid in a small map counts as room, too.
//! So data fills about one superblock more than the data term (1.7 with a stream of garbage collection's own, 0.7
//! without), and the spare factor that write-amplification formulas speak of is just about 1 - user slots / (data
//! superblocks x slots of a superblock) where there are hundreds of them: the map, the reserve and the single-bit cache
//! do not dilute it.
//!
//! When a file gives `nand.blocks_per_plane`, the data term is what the others leave of it.

use super::{AgeingSpec, DriveSpec, ENTRIES_PER_TRANSLATION_PAGE, FtlSpec, NandSpec, SLOT_BYTES};

/// Superblocks kept for blocks that fail. Without them the first program that failed while room was short ended a drive's life.
const FAILURES_SUPERBLOCKS: u32 = 2;

/// Program operations of moved data that may be under way for each die: one runs, the data of the next
/// is loaded, and one waits so that a die whose turn it is always finds work.
pub(crate) const MOVES_PROGRAMMED_PER_DIE: u32 = 3;

/// Program operations of new data that wait for a die before no more are handed to it. One would keep a die busy that serves nothing else;
/// beside reads, erases and pages of the map, two cost a WD Black 5 % of its random writes and four an EX900 without host memory 3 %; eight
/// cost none.
pub(crate) const HOST_PROGRAMS_PER_DIE: u32 = 8;

/// Program operations' worth of data that garbage collection reads ahead of them, for each die.
pub(crate) const MOVES_STAGED_PER_DIE: u32 = 2;

/// Superblocks of spare without which garbage collection may find nothing to gain.
pub(super) const SPARE_SUPERBLOCKS: u64 = 2;

/// Superblocks by purpose, and the sizes they follow from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Slots of 4 KiB that the host can address.
    pub user_slots: u64,
    /// Translation pages of the whole map, one slot each.
    pub translation_pages: u64,
    /// Slots of a superblock with all its bits in use.
    pub slots_per_superblock: u64,
    /// Superblocks for user data, spare included.
    pub data_superblocks: u64,
    /// Superblocks for translation pages.
    pub map_superblocks: u64,
    /// Superblocks kept free or open.
    pub reserve_superblocks: u64,
    /// Superblocks that garbage collection has under way where blocks are short.
    pub superblocks_under_way: u64,
    /// Superblocks kept for blocks that fail.
    pub failures_superblocks: u64,
    /// Superblocks run in single-bit mode.
    pub slc_superblocks: u64,
}

impl Layout {
    /// The layout that capacity and over-provisioning ask for.
    pub(super) fn wanted(capacity_bytes: u64, nand: &NandSpec, ftl: &FtlSpec) -> Self {
        let mut layout = Self::without_data(capacity_bytes, nand, ftl);
        // Exact: 2^32 slots at most, and a double carries 53 bits.
        let slots = (layout.user_slots as f64 * (1.0 + ftl.overprovisioning)).ceil() as u64;
        layout.data_superblocks = slots.div_ceil(layout.slots_per_superblock);
        layout
    }

    /// The layout of the blocks that there are.
    fn given(capacity_bytes: u64, nand: &NandSpec, ftl: &FtlSpec) -> Self {
        let mut layout = Self::without_data(capacity_bytes, nand, ftl);
        let blocks = u64::from(nand.blocks_per_plane);
        layout.data_superblocks = blocks.saturating_sub(layout.superblocks());
        layout
    }

    fn without_data(capacity_bytes: u64, nand: &NandSpec, ftl: &FtlSpec) -> Self {
        let user_slots = capacity_bytes / SLOT_BYTES;
        let translation_pages = user_slots.div_ceil(ENTRIES_PER_TRANSLATION_PAGE);
        let slots_per_superblock = nand.slots_per_superblock();
        let streams = 1 + u64::from(ftl.hot_cold_streams) + u64::from(ftl.gc_own_stream);
        Self {
            user_slots,
            translation_pages,
            slots_per_superblock,
            data_superblocks: 0,
            map_superblocks: (translation_pages * 9).div_ceil(8 * slots_per_superblock) + 1,
            reserve_superblocks: u64::from(ftl.gc_start_superblocks) + streams,
            superblocks_under_way: u64::from(nand.superblocks_under_way()),
            failures_superblocks: u64::from(nand.failures_superblocks()),
            slc_superblocks: u64::from(ftl.slc_superblocks),
        }
    }

    /// All superblocks; blocks of a plane.
    #[must_use]
    pub const fn superblocks(&self) -> u64 {
        self.data_superblocks
            + self.map_superblocks
            + self.reserve_superblocks
            + self.superblocks_under_way
            + self.failures_superblocks
            + self.slc_superblocks
    }

    /// Share of the data superblocks that is not user data once the drive is full.
    #[must_use]
    pub fn spare_factor(&self) -> f64 {
        1.0 - self.user_slots as f64 / self.data_slots() as f64
    }

    /// Spare, in slots, with which the emptiest superblock has more garbage than a program operation of
    /// `program_slots` takes: 2 spare / superblocks >= operation, with (user + spare) / superblock of them.
    pub(super) fn least_spare_slots(&self, program_slots: u64) -> u64 {
        let least = self.user_slots * program_slots;
        least.div_ceil(2 * self.slots_per_superblock - program_slots)
    }

    /// Data superblocks that the drive can do without, and still collect garbage with one less.
    #[must_use]
    pub fn retirable_superblocks(&self, program_slots: u64) -> u64 {
        let least = self.least_spare_slots(program_slots);
        let least = least.max(SPARE_SUPERBLOCKS * self.slots_per_superblock);
        let needed = (self.user_slots + least).div_ceil(self.slots_per_superblock);
        self.data_superblocks.saturating_sub(needed + 1)
    }

    /// Slots of all data superblocks.
    #[must_use]
    pub const fn data_slots(&self) -> u64 {
        self.data_superblocks * self.slots_per_superblock
    }
}

impl NandSpec {
    /// Dies of all channels.
    #[must_use]
    pub const fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Slots of 4 KiB in a page.
    #[must_use]
    pub const fn slots_per_page(&self) -> u32 {
        self.page_bytes / SLOT_BYTES as u32
    }

    /// Slots of 4 KiB in the blocks of one number on all dies and planes.
    #[must_use]
    pub const fn slots_per_superblock(&self) -> u64 {
        self.dies() as u64
            * self.planes as u64
            * self.pages_per_block as u64
            * self.slots_per_page() as u64
    }

    /// Program operations that fill a block on all planes of a die.
    #[must_use]
    pub const fn programs_per_block(&self) -> u32 {
        match self.one_shot {
            true => self.pages_per_block / self.cell.bits(),
            false => self.pages_per_block,
        }
    }

    /// Whole superblocks that garbage collection has under way at any time: being read, being programmed, or moved and
    /// not erased yet, which takes about as long again; of data, and as many of translation pages, which are emptied beside.
    /// They count as room before they are erased. With two program operations to a block they are ten; with more than
    /// twenty, none.
    const fn superblocks_under_way(&self) -> u32 {
        4 * (MOVES_STAGED_PER_DIE + MOVES_PROGRAMMED_PER_DIE) / self.programs_per_block()
    }

    /// Superblocks kept for blocks that fail; none where none does.
    pub(crate) fn failures_superblocks(&self) -> u32 {
        let fails =
            |ageing: &AgeingSpec| ageing.program_failures > 0.0 || ageing.erase_failures > 0.0;
        match self.ageing.as_ref().is_some_and(fails) {
            true => FAILURES_SUPERBLOCKS,
            false => 0,
        }
    }

    /// User bytes that one program operation of a die takes: a page of every plane, or with
    /// one-shot programming all pages of a word line of every plane.
    #[must_use]
    pub const fn program_bytes(&self) -> u64 {
        let pages = if self.one_shot { self.cell.bits() } else { 1 };
        self.planes as u64 * pages as u64 * self.page_bytes as u64
    }
}

impl DriveSpec {
    /// Superblocks by purpose.
    #[must_use]
    pub fn layout(&self) -> Layout {
        Layout::given(self.capacity_bytes, &self.nand, &self.ftl)
    }
}
