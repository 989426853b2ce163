//! Role `window`: the table of pinned ranges, what may be called when, and the gate that keeps block
//! commands off what is pinned (Bae et al., "2B-SSD", ISCA 2018: BA-buffer manager, LBA checker).

use crate::ids::{CommandId, Lpn, WindowCallId};
use crate::request::{EntryId, EntryInfo, EntryState, WindowError};
use crate::spec::{Gate, SLOT_BYTES, WindowSpec};
use serde::{Deserialize, Serialize};

/// An entry of the table.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
pub struct Entry {
    /// What the host may know.
    pub info: EntryInfo,
    /// The pin must wait: block commands of the range are under way.
    pub waiting: bool,
    /// Call that pins or flushes it.
    pub call: WindowCallId,
    /// Pieces that this call has still to move.
    pub pieces: u32,
    /// When the last piece moved so far has arrived.
    pub end_ps: u64,
    /// Data of a piece is lost.
    pub lost: bool,
    /// Copies to host memory under way.
    pub copies: u32,
}

impl Entry {
    fn covers(&self, from: u64, to: u64) -> bool {
        let start = self.info.drive_offset_bytes;
        from < start + self.info.length_bytes && start < to
    }

    /// First page of the window that a page of the drive stands in.
    #[must_use]
    pub fn window_slot(&self, lpn: Lpn) -> u32 {
        let first = (self.info.drive_offset_bytes / SLOT_BYTES) as u32;
        (self.info.window_offset_bytes / SLOT_BYTES) as u32 + (lpn.0 - first)
    }
}

/// What becomes of a block command.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is carried out.
    Pass,
    /// It ends with [`crate::Status::AccessDenied`].
    Refuse,
    /// It waits until no entry covers its range.
    Hold,
}

/// The window's table and gate.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Window {
    spec: WindowSpec,
    capacity_bytes: u64,
    entries: Vec<Entry>,
    /// Block commands past the gate and not completed: command, from, to.
    under_way: Vec<(CommandId, u64, u64)>,
    /// Block commands that wait, in order of arrival: command, from, to.
    held: Vec<(CommandId, u64, u64)>,
}

impl Window {
    /// An empty table, for a drive of `capacity_bytes`.
    #[must_use]
    pub fn new(spec: &WindowSpec, capacity_bytes: u64) -> Self {
        Window {
            spec: spec.clone(),
            capacity_bytes,
            entries: Vec::with_capacity(spec.entries as usize),
            under_way: Vec::new(),
            held: Vec::new(),
        }
    }

    /// The spec it was made from.
    #[must_use]
    pub fn spec(&self) -> &WindowSpec {
        &self.spec
    }

    /// Entries, in the order in which they were pinned.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// An entry by its number.
    pub fn find(&mut self, entry: EntryId) -> Result<&mut Entry, WindowError> {
        if entry > EntryId::MAX {
            return Err(WindowError::BadEntry);
        }
        let mut entries = self.entries.iter_mut();
        entries
            .find(|known| known.info.entry == entry)
            .ok_or(WindowError::NotPinned)
    }

    /// An entry by its number, if loads, stores and copies may touch it.
    pub fn pinned(&mut self, entry: EntryId) -> Result<&mut Entry, WindowError> {
        let found = self.find(entry)?;
        match found.info.state {
            EntryState::Pinned => Ok(found),
            _ => Err(WindowError::Busy),
        }
    }

    /// The pinned entry that a range of the window lies in.
    pub fn pinned_range(&self, offset: u64, length: u64) -> Result<EntryInfo, WindowError> {
        if length == 0 {
            return Err(WindowError::ZeroLength);
        }
        let end = offset
            .checked_add(length)
            .filter(|end| *end <= self.spec.bytes)
            .ok_or(WindowError::OutOfWindow)?;
        let holder = self.entries.iter().find(|entry| {
            let start = entry.info.window_offset_bytes;
            offset >= start && end <= start + entry.info.length_bytes
        });
        match holder {
            None => Err(WindowError::NotPinned),
            Some(entry) if entry.info.state != EntryState::Pinned => Err(WindowError::Busy),
            Some(entry) => Ok(entry.info),
        }
    }

    /// Whether a range of the window is open to packets: it lies in a pinned entry.
    #[must_use]
    pub fn is_open(&self, offset: u64) -> bool {
        self.pinned_range(offset, 1).is_ok()
    }

    fn check_pin(&self, wanted: &EntryInfo) -> Result<(), WindowError> {
        let EntryInfo {
            entry,
            window_offset_bytes: window,
            drive_offset_bytes: drive,
            length_bytes: length,
            ..
        } = *wanted;
        if entry > EntryId::MAX {
            return Err(WindowError::BadEntry);
        }
        if length == 0 {
            return Err(WindowError::ZeroLength);
        }
        if [window, drive, length].iter().any(|n| n % SLOT_BYTES != 0) {
            return Err(WindowError::Unaligned);
        }
        let window_end = window
            .checked_add(length)
            .filter(|end| *end <= self.spec.bytes)
            .ok_or(WindowError::OutOfWindow)?;
        let drive_end = drive
            .checked_add(length)
            .filter(|end| *end <= self.capacity_bytes)
            .ok_or(WindowError::OutOfRange)?;
        if self.entries.iter().any(|known| known.info.entry == entry) {
            return Err(WindowError::InUse);
        }
        for known in &self.entries {
            let start = known.info.window_offset_bytes;
            let overlap = if window < start + known.info.length_bytes && start < window_end {
                WindowError::WindowOverlap
            } else if known.covers(drive, drive_end) {
                WindowError::RangeOverlap
            } else {
                continue;
            };
            // Its place will be free before long.
            let leaving = known.info.state == EntryState::Flushing;
            return Err(if leaving { WindowError::Busy } else { overlap });
        }
        if self.entries.len() >= self.spec.entries as usize {
            return Err(WindowError::TableFull);
        }
        Ok(())
    }

    /// Takes an entry into the table, to be pinned by `call`. Returns whether its bytes can be read
    /// now; otherwise [`Window::leave`] will say when.
    ///
    /// # Errors
    /// Why it cannot be pinned.
    pub fn pin(&mut self, info: EntryInfo, call: WindowCallId) -> Result<bool, WindowError> {
        self.check_pin(&info)?;
        let end = info.drive_offset_bytes + info.length_bytes;
        let waiting = self.conflicts(info.drive_offset_bytes, end);
        self.entries.push(Entry {
            info,
            waiting,
            call,
            pieces: 0,
            end_ps: 0,
            lost: false,
            copies: 0,
        });
        Ok(!waiting)
    }

    /// Takes entries that were pinned as the drive left off into an empty table.
    ///
    /// # Errors
    /// If one cannot have been.
    pub fn restore(&mut self, entries: &[EntryInfo]) -> Result<(), WindowError> {
        for info in entries {
            self.pin(*info, WindowCallId(0))?;
        }
        self.cut();
        Ok(())
    }

    /// Takes an entry out of the table. Block commands that waited for it go to `released`.
    pub fn unpin(&mut self, entry: EntryId, released: &mut Vec<CommandId>) {
        self.entries.retain(|known| known.info.entry != entry);
        let Window { entries, held, .. } = self;
        held.retain(|&(command, from, to)| {
            let covered = entries.iter().any(|entry| entry.covers(from, to));
            if !covered {
                released.push(command);
            }
            covered
        });
    }

    /// Takes out the block commands that wait: nobody is to wait for them any more.
    pub fn take_held(&mut self) -> Vec<CommandId> {
        let held = self.held.drain(..);
        held.map(|(command, ..)| command).collect()
    }

    fn conflicts(&self, from: u64, to: u64) -> bool {
        let mut under_way = self.under_way.iter();
        under_way.any(|&(_, start, end)| start < to && from < end)
    }

    /// A block command of bytes `from..to` is at the gate.
    pub fn gate(&mut self, command: CommandId, from: u64, to: u64) -> Verdict {
        if !self.entries.iter().any(|entry| entry.covers(from, to)) {
            self.under_way.push((command, from, to));
            return Verdict::Pass;
        }
        match self.spec.gate {
            Gate::Refuse => Verdict::Refuse,
            Gate::Hold => {
                self.held.push((command, from, to));
                Verdict::Hold
            }
        }
    }

    /// A block command is done. Returns the call whose pin waited for it and can go on now; to be
    /// asked again until there is none.
    pub fn leave(&mut self, command: CommandId) -> Option<WindowCallId> {
        let place = self.under_way.iter().position(|known| known.0 == command);
        if let Some(place) = place {
            self.under_way.swap_remove(place);
        }
        let ready = self.entries.iter().position(|entry| {
            let start = entry.info.drive_offset_bytes;
            entry.waiting && !self.conflicts(start, start + entry.info.length_bytes)
        })?;
        self.entries[ready].waiting = false;
        Some(self.entries[ready].call)
    }

    /// Power has failed: what was being pinned never was, what was being flushed is still pinned,
    /// and nobody waits.
    pub fn cut(&mut self) {
        self.entries
            .retain(|entry| entry.info.state != EntryState::Pinning);
        for entry in &mut self.entries {
            entry.info.state = EntryState::Pinned;
            entry.pieces = 0;
            entry.copies = 0;
            entry.end_ps = 0;
            entry.lost = false;
        }
        self.under_way.clear();
        self.held.clear();
    }
}
