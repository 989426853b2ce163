//! A host's memory that knows who may touch what: each page is granted to the controller for reading, for writing, for
//! neither, or is not mapped at all. What the controller does without a grant is kept as a breach.

use lodger_core::rng::mix;
use lodger_wire::memory::{GuestMemory, MemoryError};
use std::cell::RefCell;

pub const PAGE: usize = 4096;
/// Where it begins: high, and no number that stands in a structure by chance.
pub const BASE: u64 = 0x005A_C3E7_0000_0000;
/// Bytes of pages that nobody has written.
const FRESH: [u8; PAGE] = [0; PAGE];

/// A page by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Page(pub usize);

impl Page {
    pub fn address(self) -> u64 {
        BASE + (self.0 * PAGE) as u64
    }
}

/// What a controller may do to a page. Grants are counted: a page may be granted twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
    Both,
}

#[derive(Debug, Default)]
struct Frame {
    bytes: Option<Box<[u8; PAGE]>>,
    readers: u16,
    writers: u16,
    /// Nothing is there for the controller, though the host has it.
    is_unmapped: bool,
}

#[derive(Debug)]
struct Inner {
    frames: Vec<Frame>,
    breaches: Vec<String>,
    /// Of all accesses so far, in order.
    digest: u64,
}

#[derive(Debug)]
pub struct Watched(RefCell<Inner>);

impl Watched {
    pub fn new(pages: usize) -> Self {
        Watched(RefCell::new(Inner {
            frames: (0..pages).map(|_| Frame::default()).collect(),
            breaches: Vec::new(),
            digest: 0,
        }))
    }

    pub fn grant(&self, page: Page, access: Access) {
        let frame = &mut self.0.borrow_mut().frames[page.0];
        frame.readers += u16::from(access != Access::Write);
        frame.writers += u16::from(access != Access::Read);
    }

    pub fn revoke(&self, page: Page, access: Access) {
        let frame = &mut self.0.borrow_mut().frames[page.0];
        frame.readers -= u16::from(access != Access::Write);
        frame.writers -= u16::from(access != Access::Read);
    }

    /// Nothing is granted any more, but for the pages from `first` on.
    pub fn revoke_all_before(&self, first: Page) {
        for frame in &mut self.0.borrow_mut().frames[..first.0] {
            (frame.readers, frame.writers) = (0, 0);
        }
    }

    pub fn set_mapped(&self, page: Page, is_mapped: bool) {
        self.0.borrow_mut().frames[page.0].is_unmapped = !is_mapped;
    }

    pub fn set_all_mapped(&self, is_mapped: bool) {
        for frame in &mut self.0.borrow_mut().frames {
            frame.is_unmapped = !is_mapped;
        }
    }

    /// As a process that begins anew finds it.
    pub fn forget_all(&self) {
        for frame in &mut self.0.borrow_mut().frames {
            frame.bytes = None;
        }
    }

    /// What the controller has done that it must not, the first first.
    pub fn breach(&self) -> Option<String> {
        self.0.borrow().breaches.first().cloned()
    }

    pub fn digest(&self) -> u64 {
        self.0.borrow().digest
    }

    /// The host's own access.
    pub fn peek(&self, address: u64, into: &mut [u8]) {
        let inner = self.0.borrow();
        inner.each(address, into.len(), |page, at, range| {
            let bytes = inner.frames[page].bytes.as_deref().unwrap_or(&FRESH);
            into[range.clone()].copy_from_slice(&bytes[at..at + range.len()]);
        });
    }

    pub fn poke(&self, address: u64, from: &[u8]) {
        let inner = &mut *self.0.borrow_mut();
        let mut frames = std::mem::take(&mut inner.frames);
        inner.each(address, from.len(), |page, at, range| {
            let bytes = frames[page].bytes.get_or_insert_with(|| Box::new(FRESH));
            bytes[at..at + range.len()].copy_from_slice(&from[range]);
        });
        inner.frames = frames;
    }

    /// Whether the controller finds memory there; keeps in mind whether it may.
    fn may(&self, address: u64, length: usize, access: Access) -> Result<(), MemoryError> {
        let inner = &mut *self.0.borrow_mut();
        let error = MemoryError {
            address,
            length: length as u64,
        };
        let start = address.checked_sub(BASE).ok_or(error)?;
        let end = start.checked_add(length as u64).ok_or(error)?;
        if end > (inner.frames.len() * PAGE) as u64 {
            return Err(error);
        }
        let step = address ^ (length as u64) << 48 ^ u64::from(access == Access::Read) << 47;
        inner.digest = mix(inner.digest ^ step);
        for page in start as usize / PAGE..(end as usize).div_ceil(PAGE) {
            let frame = &inner.frames[page];
            if frame.is_unmapped {
                return Err(error);
            }
            let grants = match access {
                Access::Read => frame.readers,
                _ => frame.writers,
            };
            if grants == 0 && inner.breaches.len() < 8 {
                let within = start as usize;
                inner.breaches.push(format!(
                    "access to host memory that is not granted: {access:?} of {length} bytes at byte {within:#x}, page {page}"
                ));
            }
        }
        Ok(())
    }
}

impl Inner {
    fn each(
        &self,
        address: u64,
        length: usize,
        mut each: impl FnMut(usize, usize, std::ops::Range<usize>),
    ) {
        let (mut at, mut done) = ((address - BASE) as usize, 0);
        while done < length {
            let bytes = (PAGE - at % PAGE).min(length - done);
            each(at / PAGE, at % PAGE, done..done + bytes);
            (at, done) = (at + bytes, done + bytes);
        }
    }
}

impl GuestMemory for Watched {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        self.may(address, into.len(), Access::Read)?;
        self.peek(address, into);
        Ok(())
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        self.may(address, from.len(), Access::Write)?;
        self.poke(address, from);
        Ok(())
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
