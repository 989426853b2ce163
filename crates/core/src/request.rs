//! What a host asks of a drive, and what it hears back.

use serde::{Deserialize, Serialize};

mod window;

pub use window::{
    EntryId, EntryInfo, EntryState, WindowCall, WindowCompletion, WindowError, WindowReply,
};

/// Kind of I/O command.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Op {
    /// Read data (NVMe Read).
    Read,
    /// Write data (NVMe Write).
    Write,
    /// Make everything acknowledged so far durable (NVMe Flush). Offset and length are ignored.
    Flush,
    /// Deallocate a range (NVMe Dataset Management, attribute Deallocate).
    Trim,
}

/// What becomes of what a command reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// It goes to the host (NVMe Read).
    #[default]
    Deliver,
    /// The drive looks whether it can be read, and no data is moved (NVMe Verify).
    Verify,
    /// The drive holds it against data that comes from the host as a write's does (NVMe Compare).
    Compare,
}

/// One I/O command as the host submits it.
///
/// Offset and length are bytes; they need not be multiples of 4 KiB (the drive's mapping unit) but
/// must be multiples of 512 B (the smallest logical block) and lie inside the drive.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Chosen by the host, returned in the [`Completion`]. Need not be unique to the drive.
    pub tag: u32,
    /// Submission queue (0-based I/O queue number). Queues are created on first use.
    pub queue: u16,
    /// Operation asked for.
    pub op: Op,
    /// Force Unit Access: a write completes only once its data is on non-volatile media.
    pub fua: bool,
    /// First byte, counted from the start of the drive.
    pub offset_bytes: u64,
    /// Number of bytes; 0 only for [`Op::Flush`].
    pub length_bytes: u64,
}

/// How a command ended.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// The command did what was asked.
    Success,
    /// The range does not lie inside the drive (NVMe: LBA Out of Range).
    OutOfRange,
    /// Offset or length is not a multiple of 512 B, or a data command has no length
    /// (NVMe: Invalid Field in Command).
    InvalidField,
    /// The range is pinned to the byte window (NVMe: Access Denied).
    AccessDenied,
    /// Data is lost: what the command reads, or was to make safe (NVMe: Unrecovered Read Error, or Write
    /// Fault).
    MediaError,
    /// The drive takes no more data, only reads: it has numbered as many program operations and trims as it can
    /// ([`crate::ftl::LAST_FOR_NEW_DATA`]), or its flash is worn out (NVMe: Namespace is Write Protected).
    ReadOnly,
    /// The host has asked for that before the drive had begun ([`crate::Device::abort`]; NVMe: Command Abort
    /// Requested).
    Aborted,
}

/// What the host hears back.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The request's own tag.
    pub tag: u32,
    /// The request's own operation.
    pub op: Op,
    /// Whether it succeeded, or why not.
    pub status: Status,
    /// When [`crate::Host::submit`] was called, in picoseconds of simulated time.
    pub submitted_ps: u64,
    /// When the host's completion handler has run, in picoseconds of simulated time.
    pub completed_ps: u64,
}
