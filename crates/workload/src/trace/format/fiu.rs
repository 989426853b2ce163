//! FIU IODedup traces (SNIA IOTTA, 2008): three weeks of a university department's file, mail and web
//! servers.
//!
//! ```text
//! 89968195792462 20782 gzip 283193184 8 R 6 0 56f11b711d91a065a2b6458eca924523
//! ```
//!
//! | column | unit |
//! |---|---|
//! | `time` | nanoseconds from any origin |
//! | `pid`, `process` | who asked; not used |
//! | `sector`, `sectors` | sectors of 512 B |
//! | `type` | `R` or `W` |
//! | `major`, `minor` | together the device, shown as `6 0` |
//! | `md5` | of the contents; not used |
//!
//! Traps: a process's name may hold spaces, so columns are counted from both ends; no flushes.

use super::field::{Fault, Parsed, SECTOR_BYTES, count, number, sectors, time};
use super::{About, Holds, Sign, Special, TimeUnit};
use crate::trace::record::Record;
use crate::trace::text::excerpt;
use lodger_core::Op;
use lodger_core::time::NS;
use std::io::{self, Write};

const COLUMNS: &str = "time pid process sector sectors type major minor md5";

/// What this format is.
pub(super) const ABOUT: About = About {
    name: "fiu",
    aliases: &["iodedup"],
    title: "FIU IODedup trace",
    columns: COLUMNS,
    coding: "`R` read, `W` write",
    address_unit: "sectors of 512 B",
    time_unit: TimeUnit::Nanoseconds,
    time_unit_may_differ: false,
    device_noun: Some("device"),
    may_have_header: false,
    sign: Sign::Columns { rank: 4 },
    holds: Holds {
        flush: false,
        trim: false,
        fua: false,
        offset_unit_bytes: SECTOR_BYTES,
        length_unit_bytes: SECTOR_BYTES,
        time_resolution_ps: NS,
    },
    parse: |state, line| parse(line, state.unit_ps),
    write: |out, record, _| write(out, record),
    special: Special::NONE,
};

/// Where a line's words begin and end.
fn words(line: &[u8]) -> impl DoubleEndedIterator<Item = (usize, usize)> {
    let is_space = |at: usize| line.get(at).is_none_or(u8::is_ascii_whitespace);
    let begins = move |at: usize| !is_space(at) && (at == 0 || is_space(at - 1));
    let end = move |at: usize| (at..).find(|&end| is_space(end)).unwrap_or(line.len());
    (0..line.len())
        .filter(move |&at| begins(at))
        .map(move |at| (at, end(at)))
}

fn parse(line: &[u8], unit_ps: u64) -> Result<Parsed<'_>, Fault> {
    let mut words = words(line);
    let mut first = || words.next();
    let (at, pid) = (first(), first());
    let mut last = || words.next_back();
    let [md5, minor, major, kind, length, sector] = std::array::from_fn(|_| last());
    let process = last();
    // A name of several words, or a whole record and the beginning of one.
    let more: [Option<(usize, usize)>; 6] = std::array::from_fn(|_| last());
    if more[5].is_some() && ends_within(line) {
        return Err(Fault::joined(line));
    }
    let columns = [at, pid, process, sector, length, kind, major, minor, md5];
    if columns.contains(&None) {
        return Err(Fault(format!(
            "a line must have 9 columns `{COLUMNS}` separated by spaces, found `{}`",
            excerpt(line)
        )));
    }
    let [at, pid, _, sector, length, kind, major, minor, md5] =
        columns.map(|place| place.map_or(&line[..0], |(from, to)| &line[from..to]));
    let time_ps = time("time", at, unit_ps)?;
    count("pid", pid)?;
    let offset_bytes = sectors("sector", sector)?;
    let length_bytes = sectors("sectors", length)?;
    let op = match kind {
        b"R" | b"r" => Op::Read,
        b"W" | b"w" => Op::Write,
        other => return Err(Fault::column("type", "`R` or `W`", other)),
    };
    count("major", major)?;
    count("minor", minor)?;
    if !md5.iter().all(u8::is_ascii_hexdigit) {
        return Err(Fault::column("md5", "hexadecimal digits", md5));
    }
    // Major and minor number are neighbours in the line, so `6 0` is one slice of it.
    let device = match (columns[6], columns[7]) {
        (Some((from, _)), Some((_, to))) => &line[from..to],
        _ => b"",
    };
    let extent = (offset_bytes, length_bytes);
    Ok(Parsed::transfer(time_ps, op, extent, device))
}

/// Whether a record ends in the middle of a line: behind the time, the process and its name.
#[cold]
fn ends_within(line: &[u8]) -> bool {
    let all: Vec<&[u8]> = words(line).map(|(from, to)| &line[from..to]).collect();
    let is_number = |word: &[u8]| number(word).is_some();
    let end = all[..all.len() - 1].windows(6).skip(3);
    end.into_iter().any(|w| {
        let numbers = [w[0], w[1], w[3], w[4]];
        numbers.into_iter().all(is_number)
            && matches!(w[2], b"R" | b"r" | b"W" | b"w")
            && w[5].iter().all(u8::is_ascii_hexdigit)
    })
}

/// Offset and length must be whole sectors.
fn write(out: &mut dyn Write, record: &Record) -> io::Result<()> {
    let kind = if record.op == Op::Read { 'R' } else { 'W' };
    let at = record.time_ps / NS;
    let first = record.offset_bytes / SECTOR_BYTES;
    let sectors = record.length_bytes / SECTOR_BYTES;
    writeln!(out, "{at} 0 lodger {first} {sectors} {kind} 0 0 {:032x}", 0)
}

#[cfg(test)]
mod tests {
    use super::super::field::Skip;
    use super::*;
    use crate::trace::{Format, Options, load};

    #[test]
    fn lines_as_published_are_read() {
        let text = "89967195532165 4892 syslogd 904265560 8 W 6 0 531e779fd7ff3a1e1b0fa8a4ce1d4bb7\n\
                    89968195792462 20782 gzip 283193184 8 R 6 0 56f11b711d91a065a2b6458eca924523\n";
        let (trace, description) = load(text.as_bytes(), "t", &Options::default()).unwrap();
        assert_eq!(description.format, Format::Fiu);
        assert_eq!(description.device.as_deref(), Some("6 0"));
        assert_eq!(trace.duration_ps(), 1_000_260_297_000);
        let first = trace.records().next().unwrap();
        assert_eq!(
            (first.op, first.offset_bytes),
            (Op::Write, 904_265_560 * 512)
        );
        assert_eq!(first.length_bytes, 4096);
    }

    #[test]
    fn a_process_may_have_spaces_in_its_name_and_bad_columns_are_named() {
        assert!(matches!(
            parse(b"1 2 my odd R 3 process 16 8 W 6 0 00ff", NS),
            Ok(Parsed::Request(raw)) if raw.offset_bytes == 8192 && raw.device == b"6 0"
        ));
        for (line, says) in [
            (
                "1 2 p 16 8 X 6 0 00ff",
                "`type` must be `R` or `W`, found `X`",
            ),
            ("1 2 p -16 8 R 6 0 00ff", "`sector`"),
            (
                "1 2 p 16 36028797018963968 R 6 0 00ff",
                "`sectors` must be a sector below 2^55",
            ),
            ("-1 2 p 16 8 R 6 0 00ff", "`time`"),
            ("1 x p 16 8 R 6 0 00ff", "`pid`"),
            ("1 2 p 16 8 R 6,0 0 00ff", "`major`"),
            ("1 2 p 16 8 R 6 0 no-digest", "`md5`"),
            ("1 2 16 8 R 6 0 00ff", "9 columns"),
            ("", "9 columns"),
        ] {
            let Err(Fault(message)) = parse(line.as_bytes(), NS) else {
                panic!("{line}");
            };
            assert!(message.contains(says), "{line}: {message}");
        }
        assert_eq!(
            parse(b"1 2 p 16 0 R 6 0 00ff", NS),
            Ok(Parsed::Skip(Skip::ZeroLength))
        );
    }
}
