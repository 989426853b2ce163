//! Watches a run for the user: progress on a terminal, Ctrl-C, the latency log.

use crate::error::Error;
use crate::interrupt;
use crate::output::{self, OutputFile};
use crate::progress::Meter;
use lodger_core::time::S;
use lodger_core::{Completion, Request};
use lodger_run::{FioLogs, LatencyLog, Observer, Progress, reason};
use std::ops::ControlFlow;

/// The observer of the commands.
#[derive(Debug)]
pub struct Watch {
    log: Option<LatencyLog<OutputFile>>,
    /// The logs that jobs ask for.
    logs: FioLogs<OutputFile>,
    /// The log's file as the user named it.
    log_name: String,
    meter: Meter,
}

impl Watch {
    /// Watches from now on. Completions are written to `log`; `submit_ps` is what of a latency is the
    /// submission.
    #[must_use]
    pub fn new(log: Option<OutputFile>, submit_ps: u64) -> Self {
        let log_name = log.as_ref().map(OutputFile::shown).unwrap_or_default();
        Self {
            log_name: log_name.to_owned(),
            log: log.map(|file| LatencyLog::new(file, submit_ps)),
            logs: FioLogs::none(),
            meter: Meter::new(),
        }
    }

    /// Writes the logs that jobs ask for, too.
    #[must_use]
    pub fn writing(self, logs: FioLogs<OutputFile>) -> Self {
        Self { logs, ..self }
    }

    /// The finished log files, to be put in their places, and the jobs that wrote nothing to those they asked for.
    ///
    /// # Errors
    /// If one could not be written, or the latency log is empty.
    pub fn finish(self) -> Result<(Vec<OutputFile>, Vec<usize>), Error> {
        let finished = self.logs.finish();
        let (mut files, written) =
            finished.map_err(|(name, error)| output::cannot_write(&name, &reason(&error)))?;
        let silent = (0..written.len()).filter(|job| !written[*job]).collect();
        let Some(log) = self.log else {
            return Ok((files, silent));
        };
        // What is still buffered must be known to fit before the report is put in its place.
        match log.finish() {
            Ok((_, 0)) => Err(Error::failed(format!(
                "no request has completed: the latency log `{}` would be empty",
                self.log_name
            ))
            .hint("calls of the byte window are no requests; leave `--latency-log` out")),
            Ok((file, _)) => {
                files.push(file);
                Ok((files, silent))
            }
            Err(error) => Err(output::cannot_write(&self.log_name, &reason(&error))),
        }
    }

    fn show(&mut self, progress: Progress) {
        self.meter.show(progress.share(), || {
            let simulated_s = progress.simulated_ps as f64 / S as f64;
            let requests = progress.requests;
            format!("{requests} requests, {simulated_s:.2} s simulated")
        });
    }
}

impl Observer for Watch {
    #[inline]
    fn begins(&mut self, job: usize, counted_from_ps: u64) {
        self.logs.begins(job, counted_from_ps);
    }

    #[inline]
    fn completed(&mut self, job: usize, request: &Request, completion: &Completion) {
        self.logs.add(job, request, completion);
        if let Some(log) = &mut self.log {
            log.add(request, completion);
        }
    }

    fn committed(&mut self, now_ps: u64, latency_ns: u64) {
        if let Some(log) = &mut self.log {
            log.add_commit(now_ps, latency_ns);
        }
    }

    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        let log_failed = self.log.as_ref().is_some_and(LatencyLog::has_failed);
        if interrupt::requested() || log_failed || self.logs.has_failed() {
            return ControlFlow::Break(());
        }
        self.show(progress);
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::exit_code;

    #[test]
    fn an_empty_log_is_no_success_and_leaves_no_file() {
        let path = std::env::temp_dir().join(format!("lodger-empty-{}.log", std::process::id()));
        let log = OutputFile::create(&path).unwrap();
        let error = Watch::new(Some(log), 0).finish().unwrap_err();
        assert_eq!(exit_code(&error), 1);
        assert!(error.message.contains("would be empty"), "{error}");
        assert!(!path.exists());
    }
}
