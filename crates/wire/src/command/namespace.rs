//! Commands that make, delete, attach and detach namespaces (Base 2.0 §5.22, §5.23; NVM Command Set 1.0 §4.1.6).

use super::Transfer;
use crate::entry::SubmissionEntry;
use crate::layout::layout;
use crate::status::Status;

/// Bytes of the data that both commands have.
const DATA_BYTES: u64 = 4096;

/// What is done (SEL), bits 3:0 of dword 10.
fn selected(entry: &SubmissionEntry) -> u32 {
    entry.dword(10) & 15
}

/// Namespace Management (Base 2.0 §5.23).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceManagement {
    /// One is made, of this command set (CSI; 0 is NVM), as the data says ([`NewNamespace`]). Dword 0 of the completion is its
    /// identifier; it is attached to no controller.
    #[allow(missing_docs)]
    Create { command_set: u8 },
    /// The one that the command names is deleted, or all are (FFFFFFFFh).
    Delete,
}

impl NamespaceManagement {
    pub(super) fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        match selected(entry) {
            0 => Ok(NamespaceManagement::Create {
                command_set: (entry.dword(11) >> 24) as u8,
            }),
            1 => Ok(NamespaceManagement::Delete),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    pub(super) fn transfer(self) -> Transfer {
        match self {
            NamespaceManagement::Create { .. } => Transfer::from_host(DATA_BYTES),
            NamespaceManagement::Delete => Transfer::NONE,
        }
    }
}

/// Namespace Attachment (Base 2.0 §5.22), to or from the controllers that the data lists
/// ([`crate::identify::lists::listed_controllers`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamespaceAttachment {
    /// They have it from now on.
    Attach,
    /// They have not.
    Detach,
}

impl NamespaceAttachment {
    pub(super) fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        match selected(entry) {
            0 => Ok(NamespaceAttachment::Attach),
            1 => Ok(NamespaceAttachment::Detach),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    pub(super) fn transfer() -> Transfer {
        Transfer::from_host(DATA_BYTES)
    }
}

layout! {
    /// What a host says of a namespace that is to be made (NVM Command Set 1.0 §4.1.6): fields of Identify Namespace that are
    /// its to choose, at their places there.
    pub struct NewNamespace: 4096 {
        /// Size, blocks (NSZE).
        0 => size_blocks: u64,
        /// Most blocks that can be allocated at once (NCAP).
        8 => capacity_blocks: u64,
        /// LBA format, bits 3:0 and above them 6:5; bit 4: metadata between blocks (FLBAS).
        26 => format: u8,
        /// What protection information is (DPS).
        29 => protection: u8,
        /// Whether several controllers can have it; bit 0: yes (NMIC).
        30 => sharing: u8,
        /// Group of asymmetric access; 0: the controller chooses (ANAGRPID).
        92 => access_group: u32,
        /// NVM set; 0: the controller chooses (NVMSETID).
        100 => nvm_set: u16,
        /// Endurance group; 0: the controller chooses (ENDGID).
        102 => endurance_group: u16,
    }
}

impl NewNamespace {
    /// Which LBA format is meant.
    #[must_use]
    pub fn format_index(&self) -> usize {
        usize::from(self.format & 15 | (self.format >> 5 & 3) << 4)
    }
}
