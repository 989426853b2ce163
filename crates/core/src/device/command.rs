//! A command inside the drive.

use super::SECTOR_BYTES;
use crate::ids::{CommandId, Lpn, Maybe, Ppn, TranslationPage};
use crate::request::{Purpose, Request, Status};
use crate::slab::{Linked, Slab};
use crate::spec::{ENTRIES_PER_TRANSLATION_PAGE, SLOT_BYTES};
use serde::{Deserialize, Serialize};
use std::ops::{Deref, DerefMut, Range};

/// What map entries that a host has sent with a read say of where its data is.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToldByHost {
    /// Nothing that counts: the drive's own map is used.
    Nothing,
    /// Its first page is there, and the others follow.
    First(Ppn),
    /// Each of its pages has an entry of its own.
    Each,
}

/// A command inside the drive.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
pub(super) struct Command {
    pub(super) next: Maybe<CommandId>,
    pub(super) request: Request,
    /// When the last of its data is on the other side.
    pub(super) data_end_ps: u64,
    /// Things that must still happen before it completes.
    pub(super) pending: u32,
    /// Bit i: the i-th translation page it spans was not at hand.
    pub(super) missed: u64,
    /// An entry must come from host memory first.
    pub(super) awaits_entry: bool,
    /// A piece of a pin or flush of the byte window: the drive's own, its tag is the entry.
    pub(super) window_io: bool,
    /// Slots whose data was asked for so far (write).
    pub(super) slots_taken: u32,
    /// Bytes of parts that need no flash.
    pub(super) part_bytes: u64,
    /// What the host's entries say of where its data is.
    pub(super) told_by_host: ToldByHost,
    /// It is a READ BUFFER or HPB WRITE BUFFER of the host's driver, not a request.
    pub(super) hpb_command: bool,
    /// The controller has taken another command in its place.
    pub(super) has_left: bool,
    pub(super) status: Status,
    /// What becomes of what it reads. Only live hosts ask for something else than data, and their drives are not saved.
    #[serde(skip)]
    pub(super) purpose: Purpose,
}

/// A command with its payload.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct Held<P> {
    command: Command,
    /// What it brings, and what is read for it.
    pub(super) payload: P,
}

impl<P> Held<P> {
    pub(super) fn new(command: Command, payload: P) -> Self {
        Held { command, payload }
    }
}

impl<P> Deref for Held<P> {
    type Target = Command;
    #[inline(always)]
    fn deref(&self) -> &Command {
        &self.command
    }
}

impl<P> DerefMut for Held<P> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Command {
        &mut self.command
    }
}

impl<P> Linked<CommandId> for Held<P> {
    fn next(&self) -> Maybe<CommandId> {
        self.next
    }
    fn set_next(&mut self, next: Maybe<CommandId>) {
        self.next = next;
    }
}

/// The commands inside the drive.
pub(super) type Commands<P> = Slab<Held<P>, CommandId>;

impl Command {
    pub(super) fn new(request: Request, status: Status) -> Self {
        Command {
            next: Maybe::NONE,
            request,
            data_end_ps: 0,
            pending: 0,
            missed: 0,
            awaits_entry: false,
            window_io: false,
            slots_taken: 0,
            part_bytes: 0,
            told_by_host: ToldByHost::Nothing,
            hpb_command: false,
            has_left: false,
            status,
            purpose: Purpose::Deliver,
        }
    }

    /// Whether what it reads goes to the host.
    #[inline]
    pub(super) fn delivers(&self) -> bool {
        self.purpose == Purpose::Deliver
    }

    /// First logical page.
    #[inline]
    pub(super) fn first_lpn(&self) -> u32 {
        (self.request.offset_bytes / SLOT_BYTES) as u32
    }

    /// One past the last logical page.
    #[inline]
    pub(super) fn end_lpn(&self) -> u32 {
        (self.request.offset_bytes + self.request.length_bytes).div_ceil(SLOT_BYTES) as u32
    }

    /// First and last translation page.
    #[inline]
    pub(super) fn translation_pages(&self) -> (u32, u32) {
        let per_page = ENTRIES_PER_TRANSLATION_PAGE as u32;
        (self.first_lpn() / per_page, (self.end_lpn() - 1) / per_page)
    }

    /// Logical pages within one translation page: the first, and one past the last.
    pub(super) fn pages_within(&self, page: TranslationPage) -> (u32, u32) {
        let per_page = ENTRIES_PER_TRANSLATION_PAGE as u32;
        let first = self.first_lpn().max(page.0 * per_page);
        let end = (u64::from(page.0) + 1) * u64::from(per_page);
        (first, u64::from(self.end_lpn()).min(end) as u32)
    }

    /// Those of them whose data is read: none by a command of the host's HPB driver, which wants the entries.
    pub(super) fn data_within(&self, page: TranslationPage) -> (u32, u32) {
        match self.hpb_command {
            true => (0, 0),
            false => self.pages_within(page),
        }
    }

    /// Bytes of one page that the command covers.
    #[inline]
    pub(super) fn bytes_in(&self, lpn: Lpn) -> u64 {
        self.bytes_of(lpn.0..lpn.0 + 1)
    }

    /// Bytes of these pages, all of which it touches, that the command covers.
    #[inline]
    pub(super) fn bytes_of(&self, pages: Range<u32>) -> u64 {
        let start = u64::from(pages.start) * SLOT_BYTES;
        let end = u64::from(pages.end) * SLOT_BYTES;
        let Request {
            offset_bytes,
            length_bytes,
            ..
        } = self.request;
        end.min(offset_bytes + length_bytes) - start.max(offset_bytes)
    }

    /// Sectors of one page that the command covers, a bit each.
    #[inline]
    pub(super) fn sectors_in(&self, lpn: Lpn) -> u8 {
        if self.bytes_in(lpn) == SLOT_BYTES {
            return u8::MAX;
        }
        let start = u64::from(lpn.0) * SLOT_BYTES;
        let from = self.request.offset_bytes.saturating_sub(start) / SECTOR_BYTES;
        let count = self.bytes_in(lpn) / SECTOR_BYTES;
        (((1u16 << count) - 1) << from) as u8
    }
}
