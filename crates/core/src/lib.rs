//! The device model of Lodger.
//!
//! It answers one question: what does the drive do, and when? Simulated time only: no I/O, no
//! threads, no clock, no globals, no `unsafe`.

mod arrays;
pub mod controller;
pub mod device;
pub mod engine;
pub mod ftl;
pub mod host;
pub mod ids;
pub mod memory;
pub mod nand;
pub mod observe;
pub mod request;
pub mod rng;
pub mod slab;
pub mod sparse;
pub mod spec;
pub mod table;
pub mod time;
pub mod transport;

pub use device::Device;
pub use ftl::Precondition;
pub use host::Host;
pub use observe::Histogram;
pub use request::{Completion, Op, Purpose, Request, Status};
pub use request::{
    EntryId, EntryInfo, EntryState, WindowCall, WindowCompletion, WindowError, WindowReply,
};
pub use spec::DriveSpec;
