//! How what leaves the drive is protected, and what that takes.

use super::{ENTRIES_PER_TRANSLATION_PAGE, Integrity};

/// What is read from host memory for a map entry, and written for a changed one: a cache line.
pub const LINE_BYTES: u64 = 64;
/// Version numbers in one line of them: 5 bits each, beside a tag of 64 bits and a major number of
/// 32 (the split counters of Yan et al., ISCA 2006).
pub const VERSIONS_PER_LINE: u64 = 83;

impl Integrity {
    /// Bytes of a line left for entries: a checksum takes 4 of 64, a tag 8.
    #[must_use]
    pub const fn line_data_bytes(self) -> u64 {
        match self {
            Integrity::None => LINE_BYTES,
            Integrity::Crc => LINE_BYTES - 4,
            Integrity::Mac => LINE_BYTES - 8,
        }
    }

    /// Bytes of host memory that `data_bytes` of entries of one translation page take. With tags,
    /// each line has a version, and the versions of a page have lines of their own.
    #[must_use]
    pub const fn page_bytes(self, data_bytes: u64) -> u64 {
        let lines = data_bytes.div_ceil(self.line_data_bytes());
        match self {
            Integrity::None => data_bytes,
            Integrity::Crc => lines * LINE_BYTES,
            Integrity::Mac => (lines + lines.div_ceil(VERSIONS_PER_LINE)) * LINE_BYTES,
        }
    }

    /// Bytes of host memory that a translation page of plain entries takes.
    #[must_use]
    pub const fn plain_page_bytes(self) -> u64 {
        self.page_bytes(ENTRIES_PER_TRANSLATION_PAGE * 4)
    }

    /// Bytes read for one look-up: the entry's line, with tags its versions' line too.
    #[must_use]
    pub const fn look_up_bytes(self) -> u64 {
        match self {
            Integrity::None | Integrity::Crc => LINE_BYTES,
            Integrity::Mac => 2 * LINE_BYTES,
        }
    }

    /// Bytes read before an entry can be changed: a check covers its neighbours too.
    #[must_use]
    pub const fn update_read_bytes(self) -> u64 {
        match self {
            Integrity::None => 0,
            Integrity::Crc | Integrity::Mac => self.look_up_bytes(),
        }
    }

    /// Bytes written when an entry changes.
    #[must_use]
    pub const fn update_write_bytes(self) -> u64 {
        self.look_up_bytes()
    }
}
