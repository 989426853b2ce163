//! Tencent Cloud Block Storage traces (SNIA IOTTA, 2018): nine days of cloud volumes.
//!
//! ```text
//! 1538323200,12910952,128,0,1063
//! ```
//!
//! | column | unit |
//! |---|---|
//! | `Timestamp` | Unix seconds, whole ones only |
//! | `Offset`, `Size` | sectors of 512 B |
//! | `IOType` | **0 read, 1 write** |
//! | `VolumeID` | volume |
//!
//! Traps: the type's coding is the opposite of MQSim's; all requests of a second carry the same
//! instant, so a replay by time sends them in one burst.

use super::field::{Fault, Parsed, SECTOR_BYTES, bare, comma_separated, sectors, time};
use super::{About, Holds, Sign, Special, TimeUnit, whole_seconds};
use crate::trace::record::Record;
use lodger_core::Op;
use lodger_core::time::S;
use std::io::{self, Write};

const COLUMNS: &str = "Timestamp,Offset,Size,IOType,VolumeID";

/// What this format is.
pub(super) const ABOUT: About = About {
    name: "tencent",
    aliases: &[],
    title: "Tencent CBS trace",
    columns: COLUMNS,
    coding: "0 read, 1 write",
    address_unit: "sectors of 512 B",
    time_unit: TimeUnit::Seconds,
    time_unit_may_differ: true,
    device_noun: Some("volume"),
    may_have_header: true,
    sign: Sign::Columns { rank: 8 },
    holds: Holds {
        flush: false,
        trim: false,
        fua: false,
        offset_unit_bytes: 512,
        length_unit_bytes: 512,
        time_resolution_ps: S,
    },
    parse: |state, line| parse(line, state.unit_ps),
    write: |out, record, _| write(out, record),
    special: Special {
        assumptions,
        ..Special::NONE
    },
};

/// 2020-01-01 in Unix seconds, for files we write.
const WRITTEN_BASE_S: u64 = 1_577_836_800;

fn parse(line: &[u8], unit_ps: u64) -> Result<Parsed<'_>, Fault> {
    let [at, offset, size, kind, volume] = comma_separated::<5>(line, COLUMNS)?;
    let time_ps = time("Timestamp", at, unit_ps)?;
    let offset_bytes = sectors("Offset", offset)?;
    let length_bytes = sectors("Size", size)?;
    let op = match bare(kind) {
        b"0" => Op::Read,
        b"1" => Op::Write,
        other => return Err(Fault::column("IOType", "0 (read) or 1 (write)", other)),
    };
    let extent = (offset_bytes, length_bytes);
    Ok(Parsed::transfer(time_ps, op, extent, bare(volume)))
}

fn assumptions(unit: TimeUnit, _said: bool, notes: &mut Vec<String>) {
    notes.extend(whole_seconds(unit));
}

/// Offset and length must be whole sectors.
fn write(out: &mut dyn Write, record: &Record) -> io::Result<()> {
    let at = WRITTEN_BASE_S + record.time_ps / S;
    let kind = u8::from(record.op != Op::Read);
    let first = record.offset_bytes / SECTOR_BYTES;
    let sectors = record.length_bytes / SECTOR_BYTES;
    writeln!(out, "{at},{first},{sectors},{kind},0")
}
