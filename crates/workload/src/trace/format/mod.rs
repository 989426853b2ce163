//! The formats of block traces: what each is called, what it holds, and who reads and writes it.
//!
//! Each format has a file of its own with its columns, units and traps, and says in a constant `ABOUT` all that
//! recognition, reading, writing, messages and documentation need of it. A new format is such a file, its `mod`
//! line and its line in the table below.

mod alibaba;
mod biosnoop;
mod blkparse;
mod cloudphysics;
mod csv;
mod eight;
pub(crate) mod field;
mod fiu;
pub(crate) mod ftrace;
mod iolog;
mod mqsim;
mod msr;
pub(crate) mod recognise;
mod spc;
mod systor;
mod tencent;

use super::record::Record;
use crate::WorkloadError;
use field::{Fault, Parsed, same_header};
use lodger_core::time::{MS, NS, S, US};
use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

/// The enumeration of formats, and where each says what it is.
macro_rules! formats {
    ($($(#[$doc:meta])* $variant:ident($module:ident),)*) => {
        /// A format of block traces.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Format {
            $($(#[$doc])* $variant,)*
        }

        impl Format {
            /// Every format.
            pub const ALL: [Self; [$(stringify!($module)),*].len()] = [$(Self::$variant),*];

            pub(crate) fn about(self) -> &'static About {
                match self {
                    $(Self::$variant => &$module::ABOUT,)*
                }
            }
        }
    };
}

formats! {
    /// Lodger's own CSV: `time_us,op,offset_bytes,length_bytes[,flags]`.
    Csv(csv),
    /// MSR Cambridge CSV.
    Msr(msr),
    /// Text of `blkparse`.
    Blkparse(blkparse),
    /// Block events of the kernel's ftrace.
    Ftrace(ftrace),
    /// fio's I/O log, version 2 or 3.
    FioIolog(iolog),
    /// MQSim's ASCII.
    Mqsim(mqsim),
    /// Alibaba block traces, 2020.
    Alibaba(alibaba),
    /// Tencent Cloud Block Storage, 2018.
    Tencent(tencent),
    /// SYSTOR '17 enterprise virtual desktops.
    Systor(systor),
    /// CloudPhysics virtual machines.
    CloudPhysics(cloudphysics),
    /// Storage Performance Council, as in the UMass repository.
    Spc(spc),
    /// FIU IODedup, 2008.
    Fiu(fiu),
    /// Output of `biosnoop`.
    Biosnoop(biosnoop),
}

/// What a format says of itself.
pub(crate) struct About {
    /// The word a user says it by.
    name: &'static str,
    /// Other words for it.
    aliases: &'static [&'static str],
    /// What people call it.
    title: &'static str,
    /// Its columns, in order.
    columns: &'static str,
    /// How it says read and write.
    coding: &'static str,
    /// The unit of its addresses and lengths.
    address_unit: &'static str,
    /// Its unit of time, unless told otherwise.
    time_unit: TimeUnit,
    /// Files with other units of time exist, so that it may be overridden.
    time_unit_may_differ: bool,
    /// The word for its devices, if it tells them apart.
    device_noun: Option<&'static str>,
    /// The first line may name the columns.
    may_have_header: bool,
    sign: Sign,
    holds: Holds,
    parse: for<'a> fn(&mut State, &'a [u8]) -> Result<Parsed<'a>, Fault>,
    /// Writes one request, counted from 1. It is one that the format holds.
    write: fn(&mut dyn Write, &Record, u64) -> io::Result<()>,
    special: Special,
}

/// How a format is recognised.
#[derive(Clone, Copy)]
enum Sign {
    /// By the first line.
    FirstLine(fn(&[u8]) -> bool),
    /// By a first line that names the columns, without which it is not this format.
    Header(fn(&[u8]) -> bool),
    /// By any line, comments too.
    AnyLine(fn(&[u8]) -> bool),
    /// By any line that is no comment.
    Line(fn(&[u8]) -> bool),
    /// By nothing but its columns; of several formats that fit, the one of the lowest rank.
    Columns { rank: u8 },
}

/// What only some formats have.
struct Special {
    write_head: fn(&mut dyn Write) -> io::Result<()>,
    /// What comes after the last request, which was issued at that time.
    write_tail: fn(&mut dyn Write, u64) -> io::Result<()>,
    /// First lines that name the columns otherwise.
    other_headers: &'static [&'static str],
    /// The unit of time that the first lines suggest.
    guess_time_unit: fn(&[&[u8]]) -> Option<Suggested>,
    /// What the user should know was assumed; the flag says whether they named the unit of time.
    assumptions: fn(TimeUnit, bool, &mut Vec<String>),
    /// Its devices are parts of one space of addresses, and taken together unless one is named.
    one_volume: bool,
    /// Where a format records a request at several places, what the user knows them by, by rank.
    actions: [&'static str; 2],
    /// False for what no honest trace of the format holds, though the columns could be read so.
    plausible: fn(&Parsed<'_>) -> bool,
}

/// A unit of time that the first lines of a file suggest.
#[derive(Debug)]
pub(crate) struct Suggested {
    pub(crate) unit: TimeUnit,
    /// The file says so: nothing is guessed.
    pub(crate) is_said: bool,
    /// Why this one, and what speaks against it.
    pub(crate) note: Option<String>,
}

impl Special {
    const NONE: Self = Self {
        write_head: |_| Ok(()),
        write_tail: |_, _| Ok(()),
        other_headers: &[],
        guess_time_unit: |_| None,
        assumptions: |_, _, _| {},
        one_volume: false,
        actions: [""; 2],
        plausible: |_| true,
    };
}

impl Format {
    /// The word a user says it by.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.about().name
    }

    /// Every name, as a sentence has them.
    #[must_use]
    pub fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// What people call it.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.about().title
    }

    /// Its columns, in order.
    #[must_use]
    pub fn columns(self) -> &'static str {
        self.about().columns
    }

    /// How it says read and write.
    #[must_use]
    pub fn coding(self) -> &'static str {
        self.about().coding
    }

    /// The unit of its addresses and lengths.
    #[must_use]
    pub fn address_unit(self) -> &'static str {
        self.about().address_unit
    }

    /// Its unit of time, unless told otherwise.
    #[must_use]
    pub fn time_unit(self) -> TimeUnit {
        self.about().time_unit
    }

    /// Whether files of this format exist with other units of time, so that it may be overridden.
    pub(crate) fn time_unit_may_differ(self) -> bool {
        self.about().time_unit_may_differ
    }

    /// What one can select in it: the word for its devices, if it has any.
    pub(crate) fn device_noun(self) -> Option<&'static str> {
        self.about().device_noun
    }

    /// Whether its devices are parts of one space of addresses.
    pub(crate) fn is_one_volume(self) -> bool {
        self.about().special.one_volume
    }

    /// What the places are called at which it records a request, by rank; `action`: the one that was asked for.
    pub(crate) fn actions(self, action: Option<u8>) -> [&'static str; 2] {
        let all = self.about().special.actions;
        match action {
            Some(b'D') => [all[1]; 2],
            _ => all,
        }
    }

    /// Whether a line names its columns.
    pub(crate) fn is_header(self, line: &[u8]) -> bool {
        let others = self.about().special.other_headers;
        let mut headers = others.iter().copied().chain([self.columns()]);
        headers.any(|columns| same_header(line, columns))
    }

    /// Whether its first line may name the columns.
    pub(crate) fn may_have_header(self) -> bool {
        self.about().may_have_header
    }

    /// What a file of this format can hold.
    pub(crate) fn holds(self) -> Holds {
        self.about().holds
    }

    /// What had to be assumed, because the file cannot say.
    pub(crate) fn note_assumptions(self, unit: TimeUnit, said: bool, notes: &mut Vec<String>) {
        (self.about().special.assumptions)(unit, said, notes);
    }
}

/// A note for formats whose times may be whole seconds.
fn whole_seconds(unit: TimeUnit) -> Option<String> {
    (unit == TimeUnit::Seconds).then(|| {
        "times are whole seconds: replayed by time, all requests of a second arrive at once"
            .to_owned()
    })
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
        let named = Self::ALL.into_iter().find(|format| {
            let about = format.about();
            about.name == lower || about.aliases.contains(&lower.as_str())
        });
        named.ok_or_else(|| {
            let hint = match lower.as_str() {
                "json" | "normal" | "terse" => {
                    format!("the report's form is `--output-format {lower}`")
                }
                _ => format!("formats: {}", Self::names()),
            };
            WorkloadError::new(format!("unknown trace format `{word}`")).hint(hint)
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

/// What the reading of a file goes by, from line to line.
#[derive(Debug)]
struct State {
    unit_ps: u64,
    /// blkparse: the one action to take.
    action: Option<u8>,
    iolog: iolog::State,
}

/// Reads the lines of one file.
#[derive(Debug)]
pub(crate) struct Parser {
    format: Format,
    state: State,
}

impl Parser {
    pub(crate) fn new(format: Format, unit: TimeUnit, action: Option<u8>) -> Self {
        let state = State {
            unit_ps: unit.ps(),
            action,
            iolog: iolog::State::new(),
        };
        Self { format, state }
    }

    /// What a significant line says.
    pub(crate) fn line<'a>(&mut self, line: &'a [u8]) -> Result<Parsed<'a>, Fault> {
        (self.format.about().parse)(&mut self.state, line)
    }
}

/// What comes before the first request of a written file.
pub(crate) fn write_head(format: Format, out: &mut dyn Write) -> io::Result<()> {
    (format.about().special.write_head)(out)
}

/// One request; `sequence` counts them from 1. The request must be one the format holds.
pub(crate) fn write_request(
    format: Format,
    out: &mut dyn Write,
    record: &Record,
    sequence: u64,
) -> io::Result<()> {
    (format.about().write)(out, record, sequence)
}

/// What comes after the last request of a written file, which was issued at `last_ps`.
pub(crate) fn write_tail(format: Format, out: &mut dyn Write, last_ps: u64) -> io::Result<()> {
    (format.about().special.write_tail)(out, last_ps)
}
