//! Traces of the Storage Performance Council's form: the UMass repository's Financial and WebSearch.
//!
//! ```text
//! 0,303567,3584,w,0.000000
//! ```
//!
//! | column | unit |
//! |---|---|
//! | `ASU` | application storage unit: a volume, counted from 0 |
//! | `LBA` | blocks of the trace's own size, which is 512 B in every published one |
//! | `Size` | **bytes** |
//! | `Opcode` | `R` or `W`, in either case |
//! | `Timestamp` | seconds from the first request, with decimals |
//!
//! The specification (revision 1.0.1) lets further columns follow, whose meaning is the tracer's own; they
//! are passed over. Traps: two units in one line, every unit counts its addresses from 0, no flushes.

use super::field::{
    Fault, Parsed, SECTOR_BYTES, bare, columns, comma_separated, count, number, sectors, time,
};
use super::{About, Holds, Sign, Special, TimeUnit};
use crate::trace::record::Record;
use lodger_core::Op;
use lodger_core::time::{NS, S};
use std::io::{self, Write};

const COLUMNS: &str = "ASU,LBA,Size,Opcode,Timestamp";

/// What this format is.
pub(super) const ABOUT: About = About {
    name: "spc",
    aliases: &["spc-1", "umass"],
    title: "SPC trace",
    columns: COLUMNS,
    coding: "`R` read, `W` write",
    address_unit: "sectors of 512 B, lengths in bytes",
    time_unit: TimeUnit::Seconds,
    time_unit_may_differ: false,
    device_noun: Some("ASU"),
    may_have_header: true,
    sign: Sign::Columns { rank: 3 },
    holds: Holds {
        flush: false,
        trim: false,
        fua: false,
        offset_unit_bytes: SECTOR_BYTES,
        length_unit_bytes: 1,
        time_resolution_ps: NS,
    },
    parse: |state, line| parse(line, state.unit_ps),
    write: |out, record, _| write(out, record),
    special: Special::NONE,
};

fn parse(line: &[u8], unit_ps: u64) -> Result<Parsed<'_>, Fault> {
    let further = line.iter().enumerate().filter(|&(_, &byte)| byte == b',');
    let end = further.map(|(at, _)| at).nth(4).unwrap_or(line.len());
    if end < line.len() && is_joined(line) {
        return Err(Fault::joined(line));
    }
    let [asu, lba, size, opcode, at] = comma_separated::<5>(&line[..end], COLUMNS)?;
    count("ASU", asu)?;
    let offset_bytes = sectors("LBA", lba)?;
    let length_bytes = count("Size", size)?;
    let op = match bare(opcode) {
        b"R" | b"r" => Op::Read,
        b"W" | b"w" => Op::Write,
        other => return Err(Fault::column("Opcode", "`R` or `W`", other)),
    };
    let time_ps = time("Timestamp", at, unit_ps)?;
    let extent = (offset_bytes, length_bytes);
    Ok(Parsed::transfer(time_ps, op, extent, bare(asu)))
}

/// Whether the further columns are those of a record whose first one is lost in the time before.
#[cold]
fn is_joined(line: &[u8]) -> bool {
    let (all, found) = columns::<9>(line);
    found == 9
        && number(all[5]).is_some()
        && number(all[6]).is_some()
        && matches!(bare(all[7]), b"R" | b"r" | b"W" | b"w")
        && time("Timestamp", all[8], S).is_ok()
}

/// Offset must be a whole number of sectors.
fn write(out: &mut dyn Write, record: &Record) -> io::Result<()> {
    let kind = if record.op == Op::Read { 'R' } else { 'W' };
    let lba = record.offset_bytes / SECTOR_BYTES;
    let (seconds, nanoseconds) = (record.time_ps / S, record.time_ps % S / NS);
    writeln!(
        out,
        "0,{lba},{},{kind},{seconds}.{nanoseconds:09}",
        record.length_bytes
    )
}

#[cfg(test)]
mod tests {
    use super::super::field::Skip;
    use super::*;
    use crate::trace::{DeviceChoice, Format, Options, load};

    #[test]
    fn lines_as_published_are_read_and_units_told_apart() {
        let text = "0,303567,3584,w,0.000000\n1,55590,3072,w,0.000000\n0,303574,3584,w,0.026214\n\
                    1,240840,3072,w,0.026214\n1,55596,3072,r,0.078643\n";
        let (trace, description) = load(text.as_bytes(), "t", &Options::default()).unwrap();
        assert_eq!(description.format, Format::Spc);
        assert_eq!(description.device.as_deref(), Some("1"));
        assert_eq!(trace.duration_ps(), 78_643_000_000);
        let options = Options {
            device: DeviceChoice::Named("0".to_owned()),
            ..Options::default()
        };
        let (trace, _) = load(text.as_bytes(), "t", &options).unwrap();
        // The second request begins where the first ends: the unit of addresses is 512 B.
        let first = trace.records().next().unwrap();
        assert_eq!(
            trace.records().nth(1).unwrap().offset_bytes,
            first.end_bytes()
        );
    }

    #[test]
    fn further_columns_are_passed_over_and_bad_ones_named() {
        assert!(matches!(
            parse(b"0, 8, 4096, R, 0.5, 17, anything", S),
            Ok(Parsed::Request(raw)) if raw.length_bytes == 4096
        ));
        assert_eq!(parse(b"0,8,0,R,0.5", S), Ok(Parsed::Skip(Skip::ZeroLength)));
        for (line, says) in [
            ("0,8,4096,X,0.5", "`Opcode` must be `R` or `W`, found `X`"),
            ("-1,8,4096,R,0.5", "`ASU`"),
            ("0,36028797018963968,4096,R,0.5", "a sector below 2^55"),
            ("0,8,-4096,R,0.5", "`Size`"),
            ("0,8,4096,R,-0.5", "`Timestamp`"),
            ("0,8,4096,R", "5 columns"),
            ("", "5 columns"),
        ] {
            let Err(Fault(message)) = parse(line.as_bytes(), S) else {
                panic!("{line}");
            };
            assert!(message.contains(says), "{line}: {message}");
        }
    }
}
