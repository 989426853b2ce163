//! MSR Cambridge block traces (SNIA IOTTA, 2007): one week of 13 servers, one file per volume.
//!
//! ```text
//! 128166372003061629,hm,1,Read,383496192,32768,413
//! ```
//!
//! | column | unit |
//! |---|---|
//! | `Timestamp` | Windows file time: 100 ns ticks since 1601 |
//! | `Hostname`, `DiskNumber` | together the device, shown as `hm.1` |
//! | `Type` | `Read` or `Write` |
//! | `Offset`, `Size` | bytes |
//! | `ResponseTime` | 100 ns ticks; set beside the simulated drive's |
//!
//! Traps: there is no header; times are the end of the request's own queueing in the host, not of
//! a drive; flushes were not recorded.

use super::field::{Fault, Parsed, Took, bare, comma_separated, count, number, time};
use super::{About, Holds, Sign, Special, TimeUnit};
use crate::trace::record::Record;
use lodger_core::Op;
use std::io::{self, Write};

const COLUMNS: &str = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";

/// What this format is.
pub(super) const ABOUT: About = About {
    name: "msr",
    aliases: &["msr-cambridge"],
    title: "MSR Cambridge CSV",
    columns: COLUMNS,
    coding: "`Read`, `Write`",
    address_unit: "bytes",
    time_unit: TimeUnit::FileTime,
    time_unit_may_differ: true,
    device_noun: Some("disk"),
    may_have_header: true,
    sign: Sign::Columns { rank: 0 },
    holds: Holds {
        flush: false,
        trim: false,
        fua: false,
        offset_unit_bytes: 1,
        length_unit_bytes: 1,
        time_resolution_ps: TICK_PS,
    },
    parse: |state, line| parse(line, state.unit_ps),
    write: |out, record, _| write(out, record),
    special: Special::NONE,
};

/// 100 ns.
pub(super) const TICK_PS: u64 = 100_000;

/// 2020-01-01 as a Windows file time, for files we write: some readers reject times before 1970.
const WRITTEN_BASE_TICKS: u64 = 132_223_104_000_000_000;

fn parse(line: &[u8], unit_ps: u64) -> Result<Parsed<'_>, Fault> {
    let [at, host, disk, kind, offset, size, response] = comma_separated::<7>(line, COLUMNS)?;
    let time_ps = time("Timestamp", at, unit_ps)?;
    count("DiskNumber", disk)?;
    let op = match bare(kind) {
        kind if kind.eq_ignore_ascii_case(b"read") => Op::Read,
        kind if kind.eq_ignore_ascii_case(b"write") => Op::Write,
        other => return Err(Fault::column("Type", "`Read` or `Write`", other)),
    };
    let offset_bytes = count("Offset", offset)?;
    let length_bytes = count("Size", size)?;
    // Some published files leave it out or say a negative one, which as an unsigned number is near 2^64.
    let took = match bare(response) {
        b"" => Took::Unknown,
        [b'-', digits @ ..] if number(digits).is_some() => Took::Impossible,
        response => Took::recorded(time("ResponseTime", response, unit_ps)?),
    };
    // Host and disk are neighbours in the line, so `hm,1` is one slice of it.
    let host_at = at.len() + 1;
    let extent = (offset_bytes, length_bytes);
    Ok(Parsed::transfer(
        time_ps,
        op,
        extent,
        &line[host_at..host_at + host.len() + 1 + disk.len()],
    )
    .that_took(took))
}

fn write(out: &mut dyn Write, record: &Record) -> io::Result<()> {
    let ticks = WRITTEN_BASE_TICKS + record.time_ps / TICK_PS;
    let kind = if record.op == Op::Read {
        "Read"
    } else {
        "Write"
    };
    let Record {
        offset_bytes,
        length_bytes,
        ..
    } = record;
    writeln!(
        out,
        "{ticks},lodger,0,{kind},{offset_bytes},{length_bytes},0"
    )
}
