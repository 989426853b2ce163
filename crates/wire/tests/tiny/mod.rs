//! A small controller that stands on this crate alone: one namespace in memory, I/O queues, shadow doorbells, host
//! memory. It answers at once. Tests drive it as a host would, and the fuzzer as no host should.

mod admin;
mod io;

use lodger_wire::entry::{Outcome, SubmissionEntry};
use lodger_wire::event::AsyncEvent;
use lodger_wire::hmb::{HmbFeature, HmbLimits, HostRange};
use lodger_wire::memory::{MemoryError, Ram};
use lodger_wire::queue::{
    CompletionQueue, Fetch, Permit, Posted, Priority, ShadowDoorbells, SubmissionQueue,
};
use lodger_wire::registers::{Capabilities, Doorbell, DoorbellKind, Effect, Enable, Registers};
use lodger_wire::status::Status;
use lodger_wire::{PageSize, QueueId};

/// I/O queues of each kind, and the highest identifier.
pub const QUEUES: u16 = 4;
/// Blocks of the namespace, of 512 bytes.
pub const BLOCKS: usize = 256;
/// Most data of a command: 2 to its power, pages.
pub const MDTS: u8 = 5;
/// What it asks for.
pub const LIMITS: HmbLimits = HmbLimits {
    preferred_4kib: 64,
    min_4kib: 4,
    descriptor_min_4kib: 0,
    descriptors_max: 16,
    restrictable: false,
};

pub struct Tiny {
    pub registers: Registers,
    pub memory: Ram,
    pub host_ranges: Vec<HostRange>,
    /// Interrupts since the last look, a bit for each vector.
    pub interrupts: u32,
    submissions: [Option<SubmissionQueue>; QUEUES as usize + 1],
    completions: [Option<CompletionQueue>; QUEUES as usize + 1],
    shadows: Option<ShadowDoorbells>,
    hmb: HmbFeature,
    page: PageSize,
    epoch: u32,
    blocks: Vec<u8>,
    /// Event requests that wait.
    requests: Vec<Permit>,
    events: Vec<AsyncEvent>,
}

/// What a command comes to.
enum End {
    Now(Outcome),
    /// When there is an event.
    Later,
}

impl Tiny {
    pub fn new(memory_bytes: usize) -> Self {
        Tiny {
            registers: Registers::new(Capabilities::default()),
            memory: Ram::new(memory_bytes),
            host_ranges: Vec::new(),
            interrupts: 0,
            submissions: Default::default(),
            completions: Default::default(),
            shadows: None,
            hmb: HmbFeature::default(),
            page: PageSize::MIN,
            epoch: 0,
            blocks: vec![0; BLOCKS * 512],
            requests: Vec::new(),
            events: Vec::new(),
        }
    }

    /// A write to the registers, and all that follows from it.
    pub fn write(&mut self, at: u64, bytes: &[u8]) -> Effect {
        let effect = self.registers.write(at, bytes);
        self.follow(effect);
        effect
    }

    fn follow(&mut self, effect: Effect) {
        match effect {
            Effect::Enable(enable) => self.start(enable),
            Effect::Disable | Effect::SubsystemReset => {
                self.stop();
                let after = self.registers.reset_done();
                self.follow(after);
            }
            Effect::Shutdown(_) => self.registers.shutdown_done(),
            Effect::Doorbell(doorbell) => {
                self.ring(doorbell);
                self.serve();
            }
            _ => {}
        }
    }

    fn start(&mut self, enable: Enable) {
        self.page = enable.page;
        self.epoch += 1;
        let admin = QueueId::ADMIN;
        let submission =
            SubmissionQueue::new(admin, enable.admin_submission, admin, Priority::Urgent);
        let completion = CompletionQueue::new(admin, enable.admin_completion, Some(0), self.epoch);
        (self.submissions[0], self.completions[0]) = (Some(submission), Some(completion));
        self.registers.ready();
    }

    /// All that a reset takes away: queues, shadow doorbells, host memory (Base 2.0 §3.7.2).
    fn stop(&mut self) {
        self.submissions = Default::default();
        self.completions = Default::default();
        self.shadows = None;
        self.hmb.reset();
        self.host_ranges.clear();
        self.requests.drain(..).for_each(Permit::abandon);
        self.events.clear();
    }

    fn ring(&mut self, doorbell: Doorbell) {
        let index = usize::from(doorbell.queue.0);
        let value = u32::from(doorbell.value);
        let submission = self.submissions.get_mut(index).and_then(Option::as_mut);
        let completion = self.completions.get_mut(index).and_then(Option::as_mut);
        let set = match doorbell.kind {
            DoorbellKind::SubmissionTail => submission.map(|queue| queue.set_tail(value)),
            DoorbellKind::CompletionHead => completion.map(|queue| queue.set_head(value)),
        };
        match set {
            None => self.events.push(AsyncEvent::InvalidDoorbell),
            Some(Err(error)) => self.events.push(error.into()),
            Some(Ok(_)) => {}
        }
    }

    /// Looks at doorbells in memory, then serves what there is.
    pub fn poll(&mut self) {
        for index in 1..self.submissions.len() {
            let queue = QueueId(index as u16);
            for kind in [DoorbellKind::SubmissionTail, DoorbellKind::CompletionHead] {
                let Some(shadows) = self.shadows else { return };
                let Ok(Some(value)) = shadows.load(queue, kind, &self.memory) else {
                    continue;
                };
                let exists = self.submissions[index].is_some() && self.completions[index].is_some();
                if let (true, Ok(value)) = (exists, u16::try_from(value)) {
                    let doorbell = Doorbell { queue, kind, value };
                    self.ring(doorbell);
                    let _ = shadows.stay_awake(queue, kind, value, &self.memory);
                }
            }
        }
        self.serve();
    }

    fn serve(&mut self) {
        for index in 0..self.submissions.len() {
            if self.drain(index).is_err() {
                self.registers.fail();
            }
        }
        while !self.events.is_empty() && !self.requests.is_empty() {
            let (event, permit) = (self.events.remove(0), self.requests.remove(0));
            if self
                .complete(permit, Outcome::with_result(event.result()))
                .is_err()
            {
                self.registers.fail();
            }
        }
    }

    /// Serves one queue until it is empty, or its completion queue full.
    fn drain(&mut self, index: usize) -> Result<(), MemoryError> {
        loop {
            let Some(submission) = &mut self.submissions[index] else {
                return Ok(());
            };
            let completions = usize::from(submission.completion_queue().0);
            let completion = self.completions[completions]
                .as_mut()
                .expect("it was there");
            let Fetch::Command(entry, permit) = submission.fetch(completion, &self.memory)? else {
                return Ok(());
            };
            let end = if index == 0 {
                self.admin(&entry)
            } else {
                self.io(&entry).map(End::Now)
            };
            match end {
                Ok(End::Later) if self.requests.len() < 4 => self.requests.push(permit),
                Ok(End::Later) => {
                    self.complete(permit, Status::ASYNC_EVENT_LIMIT_EXCEEDED.into())?
                }
                Ok(End::Now(outcome)) => self.complete(permit, outcome)?,
                Err(status) => self.complete(permit, status.into())?,
            }
        }
    }

    fn complete(&mut self, permit: Permit, outcome: Outcome) -> Result<(), MemoryError> {
        let head = |index: QueueId| {
            let queue = self.submissions[usize::from(index.0)].as_ref();
            queue.map_or(0, SubmissionQueue::head)
        };
        let head = head(permit.submission_queue());
        let index = usize::from(permit.completion_queue().0);
        let Some(queue) = &mut self.completions[index] else {
            permit.abandon();
            return Ok(());
        };
        let posted = queue.complete(permit, outcome, head, &self.memory)?;
        if let (Posted::Entry, Some(vector)) = (posted, queue.vector()) {
            self.interrupts |= 1 << vector;
        }
        Ok(())
    }

    fn admin(&mut self, entry: &SubmissionEntry) -> Result<End, Status> {
        admin::serve(self, entry)
    }

    fn io(&mut self, entry: &SubmissionEntry) -> Result<Outcome, Status> {
        io::serve(self, entry)
    }
}

/// With the controller, its queues are gone.
impl Drop for Tiny {
    fn drop(&mut self) {
        self.stop();
    }
}
