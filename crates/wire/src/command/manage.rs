//! Commands that change the controller: queues, formats, sanitize, firmware.

use crate::entry::SubmissionEntry;
use crate::ids::{PageSize, QueueId};
use crate::layout::{bit, bits};
use crate::queue::Priority;
use crate::registers::QueueMemory;
use crate::status::Status;

/// What I/O queues may be, beside whether they exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Highest identifier of a submission queue: as many as Number of Queues says.
    pub submission_id_max: QueueId,
    /// The same of completion queues.
    pub completion_id_max: QueueId,
    /// Entries at most, 0-based (CAP.MQES).
    pub entries_max_z: u16,
    /// Interrupt vectors that there are.
    pub vectors: u16,
    /// Memory pages.
    pub page: PageSize,
    /// CC.IOSQES and CC.IOCQES ([`crate::registers::Registers::io_entry_sizes`]).
    pub entry_sizes: (u8, u8),
}

impl QueueLimits {
    /// Holds what both kinds of queue have in common against the limits.
    fn check(
        &self,
        (queue, id_max): (QueueId, QueueId),
        memory: QueueMemory,
        contiguous: bool,
    ) -> Result<QueueMemory, Status> {
        if queue == QueueId::ADMIN || queue > id_max {
            return Err(Status::QUEUE_ID_INVALID);
        }
        let entries_max = u32::from(self.entries_max_z) + 1;
        if !(2..=entries_max).contains(&memory.entries) {
            return Err(Status::QUEUE_SIZE_INVALID);
        }
        if !contiguous || !memory.is_addressable() {
            return Err(Status::INVALID_FIELD);
        }
        if !self.page.is_aligned(memory.address) {
            return Err(Status::PRP_OFFSET_INVALID);
        }
        Ok(memory)
    }
}

fn queue_memory(entry: &SubmissionEntry) -> (QueueId, QueueMemory) {
    let first = entry.dword(10);
    let memory = QueueMemory {
        address: entry.qword(6),
        entries: (first >> 16) + 1,
    };
    (QueueId(first as u16), memory)
}

/// Create I/O Completion Queue (Base 2.0 §5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateCompletionQueue {
    /// Its identifier (QID).
    pub queue: QueueId,
    /// Where it is (PRP1), and how long (QSIZE + 1).
    pub memory: QueueMemory,
    /// Whether the memory is in one piece (PC).
    pub contiguous: bool,
    /// Interrupt vector, if it is to interrupt (IEN, IV).
    pub vector: Option<u16>,
}

impl CreateCompletionQueue {
    pub(super) fn parse(entry: &SubmissionEntry) -> Self {
        let (queue, memory) = queue_memory(entry);
        let second = u64::from(entry.dword(11));
        CreateCompletionQueue {
            queue,
            memory,
            contiguous: bit(second, 0),
            vector: bit(second, 1).then_some(bits(second, 16, 16) as u16),
        }
    }

    /// Where the queue is to be, if it can be. Whether there is one of that name already is for the controller
    /// to say.
    ///
    /// # Errors
    /// [`Status::QUEUE_ID_INVALID`], [`Status::QUEUE_SIZE_INVALID`], [`Status::INTERRUPT_VECTOR_INVALID`],
    /// [`Status::PRP_OFFSET_INVALID`], or [`Status::INVALID_FIELD`] for a queue in pieces (CAP.CQR is 1).
    pub fn checked(&self, limits: &QueueLimits) -> Result<QueueMemory, Status> {
        let id = (self.queue, limits.completion_id_max);
        let memory = limits.check(id, self.memory, self.contiguous)?;
        if self.vector.is_some_and(|vector| vector >= limits.vectors) {
            return Err(Status::INTERRUPT_VECTOR_INVALID);
        }
        if limits.entry_sizes.1 != 4 {
            return Err(Status::QUEUE_SIZE_INVALID);
        }
        Ok(memory)
    }
}

/// Create I/O Submission Queue (Base 2.0 §5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreateSubmissionQueue {
    /// Its identifier (QID).
    pub queue: QueueId,
    /// Where it is (PRP1), and how long (QSIZE + 1).
    pub memory: QueueMemory,
    /// Whether the memory is in one piece (PC).
    pub contiguous: bool,
    /// Where its commands complete (CQID).
    pub completion_queue: QueueId,
    /// How urgent it is (QPRIO); counts under weighted arbitration.
    pub priority: Priority,
}

impl CreateSubmissionQueue {
    pub(super) fn parse(entry: &SubmissionEntry) -> Self {
        let (queue, memory) = queue_memory(entry);
        let second = u64::from(entry.dword(11));
        CreateSubmissionQueue {
            queue,
            memory,
            contiguous: bit(second, 0),
            completion_queue: QueueId(bits(second, 16, 16) as u16),
            priority: match bits(second, 1, 2) {
                0 => Priority::Urgent,
                1 => Priority::High,
                2 => Priority::Medium,
                _ => Priority::Low,
            },
        }
    }

    /// Where the queue is to be, if it can be. Whether there is one of that name already, and the completion
    /// queue, is for the controller to say.
    ///
    /// # Errors
    /// As [`CreateCompletionQueue::checked`], and [`Status::COMPLETION_QUEUE_INVALID`].
    pub fn checked(&self, limits: &QueueLimits) -> Result<QueueMemory, Status> {
        let id = (self.queue, limits.submission_id_max);
        let memory = limits.check(id, self.memory, self.contiguous)?;
        let completion = self.completion_queue;
        if completion == QueueId::ADMIN || completion > limits.completion_id_max {
            return Err(Status::COMPLETION_QUEUE_INVALID);
        }
        if limits.entry_sizes.0 != 6 {
            return Err(Status::QUEUE_SIZE_INVALID);
        }
        Ok(memory)
    }
}

/// What becomes of data when it is formatted over (SES).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Erase {
    /// Nothing is promised.
    None,
    /// User data is erased.
    UserData,
    /// The key that it was encrypted with is deleted.
    Cryptographic,
}

/// Format NVM (Base 2.0 §5.14; fields of the NVM Command Set 1.0 §4.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatNvm {
    /// Which of the namespace's LBA formats (LBAF, with LBAFU above it), 0 to 63.
    pub format: u8,
    /// Whether metadata stands between the blocks (MSET).
    pub metadata_inline: bool,
    /// Type of protection information, 0 for none, to 3 (PI).
    pub protection: u8,
    /// Whether it is the first bytes of metadata (PIL).
    pub protection_first: bool,
    /// What becomes of the data.
    pub erase: Erase,
}

impl FormatNvm {
    pub(super) fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        let first = u64::from(entry.dword(10));
        let protection = bits(first, 5, 3) as u8;
        if protection > 3 {
            return Err(Status::INVALID_FIELD);
        }
        Ok(FormatNvm {
            format: (bits(first, 0, 4) | bits(first, 12, 2) << 4) as u8,
            metadata_inline: bit(first, 4),
            protection,
            protection_first: bit(first, 8),
            erase: match bits(first, 9, 3) {
                0 => Erase::None,
                1 => Erase::UserData,
                2 => Erase::Cryptographic,
                _ => return Err(Status::INVALID_FIELD),
            },
        })
    }
}

/// How a drive is sanitized (SANACT).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SanitizeAction {
    /// Not at all: leave the state of a failed sanitize.
    ExitFailure,
    /// By erasing blocks.
    BlockErase,
    /// By writing over all media, so many times, 1 to 16, with this pattern, inverted each time or not.
    #[allow(missing_docs)]
    Overwrite {
        passes: u8,
        pattern: u32,
        invert: bool,
    },
    /// By deleting keys.
    CryptoErase,
}

/// Sanitize (Base 2.0 §5.24).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sanitize {
    /// How.
    pub action: SanitizeAction,
    /// Whether a failure may be left without success (AUSE).
    pub allow_unrestricted_exit: bool,
    /// Whether blocks stay allocated (NDAS).
    pub no_deallocate: bool,
}

impl Sanitize {
    pub(super) fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        let first = u64::from(entry.dword(10));
        let action = match bits(first, 0, 3) {
            1 => SanitizeAction::ExitFailure,
            2 => SanitizeAction::BlockErase,
            3 => SanitizeAction::Overwrite {
                // 0 stands for 16.
                passes: match bits(first, 4, 4) as u8 {
                    0 => 16,
                    passes => passes,
                },
                pattern: entry.dword(11),
                invert: bit(first, 8),
            },
            4 => SanitizeAction::CryptoErase,
            _ => return Err(Status::INVALID_FIELD),
        };
        Ok(Sanitize {
            action,
            allow_unrestricted_exit: bit(first, 3),
            no_deallocate: bit(first, 9),
        })
    }
}

/// What becomes of a firmware image (CA).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirmwareAction {
    /// It is stored in the slot.
    Store,
    /// It is stored, and runs after the next reset.
    StoreAndActivateAtReset,
    /// What is in the slot runs after the next reset.
    ActivateAtReset,
    /// It is stored, or is there, and runs at once.
    ActivateNow,
}

/// Firmware Commit (Base 2.0 §5.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirmwareCommit {
    /// Which slot, 1 to 7; 0: the controller chooses (FS).
    pub slot: u8,
    /// What to do.
    pub action: FirmwareAction,
}

impl FirmwareCommit {
    pub(super) fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        let first = u64::from(entry.dword(10));
        Ok(FirmwareCommit {
            slot: bits(first, 0, 3) as u8,
            action: match bits(first, 3, 3) {
                0 => FirmwareAction::Store,
                1 => FirmwareAction::StoreAndActivateAtReset,
                2 => FirmwareAction::ActivateAtReset,
                3 => FirmwareAction::ActivateNow,
                // 6 and 7 are of boot partitions, of which there are none.
                _ => return Err(Status::INVALID_FIELD),
            },
        })
    }
}

/// Firmware Image Download (Base 2.0 §5.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirmwareDownload {
    /// Length of this part, dwords, 0-based (NUMD).
    pub dwords_z: u32,
    /// Where in the image it belongs, dwords (OFST).
    pub offset_dwords: u32,
}

impl FirmwareDownload {
    pub(super) fn parse(entry: &SubmissionEntry) -> Self {
        FirmwareDownload {
            dwords_z: entry.dword(10),
            offset_dwords: entry.dword(11),
        }
    }

    /// Length of this part, bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        4 * (u64::from(self.dwords_z) + 1)
    }
}
