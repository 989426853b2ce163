//! What the kernel says of where a file's range lies, held against what can be true: a wrong block that is pinned is
//! another file's data lost.

use super::{refused, untrue};
use crate::UNIT_BYTES;
use lodger_nvme_ioctl::fiemap::FileExtent;
use std::io;
use std::ops::Range;

/// Unit of all that block devices are asked for, bytes.
const SECTOR_BYTES: u64 = 512;
/// `FIEMAP_EXTENT_*` (`linux/fiemap.h`) that say nothing against pinning: the file's last extent, and one that was put
/// together from several.
const HARMLESS: u32 = 0x1 | 0x1000;
/// Those that do, what they say of the bytes, and what to do.
const AGAINST: [(u32, &str, &str); 8] = [
    (
        0x4,
        "have no blocks yet (delayed allocation)",
        "`fsync` the file first; it is being written meanwhile",
    ),
    (
        0x2,
        "are where the file system does not say",
        "pin files of ext4 that are neither compressed nor moved away",
    ),
    (
        0x80,
        "are encrypted: the window would show what stands in the blocks",
        "pin a file outside of encrypted folders",
    ),
    (
        0x8,
        "are encoded, compressed say: the window would show what stands in the blocks",
        "pin a file that is stored as it is",
    ),
    (
        0x200,
        "stand beside the file system's own data (inline)",
        "make the file longer than a block, or the file system without `inline_data`",
    ),
    (
        0x400,
        "share a block with other files' ends",
        "make the file longer than a block",
    ),
    (
        0x800,
        "were allocated and never written: through the file they read as zeros, whatever their blocks hold",
        "write them once and `fsync`, then pin",
    ),
    (
        0x2000,
        "are in blocks that other files share (reflink, snapshot)",
        "pin a copy of the file that shares none (`cp --reflink=never`)",
    ),
];
/// It is not in whole blocks.
const UNALIGNED: u32 = 0x100;

/// A part of a file that lies in one piece on the file system's device; in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub file_at: u64,
    pub device_at: u64,
    pub bytes: u64,
}

impl Piece {
    fn end(&self) -> u64 {
        self.file_at + self.bytes
    }
}

/// An extent as it was told, cut to what is in `range`, of which the part before `at` has been told of.
fn piece(told: &FileExtent, range: &Range<u64>, at: u64) -> io::Result<Piece> {
    let nonsense = |why: &str| {
        let FileExtent {
            file_at,
            device_at,
            bytes,
            flags,
        } = told;
        untrue(format!(
            "the kernel says that {bytes} bytes of the file at {file_at} are at {device_at} of the device (flags {flags:#x}): {why}"
        ))
    };
    let end = told.file_at.checked_add(told.bytes);
    let end = end.ok_or_else(|| nonsense("they have no end"))?;
    if told.device_at.checked_add(told.bytes).is_none() {
        return Err(nonsense("they have no end on the device"));
    }
    if end <= at || (told.file_at < at && at > range.start) {
        return Err(nonsense("that is before what was asked for"));
    }
    if told.file_at >= range.end {
        return Err(nonsense("that is behind what was asked for"));
    }
    if told.file_at > at {
        return Err(refused(
            format!(
                "bytes {at} to {} of the file have no blocks (a hole)",
                told.file_at
            ),
            "write them once and `fsync`, then pin",
        ));
    }
    let (from, to) = (at, end.min(range.end));
    if let Some((_, what, next)) = AGAINST.iter().find(|(flag, ..)| told.flags & flag != 0) {
        return Err(refused(
            format!("bytes {from} to {to} of the file {what}"),
            next,
        ));
    }
    // Only one of those above is without blocks.
    let numbers = [told.file_at, told.device_at, told.bytes];
    if told.flags & UNALIGNED != 0 || numbers.iter().any(|it| !it.is_multiple_of(SECTOR_BYTES)) {
        return Err(nonsense("that is not in whole blocks"));
    }
    if told.flags & !HARMLESS != 0 {
        return Err(nonsense("what some of the flags mean is not known here"));
    }
    Ok(Piece {
        file_at: from,
        device_at: told.device_at + (from - told.file_at),
        bytes: to - from,
    })
}

/// Where a range of a file lies, in pieces that follow each other without a gap; `ask` tells of the extents of so many bytes
/// from a place on, and need not tell of all at once.
pub fn pieces(
    range: &Range<u64>,
    mut ask: impl FnMut(u64, u64) -> io::Result<Vec<FileExtent>>,
) -> io::Result<Vec<Piece>> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let told = ask(at, range.end - at)?;
        if told.is_empty() {
            return Err(refused(
                format!(
                    "bytes {at} to {} of the file have no blocks (a hole)",
                    range.end
                ),
                "write them once and `fsync`, then pin",
            ));
        }
        for told in &told {
            let next = piece(told, range, at)?;
            at = next.end();
            match pieces.last_mut() {
                Some(last) if last.device_at + last.bytes == next.device_at => {
                    last.bytes += next.bytes;
                }
                _ => pieces.push(next),
            }
        }
    }
    check(&pieces)?;
    Ok(pieces)
}

/// What is true of each extent and not of all of them together.
fn check(pieces: &[Piece]) -> io::Result<()> {
    if let Some(uneven) = pieces
        .iter()
        .find(|it| !it.bytes.is_multiple_of(UNIT_BYTES))
    {
        let Piece { file_at, bytes, .. } = uneven;
        return Err(refused(
            format!(
                "the file is in one piece from byte {file_at} on for {bytes} bytes, no multiple of 4096"
            ),
            "make the file system with blocks of 4096 bytes (`mkfs.ext4 -b 4096`)",
        ));
    }
    let mut by_place = pieces.to_vec();
    by_place.sort_unstable_by_key(|piece| piece.device_at);
    let twice = by_place
        .windows(2)
        .find(|two| two[0].device_at + two[0].bytes > two[1].device_at);
    match twice {
        None => Ok(()),
        Some(two) => Err(untrue(format!(
            "the kernel says that bytes {} and {} of the file are in the same place of the device, {}",
            two[0].file_at, two[1].file_at, two[1].device_at
        ))),
    }
}

#[cfg(test)]
#[path = "extents_tests.rs"]
mod tests;
