//! What the file had at a time: of each superblock how often it was erased and how many records lay beside its pages, and
//! how many records of trims there were.
//!
//! What is missing in a file reads as zeros, and so does what was never written. So what is there is counted each time that the
//! drive is switched off, and when it is found again after a power cut. What was there then, and was not erased since, must still
//! be there. Of what was written since nothing is known: to count that would take another write for each program operation.

use super::disk::Disk;
use super::layout::Layout;
use super::log::TrimList;
use std::io;

/// So that nothing but zeros is what zeros say.
const SIGN: u32 = 0x4c64_696e;
/// Bytes before what is said of the superblocks, of each of them, and of the check at the end.
const HEAD: usize = 16;
const EACH: usize = 12;
const CHECK: usize = 4;

/// Records of a superblock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    records: u32,
    /// Sum of their checks.
    check: u32,
}

impl Tally {
    /// A record is there.
    pub fn add(&mut self, record: &[u8]) {
        let check = record
            .last_chunk()
            .map_or(0, |last| u32::from_le_bytes(*last));
        self.records += 1;
        self.check = self.check.wrapping_add(check);
    }
}

/// What the file had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inventory {
    /// The last epoch of what is in it. It holds once that is synced.
    pub epoch: u32,
    /// The list of trims that counted, and its records.
    pub trims: (u32, u32),
    /// Of each superblock: times it was erased, and its records.
    pub superblocks: Vec<(u32, Tally)>,
}

impl Inventory {
    pub fn new(epoch: u32, trims: TrimList, wear: &[u32], tallies: &[Tally]) -> Self {
        let superblocks = wear.iter().copied().zip(tallies.iter().copied());
        Inventory {
            epoch,
            trims: (trims.generation, trims.count as u32),
            superblocks: superblocks.collect(),
        }
    }

    /// Bytes that one takes.
    pub fn bytes(superblocks: u32) -> u64 {
        (HEAD + EACH * superblocks as usize + CHECK) as u64
    }

    pub fn write(&self, disk: &dyn Disk, layout: &Layout) -> io::Result<()> {
        let head = [SIGN, self.epoch, self.trims.0, self.trims.1];
        let superblocks = self.superblocks.iter();
        let superblocks = superblocks.flat_map(|(erases, had)| [*erases, had.records, had.check]);
        let words = head.into_iter().chain(superblocks);
        let mut bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
        disk.write(layout.inventory(), &bytes)
    }

    /// The one in the file; `Ok(None)`: there is none, as versions before this one left it.
    ///
    /// # Errors
    /// If it cannot be read. It is damaged, or was being written: `Ok(Some(Err))`.
    pub fn read(disk: &dyn Disk, layout: &Layout) -> io::Result<Option<Result<Self, ()>>> {
        let mut bytes = vec![0; Self::bytes(layout.superblocks) as usize];
        disk.read(layout.inventory(), &mut bytes)?;
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let (bytes, check) = bytes.split_at(bytes.len() - CHECK);
        if crc32fast::hash(bytes).to_le_bytes() != check {
            return Ok(Some(Err(())));
        }
        let (words, _) = bytes.as_chunks();
        let mut words = words.iter().map(|word| u32::from_le_bytes(*word));
        let mut next = || words.next().unwrap_or(0);
        let (sign, epoch, trims) = (next(), next(), (next(), next()));
        let mut each = || {
            let (erases, records, check) = (next(), next(), next());
            (erases, Tally { records, check })
        };
        let superblocks = (0..layout.superblocks).map(|_| each()).collect();
        let found = Inventory {
            epoch,
            trims,
            superblocks,
        };
        Ok(Some(if sign == SIGN { Ok(found) } else { Err(()) }))
    }

    /// What of it is missing in what is there now: superblocks, with records of its time alone, and a list of trims.
    ///
    /// # Errors
    /// What, in words.
    pub fn missing(&self, now: &Inventory) -> Result<(), String> {
        for (number, (had, has)) in self.superblocks.iter().zip(&now.superblocks).enumerate() {
            let ((had_erases, had), (has_erases, has)) = (had, has);
            if has_erases < had_erases {
                return Err(format!(
                    "superblock {number} was erased {had_erases} times, and {has_erases} are noted"
                ));
            }
            // An erased one has had its time.
            if has_erases == had_erases && has.records != had.records {
                return Err(format!(
                    "of what lies beside the pages of superblock {number}, {} of {} records are there",
                    has.records, had.records
                ));
            }
            if has_erases == had_erases && has != had {
                return Err(format!(
                    "beside the pages of superblock {number} is not what was written there"
                ));
            }
        }
        match now.trims < self.trims {
            true => Err("records of trims are missing".to_owned()),
            false => Ok(()),
        }
    }
}
