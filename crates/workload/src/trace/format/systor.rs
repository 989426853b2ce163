//! SYSTOR '17 traces (SNIA IOTTA): a month of an enterprise virtual-desktop array.
//!
//! ```text
//! Timestamp,Response,IOType,LUN,Offset,Size
//! 1456095145.133076000,0.000806000,R,0,899056122368,131072
//! ```
//!
//! | column | unit |
//! |---|---|
//! | `Timestamp` | Unix seconds when the request was issued; nine decimals of which six are real |
//! | `Response` | seconds until it was answered; blank or 0 where that was not seen |
//! | `IOType` | `R`, `W`, or blank where no response was seen |
//! | `LUN` | volume; one file holds one hour of one volume |
//! | `Offset`, `Size` | bytes |
//!
//! Traps: blank types are skipped and counted; files put together with `cat` repeat the header.

use super::field::{Fault, Parsed, Skip, Took, bare, comma_separated, count, time};
use super::{About, Holds, Sign, Special, TimeUnit};
use crate::trace::record::Record;
use lodger_core::Op;
use lodger_core::time::{NS, S};
use std::io::{self, Write};

const COLUMNS: &str = "Timestamp,Response,IOType,LUN,Offset,Size";

/// What this format is.
pub(super) const ABOUT: About = About {
    name: "systor",
    aliases: &["systor17", "systor-17"],
    title: "SYSTOR '17 trace",
    columns: COLUMNS,
    coding: "`R` read, `W` write",
    address_unit: "bytes",
    time_unit: TimeUnit::Seconds,
    time_unit_may_differ: true,
    device_noun: Some("volume"),
    may_have_header: true,
    sign: Sign::Columns { rank: 1 },
    holds: Holds {
        flush: false,
        trim: false,
        fua: false,
        offset_unit_bytes: 1,
        length_unit_bytes: 1,
        time_resolution_ps: NS,
    },
    parse: |state, line| parse(line, state.unit_ps),
    write: |out, record, _| write(out, record),
    special: Special {
        write_head: |out| writeln!(out, "{COLUMNS}"),
        ..Special::NONE
    },
};

/// 2020-01-01 in Unix seconds, for files we write.
const WRITTEN_BASE_S: u64 = 1_577_836_800;

fn parse(line: &[u8], unit_ps: u64) -> Result<Parsed<'_>, Fault> {
    let [at, response, kind, lun, offset, size] = comma_separated::<6>(line, COLUMNS)?;
    let time_ps = time("Timestamp", at, unit_ps)?;
    // It tells this format from others with six columns, too.
    let took = match bare(response) {
        b"" => Took::Unknown,
        response => Took::recorded(time("Response", response, unit_ps)?),
    };
    let op = match bare(kind) {
        b"R" | b"r" => Op::Read,
        b"W" | b"w" => Op::Write,
        b"" => return Ok(Parsed::Skip(Skip::NoResponse)),
        other => return Err(Fault::column("IOType", "`R`, `W` or blank", other)),
    };
    let offset_bytes = count("Offset", offset)?;
    let length_bytes = count("Size", size)?;
    let extent = (offset_bytes, length_bytes);
    Ok(Parsed::transfer(time_ps, op, extent, bare(lun)).that_took(took))
}

fn write(out: &mut dyn Write, record: &Record) -> io::Result<()> {
    let seconds = WRITTEN_BASE_S + record.time_ps / S;
    let nanoseconds = record.time_ps % S / NS;
    let kind = if record.op == Op::Read { 'R' } else { 'W' };
    let Record {
        offset_bytes,
        length_bytes,
        ..
    } = record;
    writeln!(
        out,
        "{seconds}.{nanoseconds:09},0.000000000,{kind},0,{offset_bytes},{length_bytes}"
    )
}
