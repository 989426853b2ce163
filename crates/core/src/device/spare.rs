//! What lies in flash beside the data, for contents that outlive the drive: told as it gets there, and taken
//! over by a drive that comes back ([`super::Device::restore`]).

use super::Contents;
use super::programs::{Program, Programs};
use super::trims::Trims;
use crate::controller::Lost;
use crate::ftl::{Ftl, Oob, Stream};
use crate::ids::Ppn;
use crate::observe::Counters;
use serde::{Deserialize, Serialize};

/// What a slot says beside its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spare {
    /// Whose data it is, and how new; [`Oob::NOTHING`] in slots that fill up a program operation.
    pub oob: Oob,
    /// Sectors of it that were lost before it was programmed, a bit each.
    pub lost: u8,
}

/// A program operation that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Programmed {
    /// Physical page number of its first slot.
    pub first: Ppn,
    /// Its slots.
    pub slots: u32,
    /// Whose data its superblock was opened for.
    pub stream: Stream,
    /// Its own sequence number; data that was moved has kept an older one.
    pub sequence: u32,
    /// All programs and trims up to this sequence number have ended, or are recorded.
    pub settled_to: u32,
}

/// What a drive keeps beside what flash says of itself.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Rest {
    /// Everything counted so far.
    pub counters: Counters,
    /// The clock, picoseconds.
    pub now_ps: u64,
    pub(super) restarts: u32,
    pub(super) checkpoint: u32,
    pub(super) trims_die: u32,
    pub(super) settled_to: u32,
    pub(super) ftl: crate::ftl::Rest,
    pub(super) ageing: Option<crate::nand::Ageing>,
    #[serde(default)]
    pub(super) window: Option<super::window::WindowRest>,
}

/// The highest sequence number up to which all programs have ended and all trims are recorded.
pub(super) fn settled_to(programs: &Programs, trims: &Trims, ftl: &Ftl) -> u32 {
    let oldest = programs.sequences().chain(trims.oldest_volatile()).min();
    oldest.map_or(ftl.sequence(), |oldest| oldest - 1)
}

/// A program operation has ended: contents hear what its slots say.
pub(super) fn tell(
    contents: &mut impl Contents,
    ftl: &Ftl,
    lost: &Lost,
    program: &Program,
    settled_to: u32,
) {
    let superblock = ftl.geometry().superblock(program.ppn);
    let block = &ftl.blocks[superblock];
    let Some(oob) = &block.oob else {
        return;
    };
    let at = (program.ppn.0 - ftl.geometry().first_ppn(superblock).0) as usize;
    let programmed = Programmed {
        first: program.ppn,
        slots: program.slots,
        stream: block.stream,
        sequence: program.programmed_at,
        settled_to,
    };
    let slots = (program.ppn.0..).zip(&oob[at..at + program.slots as usize]);
    let spare = slots.map(|(ppn, oob)| Spare {
        oob: *oob,
        lost: lost.in_flash(Ppn(ppn)),
    });
    contents.programmed(&programmed, spare);
}
