//! Host memory that was granted (HMB), as the drive sees it: one range of bytes, which lies in the guest's
//! memory in the pieces that the guest's list names.

use lodger_core::device::{HostMemory, OutOfReach};
use lodger_core::rng::Rng;
use lodger_wire::hmb::HostRange;
use lodger_wire::memory::GuestMemory;
use std::cell::Cell;

/// Pieces of a guest's memory, one after the other.
#[derive(Debug)]
pub struct LentMemory<M> {
    memory: M,
    /// Each with the offset at which it begins.
    pieces: Vec<(u64, HostRange)>,
    /// Bytes that the drive has read and written there, and accesses that found no memory.
    read_bytes: Cell<u64>,
    written_bytes: u64,
    failures: Cell<u64>,
    /// What was granted last.
    former: Option<HostRange>,
    /// Nothing is there any more, though nobody has taken it back.
    is_withdrawn: bool,
}

impl<M: GuestMemory> LentMemory<M> {
    /// None yet.
    pub fn new(memory: M) -> Self {
        LentMemory {
            memory,
            pieces: Vec::new(),
            read_bytes: Cell::new(0),
            written_bytes: 0,
            failures: Cell::new(0),
            former: None,
            is_withdrawn: false,
        }
    }

    /// The pieces to be used from now on.
    pub fn lend(&mut self, ranges: &[HostRange]) {
        self.pieces.clear();
        self.is_withdrawn = false;
        self.former = ranges.first().copied();
        let mut start = 0;
        for range in ranges {
            self.pieces.push((start, *range));
            start += range.bytes;
        }
    }

    /// The guest has it back: nothing there is touched any more.
    pub fn take_back(&mut self) {
        self.pieces.clear();
        self.is_withdrawn = false;
    }

    /// From now on nothing is there, until it is taken back, or granted anew.
    pub fn withdraw(&mut self) {
        self.is_withdrawn = self.is_lent();
    }

    /// Whether it was granted, and nothing is there.
    pub fn is_withdrawn(&self) -> bool {
        self.is_withdrawn
    }

    /// Pieces that it is in.
    pub fn piece_count(&self) -> usize {
        self.pieces.len()
    }

    /// Where its first piece begins.
    pub fn first_address(&self) -> Option<u64> {
        self.pieces.first().map(|(_, range)| range.address)
    }

    /// Just behind the piece at the highest address.
    pub fn end_address(&self) -> Option<u64> {
        let pieces = self.pieces.iter();
        let last = pieces.max_by_key(|(_, range)| range.address)?.1;
        last.address.checked_add(last.bytes)
    }

    /// Where the first piece of what was granted last began, whether it still is granted or not.
    pub fn former_address(&self) -> Option<u64> {
        self.former.map(|range| range.address)
    }

    /// Turns so many bits of it over, drawn at random.
    pub fn corrupt(&mut self, bits: u32, rng: &mut Rng) {
        if self.is_withdrawn {
            return;
        }
        for _ in 0..bits {
            let Some((_, range)) = self
                .pieces
                .get(rng.below(self.pieces.len() as u32) as usize)
            else {
                return;
            };
            let address = range.address + rng.next_u64() % range.bytes;
            let mut byte = [0];
            if self.memory.read(address, &mut byte).is_ok() {
                byte[0] ^= 1 << rng.below(8);
                // Memory that is gone holds nothing that could be wrong.
                let _ = self.memory.write(address, &byte);
            }
        }
    }

    /// Whether any is in use.
    pub fn is_lent(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// How much is in use.
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().map(|(_, range)| range.bytes).sum()
    }

    /// Bytes read there so far.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes.get()
    }

    /// Bytes written there so far.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Accesses so far that found no memory.
    pub fn failures(&self) -> u64 {
        self.failures.get()
    }

    /// Goes through the addresses of `length` bytes at `offset`; those that are nowhere have none.
    fn pieces(
        &self,
        offset: u64,
        length: usize,
        mut each: impl FnMut(Option<u64>, std::ops::Range<usize>),
    ) {
        if self.is_withdrawn {
            each(None, 0..length);
            return;
        }
        let mut index = self.pieces.partition_point(|(start, _)| *start <= offset);
        index = index.saturating_sub(1);
        let mut done = 0;
        while done < length {
            let at = offset + done as u64;
            let piece = self.pieces.get(index).filter(|(start, _)| *start <= at);
            let Some((start, range)) = piece else {
                each(None, done..length);
                return;
            };
            let within = at - start;
            let bytes = range
                .bytes
                .saturating_sub(within)
                .min((length - done) as u64);
            each(Some(range.address + within), done..done + bytes as usize);
            done += bytes as usize;
            index += 1;
        }
    }

    fn note(&self, is_good: bool) -> Result<(), OutOfReach> {
        if is_good {
            return Ok(());
        }
        self.failures.set(self.failures.get() + 1);
        Err(OutOfReach)
    }
}

impl<M: GuestMemory> HostMemory for LentMemory<M> {
    const KEEPS_BYTES: bool = true;

    fn granted(&mut self, _bytes: u64) {}

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), OutOfReach> {
        self.read_bytes
            .set(self.read_bytes.get() + into.len() as u64);
        let mut is_good = true;
        self.pieces(offset, into.len(), |address, range| {
            let into = &mut into[range];
            is_good &= address.is_some_and(|address| self.memory.read(address, into).is_ok());
        });
        self.note(is_good)
    }

    fn write(&mut self, offset: u64, from: &[u8]) -> Result<(), OutOfReach> {
        self.written_bytes += from.len() as u64;
        let mut is_good = true;
        self.pieces(offset, from.len(), |address, range| {
            let from = &from[range];
            is_good &= address.is_some_and(|address| self.memory.write(address, from).is_ok());
        });
        self.note(is_good)
    }
}
