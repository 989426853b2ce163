//! The bytes of the drive's pages, where the model says they are: in slots of the write buffer, in flash, in
//! commands on their way.
//!
//! A page's bytes exist once, however often the drive copies them: buffer, flash and reads under way share
//! them. What is superseded or trimmed is freed once that is in flash, so memory follows what the drive holds. Pages that were
//! never written, and those the host memory's map names by mistake, read as zeros. Or flash is in a file
//! ([`crate::backing`]), and only what has not got there is in memory.
//!
//! Data of commands comes from the guest's memory when the model takes it ([`Contents::arrive`]) and goes
//! there when a completion does ([`Pages::deliver`]). Where it lies there is found out once, when the
//! command is fetched; each access is translated anew.

use crate::backing::Backing;
use crate::flash::Flash;
use crate::window::WindowBytes;
use lodger_core::device::{Contents, PageBytes, Programmed, Source, Spare};
use lodger_core::ftl::{Owned, Trim};
use lodger_core::ids::{BufferSlot, Lpn, Ppn};
use lodger_wire::PageSize;
use lodger_wire::memory::{GuestMemory, MemoryError};
use lodger_wire::status::Status;
use lodger_wire::transfer::{DataPointer, Region};
use std::sync::Arc;

/// Bytes of a page.
const PAGE: u64 = 4096;
/// Bytes of a sector, of which a bit of a mask stands for one.
const SECTOR: usize = 512;
/// A page's bytes; `None`: zeros.
pub(crate) type Page = Option<Arc<PageBytes>>;

/// What a command's data is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Payload {
    /// It has none, or is over.
    #[default]
    None,
    /// It is in the guest's memory, or goes there.
    Guest,
    /// Zeros, to be written.
    Zeros,
}

/// A command's data.
#[derive(Debug, Default)]
struct Data {
    payload: Payload,
    /// It goes there.
    to_host: bool,
    /// Where on the drive it begins, bytes.
    offset_bytes: u64,
    /// How much it is.
    length_bytes: u64,
    /// Its pieces in the guest's memory, each with where in the data it begins.
    regions: Vec<(u64, Region)>,
    /// All of it, once it was taken in beforehand ([`Pages::take_in`]).
    taken_in: Option<Vec<u8>>,
    /// Pages read for it, from its first on.
    pages: Vec<Page>,
    /// Some of it could not be had from the guest's memory.
    failed: bool,
    /// Some of it could not be read from the file that keeps it.
    unread: bool,
    /// Bytes of the window that were copied for it.
    copy: Vec<u8>,
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
        if let Some(all) = &self.taken_in {
            into.copy_from_slice(&all[at as usize..][..into.len()]);
            return Ok(());
        }
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
}

const ZEROS: PageBytes = [0; PAGE as usize];

/// Bytes of the pages of a drive, and data of the commands under way.
#[derive(Debug)]
pub struct Pages<M> {
    memory: M,
    flash: Flash,
    buffer: Vec<Page>,
    /// By tag.
    data: Vec<Data>,
    /// The bytes of the byte window, if the drive has one.
    pub window: WindowBytes,
}

impl<M: GuestMemory> Pages<M> {
    /// A drive that holds nothing, for hosts with this memory, with a byte window of that size.
    pub fn new(memory: M, window_bytes: u64) -> Self {
        Pages {
            memory,
            flash: Flash::default(),
            buffer: Vec::new(),
            data: Vec::new(),
            window: WindowBytes::new(window_bytes),
        }
    }

    /// Pages that flash holds the bytes of: those of newest data, and older ones not erased yet.
    #[must_use]
    pub fn pages_in_flash(&self) -> usize {
        self.flash.pages()
    }

    /// Every byte is gone, of pages that hold nothing any more and of those that do.
    pub fn forget_all(&mut self) {
        self.flash.forget_all();
        self.buffer.clear();
        self.window.clear(0, u64::MAX);
    }

    /// Flash is in a file from now on.
    pub fn keep_in(&mut self, backing: Backing) {
        self.flash = Flash::File(Box::new(crate::flash::InFile::new(backing)));
    }

    /// The file that flash is in, if it is in one.
    pub fn backing(&mut self) -> Option<&mut Backing> {
        match &mut self.flash {
            Flash::Memory(_) => None,
            Flash::File(file) => Some(&mut file.backing),
        }
    }

    /// Barriers in the file that are behind, each with whether all before it is safe; `None` without any.
    pub(crate) fn passed(&mut self) -> Option<Vec<(u64, bool)>> {
        let Flash::File(file) = &mut self.flash else {
            return None;
        };
        if file.backing.log.waits() {
            file.backing.log.pump();
            file.release_written();
        }
        let passed = &mut file.backing.log.passed;
        (!passed.is_empty()).then(|| std::mem::take(passed))
    }

    /// Whether flash is in a file.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        matches!(self.flash, Flash::File(_))
    }

    /// Whether all that a command reads could be had.
    ///
    /// # Errors
    /// [`Status::UNRECOVERED_READ_ERROR`] if not.
    pub fn was_read(&self, tag: u32) -> Result<(), Status> {
        match self.data.get(tag as usize) {
            Some(data) if data.unread => Err(Status::UNRECOVERED_READ_ERROR),
            _ => Ok(()),
        }
    }

    fn data_mut(&mut self, tag: u32) -> &mut Data {
        let tag = tag as usize;
        if tag >= self.data.len() {
            self.data.resize_with(tag + 1, Data::default);
        }
        &mut self.data[tag]
    }

    /// A command with data in the guest's memory. `to_host`: whether it goes there.
    ///
    /// # Errors
    /// If the guest does not say properly where it is.
    pub fn begin(
        &mut self,
        tag: u32,
        (offset_bytes, length_bytes): (u64, u64),
        pointer: &DataPointer,
        page: PageSize,
        to_host: bool,
    ) -> Result<(), Status> {
        let mut regions = std::mem::take(&mut self.data_mut(tag).regions);
        regions.clear();
        let mut start = 0;
        for region in pointer.regions(&self.memory, page, length_bytes, to_host) {
            let region = region?;
            regions.push((start, region));
            start += region.bytes;
        }
        let data = self.data_mut(tag);
        data.regions = regions;
        data.payload = Payload::Guest;
        data.to_host = to_host;
        (data.failed, data.unread) = (false, false);
        data.taken_in = None;
        data.pages.clear();
        (data.offset_bytes, data.length_bytes) = (offset_bytes, length_bytes);
        Ok(())
    }

    /// A command that writes zeros.
    pub fn begin_zeros(&mut self, tag: u32) {
        let data = self.data_mut(tag);
        data.payload = Payload::Zeros;
        data.failed = false;
        data.pages.clear();
    }

    /// A command without data, or one that is over. Its guest's memory is not touched any more.
    pub fn end(&mut self, tag: u32) {
        let data = self.data_mut(tag);
        data.payload = Payload::None;
        data.regions.clear();
        data.taken_in = None;
        data.pages.clear();
        data.copy = Vec::new();
    }

    /// The guest's memory is about to be out of reach: data of the commands under way that has not come yet comes now,
    /// as what has begun may still be carried out.
    pub fn take_in(&mut self) {
        let memory = &self.memory;
        let under_way = self.data.iter_mut();
        for data in under_way.filter(|data| data.payload == Payload::Guest) {
            if !data.to_host && data.taken_in.is_none() {
                let mut all = vec![0; data.length_bytes as usize];
                let mut at = 0;
                while at < data.length_bytes {
                    // Page by page of the drive: one that cannot be had is zeros, as [`Contents::arrive`] has it.
                    let bytes = PAGE - (data.offset_bytes + at) % PAGE;
                    let end = (at + bytes).min(data.length_bytes);
                    let part = &mut all[at as usize..end as usize];
                    if data.fetch(memory, at, part).is_err() {
                        data.failed = true;
                        part.fill(0);
                    }
                    at = end;
                }
                data.taken_in = Some(all);
            }
            data.regions.clear();
        }
    }

    /// All commands are over.
    pub fn end_all(&mut self) {
        self.data.clear();
    }

    /// Whether all of a write's data could be had.
    ///
    /// # Errors
    /// [`Status::DATA_TRANSFER_ERROR`] if not.
    pub fn arrived(&self, tag: u32) -> Result<(), Status> {
        match self.data.get(tag as usize) {
            Some(data) if data.failed => Err(Status::DATA_TRANSFER_ERROR),
            _ => Ok(()),
        }
    }

    /// What a command has read goes to the guest.
    ///
    /// # Errors
    /// If its memory is not there any more.
    pub fn deliver(&self, tag: u32) -> Result<(), MemoryError> {
        let Some(data) = self.data.get(tag as usize) else {
            return Ok(());
        };
        for (at, part) in data.read_parts() {
            data.hand_over(&self.memory, at, part)?;
        }
        Ok(())
    }

    /// Bytes that were copied for a command, after those before.
    pub(crate) fn take_copy(&mut self, tag: u32, bytes: &[u8]) {
        self.data_mut(tag).copy.extend_from_slice(bytes);
    }

    /// What was copied for a command goes to the guest.
    pub(crate) fn deliver_copy(&self, tag: u32) -> Result<(), MemoryError> {
        match self.data.get(tag as usize) {
            Some(data) => data.hand_over(&self.memory, 0, &data.copy),
            None => Ok(()),
        }
    }

    /// Whether what a command has read is what the guest has.
    ///
    /// # Errors
    /// If its memory is not there any more.
    pub fn compare(&self, tag: u32) -> Result<bool, MemoryError> {
        let Some(data) = self.data.get(tag as usize) else {
            return Ok(true);
        };
        let mut own = ZEROS;
        for (at, part) in data.read_parts() {
            let own = &mut own[..part.len()];
            data.fetch(&self.memory, at, own)?;
            if own != part {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A page for the drive itself, which has nobody to tell that it cannot be read: it stands for what is
    /// lost, and the file is not written to any more.
    fn at(&self, source: Source) -> Page {
        self.flash_at(source).unwrap_or_else(|error| {
            self.flash.break_down(error);
            None
        })
    }

    fn flash_at(&self, source: Source) -> std::io::Result<Page> {
        match source {
            Source::Buffer(slot) => Ok(self.buffer.get(slot.index()).cloned().flatten()),
            Source::Flash(ppn) => self.flash.get(ppn),
            Source::Unwritten => Ok(None),
        }
    }

    fn put_in_buffer(&mut self, slot: BufferSlot, page: Page) {
        if slot.index() >= self.buffer.len() {
            self.buffer.resize(slot.index() + 1, None);
        }
        self.buffer[slot.index()] = page;
    }

    fn note_read(&mut self, tag: u32, lpn: Lpn, page: Page) {
        let data = self.data_mut(tag);
        if data.payload != Payload::Guest {
            return;
        }
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
}

/// The bytes that a mask of sectors stands for. The sectors of a command's part of a page are neighbours.
fn range_of(sectors: u8) -> std::ops::Range<usize> {
    let first = sectors.trailing_zeros() as usize;
    let end = 8 - sectors.leading_zeros() as usize;
    SECTOR * first.min(end)..SECTOR * end
}

fn overlay(onto: &mut PageBytes, from: &PageBytes, sectors: u8) {
    for sector in (0..8).filter(|sector| sectors >> sector & 1 != 0) {
        let range = sector * SECTOR..(sector + 1) * SECTOR;
        onto[range.clone()].copy_from_slice(&from[range]);
    }
}

/// `newer`, where it was written, over `older`.
fn laid_over(older: Page, newer: &Page, written: u8) -> Page {
    if older.is_none() && newer.is_none() {
        return None;
    }
    let mut page = older.unwrap_or_else(|| Arc::new(ZEROS));
    let newer: &PageBytes = newer.as_ref().map_or(&ZEROS, |newer| newer);
    overlay(Arc::make_mut(&mut page), newer, written);
    Some(page)
}

impl<M: GuestMemory> Contents for Pages<M> {
    const HAS_BYTES: bool = true;
    const HEARS_OF_DEAD: bool = true;

    fn arrive(&mut self, tag: u32, lpn: Lpn, slot: BufferSlot, sectors: u8) {
        let mut page = None;
        if let Some(data) = self.data.get_mut(tag as usize)
            && data.payload == Payload::Guest
        {
            let mut bytes = Arc::new(ZEROS);
            let range = range_of(sectors);
            let start = u64::from(lpn.0) * PAGE + range.start as u64;
            let to = &mut Arc::make_mut(&mut bytes)[range];
            let at = start.checked_sub(data.offset_bytes);
            if at.is_none_or(|at| data.fetch(&self.memory, at, to).is_err()) {
                data.failed = true;
                to.fill(0);
            }
            page = Some(bytes);
        }
        self.put_in_buffer(slot, page);
    }

    fn merge(&mut self, _: Lpn, slot: BufferSlot, source: Source, written: u8) {
        let newer = self.at(Source::Buffer(slot));
        let page = laid_over(self.at(source), &newer, written);
        self.put_in_buffer(slot, page);
    }

    fn absorb(&mut self, from: BufferSlot, to: BufferSlot, sectors: u8) {
        let newer = self.at(Source::Buffer(from));
        let older = self.buffer.get_mut(to.index()).and_then(Option::take);
        let page = match sectors {
            u8::MAX => newer,
            _ => laid_over(older, &newer, sectors),
        };
        self.put_in_buffer(to, page);
    }

    fn program(&mut self, from: BufferSlot, to: Ppn) {
        let page = self.at(Source::Buffer(from));
        self.flash.put(to, page);
    }

    fn relocate(&mut self, _: Owned, from: Ppn, to: Ppn) {
        let page = self.at(Source::Flash(from));
        self.flash.put(to, page);
    }

    fn discard(&mut self, ppn: Ppn) {
        self.flash.discard(ppn);
    }

    fn erase(&mut self, first: Ppn, slots: u32) {
        self.flash.erase(first, slots);
    }

    fn tear(&mut self, first: Ppn, slots: u32) {
        self.flash.tear(first, slots);
    }

    fn keeps_spare(&self) -> bool {
        self.is_kept()
    }

    fn programmed(&mut self, unit: &Programmed, spare: impl Iterator<Item = Spare>) {
        if let Flash::File(file) = &mut self.flash {
            file.programmed(unit, spare);
        }
    }

    fn record_trims(&mut self, trims: &[Trim]) {
        if let Flash::File(file) = &mut self.flash {
            file.backing.record_trims(trims);
        }
    }

    fn read(&mut self, tag: u32, lpn: Lpn, source: Source, _sectors: u8) {
        match self.flash_at(source) {
            Ok(page) => self.note_read(tag, lpn, page),
            Err(_) => self.data_mut(tag).unread = true,
        }
    }

    fn page(&self, _: Lpn, source: Source) -> PageBytes {
        self.at(source).map_or(ZEROS, |page| *page)
    }

    fn set_buffered(&mut self, slot: BufferSlot, page: &PageBytes) {
        self.put_in_buffer(slot, Some(Arc::new(*page)));
    }

    fn read_bytes(&mut self, tag: u32, lpn: Lpn, page: &PageBytes, _sectors: u8) {
        self.note_read(tag, lpn, Some(Arc::new(*page)));
    }

    fn load(&mut self, tag: u32, offset_bytes: u64, length_bytes: u64) {
        let mut bytes = vec![0; length_bytes as usize];
        self.window.read(offset_bytes, &mut bytes);
        self.take_copy(tag, &bytes);
    }

    fn pin(&mut self, window_slot: u32, _: Lpn, source: Source) {
        let page = self.flash_at(source).ok();
        let page = page.map(|page| page.map_or(ZEROS, |page| *page));
        self.window.set_page(window_slot, page.as_ref());
    }

    fn unpin(&mut self, window_slot: u32, slot: BufferSlot) {
        let page = self.window.page(window_slot);
        self.put_in_buffer(slot, Some(Arc::new(page)));
    }

    fn lose(&mut self, offset_bytes: u64, length_bytes: u64) {
        self.window.clear(offset_bytes, length_bytes);
    }
}
