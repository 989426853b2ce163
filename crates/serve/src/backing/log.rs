//! What goes to the file, in order: program operations, erases, records of trims, what the drive keeps beside.
//!
//! Each is tried when all before it are done. What must not happen before something else is safe waits for a sync,
//! and what follows waits behind it, in memory; so does everything while the file cannot be written. What is
//! in the file is what a prefix of the order says, but for what was not synced before the machine stopped: that
//! is known by its epoch, and held against its checks when the file is opened again.

use super::disk::Disk;
use super::inventory::{Inventory, Tally};
use super::layout::{self, Layout, MARKER_AT, Marker, PAGE, Record, SPARE, TRIM};
use super::ledger::{self, Ledger};
use super::protected::{self, ENTRY, Entries, List};
use super::rest;
use super::syncer::Syncer;
use super::window;
use lodger_core::device::PageBytes;
use lodger_core::ftl::Trim;
use lodger_core::ids::Ppn;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// So much is written before it is synced without being asked: it bounds what has to be checked after a crash.
const UNSYNCED_BYTES_MAX: u64 = 64 << 20;
/// Records of trims beyond twice the needed ones, before their list is written anew.
const TRIMS_FEW: usize = 4096;

/// Something to be done to the file.
#[derive(Debug)]
pub enum Op {
    /// Pages of a program operation and what lies beside them. Pages that are all zeros are not written.
    Program {
        first: Ppn,
        pages: Vec<Option<Arc<PageBytes>>>,
        records: Vec<Record>,
    },
    /// A superblock is erased: that is counted.
    Erase(u32),
    /// What lies beside its pages goes, once that is safe, and what superseded them: until then it must be there, as the
    /// inventory has it.
    Clear(u32),
    /// Its data goes, once nothing says any more that it is there.
    Punch(u32),
    /// What is noted of protected pages goes, as they will.
    ForgetProtected,
    /// All data goes.
    PunchAll,
    /// Records of trims, behind so many of a list.
    Trims {
        list: TrimList,
        trims: Vec<Trim>,
    },
    /// This list counts from now on.
    SwitchTrims(TrimList),
    /// Pages that a protected buffer holds, behind those of a list.
    Protect(Entries),
    /// That list counts from now on.
    SwitchProtected(List),
    /// A page of the byte window holds this: it is being pinned. `None`: zeros.
    Pin {
        slot: u32,
        page: Option<Arc<PageBytes>>,
    },
    /// Ranges of the byte window hold zeros: offset and length, bytes.
    ClearWindow(Vec<(u64, u64)>),
    /// The drive is in use: what it does not hold here may be lost. Whoever has mapped the byte window has stored something
    /// there, or a host has switched the drive on.
    Used,
    Rest(Vec<u8>),
    /// What the file has, with so many records of trims.
    Inventory(TrimList),
    /// Whether the drive is switched off properly.
    Mark(bool),
    /// All before is safe.
    Barrier(u64),
}

/// One of the two lists of trims.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrimList {
    pub which: bool,
    /// Lists there were, this one included.
    pub generation: u32,
    /// Records in it.
    pub count: usize,
}

/// What became of trying.
enum Tried {
    Done,
    NeedsSync,
}

#[derive(Debug)]
pub struct Log {
    pub disk: Arc<dyn Disk>,
    pub layout: Layout,
    syncer: Syncer,
    /// Each with its number.
    ops: VecDeque<(u64, Op)>,
    pushed: u64,
    done_to: u64,
    /// Changes of the file so far, those that are synced, and those that the sync under way is about.
    written: u64,
    synced: u64,
    syncing: Option<u64>,
    unsynced_bytes: u64,
    /// Of what is written now; of the last that is synced.
    pub epoch: u32,
    pub marker: Marker,
    pub wear: Vec<u32>,
    /// What lies beside the pages of each superblock.
    pub tallies: Vec<Tally>,
    /// What is noted of what is synced.
    pub ledger: Ledger,
    /// The list that records are added to.
    pub trims: TrimList,
    /// The generation of the list of trims that counts in the file, and when it began to.
    pub trims_kept: u32,
    trims_since: u64,
    /// The list of protected pages that counts, and when it began to.
    pub protected: List,
    protected_since: u64,
    /// How far the list that was written to last has got.
    protected_reached: ledger::Reached,
    /// Which place of the rest is next, its generation, and when the last one was written.
    pub rest: (bool, u32),
    rest_written: u64,
    /// When the drive was marked as not switched off properly.
    marked: u64,
    barriers: u64,
    /// Barriers that are behind, and whether all was well.
    pub passed: Vec<(u64, bool)>,
    /// Why the first of the order cannot be done.
    failure: Option<io::Error>,
    /// What was written before may be lost: nothing can be relied on any more.
    is_broken: bool,
    /// Why something that was written could not be read.
    pub lost: RefCell<Option<io::Error>>,
    buffer: Vec<u8>,
}

impl Log {
    pub fn new(disk: Arc<dyn Disk>, layout: Layout, has_thread: bool) -> Self {
        Log {
            syncer: Syncer::new(Arc::clone(&disk), has_thread),
            disk,
            layout,
            ops: VecDeque::new(),
            pushed: 0,
            done_to: 0,
            written: 0,
            synced: 0,
            syncing: None,
            unsynced_bytes: 0,
            epoch: 1,
            marker: Marker::default(),
            wear: vec![0; layout.superblocks as usize],
            tallies: vec![Tally::default(); layout.superblocks as usize],
            ledger: Ledger::default(),
            trims: TrimList::default(),
            trims_kept: 0,
            trims_since: 0,
            protected: List::default(),
            protected_since: 0,
            protected_reached: (0, 0),
            rest: (false, 1),
            rest_written: 0,
            marked: 0,
            barriers: 0,
            passed: Vec::new(),
            failure: None,
            is_broken: false,
            lost: RefCell::new(None),
            buffer: Vec::new(),
        }
    }

    /// Something is to be done when all before it is. Returns its number.
    pub fn push(&mut self, op: Op) -> u64 {
        self.pushed += 1;
        self.ops.push_back((self.pushed, op));
        self.pump();
        self.pushed
    }

    /// The number of the last that is done.
    pub fn done_to(&self) -> u64 {
        self.done_to
    }

    /// Numbers of barriers; each shows in `passed` once.
    pub fn barrier(&mut self) -> u64 {
        self.barriers += 1;
        self.push(Op::Barrier(self.barriers));
        self.barriers
    }

    /// New records of trims, or all that are needed if many are not.
    pub fn record_trims(&mut self, new: &[Trim], all: &[Trim]) {
        let TrimList {
            generation, count, ..
        } = self.trims;
        let is_full = (count + new.len()) as u64 > self.layout.trims_max();
        if count + new.len() > 2 * all.len() + TRIMS_FEW || is_full || generation == 0 {
            self.write_all_trims(all);
        } else {
            self.add_trims(new);
        }
    }

    /// A new list, at the place of the one before the last.
    pub fn write_all_trims(&mut self, all: &[Trim]) {
        self.trims = TrimList {
            which: !self.trims.which,
            generation: self.trims.generation + 1,
            count: 0,
        };
        self.add_trims(all);
        self.push(Op::SwitchTrims(self.trims));
    }

    fn add_trims(&mut self, trims: &[Trim]) {
        let list = self.trims;
        self.trims.count += trims.len();
        self.push(Op::Trims {
            list,
            trims: trims.to_vec(),
        });
    }

    /// Something waits for a sync that is under way.
    pub fn waits(&self) -> bool {
        self.syncing.is_some()
    }

    /// Something cannot be written.
    pub fn is_failing(&self) -> bool {
        self.failure.is_some() || self.is_broken
    }

    /// Why the last thing could not be done.
    pub fn take_failure(&mut self) -> io::Error {
        let failure = self.failure.take();
        failure.unwrap_or_else(|| io::Error::other("it could not be written"))
    }

    fn break_down(&mut self, error: io::Error) {
        self.is_broken = true;
        self.failure.get_or_insert(error);
    }

    /// Pages that wait to be written are forgotten.
    pub fn forget_pages(&mut self) {
        for (_, op) in &mut self.ops {
            match op {
                Op::Program { pages, .. } => pages.fill(None),
                Op::Protect(list) => list.entries.iter_mut().for_each(|each| each.page = None),
                _ => {}
            }
        }
    }

    /// Does what can be done.
    pub fn pump(&mut self) {
        if let Some(mark) = self.syncing
            && let Some(ended) = self.syncer.ended()
        {
            self.syncing = None;
            match ended {
                Ok(()) => self.on_synced(mark),
                // Linux tells of it once, and forgets what it could not write.
                Err(error) => self.break_down(error),
            }
        }
        if let Some(error) = self.lost.take() {
            self.break_down(error);
        }
        if self.is_broken {
            return self.fail_barriers();
        }
        while let Some((number, op)) = self.ops.pop_front() {
            match self.attempt(&op) {
                Ok(Tried::Done) => {
                    self.failure = None;
                    self.done_to = number;
                    self.follow(number, op);
                }
                Ok(Tried::NeedsSync) => {
                    self.ops.push_front((number, op));
                    if self.syncing.is_none() {
                        self.begin_sync();
                        return self.pump_if_ended();
                    }
                    return;
                }
                Err(error) => {
                    self.ops.push_front((number, op));
                    self.failure = Some(error);
                    return self.fail_barriers();
                }
            }
        }
        if self.unsynced_bytes > UNSYNCED_BYTES_MAX && self.syncing.is_none() {
            self.begin_sync();
        }
    }

    /// Without a thread a sync has ended as it begins.
    fn pump_if_ended(&mut self) {
        if let Some(ended) = self.syncer.ended() {
            let mark = self.syncing.take().unwrap_or(0);
            match ended {
                Ok(()) => self.on_synced(mark),
                Err(error) => self.break_down(error),
            }
            self.pump();
        }
    }

    fn begin_sync(&mut self) {
        self.syncing = Some(self.written);
        self.unsynced_bytes = 0;
        let (wear, tallies) = (&self.wear, &self.tallies);
        self.ledger
            .sync_begins(self.epoch, &self.layout, wear, tallies);
        self.epoch += 1;
        self.syncer.begin();
    }

    fn on_synced(&mut self, mark: u64) {
        self.synced = mark;
        self.marker.epoch = self.epoch - 1;
        // It is safe with the next sync; until then more is checked than needs to be.
        let _ = self.disk.write(MARKER_AT, &self.marker.encode());
        let _ = self.ledger.sync_ended(&*self.disk);
    }

    fn fail_barriers(&mut self) {
        let passed = &mut self.passed;
        self.ops.retain(|(_, op)| match op {
            Op::Barrier(barrier) => {
                passed.push((*barrier, false));
                false
            }
            _ => true,
        });
    }

    fn is_synced(&self) -> bool {
        self.synced == self.written
    }

    fn attempt(&mut self, op: &Op) -> io::Result<Tried> {
        let waits_for_sync = match op {
            Op::Clear(_)
            | Op::Punch(_)
            | Op::PunchAll
            | Op::SwitchTrims(_)
            | Op::SwitchProtected(_)
            | Op::Mark(true)
            | Op::Barrier(_) => !self.is_synced(),
            // What was pinned is in the window before the table says so, and what was flushed is in flash before it
            // says no more that it was pinned.
            Op::Rest(_) if self.layout.window().is_some() => !self.is_synced(),
            // The last one must not be lost with this one.
            Op::Rest(_) => self.rest_written > self.synced,
            // Of what stands there the table may say that it is pinned, until the next one is safe.
            Op::Pin { .. } | Op::ClearWindow(_) => self.rest_written > self.synced,
            // Another list goes where the last but one is: the last one must count by then.
            Op::Protect(entries) if entries.list.generation > self.protected.generation => {
                self.protected_since > self.synced
            }
            Op::Trims { list, .. } if list.generation > self.trims_kept => {
                self.trims_since > self.synced
            }
            Op::Protect(_) | Op::ForgetProtected => false,
            Op::Program { .. }
            | Op::Erase(_)
            | Op::Trims { .. }
            | Op::Inventory(_)
            | Op::Mark(false)
            | Op::Used => false,
        };
        if waits_for_sync {
            return Ok(Tried::NeedsSync);
        }
        let changes = match op {
            Op::Mark(_) | Op::Barrier(_) => false,
            Op::ClearWindow(ranges) => window::holds_any(&*self.disk, &self.layout, ranges)?,
            _ => true,
        };
        if changes && self.marker.is_clean {
            // From now on the drive has not been switched off properly, and that is safe first.
            self.mark(false)?;
            self.marked = self.written;
        }
        if changes && self.marked > self.synced {
            return Ok(Tried::NeedsSync);
        }
        if let Op::Barrier(_) = op {
            return Ok(Tried::Done);
        }
        if let (Op::ClearWindow(_), false) = (op, changes) {
            return Ok(Tried::Done);
        }
        self.change(op)?;
        self.written += 1;
        Ok(Tried::Done)
    }

    /// What it changes of the file.
    fn change(&mut self, op: &Op) -> io::Result<()> {
        match op {
            Op::Program {
                first,
                pages,
                records,
            } => self.write_program(*first, pages, records)?,
            Op::Erase(superblock) => self.count_erase(*superblock)?,
            Op::Clear(superblock) => {
                let bytes = u64::from(self.layout.superblock_slots) * SPARE;
                let at = self.layout.spare(self.layout.first(*superblock));
                self.disk.punch(at, bytes)?;
                self.tallies[*superblock as usize] = Tally::default();
                self.ledger.changed(*superblock);
            }
            Op::Punch(superblock) => {
                let bytes = u64::from(self.layout.superblock_slots) * PAGE;
                let at = self.layout.data(self.layout.first(*superblock));
                self.disk.punch(at, bytes)?;
            }
            Op::ForgetProtected => self.ledger.forget(ledger::List::Protected, &*self.disk)?,
            Op::PunchAll => {
                for (at, bytes) in [self.layout.all_data(), self.layout.all_protected()] {
                    if bytes > 0 {
                        self.disk.punch(at, bytes)?;
                    }
                }
            }
            Op::Trims { list, trims } => self.write_trims(list, trims)?,
            Op::SwitchTrims(list) => {
                let at = self.layout.trims(list.which);
                let number = layout::encode_number(list.generation, at);
                self.disk.write(at, &number)?;
            }
            Op::Protect(entries) => {
                self.buffer.clear();
                protected::encode(entries, &self.layout, &mut self.buffer);
                let at = protected::place(&self.layout, &entries.list);
                self.disk.write(at, &self.buffer)?;
            }
            Op::SwitchProtected(list) => {
                let at = self.layout.protected(list.which);
                let number = layout::encode_number(list.generation, at);
                self.disk.write(at, &number)?;
            }
            Op::Rest(bytes) => {
                let (which, generation) = self.rest;
                self.buffer.clear();
                rest::encode(bytes, generation, &mut self.buffer);
                self.disk.write(Layout::rest(which), &self.buffer)?;
            }
            Op::Inventory(trims) => {
                let has = Inventory::new(self.epoch, *trims, &self.wear, &self.tallies);
                has.write(&*self.disk, &self.layout)?;
            }
            Op::Pin { slot, page } => {
                let page = page.as_deref().unwrap_or(&[0; PAGE as usize]);
                window::write(&*self.disk, &self.layout, *slot, page)?;
            }
            Op::ClearWindow(ranges) => window::clear(&*self.disk, &self.layout, ranges)?,
            Op::Mark(is_clean) => self.mark(*is_clean)?,
            Op::Barrier(_) | Op::Used => {}
        }
        Ok(())
    }

    /// What is to be noted when something is done.
    fn follow(&mut self, number: u64, op: Op) {
        match op {
            Op::Program { pages, .. } => self.unsynced_bytes += pages.len() as u64 * PAGE,
            Op::Trims { list, trims } if list.generation == self.trims_kept => {
                let reached = (list.generation, (list.count + trims.len()) as u32);
                self.ledger.reached(ledger::List::Trims, reached);
            }
            Op::SwitchTrims(list) => {
                let reached = (list.generation, list.count as u32);
                self.ledger.reached(ledger::List::Trims, reached);
                (self.trims_kept, self.trims_since) = (list.generation, self.written);
            }
            Op::Protect(Entries { list, entries }) => {
                let count = entries.len() as u64;
                self.unsynced_bytes += count * ENTRY;
                if list.generation == self.protected.generation {
                    let reached = (list.generation, (list.count + count) as u32);
                    self.ledger.reached(ledger::List::Protected, reached);
                }
                self.protected_reached = (list.generation, (list.count + count) as u32);
            }
            Op::SwitchProtected(list) => {
                self.ledger
                    .reached(ledger::List::Protected, self.protected_reached);
                self.protected = list;
                self.protected_since = self.written;
            }
            Op::Erase(superblock) => self.ops.push_front((number, Op::Clear(superblock))),
            Op::Clear(superblock) => self.ops.push_front((number, Op::Punch(superblock))),
            Op::Rest(_) => {
                self.ledger.reached(ledger::List::Rest, (self.rest.1, 0));
                self.rest = (!self.rest.0, self.rest.1 + 1);
                self.rest_written = self.written;
            }
            Op::Barrier(barrier) => self.passed.push((barrier, true)),
            Op::Pin { .. } => self.unsynced_bytes += PAGE,
            _ => {}
        }
    }

    fn mark(&mut self, is_clean: bool) -> io::Result<()> {
        let marker = Marker {
            is_clean,
            ..self.marker
        };
        self.disk.write(MARKER_AT, &marker.encode())?;
        self.marker = marker;
        self.written += 1;
        Ok(())
    }

    fn write_program(
        &mut self,
        first: Ppn,
        pages: &[Option<Arc<PageBytes>>],
        records: &[Record],
    ) -> io::Result<()> {
        let mut at = 0;
        while at < pages.len() {
            let run = pages[at..].iter().map_while(Option::as_ref);
            self.buffer.clear();
            run.for_each(|page| self.buffer.extend_from_slice(&page[..]));
            let count = self.buffer.len() / PAGE as usize;
            if count > 0 {
                let place = self.layout.data(Ppn(first.0 + at as u32));
                self.disk.write(place, &self.buffer)?;
            }
            at += count.max(1);
        }
        self.buffer.clear();
        for (at, (record, page)) in (0..).zip(records.iter().zip(pages)) {
            let record = Record {
                data: check_of(page.as_deref()),
                epoch: self.epoch,
                ..*record
            };
            let bytes = record.encode(Ppn(first.0 + at));
            self.buffer.extend_from_slice(&bytes);
        }
        self.disk.write(self.layout.spare(first), &self.buffer)?;
        let superblock = first.0 / self.layout.superblock_slots;
        self.ledger.changed(superblock);
        let tally = &mut self.tallies[superblock as usize];
        let records = self.buffer.chunks_exact(SPARE as usize);
        records.for_each(|record| tally.add(record));
        Ok(())
    }

    fn count_erase(&mut self, superblock: u32) -> io::Result<()> {
        let worn = self.wear[superblock as usize] + 1;
        let at = self.layout.wear(superblock);
        self.disk.write(at, &layout::encode_number(worn, at))?;
        self.wear[superblock as usize] = worn;
        self.ledger.erased(superblock);
        Ok(())
    }

    fn write_trims(&mut self, list: &TrimList, trims: &[Trim]) -> io::Result<()> {
        self.buffer.clear();
        for trim in trims {
            let bytes = layout::encode_trim(trim, list.generation);
            self.buffer.extend_from_slice(&bytes);
        }
        let at = self.layout.trims(list.which) + PAGE + list.count as u64 * TRIM;
        self.disk.write(at, &self.buffer)
    }
}

/// The check of a page's data; `None`: zeros.
pub fn check_of(page: Option<&PageBytes>) -> u32 {
    match page {
        Some(page) => crc32fast::hash(page),
        None => ZEROS_CHECK,
    }
}

/// CRC-32 of 4096 zeros.
pub const ZEROS_CHECK: u32 = 0xc71c_0011;
