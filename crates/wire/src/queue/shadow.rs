//! Shadow doorbells: indices in host memory, so that a host need not touch a register for each command
//! (Doorbell Buffer Config, Base 2.0 §5.11 and annex B.5).
//!
//! A controller that polls reads the doorbells and leaves its event indices one behind
//! ([`ShadowDoorbells::stay_awake`]): the host never touches the register. One that wants to sleep writes what it
//! has seen and looks again ([`ShadowDoorbells::sleep`]): either it sees what came meanwhile, or the host
//! sees the event index and rings.

use crate::ids::{PageSize, QueueId};
use crate::memory::{GuestMemory, MemoryError};
use crate::registers::DoorbellKind;
use crate::status::Status;
use std::sync::atomic::{Ordering, fence};

/// Whether a host that moves an index from `old` to `new` must ring, as the controller asked to be told of
/// the step beyond `event`. All are modulo 65536, whatever the queue's length.
#[must_use]
pub fn needs_event(event: u16, new: u16, old: u16) -> bool {
    new.wrapping_sub(event).wrapping_sub(1) < new.wrapping_sub(old)
}

/// Where doorbells and event indices are: a page each. Both are the host's memory, and gone with a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShadowDoorbells {
    doorbells: u64,
    events: u64,
    stride_bytes: u64,
    page: PageSize,
}

impl ShadowDoorbells {
    /// From the command's PRP entries.
    ///
    /// # Errors
    /// [`Status::INVALID_FIELD`] if either is not the address of a page, or both are of the same.
    pub fn new(prp1: u64, prp2: u64, page: PageSize, stride_bytes: u64) -> Result<Self, Status> {
        if !page.is_aligned(prp1) || !page.is_aligned(prp2) || prp1 == prp2 {
            return Err(Status::INVALID_FIELD);
        }
        Ok(ShadowDoorbells {
            doorbells: prp1,
            events: prp2,
            stride_bytes,
            page,
        })
    }

    /// Where a queue's index lies in either page, bytes; `None` if the page ends before it: such queues
    /// are rung by register.
    #[must_use]
    pub fn offset(&self, queue: QueueId, kind: DoorbellKind) -> Option<u64> {
        let index = 2 * u64::from(queue.0) + u64::from(kind == DoorbellKind::CompletionHead);
        let offset = index * self.stride_bytes;
        (offset + 4 <= self.page.bytes()).then_some(offset)
    }

    /// The index the host has written. For [`set_tail`] and [`set_head`], which check it.
    ///
    /// [`set_tail`]: super::SubmissionQueue::set_tail
    /// [`set_head`]: super::CompletionQueue::set_head
    ///
    /// # Errors
    /// If the page is gone; `Ok(None)` if the queue has no place in it.
    pub fn load(
        &self,
        queue: QueueId,
        kind: DoorbellKind,
        memory: &impl GuestMemory,
    ) -> Result<Option<u32>, MemoryError> {
        let offset = self.offset(queue, kind);
        offset
            .map(|offset| memory.load_u32(self.doorbells + offset))
            .transpose()
    }

    fn store_event(
        &self,
        queue: QueueId,
        kind: DoorbellKind,
        event: u16,
        memory: &impl GuestMemory,
    ) -> Result<(), MemoryError> {
        match self.offset(queue, kind) {
            Some(offset) => memory.store_u32(self.events + offset, event.into()),
            None => Ok(()),
        }
    }

    /// The controller polls: having seen `seen`, it need not be told of the next step.
    ///
    /// # Errors
    /// If the page is gone.
    pub fn stay_awake(
        &self,
        queue: QueueId,
        kind: DoorbellKind,
        seen: u16,
        memory: &impl GuestMemory,
    ) -> Result<(), MemoryError> {
        self.store_event(queue, kind, seen.wrapping_sub(1), memory)
    }

    /// The controller is about to sleep: it is to be told of the step beyond `index`, where its queue is. Returns the
    /// value in memory if it is another than the last it has `seen`; then it must not sleep. The two differ where a host
    /// has written what cannot be (§5.2.1), which the queue does not follow.
    ///
    /// # Errors
    /// If the pages are gone.
    pub fn sleep(
        &self,
        queue: QueueId,
        kind: DoorbellKind,
        (index, seen): (u16, u32),
        memory: &impl GuestMemory,
    ) -> Result<Option<u32>, MemoryError> {
        self.store_event(queue, kind, index, memory)?;
        // The host stores its index, then loads ours; we the other way round. Without a full fence on
        // both sides each could miss the other's store.
        fence(Ordering::SeqCst);
        let now = self.load(queue, kind, memory)?;
        Ok(now.filter(|now| *now != seen))
    }
}
