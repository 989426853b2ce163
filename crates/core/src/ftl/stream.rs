//! Streams: what lies together in a superblock.

use crate::nand::CellMode;
use serde::{Deserialize, Serialize};

/// Who fills a superblock. Each stream has one open at a time.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stream {
    /// Host data (with hot/cold streams: what is expected to be overwritten soon).
    Host = 0,
    /// Host data that is expected to last, see [`Ftl::expects_to_last`](super::Ftl::expects_to_last).
    Cold = 1,
    /// Relocated data.
    Gc = 2,
    /// Translation pages.
    Map = 3,
    /// Host data on its way through the single-bit cache.
    Slc = 4,
}

impl Stream {
    /// That its superblocks run in.
    #[inline]
    #[must_use]
    pub const fn mode(self) -> CellMode {
        match self {
            Stream::Slc => CellMode::Slc,
            _ => CellMode::Native,
        }
    }
}

/// How many there are.
pub(super) const STREAMS: usize = 5;
