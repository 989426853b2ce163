//! What is known to be synced, noted each time that a sync has ended: the records beside the pages of superblocks that have
//! changed, and how far lists had got.
//!
//! A crash leaves out what was not synced, so something that is missing tells nothing by itself. What stands here was safe
//! before it was written: where that is missing, or is no longer what it was, the file was damaged. A note is in one sector,
//! so a crash leaves the one before it or this one; one that is damaged says nothing, and what it was about is whole.

use super::disk::Disk;
use super::inventory::{Had, Inventory, Tally};
use super::layout::{self, Layout, NOTE};
use std::collections::BTreeSet;
use std::io;

/// A list, of which another takes the place, or what is kept beside flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    Trims,
    Protected,
    Rest,
}

impl List {
    pub const ALL: [List; 3] = [List::Trims, List::Protected, List::Rest];
}

/// How far a list had got: its generation, and what was in it.
pub type Reached = (u32, u32);

/// What is to be noted.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Superblocks that have changed since the last sync began.
    changed: BTreeSet<u32>,
    /// How far the lists that count have got, and what is noted of them.
    lists: [Reached; 3],
    noted: [Reached; 3],
    /// What the sync under way makes true: places and notes.
    pending: Vec<(u64, [u8; NOTE as usize])>,
}

impl Ledger {
    /// Records were added beside the pages of a superblock, or all of them are gone.
    pub fn changed(&mut self, superblock: u32) {
        self.changed.insert(superblock);
    }

    /// A superblock is erased: its records will go, so nothing is noted of them before.
    pub fn erased(&mut self, superblock: u32) {
        self.changed.remove(&superblock);
    }

    /// A list has got so far.
    pub fn reached(&mut self, list: List, reached: Reached) {
        self.lists[list as usize] = reached;
    }

    /// A sync begins: what is in the file is noted as of this epoch once it has ended.
    pub fn sync_begins(&mut self, epoch: u32, layout: &Layout, wear: &[u32], tallies: &[Tally]) {
        self.pending.clear();
        for superblock in std::mem::take(&mut self.changed) {
            let at = layout.note_of_superblock(superblock);
            let Tally { records, check } = tallies[superblock as usize];
            let words = [epoch, wear[superblock as usize], records, check];
            self.pending.push((at, layout::encode_words(words, at)));
        }
        for list in List::ALL {
            let reached = self.lists[list as usize];
            if reached != self.noted[list as usize] {
                self.pending.push(note_of_list(list, epoch, reached));
            }
        }
        self.noted = self.lists;
    }

    /// It has ended.
    ///
    /// # Errors
    /// If that cannot be written. Then less is known, which harms nothing.
    pub fn sync_ended(&mut self, disk: &dyn Disk) -> io::Result<()> {
        for (at, note) in std::mem::take(&mut self.pending) {
            disk.write(at, &note)?;
        }
        Ok(())
    }

    /// A list is to be emptied: what is noted of it goes.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn forget(&mut self, list: List, disk: &dyn Disk) -> io::Result<()> {
        self.lists[list as usize] = (0, 0);
        self.noted[list as usize] = (0, 0);
        let place = Layout::note_of_list(list as u64);
        self.pending.retain(|(at, _)| *at != place);
        disk.write(place, &[0; NOTE as usize])
    }

    /// With what a drive has come back with. `epoch`: the inventory that was made of it says all of its superblocks, unless
    /// nothing had to be made.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn begin(
        disk: &dyn Disk,
        layout: &Layout,
        lists: [Reached; 3],
        epoch: Option<u32>,
    ) -> io::Result<Self> {
        if let Some(epoch) = epoch {
            let (at, bytes) = layout.notes_of_superblocks();
            disk.punch(at, bytes)?;
            for list in List::ALL {
                let (at, note) = note_of_list(list, epoch, lists[list as usize]);
                disk.write(at, &note)?;
            }
        }
        Ok(Ledger {
            lists,
            noted: lists,
            ..Ledger::default()
        })
    }
}

fn note_of_list(
    list: List,
    epoch: u32,
    (generation, count): Reached,
) -> (u64, [u8; NOTE as usize]) {
    let at = Layout::note_of_list(list as u64);
    (at, layout::encode_words([epoch, generation, count, 0], at))
}

/// What is noted in a file.
#[derive(Debug, Default)]
pub struct Noted {
    pub lists: [Reached; 3],
    /// The highest epoch of any note.
    pub epoch: u32,
}

/// Reads it, and puts what it says of superblocks into the inventory, where that is newer. `synced`: the epoch that the
/// marker has; what a later one says may be about something that was erased since.
///
/// # Errors
/// If it cannot be read.
pub fn read(
    disk: &dyn Disk,
    layout: &Layout,
    synced: u32,
    inventory: &mut Inventory,
) -> io::Result<Noted> {
    let mut noted = Noted::default();
    let (first, bytes) = layout.notes_of_superblocks();
    let mut all = vec![0; bytes as usize];
    disk.read(first, &mut all)?;
    let notes = all.chunks_exact(NOTE as usize);
    for ((number, note), had) in (0..).zip(notes).zip(&mut inventory.superblocks) {
        let words = layout::decode_words(note, layout.note_of_superblock(number));
        let Some([epoch, erases, records, check]) = words else {
            continue;
        };
        noted.epoch = noted.epoch.max(epoch);
        if epoch <= synced && epoch > had.epoch {
            let tally = Tally { records, check };
            *had = Had {
                epoch,
                erases,
                tally,
            };
        }
    }
    for list in List::ALL {
        let at = Layout::note_of_list(list as u64);
        let mut note = [0; NOTE as usize];
        disk.read(at, &mut note)?;
        if let Some([epoch, generation, count, _]) = layout::decode_words(&note, at) {
            noted.epoch = noted.epoch.max(epoch);
            if epoch <= synced {
                noted.lists[list as usize] = (generation, count);
            }
        }
    }
    Ok(noted)
}

impl Noted {
    /// Whether all of a list is there that was.
    ///
    /// # Errors
    /// What is not, in words. `what` its entries are.
    pub fn has(&self, list: List, now: Reached, what: &str) -> Result<(), String> {
        let had = self.lists[list as usize];
        if now.0 < had.0 {
            return Err(format!("{what}: the list that counts is missing"));
        }
        match now.0 == had.0 && now.1 < had.1 {
            true => Err(format!("{what}: {} of {} are there", now.1, had.1)),
            false => Ok(()),
        }
    }
}
