//! Where the drive ends: commands come in with their doorbells, completions leave as their entries
//! arrive in the host's memory. Offline a [`crate::Host`] stands on the other side.

use super::power::Shutdown;
use super::{
    Command, Contents, Device, Held, HostMemory, HpbAnswer, SECTOR_BYTES, TRANSFER_BYTES_MAX,
    WindowSent,
};
use crate::controller::hpb::{HostEntry, NO_ENTRY};
use crate::engine::EventKind;
use crate::ids::{CommandId, Lpn};
use crate::observe::{Part, Tracer};
use crate::request::{EntryId, EntryInfo, Op, Purpose, Request, Status, WindowCall, WindowError};
use crate::spec::DriveSpec;
use crate::transport::SubmissionQueues;
use crate::transport::bar::Packet;
use serde::{Deserialize, Serialize};

/// A completion on its way: it stands in the host's memory at `arrives_ps`.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Command that has ended; [`Device::outcome`] says how.
    pub command: CommandId,
    /// When its completion entry, and its data, has arrived in the host's memory, picoseconds.
    pub arrives_ps: u64,
}

/// What an alarm of the host's is for. Hosts that are simulated share the drive's clock, and the
/// order of what happens at one instant; a real one has a clock of its own and sets none.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub enum Alarm {
    /// The completion handler has run. Index: command.
    Handled,
    /// A CPU goes on. Index: call.
    Call,
    /// Nothing has been asked for a while. Index: idle period.
    Idle,
}

/// Something that concerns the host.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// Completions or answers of the byte window are on their way. Said once: both
    /// [`Device::take_sent`] and [`Device::take_window_sent`] are to be asked.
    Sent,
    /// An alarm that the host has set, and its index.
    Alarm(Alarm, u32),
    /// The shutdown is done ([`Device::begin_shutdown`]).
    ShutDown,
    /// The drive has come back from a power cut or a crash of the host ([`Device::recovery`]).
    Recovered,
    /// Host memory taken back, or exchanged, is the host's again ([`Device::set_hmb`]).
    HmbReturned,
}

/// What stands between the drive and its host.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(super) struct Front {
    /// Commands whose doorbells have been rung.
    pub queues: SubmissionQueues,
    /// Completions on their way to the host.
    pub sent: Vec<Sent>,
    /// Something that concerns the host may have happened.
    pub attention: bool,
    /// Host memory is being given back: the host hears when that is done.
    pub returning_hmb: bool,
    /// Something has happened since the drive last went on with a shutdown or its recovery. Time alone is nothing: else
    /// what the drive does would depend on how often it is asked.
    pub has_changed: bool,
}

impl Front {
    /// No commands, no news.
    pub(super) fn new(spec: &DriveSpec) -> Self {
        let controller = &spec.controller;
        Front {
            queues: SubmissionQueues::new(controller.command_slots, controller.arbitration_burst),
            sent: Vec::new(),
            attention: false,
            returning_hmb: false,
            has_changed: false,
        }
    }
}

impl<C: Contents, M: HostMemory, T: Tracer> Device<C, M, T> {
    /// Now, in picoseconds since the start.
    #[inline]
    #[must_use]
    pub fn now_ps(&self) -> u64 {
        self.board.engine.now().ps()
    }

    /// When something happens next; `None` when the drive is idle until the next command.
    #[inline]
    #[must_use]
    pub fn next_time(&self) -> Option<u64> {
        self.board.engine.next_time_ps()
    }

    /// Events so far, pending ones included.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.board.engine.events()
    }

    /// Commands enqueued and not consumed.
    #[inline]
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.commands.len()
    }

    /// A command is written into its submission queue. The drive knows nothing of it before
    /// [`Device::ring`]. Its number stays its own until [`Device::consume`].
    #[inline]
    pub fn enqueue(&mut self, request: Request) -> CommandId {
        self.board.counters.requests += 1;
        let status = self.validate(&request);
        self.board.counters.ageing.refused += u64::from(status == Status::ReadOnly);
        let command = Command::new(request, status);
        if request.op == Op::Read && status == Status::Success {
            self.ftl.expect_chunk(Lpn(command.first_lpn()));
        }
        self.insert(command, C::payload(request.tag))
    }

    /// What an enqueued command brings, and what has been read for it until its completion: a host whose data
    /// is more than a tag puts it here before it rings, and takes it back before [`Device::consume`].
    #[must_use]
    pub fn payload_mut(&mut self, command: CommandId) -> &mut C::Payload {
        &mut self.commands[command].payload
    }

    /// What becomes of what an enqueued command reads, if it is not to go to the host. To be said before it is rung.
    pub fn read_for(&mut self, command: CommandId, purpose: Purpose) {
        self.commands[command].purpose = purpose;
    }

    #[inline]
    pub(super) fn insert(&mut self, command: Command, payload: C::Payload) -> CommandId {
        let id = self.commands.insert(Held::new(command, payload));
        if let Some(hpb) = &mut self.hpb {
            hpb.begin(id);
        }
        id
    }

    pub(super) fn validate(&self, request: &Request) -> Status {
        if request.op == Op::Flush {
            return Status::Success;
        }
        let Request {
            offset_bytes,
            length_bytes,
            ..
        } = *request;
        let aligned =
            offset_bytes.is_multiple_of(SECTOR_BYTES) && length_bytes.is_multiple_of(SECTOR_BYTES);
        let most = self.spec.controller.transfer_bytes_max;
        let most = most.unwrap_or(TRANSFER_BYTES_MAX);
        let too_long = request.op != Op::Trim && length_bytes > most;
        if !aligned || length_bytes == 0 || too_long {
            return Status::InvalidField;
        }
        match offset_bytes.checked_add(length_bytes) {
            Some(end) if end <= self.spec.capacity_bytes => {}
            _ => return Status::OutOfRange,
        }
        match request.op == Op::Read || self.ftl.takes_new_data() {
            true => Status::Success,
            false => Status::ReadOnly,
        }
    }

    /// The doorbell of an enqueued command is rung at `doorbell_ps`, now or later.
    #[inline(always)]
    pub fn ring(&mut self, command: CommandId, doorbell_ps: u64) {
        let queue = self.commands[command].request.queue;
        // Where the host frees slots, it keeps the command until one is free.
        let known_ps = match self.board.link.host_frees_slots() {
            true => 0,
            false => doorbell_ps + self.board.link.one_way_ps(),
        };
        if self.front.queues.submit(queue, command, known_ps) {
            self.fetch(command, doorbell_ps, true);
        }
    }

    /// A command comes over the link: asked for by a doorbell that is rung at `at_ps`, or by the
    /// drive itself then.
    #[inline(always)]
    pub(super) fn fetch(&mut self, command: CommandId, at_ps: u64, doorbell: bool) {
        let now = self.board.engine.now();
        let fetched_ps = self.board.link.command(now, at_ps, doorbell);
        let tracer = &mut self.board.engine.tracer;
        tracer.mark(command, Part::Queue, at_ps);
        tracer.mark(command, Part::Fetch, fetched_ps);
        self.board
            .engine
            .schedule(fetched_ps, EventKind::Fetched, command);
    }

    /// Works off events due at or before `until_ps` up to one that concerns the host; `None` when
    /// there is none.
    pub fn run(&mut self, until_ps: u64) -> Option<News> {
        self.run_on(until_ps)
    }

    // To be part of the loop of a host that is simulated.
    #[inline(always)]
    pub(crate) fn run_on(&mut self, until_ps: u64) -> Option<News> {
        let mut has_handled = false;
        loop {
            if self.front.attention
                && let Some(news) = self.attend(has_handled)
            {
                return Some(news);
            }
            let (_, kind, index) = self.board.engine.pop(until_ps)?;
            let alarm = match kind {
                EventKind::HostHandled => Alarm::Handled,
                EventKind::HostCall => Alarm::Call,
                EventKind::HostIdle => Alarm::Idle,
                _ => {
                    self.handle(kind, index);
                    has_handled = true;
                    continue;
                }
            };
            return Some(News::Alarm(alarm, index));
        }
    }

    /// What of that which may concern the host does. Something has happened if an event has been handled.
    #[inline]
    fn attend(&mut self, has_handled: bool) -> Option<News> {
        let restart = self.power.restart.as_ref();
        let restarts = restart.is_some_and(|restart| restart.is_under_way());
        self.front.attention =
            self.front.returning_hmb || self.power.shutdown != Shutdown::No || restarts;
        self.front.has_changed |= has_handled;
        if self.has_sent() || self.has_window_sent() {
            return Some(News::Sent);
        }
        if self.front.returning_hmb && !self.hmb_is_being_saved() {
            self.front.returning_hmb = false;
            return Some(News::HmbReturned);
        }
        if !std::mem::take(&mut self.front.has_changed) {
            return None;
        }
        if restarts && self.goes_on_recovering() {
            return Some(News::Recovered);
        }
        if self.power.shutdown != Shutdown::No && self.goes_on_shutting_down() {
            return Some(News::ShutDown);
        }
        None
    }

    /// Moves the clock forward when no event is left before `to_ps`.
    #[inline]
    pub fn idle_until(&mut self, to_ps: u64) {
        self.board.engine.idle_until(to_ps);
    }

    /// Whether completions are on their way that [`Device::take_sent`] has not handed out.
    #[inline]
    #[must_use]
    pub fn has_sent(&self) -> bool {
        !self.front.sent.is_empty()
    }

    /// Moves the completions sent since the last call to `sent`, in the order in which they left.
    #[inline]
    pub fn take_sent(&mut self, sent: &mut Vec<Sent>) {
        sent.append(&mut self.front.sent);
    }

    /// Sets an alarm for each completion sent since the last call: its handler will have run
    /// `handling_ps` after its arrival.
    pub fn wake_for_sent(&mut self, handling_ps: u64) {
        for sent in self.front.sent.drain(..) {
            let at_ps = sent.arrives_ps + handling_ps;
            self.board
                .engine
                .schedule(at_ps, EventKind::HostHandled, sent.command);
        }
    }

    /// A command's request, and how it ended.
    #[inline]
    #[must_use]
    pub fn outcome(&self, command: CommandId) -> (Request, Status) {
        let command = &self.commands[command];
        (command.request, command.status)
    }

    /// The host has taken a completion entry (NVMe: the head doorbell of the completion queue; UFS:
    /// the host has seen the response). A command that has waited for the slot, as with UFS, has its
    /// doorbell rung at `next_doorbell_ps`. Returns the request, and how it ended.
    #[inline(always)]
    pub fn consume(&mut self, command: CommandId, next_doorbell_ps: u64) -> (Request, Status) {
        let Command {
            request,
            status,
            hpb_command,
            ..
        } = *self.commands[command];
        self.board.counters.completions += u64::from(!hpb_command);
        self.commands.remove(command);
        self.front.has_changed = true;
        if self.board.link.host_frees_slots()
            && let Some((next, _)) = self.front.queues.release(self.board.engine.now().ps())
        {
            self.fetch(next, next_doorbell_ps, true);
        }
        self.note_activity();
        (request, status)
    }

    /// An alarm of the host's, in the drive's own order of events.
    #[inline]
    pub fn wake_at(&mut self, at_ps: u64, alarm: Alarm, index: u32) {
        let kind = match alarm {
            Alarm::Handled => EventKind::HostHandled,
            Alarm::Call => EventKind::HostCall,
            Alarm::Idle => EventKind::HostIdle,
        };
        self.board.engine.schedule(at_ps, kind, index);
    }

    // Host Performance Booster. Without the feature these do nothing.

    /// The host sends an entry along with an enqueued read.
    pub fn attach_entry(&mut self, read: CommandId, entry: HostEntry) {
        if let Some(hpb) = &mut self.hpb {
            hpb.attach(read, entry);
        }
    }

    /// The host writes a READ BUFFER of a group into queue 0; `None` without the feature, and where
    /// there is no such group.
    pub fn enqueue_read_buffer(&mut self, group: u32) -> Option<CommandId> {
        let user_slots = self.ftl.user_slots();
        let request = self.hpb.as_ref()?.group_request(group, user_slots)?;
        let id = self.insert_of_driver(request);
        self.hpb.as_mut()?.begin_group(id, group);
        Some(id)
    }

    /// The host writes an HPB WRITE BUFFER with an entry for each page of an enqueued read. It uses the
    /// read's queue and must be rung before it, so that the drive takes it first. `None` without the
    /// feature, and where the entries are not as many as the read's pages.
    pub fn enqueue_write_buffer(
        &mut self,
        read: CommandId,
        entries: &[HostEntry],
    ) -> Option<CommandId> {
        let command = *self.commands[read];
        if self.hpb.is_none() || command.status != Status::Success {
            return None;
        }
        let pages = command.end_lpn() - command.first_lpn();
        if entries.len() != pages as usize {
            return None;
        }
        let id = self.insert_of_driver(command.request);
        self.hpb.as_mut()?.begin_ahead(id, read, entries);
        Some(id)
    }

    fn insert_of_driver(&mut self, request: Request) -> CommandId {
        let mut command = Command::new(request, Status::Success);
        command.hpb_command = true;
        self.insert(command, C::Payload::default())
    }

    /// What the host has learned about map entries with a command; to be asked once, when the host
    /// has its response.
    pub fn hpb_answer(&mut self, command: CommandId) -> HpbAnswer {
        match &mut self.hpb {
            Some(hpb) => hpb.take_answer(command, &self.commands[command]),
            None => HpbAnswer::default(),
        }
    }

    /// The entry that a page had when the drive was first switched on: what a host has loaded then
    /// is this formula.
    #[must_use]
    pub fn hpb_entry_at_boot(&self, lpn: Lpn) -> u64 {
        let hpb = self.hpb.as_ref();
        hpb.map_or(NO_ENTRY, |hpb| hpb.entry_at_boot(lpn, &self.ftl))
    }

    /// Whether an entry shows its place, so that a host can tell which pages lie side by side.
    #[must_use]
    pub fn hpb_shows_place(&self) -> bool {
        self.hpb.as_ref().is_some_and(|hpb| hpb.shows_place())
    }

    /// The host begins to keep map entries, or stops; whatever it has is void.
    pub fn set_hpb_enabled(&mut self, enabled: bool) {
        if let Some(hpb) = &mut self.hpb {
            hpb.set_enabled(enabled);
        }
    }

    // The byte window.

    /// Whether the drive has a byte window.
    #[must_use]
    pub fn has_window(&self) -> bool {
        self.window.is_some()
    }

    /// A call that the drive works off (pin, flush, entry info, read DMA) stands in its queue, and its
    /// doorbell is rung at `doorbell_ps`. The answer bears `cookie`, and the payload. A sync
    /// that comes this way, from a host that cannot wait for its own stores, costs a command.
    ///
    /// # Errors
    /// Without a window, and for what only a CPU does (store, load).
    pub fn ring_window(
        &mut self,
        cookie: u32,
        payload: C::Payload,
        call: WindowCall,
        doorbell_ps: u64,
    ) -> Result<(), WindowError> {
        let window = self.window.as_mut().ok_or(WindowError::NoWindow)?;
        window.ring(&mut self.board, (cookie, payload), call, doorbell_ps)
    }

    /// Block commands that wait for a pinned range to be given up end with [`Status::AccessDenied`]: their host resets the
    /// controller, which has to come to an end without that host.
    pub fn refuse_held(&mut self) {
        let held = self.window.as_mut().map(|window| window.take_held());
        for command in held.unwrap_or_default() {
            self.commands[command].status = Status::AccessDenied;
            let now_ps = self.now_ps();
            let engine = &mut self.board.engine;
            engine.schedule(now_ps, EventKind::Fetched, command);
        }
    }

    /// A CPU sends a read of up to 8 bytes of the window; without bytes it only confirms that what was
    /// posted before has arrived. Answered under `cookie`, with the payload.
    ///
    /// # Errors
    /// Without a window.
    pub fn read_window(
        &mut self,
        cookie: u32,
        payload: C::Payload,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> Result<(), WindowError> {
        let window = self.window.as_mut().ok_or(WindowError::NoWindow)?;
        window.read(
            &mut self.board,
            (cookie, payload),
            offset_bytes,
            length_bytes,
        );
        Ok(())
    }

    /// A name for bytes that a CPU combines; 0 without a window.
    pub fn new_packet_id(&mut self) -> u32 {
        let window = self.window.as_mut();
        window.map_or(0, |window| window.new_packet_id())
    }

    /// A packet of stores leaves a CPU. Returns when it is out of it.
    pub fn post_to_window(&mut self, packet: Packet) -> u64 {
        match &mut self.window {
            Some(window) => window.post(&mut self.board, packet),
            None => self.now_ps(),
        }
    }

    /// A CPU fetches a line of a window that is memory of the host; returns when it has it.
    pub fn fetch_window_line(&mut self) -> u64 {
        match &mut self.window {
            Some(window) => window.fetch_line(&mut self.board),
            None => self.now_ps(),
        }
    }

    /// A line of such a window leaves the CPUs' caches. Returns when it is out of them, and when it is acknowledged.
    pub fn write_back_to_window(&mut self, packet: Packet) -> (u64, u64) {
        match &mut self.window {
            Some(window) => window.write_back(&mut self.board, packet),
            None => (self.now_ps(), self.now_ps()),
        }
    }

    /// A CPU takes bytes of a line of such a window: line, from and to, offsets in the window.
    pub fn load_from_window(&mut self, payload: &mut C::Payload, bytes: (u32, u64, u64)) {
        if let Some(window) = &mut self.window {
            window.load(&mut self.board, &mut self.contents, payload, bytes);
        }
    }

    /// The pinned entry that a range of the window lies in.
    ///
    /// # Errors
    /// Why loads and stores cannot touch it.
    pub fn pinned_range(&self, offset: u64, length: u64) -> Result<EntryInfo, WindowError> {
        let window = self.window.as_ref().ok_or(WindowError::NoWindow)?;
        window.pinned_range(offset, length)
    }

    /// A pinned entry, by its number.
    ///
    /// # Errors
    /// Why loads and stores cannot touch it.
    pub fn pinned_entry(&mut self, entry: EntryId) -> Result<EntryInfo, WindowError> {
        let window = self.window.as_mut().ok_or(WindowError::NoWindow)?;
        window.pinned_entry(entry)
    }

    /// Whether [`Device::take_window_sent`] has something.
    #[inline]
    #[must_use]
    pub fn has_window_sent(&self) -> bool {
        let window = self.window.as_ref();
        window.is_some_and(|window| !window.sent.is_empty())
    }

    /// The answers of the window sent since the last call, in order, each with its call's payload.
    pub fn take_window_sent(&mut self) -> impl Iterator<Item = (WindowSent, C::Payload)> {
        let window = self.window.iter_mut();
        window.flat_map(|window| window.sent.drain(..))
    }

    /// The drive's table of entries, in the order in which they were pinned.
    pub fn window_entries(&self) -> impl Iterator<Item = EntryInfo> + '_ {
        self.window.iter().flat_map(|window| window.entries())
    }

    /// All of the window is saved when power fails from now on, as a persistent memory region is; or (`keeps_all`
    /// false) what is pinned alone. Returns when a mark in flash says so: until then power must not be relied on.
    pub fn keep_whole_window(&mut self, keeps_all: bool) -> u64 {
        let now_ps = self.now_ps();
        let window = self.window.as_mut();
        window.map_or(now_ps, |window| window.keep_all(now_ps, keeps_all))
    }

    /// The drive was switched off properly, before the loss of power that comes next: there was time to save of the window what
    /// is to be saved, however long the capacitors last.
    pub fn window_was_saved(&mut self) {
        if let Some(window) = &mut self.window {
            window.was_saved();
        }
    }

    /// Whether all of the window is saved when power fails ([`Device::keep_whole_window`]).
    #[must_use]
    pub fn keeps_whole_window(&self) -> bool {
        self.window
            .as_ref()
            .is_some_and(|window| window.keeps_all())
    }

    /// Whether the capacitors did not last for all of the window that was to be saved the last time power failed.
    #[must_use]
    pub fn window_has_lost(&self) -> bool {
        self.window.as_ref().is_some_and(|window| window.has_lost())
    }
}
