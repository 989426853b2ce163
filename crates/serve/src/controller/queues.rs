//! Queues: doorbells by register and in memory, fetching, completing, making and deleting.

use super::{Controller, IO_QUEUES_MAX};
use lodger_wire::QueueId;
use lodger_wire::command::{CreateCompletionQueue, CreateSubmissionQueue};
use lodger_wire::entry::{Outcome, SubmissionEntry};
use lodger_wire::event::AsyncEvent;
use lodger_wire::log::ErrorEntry;
use lodger_wire::memory::{GuestMemory, MemoryError};
use lodger_wire::queue::{
    CompletionQueue, Fetch, Permit, Posted, Priority, SetAside, ShadowDoorbells, SubmissionQueue,
};
use lodger_wire::registers::{Doorbell, DoorbellKind, Enable};
use lodger_wire::status::Status;

/// Queues of each kind, the admin queue among them.
const QUEUES: usize = IO_QUEUES_MAX as usize + 1;

/// A submission queue, with what becomes of it.
#[derive(Debug)]
struct Submission {
    queue: SubmissionQueue,
    /// Its shadow doorbell as it was seen last, even if its value cannot be.
    shadow: u32,
    /// Commands fetched and not complete.
    under_way: u32,
    /// The command that deletes it, until those under way are complete.
    deletion: Option<Permit>,
}

/// A completion queue.
#[derive(Debug)]
struct Completion {
    queue: CompletionQueue,
    shadow: u32,
}

/// All queues.
#[derive(Debug)]
pub(super) struct Queues {
    submissions: [Option<Submission>; QUEUES],
    completions: [Option<Completion>; QUEUES],
    /// No queue of the host's has had this number or a higher one.
    end: usize,
    shadows: Option<ShadowDoorbells>,
    epoch: u32,
    /// Some queue waits for its commands, to be deleted.
    deletes: bool,
}

fn index(queue: QueueId) -> usize {
    usize::from(queue.0)
}

/// A vector among all, of which a controller has no more than 64.
pub(super) fn bit(vector: u16) -> u64 {
    1_u64.checked_shl(vector.into()).unwrap_or(0)
}

/// What a queue's shadow doorbell says; what cannot be read says what it said before.
fn shadow_of(
    shadows: Option<ShadowDoorbells>,
    doorbell: (QueueId, DoorbellKind),
    memory: &impl GuestMemory,
    before: u32,
) -> u32 {
    let load = |shadows: ShadowDoorbells| shadows.load(doorbell.0, doorbell.1, memory);
    match shadows.filter(|_| doorbell.0 != QueueId::ADMIN).map(load) {
        Some(Ok(Some(value))) => value,
        _ => before,
    }
}

impl Queues {
    pub(super) fn new() -> Self {
        Queues {
            submissions: [const { None }; QUEUES],
            completions: [const { None }; QUEUES],
            end: 1,
            shadows: None,
            epoch: 0,
            deletes: false,
        }
    }

    /// The admin queues, as the controller is enabled.
    pub(super) fn start(&mut self, enable: &Enable) {
        let admin = QueueId::ADMIN;
        self.epoch = self.epoch.wrapping_add(1);
        let (memory, urgent) = (enable.admin_submission, Priority::Urgent);
        self.submissions[0] = Some(Submission {
            queue: SubmissionQueue::new(admin, memory, admin, urgent),
            shadow: 0,
            under_way: 0,
            deletion: None,
        });
        self.completions[0] = Some(Completion {
            queue: CompletionQueue::new(admin, enable.admin_completion, Some(0), self.epoch),
            shadow: 0,
        });
    }

    /// All queues are gone.
    pub(super) fn stop(&mut self) {
        for submission in self.submissions.iter_mut().filter_map(Option::take) {
            if let Some(permit) = submission.deletion {
                permit.abandon();
            }
        }
        self.completions.fill_with(|| None);
        self.end = 1;
        self.shadows = None;
        self.deletes = false;
    }

    /// A doorbell by register; what is wrong with it, if anything is.
    pub(super) fn ring(&mut self, doorbell: Doorbell) -> Option<AsyncEvent> {
        let Doorbell { queue, kind, value } = doorbell;
        let place = |shadows: &ShadowDoorbells| shadows.offset(queue, kind).is_some();
        let in_memory = queue != QueueId::ADMIN && self.shadows.as_ref().is_some_and(place);
        if in_memory {
            // The register only wakes the controller: what stands in memory may be newer already.
            return None;
        }
        self.set(queue, kind, value.into())
    }

    fn set(&mut self, queue: QueueId, kind: DoorbellKind, value: u32) -> Option<AsyncEvent> {
        let at = index(queue);
        let set = match kind {
            DoorbellKind::SubmissionTail => {
                let place = self.submissions.get_mut(at).and_then(Option::as_mut);
                place.map(|submission| submission.queue.set_tail(value))
            }
            DoorbellKind::CompletionHead => {
                let place = self.completions.get_mut(at).and_then(Option::as_mut);
                place.map(|completion| completion.queue.set_head(value))
            }
        };
        match set {
            None => Some(AsyncEvent::InvalidDoorbell),
            Some(Err(error)) => Some(error.into()),
            Some(Ok(_)) => None,
        }
    }

    fn head(&self, queue: QueueId) -> u16 {
        let place = self.submissions.get(index(queue)).and_then(Option::as_ref);
        place.map_or(0, |submission| submission.queue.head())
    }

    /// Where the host has come to in a submission queue.
    fn tail(&self, queue: QueueId) -> u16 {
        let place = self.submissions.get(index(queue)).and_then(Option::as_ref);
        place.map_or(0, |submission| submission.queue.tail())
    }

    /// Where the host has come to in a completion queue.
    fn taken(&self, queue: QueueId) -> u16 {
        let place = self.completions.get(index(queue)).and_then(Option::as_ref);
        place.map_or(0, |completion| completion.queue.head())
    }

    /// What a command of a queue that was aborted ends with.
    pub(super) fn aborted(&self, queue: QueueId) -> Status {
        let place = self.submissions.get(index(queue)).and_then(Option::as_ref);
        match place.is_some_and(|submission| submission.deletion.is_some()) {
            true => Status::ABORTED_QUEUE_DELETED,
            false => Status::ABORT_REQUESTED,
        }
    }

    /// An admin command holds no room for its completion until it has something to say.
    pub(super) fn set_aside(&mut self, permit: Permit) -> Result<SetAside, Permit> {
        match &mut self.completions[0] {
            Some(admin) => Ok(admin.queue.set_aside(permit)),
            None => Err(permit),
        }
    }

    /// It has something to say; it comes back if there is no room now.
    pub(super) fn take_up(&mut self, command: SetAside) -> Result<Permit, SetAside> {
        match &mut self.completions[0] {
            Some(admin) => admin.queue.take_up(command),
            None => Err(command),
        }
    }

    /// Whether there is any I/O queue.
    pub(super) fn has_io_queues(&self) -> bool {
        self.submissions[1..].iter().any(Option::is_some)
            || self.completions[1..].iter().any(Option::is_some)
    }

    /// Whether some I/O queue has commands.
    pub(super) fn has_io_commands(&self) -> bool {
        let mut queues = self.submissions[1..self.end].iter().flatten();
        queues.any(|submission| submission.deletion.is_none() && !submission.queue.is_empty())
    }

    /// Whether a command of some I/O queue is not complete, be it that it was not fetched yet (Controller Busy Time, Base 2.0
    /// §5.16.1.3).
    pub(super) fn are_busy(&self) -> bool {
        let mut queues = self.submissions[1..self.end].iter().flatten();
        queues.any(|submission| submission.under_way > 0) || self.has_io_commands()
    }

    /// Takes the next command of a queue.
    fn fetch(&mut self, at: usize, memory: &impl GuestMemory) -> Result<Fetch, MemoryError> {
        let Some(submission) = &mut self.submissions[at] else {
            return Ok(Fetch::Empty);
        };
        let completions = index(submission.queue.completion_queue());
        let Some(completion) = &mut self.completions[completions] else {
            return Ok(Fetch::Empty);
        };
        if submission.deletion.is_some() {
            return Ok(Fetch::Empty);
        }
        let fetched = submission.queue.fetch(&mut completion.queue, memory)?;
        submission.under_way += u32::from(matches!(fetched, Fetch::Command(..)));
        Ok(fetched)
    }

    /// Shadow doorbells are here from now on.
    pub(super) fn set_shadows(&mut self, shadows: ShadowDoorbells, memory: &impl GuestMemory) {
        self.shadows = Some(shadows);
        let shadows = self.shadows;
        // What stands there is not a doorbell rung, but where the host begins to count.
        for submission in self.submissions.iter_mut().flatten() {
            let doorbell = (submission.queue.id(), DoorbellKind::SubmissionTail);
            let tail = u32::from(submission.queue.tail());
            submission.shadow = shadow_of(shadows, doorbell, memory, tail);
        }
        for completion in self.completions.iter_mut().flatten() {
            let doorbell = (completion.queue.id(), DoorbellKind::CompletionHead);
            let head = u32::from(completion.queue.head());
            completion.shadow = shadow_of(shadows, doorbell, memory, head);
        }
    }

    /// Vectors of queues with at least so many completions that the host has not taken.
    fn vectors_with(&self, least: u32) -> u64 {
        let completions = self.completions[..self.end].iter().flatten();
        let crowded = completions.filter(|completion| completion.queue.len() >= least);
        let vectors = crowded.filter_map(|completion| completion.queue.vector());
        vectors.fold(0, |all, vector| all | bit(vector))
    }

    /// What shadow doorbells say that is new.
    fn look(&mut self, memory: &impl GuestMemory, mut wrong: impl FnMut(AsyncEvent)) {
        let Some(shadows) = self.shadows else {
            return;
        };
        for at in 1..self.end {
            let queue = QueueId(at as u16);
            let tail = DoorbellKind::SubmissionTail;
            if let Some(submission) = &mut self.submissions[at] {
                let was = submission.shadow;
                let now = shadow_of(Some(shadows), (queue, tail), memory, was);
                submission.shadow = now;
                if now != was {
                    self.set(queue, tail, now).into_iter().for_each(&mut wrong);
                    let index = self.tail(queue);
                    // A page that is gone is the host's loss.
                    let _ = shadows.stay_awake(queue, tail, index, memory);
                }
            }
            let head = DoorbellKind::CompletionHead;
            if let Some(completion) = &mut self.completions[at] {
                let was = completion.shadow;
                let now = shadow_of(Some(shadows), (queue, head), memory, was);
                completion.shadow = now;
                if now != was {
                    self.set(queue, head, now).into_iter().for_each(&mut wrong);
                    let index = self.taken(queue);
                    let _ = shadows.stay_awake(queue, head, index, memory);
                }
            }
        }
    }

    /// Asks the host to ring the register from now on; whether it has not rung in memory meanwhile.
    fn may_sleep(&self, memory: &impl GuestMemory) -> bool {
        let Some(shadows) = self.shadows else {
            return true;
        };
        let mut may = true;
        for submission in self.submissions[1..self.end].iter().flatten() {
            let queue = submission.queue.id();
            let seen = (submission.queue.tail(), submission.shadow);
            let tail = DoorbellKind::SubmissionTail;
            may &= !matches!(shadows.sleep(queue, tail, seen, memory), Ok(Some(_)));
            // Without room for completions, the next command is waited for in vain.
            let completions = index(submission.queue.completion_queue());
            if !submission.queue.is_empty()
                && let Some(completion) = &self.completions[completions]
            {
                let queue = completion.queue.id();
                let seen = (completion.queue.head(), completion.shadow);
                let head = DoorbellKind::CompletionHead;
                may &= !matches!(shadows.sleep(queue, head, seen, memory), Ok(Some(_)));
            }
        }
        may
    }
}

impl<M: GuestMemory + Clone> Controller<M> {
    /// Doorbells in memory.
    pub(super) fn look_at_shadows(&mut self) {
        let mut wrong = Vec::new();
        self.queues.look(&self.memory, |event| wrong.push(event));
        wrong
            .into_iter()
            .for_each(|event| self.doorbell_is_wrong(event));
    }

    /// A doorbell was written as it must not be: the host is told, and the error log has it (Base 2.0 §5.2.1), of no queue and
    /// no command (§5.16.1.2).
    pub(super) fn doorbell_is_wrong(&mut self, event: AsyncEvent) {
        let status = match event {
            AsyncEvent::InvalidDoorbell => Status::QUEUE_ID_INVALID,
            _ => Status::INVALID_FIELD,
        };
        self.errors.add(ErrorEntry::of_no_command(status));
        self.events.add(event);
    }

    /// Whether nothing is lost if the controller is not polled before a register is written, or
    /// [`Controller::next_time_ps`] has come. Hosts with shadow doorbells are then asked to ring.
    #[must_use]
    pub fn may_sleep(&self) -> bool {
        self.is_cut_off() || self.plight.is_stalled || self.queues.may_sleep(&self.memory)
    }

    /// Vectors of queues with at least so many completions that the host has not taken, a bit for each.
    #[must_use]
    pub fn vectors_with(&self, least: u32) -> u64 {
        self.queues.vectors_with(least)
    }

    /// Takes all commands there are.
    pub(super) fn serve_queues(&mut self) {
        let is_awake = self.is_awake();
        for at in 0..if is_awake { self.queues.end } else { 1 } {
            // A rule may stop all of it in the middle.
            while !self.plight.is_stalled {
                match self.queues.fetch(at, &self.memory) {
                    Ok(Fetch::Command(entry, permit)) => self.serve(&entry, permit),
                    Ok(Fetch::Empty | Fetch::NoRoom) => break,
                    Err(_) => {
                        self.registers.fail();
                        return;
                    }
                }
            }
        }
    }

    fn serve(&mut self, entry: &SubmissionEntry, permit: Permit) {
        let is_io = permit.submission_queue() != QueueId::ADMIN;
        self.statistics.commands += u64::from(is_io);
        if let Some(permit) = self.fault(entry, permit) {
            self.dispatch(entry, permit);
        }
    }

    pub(super) fn dispatch(&mut self, entry: &SubmissionEntry, permit: Permit) {
        if permit.submission_queue() == QueueId::ADMIN {
            self.admin(entry, permit);
        } else {
            self.io(entry, permit);
        }
    }

    /// A command has failed, or could not be: the error log has it, and the host.
    pub(super) fn refuse(&mut self, entry: &SubmissionEntry, permit: Permit, status: Status) {
        let queue = permit.submission_queue();
        self.errors.add(ErrorEntry {
            lba: self.failed_at(entry, queue, status),
            ..ErrorEntry::of(entry, queue, status)
        });
        self.complete(permit, status.with_more().into());
    }

    /// Completes a command.
    pub(super) fn complete(&mut self, permit: Permit, outcome: Outcome) {
        let outcome = self.changed(&permit, outcome);
        let submission = permit.submission_queue();
        let head = self.queues.head(submission);
        let completions = index(permit.completion_queue());
        let Some(Some(completion)) = self.queues.completions.get_mut(completions) else {
            permit.abandon();
            return;
        };
        let vector = completion.queue.vector();
        match completion
            .queue
            .complete(permit, outcome, head, &self.memory)
        {
            Ok(Posted::Entry) => {
                self.statistics.completions += 1;
                self.interrupts |= vector.map_or(0, bit);
            }
            Ok(Posted::QueueGone) => return,
            // What ends as the drive is shut down without it is heard of by nobody.
            Err(_) if !self.may_access_host => {}
            Err(_) => self.registers.fail(),
        }
        if let Some(Some(submission)) = self.queues.submissions.get_mut(index(submission)) {
            submission.under_way = submission.under_way.saturating_sub(1);
        }
    }

    pub(super) fn create_completion_queue(
        &mut self,
        create: &CreateCompletionQueue,
    ) -> Result<(), Status> {
        let memory = create.checked(&self.queue_limits())?;
        let queues = &mut self.queues;
        let place = &mut queues.completions[index(create.queue)];
        if place.is_some() {
            return Err(Status::QUEUE_ID_INVALID);
        }
        queues.epoch = queues.epoch.wrapping_add(1);
        queues.end = queues.end.max(index(create.queue) + 1);
        let doorbell = (create.queue, DoorbellKind::CompletionHead);
        *place = Some(Completion {
            queue: CompletionQueue::new(create.queue, memory, create.vector, queues.epoch),
            shadow: shadow_of(queues.shadows, doorbell, &self.memory, 0),
        });
        Ok(())
    }

    pub(super) fn create_submission_queue(
        &mut self,
        create: &CreateSubmissionQueue,
    ) -> Result<(), Status> {
        let memory = create.checked(&self.queue_limits())?;
        let queues = &mut self.queues;
        let (id, completions) = (create.queue, create.completion_queue);
        if queues.submissions[index(id)].is_some() {
            return Err(Status::QUEUE_ID_INVALID);
        }
        if queues.completions[index(completions)].is_none() {
            return Err(Status::COMPLETION_QUEUE_INVALID);
        }
        let doorbell = (id, DoorbellKind::SubmissionTail);
        queues.end = queues.end.max(index(id) + 1);
        queues.submissions[index(id)] = Some(Submission {
            queue: SubmissionQueue::new(id, memory, completions, create.priority),
            shadow: shadow_of(queues.shadows, doorbell, &self.memory, 0),
            under_way: 0,
            deletion: None,
        });
        Ok(())
    }

    /// Deletes a queue, once its commands under way are complete: `permit` is used up then. Those that the drive has
    /// not begun are aborted, those that were not fetched are gone.
    ///
    /// # Errors
    /// The permit, and why not.
    pub(super) fn delete_submission_queue(
        &mut self,
        queue: QueueId,
        permit: Permit,
    ) -> Result<(), (Permit, Status)> {
        let place = self.queues.submissions.get_mut(index(queue));
        match place.and_then(Option::as_mut) {
            Some(submission) if queue != QueueId::ADMIN && submission.deletion.is_none() => {
                submission.deletion = Some(permit);
                self.queues.deletes = true;
                self.abort_waiting(|permit| permit.submission_queue() == queue);
                self.end_deletions();
                Ok(())
            }
            _ => Err((permit, Status::QUEUE_ID_INVALID)),
        }
    }

    /// Queues whose last command is complete are gone.
    pub(super) fn end_deletions(&mut self) {
        if !self.queues.deletes {
            return;
        }
        self.queues.deletes = false;
        for at in 1..self.queues.end {
            let place = &mut self.queues.submissions[at];
            let Some(submission) = place else { continue };
            match submission.deletion.take() {
                Some(permit) if submission.under_way == 0 => {
                    *place = None;
                    self.complete(permit, Outcome::SUCCESS);
                }
                waiting => {
                    self.queues.deletes |= waiting.is_some();
                    submission.deletion = waiting;
                }
            }
        }
    }

    pub(super) fn delete_completion_queue(&mut self, queue: QueueId) -> Result<(), Status> {
        let mut users = self.queues.submissions.iter().flatten();
        if users.any(|submission| submission.queue.completion_queue() == queue) {
            let is_admin = queue == QueueId::ADMIN;
            return Err(if is_admin {
                Status::QUEUE_ID_INVALID
            } else {
                Status::QUEUE_DELETION_INVALID
            });
        }
        let place = self.queues.completions.get_mut(index(queue));
        let gone = place.and_then(Option::take);
        gone.map(drop).ok_or(Status::QUEUE_ID_INVALID)
    }
}
