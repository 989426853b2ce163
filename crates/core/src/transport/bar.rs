//! BAR1: a part of the drive's memory that the host's CPUs reach by loads and stores, as packets. The same where it is
//! memory of the host: then packets are lines that its caches write back.
//!
//! A packet carries neighbouring bytes of one line. Packets arrive in the order in which they left,
//! and a read sent after them arrives after them (PCI Express Base 3.0, section 2.4.1): that is how a
//! host knows that its stores have arrived.

use super::Link;
use crate::engine::Now;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A line of a CPU's caches and write-combining buffers, bytes.
pub const LINE_BYTES: u64 = 64;
/// What one uncached access moves, bytes.
pub const WORD_BYTES: u64 = 8;

/// Bytes of one line that are on their way.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Number that stands for the bytes until they have arrived in the window.
    pub id: u32,
    /// Which line of the window.
    pub line: u32,
    /// Which of its bytes.
    pub mask: u64,
    /// The last of those that carry bytes of that name.
    pub last: bool,
}

/// The window as packets reach it.
#[derive(Clone, Serialize, Deserialize, Debug, Default)]
pub struct Bar {
    /// With the time of arrival, picoseconds.
    flying: VecDeque<(u64, Packet)>,
    ids: Vec<u32>,
    next_id: u32,
    /// Packets that carried stores.
    pub packets: u64,
    /// Bytes stored in those packets.
    pub packet_bytes: u64,
}

impl Bar {
    /// A name for bytes outside the window; free again when the last packet with them has arrived.
    pub fn new_id(&mut self) -> u32 {
        self.ids.pop().unwrap_or_else(|| {
            self.next_id += 1;
            self.next_id - 1
        })
    }

    /// A packet leaves the host. Returns when it is out of it.
    pub fn post(&mut self, link: &mut Link, now: Now, packet: Packet) -> u64 {
        let bytes = u64::from(packet.mask.count_ones());
        let arrive_ps = link.post(now, bytes);
        self.send(arrive_ps, packet);
        arrive_ps - link.one_way_ps()
    }

    /// A packet that arrives then is on its way; those before it arrive no later.
    pub fn send(&mut self, arrive_ps: u64, packet: Packet) {
        debug_assert!(self.flying.back().is_none_or(|(ps, _)| *ps <= arrive_ps));
        self.packets += 1;
        self.packet_bytes += u64::from(packet.mask.count_ones());
        self.flying.push_back((arrive_ps, packet));
    }

    /// Packets of a line that are on their way, in order.
    pub fn flying(&self, line: u32) -> impl Iterator<Item = &Packet> {
        let packets = self.flying.iter().map(|(_, packet)| packet);
        packets.filter(move |packet| packet.line == line)
    }

    /// Next packet that has arrived by now.
    pub fn arrived(&mut self, now: Now) -> Option<Packet> {
        self.flying.front().filter(|(ps, _)| *ps <= now.ps())?;
        let (_, packet) = self.flying.pop_front()?;
        if packet.last {
            self.ids.push(packet.id);
        }
        Some(packet)
    }

    /// Power has failed: what is on the way is lost, and no bytes outside have a name any more. Returns
    /// how many bytes were on the way.
    pub fn cut(&mut self) -> u64 {
        let flying = self.flying.iter().map(|(_, packet)| packet.mask);
        let lost: u32 = flying.map(u64::count_ones).sum();
        self.flying.clear();
        self.ids.clear();
        self.next_id = 0;
        u64::from(lost)
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
}
