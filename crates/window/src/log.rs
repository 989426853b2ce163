//! A log of what was written to one file and not synced yet, in a part of a window.
//!
//! The file itself is written as ever, into the page cache; what was written stands in the log, too. A sync is then one of
//! the window. After power has failed the file holds what it held at its last own sync, and perhaps more; doing again what
//! stands in the log gives it all that was synced. When the log is full the file is synced, and the log begins anew.
//!
//! A log is a header and records one after the other. A record that is torn or of another generation ends it: who
//! has synced the window has synced all records before.

use std::io;

/// Where a log lies.
pub trait Memory {
    /// Stores bytes of it.
    ///
    /// # Errors
    /// If that is not possible.
    fn store(&mut self, at: u64, from: &[u8]) -> io::Result<()>;

    /// Loads bytes of it.
    ///
    /// # Errors
    /// If that is not possible.
    fn load(&self, at: u64, into: &mut [u8]) -> io::Result<()>;
}

/// Which file a log is of: device, inode, and when that was made, as numbers of inodes come again.
pub type Identity = [u64; 3];

/// What was done to the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// These bytes were written at that place.
    Write(u64, Vec<u8>),
    /// It was made that long.
    Truncate(u64),
}

const MAGIC: u64 = u64::from_le_bytes(*b"lodgrlog");
/// Magic, generation, identity, length of the path, check, path.
const HEADER_BYTES: u64 = 64 + PATH_MAX as u64;
/// Longest path that a log remembers, bytes.
pub const PATH_MAX: usize = 448;
/// Generation, place, length with the kind above, check.
const RECORD_BYTES: u64 = 32;
const TRUNCATE: u64 = 1 << 63;
/// Longest change that is taken down; longer ones are left to the file's own sync.
const CHANGE_MAX: u64 = 1 << 30;

/// Which file a log is of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// What it is.
    pub identity: Identity,
    /// Where it was, at most [`PATH_MAX`] bytes: to find it again.
    pub path: Vec<u8>,
}

/// A log in a part of a window.
#[derive(Debug)]
pub struct Log {
    start: u64,
    end: u64,
    generation: u64,
    /// Where the next record goes.
    next: u64,
}

fn words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let (chunks, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|at| u64::from_le_bytes(chunks[at]))
}

fn check(parts: &[&[u8]]) -> u64 {
    let mut hash = crc32fast::Hasher::new();
    parts.iter().for_each(|part| hash.update(part));
    // Never that of nothing but zeros.
    u64::from(hash.finalize()) | 1 << 32
}

impl Log {
    /// What lies in a part of a window: a log, whose it is, and what is to be done to that file again. Before anything is
    /// taken down it is begun ([`Log::begin`]).
    ///
    /// # Errors
    /// If the window cannot be read.
    pub fn open(
        memory: &impl Memory,
        (start, end): (u64, u64),
    ) -> io::Result<(Self, Owner, Vec<Change>)> {
        let mut log = Log {
            start,
            end,
            generation: 0,
            next: start + HEADER_BYTES,
        };
        let mut bytes = [0; HEADER_BYTES as usize];
        memory.load(start, &mut bytes)?;
        let (fields, path) = bytes.split_at(64);
        let [magic, generation, one, two, three, length, _, sum] = words(fields);
        let path = path.get(..length as usize).unwrap_or_default().to_vec();
        if magic != MAGIC || sum != check(&[&fields[..56], &path]) {
            return Ok((log, Owner::default(), Vec::new()));
        }
        log.generation = generation;
        let mut changes = Vec::new();
        while let Some(change) = log.record(memory)? {
            changes.push(change);
        }
        let identity = [one, two, three];
        Ok((log, Owner { identity, path }, changes))
    }

    /// The next record; moves behind it.
    fn record(&mut self, memory: &impl Memory) -> io::Result<Option<Change>> {
        if self.end - self.next < RECORD_BYTES {
            return Ok(None);
        }
        let mut head = [0; RECORD_BYTES as usize];
        memory.load(self.next, &mut head)?;
        let [generation, at, kind, sum] = words(&head);
        let length = kind & !TRUNCATE;
        let room = self.end - self.next - RECORD_BYTES;
        if generation != self.generation || length > room || kind & TRUNCATE != 0 && length != 0 {
            return Ok(None);
        }
        let mut data = vec![0; length as usize];
        memory.load(self.next + RECORD_BYTES, &mut data)?;
        if sum != check(&[&head[..24], &data]) {
            return Ok(None);
        }
        self.next = (self.next + RECORD_BYTES + length)
            .next_multiple_of(8)
            .min(self.end);
        Ok(Some(match kind & TRUNCATE {
            0 => Change::Write(at, data),
            _ => Change::Truncate(at),
        }))
    }

    /// Begins anew, for this file, or for none: the file before holds, safely, all that was taken down. `clock` is a number
    /// that grows: by it records are told from those of logs whose header is lost.
    ///
    /// # Errors
    /// If the window cannot be written.
    pub fn begin(&mut self, memory: &mut impl Memory, owner: &Owner, clock: u64) -> io::Result<()> {
        self.generation = clock.max(self.generation + 1);
        self.next = self.start + HEADER_BYTES;
        let [one, two, three] = owner.identity;
        let path = &owner.path[..owner.path.len().min(PATH_MAX)];
        let length = path.len() as u64;
        let fields = [MAGIC, self.generation, one, two, three, length, 0].map(u64::to_le_bytes);
        let sum = check(&[fields.as_flattened(), path]).to_le_bytes();
        memory.store(self.start, fields.as_flattened())?;
        memory.store(self.start + 56, &sum)?;
        memory.store(self.start + 64, path)
    }

    /// Takes a change down; `false` if there is no room for it.
    ///
    /// # Errors
    /// If the window cannot be written.
    pub fn append(
        &mut self,
        memory: &mut impl Memory,
        change: (u64, Option<&[u8]>),
    ) -> io::Result<bool> {
        let (at, data) = change;
        let (data, kind) = match data {
            Some(data) => (data, data.len() as u64),
            None => (&[][..], TRUNCATE),
        };
        let room = self.end - self.next;
        if data.len() as u64 > CHANGE_MAX || room < RECORD_BYTES + data.len() as u64 {
            return Ok(false);
        }
        let fields = [self.generation, at, kind].map(u64::to_le_bytes);
        let sum = check(&[fields.as_flattened(), data]).to_le_bytes();
        memory.store(self.next, fields.as_flattened())?;
        memory.store(self.next + 24, &sum)?;
        memory.store(self.next + RECORD_BYTES, data)?;
        let end = self.next + RECORD_BYTES + data.len() as u64;
        self.next = end.next_multiple_of(8).min(self.end);
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
