//! Opcodes (Base 2.0 §5 and §7; NVM Command Set 1.0 §3.2), and which way data moves.

/// Which way a command's data moves: bits 1:0 of each opcode (Base 2.0 §3.3.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// No data.
    None,
    /// From the host to the controller.
    FromHost,
    /// From the controller to the host.
    ToHost,
    /// Both ways.
    Both,
}

impl Direction {
    /// What an opcode says of itself; true of vendors' opcodes, too.
    #[must_use]
    pub const fn of(opcode: u8) -> Self {
        match opcode & 3 {
            0 => Direction::None,
            1 => Direction::FromHost,
            2 => Direction::ToHost,
            _ => Direction::Both,
        }
    }
}

macro_rules! opcodes {
    ($(#[$about:meta])* $name:ident { $($(#[$op_about:meta])* $op:ident = $code:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$op_about])* $op = $code,)* }

        impl $name {
            /// Every one, in order.
            pub const ALL: &'static [Self] = &[$(Self::$op,)*];

            /// From its code; `None` if there is none, or it is of a vendor's.
            #[must_use]
            pub const fn from_code(code: u8) -> Option<Self> {
                match code { $($code => Some(Self::$op),)* _ => None }
            }

            /// Its code.
            #[must_use]
            pub const fn code(self) -> u8 {
                self as u8
            }
        }
    };
}

opcodes! {
    /// Commands of the admin queue.
    AdminOpcode {
        /// Delete I/O Submission Queue, §5.7.
        DeleteSubmissionQueue = 0x00,
        /// Create I/O Submission Queue, §5.5.
        CreateSubmissionQueue = 0x01,
        /// Get Log Page, §5.16.
        GetLogPage = 0x02,
        /// Delete I/O Completion Queue, §5.6.
        DeleteCompletionQueue = 0x04,
        /// Create I/O Completion Queue, §5.4.
        CreateCompletionQueue = 0x05,
        /// Identify, §5.17.
        Identify = 0x06,
        /// Abort, §5.1.
        Abort = 0x08,
        /// Set Features, §5.27.
        SetFeatures = 0x09,
        /// Get Features, §5.15.
        GetFeatures = 0x0a,
        /// Asynchronous Event Request, §5.2.
        AsyncEventRequest = 0x0c,
        /// Namespace Management, §5.23.
        NamespaceManagement = 0x0d,
        /// Firmware Commit, §5.12.
        FirmwareCommit = 0x10,
        /// Firmware Image Download, §5.13.
        FirmwareDownload = 0x11,
        /// Device Self-test, §5.8.
        DeviceSelfTest = 0x14,
        /// Namespace Attachment, §5.22.
        NamespaceAttachment = 0x15,
        /// Keep Alive, §5.18.
        KeepAlive = 0x18,
        /// Directive Send, §5.10.
        DirectiveSend = 0x19,
        /// Directive Receive, §5.9.
        DirectiveReceive = 0x1a,
        /// Virtualization Management, §5.28.
        VirtualizationManagement = 0x1c,
        /// NVMe-MI Send, §5.21.
        MiSend = 0x1d,
        /// NVMe-MI Receive, §5.20.
        MiReceive = 0x1e,
        /// Capacity Management, §5.3.
        CapacityManagement = 0x20,
        /// Lockdown, §5.19.
        Lockdown = 0x24,
        /// Doorbell Buffer Config, §5.11.
        DoorbellBufferConfig = 0x7c,
        /// Fabrics commands; not on PCI Express.
        Fabrics = 0x7f,
        /// Format NVM, §5.14.
        FormatNvm = 0x80,
        /// Security Send, §5.26.
        SecuritySend = 0x81,
        /// Security Receive, §5.25.
        SecurityReceive = 0x82,
        /// Sanitize, §5.24.
        Sanitize = 0x84,
        /// Get LBA Status, NVM Command Set 1.0 §4.2.
        GetLbaStatus = 0x86,
    }
}

opcodes! {
    /// Commands of I/O queues, NVM command set.
    IoOpcode {
        /// Flush, Base 2.0 §7.1.
        Flush = 0x00,
        /// Write, NVM Command Set 1.0 §3.2.6.
        Write = 0x01,
        /// Read, NVM Command Set 1.0 §3.2.4.
        Read = 0x02,
        /// Write Uncorrectable, NVM Command Set 1.0 §3.2.7.
        WriteUncorrectable = 0x04,
        /// Compare, NVM Command Set 1.0 §3.2.1.
        Compare = 0x05,
        /// Write Zeroes, NVM Command Set 1.0 §3.2.8.
        WriteZeroes = 0x08,
        /// Dataset Management, NVM Command Set 1.0 §3.2.3.
        DatasetManagement = 0x09,
        /// Verify, NVM Command Set 1.0 §3.2.5.
        Verify = 0x0c,
        /// Reservation Register, Base 2.0 §7.3.
        ReservationRegister = 0x0d,
        /// Reservation Report, Base 2.0 §7.5.
        ReservationReport = 0x0e,
        /// Reservation Acquire, Base 2.0 §7.2.
        ReservationAcquire = 0x11,
        /// Reservation Release, Base 2.0 §7.4.
        ReservationRelease = 0x15,
        /// Copy, NVM Command Set 1.0 §3.2.2.
        Copy = 0x19,
    }
}

/// Whether an admin opcode is a vendor's.
#[must_use]
pub const fn is_vendor_admin(code: u8) -> bool {
    code >= 0xc0
}

/// Whether an I/O opcode is a vendor's.
#[must_use]
pub const fn is_vendor_io(code: u8) -> bool {
    code >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opcodes_say_which_way_data_moves() {
        assert_eq!(
            Direction::of(AdminOpcode::Identify.code()),
            Direction::ToHost
        );
        assert_eq!(Direction::of(IoOpcode::Write.code()), Direction::FromHost);
        assert_eq!(Direction::of(IoOpcode::Compare.code()), Direction::FromHost);
        assert_eq!(Direction::of(IoOpcode::Flush.code()), Direction::None);
        assert_eq!(Direction::of(0xc3), Direction::Both);
    }

    #[test]
    fn codes_lead_back() {
        for code in 0..=255 {
            let admin = AdminOpcode::from_code(code);
            assert!(admin.is_none_or(|opcode| opcode.code() == code && !is_vendor_admin(code)));
            let io = IoOpcode::from_code(code);
            assert!(io.is_none_or(|opcode| opcode.code() == code && !is_vendor_io(code)));
        }
    }
}
