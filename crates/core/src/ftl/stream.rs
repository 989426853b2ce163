//! Streams: what lies together in a superblock.

use super::{Ftl, Mover};
use crate::nand::{Cause, CellMode};
use crate::spec::FtlSpec;
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

    /// Where relocated data goes.
    #[must_use]
    pub const fn of_relocated(ftl: &FtlSpec) -> Stream {
        match ftl.gc_own_stream {
            true => Stream::Gc,
            // What had to be relocated has lasted.
            false => Stream::of_lasting(ftl),
        }
    }

    /// Where new data goes that has lasted, or all of it where that is not told apart.
    #[must_use]
    pub const fn of_lasting(ftl: &FtlSpec) -> Stream {
        match ftl.hot_cold_streams {
            true => Stream::Cold,
            false => Stream::Host,
        }
    }

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
    /// Where data goes that is emptied out of superblocks. What comes out of a single-bit cache that stands apart is new data,
    /// which has outlived what was overwritten there: beside what was collected it would be collected with that again. (What is
    /// emptied out of a superblock that the cache has borrowed has been chosen as a victim, as what is collected.)
    pub(crate) fn moves_go_to(&self, mover: Mover, cause: Cause) -> Stream {
        match (mover, cause) {
            (Mover::Fold, _) => self.lasting_stream,
            (_, Cause::Wear) => Stream::Wear,
            _ => self.relocation_stream,
        }
    }

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
