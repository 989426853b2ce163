//! Streams: what lies together in a superblock.

use super::Ftl;
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
    /// Data moved by static wear levelling, or written anew before it cannot be read: it has lain still, and beside what was relocated
    /// because it is written it would be relocated with that again and again.
    Wear = 5,
}

impl Stream {
    /// All of them, in the order of their numbers.
    pub const ALL: [Stream; 6] = [
        Stream::Host,
        Stream::Cold,
        Stream::Gc,
        Stream::Map,
        Stream::Slc,
        Stream::Wear,
    ];

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
pub(super) const STREAMS: usize = Stream::ALL.len();

impl Ftl {
    /// Whose superblock moves go to: where nothing is free, what garbage collection and wear levelling have open is there for either.
    pub(super) fn with_room(&self, stream: Stream, moves: bool) -> Stream {
        let other = match stream {
            _ if !moves => return stream,
            Stream::Wear => self.relocation_stream,
            _ if stream == self.relocation_stream => Stream::Wear,
            _ => return stream,
        };
        let has_none = self.left_in(stream) == 0 && self.blocks.free_count(CellMode::Native) == 0;
        match has_none && self.left_in(other) > 0 {
            true => other,
            false => stream,
        }
    }
}
