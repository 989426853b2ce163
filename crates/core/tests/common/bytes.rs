//! Contents that are bytes, host memory in hostile hands, and a drive with data in it.

use super::drive;
use lodger_core::Host;
use lodger_core::device::{Contents, HostMemory, OutOfReach, PageBytes, Source};
use lodger_core::ids::{BufferSlot, Lpn, Ppn};
use lodger_core::rng::Rng;
use lodger_core::{DriveSpec, Precondition};
use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;

pub const PAGE: usize = 4096;
pub const SECTOR: usize = 512;
pub const CAPACITY_PAGES: u32 = 16 << 10;

/// What a request writes to a sector: who, and where.
pub fn sector_bytes(tag: u32, lpn: u32, sector: u32) -> [u8; SECTOR] {
    let mut bytes = [0; SECTOR];
    if tag == 0 {
        return bytes;
    }
    let words = [tag, lpn, sector, tag ^ 0x5A5A_5A5A];
    for (at, word) in bytes.chunks_exact_mut(4).zip(words.iter().cycle()) {
        at.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

pub fn overlay(onto: &mut PageBytes, from: &PageBytes, sectors: u8) {
    for sector in (0..8).filter(|sector| sectors >> sector & 1 != 0) {
        let range = sector * SECTOR..(sector + 1) * SECTOR;
        onto[range.clone()].copy_from_slice(&from[range]);
    }
}

/// Contents that are bytes.
#[derive(Default)]
pub struct Sectors {
    pub flash: HashMap<Ppn, Box<PageBytes>>,
    pub buffer: HashMap<BufferSlot, Box<PageBytes>>,
    /// Read tag, page, sectors read, what was read.
    pub seen: Vec<(u32, u32, u8, Box<PageBytes>)>,
}

impl Contents for Sectors {
    const HAS_BYTES: bool = true;

    fn arrive(&mut self, tag: u32, lpn: Lpn, slot: BufferSlot, sectors: u8) {
        let mut page = Box::new([0; PAGE]);
        for sector in (0..8).filter(|sector| sectors >> sector & 1 != 0) {
            let bytes = sector_bytes(tag, lpn.0, sector as u32);
            page[sector * SECTOR..][..SECTOR].copy_from_slice(&bytes);
        }
        self.buffer.insert(slot, page);
    }
    fn merge(&mut self, slot: BufferSlot, source: Source, written: u8) {
        let mut page = Box::new(self.page(source));
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
        self.flash.insert(to, self.flash[&from].clone());
    }
    fn read(&mut self, tag: u32, lpn: Lpn, source: Source, sectors: u8) {
        let page = Box::new(self.page(source));
        self.seen.push((tag, lpn.0, sectors, page));
    }
    fn page(&self, source: Source) -> PageBytes {
        match source {
            Source::Buffer(slot) => *self.buffer[&slot],
            Source::Flash(ppn) => *self.flash[&ppn],
            Source::Unwritten => [0; PAGE],
        }
    }
    fn set_buffered(&mut self, slot: BufferSlot, page: &PageBytes) {
        self.buffer.insert(slot, Box::new(*page));
    }
    fn read_bytes(&mut self, tag: u32, lpn: Lpn, page: &PageBytes, sectors: u8) {
        self.seen.push((tag, lpn.0, sectors, Box::new(*page)));
    }
}

/// Host memory with what the drive wrote last beside what the host makes of it.
#[derive(Default)]
pub struct Hostile {
    pub shown: Vec<u8>,
    pub honest: Vec<u8>,
    /// Reads by the drive that met bytes it had not written.
    pub forged_reads: Cell<u64>,
    /// What was there at some time.
    pub old: Vec<Vec<u8>>,
    /// Bytes that are out of reach.
    pub away: Range<usize>,
    /// Writes that did not reach it.
    pub lost_writes: u64,
}

impl Hostile {
    fn is_away(&self, offset: u64, bytes: usize) -> bool {
        let from = offset as usize;
        from < self.away.end && self.away.start < from + bytes
    }

    /// Half of the time all is in reach, otherwise a part is not.
    pub fn unmap(&mut self, rng: &mut Rng) {
        let from = rng.below(self.shown.len() as u32 + 1) as usize;
        let to = from + rng.below(self.shown.len() as u32 / 4 + 1) as usize;
        self.away = [0..0, from..to][rng.below(2) as usize].clone();
    }
}

impl HostMemory for Hostile {
    const KEEPS_BYTES: bool = true;

    fn granted(&mut self, bytes: u64) {
        self.shown.resize(bytes as usize, 0);
        self.honest.resize(bytes as usize, 0);
    }
    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), OutOfReach> {
        if self.is_away(offset, into.len()) {
            self.forged_reads.set(self.forged_reads.get() + 1);
            return Err(OutOfReach);
        }
        let range = offset as usize..offset as usize + into.len();
        into.copy_from_slice(&self.shown[range.clone()]);
        let forged = self.shown[range.clone()] != self.honest[range];
        let reads = self.forged_reads.get();
        self.forged_reads.set(reads + u64::from(forged));
        Ok(())
    }
    fn write(&mut self, offset: u64, from: &[u8]) -> Result<(), OutOfReach> {
        if self.is_away(offset, from.len()) {
            self.lost_writes += 1;
            return Err(OutOfReach);
        }
        self.shown[offset as usize..][..from.len()].copy_from_slice(from);
        self.honest[offset as usize..][..from.len()].copy_from_slice(from);
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Attack {
    FlipBit,
    SwapPages,
    ReplayPage,
    ReplayAll,
    Wipe,
    /// Another page with the same CRC-32.
    SameChecksum,
    /// A part of it is out of reach for a while.
    Unmap,
}

pub const ATTACKS: [Attack; 6] = [
    Attack::FlipBit,
    Attack::SwapPages,
    Attack::ReplayPage,
    Attack::ReplayAll,
    Attack::Wipe,
    Attack::SameChecksum,
];

impl Hostile {
    pub fn attack(&mut self, attack: Attack, rng: &mut Rng) {
        let pages = (self.shown.len() / PAGE) as u32;
        if pages == 0 {
            return;
        }
        let mut page = || rng.below(pages) as usize * PAGE;
        match attack {
            Attack::FlipBit => {
                let at = page() + rng.below(PAGE as u32) as usize;
                self.shown[at] ^= 1 << rng.below(8);
            }
            Attack::SwapPages => {
                let (a, b) = (page(), page());
                for byte in 0..PAGE {
                    self.shown.swap(a + byte, b + byte);
                }
            }
            Attack::ReplayPage => {
                let from = page();
                self.replay(from, PAGE, rng);
            }
            Attack::ReplayAll => self.replay(0, self.shown.len(), rng),
            Attack::Wipe => self.shown.fill(0),
            Attack::Unmap => self.unmap(rng),
            Attack::SameChecksum => {
                // The generator polynomial of CRC-32 itself: 33 bits, the first power first, in the
                // order in which bits are taken in, lowest of a byte first.
                let from = page() + rng.below(4000) as usize;
                for (bit, power) in (0..=32).rev().enumerate() {
                    let set = 0x1_04C1_1DB7_u64 >> power & 1 != 0;
                    self.shown[from + bit / 8] ^= u8::from(set) << (bit % 8);
                }
            }
        }
    }

    /// Plays back what was there at some time, `count` bytes of it or as many as there were.
    pub fn replay(&mut self, from: usize, count: usize, rng: &mut Rng) {
        let Some(old) = self.old.get(rng.below(self.old.len() as u32 + 1) as usize) else {
            return;
        };
        let end = (from + count).min(self.shown.len()).min(old.len());
        if from < end {
            self.shown[from..end].copy_from_slice(&old[from..end]);
        }
    }

    pub fn remember(&mut self) {
        self.old.push(self.honest.clone());
        if self.old.len() > 24 {
            self.old.remove(0);
        }
    }
}

/// Small drives with 32 pages of write buffer and 16 of read cache in host memory, their map in the
/// drive.
pub fn small_drive(integrity: &str, shape: u32) -> DriveSpec {
    let bit = |n: u32, yes: &'static str, no: &'static str| match shape >> n & 1 {
        0 => no,
        _ => yes,
    };
    let mut sets = vec![
        ("capacity", "64MiB"),
        ("nand.pages_per_block", "24"),
        ("role.map.tiers", "sram"),
        ("role.write_buffer.tier", "hmb"),
        ("role.write_buffer.size", "128KiB"),
        ("role.write_buffer.high", bit(0, "0.75", "0")),
        ("role.write_buffer.low", bit(0, "0.25", "0")),
        ("role.read_cache.tier", "hmb"),
        ("role.read_cache.size", "64KiB"),
        ("role.read_cache.whole_commands", bit(1, "true", "false")),
        ("tier.hmb.preferred", "192KiB"),
        ("tier.hmb.min", "4KiB"),
        ("tier.hmb.integrity", integrity),
    ];
    match shape >> 2 & 3 {
        1 => sets.extend([("tier.pm.size", "24KiB"), ("role.write_buffer.log", "pm")]),
        2 => sets.push(("role.write_buffer.acknowledge", "programmed")),
        3 => sets.push(("host.dma.rate", "4GB/s")),
        _ => {}
    }
    drive("tiny", &sets)
}

pub type Attacked = Host<Sectors, Hostile>;

pub fn new_device(spec: &DriveSpec, seed: u64) -> Attacked {
    let (contents, memory) = (Sectors::default(), Hostile::default());
    Host::with_memory(spec, Precondition::None, 192 << 10, seed, contents, memory)
}
