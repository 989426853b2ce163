//! Lodger's own plain CSV: everything a trace can hold, and nothing to guess.
//!
//! ```text
//! time_us,op,offset_bytes,length_bytes,flags
//! 0,W,8192,4096,FUA
//! 12.25,R,0,512,
//! 13,F,0,0,
//! 20,D,1048576,65536,
//! ```
//!
//! | column | unit |
//! |---|---|
//! | `time_us` | microseconds from any origin, up to six decimals (a picosecond) |
//! | `op` | `R` read, `W` write, `F` flush, `D` discard (trim) |
//! | `offset_bytes`, `length_bytes` | bytes; ignored for `F` |
//! | `flags` | optional column: empty or `FUA` |
//!
//! The header line is required: it is what tells this format from the others.

use super::field::{
    Fault, Parsed, Raw, Skip, Took, bare, columns, comma_separated, count, same_header, time,
};
use super::{About, Holds, Sign, Special, TimeUnit};
use crate::trace::record::Record;
use lodger_core::Op;
use lodger_core::time::US;
use std::io::{self, Write};

pub(super) const COLUMNS: &str = "time_us,op,offset_bytes,length_bytes,flags";

/// What this format is.
pub(super) const ABOUT: About = About {
    name: "csv",
    aliases: &["plain", "lodger"],
    title: "Lodger CSV",
    columns: COLUMNS,
    coding: "`R` read, `W` write, `F` flush, `D` discard",
    address_unit: "bytes",
    time_unit: TimeUnit::Microseconds,
    time_unit_may_differ: false,
    device_noun: None,
    may_have_header: true,
    sign: Sign::Header(is_header),
    holds: Holds {
        flush: true,
        trim: true,
        fua: true,
        offset_unit_bytes: 1,
        length_unit_bytes: 1,
        time_resolution_ps: 1,
    },
    parse: |_, line| parse(line),
    write: |out, record, _| write(out, record),
    special: Special {
        write_head: |out| writeln!(out, "{COLUMNS}"),
        ..Special::NONE
    },
};

const COLUMNS_WITHOUT_FLAGS: &str = "time_us,op,offset_bytes,length_bytes";

pub(super) fn is_header(line: &[u8]) -> bool {
    same_header(line, COLUMNS) || same_header(line, COLUMNS_WITHOUT_FLAGS)
}

fn parse(line: &[u8]) -> Result<Parsed<'_>, Fault> {
    let [at, op, offset, length, flags] = match columns::<5>(line) {
        (without_flags, 4) => without_flags,
        _ => comma_separated::<5>(line, COLUMNS)?,
    };
    let time_ps = time("time_us", at, US)?;
    let op = match bare(op) {
        b"R" | b"r" => Op::Read,
        b"W" | b"w" => Op::Write,
        b"F" | b"f" => Op::Flush,
        b"D" | b"d" => Op::Trim,
        other => {
            let allowed = "`R`, `W`, `F` (flush) or `D` (discard)";
            return Err(Fault::column("op", allowed, other));
        }
    };
    let fua = match bare(flags) {
        b"" => false,
        flag if flag.eq_ignore_ascii_case(b"fua") => true,
        other => return Err(Fault::column("flags", "empty or `FUA`", other)),
    };
    let flush = op == Op::Flush;
    let (offset_bytes, length_bytes) = if flush {
        (0, 0)
    } else {
        (
            count("offset_bytes", offset)?,
            count("length_bytes", length)?,
        )
    };
    if length_bytes == 0 && !flush {
        return Ok(Parsed::Skip(Skip::ZeroLength));
    }
    Ok(Parsed::Request(Raw {
        time_ps,
        op,
        fua: fua && op == Op::Write,
        preflush: false,
        offset_bytes,
        length_bytes,
        device: b"",
        rank: 0,
        took: Took::Unknown,
    }))
}

fn write(out: &mut dyn Write, record: &Record) -> io::Result<()> {
    let op = match record.op {
        Op::Read => 'R',
        Op::Write => 'W',
        Op::Flush => 'F',
        Op::Trim => 'D',
    };
    write!(out, "{}", record.time_ps / US)?;
    let fraction_ps = record.time_ps % US;
    if fraction_ps != 0 {
        let decimals = format!("{fraction_ps:06}");
        write!(out, ".{}", decimals.trim_end_matches('0'))?;
    }
    let flags = if record.fua { "FUA" } else { "" };
    let Record {
        offset_bytes,
        length_bytes,
        ..
    } = record;
    writeln!(out, ",{op},{offset_bytes},{length_bytes},{flags}")
}
