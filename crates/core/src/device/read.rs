//! Reads: what is at hand, what comes from flash, and when all of it is with the host.

use super::command::ToldByHost;
use super::pieces::{
    FromMemory, Run, ask_for_hosts_side, find_at_hand, pieces, read_cache_serves, to_be_read_ahead,
};
use super::{Command, Contents, Device, HostMemory, Source};
use crate::controller::{Lookup, ReadAhead, ReadCache, Waiter};
use crate::engine::EventKind;
use crate::ids::{BufferSlot, CommandId, FlashOpId, Lpn, Ppn, TranslationPage};
use crate::memory::{self, PIECE_BYTES};
use crate::nand::{Cause, Class, Decoded, FlashOp};
use crate::observe::{Part, Tracer};
use crate::request::Status;
use crate::spec::{ENTRIES_PER_TRANSLATION_PAGE, SLOT_BYTES, Tier};
use std::ops::Range;

impl<C: Contents, M: HostMemory, T: Tracer> Device<C, M, T> {
    /// Looks the command's map entries up and returns the core time it takes.
    #[inline(always)]
    pub(super) fn read_core_ps(&mut self, id: CommandId) -> u64 {
        let command = &self.commands[id];
        if command.hpb_command {
            return self.driver_core_ps(id);
        }
        self.ftl.expect(Lpn(command.first_lpn()));
        let slots = u64::from(command.end_lpn() - command.first_lpn());
        let (first, last) = command.translation_pages();
        let costs = &self.spec.controller;
        let mut core_ps = costs.read_ps + (slots - 1) * costs.next_slot_ps;
        let map_fill_ps = costs.map_fill_ps;
        let check_ps = self.hpb.as_ref().map_or(0, |hpb| hpb.check_ps(id));
        let tracer = &mut self.board.engine.tracer;
        tracer.looks_up(id, Part::MapHost, check_ps);
        core_ps += check_ps;
        self.board.counters.map.lookups += u64::from(last + 1 - first);
        for page in first..last + 1 {
            let page_id = TranslationPage(page);
            let found = self.map.look_up(&self.ftl, page_id);
            match found.answered_by() {
                Some(place) => {
                    self.board.counters.map.hit(place, found == Lookup::Waiting);
                    let entry_ps = self.map.entry_core_ps(&mut self.board, place, page_id);
                    if entry_ps.is_none() {
                        self.commands[id].awaits_entry = true;
                    }
                    let entry_ps = entry_ps.unwrap_or(0);
                    let part = memory::look_up_part(self.map.tier(place));
                    self.board.engine.tracer.looks_up(id, part, entry_ps);
                    core_ps += entry_ps;
                }
                None if self.is_covered(id, page_id) => {}
                None => {
                    self.board.counters.map.misses += 1;
                    self.commands[id].missed |= 1 << (page - first);
                    core_ps += map_fill_ps;
                }
            }
        }
        core_ps
    }

    /// Whether entries of the host make up for a translation page that is not at hand.
    fn is_covered(&mut self, id: CommandId, page: TranslationPage) -> bool {
        let Some(hpb) = &mut self.hpb else {
            return false;
        };
        hpb.covers(&mut self.board, id, &mut self.commands[id], page)
    }

    /// Core time of a command of the host's HPB driver; what it needs of the map is looked up.
    fn driver_core_ps(&mut self, id: CommandId) -> u64 {
        let (mut core_ps, needs_map) = match &mut self.hpb {
            Some(hpb) => hpb.driver_command_ps(id),
            None => (0, false),
        };
        if needs_map {
            let (first, last) = self.commands[id].translation_pages();
            for page in first..=last {
                if self.map.look_up(&self.ftl, TranslationPage(page)) == Lookup::Nowhere {
                    self.commands[id].missed |= 1 << (page - first);
                    core_ps += self.spec.controller.map_fill_ps;
                }
            }
        }
        core_ps
    }

    /// The command's entry is read from host memory.
    pub(super) fn fetch_map_entry(&mut self, command: CommandId) {
        let page = TranslationPage(self.commands[command].translation_pages().0);
        let at_ps = self.map.fetch_entry(&mut self.board, page);
        let engine = &mut self.board.engine;
        engine.schedule(at_ps, EventKind::ReadInformed, command);
    }

    /// The map says where the data is, or is asked to find out.
    pub(super) fn start_read(&mut self, id: CommandId) {
        let now_ps = self.board.engine.now().ps();
        self.board.engine.tracer.mark(id, Part::MapHmb, now_ps);
        if self.commands[id].hpb_command {
            if let Some(hpb) = &mut self.hpb
                && !hpb.take_entries(&mut self.board, id)
            {
                self.start_group_read(id);
            }
            return;
        }
        if Self::PAGES_IN_HOST {
            let (data, around) = self.hmb_pages();
            let rejected_bytes = data.reject_cached(around, id);
            if rejected_bytes > 0 {
                // They have crossed the link in vain: the command begins anew.
                let at_ps = self.hmb_path.get(&mut self.board, rejected_bytes);
                let engine = &mut self.board.engine;
                engine.schedule(at_ps, EventKind::ReadInformed, id);
                return;
            }
        }
        if self.commands[id].told_by_host != ToldByHost::Nothing
            && let Some(hpb) = &mut self.hpb
        {
            hpb.confirm(&mut self.board, id, &mut self.commands[id]);
        }
        if M::KEEPS_BYTES {
            let (memory, command) = (&self.host_memory, &mut self.commands[id]);
            let rejected = self
                .map
                .rejects_entries(&mut self.board, &self.ftl, memory, command);
            if let Some(at_ps) = rejected {
                let engine = &mut self.board.engine;
                engine.schedule(at_ps, EventKind::ReadInformed, id);
                return;
            }
        }
        let command = *self.commands[id];
        if !command.window_io {
            self.board.counters.host_read_bytes += command.request.length_bytes;
        }
        // One thing pending until everything has been started, so that it cannot finish early.
        self.commands[id].pending = 1;
        ask_for_hosts_side(&mut self.board, id, &mut self.commands[id]);
        if command.missed == 0 {
            self.read_pages(id, command.first_lpn(), command.end_lpn());
        } else {
            self.start_missing_read(id, &command);
        }
        self.read_ahead_of(&command);
        self.end_part(id);
    }

    /// What is expected to be asked for next is read from flash into the read cache, as far as the map is at hand.
    #[inline]
    fn read_ahead_of(&mut self, command: &Command) {
        if let Some(cache) = &mut self.read_cache
            && let Some(ahead) = &mut cache.ahead
            && !command.window_io
        {
            let request = &command.request;
            let bytes = request.offset_bytes..request.offset_bytes + request.length_bytes;
            let pages = ahead.observe(request.queue, bytes, self.ftl.user_slots());
            if let Some(pages) = pages {
                self.read_ahead(pages);
            }
        }
    }

    #[cold]
    fn read_ahead(&mut self, pages: Range<u32>) {
        let group_slots = self.ftl.geometry().group_slots;
        let mut run: Option<Run> = None;
        let mut looked_up = None;
        for lpn in pages {
            let page = TranslationPage(lpn / ENTRIES_PER_TRANSLATION_PAGE as u32);
            if looked_up != Some(page) && !self.map.looks_up_ahead(&mut self.board, page) {
                if let Some(ahead) = self.read_ahead_state() {
                    ahead.stop_at(lpn);
                }
                break;
            }
            looked_up = Some(page);
            let cache = self.read_cache.as_ref();
            let Some(ppn) = to_be_read_ahead(cache, &self.buffer.slots, &self.ftl, Lpn(lpn)) else {
                continue;
            };
            if run
                .as_mut()
                .is_some_and(|run| run.extend(ppn, group_slots, SLOT_BYTES))
            {
                continue;
            }
            let next = Run::new(self.ftl.place(ppn), SLOT_BYTES);
            if let Some(done) = run.replace(next) {
                self.issue_read_ahead(&done);
            }
        }
        if let Some(done) = run {
            self.issue_read_ahead(&done);
        }
    }

    fn read_ahead_state(&mut self) -> Option<&mut ReadAhead> {
        self.read_cache.as_mut()?.ahead.as_mut()
    }

    /// Whether a page is on its way; then the command waits for it.
    #[inline]
    fn joins_read_ahead(&mut self, id: CommandId, ppn: Ppn, bytes: u64) -> bool {
        let ahead = self.read_ahead_state();
        let joined = ahead.and_then(|ahead| ahead.join(ppn, id, bytes as u32));
        if let Some(waits) = joined {
            self.board.counters.read_ahead_joined_slots += 1;
            self.commands[id].pending += u32::from(waits);
        }
        joined.is_some()
    }

    fn issue_read_ahead(&mut self, run: &Run) {
        let slots = run.slots();
        self.board.counters.read_ahead_slots += u64::from(slots);
        let core_ps = u64::from(slots) * self.spec.controller.next_slot_ps;
        self.board.cores.book(self.board.engine.now(), core_ps);
        if let Some(ahead) = self.read_ahead_state() {
            let owner = ahead.begin(run.place.group, run.mask());
            let class = Class::AheadRead;
            let op = FlashOp::read(class, Cause::Host, owner, &run.place, run.mask());
            self.board.read_flash(&mut self.ftl, op);
        }
    }

    /// What was read ahead is here, and may be waited for by now.
    fn on_read_ahead(&mut self, op: &FlashOp) {
        self.keep_in_read_cache(op);
        let next = |device: &mut Self| device.read_ahead_state()?.next_waiting(op.owner);
        while let Some((command, bytes)) = next(self) {
            if op.decoded() == Decoded::Never {
                self.commands[command].status = Status::MediaError;
            }
            self.deliver(command, u64::from(bytes));
        }
        if let Some(ahead) = self.read_ahead_state() {
            ahead.end(op.owner);
        }
    }

    #[cold]
    fn start_missing_read(&mut self, id: CommandId, command: &Command) {
        let (first, last) = command.translation_pages();
        for page in first..=last {
            let is_missed = command.missed >> (page - first) & 1 != 0;
            let data = (&self.buffer.slots, self.read_cache.as_ref());
            if !is_missed || find_at_hand(command, TranslationPage(page), &mut self.map, data) {
                let (from, to) = command.pages_within(TranslationPage(page));
                self.read_pages(id, from, to);
                continue;
            }
            if self.await_map(id, page) {
                self.board.counters.map.shared_misses += 1;
            }
        }
        self.dispatch_map();
    }

    /// A command waits for a translation page. Returns whether it joins others.
    fn await_map(&mut self, id: CommandId, page: u32) -> bool {
        self.commands[id].pending += 1;
        let (page, waiter) = (TranslationPage(page), Waiter::Command(id));
        self.map.fill(&mut self.board, page, waiter)
    }

    /// The translation pages of a group are read as far as they are not at hand.
    fn start_group_read(&mut self, id: CommandId) {
        self.commands[id].pending = 1;
        let missed = self.commands[id].missed;
        let (first, last) = self.commands[id].translation_pages();
        for page in first..=last {
            if missed >> (page - first) & 1 != 0 {
                self.await_map(id, page);
            }
        }
        if missed != 0 {
            self.dispatch_map();
        }
        self.end_part(id);
    }

    /// A translation page that was waited for has arrived.
    pub(super) fn on_filled(&mut self, fill: u32) {
        let bytes = (&mut self.contents, &mut self.host_memory);
        let (page, mut waiting) = self.map.filled(&mut self.board, &self.ftl, bytes, fill);
        for waiter in waiting.drain(..) {
            match waiter {
                Waiter::Merge(slot) => self.read_for_merge(slot),
                Waiter::Command(command) => {
                    let (from, to) = self.commands[command].data_within(page);
                    self.read_on(command, from, to);
                }
            }
        }
        self.map.give_back(waiting);
        self.read_merged();
        self.dispatch();
    }

    /// What a command has waited for is there: these pages are read.
    fn read_on(&mut self, id: CommandId, from: u32, to: u32) {
        self.read_pages(id, from, to);
        self.end_part(id);
    }

    /// Reads logical pages `from..to` of a command, whose map entries are at hand.
    fn read_pages(&mut self, id: CommandId, from: u32, to: u32) {
        let command = *self.commands[id];
        let mut from_memory = FromMemory::default();
        let cache = self.read_cache.as_ref();
        let cached = read_cache_serves(cache, &self.buffer.slots, &self.ftl, from, to);
        let mut run: Option<Run> = None;
        for lpn in from..to {
            let (lpn, bytes) = (Lpn(lpn), command.bytes_in(Lpn(lpn)));
            let source = self.source_of(id, lpn, &command, bytes, cached, &mut from_memory);
            let Some(ppn) = source else { continue };
            let group_slots = self.ftl.geometry().group_slots;
            if let Some(current) = &mut run
                && current.extend(ppn, group_slots, bytes)
            {
                continue;
            }
            if let Some(done) = run.take() {
                self.issue_read(id, &done);
            }
            run = Some(Run::new(self.ftl.place(ppn), bytes));
        }
        if let Some(done) = run {
            self.issue_read(id, &done);
        }
        if from_memory.any {
            self.send_from_memory(id, &from_memory);
        }
    }

    /// Where one page's data is: `None` when it is not in flash (its bytes are added to `from_memory`).
    #[inline]
    fn source_of(
        &mut self,
        id: CommandId,
        lpn: Lpn,
        command: &Command,
        bytes: u64,
        cached: bool,
        from_memory: &mut FromMemory,
    ) -> Option<Ppn> {
        let sectors = command.sectors_in(lpn);
        if let Some(slot) = self.buffer.slots.find(lpn) {
            self.read_buffered(id, lpn, slot, (sectors, bytes), from_memory);
            return None;
        }
        let at = lpn.0 - command.first_lpn();
        let is_held = |cache: &ReadCache| cached && cache.contains(lpn);
        let located = match command.told_by_host {
            // What the cache holds needs no entry.
            ToldByHost::Nothing
                if M::KEEPS_BYTES && !self.read_cache.as_ref().is_some_and(is_held) =>
            {
                self.map.located(&self.ftl, &self.host_memory, lpn)
            }
            ToldByHost::Nothing => self.ftl.locate(lpn),
            ToldByHost::Each => {
                let told = self.hpb.as_ref().and_then(|hpb| hpb.place_of(id, at));
                told.or_else(|| self.ftl.locate(lpn))
            }
            ToldByHost::First(first) => Some(Ppn(first.0 + at)),
        };
        let Some(ppn) = located else {
            self.board.counters.unwritten_slots += 1;
            from_memory.any = true;
            from_memory.zeros += bytes;
            self.note_read(id, lpn, Source::Unwritten, sectors);
            return None;
        };
        if let Some(cache) = &mut self.read_cache {
            self.board.counters.read_cache_lookups += 1;
            let tier = cache.tier;
            let in_host = tier.is_granted();
            if cached && cache.touch(lpn) {
                let from_host = Self::PAGES_IN_HOST && in_host;
                if !from_host || self.read_cached(id, lpn, sectors) {
                    self.board.counters.read_cache_hits += 1;
                    from_memory.add(tier, bytes);
                    if !from_host || command.window_io {
                        self.note_read(id, lpn, Source::Flash(ppn), sectors);
                    }
                    return None;
                }
            }
            if self.joins_read_ahead(id, ppn, bytes) {
                self.note_read(id, lpn, Source::Flash(ppn), sectors);
                return None;
            }
        }
        self.note_read(id, lpn, Source::Flash(ppn), sectors);
        Some(ppn)
    }

    /// A command reads a page that the write buffer holds, or waits for the rest of it.
    fn read_buffered(
        &mut self,
        id: CommandId,
        lpn: Lpn,
        slot: BufferSlot,
        (sectors, bytes): (u8, u64),
        from_memory: &mut FromMemory,
    ) {
        if self.buffer.slots.lacks(slot, sectors) {
            self.hurry_merge(slot);
        }
        if self.buffer.awaits_rest(id, slot, sectors) {
            self.commands[id].pending += 1;
            return;
        }
        self.board.counters.buffer_read_hits += 1;
        from_memory.add(self.buffer.holds_in(), bytes);
        let is_known = !Self::PAGES_IN_HOST || {
            let (data, around) = self.hmb_pages();
            data.read_buffered(around, id, slot, sectors)
        };
        if is_known {
            self.note_read(id, lpn, Source::Buffer(slot), sectors);
        }
    }

    /// Reads that waited for the rest of pages look again: it is in the buffer, or has been trimmed meanwhile.
    fn read_merged(&mut self) {
        while let Some((lpn, id)) = self.buffer.next_merged() {
            let engine = &mut self.board.engine;
            engine.tracer.adopt(id, engine.now().ps());
            self.read_on(id, lpn.0, lpn.0 + 1);
        }
    }

    /// A command reads a page that the read cache holds in host memory. Returns whether it could.
    fn read_cached(&mut self, id: CommandId, lpn: Lpn, sectors: u8) -> bool {
        let (data, mut around) = self.hmb_pages();
        let Some(page) = data.get_cached(&mut around, lpn) else {
            return false;
        };
        let command = &mut self.commands[id];
        if !command.window_io {
            self.contents
                .read_bytes(&mut command.payload, lpn, &page, sectors);
        }
        true
    }

    /// A command takes a page's data from `source`.
    #[inline]
    pub(super) fn note_read(&mut self, id: CommandId, lpn: Lpn, source: Source, sectors: u8) {
        if self.hmb_pages.lost.any() {
            let command = &mut self.commands[id];
            if self.hmb_pages.reads_lost(command, source, sectors) {
                return;
            }
        }
        let command = &mut self.commands[id];
        match &mut self.window {
            Some(window) if command.window_io => {
                let window_slot = window.slot_of(command, lpn);
                self.contents.pin(window_slot, lpn, source);
            }
            _ => self
                .contents
                .read(&mut command.payload, lpn, source, sectors),
        }
    }

    #[inline(always)]
    fn issue_read(&mut self, id: CommandId, run: &Run) {
        self.commands[id].pending += 1;
        let mut op = FlashOp::read(Class::HostRead, Cause::Host, id.0, &run.place, run.mask());
        op.link_bytes = run.bytes;
        self.board.read_flash(&mut self.ftl, op);
    }

    /// Data that needs no flash is fetched from its memory.
    fn send_from_memory(&mut self, id: CommandId, from_memory: &FromMemory) {
        let now = self.board.engine.now();
        self.board.engine.tracer.asks_memory(id, now.ps());
        for bytes in pieces(from_memory.zeros) {
            self.send_part(id, bytes, now.ps());
        }
        for (tier, held_bytes) in Tier::ALL.into_iter().zip(from_memory.held) {
            if held_bytes > 0 && tier.is_granted() {
                self.send_from_host(id, held_bytes);
                continue;
            }
            for bytes in pieces(held_bytes) {
                let at_ps = self.board.memories.load(tier, now, bytes);
                self.send_part(id, bytes, at_ps);
            }
        }
    }

    /// Cached or buffered data in host memory goes to a command's pages.
    fn send_from_host(&mut self, id: CommandId, bytes: u64) {
        if self.hmb_path.has_dma() && self.commands[id].delivers() {
            let at_ps = self.hmb_path.copy_out(&mut self.board, bytes);
            self.commands[id].pending += 1;
            self.board.engine.schedule(at_ps, EventKind::PartReady, id);
            return;
        }
        for bytes in pieces(bytes) {
            let at_ps = self.hmb_path.get(&mut self.board, bytes);
            self.send_part(id, bytes, at_ps);
        }
    }

    /// A part of a command's data is at hand at that time.
    fn send_part(&mut self, id: CommandId, bytes: u64, at_ps: u64) {
        self.commands[id].part_bytes += bytes;
        self.commands[id].pending += 1;
        self.board.engine.schedule(at_ps, EventKind::PartReady, id);
    }

    pub(super) fn on_part_ready(&mut self, id: CommandId) {
        // Whichever memory was faster: there is a piece for all of it.
        let left = &mut self.commands[id].part_bytes;
        let bytes = (*left).min(PIECE_BYTES);
        *left -= bytes;
        if bytes > 0 {
            self.send(id, bytes);
        }
        self.end_part(id);
    }

    /// Sends read data to the host, if it is for the host.
    #[inline]
    fn send(&mut self, id: CommandId, bytes: u64) {
        let (board, command) = (&mut self.board, &mut self.commands[id]);
        let end_ps = if command.window_io {
            board.window_ps(bytes)
        } else if command.delivers() {
            if T::ON {
                let wire_ps = board.link.wire_ps(bytes);
                board.engine.tracer.sends(id, wire_ps);
            }
            board.link.write(board.engine.now(), bytes)
        } else {
            board.engine.now().ps()
        };
        command.data_end_ps = command.data_end_ps.max(end_ps);
    }

    /// Data that a command has waited for goes to the host.
    #[inline]
    fn deliver(&mut self, id: CommandId, bytes: u64) {
        self.send(id, bytes);
        self.end_part(id);
    }

    /// Data of a flash read has passed bus and decoder.
    pub(super) fn on_data_ready(&mut self, index: FlashOpId) {
        let engine = &mut self.board.engine;
        let now_ps = engine.now().ps();
        engine.tracer.op_done(index, now_ps);
        let op = self.board.array.ops[index];
        self.board.array.ops.remove(index);
        match (op.cause, op.class) {
            (Cause::Host, Class::AheadRead) => self.on_read_ahead(&op),
            (Cause::Host, _) => {
                let (command, bytes) = (CommandId(op.owner), u64::from(op.link_bytes));
                let kept_in_host = self.keep_in_read_cache(&op);
                let by_dma = self.hmb_path.has_dma() && self.commands[command].delivers();
                if kept_in_host > 0 && by_dma {
                    self.board.engine.tracer.adopt(command, now_ps);
                    // The command's pages get it from host memory, so that it crosses the link once.
                    let board = &mut self.board;
                    let at_ps = self.hmb_path.put_through(board, kept_in_host, bytes);
                    board.engine.schedule(at_ps, EventKind::PartReady, command);
                } else {
                    if kept_in_host > 0 {
                        self.hmb_path.put(&mut self.board, kept_in_host);
                    }
                    self.deliver(command, bytes);
                }
            }
            (Cause::Map, Class::MapRead | Class::UpdateRead) => self.on_filled(op.owner),
            // What the drive reads for itself: the rest of a unit of the map, the rest of a page.
            (Cause::Map | Cause::Merge, _) => {
                match op.cause {
                    Cause::Merge => self.buffer.slots.merged(BufferSlot(op.owner), false),
                    _ => self.map.background_filled(&mut self.board, &op),
                }
                self.dispatch();
                self.read_merged();
            }
            (Cause::Gc | Cause::Wear | Cause::Fold, _) => self.on_victim_read(&op),
        }
        self.end_read(&op);
    }
}
