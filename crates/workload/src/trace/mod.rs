//! Block traces: recognition, reading, conversion and replay.
//!
//! [`load`] reads any of the formats in [`mod@format`] into a [`Trace`], and says in a [`Description`]
//! what it took the file for: format, units, read/write coding, and everything it left out or
//! assumed. [`Trace::fit`] makes a trace fit a drive, [`Trace::into_workload`] makes it a workload,
//! [`info`] describes it and [`convert`] writes it in another format.
//!
//! A trace is kept whole in memory, 24 bytes a request; the file is read as a stream. [`stream()`] replays one while it
//! is read, and keeps nothing.

mod collect;
pub mod convert;
mod devices;
mod file;
pub mod fit;
pub mod format;
pub mod info;
mod lines;
mod order;
mod record;
mod recorded;
mod replay;
mod skipped;
mod stream;
#[cfg(test)]
mod tests;
mod text;
mod unpack;

pub use collect::DeviceCount;
pub use fit::{Fit, FitReport};
pub use format::{Format, TimeUnit};
pub use record::Record;
pub use recorded::Recorded;
pub use replay::{CLOSED_QUEUE_DEPTH, Mode, PERCENTILES, Replay};
pub use stream::{Ending, stream};

use crate::WorkloadError;
use crate::live::MAGIC;
use collect::{Collected, Collector};
use file::File;
use format::Parser;
use format::{Suggested, recognise};
use lines::{Lines, damaged, read_error};
use lodger_core::Op;
use record::Packed;
use std::fmt;
use std::io::{BufRead, Read};
use stream::Flow;
use text::plural;

/// How much of a file is looked at to recognise it, in bytes.
const HEAD_BYTES: usize = 256 * 1024;

/// How to read a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The format, if it shall not be recognised (`--format`).
    pub format: Option<Format>,
    /// Which device of several (`--device`).
    pub device: DeviceChoice,
    /// The file's unit of time, if it is not the format's (`--time-unit`).
    pub time_unit: Option<TimeUnit>,
    /// blkparse only: the action to take (`--action`), `Q` or `D`. Without it, `Q` where the
    /// device has any, otherwise `D`.
    pub action: Option<char>,
    /// Leave lines out that cannot be read and count them, instead of stopping at the first
    /// (`--skip-malformed`).
    pub skip_malformed: bool,
    /// Most requests read before giving up; each takes 24 bytes.
    pub records_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            format: None,
            device: DeviceChoice::Busiest,
            time_unit: None,
            action: None,
            skip_malformed: false,
            // 4.8 GB: what a workstation can hold.
            records_max: 200_000_000,
        }
    }
}

/// Which device's requests to take from a file that holds several. Each device has its own
/// addresses, so taking them together makes unrelated requests hit the same bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The one with the most requests.
    #[default]
    Busiest,
    /// The one of this name.
    Named(String),
    /// All, as if they were one.
    All,
}

impl DeviceChoice {
    /// As it is typed: a name or `all`; the busiest if nothing is.
    #[must_use]
    pub fn typed(word: Option<&str>) -> Self {
        match word {
            None => DeviceChoice::Busiest,
            Some("all") => DeviceChoice::All,
            Some(name) => DeviceChoice::Named(name.to_owned()),
        }
    }
}

/// What a file was taken for, and what was done to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The format.
    pub format: Format,
    /// The unit its times were read in.
    pub time_unit: TimeUnit,
    /// The format, its units and its read/write coding as a sentence.
    pub summary: String,
    /// The device taken, where the format names devices.
    pub device: Option<String>,
    /// All devices in the file, the busiest first.
    pub devices: Vec<DeviceCount>,
    /// Requests taken.
    pub requests: u64,
    /// Assumptions and omissions the user should know, one sentence each.
    pub notes: Vec<String>,
}

impl fmt::Display for Description {
    /// The summary, then each note on a line of its own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.summary)?;
        for note in &self.notes {
            write!(f, "\nnote: {note}")?;
        }
        Ok(())
    }
}

/// A trace in memory: requests in order of time.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The file's name as the user gave it.
    name: String,
    /// What the user is told it is.
    title: String,
    records: Vec<Packed>,
    /// The line of the largest address, if the trace came from a file.
    end_line: Option<u64>,
    /// How long requests took, if the file says.
    recorded: Option<Box<Recorded>>,
}

impl Trace {
    /// A trace from requests in any order; times may count from anywhere.
    ///
    /// # Panics
    /// If a request is longer than 2^60 bytes.
    pub fn from_records(
        name: impl Into<String>,
        records: impl IntoIterator<Item = Record>,
    ) -> Self {
        let mut records: Vec<Packed> = records.into_iter().map(Packed::new).collect();
        order::put_in_order(&mut records);
        Self {
            name: name.into(),
            title: format!("trace, {}", plural(records.len() as u64, "request")),
            records,
            end_line: None,
            recorded: None,
        }
    }

    /// The file's name as the user gave it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there is no request.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The requests in order of time.
    pub fn records(&self) -> impl ExactSizeIterator<Item = Record> {
        self.records.iter().map(|packed| packed.record())
    }

    /// How long its requests took when it was recorded, if the file says.
    #[must_use]
    pub fn recorded(&self) -> Option<&Recorded> {
        self.recorded.as_deref()
    }

    /// Time from the first request to the last, in picoseconds.
    #[must_use]
    pub fn duration_ps(&self) -> u64 {
        self.records.last().map_or(0, |last| last.time_ps)
    }

    /// First byte after the largest address.
    #[must_use]
    pub fn end_bytes(&self) -> u64 {
        let ends = self.records().map(|record| record.end_bytes());
        ends.max().unwrap_or(0)
    }
}

/// Reads a trace. `name` is the file's name as the user gave it, for messages.
///
/// # Errors
/// If the format is not recognised, a line cannot be read, the chosen device does not exist, or
/// nothing in the file is a request.
pub fn load<'r>(
    reader: impl BufRead + 'r,
    name: &'r str,
    options: &Options,
) -> Result<(Trace, Description), WorkloadError> {
    let (collected, description) = read_file(reader, name, options, None)?;
    let requests = plural(collected.requests, "request");
    let trace = Trace {
        name: name.to_owned(),
        title: format!("{}, {requests}", description.format.title()),
        records: collected.records,
        end_line: (collected.end_bytes > 0).then_some(collected.end_line),
        recorded: collected.recorded,
    };
    Ok((trace, description))
}

/// Reads a file to its end. With a `flow`, requests go there as they come.
fn read_file<'r>(
    reader: impl BufRead + 'r,
    name: &'r str,
    options: &Options,
    flow: Option<Flow>,
) -> Result<(Collected, Description), WorkloadError> {
    let mut unpacked = unpack::unpack(reader, name)?;
    let mut head = Vec::new();
    unpacked
        .text
        .by_ref()
        .take(HEAD_BYTES as u64)
        .read_to_end(&mut head)
        .map_err(|error| read_error(&error, name))?;
    if head.starts_with(&MAGIC) {
        return Err(recording(name, &unpacked.packings));
    }
    let whole = head.len() < HEAD_BYTES;
    let mut notes = Vec::new();
    let (format, by) = format_of(&head, name, options, &mut notes)
        .map_err(|error| unpacked.damage(name).unwrap_or(error))?;
    let action = check_options(format, options)?;
    let suggested = recognise::time_unit(format, &head, whole);
    let (time_unit, is_guessed) = time_unit_of(format, options.time_unit, suggested, &mut notes);
    format.note_assumptions(time_unit, !is_guessed, &mut notes);

    let all = std::io::Cursor::new(head).chain(unpacked.text);
    let mut file = File {
        lines: Lines::new(Box::new(all), name),
        parser: Parser::new(format, time_unit, action),
        collector: Collector::new((format, action), &options.device, options.records_max, flow),
        header: None,
        format,
        guessed: Some(time_unit).filter(|&unit| is_guessed && unit != format.time_unit()),
        skip_malformed: options.skip_malformed,
        refused: false,
    };
    let read = file.read(name, &mut notes);
    read.map_err(|error| match unpacked.packings.is_empty() || file.refused {
        true => error,
        // Wrong columns of what a damaged packing gives are no fault of the columns.
        false => damaged(file.lines.drain(), name).unwrap_or(error),
    })?;
    let mut collected = file.collector.finish(name)?;
    notes.append(&mut collected.notes);
    notes.extend(unpacked.found.borrow().notes());
    let by = By {
        what: by,
        packings: &unpacked.packings,
    };
    let device = collected.device.take();
    let requests = collected.requests;
    let summary = summary(format, time_unit, &by, requests, device.as_deref());
    notes.extend(doubtful_rate(requests, collected.duration_ps));
    let description = Description {
        format,
        time_unit,
        summary,
        device,
        devices: std::mem::take(&mut collected.devices),
        requests,
        notes,
    };
    Ok((collected, description))
}

/// The unit of a file's times, and whether it is a guess.
fn time_unit_of(
    format: Format,
    said: Option<TimeUnit>,
    suggested: Option<Suggested>,
    notes: &mut Vec<String>,
) -> (TimeUnit, bool) {
    match (said, suggested) {
        (Some(unit), _) => (unit, false),
        (None, None) => (format.time_unit(), false),
        (None, Some(suggested)) => {
            notes.extend(suggested.note);
            (suggested.unit, !suggested.is_said)
        }
    }
}

/// A recording of a live drive is no trace of requests, and is read only as it was written.
fn recording(name: &str, packings: &[&str]) -> WorkloadError {
    let message = format!("`{name}` is a recording of a live drive");
    match packings.first() {
        Some(packer) => WorkloadError::new(format!("{message}, packed by {packer}")).hint(format!(
            "unpack it first: `{packer} -dc FILE > run.rec`, then `lodger simulate run.rec`"
        )),
        None => WorkloadError::new(format!("{message}, not a trace"))
            .hint("`lodger simulate` does again what it holds"),
    }
}

/// The format of a file that begins so, and how it was found out.
fn format_of(
    head: &[u8],
    name: &str,
    options: &Options,
    notes: &mut Vec<String>,
) -> Result<(Format, &'static str), WorkloadError> {
    if let Some(format) = options.format {
        recognise::reject_foreign(head, name)?;
        return Ok((format, "as you said"));
    }
    let recognised = recognise::recognise(head, head.len() < HEAD_BYTES, name)?;
    for other in recognised.alternatives {
        notes.push(format!(
            "the columns could also be read as {} (`--format {other}`)",
            other.title()
        ));
    }
    Ok((recognised.format, recognised.by))
}

/// Refuses options that the format cannot honour; gives blkparse's action as its letter.
fn check_options(format: Format, options: &Options) -> Result<Option<u8>, WorkloadError> {
    let title = format.title();
    if let (DeviceChoice::Named(_), None) = (&options.device, format.device_noun()) {
        let message = format!("`--device` cannot be honoured: {title} has no devices to choose");
        return Err(WorkloadError::new(message).hint("leave it out"));
    }
    if options.time_unit.is_some() && !format.time_unit_may_differ() {
        let unit = format.time_unit();
        let message = format!("`--time-unit` cannot be honoured: {title} counts in {unit}");
        return Err(WorkloadError::new(message).hint("leave it out"));
    }
    match options.action {
        None => Ok(None),
        Some(_) if format != Format::Blkparse => {
            let message = format!("`--action` is for blkparse text; this is {title}");
            Err(WorkloadError::new(message).hint("leave it out"))
        }
        Some(letter @ ('Q' | 'D')) => Ok(Some(letter as u8)),
        Some(letter) => Err(WorkloadError::new(format!(
            "`--action` must be `Q` (queued) or `D` (issued to the drive), found `{}`",
            letter.escape_default()
        ))
        .hint("without it the first of them is taken that the file has; completions (`C`) say how long requests took")),
    }
}

/// How it was found out what a file is.
struct By<'a> {
    /// What gave its format away.
    what: &'a str,
    /// What it was unpacked from.
    packings: &'a [&'static str],
}

fn summary(
    format: Format,
    unit: TimeUnit,
    by: &By<'_>,
    requests: u64,
    device: Option<&str>,
) -> String {
    let mut how = if by.what == "as you said" {
        by.what.to_owned()
    } else {
        format!("recognised by {}", by.what)
    };
    for packing in by.packings {
        how.push_str(&format!(", unpacked from {packing}"));
    }
    let of = device.map_or(String::new(), |device| format!(" of `{device}`"));
    format!(
        "{} ({how}): time in {unit}, addresses in {}, {}; {}{of}",
        format.title(),
        format.address_unit(),
        format.coding(),
        plural(requests, "request")
    )
}

/// A word of doubt where the unit of time cannot be right: no traced host sent 5 million requests
/// a second, and none is traced that sends one in a quarter of an hour.
fn doubtful_rate(requests: u64, duration_ps: u64) -> Option<String> {
    let gaps = requests.checked_sub(1).filter(|&gaps| gaps > 0)?;
    let mean_ps = duration_ps / gaps;
    let doubtful = !(200_000..1_000_000_000_000_000).contains(&mean_ps);
    doubtful.then(|| {
        let mean = text::duration(mean_ps);
        format!("requests are {mean} apart on average: is the unit of time right?")
    })
}

/// Whether a request carries an address.
fn has_address(op: Op) -> bool {
    op != Op::Flush
}
