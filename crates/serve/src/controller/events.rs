//! Asynchronous events (Base 2.0 §5.2): what the drive tells without being asked.

use super::Controller;
use super::queues::Queues;
use lodger_wire::entry::Outcome;
use lodger_wire::event::AsyncEvent;
use lodger_wire::log::{CriticalWarning, LogId};
use lodger_wire::memory::GuestMemory;
use lodger_wire::queue::{Permit, SetAside};
use lodger_wire::status::Status;
use lodger_wire::{CommandId, QueueId};
use std::collections::VecDeque;

/// Requests for events at once: AERL of Identify Controller, plus one.
const REQUESTS_MAX: usize = 4;

/// Requests that wait for events, and events that wait for requests.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// They hold no room in their completion queue: nothing may ever happen.
    requests: VecDeque<SetAside>,
    /// Each at most once.
    events: VecDeque<AsyncEvent>,
    /// Kinds that were told and not read of since, a bit each.
    masked: u8,
    wear: Wear,
}

/// What was seen of flash that wears out, as a host is told once that it has come so far.
#[derive(Debug, Default)]
struct Wear {
    replaced_blocks: u64,
    is_worn_out: bool,
    /// Warnings that held then.
    warnings: u8,
}

impl Events {
    /// Something happened.
    pub(super) fn add(&mut self, event: AsyncEvent) {
        if !self.events.contains(&event) {
            self.events.push_back(event);
        }
    }

    /// A host asks to be told; its permit comes back if it asks too often.
    fn request(&mut self, permit: Permit, queues: &mut Queues) -> Result<(), (Permit, Status)> {
        if self.requests.len() >= REQUESTS_MAX {
            return Err((permit, Status::ASYNC_EVENT_LIMIT_EXCEEDED));
        }
        match queues.set_aside(permit) {
            Ok(request) => self.requests.push_back(request),
            Err(permit) => permit.abandon(),
        }
        Ok(())
    }

    /// The page that explains some events is read.
    pub(super) fn read(&mut self, page: LogId) {
        let kind = match page {
            LogId::Error => 0,
            LogId::Health => 1,
            LogId::FirmwareSlots | LogId::ChangedNamespaces => 2,
            LogId::Sanitize => 6,
            _ => return,
        };
        self.masked &= !(1 << kind);
    }

    /// The next event that somebody is to be told of, if there is room for the completion.
    fn next(&mut self, queues: &mut Queues) -> Option<(AsyncEvent, Permit)> {
        let masked = self.masked;
        let is_told = |event: &AsyncEvent| masked >> event.kind() & 1 == 0;
        let at = self.events.iter().position(is_told)?;
        let permit = self.take_up(0, queues)?;
        let event = self.events.remove(at)?;
        self.masked |= 1 << event.kind();
        Some((event, permit))
    }

    /// Takes a request back, if there is room for its completion.
    fn take(&mut self, command: CommandId, queues: &mut Queues) -> Option<Permit> {
        let is_it = |request: &SetAside| request.command() == command;
        let at = self.requests.iter().position(is_it)?;
        self.take_up(at, queues)
    }

    fn take_up(&mut self, at: usize, queues: &mut Queues) -> Option<Permit> {
        match queues.take_up(self.requests.remove(at)?) {
            Ok(permit) => Some(permit),
            Err(request) => {
                self.requests.insert(at, request);
                None
            }
        }
    }

    /// A reset: nobody asks any more, and nothing has happened.
    pub(super) fn stop(&mut self) {
        self.requests.drain(..).for_each(SetAside::abandon);
        self.events.clear();
        self.masked = 0;
    }
}

impl<M: GuestMemory + Clone> Controller<M> {
    /// Asynchronous Event Request (§5.2).
    pub(super) fn request_event(&mut self, permit: Permit) -> Result<(), (Permit, Status)> {
        self.events.request(permit, &mut self.queues)
    }

    /// Warnings that hold as the host begins to ask for them are told at once (Base 2.0 §5.27.1.8), to one that has reset the
    /// controller, too, as of what happened before it hears nothing. `asked_before`: bits of those it had asked for already.
    pub(super) fn tell_what_holds(&mut self, asked_before: u8) {
        let enabled = self.features.warnings_asked_for() & !asked_before;
        if enabled == 0 {
            return;
        }
        self.tell_of(self.health().critical_warning & enabled);
    }

    /// The events of these warnings.
    fn tell_of(&mut self, warnings: u8) {
        let told = [
            (CriticalWarning::Spare, AsyncEvent::Spare),
            (CriticalWarning::Temperature, AsyncEvent::Temperature),
            (CriticalWarning::Reliability, AsyncEvent::Reliability),
            (CriticalWarning::ReadOnly, AsyncEvent::Reliability),
            (CriticalWarning::Backup, AsyncEvent::Reliability),
            (CriticalWarning::PersistentMemory, AsyncEvent::Reliability),
        ];
        for (warning, event) in told {
            if warnings & warning as u8 != 0 {
                self.events.add(event);
            }
        }
    }

    /// Blocks that failed take the drive's spare as they are erased, and in the end its life: warnings that begin to hold are told
    /// (§5.27.1.8). Not those of fault rules: these tell themselves.
    pub(super) fn look_at_wear(&mut self) {
        let (replaced, is_worn_out) = (self.device.replaced_blocks(), self.device.is_worn_out());
        let seen = &mut self.events.wear;
        if (seen.replaced_blocks, seen.is_worn_out) == (replaced, is_worn_out) {
            return;
        }
        (seen.replaced_blocks, seen.is_worn_out) = (replaced, is_worn_out);
        let wear = self.device.flash_age();
        let holds = self.warnings_of_wear(wear.map_or(100, |wear| wear.spare_percent));
        let begun = holds & !std::mem::replace(&mut self.events.wear.warnings, holds);
        self.tell_of(begun & self.features.warnings_asked_for());
    }

    /// Events that somebody waits for.
    pub(super) fn tell_events(&mut self) {
        while let Some((event, permit)) = self.events.next(&mut self.queues) {
            self.complete(permit, Outcome::with_result(event.result()));
        }
    }

    /// Abort (§5.1): requests for events are, commands that wait before the drive, and those that it has not begun; others
    /// come to their end soon enough, and a request for events for whose completion there is no room goes on. Dword 0 is 1 if
    /// the command was not aborted.
    pub(super) fn abort(&mut self, queue: QueueId, command: CommandId) -> Outcome {
        let event = match queue {
            QueueId::ADMIN => self.events.take(command, &mut self.queues),
            _ => None,
        };
        if let Some(permit) = event.or_else(|| self.kept.take_held(queue, command)) {
            // Before the Abort itself does.
            self.complete(permit, Status::ABORT_REQUESTED.into());
            return Outcome::with_result(0);
        }
        let is_it =
            |permit: &Permit| permit.submission_queue() == queue && permit.command() == command;
        let aborted = self.abort_waiting(is_it);
        Outcome::with_result(u32::from(aborted == 0))
    }
}
