//! The map role at work: translation pages are read for those who wait, units are completed in the
//! background, changed pages are written back.

use super::write::{MERGE, Program};
use super::{Contents, Device};
use crate::controller::Found;
use crate::ftl::Stream;
use crate::ids::{BufferSlot, TranslationPage};
use crate::nand::{Cause, Class, FlashOp};
use crate::spec::{SLOT_BYTES, Tier};

/// Map updates that may wait for their translation page before programs of new data pause, as a
/// multiple of the reads in flight: the firmware's list of pending updates is short.
const PENDING_UPDATES_PER_FILL: usize = 16;

impl<C: Contents> Device<C> {
    /// Looks a translation page up. Of a page that was never written the directory, in the drive's
    /// own memory, knows that it has no entries.
    #[inline]
    pub(super) fn look_up_map(&mut self, page: TranslationPage) -> Found {
        match self.map.look_up(page) {
            Found::Nowhere if self.ftl.locate_translation(page).is_none() => Found::Tier(0),
            found => found,
        }
    }

    /// An entry of a translation page has changed.
    #[inline]
    pub(super) fn update_map(&mut self, page: TranslationPage) {
        match self.map.update(page) {
            Found::Tier(place) => {
                if self.map.tier(place) == Tier::Hmb {
                    self.counters.hmb_written_bytes += super::MAP_LINE_BYTES;
                    self.link.write(self.engine.now(), super::MAP_LINE_BYTES);
                }
            }
            Found::Nowhere if self.ftl.locate_translation(page).is_none() => self.map.create(page),
            Found::Nowhere => {
                self.map.fill(page, None);
            }
        }
    }

    /// Whether so many map updates wait that new data must wait too.
    pub(super) fn map_is_behind(&self) -> bool {
        let limit = self.spec.roles.map.fills_in_flight as usize * PENDING_UPDATES_PER_FILL;
        self.map.fills() > limit
    }

    /// Starts the reads and writes of translation pages that can start now.
    pub(super) fn pump_map(&mut self) {
        while let Some((fill, page)) = self.map.next_fill() {
            let Some(ppn) = self.ftl.locate_translation(page) else {
                // Trimmed while it waited.
                self.on_filled(fill);
                continue;
            };
            let place = self.ftl.place(ppn);
            let mask = 1 << place.slot;
            self.read_flash(FlashOp::read(
                Class::MapRead,
                Cause::Map,
                fill,
                &place,
                mask,
            ));
        }
        self.pump_background_fills();
        self.pump_writebacks();
    }

    /// Reads on for units of which only one page was asked for.
    fn pump_background_fills(&mut self) {
        while let Some((first, end)) = self.map.next_background() {
            let Some(ppn) = self.ftl.locate_translation(first) else {
                self.map.background_issued(1, true);
                self.map.complete_units();
                continue;
            };
            let place = self.ftl.place(ppn);
            let room = (self.ftl.geometry().group_slots - place.slot).min(end - first.0);
            // As many pages as lie side by side in the same group come with one read.
            let mut pages = 1;
            while pages < room
                && self
                    .ftl
                    .locate_translation(TranslationPage(first.0 + pages))
                    .map(|p| p.0)
                    == Some(ppn.0 + pages)
            {
                pages += 1;
            }
            let mask = ((1u64 << pages) - 1) << place.slot;
            let key = self.map.background_issued(pages, false);
            self.counters.map.background_fills += u64::from(pages);
            self.read_flash(FlashOp::read(
                Class::Background,
                Cause::Map,
                key,
                &place,
                mask,
            ));
        }
    }

    /// Writes changed translation pages that have left the cache.
    fn pump_writebacks(&mut self) {
        let unit_slots = self.ftl.geometry().unit_slots as usize;
        loop {
            let waiting = self.map.writebacks();
            self.background.drain_map &= waiting > 0;
            if waiting == 0 || (waiting < unit_slots && !self.background.drain_map) {
                return;
            }
            let Some(unit) = self.ftl.allocate(Stream::Map, false) else {
                return;
            };
            let mut filled = 0;
            while filled < unit.slots {
                let Some(page) = self.map.pop_writeback() else {
                    break;
                };
                self.ftl
                    .bind_translation(page, crate::ids::Ppn(unit.ppn.0 + filled));
                filled += 1;
            }
            self.counters.map.dirty_writebacks += u64::from(filled);
            let mut program = Program::new(unit.ppn);
            program.saves_hmb = self.background.drain_map;
            self.background.saving_programs += u32::from(program.saves_hmb);
            self.program_flash(unit, program, Cause::Map, filled);
        }
    }

    /// A translation page that was waited for has arrived.
    pub(super) fn on_filled(&mut self, fill: u32) {
        let mut waiting = std::mem::take(&mut self.scratch);
        let page = self.map.filled(fill, &mut waiting);
        if self.hmb_bytes > 0 && self.map.spreads_to(Tier::Hmb) {
            self.counters.hmb_written_bytes += SLOT_BYTES;
            self.link.write(self.engine.now(), SLOT_BYTES);
        }
        for waiter in waiting.drain(..) {
            if waiter & MERGE != 0 {
                self.read_for_merge(BufferSlot(waiter & !MERGE));
            } else {
                self.read_after_fill(waiter, page);
            }
        }
        self.scratch = waiting;
        self.pump();
    }

    /// Pages of a unit have been read in the background.
    pub(super) fn on_background_filled(&mut self, op: &FlashOp) {
        if self.map.background_done(op.owner) == Tier::Hmb {
            let bytes = u64::from(op.mask.count_ones()) * SLOT_BYTES;
            self.counters.hmb_written_bytes += bytes;
            self.link.write(self.engine.now(), bytes);
        }
        self.pump();
    }
}
