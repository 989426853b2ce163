//! Watches a run for the user: progress on a terminal, Ctrl-C, the latency log.

use crate::error::Error;
use crate::interrupt;
use crate::output::{self, OutputFile};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lodger_core::time::{S, US};
use lodger_core::{Completion, Request};
use lodger_run::{FioLogs, LatencyLog, Observer, Progress, reason};
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Shorter runs show no progress: it would only flicker.
const SILENT: Duration = Duration::from_secs(1);

/// The observer of the commands.
#[derive(Debug)]
pub struct Watch {
    log: Option<LatencyLog<OutputFile>>,
    /// The logs that jobs ask for.
    logs: FioLogs<OutputFile>,
    /// The log's file as the user named it.
    log_name: String,
    started: Instant,
    bar: Option<ProgressBar>,
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
            started: Instant::now(),
            bar: None,
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
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
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
        if self.bar.is_none() {
            if self.started.elapsed() < SILENT || !std::io::stderr().is_terminal() {
                return;
            }
            let target = ProgressDrawTarget::stderr_with_hz(4);
            self.bar = Some(match (progress.expected, progress.expected_ps) {
                (None, Some(expected_ps)) => {
                    let style = "{bar:30} {percent}% {msg}, {eta} left";
                    let style = ProgressStyle::with_template(style);
                    let bar = ProgressBar::with_draw_target(Some(expected_ps / US), target);
                    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
                }
                (Some(expected), _) => {
                    let style = "{bar:30} {percent}% {human_pos} requests, {msg}, {eta} left";
                    let style = ProgressStyle::with_template(style);
                    let bar = ProgressBar::with_draw_target(Some(expected), target);
                    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
                }
                (None, None) => {
                    let style =
                        ProgressStyle::with_template("{spinner} {human_pos} requests, {msg}");
                    let bar = ProgressBar::with_draw_target(None, target);
                    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
                }
            });
        }
        if let Some(bar) = &self.bar {
            let simulated_s = progress.simulated_ps as f64 / S as f64;
            match (progress.expected, progress.expected_ps) {
                (None, Some(expected_ps)) => {
                    let all_s = expected_ps as f64 / S as f64;
                    let requests = progress.requests;
                    bar.set_message(format!(
                        "{requests} requests, {simulated_s:.2} of {all_s:.2} s simulated"
                    ));
                    bar.set_position(progress.simulated_ps / US);
                }
                _ => {
                    bar.set_message(format!("{simulated_s:.2} s simulated"));
                    bar.set_position(progress.requests);
                }
            }
        }
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
