//! The byte window of a drive, for programs that use it: blocks are pinned to it and are bytes then, which are stored and
//! loaded without any command, and outlive a loss of power once they are synced.
//!
//! A [`Window`] is that of a drive (`/dev/nvme0n1`, through the driver's passthrough and the mapped BAR 4), or, to try a
//! program without a drive, a file that does the same (`file:PATH`). What is pinned are blocks, by their numbers
//! ([`Window::pin`]) or as a file on the drive has them ([`Window::pin_file`]). [`log::Log`] keeps what was written to a file and not
//! synced yet in a part of it, and [`logs::Logs`] does so for the files of a program that knows nothing of it.
//!
//! ```no_run
//! # fn main() -> std::io::Result<()> {
//! use lodger_window::{Pin, Window};
//! let mut window = Window::open("/dev/nvme0n1")?;
//! let pin = Pin { lba: 800, at: 0, bytes: 8192 };
//! window.pin(0, pin)?;
//! window.store(0, b"as durable as a write with FUA")?;
//! window.sync(0)?;
//! window.flush(0)?; // The blocks hold it, and are blocks again.
//! # Ok(())
//! # }
//! ```
#![cfg(target_os = "linux")]

mod device;
mod file;
mod files;
pub mod log;
pub mod logs;

pub use files::Extent;
use std::collections::BTreeMap;
use std::io;

/// Unit of places in the window and of lengths, bytes.
pub const UNIT_BYTES: u64 = 4096;
/// How the place of a window in a file begins.
const FILE: &str = "file:";

/// What is pinned: blocks of 512 bytes or what else the drive has, from `lba` on, as so many bytes of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    /// First block.
    pub lba: u64,
    /// Where in the window, bytes; a multiple of [`UNIT_BYTES`].
    pub at: u64,
    /// How much; a multiple of [`UNIT_BYTES`].
    pub bytes: u64,
}

/// What stands behind a window.
trait Back: Send + std::fmt::Debug {
    fn bytes(&self) -> u64;
    fn store(&mut self, at: u64, from: &[u8]) -> io::Result<()>;
    fn load(&self, at: u64, into: &mut [u8]) -> io::Result<()>;
    fn pin(&mut self, entry: u8, pin: Pin) -> io::Result<()>;
    fn info(&self, entry: u8) -> io::Result<Option<Pin>>;
    fn sync(&mut self, entry: u8) -> io::Result<()>;
    fn flush(&mut self, entry: u8) -> io::Result<()>;
    fn read_dma(&self, entry: u8, at: u64, into: &mut [u8]) -> io::Result<()>;
    /// Number of the drive's block device, on which file systems lie.
    fn drive(&self) -> io::Result<(u32, u32)> {
        Err(files::refused(
            "this window is in a file, and no file system lies on its blocks".to_owned(),
            "pin blocks by their numbers, or files in a guest with a drive (`make vm VM=\"--drive 2b-ssd\"`)",
        ))
    }
}

/// A drive's byte window, held by one program at a time.
#[derive(Debug)]
pub struct Window {
    back: Box<dyn Back>,
    /// Files that have entries.
    held: BTreeMap<u8, files::Held>,
}

impl Window {
    /// The window of a drive, by its namespace's device, or (`file:PATH`) one in a file, which is made if it is not there.
    ///
    /// # Errors
    /// If there is none, it cannot be mapped, or another program has it ([`io::ErrorKind::WouldBlock`]).
    pub fn open(place: &str) -> io::Result<Self> {
        Ok(Window::of(match place.strip_prefix(FILE) {
            Some(path) => Box::new(file::InFile::open(path.as_ref())?),
            None => Box::new(device::Drive::open(place.as_ref())?),
        }))
    }

    fn of(back: Box<dyn Back>) -> Self {
        let held = BTreeMap::new();
        Window { back, held }
    }

    /// Its size.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.back.bytes()
    }

    fn check(&self, at: u64, length: usize) -> io::Result<()> {
        let end = at.checked_add(length as u64);
        match end.is_some_and(|end| end <= self.bytes()) {
            true => Ok(()),
            false => Err(invalid("that is not within the window")),
        }
    }

    /// Stores bytes. They outlive power after the next [`Window::sync`] of the entry that they belong to.
    ///
    /// # Errors
    /// If they do not fit.
    pub fn store(&mut self, at: u64, from: &[u8]) -> io::Result<()> {
        self.check(at, from.len())?;
        self.back.store(at, from)
    }

    /// Loads bytes.
    ///
    /// # Errors
    /// If they are not within.
    pub fn load(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.check(at, into.len())?;
        self.back.load(at, into)
    }

    /// Pins blocks as an entry of the drive's table (BA_PIN). Their bytes are in the window then, and commands to them are refused.
    ///
    /// # Errors
    /// If the entry is in use ([`io::ErrorKind::AlreadyExists`]), something else is pinned there, or the table is full.
    pub fn pin(&mut self, entry: u8, pin: Pin) -> io::Result<()> {
        if pin.bytes == 0
            || !pin.bytes.is_multiple_of(UNIT_BYTES)
            || !pin.at.is_multiple_of(UNIT_BYTES)
        {
            return Err(invalid("places and lengths are multiples of 4096 bytes"));
        }
        let length = usize::try_from(pin.bytes).map_err(|_| invalid("that is too long"))?;
        self.check(pin.at, length)?;
        self.back.pin(entry, pin)
    }

    /// What is pinned as an entry (BA_GET_ENTRY_INFO).
    ///
    /// # Errors
    /// If the drive cannot be asked.
    pub fn info(&self, entry: u8) -> io::Result<Option<Pin>> {
        self.back.info(entry)
    }

    /// What was stored in an entry's bytes outlives power (BA_SYNC).
    ///
    /// # Errors
    /// If it is not pinned ([`io::ErrorKind::NotFound`]), or the drive refuses.
    pub fn sync(&mut self, entry: u8) -> io::Result<()> {
        self.back.sync(entry)
    }

    /// An entry's bytes are written to its blocks, durably, and it is no more (BA_FLUSH). Those of a file
    /// ([`Window::pin_file`]) are then what is read through the file.
    ///
    /// # Errors
    /// As [`Window::sync`]. If the blocks are a file's no more, the flush is made, and what went where is said
    /// ([`io::ErrorKind::StaleNetworkFileHandle`]).
    pub fn flush(&mut self, entry: u8) -> io::Result<()> {
        let found = match self.held.get(&entry) {
            Some(held) => held.check(&*self.back),
            None => Ok(()),
        };
        self.back.flush(entry)?;
        match self.held.remove(&entry) {
            Some(held) => {
                let ended = held.end();
                found.and(ended)
            }
            None => Ok(()),
        }
    }

    /// Bytes of an entry from `at` on, moved by the drive's DMA engine (BA_READ_DMA): faster than loads from some KiB on.
    ///
    /// # Errors
    /// As [`Window::sync`]; if place or length is no multiple of 4.
    pub fn read_dma(&self, entry: u8, at: u64, into: &mut [u8]) -> io::Result<()> {
        if !at.is_multiple_of(4) || !into.len().is_multiple_of(4) {
            return Err(invalid("places and lengths are multiples of 4 bytes"));
        }
        self.back.read_dma(entry, at, into)
    }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}
