//! Physical region pages: data as a first page, which may begin anywhere, and whole pages after it (Base 2.0
//! §4.1.1).
//!
//! Two pages stand in the command; of more, all but the first stand in a list. A list fills its page from where
//! it begins; if that is not enough, its last entry there points to the page where it goes on. How many
//! entries there are follows from the data's length, so no list is without end.

use crate::ids::PageSize;
use crate::memory::GuestMemory;
use crate::status::Status;
use crate::transfer::Region;

/// Entries read from a list at once.
const BUFFERED: usize = 64;
/// Bytes of an entry.
const ENTRY_BYTES: u64 = 8;

/// Pieces of data described by PRP entries.
#[derive(Debug)]
pub struct PrpRegions<M> {
    memory: M,
    page: PageSize,
    /// Bytes of data not yet returned.
    left: u64,
    stage: Stage,
    list: List,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    First { prp1: u64, prp2: u64 },
    Second { prp2: u64 },
    List,
    Failed,
}

/// A list of entries, a buffer at a time.
#[derive(Debug)]
struct List {
    /// Address of the next entry that is not in the buffer.
    at: u64,
    entries: [u64; BUFFERED],
    filled: usize,
    taken: usize,
}

impl<M: GuestMemory> PrpRegions<M> {
    /// Data of `bytes`, described by a command's two entries.
    pub fn new(memory: M, page: PageSize, prp1: u64, prp2: u64, bytes: u64) -> Self {
        let list = List {
            at: 0,
            entries: [0; BUFFERED],
            filled: 0,
            taken: 0,
        };
        PrpRegions {
            memory,
            page,
            left: bytes,
            stage: Stage::First { prp1, prp2 },
            list,
        }
    }

    fn step(&mut self) -> Result<Region, Status> {
        let (address, bytes_max) = match self.stage {
            Stage::First { prp1, prp2 } => {
                if prp1 & 3 != 0 {
                    return Err(Status::PRP_OFFSET_INVALID);
                }
                self.stage = Stage::Second { prp2 };
                (prp1, self.page.bytes() - self.page.offset(prp1))
            }
            Stage::Second { prp2 } if self.left <= self.page.bytes() => {
                (self.whole_page(prp2)?, self.page.bytes())
            }
            Stage::Second { prp2 } => {
                if prp2 & (ENTRY_BYTES - 1) != 0 {
                    return Err(Status::PRP_OFFSET_INVALID);
                }
                self.stage = Stage::List;
                self.list.at = prp2;
                (self.listed()?, self.page.bytes())
            }
            Stage::List | Stage::Failed => (self.listed()?, self.page.bytes()),
        };
        let bytes = self.left.min(bytes_max);
        self.left -= bytes;
        let address = Some(address);
        Ok(Region { address, bytes })
    }

    fn whole_page(&self, entry: u64) -> Result<u64, Status> {
        if !self.page.is_aligned(entry) {
            return Err(Status::PRP_OFFSET_INVALID);
        }
        Ok(entry)
    }

    /// The next page of the list.
    fn listed(&mut self) -> Result<u64, Status> {
        loop {
            let pages_left = self.left.div_ceil(self.page.bytes());
            if self.list.taken == self.list.filled {
                self.fill(pages_left)?;
            }
            let entry = self.list.entries[self.list.taken];
            self.list.taken += 1;
            let unread = ENTRY_BYTES * (self.list.filled - self.list.taken) as u64;
            let ends_page = unread == 0 && self.page.is_aligned(self.list.at);
            let entry = self.whole_page(entry)?;
            if !(ends_page && pages_left > 1) {
                return Ok(entry);
            }
            // The last entry of a full page: the list goes on there.
            self.list.at = entry;
        }
    }

    /// Reads as many entries as are needed, to the end of their page at most.
    fn fill(&mut self, pages_left: u64) -> Result<(), Status> {
        let list = &mut self.list;
        let to_end = (self.page.bytes() - self.page.offset(list.at)) / ENTRY_BYTES;
        let count = to_end.min(pages_left).min(BUFFERED as u64) as usize;
        let mut bytes = [0; BUFFERED * ENTRY_BYTES as usize];
        let bytes = &mut bytes[..count * ENTRY_BYTES as usize];
        self.memory.read(list.at, bytes)?;
        let (entries, _) = bytes.as_chunks();
        for (to, from) in list.entries.iter_mut().zip(entries) {
            *to = u64::from_le_bytes(*from);
        }
        (list.filled, list.taken) = (count, 0);
        // Beyond the last page of all addresses there is no entry to come.
        list.at = list.at.wrapping_add(count as u64 * ENTRY_BYTES);
        Ok(())
    }
}

impl<M: GuestMemory> Iterator for PrpRegions<M> {
    type Item = Result<Region, Status>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 || matches!(self.stage, Stage::Failed) {
            return None;
        }
        let region = self.step();
        if region.is_err() {
            self.stage = Stage::Failed;
        }
        Some(region)
    }
}
