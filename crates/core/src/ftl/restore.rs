//! A drive whose flash somebody has kept, page by page, while the drive itself was gone: what it takes to go on.
//!
//! What counts is what was found in flash. The [`Rest`] is what firmware keeps beside it, as it was when it was
//! last saved: which free superblock is next, how worn they are, in which order they were filled. Where the two
//! disagree something was written since, and flash is right. The map follows by [`Ftl::recover`], as after
//! a power cut.

use super::recovery::{FoundStale, Trim};
use super::temperature::Lifespan;
use super::{Ftl, LAST_FOR_NEW_DATA, Oob, Open, Owned, STREAMS, Stream, Superblocks};
use crate::ids::{Ppn, Superblock};
use serde::{Deserialize, Serialize};

/// Highest sequence number that a drive can have reached: half of what is left beyond [`LAST_FOR_NEW_DATA`].
const LAST_IN_USE: u32 = LAST_FOR_NEW_DATA + (1 << 27);

/// What lies in a superblock beside its data.
#[derive(Clone, Debug)]
pub struct Written {
    /// Whose data it was opened for.
    pub stream: Stream,
    /// Out-of-band data of every slot that can be used; [`Oob::NOTHING`] where there is none.
    pub oob: Box<[Oob]>,
    /// One past the last slot that was programmed, be it with data or to fill up a program operation.
    pub end: u32,
    /// Sequence number of the last program operation.
    pub programmed_at: u32,
}

impl Written {
    /// The highest sequence number in it.
    fn newest(&self) -> u32 {
        let data = self.oob.iter().map(|oob| oob.sequence);
        data.max().unwrap_or(0).max(self.programmed_at)
    }
}

/// A superblock as it was found.
#[derive(Clone, Debug, Default)]
pub struct FoundSuperblock {
    /// Times that it has been erased.
    pub erases: u32,
    /// What it holds; `None`: nothing since its last erase.
    pub written: Option<Written>,
}

/// Flash as it was found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// All superblocks, by number.
    pub superblocks: Vec<FoundSuperblock>,
    /// Records of trims, oldest first.
    pub trims: Vec<Trim>,
    /// The highest sequence number up to which everything is known to have ended.
    pub settled_to: u32,
    /// Sectors whose data was lost before it was programmed, a bit each ([`crate::controller::Lost`]).
    pub lost: Vec<(Ppn, u8)>,
}

/// Flash says something that this drive cannot have written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    /// Superblocks of another drive.
    #[error("there are {found} superblocks, the drive has {expected}")]
    Superblocks {
        /// As many were found.
        found: usize,
        /// As many as there must be.
        expected: u32,
    },
    /// What was kept beside is of another drive.
    #[error("what was kept beside is of another drive")]
    Rest,
    /// What a superblock is said to hold does not fit it.
    #[error("superblock {0} holds what does not fit it")]
    Superblock(u32),
    /// More was programmed and trimmed than a drive can number.
    #[error("sequence number {0} is beyond what a drive can have reached")]
    Sequence(u32),
    /// A trim of pages that there are not, or out of order.
    #[error("a record of a trim of pages {from} to {end} does not fit the drive")]
    Trim {
        /// First logical page.
        from: u32,
        /// One past the last.
        end: u32,
    },
}

/// What firmware keeps beside what flash says of itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rest {
    blocks: Superblocks,
    /// By stream; drives of before have none for the last ones.
    open: Vec<Open>,
    sequence: u32,
    lifespan: Lifespan,
    found_stale: FoundStale,
}

impl Ftl {
    /// What is to be kept, besides what lies in flash.
    #[must_use]
    pub fn rest(&self) -> Rest {
        Rest {
            blocks: self.blocks.without_slots(),
            open: self.open.to_vec(),
            sequence: self.sequence,
            lifespan: self.lifespan,
            found_stale: self.found_stale.clone(),
        }
    }

    /// A drive in its initial state takes over what was found; [`Ftl::recover`] is to follow.
    ///
    /// # Errors
    /// If a drive like this one cannot have written that.
    ///
    /// # Panics
    /// If the drive is preconditioned: then it holds what nobody has written.
    pub fn restore(&mut self, rest: &Rest, found: Found) -> Result<(), Contradiction> {
        assert!(
            self.map.formula().is_none(),
            "nothing is there from the start"
        );
        self.check_found(&found)?;
        rest.check(self)?;
        self.blocks = rest.blocks.clone();
        for (open, was) in self.open.iter_mut().zip(&rest.open) {
            *open = *was;
        }
        self.sequence = rest.sequence;
        self.lifespan = rest.lifespan;
        self.found_stale = rest.found_stale.clone();
        self.found_stale.settled_to = Some(found.settled_to);
        let trimmed = found.trims.iter().map(|trim| trim.sequence);
        self.sequence = self.sequence.max(trimmed.max().unwrap_or(0));
        let of_data = found.superblocks.iter().filter_map(|f| f.written.as_ref());
        let newest = of_data.map(Written::newest).max();
        self.sequence = self.sequence.max(newest.unwrap_or(0));
        if self.sequence > LAST_IN_USE {
            return Err(Contradiction::Sequence(self.sequence));
        }
        let was_open = std::mem::take(&mut self.open);
        // Not known to be closed: full ones since it is not known when, and those that may be open still.
        let mut others = Vec::new();
        for (superblock, found) in (0u32..).map(Superblock).zip(found.superblocks) {
            let Some(written) = &found.written else {
                self.blocks.find(superblock, found);
                continue;
            };
            let (end, at, stream) = (written.end, written.programmed_at, written.stream);
            let is_same = self.blocks[superblock].erases == found.erases;
            if self.blocks.find(superblock, found) {
                continue;
            }
            // Word lines that an earlier cut has torn are not used again.
            let was = was_open[stream as usize];
            let is_same = is_same && was.superblock == Some(superblock);
            let next = if is_same { was.next_slot.max(end) } else { end };
            others.push((at, superblock, stream, next));
        }
        others.sort_unstable_by_key(|&(at, superblock, ..)| (at, superblock.0));
        for (index, &(_, superblock, stream, next_slot)) in others.iter().enumerate() {
            let is_last = others[index + 1..].iter().all(|other| other.2 != stream);
            let usable = self.geometry.usable_slots(self.blocks[superblock].mode);
            if is_last && next_slot < usable {
                self.blocks.found_open(superblock);
                self.open[stream as usize] = Open {
                    superblock: Some(superblock),
                    next_slot,
                };
            } else {
                self.blocks.found_closed(superblock);
            }
        }
        Ok(())
    }

    fn check_found(&self, found: &Found) -> Result<(), Contradiction> {
        let expected = self.geometry.superblocks;
        if found.superblocks.len() != expected as usize {
            let found = found.superblocks.len();
            return Err(Contradiction::Superblocks { found, expected });
        }
        for (number, found) in (0u32..).zip(&found.superblocks) {
            let Some(written) = &found.written else {
                continue;
            };
            let mode = written.stream.mode();
            let is_apart = self.blocks.is_apart(Superblock(number));
            let may_be_slc = is_apart || self.borrows();
            let unit = self.geometry.unit_slots(mode);
            let fits = written.oob.len() == self.geometry.usable_slots(mode) as usize
                && (mode.is_slc() || !is_apart)
                && (!mode.is_slc() || may_be_slc)
                && written.end > 0
                && written.end as usize <= written.oob.len()
                && written.end.is_multiple_of(unit)
                && written.oob[written.end as usize..]
                    .iter()
                    .all(|oob| *oob == Oob::NOTHING)
                && written.oob.iter().all(|oob| self.can_own(oob));
            if !fits {
                return Err(Contradiction::Superblock(number));
            }
        }
        let is_sorted = found.trims.is_sorted_by_key(|trim| trim.sequence);
        let user_slots = self.user_slots();
        let fits = |trim: &Trim| trim.from < trim.end && trim.end <= user_slots && is_sorted;
        match found.trims.iter().find(|trim| !fits(trim)) {
            None => Ok(()),
            Some(&Trim { from, end, .. }) => Err(Contradiction::Trim { from, end }),
        }
    }

    fn can_own(&self, oob: &Oob) -> bool {
        match oob.owner.get() {
            Some(Owned::Data(lpn)) => lpn.0 < self.user_slots() && oob.sequence < u32::MAX,
            Some(Owned::Map(page)) => page.0 < self.directory.pages() && oob.sequence < u32::MAX,
            None => true,
        }
    }
}

impl Rest {
    fn check(&self, ftl: &Ftl) -> Result<(), Contradiction> {
        let (own, all) = (self.blocks.all(), ftl.blocks.all());
        let may_differ = ftl.borrows();
        let mut both = (0u32..).zip(own.iter().zip(all));
        let is_same = both.all(|(number, (a, b))| {
            a.mode == b.mode || (may_differ && !ftl.blocks.is_apart(Superblock(number)))
        });
        let is_whole = own.len() == all.len() && is_same;
        let exists = |open: &Open| open.superblock.is_none_or(|s| s.index() < all.len());
        let pages = ftl.directory.pages();
        match is_whole
            && self.open.len() <= STREAMS
            && self.open.iter().all(exists)
            && self.found_stale.is_within(pages)
        {
            true => Ok(()),
            false => Err(Contradiction::Rest),
        }
    }
}
