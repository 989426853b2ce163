//! How worn the flash is: erases of each superblock, and what was programmed.

use super::Ftl;

/// The superblocks that run in one mode, ordinary or single-bit: with `ftl.slc_dynamic`, those that do so now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wear {
    /// How often each has been erased.
    pub erases: Vec<u32>,
    /// Slots of one that can be used in this mode.
    pub slots_per_superblock: u32,
    /// Slots programmed since the drive was made, padding included; preconditioning is not counted.
    pub programmed_slots: u64,
}

impl Wear {
    /// How often every cell has been programmed, as a mean: each time costs it one erase, now or later.
    #[must_use]
    pub fn cycles(&self) -> f64 {
        let slots = self.erases.len() as f64 * f64::from(self.slots_per_superblock);
        if slots == 0.0 {
            0.0
        } else {
            self.programmed_slots as f64 / slots
        }
    }
}

impl Ftl {
    /// Of the superblocks in ordinary mode, and of those in single-bit mode.
    #[must_use]
    pub fn wear(&self) -> [Wear; 2] {
        let blocks = self.blocks.all();
        // Of a drive of terabytes it is a long walk: once, and nearly all are ordinary.
        let mut erases = [Vec::with_capacity(blocks.len()), Vec::new()];
        for block in blocks {
            erases[usize::from(block.slc)].push(block.erases);
        }
        let mut erases = erases.into_iter();
        [false, true].map(|slc| Wear {
            erases: erases.next().unwrap_or_default(),
            slots_per_superblock: self.geometry.usable_slots(slc),
            programmed_slots: self.allocated_slots[usize::from(slc)],
        })
    }
}
