//! A window in a file, to try programs without a drive: its bytes, then the table, then the blocks.

use crate::{Back, Pin, UNIT_BYTES};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io;
use std::path::Path;

/// As the 2B-SSD's (Bae et al., ISCA 2018): 8 MiB, and 8 entries.
const WINDOW_BYTES: u64 = 8 << 20;
const ENTRIES: u8 = 8;
/// Bytes of an entry of the table: first block, place, length.
const ENTRY_BYTES: u64 = 24;
const BLOCKS_AT: u64 = WINDOW_BYTES + UNIT_BYTES;
const BLOCK_BYTES: u64 = 512;

#[derive(Debug)]
pub struct InFile(File);

// Plain system calls: a library that stands before `pwrite` and its like uses this.
impl InFile {
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = File::options();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        if file.metadata()?.len() < BLOCKS_AT {
            rustix::fs::ftruncate(&file, BLOCKS_AT)?;
        }
        Ok(InFile(file))
    }

    /// What lies beyond the end of the file is zeros.
    fn read(&self, mut at: u64, mut into: &mut [u8]) -> io::Result<()> {
        while !into.is_empty() {
            let count = rustix::io::pread(&self.0, &mut *into, at)?;
            if count == 0 {
                into.fill(0);
                return Ok(());
            }
            into = &mut into[count..];
            at += count as u64;
        }
        Ok(())
    }

    fn write(&self, mut at: u64, mut from: &[u8]) -> io::Result<()> {
        while !from.is_empty() {
            let count = rustix::io::pwrite(&self.0, from, at)?;
            from = &from[count..];
            at += count as u64;
        }
        Ok(())
    }

    fn set(&self, entry: u8, pin: Pin) -> io::Result<()> {
        let fields = [pin.lba, pin.at, pin.bytes].map(u64::to_le_bytes);
        self.write(
            WINDOW_BYTES + ENTRY_BYTES * u64::from(entry),
            fields.as_flattened(),
        )
    }

    fn pinned(&self, entry: u8) -> io::Result<Pin> {
        let pin = self.info(entry)?;
        pin.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "nothing is pinned as that"))
    }

    fn copy(&self, from: u64, to: u64, bytes: u64) -> io::Result<()> {
        let mut unit = [0; UNIT_BYTES as usize];
        for at in (0..bytes).step_by(unit.len()) {
            self.read(from + at, &mut unit)?;
            self.write(to + at, &unit)?;
        }
        Ok(())
    }
}

impl Back for InFile {
    fn bytes(&self) -> u64 {
        WINDOW_BYTES
    }

    fn store(&mut self, at: u64, from: &[u8]) -> io::Result<()> {
        self.write(at, from)
    }

    fn load(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.read(at, into)
    }

    fn pin(&mut self, entry: u8, pin: Pin) -> io::Result<()> {
        if self.info(entry)?.is_some() {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "the entry is in use",
            ));
        }
        let blocks = |pin: &Pin| pin.lba..pin.lba + pin.bytes / BLOCK_BYTES;
        let place = |pin: &Pin| pin.at..pin.at + pin.bytes;
        let meet = |one: std::ops::Range<u64>, other: std::ops::Range<u64>| {
            one.start < other.end && other.start < one.end
        };
        for other in 0..ENTRIES {
            if let Some(other) = self.info(other)?
                && (meet(blocks(&other), blocks(&pin)) || meet(place(&other), place(&pin)))
            {
                return Err(io::Error::other("something else is pinned there"));
            }
        }
        self.copy(BLOCKS_AT + pin.lba * BLOCK_BYTES, pin.at, pin.bytes)?;
        self.set(entry, pin)
    }

    fn info(&self, entry: u8) -> io::Result<Option<Pin>> {
        if entry >= ENTRIES {
            return Err(crate::invalid("there are 8 entries"));
        }
        let mut bytes = [0; ENTRY_BYTES as usize];
        self.read(WINDOW_BYTES + ENTRY_BYTES * u64::from(entry), &mut bytes)?;
        let [lba, at, bytes] =
            [0, 8, 16].map(|at| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes")));
        Ok((bytes > 0).then_some(Pin { lba, at, bytes }))
    }

    fn sync(&mut self, entry: u8) -> io::Result<()> {
        self.pinned(entry)?;
        Ok(rustix::fs::fdatasync(&self.0)?)
    }

    fn flush(&mut self, entry: u8) -> io::Result<()> {
        let pin = self.pinned(entry)?;
        self.copy(pin.at, BLOCKS_AT + pin.lba * BLOCK_BYTES, pin.bytes)?;
        let (lba, at, bytes) = (0, 0, 0);
        self.set(entry, Pin { lba, at, bytes })?;
        Ok(rustix::fs::fdatasync(&self.0)?)
    }

    fn read_dma(&self, entry: u8, at: u64, into: &mut [u8]) -> io::Result<()> {
        let pin = self.pinned(entry)?;
        match at
            .checked_add(into.len() as u64)
            .is_some_and(|end| end <= pin.bytes)
        {
            true => self.read(pin.at + at, into),
            false => Err(crate::invalid("that is not within the entry")),
        }
    }
}
