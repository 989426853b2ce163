//! The formats of block traces: what each is called, what it holds, and who reads and writes it.
//!
//! Each format has a file of its own with its columns, units and traps.

mod alibaba;
mod blkparse;
pub(crate) mod cloudphysics;
mod csv;
pub(crate) mod field;
pub(crate) mod ftrace;
mod iolog;
mod mqsim;
mod msr;
pub(crate) mod recognise;
mod systor;
mod tencent;

use super::record::Record;
use crate::WorkloadError;
use field::{Fault, Parsed};
use lodger_core::time::{MS, NS, S, US};
use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

/// A format of block traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Lodger's own CSV: `time_us,op,offset_bytes,length_bytes[,flags]`.
    Csv,
    /// MSR Cambridge CSV.
    Msr,
    /// Text of `blkparse`.
    Blkparse,
    /// Block events of the kernel's ftrace.
    Ftrace,
    /// fio's I/O log, version 2 or 3.
    FioIolog,
    /// MQSim's ASCII.
    Mqsim,
    /// Alibaba block traces, 2020.
    Alibaba,
    /// Tencent Cloud Block Storage, 2018.
    Tencent,
    /// SYSTOR '17 enterprise virtual desktops.
    Systor,
    /// CloudPhysics virtual machines.
    CloudPhysics,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 10] = [
        Self::Csv,
        Self::Msr,
        Self::Blkparse,
        Self::Ftrace,
        Self::FioIolog,
        Self::Mqsim,
        Self::Alibaba,
        Self::Tencent,
        Self::Systor,
        Self::CloudPhysics,
    ];

    /// The word a user says it by.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Msr => "msr",
            Self::Blkparse => "blkparse",
            Self::Ftrace => "ftrace",
            Self::FioIolog => "fio-iolog",
            Self::Mqsim => "mqsim",
            Self::Alibaba => "alibaba",
            Self::Tencent => "tencent",
            Self::Systor => "systor",
            Self::CloudPhysics => "cloudphysics",
        }
    }

    /// What people call it.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Csv => "Lodger CSV",
            Self::Msr => "MSR Cambridge CSV",
            Self::Blkparse => "blkparse text",
            Self::Ftrace => "ftrace block events",
            Self::FioIolog => "fio iolog",
            Self::Mqsim => "MQSim ASCII",
            Self::Alibaba => "Alibaba block trace",
            Self::Tencent => "Tencent CBS trace",
            Self::Systor => "SYSTOR '17 trace",
            Self::CloudPhysics => "CloudPhysics CSV",
        }
    }

    /// Its columns, in order.
    #[must_use]
    pub fn columns(self) -> &'static str {
        match self {
            Self::Csv => csv::COLUMNS,
            Self::Msr => msr::COLUMNS,
            Self::Blkparse => blkparse::COLUMNS,
            Self::Ftrace => ftrace::COLUMNS,
            Self::FioIolog => iolog::COLUMNS,
            Self::Mqsim => mqsim::COLUMNS,
            Self::Alibaba => alibaba::COLUMNS,
            Self::Tencent => tencent::COLUMNS,
            Self::Systor => systor::COLUMNS,
            Self::CloudPhysics => cloudphysics::COLUMNS,
        }
    }

    /// How it says read and write.
    #[must_use]
    pub fn coding(self) -> &'static str {
        match self {
            Self::Csv => "`R` read, `W` write, `F` flush, `D` discard",
            Self::Msr => "`Read`, `Write`",
            Self::Blkparse | Self::Ftrace => "RWBS letters",
            Self::FioIolog => "`read`, `write`, `sync`, `trim`",
            Self::Mqsim => "0 write, 1 read",
            Self::Tencent => "0 read, 1 write",
            Self::Alibaba | Self::Systor => "`R` read, `W` write",
            Self::CloudPhysics => "SCSI operation codes",
        }
    }

    /// The unit of its addresses and lengths.
    #[must_use]
    pub fn address_unit(self) -> &'static str {
        match self {
            Self::Csv | Self::Msr | Self::FioIolog | Self::Alibaba | Self::Systor => "bytes",
            Self::Blkparse | Self::Ftrace | Self::Mqsim | Self::Tencent => "sectors of 512 B",
            Self::CloudPhysics => "sectors of 512 B, lengths in bytes",
        }
    }

    /// Its unit of time, unless told otherwise.
    #[must_use]
    pub fn time_unit(self) -> TimeUnit {
        match self {
            Self::Msr => TimeUnit::FileTime,
            Self::Mqsim => TimeUnit::Nanoseconds,
            Self::Csv | Self::FioIolog | Self::Alibaba | Self::CloudPhysics => {
                TimeUnit::Microseconds
            }
            Self::Blkparse | Self::Ftrace | Self::Tencent | Self::Systor => TimeUnit::Seconds,
        }
    }

    /// Whether files of this format exist with other units of time, so that it may be overridden.
    pub(crate) fn time_unit_may_differ(self) -> bool {
        matches!(
            self,
            Self::Msr
                | Self::Mqsim
                | Self::Alibaba
                | Self::Tencent
                | Self::Systor
                | Self::CloudPhysics
        )
    }

    /// What one can select in it: the word for its devices, if it has any.
    pub(crate) fn device_noun(self) -> Option<&'static str> {
        match self {
            Self::Csv | Self::Mqsim | Self::CloudPhysics => None,
            Self::Msr => Some("disk"),
            Self::Blkparse | Self::Ftrace => Some("device"),
            Self::FioIolog => Some("file"),
            Self::Alibaba | Self::Tencent | Self::Systor => Some("volume"),
        }
    }

    /// Whether its first line may name the columns.
    pub(crate) fn may_have_header(self) -> bool {
        !matches!(
            self,
            Self::Blkparse | Self::Ftrace | Self::FioIolog | Self::Mqsim
        )
    }

    /// What a file of this format can hold.
    pub(crate) fn holds(self) -> Holds {
        let sectors = matches!(
            self,
            Self::Blkparse | Self::Ftrace | Self::Mqsim | Self::Tencent
        );
        Holds {
            flush: matches!(
                self,
                Self::Csv | Self::Blkparse | Self::Ftrace | Self::FioIolog | Self::CloudPhysics
            ),
            trim: matches!(
                self,
                Self::Csv | Self::Blkparse | Self::Ftrace | Self::FioIolog
            ),
            fua: matches!(self, Self::Csv | Self::Blkparse | Self::Ftrace),
            offset_unit_bytes: if sectors || self == Self::CloudPhysics {
                512
            } else {
                1
            },
            length_unit_bytes: if sectors { 512 } else { 1 },
            time_resolution_ps: match self {
                Self::Csv => 1,
                Self::Blkparse | Self::Systor | Self::Mqsim => NS,
                Self::Msr => msr::TICK_PS,
                Self::Ftrace | Self::FioIolog | Self::Alibaba | Self::CloudPhysics => US,
                Self::Tencent => S,
            },
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = WorkloadError;

    fn from_str(word: &str) -> Result<Self, WorkloadError> {
        let lower = word.to_ascii_lowercase();
        let alias = match lower.as_str() {
            "plain" | "lodger" => Some(Self::Csv),
            "msr-cambridge" => Some(Self::Msr),
            "blktrace" => Some(Self::Blkparse),
            "iolog" | "fio" => Some(Self::FioIolog),
            "disksim" => Some(Self::Mqsim),
            "systor17" | "systor-17" => Some(Self::Systor),
            _ => None,
        };
        let named = Self::ALL.into_iter().find(|format| format.name() == lower);
        named.or(alias).ok_or_else(|| {
            WorkloadError::new(format!("unknown trace format `{word}`"))
                .hint(format!("formats: {}", Self::ALL.map(Self::name).join(", ")))
        })
    }
}

/// A unit of time in a trace file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// 1 ps.
    Picoseconds,
    /// 1 ns.
    Nanoseconds,
    /// 100 ns, as Windows counts.
    FileTime,
    /// 1 us.
    Microseconds,
    /// 1 ms.
    Milliseconds,
    /// 1 s.
    Seconds,
}

impl TimeUnit {
    /// Its length in picoseconds.
    #[must_use]
    pub fn ps(self) -> u64 {
        match self {
            Self::Picoseconds => 1,
            Self::Nanoseconds => NS,
            Self::FileTime => msr::TICK_PS,
            Self::Microseconds => US,
            Self::Milliseconds => MS,
            Self::Seconds => S,
        }
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Picoseconds => "ps",
            Self::Nanoseconds => "ns",
            Self::FileTime => "100 ns ticks",
            Self::Microseconds => "us",
            Self::Milliseconds => "ms",
            Self::Seconds => "s",
        })
    }
}

impl FromStr for TimeUnit {
    type Err = WorkloadError;

    fn from_str(word: &str) -> Result<Self, WorkloadError> {
        match word {
            "ps" => Ok(Self::Picoseconds),
            "ns" => Ok(Self::Nanoseconds),
            "filetime" | "100ns" => Ok(Self::FileTime),
            "us" => Ok(Self::Microseconds),
            "ms" => Ok(Self::Milliseconds),
            "s" => Ok(Self::Seconds),
            _ => Err(WorkloadError::new(format!(
                "a unit of time must be ps, ns, filetime, us, ms or s, found `{word}`"
            ))),
        }
    }
}

/// What a format can hold; the rest is lost in writing it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holds {
    pub(crate) flush: bool,
    pub(crate) trim: bool,
    pub(crate) fua: bool,
    pub(crate) offset_unit_bytes: u64,
    pub(crate) length_unit_bytes: u64,
    pub(crate) time_resolution_ps: u64,
}

/// Reads the lines of one file.
#[derive(Debug)]
pub(crate) struct Parser {
    format: Format,
    unit_ps: u64,
    /// blkparse: the one action to take.
    action: Option<u8>,
    iolog: iolog::State,
}

impl Parser {
    pub(crate) fn new(format: Format, unit: TimeUnit, action: Option<u8>) -> Self {
        Self {
            format,
            unit_ps: unit.ps(),
            action,
            iolog: iolog::State::new(),
        }
    }

    /// What a significant line says.
    pub(crate) fn line<'a>(&mut self, line: &'a [u8]) -> Result<Parsed<'a>, Fault> {
        match self.format {
            Format::Csv => csv::parse(line),
            Format::Msr => msr::parse(line, self.unit_ps),
            Format::Blkparse => blkparse::parse(line, self.action),
            Format::Ftrace => ftrace::parse(line),
            Format::FioIolog => self.iolog.parse(line),
            Format::Mqsim => mqsim::parse(line, self.unit_ps),
            Format::Alibaba => alibaba::parse(line, self.unit_ps),
            Format::Tencent => tencent::parse(line, self.unit_ps),
            Format::Systor => systor::parse(line, self.unit_ps),
            Format::CloudPhysics => cloudphysics::parse(line, self.unit_ps),
        }
    }
}

/// What comes before the first request of a written file.
pub(crate) fn write_head(format: Format, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Csv => writeln!(out, "{}", csv::COLUMNS),
        Format::Systor => writeln!(out, "{}", systor::COLUMNS),
        Format::CloudPhysics => writeln!(out, "{}", cloudphysics::COLUMNS),
        Format::Ftrace => writeln!(out, "# tracer: nop\n#"),
        Format::FioIolog => iolog::write_head(out),
        Format::Msr | Format::Blkparse | Format::Mqsim | Format::Alibaba | Format::Tencent => {
            Ok(())
        }
    }
}

/// One request; `sequence` counts them from 1. The request must be one the format holds.
pub(crate) fn write_request(
    format: Format,
    out: &mut dyn Write,
    record: &Record,
    sequence: u64,
) -> io::Result<()> {
    match format {
        Format::Csv => csv::write(out, record),
        Format::Msr => msr::write(out, record),
        Format::Blkparse => blkparse::write(out, record, sequence),
        Format::Ftrace => ftrace::write(out, record),
        Format::FioIolog => iolog::write(out, record),
        Format::Mqsim => mqsim::write(out, record),
        Format::Alibaba => alibaba::write(out, record),
        Format::Tencent => tencent::write(out, record),
        Format::Systor => systor::write(out, record),
        Format::CloudPhysics => cloudphysics::write(out, record),
    }
}

/// What comes after the last request of a written file, which was issued at `last_ps`.
pub(crate) fn write_tail(format: Format, out: &mut dyn Write, last_ps: u64) -> io::Result<()> {
    match format {
        Format::FioIolog => iolog::write_tail(out, last_ps),
        _ => Ok(()),
    }
}
