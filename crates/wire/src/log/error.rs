//! Error Information (LID 01h, Base 2.0 §5.16.1.2): commands that failed, newest first.

use crate::entry::SubmissionEntry;
use crate::ids::QueueId;
use crate::layout::layout;
use crate::status::Status;

layout! {
    /// An entry.
    pub struct ErrorEntry: 64 {
        /// Number of the error since the drive was made, from 1; 0: there is no entry.
        0 => count: u64,
        /// Queue of the command; FFFFh: of none.
        8 => queue: u16,
        /// The command; FFFFh: of none.
        10 => command: u16,
        /// Its status, in bits 15:1.
        12 => status: u16,
        /// Byte (7:0) and bit (10:8) of the command that was wrong; FFFFh: none in particular.
        14 => location: u16,
        /// First block that failed.
        16 => lba: u64,
        /// Its namespace.
        24 => namespace: u32,
        /// A log page of the vendor's that says more.
        28 => vendor_page: u8,
        /// Kind of transport; 0: not said.
        29 => transport: u8,
        /// Command set.
        30 => command_set: u8,
        /// Opcode, from version 1 on.
        31 => opcode: u8,
        /// What the command makes of it.
        32 => specific: u64,
        /// What the transport makes of it.
        40 => transport_specific: u16,
        /// Version of the entry; 1 has an opcode.
        63 => version: u8,
    }
}

impl ErrorEntry {
    /// The entry of a command that failed; the error's number is the log's to give.
    #[must_use]
    pub fn of(entry: &SubmissionEntry, queue: QueueId, status: Status) -> Self {
        ErrorEntry {
            count: 0,
            queue: queue.0,
            command: entry.command().0,
            status: status.bits() << 1,
            location: u16::MAX,
            namespace: entry.namespace().0,
            opcode: entry.opcode(),
            version: 1,
            ..ErrorEntry::default()
        }
    }

    /// That of an error that is of no command: its queue and identifier are FFFFh then.
    #[must_use]
    pub fn of_no_command(status: Status) -> Self {
        ErrorEntry {
            queue: u16::MAX,
            command: u16::MAX,
            status: status.bits() << 1,
            location: u16::MAX,
            version: 1,
            ..ErrorEntry::default()
        }
    }
}

/// The page of `entries`, newest first; as many as ELPE says, plus one.
#[must_use]
pub fn error_page(entries: impl IntoIterator<Item = ErrorEntry>, entries_z: u8) -> Vec<u8> {
    let mut page = vec![0; (usize::from(entries_z) + 1) * ErrorEntry::BYTES];
    for (to, entry) in page.chunks_exact_mut(ErrorEntry::BYTES).zip(entries) {
        to.copy_from_slice(&entry.encode());
    }
    page
}
