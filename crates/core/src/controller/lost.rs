//! Sectors whose data is lost: a page of the write buffer came back from host memory as something
//! else. Where it should be, there is nothing to read, in the buffer and then in flash, until the host
//! writes or trims it: as with sectors that NVMe's Write Uncorrectable has marked. The mark is part of
//! what is programmed, so that it moves with its page and survives a power cut.

use crate::ids::{BufferSlot, Ppn};
use crate::table::Table;
use serde::{Deserialize, Serialize};

/// All sectors of a page.
const PAGE: u8 = u8::MAX;

/// Lost sectors of 512 B, a bit each.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Lost {
    any: bool,
    buffered: Vec<u8>,
    flash: Table,
}

impl Default for Lost {
    fn default() -> Self {
        Lost {
            any: false,
            buffered: Vec::new(),
            flash: Table::with_capacity(0),
        }
    }
}

impl Lost {
    /// Whether there ever were any.
    #[must_use]
    pub fn any(&self) -> bool {
        self.any
    }

    /// Lost sectors of a slot of the write buffer.
    #[must_use]
    pub fn in_buffer(&self, slot: BufferSlot) -> u8 {
        self.buffered.get(slot.index()).copied().unwrap_or(0)
    }

    /// Lost sectors of a physical page.
    #[must_use]
    pub fn in_flash(&self, ppn: Ppn) -> u8 {
        self.flash.get(ppn.0).map_or(0, |sectors| sectors as u8)
    }

    /// All a slot holds is lost.
    pub fn lose(&mut self, slot: BufferSlot) {
        self.any = true;
        self.set(slot, PAGE);
    }

    /// What a slot holds is lost in these sectors only.
    pub fn set(&mut self, slot: BufferSlot, sectors: u8) {
        if self.buffered.len() <= slot.index() {
            if sectors == 0 {
                return;
            }
            self.buffered.resize(slot.index() + 1, 0);
        }
        self.buffered[slot.index()] = sectors;
    }

    /// A slot is programmed.
    pub fn program(&mut self, from: BufferSlot, to: Ppn) {
        self.mark(to, self.in_buffer(from));
    }

    /// A physical page is copied.
    pub fn relocate(&mut self, from: Ppn, to: Ppn) {
        self.mark(to, self.in_flash(from));
    }

    /// A physical page that was found has these sectors lost.
    pub fn restore(&mut self, ppn: Ppn, sectors: u8) {
        self.any |= sectors != 0;
        self.mark(ppn, sectors);
    }

    fn mark(&mut self, ppn: Ppn, sectors: u8) {
        if sectors == 0 {
            self.flash.remove(ppn.0);
        } else {
            self.flash.insert(ppn.0, u32::from(sectors));
        }
    }

    /// Slots from `first` on are erased.
    pub fn erase(&mut self, first: Ppn, slots: u32) {
        let gone: Vec<u32> = self.flash.iter().map(|(ppn, _)| ppn).collect();
        for ppn in gone {
            if ppn.wrapping_sub(first.0) < slots {
                self.flash.remove(ppn);
            }
        }
    }
}
