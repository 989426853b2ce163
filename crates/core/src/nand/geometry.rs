//! Where a physical page number lies.
//!
//! Physical page numbers follow the order of allocation, so that consecutive numbers are what one
//! stream writes one after the other:
//!
//! ```text
//! superblock ─ program unit of a die ─ next die … ─ next word line …
//!              └ page(s) of the unit ─ plane ─ slot
//! ```
//!
//! A *group* is one page on all planes of a die: what one multi-plane read can fetch. A *unit* is
//! what one program operation writes: a group, or with one-shot programming all pages of a word
//! line.

use super::divisor::Divisor;
use crate::ids::{DieId, Ppn, Superblock};
use crate::spec::{NandSpec, SLOT_BYTES};
use serde::{Deserialize, Serialize};

/// How many bits the cells of a superblock hold. Kept as whether it is one: so it stands in the files of live drives.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
#[serde(from = "bool", into = "bool")]
#[repr(u8)]
pub enum CellMode {
    /// As many as they can.
    Native = 0,
    /// One each, whatever they can: faster, and less to go wrong (pseudo-SLC).
    Slc = 1,
}

impl From<bool> for CellMode {
    fn from(is_slc: bool) -> Self {
        match is_slc {
            true => CellMode::Slc,
            false => CellMode::Native,
        }
    }
}

impl From<CellMode> for bool {
    fn from(mode: CellMode) -> Self {
        mode.is_slc()
    }
}

impl CellMode {
    /// Both, in the order of their numbers.
    pub const ALL: [CellMode; 2] = [CellMode::Native, CellMode::Slc];

    /// As an index into a column.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether cells hold one bit each.
    #[inline]
    #[must_use]
    pub const fn is_slc(self) -> bool {
        matches!(self, CellMode::Slc)
    }
}

/// Shape of the array, in slots of 4 KiB.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
pub struct Geometry {
    /// Dies of the drive; die `d` is on channel `d % channels`.
    pub dies: u32,
    /// Channels of the drive.
    pub channels: u32,
    /// Superblocks of the drive.
    pub superblocks: u32,
    /// Slots of one page on all planes.
    pub group_slots: u32,
    /// Slots of one program operation.
    pub unit_slots: u32,
    /// Slots of a superblock.
    pub superblock_slots: u32,
    /// Bits per cell.
    pub bits: u32,
    /// Pages of a word line are programmed together.
    pub one_shot: bool,
    divisors: Divisors,
}

/// What page numbers are divided by.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
struct Divisors {
    superblock: Divisor,
    /// By mode.
    unit: [Divisor; 2],
    group: Divisor,
    dies: Divisor,
    channels: Divisor,
    bits: Divisor,
}

/// Where a physical page lies.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Superblock it belongs to.
    pub superblock: Superblock,
    /// Die it lies on.
    pub die: DieId,
    /// First slot of its group.
    pub group: Ppn,
    /// Its slot within the group.
    pub slot: u32,
    /// Its page type (0 lower, 1 middle, ...).
    pub page_type: u32,
}

impl Divisors {
    fn new(superblock: u32, units: [u32; 2], (dies, channels): (u32, u32), bits: u32) -> Self {
        Divisors {
            superblock: Divisor::new(superblock),
            unit: units.map(Divisor::new),
            // In single-bit mode a group is a unit.
            group: Divisor::new(units[1]),
            dies: Divisor::new(dies),
            channels: Divisor::new(channels),
            bits: Divisor::new(bits),
        }
    }
}

impl Geometry {
    /// Shape described by a validated spec.
    #[must_use]
    pub fn new(nand: &NandSpec) -> Self {
        let slots_per_page = nand.page_bytes / SLOT_BYTES as u32;
        let group_slots = slots_per_page * nand.planes;
        let bits = nand.cell.bits();
        let unit_slots = group_slots * if nand.one_shot { bits } else { 1 };
        let dies = nand.channels * nand.dies_per_channel;
        let superblock_slots = group_slots * dies * nand.pages_per_block;
        Geometry {
            dies,
            channels: nand.channels,
            superblocks: nand.blocks_per_plane,
            group_slots,
            unit_slots,
            superblock_slots,
            bits,
            one_shot: nand.one_shot,
            divisors: Divisors::new(
                superblock_slots,
                [unit_slots, group_slots],
                (dies, nand.channels),
                bits,
            ),
        }
    }

    /// Slots of one program operation in a superblock of the given mode.
    #[inline]
    #[must_use]
    pub fn unit_slots(&self, mode: CellMode) -> u32 {
        match mode {
            CellMode::Native => self.unit_slots,
            CellMode::Slc => self.group_slots,
        }
    }

    /// Usable slots of a superblock of the given mode.
    #[inline]
    #[must_use]
    pub fn usable_slots(&self, mode: CellMode) -> u32 {
        match mode {
            CellMode::Native => self.superblock_slots,
            CellMode::Slc => self.superblock_slots / self.bits,
        }
    }

    /// Superblock of a physical page.
    #[inline]
    #[must_use]
    pub fn superblock(&self, ppn: Ppn) -> Superblock {
        Superblock(self.divisors.superblock.divide(ppn.0).0)
    }

    /// Superblock of a physical page, and its slot in it.
    #[inline]
    #[must_use]
    pub fn split(&self, ppn: Ppn) -> (Superblock, u32) {
        let (superblock, offset) = self.divisors.superblock.divide(ppn.0);
        (Superblock(superblock), offset)
    }

    /// Channel of a die.
    #[inline]
    #[must_use]
    pub fn channel(&self, die: DieId) -> u32 {
        self.divisors.channels.divide(die.0).1
    }

    /// First physical page of a superblock.
    #[inline]
    #[must_use]
    pub fn first_ppn(&self, superblock: Superblock) -> Ppn {
        Ppn(superblock.0 * self.superblock_slots)
    }

    /// Where a physical page lies, given its superblock's mode.
    #[inline]
    #[must_use]
    pub fn place(&self, ppn: Ppn, mode: CellMode) -> Place {
        let (superblock, offset) = self.split(ppn);
        let (unit, in_unit) = self.divisors.unit[mode.index()].divide(offset);
        let (group, slot) = self.divisors.group.divide(in_unit);
        let (word_line, die) = self.divisors.dies.divide(unit);
        let page_type = match (mode, self.one_shot) {
            (CellMode::Slc, _) => 0,
            (CellMode::Native, true) => group,
            (CellMode::Native, false) => self.divisors.bits.divide(word_line).1,
        };
        Place {
            superblock,
            die: DieId(die),
            group: Ppn(ppn.0 - slot),
            slot,
            page_type,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tlc(one_shot: bool) -> Geometry {
        let unit_slots = if one_shot { 24 } else { 8 };
        let superblock_slots = 8 * 4 * 12;
        Geometry {
            dies: 4,
            channels: 2,
            superblocks: 10,
            group_slots: 8,
            unit_slots,
            superblock_slots,
            bits: 3,
            one_shot,
            divisors: Divisors::new(superblock_slots, [unit_slots, 8], (4, 2), 3),
        }
    }

    #[test]
    fn one_shot_units_hold_every_page_type_of_one_word_line() {
        let geometry = tlc(true);
        let place = |ppn| geometry.place(Ppn(ppn), CellMode::Native);
        assert_eq!((place(0).die, place(0).page_type), (DieId(0), 0));
        assert_eq!((place(8).die, place(8).page_type), (DieId(0), 1));
        assert_eq!((place(23).die, place(23).page_type), (DieId(0), 2));
        assert_eq!((place(24).die, place(24).page_type), (DieId(1), 0));
        assert_eq!(place(23).group, Ppn(16));
        assert_eq!(place(23).slot, 7);
    }

    #[test]
    fn page_types_take_turns_by_word_line_without_one_shot() {
        let geometry = tlc(false);
        let types: Vec<u32> = (0..4)
            .map(|page| geometry.place(Ppn(page * 32), CellMode::Native).page_type)
            .collect();
        assert_eq!(types, [0, 1, 2, 0]);
    }

    #[test]
    fn single_bit_mode_uses_a_third_of_a_three_bit_block() {
        let geometry = tlc(true);
        assert_eq!(
            geometry.usable_slots(CellMode::Slc) * 3,
            geometry.usable_slots(CellMode::Native)
        );
        assert_eq!(geometry.place(Ppn(8), CellMode::Slc).die, DieId(1));
        assert_eq!(geometry.place(Ppn(8), CellMode::Slc).page_type, 0);
    }
}
