//! Every completion as a line of fio's latency log.

use crate::error::Error;
use crate::inputs::reason;
use crate::output::{self, OutputFile};
use lodger_core::time::{MS, NS};
use lodger_core::{Completion, Op, Request};
use std::io::{self, Write};
use std::path::Path;

/// fio's `write_lat_log` with `log_offset=1`: time (ms), completion latency (ns), direction
/// (0 read, 1 write, 2 trim, 3 sync), bytes, offset, priority.
#[derive(Debug)]
pub struct LatencyLog {
    file: OutputFile,
    shown: String,
    failure: Option<io::Error>,
    lines: u64,
}

impl LatencyLog {
    /// Begins a log.
    ///
    /// # Errors
    /// If `path` cannot be written.
    pub fn create(path: &Path) -> Result<Self, Error> {
        Ok(Self {
            file: OutputFile::create(path)?,
            shown: path.display().to_string(),
            failure: None,
            lines: 0,
        })
    }

    /// Whether writing has failed: the run may as well stop.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Adds a line.
    pub fn add(&mut self, request: &Request, completion: &Completion, slat_ps: u64) {
        if self.failure.is_some() {
            return;
        }
        let latency_ps = completion.completed_ps - completion.submitted_ps;
        let direction = match completion.op {
            Op::Read => 0,
            Op::Write => 1,
            Op::Trim => 2,
            Op::Flush => 3,
        };
        let written = writeln!(
            self.file,
            "{}, {}, {direction}, {}, {}, 0x0000",
            completion.completed_ps / MS,
            latency_ps.saturating_sub(slat_ps) / NS,
            request.length_bytes,
            request.offset_bytes
        );
        self.failure = written.err();
        self.lines += 1;
    }

    /// The finished file, to be put in its place.
    ///
    /// # Errors
    /// If a line could not be written, or there is none.
    pub fn finish(mut self) -> Result<OutputFile, Error> {
        // What is still buffered must be known to fit before the report is put in its place.
        let failure = self.failure.or_else(|| self.file.flush().err());
        match failure {
            None if self.lines == 0 => Err(Error::failed(format!(
                "no request has completed: the latency log `{}` would be empty",
                self.shown
            ))
            .hint("calls of the byte window are no requests; leave `--latency-log` out")),
            None => Ok(self.file),
            Some(error) => Err(output::cannot_write(&self.shown, &reason(&error))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_log_is_no_success_and_leaves_no_file() {
        let path = std::env::temp_dir().join(format!("lodger-empty-{}.log", std::process::id()));
        let error = LatencyLog::create(&path).unwrap().finish().unwrap_err();
        assert_eq!(error.exit_code(), 1);
        assert!(error.message.contains("would be empty"), "{error}");
        assert!(!path.exists());
    }
}
