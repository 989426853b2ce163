//! Every completion as a line of fio's latency log.

use crate::stats::direction_of;
use lodger_core::time::{MS, NS};
use lodger_core::{Completion, Request, Status};
use std::io::{self, Write};

/// fio's `write_lat_log` with `log_offset=1`: time (ms), completion latency (ns), direction
/// (0 read, 1 write, 2 trim, 3 sync; 4 for a database's commit, which fio has none of), bytes, offset, priority. As in fio,
/// which logs what it accounts for (`io_completed` of `io_u.c`), there is no line for a request that has failed.
#[derive(Debug)]
pub struct LatencyLog<W> {
    writer: W,
    submit_ps: u64,
    failure: Option<io::Error>,
    heard: u64,
}

impl<W: Write> LatencyLog<W> {
    /// Begins a log. `submit_ps`: what of a latency is the submission (`host.submit_ps` of the
    /// drive's spec), which fio does not count.
    pub fn new(writer: W, submit_ps: u64) -> Self {
        Self {
            writer,
            submit_ps,
            failure: None,
            heard: 0,
        }
    }

    /// Whether writing has failed: the run may as well stop.
    pub fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Adds a line, if it succeeded.
    pub fn add(&mut self, request: &Request, completion: &Completion) {
        if self.failure.is_some() {
            return;
        }
        self.heard += 1;
        if completion.status != Status::Success {
            return;
        }
        let latency_ps = completion.completed_ps - completion.submitted_ps;
        let direction = direction_of(completion.op);
        let written = writeln!(
            self.writer,
            "{}, {}, {direction}, {}, {}, 0x0000",
            completion.completed_ps / MS,
            latency_ps.saturating_sub(self.submit_ps) / NS,
            request.length_bytes,
            request.offset_bytes
        );
        self.failure = written.err();
    }

    /// Adds a line for a database's commit: direction 4, without bytes and offset.
    pub fn add_commit(&mut self, now_ps: u64, latency_ns: u64) {
        if self.failure.is_some() {
            return;
        }
        let written = writeln!(
            self.writer,
            "{}, {latency_ns}, 4, 0, 0, 0x0000",
            now_ps / MS
        );
        self.failure = written.err();
        self.heard += 1;
    }

    /// The writer, with everything handed on to it, and the number of completions and commits that it has heard of.
    ///
    /// # Errors
    /// If a line could not be written.
    pub fn finish(mut self) -> io::Result<(W, u64)> {
        match self.failure {
            Some(error) => Err(error),
            None => self.writer.flush().map(|()| (self.writer, self.heard)),
        }
    }
}
