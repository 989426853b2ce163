//! Random reads and writes on several queues, held against what each block must hold.

use super::{BUFFER_BYTES, Driver, Port};
use lodger_core::rng::Rng;
use lodger_wire::memory::GuestMemory;
use std::collections::HashMap;

const BLOCK: usize = 512;
/// Blocks of a page of the drive.
const PAGE_BLOCKS: u64 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Zeroes,
    Deallocate,
    Compare,
    CompareOther,
    Flush,
    Verify,
}

const KINDS: [Kind; 16] = [
    Kind::Read,
    Kind::Read,
    Kind::Read,
    Kind::Read,
    Kind::Read,
    Kind::Write,
    Kind::Write,
    Kind::Write,
    Kind::Write,
    Kind::Write,
    Kind::Zeroes,
    Kind::Deallocate,
    Kind::Compare,
    Kind::CompareOther,
    Kind::Flush,
    Kind::Verify,
];

#[derive(Clone, Copy, Debug)]
struct Asked {
    kind: Kind,
    lba: u64,
    blocks: u32,
    version: u32,
}

/// What each block holds, and who is at it.
pub struct Mix {
    rng: Rng,
    /// Versions by block; 0: zeros.
    versions: Vec<u32>,
    /// Blocks that a write under way at a reset was about: either of two.
    doubtful: HashMap<u64, u32>,
    busy: Vec<bool>,
    under_way: HashMap<(usize, u16), Asked>,
    next_version: u32,
    pub done: u64,
}

fn block_bytes(lba: u64, version: u32) -> [u8; BLOCK] {
    let mut bytes = [0; BLOCK];
    if version != 0 {
        for (index, word) in bytes.chunks_exact_mut(8).enumerate() {
            let value = lba << 32 ^ u64::from(version) << 8 ^ index as u64;
            word.copy_from_slice(&value.to_le_bytes());
        }
    }
    bytes
}

impl Mix {
    pub fn new(blocks: u64, seed: u64) -> Self {
        Mix {
            rng: Rng::new(seed),
            versions: vec![0; blocks as usize],
            doubtful: HashMap::new(),
            busy: vec![false; blocks as usize],
            under_way: HashMap::new(),
            next_version: 1,
            done: 0,
        }
    }

    fn expected(&self, lba: u64, blocks: u32) -> Vec<u8> {
        let blocks = lba..lba + u64::from(blocks);
        blocks
            .flat_map(|lba| block_bytes(lba, self.versions[lba as usize]))
            .collect()
    }

    fn choose(&mut self) -> Option<Asked> {
        let kind = KINDS[self.rng.below(KINDS.len() as u32) as usize];
        let most = (BUFFER_BYTES / BLOCK as u64) as u32;
        let mut blocks = match self.rng.below(4) {
            0 => 1 + self.rng.below(most),
            1 => PAGE_BLOCKS as u32,
            _ => 1 + self.rng.below(24),
        };
        let mut lba = u64::from(self.rng.below(self.versions.len() as u32 - most));
        if self.rng.below(2) == 0 {
            lba -= lba % PAGE_BLOCKS;
        }
        if kind == Kind::Flush {
            (lba, blocks) = (0, 0);
        }
        let range = lba as usize..lba as usize + blocks as usize;
        if self.busy[range.clone()].contains(&true) {
            return None;
        }
        self.busy[range].fill(true);
        self.next_version += 1;
        let version = self.next_version;
        Some(Asked {
            kind,
            lba,
            blocks,
            version,
        })
    }

    fn submit<P: Port>(&mut self, driver: &mut Driver<P>, queue: usize) {
        let Some(asked) = self.choose() else { return };
        let Asked {
            kind,
            lba,
            blocks,
            version,
        } = asked;
        let opcode = match kind {
            Kind::Flush => 0,
            Kind::Write => 1,
            Kind::Read => 2,
            Kind::Compare | Kind::CompareOther => 5,
            Kind::Zeroes => 8,
            Kind::Deallocate => 9,
            Kind::Verify => 0xc,
        };
        let mut entry = driver.entry(queue, opcode, lba, blocks);
        let command = entry.command().0;
        let at = driver.io[queue - 1].buffer(command);
        let mut data = vec![0xee; blocks as usize * BLOCK];
        match kind {
            Kind::Write => {
                data = (lba..lba + u64::from(blocks))
                    .flat_map(|lba| block_bytes(lba, version))
                    .collect();
            }
            Kind::Compare | Kind::CompareOther => {
                data = self.expected(lba, blocks);
                if kind == Kind::CompareOther {
                    let at = self.rng.below(data.len() as u32) as usize;
                    data[at] ^= 1;
                }
            }
            Kind::Deallocate => {
                data = vec![0; 16];
                data[4..8].copy_from_slice(&blocks.to_le_bytes());
                data[8..].copy_from_slice(&lba.to_le_bytes());
                entry = entry.with_dword(10, 0).with_dword(11, 4).with_dword(12, 0);
            }
            _ => {}
        }
        if matches!(kind, Kind::Write | Kind::Zeroes) && self.rng.below(8) == 0 {
            entry = entry.with_dword(12, entry.dword(12) | 1 << 30);
        }
        driver.port.memory().write(at, &data).unwrap();
        self.under_way.insert((queue, command), asked);
        driver.submit(queue, entry);
    }

    /// What a command leaves in its blocks.
    fn apply(&mut self, asked: &Asked) {
        let range = asked.lba..asked.lba + u64::from(asked.blocks);
        for lba in range.clone() {
            let page = lba - lba % PAGE_BLOCKS;
            let is_whole = page >= range.start && page + PAGE_BLOCKS <= range.end;
            let version = match asked.kind {
                Kind::Write => asked.version,
                Kind::Zeroes => 0,
                Kind::Deallocate if is_whole => 0,
                _ => continue,
            };
            self.versions[lba as usize] = version;
        }
    }

    fn check<P: Port>(&mut self, driver: &Driver<P>, queue: usize, command: u16) {
        let asked = self
            .under_way
            .remove(&(queue, command))
            .expect("it was asked for");
        let range = asked.lba as usize..asked.lba as usize + asked.blocks as usize;
        self.busy[range].fill(false);
        self.done += 1;
        if asked.kind == Kind::Read {
            let mut read = vec![0; asked.blocks as usize * BLOCK];
            let at = driver.io[queue - 1].buffer(command);
            driver.port.memory().read(at, &mut read).unwrap();
            for (lba, read) in (asked.lba..).zip(read.chunks_exact(BLOCK)) {
                self.check_block(lba, read);
            }
        }
        self.apply(&asked);
    }

    fn check_block(&mut self, lba: u64, read: &[u8]) {
        if let Some(other) = self.doubtful.remove(&lba)
            && read == block_bytes(lba, other)
        {
            self.versions[lba as usize] = other;
        }
        let version = self.versions[lba as usize];
        assert!(
            read == block_bytes(lba, version),
            "block {lba} is not of version {version}"
        );
    }

    fn reap<P: Port>(&mut self, driver: &mut Driver<P>) -> usize {
        let mut count = 0;
        for queue in 1..=driver.io.len() {
            for (command, outcome) in driver.reap(queue) {
                let asked = self.under_way[&(queue, command)];
                let differs = asked.kind == Kind::CompareOther;
                assert_eq!(
                    (outcome.status.is_success(), outcome.status.code()),
                    if differs { (false, 0x85) } else { (true, 0) },
                    "{asked:?}: {}",
                    outcome.status
                );
                self.check(driver, queue, command);
                count += 1;
            }
        }
        count
    }

    /// Keeps up to `depth` commands under way on each queue until so many are done; leaves those that
    /// are.
    pub fn run<P: Port>(&mut self, driver: &mut Driver<P>, commands: u64, depth: usize) {
        let end = self.done + commands;
        while self.done < end {
            for queue in 1..=driver.io.len() {
                for _ in driver.io[queue - 1].under_way.len()..depth {
                    self.submit(driver, queue);
                }
            }
            if self.reap(driver) == 0 {
                assert!(driver.port.wait(), "{:?} do not complete", self.under_way);
            }
        }
    }

    pub fn finish<P: Port>(&mut self, driver: &mut Driver<P>) {
        while !self.under_way.is_empty() {
            if self.reap(driver) == 0 {
                assert!(driver.port.wait(), "{:?} do not complete", self.under_way);
            }
        }
    }

    /// The controller was reset with commands under way: each was carried out, or not, block by block.
    pub fn reset(&mut self) {
        for (_, asked) in std::mem::take(&mut self.under_way) {
            let before = self.versions.clone();
            self.apply(&asked);
            for lba in asked.lba..asked.lba + u64::from(asked.blocks) {
                self.busy[lba as usize] = false;
                self.doubtful.insert(lba, before[lba as usize]);
            }
        }
    }

    /// Reads everything.
    pub fn check_all<P: Port>(&mut self, driver: &mut Driver<P>) {
        self.finish(driver);
        let most = (BUFFER_BYTES / BLOCK as u64) as usize;
        for start in (0..self.versions.len()).step_by(most) {
            let blocks = most.min(self.versions.len() - start) as u32;
            let entry = driver.entry(1, 2, start as u64, blocks);
            let at = driver.io[0].buffer(entry.command().0);
            driver.run(1, entry).expect("a read");
            let mut read = vec![0; blocks as usize * BLOCK];
            driver.port.memory().read(at, &mut read).unwrap();
            for (lba, read) in (start as u64..).zip(read.chunks_exact(BLOCK)) {
                self.check_block(lba, read);
            }
        }
    }
}
