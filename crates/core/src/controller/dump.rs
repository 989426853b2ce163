//! Saving the byte window when power fails: what goes where, and how long it takes.
//!
//! Firmware keeps a few superblocks erased for the dump, outside of what the translation layer knows.
//! The first program operation holds the table of entries; the pages of the entries follow, in the
//! order of the table. Every page carries in its spare bytes the number of the dump, whose page it is
//! and a checksum, and the table carries one of its own. So recovery can tell for each entry whether
//! all of it is there: nothing is half believed. That a dump must be there at all it knows from a mark
//! in flash, written before the first pin is answered.

use crate::engine::{Engine, EventKind};
use crate::ids::{DieId, FlashOpId, Ppn};
use crate::nand::{Array, Cause, CellMode, Class, FlashOp, OpKind, slot_mask};
use crate::spec::{Cell, DriveSpec, NandSpec, PowerSpec, SLOT_BYTES};
use serde::{Deserialize, Serialize};

/// Flash operations of a dump, and when each of them ends.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq, Eq)]
pub struct Dump {
    /// From the loss of power to the end of each program operation, picoseconds; the table's first.
    pub ends_ps: Vec<u64>,
    /// Pages of 4 KiB in one operation.
    pub unit_slots: u64,
}

impl Dump {
    /// A dump of `pages` pages of 4 KiB.
    #[must_use]
    pub fn new(spec: &DriveSpec, pages: u64) -> Self {
        let (ends_ps, unit_slots) = play(&spec.nand, pages, OpKind::Program);
        let start_ps = spec.power.as_ref().map_or(0, |power| power.detect_ps);
        Dump {
            ends_ps: ends_ps.iter().map(|end_ps| start_ps + end_ps).collect(),
            unit_slots,
        }
    }

    /// When all of it is in flash, from the loss of power.
    #[must_use]
    pub fn end_ps(&self) -> u64 {
        self.ends_ps.iter().copied().max().unwrap_or(0)
    }

    /// Whether an operation has ended before the drive stops.
    fn is_saved(&self, unit: u64, stop_ps: u64) -> bool {
        self.ends_ps[unit as usize] <= stop_ps
    }

    /// Whether the table is in flash when the drive stops.
    #[must_use]
    pub fn table_is_saved(&self, stop_ps: u64) -> bool {
        self.is_saved(0, stop_ps)
    }

    /// Whether pages `from..to` of the dump are in flash when the drive stops.
    #[must_use]
    pub fn pages_are_saved(&self, from: u64, to: u64, stop_ps: u64) -> bool {
        let units = from / self.unit_slots..to.div_ceil(self.unit_slots);
        units
            .into_iter()
            .all(|unit| self.is_saved(1 + unit, stop_ps))
    }

    /// Operations that have ended when the drive stops.
    #[must_use]
    pub fn saved(&self, stop_ps: u64) -> u64 {
        let ends = self.ends_ps.iter();
        ends.filter(|end_ps| **end_ps <= stop_ps).count() as u64
    }
}

/// How long it takes to read a dump of `pages` pages back.
#[must_use]
pub fn restore_ps(spec: &DriveSpec, pages: u64) -> u64 {
    let (ends_ps, _) = play(&spec.nand, pages, OpKind::Read);
    ends_ps.into_iter().max().unwrap_or(0)
}

/// How long the mark takes that a dump will have to be there: one program operation.
#[must_use]
pub fn mark_ps(nand: &NandSpec) -> u64 {
    let (ends_ps, _) = play(nand, 0, OpKind::Program);
    ends_ps[0]
}

/// Runs the operations of a dump, or of reading it, on an array that does nothing else. Returns when
/// each ends, and how many pages it takes.
fn play(nand: &NandSpec, pages: u64, kind: OpKind) -> (Vec<u64>, u64) {
    // Cells of several bits hold one: faster, and less to go wrong.
    let mode = match nand.cell {
        Cell::Slc => CellMode::Native,
        _ => CellMode::Slc,
    };
    let mut engine = Engine::default();
    let mut array = Array::new(nand, 0);
    let unit_slots = array.geometry().unit_slots(mode);
    let units = 1 + pages.div_ceil(u64::from(unit_slots)) as u32;
    for unit in 0..units {
        let place = array.geometry().place(Ppn(unit * unit_slots), mode);
        let mask = slot_mask(0, array.geometry().group_slots);
        let op = match kind {
            OpKind::Read => FlashOp::read(Class::HostRead, Cause::Host, unit, &place, mask),
            _ => FlashOp::program(Class::HostProgram, Cause::Host, unit, &place),
        };
        array.enqueue(&mut engine, op, mode);
    }
    let mut ends_ps = vec![0; units as usize];
    while let Some((now, kind, index)) = engine.pop(u64::MAX) {
        let done = match kind {
            EventKind::ArrayDone => array.on_array_done(&mut engine, FlashOpId(index)),
            EventKind::DataReady => true,
            EventKind::DataLoaded => {
                array.on_data_loaded(&mut engine, FlashOpId(index));
                false
            }
            EventKind::DieFree => {
                array.on_die_free(&mut engine, DieId(index));
                false
            }
            _ => unreachable!("{kind:?}: the array does nothing else"),
        };
        if done {
            let op = FlashOpId(index);
            ends_ps[array.ops[op].owner as usize] = now.ps();
            array.ops.remove(op);
        }
    }
    (ends_ps, u64::from(unit_slots))
}

/// A drive whose capacitors do not last for a dump of the whole window.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq)]
pub struct Shortfall {
    /// How long the dump takes, from the loss of power.
    pub needed_ps: u64,
    /// How long the capacitors last.
    pub hold_up_ps: u64,
    /// Energy the dump takes, joules.
    pub needed_j: f64,
    /// Energy the capacitors deliver, joules.
    pub usable_j: f64,
}

/// Whether the capacitors last for a dump of the whole window; what is missing otherwise.
#[must_use]
pub fn shortfall(spec: &DriveSpec) -> Option<Shortfall> {
    // A window that nothing has to be fed for has no `[power]` (`spec/unused.rs`).
    let (window, power) = (spec.roles.window.as_ref()?, spec.power.as_ref()?);
    let needed_ps = Dump::new(spec, window.bytes / SLOT_BYTES).end_ps();
    let short = Shortfall {
        needed_ps,
        hold_up_ps: power.hold_up_ps(),
        needed_j: needed_ps as f64 / 1e12 * power.draw_w,
        usable_j: power.usable_j(),
    };
    (short.hold_up_ps < needed_ps).then_some(short)
}

/// Time at which a drive stops, counted from the loss of power.
#[must_use]
pub fn stop_ps(power: Option<&PowerSpec>) -> u64 {
    power.map_or(u64::MAX, PowerSpec::hold_up_ps)
}
