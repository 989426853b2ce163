//! What the file had at a time: of each superblock how often it was erased and how many records lay beside its pages, and
//! how many records of trims there were.
//!
//! What is missing in a file reads as zeros, and so does what was never written. So what is there is counted each time that the
//! drive is switched off, and when it is found again after a power cut. What was there then, and was not erased since, must still
//! be there. What was synced since is noted superblock by superblock ([`super::ledger`]).

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
    pub records: u32,
    /// Sum of their checks.
    pub check: u32,
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

/// What a superblock had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Had {
    /// The last epoch of the records that are counted.
    pub epoch: u32,
    /// Times it was erased.
    pub erases: u32,
    pub tally: Tally,
}

/// What the file had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inventory {
    /// The last epoch of what is in it. It holds once that is synced.
    pub epoch: u32,
    /// The list of trims that counted, and its records.
    pub trims: (u32, u32),
    pub superblocks: Vec<Had>,
}

impl Inventory {
    pub fn new(epoch: u32, trims: TrimList, wear: &[u32], tallies: &[Tally]) -> Self {
        let superblocks = wear.iter().zip(tallies).map(|(erases, tally)| Had {
            epoch,
            erases: *erases,
            tally: *tally,
        });
        Inventory {
            epoch,
            trims: (trims.generation, trims.count as u32),
            superblocks: superblocks.collect(),
        }
    }

    /// That of a file of which nothing is known.
    pub fn unknown(superblocks: u32) -> Self {
        Inventory {
            epoch: 0,
            trims: (0, 0),
            superblocks: vec![Had::default(); superblocks as usize],
        }
    }

    /// Bytes that one takes.
    pub fn bytes(superblocks: u32) -> u64 {
        (HEAD + EACH * superblocks as usize + CHECK) as u64
    }

    pub fn write(&self, disk: &dyn Disk, layout: &Layout) -> io::Result<()> {
        let head = [SIGN, self.epoch, self.trims.0, self.trims.1];
        let superblocks = self.superblocks.iter();
        let superblocks =
            superblocks.flat_map(|had| [had.erases, had.tally.records, had.tally.check]);
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
            let tally = Tally { records, check };
            Had {
                epoch,
                erases,
                tally,
            }
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
    /// What and where, in words.
    pub fn missing(&self, now: &Inventory, layout: &Layout) -> Result<(), String> {
        for (number, (had, has)) in (0..).zip(self.superblocks.iter().zip(&now.superblocks)) {
            if has.erases < had.erases {
                return Err(format!(
                    "superblock {number} was erased {} times, and {} are noted (at byte {} of the file)",
                    had.erases,
                    has.erases,
                    layout.wear(number)
                ));
            }
            // An erased one has had its time.
            if has.erases > had.erases || has.tally == had.tally {
                continue;
            }
            let from = layout.spare(layout.first(number));
            let end = layout.spare(layout.first(number + 1));
            let place = format!("superblock {number} (bytes {from} to {end} of the file)");
            return Err(match has.tally.records == had.tally.records {
                true => format!("beside the pages of {place} is not what was written there"),
                false => format!(
                    "of what lies beside the pages of {place}, {} of {} records are there",
                    has.tally.records, had.tally.records
                ),
            });
        }
        match now.trims < self.trims {
            true => Err("records of trims are missing".to_owned()),
            false => Ok(()),
        }
    }
}
