//! A file that can lose what was not synced, be full or lie, and a naive model of what a drive in it may hold.
#![allow(dead_code)]

use lodger_core::rng::Rng;
use lodger_serve::backing::disk::Disk;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Mutex, MutexGuard};

const PAGE: u64 = 4096;
/// What a disk writes at once, whatever happens.
const SECTOR: usize = 512;
type Pages = BTreeMap<u64, Box<[u8; PAGE as usize]>>;

#[derive(Debug, Default)]
struct Inner {
    now: Pages,
    /// As it was when it was synced last.
    synced: Pages,
    /// Pages that were changed since.
    changed: BTreeSet<u64>,
    bytes: u64,
    /// Writes there is room for.
    room: Option<u64>,
    /// Writes before one that is cut off half way, the last.
    cut_off_after: Option<u64>,
    lies: bool,
    fails_syncs: bool,
    fails_reads: bool,
    pub syncs: u64,
}

/// A file in memory.
#[derive(Debug, Default)]
pub struct SimDisk(Mutex<Inner>);

impl SimDisk {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().expect("nobody has panicked")
    }

    /// The machine stops: of what was not synced any sectors are there or not.
    pub fn crash(&self, rng: &mut Rng) {
        let inner = &mut *self.inner();
        for page in std::mem::take(&mut inner.changed) {
            let old = inner.synced.get(&page).map_or([0; 4096], |old| **old);
            let new = inner.now.get(&page).map_or([0; 4096], |new| **new);
            let mut left = new;
            // Often all of a page, or none.
            let share = [0, 8, rng.below(9)][rng.below(3) as usize];
            for sector in (0..8).filter(|_| rng.below(8) >= share) {
                let range = sector * SECTOR..(sector + 1) * SECTOR;
                left[range.clone()].copy_from_slice(&old[range]);
            }
            inner.put(page, &left);
        }
        inner.synced = inner.now.clone();
    }

    /// Syncs do nothing from now on.
    pub fn lie(&self) {
        self.inner().lies = true;
    }

    pub fn fail_syncs(&self, fails: bool) {
        self.inner().fails_syncs = fails;
    }

    pub fn fail_reads(&self, fails: bool) {
        self.inner().fails_reads = fails;
    }

    /// No more than so many writes succeed; `None`: all.
    pub fn set_room(&self, room: Option<u64>) {
        self.inner().room = room;
    }

    /// The process is killed in the middle of a write, so many after this.
    pub fn cut_off_write(&self, after: u64) {
        self.inner().cut_off_after = Some(after);
    }

    pub fn syncs(&self) -> u64 {
        self.inner().syncs
    }

    /// Whether some bytes stand anywhere in it.
    pub fn has(&self, pattern: &[u8]) -> bool {
        let inner = self.inner();
        let mut pages = inner.now.values();
        pages.any(|page| page.windows(pattern.len()).any(|window| window == pattern))
    }

    /// Whether a page of the file looks like data of these tests: what lies beside it does not repeat like that.
    pub fn is_data(&self, page: u64) -> bool {
        let inner = self.inner();
        let lba = |bytes: &[u8]| u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes")) >> 32;
        let page = inner.now.get(&page);
        page.is_some_and(|page| {
            (0..8).any(|sector| {
                let sector = &page[sector * SECTOR..][..SECTOR];
                lba(sector) < 1 << 20
                    && lba(sector) != 0
                    && lba(sector) == lba(&sector[8..])
                    && lba(sector) == lba(&sector[128..])
            })
        })
    }

    /// Pages that take room.
    pub fn pages(&self) -> Vec<u64> {
        self.inner().now.keys().copied().collect()
    }

    pub fn flip(&self, at: u64, bit: u8) {
        let inner = &mut *self.inner();
        let page = at / PAGE;
        let mut bytes = inner.now.get(&page).map_or([0; 4096], |page| **page);
        bytes[(at % PAGE) as usize] ^= 1 << bit;
        inner.put(page, &bytes);
        inner.synced = inner.now.clone();
    }

    /// A part of it is not there any more, as an extent that a copy has left out.
    pub fn lose(&self, at: u64, bytes: u64) {
        self.punch(at, bytes).expect("it can be written");
        let inner = &mut *self.inner();
        inner.synced = inner.now.clone();
        inner.changed.clear();
    }

    pub fn copy(&self) -> Self {
        let inner = self.inner();
        SimDisk(Mutex::new(Inner {
            now: inner.now.clone(),
            synced: inner.synced.clone(),
            changed: inner.changed.clone(),
            bytes: inner.bytes,
            ..Inner::default()
        }))
    }

    pub fn cut_off(&self, bytes: u64) {
        self.inner().bytes = bytes;
    }
}

impl Inner {
    fn put(&mut self, page: u64, bytes: &[u8; PAGE as usize]) {
        match bytes.iter().all(|byte| *byte == 0) {
            true => drop(self.now.remove(&page)),
            false => drop(self.now.insert(page, Box::new(*bytes))),
        }
    }

    /// Goes through the parts of pages that a range consists of.
    fn parts(at: u64, bytes: u64) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> {
        (at / PAGE..(at + bytes).div_ceil(PAGE)).map(move |page| {
            let from = at.max(page * PAGE) - page * PAGE;
            let end = (at + bytes).min((page + 1) * PAGE) - page * PAGE;
            (page, from as usize..end as usize)
        })
    }
}

impl Disk for SimDisk {
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let inner = self.inner();
        if inner.fails_reads {
            return Err(io::ErrorKind::Other.into());
        }
        if at + into.len() as u64 > inner.bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut done = 0;
        for (page, range) in Inner::parts(at, into.len() as u64) {
            let part = &mut into[done..done + range.len()];
            done += range.len();
            match inner.now.get(&page) {
                Some(bytes) => part.copy_from_slice(&bytes[range]),
                None => part.fill(0),
            }
        }
        Ok(())
    }

    fn write(&self, at: u64, from: &[u8]) -> io::Result<()> {
        let inner = &mut *self.inner();
        let mut from = from;
        match &mut inner.cut_off_after {
            Some(0) => {
                from = &from[..from.len() / 2];
                (inner.room, inner.cut_off_after) = (Some(1), None);
            }
            Some(left) => *left -= 1,
            None => {}
        }
        if let Some(room) = &mut inner.room {
            if *room == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            *room -= 1;
        }
        let mut done = 0;
        for (page, range) in Inner::parts(at, from.len() as u64) {
            let mut bytes = inner.now.get(&page).map_or([0; 4096], |page| **page);
            let part = &from[done..done + range.len()];
            done += range.len();
            bytes[range].copy_from_slice(part);
            inner.put(page, &bytes);
            inner.changed.insert(page);
        }
        inner.bytes = inner.bytes.max(at + from.len() as u64);
        Ok(())
    }

    fn punch(&self, at: u64, bytes: u64) -> io::Result<()> {
        let inner = &mut *self.inner();
        let held: Vec<u64> = inner
            .now
            .range(at / PAGE..)
            .map(|(page, _)| *page)
            .collect();
        let end = (at + bytes).div_ceil(PAGE);
        for page in held.into_iter().take_while(|page| *page < end) {
            let from = at.max(page * PAGE).min((page + 1) * PAGE) - page * PAGE;
            let to = (at + bytes).min((page + 1) * PAGE) - page * PAGE;
            let mut held = inner.now.get(&page).map_or([0; 4096], |page| **page);
            held[from as usize..to as usize].fill(0);
            inner.put(page, &held);
            inner.changed.insert(page);
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let inner = &mut *self.inner();
        inner.syncs += 1;
        if inner.fails_syncs {
            return Err(io::Error::other("the disk is broken"));
        }
        if !inner.lies {
            for page in std::mem::take(&mut inner.changed) {
                match inner.now.get(&page) {
                    Some(bytes) => drop(inner.synced.insert(page, bytes.clone())),
                    None => drop(inner.synced.remove(&page)),
                }
            }
        }
        Ok(())
    }

    fn next_data(&self, at: u64) -> io::Result<Option<u64>> {
        let inner = self.inner();
        let next = inner.now.range(at / PAGE..).next();
        Ok(next.map(|(page, _)| (page * PAGE).max(at)))
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.inner().bytes)
    }

    fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        self.inner().bytes = bytes;
        Ok(())
    }
}

/// What a block may hold: the newest last.
#[derive(Clone, Debug, Default)]
struct Block {
    /// Versions since the last that is safe, that one first.
    may_be: Vec<u32>,
    busy: bool,
}

impl Block {
    fn newest(&self) -> u32 {
        *self.may_be.last().expect("it holds something")
    }
}

/// What a command does.
#[derive(Clone, Debug)]
pub enum Asked {
    Write {
        lba: u64,
        blocks: u32,
        version: u32,
        fua: bool,
    },
    Deallocate {
        lba: u64,
        blocks: u32,
        version: u32,
    },
    Read {
        lba: u64,
        blocks: u32,
    },
    /// With the versions that blocks had when it was asked for.
    Flush(Vec<(u64, u32)>),
}

/// A naive drive: what each block may hold, if power fails now. No two commands are about the same page at once.
pub struct Naive {
    pub rng: Rng,
    blocks: Vec<Block>,
    /// Written since the last flush.
    unsafe_blocks: BTreeSet<u64>,
    next_version: u32,
    /// Its buffer is power-protected: what has ended is safe.
    pub is_protected: bool,
}

/// Marks versions of nothing but zeros. They are numbered like others: two deallocations of a block are two, and a flush
/// between them makes only the first safe.
pub const ZEROS: u32 = 1 << 31;

/// The bytes of a block.
pub fn block_bytes(lba: u64, version: u32) -> [u8; SECTOR] {
    let mut bytes = [0; SECTOR];
    if version & ZEROS == 0 {
        for (index, word) in (0u64..).zip(bytes.chunks_exact_mut(8)) {
            let value = lba << 32 ^ u64::from(version) << 8 ^ index;
            word.copy_from_slice(&value.to_le_bytes());
        }
    }
    bytes
}

impl Naive {
    pub fn new(blocks: u64, seed: u64) -> Self {
        let block = Block {
            may_be: vec![ZEROS],
            busy: false,
        };
        Naive {
            rng: Rng::new(seed),
            blocks: vec![block; blocks as usize],
            unsafe_blocks: BTreeSet::new(),
            next_version: 0,
            is_protected: false,
        }
    }

    /// Something to ask for, whose pages are nobody else's until it is over.
    pub fn choose(&mut self) -> Option<Asked> {
        let kind = self.rng.below(20);
        if kind == 0 {
            let newest = self
                .unsafe_blocks
                .iter()
                .filter(|lba| !self.blocks[**lba as usize].busy);
            let newest = newest.map(|lba| (*lba, self.blocks[*lba as usize].newest()));
            return Some(Asked::Flush(newest.collect()));
        }
        let all = self.blocks.len() as u64;
        // Some pages are written much more often than others.
        let span = if self.rng.below(2) == 0 { all / 8 } else { all };
        let mut lba = u64::from(self.rng.below(span as u32 - 128));
        let mut blocks = 1 + self.rng.below(100);
        if self.rng.below(3) != 0 {
            lba -= lba % 8;
            blocks = 8 * (1 + self.rng.below(12));
        }
        if pages(lba, blocks).any(|lba| self.blocks[lba].busy) {
            return None;
        }
        pages(lba, blocks).for_each(|lba| self.blocks[lba].busy = true);
        self.next_version += 1;
        Some(match kind {
            1..=3 => Asked::Read { lba, blocks },
            4..=6 => Asked::Deallocate {
                lba,
                blocks,
                version: self.next_version | ZEROS,
            },
            _ => Asked::Write {
                lba,
                blocks,
                version: self.next_version,
                fua: self.rng.below(8) == 0,
            },
        })
    }

    /// From now on blocks may hold what is asked for.
    pub fn submit(&mut self, asked: &Asked) {
        for (lba, version) in changes(asked) {
            self.blocks[lba as usize].may_be.push(version);
            self.unsafe_blocks.insert(lba);
        }
    }

    /// It has ended, well.
    pub fn complete(&mut self, asked: &Asked, read: &[u8]) -> Result<(), String> {
        match asked {
            Asked::Flush(newest) => {
                for (lba, version) in newest {
                    let may_be = &mut self.blocks[*lba as usize].may_be;
                    let at = may_be.iter().rposition(|held| held == version);
                    if let Some(at) = at {
                        may_be.drain(..at);
                    }
                    if may_be.len() == 1 {
                        self.unsafe_blocks.remove(lba);
                    }
                }
                return Ok(());
            }
            Asked::Write {
                fua: true, version, ..
            } => {
                for (lba, _) in changes(asked) {
                    self.blocks[lba as usize].may_be = vec![*version];
                    self.unsafe_blocks.remove(&lba);
                }
            }
            Asked::Read { lba, .. } => {
                for (lba, bytes) in (*lba..).zip(read.chunks_exact(SECTOR)) {
                    let version = self.blocks[lba as usize].newest();
                    if bytes != block_bytes(lba, version) {
                        return Err(format!("block {lba} is not of version {version}"));
                    }
                }
            }
            Asked::Write { .. } | Asked::Deallocate { .. } if self.is_protected => {
                for (lba, version) in changes(asked) {
                    self.blocks[lba as usize].may_be = vec![version];
                    self.unsafe_blocks.remove(&lba);
                }
            }
            Asked::Write { .. } | Asked::Deallocate { .. } => {}
        }
        if let Asked::Write { lba, blocks, .. }
        | Asked::Deallocate { lba, blocks, .. }
        | Asked::Read { lba, blocks } = asked
        {
            pages(*lba, *blocks).for_each(|lba| self.blocks[lba].busy = false);
        }
        Ok(())
    }

    /// Power has failed, and this is what is there. Returns blocks that hold something older than what had been
    /// written last.
    pub fn restart(&mut self, mut holds: impl FnMut(u64) -> [u8; SECTOR]) -> Result<u64, String> {
        let mut lost = 0;
        for (lba, block) in (0..).zip(&mut self.blocks) {
            block.busy = false;
            let bytes = holds(lba);
            let held = block
                .may_be
                .iter()
                .rposition(|version| bytes == block_bytes(lba, *version));
            let Some(at) = held else {
                let version = u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"));
                let version = (version ^ lba << 32) >> 8;
                let may_be = &block.may_be;
                return Err(format!(
                    "block {lba} holds something like version {version}, and may be {may_be:?}"
                ));
            };
            lost += u64::from(at + 1 < block.may_be.len());
            block.may_be = vec![block.may_be[at]];
        }
        self.unsafe_blocks.clear();
        Ok(lost)
    }
}

/// The blocks of all pages that a range touches.
fn pages(lba: u64, blocks: u32) -> std::ops::Range<usize> {
    let end = (lba + u64::from(blocks)).next_multiple_of(8);
    (lba - lba % 8) as usize..end as usize
}

/// Blocks that a command changes, and to what.
fn changes(asked: &Asked) -> Vec<(u64, u32)> {
    match asked {
        Asked::Write {
            lba,
            blocks,
            version,
            ..
        } => (*lba..lba + u64::from(*blocks))
            .map(|lba| (lba, *version))
            .collect(),
        Asked::Deallocate {
            lba,
            blocks,
            version,
        } => {
            // Whole pages only.
            let (from, end) = (lba.next_multiple_of(8), (lba + u64::from(*blocks)) / 8 * 8);
            (from..end.max(from)).map(|lba| (lba, *version)).collect()
        }
        Asked::Read { .. } | Asked::Flush(_) => Vec::new(),
    }
}
