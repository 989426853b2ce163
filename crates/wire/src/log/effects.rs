//! What is supported, and what it changes: log pages (LID 00h), commands (05h), features (12h); Base 2.0
//! §5.16.1.1, §5.16.1.6, §5.16.1.18. All three follow from what this crate parses. A fourth, of management commands (13h,
//! §5.16.1.19), is there since LPA promises it with the others (bit 5), and with it the scope of each command.

use super::LogId;
use crate::command::feature::FeatureId;
use crate::command::{AdminCommand, IoCommand};
use crate::layout::Wire;
use crate::opcode::{AdminOpcode, IoOpcode};

/// CSUPP, FSUPP, LSUPP: it is supported.
const SUPPORTED: u32 = 1;
/// LBCC, UDCC: it changes what blocks hold.
const CHANGES_BLOCKS: u32 = 1 << 1;
/// NCC: it changes what a namespace can do, or is.
const CHANGES_NAMESPACE: u32 = 1 << 2;
/// NIC: it changes which namespaces there are, or which the controller has.
const CHANGES_INVENTORY: u32 = 1 << 3;
/// CCC: it changes what the controller can do.
const CHANGES_CONTROLLER: u32 = 1 << 4;
/// CSE 1: no other command to the same namespace meanwhile.
const ALONE_IN_NAMESPACE: u32 = 1 << 16;
/// CSE 2: no other command at all.
const ALONE: u32 = 2 << 16;
/// Scope of a command (CSP): the NVM subsystem.
const OF_SUBSYSTEM: u32 = 1 << 25;
/// Scope of a feature, or a command: the controller.
const OF_CONTROLLER: u32 = 1 << 21;
/// Scope of a feature, or a command: the namespace.
const OF_NAMESPACE: u32 = 1 << 20;

fn put(page: &mut [u8], index: u8, effects: u32) {
    effects.put(&mut page[4 * usize::from(index)..]);
}

/// The page of log pages, 1024 bytes: an entry for each identifier.
#[must_use]
pub fn supported_pages() -> [u8; 1024] {
    let mut page = [0; 1024];
    for id in LogId::ALL {
        put(&mut page, id as u8, SUPPORTED);
    }
    page
}

fn admin(opcode: AdminOpcode) -> u32 {
    SUPPORTED
        | match opcode {
            AdminOpcode::FormatNvm => {
                CHANGES_BLOCKS | CHANGES_NAMESPACE | ALONE_IN_NAMESPACE | OF_NAMESPACE
            }
            AdminOpcode::Sanitize => CHANGES_BLOCKS | ALONE | OF_SUBSYSTEM,
            AdminOpcode::NamespaceManagement => CHANGES_BLOCKS | CHANGES_INVENTORY | OF_SUBSYSTEM,
            AdminOpcode::NamespaceAttachment => CHANGES_INVENTORY | OF_SUBSYSTEM,
            AdminOpcode::FirmwareCommit => CHANGES_CONTROLLER | OF_SUBSYSTEM,
            AdminOpcode::FirmwareDownload => OF_SUBSYSTEM,
            // Error Recovery is a namespace's, the other features are the controller's.
            AdminOpcode::SetFeatures | AdminOpcode::GetFeatures => OF_CONTROLLER | OF_NAMESPACE,
            _ => OF_CONTROLLER,
        }
}

fn io(opcode: IoOpcode) -> u32 {
    SUPPORTED
        | OF_NAMESPACE
        | match opcode {
            IoOpcode::Write | IoOpcode::WriteZeroes | IoOpcode::DatasetManagement => CHANGES_BLOCKS,
            _ => 0,
        }
}

/// The page of commands, 4096 bytes: an entry for each admin opcode, then for each I/O opcode. `vendor_admin` and
/// `vendor_io` are the vendor's opcodes that there are.
#[must_use]
pub fn command_effects(vendor_admin: &[u8], vendor_io: &[u8]) -> [u8; 4096] {
    let mut page = [0; 4096];
    let (of_admin, of_io) = page.split_at_mut(1024);
    for opcode in AdminOpcode::ALL
        .iter()
        .copied()
        .filter(|opcode| AdminCommand::is_known(*opcode))
    {
        put(of_admin, opcode.code(), admin(opcode));
    }
    for opcode in IoOpcode::ALL
        .iter()
        .copied()
        .filter(|opcode| IoCommand::is_known(*opcode))
    {
        put(of_io, opcode.code(), io(opcode));
    }
    let vendors = [
        (of_admin, vendor_admin, OF_CONTROLLER),
        (of_io, vendor_io, OF_NAMESPACE),
    ];
    for (page, codes, scope) in vendors {
        for code in codes {
            put(page, *code, SUPPORTED | scope);
        }
    }
    page
}

/// The page of management commands, 4096 bytes: none comes through NVMe-MI Send and Receive, which there are not.
#[must_use]
pub fn management_effects() -> [u8; 4096] {
    [0; 4096]
}

/// The page of features, 1024 bytes: an entry for each identifier, of those that there are.
#[must_use]
pub fn feature_effects(supported: impl IntoIterator<Item = FeatureId>) -> [u8; 1024] {
    let mut page = [0; 1024];
    for id in supported {
        let scope = match id {
            FeatureId::ErrorRecovery => OF_NAMESPACE,
            _ => OF_CONTROLLER,
        };
        put(&mut page, id as u8, SUPPORTED | scope);
    }
    page
}
