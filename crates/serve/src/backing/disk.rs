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

    /// Where the byte window is in a file of its own: it is in another from now on, which holds these ranges of it,
    /// offset and length, bytes. Returns that file; whoever has mapped the last one reaches nothing with it.
    ///
    /// # Errors
    /// If it cannot be; then it is where it was.
    fn renew_window(&self, _ranges: &[(u64, u64)]) -> io::Result<Option<std::fs::File>> {
        Ok(None)
    }
}

#[cfg(target_os = "linux")]
pub use super::file::{FileDisk, lock};
