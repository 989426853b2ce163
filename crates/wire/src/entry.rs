//! Entries of queues: 64 bytes of a command, 16 of its completion (Base 2.0 §3.3.3).

use crate::ids::{CommandId, NamespaceId, QueueId};
use crate::layout::Wire;
use crate::status::Status;
use crate::transfer::DataPointer;

/// Bytes of a submission queue entry; CC.IOSQES is the power of two.
pub const SUBMISSION_BYTES: usize = 64;
/// Bytes of a completion queue entry; CC.IOCQES is the power of two.
pub const COMPLETION_BYTES: usize = 16;

/// Whether a command is one of two that are executed as one (FUSE, §3.3.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fuse {
    /// It stands alone.
    None,
    /// The first of two.
    First,
    /// The second of two.
    Second,
}

/// A command's 64 bytes, as the host wrote them (§3.3.3.1).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SubmissionEntry(pub [u8; SUBMISSION_BYTES]);

impl SubmissionEntry {
    /// An entry that is all zero but for these: the start of a command, for hosts and tests.
    #[must_use]
    pub fn new(opcode: u8, command: CommandId, namespace: NamespaceId) -> Self {
        let mut entry = SubmissionEntry([0; SUBMISSION_BYTES]);
        entry.0[0] = opcode;
        command.0.put(&mut entry.0[2..]);
        namespace.0.put(&mut entry.0[4..]);
        entry
    }

    /// Its opcode.
    #[must_use]
    pub fn opcode(&self) -> u8 {
        self.0[0]
    }

    /// What the host names the command by.
    #[must_use]
    pub fn command(&self) -> CommandId {
        CommandId(u16::get(&self.0[2..]))
    }

    /// The namespace (NSID).
    #[must_use]
    pub fn namespace(&self) -> NamespaceId {
        NamespaceId(u32::get(&self.0[4..]))
    }

    /// Command dword 0 to 15.
    ///
    /// # Panics
    /// If there is no such dword.
    #[must_use]
    pub fn dword(&self, index: usize) -> u32 {
        u32::get(&self.0[4 * index..])
    }

    /// Sets a dword: for hosts and tests.
    ///
    /// # Panics
    /// If there is no such dword.
    #[must_use]
    pub fn with_dword(mut self, index: usize, value: u32) -> Self {
        value.put(&mut self.0[4 * index..]);
        self
    }

    /// With two PRP entries as data pointer: for hosts and tests.
    #[must_use]
    pub fn with_prp(mut self, prp1: u64, prp2: u64) -> Self {
        prp1.put(&mut self.0[24..]);
        prp2.put(&mut self.0[32..]);
        self
    }

    /// Two dwords as one number, the lower first.
    pub(crate) fn qword(&self, first: usize) -> u64 {
        u64::get(&self.0[4 * first..])
    }

    /// The metadata pointer (MPTR).
    #[must_use]
    pub fn metadata_pointer(&self) -> u64 {
        self.qword(4)
    }

    /// Whether it is one of two.
    ///
    /// # Errors
    /// [`Status::INVALID_FIELD`] for the reserved value.
    pub fn fuse(&self) -> Result<Fuse, Status> {
        match self.0[1] & 3 {
            0 => Ok(Fuse::None),
            1 => Ok(Fuse::First),
            2 => Ok(Fuse::Second),
            _ => Err(Status::INVALID_FIELD),
        }
    }

    /// Where its data is (PSDT, DPTR).
    ///
    /// # Errors
    /// [`Status::INVALID_FIELD`] for the reserved value.
    pub fn data_pointer(&self) -> Result<DataPointer, Status> {
        match self.0[1] >> 6 {
            0 => Ok(DataPointer::Prp {
                prp1: self.qword(6),
                prp2: self.qword(8),
            }),
            1 | 2 => {
                let mut descriptor = [0; 16];
                descriptor.copy_from_slice(&self.0[24..40]);
                Ok(DataPointer::Sgl(descriptor))
            }
            _ => Err(Status::INVALID_FIELD),
        }
    }

    /// Checks what holds for every command on PCI Express before its opcode is looked at: no reserved
    /// values, no fused commands (FUSES is 0), and PRPs in admin commands (§3.3.3.1).
    pub(crate) fn checked(&self, is_admin: bool) -> Result<DataPointer, Status> {
        let pointer = self.data_pointer()?;
        let is_sgl = matches!(pointer, DataPointer::Sgl(_));
        if self.fuse()? != Fuse::None || is_admin && is_sgl {
            return Err(Status::INVALID_FIELD);
        }
        Ok(pointer)
    }
}

impl std::fmt::Debug for SubmissionEntry {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "SubmissionEntry(")?;
        for dword in 0..16 {
            write!(
                to,
                "{}{:08x}",
                if dword == 0 { "" } else { " " },
                self.dword(dword)
            )?;
        }
        write!(to, ")")
    }
}

/// How a command ended: what its completion says beside whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The status.
    pub status: Status,
    /// Dword 0, and above it dword 1: what a command defines.
    pub result: u64,
}

impl Outcome {
    /// It did what it was to do, and says no more.
    pub const SUCCESS: Outcome = Outcome {
        status: Status::SUCCESS,
        result: 0,
    };

    /// Success with dword 0.
    #[must_use]
    pub fn with_result(result: u32) -> Self {
        Outcome {
            status: Status::SUCCESS,
            result: result.into(),
        }
    }
}

impl From<Status> for Outcome {
    fn from(status: Status) -> Outcome {
        Outcome { status, result: 0 }
    }
}

impl From<Result<Outcome, Status>> for Outcome {
    fn from(result: Result<Outcome, Status>) -> Outcome {
        result.unwrap_or_else(Outcome::from)
    }
}

/// A completion queue entry (§3.3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletionEntry {
    /// How the command ended.
    pub outcome: Outcome,
    /// The submission queue's head as the completion was made (SQHD): its entries before are free.
    pub submission_head: u16,
    /// The submission queue the command came by (SQID).
    pub submission_queue: QueueId,
    /// The command (CID).
    pub command: CommandId,
}

impl CompletionEntry {
    /// The entry with its phase tag.
    #[must_use]
    pub fn encode(&self, phase: bool) -> [u8; COMPLETION_BYTES] {
        let mut to = [0; COMPLETION_BYTES];
        self.outcome.result.put(&mut to);
        self.submission_head.put(&mut to[8..]);
        self.submission_queue.0.put(&mut to[10..]);
        self.command.0.put(&mut to[12..]);
        let status = self.outcome.status.bits() << 1 | u16::from(phase);
        status.put(&mut to[14..]);
        to
    }

    /// Entry and phase tag: what a host reads.
    #[must_use]
    pub fn decode(from: &[u8; COMPLETION_BYTES]) -> (Self, bool) {
        let status = u16::get(&from[14..]);
        let entry = CompletionEntry {
            outcome: Outcome {
                status: Status::from_bits(status >> 1),
                result: u64::get(from),
            },
            submission_head: u16::get(&from[8..]),
            submission_queue: QueueId(u16::get(&from[10..])),
            command: CommandId(u16::get(&from[12..])),
        };
        (entry, status & 1 == 1)
    }
}
