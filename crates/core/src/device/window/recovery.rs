//! What is left of the byte window when power, or the host, is gone.

use super::{Board, Contents, EntryInfo, Slab, WindowRole};
use crate::controller::dump::{self, Dump};
use crate::ftl::Contradiction;
use crate::memory::WindowInCut;
use crate::observe::Tracer;
use crate::request::EntryState;
use crate::spec::{DriveSpec, SLOT_BYTES};
use serde::{Deserialize, Serialize};

/// What became of the window's dump, the worst last.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum DumpOutcome {
    /// Nothing was pinned: there was nothing to save.
    #[default]
    NothingPinned,
    /// Power stayed, or the window's memory does without: it was never in danger.
    Kept,
    /// Every entry is back.
    Restored,
    /// The capacitors did not last: the table is back, but not every entry.
    Incomplete,
    /// The capacitors did not even last for the table, or the window stands in memory that loses all: no entry is back.
    TableLost,
}

/// How the window came back.
#[derive(Clone, Serialize, Deserialize, Debug, Default, PartialEq, Eq)]
pub struct WindowRecovery {
    /// What became of the dump. Recovery knows: nothing is lost unnoticed.
    pub outcome: DumpOutcome,
    /// Entries that are not back. (When the table is lost, only the tester knows which.)
    pub lost_entries: Vec<EntryInfo>,
    /// Bytes that CPUs had stored and that were still in them or on the link.
    pub lost_bytes: u64,
    /// From the loss of power to the end of a whole dump.
    pub dump_ps: u64,
    /// How long the capacitors lasted, from the loss of power; the largest number if they always do.
    pub hold_up_ps: u64,
    /// Program operations of the dump.
    pub dump_programs: u64,
    /// Those that ended in time.
    pub saved_programs: u64,
    /// From power to the window's contents being back; part of the drive's own recovery time.
    pub restore_ps: u64,
}

impl WindowRecovery {
    /// Power had failed before, and the drive was not back: what that cost is missing still.
    fn add_before(&mut self, before: &WindowRecovery) {
        self.outcome = self.outcome.max(before.outcome);
        self.lost_bytes += before.lost_bytes;
        self.lost_entries.splice(..0, before.lost_entries.clone());
    }
}

/// What the drive keeps of the window beside its bytes.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct WindowRest {
    /// In the order in which they were pinned.
    entries: Vec<EntryInfo>,
    keeps_all: bool,
}

impl<P: Default> WindowRole<P> {
    /// What is to be kept of it beside its bytes.
    pub(in crate::device) fn rest(&self) -> WindowRest {
        // What is being pinned is not before it is: nobody has been told.
        let is_pinned = |entry: &EntryInfo| entry.state != EntryState::Pinning;
        WindowRest {
            entries: self.entries().filter(is_pinned).collect(),
            keeps_all: self.keeps_all,
        }
    }

    /// The window is the one that left this behind; power is about to fail.
    ///
    /// # Errors
    /// If it cannot have been this drive's.
    pub(in crate::device) fn restore(&mut self, rest: &WindowRest) -> Result<(), Contradiction> {
        let restored = self.window.restore(&rest.entries);
        restored.map_err(|_| Contradiction::Rest)?;
        self.keeps_all = rest.keeps_all;
        self.armed = rest.keeps_all || !rest.entries.is_empty();
        Ok(())
    }

    /// Power fails now (or only the host does): what the window loses, and what comes back. If the drive was still on its way
    /// back from the last time, what was lost `before` counts.
    pub(in crate::device) fn restart<C: Contents<Payload = P>>(
        &mut self,
        (board, contents, spec): (&mut Board<impl Tracer>, &mut C, &DriveSpec),
        power_fails: bool,
        before: Option<&WindowRecovery>,
    ) -> WindowRecovery {
        self.land_packets(board, contents);
        let lost_bytes = self.bar.cut();
        board.counters.window.lost_bytes += lost_bytes;
        self.window.cut();
        self.core.drop_all();
        self.sent.clear();
        self.calls = Slab::default();
        let mut recovery = WindowRecovery {
            lost_bytes,
            ..WindowRecovery::default()
        };
        let is_saved = std::mem::take(&mut self.is_saved);
        match self.in_cut {
            WindowInCut::Saved if power_fails && !is_saved && self.armed => {
                self.dump(contents, spec, &mut recovery);
            }
            WindowInCut::Gone if power_fails => self.lose_all(contents, &mut recovery),
            _ if self.window.entries().is_empty() => {}
            _ => recovery.outcome = DumpOutcome::Kept,
        }
        if let Some(before) = before {
            recovery.add_before(before);
            self.has_lost |= before.outcome >= DumpOutcome::Incomplete;
        }
        recovery
    }

    /// Whether some of what was to be saved as power failed the last time was not.
    pub(in crate::device) fn has_lost(&self) -> bool {
        self.has_lost
    }

    /// Saves table and entries while the capacitors last, and brings back what was saved.
    fn dump<C: Contents<Payload = P>>(
        &mut self,
        contents: &mut C,
        spec: &DriveSpec,
        recovery: &mut WindowRecovery,
    ) {
        let entries: Vec<EntryInfo> = self.entries().collect();
        let pinned = entries.iter().map(|entry| entry.length_bytes).sum::<u64>() / SLOT_BYTES;
        // The entries first, then what is left of the window.
        let pages = match self.keeps_all {
            true => self.window.spec().bytes / SLOT_BYTES,
            false => pinned,
        };
        let dump = Dump::new(spec, pages);
        let stop_ps = dump::stop_ps(spec.power.as_ref());
        let table = dump.table_is_saved(stop_ps);
        let mut from = 0;
        for entry in entries {
            let to = from + entry.length_bytes / SLOT_BYTES;
            if !table || !dump.pages_are_saved(from, to, stop_ps) {
                recovery.lost_entries.push(entry);
            }
            from = to;
        }
        self.unpin_lost(contents, recovery);
        let is_whole =
            recovery.lost_entries.is_empty() && dump.pages_are_saved(pinned, pages, stop_ps);
        self.has_lost = !table || !is_whole;
        recovery.outcome = match (table, is_whole) {
            (true, true) if pages == 0 => DumpOutcome::NothingPinned,
            (true, true) => DumpOutcome::Restored,
            (true, false) => DumpOutcome::Incomplete,
            (false, _) => DumpOutcome::TableLost,
        };
        recovery.dump_ps = dump.end_ps();
        recovery.hold_up_ps = stop_ps;
        recovery.dump_programs = dump.ends_ps.len() as u64;
        recovery.saved_programs = dump.saved(stop_ps);
        recovery.restore_ps = dump::restore_ps(spec, pages);
        // What came back is marked again; an empty table needs no mark.
        self.armed = self.keeps_all || !self.window.entries().is_empty();
    }

    /// Memory that is volatile has lost table and entries: as a dump of which nothing got to flash.
    fn lose_all<C: Contents<Payload = P>>(
        &mut self,
        contents: &mut C,
        recovery: &mut WindowRecovery,
    ) {
        recovery.lost_entries = self.entries().collect();
        self.unpin_lost(contents, recovery);
        self.has_lost = self.keeps_all || !recovery.lost_entries.is_empty();
        if self.has_lost {
            recovery.outcome = DumpOutcome::TableLost;
        }
        self.armed = self.keeps_all;
    }

    /// What is lost is pinned no more.
    fn unpin_lost<C: Contents<Payload = P>>(
        &mut self,
        contents: &mut C,
        recovery: &WindowRecovery,
    ) {
        for entry in &recovery.lost_entries {
            let mut released = Vec::new();
            self.window.unpin(entry.entry, &mut released);
            debug_assert!(released.is_empty(), "no command outlives a power cut");
            contents.lose(entry.window_offset_bytes, entry.length_bytes);
        }
    }
}
