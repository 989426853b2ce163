//! What the drive does without being asked, beside garbage collection: reading the rest of partly written pages, deciding that
//! the host is idle, giving memory to roles, and host memory back.

use super::board::Board;
use super::erases::Erases;
use super::map::translation_page;
use super::{Contents, Device, HostMemory, Lent, wear};
use crate::controller::{Change, Lookup, ReadCache, Rest, Waiter, WriteBuffer};
use crate::engine::{EventKind, INDEX_MAX};
use crate::ftl::{Collector, Ftl, Move, Mover, Owned, Pacer, Stream, Sustained, WHOLE};
use crate::ids::{BufferSlot, Lpn, ProgramId, Superblock};
use crate::nand::{Cause, CellMode, Class, FlashOp};
use crate::observe::Tracer;
use crate::spec::{DriveSpec, Tier};
use serde::{Deserialize, Serialize};

/// Reads of the rest of partly written pages that may be under way for each die: enough that hardly one has none to do.
const RESTS_PER_DIE: u32 = 4;
/// Program operations for each die that such pages are read ahead for: one runs, and the next is filled.
const UNITS_AHEAD: u32 = 2;

/// So many victims make the mean of how long they were closed.
const VICTIMS_OF_LATE: u64 = 16;
/// What lies still has been closed for so many times as long as they. Of data that is written over and over in the same order nothing
/// is ever twice as old as what is collected.
const STILL: u64 = 2;

/// State of the work nobody asked for.
#[derive(Clone, Serialize, Deserialize, Debug, Default)]
pub(super) struct Background {
    /// Who empties superblocks, one for each [`crate::ftl::Mover`].
    pub collectors: [Collector; crate::ftl::MOVERS],
    /// Whose turn it is between new data and moved data.
    pub pacer: Pacer,
    /// What it can have in the long run.
    pub sustained: Sustained,
    /// Order of the last program when no victim would have given anything; looking again before
    /// something has changed is of no use.
    pub nothing_to_gain_at: Option<u32>,
    /// The single-bit cache is being folded because the host is idle.
    pub folding: bool,
    /// Number of the current idle period.
    idle_period: u32,
    /// The last victim was chosen for wear: the next is not.
    pub wear_turn_taken: bool,
    /// For how long victims of garbage collection have been closed of late, in superblocks that were: a mean of [`VICTIMS_OF_LATE`], times as many.
    closed_for: Option<u64>,
    /// Moves of the program operation being put together; empty in between.
    pub batch: Vec<Move>,
    /// Recovery collects: no new data before the reserve is back.
    pub reclaiming: bool,
    /// Superblocks that the moves of each program operation were taken from.
    pub sources: Vec<Vec<Superblock>>,
    /// Bytes that the host had written when data first had to be moved to make room.
    pub first_moved_at_bytes: Option<u64>,
    /// Superblocks to be written anew.
    pub upkeep: wear::Upkeep,
    /// Order of the last program when nothing was being written or collected, or had to be.
    #[serde(skip)]
    rests_at: Option<u32>,
    /// Steps that may have given new data its turn: of garbage collection, and of one kind of new data for the other.
    #[serde(skip)]
    pub steps: u64,
}

impl Background {
    /// Nothing is being collected: waiting for it would be in vain.
    pub fn collects_nothing(&self, ftl: &Ftl) -> bool {
        let mut victims = ftl.blocks.victims().iter();
        self.collectors[Mover::Gc as usize].is_idle() && victims.all(|victim| victim.is_apart)
    }

    /// New data has been given room.
    pub fn take_turn(&mut self, ftl: &Ftl, stream: Stream, share: i64) {
        if stream == Stream::Slc {
            return;
        }
        let slots = ftl.geometry().unit_slots;
        self.sustained.take_turn(slots);
        if share < WHOLE {
            self.pacer.take_turn(slots, share);
        }
    }

    /// New data has what garbage collection gives, and no more.
    pub fn shares_room(&self, ftl: &Ftl) -> bool {
        ftl.new_data_share() < WHOLE && !self.collects_nothing(ftl)
    }

    /// A victim has been chosen.
    pub fn note_victim<T: Tracer>(&mut self, board: &mut Board<T>, ftl: &Ftl, mover: Mover) {
        let Some(read) = self.collectors[mover as usize].current else {
            return;
        };
        if read.cause == Cause::Gc {
            self.sustained.look(ftl);
            self.note_age(ftl, read.victim);
        }
        let valid = ftl.blocks[read.victim].valid;
        if valid > 0 && matches!(read.cause, Cause::Gc | Cause::Fold) {
            let written_bytes = board.counters.host_written_bytes;
            self.first_moved_at_bytes.get_or_insert(written_bytes);
        }
        if T::ON {
            let (cause, now_ps) = (read.cause.name(), board.engine.now().ps());
            let tracer = &mut board.engine.tracer;
            tracer.victim(read.victim, cause, valid, now_ps);
        }
    }

    /// Of data: the map's superblocks are collected younger.
    fn note_age(&mut self, ftl: &Ftl, victim: Superblock) {
        if !ftl.blocks[victim].is_map() {
            let of_this = ftl.blocks.closed_for(victim);
            let before = self.closed_for.unwrap_or(VICTIMS_OF_LATE * of_this);
            self.closed_for = Some(before - before / VICTIMS_OF_LATE + of_this);
        }
    }

    /// Whether a superblock has lain still for much longer than those that are collected: its data is expected to lie on. What is
    /// soon to be written anew is not worth being moved, and wears out the superblock that it is moved to.
    pub fn lies_still(&self, ftl: &Ftl, superblock: Superblock) -> bool {
        let closed_for = VICTIMS_OF_LATE * ftl.blocks.closed_for(superblock);
        self.closed_for
            .is_some_and(|others| closed_for >= STILL * others)
    }

    /// Whether superblocks of which nothing is current are erased, one at a time: a cache that takes of what holds nothing is
    /// as large again soon after a trim.
    pub fn erases_dead(&self, ftl: &Ftl, erases: &Erases) -> bool {
        self.folding && ftl.borrows() && ftl.erasing_slots() == 0 && erases.held() == 0
    }

    /// What of the single-bit cache that stands apart is to be emptied when it is full, or in idle time. What single-bit
    /// mode has borrowed is emptied as garbage is collected.
    pub fn next_to_fold(&self, ftl: &mut Ftl) -> Option<Superblock> {
        // More of the flash that holds nothing may still run in single-bit mode.
        if !self.folding && ftl.may_borrow() {
            return None;
        }
        ftl.blocks.next_to_fold(self.folding)
    }
}

/// Of the host memory granted, what the drive can use, bytes.
pub(super) fn usable_bytes(spec: &DriveSpec, granted_bytes: u64) -> u64 {
    let hmb = spec.tiers.hmb.as_ref();
    hmb.map_or(0, |hmb| hmb.usable_bytes(granted_bytes))
}

impl<C: Contents, M: HostMemory, T: Tracer> Device<C, M, T> {
    /// Starts whatever can start now.
    pub(super) fn dispatch(&mut self) {
        self.serve_buffer_queue();
        self.dispatch_merges();
        self.dispatch_map();
        if self.buffer.slots.log_wanted() {
            self.dispatch_log();
        }
        if self.rests() {
            return;
        }
        // New data first: its turn is no more than what garbage collection has made room for.
        let steps = self.background.steps;
        self.dispatch_writes();
        self.dispatch_gc();
        // Trims may wait for garbage collection that has come to its end just now, and nothing else happen any more.
        let has_another = self.background.steps != steps || self.trims.are_held();
        // The long way, which tests take, asks always, and finds nothing to do.
        if has_another || cfg!(debug_assertions) {
            let before = (self.ftl.sequence(), self.background.steps);
            self.dispatch_writes();
            let after = (self.ftl.sequence(), self.background.steps);
            assert!(has_another || before == after, "new data had another turn");
        }
        self.background.rests_at = self.comes_to_rest().then(|| self.ftl.sequence());
        // What is being programmed now leaves room for more.
        self.dispatch_merges();
    }

    /// Starts the reads of the rest of partly written pages that are to start now.
    #[inline]
    fn dispatch_merges(&mut self) {
        if self.buffer.slots.wants_rests() {
            self.start_merges();
            self.dispatch_map();
        }
    }

    fn start_merges(&mut self) {
        let geometry = self.ftl.geometry();
        let at_once = RESTS_PER_DIE * geometry.dies;
        let ahead = UNITS_AHEAD * geometry.dies * geometry.unit_slots(CellMode::Native);
        while let Some(slot) = self.buffer.slots.next_rest(at_once, ahead) {
            self.start_merge(slot);
        }
    }

    /// The rest of a partly written page is read: its map entry first, if need be.
    fn start_merge(&mut self, slot: BufferSlot) {
        if !self.buffer.slots.lacks(slot, u8::MAX) {
            self.buffer.slots.merged(slot, false);
            return;
        }
        let lpn = self.buffer.slots.lpn(slot);
        let page = translation_page(lpn);
        match self.map.look_up(&self.ftl, page) {
            Lookup::Tier(_) | Lookup::Waiting | Lookup::Unmapped
                if !(M::KEEPS_BYTES && self.rejects_entry(lpn)) =>
            {
                self.read_for_merge(slot);
            }
            Lookup::Tier(_) | Lookup::Waiting | Lookup::Unmapped | Lookup::Nowhere => {
                self.map.fill(&mut self.board, page, Waiter::Merge(slot));
                if self.buffer.slots.is_hurried(slot) {
                    self.map.hurry(&mut self.board, page);
                }
            }
        }
    }

    fn rejects_entry(&mut self, lpn: Lpn) -> bool {
        self.map
            .rejects_entry(&mut self.board, &self.ftl, &self.host_memory, lpn)
    }

    pub(super) fn read_for_merge(&mut self, slot: BufferSlot) {
        let lpn = self.buffer.slots.lpn(slot);
        // Trimmed, or moved, while the map entry was on its way: the map of now counts.
        let Some(ppn) = self.ftl.locate(lpn) else {
            self.buffer.slots.merged(slot, false);
            return;
        };
        let class = match self.buffer.slots.is_hurried(slot) {
            true => Class::HostRead,
            false => Class::UpdateRead,
        };
        let place = self.ftl.place(ppn);
        let read = FlashOp::read(class, Cause::Merge, slot.0, &place, 1 << place.slot);
        let op = self.board.read_flash(&mut self.ftl, read);
        self.buffer.slots.rest_is_read_by(slot, op);
    }

    /// A command waits for the rest of a partly written page: what is read for the write alone is as urgent from now on.
    pub(super) fn hurry_merge(&mut self, slot: BufferSlot) {
        let Some(rest) = self.buffer.slots.hurry_rest(slot) else {
            return;
        };
        let board = &mut self.board;
        match rest {
            Rest::Unread => self.start_merge(slot),
            Rest::Unlocated => {
                let page = translation_page(self.buffer.slots.lpn(slot));
                self.map.hurry(board, page);
            }
            Rest::Read(op) => board.array.promote(&mut board.engine, op, Class::HostRead),
        }
        self.dispatch_map();
    }

    /// Starts the reads and writes of translation pages that can start now.
    #[inline]
    pub(super) fn dispatch_map(&mut self) {
        if self.map.has_work() {
            self.dispatch_map_work();
        }
    }

    fn dispatch_map_work(&mut self) {
        while let Some(absent) = self.map.start_fills(&mut self.board, &mut self.ftl) {
            self.on_filled(absent);
        }
        let (board, ftl) = (&mut self.board, &mut self.ftl);
        self.map.start_background_fills(board, ftl);
        let programs = &mut self.programs;
        self.map
            .start_writebacks(board, ftl, programs, &mut self.contents);
    }

    /// Whether there is nothing to write and nothing to collect, as when that was last looked for: with
    /// reads alone it is asked again and again.
    #[inline]
    fn rests(&self) -> bool {
        let background = &self.background;
        background.rests_at == Some(self.ftl.sequence())
            && self.buffer.slots.dirty(false) + self.buffer.slots.dirty(true) == 0
            && !background.reclaiming
            && !background.folding
            && !background.upkeep.is_due()
    }

    /// Whether nothing can have to be written or collected before new data comes or something is
    /// programmed or trimmed.
    fn comes_to_rest(&self) -> bool {
        self.buffer.slots.dirty(false) + self.buffer.slots.dirty(true) == 0
            && self.ftl.blocks.victims().is_empty()
            && self.background.collectors.iter().all(Collector::is_idle)
            && !self.ftl.blocks.apart_is_full()
            && !self.room_is_short()
    }

    /// A program operation has failed. What it carried goes elsewhere; returns false where there is no room for it: then
    /// the drive has come to its end, and it stays where it is.
    #[cold]
    pub(super) fn rewrite(&mut self, index: ProgramId, cause: Cause) -> bool {
        let program = *self.programs.of(index);
        let mut current = Vec::new();
        let (contents, lost) = (&mut self.contents, &mut self.hmb_pages.lost);
        let dead = &mut self.dead;
        dead.erased(program.ppn, program.slots);
        let found = wear::relocate(&mut self.ftl, &mut self.board.array, &program, |moved| {
            contents.relocate(moved.owner, moved.from, moved.to);
            lost.relocate(moved.from, moved.to);
            match moved.owner {
                _ if !moved.is_current && C::HEARS_OF_DEAD => dead.add(moved.sequence, moved.to),
                Owned::Data(lpn) if moved.is_current => current.push(lpn),
                _ => {}
            }
        });
        let is_placed = found.is_some();
        if let Some((unit, filled)) = found {
            self.contents.tear(program.ppn, program.slots);
            self.ftl.programmed(program.ppn);
            let (board, ftl) = (&mut self.board, &self.ftl);
            for lpn in current {
                if let Some(hpb) = &mut self.hpb {
                    hpb.changes(lpn);
                }
                self.map
                    .update(board, ftl, &mut self.host_memory, (lpn, Change::Move));
            }
            self.map.measure_changed_pages(board, ftl);
            self.programs
                .again(board, ftl, unit, index, (cause, filled));
        } else {
            wear::end(&mut self.board.array, &mut self.ftl);
        }
        is_placed
    }

    /// The host has just been served: an idle period may begin.
    #[inline(always)]
    pub(super) fn note_activity(&mut self) {
        let ftl = &self.spec.ftl;
        if !ftl.has_slc() || ftl.slc_idle_ps == 0 {
            return;
        }
        self.background.folding = false;
        self.background.idle_period = (self.background.idle_period + 1) & INDEX_MAX;
        if self.commands.is_empty() {
            let at_ps = self.board.engine.now().ps() + ftl.slc_idle_ps;
            let period = self.background.idle_period;
            self.board.engine.schedule(at_ps, EventKind::Idle, period);
        }
    }

    /// The drive has come back: with nobody to serve it idles from now on.
    pub(super) fn go_on_alone(&mut self) {
        self.note_activity();
        self.dispatch();
    }

    pub(super) fn on_idle(&mut self, period: u32) {
        if period == self.background.idle_period && self.commands.is_empty() {
            self.background.folding = true;
            self.dispatch();
        }
    }

    /// What the background work is waiting for, for a message about a drive that has stopped.
    #[must_use]
    pub fn debug_state(&self) -> String {
        let movers: Vec<String> = self
            .background
            .collectors
            .iter()
            .map(|c| c.to_string())
            .collect();
        let victims: Vec<String> = self
            .ftl
            .blocks
            .victims()
            .iter()
            .map(|victim| {
                let block = &self.ftl.blocks[victim.superblock];
                format!(
                    "{} {:?} {}/{} valid",
                    victim.superblock.0, block.state, block.valid, victim.valid_at_start
                )
            })
            .collect();
        format!(
            "victims {victims:?}; movers {movers:?}; level {:.3}, {:?}, {} slots left for moves; free \
             superblocks {} (+{} single-bit); {} erases held; {} map pages awaited, {} to be written; {} \
             buffer slots in use, {} programs under way, room for host data {}, for the map {}",
            self.ftl.level() as f64 / crate::ftl::WHOLE as f64,
            self.background.pacer,
            self.ftl.gc_slots_left(),
            self.ftl.blocks.free_count(CellMode::Native),
            self.ftl.blocks.free_count(CellMode::Slc),
            self.erases.held(),
            self.map.role().fills(),
            self.map.role().writebacks(),
            self.buffer.slots.used(),
            self.programs.sequences().count(),
            self.ftl.has_room(crate::ftl::Stream::Host),
            self.ftl.has_room(crate::ftl::Stream::Map),
        )
    }

    /// The host gives `granted_bytes` of memory, or takes it back (0). Returns at once; while
    /// [`Device::hmb_is_being_saved`] the drive still saves what stood there, and a host must wait
    /// before it reuses the memory: [`super::News::HmbReturned`] says when it need not any more.
    pub fn set_hmb(&mut self, granted_bytes: u64) {
        let usable = usable_bytes(&self.spec, granted_bytes);
        self.map.drain();
        self.buffer.give_up_hmb(&mut self.board);
        self.place_roles(usable);
        self.dispatch();
        self.front.returning_hmb = true;
        self.front.attention = true;
        self.front.has_changed = true;
    }

    /// A write did not reach host memory: none of it can be trusted. What stands there is taken back as if the
    /// host had asked for it, as far as it can be read.
    #[cold]
    pub(super) fn give_up_host_memory(&mut self) {
        self.board.counters.hmb_given_up += 1;
        self.set_hmb(0);
    }

    /// The host gives `granted_bytes` of this memory in place of what it has given before, which it gets
    /// back. The drive does not touch that any more, but a host must not reuse it before
    /// [`super::News::HmbReturned`]: what was on its way there counts as under way until then.
    pub fn replace_hmb(&mut self, granted_bytes: u64, memory: M) -> M {
        self.set_hmb(0);
        let old = std::mem::replace(&mut self.host_memory, Lent::new(memory));
        if granted_bytes > 0 {
            self.set_hmb(granted_bytes);
        }
        old.memory
    }

    /// Gives each role its share of memory, given `usable` bytes of host memory. Host memory
    /// serves the data roles first: their sizes are fixed, the map takes what is left.
    pub(super) fn place_roles(&mut self, usable: u64) {
        if Self::PAGES_IN_HOST {
            let (data, around) = self.hmb_pages();
            data.rescue(around);
        }
        let mut left = usable;
        let roles = &self.spec.roles;
        let share = |tier: Tier, bytes: u64, left: &mut u64| {
            if !tier.is_granted() {
                return bytes;
            }
            let share = bytes.min(*left);
            *left -= share;
            share
        };
        let at_once = self.board.array.geometry().unit_slots * self.board.array.geometry().dies;
        let buffer = &roles.write_buffer;
        let mut buffer_bytes = share(buffer.tier, buffer.bytes, &mut left);
        // A part of a buffer that is no more than what the dies take at once would hold less than none does: it is left alone.
        if buffer_bytes < buffer.bytes && WriteBuffer::slots_of(buffer_bytes) <= at_once {
            buffer_bytes = 0;
        }
        let cache_base = usable - left;
        if let Some(cache) = &roles.read_cache {
            let bytes = share(cache.tier, cache.bytes, &mut left);
            // A cache in the drive's own memory keeps what it holds.
            if self.read_cache.is_none() || cache.tier.is_granted() {
                self.read_cache = Some(ReadCache::new(
                    cache,
                    self.spec.controller.read_ahead.as_ref(),
                    bytes,
                    self.power.seed,
                ));
            }
        }
        let buffer_pages = self.buffer.place(&self.spec, buffer_bytes, at_once);
        if Self::PAGES_IN_HOST {
            let cache = self.read_cache.as_ref();
            self.hmb_pages.lay_out(buffer_pages, cache_base, cache);
        }
        let (board, memory) = (&mut self.board, &mut self.host_memory);
        self.map.place(board, &self.ftl, memory, (left, usable));
    }

    /// Whether the drive still saves what stood in host memory that was taken back.
    #[must_use]
    pub fn hmb_is_being_saved(&self) -> bool {
        self.map.is_draining() || self.buffer.is_saving()
    }
}
