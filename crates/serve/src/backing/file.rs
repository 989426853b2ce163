//! The files of a drive: a sparse one, and of drives with a byte window one for that.

use super::disk::Disk;
use super::window_file::WindowFile;
use rustix::fs::{FallocateFlags, FlockOperation, Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// No other server gets the file as long as this one has it.
///
/// # Errors
/// If another has it, or files like it cannot be locked.
pub fn lock(file: &File) -> io::Result<()> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => {
            let what = "another server has it in use";
            Err(io::Error::new(io::ErrorKind::ResourceBusy, what))
        }
        Err(errno) => Err(errno.into()),
    }
}

/// A sparse file that no other server has; and one for the byte window, of drives with one.
#[derive(Debug)]
pub struct FileDisk {
    file: File,
    window: Option<WindowFile>,
}

/// Opens a file, or makes one that only its owner can read (`OFlags::CREATE`).
///
/// # Errors
/// If it is no ordinary file, or cannot be written.
pub fn open_ordinary(path: &Path, make: OFlags) -> io::Result<File> {
    // Opening a pipe must not wait for its other end.
    let flags = OFlags::RDWR | OFlags::CLOEXEC | make;
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR);
    let no_file = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
    let file = File::from(file.map_err(|errno| match errno {
        Errno::LOOP => no_file("it is a symbolic link: name the file itself"),
        Errno::ISDIR => no_file("it is a folder"),
        Errno::NXIO => no_file("it is a socket, or a device that is not there"),
        errno => errno.into(),
    })?);
    if !file.metadata()?.is_file() {
        return Err(no_file("it is no ordinary file"));
    }
    Ok(file)
}

/// Makes sure that a file is still there, by that name, after the machine has stopped.
pub fn sync_folder(path: &Path) {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    // Where folders cannot be synced, nothing better can be done.
    if let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) {
        let _ = folder.sync_all();
    }
}

impl FileDisk {
    /// Opens a file, or makes one that only its owner can read. `window`: where the byte window is, and how long.
    ///
    /// # Errors
    /// If it is no ordinary file, cannot be written, or another server has it.
    pub fn open(path: &Path, window: Option<(u64, u64)>) -> io::Result<Self> {
        let file = open_ordinary(path, OFlags::CREATE)?;
        lock(&file)?;
        let window = window.map(|(at, length)| WindowFile::new(path, at, length));
        Ok(FileDisk { file, window })
    }

    /// Does something to the file that a place is in, at its place there.
    fn at<T>(&self, at: u64, then: impl FnOnce(&File, u64) -> io::Result<T>) -> io::Result<T> {
        match self.window.as_ref().filter(|window| at >= window.at) {
            Some(window) => then(&*window.file()?, at - window.at),
            None => then(&self.file, at),
        }
    }

    fn write_zeros(&self, from: u64, end: u64) -> io::Result<()> {
        let mut at = from;
        while let Some(data) = self.next_data(at)?.filter(|data| *data < end) {
            let bytes = (end - data).min(ZEROS.len() as u64);
            self.write(data, &ZEROS[..bytes as usize])?;
            at = data + bytes;
        }
        Ok(())
    }
}

/// Where the next byte is that may not be zero.
fn next_data(file: &File, at: u64) -> io::Result<Option<u64>> {
    match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(data) => Ok(Some(data)),
        Err(Errno::NXIO) => Ok(None),
        Err(Errno::INVAL) if at < file.metadata()?.len() => Ok(Some(at)),
        Err(errno) => Err(errno.into()),
    }
}

impl Disk for FileDisk {
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.at(at, |file, at| file.read_exact_at(into, at))
    }

    fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
        self.at(at, |file, at| file.write_all_at(from, at))
    }

    fn punch(&self, at: u64, bytes: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let punched = self.at(at, |file, at| {
            Ok(rustix::fs::fallocate(file, flags, at, bytes))
        });
        match punched? {
            // Not every file system can.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.write_zeros(at, at + bytes),
            other => Ok(other?),
        }
    }

    fn sync(&self) -> io::Result<()> {
        if let Some(window) = &self.window {
            window.file()?.sync_data()?;
        }
        self.file.sync_data()
    }

    fn next_data(&self, at: u64) -> io::Result<Option<u64>> {
        let data = self.at(at, next_data)?;
        match self.window.as_ref().map(|window| window.at) {
            Some(begin) if at >= begin => Ok(data.map(|data| begin + data)),
            Some(begin) if data.is_none() => self.next_data(begin),
            _ => Ok(data),
        }
    }

    fn bytes(&self) -> io::Result<u64> {
        let bytes = self.file.metadata()?.len();
        match &self.window {
            Some(window) if bytes >= window.at => Ok(window.at + window.file()?.metadata()?.len()),
            _ => Ok(bytes),
        }
    }

    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        let Some(window) = &self.window else {
            return self.file.set_len(bytes);
        };
        // That of the window is made first: a drive whose own file has its length has that, too.
        match bytes > window.at {
            true => window.make()?,
            false => window.unmake(),
        }
        self.file.set_len(bytes.min(window.at))
    }

    fn renew_window(&self, ranges: &[(u64, u64)]) -> io::Result<Option<File>> {
        let window = self.window.as_ref();
        window.map(|window| window.renew(ranges)).transpose()
    }
}
