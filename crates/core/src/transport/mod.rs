//! Between host and controller: submission queues and the PCIe link.

mod pcie;
mod queues;

pub use pcie::{Link, wire_ps};
pub use queues::SubmissionQueues;
