//! The way to a guest: a protocol by which a virtual machine monitor, or a driver in user space, has a PCI
//! function that lives in another process.
//!
//! The protocol stays behind one seam: [`Function`] is what it needs of a function, and [`Connection`] is one
//! client of it. Everything is worked off by calls; nothing here waits.

mod connection;
mod gather;
mod guest_ram;
mod message;
mod nvme;

pub use connection::{Connection, Step};
pub use guest_ram::GuestRam;
pub use nvme::NvmeFunction;

use rustix::io::Errno;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::rc::Rc;

/// Regions that a PCI function has, as VFIO counts them.
#[allow(missing_docs)]
pub mod region {
    pub const BAR0: u32 = 0;
    /// The byte window, where there is one.
    pub const BAR4: u32 = 4;
    pub const CONFIG: u32 = 7;
    /// With those that there are not: BARs 1 to 3 and 5, expansion ROM, VGA.
    pub const COUNT: u32 = 9;
}

/// Interrupts that a PCI function has, as VFIO counts them.
#[allow(missing_docs)]
pub mod irq {
    pub const MSIX: u32 = 2;
    /// With those that there are not: INTx, MSI, error, request.
    pub const COUNT: u32 = 5;
}

/// Memory that a client lends.
#[derive(Debug)]
pub struct Map {
    /// First address, as the function will name it.
    pub address: u64,
    /// Length, bytes.
    pub bytes: u64,
    /// Where it begins in the file.
    pub offset: u64,
    /// Whether it may be written.
    pub is_writable: bool,
    /// The file; without one, the memory is out of reach.
    pub file: Option<File>,
}

/// A PCI function, as a protocol needs it. Whatever a client asks for is answered, by an error at worst.
pub trait Function {
    /// Length of a region, bytes; 0: there is none.
    fn region_bytes(&self, region: u32) -> u64;

    /// The file of a region that a client may map, and how many bytes from the region's beginning on it can map.
    fn shared(&self, region: u32) -> Option<(Rc<File>, u64)>;

    /// Interrupts of a kind.
    fn interrupts(&self, irq: u32) -> u32;

    /// The client reads a region; the access is within it.
    fn read(&mut self, region: u32, at: u64, into: &mut [u8]);

    /// The client writes a region; the access is within it.
    fn write(&mut self, region: u32, at: u64, from: &[u8]);

    /// The client lends memory.
    ///
    /// # Errors
    /// If it cannot be had.
    fn map(&mut self, map: Map) -> Result<(), Errno>;

    /// The client takes memory back; `None`: all of it.
    ///
    /// # Errors
    /// If it has not lent it as such.
    fn unmap(&mut self, range: Option<(u64, u64)>) -> Result<(), Errno>;

    /// From now on these files are signalled for interrupts from `start` on; where there is none, nothing is.
    ///
    /// # Errors
    /// If there are no such interrupts.
    fn set_interrupts(
        &mut self,
        irq: u32,
        start: u32,
        files: Vec<Option<OwnedFd>>,
    ) -> Result<(), Errno>;

    /// The client resets the function.
    fn reset(&mut self);
}
