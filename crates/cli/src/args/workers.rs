//! How many runs go on at a time.

use clap::Args;
use std::num::NonZeroUsize;
use std::thread;

/// More would only wait for one another.
const MOST: usize = 1024;

/// Runs side by side.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Processors")]
pub struct WorkersArgs {
    /// Runs at a time [default: as many as there are processors]
    ///
    /// Nothing in a report depends on it. Each run that goes on takes the memory that it would take by itself.
    #[arg(long, value_name = "N", value_parser = workers, allow_negative_numbers = true)]
    workers: Option<NonZeroUsize>,
}

impl WorkersArgs {
    /// Runs at a time.
    #[must_use]
    pub fn count(self) -> NonZeroUsize {
        self.workers
            .or_else(|| thread::available_parallelism().ok())
            .unwrap_or(NonZeroUsize::MIN)
    }
}

fn workers(text: &str) -> Result<NonZeroUsize, String> {
    let count = text.parse().ok().filter(|count| *count <= MOST);
    count
        .and_then(NonZeroUsize::new)
        .ok_or_else(|| format!("must be a whole number from 1 to {MOST}"))
}
