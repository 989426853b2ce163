//! The bytes of the byte window, while power is there.
//!
//! They are memory that its users may have mapped: what is stored there shows at once, and nobody tells the drive. So
//! the bytes that are there as a call of the drive looks at them are the ones that count. What may be stored when is
//! not guarded: bytes that no entry covers lead nowhere, and are gone with the next power cut.

use lodger_core::device::PageBytes;
use lodger_wire::memory::{GuestMemory, Ram};
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

    /// Bytes from `at` on; beyond the end, zeros.
    pub fn read(&mut self, at: u64, into: &mut [u8]) {
        let inside = self.bytes.saturating_sub(at).min(into.len() as u64);
        let (inside, beyond) = into.split_at_mut(inside as usize);
        beyond.fill(0);
        if self.memory().read(at, inside).is_err() {
            inside.fill(0);
        }
    }

    /// Stores bytes from `at` on; what lies beyond the end is dropped.
    pub fn write(&mut self, at: u64, from: &[u8]) {
        let inside = self.bytes.saturating_sub(at).min(from.len() as u64);
        // It is all there, so this cannot fail.
        let _ = self.memory().write(at, &from[..inside as usize]);
    }

    /// A page of it.
    pub(crate) fn page(&mut self, slot: u32) -> PageBytes {
        let mut page = [0; PAGE as usize];
        self.read(u64::from(slot) * PAGE, &mut page);
        page
    }

    /// A page of it holds this; `None`: what it should hold could not be read.
    pub(crate) fn set_page(&mut self, slot: u32, page: Option<&PageBytes>) {
        self.unread |= page.is_none();
        self.write(u64::from(slot) * PAGE, page.unwrap_or(&[0; PAGE as usize]));
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

    /// Zeros but for these ranges, offset and length: power was away, and they alone were saved.
    pub(crate) fn clear_all_but(&mut self, mut ranges: Vec<(u64, u64)>) {
        ranges.sort_unstable();
        let mut from = 0;
        for (start, length) in ranges {
            self.clear(from, start.saturating_sub(from));
            from = start + length;
        }
        self.clear(from, u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_power_does_not_keep_is_zeros_and_what_lies_beyond_is_nowhere() {
        let mut window = WindowBytes::new(5 * PAGE);
        window.clear_all_but(Vec::new());
        for slot in 0..5 {
            window.set_page(slot, Some(&[slot as u8 + 1; PAGE as usize]));
        }
        window.clear_all_but(vec![(3 * PAGE, PAGE), (PAGE, PAGE)]);
        let kept: Vec<u8> = (0..5).map(|slot| window.page(slot)[4095]).collect();
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
        let kept: Vec<u8> = (0..5).map(|slot| window.page(slot)[0]).collect();
        assert_eq!(kept, [0, 2, 0, 0, 0]);
        window.set_page(0, None);
        assert!(window.take_unread() && !window.take_unread());
    }
}
