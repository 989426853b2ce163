//! The file under a backing, as little as is asked of it: tests put another in its place, which loses what was
//! not synced, or is full.

use std::fmt::Debug;
use std::io;

/// Bytes that outlive the process. What is written outlives the machine once [`Disk::sync`] has ended.
pub trait Disk: Debug + Send + Sync {
    /// Fills `into` with the bytes from `at` on.
    ///
    /// # Errors
    /// If they cannot be read.
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()>;

    /// Writes all of `from`.
    ///
    /// # Errors
    /// If not all of it could be written.
    fn write(&self, at: u64, from: &[u8]) -> io::Result<()>;

    /// Nothing is there any more but zeros, and it takes no room.
    ///
    /// # Errors
    /// If something may be left.
    fn punch(&self, at: u64, bytes: u64) -> io::Result<()>;

    /// All that was written or punched before outlives the machine.
    ///
    /// # Errors
    /// If that is not certain.
    fn sync(&self) -> io::Result<()>;

    /// Where the next byte is that may not be zero, from `at` on; `None`: nowhere.
    ///
    /// # Errors
    /// If that cannot be found out.
    fn next_data(&self, at: u64) -> io::Result<Option<u64>>;

    /// How long it is.
    ///
    /// # Errors
    /// If that cannot be found out.
    fn bytes(&self) -> io::Result<u64>;

    /// It is longer now, by zeros.
    ///
    /// # Errors
    /// If it cannot be as long.
    fn set_bytes(&self, bytes: u64) -> io::Result<()>;
}

#[cfg(target_os = "linux")]
pub use file::{FileDisk, lock};

#[cfg(target_os = "linux")]
mod file {
    use super::Disk;
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

    /// A sparse file that no other server has.
    #[derive(Debug)]
    pub struct FileDisk(File);

    impl FileDisk {
        /// Opens a file, or makes one that only its owner can read.
        ///
        /// # Errors
        /// If it is no ordinary file, cannot be written, or another server has it.
        pub fn open(path: &Path) -> io::Result<Self> {
            // Opening a pipe must not wait for its other end.
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
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
            lock(&file)?;
            Ok(FileDisk(file))
        }

        /// Makes sure that the file is still there after the machine has stopped.
        pub(crate) fn sync_folder(path: &Path) {
            let folder = path
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty());
            // Where folders cannot be synced, nothing better can be done.
            if let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) {
                let _ = folder.sync_all();
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

    impl Disk for FileDisk {
        fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
            self.0.read_exact_at(into, at)
        }

        fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
            self.0.write_all_at(from, at)
        }

        fn punch(&self, at: u64, bytes: u64) -> io::Result<()> {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            match rustix::fs::fallocate(&self.0, flags, at, bytes) {
                // Not every file system can.
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.write_zeros(at, at + bytes),
                other => Ok(other?),
            }
        }

        fn sync(&self) -> io::Result<()> {
            self.0.sync_data()
        }

        fn next_data(&self, at: u64) -> io::Result<Option<u64>> {
            match rustix::fs::seek(&self.0, SeekFrom::Data(at)) {
                Ok(data) => Ok(Some(data)),
                Err(Errno::NXIO) => Ok(None),
                Err(Errno::INVAL) if at < self.bytes()? => Ok(Some(at)),
                Err(errno) => Err(errno.into()),
            }
        }

        fn bytes(&self) -> io::Result<u64> {
            Ok(self.0.metadata()?.len())
        }

        fn set_bytes(&self, bytes: u64) -> io::Result<()> {
            self.0.set_len(bytes)
        }
    }
}
