//! How commands end: the status field of a completion (Base 2.0 §3.3.3.2.1; NVM Command Set 1.0 §3.1).

use std::fmt;

/// The status field without the phase tag: code in bits 7:0, type in 10:8, retry delay in 12:11, "more"
/// in 13, "do not retry" in 14.
///
/// The constants say "do not retry" where the same command would fail the same way again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Status(u16);

const MORE: u16 = 1 << 13;
const DO_NOT_RETRY: u16 = 1 << 14;

/// What kind of code a status has (its SCT).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusType {
    /// Of all commands.
    Generic,
    /// Of some commands.
    CommandSpecific,
    /// Of the media, or of what is stored.
    Media,
    /// Of the way to the drive.
    Path,
    /// Of the vendor.
    Vendor,
    /// Reserved.
    Reserved(u8),
}

impl Status {
    /// From type (0 to 7) and code.
    #[must_use]
    pub const fn new(kind: u8, code: u8) -> Self {
        Status((kind as u16 & 7) << 8 | code as u16)
    }

    /// From the field's 15 bits; the phase tag is not among them.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Status(bits & 0x7fff)
    }

    /// The field's 15 bits.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The code (SC).
    #[must_use]
    pub const fn code(self) -> u8 {
        self.0 as u8
    }

    /// The type (SCT).
    #[must_use]
    pub const fn kind(self) -> StatusType {
        match (self.0 >> 8 & 7) as u8 {
            0 => StatusType::Generic,
            1 => StatusType::CommandSpecific,
            2 => StatusType::Media,
            3 => StatusType::Path,
            7 => StatusType::Vendor,
            other => StatusType::Reserved(other),
        }
    }

    /// Whether the command did what it was to do.
    #[must_use]
    pub const fn is_success(self) -> bool {
        self.0 & 0x7ff == 0
    }

    /// Whether it is the same type and code, whatever the flags beside them.
    #[must_use]
    pub const fn is(self, other: Status) -> bool {
        self.0 & 0x7ff == other.0 & 0x7ff
    }

    /// Whether the host is told not to retry (DNR).
    #[must_use]
    pub const fn do_not_retry(self) -> bool {
        self.0 & DO_NOT_RETRY != 0
    }

    /// Whether the error log says more (M).
    #[must_use]
    pub const fn more(self) -> bool {
        self.0 & MORE != 0
    }

    /// The retry delay (CRD): 0 none, 1 to 3 one of the controller's CRDT fields.
    #[must_use]
    pub const fn retry_delay(self) -> u8 {
        (self.0 >> 11 & 3) as u8
    }

    /// With "do not retry" as said.
    #[must_use]
    pub const fn with_do_not_retry(self, is: bool) -> Self {
        Status(if is {
            self.0 | DO_NOT_RETRY
        } else {
            self.0 & !DO_NOT_RETRY
        })
    }

    /// With a pointer to the error log.
    #[must_use]
    pub const fn with_more(self) -> Self {
        Status(self.0 | MORE)
    }

    /// With a retry delay, 0 to 3.
    #[must_use]
    pub const fn with_retry_delay(self, delay: u8) -> Self {
        Status(self.0 & !(3 << 11) | (delay as u16 & 3) << 11)
    }
}

macro_rules! statuses {
    ($($name:ident = $kind:literal, $code:literal, $retry:ident, $about:literal;)*) => {
        impl Status {
            $(
                #[doc = $about]
                pub const $name: Status =
                    Status::new($kind, $code).with_do_not_retry(statuses!(@ $retry));
            )*

            /// Every constant, with its meaning.
            pub const ALL: &'static [(Status, &'static str)] = &[$((Status::$name, $about)),*];
        }
    };
    (@ retry) => { false };
    (@ never) => { true };
}

statuses! {
    SUCCESS = 0, 0x00, retry, "Successful completion";
    INVALID_OPCODE = 0, 0x01, never, "Invalid command opcode";
    INVALID_FIELD = 0, 0x02, never, "Invalid field in command";
    COMMAND_ID_CONFLICT = 0, 0x03, never, "Command ID conflict";
    DATA_TRANSFER_ERROR = 0, 0x04, retry, "Data transfer error";
    ABORTED_POWER_LOSS = 0, 0x05, retry, "Aborted due to power loss notification";
    INTERNAL_ERROR = 0, 0x06, retry, "Internal error";
    ABORT_REQUESTED = 0, 0x07, never, "Aborted by an Abort command";
    ABORTED_QUEUE_DELETED = 0, 0x08, retry, "Aborted because its submission queue was deleted";
    ABORTED_FAILED_FUSED = 0, 0x09, retry, "Aborted because the other fused command failed";
    ABORTED_MISSING_FUSED = 0, 0x0a, never, "Aborted because the other fused command is missing";
    INVALID_NAMESPACE = 0, 0x0b, never, "Invalid namespace or format";
    COMMAND_SEQUENCE_ERROR = 0, 0x0c, never, "Command sequence error";
    SGL_SEGMENT_INVALID = 0, 0x0d, never, "Invalid SGL segment descriptor";
    SGL_COUNT_INVALID = 0, 0x0e, never, "Invalid number of SGL descriptors";
    SGL_DATA_LENGTH_INVALID = 0, 0x0f, never, "Data SGL length invalid";
    SGL_METADATA_LENGTH_INVALID = 0, 0x10, never, "Metadata SGL length invalid";
    SGL_TYPE_INVALID = 0, 0x11, never, "SGL descriptor type invalid";
    CMB_USE_INVALID = 0, 0x12, never, "Invalid use of controller memory buffer";
    PRP_OFFSET_INVALID = 0, 0x13, never, "PRP offset invalid";
    ATOMIC_WRITE_UNIT_EXCEEDED = 0, 0x14, never, "Atomic write unit exceeded";
    OPERATION_DENIED = 0, 0x15, never, "Operation denied";
    SGL_OFFSET_INVALID = 0, 0x16, never, "SGL offset invalid";
    HOST_ID_FORMAT = 0, 0x18, never, "Host identifier inconsistent format";
    KEEP_ALIVE_EXPIRED = 0, 0x19, never, "Keep alive timer expired";
    KEEP_ALIVE_INVALID = 0, 0x1a, never, "Keep alive timeout invalid";
    ABORTED_PREEMPTED = 0, 0x1b, never, "Aborted due to preempt and abort";
    SANITIZE_FAILED = 0, 0x1c, never, "Sanitize failed";
    SANITIZE_IN_PROGRESS = 0, 0x1d, retry, "Sanitize in progress";
    SGL_GRANULARITY_INVALID = 0, 0x1e, never, "SGL data block granularity invalid";
    NAMESPACE_WRITE_PROTECTED = 0, 0x20, never, "Namespace is write protected";
    COMMAND_INTERRUPTED = 0, 0x21, retry, "Command interrupted";
    TRANSIENT_TRANSPORT_ERROR = 0, 0x22, retry, "Transient transport error";
    MEDIA_NOT_READY = 0, 0x24, retry, "Admin command media not ready";
    LBA_OUT_OF_RANGE = 0, 0x80, never, "LBA out of range";
    CAPACITY_EXCEEDED = 0, 0x81, never, "Capacity exceeded";
    NAMESPACE_NOT_READY = 0, 0x82, retry, "Namespace not ready";
    RESERVATION_CONFLICT = 0, 0x83, never, "Reservation conflict";
    FORMAT_IN_PROGRESS = 0, 0x84, retry, "Format in progress";
    COMPLETION_QUEUE_INVALID = 1, 0x00, never, "Completion queue invalid";
    QUEUE_ID_INVALID = 1, 0x01, never, "Invalid queue identifier";
    QUEUE_SIZE_INVALID = 1, 0x02, never, "Invalid queue size";
    ABORT_LIMIT_EXCEEDED = 1, 0x03, retry, "Abort command limit exceeded";
    ASYNC_EVENT_LIMIT_EXCEEDED = 1, 0x05, never, "Asynchronous event request limit exceeded";
    FIRMWARE_SLOT_INVALID = 1, 0x06, never, "Invalid firmware slot";
    FIRMWARE_IMAGE_INVALID = 1, 0x07, never, "Invalid firmware image";
    INTERRUPT_VECTOR_INVALID = 1, 0x08, never, "Invalid interrupt vector";
    LOG_PAGE_INVALID = 1, 0x09, never, "Invalid log page";
    FORMAT_INVALID = 1, 0x0a, never, "Invalid format";
    FIRMWARE_NEEDS_CONVENTIONAL_RESET = 1, 0x0b, never,
        "Firmware activation requires a conventional reset";
    QUEUE_DELETION_INVALID = 1, 0x0c, never, "Invalid queue deletion";
    FEATURE_NOT_SAVEABLE = 1, 0x0d, never, "Feature identifier not saveable";
    FEATURE_NOT_CHANGEABLE = 1, 0x0e, never, "Feature not changeable";
    FEATURE_NOT_NAMESPACE_SPECIFIC = 1, 0x0f, never, "Feature not namespace specific";
    FIRMWARE_NEEDS_SUBSYSTEM_RESET = 1, 0x10, never,
        "Firmware activation requires an NVM subsystem reset";
    FIRMWARE_NEEDS_CONTROLLER_RESET = 1, 0x11, never,
        "Firmware activation requires a controller level reset";
    FIRMWARE_NEEDS_MAXIMUM_TIME = 1, 0x12, never,
        "Firmware activation requires maximum time violation";
    FIRMWARE_PROHIBITED = 1, 0x13, never, "Firmware activation prohibited";
    OVERLAPPING_RANGE = 1, 0x14, never, "Overlapping range";
    NAMESPACE_CAPACITY_INSUFFICIENT = 1, 0x15, never, "Namespace insufficient capacity";
    NAMESPACE_ID_UNAVAILABLE = 1, 0x16, never, "Namespace identifier unavailable";
    NAMESPACE_ALREADY_ATTACHED = 1, 0x18, never, "Namespace already attached";
    NAMESPACE_IS_PRIVATE = 1, 0x19, never, "Namespace is private";
    NAMESPACE_NOT_ATTACHED = 1, 0x1a, never, "Namespace not attached";
    THIN_PROVISIONING_UNSUPPORTED = 1, 0x1b, never, "Thin provisioning not supported";
    CONTROLLER_LIST_INVALID = 1, 0x1c, never, "Controller list invalid";
    SELF_TEST_IN_PROGRESS = 1, 0x1d, retry, "Device self-test in progress";
    PMR_SANITIZE_PROHIBITED = 1, 0x23, never,
        "Sanitize prohibited while persistent memory region is enabled";
    IO_COMMAND_SET_UNSUPPORTED = 1, 0x29, never, "I/O command set not supported";
    CONFLICTING_ATTRIBUTES = 1, 0x80, never, "Conflicting attributes";
    PROTECTION_INVALID = 1, 0x81, never, "Invalid protection information";
    WRITE_TO_READ_ONLY = 1, 0x82, never, "Attempted write to read only range";
    COMMAND_SIZE_LIMIT_EXCEEDED = 1, 0x83, never, "Command size limit exceeded";
    WRITE_FAULT = 2, 0x80, retry, "Write fault";
    UNRECOVERED_READ_ERROR = 2, 0x81, retry, "Unrecovered read error";
    GUARD_CHECK = 2, 0x82, never, "End-to-end guard check error";
    APPLICATION_TAG_CHECK = 2, 0x83, never, "End-to-end application tag check error";
    REFERENCE_TAG_CHECK = 2, 0x84, never, "End-to-end reference tag check error";
    COMPARE_FAILURE = 2, 0x85, never, "Compare failure";
    ACCESS_DENIED = 2, 0x86, never, "Access denied";
    UNWRITTEN_BLOCK = 2, 0x87, never, "Deallocated or unwritten logical block";
}

impl fmt::Display for Status {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Status::ALL.iter().find(|(known, _)| self.is(*known));
        match known {
            Some((_, about)) => write!(to, "{about}")?,
            None => write!(to, "{:?}, code {:02x}h", self.kind(), self.code())?,
        }
        if self.do_not_retry() {
            write!(to, ", do not retry")?;
        }
        if self.more() {
            write!(to, ", more")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Status({self})")
    }
}

impl std::error::Error for Status {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_where_the_standard_has_them() {
        let status = Status::new(2, 0x81).with_more().with_retry_delay(3);
        assert_eq!(status.bits(), 0x2000 | 3 << 11 | 0x281);
        assert_eq!(status.with_do_not_retry(true).bits() & 0x4000, 0x4000);
        assert_eq!(Status::INVALID_FIELD.bits(), 0x4002);
        assert_eq!(status.kind(), StatusType::Media);
        assert!(status.is(Status::UNRECOVERED_READ_ERROR));
        assert_eq!(status.retry_delay(), 3);
    }

    #[test]
    fn no_code_stands_twice_in_the_table() {
        for (index, (status, _)) in Status::ALL.iter().enumerate() {
            let twice = Status::ALL[..index]
                .iter()
                .any(|(other, _)| status.is(*other));
            assert!(!twice, "{status}");
        }
    }

    #[test]
    fn a_status_reads_well() {
        let shown = Status::LBA_OUT_OF_RANGE.to_string();
        assert_eq!(shown, "LBA out of range, do not retry");
        assert_eq!(Status::new(7, 0xc1).to_string(), "Vendor, code c1h");
    }
}
