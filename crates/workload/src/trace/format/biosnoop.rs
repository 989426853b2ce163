//! Output of `biosnoop` from BCC or libbpf-tools.
//!
//! ```text
//! TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)
//! 0.000004    supervise      1950   xvda1   W 13092560   4096      0.74
//! ```
//!
//! | column | unit |
//! |---|---|
//! | `TIME(s)` | seconds, when the request was *completed* |
//! | `COMM`, `PID` | ignored; a command may hold spaces |
//! | `DISK` | device |
//! | `T` | `R` or `W` (BCC), the kernel's letters (libbpf-tools) |
//! | `SECTOR` | of 512 B |
//! | `BYTES` | bytes |
//! | `QUE(ms)` | with `-Q`: time in the host's queue; not used |
//! | `LAT(ms)` | from issue to completion |
//!
//! Traps: lines come in the order of completions; a request was issued `LAT` earlier, which BCC rounds to 10 us.
//! BCC writes trims and flushes as `R`; those of no bytes are left out. Where the kernel did not say who asked, disk
//! and sector are missing: left out, too.

use super::field::{Fault, Parsed, Rwbs, Skip, Took, count, sectors, time, words};
use super::{About, Holds, Sign, Special, TimeUnit};
use crate::trace::record::Record;
use crate::trace::text::excerpt;
use lodger_core::Op;
use lodger_core::time::{MS, S, US};
use std::io::{self, Write};

const COLUMNS: &str = "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)";

/// What this format is.
pub(super) const ABOUT: About = About {
    name: "biosnoop",
    aliases: &[],
    title: "biosnoop output",
    columns: COLUMNS,
    coding: "`R` read, `W` write, or RWBS letters",
    address_unit: "sectors of 512 B, lengths in bytes",
    time_unit: TimeUnit::Seconds,
    time_unit_may_differ: false,
    device_noun: Some("disk"),
    may_have_header: false,
    sign: Sign::Line(is_header),
    holds: Holds {
        flush: false,
        trim: false,
        fua: false,
        offset_unit_bytes: 512,
        length_unit_bytes: 1,
        time_resolution_ps: US,
    },
    parse: |_, line| parse(line),
    write: |out, record, _| write(out, record),
    special: Special {
        write_head: |out| writeln!(out, "{COLUMNS}"),
        assumptions: |_, _, notes| {
            notes.push("issued when it was completed less `LAT(ms)`, to 10 us".to_owned());
        },
        ..Special::NONE
    },
};

fn is_header(line: &[u8]) -> bool {
    let names: Vec<&[u8]> = words(line).collect();
    let has = |name: &[u8]| names.contains(&name);
    has(b"TIME(s)") && has(b"DISK") && has(b"SECTOR") && has(b"BYTES") && has(b"LAT(ms)")
}

/// From the right, because a command may hold anything.
fn parse(line: &[u8]) -> Result<Parsed<'_>, Fault> {
    if is_header(line) {
        return Ok(Parsed::Skip(Skip::Expected));
    }
    let mut from_left = words(line);
    let at = from_left.next().unwrap_or(b"");
    let rest: Vec<&[u8]> = from_left.collect();
    let (latency, rest) = match rest.as_slice() {
        // With `-Q` the time in the queue, and with `-P` what the access looked like, come before.
        [rest @ .., queued, latency] if queued.contains(&b'.') => (*latency, rest),
        [rest @ .., latency] => (*latency, rest),
        [] => return Err(missing(line)),
    };
    let rest = match rest {
        [rest @ .., [b'S' | b'R' | b'?']] => rest,
        rest => rest,
    };
    let [command @ .., disk, kind, sector, bytes] = rest else {
        return Err(missing(line));
    };
    // The kernel's names have 15 bytes at most, a process's number ten.
    if command.iter().map(|word| word.len() + 1).sum::<usize>() > 32 {
        return Err(Fault::joined(line));
    }
    let Some(kind) = Rwbs::parse(kind) else {
        let letters = "letters such as `R`, `W`, `WS`";
        return Err(Fault::column("T", letters, kind));
    };
    if disk.iter().all(u8::is_ascii_digit) {
        // That is the process: the disk is missing.
        return Ok(Parsed::Skip(Skip::OtherKind));
    }
    let latency_ps = time("LAT(ms)", latency, MS)?;
    let issued_ps = time("TIME(s)", at, S)? - latency_ps;
    let length_bytes = count("BYTES", bytes)?;
    let offset_bytes = match length_bytes {
        // An empty flush says anything here.
        0 => 0,
        _ => sectors("SECTOR", sector)?,
    };
    let request = kind.request(issued_ps, offset_bytes, length_bytes, disk, 0);
    Ok(request.that_took(Took::recorded(latency_ps)))
}

fn missing(line: &[u8]) -> Fault {
    let line = excerpt(line);
    Fault(format!(
        "a line must have the columns `{COLUMNS}`, found `{line}`"
    ))
}

/// Completed when it was issued: nothing is known of how long it took. The offset must be a whole sector.
fn write(out: &mut dyn Write, record: &Record) -> io::Result<()> {
    let (seconds, microseconds) = (record.time_ps / S, record.time_ps % S / US);
    let kind = if record.op == Op::Read { 'R' } else { 'W' };
    let (sector, bytes) = (record.offset_bytes / 512, record.length_bytes);
    writeln!(
        out,
        "{seconds}.{microseconds:06} lodger 0 sda {kind} {sector} {bytes} 0.00"
    )
}
