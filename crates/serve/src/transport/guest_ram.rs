//! The guest's memory: what a client has lent, by the addresses the guest knows it by.

use super::Map;
use lodger_guest_ram::Mapping;
use lodger_wire::memory::{GuestMemory, MemoryError};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::rc::Rc;

/// Most pieces at once, whatever a client asks for.
const AREAS_MAX: usize = 4096;

/// A piece.
#[derive(Debug)]
struct Area {
    address: u64,
    bytes: u64,
    /// None where the client has lent no file: nothing is there.
    mapping: Option<Mapping>,
}

#[derive(Debug, Default)]
struct Areas {
    /// By address; none overlaps another.
    areas: RefCell<Vec<Area>>,
    /// Where the last access was.
    last: Cell<usize>,
    /// The function may not access it.
    is_closed: Cell<bool>,
    /// An access has met memory that is lent without a file.
    met_no_file: Cell<bool>,
}

/// The guest's memory. Clones are of the same memory.
///
/// Each access looks its address up anew, so memory may come and go at any time between two.
#[derive(Clone, Debug, Default)]
pub struct GuestRam(Rc<Areas>);

impl GuestRam {
    /// Memory is there from now on.
    ///
    /// # Errors
    /// If some of it is there already, or the file cannot be mapped so.
    pub fn map(&self, map: &Map) -> Result<(), Errno> {
        let end = map.address.checked_add(map.bytes).ok_or(Errno::INVAL)?;
        if map.bytes == 0 {
            return Err(Errno::INVAL);
        }
        let mut areas = self.0.areas.borrow_mut();
        let at = areas.partition_point(|area| area.address < map.address);
        let before = at.checked_sub(1).map(|before| &areas[before]);
        let overlaps = before.is_some_and(|area| area.address + area.bytes > map.address)
            || areas.get(at).is_some_and(|area| area.address < end);
        if overlaps {
            return Err(Errno::EXIST);
        }
        if areas.len() >= AREAS_MAX {
            return Err(Errno::NOSPC);
        }
        let lent = map.file.as_ref();
        let mapping = lent.map(|file| Mapping::new(file, map.offset, map.bytes, map.is_writable));
        let mapping = mapping.transpose();
        let mapping =
            mapping.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::INVAL))?;
        let (address, bytes) = (map.address, map.bytes);
        areas.insert(
            at,
            Area {
                address,
                bytes,
                mapping,
            },
        );
        Ok(())
    }

    /// Memory is not there any more: all pieces within the range.
    ///
    /// # Errors
    /// If there is none, or the range has a part of one.
    pub fn unmap(&self, address: u64, bytes: u64) -> Result<(), Errno> {
        let end = address.checked_add(bytes).ok_or(Errno::INVAL)?;
        let mut areas = self.0.areas.borrow_mut();
        let touches = |area: &Area| area.address < end && area.address + area.bytes > address;
        let is_within = |area: &Area| area.address >= address && area.address + area.bytes <= end;
        if areas.iter().any(|area| touches(area) && !is_within(area)) {
            return Err(Errno::INVAL);
        }
        let before = areas.len();
        areas.retain(|area| !is_within(area));
        match areas.len() < before {
            true => Ok(()),
            false => Err(Errno::NOENT),
        }
    }

    /// Nothing is there any more.
    pub fn clear(&self) {
        self.0.areas.borrow_mut().clear();
    }

    /// Whether the function may access it at all, from now on; if not, accesses end as if nothing were there.
    pub fn set_open(&self, is_open: bool) {
        self.0.is_closed.set(!is_open);
    }

    /// Whether an access has met memory, since this was asked last, that a client has lent without a file. It has to be asked for
    /// by messages (DMA_READ and DMA_WRITE of vfio-user), which is not done: such an access ends as if nothing were there.
    /// Monitors lend device memory so, without harm; what a guest uses as memory is lent so by mistake.
    #[must_use]
    pub fn take_met_no_file(&self) -> bool {
        self.0.met_no_file.take()
    }

    /// Bytes that are there.
    #[must_use]
    pub fn mapped_bytes(&self) -> u64 {
        self.0.areas.borrow().iter().map(|area| area.bytes).sum()
    }

    /// Goes through the pieces that an access touches; each gets the mapping, the offset in it, and which
    /// bytes of the access.
    #[inline]
    fn each(
        &self,
        address: u64,
        length: usize,
        mut access: impl FnMut(&Mapping, u64, std::ops::Range<usize>) -> bool,
    ) -> Result<(), MemoryError> {
        let error = MemoryError {
            address,
            length: length as u64,
        };
        if self.0.is_closed.get() {
            return Err(error);
        }
        let areas = self.0.areas.borrow();
        let mut done = 0;
        while done < length {
            let at = address.checked_add(done as u64).ok_or(error)?;
            let has = |area: &&Area| at >= area.address && at - area.address < area.bytes;
            let area = match areas.get(self.0.last.get()).filter(has) {
                Some(area) => area,
                None => {
                    let next = areas.partition_point(|area| area.address <= at);
                    let index = next.checked_sub(1).ok_or(error)?;
                    self.0.last.set(index);
                    areas.get(index).filter(has).ok_or(error)?
                }
            };
            let within = at - area.address;
            let bytes = (area.bytes - within).min((length - done) as u64) as usize;
            let Some(mapping) = &area.mapping else {
                self.0.met_no_file.set(true);
                return Err(error);
            };
            if !access(mapping, within, done..done + bytes) {
                return Err(error);
            }
            done += bytes;
        }
        Ok(())
    }
}

impl GuestMemory for GuestRam {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        self.each(address, into.len(), |mapping, at, range| {
            mapping.read(at, &mut into[range]).is_ok()
        })
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        self.each(address, from.len(), |mapping, at, range| {
            mapping.write(at, &from[range]).is_ok()
        })
    }

    fn load_u32(&self, address: u64) -> Result<u32, MemoryError> {
        let mut value = 0;
        self.each(address, 4, |mapping, at, range| {
            let loaded = mapping.load_u32(at).ok().filter(|_| range.len() == 4);
            value = loaded.unwrap_or(0);
            loaded.is_some()
        })?;
        Ok(value)
    }

    fn store_u32(&self, address: u64, value: u32) -> Result<(), MemoryError> {
        self.each(address, 4, |mapping, at, range| {
            range.len() == 4 && mapping.store_u32(at, value).is_ok()
        })
    }
}

/// Memory of this process that clients map, from address 0 on.
#[derive(Debug)]
pub struct SharedMemory(Mapping);

/// Such memory of zeros, and the file by which it is mapped. Nobody can change the file's length.
///
/// # Errors
/// If there is none.
pub fn shared_memory(bytes: u64) -> std::io::Result<(File, SharedMemory)> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(rustix::fs::memfd_create("byte window", flags)?);
    file.set_len(bytes)?;
    let mapping = Mapping::new(&file, 0, bytes, true)?;
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals)?;
    Ok((file, SharedMemory(mapping)))
}

fn outside(address: u64, length: usize) -> MemoryError {
    let length = length as u64;
    MemoryError { address, length }
}

impl GuestMemory for SharedMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        let length = into.len();
        let done = self.0.read(address, into);
        done.map_err(|_| outside(address, length))
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        let done = self.0.write(address, from);
        done.map_err(|_| outside(address, from.len()))
    }

    fn load_u32(&self, address: u64) -> Result<u32, MemoryError> {
        self.0.load_u32(address).map_err(|_| outside(address, 4))
    }

    fn store_u32(&self, address: u64, value: u32) -> Result<(), MemoryError> {
        let done = self.0.store_u32(address, value);
        done.map_err(|_| outside(address, 4))
    }
}
