//! `lodger trace`.

use super::Streams;
use crate::args::{PlainFormat, TraceCommand, TraceCommandArgs, TraceReadArgs};
use crate::error::Error;
use crate::inputs;
use crate::interrupt;
use crate::output;
use crate::terminal;
use lodger_run::report;
use lodger_workload::trace::format::Format;
use lodger_workload::trace::info::info;
use lodger_workload::trace::{Description, convert};
use std::io::{self, BufWriter, Write};
use std::path::Path;

pub(super) fn run(args: TraceCommandArgs, streams: &mut Streams<'_>) -> Result<(), Error> {
    match args.command {
        TraceCommand::Info {
            file,
            read,
            output_format,
        } => {
            let (trace, description) = load(&file, &read)?;
            let info = info(&trace);
            let text = match output_format {
                PlainFormat::Normal => terminal::told(format!("{description}\n{info}")),
                PlainFormat::Json => format!("{:#}\n", report::trace_json(&info, &description)),
            };
            output::finish(None, streams.stdout, &text)
        }
        TraceCommand::Convert {
            file,
            to,
            read,
            output,
        } => {
            let to: Format = to.parse().map_err(|error| Error {
                // The trace module does not know what the option is called.
                message: format!("`--to`: {error}"),
                ..Error::from(error)
            })?;
            convert_file(&file, to, &read, output.as_deref(), streams)
        }
    }
}

fn load(
    file: &Path,
    read: &TraceReadArgs,
) -> Result<(lodger_workload::trace::Trace, Description), Error> {
    let loaded = inputs::files().trace(file, &inputs::read_options(read)?);
    interrupt::check()?;
    loaded
}

fn convert_file(
    file: &Path,
    to: Format,
    read: &TraceReadArgs,
    output: Option<&Path>,
    streams: &mut Streams<'_>,
) -> Result<(), Error> {
    let (trace, description) = load(file, read)?;
    streams.note(&description.summary);
    for note in &description.notes {
        streams.note(note);
    }
    let mut target = output::begin(output)?;
    let losses = match &mut target {
        Some(target) => convert::convert(&trace, to, &mut Stoppable(target))?,
        None => {
            let mut stdout = BufWriter::new(Stoppable(&mut streams.stdout));
            let losses = convert::convert(&trace, to, &mut stdout);
            match stdout.flush() {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                Err(error) => return Err(output::stdout_failed(&error)),
                Ok(()) => losses?,
            }
        }
    };
    for note in &losses.notes {
        streams.note(note);
    }
    target.map_or(Ok(()), output::OutputFile::commit)
}

/// Fails once the user has asked to stop.
struct Stoppable<W>(W);

impl<W: Write> Write for Stoppable<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if interrupt::requested() {
            return Err(io::Error::other("interrupted"));
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
