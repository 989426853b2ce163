//! Host memory in hostile hands.

use super::contents::{Pages, SectorBytes};
use lodger_core::device::{HostMemory, OutOfReach};
use lodger_core::rng::Rng;
use lodger_core::{DriveSpec, Host, Precondition};
use std::cell::Cell;
use std::ops::Range;

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
    /// Two units change places.
    Swap,
    /// One unit is as it was at some time.
    Replay,
    /// A few pages are as they were at some time.
    ReplayPages,
    ReplayAll,
    Wipe,
    /// Other bytes with the same CRC-32.
    SameChecksum,
    /// A part of it is out of reach for a while.
    Unmap,
}

impl Hostile {
    /// Attacks one or more units of what the drive keeps: lines of its map, or pages of data.
    pub fn attack(&mut self, attack: Attack, unit_bytes: usize, rng: &mut Rng) {
        let units = (self.shown.len() / unit_bytes) as u32;
        if units == 0 {
            return;
        }
        let mut unit = || rng.below(units) as usize * unit_bytes;
        match attack {
            Attack::FlipBit => {
                let at = unit() + rng.below(unit_bytes as u32) as usize;
                self.shown[at] ^= 1 << rng.below(8);
            }
            Attack::Swap => {
                let (a, b) = (unit(), unit());
                for byte in 0..unit_bytes {
                    self.shown.swap(a + byte, b + byte);
                }
            }
            Attack::Replay => {
                let from = unit();
                self.replay(from, unit_bytes, rng);
            }
            Attack::ReplayPages => {
                let from = unit();
                self.replay(from, 4 * 4800, rng);
            }
            Attack::ReplayAll => self.replay(0, self.shown.len(), rng),
            Attack::Wipe => self.shown.fill(0),
            Attack::Unmap => self.unmap(rng),
            Attack::SameChecksum => {
                // The generator polynomial of CRC-32 itself: 33 bits, the first power first, in the
                // order in which bits are taken in, lowest of a byte first.
                let from = unit() + rng.below(unit_bytes as u32 - 96) as usize;
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

/// A drive whose pages of data stand as bytes in hostile memory.
pub type Attacked = Host<Pages<SectorBytes>, Hostile>;

pub fn attacked(spec: &DriveSpec, seed: u64) -> Attacked {
    let (contents, memory) = (Pages::empty(), Hostile::default());
    Host::with_memory(spec, Precondition::None, 192 << 10, seed, contents, memory)
}
