//! The file that the byte window's bytes are in, beside that of its drive.
//!
//! Clients map it. One that is gone may keep what it has mapped, so that each has another file: made beside, with what
//! outlasts clients, synced, and then given the name. There is room for all of it before anybody stores there: a store that
//! finds none would end who stores.

use super::file::{open_ordinary, sync_folder};
use super::window::path;
use rustix::fs::{FallocateFlags, OFlags};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// So much is copied at a time.
const PART: usize = 64 << 10;

/// The file, and where in the drive's whole it begins.
#[derive(Debug)]
pub struct WindowFile {
    pub at: u64,
    bytes: u64,
    path: PathBuf,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    /// None before it is first asked for. Its sync is waited for by others than who renews it.
    file: Option<Arc<File>>,
    /// It was made here: it goes with a drive that does not come to be.
    is_made: bool,
}

impl WindowFile {
    /// That of the drive in a file.
    pub fn new(drive: &Path, at: u64, bytes: u64) -> Self {
        WindowFile {
            at,
            bytes,
            path: path(drive),
            open: Mutex::default(),
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn about(&self, error: io::Error) -> io::Error {
        let path = self.path.display();
        let what = match error.kind() {
            io::ErrorKind::NotFound => {
                format!("its byte window, `{path}`, is missing: the two files belong together")
            }
            _ => format!("its byte window, in `{path}`: {error}"),
        };
        io::Error::new(error.kind(), what)
    }

    /// The file, as of now.
    ///
    /// # Errors
    /// If there is none, or it cannot be used.
    pub fn file(&self) -> io::Result<Arc<File>> {
        let mut open = self.open();
        if let Some(file) = &open.file {
            return Ok(Arc::clone(file));
        }
        let file = open_ordinary(&self.path, OFlags::empty());
        let file = Arc::new(file.map_err(|error| self.about(error))?);
        open.file = Some(Arc::clone(&file));
        Ok(file)
    }

    /// It is there from now on, all zeros, and has room for all of it. What is there already may be that of a drive whose
    /// maker was stopped.
    ///
    /// # Errors
    /// If something else is, or it cannot be.
    pub fn make(&self) -> io::Result<()> {
        let was_there = self.path.exists();
        let file = open_ordinary(&self.path, OFlags::CREATE);
        let file = file.map_err(|error| self.about(error))?;
        if was_there && holds_something(&file).map_err(|error| self.about(error))? {
            let what = "the file is there already, and no new drive's; move it away";
            return Err(self.about(io::Error::new(io::ErrorKind::AlreadyExists, what)));
        }
        let mut open = self.open();
        open.is_made = true;
        file.set_len(self.bytes)?;
        take_room(&file, self.bytes).map_err(|error| self.about(error))?;
        open.file = Some(Arc::new(file));
        Ok(())
    }

    /// It is not there any more, if it was made here.
    pub fn unmake(&self) {
        let mut open = self.open();
        if open.is_made {
            let _ = std::fs::remove_file(&self.path);
            *open = Open::default();
        }
    }

    /// Another file takes its place, with these ranges of what it held. Returns it.
    ///
    /// # Errors
    /// If it cannot be made. Then the old one stays.
    pub fn renew(&self, ranges: &[(u64, u64)]) -> io::Result<File> {
        let mut name = OsString::from(&self.path);
        name.push(".new");
        let beside = PathBuf::from(name);
        // One that is there was left by who was stopped here.
        let _ = std::fs::remove_file(&beside);
        let renewed = self.renewed(&beside, ranges);
        if renewed.is_err() {
            let _ = std::fs::remove_file(&beside);
        }
        renewed
    }

    fn renewed(&self, beside: &Path, ranges: &[(u64, u64)]) -> io::Result<File> {
        let new = open_ordinary(beside, OFlags::CREATE | OFlags::EXCL)?;
        new.set_len(self.bytes)?;
        take_room(&new, self.bytes)?;
        let old = self.file()?;
        let mut part = vec![0; PART];
        for &(offset, length) in ranges {
            let end = self.bytes.min(offset.saturating_add(length));
            for at in (offset..end).step_by(PART) {
                let part = &mut part[..(end - at).min(PART as u64) as usize];
                read_what_is_there(&old, part, at)?;
                if part.iter().any(|byte| *byte != 0) {
                    new.write_all_at(part, at)?;
                }
            }
        }
        new.sync_all()?;
        // Once it has the name nothing may fail: the old one would be written to, and the new one found.
        let file = new.try_clone()?;
        std::fs::rename(beside, &self.path)?;
        sync_folder(&self.path);
        self.open().file = Some(Arc::new(new));
        Ok(file)
    }
}

fn take_room(file: &File, bytes: u64) -> io::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes) {
        // Where that cannot be done it is done as bytes are stored.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        other => Ok(other?),
    }
}

/// A client can cut the file that it has mapped; what it has cut off holds what it would if the client had stored zeros.
fn read_what_is_there(file: &File, mut into: &mut [u8], mut at: u64) -> io::Result<()> {
    while !into.is_empty() {
        match file.read_at(into, at) {
            Ok(0) => {
                into.fill(0);
                return Ok(());
            }
            Ok(count) => {
                into = &mut into[count..];
                at += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn holds_something(file: &File) -> io::Result<bool> {
    let mut part = vec![0; PART];
    let bytes = file.metadata()?.len();
    for at in (0..bytes).step_by(PART) {
        let part = &mut part[..(bytes - at).min(PART as u64) as usize];
        file.read_exact_at(part, at)?;
        if part.iter().any(|byte| *byte != 0) {
            return Ok(true);
        }
    }
    Ok(false)
}
