//! Alibaba block traces (2020): a month of cloud volumes.
//!
//! ```text
//! 419,W,8792731648,16384,1577808144360767
//! ```
//!
//! | column | unit |
//! |---|---|
//! | `device_id` | volume |
//! | `opcode` | `R` or `W` |
//! | `offset`, `length` | bytes |
//! | `timestamp` | Unix microseconds, in the **last** column |
//!
//! Traps: one file holds a thousand volumes; no header, no flushes.

use super::field::{Fault, Parsed, bare, comma_separated, count, time};
use super::{About, Holds, Sign, Special, TimeUnit};
use crate::trace::record::Record;
use lodger_core::Op;
use lodger_core::time::US;
use std::io::{self, Write};

const COLUMNS: &str = "device_id,opcode,offset,length,timestamp";

/// What this format is.
pub(super) const ABOUT: About = About {
    name: "alibaba",
    aliases: &[],
    title: "Alibaba block trace",
    columns: COLUMNS,
    coding: "`R` read, `W` write",
    address_unit: "bytes",
    time_unit: TimeUnit::Microseconds,
    time_unit_may_differ: true,
    device_noun: Some("volume"),
    may_have_header: true,
    sign: Sign::Columns { rank: 2 },
    holds: Holds {
        flush: false,
        trim: false,
        fua: false,
        offset_unit_bytes: 1,
        length_unit_bytes: 1,
        time_resolution_ps: US,
    },
    parse: |state, line| parse(line, state.unit_ps),
    write: |out, record, _| write(out, record),
    special: Special::NONE,
};

/// 2020-01-01 in Unix microseconds, for files we write.
const WRITTEN_BASE_US: u64 = 1_577_836_800_000_000;

fn parse(line: &[u8], unit_ps: u64) -> Result<Parsed<'_>, Fault> {
    let [device, kind, offset, length, at] = comma_separated::<5>(line, COLUMNS)?;
    let op = match bare(kind) {
        b"R" | b"r" => Op::Read,
        b"W" | b"w" => Op::Write,
        other => return Err(Fault::column("opcode", "`R` or `W`", other)),
    };
    let offset_bytes = count("offset", offset)?;
    let length_bytes = count("length", length)?;
    let time_ps = time("timestamp", at, unit_ps)?;
    let extent = (offset_bytes, length_bytes);
    Ok(Parsed::transfer(time_ps, op, extent, bare(device)))
}

fn write(out: &mut dyn Write, record: &Record) -> io::Result<()> {
    let at = WRITTEN_BASE_US + record.time_ps / US;
    let kind = if record.op == Op::Read { 'R' } else { 'W' };
    let Record {
        offset_bytes,
        length_bytes,
        ..
    } = record;
    writeln!(out, "0,{kind},{offset_bytes},{length_bytes},{at}")
}
