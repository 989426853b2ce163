//! fio job files: parser and generator.
//!
//! [`parse`] reads a job file as fio 3.33 does and yields one [`Generator`] per clone of each job.
//! Where it differs from fio, on purpose:
//!
//! - All I/O is direct: nothing caches in front of a simulated drive, whatever `direct` says.
//! - `KiB`, `MiB`, ... are powers of 1024. fio takes them for powers of 1000 unless `kb_base=1000`.
//! - Without `ioengine`, or with an asynchronous one, `iodepth` is honoured. With a synchronous
//!   engine (`sync`, `psync`, `pvsync`, ...) the depth is 1, as in fio, whose default engine is
//!   such a one.
//! - Without `ioengine` and with `iodepth=1` the engine is fio's own default, a synchronous one.
//! - A flush (`fsync`, `fdatasync`) is a request in the queue like any other, as with io_uring, of which
//!   fio 3.33 then sends as many as fit the queue instead of one. With libaio the job waits for it. When a
//!   flush is due is as in fio: after the n-th write and again after every read until the next write, and
//!   once more where a pass begins; not after the very last write.
//! - `end_fsync` takes its time and is counted nowhere, as in fio.
//! - Random offsets follow fio's distributions but not its generator. Where all requests are of one length,
//!   the random map is a permutation computed on the fly; a pass visits every block once. Otherwise it is
//!   fio's map, and requests are cut to what is left unvisited. As in fio, the map is off with
//!   `norandommap`, `blockalign`, or a distribution other than `random`. `random_generator=lfsr` draws every
//!   block once without it.
//! - Reads and writes of a mix are drawn independently for every request.
//! - `rate` waits for what is in flight, as fio does by default, but that wait does not delay the
//!   next request beyond its due time.
//! - Runs are repeatable whatever `randrepeat` says; `randrepeat=1` also repeats the order of each
//!   loop, as in fio.
//! - Sequential jobs with holes (`rw=read:4k`) end their pass at the end of the range and go back to the
//!   start at the end of the drive, as fio does.
//! - With a synchronous engine a pass ends with its range and not by its bytes, as in fio: by time there is
//!   no end, and nothing to `verify` in between.
//! - `startdelay` counts from the start of the job's stage.
//! - `verify` reads back what a pass has written, as often and in the order that fio does, and
//!   compares nothing: the data is right. fio flushes nothing before, as it has closed the file.
//! - `sync=1` writes with FUA, as `O_SYNC` on a block device does. With a synchronous engine Linux flushes
//!   the drive after every such write, which is part of the write and of its latency.

mod build;
mod catalog;
mod distribution;
mod generator;
mod ignored;
mod ini;
mod lists;
mod offsets;
mod options;
mod pacing;
mod permutation;
mod power;
mod random_map;
mod read_back;
mod value;

#[cfg(test)]
mod tests;

pub use catalog::{KnownOption, Standing, known_options};
pub use generator::Generator;

use crate::{Workload, WorkloadError};
use options::Options;
use std::fmt;
use std::io;

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
    let mut defaults = Options::default();
    let mut global_options: Vec<(String, String)> = Vec::new();
    let mut numbering = build::Numbering::default();
    let mut jobs = Vec::new();
    for section in ini::read(text, context)? {
        if section.is_global() {
            for (name, value) in defaults.apply_all(&section.settings, context)? {
                global_options.retain(|(old, _)| *old != name);
                global_options.push((name, value));
            }
            continue;
        }
        let mut options = defaults.clone();
        let echo = options.apply_all(&section.settings, context)?;
        for mut job in build::clones(&section, &options, &mut numbering, context)? {
            job.options.clone_from(&echo);
            job.global_options.clone_from(&global_options);
            jobs.push(job);
        }
    }
    if jobs.is_empty() {
        let error = WorkloadError::new(format!("`{}` defines no job", context.file_name));
        return Err(error.hint("add a section such as `[job]`"));
    }
    Ok(Workload {
        description: "fio job file".to_owned(),
        jobs,
    })
}
