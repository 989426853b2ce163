//! Completion queues: how commands ended, to the host.

use super::ring::{DoorbellError, Ring, views};
use crate::entry::{COMPLETION_BYTES, CompletionEntry, Outcome};
use crate::ids::{CommandId, QueueId};
use crate::memory::{GuestMemory, MemoryError};
use crate::registers::QueueMemory;

/// The right and the duty to complete one command: room for it is kept in its completion queue.
#[derive(Debug)]
#[must_use = "a command that was fetched must be completed, or abandoned with its queue"]
pub struct Permit {
    completion_queue: QueueId,
    epoch: u32,
    submission_queue: QueueId,
    command: CommandId,
}

impl Permit {
    /// The command it is for.
    #[must_use]
    pub fn command(&self) -> CommandId {
        self.command
    }

    /// The queue the command came by.
    #[must_use]
    pub fn submission_queue(&self) -> QueueId {
        self.submission_queue
    }

    /// The queue it completes in.
    #[must_use]
    pub fn completion_queue(&self) -> QueueId {
        self.completion_queue
    }

    /// Gives the command up without a completion: after a reset, when all queues are gone.
    pub fn abandon(self) {
        std::mem::forget(self);
    }
}

impl Drop for Permit {
    /// A permit that is neither completed nor abandoned is a command the host waits for in vain.
    fn drop(&mut self) {
        debug_assert!(
            std::thread::panicking(),
            "command {} of queue {} was dropped without completion",
            self.command,
            self.submission_queue
        );
    }
}

/// A command that may wait for ever, and holds no room in its completion queue meanwhile: see
/// [`CompletionQueue::set_aside`].
#[derive(Debug)]
#[must_use = "a command that was fetched must be completed, or abandoned with its queue"]
pub struct SetAside(Permit);

impl SetAside {
    /// The command it is for.
    #[must_use]
    pub fn command(&self) -> CommandId {
        self.0.command
    }

    /// As [`Permit::abandon`].
    pub fn abandon(self) {
        self.0.abandon();
    }
}

/// What became of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Posted {
    /// It is in the queue: interrupt, if the queue has a vector.
    Entry,
    /// Its queue was deleted, or reset, since the command was fetched: there is no one to tell.
    QueueGone,
}

/// A completion queue.
#[derive(Debug)]
pub struct CompletionQueue {
    id: QueueId,
    epoch: u32,
    vector: Option<u16>,
    ring: Ring,
    /// Completions promised to commands under way.
    reserved: u32,
    /// The phase tag of the pass under way; the memory's is the opposite at first, 0.
    phase: bool,
}

impl CompletionQueue {
    /// An empty queue, in memory that the host has cleared. `vector` is the interrupt's, if it is to
    /// interrupt. `epoch` tells queues apart that have the same identifier one after the other: give each
    /// new queue another number.
    ///
    /// # Panics
    /// If its memory is not as checked when a host asks for it: 2 to 65536 entries, within all addresses.
    #[must_use]
    pub fn new(id: QueueId, memory: QueueMemory, vector: Option<u16>, epoch: u32) -> Self {
        CompletionQueue {
            id,
            epoch,
            vector,
            ring: Ring::new(memory, COMPLETION_BYTES),
            reserved: 0,
            phase: true,
        }
    }

    /// Its identifier.
    #[must_use]
    pub fn id(&self) -> QueueId {
        self.id
    }

    /// Interrupt vector; `None` if it does not interrupt.
    #[must_use]
    pub fn vector(&self) -> Option<u16> {
        self.vector
    }

    views!(
        "Index of the first completion that the host has not taken, as far as it has told.",
        "Index of the next completion to be written.",
        "Completions that the host has not taken, as far as it has told."
    );

    /// Commands under way that will complete here.
    #[must_use]
    pub fn under_way(&self) -> u32 {
        self.reserved
    }

    /// Whether one more command can be fetched that completes here.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.reserved < self.ring.free()
    }

    /// The host's doorbell, from the register or from memory. Returns how many entries are free more.
    ///
    /// # Errors
    /// If it cannot be; the queue stays as it is.
    pub fn set_head(&mut self, head: u32) -> Result<u32, DoorbellError> {
        self.ring.set_head(head)
    }

    /// Keeps room for the completion of a command.
    pub(super) fn permit(&mut self, submission_queue: QueueId, command: CommandId) -> Permit {
        debug_assert!(self.has_room());
        self.reserved += 1;
        Permit {
            completion_queue: self.id,
            epoch: self.epoch,
            submission_queue,
            command,
        }
    }

    /// A command gives the room for its completion up until it has something to say. Requests for asynchronous events have
    /// no time-out (Base 2.0 §5.2): if they kept it, as many as the queue has entries would stop it for ever.
    ///
    /// # Panics
    /// If the permit is of another queue.
    pub fn set_aside(&mut self, permit: Permit) -> SetAside {
        assert_eq!(permit.completion_queue, self.id);
        self.reserved -= u32::from(permit.epoch == self.epoch);
        SetAside(permit)
    }

    /// It has something to say, for which there is to be room.
    ///
    /// # Errors
    /// The command, if there is none: when the host has taken completions, try again.
    ///
    /// # Panics
    /// If it is of another queue.
    pub fn take_up(&mut self, command: SetAside) -> Result<Permit, SetAside> {
        assert_eq!(command.0.completion_queue, self.id);
        if command.0.epoch == self.epoch {
            if !self.has_room() {
                return Err(command);
            }
            self.reserved += 1;
        }
        Ok(command.0)
    }

    /// Completes a command. `submission_head` is its submission queue's [`head`] now.
    ///
    /// The phase tag is written last, on its own: a host that sees it sees the rest.
    ///
    /// [`head`]: super::SubmissionQueue::head
    ///
    /// # Errors
    /// If the entry cannot be written; the queue is of no more use then.
    ///
    /// # Panics
    /// If the permit is of another queue.
    pub fn complete(
        &mut self,
        permit: Permit,
        outcome: impl Into<Outcome>,
        submission_head: u16,
        memory: &impl GuestMemory,
    ) -> Result<Posted, MemoryError> {
        assert_eq!(permit.completion_queue, self.id);
        let (epoch, submission_queue) = (permit.epoch, permit.submission_queue);
        let command = permit.command;
        std::mem::forget(permit);
        if epoch != self.epoch {
            return Ok(Posted::QueueGone);
        }
        assert!(self.reserved > 0 && self.ring.free() > 0);
        self.reserved -= 1;
        let entry = CompletionEntry {
            outcome: outcome.into(),
            submission_head,
            submission_queue,
            command,
        };
        let bytes = entry.encode(self.phase);
        let address = self.ring.address(self.ring.tail);
        memory.write(address, &bytes[..12])?;
        let [.., a, b, c, d] = bytes;
        memory.store_u32(address + 12, u32::from_le_bytes([a, b, c, d]))?;
        self.ring.tail = self.ring.after(self.ring.tail);
        self.phase ^= self.ring.tail == 0;
        Ok(Posted::Entry)
    }
}
