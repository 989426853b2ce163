//! Logs of the files of a program that knows nothing of windows: who stands before its system calls says what was opened,
//! written and synced. A window is divided among a few logs, each of one file at a time.
//!
//! All files are reached by plain system calls, as this runs where `pwrite` and its like are our own.

use crate::log::{Change, Log, Memory, Owner, PATH_MAX};
use crate::{Pin, Window};
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Entry of the drive's table that is used.
const ENTRY: u8 = 0;
/// Logs in a window.
const LOGS: u64 = 4;

/// Where logs are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The window, as [`Window::open`] has it.
    pub place: String,
    /// What is pinned for it: blocks that are nobody else's.
    pub pin: Pin,
}

impl Settings {
    /// From the window's place and `LBA:BYTES`; in a file, without it, all of the window.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn new(place: &str, pin: Option<&str>) -> Result<Self, String> {
        let pin = match pin {
            None if place.starts_with(crate::FILE) => Pin {
                lba: 0,
                at: 0,
                bytes: 8 << 20,
            },
            None => {
                return Err(
                    "which blocks are pinned is not said: LODGER_WINDOW_PIN=LBA:BYTES".to_owned(),
                );
            }
            Some(text) => {
                let number = |text: &str| text.parse::<u64>().ok();
                let (lba, bytes) = text.split_once(':').ok_or("it is LBA:BYTES, two numbers")?;
                let (Some(lba), Some(bytes)) = (number(lba), number(bytes)) else {
                    return Err("it is LBA:BYTES, two numbers".to_owned());
                };
                if bytes == 0 || !bytes.is_multiple_of(4096 * LOGS) {
                    return Err(format!("BYTES is a multiple of {}", 4096 * LOGS));
                }
                Pin { lba, at: 0, bytes }
            }
        };
        Ok(Settings {
            place: place.to_owned(),
            pin,
        })
    }
}

impl Memory for Window {
    fn store(&mut self, at: u64, from: &[u8]) -> io::Result<()> {
        Window::store(self, at, from)
    }

    fn load(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        Window::load(self, at, into)
    }
}

/// A file that has a log.
#[derive(Debug)]
struct Kept {
    log: Log,
    owner: Owner,
    /// Descriptors it is open as.
    users: u32,
    /// All that was written and not synced is in the log.
    is_complete: bool,
    /// It is written in ways that nobody tells of: each sync is the file's own.
    is_unseen: bool,
}

/// The logs of one program.
#[derive(Debug)]
pub struct Logs {
    window: Window,
    kept: Vec<Option<Kept>>,
    by_descriptor: HashMap<RawFd, usize>,
    bytes: u64,
}

impl Kept {
    /// The file is synced, and its log begins anew.
    fn begin_anew(&mut self, window: &mut Window, file: BorrowedFd<'_>) -> io::Result<()> {
        self.is_complete = false;
        // With its length: what comes is done again to a file that has it.
        rustix::fs::fsync(file)?;
        // Until this is in the window for good, a loss of power brings back the log before, which is done to the file
        // again and undoes what was just synced: without it there is no success.
        self.log.begin(window, &self.owner, clock())?;
        window.sync(ENTRY)?;
        self.is_complete = !self.is_unseen;
        Ok(())
    }
}

/// Where the file of a descriptor is now.
///
/// # Errors
/// If there is no such descriptor.
pub fn path_of(raw: RawFd) -> io::Result<Vec<u8>> {
    let link = rustix::fs::readlink(format!("/proc/self/fd/{raw}"), Vec::new())?;
    Ok(link.into_bytes())
}

fn clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

fn owner_of(file: BorrowedFd<'_>, path: &[u8]) -> io::Result<Owner> {
    let all = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let says = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, all)?;
    let device = u64::from(says.stx_dev_major) << 32 | u64::from(says.stx_dev_minor);
    let born = says.stx_btime;
    let born_ns = (born.tv_sec as u64).wrapping_mul(1_000_000_000) + u64::from(born.tv_nsec);
    Ok(Owner {
        identity: [device, says.stx_ino, born_ns],
        path: path.to_vec(),
    })
}

fn write_all(file: BorrowedFd<'_>, mut at: u64, mut from: &[u8]) -> io::Result<()> {
    while !from.is_empty() {
        let count = rustix::io::pwrite(file, from, at)?;
        from = &from[count..];
        at += count as u64;
    }
    Ok(())
}

impl Logs {
    /// The logs of a window. What a program that is gone has left in them is done to its files again first.
    ///
    /// # Errors
    /// If the window cannot be had, or holds another pin as that entry.
    pub fn open(settings: &Settings) -> io::Result<Self> {
        Self::in_window(Window::open(&settings.place)?, settings)
    }

    fn in_window(mut window: Window, settings: &Settings) -> io::Result<Self> {
        match window.info(ENTRY)? {
            None => window.pin(ENTRY, settings.pin)?,
            Some(pin) if pin == settings.pin => {}
            Some(pin) => {
                let what = format!("other blocks are pinned as entry {ENTRY}: {pin:?}");
                return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
            }
        }
        let mut logs = Logs {
            window,
            kept: (0..LOGS).map(|_| None).collect(),
            by_descriptor: HashMap::new(),
            bytes: settings.pin.bytes / LOGS,
        };
        for slot in 0..LOGS as usize {
            logs.recover(slot)?;
        }
        Ok(logs)
    }

    fn place(&self, slot: usize) -> (u64, u64) {
        let start = slot as u64 * self.bytes;
        (start, start + self.bytes)
    }

    /// Does what a log holds to its file again, if that is still there, and makes the log nobody's. A log whose file's folder
    /// is not there stays: what it is on may come yet.
    fn recover(&mut self, slot: usize) -> io::Result<bool> {
        let (mut log, owner, changes) = Log::open(&self.window, self.place(slot))?;
        if !changes.is_empty() {
            let path = Path::new(std::ffi::OsStr::from_bytes(&owner.path));
            if path
                .parent()
                .is_some_and(|folder| rustix::fs::stat(folder).is_err())
            {
                return Ok(false);
            }
            let file = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
            if let Ok(file) = file
                && owner_of(file.as_fd(), &owner.path)? == owner
            {
                for change in changes {
                    match change {
                        Change::Write(at, data) => write_all(file.as_fd(), at, &data)?,
                        Change::Truncate(length) => rustix::fs::ftruncate(&file, length)?,
                    }
                }
                rustix::fs::fsync(&file)?;
            }
        }
        if owner != Owner::default() {
            log.begin(&mut self.window, &Owner::default(), clock())?;
            self.window.sync(ENTRY)?;
        }
        Ok(true)
    }

    /// A file was opened: it has a log from now on, if one is free.
    ///
    /// # Errors
    /// If the window, or the file, fails.
    pub fn opened(&mut self, file: BorrowedFd<'_>, raw: RawFd, path: &Path) -> io::Result<bool> {
        self.closed(file, raw)?;
        let path = path.as_os_str().as_bytes();
        if path.len() > PATH_MAX {
            return Ok(false);
        }
        let owner = owner_of(file, path)?;
        let mut places = self.kept.iter();
        let known = places.position(|kept| {
            kept.as_ref()
                .is_some_and(|kept| kept.owner.identity == owner.identity)
        });
        let slot = match known {
            Some(slot) => slot,
            None => {
                let Some(slot) = self.free_slot()? else {
                    return Ok(false);
                };
                let (mut log, ..) = Log::open(&self.window, self.place(slot))?;
                // What is there already, and that it is there, is safe from now on.
                rustix::fs::fsync(file)?;
                log.begin(&mut self.window, &owner, clock())?;
                self.window.sync(ENTRY)?;
                self.kept[slot] = Some(Kept {
                    log,
                    owner,
                    users: 0,
                    is_complete: true,
                    is_unseen: false,
                });
                slot
            }
        };
        if let Some(kept) = &mut self.kept[slot] {
            kept.users += 1;
        }
        self.by_descriptor.insert(raw, slot);
        Ok(true)
    }

    fn free_slot(&mut self) -> io::Result<Option<usize>> {
        for slot in 0..self.kept.len() {
            if self.kept[slot].is_none() && self.recover(slot)? {
                return Ok(Some(slot));
            }
        }
        Ok(None)
    }

    fn kept(&mut self, raw: RawFd) -> Option<(&mut Kept, &mut Window)> {
        let slot = *self.by_descriptor.get(&raw)?;
        let kept = self.kept[slot].as_mut()?;
        Some((kept, &mut self.window))
    }

    /// Something was done to a file: bytes were written at a place, or it was made so long.
    pub fn changed(&mut self, raw: RawFd, at: u64, data: Option<&[u8]>) {
        if let Some((kept, window)) = self.kept(raw)
            && kept.is_complete
        {
            kept.is_complete = kept.log.append(window, (at, data)).unwrap_or(false);
        }
    }

    /// All that was written to a file is to be safe.
    ///
    /// # Errors
    /// If the file cannot be synced, or its log cannot begin anew.
    pub fn sync(&mut self, file: BorrowedFd<'_>, raw: RawFd) -> io::Result<()> {
        let Some((kept, window)) = self.kept(raw) else {
            return Ok(rustix::fs::fdatasync(file)?);
        };
        if kept.is_complete && window.sync(ENTRY).is_ok() {
            return Ok(());
        }
        kept.begin_anew(window, file)
    }

    /// Something was done to a file that the log does not have: its next sync is its own.
    pub fn unseen(&mut self, raw: RawFd) {
        if let Some((kept, _)) = self.kept(raw) {
            kept.is_complete = false;
        }
    }

    /// The same of all files.
    pub fn all_unseen(&mut self) {
        for kept in self.kept.iter_mut().flatten() {
            kept.is_complete = false;
        }
    }

    /// From now on a file is written in ways that nobody tells of, as through a mapping.
    pub fn unseen_for_good(&mut self, raw: RawFd) {
        if let Some((kept, _)) = self.kept(raw) {
            kept.is_complete = false;
            kept.is_unseen = true;
        }
    }

    /// A descriptor is open as another, too.
    pub fn duplicated(&mut self, raw: RawFd, as_well: RawFd) {
        let Some(slot) = self.by_descriptor.get(&raw).copied() else {
            return;
        };
        if let Some(kept) = &mut self.kept[slot] {
            kept.users += 1;
            self.by_descriptor.insert(as_well, slot);
        }
    }

    /// Makes all files safe by themselves, and their logs empty: before somebody else may write them, or their names change.
    /// `file_of` a descriptor is asked for those that are open.
    ///
    /// # Errors
    /// If one of them, or the window, cannot be synced; the others are.
    pub fn settle<'a>(&mut self, file_of: impl Fn(RawFd) -> BorrowedFd<'a>) -> io::Result<()> {
        self.begin_anew(file_of, |_, _| Ok(true))
    }

    /// Names have changed: takes down those of today. The logs are empty ([`Logs::settle`]).
    ///
    /// # Errors
    /// If one of the files, or the window, cannot be synced; the others are.
    pub fn renamed<'a>(&mut self, file_of: impl Fn(RawFd) -> BorrowedFd<'a>) -> io::Result<()> {
        self.begin_anew(file_of, |kept, raw| {
            let path = path_of(raw)?;
            let is_other = path != kept.owner.path;
            // Of a longer one no log can be found again.
            kept.is_unseen |= path.len() > PATH_MAX;
            kept.owner.path = path;
            Ok(is_other)
        })
    }

    /// Each log that is due begins anew, once, whatever descriptors its file has.
    fn begin_anew<'a>(
        &mut self,
        file_of: impl Fn(RawFd) -> BorrowedFd<'a>,
        is_due: impl Fn(&mut Kept, RawFd) -> io::Result<bool>,
    ) -> io::Result<()> {
        let mut done = Ok(());
        for (slot, kept) in self.kept.iter_mut().enumerate() {
            let mut descriptors = self.by_descriptor.iter();
            let raw = descriptors.find_map(|(raw, of)| (*of == slot).then_some(*raw));
            let (Some(kept), Some(raw)) = (kept, raw) else {
                continue;
            };
            let begun = is_due(kept, raw).and_then(|is_due| match is_due {
                true => kept.begin_anew(&mut self.window, file_of(raw)),
                false => Ok(()),
            });
            done = done.and(begun);
        }
        done
    }

    /// A descriptor is about to be closed; with the last of a file's its log is nobody's.
    ///
    /// # Errors
    /// If the file or the window cannot be synced: its log stays, then.
    pub fn closed(&mut self, file: BorrowedFd<'_>, raw: RawFd) -> io::Result<()> {
        let Some(slot) = self.by_descriptor.remove(&raw) else {
            return Ok(());
        };
        let Some(kept) = &mut self.kept[slot] else {
            return Ok(());
        };
        kept.users -= 1;
        if kept.users == 0 {
            rustix::fs::fsync(file)?;
            kept.log
                .begin(&mut self.window, &Owner::default(), clock())?;
            // Who writes the file from now on has no log: the one before must not come back.
            self.window.sync(ENTRY)?;
            self.kept[slot] = None;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
