//! The map role at work: translation pages are read for those who wait, units are completed in the
//! background, changed pages are written back.

mod changes;
mod compressed;
mod in_hmb;
mod outgoing;

use super::board::Board;
use super::programs::{Carries, Fetched, Program, Programs};
use super::{Contents, HostMemory, Lent, MapEntries, wear};
use crate::controller::{Asker, EPOCH_BITS, Lookup, MapInHmb, MapRole, Waiter};
use crate::engine::{Now, Occupancy};
use crate::ftl::{Ftl, Stream};
use crate::ids::{FillingId, Lpn, NONE, Ppn, TranslationPage};
use crate::memory::Access;
use crate::nand::{Cause, Class, FlashOp, slot_mask};
use crate::observe::Tracer;
use crate::spec::{DriveSpec, ENTRIES_PER_TRANSLATION_PAGE, Integrity, Tier};
use outgoing::Outgoing;
use serde::{Deserialize, Serialize};

/// Map updates that may wait for their translation page before programs of new data pause, as a
/// multiple of the reads in flight: the firmware's list of pending updates is short. Nor more than flash writes in a few program
/// operations of all dies: each page that arrives has another written in the end. A thousand of them, of four pages each, were a second in
/// which a drive of one die took nothing.
const PENDING_UPDATES_PER_FILL: usize = 16;

/// Reads of translation pages for updates alone that may be under way for each die: one runs, and the next waits.
const UPDATES_PER_DIE: u32 = 2;

/// Program operations of translation pages that may be under way for each die: one runs, and the data of
/// the next is loaded.
const WRITEBACKS_PER_DIE: u32 = 2;

/// Program operations' worth of translation pages that may wait beside those before new data pauses:
/// they stand in the controller's own memory.
const WRITEBACKS_WAITING: usize = 4;

/// What the map costs, worked out once.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
struct Costs {
    /// Core time of starting to bring a page.
    fill_ps: u64,
    /// Bytes read from host memory for a look-up.
    look_up_bytes: u64,
    /// The core waits for them.
    stalls_core: bool,
    /// Time a look-up waits for the check of what was read.
    check_ps: u64,
    /// Time that the check takes where none waits for it.
    late_check_ps: u64,
    /// Bytes read before an entry can be changed in host memory.
    update_read_bytes: u64,
    /// Bytes written when an entry changes there.
    update_write_bytes: u64,
    /// Bytes written for a whole translation page.
    page_bytes: u64,
}

impl Costs {
    fn new(spec: &DriveSpec) -> Self {
        let integrity = integrity(spec);
        let hmb = spec.tiers.hmb.as_ref();
        let in_path = hmb.is_some_and(|hmb| hmb.check_in_path);
        let check_ps = hmb.map_or(0, |hmb| hmb.check_ps);
        Costs {
            fill_ps: spec.controller.map_fill_ps,
            look_up_bytes: integrity.look_up_bytes(),
            stalls_core: hmb.is_some_and(|hmb| hmb.stalls_core),
            check_ps: if in_path { check_ps } else { 0 },
            late_check_ps: if in_path { 0 } else { check_ps },
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

/// Translation page of a logical page.
#[inline]
pub(super) fn translation_page(lpn: Lpn) -> TranslationPage {
    TranslationPage(lpn.0 / ENTRIES_PER_TRANSLATION_PAGE as u32)
}

/// The map role, and what of it is under way.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Map {
    /// Which pages stand in which memory.
    role: MapRole,
    /// Its share of host memory, where that is kept as bytes.
    in_hmb: MapInHmb,
    costs: Costs,
    /// Host memory that the drive can use, for whichever role, bytes.
    hmb_bytes: u64,
    /// Pages being read for those who wait.
    reads: Occupancy,
    /// Pages on their way to host memory that were read for those who wait for them, or gave way to others.
    sent: Outgoing,
    /// Reads whose pages are on their way to complete units there.
    sent_for_units: Outgoing,
    /// Those who wait for a page that has come; empty in between.
    waiting: Vec<Waiter>,
    /// Compressed pages whose entries have changed in this batch.
    changed_pages: Vec<TranslationPage>,
    /// Changed pages are written back even if they do not fill a program operation: host memory was taken
    /// back, or the drive is shut down.
    drains: bool,
    /// Programs of changed pages under way.
    programs: u32,
    /// Those of them that save what stood in host memory that was taken back.
    saving_programs: u32,
    /// When the last page asked for from host memory is in the drive: they come in order, whatever for.
    read_back_ps: u64,
}

impl Map {
    /// Nothing is held yet. `keeps_bytes`: host memory is kept as bytes.
    pub(super) fn new(spec: &DriveSpec, ftl: &Ftl, seed: u64, keeps_bytes: bool) -> Self {
        let mut role = MapRole::new(&spec.roles.map, ftl.translation_pages(), 0, seed);
        role.records_moves = keeps_bytes;
        role.limit_fills_for_updates(UPDATES_PER_DIE * ftl.geometry().dies);
        Map {
            role,
            in_hmb: MapInHmb::new(integrity(spec), seed, EPOCH_BITS),
            costs: Costs::new(spec),
            hmb_bytes: 0,
            reads: Occupancy::default(),
            sent: Outgoing::default(),
            sent_for_units: Outgoing::default(),
            waiting: Vec::new(),
            changed_pages: Vec::new(),
            drains: false,
            programs: 0,
            saving_programs: 0,
            read_back_ps: 0,
        }
    }

    /// The controller starts anew at `now`. `key_seed`: of new keys, so that what was written to host memory
    /// before is not accepted again.
    pub(super) fn restart(
        &mut self,
        spec: &DriveSpec,
        ftl: &Ftl,
        now: Now,
        (seed, key_seed): (u64, u64),
    ) {
        let before = std::mem::replace(self, Map::new(spec, ftl, seed, self.role.records_moves));
        self.role.evictions = before.role.evictions;
        self.in_hmb = MapInHmb::new(integrity(spec), key_seed, EPOCH_BITS);
        self.reads = before.reads;
        self.reads.drop_all(now);
    }

    /// The map gets `share_bytes` of host memory, which end at `end`; that is what the drive can use.
    pub(super) fn place<M: HostMemory>(
        &mut self,
        board: &mut Board<impl Tracer>,
        ftl: &Ftl,
        memory: &mut Lent<M>,
        (share_bytes, end): (u64, u64),
    ) {
        self.role.set_hmb(share_bytes);
        // Out of what the drive had before.
        self.move_units(board);
        self.hmb_bytes = end;
        if M::KEEPS_BYTES {
            // What stood there is read back before the memory changes hands.
            self.sync(board, ftl, memory);
            memory.granted(end);
            self.lay_out(end - share_bytes);
        }
    }

    // Look-ups.

    /// Looks a translation page up. Of a page that was never written the directory, in the drive's
    /// own memory, knows that it has no entries.
    #[inline(always)]
    pub(super) fn look_up(&mut self, ftl: &Ftl, page: TranslationPage) -> Lookup {
        if self.role.compresses() && self.role.is_unmeasured(page) {
            self.measure_page(ftl, page);
        }
        match self.role.look_up(page) {
            Lookup::Nowhere if ftl.locate_translation(page).is_none() => Lookup::Unmapped,
            found => found,
        }
    }

    /// Memory of that index in the role's list.
    #[inline]
    pub(super) fn tier(&self, place: usize) -> Tier {
        self.role.tier(place)
    }

    /// Core time of taking an entry from a memory. An entry in host memory keeps the core only if the
    /// firmware waits for it; `None` where the command waits by itself ([`Map::fetch_entry`]).
    #[inline]
    pub(super) fn entry_core_ps(
        &mut self,
        board: &mut Board<impl Tracer>,
        place: usize,
        page: TranslationPage,
    ) -> Option<u64> {
        // A compressed page is searched.
        let steps = self.role.search_steps(place, page);
        let begin_ps = board.cores.begin_ps(board.engine.now());
        let tier = self.role.tier(place);
        let core_ps = match board.memories.look_up(tier, begin_ps, steps) {
            Access::Load { core_ps } => core_ps,
            // Without host memory only pages that were never written are found: by the directory.
            Access::LinkRead if self.hmb_bytes == 0 => 0,
            Access::LinkRead if self.costs.stalls_core => {
                let bytes = self.look_up_bytes(page);
                board.counters.hmb_read_bytes += bytes;
                let link = &mut board.link;
                link.from_host_bytes += bytes;
                link.round_trip_ps() + link.wire_ps(bytes) + self.costs.check_ps
            }
            Access::LinkRead => return None,
        };
        self.move_units(board);
        Some(core_ps)
    }

    /// An entry is read from host memory; returns when it is there.
    pub(super) fn fetch_entry(
        &mut self,
        board: &mut Board<impl Tracer>,
        page: TranslationPage,
    ) -> u64 {
        self.move_units(board);
        let bytes = self.look_up_bytes(page);
        board.counters.hmb_read_bytes += bytes;
        board.link.read_soon(board.engine.now(), bytes) + self.costs.check_ps
    }

    /// Whether the entries of a translation page are at hand for reading ahead: those in host memory cross the link,
    /// a line in front of the data that they lead to.
    pub(super) fn looks_up_ahead(
        &self,
        board: &mut Board<impl Tracer>,
        page: TranslationPage,
    ) -> bool {
        let tier = self.role.served_by(page);
        if tier.is_some_and(Tier::is_granted) && self.hmb_bytes > 0 {
            let bytes = self.look_up_bytes(page);
            board.counters.hmb_read_bytes += bytes;
            board.link.read(board.engine.now(), bytes);
        }
        tier.is_some()
    }

    /// Asks for a page on behalf of one who waits. Returns true when this joined a read already asked for.
    pub(super) fn fill(
        &mut self,
        board: &mut Board<impl Tracer>,
        page: TranslationPage,
        waiter: Waiter,
    ) -> bool {
        let has_joined = self.role.fill(page, Asker::Waits(waiter));
        if has_joined && matches!(waiter, Waiter::Command(_)) {
            self.hurry(board, page);
        }
        has_joined
    }

    /// A page is read although nobody waits for it.
    pub(super) fn fetch(&mut self, page: TranslationPage) {
        self.role.fetch(page);
    }

    /// A command waits for a page, too, if it was asked for.
    pub(super) fn hurry(&mut self, board: &mut Board<impl Tracer>, page: TranslationPage) {
        if let Some(op) = self.role.hurry(page) {
            let engine = &mut board.engine;
            board.array.promote(engine, op, Class::MapRead);
        }
    }

    // What is under way.

    /// Whether so many map updates wait that new data must wait too.
    pub(super) fn is_behind(&self, ftl: &Ftl) -> bool {
        self.fills_are_behind(ftl) || self.writebacks_are_behind(ftl)
    }

    /// Whether changes take room in flash, as pages of the map that are written sooner or later.
    #[inline]
    pub(super) fn takes_room(&self) -> bool {
        !self.role.holds_all()
    }

    /// Whether moved data must wait: not for writes that themselves wait for what garbage collection
    /// will bring.
    pub(super) fn delays_moves(&self, ftl: &Ftl) -> bool {
        let behind = self.writebacks_are_behind(ftl) && ftl.has_room(Stream::Map);
        self.fills_are_behind(ftl) || behind
    }

    fn fills_are_behind(&self, ftl: &Ftl) -> bool {
        let listed = self.role.fills_in_flight() as usize * PENDING_UPDATES_PER_FILL;
        let geometry = ftl.geometry();
        let written = WRITEBACKS_WAITING * (geometry.unit_slots * geometry.dies) as usize;
        let limit = listed.min(written);
        // Pages that reads wait for are not counted: behind a thousand reads that miss the map no data would be written.
        self.role.fills_for_updates() > limit
    }

    fn writebacks_are_behind(&self, ftl: &Ftl) -> bool {
        self.role.writebacks() > WRITEBACKS_WAITING * ftl.geometry().unit_slots as usize
    }

    /// Changed pages that start a program operation once so many have left the cache: those that fill one, or, beside a small
    /// cache, one more than a quarter of it. They answer look-ups while they wait, and would be a second cache.
    fn writebacks_due(&self, ftl: &Ftl) -> usize {
        let unit_slots = ftl.geometry().unit_slots;
        match self.role.waiting_max() {
            // Without a cache the operation's own buffer is all there is.
            None => unit_slots as usize,
            Some(most) => unit_slots.min(most + 1) as usize,
        }
    }

    /// Whether anything may have to be read or written: mostly it is asked in vain.
    #[inline]
    pub(super) fn has_work(&self) -> bool {
        let role = &self.role;
        role.may_fill() || role.next_background().is_some() || role.writebacks() > 0 || self.drains
    }

    /// Starts the reads of pages that are waited for, as many as can start now. Returns one that needs no
    /// read: it was trimmed while it waited, and [`Map::filled`] is to follow.
    pub(super) fn start_fills(
        &mut self,
        board: &mut Board<impl Tracer>,
        ftl: &mut Ftl,
    ) -> Option<u32> {
        let most = self.role.fills_in_flight();
        while self.role.may_fill()
            && self.sent.has_room(&mut board.engine, most)
            && let Some((fill, page, is_awaited)) = self.role.next_fill()
        {
            self.reads.enter(board.engine.now());
            let Some(ppn) = ftl.locate_translation(page) else {
                return Some(fill);
            };
            let place = ftl.place(ppn);
            let mask = 1 << place.slot;
            let class = match is_awaited {
                true => Class::MapRead,
                false => Class::UpdateRead,
            };
            let op = FlashOp::read(class, Cause::Map, fill, &place, mask);
            let op = board.read_flash(ftl, op);
            if !is_awaited {
                self.role.is_read_for_updates(fill, op);
            }
        }
        None
    }

    /// Reads on for units of which only one page was asked for.
    pub(super) fn start_background_fills(&mut self, board: &mut Board<impl Tracer>, ftl: &mut Ftl) {
        // What one has brought is sent while the next is read: with no more room than for those read at once, a link that keeps up with flash
        // would have it wait.
        let most = self.role.background_reads() + 1;
        while let Some((first, end)) = self.role.next_background() {
            let is_sent = self.role.next_background_is_sent();
            if is_sent && !self.sent_for_units.has_room(&mut board.engine, most) {
                self.role.hold_sent_units(true);
                continue;
            }
            let Some(ppn) = ftl.locate_translation(first) else {
                self.role.background_absent();
                continue;
            };
            let place = ftl.place(ppn);
            let room = (ftl.geometry().group_slots - place.slot).min(end - first.0);
            // As many pages as lie side by side in the same group come with one read.
            let is_next = |pages: u32| {
                let page = TranslationPage(first.0 + pages);
                ftl.locate_translation(page) == Some(Ppn(ppn.0 + pages))
            };
            let mut pages = 1;
            while pages < room && is_next(pages) {
                pages += 1;
            }
            let mask = slot_mask(place.slot, pages);
            let filling = self.role.background_issued(pages);
            board.counters.map.background_fills += u64::from(pages);
            let op = FlashOp::read(Class::Background, Cause::Map, filling.0, &place, mask);
            board.read_flash(ftl, op);
        }
    }

    /// Writes changed translation pages that have left the cache, and with them others where they do not fill an operation.
    pub(super) fn start_writebacks<C: Contents>(
        &mut self,
        board: &mut Board<impl Tracer>,
        ftl: &mut Ftl,
        programs: &mut Programs,
        contents: &mut C,
    ) {
        self.move_units(board);
        loop {
            let waiting = self.role.writebacks();
            self.drains &= waiting > 0;
            if waiting == 0 || (!self.drains && waiting < self.writebacks_due(ftl)) {
                return;
            }
            if self.programs >= WRITEBACKS_PER_DIE * ftl.geometry().dies {
                return;
            }
            let Some(unit) = wear::allocate(ftl, &mut board.array, Stream::Map, false) else {
                return;
            };
            self.role.stage_more(unit.slots as usize);
            self.move_units(board);
            let mut filled = 0;
            while filled < unit.slots {
                let Some(page) = self.role.pop_writeback() else {
                    break;
                };
                let ppn = Ppn(unit.ppn.0 + filled);
                ftl.bind_translation(page, ppn, unit.sequence);
                if C::FOLLOWS_MAP {
                    let mut entries: MapEntries = [NONE; ENTRIES_PER_TRANSLATION_PAGE as usize];
                    ftl.entries_of(page, &mut entries);
                    contents.write_map_page(ppn, &entries);
                }
                filled += 1;
            }
            board.counters.map.dirty_writebacks += u64::from(filled);
            let saves_hmb = self.drains;
            let program = Program::new(&unit, Carries::MapPages { saves_hmb });
            self.programs += 1;
            self.saving_programs += u32::from(saves_hmb);
            // What comes from host memory is programmed when it is here.
            let fetched = Fetched {
                unit,
                program,
                filled,
            };
            programs.start_at(board, ftl, fetched, self.read_back_ps);
        }
    }

    /// A program operation of changed pages has ended.
    pub(super) fn on_written_back(&mut self, saves_hmb: bool) {
        self.programs -= 1;
        self.saving_programs -= u32::from(saves_hmb);
    }

    /// A translation page that was waited for has arrived. Returns who waited for it, a list that is to be
    /// given back.
    pub(super) fn filled<C: Contents, M: HostMemory>(
        &mut self,
        board: &mut Board<impl Tracer>,
        ftl: &Ftl,
        (contents, memory): (&mut C, &mut Lent<M>),
        fill: u32,
    ) -> (TranslationPage, Vec<Waiter>) {
        self.reads.leave(board.engine.now());
        if C::FOLLOWS_MAP {
            self.follow_page(ftl, contents, self.role.page_of(fill));
        }
        if self.role.compresses() {
            self.measure_page(ftl, self.role.page_of(fill));
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        let page = self.role.filled(fill, &mut waiting);
        self.move_units(board);
        if self.hmb_bytes > 0 && self.role.spreads_to_host() {
            let bytes = self.whole_page_bytes(page);
            board.counters.hmb_written_bytes += bytes;
            let now = board.engine.now();
            let arrival_ps = board.link.write(now, bytes);
            self.sent.add(now, 1, arrival_ps);
        }
        if M::KEEPS_BYTES {
            // Repaired, where it stood there and failed its check.
            self.write_page_in_hmb(ftl, memory, page);
        }
        (page, waiting)
    }

    /// The list that [`Map::filled`] has handed out, emptied.
    pub(super) fn give_back(&mut self, waiting: Vec<Waiter>) {
        self.waiting = waiting;
    }

    /// What a translation page says in flash is what the drive knows, or it knows what is newer.
    fn follow_page(&self, ftl: &Ftl, contents: &mut impl Contents, page: TranslationPage) {
        let Some(ppn) = ftl.locate_translation(page) else {
            return;
        };
        if self.role.is_newer_than_flash(page) {
            return;
        }
        let mut entries: MapEntries = [NONE; ENTRIES_PER_TRANSLATION_PAGE as usize];
        ftl.entries_of(page, &mut entries);
        let mut initial: MapEntries = [NONE; ENTRIES_PER_TRANSLATION_PAGE as usize];
        let first = page.0 * ENTRIES_PER_TRANSLATION_PAGE as u32;
        for (lpn, entry) in (first..ftl.user_slots()).zip(&mut initial) {
            *entry = ftl.initial(Lpn(lpn)).map_or(NONE, |ppn| ppn.0);
        }
        contents.read_map_page(ppn, &entries, &initial);
    }

    /// Pages of a unit have been read in the background.
    pub(super) fn background_filled(&mut self, board: &mut Board<impl Tracer>, op: &FlashOp) {
        if self.role.background_done(FillingId(op.owner)).is_granted() {
            let bytes = u64::from(op.mask.count_ones()) * self.costs.page_bytes;
            board.counters.hmb_written_bytes += bytes;
            let now = board.engine.now();
            let arrival_ps = board.link.write(now, bytes);
            self.sent_for_units.add(now, 1, arrival_ps);
        }
    }

    /// Some have arrived in host memory.
    pub(super) fn on_sent(&mut self, now: Now) {
        self.sent.on_sent(now);
        if self.sent_for_units.on_sent(now) {
            self.role.hold_sent_units(false);
        }
    }

    // Saving all of it.

    /// Pages that the last recovery has found to be old are to be written again.
    pub(super) fn recover(&mut self, pages: impl Iterator<Item = TranslationPage>) {
        for page in pages {
            self.role.recover(page);
        }
        self.drains = self.role.writebacks() > 0;
    }

    /// Host memory is taken back: what changed there is to be in flash.
    pub(super) fn drain(&mut self) {
        self.drains = true;
    }

    /// Whether what stood in host memory that was taken back is still being saved.
    pub(super) fn is_draining(&self) -> bool {
        self.drains || self.saving_programs > 0
    }

    /// All that has changed is to be in flash.
    pub(super) fn save(&mut self) {
        self.role.stage_all();
        self.drains |= self.role.writebacks() > 0;
    }

    /// Whether nothing waits to be read or written.
    pub(super) fn is_saved(&self) -> bool {
        self.role.fills() == 0 && self.role.writebacks() == 0
    }

    // To look at.

    /// Host memory that the drive can use, bytes.
    pub(super) fn hmb_bytes(&self) -> u64 {
        self.hmb_bytes
    }

    /// Which pages stand in which memory.
    pub(super) fn role(&self) -> &MapRole {
        &self.role
    }

    /// Units that gave way, by memory.
    pub(super) fn evictions(&mut self) -> &mut [u64; crate::observe::TIERS_MAX] {
        &mut self.role.evictions
    }

    /// Time in which pages were read for those who wait, each for itself, picoseconds.
    pub(super) fn reads_busy_ps(&self, now: Now) -> u64 {
        self.reads.busy_ps(now)
    }
}
