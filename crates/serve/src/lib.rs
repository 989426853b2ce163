//! The live drive: a simulated drive as a real NVMe device, with the host's memory, the wall clock and bytes.
//!
//! # Where things are
//!
//! | question | module |
//! |---|---|
//! | what does the controller do when a guest writes registers and queues? | [`controller`]: no thread, no clock, no socket |
//! | where are the bytes? | [`contents`]; those on their way between guest and drive: `payload` |
//! | how does a drive outlive the process, in a file? | [`backing`] |
//! | where is the host memory that was granted? | [`host_memory`] |
//! | how does a guest in another process reach it? | `transport`: vfio-user (Linux) |
//! | how does a program without a guest reach its blocks? | `nbd` (Linux) |
//! | when is now? | [`clock`] |
//! | what is there to be seen from outside? | [`metrics`] |
//! | what can be told to a drive while it runs? | [`control`] |
//! | what goes wrong because a user has asked for it? | [`faults`] |
//! | who does all this? | `server` (Linux) |
//!
//! The way of a command: the guest rings a doorbell, `transport` hands the write to [`controller`], the next poll
//! takes the command and gives it to the drive of `lodger_core`; as the drive's time comes to its completion,
//! its data and then the completion are written to the guest's memory, and the interrupt is signalled.

pub mod backing;
pub mod clock;
pub mod contents;
pub mod control;
pub mod controller;
pub mod faults;
mod flash;
pub mod host_memory;
pub mod metrics;
#[cfg(target_os = "linux")]
pub mod nbd;
mod payload;
#[cfg(target_os = "linux")]
pub mod server;
#[cfg(target_os = "linux")]
pub mod transport;
pub mod window;
