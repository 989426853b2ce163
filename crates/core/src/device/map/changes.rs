//! Entries change: where their page stands, which memory takes the change, and what that moves over the link.

use super::super::board::Board;
use super::super::{HostMemory, Lent};
use super::{Costs, Map, translation_page};
use crate::controller::{Asker, Change, Lookup, TierMigrations};
use crate::ftl::Ftl;
use crate::ids::{Lpn, TranslationPage};
use crate::observe::Tracer;

impl Map {
    /// The entry of a logical page has changed.
    #[inline]
    pub(in crate::device) fn update<M: HostMemory>(
        &mut self,
        board: &mut Board<impl Tracer>,
        ftl: &Ftl,
        memory: &mut Lent<M>,
        (lpn, change): (Lpn, Change),
    ) {
        self.update_page(board, ftl, translation_page(lpn), change);
        if M::KEEPS_BYTES {
            self.update_entry_in_hmb(board, ftl, memory, lpn);
        }
    }

    /// Entries of a translation page have changed.
    #[inline(always)]
    fn update_page(
        &mut self,
        board: &mut Board<impl Tracer>,
        ftl: &Ftl,
        page: TranslationPage,
        change: Change,
    ) {
        self.note_changed_page(page);
        match self.role.update(page) {
            Lookup::Tier(place) if self.role.tier(place).is_granted() && self.hmb_bytes > 0 => {
                self.update_page_in_hmb(board, place, page);
            }
            Lookup::Tier(_) | Lookup::Waiting => {}
            Lookup::Unmapped | Lookup::Nowhere => self.update_absent_page(ftl, page, change),
        }
    }

    fn update_page_in_hmb(
        &mut self,
        board: &mut Board<impl Tracer>,
        place: usize,
        page: TranslationPage,
    ) {
        self.move_units(board);
        // A page that is compressed there is written as a whole, once for a batch.
        let held = self.role.compressed_page(place, page);
        if !held.is_some_and(|(_, compressed)| compressed) {
            self.update_hmb_line(board);
        }
    }

    fn update_absent_page(&mut self, ftl: &Ftl, page: TranslationPage, change: Change) {
        if ftl.locate_translation(page).is_some() {
            self.role.fill(page, Asker::Change(change));
            return;
        }
        if self.role.compresses() {
            self.measure_page(ftl, page);
        }
        self.role.create(page);
    }

    /// Entries of a page have been trimmed: `whole`, all it has; `changed`, some had data.
    pub(in crate::device) fn trim<M: HostMemory>(
        &mut self,
        board: &mut Board<impl Tracer>,
        ftl: &mut Ftl,
        memory: &mut Lent<M>,
        page: TranslationPage,
        (whole, changed): (bool, bool),
    ) {
        if whole && !self.role.is_busy(page) {
            ftl.unbind_translation(page);
            self.role.discard(page);
            self.note_changed_page(page);
        } else if changed {
            self.update_page(board, ftl, page, Change::Write);
        }
        if M::KEEPS_BYTES && changed {
            self.write_page_in_hmb(ftl, memory, page);
        }
    }

    /// An entry changes in host memory; one that is checked with its neighbours is read first.
    /// Nobody waits for either.
    #[inline]
    fn update_hmb_line(&self, board: &mut Board<impl Tracer>) {
        let now = board.engine.now();
        let Costs {
            update_read_bytes,
            update_write_bytes,
            ..
        } = self.costs;
        if update_read_bytes > 0 {
            board.counters.hmb_read_bytes += update_read_bytes;
            board.link.read(now, update_read_bytes);
        }
        board.counters.hmb_written_bytes += update_write_bytes;
        board.link.write(now, update_write_bytes);
    }

    /// Pages that were exchanged with host memory cross the link: between exclusive tiers, and on their way to flash. One that
    /// is taken back because it is used is waited for by nobody: the command's own entry is fetched by itself.
    #[inline]
    pub(super) fn move_units(&mut self, board: &mut Board<impl Tracer>) {
        if self.role.migrations != TierMigrations::default() {
            self.move_each(board);
        }
    }

    #[inline(never)]
    fn move_each(&mut self, board: &mut Board<impl Tracer>) {
        let migrations = std::mem::take(&mut self.role.migrations);
        if self.hmb_bytes == 0 {
            return;
        }
        let now = board.engine.now();
        let mut get = |board: &mut Board<_>, bytes: u64| {
            board.counters.hmb_read_bytes += bytes;
            self.read_back_ps = board.link.read(now, bytes);
        };
        if migrations.from_host_bytes > 0 {
            get(board, migrations.from_host_bytes);
        }
        let page_bytes = self.costs.page_bytes;
        for _ in 0..migrations.from_host {
            get(board, page_bytes);
        }
        let each = (0..migrations.to_host).map(|_| page_bytes);
        let compressed = (migrations.to_host_bytes > 0).then_some(migrations.to_host_bytes);
        for bytes in compressed.into_iter().chain(each) {
            board.counters.hmb_written_bytes += bytes;
            let arrival_ps = board.link.write(now, bytes);
            let pages = bytes.div_ceil(page_bytes) as u32;
            self.sent.add(now, pages, arrival_ps);
        }
    }
}
