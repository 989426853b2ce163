//! Where the drive ends: commands come in with their doorbells, completions leave as their entries
//! arrive in the host's memory. Offline a [`crate::Host`] stands on the other side.

use super::power::Shutdown;
use super::{Command, Contents, Device, HostMemory, SECTOR_BYTES, TRANSFER_BYTES_MAX};
use crate::engine::EventKind;
use crate::ids::CommandId;
use crate::request::{Op, Request, Status};

/// A completion on its way: it stands in the host's memory at `arrives_ps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Command that has ended; [`Device::outcome`] says how.
    pub command: CommandId,
    /// When its completion entry, and its data, has arrived in the host's memory, picoseconds.
    pub arrives_ps: u64,
}

/// What an alarm of the host's is for. Hosts that are simulated share the drive's clock, and the
/// order of what happens at one instant; a real one has a clock of its own and sets none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alarm {
    /// The completion handler has run. Index: command.
    Handled,
    /// A CPU goes on. Index: call.
    Call,
    /// Nothing has been asked for a while. Index: idle period.
    Idle,
}

/// Something that concerns the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// Completions or answers of the byte window are on their way. Said once: both
    /// [`Device::take_sent`] and [`Device::take_window_sent`] are to be asked.
    Sent,
    /// An alarm that the host has set, and its index.
    Alarm(Alarm, u32),
    /// The shutdown is done ([`Device::begin_shutdown`]).
    ShutDown,
    /// Host memory taken back, or exchanged, is the host's again ([`Device::set_hmb`]).
    HmbReturned,
}

impl<C: Contents, M: HostMemory> Device<C, M> {
    /// Now, in picoseconds since the start.
    #[inline]
    #[must_use]
    pub fn now_ps(&self) -> u64 {
        self.engine.now().ps()
    }

    /// When something happens next; `None` when the drive is idle until the next command.
    #[inline]
    #[must_use]
    pub fn next_time(&self) -> Option<u64> {
        self.engine.next_time_ps()
    }

    /// Events so far, pending ones included.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.engine.events()
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
        self.counters.requests += 1;
        let status = self.validate(&request);
        self.insert(Command::new(request, status))
    }

    #[inline]
    pub(super) fn insert(&mut self, command: Command) -> CommandId {
        let id = self.commands.insert(command);
        if let Some(hpb) = &mut self.hpb {
            hpb.begin(id);
        }
        CommandId(id)
    }

    fn validate(&self, request: &Request) -> Status {
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
        let too_long = request.op != Op::Trim && length_bytes > TRANSFER_BYTES_MAX;
        if !aligned || length_bytes == 0 || too_long {
            return Status::InvalidField;
        }
        match offset_bytes.checked_add(length_bytes) {
            Some(end) if end <= self.spec.capacity_bytes => Status::Success,
            _ => Status::OutOfRange,
        }
    }

    /// The doorbell of an enqueued command is rung at `doorbell_ps`, now or later.
    #[inline]
    pub fn ring(&mut self, command: CommandId, doorbell_ps: u64) {
        let queue = self.commands[command.0].request.queue;
        // Where the host frees slots, it keeps the command until one is free.
        let known_ps = match self.link.host_frees_slots() {
            true => 0,
            false => doorbell_ps + self.link.one_way_ps(),
        };
        if self.queues.submit(queue, command, known_ps) {
            self.fetch(command.0, doorbell_ps, true);
        }
    }

    /// A command comes over the link: asked for by a doorbell that is rung at `at_ps`, or by the
    /// drive itself then.
    #[inline]
    pub(super) fn fetch(&mut self, command: u32, at_ps: u64, doorbell: bool) {
        let fetched_ps = at_ps + self.link.command_ps(doorbell);
        self.engine
            .schedule(fetched_ps, EventKind::Fetched, command);
    }

    /// Works off events due at or before `until_ps` up to one that concerns the host; `None` when
    /// there is none.
    #[inline]
    pub fn run(&mut self, until_ps: u64) -> Option<News> {
        loop {
            if self.attention
                && let Some(news) = self.attend()
            {
                return Some(news);
            }
            let (_, kind, index) = self.engine.pop(until_ps)?;
            let alarm = match kind {
                EventKind::HostHandled => Alarm::Handled,
                EventKind::HostCall => Alarm::Call,
                EventKind::HostIdle => Alarm::Idle,
                _ => {
                    self.handle(kind, index);
                    continue;
                }
            };
            return Some(News::Alarm(alarm, index));
        }
    }

    /// What of that which may concern the host does.
    #[inline]
    fn attend(&mut self) -> Option<News> {
        self.attention = self.returning_hmb || self.shutdown != Shutdown::No;
        if self.has_sent() || self.has_window_sent() {
            return Some(News::Sent);
        }
        if self.returning_hmb && !self.hmb_is_settling() {
            self.returning_hmb = false;
            return Some(News::HmbReturned);
        }
        if self.shutdown != Shutdown::No && self.goes_on_shutting_down() {
            return Some(News::ShutDown);
        }
        None
    }

    /// Moves the clock forward when no event is left before `to_ps`.
    #[inline]
    pub fn settle(&mut self, to_ps: u64) {
        self.engine.settle(to_ps);
    }

    /// Whether completions are on their way that [`Device::take_sent`] has not handed out.
    #[inline]
    #[must_use]
    pub fn has_sent(&self) -> bool {
        !self.sent.is_empty()
    }

    /// Moves the completions sent since the last call to `sent`, in the order in which they left.
    #[inline]
    pub fn take_sent(&mut self, sent: &mut Vec<Sent>) {
        sent.append(&mut self.sent);
    }

    /// Sets an alarm for each completion sent since the last call: its handler will have run
    /// `handling_ps` after its arrival.
    pub fn wake_for_sent(&mut self, handling_ps: u64) {
        for sent in self.sent.drain(..) {
            let at_ps = sent.arrives_ps + handling_ps;
            self.engine
                .schedule(at_ps, EventKind::HostHandled, sent.command.0);
        }
    }

    /// A command's request, and how it ended.
    #[inline]
    #[must_use]
    pub fn outcome(&self, command: CommandId) -> (Request, Status) {
        let command = &self.commands[command.0];
        (command.request, command.status)
    }

    /// The host has taken a completion entry (NVMe: the head doorbell of the completion queue; UFS:
    /// the host has seen the response). A command that has waited for the slot, as with UFS, has its
    /// doorbell rung at `next_doorbell_ps`. Returns the request, and how it ended.
    #[inline]
    pub fn consume(&mut self, command: CommandId, next_doorbell_ps: u64) -> (Request, Status) {
        let Command {
            request,
            status,
            from_driver,
            ..
        } = self.commands[command.0];
        self.counters.completions += u64::from(!from_driver);
        self.commands.remove(command.0);
        if self.link.host_frees_slots()
            && let Some((next, _)) = self.queues.release(self.engine.now().ps())
        {
            self.fetch(next.0, next_doorbell_ps, true);
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
        self.engine.schedule(at_ps, kind, index);
    }
}
