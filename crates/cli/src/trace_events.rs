//! The file that `--trace-events` names.

use crate::args::TimeArgs;
use crate::error::Error;
use crate::output::{OutputFile, cannot_write};
use lodger_run::trace_events::{LIMIT_BYTES_MAX, LIMIT_BYTES_MIN};
use lodger_run::{TraceEvents, reason, size};
use std::io::Write;

/// Without `--trace-events-limit`.
const LIMIT_BYTES: u64 = 64 << 20;

/// A trace's file in the making.
#[derive(Debug)]
pub(crate) struct TraceEventsFile {
    file: OutputFile,
    limit_bytes: u64,
}

impl TraceEventsFile {
    /// Begins the file, if one is wanted.
    ///
    /// # Errors
    /// If it cannot be written, or the limit makes no sense.
    pub(crate) fn begin(args: &TimeArgs) -> Result<Option<Self>, Error> {
        let Some(path) = &args.trace_events else {
            return Ok(None);
        };
        let option = "--trace-events-limit";
        let limit_bytes = match &args.trace_events_limit {
            None => LIMIT_BYTES,
            Some(text) => size::parse(option, text, None)?,
        };
        if !(LIMIT_BYTES_MIN..=LIMIT_BYTES_MAX).contains(&limit_bytes) {
            let [min, max] = [LIMIT_BYTES_MIN, LIMIT_BYTES_MAX].map(size::show);
            let found = size::show_exact(limit_bytes);
            let message = format!("`{option}` must be from {min} to {max}, found {found}");
            return Err(
                Error::input(message).hint("the trace stands in memory while the run lasts")
            );
        }
        Ok(Some(TraceEventsFile {
            file: OutputFile::create(path)?,
            limit_bytes,
        }))
    }

    /// Who keeps what happens.
    pub(crate) fn events(&self) -> TraceEvents {
        TraceEvents::new(self.limit_bytes)
    }

    /// Writes what was kept; the file is to be put in its place. Says how much of the run it is.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn write(self, events: TraceEvents) -> Result<(OutputFile, String), Error> {
        let mut file = self.file;
        let written = events.write(&mut file);
        let kept = written.and_then(|kept| file.flush().map(|()| kept));
        let kept = kept.map_err(|error| cannot_write(file.shown(), &reason(&error)))?;
        let names = ["requests", "flash operations", "collected superblocks"];
        let of = names.iter().zip(kept.kinds);
        let of = of.map(|(name, (kept, all))| format!("{kept} of {all} {name}"));
        let text = format!(
            "`{}` has {}",
            file.shown(),
            of.collect::<Vec<_>>().join(", ")
        );
        Ok((file, text))
    }
}
