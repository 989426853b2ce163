//! How worn the flash is: erases of each superblock, and what was programmed.

use super::Ftl;
use crate::nand::CellMode;

/// The superblocks that run in one mode, ordinary or single-bit: with `ftl.slc_dynamic`, those that do so now.
#[derive(Clone, Debug, PartialEq)]
pub struct Wear {
    /// How often each has been erased.
    pub erases: Vec<u32>,
    /// Slots of one that can be used in this mode.
    pub slots_per_superblock: u32,
    /// Slots programmed in this mode since the drive was made, padding included; preconditioning is not counted.
    pub programmed_slots: u64,
    /// How often every cell of these superblocks has been programmed, as a mean: each time costs it one erase, now or later.
    /// Where superblocks change their mode, all are one kind, and a time is a time in either.
    pub cycles: f64,
}

impl Ftl {
    /// Of the superblocks in ordinary mode, and of those in single-bit mode. `pending_slots`: of each, room that was taken and
    /// is not programmed yet.
    #[must_use]
    pub fn wear(&self, pending_slots: [u64; 2]) -> [Wear; 2] {
        let blocks = self.blocks.all();
        // Of a drive of terabytes it is a long walk: once, and nearly all are ordinary.
        let mut erases = [Vec::with_capacity(blocks.len()), Vec::new()];
        for block in blocks {
            erases[block.mode.index()].push(block.erases);
        }
        let slots = CellMode::ALL.map(|mode| self.geometry.usable_slots(mode));
        let programmed: [u64; 2] =
            std::array::from_fn(|mode| self.allocated_slots[mode] - pending_slots[mode]);
        // Superblocks programmed from end to end.
        let whole: [f64; 2] =
            std::array::from_fn(|mode| programmed[mode] as f64 / f64::from(slots[mode].max(1)));
        let cycles = match self.borrows() {
            true => [(whole[0] + whole[1]) / blocks.len() as f64; 2],
            false => std::array::from_fn(|mode| whole[mode] / (erases[mode].len().max(1)) as f64),
        };
        let mut erases = erases.into_iter();
        std::array::from_fn(|mode| Wear {
            erases: erases.next().unwrap_or_default(),
            slots_per_superblock: slots[mode],
            programmed_slots: programmed[mode],
            cycles: cycles[mode],
        })
    }
}
