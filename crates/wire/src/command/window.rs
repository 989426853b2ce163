//! The byte window's calls as vendor's I/O commands (Bae et al., "2B-SSD", ISCA 2018: BA_PIN, BA_FLUSH, BA_SYNC,
//! BA_GET_ENTRY_INFO, BA_READ_DMA). They have the standard form of vendors' commands (Base 2.0 §3.3.3.1), as
//! ICSVSCC bit 0 says: dword 10 counts the dwords of data (NDT), dword 11 those of metadata (NDM, not looked at as
//! there are none), and dwords 12 to 15 are the command's own.
//!
//! | command | opcode | data | dwords 12 and 13 | dword 14 | dword 15 |
//! |---|---|---|---|---|---|
//! | Pin | C0h | none | first block (SLBA) | place in the window, 4 KiB | 7:0 entry, 31:8 length, 4 KiB |
//! | Flush | C4h | none | | | 7:0 entry |
//! | Sync | C8h | none | | | 7:0 entry |
//! | Get Entry Info | CEh | to the host, 1 to 16 dwords | | | 7:0 entry |
//! | Read DMA | D2h | to the host | place in the entry, bytes | | 7:0 entry |
//!
//! Bits 1:0 of each opcode say which way data moves, so that hosts that know nothing of these commands pass them
//! through rightly.

use crate::entry::SubmissionEntry;
use crate::ids::Lba;
use crate::layout::{bits, layout};
use crate::status::Status;

/// Unit of places in the window and of lengths, bytes.
pub const UNIT_BYTES: u64 = 4096;

/// The opcodes.
#[allow(missing_docs)]
pub mod opcode {
    pub const PIN: u8 = 0xc0;
    pub const FLUSH: u8 = 0xc4;
    pub const SYNC: u8 = 0xc8;
    pub const GET_ENTRY_INFO: u8 = 0xce;
    pub const READ_DMA: u8 = 0xd2;
    pub const ALL: [u8; 5] = [PIN, FLUSH, SYNC, GET_ENTRY_INFO, READ_DMA];
}

/// How these commands end where the standard has no status for it: of the vendor's type (SCT 7h).
pub mod status {
    use super::Status;

    /// No such entry.
    pub const NOT_PINNED: Status = Status::new(7, 0x01).with_do_not_retry(true);
    /// The entry is pinned already.
    pub const IN_USE: Status = Status::new(7, 0x02).with_do_not_retry(true);
    /// Another entry takes part of that range of the window.
    pub const WINDOW_OVERLAP: Status = Status::new(7, 0x03).with_do_not_retry(true);
    /// Another entry has pinned some of these blocks.
    pub const BLOCKS_OVERLAP: Status = Status::new(7, 0x04).with_do_not_retry(true);
    /// As many entries are pinned as there can be.
    pub const TABLE_FULL: Status = Status::new(7, 0x05).with_do_not_retry(true);
    /// The entry is being pinned, flushed or copied: later it can be done.
    pub const BUSY: Status = Status::new(7, 0x06);
}

/// BA_PIN: blocks become bytes of the window, until [`WindowCommand::Flush`]. Meanwhile commands to them end with
/// [`Status::ACCESS_DENIED`], or wait, as the drive has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    /// Number by which the range is known from now on; the host chooses.
    pub entry: u8,
    /// First block (SLBA).
    pub start: Lba,
    /// Where in the window, bytes: a multiple of [`UNIT_BYTES`].
    pub window_offset_bytes: u64,
    /// How much, bytes: a multiple of [`UNIT_BYTES`], and not 0.
    pub length_bytes: u64,
}

/// A call of the byte window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowCommand {
    /// BA_PIN.
    Pin(Pin),
    /// BA_FLUSH: an entry's bytes are written to its blocks, durably, and the entry is no more.
    Flush {
        /// Which.
        entry: u8,
    },
    /// BA_SYNC: what has reached the window's bytes of the entry before outlives a loss of power.
    Sync {
        /// Which.
        entry: u8,
    },
    /// BA_GET_ENTRY_INFO: data is an [`EntryInfo`], or its beginning.
    GetEntryInfo {
        /// Which.
        entry: u8,
        /// How much of it the host wants, bytes: 4 to 64.
        bytes: u64,
    },
    /// BA_READ_DMA: data is bytes of the entry.
    ReadDma {
        /// Which.
        entry: u8,
        /// From where in the entry, bytes.
        offset_bytes: u64,
        /// How much, bytes.
        length_bytes: u64,
    },
}

impl WindowCommand {
    /// What a host asks for.
    ///
    /// # Errors
    /// [`Status::INVALID_OPCODE`] if it is none of these, [`Status::INVALID_FIELD`] for lengths that there are not.
    pub fn parse(entry: &SubmissionEntry) -> Result<Self, Status> {
        let last = u64::from(entry.dword(15));
        let number = bits(last, 0, 8) as u8;
        let data_bytes = 4 * u64::from(entry.dword(10));
        match entry.opcode() {
            opcode::PIN => {
                let length_bytes = bits(last, 8, 24) * UNIT_BYTES;
                if length_bytes == 0 {
                    return Err(Status::INVALID_FIELD);
                }
                Ok(WindowCommand::Pin(Pin {
                    entry: number,
                    start: Lba(entry.qword(12)),
                    window_offset_bytes: u64::from(entry.dword(14)) * UNIT_BYTES,
                    length_bytes,
                }))
            }
            opcode::FLUSH => Ok(WindowCommand::Flush { entry: number }),
            opcode::SYNC => Ok(WindowCommand::Sync { entry: number }),
            opcode::GET_ENTRY_INFO => match data_bytes {
                4..=64 => Ok(WindowCommand::GetEntryInfo {
                    entry: number,
                    bytes: data_bytes,
                }),
                _ => Err(Status::INVALID_FIELD),
            },
            opcode::READ_DMA if data_bytes == 0 => Err(Status::INVALID_FIELD),
            opcode::READ_DMA => Ok(WindowCommand::ReadDma {
                entry: number,
                offset_bytes: entry.qword(12),
                length_bytes: data_bytes,
            }),
            _ => Err(Status::INVALID_OPCODE),
        }
    }
}

layout! {
    /// What Get Entry Info returns of an entry.
    pub struct EntryInfo: 64 {
        /// Its number.
        0 => entry: u8,
        /// What it is doing: 1 its bytes are read from flash, 2 it is pinned, 3 its bytes are written to flash.
        1 => state: u8,
        /// First block.
        8 => start: u64,
        /// Length, blocks; not 0-based.
        16 => blocks: u64,
        /// Where in the window, bytes.
        24 => window_offset_bytes: u64,
        /// Length, bytes.
        32 => length_bytes: u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{CommandId, NamespaceId};
    use crate::opcode::{Direction, is_vendor_io};
    use proptest::prelude::*;

    fn entry(opcode: u8, dwords: [u32; 6]) -> SubmissionEntry {
        let mut entry = SubmissionEntry::new(opcode, CommandId(1), NamespaceId(1));
        for (at, dword) in dwords.into_iter().enumerate() {
            entry = entry.with_dword(10 + at, dword);
        }
        entry
    }

    #[test]
    fn each_field_is_where_the_table_says() {
        let parsed = WindowCommand::parse(&entry(0xc0, [0, 0, 0x800, 1, 3, 0x205]));
        let pin = Pin {
            entry: 5,
            start: Lba(1 << 32 | 0x800),
            window_offset_bytes: 3 * 4096,
            length_bytes: 2 * 4096,
        };
        assert_eq!(parsed, Ok(WindowCommand::Pin(pin)));
        let parsed = WindowCommand::parse(&entry(0xc4, [0, 0, 0, 0, 0, 7]));
        assert_eq!(parsed, Ok(WindowCommand::Flush { entry: 7 }));
        let parsed = WindowCommand::parse(&entry(0xc8, [0, 0, 0, 0, 0, 255]));
        assert_eq!(parsed, Ok(WindowCommand::Sync { entry: 255 }));
        let parsed = WindowCommand::parse(&entry(0xce, [16, 0, 0, 0, 0, 1]));
        let (number, bytes) = (1, 64);
        let info = WindowCommand::GetEntryInfo {
            entry: number,
            bytes,
        };
        assert_eq!(parsed, Ok(info));
        let copy = WindowCommand::ReadDma {
            entry: 2,
            offset_bytes: 8,
            length_bytes: 256,
        };
        let parsed = WindowCommand::parse(&entry(0xd2, [64, 0, 8, 0, 0, 2]));
        assert_eq!(parsed, Ok(copy));
    }

    #[test]
    fn lengths_that_there_are_not_are_refused() {
        let refused = Err(Status::INVALID_FIELD);
        assert_eq!(WindowCommand::parse(&entry(0xc0, [0; 6])), refused);
        for dwords in [0, 17, u32::MAX] {
            let asked = entry(0xce, [dwords, 0, 0, 0, 0, 0]);
            assert_eq!(WindowCommand::parse(&asked), refused);
        }
        assert_eq!(WindowCommand::parse(&entry(0xd2, [0; 6])), refused);
    }

    #[test]
    fn opcodes_are_the_vendors_and_say_which_way_data_moves() {
        assert!(opcode::ALL.into_iter().all(is_vendor_io));
        let ways = opcode::ALL.map(Direction::of);
        let (none, to_host) = (Direction::None, Direction::ToHost);
        assert_eq!(ways, [none, none, none, to_host, to_host]);
    }

    #[test]
    fn statuses_are_the_vendors_and_differ() {
        let all = [
            status::NOT_PINNED,
            status::IN_USE,
            status::WINDOW_OVERLAP,
            status::BLOCKS_OVERLAP,
            status::TABLE_FULL,
            status::BUSY,
        ];
        for (at, one) in all.iter().enumerate() {
            assert_eq!(one.kind(), crate::status::StatusType::Vendor);
            assert!(!all[..at].iter().any(|other| other.is(*one)));
        }
    }

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        #[test]
        fn whatever_a_guest_encodes_parses_or_has_a_status(code: u8, dwords: [u32; 6]) {
            match WindowCommand::parse(&entry(code, dwords)) {
                Ok(WindowCommand::Pin(pin)) => {
                    // Sums of places and lengths cannot overflow.
                    prop_assert!(pin.window_offset_bytes + pin.length_bytes < 1 << 45);
                    prop_assert!(pin.length_bytes > 0);
                }
                Ok(_) => prop_assert!(opcode::ALL.contains(&code)),
                Err(Status::INVALID_OPCODE) => prop_assert!(!opcode::ALL.contains(&code)),
                Err(status) => prop_assert_eq!(status, Status::INVALID_FIELD),
            }
        }
    }
}
