//! Submission and completion queues: rings in host memory (Base 2.0 §3.3.1).
//!
//! A completion is an obligation. [`SubmissionQueue::fetch`] takes a command only if its completion queue
//! has room for the completion, and hands out a [`Permit`] with it. A permit can be neither copied nor made,
//! and [`CompletionQueue::complete`] consumes it: no command completes twice, no completion is without a
//! command, and no completion finds its queue full. Who drops a permit panics in debug builds; a command
//! that will never complete, because its queue is gone, is given up by [`Permit::abandon`]. One that may wait for ever is
//! [`SetAside`], without room, until it has something to say.

mod completion;
mod ring;
mod shadow;
mod submission;

pub use completion::{CompletionQueue, Permit, Posted, SetAside};
pub use ring::DoorbellError;
pub use shadow::{ShadowDoorbells, needs_event};
pub use submission::{Fetch, Priority, SubmissionQueue};
