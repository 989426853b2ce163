//! A drive in a file ([`crate::backing`]): it comes back as it was, and what must be safe is, before the host hears
//! that it is.

use super::features::SavedValues;
use super::namespaces::{FORMATS, Namespace, SavedNamespaces};
use super::wipe::SavedWipe;
use super::{Controller, Statistics};
use crate::backing::{Backing, BackingError};
use crate::contents::Page;
use lodger_core::device::{News, PageBytes, Recovery, Rest};
use lodger_core::ids::Lpn;
use lodger_core::time::RUN_PS_MAX;
use lodger_wire::NamespaceId;
use lodger_wire::entry::{Outcome, SubmissionEntry};
use lodger_wire::event::AsyncEvent;
use lodger_wire::log::CriticalWarning;
use lodger_wire::memory::GuestMemory;
use lodger_wire::opcode::AdminOpcode;
use lodger_wire::queue::Permit;
use lodger_wire::status::Status;
use serde::{Deserialize, Serialize};

/// So much of the drive's time passes at least, under load, before what it has counted is saved.
const SAVE_EVERY_PS: u64 = 10_000_000_000_000;

/// What comes after a barrier in the file.
#[derive(Debug)]
enum Then {
    /// A command completes.
    Complete(SubmissionEntry, Permit, Outcome),
    /// A command is refused.
    Refuse(Box<SubmissionEntry>, Permit, Status),
    /// All data is erased.
    Wiped,
    /// The drive is shut down.
    ShutDown,
    /// All of the byte window persists: that is in the file.
    Region,
}

/// What waits for the file.
#[derive(Debug, Default)]
pub(super) struct Keeping {
    waiting: Vec<(u64, Then)>,
    /// Whether a shutdown is kept, from when the drive has saved all it had.
    shutdown: Option<bool>,
    /// Times that power came, and those before which it had gone unannounced.
    pub power_cycles: u64,
    pub unsafe_shutdowns: u64,
    /// The file took nothing when it was looked at last.
    cannot_store: bool,
    saved_ps: u64,
    saved_commands: u64,
    saved_failures: u64,
    /// Time that passes between two savings if that is longer than [`SAVE_EVERY_PS`].
    save_gap_ps: u64,
}

impl Keeping {
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(super) fn begin_shutdown(&mut self) {
        self.shutdown = None;
    }

    /// Queues are gone: nobody hears any more of commands that wait.
    pub(super) fn stop(&mut self) {
        self.shutdown = None;
        for (number, then) in std::mem::take(&mut self.waiting) {
            match then {
                Then::Complete(_, permit, _) | Then::Refuse(_, permit, _) => permit.abandon(),
                Then::ShutDown => {}
                Then::Wiped | Then::Region => self.waiting.push((number, then)),
            }
        }
    }
}

/// A namespace, as it is in a file.
#[derive(Debug, Serialize, Deserialize)]
struct SavedNamespace {
    bytes: u64,
    format: u8,
}

/// All of a drive that is not in its flash.
#[derive(Debug, Serialize, Deserialize)]
struct Saved {
    drive: Rest,
    /// That of the first namespace.
    format: u8,
    /// All of them, if there are several or something is left beside them.
    #[serde(default)]
    namespaces: Vec<SavedNamespace>,
    /// All of them, if hosts have changed which there are; then the two above say nothing.
    #[serde(default)]
    made_by_hosts: Option<SavedNamespaces>,
    features: SavedValues,
    wipe: SavedWipe,
    reads: u64,
    writes: u64,
    read_bytes: u64,
    /// Files of before did not count them.
    #[serde(default)]
    verified_bytes: u64,
    written_bytes: u64,
    /// Files of before did not count it.
    #[serde(default)]
    busy_ps: u64,
    errors: u64,
    power_cycles: u64,
    unsafe_shutdowns: u64,
}

/// How a drive that was found in a file is divided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Division {
    /// Bytes of a block of each namespace.
    pub block_bytes: Vec<u32>,
    /// Bytes of each namespace; none: one that has all of the drive.
    pub namespaces_bytes: Vec<u64>,
    /// Hosts have divided it so, by Namespace Management.
    pub by_hosts: bool,
}

impl Division {
    /// That of the drive in a file; `None`: there was none.
    ///
    /// # Errors
    /// If what is there is of another version.
    pub fn found(backing: &Backing) -> Result<Option<Self>, BackingError> {
        let Some(found) = backing.found() else {
            return Ok(None);
        };
        let saved = load(&found.rest)?;
        let namespaces = &saved.namespaces;
        let block_bytes = |format| FORMATS[usize::from(format)].block.bytes() as u32;
        if let Some(made) = &saved.made_by_hosts {
            return Ok(Some(Division {
                block_bytes: made
                    .sizes()
                    .map(|(_, format)| block_bytes(format))
                    .collect(),
                namespaces_bytes: made.sizes().map(|(bytes, _)| bytes).collect(),
                by_hosts: true,
            }));
        }
        Ok(Some(Division {
            block_bytes: saved.formats().map(block_bytes).collect(),
            namespaces_bytes: namespaces.iter().map(|each| each.bytes).collect(),
            by_hosts: false,
        }))
    }
}

impl Saved {
    fn formats(&self) -> impl Iterator<Item = u8> {
        let only = self.namespaces.is_empty().then_some(self.format);
        let each = self.namespaces.iter().map(|namespace| namespace.format);
        let made = self.made_by_hosts.iter();
        let made = made.flat_map(|made| made.sizes().map(|(_, format)| format));
        only.into_iter().chain(each).chain(made)
    }
}

fn load(rest: &[u8]) -> Result<Saved, BackingError> {
    let saved: Option<Saved> = rmp_serde::from_slice(rest).ok();
    let is_known = |format| usize::from(format) < FORMATS.len();
    let saved = saved.filter(|saved| is_known(saved.format) && saved.formats().all(is_known));
    let what = "what the drive keeps beside its flash is of another version";
    saved.ok_or_else(|| BackingError::Damaged(what.to_owned()))
}

/// How a drive has come back.
#[derive(Clone, Debug)]
pub struct ComeBack {
    /// What its recovery found.
    pub recovery: Recovery,
    /// It had been switched off properly.
    pub was_clean: bool,
    /// Pages of flash that hold something.
    pub pages: u64,
    /// Pages that were not whole, as the machine had stopped while they were written.
    pub torn_pages: u64,
}

impl<M: GuestMemory + Clone> Controller<M> {
    /// The drive's flash is in this file from now on, and the drive is the one found there, if there is one. To be
    /// done before anybody uses the drive.
    ///
    /// # Errors
    /// If what is there is not what a drive like this can have left, or the file cannot be written.
    pub fn keep_in(&mut self, mut backing: Backing) -> Result<Option<ComeBack>, BackingError> {
        let Some(mut found) = backing.take_found() else {
            self.device.contents.keep_in(backing);
            self.keeping.power_cycles = 1;
            self.settle_file(false)?;
            return Ok(None);
        };
        let mut saved = load(&found.rest)?;
        self.divide_as(&saved)?;
        if saved.drive.now_ps > RUN_PS_MAX / 10 * 9 {
            // Its clock would soon end, or has: it begins anew, and data of before counts as new.
            saved.drive.now_ps = 0;
        }
        self.device.restore(&saved.drive, found.flash)?;
        self.device.contents.keep_in(backing);
        if found.was_clean {
            self.device.window_was_saved();
        }
        let mut recovery = self.recover();
        self.tell_of_window();
        self.restore_region();
        self.window_lost_power();
        recovery.buffer_slots = found.protected.len() as u32;
        for (lpn, page) in std::mem::take(&mut found.protected) {
            self.put_back(lpn, page)?;
        }
        self.features.restore(saved.features, self.device.now_ps());
        self.statistics = Statistics {
            reads: saved.reads,
            writes: saved.writes,
            read_bytes: saved.read_bytes,
            verified_bytes: saved.verified_bytes,
            written_bytes: saved.written_bytes,
            busy_ps: saved.busy_ps,
            ..self.statistics
        };
        self.errors.go_on_from(saved.errors);
        self.keeping.power_cycles = saved.power_cycles + 1;
        self.keeping.unsafe_shutdowns = saved.unsafe_shutdowns + u64::from(!found.was_clean);
        // What a power cut has interrupted goes on from its beginning.
        self.restore_wipe(saved.wipe);
        self.settle_file(false)?;
        Ok(Some(ComeBack {
            recovery,
            was_clean: found.was_clean,
            pages: found.pages,
            torn_pages: found.torn_pages,
        }))
    }

    /// Whether a file keeps the drive.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.device.contents.is_kept()
    }

    /// A page that a protected buffer held is in it again.
    fn put_back(&mut self, lpn: Lpn, page: Page) -> Result<(), BackingError> {
        const ZEROS: PageBytes = [0; 4096];
        let bytes = page.as_deref().unwrap_or(&ZEROS);
        while !self.device.put_back(lpn, bytes) {
            let Some(next_ps) = self.device.next_time() else {
                let what = "there is no room for what its protected buffer held";
                return Err(BackingError::Damaged(what.to_owned()));
            };
            while self.device.run(next_ps).is_some() {}
        }
        Ok(())
    }

    /// The drive has the namespaces that it had.
    fn divide_as(&mut self, saved: &Saved) -> Result<(), BackingError> {
        let namespaces = &mut self.identity.namespaces;
        if let Some(made) = &saved.made_by_hosts {
            if !namespaces.restore(made) {
                let what = "its namespaces cannot be this drive's".to_owned();
                return Err(BackingError::Damaged(what));
            }
            self.identity.namespaces_changed();
            return Ok(());
        }
        let sizes = saved.namespaces.iter().map(|namespace| namespace.bytes);
        if !namespaces.have(sizes) {
            let what = "its namespaces have other sizes".to_owned();
            return Err(BackingError::OtherDrive(what));
        }
        for (id, format) in (1..).map(NamespaceId).zip(saved.formats()) {
            namespaces.set_format(id, format);
        }
        Ok(())
    }

    /// The drive comes back, before anybody can use it.
    fn recover(&mut self) -> Recovery {
        self.device.begin_power_cut();
        loop {
            let news = self.device.run(u64::MAX);
            if let (Some(News::Recovered), Some(recovery)) = (news, self.device.recovery()) {
                return recovery.clone();
            }
            assert!(news.is_some(), "recovery goes on");
        }
    }

    /// The drive is switched off: everything gets to the file. Nothing without one.
    ///
    /// # Errors
    /// If that could not be written. The drive then comes back as after a power cut.
    pub fn switch_off(&mut self) -> Result<(), BackingError> {
        if !self.device.contents.is_kept() {
            return Ok(());
        }
        self.queues.stop();
        self.flights.orphan(&mut self.statistics);
        self.end_plight();
        self.begin_shutdown();
        let mut idle = 0;
        while self.transition.is_shutting_down() && self.keeping.shutdown.is_none() && idle < 3 {
            // A drive that has nothing to do, and has not saved what it had, never will.
            idle = if self.next_time_ps().is_none() {
                idle + 1
            } else {
                0
            };
            let now_ps = self.device.now_ps();
            self.poll(self.next_time_ps().unwrap_or(now_ps).max(now_ps));
        }
        self.settle_file(true)
    }

    fn settle_file(&mut self, is_off: bool) -> Result<(), BackingError> {
        self.keep_rest(is_off);
        match self.device.contents.backing() {
            Some(backing) => Ok(backing.settle()?),
            None => Ok(()),
        }
    }

    /// So much of the drive's time is to pass between two savings of what it has counted, if that is longer than 10 s:
    /// where its time flies, saving is not to take all of the host's.
    pub fn save_no_sooner_than(&mut self, gap_ps: u64) {
        self.keeping.save_gap_ps = gap_ps;
    }

    /// What the drive keeps beside its flash goes to the file.
    pub(super) fn keep_rest(&mut self, is_off: bool) {
        // A drive on its way back has not taken over all yet.
        if !self.device.contents.is_kept() || self.plight.is_recovering() {
            return;
        }
        let namespaces = &self.identity.namespaces;
        let saved_namespace = |(_, namespace): (_, &Namespace)| SavedNamespace {
            bytes: namespace.whole().1,
            format: namespace.format(),
        };
        let saved = Saved {
            drive: self.device.rest(),
            format: namespaces.get(NamespaceId(1)).map_or(0, Namespace::format),
            made_by_hosts: namespaces.saved(),
            namespaces: match namespaces.are_the_whole() {
                true => Vec::new(),
                false => namespaces.iter().map(saved_namespace).collect(),
            },
            features: self.features.saved(),
            wipe: self.wipe.saved(),
            reads: self.statistics.reads,
            writes: self.statistics.writes,
            read_bytes: self.statistics.read_bytes,
            verified_bytes: self.statistics.verified_bytes,
            written_bytes: self.statistics.written_bytes,
            busy_ps: self.statistics.busy_ps,
            errors: self.errors.count(),
            power_cycles: self.keeping.power_cycles,
            unsafe_shutdowns: self.keeping.unsafe_shutdowns,
        };
        let bytes = rmp_serde::to_vec_named(&saved).expect("numbers and lists can be written");
        self.keeping.saved_ps = self.device.now_ps();
        self.keeping.saved_commands = self.statistics.commands;
        self.keeping.saved_failures = self.device.block_failures();
        if let Some(backing) = self.device.contents.backing() {
            backing.keep_rest(bytes, is_off);
        }
    }

    /// Completes a command as soon as all that the drive has programmed is safe.
    pub(super) fn complete_when_safe(
        &mut self,
        entry: SubmissionEntry,
        permit: Permit,
        outcome: Outcome,
    ) {
        match self.device.contents.backing() {
            None => self.end(&entry, permit, outcome),
            Some(backing) => {
                let barrier = backing.log.barrier();
                let then = Then::Complete(entry, permit, outcome);
                self.keeping.waiting.push((barrier, then));
            }
        }
    }

    /// The same of an admin command, of which this is known.
    pub(super) fn complete_admin_when_safe(
        &mut self,
        (opcode, namespace): (AdminOpcode, NamespaceId),
        permit: Permit,
        outcome: Outcome,
    ) {
        let entry = SubmissionEntry::new(opcode.code(), permit.command(), namespace);
        self.complete_when_safe(entry, permit, outcome);
    }

    fn end(&mut self, entry: &SubmissionEntry, permit: Permit, outcome: Outcome) {
        match outcome.status.is_success() {
            true => self.complete(permit, outcome),
            false => self.refuse(entry, permit, outcome.status),
        }
    }

    /// Whether the file takes nothing, so that writes fail, and flushes.
    pub(super) fn cannot_store(&self) -> bool {
        self.keeping.cannot_store
    }

    /// Refuses a command as soon as all that was done before is safe: its status says something of that.
    pub(super) fn refuse_when_safe(
        &mut self,
        entry: SubmissionEntry,
        permit: Permit,
        status: Status,
    ) {
        match self.device.contents.backing() {
            None => self.refuse(&entry, permit, status),
            Some(backing) => {
                let barrier = backing.log.barrier();
                let then = Then::Refuse(Box::new(entry), permit, status);
                self.keeping.waiting.push((barrier, then));
            }
        }
    }

    /// All data has been erased: that is to be so in the file. Returns false without one.
    pub(super) fn erases_file(&mut self) -> bool {
        let Some(backing) = self.device.contents.backing() else {
            return false;
        };
        let barrier = backing.log.barrier();
        self.keeping.waiting.push((barrier, Then::Wiped));
        true
    }

    /// That all of the byte window persists is to be in the file, too.
    pub(super) fn keep_that_region_is_kept(&mut self) {
        if self.region.is_in_file {
            return;
        }
        self.keep_rest(false);
        if let Some(backing) = self.device.contents.backing() {
            let barrier = backing.log.barrier();
            self.keeping.waiting.push((barrier, Then::Region));
        }
    }

    /// Whether a drive that has saved all it had is in the file as well.
    pub(super) fn is_shutdown_kept(&mut self) -> bool {
        match (self.device.contents.is_kept(), self.keeping.shutdown) {
            (false, _) => true,
            (true, None) => {
                self.keep_rest(true);
                self.keeping.shutdown = Some(false);
                if let Some(backing) = self.device.contents.backing() {
                    let barrier = backing.log.barrier();
                    self.keeping.waiting.push((barrier, Then::ShutDown));
                }
                false
            }
            (true, Some(is_kept)) => is_kept,
        }
    }

    /// Whether data that is written now can be kept.
    ///
    /// # Errors
    /// [`Status::WRITE_FAULT`] if the file takes none.
    pub(super) fn can_write(&mut self) -> Result<(), Status> {
        self.is_writable()?;
        let backing = self.device.contents.backing();
        match backing.is_none_or(Backing::can_write) {
            true => Ok(()),
            false => Err(Status::WRITE_FAULT),
        }
    }

    /// The file takes nothing any more, or does again: writes say so before any flush does.
    fn look_whether_it_can_store(&mut self) {
        let backing = self.device.contents.backing();
        let cannot = backing.is_some_and(|backing| backing.log.is_failing());
        if !std::mem::replace(&mut self.keeping.cannot_store, cannot) && cannot {
            self.warn(CriticalWarning::Reliability, AsyncEvent::Reliability);
        }
    }

    /// Those that have waited for the file go on. Returns whether there were any.
    pub(super) fn look_at_file(&mut self) -> bool {
        let now_ps = self.device.now_ps();
        let gap_ps = self.keeping.save_gap_ps.max(SAVE_EVERY_PS);
        let is_due = now_ps.saturating_sub(self.keeping.saved_ps) >= gap_ps
            && self.statistics.commands != self.keeping.saved_commands;
        // Which blocks are bad is to be known whatever becomes of this process.
        if is_due || self.device.block_failures() != self.keeping.saved_failures {
            self.keep_rest(false);
        }
        let passed = self.device.contents.passed();
        self.look_whether_it_can_store();
        let Some(passed) = passed else {
            return false;
        };
        for &(barrier, is_safe) in &passed {
            let waiting = &mut self.keeping.waiting;
            let Some(at) = waiting.iter().position(|(number, _)| *number == barrier) else {
                continue;
            };
            match waiting.remove(at).1 {
                Then::Complete(entry, permit, outcome) => {
                    let outcome = if is_safe {
                        outcome
                    } else {
                        Status::WRITE_FAULT.into()
                    };
                    self.end(&entry, permit, outcome);
                }
                Then::Refuse(entry, permit, status) => self.refuse(&entry, permit, status),
                Then::Wiped => self.data_is_erased(is_safe),
                // What cannot be kept is lost, and the drive is off all the same.
                Then::ShutDown => self.keeping.shutdown = Some(true),
                Then::Region => self.region.is_in_file = is_safe,
            }
        }
        !passed.is_empty()
    }
}
