//! The bytes of the drive's pages, where the model says they are: in slots of the write buffer, in flash, in
//! the payload of requests on their way (the module `payload`).
//!
//! A page's bytes exist once, however often the drive copies them: buffer, flash and reads under way share
//! them. What is superseded or trimmed is freed once that is in flash, so memory follows what the drive holds. Pages that were
//! never written, and those the host memory's map names by mistake, read as zeros. Or flash is in a file
//! ([`crate::backing`]), and only what has not got there is in memory.

use crate::backing::window::InFile;
use crate::backing::{Backing, Op};
use crate::flash::Flash;
use crate::payload::Payload;
use crate::window::WindowBytes;
use lodger_core::device::{Contents, PageBytes, Programmed, Source, Spare};
use lodger_core::ftl::{Owned, Trim};
use lodger_core::ids::{BufferSlot, Lpn, Ppn};
use std::sync::Arc;

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;
/// Bytes of a sector, of which a bit of a mask stands for one.
const SECTOR: usize = 512;
/// A page's bytes; `None`: zeros.
pub(crate) type Page = Option<Arc<PageBytes>>;

pub(crate) const ZEROS: PageBytes = [0; PAGE as usize];

/// Bytes of the pages of a drive.
#[derive(Debug)]
pub struct Pages {
    flash: Flash,
    buffer: Vec<Page>,
    /// The bytes of the byte window, if the drive has one.
    pub window: WindowBytes,
}

impl Pages {
    /// A drive that holds nothing, with a byte window of that size.
    pub fn new(window_bytes: u64) -> Self {
        Pages {
            flash: Flash::default(),
            buffer: Vec::new(),
            window: WindowBytes::new(window_bytes),
        }
    }

    /// Pages that flash holds the bytes of: those of newest data, and older ones not erased yet.
    #[must_use]
    pub fn pages_in_flash(&self) -> usize {
        self.flash.pages()
    }

    /// Every byte of pages is gone, of those that hold nothing any more and of those that do. The window's stay.
    pub fn forget_all(&mut self) {
        self.flash.forget_all();
        self.buffer.clear();
    }

    /// Flash is in a file from now on, and so is the window.
    pub fn keep_in(&mut self, backing: Backing) {
        if let Some(window) = InFile::new(&backing.log.disk, &backing.log.layout) {
            self.window.keep_in(Box::new(window));
        }
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
        self.window.written_to(file.backing.log.done_to());
        let passed = &mut file.backing.log.passed;
        (!passed.is_empty()).then(|| std::mem::take(passed))
    }

    /// The window's bytes, with all that is to be there by now.
    pub(crate) fn window_now(&mut self) -> &mut WindowBytes {
        if let Flash::File(file) = &self.flash {
            self.window.written_to(file.backing.log.done_to());
        }
        &mut self.window
    }

    /// Whoever has mapped the window may have stored something there, which the next barrier makes safe; or a host has
    /// switched the drive on, which has not been switched off from now on.
    pub(crate) fn is_in_use(&mut self) {
        if let Some(backing) = self.backing() {
            backing.log.push(Op::Used);
        }
    }

    /// Ranges of the window hold zeros from now on.
    pub(crate) fn clear_window(&mut self, ranges: Vec<(u64, u64)>) {
        match self.backing() {
            Some(backing) => drop(backing.log.push(Op::ClearWindow(ranges))),
            None => ranges
                .iter()
                .for_each(|(from, length)| self.window.clear(*from, *length)),
        }
    }

    /// Bytes of the window for the drive itself, as [`Pages::at`].
    fn of_window(&mut self, at: u64, into: &mut [u8]) {
        if self.window_now().try_read(at, into).is_err() {
            into.fill(0);
            let what = "the bytes of its window cannot be read";
            self.flash.break_down(std::io::Error::other(what));
        }
    }

    /// Whether flash is in a file.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        matches!(self.flash, Flash::File(_))
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

impl Contents for Pages {
    const HAS_BYTES: bool = true;
    const HEARS_OF_DEAD: bool = true;

    type Payload = Payload;

    fn payload(_: u32) -> Payload {
        Payload::default()
    }

    fn arrive(&mut self, payload: &mut Payload, lpn: Lpn, slot: BufferSlot, _: u8) {
        self.put_in_buffer(slot, payload.brought(lpn));
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

    fn protect(&mut self, lpn: Lpn, slot: BufferSlot, sequence: u32) {
        let page = self.at(Source::Buffer(slot));
        if let Some(backing) = self.backing() {
            backing.protect(lpn, sequence, page);
        }
    }

    fn record_trims(&mut self, trims: &[Trim]) {
        if let Flash::File(file) = &mut self.flash {
            file.backing.record_trims(trims);
        }
    }

    fn read(&mut self, payload: &mut Payload, lpn: Lpn, source: Source, _sectors: u8) {
        match self.flash_at(source) {
            Ok(page) => payload.add_page(lpn, page),
            Err(_) => payload.is_unread = true,
        }
    }

    fn page(&self, _: Lpn, source: Source) -> PageBytes {
        self.at(source).map_or(ZEROS, |page| *page)
    }

    fn set_buffered(&mut self, slot: BufferSlot, page: &PageBytes) {
        self.put_in_buffer(slot, Some(Arc::new(*page)));
    }

    fn read_bytes(&mut self, payload: &mut Payload, lpn: Lpn, page: &PageBytes, _sectors: u8) {
        payload.add_page(lpn, Some(Arc::new(*page)));
    }

    fn load(&mut self, payload: &mut Payload, offset_bytes: u64, length_bytes: u64) {
        let mut bytes = vec![0; length_bytes as usize];
        self.of_window(offset_bytes, &mut bytes);
        payload.add_copy(&bytes);
    }

    fn pin(&mut self, window_slot: u32, _: Lpn, source: Source) {
        let page = self.flash_at(source).unwrap_or_else(|_| {
            self.window.is_unread();
            None
        });
        let Some(backing) = self.backing() else {
            let page = page.as_deref().unwrap_or(&ZEROS);
            self.window.set_page(window_slot, page);
            return;
        };
        let (slot, held) = (window_slot, page.clone());
        let number = backing.log.push(Op::Pin { slot, page: held });
        self.window.on_the_way(window_slot, number, page);
    }

    fn unpin(&mut self, window_slot: u32, slot: BufferSlot) {
        let mut page = ZEROS;
        self.of_window(u64::from(window_slot) * PAGE, &mut page);
        self.put_in_buffer(slot, Some(Arc::new(page)));
    }

    fn lose(&mut self, offset_bytes: u64, length_bytes: u64) {
        self.clear_window(vec![(offset_bytes, length_bytes)]);
    }
}
