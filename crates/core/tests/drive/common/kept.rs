//! What flash holds beside the data, kept while the drive is gone: a naive one, slot by slot.

use lodger_core::DriveSpec;
use lodger_core::device::{Programmed, Spare};
use lodger_core::ftl::{Found, FoundSuperblock, Oob, Stream, Trim, Written};
use lodger_core::ids::Ppn;
use lodger_core::nand::{CellMode, Geometry};
use std::collections::BTreeMap;

#[derive(Clone, Copy)]
struct Slot {
    spare: Spare,
    stream: Stream,
    unit: u32,
}

/// What was told of flash.
#[derive(Clone, Default)]
pub struct Kept {
    slots: BTreeMap<u32, Slot>,
    /// Times that the superblock with this first slot was erased.
    erases: BTreeMap<u32, u32>,
    trims: Vec<Trim>,
    settled_to: u32,
}

impl Kept {
    pub fn programmed(&mut self, unit: &Programmed, spare: impl Iterator<Item = Spare>) {
        self.settled_to = self.settled_to.max(unit.settled_to);
        let before = self.slots.len();
        for (ppn, spare) in (unit.first.0..).zip(spare) {
            let slot = Slot {
                spare,
                stream: unit.stream,
                unit: unit.sequence,
            };
            assert!(self.slots.insert(ppn, slot).is_none(), "programmed twice");
        }
        let told = self.slots.len() - before;
        assert_eq!(told, unit.slots as usize, "something of every slot");
    }

    pub fn record_trims(&mut self, trims: &[Trim]) {
        assert!(trims.is_sorted_by_key(|trim| trim.sequence));
        self.trims = trims.to_vec();
    }

    pub fn erase(&mut self, first: Ppn, slots: u32) {
        *self.erases.entry(first.0).or_default() += 1;
        self.slots
            .retain(|ppn, _| ppn.wrapping_sub(first.0) >= slots);
    }

    pub fn is_programmed(&self, ppn: Ppn) -> bool {
        self.slots.contains_key(&ppn.0)
    }

    /// What a drive of this shape comes back from.
    pub fn found(&self, spec: &DriveSpec) -> Found {
        let geometry = Geometry::new(&spec.nand);
        let ordinary = geometry.superblocks - spec.ftl.slc_superblocks;
        let superblocks = (0..geometry.superblocks).map(|number| {
            let first = number * geometry.superblock_slots;
            let all = || self.slots.range(first..first + geometry.superblock_slots);
            let mode = match all().next() {
                Some((_, slot)) => slot.stream.mode(),
                None if number < ordinary => CellMode::Native,
                None => CellMode::Slc,
            };
            let usable = geometry.usable_slots(mode);
            let here = || self.slots.range(first..first + usable);
            let mut oob = vec![Oob::NOTHING; usable as usize].into_boxed_slice();
            for (ppn, slot) in here() {
                oob[(ppn - first) as usize] = slot.spare.oob;
            }
            FoundSuperblock {
                erases: self.erases.get(&first).copied().unwrap_or(0),
                written: here().next_back().map(|(last, slot)| Written {
                    stream: slot.stream,
                    oob,
                    end: last - first + 1,
                    programmed_at: here().map(|(_, slot)| slot.unit).max().unwrap_or(0),
                }),
            }
        });
        let lost = self.slots.iter().filter(|(_, slot)| slot.spare.lost != 0);
        Found {
            superblocks: superblocks.collect(),
            trims: self.trims.clone(),
            settled_to: self.settled_to,
            lost: lost
                .map(|(ppn, slot)| (Ppn(*ppn), slot.spare.lost))
                .collect(),
        }
    }
}
