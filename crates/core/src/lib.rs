//! The device model of Lodger.
//!
//! It answers one question: what does the drive do, and when? Simulated time only: no I/O, no
//! threads, no clock, no globals, no `unsafe`.

pub mod request;
pub mod spec;
pub mod time;

pub use request::{Completion, Op, Request, Status};
pub use spec::DriveSpec;
