//! Which format is it? Decided from the first lines, before anything is read in earnest.

use super::field::{Parsed, bare};
use super::{Format, Parser, Sign, Suggested, TimeUnit, csv};
use crate::WorkloadError;
use crate::trace::lines::{LINE_MAX_BYTES, is_significant, too_long, trim_line};
use crate::trace::text::excerpt;

/// Lines looked at for formats with one request a line; the others are searched further, because
/// a kernel trace may begin with other events.
const SAMPLE_LINES: usize = 64;

/// What the first lines say.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Recognised {
    pub(crate) format: Format,
    /// What gave it away, to be put after "recognised by".
    pub(crate) by: &'static str,
    /// Other formats the same lines could be.
    pub(crate) alternatives: Vec<Format>,
}

/// Recognises a format by the beginning of a file. `whole`: the head is all there is.
pub(crate) fn recognise(head: &[u8], whole: bool, name: &str) -> Result<Recognised, WorkloadError> {
    reject_foreign(head, name)?;
    let lines = significant_lines(head, whole);
    let Some(&first) = lines.first() else {
        // What has been read ends within a line, of which nothing else is known.
        let begun = all_lines(head).last().unwrap_or_default();
        if !whole && begun.len() > LINE_MAX_BYTES {
            return Err(too_long(begun, name, all_lines(head).count() as u64));
        }
        let message = match whole {
            true => format!("`{name}` holds no request: it is empty"),
            false => format!(
                "`{name}` holds no request in its first {} bytes",
                head.len()
            ),
        };
        return Err(
            WorkloadError::new(message).hint("a trace is a text file with one request a line")
        );
    };
    let certain = |format, by| Recognised {
        format,
        by,
        alternatives: Vec::new(),
    };
    // What says it for certain comes first.
    if let Some(format) = by_sign(|sign| matches!(sign, Sign::FirstLine(is) if is(first))) {
        return Ok(certain(format, "its first line"));
    }
    if let Some(format) = by_header(first) {
        return Ok(certain(format, "its header"));
    }
    // The comments count here: `# tracer: nop` is one.
    let any = |is: fn(&[u8]) -> bool| all_lines(head).any(is);
    if let Some(format) = by_sign(|sign| matches!(sign, Sign::AnyLine(is) if any(is))) {
        return Ok(certain(format, "its block events"));
    }
    let any = |is: fn(&[u8]) -> bool| lines.iter().any(|line| is(line));
    if let Some(format) = by_sign(|sign| matches!(sign, Sign::Line(is) if any(is))) {
        return Ok(certain(format, "its columns"));
    }
    let sample = &lines[..lines.len().min(SAMPLE_LINES)];
    match by_columns(sample).as_slice() {
        [] => {
            let above = all_lines(head).position(is_significant).unwrap_or(0);
            Err(unknown(first, name, above as u64 + 1))
        }
        [format, alternatives @ ..] => Ok(Recognised {
            format: *format,
            by: "its columns",
            alternatives: alternatives.to_vec(),
        }),
    }
}

/// The unit of time that the first lines suggest, where the format leaves it open.
pub(crate) fn time_unit(format: Format, head: &[u8], whole: bool) -> Option<Suggested> {
    let guess = format.about().special.guess_time_unit;
    guess(&significant_lines(head, whole))
}

/// The times of the requests that these lines are, in the file's own unit and order.
pub(super) fn ticks(format: Format, lines: &[&[u8]]) -> Vec<i128> {
    // With a unit of one picosecond, times come out in the file's own unit.
    let mut parser = Parser::new(format, TimeUnit::Picoseconds, None);
    let time = |line: &&[u8]| match parser.line(line) {
        Ok(Parsed::Request(raw)) => Some(raw.time_ps),
        _ => None,
    };
    lines.iter().filter_map(time).collect()
}

fn all_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    head.split(|&byte| byte == b'\n').map(trim_line)
}

fn significant_lines(head: &[u8], whole: bool) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = all_lines(head).collect();
    if !whole {
        // Cut by us, not by the file's end.
        lines.pop();
    }
    lines.retain(|line| is_significant(line));
    lines
}

/// The format whose sign is there.
fn by_sign(is_there: impl Fn(Sign) -> bool) -> Option<Format> {
    let mut formats = Format::ALL.into_iter();
    formats.find(|format| is_there(format.about().sign))
}

fn by_header(line: &[u8]) -> Option<Format> {
    if let Some(format) = by_sign(|sign| matches!(sign, Sign::Header(is) if is(line))) {
        return Some(format);
    }
    Format::ALL
        .into_iter()
        .filter(|format| format.may_have_header())
        .find(|format| format.is_header(line))
}

/// Whether a line can be the names of columns: the first column of every format with a header is
/// a number.
pub(crate) fn looks_like_header(line: &[u8]) -> bool {
    line.contains(&b',') && bare(line).first().is_some_and(u8::is_ascii_alphabetic)
}

/// The formats whose columns the sampled lines have. If none has them all, the one that most lines
/// are of, if half of them are: then the fault is the other lines', and reading will name them.
fn by_columns(sample: &[&[u8]]) -> Vec<Format> {
    let mut fitting: Vec<(u8, Format, usize)> = Vec::new();
    for format in Format::ALL {
        if let Sign::Columns { rank } = format.about().sign {
            fitting.push((rank, format, fitting_lines(format, sample)));
        }
    }
    fitting.sort_by_key(|&(rank, ..)| rank);
    let most = fitting.iter().map(|&(.., lines)| lines).max().unwrap_or(0);
    if most == 0 || most * 2 < sample.len() {
        return Vec::new();
    }
    fitting
        .into_iter()
        .filter(|&(.., lines)| lines == most)
        .map(|(_, format, _)| format)
        .collect()
}

/// How many of the sampled lines are of this format; 0 if none of them is a request.
fn fitting_lines(format: Format, sample: &[&[u8]]) -> usize {
    let mut parser = Parser::new(format, format.time_unit(), None);
    let (mut fitting, mut requests) = (0, 0);
    for line in sample {
        if let Ok(parsed) = parser.line(line)
            && (format.about().special.plausible)(&parsed)
        {
            fitting += 1;
            requests += usize::from(matches!(parsed, Parsed::Request(_)));
        }
    }
    if requests == 0 { 0 } else { fitting }
}

/// Files that are no text at all, by their first bytes, with what to do about each.
pub(crate) fn reject_foreign(head: &[u8], name: &str) -> Result<(), WorkloadError> {
    let known: [(&[u8], &str, &str); 5] = [
        (
            b"\xfd7zXZ\0",
            "xz-compressed",
            "`xzcat FILE | lodger ... -`",
        ),
        (b"BZh", "bzip2-compressed", "`bzcat FILE | lodger ... -`"),
        (
            b"\x17\x08\x44tracing",
            "trace-cmd's binary format",
            "`trace-cmd report FILE | lodger ... -`",
        ),
        (
            b"PERFILE2",
            "perf's binary format",
            "`perf script -i FILE | lodger ... -`",
        ),
        (b"PAR1", "a Parquet file", "write it as CSV first"),
    ];
    for (magic, what, instead) in known {
        if head.starts_with(magic) {
            let message = format!("`{name}` is {what}; a trace must be text");
            return Err(WorkloadError::new(message).hint(format!("try {instead}")));
        }
    }
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        let message = format!("`{name}` is UTF-16 text; a trace must be ASCII or UTF-8");
        return Err(WorkloadError::new(message).hint("try `iconv -f UTF-16 -t UTF-8 FILE`"));
    }
    if head.starts_with(b"PK\x03\x04") || head.get(257..262) == Some(b"ustar") {
        let (what, unpack) = match head[0] == b'P' && head[1] == b'K' {
            true => ("a zip archive", "unzip -p FILE"),
            false => ("a tar archive", "tar -xO -f FILE NAME"),
        };
        let message = format!("`{name}` is {what}; a trace must be one text");
        return Err(WorkloadError::new(message).hint(format!("try `{unpack} | lodger ... -`")));
    }
    if head.trim_ascii_end().contains(&b'\r') && !head.contains(&b'\n') {
        let message = format!(
            "`{name}` ends its lines with carriage returns alone; a trace's lines must end with line feeds"
        );
        return Err(WorkloadError::new(message).hint("try `tr '\\r' '\\n' < FILE | lodger ... -`"));
    }
    if head.contains(&0) {
        let message = format!("`{name}` is a binary file; a trace must be text");
        let hint = "gzip, zstd and blktrace's binary format are read as they are; write other ones as CSV first";
        return Err(WorkloadError::new(message).hint(hint));
    }
    Ok(())
}

fn unknown(first: &[u8], name: &str, line: u64) -> WorkloadError {
    WorkloadError::new(format!(
        "the trace's format is not recognised; the first line is `{}`",
        excerpt(first)
    ))
    .at(name, line)
    .hint(formats_hint())
}

fn formats_hint() -> String {
    format!(
        "name the format with `--format`: {}; or write a CSV with the header `{}`",
        Format::ALL.map(Format::name).join(", "),
        csv::COLUMNS
    )
}

/// Whether a first line is the header that Lodger's own CSV requires.
pub(crate) fn is_csv_header(line: &[u8]) -> bool {
    csv::is_header(line)
}
