//! Submission queues: commands, from the host.

use super::completion::{CompletionQueue, Permit};
use super::ring::{DoorbellError, Ring, views};
use crate::entry::{SUBMISSION_BYTES, SubmissionEntry};
use crate::ids::QueueId;
use crate::memory::{GuestMemory, MemoryError};
use crate::registers::QueueMemory;

/// How urgent a queue's commands are, under weighted arbitration (QPRIO, §5.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Priority {
    /// Before all others.
    #[default]
    Urgent = 0,
    /// By the high weight.
    High = 1,
    /// By the medium weight.
    Medium = 2,
    /// By the low weight.
    Low = 3,
}

/// What a queue had to give.
#[derive(Debug)]
pub enum Fetch {
    /// A command, and the right and duty to complete it.
    Command(SubmissionEntry, Permit),
    /// No command.
    Empty,
    /// A command whose completion would find no room: when the host has taken completions, try again.
    NoRoom,
}

/// A submission queue.
#[derive(Debug)]
pub struct SubmissionQueue {
    id: QueueId,
    completion_queue: QueueId,
    priority: Priority,
    ring: Ring,
}

impl SubmissionQueue {
    /// An empty queue whose commands complete in `completion_queue`.
    ///
    /// # Panics
    /// If its memory is not as checked when a host asks for it: 2 to 65536 entries, within all addresses.
    #[must_use]
    pub fn new(
        id: QueueId,
        memory: QueueMemory,
        completion_queue: QueueId,
        priority: Priority,
    ) -> Self {
        SubmissionQueue {
            id,
            completion_queue,
            priority,
            ring: Ring::new(memory, SUBMISSION_BYTES),
        }
    }

    /// Its identifier.
    #[must_use]
    pub fn id(&self) -> QueueId {
        self.id
    }

    /// Where its commands complete.
    #[must_use]
    pub fn completion_queue(&self) -> QueueId {
        self.completion_queue
    }

    /// How urgent its commands are.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.priority
    }

    views!(
        "Index of the next command to be fetched: what completions report as SQHD.",
        "Index after the last command the host has told of.",
        "Commands waiting."
    );

    /// The host's doorbell, from the register or from memory. Returns how many commands are new; 0 is what
    /// a host gives that rings for what has been seen in memory before.
    ///
    /// # Errors
    /// If it cannot be; the queue stays as it is.
    pub fn set_tail(&mut self, tail: u32) -> Result<u32, DoorbellError> {
        self.ring.set_tail(tail)
    }

    /// Takes the next command, if there is one and `completions` has room for its end.
    ///
    /// # Errors
    /// If the entry cannot be read; it stays in the queue. The queue is of no more use then.
    ///
    /// # Panics
    /// If `completions` is not the queue this one's commands complete in.
    pub fn fetch(
        &mut self,
        completions: &mut CompletionQueue,
        memory: &impl GuestMemory,
    ) -> Result<Fetch, MemoryError> {
        assert_eq!(completions.id(), self.completion_queue);
        if self.is_empty() {
            return Ok(Fetch::Empty);
        }
        if !completions.has_room() {
            return Ok(Fetch::NoRoom);
        }
        let mut entry = SubmissionEntry([0; SUBMISSION_BYTES]);
        memory.read(self.ring.address(self.ring.head), &mut entry.0)?;
        self.ring.head = self.ring.after(self.ring.head);
        let permit = completions.permit(self.id, entry.command());
        Ok(Fetch::Command(entry, permit))
    }
}
