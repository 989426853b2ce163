//! Commands that ask: Identify, Get Log Page, Get Features.

use super::Transfer;
use super::feature::FeatureId;
use crate::entry::SubmissionEntry;
use crate::ids::ControllerId;
use crate::layout::{bit, bits};
use crate::status::Status;

/// Which structure Identify returns (CNS, Base 2.0 §5.17.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Cns {
    /// Identify Namespace.
    Namespace = 0x00,
    /// Identify Controller.
    Controller = 0x01,
    /// Active namespaces with identifiers above the one given.
    ActiveNamespaces = 0x02,
    /// Descriptors that name a namespace (EUI64, NGUID, UUID, CSI).
    NamespaceDescriptors = 0x03,
    /// What a command set says of a namespace.
    CommandSetNamespace = 0x05,
    /// What a command set says of the controller.
    CommandSetController = 0x06,
    /// Active namespaces of a command set.
    CommandSetActiveNamespaces = 0x07,
    /// What holds for a namespace of any command set.
    IndependentNamespace = 0x08,
    /// All namespaces there are, active or not.
    AllocatedNamespaces = 0x10,
    /// Identify Namespace of one that need not be active.
    AllocatedNamespace = 0x11,
    /// Controllers that a namespace is attached to.
    AttachedControllers = 0x12,
    /// Controllers of the subsystem.
    Controllers = 0x13,
    /// Combinations of command sets.
    CommandSets = 0x1c,
}

impl Cns {
    /// Every one.
    pub const ALL: [Cns; 13] = [
        Cns::Namespace,
        Cns::Controller,
        Cns::ActiveNamespaces,
        Cns::NamespaceDescriptors,
        Cns::CommandSetNamespace,
        Cns::CommandSetController,
        Cns::CommandSetActiveNamespaces,
        Cns::IndependentNamespace,
        Cns::AllocatedNamespaces,
        Cns::AllocatedNamespace,
        Cns::AttachedControllers,
        Cns::Controllers,
        Cns::CommandSets,
    ];

    fn from_code(code: u8) -> Option<Self> {
        Cns::ALL.into_iter().find(|cns| *cns as u8 == code)
    }
}

/// Identify (Base 2.0 §5.17). Returns 4096 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identify {
    /// Which structure.
    pub cns: Cns,
    /// Of which controller; of lists, the first wanted (CNTID).
    pub controller: ControllerId,
    /// Of which command set; 0 is NVM (CSI).
    pub command_set: u8,
}

impl Identify {
    pub(super) fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        let cns = Cns::from_code(entry.dword(10) as u8).ok_or(Status::INVALID_FIELD)?;
        Ok(Identify {
            cns,
            controller: ControllerId((entry.dword(10) >> 16) as u16),
            command_set: (entry.dword(11) >> 24) as u8,
        })
    }
}

/// Get Log Page (Base 2.0 §5.16).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetLogPage {
    /// Which page (LID).
    pub page: u8,
    /// What the page makes of it (LSP), 7 bits.
    pub specific: u8,
    /// Whether events that the page explains stay to be read (RAE).
    pub retain_event: bool,
    /// Dwords wanted, 0-based (NUMD): 1 to 2 to the power of 32.
    pub dwords_z: u32,
    /// What the page makes of it (LSI).
    pub specific_id: u16,
    /// Where in the page to begin, bytes; a multiple of 4 (LPOL, LPOU).
    pub offset_bytes: u64,
    /// Of which command set; 0 is NVM (CSI).
    pub command_set: u8,
}

impl GetLogPage {
    pub(super) fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        let [first, second, third] = [10, 11, 14].map(|at| u64::from(entry.dword(at)));
        let offset_bytes = entry.qword(12);
        // OT: the offset counts entries, of pages that have them. None of ours has said so (§5.16.1.1).
        if offset_bytes & 3 != 0 || bit(third, 23) {
            return Err(Status::INVALID_FIELD);
        }
        Ok(GetLogPage {
            page: first as u8,
            specific: bits(first, 8, 7) as u8,
            retain_event: bit(first, 15),
            dwords_z: (bits(first, 16, 16) | bits(second, 0, 16) << 16) as u32,
            specific_id: bits(second, 16, 16) as u16,
            offset_bytes,
            command_set: bits(third, 24, 8) as u8,
        })
    }

    /// How much is wanted, bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        4 * (u64::from(self.dwords_z) + 1)
    }
}

/// Which of a feature's values (SEL, Base 2.0 §5.15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Select {
    /// What counts now.
    Current,
    /// What it was at first.
    Default,
    /// What is kept over resets.
    Saved,
    /// What can be done with it: dword 0 has bit 0 "saveable", 1 "namespace specific", 2 "changeable".
    Capabilities,
}

/// Get Features (Base 2.0 §5.15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetFeatures {
    /// Which feature.
    pub id: FeatureId,
    /// Which of its values.
    pub select: Select,
    /// What some features make of it: which sensor, vector, or length.
    pub dword11: u32,
}

impl GetFeatures {
    pub(super) fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        let first = entry.dword(10);
        let select = match first >> 8 & 7 {
            0 => Select::Current,
            1 => Select::Default,
            2 => Select::Saved,
            3 => Select::Capabilities,
            _ => return Err(Status::INVALID_FIELD),
        };
        Ok(GetFeatures {
            id: FeatureId::from_code(first as u8).ok_or(Status::INVALID_FIELD)?,
            select,
            dword11: entry.dword(11),
        })
    }

    /// Data it returns.
    #[must_use]
    pub fn transfer(&self) -> Transfer {
        match (self.select, self.id) {
            (Select::Capabilities, _) => Transfer::NONE,
            (_, FeatureId::HostMemoryBuffer) => Transfer::to_host(4096),
            (_, id) => match id.data_bytes(self.dword11) {
                0 => Transfer::NONE,
                bytes => Transfer::to_host(bytes),
            },
        }
    }
}
