//! Commands of I/O queues: the NVM command set (NVM Command Set 1.0 §3.2).

use super::{Parsed, Transfer, VendorCommand};
use crate::entry::SubmissionEntry;
use crate::ids::Lba;
use crate::layout::{bit, bits, layout};
use crate::lba::{BlockRange, BlockSize};
use crate::opcode::{IoOpcode, is_vendor_io};
use crate::status::Status;

/// Blocks, and how to treat them: of Read, Write, Compare, Verify and Write Zeroes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// First block (SLBA).
    pub start: Lba,
    /// How many blocks, 0-based (NLB): 1 to 65536.
    pub blocks_z: u16,
    /// FUA: a write is done when it is in non-volatile memory, a read comes from there.
    pub force_unit_access: bool,
    /// LR: do not try for long.
    pub limited_retry: bool,
    /// PRINFO, 4 bits: what to do with protection information.
    pub protection: u8,
    /// DSM, 8 bits: how often and how soon the host will want these blocks (hints).
    pub hints: u8,
}

impl Access {
    fn parse(entry: &SubmissionEntry) -> Self {
        let flags = u64::from(entry.dword(12));
        Access {
            start: Lba(entry.qword(10)),
            blocks_z: bits(flags, 0, 16) as u16,
            force_unit_access: bit(flags, 30),
            limited_retry: bit(flags, 31),
            protection: bits(flags, 26, 4) as u8,
            hints: entry.dword(13) as u8,
        }
    }

    /// The blocks.
    #[must_use]
    pub fn range(&self) -> BlockRange {
        BlockRange {
            start: self.start,
            blocks: u64::from(self.blocks_z) + 1,
        }
    }
}

/// Write Zeroes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteZeroes {
    /// Which blocks.
    pub access: Access,
    /// DEAC: they may be deallocated, if they read as zeros then.
    pub deallocate: bool,
}

layout! {
    /// A range of Dataset Management (§3.2.3).
    pub struct DsmRange: 16 {
        /// Context attributes: hints.
        0 => attributes: u32,
        /// Length, blocks; not 0-based.
        4 => blocks: u32,
        /// First block.
        8 => start: u64,
    }
}

impl DsmRange {
    /// The blocks.
    #[must_use]
    pub fn range(&self) -> BlockRange {
        BlockRange {
            start: Lba(self.start),
            blocks: self.blocks.into(),
        }
    }
}

/// Dataset Management. Its data are the ranges, [`DsmRange`] after [`DsmRange`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatasetManagement {
    /// How many ranges, 0-based (NR): 1 to 256.
    pub ranges_z: u8,
    /// IDR: will be read as a whole (a hint).
    pub read: bool,
    /// IDW: will be written as a whole (a hint).
    pub write: bool,
    /// AD: deallocate.
    pub deallocate: bool,
}

impl DatasetManagement {
    /// How many ranges.
    #[must_use]
    pub fn ranges(&self) -> usize {
        usize::from(self.ranges_z) + 1
    }
}

/// A command of an I/O queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // A command is looked at once, on the stack.
pub enum IoCommand {
    /// Flush (Base 2.0 §7.1); of all namespaces if the namespace is [`crate::NamespaceId::ALL`].
    Flush,
    /// Write, §3.2.6.
    Write(Access),
    /// Read, §3.2.4.
    Read(Access),
    /// Compare, §3.2.1.
    Compare(Access),
    /// Write Zeroes, §3.2.8.
    WriteZeroes(WriteZeroes),
    /// Dataset Management, §3.2.3.
    DatasetManagement(DatasetManagement),
    /// Verify, §3.2.5: a read that keeps the data.
    Verify(Access),
    /// A vendor's.
    Vendor(VendorCommand),
}

impl IoCommand {
    /// Whether a command is one of these; others end with [`Status::INVALID_OPCODE`]. ONCS and the log of
    /// effects say the same.
    #[must_use]
    pub fn is_known(opcode: IoOpcode) -> bool {
        !matches!(
            opcode,
            IoOpcode::WriteUncorrectable
                | IoOpcode::Copy
                | IoOpcode::ReservationRegister
                | IoOpcode::ReservationReport
                | IoOpcode::ReservationAcquire
                | IoOpcode::ReservationRelease
        )
    }

    /// What a host asks for.
    ///
    /// # Errors
    /// The status that the command ends with, if it cannot be one of these.
    pub fn parse(entry: &SubmissionEntry) -> Result<Parsed<Self>, Status> {
        let data = entry.checked(false)?;
        let code = entry.opcode();
        let command = if is_vendor_io(code) {
            IoCommand::Vendor(VendorCommand { entry: *entry })
        } else {
            Self::known(
                IoOpcode::from_code(code).ok_or(Status::INVALID_OPCODE)?,
                entry,
            )?
        };
        let namespace = entry.namespace();
        Ok(Parsed {
            command,
            namespace,
            data,
        })
    }

    fn known(opcode: IoOpcode, entry: &SubmissionEntry) -> Result<Self, Status> {
        let access = Access::parse(entry);
        let flags = u64::from(entry.dword(12));
        Ok(match opcode {
            IoOpcode::Flush => IoCommand::Flush,
            // Directives (bits 23:20) are not supported (Base 2.0 §8.7).
            IoOpcode::Write if bits(flags, 20, 4) != 0 => return Err(Status::INVALID_FIELD),
            IoOpcode::Write => IoCommand::Write(access),
            IoOpcode::Read => IoCommand::Read(access),
            IoOpcode::Compare => IoCommand::Compare(access),
            IoOpcode::WriteZeroes => IoCommand::WriteZeroes(WriteZeroes {
                access,
                deallocate: bit(flags, 25),
            }),
            IoOpcode::DatasetManagement => {
                let attributes = u64::from(entry.dword(11));
                IoCommand::DatasetManagement(DatasetManagement {
                    ranges_z: entry.dword(10) as u8,
                    read: bit(attributes, 0),
                    write: bit(attributes, 1),
                    deallocate: bit(attributes, 2),
                })
            }
            IoOpcode::Verify => IoCommand::Verify(access),
            _ => return Err(Status::INVALID_OPCODE),
        })
    }

    /// Data that the command moves, in blocks of a size; of vendors' commands, in their standard form.
    #[must_use]
    pub fn transfer(&self, block: BlockSize) -> Transfer {
        // 65536 blocks of 2 to the power of 31 bytes fit into a `u64`.
        let bytes = |access: &Access| (u64::from(access.blocks_z) + 1) << block.lbads();
        match self {
            IoCommand::Read(access) => Transfer::to_host(bytes(access)),
            IoCommand::Write(access) | IoCommand::Compare(access) => {
                Transfer::from_host(bytes(access))
            }
            IoCommand::DatasetManagement(dsm) => {
                Transfer::from_host((dsm.ranges() * DsmRange::BYTES) as u64)
            }
            IoCommand::Vendor(vendor) => Transfer {
                direction: vendor.direction(),
                bytes: vendor.standard_bytes(),
            },
            IoCommand::Flush | IoCommand::WriteZeroes(_) | IoCommand::Verify(_) => Transfer::NONE,
        }
    }
}
