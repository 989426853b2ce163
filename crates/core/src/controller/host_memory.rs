//! What the drive keeps in the host's memory: bytes that the host can read and change, and that may be out of
//! reach.

use super::integrity::Rejected;
use serde::{Deserialize, Serialize};

/// Host memory is not where the drive was told, or not the drive's any more: an address that nobody answers, a
/// mapping that is gone.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("host memory is out of reach")]
pub struct OutOfReach;

/// Host memory lent to the drive, as a range of bytes from offset 0.
pub trait HostMemory {
    /// Whether there are bytes. Where there are none, entries are genuine by construction, only
    /// their cost is charged, and the work of encoding them compiles away.
    const KEEPS_BYTES: bool;

    /// The drive uses `bytes` of it from now on, in place of what it used before. What they hold is the
    /// host's affair.
    fn granted(&mut self, bytes: u64);

    /// Reads `into.len()` bytes at `offset`, within what was granted.
    ///
    /// # Errors
    /// If they are out of reach. The drive then does what it does with bytes that fail their check.
    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), OutOfReach>;

    /// Writes `from` at `offset`, within what was granted.
    ///
    /// # Errors
    /// If that is out of reach. The drive then gives all of it up: what stands there now would be taken
    /// for what it wanted to write.
    fn write(&mut self, offset: u64, from: &[u8]) -> Result<(), OutOfReach>;
}

/// No bytes: for speed.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, Default)]
pub struct Modelled;

impl HostMemory for Modelled {
    const KEEPS_BYTES: bool = false;

    #[inline]
    fn granted(&mut self, _: u64) {}
    #[inline]
    fn read(&self, _: u64, _: &mut [u8]) -> Result<(), OutOfReach> {
        Ok(())
    }
    #[inline]
    fn write(&mut self, _: u64, _: &[u8]) -> Result<(), OutOfReach> {
        Ok(())
    }
}

/// The bytes themselves, for everybody to change.
#[derive(Clone, Serialize, Deserialize, Debug, Default)]
pub struct Bytes(pub Vec<u8>);

impl HostMemory for Bytes {
    const KEEPS_BYTES: bool = true;

    fn granted(&mut self, bytes: u64) {
        self.0.resize(bytes as usize, 0);
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), OutOfReach> {
        let there = self.0.get(offset as usize..).ok_or(OutOfReach)?;
        into.copy_from_slice(there.get(..into.len()).ok_or(OutOfReach)?);
        Ok(())
    }

    fn write(&mut self, offset: u64, from: &[u8]) -> Result<(), OutOfReach> {
        let there = self.0.get_mut(offset as usize..).ok_or(OutOfReach)?;
        let there = there.get_mut(..from.len()).ok_or(OutOfReach)?;
        there.copy_from_slice(from);
        Ok(())
    }
}

/// Host memory as the drive uses it: it remembers when a write did not reach it.
#[derive(Clone, Serialize, Deserialize, Debug, Default)]
pub struct Lent<M> {
    /// What the host lends.
    pub memory: M,
    failed: bool,
}

impl<M: HostMemory> Lent<M> {
    /// Memory that has not failed.
    #[must_use]
    pub fn new(memory: M) -> Self {
        Lent {
            memory,
            failed: false,
        }
    }

    /// Whether a write has not reached it since it was granted: nothing there may be trusted.
    #[inline]
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// The drive uses `bytes` of it from now on.
    pub fn granted(&mut self, bytes: u64) {
        self.failed = false;
        self.memory.granted(bytes);
    }

    /// Reads bytes at `offset`.
    ///
    /// # Errors
    /// If they are out of reach, as if they had failed their check.
    #[inline]
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Rejected> {
        self.memory
            .read(offset, into)
            .map_err(|OutOfReach| Rejected)
    }

    /// Writes bytes at `offset`; that they did not get there shows in [`Lent::has_failed`].
    #[inline]
    pub fn write(&mut self, offset: u64, from: &[u8]) {
        self.failed |= self.memory.write(offset, from).is_err();
    }
}
