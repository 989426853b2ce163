//! Between host and controller: submission queues and the link, PCIe or UFS.

pub mod bar;
pub mod dma;
mod link;
mod queues;

pub use bar::Bar;
pub use link::{COMPLETION_ENTRY_BYTES, Link, SUBMISSION_ENTRY_BYTES, UPIU_HEADER_BYTES, wire_ps};
pub use queues::SubmissionQueues;
