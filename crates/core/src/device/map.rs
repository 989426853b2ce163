//! The map role at work: translation pages are read for those who wait, units are completed in the
//! background, changed pages are written back.

use super::write::Program;
use super::{Contents, Device, HostMemory, MapEntries};
use crate::controller::encoding::{ENTRIES, Entries, UNMAPPED};
use crate::controller::{Crossings, Found, Waiter};
use crate::ftl::Stream;
use crate::ids::{Lpn, NONE, TranslationPage};
use crate::nand::{Cause, Class, FlashOp, slot_mask};
use crate::observe::Tracer;
use crate::spec::{DriveSpec, ENTRIES_PER_TRANSLATION_PAGE, Integrity, LINE_BYTES, Tier};
use serde::{Deserialize, Serialize};

/// Map updates that may wait for their translation page before programs of new data pause, as a
/// multiple of the reads in flight: the firmware's list of pending updates is short.
const PENDING_UPDATES_PER_FILL: usize = 16;

/// Program operations of translation pages that may be under way for each die: one runs, and the data of
/// the next is loaded.
const WRITEBACKS_PER_DIE: u32 = 2;

/// Program operations' worth of translation pages that may wait beside those before new data pauses:
/// they stand in the controller's own memory.
const WRITEBACKS_WAITING: usize = 4;

/// What the map's share of host memory costs, worked out once.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
pub(super) struct MapCosts {
    /// Bytes read for a look-up.
    pub look_up_bytes: u64,
    /// Time a look-up waits for the check of what was read.
    pub check_ps: u64,
    /// Bytes read before an entry can be changed.
    update_read_bytes: u64,
    /// Bytes written when an entry changes.
    update_write_bytes: u64,
    /// Bytes written for a whole translation page.
    pub page_bytes: u64,
}

impl MapCosts {
    pub(super) fn new(spec: &DriveSpec) -> Self {
        let integrity = integrity(spec);
        let hmb = spec.tiers.hmb.as_ref().filter(|hmb| hmb.check_in_path);
        MapCosts {
            look_up_bytes: integrity.look_up_bytes(),
            check_ps: hmb.map_or(0, |hmb| hmb.check_ps),
            update_read_bytes: integrity.update_read_bytes(),
            update_write_bytes: integrity.update_write_bytes(),
            page_bytes: integrity.plain_page_bytes(),
        }
    }
}

/// How the map is protected in host memory.
pub(super) fn integrity(spec: &DriveSpec) -> Integrity {
    let hmb = spec.tiers.hmb.as_ref();
    hmb.map_or(Integrity::None, |hmb| hmb.integrity)
}

impl<C: Contents, M: HostMemory, T: Tracer> Device<C, M, T> {
    /// Looks a translation page up. Of a page that was never written the directory, in the drive's
    /// own memory, knows that it has no entries.
    #[inline]
    pub(super) fn look_up_map(&mut self, page: TranslationPage) -> Found {
        if self.map.compresses() && self.map.is_unmeasured(page) {
            self.measure_page(page);
        }
        match self.map.look_up(page) {
            Found::Nowhere if self.ftl.locate_translation(page).is_none() => Found::Tier(0),
            found => found,
        }
    }

    /// The entry of a logical page has changed.
    #[inline]
    pub(super) fn update_map(&mut self, lpn: Lpn) {
        self.update_map_page(super::write::translation_page(lpn));
        if M::KEEPS_BYTES {
            self.update_host_entry(lpn);
        }
    }

    /// Entries of a translation page have changed.
    #[inline]
    pub(super) fn update_map_page(&mut self, page: TranslationPage) {
        self.note_changed_page(page);
        match self.map.update(page) {
            Found::Tier(place) if self.map.tier(place).is_granted() && self.hmb_bytes > 0 => {
                self.move_units();
                // A page that is compressed there is written as a whole, once for a batch.
                let held = self.map.compressed_page(place, page);
                if !held.is_some_and(|(_, compressed)| compressed) {
                    self.update_hmb_line();
                }
            }
            Found::Tier(_) => {}
            Found::Nowhere if self.ftl.locate_translation(page).is_none() => {
                if self.map.compresses() {
                    self.measure_page(page);
                }
                self.map.create(page);
            }
            Found::Nowhere => {
                self.map.fill(page, None);
            }
        }
    }

    /// An entry changes in host memory; one that is checked with its neighbours is read first.
    /// Nobody waits for either.
    #[inline]
    fn update_hmb_line(&mut self) {
        let now = self.board.engine.now();
        let MapCosts {
            update_read_bytes,
            update_write_bytes,
            ..
        } = self.map_costs;
        if update_read_bytes > 0 {
            self.board.counters.hmb_read_bytes += update_read_bytes;
            self.board.link.read(now, update_read_bytes);
        }
        self.board.counters.hmb_written_bytes += update_write_bytes;
        self.board.link.write(now, update_write_bytes);
    }

    /// Units that exclusive tiers exchanged with host memory cross the link. A unit that is taken
    /// back is waited for by nobody: the command's own entry is fetched by itself.
    #[inline]
    pub(super) fn move_units(&mut self) {
        let crossings = std::mem::take(&mut self.map.crossings);
        if crossings == Crossings::default() || self.hmb_bytes == 0 {
            return;
        }
        let now = self.board.engine.now();
        if crossings.from_host_bytes > 0 {
            self.board.counters.hmb_read_bytes += crossings.from_host_bytes;
            self.board.link.read(now, crossings.from_host_bytes);
        }
        if crossings.to_host_bytes > 0 {
            self.board.counters.hmb_written_bytes += crossings.to_host_bytes;
            self.board.link.write(now, crossings.to_host_bytes);
        }
        // Exclusive tiers have units of one translation page (spec).
        for _ in 0..crossings.from_host {
            self.board.counters.hmb_read_bytes += self.map_costs.page_bytes;
            self.board.link.read(now, self.map_costs.page_bytes);
        }
        for _ in 0..crossings.to_host {
            self.board.counters.hmb_written_bytes += self.map_costs.page_bytes;
            self.board.link.write(now, self.map_costs.page_bytes);
        }
    }

    /// Whether so many map updates wait that new data must wait too.
    pub(super) fn map_is_behind(&self) -> bool {
        self.fills_are_behind() || self.writebacks_are_behind()
    }

    /// Whether moved data must wait: not for writes that themselves wait for what garbage collection
    /// will bring.
    pub(super) fn map_delays_moves(&self) -> bool {
        let behind = self.writebacks_are_behind() && self.ftl.has_room(Stream::Map);
        self.fills_are_behind() || behind
    }

    fn fills_are_behind(&self) -> bool {
        let limit = self.spec.roles.map.fills_in_flight as usize * PENDING_UPDATES_PER_FILL;
        self.map.fills() > limit
    }

    fn writebacks_are_behind(&self) -> bool {
        let unit_slots = self.ftl.geometry().unit_slots as usize;
        self.map.writebacks() > WRITEBACKS_WAITING * unit_slots
    }

    /// Starts the reads and writes of translation pages that can start now.
    pub(super) fn pump_map(&mut self) {
        while let Some((fill, page)) = self.map.next_fill() {
            self.map_reads.enter(self.board.engine.now());
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
                self.map.background_absent();
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
            let mask = slot_mask(place.slot, pages);
            let key = self.map.background_issued(pages);
            self.board.counters.map.background_fills += u64::from(pages);
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
            let programs_max = WRITEBACKS_PER_DIE * self.ftl.geometry().dies;
            if self.background.map_programs >= programs_max {
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
                let ppn = crate::ids::Ppn(unit.ppn.0 + filled);
                self.ftl.bind_translation(page, ppn, unit.sequence);
                if C::FOLLOWS_MAP {
                    let mut entries: MapEntries = [NONE; ENTRIES_PER_TRANSLATION_PAGE as usize];
                    self.ftl.entries_of(page, &mut entries);
                    self.contents.write_map_page(ppn, &entries);
                }
                filled += 1;
            }
            self.board.counters.map.dirty_writebacks += u64::from(filled);
            let mut program = Program::new(&unit);
            program.is_writeback = true;
            self.background.map_programs += 1;
            program.saves_hmb = self.background.drain_map;
            self.background.saving_programs += u32::from(program.saves_hmb);
            self.program_flash(unit, program, Cause::Map, filled);
        }
    }

    /// A translation page that was waited for has arrived.
    pub(super) fn on_filled(&mut self, fill: u32) {
        self.map_reads.leave(self.board.engine.now());
        if C::FOLLOWS_MAP {
            self.follow_map_page(self.map.page_of(fill));
        }
        if self.map.compresses() {
            self.measure_page(self.map.page_of(fill));
        }
        let mut waiting = std::mem::take(&mut self.waiters);
        let page = self.map.filled(fill, &mut waiting);
        self.move_units();
        if self.hmb_bytes > 0 && self.map.spreads_to_host() {
            let bytes = self.whole_page_bytes(page);
            self.board.counters.hmb_written_bytes += bytes;
            self.board.link.write(self.board.engine.now(), bytes);
        }
        if M::KEEPS_BYTES {
            // Repaired, where it stood there and failed its check.
            self.write_host_page(page);
        }
        for waiter in waiting.drain(..) {
            match waiter {
                Waiter::Merge(slot) => self.read_for_merge(slot),
                Waiter::Command(command) => self.read_after_fill(command, page),
            }
        }
        self.waiters = waiting;
        self.pump();
    }

    /// What a translation page says in flash is what the drive knows, or it knows what is newer.
    fn follow_map_page(&mut self, page: TranslationPage) {
        let Some(ppn) = self.ftl.locate_translation(page) else {
            return;
        };
        if self.map.is_newer_than_flash(page) {
            return;
        }
        let mut entries: MapEntries = [NONE; ENTRIES_PER_TRANSLATION_PAGE as usize];
        self.ftl.entries_of(page, &mut entries);
        let mut initial: MapEntries = [NONE; ENTRIES_PER_TRANSLATION_PAGE as usize];
        let first = page.0 * ENTRIES_PER_TRANSLATION_PAGE as u32;
        for (lpn, entry) in (first..self.ftl.user_slots()).zip(&mut initial) {
            *entry = self.ftl.initial(Lpn(lpn)).map_or(NONE, |ppn| ppn.0);
        }
        self.contents.read_map_page(ppn, &entries, &initial);
    }

    /// Pages of a unit have been read in the background.
    pub(super) fn on_background_filled(&mut self, op: &FlashOp) {
        if self.map.background_done(op.owner).is_granted() {
            let bytes = u64::from(op.mask.count_ones()) * self.map_costs.page_bytes;
            self.board.counters.hmb_written_bytes += bytes;
            self.board.link.write(self.board.engine.now(), bytes);
        }
        self.pump();
    }

    // Compressed maps: translation pages are measured when they come and when their entries change.
    // Where the map is flat, none of this is called.

    /// A page is about to be kept: how much room does it take?
    #[cold]
    pub(super) fn measure_page(&mut self, page: TranslationPage) {
        let mut entries: Entries = [UNMAPPED; ENTRIES];
        self.ftl.entries_of(page, &mut entries);
        self.map.measure(page, &entries);
    }

    /// Entries of a page have changed; it is measured once all changes of a batch are known.
    #[inline]
    pub(super) fn note_changed_page(&mut self, page: TranslationPage) {
        if self.map.compresses() && self.map.is_kept(page) && !self.changed_pages.contains(&page) {
            self.changed_pages.push(page);
        }
    }

    /// The pages changed by a batch are encoded anew where they are held. In host memory, one that
    /// is compressed is read and written as a whole; nobody waits for it.
    #[inline]
    pub(super) fn measure_changed_pages(&mut self) {
        if !self.changed_pages.is_empty() {
            self.measure_each_changed_page();
        }
    }

    #[cold]
    fn measure_each_changed_page(&mut self) {
        let mut pages = std::mem::take(&mut self.changed_pages);
        for page in pages.drain(..) {
            let hmb = self.map.place_in_host();
            let searched = |device: &Self| {
                let place = hmb.filter(|_| device.map.is_held_by_host(page))?;
                device.map.compressed_page(place, page)
            };
            let before = searched(self);
            self.measure_page(page);
            if let (Some((old, was)), Some((new, is))) = (before, searched(self))
                && (was || is)
            {
                let now = self.board.engine.now();
                self.board.counters.hmb_read_bytes += old;
                self.board.counters.hmb_written_bytes += new;
                self.board.link.read(now, old);
                self.board.link.write(now, new);
            }
        }
        self.changed_pages = pages;
    }

    /// Bytes read from host memory for a look-up: of a compressed page, all of it.
    #[inline]
    pub(super) fn look_up_bytes(&self, page: TranslationPage) -> u64 {
        if !self.map.compresses() {
            return self.map_costs.look_up_bytes;
        }
        let place = self.map.place_in_host();
        match place.and_then(|place| self.map.compressed_page(place, page)) {
            Some((bytes, true)) => bytes.next_multiple_of(LINE_BYTES),
            _ => self.map_costs.look_up_bytes,
        }
    }

    /// Bytes written to host memory when a page goes there.
    #[inline]
    pub(super) fn whole_page_bytes(&self, page: TranslationPage) -> u64 {
        if !self.map.compresses() {
            return self.map_costs.page_bytes;
        }
        let place = self.map.place_in_host();
        let compressed = place.and_then(|place| self.map.compressed_page(place, page));
        compressed.map_or(self.map_costs.page_bytes, |(bytes, _)| bytes)
    }

    /// Memories of compressed pages: pages held, bytes in use, bytes there are.
    #[must_use]
    pub fn compressed_map_use(&self) -> Vec<(Tier, u32, u64, u64)> {
        self.map.compressed_use()
    }

    /// Checks that compressed pages take what their entries say, and fit.
    ///
    /// # Panics
    /// If not. For tests and small drives.
    pub fn check_map(&self) {
        self.map.check_compressed(|page| {
            let mut entries: Entries = [UNMAPPED; ENTRIES];
            self.ftl.entries_of(page, &mut entries);
            entries
        });
    }
}
