//! BAR1: a part of the drive's memory that the host's CPUs reach by loads and stores.
//!
//! Stores gather in write-combining buffers of the CPU, one line of 64 bytes each, and leave as posted
//! packets when a line is full, when a buffer is needed for another line, or at a flush or fence
//! (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 3A, section 12.3.1). A packet
//! carries neighbouring bytes: a line with gaps leaves as several. Packets arrive in the order in
//! which they left, and a read sent after them arrives after them (PCI Express Base 3.0, section
//! 2.4.1): that is how a host knows that its stores have arrived.

use super::Link;
use crate::engine::Now;
use std::collections::VecDeque;

/// A line of the CPU's caches and write-combining buffers, bytes.
pub const LINE_BYTES: u64 = 64;
/// What one uncached access moves, bytes.
pub const WORD_BYTES: u64 = 8;

/// Bytes of one line that are being combined or on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// What names the bytes while they are outside the window.
    pub id: u32,
    /// Which line of the window.
    pub line: u32,
    /// Which of its bytes.
    pub mask: u64,
    /// When it is in the window.
    arrive_ps: u64,
    /// The last of those that left the same buffer.
    last: bool,
}

/// Whether a store can be combined now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// There is a buffer for the line.
    Ready,
    /// There will be one at that time.
    Wait(u64),
}

#[derive(Debug, Default)]
struct Cpu {
    /// Buffers that combine, in the order in which they were taken: id, line, bytes.
    open: Vec<(u32, u32, u64)>,
    /// When the buffers whose packets are leaving are free again.
    leaving: Vec<u64>,
}

/// The window as the host's CPUs see it.
#[derive(Debug)]
pub struct Bar {
    /// Where it starts in the drive's memory: the address translation unit adds this.
    base: u64,
    bytes: u64,
    buffers: usize,
    cpus: Vec<Cpu>,
    flying: VecDeque<Packet>,
    ids: Vec<u32>,
    next_id: u32,
    /// Packets of stores.
    pub packets: u64,
    /// Bytes in them.
    pub packet_bytes: u64,
}

impl Bar {
    /// A window of `bytes` bytes at `base` of the drive's memory, with `buffers` write-combining
    /// buffers for each CPU.
    #[must_use]
    pub fn new(base: u64, bytes: u64, buffers: u32) -> Self {
        Bar {
            base,
            bytes,
            buffers: buffers as usize,
            cpus: Vec::new(),
            flying: VecDeque::new(),
            ids: Vec::new(),
            next_id: 0,
            packets: 0,
            packet_bytes: 0,
        }
    }

    /// Address in the drive's memory of an offset in the window.
    #[must_use]
    pub fn translate(&self, offset: u64) -> Option<u64> {
        (offset < self.bytes).then_some(self.base + offset)
    }

    /// Whether stores combine; otherwise each goes out by itself.
    #[must_use]
    pub fn combines(&self) -> bool {
        self.buffers > 0
    }

    fn cpu(&mut self, cpu: u16) -> &mut Cpu {
        let index = usize::from(cpu);
        if index >= self.cpus.len() {
            self.cpus.resize_with(index + 1, Cpu::default);
        }
        &mut self.cpus[index]
    }

    fn new_id(&mut self) -> u32 {
        self.ids.pop().unwrap_or_else(|| {
            self.next_id += 1;
            self.next_id - 1
        })
    }

    /// Looks for a buffer for a line: one that holds it, a free one, or one that gives way.
    pub fn take(&mut self, link: &mut Link, now: Now, cpu: u16, line: u32) -> Room {
        // Uncached stores leave one at a time.
        let buffers = self.buffers.max(1);
        let state = self.cpu(cpu);
        if state.open.iter().any(|open| open.1 == line) {
            return Room::Ready;
        }
        state.leaving.retain(|free_ps| *free_ps > now.ps());
        if state.open.len() + state.leaving.len() < buffers {
            let id = self.new_id();
            self.cpu(cpu).open.push((id, line, 0));
            return Room::Ready;
        }
        if state.leaving.is_empty() {
            // Partly filled ones give way in the order in which they were taken.
            self.post(link, now, cpu, 0);
        }
        let free_ps = self.cpu(cpu).leaving.iter().min();
        Room::Wait(*free_ps.expect("a buffer is leaving"))
    }

    /// Bytes are combined into the buffer of their line, which leaves if that fills it. Returns the
    /// name of the bytes.
    pub fn combine(&mut self, link: &mut Link, now: Now, cpu: u16, line: u32, mask: u64) -> u32 {
        let combines = self.combines();
        let open = &mut self.cpu(cpu).open;
        let place = open.iter().position(|open| open.1 == line);
        let place = place.expect("a buffer was taken for the line");
        open[place].2 |= mask;
        let (id, _, held) = open[place];
        if held == u64::MAX || !combines {
            self.post(link, now, cpu, place);
        }
        id
    }

    /// A buffer's bytes leave.
    fn post(&mut self, link: &mut Link, now: Now, cpu: u16, place: usize) {
        let (id, line, mut mask) = self.cpu(cpu).open.remove(place);
        debug_assert_ne!(mask, 0, "a buffer is taken for bytes");
        let mut sent_ps = now.ps();
        while mask != 0 {
            let first = mask.trailing_zeros();
            let count = (mask >> first).trailing_ones();
            let run = (u64::MAX >> (64 - count)) << first;
            mask &= !run;
            let arrive_ps = link.post(now, u64::from(count));
            sent_ps = arrive_ps - link.one_way_ps();
            self.packets += 1;
            self.packet_bytes += u64::from(count);
            self.flying.push_back(Packet {
                id,
                line,
                mask: run,
                arrive_ps,
                last: mask == 0,
            });
        }
        self.cpu(cpu).leaving.push(sent_ps);
    }

    /// All of a CPU's buffers leave, as at a fence. Returns when the last is out of the CPU.
    pub fn drain(&mut self, link: &mut Link, now: Now, cpu: u16) -> u64 {
        while !self.cpu(cpu).open.is_empty() {
            self.post(link, now, cpu, 0);
        }
        let leaving = self.cpu(cpu).leaving.iter();
        leaving
            .copied()
            .max()
            .map_or(now.ps(), |ps| ps.max(now.ps()))
    }

    /// Next packet that has arrived by now.
    pub fn arrived(&mut self, now: Now) -> Option<Packet> {
        self.flying.front().filter(|p| p.arrive_ps <= now.ps())?;
        let packet = self.flying.pop_front()?;
        if packet.last {
            self.ids.push(packet.id);
        }
        Some(packet)
    }

    /// Power has failed: what is in buffers and on the way is lost. Returns how many bytes that were.
    pub fn cut(&mut self) -> u64 {
        let combining = self.cpus.iter().flat_map(|cpu| &cpu.open);
        let combining: u32 = combining.map(|open| open.2.count_ones()).sum();
        let flying: u32 = self.flying.iter().map(|p| p.mask.count_ones()).sum();
        self.cpus.clear();
        self.flying.clear();
        self.ids.clear();
        self.next_id = 0;
        u64::from(combining) + u64::from(flying)
    }
}

/// Bytes `from..to` of a line, a bit each; both are offsets in the window.
#[must_use]
pub fn mask_of(line: u32, from: u64, to: u64) -> u64 {
    let start = u64::from(line) * LINE_BYTES;
    let first = from.max(start) - start;
    let count = to.min(start + LINE_BYTES) - start - first;
    (u64::MAX >> (LINE_BYTES - count)) << first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_cover_what_of_a_range_lies_in_the_line() {
        assert_eq!(mask_of(0, 0, 64), u64::MAX);
        assert_eq!(mask_of(1, 0, 1000), u64::MAX);
        assert_eq!(mask_of(0, 8, 9), 1 << 8);
        assert_eq!(mask_of(2, 127, 130), 0b11);
    }

    #[test]
    fn translation_adds_the_base_and_ends_with_the_window() {
        let bar = Bar::new(1 << 20, 4096, 10);
        assert_eq!(bar.translate(8), Some((1 << 20) + 8));
        assert_eq!(bar.translate(4096), None);
    }
}
