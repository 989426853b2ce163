//! fio's I/O logs, versions 2 and 3 (`read_iolog`, `write_iolog`).
//!
//! ```text
//! fio version 3 iolog
//! 22 /dev/sdb add
//! 162 /dev/sdb open
//! 169 /dev/sdb read 61440 4096
//! 579 /dev/sdb close
//! ```
//!
//! | column | unit |
//! |---|---|
//! | time | version 3 only: microseconds since the job's start |
//! | file | ignored where there is one |
//! | action | `read`, `write`, `trim`; `sync` and `datasync` become a flush; `wait` in version 2 |
//! | offset, length | bytes |
//!
//! Traps: version 2 has no times. Its `wait N` is documented as N microseconds after the previous
//! wait and is read so here; fio 3.33 itself waits until N **milliseconds** after its own start.
//! Every file has its own address space. fio 3.33 writes version 3 whatever one asks for, and says
//! `bad ddir: 2` to the `trim` lines of a log it replays.

use super::field::{Fault, Parsed, Raw, Skip, Took, count, number, words};
use super::{About, Holds, Sign, Special, TimeUnit};
use crate::trace::record::Record;
use crate::trace::text::excerpt;
use lodger_core::Op;
use lodger_core::time::US;
use std::io::{self, Write};

const COLUMNS: &str = "time file action offset length";

/// What this format is.
pub(super) const ABOUT: About = About {
    name: "fio-iolog",
    aliases: &["iolog", "fio"],
    title: "fio iolog",
    columns: COLUMNS,
    coding: "`read`, `write`, `sync`, `trim`",
    address_unit: "bytes",
    time_unit: TimeUnit::Microseconds,
    time_unit_may_differ: false,
    device_noun: Some("file"),
    may_have_header: false,
    sign: Sign::FirstLine(|line| version(line).is_some()),
    holds: Holds {
        flush: true,
        trim: true,
        fua: false,
        offset_unit_bytes: 1,
        length_unit_bytes: 1,
        time_resolution_ps: US,
    },
    parse: |state, line| state.iolog.parse(line),
    write: |out, record, _| write(out, record),
    special: Special {
        write_head,
        write_tail,
        ..Special::NONE
    },
};

/// What a log's lines mean depends on the lines before.
#[derive(Debug)]
pub(super) struct State {
    version: u8,
    /// Version 2: the sum of the waits so far.
    waited_us: u64,
}

/// The version of a log by its first line.
fn version(line: &[u8]) -> Option<u8> {
    let rest = line.strip_prefix(b"fio version ")?;
    let digits = rest.strip_suffix(b" iolog")?;
    u8::try_from(number(digits)?).ok()
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            version: 3,
            waited_us: 0,
        }
    }

    pub(super) fn parse<'a>(&mut self, line: &'a [u8]) -> Result<Parsed<'a>, Fault> {
        if let Some(version) = version(line) {
            return self.begin(version);
        }
        let mut words = words(line);
        let at_us = if self.version == 3 {
            count("time", words.next().unwrap_or(b""))?
        } else {
            self.waited_us
        };
        let device = words.next().unwrap_or(b"");
        let action = words.next().unwrap_or(b"");
        let op = match action {
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"trim" => Op::Trim,
            b"sync" | b"datasync" | b"sync_file_range" | b"syncfs" => Op::Flush,
            b"add" | b"open" | b"close" | b"unlink" => return Ok(Parsed::Skip(Skip::Expected)),
            b"wait" => return self.wait(words.next().unwrap_or(b"")),
            _ => {
                let known = "`read`, `write`, `trim`, `sync`, `datasync`, `add`, `open` or `close`";
                return Err(Fault::column("action", known, action));
            }
        };
        let mut raw = Raw {
            time_ps: i128::from(at_us) * i128::from(US),
            op,
            fua: false,
            preflush: false,
            offset_bytes: 0,
            length_bytes: 0,
            device,
            rank: 0,
            took: Took::Unknown,
        };
        if op != Op::Flush {
            raw.offset_bytes = count("offset", words.next().unwrap_or(b""))?;
            raw.length_bytes = count("length", words.next().unwrap_or(b""))?;
            if raw.length_bytes == 0 {
                return Ok(Parsed::Skip(Skip::ZeroLength));
            }
            if words.next().is_some() {
                return Err(Fault::joined(line));
            }
        }
        Ok(Parsed::Request(raw))
    }

    fn begin<'a>(&mut self, version: u8) -> Result<Parsed<'a>, Fault> {
        if !(2..=3).contains(&version) {
            let message = format!("fio iolog must be of version 2 or 3, found {version}");
            return Err(Fault(message));
        }
        self.version = version;
        Ok(Parsed::Skip(Skip::Expected))
    }

    fn wait<'a>(&mut self, field: &[u8]) -> Result<Parsed<'a>, Fault> {
        if self.version == 3 {
            let message = "`wait` is not allowed in an iolog of version 3: its lines carry times";
            return Err(Fault(message.to_owned()));
        }
        let wait_us = count("wait", field)?;
        self.waited_us = self.waited_us.checked_add(wait_us).ok_or_else(|| {
            let found = excerpt(field);
            Fault(format!(
                "the waits add up to more than 2^64 us with `{found}`"
            ))
        })?;
        Ok(Parsed::Skip(Skip::Expected))
    }
}

/// The lines before the first request.
fn write_head(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "fio version 3 iolog\n0 lodger add\n0 lodger open")
}

fn write(out: &mut dyn Write, record: &Record) -> io::Result<()> {
    let action = match record.op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Flush => "sync",
        Op::Trim => "trim",
    };
    let at = record.time_ps / US;
    let Record {
        offset_bytes,
        length_bytes,
        ..
    } = record;
    writeln!(out, "{at} lodger {action} {offset_bytes} {length_bytes}")
}

/// The line after the last request, at its time.
fn write_tail(out: &mut dyn Write, last_ps: u64) -> io::Result<()> {
    writeln!(out, "{} lodger close", last_ps / US)
}
