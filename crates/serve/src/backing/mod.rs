//! A file that keeps a drive: the bytes of its flash, what lies beside them, and what firmware keeps.
//!
//! The file is what flash is. What the model programs is written to the page's place, once its program operation has
//! ended, with what lies beside the page: whose it is, and how new. Nothing is overwritten before the model erases
//! it. A drive that comes back finds its map from that, as after a power cut ([`lodger_core::ftl::Found`]);
//! nothing else has to be consistent with it.
//!
//! | the end of | leaves |
//! |---|---|
//! | the process (SIGKILL) | what had been programmed: what the drive loses when its power fails is lost |
//! | the machine | at least what was flushed, and of the rest whole pages |
//! | the command (Ctrl-C), or the host's shutdown | everything |
//!
//! The byte window of a drive that has one is in a file of its own beside it (`window`).
//!
//! Of pages that were written after the last sync nothing is certain when the machine has stopped. They carry the number of that
//! sync and a check of their data, and those that are not whole are taken for never programmed. What must
//! be safe before something else is not left to that: `log` says what waits for what. What must be there and is missing is known
//! from what the file had (`inventory`) and what was synced since (`ledger`).

pub mod disk;
#[cfg(target_os = "linux")]
mod file;
mod find;
mod inventory;
mod layout;
mod ledger;
mod log;
mod protected;
mod rest;
mod syncer;
pub(crate) mod window;
#[cfg(target_os = "linux")]
mod window_file;

pub(crate) use layout::Record;
pub(crate) use log::{Log, Op};

use crate::contents::Page;
use disk::Disk;
use inventory::Inventory;
use layout::{Layout, MARKER_AT, Marker, PAGE};
use ledger::Ledger;
use lodger_core::DriveSpec;
use lodger_core::device::Spare;
use lodger_core::ftl::{Contradiction, Found, Owned, Trim};
use lodger_core::ids::{Lpn, Ppn};
use protected::{Landed, Protected};
pub use rest::MAGIC;
use rest::{Header, Whose};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Why a file cannot keep a drive.
#[derive(Debug, thiserror::Error)]
pub enum BackingError {
    /// It cannot be opened, read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Another program's file.
    #[error("it is no backing of a drive, and is left as it is")]
    Foreign,
    /// A backing of another version of this program.
    #[error("it has form {0}, this program reads form {form}", form = rest::FORM)]
    Form(u32),
    /// That of another drive.
    #[error("{0}")]
    OtherDrive(String),
    /// The end of the file of its byte window is not there.
    #[error("it is damaged: of the file of its byte window {left} of {bytes} bytes are there")]
    ShortWindow {
        /// Bytes that are there.
        left: u64,
        /// Bytes that the window has.
        bytes: u64,
    },
    /// It is not what was written.
    #[error("it is damaged: {0}")]
    Damaged(String),
}

impl From<Contradiction> for BackingError {
    fn from(contradiction: Contradiction) -> Self {
        BackingError::Damaged(contradiction.to_string())
    }
}

/// A drive that was found in a file.
#[derive(Debug)]
pub struct FoundDrive {
    /// Its flash.
    pub flash: Found,
    /// What it kept beside.
    pub rest: Vec<u8>,
    /// It was switched off properly.
    pub was_clean: bool,
    /// Pages that hold something.
    pub pages: u64,
    /// Pages that were being written as the machine stopped, and are as if they had never been.
    pub torn_pages: u64,
    /// Pages that a protected buffer held and flash has not, in the order in which they were written.
    pub protected: Vec<(Lpn, Page)>,
}

/// A file that keeps a drive.
#[derive(Debug)]
pub struct Backing {
    pub(crate) log: Log,
    found: Option<FoundDrive>,
    was_begun: bool,
    last_trim: u32,
    protected: Protected,
}

impl Backing {
    /// Opens the file of a drive, or makes it. `progress` hears how many superblocks of how many were read.
    ///
    /// # Errors
    /// If it is not this drive's, is in use, damaged, or cannot be used. Then it is as it was.
    #[cfg(target_os = "linux")]
    pub fn open(
        path: &std::path::Path,
        spec: &DriveSpec,
        seed: u64,
        progress: &mut dyn FnMut(u32, u32),
    ) -> Result<Self, BackingError> {
        let was_there = path.exists();
        let disk = Arc::new(disk::FileDisk::open(path, Layout::new(spec).window())?);
        let is_new = disk.bytes()? == 0;
        let backing = Self::on(Arc::clone(&disk) as _, spec, seed, true, progress);
        if is_new && backing.is_err() {
            // As it was. Where that cannot be, it is an empty drive, which the next command takes.
            let _ = disk.set_bytes(0);
            if !was_there {
                let _ = std::fs::remove_file(path);
            }
        }
        let backing = backing?;
        if is_new {
            file::sync_folder(path);
        }
        Ok(backing)
    }

    /// The same, on anything. `has_thread`: a thread syncs; else whoever asks for it waits.
    ///
    /// # Errors
    /// If it is not this drive's, is damaged, or cannot be used. Then it is as it was.
    pub fn on(
        disk: Arc<dyn Disk>,
        spec: &DriveSpec,
        seed: u64,
        has_thread: bool,
        progress: &mut dyn FnMut(u32, u32),
    ) -> Result<Self, BackingError> {
        let (whose, layout) = (Whose::new(spec, seed), Layout::new(spec));
        let bytes = disk.bytes()?;
        let mut page = vec![0; bytes.min(PAGE) as usize];
        disk.read(0, &mut page)?;
        // Its maker was stopped as it had its length and nothing else yet.
        let is_begun = bytes == layout.end && disk.next_data(0)?.is_none();
        match rest::decode_header(&page) {
            Header::Foreign if bytes == 0 || is_begun => {
                // The length first: a file that says whose it is, and is shorter, was cut off.
                disk.set_bytes(layout.end)?;
                disk.write(0, &rest::encode_header(&whose)?)?;
            }
            Header::Foreign => return Err(BackingError::Foreign),
            Header::Form(form) => return Err(BackingError::Form(form)),
            Header::Damaged => return Err(BackingError::Damaged("its first page".to_owned())),
            Header::Of(found) => {
                if let Some(what) = found.differs(&whose) {
                    return Err(BackingError::OtherDrive(what));
                }
            }
        }
        if bytes > 0 && bytes < layout.end {
            return Err(match layout.window() {
                Some((at, length)) if bytes >= at => BackingError::ShortWindow {
                    left: bytes - at,
                    bytes: length,
                },
                _ => BackingError::Damaged(format!("{bytes} of {} bytes are there", layout.end)),
            });
        }
        let mut backing = Self::find(disk, spec, layout, has_thread, progress)?;
        backing.was_begun = is_begun;
        Ok(backing)
    }

    fn find(
        disk: Arc<dyn Disk>,
        spec: &DriveSpec,
        layout: Layout,
        has_thread: bool,
        progress: &mut dyn FnMut(u32, u32),
    ) -> Result<Self, BackingError> {
        let flash = find::read(&*disk, spec, &layout, progress)?;
        let (which, generation, body) = newest_rest(&*disk, &flash)?;
        let Some((list, landed)) = protected::read(&*disk, &layout)? else {
            let what = "what its protected buffer holds";
            return Err(BackingError::Damaged(what.to_owned()));
        };
        let lists = [
            (flash.trims.generation, flash.trims.count as u32),
            (list.generation, list.count as u32),
            (generation, 0),
        ];
        check_lists(&flash.noted, lists)?;
        let was_clean = flash.marker.is_clean;
        // Not before all that may refuse it has been looked at: then it is as it was.
        if !was_clean {
            find::clear(&*disk, &layout, &flash)?;
        }
        let left = protected::left(landed, &flash.found);
        // What is counted holds once the marker says that its epoch is synced, which comes after: one that no marker has said yet.
        let epoch = flash.epoch + u32::from(!was_clean);
        if !was_clean {
            let (wear, tallies) = (&flash.wear, &flash.tallies);
            Inventory::new(epoch, flash.trims, wear, tallies).write(&*disk, &layout)?;
        }
        let ledger = Ledger::begin(&*disk, &layout, lists, (!was_clean).then_some(epoch))?;
        // What was there and not synced is from now on.
        disk.sync()?;
        let marker = Marker {
            epoch,
            is_clean: was_clean,
        };
        disk.write(MARKER_AT, &marker.encode())?;
        let mut log = Log::new(disk, layout, has_thread);
        (log.wear, log.tallies) = (flash.wear, flash.tallies);
        (log.marker, log.epoch) = (marker, epoch + 1);
        log.rest = (!which && generation > 0, generation + 1);
        (log.trims, log.trims_kept) = (flash.trims, flash.trims.generation);
        (log.protected, log.ledger) = (list, ledger);
        let protected = Protected::new(list, &left);
        let last_trim = flash.found.trims.last().map_or(0, |trim| trim.sequence);
        if !was_clean && flash.trims.generation > 0 {
            // Behind the last record there may be others, of which an earlier one was lost.
            log.write_all_trims(&flash.found.trims);
        }
        let found = body.map(|rest| FoundDrive {
            flash: flash.found,
            rest,
            was_clean,
            pages: flash.pages,
            torn_pages: flash.torn.len() as u64,
            protected: left.into_iter().map(|each| (each.lpn, each.page)).collect(),
        });
        Ok(Backing {
            log,
            found,
            was_begun: false,
            last_trim,
            protected,
        })
    }

    /// The file had its length and nothing else: its maker was stopped. The drive in it is new.
    #[must_use]
    pub fn was_begun(&self) -> bool {
        self.was_begun
    }

    /// The byte window lies in another file from now on, which holds these ranges of what it held, offset and length,
    /// bytes. That file, to be mapped; `None`: the drive has no window, or what it is in cannot be mapped.
    ///
    /// # Errors
    /// If it cannot. Then it lies where it was.
    pub(crate) fn renew_window(&mut self, ranges: &[(u64, u64)]) -> io::Result<Option<File>> {
        // Which ranges count by now is what the file says as well, from then on.
        self.settle()?;
        self.log.disk.renew_window(ranges)
    }

    /// The drive that was found.
    #[must_use]
    pub fn found(&self) -> Option<&FoundDrive> {
        self.found.as_ref()
    }

    /// The drive that was found, once.
    pub fn take_found(&mut self) -> Option<FoundDrive> {
        self.found.take()
    }

    pub(crate) fn read(&self, ppn: Ppn) -> io::Result<Arc<lodger_core::device::PageBytes>> {
        let mut page = Arc::new([0; PAGE as usize]);
        let bytes = Arc::make_mut(&mut page);
        self.log.disk.read(self.log.layout.data(ppn), bytes)?;
        Ok(page)
    }

    pub(crate) fn record_trims(&mut self, all: &[Trim]) {
        let new = &all[all.partition_point(|trim| trim.sequence <= self.last_trim)..];
        if let Some(last) = new.last() {
            self.last_trim = last.sequence;
            self.protected.trimmed(new);
            self.log.record_trims(new, all);
        }
    }

    /// A page is in a buffer that outlasts power, so it is to outlast this process.
    pub(crate) fn protect(&mut self, lpn: Lpn, sequence: u32, page: Page) {
        let landed = Landed {
            lpn,
            sequence,
            page,
        };
        let entries_max = self.log.layout.protected_max();
        let (entries, begins) = self.protected.land(landed, entries_max);
        let list = entries.list;
        self.log.push(Op::Protect(entries));
        if begins {
            self.log.push(Op::SwitchProtected(list));
        }
    }

    /// A page was programmed.
    pub(crate) fn programmed(&mut self, spare: &Spare) {
        if let Some(Owned::Data(lpn)) = spare.oob.owner.get() {
            self.protected.programmed(lpn, spare.oob.sequence);
        }
    }

    /// All data is to be gone.
    pub(crate) fn forget_all(&mut self) {
        self.protected.forget_all();
        self.log.forget_pages();
        self.log.push(Op::ForgetProtected);
        self.log.push(Op::PunchAll);
    }

    /// What the drive keeps beside flash. `is_off`: it is switched off now, with nothing in its memory.
    pub(crate) fn keep_rest(&mut self, rest: Vec<u8>, is_off: bool) {
        self.log.push(Op::Rest(rest));
        if is_off {
            self.log.push(Op::Inventory(self.log.trims));
            self.log.push(Op::Mark(true));
        }
    }

    /// Waits until everything is safe.
    ///
    /// # Errors
    /// If it cannot be.
    pub(crate) fn settle(&mut self) -> io::Result<()> {
        let barrier = self.log.barrier();
        loop {
            self.log.pump();
            let passed = self
                .log
                .passed
                .iter()
                .position(|(number, _)| *number == barrier);
            match passed.map(|at| self.log.passed.remove(at)) {
                Some((_, true)) => return Ok(()),
                Some((_, false)) => return Err(self.log.take_failure()),
                None => std::thread::sleep(Duration::from_micros(100)),
            }
        }
    }

    /// Waits until what was stored in the byte window is safe, with everything else.
    ///
    /// # Errors
    /// If it cannot be.
    pub(crate) fn settle_window(&mut self) -> io::Result<()> {
        self.log.push(Op::Used);
        self.settle()
    }

    /// Whether what is written now can be kept; tries again if it could not be before.
    pub(crate) fn can_write(&mut self) -> bool {
        if self.log.is_failing() {
            self.log.pump();
        }
        !self.log.is_failing()
    }
}

/// Of lists, what was synced must be there.
fn check_lists(noted: &ledger::Noted, lists: [ledger::Reached; 3]) -> Result<(), BackingError> {
    let what = [
        "records of trims",
        "pages of its protected buffer",
        "what the drive keeps beside its flash",
    ];
    for ((list, now), what) in ledger::List::ALL.into_iter().zip(lists).zip(what) {
        noted.has(list, now, what).map_err(BackingError::Damaged)?;
    }
    Ok(())
}

/// The newer of the two rests: which it is, its generation, and what was kept; `None`: the drive has done nothing yet.
fn newest_rest(
    disk: &dyn Disk,
    flash: &find::Flash,
) -> Result<(bool, u32, Option<Vec<u8>>), BackingError> {
    let rests = [rest::read(disk, false)?, rest::read(disk, true)?];
    let which = rests[1].generation() >= rests[0].generation();
    let is_damaged = rests
        .iter()
        .any(|rest| matches!(rest, rest::Kept::Torn | rest::Kept::Damaged));
    // A kill as the first was written: the drive has done nothing yet.
    let is_unborn = !flash.marker.is_clean
        && flash.pages == 0
        && rests
            .iter()
            .all(|rest| matches!(rest, rest::Kept::Absent | rest::Kept::Torn));
    let [first, second] = rests;
    match if which { second } else { first } {
        rest::Kept::Whole(generation, body) if !(flash.marker.is_clean && is_damaged) => {
            Ok((which, generation, Some(body)))
        }
        _ if is_unborn => Ok((which, 0, None)),
        _ => {
            let what = "what the drive keeps beside its flash";
            Err(BackingError::Damaged(what.to_owned()))
        }
    }
}

/// Removes the file of a drive and, if it has a byte window, that of the window. What cannot be removed stays.
pub fn remove(path: &std::path::Path, spec: &DriveSpec) {
    let _ = std::fs::remove_file(path);
    if spec.roles.window.is_some() {
        let _ = std::fs::remove_file(window::path(path));
    }
}
