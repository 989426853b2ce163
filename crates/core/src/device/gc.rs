//! Garbage collection, static wear levelling and folding of the single-bit cache: superblocks are
//! emptied and erased. How fast, beside new data: `ftl/pacing.rs`.

use super::erases::{self, Erases};
use super::programs::{Carries, Program};
use super::{Contents, Device, HostMemory, wear};
use crate::controller::Change;
use crate::ftl::{Collector, Move, Mover, Owned, State, Stream, WHOLE};
use crate::ids::{Ppn, ProgramId, Superblock};
use crate::nand::{Cause, CellMode, Class, FlashOp};
use crate::observe::Tracer;
use crate::spec::{GcPolicy, MOVES_PROGRAMMED_PER_DIE, MOVES_STAGED_PER_DIE};
use std::collections::VecDeque;

/// Below this share of the program operations, new data waits so long for its turn that no victim may make it wait longer.
const SHARE_KEPT: i64 = WHOLE / 8;

impl<C: Contents, M: HostMemory, T: Tracer> Device<C, M, T> {
    fn collector(&mut self, mover: Mover) -> &mut Collector {
        &mut self.background.collectors[mover as usize]
    }

    /// New data's share of program operations, if it may be programmed, as far as room goes. Of data that has waited
    /// for much of the buffer to fill, all would go at once where nothing is being collected yet: that is asked for first.
    pub(super) fn may_write(&mut self, stream: Stream) -> Option<i64> {
        if self.map.is_behind(&self.ftl) || self.background.reclaiming {
            return None;
        }
        if stream == Stream::Slc {
            return Some(WHOLE);
        }
        let share = self.new_data_share();
        let slots = self.ftl.geometry().unit_slots;
        if share == WHOLE || self.background.pacer.has_turn(slots, share) {
            return Some(share);
        }
        if self.background.collects_nothing(&self.ftl) {
            self.dispatch_mover(Mover::Gc);
        }
        let is_idle = self.background.collects_nothing(&self.ftl);
        is_idle.then(|| self.new_data_share())
    }

    fn new_data_share(&self) -> i64 {
        let least = self.background.sustained.least_share();
        self.ftl.new_data_share().max(least)
    }

    /// Reads from victims, and programs what was read.
    pub(super) fn dispatch_gc(&mut self) {
        self.dispatch_mover(Mover::Map);
        self.dispatch_mover(Mover::Gc);
        if self.spec.ftl.has_slc() {
            self.dispatch_mover(Mover::Fold);
        }
    }

    fn dispatch_mover(&mut self, mover: Mover) {
        loop {
            if mover == Mover::Fold && self.room_is_short() {
                // What is folded takes room like new data, and can wait.
                return;
            }
            if self.background.collectors[mover as usize].has_staged() {
                self.program_moves(mover, false);
            }
            if self.background.collectors[mover as usize].current.is_none() {
                if !self.start_victim(mover) {
                    return;
                }
                self.background.steps += 1;
                let (board, ftl) = (&mut self.board, &self.ftl);
                self.background.note_victim(board, ftl, mover);
            }
            self.read_victim(mover);
            if self.background.collectors[mover as usize].current.is_some() {
                return;
            }
        }
    }

    /// Reads as much of the present victim as there is room for.
    fn read_victim(&mut self, mover: Mover) {
        let geometry = *self.ftl.geometry();
        let reads_max = geometry.dies * (geometry.unit_slots / geometry.group_slots);
        let staged_max = (MOVES_STAGED_PER_DIE * geometry.dies * geometry.unit_slots) as usize;
        loop {
            let collector = &mut self.background.collectors[mover as usize];
            let staged = collector.staged.len().max(collector.staged_pages.len());
            if collector.reads >= reads_max || staged >= staged_max {
                return;
            }
            let Some((group, mask, cause)) = collector.next_group(&self.ftl) else {
                let read = collector.current.take().expect("a victim was being read");
                self.background.steps += 1;
                self.try_erase(read.victim);
                return;
            };
            collector.reads += 1;
            let place = self.ftl.place(group);
            self.board.read_flash(
                &mut self.ftl,
                FlashOp::read(Class::GcRead, cause, mover as u32, &place, mask),
            );
        }
    }

    fn start_victim(&mut self, mover: Mover) -> bool {
        match mover {
            Mover::Gc => {
                let (board, ftl) = (&mut self.board, &mut self.ftl);
                let refreshes = wear::refresh(board, &mut self.background, ftl);
                refreshes || self.start_gc() || self.finish_moves()
            }
            Mover::Map => self.start_map_gc(),
            Mover::Fold => self.start_folding(),
        }
    }

    /// Whether room is short: for new data, for the map's pages, or for recovery.
    pub(super) fn room_is_short(&self) -> bool {
        self.background.reclaiming || self.ftl.room_is_short()
    }

    /// Chooses the next victim, if there is need.
    fn start_gc(&mut self) -> bool {
        let folds = self.background.folding && self.ftl.blocks.borrowed() > 0;
        if !self.room_is_short() && !folds && !self.background.erases_dead(&self.ftl, &self.erases)
        {
            return false;
        }
        let sequence = self.ftl.sequence();
        if self.background.nothing_to_gain_at == Some(sequence) {
            return false;
        }
        // Another victim, whatever it holds, only if those under way can be emptied, too, and if one
        // superblock stays: a power cut makes moves under way undone and closes what they went to, and
        // without a place to move anything to, nothing would ever be erased again.
        let slots = i64::from(self.ftl.geometry().superblock_slots);
        if !self.background.collects_nothing(&self.ftl) && self.ftl.gc_slots_left() < 2 * slots {
            return false;
        }
        if self.waits_for_map_victim() {
            self.background.wear_turn_taken = false;
            return false;
        }
        let Some((victim, cause)) = self.next_victim() else {
            if self.room_is_short() {
                self.background.nothing_to_gain_at = Some(sequence);
            }
            return false;
        };
        if cause == Cause::Wear || !self.ftl.blocks[victim].is_map() {
            let valid = self.ftl.blocks[victim].valid;
            let gain = self.ftl.geometry().superblock_slots - valid;
            let starts = cause == Cause::Wear || self.leaves_room_beside_map(valid, gain);
            if starts {
                self.background.collectors[Mover::Gc as usize].start(&mut self.ftl, victim, cause);
            }
            return starts;
        }
        // Moved translation pages have the map read nothing, and data beside them keeps it at work.
        if self.background.collectors[Mover::Map as usize]
            .current
            .is_some()
        {
            return false;
        }
        self.background.collectors[Mover::Map as usize].start(&mut self.ftl, victim, cause);
        self.background.steps += 1;
        self.background
            .note_victim(&mut self.board, &self.ftl, Mover::Map);
        self.read_victim(Mover::Map);
        self.start_gc()
    }

    /// What is to be emptied next, and what for; `None`: nothing would be gained.
    fn next_victim(&mut self) -> Option<(Superblock, Cause)> {
        let folded = |borrowed| (borrowed, Cause::Fold);
        if !(self.background.reclaiming || self.ftl.room_is_short()) {
            let borrowed = self.ftl.blocks.emptiest_borrowed(None);
            if borrowed.is_some() || !self.background.erases_dead(&self.ftl, &self.erases) {
                return borrowed.map(folded);
            }
            return self.ftl.blocks.dead().map(|dead| (dead, Cause::Gc));
        }
        if let Some(victim) = self.worn_victim() {
            self.background.wear_turn_taken = true;
            return Some((victim, Cause::Wear));
        }
        self.background.wear_turn_taken = false;
        let policy = self.gc_policy();
        let gives = |device: &mut Self, policy| {
            let victim = device.ftl.blocks.choose_victim(policy, CellMode::Native)?;
            let usable = device.ftl.geometry().usable_slots(CellMode::Native);
            (device.ftl.blocks[victim].valid < usable).then_some(victim)
        };
        let mut victim = gives(self, policy);
        if policy != GcPolicy::Greedy && !victim.is_some_and(|victim| self.keeps_pace(victim)) {
            victim = gives(self, GcPolicy::Greedy);
        }
        // Of what runs in single-bit mode, two bits in three are room whatever it holds.
        let borrowed = self.ftl.blocks.emptiest_borrowed(victim).map(folded);
        borrowed.or_else(|| Some((victim?, Cause::Gc)))
    }

    /// Whether room is needed soon, whatever is best in the long run: by recovery, or by a drive at the
    /// end of its room: with small caches each page moved has a page of the map written, and a victim
    /// that is not the emptiest may take more room than it gives.
    fn is_in_need(&self) -> bool {
        self.background.reclaiming || self.ftl.level() <= 0
    }

    /// Whether new data's share, which goes towards what a victim gives (`ftl/pacing.rs`), stays what it is where that is
    /// small. Age may choose several in a row that give hardly any; what chance chooses then, nobody knows.
    fn keeps_pace(&self, victim: Superblock) -> bool {
        let usable = i64::from(self.ftl.geometry().usable_slots(CellMode::Native));
        let gain = usable - i64::from(self.ftl.blocks[victim].valid);
        let level = self.ftl.level();
        let by_chance = matches!(self.spec.ftl.gc_policy, GcPolicy::DChoices(_));
        level >= SHARE_KEPT || (!by_chance && gain * WHOLE >= level * usable)
    }

    fn gc_policy(&self) -> GcPolicy {
        match self.is_in_need() {
            true => GcPolicy::Greedy,
            false => self.spec.ftl.gc_policy,
        }
    }

    /// The superblock that lies too still, every other time and while nothing else is urgent.
    fn worn_victim(&mut self) -> Option<Superblock> {
        // An erase of the run stands for so many of a life.
        let ageing = &self.spec.nand.ageing;
        let counts = ageing.as_ref().map_or(1, |ageing| ageing.acceleration);
        let threshold = self.spec.ftl.wear_static_threshold.div_ceil(counts);
        let worn = self.ftl.blocks.worn_unevenly(threshold)?;
        let in_turn = !self.background.wear_turn_taken && !self.is_in_need();
        (in_turn && self.background.lies_still(&self.ftl, worn)).then_some(worn)
    }

    /// Whether what the last look at all superblocks saw is enough to say that nothing can start beside
    /// the superblock of translation pages under way: another look would find the same.
    fn waits_for_map_victim(&mut self) -> bool {
        if self.background.collectors[Mover::Map as usize]
            .current
            .is_none()
            || self.gc_policy() != GcPolicy::Greedy
            || self.ftl.blocks.borrowed() > 0
        {
            return false;
        }
        let Some(emptiest) = self.ftl.blocks.emptiest() else {
            return false;
        };
        let slots = self.ftl.geometry().superblock_slots;
        let gain = slots.saturating_sub(emptiest.data_at_most);
        let waits = emptiest.is_map() || !self.leaves_room_beside_map(emptiest.data_at_least, gain);
        waits && self.worn_victim().is_none()
    }

    /// Whether data can be emptied beside a superblock of translation pages. Meanwhile the map writes about a page for
    /// each that is moved and new data may open a superblock, and both leave the reserve alone.
    /// It has so many slots in use, and gives as many as the rest.
    fn leaves_room_beside_map(&self, valid: u32, gain: u32) -> bool {
        let Some(beside) = self.background.collectors[Mover::Map as usize].current else {
            return true;
        };
        let slots = i64::from(self.ftl.geometry().superblock_slots);
        let opened = if self.ftl.left_for_new_data() < i64::from(gain) {
            slots
        } else {
            0
        };
        let reserve = i64::from(self.spec.ftl.gc_reserve_superblocks) * slots;
        let beside = i64::from(self.ftl.blocks[beside.victim].valid);
        let takes = i64::from(valid) + beside + opened;
        self.ftl.gc_slots_left() >= reserve + takes
    }

    /// Chooses a superblock of translation pages that is much emptier than the victim under way.
    fn start_map_gc(&mut self) -> bool {
        if !self.ftl.map_takes_few() {
            // Of many superblocks one after the other comes to be the emptiest of all.
            return false;
        }
        let Some(current) = self.background.collectors[Mover::Gc as usize].current else {
            return false;
        };
        let Some(emptiest) = self.ftl.blocks.emptiest_of_map() else {
            return false;
        };
        let victims = self.ftl.blocks.victims().iter();
        let mut under_way = victims.filter(|victim| victim.superblock == current.victim);
        let valid = self.ftl.blocks[emptiest].valid;
        if !under_way.any(|victim| valid < victim.valid_at_start / 2)
            || self.ftl.gc_slots_left() < i64::from(valid)
        {
            return false;
        }
        self.background.collectors[Mover::Map as usize].start(&mut self.ftl, emptiest, Cause::Gc);
        true
    }

    /// Nothing can be read any more and room is short, or the host is idle and the single-bit cache being folded: what has
    /// been read is programmed, even if it fills no program operation, so that its victims can be erased. Never starts a
    /// victim.
    fn finish_moves(&mut self) -> bool {
        let collector = &self.background.collectors[Mover::Gc as usize];
        let erases = self.ftl.erasing_slots() > 0 || self.erases.held() > 0;
        let wanted = self.room_is_short() || self.background.folding;
        if collector.waits_for_company() && !erases && wanted {
            self.program_moves(Mover::Gc, true);
        }
        false
    }

    /// Empties a superblock of the single-bit cache that stands apart.
    fn start_folding(&mut self) -> bool {
        let Some(victim) = self.background.next_to_fold(&mut self.ftl) else {
            self.finish_folding();
            return false;
        };
        let collector = &mut self.background.collectors[Mover::Fold as usize];
        collector.start(&mut self.ftl, victim, Cause::Fold);
        true
    }

    /// Nothing more is to be folded, and the cache is full or the host idle: as [`Self::finish_moves`]. Of a cache of one
    /// superblock nothing else would ever fill the last program operation.
    fn finish_folding(&mut self) {
        let collector = &self.background.collectors[Mover::Fold as usize];
        let wanted = self.background.folding || self.ftl.blocks.apart_is_full();
        if wanted && collector.waits_for_company() && !self.ftl.blocks.erases_apart() {
            self.program_moves(Mover::Fold, true);
        }
    }

    /// A group of a victim has been read.
    pub(super) fn on_victim_read(&mut self, op: &FlashOp) {
        let collector = &mut self.background.collectors[op.owner as usize];
        collector.reads -= 1;
        collector.stage(&mut self.ftl, op.ppn, op.mask, op.cause);
    }

    /// A read of a superblock has ended; what it brought of a victim is staged.
    pub(super) fn end_read(&mut self, op: &FlashOp) {
        let block = &mut self.ftl.blocks[op.superblock];
        block.reads -= 1;
        if block.reads == 0 && block.state == State::Collecting {
            self.try_erase(op.superblock);
        }
        if op.class == Class::GcRead || self.background.upkeep.is_due() {
            // Only now: if that was the last of the victim, its rest waits for no more.
            self.dispatch();
        }
    }

    /// Programs staged moves by full units (or what there is, when `partial`).
    fn program_moves(&mut self, mover: Mover, partial: bool) {
        let unit_slots = self.ftl.geometry().unit_slots as usize;
        for pages in [true, false] {
            loop {
                let staged = self.staged(mover, pages).len();
                let rest = staged > 0 && (partial || self.is_rest(mover, pages));
                if staged < unit_slots && !rest {
                    break;
                }
                // Of data, full units wait for full units; translation pages are too few for that.
                if !self.may_move(mover, pages)
                    || !self.program_one_unit(mover, pages, pages || rest)
                {
                    break;
                }
            }
        }
    }

    /// Whether what is staged is the rest of a victim, and the one being read has nothing to fill up
    /// its program operation with: data beside data, translation pages beside such. Left waiting, it
    /// would keep a whole superblock from its erase.
    fn is_rest(&self, mover: Mover, pages: bool) -> bool {
        let collector = &self.background.collectors[mover as usize];
        let staged = match pages {
            true => collector.staged_pages.front(),
            false => collector.staged.front(),
        };
        let Some(first) = staged else {
            return false;
        };
        let victim = self.ftl.geometry().superblock(first.from);
        let is_read = self.ftl.blocks[victim].reads == 0;
        match collector.current {
            None => pages && is_read,
            Some(current) => {
                let more = self.ftl.blocks[current.victim].is_map() == pages;
                current.victim != victim && is_read && !more
            }
        }
    }

    /// Whether the dies can take more moves, and so can the map, which has to follow where data goes.
    /// Nothing has to follow translation pages: the map that writes and reads them all the time must not
    /// keep those from being moved that give it room.
    fn may_move(&self, mover: Mover, pages: bool) -> bool {
        let programs_max = MOVES_PROGRAMMED_PER_DIE * self.ftl.geometry().dies;
        self.background.collectors[mover as usize].programs < programs_max
            && (pages || !self.map.delays_moves(&self.ftl) && !self.is_behind_with_moves(mover))
    }

    fn is_behind_with_moves(&self, mover: Mover) -> bool {
        let next = self.background.collectors[mover as usize].staged.front();
        let cause = next.map_or(Cause::Gc, |next| next.cause);
        let stream = self.ftl.moves_go_to(mover, cause);
        self.board.is_behind_with_moves(&self.ftl, stream)
    }

    /// Fills one unit with staged moves that are still current. Returns false when there are not
    /// enough of them, or no room.
    fn program_one_unit(&mut self, mover: Mover, pages: bool, partial: bool) -> bool {
        let unit_slots = self.ftl.geometry().unit_slots as usize;
        self.background.steps += 1;
        let mut batch = std::mem::take(&mut self.background.batch);
        self.collect_moves(mover, pages, unit_slots, &mut batch);
        // Where moves of several kinds meet, the first decides: one operation of each victim.
        let cause = batch.first().map_or(Cause::Gc, |first| first.cause);
        let stream = match pages {
            true => Stream::Map,
            false => self.ftl.moves_go_to(mover, cause),
        };
        let enough = !batch.is_empty() && (batch.len() == unit_slots || partial);
        let unit = if enough {
            // What is folded takes room like new data.
            let relocates = mover != Mover::Fold || self.ftl.shares_room(stream);
            wear::allocate(&mut self.ftl, &mut self.board.array, stream, relocates)
        } else {
            None
        };
        let Some(unit) = unit else {
            let staged = self.staged(mover, pages);
            for m in batch.drain(..).rev() {
                staged.push_front(m);
            }
            self.background.batch = batch;
            return false;
        };
        let filled = batch.len() as u32;
        let pages = batch.iter().filter_map(Move::page);
        self.ftl.touch(pages);
        for (offset, m) in batch.iter().enumerate() {
            self.relocate(m, Ppn(unit.ppn.0 + offset as u32));
        }
        self.map.measure_changed_pages(&mut self.board, &self.ftl);
        let program = Program::new(&unit, Carries::Moves(mover));
        self.collector(mover).programs += 1;
        if mover != Mover::Fold {
            let unit_slots = self.ftl.geometry().unit_slots;
            self.background.pacer.moved(filled, unit_slots);
        }
        let program = self
            .programs
            .start(&mut self.board, &self.ftl, unit, program, (cause, filled))
            .index();
        if self.background.sources.len() <= program {
            self.background.sources.resize_with(program + 1, Vec::new);
        }
        let geometry = self.ftl.geometry();
        let sources = batch.drain(..).map(|m| geometry.superblock(m.from));
        self.background.sources[program].extend(sources);
        self.background.batch = batch;
        true
    }

    fn staged(&mut self, mover: Mover, pages: bool) -> &mut VecDeque<Move> {
        match pages {
            true => &mut self.collector(mover).staged_pages,
            false => &mut self.collector(mover).staged,
        }
    }

    /// Takes up to `count` current moves from the staged ones; drops those overwritten meanwhile.
    fn collect_moves(&mut self, mover: Mover, pages: bool, count: usize, batch: &mut Vec<Move>) {
        while batch.len() < count {
            let Some(m) = self.staged(mover, pages).pop_front() else {
                break;
            };
            let victim = self.ftl.geometry().superblock(m.from);
            if !self.ftl.is_current(m.from) {
                self.ftl.blocks[victim].moves -= 1;
                self.try_erase(victim);
                continue;
            }
            batch.push(m);
        }
    }

    fn relocate(&mut self, m: &Move, to: Ppn) {
        if self.hmb_pages.lost.any() {
            self.hmb_pages.lost.relocate(m.from, to);
        }
        let Some(owner) = m.owner.get() else {
            unreachable!("what holds nothing is not moved")
        };
        self.contents.relocate(owner, m.from, to);
        // Both copies have one sequence number: recovery may take either, so that neither is of no use before the erase.
        match owner {
            Owned::Data(lpn) => {
                self.ftl.rebind(lpn, m.from, to, m.sequence);
                if let Some(hpb) = &mut self.hpb {
                    hpb.changes(lpn);
                }
                let (board, memory) = (&mut self.board, &mut self.host_memory);
                self.map
                    .update(board, &self.ftl, memory, (lpn, Change::Move));
            }
            Owned::Map(page) => self.ftl.bind_translation(page, to, m.sequence),
        }
    }

    /// Relocated data is at its new place: its old one may be erased.
    pub(super) fn on_moves_programmed(&mut self, index: ProgramId, mover: Mover) {
        self.collector(mover).programs -= 1;
        let mut sources = std::mem::take(&mut self.background.sources[index.index()]);
        for victim in sources.drain(..) {
            self.ftl.blocks[victim].moves -= 1;
            self.try_erase(victim);
        }
        self.background.sources[index.index()] = sources;
    }

    /// Erases, and what they have to do with.
    fn erases(&mut self) -> (&mut Erases, erases::Around<'_, T>) {
        let around = erases::Around {
            board: &mut self.board,
            ftl: &mut self.ftl,
            programs: &mut self.programs,
            trims: &mut self.trims,
            collectors: &self.background.collectors,
            reclaiming: self.background.reclaiming,
        };
        (&mut self.erases, around)
    }

    /// Erases a victim once nothing of it is needed any more.
    pub(super) fn try_erase(&mut self, superblock: Superblock) {
        let (erases, mut around) = self.erases();
        erases.begin(&mut around, superblock);
    }

    /// A superblock has been erased on a die.
    pub(super) fn on_erased(&mut self, op: &FlashOp) {
        // Whether it has failed counts when the last die is done.
        wear::has_failed(&mut self.board, op);
        let superblock = Superblock(op.owner);
        let block = &mut self.ftl.blocks[superblock];
        block.erasing -= 1;
        if block.erasing > 0 {
            return;
        }
        let engine = &mut self.board.engine;
        let now_ps = engine.now().ps();
        engine.tracer.erased(superblock, now_ps);
        let geometry = self.ftl.geometry();
        let (first, slots) = (geometry.first_ppn(superblock), geometry.superblock_slots);
        self.contents.erase(first, slots);
        if C::HEARS_OF_DEAD {
            self.dead.erased(first, slots);
        }
        if self.hmb_pages.lost.any() {
            self.hmb_pages.lost.erase(first, slots);
        }
        wear::free(&mut self.board, &mut self.ftl, superblock);
        let (erases, mut around) = self.erases();
        erases.ended(&mut around, superblock);
        self.dispatch();
    }

    /// An erase was interrupted by a power cut.
    pub(super) fn erase_again(&mut self, superblock: Superblock) {
        self.ftl.blocks.add_victim(superblock);
        self.try_erase(superblock);
    }

    /// A page of a superblock has got to flash: erases may have waited for it, and that of the superblock itself.
    #[inline]
    pub(super) fn erase_after_program(&mut self, superblock: Superblock) {
        let (erases, mut around) = self.erases();
        erases.retry(&mut around);
        erases.begin(&mut around, superblock);
    }

    /// Something has got to flash: erases may have waited for it.
    #[inline]
    pub(super) fn retry_held_erases(&mut self) {
        let (erases, mut around) = self.erases();
        erases.retry(&mut around);
    }
}
