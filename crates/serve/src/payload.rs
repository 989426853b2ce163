//! What a request of the drive brings from the guest's memory, and what goes there.
//!
//! A payload belongs to a request of the drive, from its submission to its completion. Where the data lies in the
//! guest's memory is found out once, when the command is fetched; each access is translated anew. A write's data is
//! taken from there then, all of it: a block is old or new, also where a command ends with an error (AWUPF, NVM Command Set
//! §2.1.4.2), so nothing may be written before all has come. What was read goes there when the completion does.

use crate::contents::{PAGE, Page, ZEROS};
use lodger_core::ids::Lpn;
use lodger_wire::PageSize;
use lodger_wire::memory::{GuestMemory, MemoryError};
use lodger_wire::status::Status;
use lodger_wire::transfer::{DataPointer, Region};
use std::sync::Arc;

/// What a request brings, and what is read for it. Without data: of a flush, a trim, or of zeros to be written.
#[derive(Clone, Debug, Default)]
pub struct Payload {
    data: Option<Box<Data>>,
    /// Some of what it reads could not be had from the file that keeps it.
    pub(crate) is_unread: bool,
}

/// Data in the guest's memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Data {
    /// Where on the drive it begins, bytes.
    offset_bytes: u64,
    /// How much it is.
    length_bytes: u64,
    /// Its pieces there, each with where in the data it begins.
    regions: Vec<(u64, Region)>,
    /// Pages read for it, or taken in for a write, from its first on.
    pages: Vec<Page>,
    /// Bytes of the window that were copied for it.
    copy: Vec<u8>,
}

/// Data of commands that have ended, for those to come: with as many in flight as before, none allocates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spare(Vec<Payload>);

/// Most that are spared: what four deep queues have in flight.
const SPARED_MAX: usize = 256;
/// Pieces, pages and copied bytes that one may have room for: that of a command of 128 KiB.
const SPARED_PIECES_MAX: usize = 64;

impl Spare {
    /// A command has ended that had this.
    pub(crate) fn keep(&mut self, mut payload: Payload) {
        let Some(data) = &mut payload.data else {
            return;
        };
        data.regions.clear();
        data.pages.clear();
        data.copy.clear();
        let room = [
            data.regions.capacity(),
            data.pages.capacity(),
            data.copy.capacity(),
        ];
        if self.0.len() < SPARED_MAX && room.iter().all(|&room| room <= SPARED_PIECES_MAX) {
            payload.is_unread = false;
            self.0.push(payload);
        }
    }
}

impl Data {
    /// Goes through the pieces of `length` bytes of the data from `at` on.
    fn pieces(
        &self,
        at: u64,
        length: u64,
        mut each: impl FnMut(Option<u64>, usize, usize) -> Result<(), MemoryError>,
    ) -> Result<(), MemoryError> {
        let mut index = self.regions.partition_point(|(start, _)| *start <= at);
        index = index.saturating_sub(1);
        let mut done = 0;
        while done < length {
            let missing = MemoryError {
                address: 0,
                length: length - done,
            };
            let (start, region) = *self.regions.get(index).ok_or(missing)?;
            let within = at + done - start;
            let bytes = region.bytes.saturating_sub(within).min(length - done);
            let address = region.address.map(|address| address + within);
            each(address, done as usize, bytes as usize)?;
            done += bytes;
            index += 1;
        }
        Ok(())
    }

    fn fetch(
        &self,
        memory: &impl GuestMemory,
        at: u64,
        into: &mut [u8],
    ) -> Result<(), MemoryError> {
        self.pieces(at, into.len() as u64, |address, from, bytes| {
            let part = &mut into[from..from + bytes];
            address.map_or(Ok(()), |address| memory.read(address, part))
        })
    }

    fn hand_over(
        &self,
        memory: &impl GuestMemory,
        at: u64,
        from: &[u8],
    ) -> Result<(), MemoryError> {
        self.pieces(at, from.len() as u64, |address, start, bytes| {
            let part = &from[start..start + bytes];
            address.map_or(Ok(()), |address| memory.write(address, part))
        })
    }

    /// Pages of the data that were read, each with where in the data its part begins.
    fn read_parts(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let (first, end) = (
            self.offset_bytes / PAGE,
            self.offset_bytes + self.length_bytes,
        );
        self.pages.iter().enumerate().map(move |(index, page)| {
            let start = (first + index as u64) * PAGE;
            let (from, to) = (start.max(self.offset_bytes), (start + PAGE).min(end));
            let bytes: &[u8] = page.as_ref().map_or(&ZEROS, |page| &page[..]);
            let part = &bytes[(from - start) as usize..(to - start) as usize];
            (from - self.offset_bytes, part)
        })
    }

    /// Parts of the drive's pages that it goes to or comes from: where each begins on the drive, and its length, bytes.
    fn parts(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (mut from, end) = (self.offset_bytes, self.offset_bytes + self.length_bytes);
        std::iter::from_fn(move || {
            let to = (from - from % PAGE + PAGE).min(end);
            let part = (from, to - from);
            from = to;
            (part.1 > 0).then_some(part)
        })
    }
}

impl Payload {
    /// Data in the guest's memory, of bytes of the drive from `offset_bytes` on. `to_host`: whether it goes there.
    ///
    /// # Errors
    /// If the guest does not say properly where it is.
    pub(crate) fn of_guest(
        memory: &impl GuestMemory,
        (offset_bytes, length_bytes): (u64, u64),
        pointer: &DataPointer,
        page: PageSize,
        to_host: bool,
        spare: &mut Spare,
    ) -> Result<Self, Status> {
        let mut payload = spare.0.pop().unwrap_or_default();
        let data = payload.data.get_or_insert_default();
        (data.offset_bytes, data.length_bytes) = (offset_bytes, length_bytes);
        let mut start = 0;
        for region in pointer.regions(memory, page, length_bytes, to_host) {
            let region = region?;
            data.regions.push((start, region));
            start += region.bytes;
        }
        Ok(payload)
    }

    /// All that a write brings is taken from the guest's memory.
    ///
    /// # Errors
    /// [`Status::DATA_TRANSFER_ERROR`] if some of it cannot be had.
    pub(crate) fn take_in(&mut self, memory: &impl GuestMemory) -> Result<(), Status> {
        let Some(data) = &mut self.data else {
            return Ok(());
        };
        for (from, length) in data.parts() {
            let mut page = Arc::new(ZEROS);
            let within = (from % PAGE) as usize;
            let to = &mut Arc::make_mut(&mut page)[within..][..length as usize];
            data.fetch(memory, from - data.offset_bytes, to)?;
            data.pages.push(Some(page));
        }
        data.regions.clear();
        Ok(())
    }

    /// What a write brings for a page; the rest of it is zeros.
    pub(crate) fn brought(&self, lpn: Lpn) -> Page {
        let data = self.data.as_ref()?;
        let index = u64::from(lpn.0).checked_sub(data.offset_bytes / PAGE)?;
        data.pages.get(index as usize)?.clone()
    }

    /// A page was read for it.
    pub(crate) fn add_page(&mut self, lpn: Lpn, page: Page) {
        let Some(data) = &mut self.data else { return };
        let first = data.offset_bytes / PAGE;
        let Some(index) = u64::from(lpn.0).checked_sub(first) else {
            return;
        };
        let index = index as usize;
        if index >= data.pages.len() {
            data.pages.resize(index + 1, None);
        }
        data.pages[index] = page;
    }

    /// Bytes were copied for it, after those before.
    pub(crate) fn add_copy(&mut self, bytes: &[u8]) {
        if let Some(data) = &mut self.data {
            data.copy.extend_from_slice(bytes);
        }
    }

    /// Whether all that it reads could be had.
    ///
    /// # Errors
    /// [`Status::UNRECOVERED_READ_ERROR`] if not.
    pub(crate) fn was_read(&self) -> Result<(), Status> {
        match self.is_unread {
            true => Err(Status::UNRECOVERED_READ_ERROR),
            false => Ok(()),
        }
    }

    /// What was read goes to the guest.
    ///
    /// # Errors
    /// If it was not all read, or the guest's memory is not there any more.
    pub(crate) fn deliver(&self, memory: &impl GuestMemory) -> Result<(), Status> {
        self.was_read()?;
        let Some(data) = &self.data else {
            return Ok(());
        };
        for (at, part) in data.read_parts() {
            data.hand_over(memory, at, part)?;
        }
        Ok(())
    }

    /// What was copied goes to the guest.
    ///
    /// # Errors
    /// If its memory is not there any more.
    pub(crate) fn deliver_copy(&self, memory: &impl GuestMemory) -> Result<(), MemoryError> {
        match &self.data {
            Some(data) => data.hand_over(memory, 0, &data.copy),
            None => Ok(()),
        }
    }

    /// Whether what was read is what the guest has.
    ///
    /// # Errors
    /// [`Status::COMPARE_FAILURE`] if not; or if it was not all read, or the guest's memory is not there any more.
    pub(crate) fn compare(&self, memory: &impl GuestMemory) -> Result<(), Status> {
        self.was_read()?;
        let Some(data) = &self.data else {
            return Ok(());
        };
        let mut own = ZEROS;
        for (at, part) in data.read_parts() {
            let own = &mut own[..part.len()];
            data.fetch(memory, at, own)?;
            if own != part {
                return Err(Status::COMPARE_FAILURE);
            }
        }
        Ok(())
    }
}
