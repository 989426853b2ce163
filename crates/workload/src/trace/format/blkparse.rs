//! Text of `blkparse` in its default format, from the kernel's blktrace.
//!
//! ```text
//!   8,0    1        4     0.000012345  1234  Q  WS 2048 + 8 [postgres]
//! ```
//!
//! | column | unit |
//! |---|---|
//! | device | major,minor |
//! | cpu, sequence | ignored |
//! | time | seconds with nine decimals |
//! | pid | ignored |
//! | action | the same request appears as `Q` queued, `G`, `I`, `D` issued to the drive, `C` completed |
//! | RWBS | see the kernel's letters: `W`rite, `R`ead, `D`iscard, `F` first: flush, `F` later: FUA |
//! | sector `+` sectors | 512 B |
//!
//! Traps: taking every line would count each request up to five times. One action is taken: `Q`
//! (when the host asked), or `D` (when the drive was asked, after merging) where there is no `Q`
//! or those have less than half of the bytes. `C` says how long it took, `R` that the host took a request back, which it
//! issues again: the same one. Lines of other actions and the summary at the end are passed over.

use super::field::{
    Done, Fault, Parsed, Rwbs, SECTOR_BYTES, Skip, Took, is_device_number, number, sectors, time,
    words,
};
use super::{About, Holds, Sign, Special, TimeUnit};
use crate::trace::record::Record;
use crate::trace::text::excerpt;
use lodger_core::Op;
use lodger_core::time::{NS, S};
use memchr::memchr_iter;
use std::io::{self, Write};

const COLUMNS: &str = "device cpu sequence time pid action RWBS sector + sectors";

/// What this format is.
pub(super) const ABOUT: About = About {
    name: "blkparse",
    aliases: &["blktrace"],
    title: "blkparse text",
    columns: COLUMNS,
    coding: "RWBS letters",
    address_unit: "sectors of 512 B",
    time_unit: TimeUnit::Seconds,
    time_unit_may_differ: false,
    device_noun: Some("device"),
    may_have_header: false,
    sign: Sign::Line(is_event),
    holds: Holds {
        flush: true,
        trim: true,
        fua: true,
        offset_unit_bytes: 512,
        length_unit_bytes: 512,
        time_resolution_ps: NS,
    },
    parse: |state, line| parse(line, state.action),
    write,
    special: Special {
        actions: ["`Q` (queued)", "`D` (issued to the drive)"],
        ..Special::NONE
    },
};

/// What blkparse writes as an action.
const ACTIONS: [&[u8]; 17] = [
    b"A", b"B", b"C", b"D", b"F", b"G", b"I", b"M", b"P", b"Q", b"R", b"S", b"T", b"U", b"UT",
    b"X", b"m",
];

/// `action`: the one to take, or `None` for `Q` before `D`.
fn parse(line: &[u8], action: Option<u8>) -> Result<Parsed<'_>, Fault> {
    let mut words = words(line);
    let Some(event) = Event::parse(&mut words) else {
        return no_event(line, action);
    };
    if memchr_iter(b',', line).nth(1).is_some() && begins_anew(words.clone()) {
        return Err(Fault::joined(line));
    }
    let rank = match (event.action, action) {
        (b"Q", None | Some(b'Q')) | (b"D", Some(b'D')) => 0,
        (b"D", _) => 1,
        (b"C" | b"R", _) => return Ok(ended(&event, words, u8::from(action.is_none()))),
        (other, _) if ACTIONS.contains(&other) => return Ok(Parsed::Skip(Skip::OtherAction)),
        (other, _) => {
            let letters = "a letter of blkparse's such as `Q`, `D`, `C`";
            return Err(Fault::column("action", letters, other));
        }
    };
    let request = parse_request(line, &event, words, rank);
    // Where `Q` was asked for, it says how long requests took, and none is lost with it.
    match (request, action, rank) {
        (Err(_), Some(_), 1) => Ok(Parsed::Skip(Skip::OtherAction)),
        (request, ..) => request,
    }
}

fn parse_request<'a>(
    line: &'a [u8],
    event: &Event<'a>,
    mut words: impl Iterator<Item = &'a [u8]>,
    rank: u8,
) -> Result<Parsed<'a>, Fault> {
    let time_ps = time("time", event.time, S)?;
    let rwbs = words.next().unwrap_or(b"");
    let Some(rwbs) = Rwbs::parse(rwbs) else {
        return Err(Fault::column(
            "RWBS",
            "letters such as `R`, `WS`, `FF`",
            rwbs,
        ));
    };
    let (offset_bytes, length_bytes) = match (words.next(), words.next(), words.next()) {
        // A flush's sector means nothing and may be 2^64 - 1.
        _ if rwbs.op == Some(Op::Flush) => (0, 0),
        (Some(first), Some(b"+"), Some(length)) => {
            let length_bytes = sectors("sectors", length)?;
            // An empty flush again, by its length.
            let first = if length_bytes == 0 { &b"0"[..] } else { first };
            (sectors("sector", first)?, length_bytes)
        }
        // Without an address: an empty flush, or a pass-through command.
        (None | Some([b'[', ..]), ..) if rwbs.preflush => (0, 0),
        _ if rwbs.op.is_none() => return Ok(Parsed::Skip(Skip::OtherOperation)),
        // A pass-through command that moves data: bytes, perhaps the command in brackets, the task.
        (Some(_), Some([b'(' | b'[', ..]), _) => {
            return Ok(Parsed::Skip(Skip::OtherOperation));
        }
        _ => {
            let message = format!("`sector + sectors` is missing in `{}`", excerpt(line));
            return Err(Fault(message));
        }
    };
    let request = rwbs.request(time_ps, offset_bytes, length_bytes, event.device, rank);
    Ok(request.that_took(match event.action {
        b"D" => Took::UntilDone,
        _ => Took::Unknown,
    }))
}

/// The end of a request that `D` began, or its being taken back, if the line says of which.
fn ended<'a>(event: &Event<'a>, mut words: impl Iterator<Item = &'a [u8]>, rank: u8) -> Parsed<'a> {
    let letters = words.next().and_then(Rwbs::parse);
    let at = words.next().and_then(|at| sectors("sector", at).ok());
    let length = words.nth(1).and_then(|n| sectors("sectors", n).ok());
    let op = letters.and_then(|letters| letters.op);
    // Without an address, or with one that means nothing: a flush.
    let flush = letters.is_some_and(|l| l.preflush && length.unwrap_or(0) == 0);
    let (op, at) = match flush || op == Some(Op::Flush) {
        true => (Some(Op::Flush), Some(0)),
        false => (op, at),
    };
    match (time("time", event.time, S), op, at) {
        (Ok(time_ps), Some(op), Some(offset_bytes)) => Parsed::Done(Done {
            time_ps,
            op,
            offset_bytes,
            length_bytes: length.unwrap_or(0),
            is_taken_back: event.action == b"R",
            device: event.device,
            rank,
        }),
        _ => Parsed::Skip(Skip::OtherAction),
    }
}

/// Of a line without the columns of an event: blkparse's summary, or an event that is damaged, which must not be lost.
#[cold]
fn no_event(line: &[u8], action: Option<u8>) -> Result<Parsed<'_>, Fault> {
    let all: Vec<&[u8]> = words(line).collect();
    // Neither stands in the summary.
    let has_place = all
        .windows(3)
        .any(|w| w[1] == b"+" && [w[0], w[2]].iter().any(|part| number(part).is_some()));
    if !has_place && !all.first().is_some_and(|word| is_device_number(word)) {
        return Ok(Parsed::Skip(Skip::OtherKind));
    }
    let mut pairs = all.windows(2).skip(1);
    let of = pairs.find(|pair| ACTIONS.contains(&pair[0]) && Rwbs::parse(pair[1]).is_some());
    let is_wanted = |letter: &[u8]| match action {
        Some(wanted) => letter == [wanted],
        None => letter == b"Q" || letter == b"D",
    };
    if of.is_some_and(|pair| !is_wanted(pair[0])) {
        return Ok(Parsed::Skip(Skip::OtherAction));
    }
    Err(Fault(format!(
        "an event must have the columns `{COLUMNS}`, found `{}`",
        excerpt(line)
    )))
}

/// Whether another event follows. The task in brackets is too short to hold one.
#[cold]
fn begins_anew<'a>(rest: impl Iterator<Item = &'a [u8]>) -> bool {
    let rest: Vec<&[u8]> = rest
        .flat_map(|word| word.split(|&byte| byte == b']'))
        .filter(|word| !word.is_empty())
        .collect();
    (0..rest.len()).any(|at| Event::parse(&mut rest[at..].iter().copied()).is_some())
}

/// The fixed columns every event begins with.
struct Event<'a> {
    device: &'a [u8],
    time: &'a [u8],
    action: &'a [u8],
}

impl<'a> Event<'a> {
    fn parse(words: &mut impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let device = words.next().filter(|word| is_device_number(word))?;
        let _cpu = number(words.next()?)?;
        let _sequence = number(words.next()?)?;
        let time = words.next().filter(|word| word.contains(&b'.'))?;
        let _pid = number(words.next()?)?;
        let action = words.next().filter(|word| word.len() <= 2)?;
        Some(Self {
            device,
            time,
            action,
        })
    }
}

/// Whether a line has the columns of an event, whatever its action.
fn is_event(line: &[u8]) -> bool {
    Event::parse(&mut words(line)).is_some()
}

/// Offset and length must be whole sectors.
fn write(out: &mut dyn Write, record: &Record, sequence: u64) -> io::Result<()> {
    let seconds = record.time_ps / S;
    let nanoseconds = record.time_ps % S / NS;
    write!(
        out,
        "  8,0    0 {sequence:8} {seconds:5}.{nanoseconds:09}     0  Q {:>3} ",
        letters(record)
    )?;
    let first = record.offset_bytes / SECTOR_BYTES;
    let sectors = record.length_bytes / SECTOR_BYTES;
    writeln!(out, "{first} + {sectors} [lodger]")
}

/// The kernel's letters for a request.
pub(super) fn letters(record: &Record) -> &'static str {
    match record.op {
        Op::Read => "R",
        Op::Write if record.fua => "WF",
        Op::Write => "W",
        Op::Flush => "FF",
        Op::Trim => "D",
    }
}
