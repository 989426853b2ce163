//! `lodger trace`.

use super::Streams;
use crate::args::{PlainFormat, TraceCommand, TraceCommandArgs, TraceReadArgs};
use crate::error::Error;
use crate::inputs;
use crate::interrupt;
use crate::output;
use lodger_run::reason;
use lodger_workload::trace::format::Format;
use lodger_workload::trace::info::{Info, OpInfo, info};
use lodger_workload::trace::{Description, convert};
use serde_json::{Value, json};
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
                PlainFormat::Normal => format!("{description}\n{info}"),
                PlainFormat::Json => format!("{:#}\n", info_json(&info, &description)),
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
    streams.note("note", &description.summary);
    for note in &description.notes {
        streams.note("note", note);
    }
    let mut target = output::begin(output)?;
    let losses = match &mut target {
        Some(target) => convert::convert(&trace, to, &mut Stoppable(target))?,
        None => {
            let mut stdout = BufWriter::new(Stoppable(&mut streams.stdout));
            let losses = convert::convert(&trace, to, &mut stdout);
            match stdout.flush() {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                Err(error) => {
                    return Err(output::cannot_write("standard output", &reason(&error)));
                }
                Ok(()) => losses?,
            }
        }
    };
    for note in &losses.notes {
        streams.note("note", note);
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

fn info_json(info: &Info, description: &Description) -> Value {
    let op = |op: &OpInfo| {
        json!({
            "requests": op.requests,
            "bytes": op.bytes,
            "sequential_share": op.sequential_share,
        })
    };
    let sizes: Vec<Value> = info
        .sizes
        .iter()
        .map(|size| {
            json!({
                "length_bytes": size.length_bytes,
                "reads": size.reads,
                "writes": size.writes,
            })
        })
        .collect();
    let gaps = &info.interarrival;
    json!({
        "name": info.name,
        "format": description.format.name(),
        "time_unit": description.time_unit.to_string(),
        "device": description.device,
        "notes": description.notes,
        "requests": info.requests,
        "read": op(&info.read),
        "write": op(&info.write),
        "trim": op(&info.trim),
        "flushes": info.flushes,
        "fua_writes": info.fua_writes,
        "unaligned_4k_share": info.unaligned_4k_share,
        "unaligned_512_share": info.unaligned_512_share,
        "sizes": sizes,
        "first_byte": info.first_byte,
        "end_byte": info.end_byte,
        "footprint_bytes": info.footprint_bytes,
        "footprint_is_lower_bound": info.footprint_is_lower_bound,
        "duration_ps": info.duration_ps,
        "mean_rate_per_s": info.mean_rate_per_s,
        "peak_rate_per_s": info.peak_rate_per_s,
        "peak_window_ps": info.peak_window_ps,
        "interarrival_ps": {
            "min": gaps.min_ps,
            "p10": gaps.p10_ps,
            "p50": gaps.p50_ps,
            "p90": gaps.p90_ps,
            "p99": gaps.p99_ps,
            "max": gaps.max_ps,
        },
    })
}
