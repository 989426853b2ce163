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
//! (its sample spans 7200 of them: two hours). Which it is shows in the times themselves: see [`guess_time_unit`].
//! A column `time_us` or `time_s` says it, and is what Lodger writes: readers go by the column's place. Reads and writes of
//! every SCSI width are taken, SYNCHRONIZE CACHE becomes a flush; other commands are skipped and counted (UNMAP's range is
//! not in the record).

use super::field::{
    Fault, Parsed, Raw, SECTOR_BYTES, Skip, Took, bare, comma_separated, count, same_header,
    sectors, time,
};
use super::recognise::ticks;
use super::{About, Format, Holds, Sign, Special, Suggested, TimeUnit, whole_seconds};
use crate::trace::record::Record;
use crate::trace::text::grouped;
use lodger_core::Op;
use lodger_core::time::US;
use std::io::{self, Write};

const COLUMNS: &str = "version,time,op,size,lbn";

/// The names of the columns where they say the unit of time.
const COLUMNS_US: &str = "version,time_us,op,size,lbn";
const COLUMNS_S: &str = "version,time_s,op,size,lbn";

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
        write_head: |out| writeln!(out, "{COLUMNS_US}"),
        other_headers: &[COLUMNS_US, COLUMNS_S],
        guess_time_unit,
        assumptions: |unit, _, notes| notes.extend(whole_seconds(unit)),
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

/// How the requests at the beginning of a file lie in units of its time.
struct Beginning {
    requests: u64,
    /// Units from the first to the last, both counted.
    span: f64,
    /// Units in which a request lies.
    occupied: u64,
    /// The most in one unit.
    most: u64,
    /// Requests in units that hold more than [`MOST_IN_A_US`].
    crowded: u64,
}

/// What no drive serves in a microsecond, nor in most that follow one another: 16 million requests a second. A burst may
/// have more at one instant, but then the next ones are empty until it is served.
const MOST_IN_A_US: u64 = 16;

impl Beginning {
    fn of(lines: &[&[u8]]) -> Option<Self> {
        let mut times = ticks(Format::CloudPhysics, lines);
        times.sort_unstable();
        let (first, last) = (times.first()?, times.last()?);
        let mut beginning = Beginning {
            requests: times.len() as u64,
            span: (last - first) as f64 + 1.0,
            occupied: 0,
            most: 0,
            crowded: 0,
        };
        for unit in times.chunk_by(|a, b| a == b) {
            let requests = unit.len() as u64;
            beginning.occupied += 1;
            beginning.most = beginning.most.max(requests);
            beginning.crowded += if requests > MOST_IN_A_US { requests } else { 0 };
        }
        Some(beginning)
    }

    /// Requests in a unit of time, on average.
    fn density(&self) -> f64 {
        self.requests as f64 / self.span
    }

    /// Whether the units can only be seconds.
    ///
    /// A busy host's microseconds and a quiet machine's seconds may hold equally many requests. What tells them apart is
    /// how unevenly: a machine's seconds hold one request or hundreds (the published sample: five on average, up to 566, two
    /// thirds of all in seconds of more than 16), while in a microsecond there is never more than can be served, or if
    /// there is, as many empty ones follow as it takes. So it is seconds if most units are crowded beyond that and yet
    /// follow one another, and there are enough of them to say so.
    fn counts_seconds(&self) -> bool {
        let enough = self.occupied >= 16 || self.occupied >= 4 && self.density() >= 64.0;
        let follow_one_another = self.occupied as f64 >= self.span / 2.0;
        enough && follow_one_another && self.density() >= 2.0 && self.crowded >= self.requests / 4
    }

    /// Whether as microseconds this would be more than the virtual machines of these traces (2014) sent: 100,000 requests
    /// a second.
    fn is_dense(&self) -> bool {
        const REQUESTS_MIN: u64 = 16;
        self.requests >= REQUESTS_MIN && self.density() > 0.1
    }
}

/// Microseconds unless the file says otherwise, or its first requests do.
fn guess_time_unit(lines: &[&[u8]]) -> Option<Suggested> {
    let said = |unit| Suggested {
        unit,
        is_said: true,
        note: None,
    };
    let header = lines.first()?;
    if same_header(header, COLUMNS_US) {
        return Some(said(TimeUnit::Microseconds));
    }
    if same_header(header, COLUMNS_S) {
        return Some(said(TimeUnit::Seconds));
    }
    let beginning = Beginning::of(lines)?;
    let rate = grouped((beginning.density() * 1e6) as u64);
    let most = grouped(beginning.most);
    let (unit, why) = if beginning.counts_seconds() {
        let why = format!(
            "as us they would be too dense to be true ({rate} requests a second, up to {most} at once); `--time-unit us` \
             reads them so all the same"
        );
        (TimeUnit::Seconds, why)
    } else if beginning.is_dense() {
        let why = format!(
            "they may be s, as files made through libCacheSim have them, for as us they begin with {rate} requests a \
             second; `--time-unit s` reads them so"
        );
        (TimeUnit::Microseconds, why)
    } else {
        let why = "files with times in s exist too; `--time-unit` names another";
        (TimeUnit::Microseconds, why.to_owned())
    };
    Some(Suggested {
        unit,
        is_said: false,
        note: Some(format!("times read as {unit}: {why}")),
    })
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
