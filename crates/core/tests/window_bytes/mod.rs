//! Contents for tests of the byte window: for every byte, the tag of the call that wrote it.

use lodger_core::device::{Contents, Source};
use lodger_core::ids::{BufferSlot, Lpn, Ppn};
use std::collections::HashMap;

/// What a byte is whose contents are lost.
pub const LOST: u32 = u32::MAX;

type Page = Vec<u32>;

/// Tags of all bytes, in the window and elsewhere.
pub struct Bytes {
    /// The window.
    pub window: Vec<u32>,
    /// Bytes that loads and copies took: where from, tag.
    pub seen: Vec<(usize, u32)>,
    packets: HashMap<u32, [u32; 64]>,
    buffer: HashMap<BufferSlot, Page>,
    flash: HashMap<Ppn, Page>,
}

impl Bytes {
    /// A window of `bytes` bytes.
    pub fn new(bytes: u64) -> Self {
        Bytes {
            window: vec![0; bytes as usize],
            seen: Vec::new(),
            packets: HashMap::new(),
            buffer: HashMap::new(),
            flash: HashMap::new(),
        }
    }

    /// The bytes of a page.
    pub fn page(&self, source: Source) -> Page {
        match source {
            Source::Buffer(slot) => self.buffer[&slot].clone(),
            Source::Flash(ppn) => self.flash.get(&ppn).cloned().unwrap_or(vec![LOST; 4096]),
            Source::Unwritten => vec![0; 4096],
        }
    }
}

fn overlay(onto: &mut Page, from: &Page, sectors: u8) {
    for sector in (0..8).filter(|sector| sectors >> sector & 1 != 0) {
        onto[sector * 512..][..512].copy_from_slice(&from[sector * 512..][..512]);
    }
}

impl Contents for Bytes {
    fn arrive(&mut self, tag: u32, _: Lpn, slot: BufferSlot, sectors: u8) {
        let mut page = vec![0; 4096];
        overlay(&mut page, &vec![tag; 4096], sectors);
        self.buffer.insert(slot, page);
    }
    fn merge(&mut self, slot: BufferSlot, source: Source, written: u8) {
        let mut page = self.page(source);
        overlay(&mut page, &self.buffer[&slot], written);
        self.buffer.insert(slot, page);
    }
    fn absorb(&mut self, from: BufferSlot, to: BufferSlot, sectors: u8) {
        let newer = self.buffer[&from].clone();
        overlay(self.buffer.get_mut(&to).unwrap(), &newer, sectors);
    }
    fn program(&mut self, from: BufferSlot, to: Ppn) {
        self.flash.insert(to, self.buffer[&from].clone());
    }
    fn relocate(&mut self, from: Ppn, to: Ppn) {
        let page = self.page(Source::Flash(from));
        self.flash.insert(to, page);
    }
    fn tear(&mut self, first: Ppn, slots: u32) {
        for ppn in first.0..first.0 + slots {
            self.flash.remove(&Ppn(ppn));
        }
    }
    fn read(&mut self, _: u32, _: Lpn, _: Source, _: u8) {}

    fn combine(&mut self, tag: u32, packet: u32, _: u32, mask: u64) {
        let bytes = self.packets.entry(packet).or_insert([LOST; 64]);
        for byte in (0..64).filter(|byte| mask >> byte & 1 != 0) {
            bytes[byte] = tag;
        }
    }
    fn deliver(&mut self, packet: u32, line: u32, mask: u64) {
        let bytes = self.packets[&packet];
        for byte in (0..64).filter(|byte| mask >> byte & 1 != 0) {
            self.window[line as usize * 64 + byte] = bytes[byte];
        }
    }
    fn load(&mut self, _: u32, offset_bytes: u64, length_bytes: u64) {
        for at in offset_bytes as usize..(offset_bytes + length_bytes) as usize {
            self.seen.push((at, self.window[at]));
        }
    }
    fn pin(&mut self, window_slot: u32, source: Source) {
        let page = self.page(source);
        self.window[window_slot as usize * 4096..][..4096].copy_from_slice(&page);
    }
    fn unpin(&mut self, window_slot: u32, slot: BufferSlot) {
        let page = self.window[window_slot as usize * 4096..][..4096].to_vec();
        self.buffer.insert(slot, page);
    }
    fn lose(&mut self, offset_bytes: u64, length_bytes: u64) {
        self.window[offset_bytes as usize..][..length_bytes as usize].fill(LOST);
    }
}
