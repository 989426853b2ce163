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

use crate::ids::{DieId, Ppn, Superblock};
use crate::spec::{NandSpec, SLOT_BYTES};
use serde::{Deserialize, Serialize};

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

impl Geometry {
    /// Shape described by a validated spec.
    #[must_use]
    pub fn new(nand: &NandSpec) -> Self {
        let bits = nand.cell.bits();
        let slots_per_page = nand.page_bytes / SLOT_BYTES as u32;
        let group_slots = slots_per_page * nand.planes;
        let dies = nand.channels * nand.dies_per_channel;
        Geometry {
            dies,
            channels: nand.channels,
            superblocks: nand.blocks_per_plane,
            group_slots,
            unit_slots: group_slots * if nand.one_shot { bits } else { 1 },
            superblock_slots: group_slots * dies * nand.pages_per_block,
            bits,
            one_shot: nand.one_shot,
        }
    }

    /// Slots of one program operation in a superblock of the given mode.
    #[inline]
    #[must_use]
    pub fn unit_slots(&self, slc: bool) -> u32 {
        if slc {
            self.group_slots
        } else {
            self.unit_slots
        }
    }

    /// Usable slots of a superblock of the given mode.
    #[inline]
    #[must_use]
    pub fn usable_slots(&self, slc: bool) -> u32 {
        if slc {
            self.superblock_slots / self.bits
        } else {
            self.superblock_slots
        }
    }

    /// Superblock of a physical page.
    #[inline]
    #[must_use]
    pub fn superblock(&self, ppn: Ppn) -> Superblock {
        Superblock(ppn.0 / self.superblock_slots)
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
    pub fn place(&self, ppn: Ppn, slc: bool) -> Place {
        let superblock = self.superblock(ppn);
        let offset = ppn.0 - superblock.0 * self.superblock_slots;
        let unit_slots = self.unit_slots(slc);
        let unit = offset / unit_slots;
        let in_unit = offset - unit * unit_slots;
        let group = in_unit / self.group_slots;
        let slot = in_unit - group * self.group_slots;
        let page_type = match (slc, self.one_shot) {
            (true, _) => 0,
            (false, true) => group,
            (false, false) => (unit / self.dies) % self.bits,
        };
        Place {
            superblock,
            die: DieId(unit % self.dies),
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
        Geometry {
            dies: 4,
            channels: 2,
            superblocks: 10,
            group_slots: 8,
            unit_slots: if one_shot { 24 } else { 8 },
            superblock_slots: 8 * 4 * 12,
            bits: 3,
            one_shot,
        }
    }

    #[test]
    fn one_shot_units_hold_every_page_type_of_one_word_line() {
        let geometry = tlc(true);
        let place = |ppn| geometry.place(Ppn(ppn), false);
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
            .map(|page| geometry.place(Ppn(page * 32), false).page_type)
            .collect();
        assert_eq!(types, [0, 1, 2, 0]);
    }

    #[test]
    fn single_bit_mode_uses_a_third_of_a_three_bit_block() {
        let geometry = tlc(true);
        assert_eq!(
            geometry.usable_slots(true) * 3,
            geometry.usable_slots(false)
        );
        assert_eq!(geometry.place(Ppn(8), true).die, DieId(1));
        assert_eq!(geometry.place(Ppn(8), true).page_type, 0);
    }
}
