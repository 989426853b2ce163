//! MQSim's ASCII traces, which are DiskSim's.
//!
//! ```text
//! 4851300 1 524288 16 0
//! ```
//!
//! | column | unit |
//! |---|---|
//! | arrival time | **not in the file**: MQSim takes it from its XML (`Time_Unit`) |
//! | device | any word; its traces spread one volume over many, and MQSim never looks at it: all are taken, unless one is named |
//! | first sector, number of sectors | sectors of 512 B |
//! | type | **0 write, 1 read** |
//!
//! Traps: the type's coding is the opposite of Tencent's. Whole numbers are taken for nanoseconds
//! and numbers with decimals for DiskSim's milliseconds, and the user is told.

use super::field::{Fault, Parsed, SECTOR_BYTES, sectors, time};
use super::{About, Holds, Sign, Special, Suggested, TimeUnit};
use crate::trace::record::Record;
use crate::trace::text::excerpt;
use lodger_core::Op;
use lodger_core::time::NS;
use std::io::{self, Write};

const COLUMNS: &str = "arrival_time device first_sector sectors type";

/// What this format is.
pub(super) const ABOUT: About = About {
    name: "mqsim",
    aliases: &["disksim"],
    title: "MQSim ASCII",
    columns: COLUMNS,
    coding: "0 write, 1 read",
    address_unit: "sectors of 512 B",
    time_unit: TimeUnit::Nanoseconds,
    time_unit_may_differ: true,
    device_noun: Some("device"),
    may_have_header: false,
    sign: Sign::Columns { rank: 9 },
    holds: Holds {
        flush: false,
        trim: false,
        fua: false,
        offset_unit_bytes: 512,
        length_unit_bytes: 512,
        time_resolution_ps: NS,
    },
    parse: |state, line| parse(line, state.unit_ps),
    write: |out, record, _| write(out, record),
    special: Special {
        guess_time_unit,
        assumptions,
        one_volume: true,
        ..Special::NONE
    },
};

/// The columns; commas for spaces are met in the wild.
fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b',' || byte.is_ascii_whitespace())
        .filter(|word| !word.is_empty())
}

fn parse(line: &[u8], unit_ps: u64) -> Result<Parsed<'_>, Fault> {
    let mut words = words(line);
    let columns: [Option<&[u8]>; 6] = std::array::from_fn(|_| words.next());
    let [
        Some(at),
        Some(device),
        Some(first),
        Some(length),
        Some(kind),
        None,
    ] = columns
    else {
        return Err(Fault(format!(
            "a line must have 5 columns `{COLUMNS}` separated by spaces, found `{}`",
            excerpt(line)
        )));
    };
    let time_ps = time("arrival_time", at, unit_ps)?;
    let offset_bytes = sectors("first_sector", first)?;
    let length_bytes = sectors("sectors", length)?;
    let op = match kind {
        b"0" => Op::Write,
        b"1" => Op::Read,
        other => return Err(Fault::column("type", "0 (write) or 1 (read)", other)),
    };
    let extent = (offset_bytes, length_bytes);
    Ok(Parsed::transfer(time_ps, op, extent, device))
}

/// Only DiskSim's milliseconds have decimals.
fn guess_time_unit(lines: &[&[u8]]) -> Option<Suggested> {
    let at = words(lines.first()?).next()?;
    let unit = match at.contains(&b'.') {
        true => TimeUnit::Milliseconds,
        false => ABOUT.time_unit,
    };
    Some(Suggested {
        unit,
        is_said: false,
        note: None,
    })
}

fn assumptions(unit: TimeUnit, said: bool, notes: &mut Vec<String>) {
    if !said {
        notes.push(format!(
            "MQSim files do not name their unit of time: {unit} assumed; `--time-unit` names another"
        ));
    }
    notes.push(
        "type read as 0 write, 1 read, which is MQSim's coding; Tencent's is the opposite"
            .to_owned(),
    );
}

/// Offset and length must be whole sectors.
fn write(out: &mut dyn Write, record: &Record) -> io::Result<()> {
    let at = record.time_ps / NS;
    let first = record.offset_bytes / SECTOR_BYTES;
    let sectors = record.length_bytes / SECTOR_BYTES;
    let kind = u8::from(record.op == Op::Read);
    writeln!(out, "{at} 0 {first} {sectors} {kind}")
}
