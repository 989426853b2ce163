//! From a client's requests to the commands of a drive, and back.

use super::handshake::Export;
use super::host::HostRam;
use super::message::{Command, Failure, Request, flag};
use lodger_wire::entry::SubmissionEntry;
use lodger_wire::status::Status;
use lodger_wire::{CommandId, NamespaceId};

/// What is exported.
const NAMESPACE: NamespaceId = NamespaceId(1);
/// Most blocks of a command.
const BLOCKS_MAX: u64 = 1 << 16;
const FLUSH: u8 = 0;
const WRITE: u8 = 1;
const READ: u8 = 2;
const WRITE_ZEROES: u8 = 8;
const DATASET_MANAGEMENT: u8 = 9;
/// Bits of dword 12 and 11.
const FORCE_UNIT_ACCESS: u32 = 1 << 30;
const DEALLOCATE: u32 = 1 << 2;
/// PSDT: the data pointer is a scatter-gather descriptor; of type 0, data that lies in one piece.
const SCATTER_GATHER: u8 = 1 << 6;

/// Why a request cannot be done, as far as that shows before it is tried.
pub fn check(request: &Request, export: &Export) -> Result<(), Failure> {
    let Request {
        offset,
        length,
        flags,
        command,
        ..
    } = *request;
    let known = match command {
        Command::WriteZeroes => flag::FUA | flag::NO_HOLE,
        _ => flag::FUA,
    };
    if flags & !known != 0 || command == Command::Unknown {
        return Err(Failure::Invalid);
    }
    if command == Command::Flush {
        return Ok(());
    }
    let block = u64::from(export.block_bytes);
    let (moves, length) = (
        matches!(command, Command::Read | Command::Write),
        u64::from(length),
    );
    if moves && length > export.request_bytes_max.into() {
        return Err(Failure::Overflow);
    }
    if length == 0 || !offset.is_multiple_of(block) || !length.is_multiple_of(block) {
        return Err(Failure::Invalid);
    }
    match offset.checked_add(length) {
        Some(end) if end <= export.bytes => Ok(()),
        _ if matches!(command, Command::Write | Command::WriteZeroes) => Err(Failure::NoSpace),
        _ => Err(Failure::Invalid),
    }
}

/// How a client hears of a command that failed.
pub fn failure_of(status: Status) -> Option<Failure> {
    match status {
        status if status.is_success() => None,
        status if status.is(Status::LBA_OUT_OF_RANGE) => Some(Failure::NoSpace),
        status if status.is(Status::ACCESS_DENIED) => Some(Failure::NotPermitted),
        _ => Some(Failure::Io),
    }
}

fn entry(opcode: u8, block: u64, dword12: u32) -> SubmissionEntry {
    SubmissionEntry::new(opcode, CommandId(0), NAMESPACE)
        .with_dword(10, block as u32)
        .with_dword(11, (block >> 32) as u32)
        .with_dword(12, dword12)
}

fn with_data(mut entry: SubmissionEntry, address: u64, bytes: u64) -> SubmissionEntry {
    entry.0[1] |= SCATTER_GATHER;
    entry.0[24..32].copy_from_slice(&address.to_le_bytes());
    entry.0[32..36].copy_from_slice(&(bytes as u32).to_le_bytes());
    entry
}

/// A flush of all there is.
pub fn flush() -> SubmissionEntry {
    SubmissionEntry::new(FLUSH, CommandId(0), NAMESPACE)
}

/// Memory for what a request has beside itself. A write's data is to be put there.
pub fn memory_for(request: &Request, export: &Export, memory: &HostRam) -> Option<u64> {
    match request.command {
        Command::Read | Command::Write => Some(memory.put(vec![0; request.length as usize])),
        Command::Trim => {
            let block = u64::from(export.block_bytes);
            let mut range = vec![0; 16];
            let blocks = (u64::from(request.length) / block) as u32;
            range[4..8].copy_from_slice(&blocks.to_le_bytes());
            range[8..].copy_from_slice(&(request.offset / block).to_le_bytes());
            Some(memory.put(range))
        }
        _ => None,
    }
}

/// The commands that a request becomes, with its data at `address`. A request that was checked has one at least.
pub fn commands(
    request: &Request,
    export: &Export,
    address: u64,
    mut each: impl FnMut(SubmissionEntry),
) {
    let block = u64::from(export.block_bytes);
    let fua = match request.flags & flag::FUA {
        0 => 0,
        _ => FORCE_UNIT_ACCESS,
    };
    let (opcode, most, fua) = match request.command {
        Command::Read => (READ, export.command_bytes_max, 0),
        Command::Write => (WRITE, export.command_bytes_max, fua),
        Command::WriteZeroes => (WRITE_ZEROES, BLOCKS_MAX * block, fua),
        Command::Trim => {
            let manage = SubmissionEntry::new(DATASET_MANAGEMENT, CommandId(0), NAMESPACE);
            each(with_data(manage.with_dword(11, DEALLOCATE), address, 16));
            return;
        }
        Command::Flush | Command::Disconnect | Command::Unknown => {
            each(flush());
            return;
        }
    };
    let length = u64::from(request.length);
    let mut at = 0;
    while at < length {
        let bytes = most.min(length - at);
        let blocks_z = (bytes / block - 1) as u32;
        let command = entry(opcode, (request.offset + at) / block, blocks_z | fua);
        each(match opcode {
            WRITE_ZEROES => command,
            _ => with_data(command, address + at, bytes),
        });
        at += bytes;
    }
}
