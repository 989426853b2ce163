//! Commands as types. Every 64 bytes parse to a command or to the status they end with.
//!
//! [`AdminCommand`] and [`IoCommand`] say what is asked. Whether it can be done (does the queue exist, is the
//! block inside, is the feature on) is for the controller to say. Zero-based fields end in `_z`, so that the one
//! to be added cannot be forgotten. Reserved bits are not looked at, reserved values are
//! [`Status::INVALID_FIELD`].

mod admin;
pub mod feature;
mod io;
mod manage;
mod namespace;
mod query;
pub mod window;

pub use admin::AdminCommand;
pub use feature::SetFeatures;
pub use io::{Access, DatasetManagement, DsmRange, IoCommand, WriteZeroes};
pub use manage::{
    CreateCompletionQueue, CreateSubmissionQueue, Erase, FirmwareAction, FirmwareCommit,
    FirmwareDownload, FormatNvm, QueueLimits, Sanitize, SanitizeAction,
};
pub use namespace::{NamespaceAttachment, NamespaceManagement, NewNamespace};
pub use query::{Cns, GetFeatures, GetLogPage, Identify, Select};

use crate::entry::SubmissionEntry;
use crate::ids::NamespaceId;
use crate::opcode::Direction;
use crate::status::Status;
use crate::transfer::DataPointer;

/// A command with what all commands have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed<C> {
    /// What is asked.
    pub command: C,
    /// Of which namespace; commands that are of none have [`NamespaceId::NONE`], or anything.
    pub namespace: NamespaceId,
    /// Where its data is, if it has any.
    pub data: DataPointer,
}

/// Data that a command moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Which way.
    pub direction: Direction,
    /// How much, bytes.
    pub bytes: u64,
}

impl Transfer {
    /// None at all.
    pub const NONE: Transfer = Transfer {
        direction: Direction::None,
        bytes: 0,
    };

    pub(crate) const fn to_host(bytes: u64) -> Self {
        let direction = Direction::ToHost;
        Transfer { direction, bytes }
    }

    pub(crate) const fn from_host(bytes: u64) -> Self {
        let direction = Direction::FromHost;
        Transfer { direction, bytes }
    }

    /// Holds the amount against the largest that a command may move (MDTS: 2 to its power, smallest memory
    /// pages; 0 no limit).
    ///
    /// # Errors
    /// [`Status::INVALID_FIELD`] if it is more (Base 2.0 §5.17.2.1, field MDTS).
    pub fn within(self, mdts: u8, page_min_bytes: u64) -> Result<Self, Status> {
        let most = page_min_bytes.checked_shl(mdts.into());
        match most {
            Some(most) if mdts > 0 && self.bytes > most => Err(Status::INVALID_FIELD),
            _ => Ok(self),
        }
    }
}

/// A vendor's command, as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VendorCommand {
    /// All of it. Opcode bits 1:0 say which way data moves.
    pub entry: SubmissionEntry,
}

impl VendorCommand {
    /// Command dwords 10 to 15.
    #[must_use]
    pub fn dwords(&self) -> [u32; 6] {
        std::array::from_fn(|index| self.entry.dword(10 + index))
    }

    /// Which way data moves.
    #[must_use]
    pub fn direction(&self) -> Direction {
        Direction::of(self.entry.opcode())
    }

    /// Length of its data in the standard form of vendors' commands: dword 10 counts dwords (NDT, Base 2.0
    /// §3.3.3.1). Hosts that pass commands through need not keep to it.
    #[must_use]
    pub fn standard_bytes(&self) -> u64 {
        4 * u64::from(self.entry.dword(10))
    }
}
