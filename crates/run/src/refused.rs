//! What a drive refuses, for the user: what was asked, why it was refused, what to do next.

use crate::error::Error;
use crate::session::Command;
use lodger_core::device::{SECTOR_BYTES, TRANSFER_BYTES_MAX};
use lodger_core::spec::DriveSpec;
use lodger_core::{EntryId, Op, Status, WindowCall, WindowError};

/// Of a command; `status` is not success.
pub(crate) fn command(command: &Command, status: Status, spec: &DriveSpec) -> Error {
    let Command {
        offset_bytes,
        length_bytes,
        ..
    } = command;
    let place = format!("of {length_bytes} bytes at {offset_bytes}");
    let asked = match command.op {
        Op::Read => format!("read {place}"),
        Op::Write => format!("write {place}"),
        Op::Trim => format!("trim {place}"),
        Op::Flush => "flush".to_owned(),
    };
    let (why, hint) = match status {
        Status::Success => unreachable!("it was not refused"),
        Status::OutOfRange => (
            "it ends beyond the drive",
            format!("the drive has {} bytes", spec.capacity_bytes),
        ),
        Status::InvalidField if is_whole(*offset_bytes, *length_bytes) => (
            "it is more than one request can ask for",
            format!("ask for {TRANSFER_BYTES_MAX} bytes or fewer at a time"),
        ),
        Status::InvalidField => (
            "offset and length must be multiples of 512 bytes, and the length not 0",
            covering(*offset_bytes, *length_bytes, spec),
        ),
        Status::AccessDenied => (
            "part of that range is pinned to the byte window",
            "unpin the entry first, or load and store through the window".to_owned(),
        ),
        Status::MediaError if matches!(command.op, Op::Write | Op::Flush) => (
            "data that was to be made safe is lost",
            "write anew what was written since the last flush".to_owned(),
        ),
        Status::MediaError => (
            "data of that range is lost",
            "what is written there anew can be read again".to_owned(),
        ),
        Status::ReadOnly => (
            "the drive is at the end of its life and takes no more data",
            "what it holds can still be read".to_owned(),
        ),
        Status::Aborted => ("it was aborted", "ask again".to_owned()),
    };
    Error::input(format!("the drive refused a {asked}: {why}")).hint(hint)
}

/// Whether a range is of whole blocks, and of one at least.
fn is_whole(offset_bytes: u64, length_bytes: u64) -> bool {
    let is_aligned = |bytes: u64| bytes.is_multiple_of(SECTOR_BYTES);
    length_bytes > 0 && is_aligned(offset_bytes) && is_aligned(length_bytes)
}

/// The blocks around a range, if the drive has them.
fn covering(offset_bytes: u64, length_bytes: u64, spec: &DriveSpec) -> String {
    let start = offset_bytes / SECTOR_BYTES * SECTOR_BYTES;
    let end = offset_bytes.checked_add(length_bytes.max(1));
    let end = end.and_then(|end| end.checked_next_multiple_of(SECTOR_BYTES));
    match end.filter(|end| *end <= spec.capacity_bytes) {
        Some(end) => format!("{} bytes at {start} cover it", end - start),
        None => format!("the drive has {} bytes", spec.capacity_bytes),
    }
}

/// Of a call of the byte window.
pub(crate) fn call(call: WindowCall, error: WindowError, spec: &DriveSpec) -> Error {
    let refused = Error::input(format!("the drive refused to {}: {error}", asked(call)));
    let window_bytes = spec.roles.window.as_ref().map_or(0, |window| window.bytes);
    let hint = match error {
        WindowError::NoWindow => "`lodger drives list` shows which drives have one",
        WindowError::InUse => "unpin the entry first, or pin under another number",
        WindowError::NotPinned => "pin the range first",
        WindowError::WindowOverlap => "unpin that entry first, or take another place of the window",
        WindowError::RangeOverlap | WindowError::TableFull => "unpin an entry first",
        WindowError::OutOfWindow => return refused.hint(format!("it has {window_bytes} bytes")),
        WindowError::OutOfRange => {
            return refused.hint(format!("it has {} bytes", spec.capacity_bytes));
        }
        WindowError::BadEntry
        | WindowError::OutOfEntry
        | WindowError::Unaligned
        | WindowError::ZeroLength
        | WindowError::Busy
        | WindowError::MediaError
        | WindowError::PowerFailed => return refused,
    };
    refused.hint(hint)
}

/// What a call asks for, after "to".
fn asked(call: WindowCall) -> String {
    match call {
        WindowCall::Pin {
            entry: EntryId(entry),
            window_offset_bytes,
            drive_offset_bytes,
            length_bytes,
        } => format!(
            "pin {length_bytes} bytes of the drive at {drive_offset_bytes} to {window_offset_bytes} of the window \
             as entry {entry}"
        ),
        WindowCall::Flush {
            entry: EntryId(entry),
        } => format!("unpin entry {entry}"),
        WindowCall::Sync {
            entry: EntryId(entry),
        } => format!("sync entry {entry}"),
        WindowCall::EntryInfo {
            entry: EntryId(entry),
        } => format!("tell of entry {entry}"),
        WindowCall::ReadDma {
            entry: EntryId(entry),
            offset_bytes,
            length_bytes,
        } => format!("copy {length_bytes} bytes at {offset_bytes} of entry {entry}"),
        WindowCall::Store {
            window_offset_bytes,
            length_bytes,
        } => format!("store {length_bytes} bytes at {window_offset_bytes} of the window"),
        WindowCall::Load {
            window_offset_bytes,
            length_bytes,
        } => format!("load {length_bytes} bytes at {window_offset_bytes} of the window"),
    }
}
