//! Trims and writes that come in pairs (fio's `trimwrite`, and `randtrimwrite`).

use super::super::offsets::{Direction, TRIM, WRITE};
use super::super::plan::Choice;

/// What has been trimmed and written of the pairs of a pass.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs {
    /// The range trimmed last and not yet written.
    trimmed: Option<(u64, u64)>,
    /// Where the last write and the last trim began.
    starts: [Option<u64>; 2],
}

impl Pairs {
    /// What comes next of a pair: what is trimmed is written.
    pub fn next(&self) -> Direction {
        match self.trimmed.is_none() && self.starts[0] == self.starts[1] {
            true => TRIM,
            false => WRITE,
        }
    }

    #[inline]
    pub fn trimmed(&self) -> Option<(u64, u64)> {
        self.trimmed
    }

    /// A range has been chosen. Returns whether it counts: the pair moves the job on by one range, that of the write.
    #[inline]
    pub fn counts(&mut self, choice: &Choice, direction: Direction, range: (u64, u64)) -> bool {
        match choice {
            Choice::TrimThenWrite => {
                self.trimmed = (direction == TRIM).then_some(range);
                direction == WRITE
            }
            Choice::TrimAndWrite => {
                self.starts[usize::from(direction == TRIM)] = Some(range.0);
                direction == WRITE
            }
            Choice::Always(_) | Choice::Mix { .. } => true,
        }
    }
}
