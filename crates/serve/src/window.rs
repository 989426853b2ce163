//! The bytes of the byte window, while power is there.
//!
//! They are memory that its users may have mapped: what is stored there shows at once, and nobody tells the drive. So
//! the bytes that are there as a call of the drive looks at them are the ones that count. What may be stored when is
//! not guarded: bytes that no entry covers lead nowhere, and are gone with the next power cut.

use crate::contents::{Page, ZEROS};
use lodger_core::device::PageBytes;
use lodger_wire::memory::{GuestMemory, MemoryError, Ram};
use std::collections::BTreeMap;
use std::fmt;

/// Bytes of a page.
const PAGE: u64 = 4096;

/// The bytes; addresses are offsets from the window's beginning.
pub struct WindowBytes {
    /// None before it is first used: it may be lent memory until then.
    memory: Option<Box<dyn GuestMemory>>,
    bytes: u64,
    /// A page that was to be pinned could not be read.
    unread: bool,
    /// Pages that are to be there, and have not got to the file that the window is in: the number that its log gave each.
    on_the_way: BTreeMap<u32, (u64, Page)>,
}

impl fmt::Debug for WindowBytes {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "WindowBytes({} bytes)", self.bytes)
    }
}

impl WindowBytes {
    /// A window of that size, of zeros.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        WindowBytes {
            memory: None,
            bytes,
            unread: false,
            on_the_way: BTreeMap::new(),
        }
    }

    /// It is in a file from now on, which keeps what it holds.
    pub(crate) fn keep_in(&mut self, file: Box<dyn GuestMemory>) {
        self.memory = Some(file);
    }

    /// A page of it will hold this, once the file's log has come to that number.
    pub(crate) fn on_the_way(&mut self, slot: u32, number: u64, page: Page) {
        self.on_the_way.insert(slot, (number, page));
    }

    /// The file's log has come to that number.
    pub(crate) fn written_to(&mut self, done_to: u64) {
        if !self.on_the_way.is_empty() {
            self.on_the_way.retain(|_, (number, _)| *number > done_to);
        }
    }

    /// Length, bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn memory(&mut self) -> &dyn GuestMemory {
        let bytes = self.bytes as usize;
        &**self.memory.get_or_insert_with(|| Box::new(Ram::new(bytes)))
    }

    /// It is in that memory from now on, which is all zeros and as long. Of what it held these ranges come along:
    /// offset and length, bytes.
    pub fn lie_in(
        &mut self,
        memory: Box<dyn GuestMemory>,
        ranges: impl Iterator<Item = (u64, u64)>,
    ) {
        if self.memory.is_some() {
            let mut page = [0; PAGE as usize];
            for at in ranges.flat_map(|(from, length)| (from..from + length).step_by(PAGE as usize))
            {
                self.read(at, &mut page);
                // It is as long, and zeros.
                if page != [0; PAGE as usize] {
                    let _ = memory.write(at, &page);
                }
            }
        }
        self.memory = Some(memory);
    }

    /// Bytes from `at` on; beyond the end, and where they cannot be read, zeros.
    pub fn read(&mut self, at: u64, into: &mut [u8]) {
        if self.try_read(at, into).is_err() {
            into.fill(0);
        }
    }

    /// Bytes from `at` on; beyond the end, zeros.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(crate) fn try_read(&mut self, at: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        let inside = self.bytes.saturating_sub(at).min(into.len() as u64);
        let (inside, beyond) = into.split_at_mut(inside as usize);
        beyond.fill(0);
        if inside.is_empty() {
            return Ok(());
        }
        self.memory().read(at, inside)?;
        let end = at + inside.len() as u64;
        let slots = (at / PAGE) as u32..end.div_ceil(PAGE) as u32;
        for (slot, (_, page)) in self.on_the_way.range(slots) {
            let start = u64::from(*slot) * PAGE;
            let (from, to) = (start.max(at), (start + PAGE).min(end));
            let page: &PageBytes = page.as_ref().map_or(&ZEROS, |page| page);
            let newer = &page[(from - start) as usize..(to - start) as usize];
            inside[(from - at) as usize..(to - at) as usize].copy_from_slice(newer);
        }
        Ok(())
    }

    /// Stores bytes from `at` on; what lies beyond the end is dropped.
    pub fn write(&mut self, at: u64, from: &[u8]) {
        let inside = self.bytes.saturating_sub(at).min(from.len() as u64);
        // It is all there, so this cannot fail.
        let _ = self.memory().write(at, &from[..inside as usize]);
    }

    /// A page of it holds this.
    pub(crate) fn set_page(&mut self, slot: u32, page: &PageBytes) {
        self.write(u64::from(slot) * PAGE, page);
    }

    /// A page that is to be pinned could not be read.
    pub(crate) fn is_unread(&mut self) {
        self.unread = true;
    }

    /// Whether a page that was to be pinned could not be read since the last time this was asked.
    pub(crate) fn take_unread(&mut self) -> bool {
        std::mem::take(&mut self.unread)
    }

    /// Zeros from now on.
    pub(crate) fn clear(&mut self, from: u64, length: u64) {
        if self.memory.is_none() {
            return;
        }
        let end = self.bytes.min(from.saturating_add(length));
        let mut page = [0; PAGE as usize];
        for at in (from..end).step_by(PAGE as usize) {
            let part = (end - at).min(PAGE) as usize;
            // What is zero already stays without memory of its own where the window is a file.
            self.read(at, &mut page[..part]);
            if page[..part].iter().any(|byte| *byte != 0) {
                page[..part].fill(0);
                self.write(at, &page[..part]);
            }
        }
    }
}

/// The ranges between these and after the last, offset and length: what power has not kept where they alone were saved.
pub(crate) fn all_but(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let (mut from, mut others) = (0, Vec::new());
    for (start, length) in ranges {
        others.push((from, start.saturating_sub(from)));
        from = start + length;
    }
    others.push((from, u64::MAX));
    others
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn byte(window: &mut WindowBytes, at: u64) -> u8 {
        let mut byte = [0xee];
        window.read(at, &mut byte);
        byte[0]
    }

    #[test]
    fn what_power_does_not_keep_is_zeros_and_what_lies_beyond_is_nowhere() {
        let mut window = WindowBytes::new(5 * PAGE);
        window.clear(0, u64::MAX);
        for slot in 0..5 {
            window.set_page(slot, &[slot as u8 + 1; PAGE as usize]);
        }
        for (from, length) in all_but(vec![(3 * PAGE, PAGE), (PAGE, PAGE)]) {
            window.clear(from, length);
        }
        let kept: Vec<u8> = (0..5)
            .map(|slot| byte(&mut window, slot * PAGE + 4095))
            .collect();
        assert_eq!(kept, [0, 2, 0, 4, 0]);
        window.write(5 * PAGE - 2, &[7; 4]);
        let mut bytes = [9; 4];
        window.read(5 * PAGE - 2, &mut bytes);
        assert_eq!(bytes, [7, 7, 0, 0]);
        window.read(u64::MAX, &mut bytes);
        assert_eq!(bytes, [0; 4]);
        window.write(u64::MAX, &bytes);
        window.lie_in(
            Box::new(Ram::new(5 * PAGE as usize)),
            [(PAGE, PAGE)].into_iter(),
        );
        let kept: Vec<u8> = (0..5).map(|slot| byte(&mut window, slot * PAGE)).collect();
        assert_eq!(kept, [0, 2, 0, 0, 0]);
        window.is_unread();
        assert!(window.take_unread() && !window.take_unread());
        // What has not got to the file is there all the same, until it has.
        window.on_the_way(1, 7, Some(Arc::new([5; PAGE as usize])));
        window.written_to(6);
        let mut bytes = [0; 3];
        window.read(PAGE - 1, &mut bytes);
        assert_eq!(bytes, [0, 5, 5]);
        window.read(2 * PAGE - 2, &mut bytes);
        assert_eq!(bytes, [5, 5, 0]);
        window.written_to(7);
        assert_eq!(byte(&mut window, PAGE), 2);
    }
}
