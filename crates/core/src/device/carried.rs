//! Data of writes on its way: into the buffer, and from there to flash.

use crate::ftl::Mover;
use crate::ftl::Unit;
use crate::ids::{NONE, Ppn};
use serde::{Deserialize, Serialize};

/// Write data on its way from the host's memory into slots of the buffer.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
pub(super) struct Transfer {
    pub command: u32,
    /// First slot; the others follow by [`crate::controller::WriteBuffer::chained`].
    pub first_slot: u32,
    pub bytes: u64,
    /// Grant of host memory it goes into; 0 while it goes into the drive.
    pub grant: u32,
    /// Pages that it changes in part have been read.
    pub merged: bool,
}

/// What a program operation carries.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
pub(super) struct Program {
    pub ppn: Ppn,
    pub slots: u32,
    /// Sequence number; `None` once it has ended, and for records of trims, which stand outside it.
    pub sequence: Option<u32>,
    /// First buffer slot (host data), chained; `NONE` otherwise.
    pub first_slot: u32,
    /// Translation pages that stood in host memory which was taken back.
    pub saves_hmb: bool,
    /// Translation pages that have changed.
    pub is_writeback: bool,
    /// Who relocates the data, if it is that.
    pub moved_by: Option<Mover>,
    /// Records of trims, in the drive's system area.
    pub saves_trims: bool,
}

impl Program {
    /// Records of trims.
    pub(super) fn of_trims() -> Self {
        Program {
            ppn: Ppn(0),
            slots: 0,
            sequence: None,
            first_slot: NONE,
            saves_hmb: false,
            is_writeback: false,
            moved_by: None,
            saves_trims: true,
        }
    }

    pub(super) fn new(unit: &Unit) -> Self {
        Program {
            ppn: unit.ppn,
            slots: unit.slots,
            sequence: Some(unit.sequence),
            first_slot: NONE,
            saves_hmb: false,
            is_writeback: false,
            moved_by: None,
            saves_trims: false,
        }
    }
}
