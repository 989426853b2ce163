//! What the drive does without being asked: cleaning, folding, wear levelling, erasing, giving host
//! memory back.

use super::write::Program;
use super::{Contents, Device, HostMemory};
use crate::engine::{EventKind, INDEX_MAX};
use crate::ftl::{Move, State, Stream, TRANSLATION};
use crate::ids::{DieId, Lpn, Ppn, Superblock, TranslationPage};
use crate::nand::{Cause, Class, FlashOp};
use crate::spec::GcPolicy;

/// State of the work nobody asked for.
#[derive(Debug, Default)]
pub(super) struct Background {
    /// Ordinary superblocks being emptied or erased: free before long.
    emptying: u32,
    /// Superblocks of the single-bit cache likewise.
    folding_blocks: u32,
    /// Superblocks being erased.
    erasing: u32,
    /// Programs of relocated data under way.
    move_programs: u32,
    /// Write translation pages back even if they do not fill a program operation: host memory was
    /// taken back.
    pub drain_map: bool,
    /// Programs under way, of translation pages, that save what stood in that memory.
    pub saving_programs: u32,
    /// Emptyings of a buffer in that memory that are not done.
    pub saving_buffers: u32,
    /// The single-bit cache is being folded because the host is idle.
    folding: bool,
    /// Number of the current idle period.
    idle_period: u32,
    /// The last victim was chosen for wear: the next is not.
    wear_turn_taken: bool,
    batch: Vec<Move>,
    /// Recovery cleans: no new data before the reserve is back.
    pub reclaiming: bool,
    /// Superblocks that the moves of each program operation were taken from.
    sources: Vec<Vec<Superblock>>,
}

impl<C: Contents, M: HostMemory> Device<C, M> {
    /// Starts whatever can start now.
    pub(super) fn pump(&mut self) {
        self.serve_buffer_queue();
        self.pump_map();
        self.pump_cleaning();
        if self.buffer.log_wanted() {
            self.pump_log();
        }
        self.pump_writes();
        // Writing may have used up space, and cleaning may make more.
        self.pump_cleaning();
    }

    fn window(&self) -> u32 {
        // Enough reads to keep every die busy once.
        self.ftl.geometry().dies
    }

    /// Whether new data may be programmed, as far as free space goes.
    pub(super) fn may_write(&self, stream: Stream) -> bool {
        if self.map_is_behind() || self.background.reclaiming {
            return false;
        }
        stream == Stream::Slc
            || self.ftl.blocks.free_count(false) > self.spec.ftl.gc_start_superblocks
            || self.cleaner.credit > 0
            || !self.is_cleaning()
    }

    fn is_cleaning(&self) -> bool {
        self.cleaner.current.is_some()
            || self.background.emptying + self.background.folding_blocks > 0
    }

    pub(super) fn spend_credit(&mut self, stream: Stream, slots: u32) {
        if stream != Stream::Slc {
            self.cleaner.credit -= i64::from(slots);
        }
    }

    /// Reads from victims, and programs what was read.
    fn pump_cleaning(&mut self) {
        loop {
            self.program_moves(false);
            if self.cleaner.current.is_none() && !self.start_cleaning() {
                return;
            }
            let staged_max = (self.window() * self.ftl.geometry().unit_slots) as usize;
            while self.cleaner.reads < self.window()
                && self.cleaner.staged.len() < staged_max
                && self.cleaner.staged_pages.len() < staged_max
            {
                let Some((group, mask, cause)) = self.cleaner.next_group(&self.ftl) else {
                    let done = self
                        .cleaner
                        .current
                        .take()
                        .expect("a victim was being read");
                    self.try_erase(done.victim);
                    break;
                };
                self.cleaner.reads += 1;
                let place = self.ftl.place(group);
                self.read_flash(FlashOp::read(Class::Background, cause, 0, &place, mask));
            }
            if self.cleaner.current.is_some() {
                return;
            }
        }
    }

    /// Chooses the next victim, if there is need.
    fn start_cleaning(&mut self) -> bool {
        let ftl = &self.spec.ftl;
        let free = self.ftl.blocks.free_count(false);
        let soon = free + self.background.emptying;
        // New data waits, and so does cleaning: for more moves to fill up a program operation.
        let stuck = free <= ftl.gc_start_superblocks
            && (self.cleaner.credit <= 0 || free <= ftl.gc_reserve_superblocks)
            && self.cleaner.reads == 0
            && self.background.move_programs == 0
            && self.background.erasing == 0
            && self.held_erases.is_empty();
        if soon <= ftl.gc_start_superblocks || stuck {
            let worn = self.ftl.blocks.worn_unevenly(ftl.wear_static_threshold);
            if let Some(victim) = worn
                && !self.background.wear_turn_taken
            {
                self.background.wear_turn_taken = true;
                return self.clean(victim, Cause::Wear);
            }
            self.background.wear_turn_taken = false;
            let usable = self.ftl.geometry().usable_slots(false);
            // Recovery wants room soon, whatever is best in the long run. So does a drive down to its
            // reserve: with small caches each page moved has a page of the map written, and a victim that
            // is not the emptiest may take more room than it gives.
            let is_in_need = self.background.reclaiming || soon <= ftl.gc_reserve_superblocks;
            let policy = match is_in_need {
                true => GcPolicy::Greedy,
                false => ftl.gc_policy,
            };
            if let Some(victim) = self.ftl.blocks.choose_victim(policy, false)
                && self.ftl.blocks[victim].valid < usable
            {
                return self.clean(victim, Cause::Gc);
            }
        }
        if stuck && !self.cleaner.staged.is_empty() {
            self.program_moves(true);
        }
        self.start_folding()
    }

    /// Empties a superblock of the single-bit cache when it is full, or in idle time.
    fn start_folding(&mut self) -> bool {
        let ftl = &self.spec.ftl;
        if ftl.slc_superblocks == 0 {
            return false;
        }
        let wanted = self.background.folding || self.ftl.blocks.free_count(true) == 0;
        let room = self.ftl.blocks.free_count(false) > ftl.gc_start_superblocks;
        if !wanted || !room || self.background.folding_blocks > 1 {
            return false;
        }
        match self.ftl.blocks.choose_victim(GcPolicy::Fifo, true) {
            Some(victim) => self.clean(victim, Cause::Fold),
            None => false,
        }
    }

    fn clean(&mut self, victim: Superblock, cause: Cause) -> bool {
        *self.emptying(victim) += 1;
        self.cleaner.start(&mut self.ftl, victim, cause);
        true
    }

    /// How many superblocks of the victim's mode are being emptied.
    fn emptying(&mut self, superblock: Superblock) -> &mut u32 {
        if self.ftl.blocks[superblock].slc {
            &mut self.background.folding_blocks
        } else {
            &mut self.background.emptying
        }
    }

    /// A group of a victim has been read.
    pub(super) fn on_victim_read(&mut self, op: &FlashOp) {
        self.cleaner.reads -= 1;
        self.cleaner.stage(&mut self.ftl, op.ppn, op.mask, op.cause);
        self.pump();
    }

    /// Programs staged moves by full units (or what there is, when `partial`).
    fn program_moves(&mut self, partial: bool) {
        let unit_slots = self.ftl.geometry().unit_slots as usize;
        while self.cleaner.staged.len() >= unit_slots
            || (partial && !self.cleaner.staged.is_empty())
        {
            if !self.program_one_unit(false, partial) {
                break;
            }
        }
        while self.cleaner.staged_pages.len() >= unit_slots
            || ((partial || self.cleaner.current.is_none())
                && !self.cleaner.staged_pages.is_empty())
        {
            if !self.program_one_unit(true, true) {
                break;
            }
        }
    }

    /// Fills one unit with staged moves that are still current. Returns false when there are not
    /// enough of them, or no room.
    fn program_one_unit(&mut self, pages: bool, partial: bool) -> bool {
        let unit_slots = self.ftl.geometry().unit_slots as usize;
        let mut batch = std::mem::take(&mut self.background.batch);
        self.collect_moves(pages, unit_slots, &mut batch);
        let stream = match (pages, self.spec.ftl.gc_own_stream) {
            (true, _) => Stream::Map,
            (false, true) => Stream::Gc,
            (false, false) => Stream::Host,
        };
        let enough = !batch.is_empty() && (batch.len() == unit_slots || partial);
        let unit = if enough {
            self.ftl.allocate(stream, true)
        } else {
            None
        };
        let Some(unit) = unit else {
            let staged = self.staged(pages);
            for m in batch.drain(..).rev() {
                staged.push_front(m);
            }
            self.background.batch = batch;
            return false;
        };
        let cause = batch[0].cause;
        let filled = batch.len() as u32;
        for (offset, m) in batch.iter().enumerate() {
            self.relocate(m, Ppn(unit.ppn.0 + offset as u32));
        }
        self.measure_changed_pages();
        let mut program = Program::new(&unit);
        program.is_move = true;
        self.background.move_programs += 1;
        let program = self.program_flash(unit, program, cause, filled) as usize;
        if self.background.sources.len() <= program {
            self.background.sources.resize_with(program + 1, Vec::new);
        }
        let geometry = self.ftl.geometry();
        let sources = batch.drain(..).map(|m| geometry.superblock(m.from));
        self.background.sources[program].extend(sources);
        self.background.batch = batch;
        true
    }

    fn staged(&mut self, pages: bool) -> &mut std::collections::VecDeque<Move> {
        if pages {
            &mut self.cleaner.staged_pages
        } else {
            &mut self.cleaner.staged
        }
    }

    /// Takes up to `count` current moves from the staged ones; drops those overwritten meanwhile.
    fn collect_moves(&mut self, pages: bool, count: usize, batch: &mut Vec<Move>) {
        while batch.len() < count {
            let Some(m) = self.staged(pages).pop_front() else {
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
        self.contents.relocate(m.from, to);
        if Self::PAGES_IN_HOST && self.lost.any() {
            self.lost.relocate(m.from, to);
        }
        if m.owner & TRANSLATION != 0 {
            let page = TranslationPage(m.owner & !TRANSLATION);
            self.ftl.bind_translation(page, to, m.sequence);
        } else {
            self.ftl.bind(Lpn(m.owner), to, m.sequence);
            self.entry_changes(Lpn(m.owner));
            self.update_map(Lpn(m.owner));
        }
    }

    /// Relocated data is at its new place: its old one may be erased.
    pub(super) fn on_moves_programmed(&mut self, index: u32, program: &Program) {
        if program.saves_hmb {
            self.background.saving_programs -= 1;
        }
        if !program.is_move {
            return;
        }
        self.background.move_programs -= 1;
        let mut sources = std::mem::take(&mut self.background.sources[index as usize]);
        for victim in sources.drain(..) {
            self.ftl.blocks[victim].moves -= 1;
            self.try_erase(victim);
        }
        self.background.sources[index as usize] = sources;
    }

    /// Erases a victim once nothing of it is needed any more.
    pub(super) fn try_erase(&mut self, superblock: Superblock) {
        let block = &self.ftl.blocks[superblock];
        let is_current = self
            .cleaner
            .current
            .is_some_and(|cleaning| cleaning.victim == superblock);
        if block.state != State::Cleaning
            || is_current
            || block.reads > 0
            || block.moves > 0
            || block.programs > 0
        {
            return;
        }
        assert_eq!(
            block.valid, 0,
            "a superblock with current data must not be erased"
        );
        if self.holds_erase(superblock) {
            return;
        }
        let dies = self.ftl.geometry().dies;
        let place = self.ftl.place(self.ftl.geometry().first_ppn(superblock));
        let slc = self.ftl.blocks[superblock].slc;
        let block = &mut self.ftl.blocks[superblock];
        block.state = State::Erasing;
        self.background.erasing += 1;
        block.erasing = dies;
        for die in 0..dies {
            self.counters.erases += 1;
            let op = FlashOp::erase(superblock.0, DieId(die), &place);
            self.array.enqueue(&mut self.engine, op, slc);
        }
    }

    /// An erase was interrupted by a power cut.
    pub(super) fn erase_again(&mut self, superblock: Superblock) {
        *self.emptying(superblock) += 1;
        self.try_erase(superblock);
    }

    pub(super) fn on_erased(&mut self, superblock: Superblock) {
        let block = &mut self.ftl.blocks[superblock];
        block.erasing -= 1;
        if block.erasing > 0 {
            return;
        }
        let geometry = self.ftl.geometry();
        self.contents
            .erase(geometry.first_ppn(superblock), geometry.superblock_slots);
        if Self::PAGES_IN_HOST && self.lost.any() {
            let first = geometry.first_ppn(superblock);
            self.lost.erase(first, geometry.superblock_slots);
        }
        self.ftl.blocks.erased(superblock);
        self.background.erasing -= 1;
        *self.emptying(superblock) -= 1;
        if self.ftl.blocks.free_count(false) > self.spec.ftl.gc_start_superblocks {
            self.cleaner.credit = 0;
        }
        self.pump();
    }

    /// The host has just been served: an idle period may begin.
    pub(super) fn note_activity(&mut self) {
        let ftl = &self.spec.ftl;
        if ftl.slc_superblocks == 0 || ftl.slc_idle_ps == 0 {
            return;
        }
        self.background.folding = false;
        self.background.idle_period = (self.background.idle_period + 1) & INDEX_MAX;
        if self.commands.is_empty() {
            let at_ps = self.engine.now().ps() + ftl.slc_idle_ps;
            let period = self.background.idle_period;
            self.engine.schedule(at_ps, EventKind::Idle, period);
        }
    }

    pub(super) fn on_idle(&mut self, period: u32) {
        if period == self.background.idle_period && self.commands.is_empty() {
            self.background.folding = true;
            self.pump();
        }
    }

    /// What the background work is waiting for, for a message about a drive that has stopped.
    #[must_use]
    pub fn debug_state(&self) -> String {
        format!(
            "{:?}; victim {:?}, {} moves staged, {} reads, credit {}; free superblocks {} (+{} \
             single-bit); {} map pages awaited, {} to be written; {} buffer slots in use",
            self.background,
            self.cleaner.current,
            self.cleaner.staged.len() + self.cleaner.staged_pages.len(),
            self.cleaner.reads,
            self.cleaner.credit,
            self.ftl.blocks.free_count(false),
            self.ftl.blocks.free_count(true),
            self.map.fills(),
            self.map.writebacks(),
            self.buffer.used(),
        )
    }

    /// The host gives `granted_bytes` of memory, or takes it back (0). Returns at once; while
    /// [`Device::hmb_is_settling`] the drive still saves what stood there, and a host must wait
    /// before it reuses the memory.
    pub fn set_hmb(&mut self, granted_bytes: u64) {
        let usable = self
            .spec
            .tiers
            .hmb
            .as_ref()
            .map_or(0, |hmb| hmb.usable_bytes(granted_bytes));
        self.background.drain_map = true;
        if self.buffer_tier == crate::spec::Tier::Hmb {
            self.give_up_buffer();
        }
        self.place_roles(usable);
        self.pump();
    }

    /// Whether the drive still saves what stood in host memory that was taken back.
    #[must_use]
    pub fn hmb_is_settling(&self) -> bool {
        let background = &self.background;
        background.drain_map
            || background.saving_programs + background.saving_buffers + self.incoming.stale > 0
    }
}
