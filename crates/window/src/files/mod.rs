//! Ranges of files for blocks: where ext4 keeps them on the window's drive, found out by asking the kernel, and refused where
//! stores to those blocks would not be what a program means by the file's bytes.
//!
//! The file system knows nothing of a pin. So the file is held open until the flush (its blocks are freed no earlier than the last
//! descriptor of it is closed), its cached pages are dropped after the pin and after the flush, which is a change by the file's
//! times, too, and where it lies is looked at once more before the flush. What is left to the program: nobody truncates, punches or defragments the range
//! meanwhile, and nobody writes it or has it mapped.

mod extents;
pub(crate) mod place;

use crate::{Back, Pin, UNIT_BYTES, Window};
use extents::Piece;
use lodger_nvme_ioctl::fiemap::file_extents;
use place::Number;
use rustix::fs::{Advice, OFlags, Timespec, Timestamps, UTIME_NOW};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

/// Of ext2, ext3 and ext4 (`linux/magic.h`).
const EXT4: u64 = 0xef53;
/// Flags of a file (`linux/fs.h`), and what they mean for it.
const FLAGS_AGAINST: [(u32, &str); 3] = [
    (0x800, "the file is encrypted (fscrypt)"),
    (
        0x4000,
        "the file's data goes through the journal (`chattr +j`)",
    ),
    (0x1000_0000, "the file's data is inline"),
];

/// A part of a file's range that lies in one piece on the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Where in the file, bytes.
    pub from: u64,
    /// First block of the drive.
    pub lba: u64,
    /// How much.
    pub bytes: u64,
}

/// A file whose range is pinned.
#[derive(Debug)]
pub(crate) struct Held {
    file: File,
    range: Range<u64>,
    lba: u64,
}

fn with_hint(kind: io::ErrorKind, what: String, next: &str) -> io::Error {
    io::Error::new(kind, format!("{what}\nhint: {next}"))
}

/// Of a file that cannot be pinned as it is.
pub(crate) fn refused(what: String, next: &str) -> io::Error {
    with_hint(io::ErrorKind::Unsupported, what, next)
}

/// Of an answer of the kernel's that cannot be.
fn untrue(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Of a range that is none.
fn wrong(what: String, next: &str) -> io::Error {
    with_hint(io::ErrorKind::InvalidInput, what, next)
}

fn check_range(file: &File, range: &Range<u64>, most: u64) -> io::Result<()> {
    let Range { start, end } = *range;
    if start >= end || !start.is_multiple_of(UNIT_BYTES) || !end.is_multiple_of(UNIT_BYTES) {
        return Err(wrong(
            format!("bytes {start} to {end} of the file are not whole units of 4096 bytes"),
            "begin and end at multiples of 4096",
        ));
    }
    if end - start > most {
        return Err(wrong(
            format!(
                "{} bytes of the file are asked for, the window has {most}",
                end - start
            ),
            "pin less at once",
        ));
    }
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(wrong(
            "that is no regular file".to_owned(),
            "blocks of a drive are pinned by number",
        ));
    }
    if about.len() < end {
        return Err(wrong(
            format!(
                "the file has {} bytes, the range ends at {end}",
                about.len()
            ),
            "write the file to its full length first, in multiples of 4096",
        ));
    }
    match rustix::fs::fcntl_getfl(file)? & OFlags::RWMODE {
        OFlags::RDONLY => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the file is open for reading alone, and a flush of the window writes it\nhint: open it for reading and writing",
        )),
        _ => Ok(()),
    }
}

/// Whether ext4 keeps the file's data in blocks of its own, and nowhere else.
fn check_file(root: &Path, file: &File, device: &str) -> io::Result<()> {
    let next = "pin a plain file of an ext4 without `data=journal`";
    let kind = rustix::fs::fstatfs(file)?.f_type as u64;
    if kind != EXT4 {
        return Err(refused(
            format!(
                "the file's file system is of type {kind:#x}, only ext4 ({EXT4:#x}) is known to keep a file where it says"
            ),
            "make an ext4 on the window's drive (`mkfs.ext4 -b 4096`), and pin a file there",
        ));
    }
    let flags = rustix::fs::ioctl_getflags(file)?.bits();
    if let Some((_, what)) = FLAGS_AGAINST.iter().find(|(flag, _)| flags & flag != 0) {
        return Err(refused((*what).to_owned(), next));
    }
    // A drop of the journal into blocks that are pinned is refused by the drive, and that ends the file system. An option of
    // the superblock's own is nowhere else; drivers without a journal have no such file.
    let options = root.join("proc/fs/ext4").join(device).join("options");
    let is_journalled = std::fs::read_to_string(options)
        .is_ok_and(|options| options.lines().any(|line| line == "data=journal"));
    match is_journalled {
        true => Err(refused(
            "the file system writes data through its journal (`data=journal`)".to_owned(),
            next,
        )),
        false => Ok(()),
    }
}

/// Where a range of a file lies on a drive.
fn extents(
    root: &Path,
    drive: Number,
    file: &File,
    range: &Range<u64>,
    is_synced: bool,
) -> io::Result<Vec<Extent>> {
    use std::os::linux::fs::MetadataExt;
    let device = file.metadata()?.st_dev();
    let device = (rustix::fs::major(device), rustix::fs::minor(device));
    let place = place::of(root, device, drive)?;
    check_file(root, file, &place.name)?;
    let pieces = extents::pieces(range, |from, bytes| {
        file_extents(file, from, bytes, is_synced)
    })?;
    let extent = |piece: &Piece| {
        Ok(Extent {
            from: piece.file_at,
            lba: place.lba(piece)?,
            bytes: piece.bytes,
        })
    };
    pieces.iter().map(extent).collect()
}

fn only(extents: &[Extent]) -> io::Result<Extent> {
    match extents {
        [one] => Ok(*one),
        [first, ..] => Err(refused(
            format!(
                "the range is in {} pieces on the drive, the first from byte {} to {} of the file",
                extents.len(),
                first.from,
                first.from + first.bytes
            ),
            "allocate the file at once and write it once (`fallocate`, then write), or pin each piece as an entry of its own",
        )),
        [] => Err(untrue(
            "the kernel says that the range is nowhere".to_owned(),
        )),
    }
}

/// Drops the cached pages of a file. All of them: a large folio that only begins or ends in a range is not dropped with the range.
fn drop_pages(file: &File) -> io::Result<()> {
    Ok(rustix::fs::fadvise(file, 0, None, Advice::DontNeed)?)
}

impl Held {
    fn is_moved(&self, back: &dyn Back) -> bool {
        let now = back.drive().and_then(|drive| {
            check_range(&self.file, &self.range, u64::MAX)?;
            only(&extents(
                Path::new("/"),
                drive,
                &self.file,
                &self.range,
                false,
            )?)
        });
        now.map(|now| now.lba).ok() != Some(self.lba)
    }

    /// Before the entry's flush: whether the file still has the blocks.
    pub(crate) fn check(&self, back: &dyn Back) -> io::Result<()> {
        match self.is_moved(back) {
            false => Ok(()),
            true => Err(with_hint(
                io::ErrorKind::StaleNetworkFileHandle,
                format!(
                    "bytes {} to {} of the file are not in the blocks from {} on any more: what was in the window is in those, not in the file",
                    self.range.start, self.range.end, self.lba
                ),
                "write it to the file; do not truncate, punch or defragment a file that is pinned",
            )),
        }
    }

    /// After it: the file's next reader asks the drive, and who copies what has changed sees that it has.
    pub(crate) fn end(&self) -> io::Result<()> {
        drop_pages(&self.file)?;
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_NOW,
        };
        // Both, as that takes no more than the right to write.
        let (last_access, last_modification) = (now, now);
        let times = Timestamps {
            last_access,
            last_modification,
        };
        Ok(rustix::fs::futimens(&self.file, &times)?)
    }
}

impl Window {
    /// Where a range of a file lies on the window's drive, in the file's order; what is dirty of it is written before. One entry
    /// can be pinned for each.
    ///
    /// # Errors
    /// As [`Window::pin_file`], but that there may be several pieces.
    pub fn extents(&self, file: &File, range: Range<u64>) -> io::Result<Vec<Extent>> {
        let drive = self.back.drive()?;
        check_range(file, &range, self.bytes())?;
        // What is stored to the window is of use once the file system remembers, too, whose blocks those are.
        rustix::fs::fsync(file)?;
        extents(Path::new("/"), drive, file, &range, true)
    }

    /// Pins a range of a file of an ext4 on the window's drive, at a place of the window, as an entry of the drive's table; says which blocks
    /// those are. Until [`Window::flush`] of the entry the window has a descriptor of the file. Meanwhile reads and writes of the
    /// range through the file are refused by the drive; nobody may write it, have it mapped, truncate, punch or
    /// defragment it.
    ///
    /// # Errors
    /// If range or place are no multiples of 4096 or too long, the file is shorter, or open for reading alone
    /// ([`io::ErrorKind::InvalidInput`], [`io::ErrorKind::PermissionDenied`]); if its blocks are not the range's bytes, not in one piece
    /// ([`Window::extents`] tells of each), or on no drive or another one, or the window is one in a file ([`io::ErrorKind::Unsupported`]); and as
    /// [`Window::pin`].
    pub fn pin_file(
        &mut self,
        entry: u8,
        file: &File,
        range: Range<u64>,
        at: u64,
    ) -> io::Result<Pin> {
        let found = only(&self.extents(file, range.clone())?)?;
        let file = file.try_clone()?;
        let (lba, bytes) = (found.lba, found.bytes);
        let pin = Pin { lba, at, bytes };
        self.pin(entry, pin)?;
        self.hold(entry, Held { file, range, lba })
            .inspect_err(|_| {
                // Nothing was stored: the blocks get what they had.
                let _ = self.back.flush(entry);
            })?;
        Ok(pin)
    }

    /// After a program, a machine or the drive's power has ended with a range of a file pinned: takes up again what is pinned as an entry, which
    /// must be the blocks of the file from `from` on. The window has the bytes; [`Window::flush`] gives them to the file.
    ///
    /// # Errors
    /// If nothing is pinned as that ([`io::ErrorKind::NotFound`]), or other blocks than the file's
    /// ([`io::ErrorKind::StaleNetworkFileHandle`]); and as [`Window::pin_file`].
    pub fn resume_file(&mut self, entry: u8, file: &File, from: u64) -> io::Result<Pin> {
        let nothing = || io::Error::new(io::ErrorKind::NotFound, "nothing is pinned as that entry");
        let pin = self.info(entry)?.ok_or_else(nothing)?;
        let end = from.checked_add(pin.bytes);
        let end = end.ok_or_else(|| crate::invalid("the range has no end"))?;
        let drive = self.back.drive()?;
        let range = from..end;
        check_range(file, &range, self.bytes())?;
        let found = only(&extents(Path::new("/"), drive, file, &range, false)?)?;
        if found.lba != pin.lba {
            return Err(with_hint(
                io::ErrorKind::StaleNetworkFileHandle,
                format!(
                    "entry {entry} has the blocks from {} on, and bytes {from} to {end} of the file are in those from {} on",
                    pin.lba, found.lba
                ),
                "flush the entry, if those blocks are yours, and pin the file anew",
            ));
        }
        let (file, lba) = (file.try_clone()?, pin.lba);
        self.hold(entry, Held { file, range, lba })?;
        Ok(pin)
    }

    /// The entry is the file's from now on: pages from before it was pinned, which reads would find, are dropped.
    fn hold(&mut self, entry: u8, held: Held) -> io::Result<()> {
        // The file system may have moved it between the question and the pin.
        held.check(&*self.back)?;
        drop_pages(&held.file)?;
        self.held.insert(entry, held);
        Ok(())
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
