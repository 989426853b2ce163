//! One operation of the flash array.

use super::geometry::Place;
use crate::ids::{DieId, FlashOpId, Maybe, Ppn, Superblock};
use crate::slab::Linked;
use serde::{Deserialize, Serialize};

/// What the array does.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// Read one page on one or more planes.
    Read,
    /// Program one unit on all planes.
    Program,
    /// Erase a block on all planes.
    Erase,
}

impl OpKind {
    /// The name used in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            OpKind::Read => "read",
            OpKind::Program => "program",
            OpKind::Erase => "erase",
        }
    }
}

/// Scheduling class, most urgent first.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// A host waits for the data.
    HostRead = 0,
    /// A host's request waits for the map. Takes turns with those.
    MapRead = 1,
    /// A host is expected to ask for the data next, or does so already.
    AheadRead = 2,
    /// Read for what was written: the rest of a page that was written in part, and a page of the map whose entries have changed.
    /// Writes wait for it once too many have.
    UpdateRead = 3,
    /// Reads of data to be moved. Before programs, which take twenty times as long: what has been read
    /// keeps the dies busy with programs afterwards.
    GcRead = 4,
    /// Programs of buffered host data and translation pages, and erases that room waits for.
    HostProgram = 5,
    /// Programs of moved data, and map read-ahead.
    Background = 6,
    /// Erases for which nobody waits.
    Erase = 7,
}

/// Number of scheduling classes.
pub const CLASSES: usize = 8;

/// Why the flash is touched; counted separately.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Cause {
    /// Reads and writes of the host's data.
    Host = 0,
    /// Reads and writes of translation pages.
    Map = 1,
    /// Garbage collection.
    Gc = 2,
    /// Static wear levelling.
    Wear = 3,
    /// Folding of the single-bit cache.
    Fold = 4,
    /// Read for a write smaller than 4 KiB.
    Merge = 5,
}

impl Cause {
    /// All causes, in the order of their numbers.
    pub const ALL: [Cause; 6] = [
        Cause::Host,
        Cause::Map,
        Cause::Gc,
        Cause::Wear,
        Cause::Fold,
        Cause::Merge,
    ];

    /// The name used in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Host => "host",
            Cause::Map => "map",
            Cause::Gc => "gc",
            Cause::Wear => "wear",
            Cause::Fold => "fold",
            Cause::Merge => "merge",
        }
    }

    /// The drive moves data of its own accord, and nobody waits for the one operation.
    #[inline]
    #[must_use]
    pub const fn is_move(self) -> bool {
        matches!(self, Cause::Gc | Cause::Wear | Cause::Fold)
    }
}

/// Slots of a group, a bit each. Eight planes with pages of 64 KiB have 128.
pub type SlotMask = u128;

/// The bits of `count` slots from `first` on.
#[inline]
#[must_use]
pub fn slot_mask(first: u32, count: u32) -> SlotMask {
    debug_assert!(count > 0 && first + count <= SlotMask::BITS);
    if first + count <= u64::BITS {
        return SlotMask::from((u64::MAX >> (u64::BITS - count)) << first);
    }
    (SlotMask::MAX >> (SlotMask::BITS - count)) << first
}

/// How many slots those are: mostly one, and the x86-64 that we build for counts bits in a dozen instructions.
#[inline]
#[must_use]
pub fn slots_of(mask: SlotMask) -> u32 {
    if mask & mask.wrapping_sub(1) == 0 {
        return u32::from(mask != 0);
    }
    let (low, high) = (mask as u64, (mask >> 64) as u64);
    low.count_ones() + if high == 0 { 0 } else { high.count_ones() }
}

/// One operation of the flash array.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
pub struct FlashOp {
    /// Next in its die's queue.
    pub next: Maybe<FlashOpId>,
    /// What the array does.
    pub kind: OpKind,
    /// How urgent it is.
    pub class: Class,
    /// What it is done for.
    pub cause: Cause,
    /// Whom to tell: a command, a map fill, a superblock, by cause and kind.
    pub owner: u32,
    /// Die it runs on.
    pub die: DieId,
    /// Superblock it reads, programs or erases.
    pub superblock: Superblock,
    /// Type of the page (read, program).
    pub page_type: u8,
    /// First slot of the group (read), of the unit (program) or of the superblock (erase).
    pub ppn: Ppn,
    /// Slots of the group to transfer (read), by bit.
    pub mask: SlotMask,
    /// Bytes the host link carries for it (host read).
    pub link_bytes: u32,
    /// Pieces still to be loaded into the die (program).
    pub pieces_left: u8,
    /// Reads that are still to come because what this one brings cannot be decoded, and how they end; see
    /// [`super::Ageing`].
    pub tries: u8,
    /// Times it has been suspended (program, erase) or done again (read).
    pub repeats: u16,
    /// Array time, or what is left of it after a suspension.
    pub array_ps: u64,
    /// When the array work under way ends (program, erase); what decoding takes beyond the least (read).
    pub end_ps: u64,
}

/// One cache line: the array is walked through all the time.
const _: () = assert!(size_of::<FlashOp>() == 64);

impl FlashOp {
    /// A read of the slots of `mask` in the group of `place`.
    #[inline]
    #[must_use]
    pub fn read(class: Class, cause: Cause, owner: u32, place: &Place, mask: SlotMask) -> Self {
        FlashOp {
            next: Maybe::NONE,
            kind: OpKind::Read,
            class,
            cause,
            owner,
            die: place.die,
            superblock: place.superblock,
            page_type: place.page_type as u8,
            ppn: place.group,
            mask,
            link_bytes: 0,
            pieces_left: 0,
            tries: 0,
            repeats: 0,
            array_ps: 0,
            end_ps: 0,
        }
    }

    /// A program of the unit at `place`.
    #[inline]
    #[must_use]
    pub fn program(class: Class, cause: Cause, owner: u32, place: &Place) -> Self {
        FlashOp {
            kind: OpKind::Program,
            ..FlashOp::read(class, cause, owner, place, 0)
        }
    }

    /// An erase of the superblock of `place` on one die.
    #[must_use]
    pub fn erase(class: Class, owner: u32, die: DieId, place: &Place) -> Self {
        FlashOp {
            kind: OpKind::Erase,
            die,
            ..FlashOp::read(class, Cause::Gc, owner, place, 0)
        }
    }
}

impl Linked<FlashOpId> for FlashOp {
    #[inline]
    fn next(&self) -> Maybe<FlashOpId> {
        self.next
    }
    #[inline]
    fn set_next(&mut self, next: Maybe<FlashOpId>) {
        self.next = next;
    }
}
