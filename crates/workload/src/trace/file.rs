//! A file is read line by line: what is a request goes to the collector, what cannot be read is an error with its place.

use super::collect::Collector;
use super::format::field::{Fault, Parsed, Skip};
use super::format::{self, Format, Parser, TimeUnit, recognise};
use super::lines::{Lines, is_significant};
use super::text::{excerpt, plural};
use crate::WorkloadError;
use memchr::memchr;

/// A file being read.
pub(super) struct File<'r, 'o> {
    pub(super) lines: Lines<'r>,
    pub(super) parser: Parser,
    pub(super) collector: Collector<'o>,
    /// The line that names the columns: files put together with `cat` repeat it.
    pub(super) header: Option<Vec<u8>>,
    pub(super) format: Format,
    /// The unit of its times, if it was guessed and is not the format's own.
    pub(super) guessed: Option<TimeUnit>,
    pub(super) skip_malformed: bool,
    /// Nothing more is taken, for what is no fault of one line.
    pub(super) refused: bool,
}

impl File<'_, '_> {
    pub(super) fn read(
        &mut self,
        name: &str,
        notes: &mut Vec<String>,
    ) -> Result<(), WorkloadError> {
        let mut first = true;
        loop {
            if self.lines.must_read_on() {
                self.hand_on(name)?;
            }
            let Some(line) = self.lines.next_line()? else {
                return Ok(());
            };
            // Behind it may stand what is neither comment nor header.
            let is_broken = memchr(b'\r', line.bytes).is_some();
            if !is_broken && !is_significant(line.bytes) {
                let lost = (self.format == Format::Ftrace)
                    .then(|| format::ftrace::overwritten(line.bytes))
                    .flatten();
                notes.extend(lost.map(|lost| {
                    let lost = plural(lost, "event");
                    format!("the kernel overwrote {lost} before they were read: buffer too small")
                }));
                continue;
            }
            if std::mem::take(&mut first) && !is_broken && self.format.may_have_header() {
                let is_header = recognise::looks_like_header(line.bytes);
                if self.format == Format::Csv && !recognise::is_csv_header(line.bytes) {
                    return Err(header_missing(line.bytes).at(name, line.number));
                }
                if is_header {
                    self.header = Some(line.bytes.to_vec());
                    continue;
                }
            }
            if self.header.as_deref() == Some(line.bytes) {
                continue;
            }
            let parsed = match is_broken {
                false => self.parser.line(line.bytes),
                true => Err(Fault(CARRIAGE_RETURN.to_owned())),
            };
            // A line that never holds a request lacks nothing that counts.
            let may_lack = !line.terminated && parsed != Ok(Parsed::Skip(Skip::Expected));
            let fault = match parsed {
                Ok(Parsed::Request(raw)) => self.collector.push(&raw, line.number).err(),
                Ok(Parsed::Done(done)) => self.collector.done(&done).err(),
                Ok(Parsed::Skip(skip)) => {
                    self.collector.skip(skip);
                    None
                }
                Err(fault) => Some(fault),
            };
            let (number, terminated) = (line.number, line.terminated);
            match fault {
                Some(Fault(message)) if !terminated && self.may_leave_out_the_last() => {
                    notes.push(cut_short(&message));
                }
                Some(Fault(message)) => self
                    .leave_out(message)
                    .map_err(|error| error.at(name, number))?,
                None if may_lack => notes.push(may_lack_digits(number)),
                None => {}
            }
        }
    }

    /// Whether the last line may be one that was cut.
    fn may_leave_out_the_last(&mut self) -> bool {
        !self.skip_malformed
            && self.collector.has_requests()
            && !self.collector.is_refusing()
            && !self.was_guessed_wrongly()
    }

    fn was_guessed_wrongly(&self) -> bool {
        self.guessed.is_some() && self.collector.was_too_far()
    }

    /// Counts a line that cannot be read, if that was asked for.
    #[cold]
    fn leave_out(&mut self, message: String) -> Result<(), WorkloadError> {
        if let Some(refusal) = self.collector.refusal() {
            self.refused = true;
            return Err(refusal);
        }
        if let Some(unit) = self.guessed.filter(|_| self.was_guessed_wrongly()) {
            // Most likely no fault of the line: leaving such lines out would leave out good requests.
            return Err(wrong_unit(&message, unit, self.format.time_unit()));
        }
        if self.skip_malformed && !self.collector.is_full() {
            self.collector.malformed();
            return Ok(());
        }
        Err(WorkloadError::new(message).hint(format!(
            "read as {}; `--format` names another format, `--skip-malformed` leaves such lines out",
            self.format.title()
        )))
    }

    /// Reading on may take long: who simulates what is read gets what there is.
    #[cold]
    fn hand_on(&mut self, name: &str) -> Result<(), WorkloadError> {
        if self.collector.hand_on().is_ok() {
            return Ok(());
        }
        let refusal = self.collector.refusal();
        self.refused = true;
        Err(refusal
            .unwrap_or_else(|| WorkloadError::new("the replay has ended"))
            .at(name, self.lines.number()))
    }
}

/// What ends lines on old systems, in the middle of what ends with a line feed.
const CARRIAGE_RETURN: &str =
    "a line must end with a line feed, found a carriage return in the middle of one";

fn cut_short(message: &str) -> String {
    format!("the file was cut short: {message} (last line); left out")
}

/// Of the last line: all that write traces end every line.
fn may_lack_digits(number: u64) -> String {
    format!("line {number} does not end: if the file was cut short, its last number may be, too")
}

/// A time is too far from the first one, in a unit that the file does not name.
fn wrong_unit(message: &str, unit: TimeUnit, usual: TimeUnit) -> WorkloadError {
    let message = format!("{message}; its times were read as {unit}, which the file does not say");
    WorkloadError::new(message).hint(format!(
        "`--time-unit {usual}` reads them as {usual}, `--time-unit {unit}` as they were"
    ))
}

fn header_missing(found: &[u8]) -> WorkloadError {
    let columns = Format::Csv.columns();
    let message = format!(
        "the first line must be the header `{columns}`, found `{}`",
        excerpt(found)
    );
    WorkloadError::new(message).hint("the column `flags` may be left out")
}
