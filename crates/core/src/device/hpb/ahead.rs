//! JEDEC's protocol 2.0: the entries of a read of several pages, sent ahead of it.
//!
//! The host sends HPB WRITE BUFFER with an entry of 8 bytes for each page, and the HPB READ
//! right behind it (the "pre-request" that Linux had for a short time). Both are commands, with all
//! that a command costs; the drive begins with the read once it has the entries.
//!
//! Each entry is checked by itself, with the rules for one that comes with a read. The drive uses its
//! own map for a translation page of which one entry does not hold.

use super::{Board, Command, Hpb, ToldByHost, refuse};
use crate::controller::hpb::{HostEntry, HpbDevice, Refusal};
use crate::engine::EventKind;
use crate::ids::{CommandId, Lpn, Maybe, Ppn, TranslationPage};
use crate::observe::Tracer;
use serde::{Deserialize, Serialize};

/// Bytes of an entry in an HPB WRITE BUFFER (JESD220-3).
const ENTRY_BYTES: u64 = 8;

/// Where the entries of a read are.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, Default, PartialEq, Eq)]
enum Delivery {
    /// With the drive, if there are any.
    #[default]
    There,
    /// On their delivery.
    Sent,
    /// On their delivery, and the read waits for them.
    Awaited,
}

/// Entries sent ahead of a read, or the command that brings them.
#[derive(Clone, Serialize, Deserialize, Debug, Default)]
pub(super) struct PrefetchedEntries {
    /// By page of the read.
    entries: Vec<HostEntry>,
    /// What they say, by page; none: the drive's own map counts.
    places: Vec<Maybe<Ppn>>,
    delivery: Delivery,
    /// Of an HPB WRITE BUFFER: the read that its entries are for.
    read: Option<CommandId>,
}

impl PrefetchedEntries {
    /// Nothing is sent ahead.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.places.clear();
        self.delivery = Delivery::There;
        self.read = None;
    }

    /// Entries of this read.
    pub fn len(&self) -> usize {
        self.entries.len()
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
        self.places.resize(self.entries.len(), Maybe::NONE);
        for lpn in from..to {
            let at = (lpn - first) as usize;
            match device.check(Lpn(lpn), 1, self.entries[at]) {
                Ok(ppn) => self.places[at] = ppn.into(),
                Err(refusal) => {
                    self.places[(from - first) as usize..(to - first) as usize].fill(Maybe::NONE);
                    return Err(refusal);
                }
            }
        }
        Ok(())
    }
}

impl Hpb {
    /// The host writes an HPB WRITE BUFFER, `bringer`, with an entry for each page of an enqueued read.
    pub(in crate::device) fn begin_ahead(
        &mut self,
        bringer: CommandId,
        read: CommandId,
        entries: &[HostEntry],
    ) {
        self.state(bringer).ahead.read = Some(read);
        let ahead = &mut self.state(read).ahead;
        ahead.entries.extend_from_slice(entries);
        ahead.delivery = Delivery::Sent;
    }

    /// Whether a read that the drive has fetched must wait for its entries.
    pub(in crate::device) fn awaits_entries(&mut self, id: CommandId) -> bool {
        let delivery = &mut self.state(id).ahead.delivery;
        if *delivery == Delivery::Sent {
            *delivery = Delivery::Awaited;
        }
        *delivery == Delivery::Awaited
    }

    /// An HPB WRITE BUFFER has been looked at: its data is sent for. Returns false for other commands.
    pub(in crate::device) fn take_entries(
        &mut self,
        board: &mut Board<impl Tracer>,
        id: CommandId,
    ) -> bool {
        let Some(read) = self.state(id).ahead.read else {
            return false;
        };
        let bytes = self.state(read).ahead.len() as u64 * ENTRY_BYTES;
        let at_ps = board.link.read(board.engine.now(), bytes);
        board
            .engine
            .schedule(at_ps, EventKind::HpbEntriesArrived, id);
        true
    }

    /// The entries are there; returns the read that has waited for them, if it has.
    pub(in crate::device) fn entries_arrived(&mut self, id: CommandId) -> Option<CommandId> {
        let read = self.state(id).ahead.read?;
        let delivery = std::mem::take(&mut self.state(read).ahead.delivery);
        (delivery == Delivery::Awaited).then_some(read)
    }

    /// Whether the entries sent ahead make up for a translation page that is not at hand.
    pub(super) fn ahead_covers(
        &mut self,
        board: &mut Board<impl Tracer>,
        id: CommandId,
        command: &mut Command,
        page: TranslationPage,
    ) -> bool {
        let bit = page.0 - command.translation_pages().0;
        match self.check_ahead(id, command, page) {
            Ok(()) => {
                self.state(id).covered |= 1 << bit;
                command.told_by_host = ToldByHost::Each;
                board.counters.hpb.used += 1;
                true
            }
            Err(refusal) => {
                refuse(board, refusal);
                false
            }
        }
    }

    /// The read starts: what was checked may have changed since.
    pub(super) fn confirm_ahead(
        &mut self,
        board: &mut Board<impl Tracer>,
        id: CommandId,
        command: &mut Command,
    ) {
        let (first, last) = command.translation_pages();
        for page in first..=last {
            let bit = 1 << (page - first);
            if self.state(id).covered & bit == 0 {
                continue;
            }
            if let Err(refusal) = self.check_ahead(id, command, TranslationPage(page)) {
                self.state(id).covered &= !bit;
                command.missed |= bit;
                board.counters.hpb.used -= 1;
                board.counters.map.misses += 1;
                refuse(board, refusal);
            }
        }
    }

    fn check_ahead(
        &mut self,
        id: CommandId,
        command: &Command,
        page: TranslationPage,
    ) -> Result<(), Refusal> {
        let within = command.pages_within(page);
        let ahead = &mut self.states[id.index()].ahead;
        ahead.check(&mut self.device, command.first_lpn(), within)
    }

    /// What the entry of one page of the read says, if it is used.
    #[inline]
    pub(in crate::device) fn place_of(&self, id: CommandId, at: u32) -> Option<Ppn> {
        let places = &self.states[id.index()].ahead.places;
        places.get(at as usize)?.get()
    }
}
