//! Commands that a user's rules do something to.

use super::Controller;
use crate::faults::{Fault, Faults, Situation};
use lodger_core::rng::Rng;
use lodger_wire::command::{AdminCommand, IoCommand};
use lodger_wire::entry::{Outcome, SubmissionEntry};
use lodger_wire::memory::GuestMemory;
use lodger_wire::queue::Permit;
use lodger_wire::status::Status;
use lodger_wire::{CommandId, QueueId};
use std::collections::VecDeque;

/// What becomes of a command's answer.
#[derive(Debug)]
enum Change {
    /// Dword 0.
    Result(u32),
    /// Bytes of its data, by address in the host's memory.
    Data(Vec<(u64, Vec<u8>)>),
}

/// A command whose answer is changed.
#[derive(Debug)]
struct Changed {
    queue: QueueId,
    command: CommandId,
    change: Change,
}

/// Rules, and commands that they keep.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) rules: Faults,
    /// With when they go on, earliest first.
    held: VecDeque<(u64, SubmissionEntry, Permit)>,
    dropped: Vec<Permit>,
    changed: Vec<Changed>,
    /// What acts draw.
    pub(super) rng: Rng,
}

impl Kept {
    pub(super) fn new(seed: u64) -> Self {
        Kept {
            rules: Faults::seeded(seed),
            held: VecDeque::new(),
            dropped: Vec::new(),
            changed: Vec::new(),
            rng: Rng::new(seed),
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.rules.count()
    }

    pub(super) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    pub(super) fn next_time_ps(&self) -> Option<u64> {
        self.held.front().map(|(at_ps, ..)| *at_ps)
    }

    /// A command goes on at that time.
    fn hold(&mut self, at_ps: u64, entry: &SubmissionEntry, permit: Permit) {
        let place = self
            .held
            .partition_point(|(other_ps, ..)| *other_ps <= at_ps);
        self.held.insert(place, (at_ps, *entry, permit));
    }

    /// A command that waits, if it does, goes on no more.
    pub(super) fn take_held(&mut self, queue: QueueId, command: CommandId) -> Option<Permit> {
        let is_it = |(.., permit): &(u64, SubmissionEntry, Permit)| {
            permit.submission_queue() == queue && permit.command() == command
        };
        let at = self.held.iter().position(is_it)?;
        self.held.remove(at).map(|(.., permit)| permit)
    }

    /// A reset: their queues are gone.
    pub(super) fn stop(&mut self) {
        self.changed.clear();
        self.dropped.drain(..).for_each(Permit::abandon);
        let held = self.held.drain(..);
        held.for_each(|(.., permit)| permit.abandon());
    }

    fn take_changed(&mut self, permit: &Permit) -> Option<Change> {
        let is_it = |changed: &Changed| {
            changed.queue == permit.submission_queue() && changed.command == permit.command()
        };
        let at = self.changed.iter().position(is_it)?;
        Some(self.changed.swap_remove(at).change)
    }
}

impl<M: GuestMemory + Clone> Controller<M> {
    /// From now on commands, and the drive, fare by these rules.
    pub fn set_faults(&mut self, faults: Faults) {
        self.kept.rules = faults;
    }

    /// The rules.
    #[must_use]
    pub fn faults(&self) -> &Faults {
        &self.kept.rules
    }

    /// The rules, to be changed.
    pub fn faults_mut(&mut self) -> &mut Faults {
        &mut self.kept.rules
    }

    /// How things stand, for rules.
    pub(super) fn situation(&self, now_ps: u64) -> Situation {
        let memory = &self.device.host_memory.memory;
        Situation {
            now_ps,
            written_bytes: self.statistics.written_bytes,
            depth: self.device.in_flight() as u64,
            granted_bytes: memory.bytes(),
            pieces: memory.piece_count() as u64,
        }
    }

    /// A command is fetched: what the rules say is done. It comes back if it is to enter the drive now.
    pub(super) fn fault(&mut self, entry: &SubmissionEntry, permit: Permit) -> Option<Permit> {
        let now_ps = self.device.now_ps();
        let mut fault = None;
        if !self.kept.rules.is_empty() {
            let (now, mut due) = (self.situation(now_ps), Vec::new());
            let rules = &mut self.kept.rules;
            fault = rules.decide(entry, permit.submission_queue(), &now, &mut due);
            if !due.is_empty() {
                let resets = self.statistics.resets;
                self.plan(now_ps, due);
                self.act_on_due(now_ps);
                if self.statistics.resets != resets {
                    // Its queue is gone, by what it has set off.
                    permit.abandon();
                    return None;
                }
            }
        }
        let permit = match fault {
            None => permit,
            Some(fault) => self.fare(&fault, entry, permit)?,
        };
        let at_ps = self.plight.entry_ps(permit.submission_queue(), now_ps);
        if at_ps > now_ps || self.plight.is_stalled {
            self.kept.hold(at_ps, entry, permit);
            return None;
        }
        Some(permit)
    }

    /// Does a fault to a command, which comes back if it is to be done all the same.
    fn fare(&mut self, fault: &Fault, entry: &SubmissionEntry, permit: Permit) -> Option<Permit> {
        let now_ps = self.device.now_ps();
        match fault {
            Fault::Fail(status) => self.refuse(entry, permit, *status),
            Fault::Drop => self.kept.dropped.push(permit),
            Fault::Delay(delay_ps) => {
                let at_ps = now_ps.saturating_add(*delay_ps);
                self.kept.hold(at_ps, entry, permit);
            }
            Fault::Pretend(result) => self.complete(permit, Outcome::with_result(*result)),
            Fault::Answer(result) => return Some(self.change(permit, Change::Result(*result))),
            Fault::Change(at, bytes) => {
                let pieces = self.places(entry, &permit, *at, bytes.len() as u64);
                let data = pieces.unwrap_or_default().into_iter();
                let data = data.map(|(address, start, length)| {
                    (address, bytes[start..start + length].to_vec())
                });
                let change = Change::Data(data.collect());
                return Some(self.change(permit, change));
            }
            Fault::Stale(first, last) => {
                let pieces = self.places(entry, &permit, *first, last - first + 1);
                let data = pieces.unwrap_or_default().into_iter();
                let data = data.filter_map(|(address, _, length)| {
                    let mut bytes = vec![0; length];
                    let read = self.memory.read(address, &mut bytes);
                    read.ok().map(|()| (address, bytes))
                });
                let change = Change::Data(data.collect());
                return Some(self.change(permit, change));
            }
        }
        None
    }

    fn change(&mut self, permit: Permit, change: Change) -> Permit {
        let (queue, command) = (permit.submission_queue(), permit.command());
        self.kept.changed.push(Changed {
            queue,
            command,
            change,
        });
        permit
    }

    /// Where bytes of a command's data for the host lie: address, which of them is the first there, how many.
    fn places(
        &self,
        entry: &SubmissionEntry,
        permit: &Permit,
        first: u64,
        length: u64,
    ) -> Result<Vec<(u64, usize, usize)>, Status> {
        let (pointer, all) = match permit.submission_queue() {
            QueueId::ADMIN => {
                let parsed = AdminCommand::parse(entry)?;
                (parsed.data, parsed.command.transfer().bytes)
            }
            _ => {
                let parsed = IoCommand::parse(entry)?;
                let block = self.identity.namespaces.get(parsed.namespace)?.block;
                (parsed.data, parsed.command.transfer(block).bytes)
            }
        };
        let (mut places, mut start) = (Vec::new(), 0);
        let end = first + length;
        for region in pointer.regions(&self.memory, self.page, all, true) {
            let region = region?;
            let (from, to) = (first.max(start), end.min(start + region.bytes));
            if let (Some(address), true) = (region.address, from < to) {
                let place = address + (from - start);
                places.push((place, (from - first) as usize, (to - from) as usize));
            }
            start += region.bytes;
            if start >= end {
                break;
            }
        }
        Ok(places)
    }

    /// A command is about to complete: its answer becomes what a rule says.
    pub(super) fn changed(&mut self, permit: &Permit, outcome: Outcome) -> Outcome {
        if self.kept.changed.is_empty() {
            return outcome;
        }
        match self.kept.take_changed(permit) {
            Some(_) if !outcome.status.is_success() => outcome,
            Some(Change::Result(result)) => Outcome::with_result(result),
            Some(Change::Data(pieces)) => {
                for (address, bytes) in pieces {
                    // Memory that is gone holds nothing that could be wrong.
                    let _ = self.memory.write(address, &bytes);
                }
                outcome
            }
            None => outcome,
        }
    }

    /// Commands that were held up until then go on.
    pub(super) fn go_on_with_held(&mut self, until_ps: u64) {
        let is_due = |at_ps| at_ps <= until_ps;
        while self.kept.next_time_ps().is_some_and(is_due) {
            if let Some((_, entry, permit)) = self.kept.held.pop_front() {
                self.dispatch(&entry, permit);
            }
        }
    }
}
