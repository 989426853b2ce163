//! What the drive keeps in the host's memory: bytes that the host can read and change.

/// Host memory lent to the drive, as a range of bytes from offset 0.
pub trait HostMemory {
    /// Whether there are bytes. Where there are none, entries are genuine by construction, only
    /// their cost is charged, and the work of encoding them compiles away.
    const KEEPS_BYTES: bool;

    /// The host has granted `bytes` in place of what it had granted before. What they hold is the
    /// host's affair.
    fn granted(&mut self, bytes: u64);

    /// Reads `into.len()` bytes at `offset`, within what was granted.
    fn read(&self, offset: u64, into: &mut [u8]);

    /// Writes `from` at `offset`, within what was granted.
    fn write(&mut self, offset: u64, from: &[u8]);
}

/// No bytes: for speed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Modelled;

impl HostMemory for Modelled {
    const KEEPS_BYTES: bool = false;

    #[inline]
    fn granted(&mut self, _: u64) {}
    #[inline]
    fn read(&self, _: u64, _: &mut [u8]) {}
    #[inline]
    fn write(&mut self, _: u64, _: &[u8]) {}
}

/// The bytes themselves, for everybody to change.
#[derive(Clone, Debug, Default)]
pub struct Bytes(pub Vec<u8>);

impl HostMemory for Bytes {
    const KEEPS_BYTES: bool = true;

    fn granted(&mut self, bytes: u64) {
        self.0.resize(bytes as usize, 0);
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.0[offset as usize..][..into.len()]);
    }

    fn write(&mut self, offset: u64, from: &[u8]) {
        self.0[offset as usize..][..from.len()].copy_from_slice(from);
    }
}
