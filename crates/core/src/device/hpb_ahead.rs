//! JEDEC's protocol 2.0: the entries of a read of several pages, sent ahead of it.
//!
//! The host sends HPB WRITE BUFFER with an entry of 8 bytes for each page, and the HPB READ
//! right behind it (the "pre-request" that Linux had for a short time). Both are commands, with all
//! that a command costs; the drive begins with the read once it has the entries.
//!
//! Each entry is checked by itself, with the rules for one that comes with a read. The drive uses its
//! own map for a translation page of which one entry does not hold.

use super::read::pages_within;
use super::{Command, Contents, Device, HostMemory};
use crate::controller::hpb::{HostEntry, HpbDevice, Refusal};
use crate::engine::EventKind;
use crate::ids::{CommandId, Lpn, NONE, Ppn};
use crate::request::Status;

/// Stands for a physical page where each page of the read has an entry of its own.
pub(super) const EACH: u32 = NONE - 1;

/// Bytes of an entry in an HPB WRITE BUFFER (JESD220-3).
const ENTRY_BYTES: u64 = 8;

/// Where the entries of a read are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Way {
    /// With the drive, if there are any.
    #[default]
    There,
    /// On their way.
    Sent,
    /// On their way, and the read waits for them.
    Awaited,
}

/// Entries sent ahead of a read, or the command that brings them.
#[derive(Clone, Debug, Default)]
pub(super) struct Ahead {
    /// By page of the read.
    pub entries: Vec<HostEntry>,
    /// What they say, by page; [`NONE`]: the drive's own map counts.
    places: Vec<u32>,
    way: Way,
    /// Of an HPB WRITE BUFFER: the read that its entries are for.
    read: Option<u32>,
}

impl Ahead {
    /// Nothing is sent ahead.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.places.clear();
        self.way = Way::There;
        self.read = None;
    }

    /// The command is an HPB WRITE BUFFER.
    pub fn is_write_buffer(&self) -> bool {
        self.read.is_some()
    }

    /// Checks the entries of pages `from..to` of a read that begins at page `first`, and notes what
    /// they say if all of them hold.
    fn check(
        &mut self,
        device: &mut HpbDevice,
        first: u32,
        (from, to): (u32, u32),
    ) -> Result<(), Refusal> {
        self.places.resize(self.entries.len(), NONE);
        for lpn in from..to {
            let at = (lpn - first) as usize;
            match device.check(Lpn(lpn), 1, self.entries[at]) {
                Ok(ppn) => self.places[at] = ppn.0,
                Err(refusal) => {
                    self.places[(from - first) as usize..(to - first) as usize].fill(NONE);
                    return Err(refusal);
                }
            }
        }
        Ok(())
    }
}

impl<C: Contents, M: HostMemory> Device<C, M> {
    /// The host writes an HPB WRITE BUFFER with an entry for each page of an enqueued read. It uses the
    /// read's queue and must be rung before it, so that the drive takes it first. `None` without the
    /// feature, and where the entries are not as many as the read's pages.
    pub fn enqueue_write_buffer(
        &mut self,
        read: CommandId,
        entries: &[HostEntry],
    ) -> Option<CommandId> {
        let command = self.commands[read.0];
        if self.hpb.is_none() || command.status != Status::Success {
            return None;
        }
        let pages = command.end_lpn() - command.first_lpn();
        if entries.len() != pages as usize {
            return None;
        }
        let mut command = Command::new(command.request, Status::Success);
        command.from_driver = true;
        let id = self.insert(command);
        let hpb = self.hpb.as_mut()?;
        hpb.extra(id.0).ahead.read = Some(read.0);
        let ahead = &mut hpb.extra(read.0).ahead;
        ahead.entries.extend_from_slice(entries);
        ahead.way = Way::Sent;
        Some(id)
    }

    /// Whether a read that the drive has fetched must wait for its entries.
    pub(super) fn awaits_entries(&mut self, id: u32) -> bool {
        let Some(hpb) = &mut self.hpb else {
            return false;
        };
        let way = &mut hpb.extra(id).ahead.way;
        if *way == Way::Sent {
            *way = Way::Awaited;
        }
        *way == Way::Awaited
    }

    /// An HPB WRITE BUFFER has been looked at: its data is sent for. Returns false for other commands.
    pub(super) fn take_entries(&mut self, id: u32) -> bool {
        let Some(hpb) = &mut self.hpb else {
            return false;
        };
        let Some(read) = hpb.extra(id).ahead.read else {
            return false;
        };
        let bytes = hpb.extra(read).ahead.entries.len() as u64 * ENTRY_BYTES;
        let at_ps = self.link.read(self.engine.now(), bytes);
        self.engine
            .schedule(at_ps, EventKind::HpbEntriesArrived, id);
        true
    }

    /// The entries are there: the command is done, and the read goes on if it has waited for them.
    pub(super) fn on_hpb_entries_arrived(&mut self, id: u32) {
        let Some(hpb) = &mut self.hpb else { return };
        let Some(read) = hpb.extra(id).ahead.read else {
            return;
        };
        let way = std::mem::take(&mut hpb.extra(read).ahead.way);
        self.finish(id);
        if way == Way::Awaited {
            self.on_fetched(read);
        }
    }

    /// Whether the entries sent ahead make up for a translation page that is not at hand.
    pub(super) fn entries_cover(&mut self, id: u32, page: u32) -> bool {
        let Some(hpb) = &mut self.hpb else {
            return false;
        };
        let command = &self.commands[id];
        let bit = page - command.translation_pages().0;
        let within = pages_within(command, page);
        match hpb.check_ahead(id, command.first_lpn(), within) {
            Ok(()) => {
                hpb.extra(id).covered |= 1 << bit;
                self.commands[id].host_ppn = EACH;
                self.counters.hpb.used += 1;
                true
            }
            Err(refusal) => {
                self.counters.map.rejected_entries += 1;
                self.counters.hpb.refused[refusal as usize] += 1;
                false
            }
        }
    }

    /// The read starts: what was checked may have changed since.
    pub(super) fn confirm_entries(&mut self, id: u32) {
        let Some(hpb) = &mut self.hpb else { return };
        let command = self.commands[id];
        let (first, last) = command.translation_pages();
        for page in first..=last {
            let bit = 1 << (page - first);
            if hpb.extra(id).covered & bit == 0 {
                continue;
            }
            let within = pages_within(&command, page);
            if let Err(refusal) = hpb.check_ahead(id, command.first_lpn(), within) {
                hpb.extra(id).covered &= !bit;
                self.commands[id].missed |= bit;
                self.counters.hpb.used -= 1;
                self.counters.map.misses += 1;
                self.counters.map.rejected_entries += 1;
                self.counters.hpb.refused[refusal as usize] += 1;
            }
        }
    }

    /// What the entry of one page of the read says, if it is used.
    #[inline]
    pub(super) fn place_by_entry(&self, id: u32, at: u32) -> Option<Ppn> {
        let ahead = &self.hpb.as_ref()?.extras[id as usize].ahead;
        let place = *ahead.places.get(at as usize)?;
        (place != NONE).then_some(Ppn(place))
    }
}

impl super::hpb::Hpb {
    fn check_ahead(&mut self, id: u32, first: u32, within: (u32, u32)) -> Result<(), Refusal> {
        let ahead = &mut self.extras[id as usize].ahead;
        ahead.check(&mut self.device, first, within)
    }
}
