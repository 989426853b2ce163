//! Calls of the byte window (Bae et al., "2B-SSD", ISCA 2018): what a host asks and hears.

use serde::{Deserialize, Serialize};

/// Number of a pinned range, chosen by the host: 0 to [`EntryId::MAX`].
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub u32);

impl EntryId {
    /// Largest number: the drive's table keeps it in a byte.
    pub const MAX: EntryId = EntryId(u8::MAX as u32);
}

/// One call. Offsets into the window and into the drive and lengths are in bytes.
///
/// A CPU works off its calls in order. `Store`, `Load` and `Sync` keep it busy until they are done;
/// of the others it only takes their submission, so that it can go on before they complete.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub enum WindowCall {
    /// BA_PIN: brings a range of the drive into the window. All three must be multiples of 4 KiB.
    Pin {
        /// Number under which the range is known from now on.
        entry: EntryId,
        /// Where in the window.
        window_offset_bytes: u64,
        /// Which range of the drive: where it starts.
        drive_offset_bytes: u64,
        /// Bytes to pin.
        length_bytes: u64,
    },
    /// BA_FLUSH: writes an entry's bytes to its range of the drive, and unpins it. What this CPU
    /// stored before is made durable first, as by `Sync`; what other CPUs stored and did not sync
    /// may be left out.
    Flush {
        /// Entry to write back and unpin.
        entry: EntryId,
    },
    /// BA_SYNC: what this CPU stored to the entry before survives a power failure from now on.
    /// Stores of other CPUs stand in buffers of theirs, which this does not empty.
    Sync {
        /// Entry whose stores are made durable.
        entry: EntryId,
    },
    /// BA_GET_ENTRY_INFO: reads an entry's line of the drive's table.
    EntryInfo {
        /// Entry asked about.
        entry: EntryId,
    },
    /// BA_READ_DMA: the drive copies bytes of an entry into the host's memory.
    ReadDma {
        /// Entry to copy from.
        entry: EntryId,
        /// From where in the entry; 0 in the paper's call.
        offset_bytes: u64,
        /// Bytes to copy.
        length_bytes: u64,
    },
    /// Stores by the CPU. Done when the CPU has retired them: they are not durable before a `Sync`.
    /// The range must lie in one pinned entry.
    Store {
        /// First byte stored, counted from the start of the window.
        window_offset_bytes: u64,
        /// Bytes to store.
        length_bytes: u64,
    },
    /// Loads by the CPU, uncached. The range must lie in one pinned entry.
    Load {
        /// First byte loaded, counted from the start of the window.
        window_offset_bytes: u64,
        /// Bytes to load.
        length_bytes: u64,
    },
}

/// State of an entry.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub enum EntryState {
    /// Its bytes are being read from flash.
    Pinning,
    /// Its bytes can be loaded and stored.
    Pinned,
    /// Its bytes are being written to flash.
    Flushing,
}

/// One line of the drive's table of entries.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub struct EntryInfo {
    /// Number of the entry.
    pub entry: EntryId,
    /// Where it starts in the window, bytes.
    pub window_offset_bytes: u64,
    /// Where it starts in the drive, bytes.
    pub drive_offset_bytes: u64,
    /// How long it is, bytes.
    pub length_bytes: u64,
    /// What it is doing.
    pub state: EntryState,
}

/// Why a call was refused. Nothing has changed then.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum WindowError {
    /// The drive has no byte window.
    #[error("the drive has no byte window")]
    NoWindow,
    /// The entry's number is above [`EntryId::MAX`].
    #[error("entry numbers are 0 to 255")]
    BadEntry,
    /// The entry is pinned already.
    #[error("the entry is pinned already")]
    InUse,
    /// No such entry, or the range does not lie in one.
    #[error("not pinned")]
    NotPinned,
    /// The range does not lie in the window.
    #[error("the range ends beyond the window")]
    OutOfWindow,
    /// The range does not lie in the entry.
    #[error("the range ends beyond the entry")]
    OutOfEntry,
    /// Offset or length of a pin is not a multiple of 4 KiB.
    #[error("offsets and length must be multiples of 4 KiB")]
    Unaligned,
    /// The length is 0.
    #[error("the length is 0")]
    ZeroLength,
    /// Another entry takes part of that range of the window.
    #[error("another entry takes part of that range of the window")]
    WindowOverlap,
    /// Part of that range of the drive is pinned by another entry.
    #[error("part of that range of the drive is pinned by another entry")]
    RangeOverlap,
    /// The range ends beyond the drive.
    #[error("the range ends beyond the drive")]
    OutOfRange,
    /// As many entries are pinned as the table has room for.
    #[error("the table of entries is full")]
    TableFull,
    /// The entry is being pinned, flushed or copied.
    #[error("the entry is being pinned, flushed or copied")]
    Busy,
    /// Data of the range is lost (NVMe: Unrecovered Read Error, or Write Fault).
    #[error("data of the range is lost")]
    MediaError,
    /// Power failed before the call was done.
    #[error("power failed")]
    PowerFailed,
}

/// What a call that succeeded returns.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub enum WindowReply {
    /// The call has nothing to return.
    Done,
    /// The entry's line in the table.
    Entry(EntryInfo),
}

/// How a call of the window ended.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub struct WindowCompletion {
    /// The caller's own tag.
    pub tag: u32,
    /// CPU that called.
    pub cpu: u16,
    /// The call that ended.
    pub call: WindowCall,
    /// What it returned, or why it failed.
    pub result: Result<WindowReply, WindowError>,
    /// When it was made, in picoseconds of simulated time.
    pub submitted_ps: u64,
    /// When the caller went on, in picoseconds of simulated time.
    pub completed_ps: u64,
}
