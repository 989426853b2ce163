//! Blocks of a namespace: ranges of them, and whether they are inside (NVM Command Set 1.0 §2.1).

use crate::ids::Lba;
use crate::status::Status;

/// Blocks of a namespace from `start` on. The number may be 0, in ranges of Dataset Management alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRange {
    /// First block.
    pub start: Lba,
    /// How many.
    pub blocks: u64,
}

impl BlockRange {
    /// Holds the range against a namespace of `size_blocks` (NSZE).
    ///
    /// # Errors
    /// [`Status::LBA_OUT_OF_RANGE`] if it does not end inside, or has no end at all.
    pub fn within(self, size_blocks: u64) -> Result<Self, Status> {
        match self.start.0.checked_add(self.blocks) {
            Some(end) if end <= size_blocks => Ok(self),
            _ => Err(Status::LBA_OUT_OF_RANGE),
        }
    }

    /// Bytes of the range, if a `u64` holds them.
    #[must_use]
    pub fn bytes(self, block: BlockSize) -> Option<u64> {
        self.blocks.checked_mul(block.bytes())
    }
}

/// Bytes of a block, as a power of two (LBADS of the LBA format in use).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSize(u8);

impl BlockSize {
    /// 512 bytes, the smallest there is.
    pub const B512: BlockSize = BlockSize(9);
    /// 4 KiB.
    pub const KIB4: BlockSize = BlockSize(12);

    /// From LBADS, 9 to 31: the size is 2 to its power.
    #[must_use]
    pub const fn from_lbads(lbads: u8) -> Option<Self> {
        match lbads {
            9..=31 => Some(BlockSize(lbads)),
            _ => None,
        }
    }

    /// The power of two.
    #[must_use]
    pub const fn lbads(self) -> u8 {
        self.0
    }

    /// Bytes of a block.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        1 << self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_inside_or_not_at_all() {
        let inside = |start, blocks, size| {
            let start = Lba(start);
            BlockRange { start, blocks }.within(size).is_ok()
        };
        assert!(inside(0, 100, 100));
        assert!(inside(100, 0, 100));
        assert!(!inside(1, 100, 100));
        assert!(!inside(101, 0, 100));
        assert!(!inside(u64::MAX, 1, u64::MAX));
        assert!(!inside(u64::MAX - 1, 0x1_0000, u64::MAX));
    }
}
