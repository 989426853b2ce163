//! The bytes of the byte window, in a file of their own: whoever may map the window is not to reach the rest of the drive.
//!
//! What is stored there by who has mapped it is in that file at once, and outlives this process. What the drive itself puts there
//! goes through the log, behind what must be safe before.

use super::disk::Disk;
use super::layout::{Layout, PAGE};
use lodger_core::device::PageBytes;
use lodger_wire::memory::{GuestMemory, MemoryError};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file of a window, beside that of its drive.
pub fn path(drive: &Path) -> PathBuf {
    let mut name = OsString::from(drive);
    name.push(".window");
    PathBuf::from(name)
}

/// The window, as memory.
#[derive(Debug)]
pub struct InFile {
    disk: Arc<dyn Disk>,
    at: u64,
    bytes: u64,
}

impl InFile {
    /// That of a drive that has one.
    pub fn new(disk: &Arc<dyn Disk>, layout: &Layout) -> Option<Self> {
        let (at, bytes) = layout.window()?;
        let disk = Arc::clone(disk);
        Some(InFile { disk, at, bytes })
    }

    fn place(&self, address: u64, length: usize) -> Result<u64, MemoryError> {
        let length = length as u64;
        let end = address.checked_add(length);
        match end.is_some_and(|end| end <= self.bytes) {
            true => Ok(self.at + address),
            false => Err(MemoryError { address, length }),
        }
    }
}

impl GuestMemory for InFile {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        let length = into.len() as u64;
        let read = self.disk.read(self.place(address, into.len())?, into);
        read.map_err(|_| MemoryError { address, length })
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        let length = from.len() as u64;
        let written = self.disk.write(self.place(address, from.len())?, from);
        written.map_err(|_| MemoryError { address, length })
    }

    fn load_u32(&self, address: u64) -> Result<u32, MemoryError> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn store_u32(&self, address: u64, value: u32) -> Result<(), MemoryError> {
        self.write(address, &value.to_le_bytes())
    }
}

/// A page of it holds this.
pub fn write(disk: &dyn Disk, layout: &Layout, slot: u32, page: &PageBytes) -> io::Result<()> {
    let (at, bytes) = layout.window().unwrap_or_default();
    let place = u64::from(slot) * PAGE;
    assert!(place + PAGE <= bytes, "pinned pages are within the window");
    disk.write(at + place, page)
}

/// Goes through the pages of ranges that hold something.
fn each_held(
    disk: &dyn Disk,
    layout: &Layout,
    ranges: &[(u64, u64)],
    mut then: impl FnMut(u64, &mut [u8]) -> io::Result<bool>,
) -> io::Result<bool> {
    let (at, bytes) = layout.window().unwrap_or_default();
    let mut page = [0; PAGE as usize];
    for &(offset, length) in ranges {
        let end = at + bytes.min(offset.saturating_add(length));
        let mut next = at + offset.min(bytes);
        while next < end
            && let Some(data) = disk.next_data(next)?
            && data < end
        {
            let part = &mut page[..(end - data).min(PAGE - data % PAGE) as usize];
            disk.read(data, part)?;
            if part.iter().any(|byte| *byte != 0) && then(data, part)? {
                return Ok(true);
            }
            next = data + part.len() as u64;
        }
    }
    Ok(false)
}

/// Whether anything but zeros stands in some ranges.
pub fn holds_any(disk: &dyn Disk, layout: &Layout, ranges: &[(u64, u64)]) -> io::Result<bool> {
    each_held(disk, layout, ranges, |_, _| Ok(true))
}

/// Ranges hold zeros. They are not punched: there must be room for what is stored there next.
pub fn clear(disk: &dyn Disk, layout: &Layout, ranges: &[(u64, u64)]) -> io::Result<()> {
    each_held(disk, layout, ranges, |at, page| {
        page.fill(0);
        disk.write(at, page)?;
        Ok(false)
    })?;
    Ok(())
}
