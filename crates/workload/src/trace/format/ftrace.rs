//! Block events of the kernel's ftrace, from `trace`, `trace_pipe`, `trace-cmd report` or
//! `perf script`.
//!
//! ```text
//!  fio-18234   [003] d..1.  4731.190123: block_rq_issue: 259,0 WS 4096 () 2048 + 8 none,0,0 [fio]
//! ```
//!
//! | column | unit |
//! |---|---|
//! | task, CPU, flags | ignored; the task's name may hold anything |
//! | time | seconds with decimals |
//! | event | `block_rq_issue` (sent to the drive); `block_bio_queue` where there is no other; `block_rq_complete` says how long it took, `block_rq_requeue` that the same request will be issued again |
//! | device | major,minor |
//! | RWBS | the kernel's letters, flush and FUA among them |
//! | bytes, (command) | ignored: old kernels write 0 bytes for ordinary requests |
//! | sector `+` sectors | 512 B |
//!
//! Traps: with trace clocks such as `counter` or `x86-tsc` times are no seconds (they have no
//! decimals): an error. `[LOST n EVENTS]` means the kernel's buffer was too small: told.

use super::blkparse::letters;
use super::field::{
    Done, Fault, Parsed, Rwbs, SECTOR_BYTES, Skip, Took, is_device_number, number, sectors, time,
    words,
};
use super::{About, Holds, Sign, Special, TimeUnit};
use crate::trace::record::Record;
use crate::trace::text::excerpt;
use lodger_core::Op;
use lodger_core::time::{S, US};
use memchr::memmem;
use std::io::{self, Write};

const COLUMNS: &str =
    "task [cpu] flags time: block_rq_issue: device RWBS bytes (command) sector + sectors";

/// What this format is.
pub(super) const ABOUT: About = About {
    name: "ftrace",
    aliases: &[],
    title: "ftrace block events",
    columns: COLUMNS,
    coding: "RWBS letters",
    address_unit: "sectors of 512 B",
    time_unit: TimeUnit::Seconds,
    time_unit_may_differ: false,
    device_noun: Some("device"),
    may_have_header: false,
    sign: Sign::AnyLine(is_sign),
    holds: Holds {
        flush: true,
        trim: true,
        fua: true,
        offset_unit_bytes: 512,
        length_unit_bytes: 512,
        time_resolution_ps: US,
    },
    parse: |_, line| parse(line),
    write: |out, record, _| write(out, record),
    special: Special {
        write_head: |out| writeln!(out, "# tracer: nop\n#"),
        actions: ["`block_rq_issue`", "`block_bio_queue`"],
        ..Special::NONE
    },
};

/// Events that record a request, the preferred one first.
const EVENTS: [&[u8]; 2] = [b"block_rq_issue:", b"block_bio_queue:"];

/// The event that ends the request that `block_rq_issue` began, and the one that takes it back.
const ENDS: [&[u8]; 2] = [b"block_rq_complete:", b"block_rq_requeue:"];

fn parse(line: &[u8]) -> Result<Parsed<'_>, Fault> {
    for (rank, event) in EVENTS.iter().enumerate() {
        if let Some((at, details)) = split_event(line, event) {
            if memmem::find(details, b": ").is_some() && name_of_event(details).is_some() {
                return Err(Fault::joined(line));
            }
            let request = parse_request(line, at, details, rank as u8)?;
            let took = if rank == 0 {
                Took::UntilDone
            } else {
                Took::Unknown
            };
            return Ok(request.that_took(took));
        }
    }
    for event in ENDS {
        if let Some((at, details)) = split_event(line, event)
            && let Ok(Parsed::Request(raw)) = parse_request(line, at, details, 0)
        {
            return Ok(Parsed::Done(Done {
                time_ps: raw.time_ps,
                op: raw.op,
                offset_bytes: raw.offset_bytes,
                length_bytes: raw.length_bytes,
                is_taken_back: event == ENDS[1],
                device: raw.device,
                rank: 0,
            }));
        }
    }
    if contains(line, b" EVENTS]") && contains(line, b"[LOST ") {
        return Ok(Parsed::Skip(Skip::Lost));
    }
    if is_damaged(line) {
        return Err(Fault(format!(
            "an event must read `{COLUMNS}`, found `{}`",
            excerpt(line)
        )));
    }
    Ok(Parsed::Skip(Skip::OtherKind))
}

/// The name of the event of a line, or of a part of it: what stands behind a time.
fn name_of_event(line: &[u8]) -> Option<&[u8]> {
    let mut before = &b""[..];
    for word in words(line) {
        if let (Some(at), Some(name)) = (before.strip_suffix(b":"), word.strip_suffix(b":"))
            && at.contains(&b'.')
            && at.iter().all(|c| c.is_ascii_digit() || *c == b'.')
        {
            return Some(name.strip_prefix(b"block:").unwrap_or(name));
        }
        before = word;
    }
    None
}

/// Whether a line that could not be read is one of an event that is: then a request is lost with it.
fn is_damaged(line: &[u8]) -> bool {
    let names = EVENTS.map(|event| &event[..event.len() - 1]);
    let is_named = match name_of_event(line) {
        // A task may be called as an event is.
        Some(name) => names.iter().any(|known| {
            name.len().abs_diff(known.len()) <= 1
                && strsim::generic_damerau_levenshtein(name, known) <= 1
        }),
        None => names.iter().any(|name| contains(line, name)),
    };
    // Stack traces, traced functions and probes name it, too: those hold no request.
    is_named && has_request(line)
}

/// Whether a line holds what no other has that names an event: a device, a place, or a time before the name.
fn has_request(line: &[u8]) -> bool {
    let all: Vec<&[u8]> = words(line).collect();
    let is_place = |w: &[&[u8]]| w[1] == b"+" && number(w[0]).or(number(w[2])).is_some();
    let is_event = |w: &[&[u8]]| {
        let name = w[1].strip_prefix(b"block:").unwrap_or(w[1]);
        w[0].ends_with(b":") && w[0][0].is_ascii_digit() && EVENTS.contains(&name)
    };
    all.iter().any(|word| is_device_number(word))
        || all.windows(3).any(is_place)
        || all.windows(2).any(is_event)
}

/// The time before an event's name and the words after it.
fn split_event<'a>(line: &'a [u8], event: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    // A task may call itself `block_rq_issue:`, so a name counts only after a time and a colon.
    let mut from = 0;
    while let Some(found) = line[from..].windows(event.len()).position(|w| w == event) {
        let start = from + found;
        // perf writes `block:block_rq_issue:`.
        let before = line[..start]
            .strip_suffix(b"block:")
            .unwrap_or(&line[..start]);
        let at = before.trim_ascii_end().strip_suffix(b":");
        let at = at.and_then(|before| words(before).last());
        let after = &line[start + event.len()..];
        if let Some(at) = at.filter(|at| at.iter().all(|c| c.is_ascii_digit() || *c == b'.')) {
            return Some((at, after));
        }
        from = start + 1;
    }
    None
}

fn parse_request<'a>(
    line: &'a [u8],
    at: &[u8],
    details: &'a [u8],
    rank: u8,
) -> Result<Parsed<'a>, Fault> {
    if !at.contains(&b'.') {
        let expected = "seconds with decimals (set the trace clock to `local` or `mono`)";
        return Err(Fault::column("time", expected, at));
    }
    let time_ps = time("time", at, S)?;
    let mut details = words(details);
    let device = details.next().unwrap_or(b"");
    if !is_device_number(device) {
        return Err(Fault::column(
            "device",
            "two numbers such as `259,0`",
            device,
        ));
    }
    let rwbs = details.next().unwrap_or(b"");
    let Some(rwbs) = Rwbs::parse(rwbs) else {
        return Err(Fault::column(
            "RWBS",
            "letters such as `R`, `WS`, `FF`",
            rwbs,
        ));
    };
    if rwbs.op == Some(Op::Flush) {
        return Ok(rwbs.request(time_ps, 0, 0, device, rank));
    }
    // Between the letters and the sector stand a byte count and a command in brackets, or not,
    // depending on the kernel: the plus sign is what can be relied on.
    let mut first = &b""[..];
    for word in details.by_ref() {
        if word == b"+" {
            let length_bytes = sectors("sectors", details.next().unwrap_or(b""))?;
            let first = if length_bytes == 0 { &b"0"[..] } else { first };
            let offset_bytes = sectors("sector", first)?;
            return Ok(rwbs.request(time_ps, offset_bytes, length_bytes, device, rank));
        }
        first = word;
    }
    if rwbs.op.is_none() {
        return Ok(Parsed::Skip(Skip::OtherOperation));
    }
    let message = format!("`sector + sectors` is missing in `{}`", excerpt(line));
    Err(Fault(message))
}

fn contains(line: &[u8], part: &[u8]) -> bool {
    line.windows(part.len()).any(|window| window == part)
}

/// How many events the kernel overwrote before they were read, by the header of its `trace` file:
/// `# entries-in-buffer/entries-written: 140080/250280   #P:4`.
pub(crate) fn overwritten(line: &[u8]) -> Option<u64> {
    let counts = line.strip_prefix(b"# entries-in-buffer/entries-written:")?;
    let counts = words(counts).next()?;
    let slash = counts.iter().position(|&byte| byte == b'/')?;
    let (kept, written) = (number(&counts[..slash])?, number(&counts[slash + 1..])?);
    written.checked_sub(kept).filter(|&lost| lost > 0)
}

/// Whether a line shows that the file comes from ftrace, even if it holds no request.
fn is_sign(line: &[u8]) -> bool {
    line.starts_with(b"# tracer:")
        || contains(line, b": block_")
        || contains(line, b" block:block_")
}

/// Offset and length must be whole sectors.
fn write(out: &mut dyn Write, record: &Record) -> io::Result<()> {
    let seconds = record.time_ps / S;
    let microseconds = record.time_ps % S / US;
    let first = record.offset_bytes / SECTOR_BYTES;
    let sectors = record.length_bytes / SECTOR_BYTES;
    writeln!(
        out,
        "          lodger-0       [000] ..... {seconds:5}.{microseconds:06}: block_rq_issue: \
         8,0 {} {} () {first} + {sectors} none,0,0 [lodger]",
        letters(record),
        record.length_bytes
    )
}
