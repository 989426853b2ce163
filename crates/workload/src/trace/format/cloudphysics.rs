//! CloudPhysics traces: a week of virtual machines' disks, as libCacheSim ships them.
//!
//! ```text
//! version,time,op,size,lbn
//! 1,5633898,2a,512,42932745
//! ```
//!
//! | column | unit |
//! |---|---|
//! | `version` | of the record; ignored |
//! | `time` | microseconds, or **seconds** in files made through libCacheSim |
//! | `op` | SCSI operation code in hexadecimal |
//! | `size` | **bytes** |
//! | `lbn` | **sectors** of 512 B |
//!
//! Traps: two units in one line. The traces' own binary form counts microseconds, but libCacheSim
//! divides them by a million when it reads them, so CSV files written from there count seconds
//! (its sample spans 7200 of them: two hours). Which it is shows in the times themselves. Reads and writes of every SCSI width are taken, SYNCHRONIZE CACHE
//! becomes a flush; other commands are skipped and counted (UNMAP's range is not in the record).

use super::field::{
    Fault, Parsed, Raw, SECTOR_BYTES, Skip, Took, bare, comma_separated, count, sectors, time,
};
use super::recognise::mean_gap_ticks;
use super::{About, Format, Holds, Sign, Special, TimeUnit, whole_seconds};
use crate::trace::record::Record;
use lodger_core::Op;
use lodger_core::time::US;
use std::io::{self, Write};

const COLUMNS: &str = "version,time,op,size,lbn";

/// What this format is.
pub(super) const ABOUT: About = About {
    name: "cloudphysics",
    aliases: &[],
    title: "CloudPhysics CSV",
    columns: COLUMNS,
    coding: "SCSI operation codes",
    address_unit: "sectors of 512 B, lengths in bytes",
    time_unit: TimeUnit::Microseconds,
    time_unit_may_differ: true,
    device_noun: None,
    may_have_header: true,
    sign: Sign::Columns { rank: 7 },
    holds: Holds {
        flush: true,
        trim: false,
        fua: false,
        offset_unit_bytes: 512,
        length_unit_bytes: 1,
        time_resolution_ps: US,
    },
    parse: |state, line| parse(line, state.unit_ps),
    write: |out, record, _| write(out, record),
    special: Special {
        write_head: |out| writeln!(out, "{COLUMNS}"),
        guess_time_unit,
        assumptions,
        plausible,
        ..Special::NONE
    },
};

/// SCSI operation codes (SBC-4, table 33) and what they are here.
fn operation(code: u8) -> Option<Op> {
    match code {
        // READ (6), (10), (12), (16)
        0x08 | 0x28 | 0xa8 | 0x88 => Some(Op::Read),
        // WRITE (6), (10), (12), (16) WRITE AND VERIFY (10), (12), (16), WRITE ATOMIC (16)
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e | 0x9c => Some(Op::Write),
        // SYNCHRONIZE CACHE (10), (16)
        0x35 | 0x91 => Some(Op::Flush),
        _ => None,
    }
}

/// Whether times with this many units between one request and the next, on average, can only be
/// seconds. As microseconds they would be 100,000 requests a second, which no virtual machine of
/// these traces (2014) sent; as seconds it is at least one in ten seconds.
pub(crate) fn counts_seconds(mean_gap_ticks: Option<f64>) -> bool {
    mean_gap_ticks.is_some_and(|ticks| ticks < 10.0)
}

fn parse(line: &[u8], unit_ps: u64) -> Result<Parsed<'_>, Fault> {
    let [version, at, code, size, lbn] = comma_separated::<5>(line, COLUMNS)?;
    count("version", version)?;
    let time_ps = time("time", at, unit_ps)?;
    let code = hexadecimal(bare(code))
        .ok_or_else(|| Fault::column("op", "a SCSI operation code in hexadecimal", code))?;
    let size_bytes = count("size", size)?;
    let lbn_bytes = sectors("lbn", lbn)?;
    let Some(op) = operation(code) else {
        return Ok(Parsed::Skip(Skip::OtherOperation));
    };
    let flush = op == Op::Flush;
    if size_bytes == 0 && !flush {
        return Ok(Parsed::Skip(Skip::ZeroLength));
    }
    Ok(Parsed::Request(Raw {
        time_ps,
        op,
        fua: false,
        preflush: false,
        offset_bytes: if flush { 0 } else { lbn_bytes },
        length_bytes: if flush { 0 } else { size_bytes },
        device: b"",
        rank: 0,
        took: Took::Unknown,
    }))
}

/// Microseconds unless the first requests say otherwise.
fn guess_time_unit(lines: &[&[u8]]) -> Option<TimeUnit> {
    counts_seconds(mean_gap_ticks(Format::CloudPhysics, lines)).then_some(TimeUnit::Seconds)
}

fn assumptions(unit: TimeUnit, said: bool, notes: &mut Vec<String>) {
    if !said {
        let why = match unit {
            TimeUnit::Seconds => "as us they would be too dense to be true",
            _ => "files with times in s exist too",
        };
        notes.push(format!(
            "times read as {unit}: {why}; `--time-unit` names another"
        ));
    }
    notes.extend(whole_seconds(unit));
}

/// SCSI moves whole blocks; Tencent's 0 and 1 in the same column do not.
fn plausible(parsed: &Parsed<'_>) -> bool {
    match parsed {
        Parsed::Request(raw) => raw.length_bytes % 512 == 0,
        Parsed::Done(_) => false,
        Parsed::Skip(skip) => *skip != Skip::ZeroLength,
    }
}

fn hexadecimal(field: &[u8]) -> Option<u8> {
    let digits = field.strip_prefix(b"0x").unwrap_or(field);
    if digits.is_empty() || digits.len() > 2 {
        return None;
    }
    digits.iter().try_fold(0u8, |value, &byte| {
        let digit = char::from(byte).to_digit(16)?;
        Some(value << 4 | digit as u8)
    })
}

/// Offset must be a whole number of sectors. Never called for a trim.
fn write(out: &mut dyn Write, record: &Record) -> io::Result<()> {
    let code = match record.op {
        Op::Read => "28",
        Op::Write | Op::Trim => "2a",
        Op::Flush => "35",
    };
    let at = record.time_ps / US;
    let lbn = record.offset_bytes / SECTOR_BYTES;
    writeln!(out, "1,{at},{code},{},{lbn}", record.length_bytes)
}
