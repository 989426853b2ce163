//! What a read is put together from: runs of slots on flash, and pieces from memory.

use super::Command;
use super::board::Board;
use super::map::Map;
use crate::controller::{ReadCache, WriteBuffer};
use crate::engine::EventKind;
use crate::ftl::Ftl;
use crate::ids::{CommandId, Lpn, Ppn, TranslationPage};
use crate::memory::{PIECE_BYTES, TIERS};
use crate::nand::{Place, SlotMask, slot_mask};
use crate::observe::Tracer;
use crate::request::Purpose;
use crate::spec::Tier;

/// A read that compares asks for the host's data, which it waits for as for its own.
#[inline]
pub(super) fn ask_for_hosts_side<T: Tracer>(
    board: &mut Board<T>,
    id: CommandId,
    command: &mut Command,
) {
    if command.purpose == Purpose::Compare {
        command.pending += 1;
        let now = board.engine.now();
        let at_ps = board.link.read(now, command.request.length_bytes);
        board.engine.schedule(at_ps, EventKind::PartReady, id);
    }
}

/// A flash read being put together: neighbouring slots of one group.
pub(super) struct Run {
    pub(super) place: Place,
    slots: u32,
    pub(super) bytes: u32,
}

impl Run {
    #[inline]
    pub(super) fn new(place: Place, bytes: u64) -> Self {
        Run {
            place,
            slots: 1,
            bytes: bytes as u32,
        }
    }

    /// A slot joins that is the next of the group, if it is.
    #[inline]
    pub(super) fn extend(&mut self, ppn: Ppn, group_slots: u32, bytes: u64) -> bool {
        let next_slot = self.place.slot + self.slots;
        let is_next = ppn.0 == self.place.group.0 + next_slot && next_slot < group_slots;
        if is_next {
            self.slots += 1;
            self.bytes += bytes as u32;
        }
        is_next
    }

    /// How many slots it is.
    #[inline]
    pub(super) fn slots(&self) -> u32 {
        self.slots
    }

    /// Its slots in their group, a bit each.
    #[inline]
    pub(super) fn mask(&self) -> SlotMask {
        slot_mask(self.place.slot, self.slots)
    }
}

/// Bytes of a command that need no flash.
#[derive(Default)]
pub(super) struct FromMemory {
    /// There are some: most reads need flash alone.
    pub(super) any: bool,
    /// Of pages without data.
    pub(super) zeros: u64,
    /// By memory, in the order of [`Tier::ALL`].
    pub(super) held: [u64; TIERS],
}

impl FromMemory {
    #[inline]
    pub(super) fn add(&mut self, tier: Tier, bytes: u64) {
        self.any = true;
        self.held[tier as usize] += bytes;
    }
}

/// `bytes` in pieces.
#[inline]
pub(super) fn pieces(bytes: u64) -> impl Iterator<Item = u64> {
    (0..bytes.div_ceil(PIECE_BYTES)).map(move |n| PIECE_BYTES.min(bytes - n * PIECE_BYTES))
}

/// Whether pages `from..to` may be taken from the read cache: where it serves whole commands
/// only, all that flash would have to deliver must be there.
#[inline]
pub(super) fn read_cache_serves(
    cache: Option<&ReadCache>,
    buffer: &WriteBuffer,
    ftl: &Ftl,
    from: u32,
    to: u32,
) -> bool {
    match cache {
        Some(cache) if cache.whole_commands && to - from > 1 => (from..to).map(Lpn).all(|lpn| {
            cache.contains(lpn)
                || buffer.find(lpn).is_some()
                || ftl.locate(lpn).is_none_or(|ppn| cache.is_coming(ppn))
        }),
        _ => true,
    }
}

/// Whether all that a command reads of what a translation page maps is in the write buffer or in the read cache. Both go by logical
/// addresses and ask no map; its page comes all the same, for those who will.
pub(super) fn find_at_hand(
    command: &Command,
    page: TranslationPage,
    map: &mut Map,
    (buffer, cache): (&WriteBuffer, Option<&ReadCache>),
) -> bool {
    let (from, to) = command.pages_within(page);
    let at_hand = (from..to).map(Lpn).all(|lpn| match buffer.find(lpn) {
        Some(slot) => !buffer.lacks(slot, command.sectors_in(lpn)),
        None => cache.is_some_and(|cache| cache.contains(lpn)),
    });
    if at_hand {
        map.fetch(page);
    }
    at_hand
}

/// Where a page lies that is neither at hand nor on its way.
pub(super) fn to_be_read_ahead(
    cache: Option<&ReadCache>,
    buffer: &WriteBuffer,
    ftl: &Ftl,
    lpn: Lpn,
) -> Option<Ppn> {
    let cache = cache?;
    if cache.contains(lpn) || buffer.find(lpn).is_some() {
        return None;
    }
    ftl.locate(lpn).filter(|&ppn| !cache.is_coming(ppn))
}
