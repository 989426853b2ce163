//! The host's memory as a controller sees it: addresses that may or may not lead anywhere.

use crate::status::Status;
use std::sync::atomic::{AtomicU8, Ordering, fence};

/// An access to host memory failed: nothing is mapped there, or not for this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no memory for {length} bytes at {address:#x}")]
pub struct MemoryError {
    /// First byte of the access.
    pub address: u64,
    /// Its length, bytes.
    pub length: u64,
}

/// A command that cannot reach its data ends with Data Transfer Error. A retry may find it mapped.
impl From<MemoryError> for Status {
    fn from(_: MemoryError) -> Status {
        Status::DATA_TRANSFER_ERROR
    }
}

/// The host's memory. Guests may change it at any time, so nothing is read twice on trust.
///
/// Addresses are translated at each access: firmware and drivers map and unmap while a controller runs.
pub trait GuestMemory {
    /// Fills `into` from `address` on.
    ///
    /// # Errors
    /// If any byte is not there; `into` then holds anything.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError>;

    /// Writes `from` to `address` on.
    ///
    /// # Errors
    /// If any byte is not there, or may not be written; part may then be written.
    fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError>;

    /// Reads four aligned bytes at once; what the host wrote before them is then seen (acquire).
    /// Doorbells in memory need it.
    ///
    /// # Errors
    /// As [`GuestMemory::read`].
    fn load_u32(&self, address: u64) -> Result<u32, MemoryError>;

    /// Writes four aligned bytes at once; who sees them sees what was written before (release).
    /// Completion entries and doorbells in memory need it.
    ///
    /// # Errors
    /// As [`GuestMemory::write`].
    fn store_u32(&self, address: u64, value: u32) -> Result<(), MemoryError>;
}

impl<M: GuestMemory + ?Sized> GuestMemory for &M {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        (**self).read(address, into)
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        (**self).write(address, from)
    }

    fn load_u32(&self, address: u64) -> Result<u32, MemoryError> {
        (**self).load_u32(address)
    }

    fn store_u32(&self, address: u64, value: u32) -> Result<(), MemoryError> {
        (**self).store_u32(address, value)
    }
}

/// Memory from address 0 on, byte by byte: for tests and examples, where host and controller take turns. Four
/// bytes at once are not at once for other threads.
#[derive(Debug)]
pub struct Ram(Box<[AtomicU8]>);

impl Ram {
    /// So many bytes, all 0.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Ram((0..bytes).map(|_| AtomicU8::new(0)).collect())
    }

    fn part(&self, address: u64, length: usize) -> Result<&[AtomicU8], MemoryError> {
        let part = usize::try_from(address).ok().and_then(|start| {
            let end = start.checked_add(length)?;
            self.0.get(start..end)
        });
        let length = length as u64;
        part.ok_or(MemoryError { address, length })
    }
}

impl GuestMemory for Ram {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        let part = self.part(address, into.len())?;
        for (to, from) in into.iter_mut().zip(part) {
            *to = from.load(Ordering::Relaxed);
        }
        Ok(())
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        let part = self.part(address, from.len())?;
        for (to, from) in part.iter().zip(from) {
            to.store(*from, Ordering::Relaxed);
        }
        Ok(())
    }

    fn load_u32(&self, address: u64) -> Result<u32, MemoryError> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        fence(Ordering::Acquire);
        Ok(u32::from_le_bytes(bytes))
    }

    fn store_u32(&self, address: u64, value: u32) -> Result<(), MemoryError> {
        fence(Ordering::Release);
        self.write(address, &value.to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_outside_is_an_error() {
        let ram = Ram::new(16);
        assert_eq!(ram.write(12, &[1, 2, 3, 4]), Ok(()));
        assert_eq!(ram.load_u32(12), Ok(0x0403_0201));
        let (address, length) = (13, 4);
        assert_eq!(ram.load_u32(13), Err(MemoryError { address, length }));
        assert!(ram.read(u64::MAX, &mut [0; 2]).is_err());
        assert!(ram.read(16, &mut []).is_ok());
    }
}
