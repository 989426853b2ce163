//! fio job files: parser and generator.
//!
//! [`parse`] reads a job file as fio 3.33 does and yields one [`Generator`] per clone of each job.
//! Where it differs from fio, on purpose:
//!
#![doc = include_str!("differences.md")]

mod backlog;
mod beside;
mod build;
mod catalog;
mod distribution;
mod examples;
mod expected;
mod failures;
mod files;
mod flow;
mod generator;
mod ignored;
mod ini;
mod latency;
mod lists;
mod logs;
mod notes;
mod offsets;
mod options;
mod order;
mod pacing;
mod permutation;
mod plan;
mod power;
mod random_map;
mod read_back;
mod reaping;
mod replay;
mod steady;
mod value;
mod zones;

#[cfg(test)]
mod tests;

pub use beside::{Beside, parse_beside};
pub use catalog::{KnownOption, Standing, is_known, known_options, of_the_program, takes_no_value};
pub use failures::errno;
pub use generator::Generator;
pub use latency::LatencyGoal;
pub use logs::Logs;
pub use reaping::Batches;
pub use steady::Steady;

use crate::{Workload, WorkloadError};
use std::fmt;
use std::io;

/// Where this differs from fio, as a list in Markdown.
pub const DIFFERENCES: &str = include_str!("differences.md");

/// fio's own limit on jobs, clones included.
const JOBS_MAX: usize = 4096;

/// What a job file is read against. Parsing does no I/O of its own.
pub struct Context<'a> {
    /// Name of the job file, for messages and to find included files beside it.
    pub file_name: &'a str,
    /// Looks up an environment variable, for `${NAME}`.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// Reads a file, for `include`.
    pub include: &'a dyn Fn(&str) -> io::Result<String>,
    /// Capacity of the drive in bytes: the range of a job without `size`, and the bound of all.
    pub drive_bytes: u64,
    /// Seed of the run; combined with each job's `randseed` and number.
    pub seed: u64,
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("file_name", &self.file_name)
            .field("drive_bytes", &self.drive_bytes)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

/// Reads a fio job file.
///
/// # Errors
/// Anything that fio would reject, that would change the result and is not supported, or that does
/// not fit the drive; with file, line and usually a hint.
pub fn parse(text: &str, context: &Context<'_>) -> Result<Workload, WorkloadError> {
    parse_beside(text, &Beside::default(), context)
}
