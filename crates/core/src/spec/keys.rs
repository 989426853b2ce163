//! Every key of a drive file: type, unit, range, default, meaning. The parser reads this table and
//! so does the reference in the documentation, so that neither can say what the other does not.

mod table;

use super::policies::{GcPolicy, Replacement};
use super::units::{show_rate, show_size, show_time, show_transfers};
use super::words::{Acknowledge, HpbBoot, HpbControl, HpbVersion, Log, Pacing};
use super::{Cell, Encoding, Gate, HpbProtocol, Integrity, Rounding, Tier, Word};

pub(super) use table::KEYS;

/// What a key's value looks like and what is allowed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Any short text.
    Text,
    /// Bytes; a multiple of `multiple`.
    Size { min: u64, max: u64, multiple: u64 },
    /// A time, in picoseconds.
    Time { min: u64, max: u64 },
    /// Bytes per second.
    Rate { min: u64, max: u64 },
    /// Transfers per second; a bare number is in millions.
    Transfers { min: u64, max: u64 },
    /// A whole number.
    Count { min: u64, max: u64 },
    /// A decimal number.
    Ratio { min: f64, max: f64 },
    /// `true` or `false`.
    Flag,
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// One time for all page types, or a list with one for each, picoseconds.
    PageTimes { min: u64, max: u64 },
    /// A list of a few words, each at most once.
    Words(&'static [&'static str]),
    /// A PCIe generation and width.
    Pcie,
}

/// What holds when a key is not given.
#[derive(Clone, Copy, Debug)]
pub(super) enum Absent {
    /// The key must be given (for a key of an optional table: if the table is).
    Required,
    /// This value, written as on the command line.
    Is(&'static str),
    /// Something other values decide; said in words.
    From(&'static str),
}

/// One key of a drive file, and what its value may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub path: &'static str,
    pub kind: Kind,
    pub absent: Absent,
    pub meaning: &'static str,
}

/// Tables that a drive may do without; none of their keys has a default then.
pub(super) const OPTIONAL_TABLES: &[&str] = &[
    "host.memory",
    "host.dma",
    "controller.read_ahead",
    "nand.suspend",
    "nand.variation",
    "nand.ageing",
    "tier.sram",
    "tier.dram",
    "tier.cxl",
    "tier.hmb",
    "tier.pm",
    "role.read_cache",
    "role.window",
    "power",
    "hpb",
];

/// The key of that path.
pub(super) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

/// What a key is about, for whoever gave it a wrong value.
pub(super) fn hint(key: &Key) -> String {
    let (path, meaning) = (key.path, key.meaning);
    let meaning = meaning.split(';').next().unwrap_or(meaning);
    // A drive that has such a table.
    let (drive, kind) = match path.split('.').next() {
        Some("hpb") => ("galaxy-s7", "drive with HPB"),
        _ => ("tiny", "small drive"),
    };
    format!("`{path}`: {meaning}; `lodger drives show {drive}` prints that of a {kind}")
}

/// The optional table that a key belongs to.
pub(super) fn optional_table(path: &str) -> Option<&'static str> {
    OPTIONAL_TABLES.iter().copied().find(|table| {
        path.strip_prefix(table)
            .is_some_and(|rest| rest.starts_with('.'))
    })
}

impl Kind {
    /// A number, and so in need of a source.
    pub(super) fn is_numeric(self) -> bool {
        !matches!(
            self,
            Kind::Text | Kind::Flag | Kind::Choice(_) | Kind::Words(_)
        )
    }

    /// What a value must look like: the words after "must be".
    pub(super) fn form(self) -> String {
        match self {
            Kind::Text => "a text of 1 to 100 printable characters".to_owned(),
            Kind::Size { .. } => {
                "a size with its unit, such as `\"480GB\"` or `\"38MiB\"`".to_owned()
            }
            Kind::Time { .. } => {
                "a time with its unit, such as `\"58us\"` or `\"1.72ms\"`".to_owned()
            }
            Kind::Rate { .. } => "a rate with its unit, such as `\"3.2GB/s\"`".to_owned(),
            Kind::Transfers { .. } => "a rate in MT/s, such as `533` or `\"533MT/s\"`".to_owned(),
            Kind::Count { .. } => "a whole number".to_owned(),
            Kind::Ratio { .. } => "a number".to_owned(),
            Kind::Flag => "`true` or `false`".to_owned(),
            Kind::Choice(words) => format!("one of {}", listed(words)),
            Kind::PageTimes { .. } => {
                "a time such as `\"58us\"`, or a list with one time for each page type".to_owned()
            }
            Kind::Words(words) => format!("a list of {}", listed(words)),
            Kind::Pcie => {
                "a PCIe generation from 1.0 to 5.0 and x1, x2, x4, x8 or x16, such as `\"3.0 x2\"`"
                    .to_owned()
            }
        }
    }

    /// The words after "must be" for a value outside the range.
    pub(super) fn range(self) -> String {
        let between = |min: String, max: String| format!("between {min} and {max}");
        match self {
            Kind::Size { min, max, .. } => between(show_size(min), show_size(max)),
            Kind::Time { min, max } | Kind::PageTimes { min, max } => {
                between(show_time(min), show_time(max))
            }
            Kind::Rate { min, max } => between(show_rate(min), show_rate(max)),
            Kind::Transfers { min, max } => between(show_transfers(min), show_transfers(max)),
            Kind::Count { min, max } => between(min.to_string(), max.to_string()),
            Kind::Ratio { min, max } => between(min.to_string(), max.to_string()),
            _ => self.form(),
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Kind::Size { .. } => "size",
            Kind::Time { .. } => "time",
            Kind::PageTimes { .. } => "time, or list of times",
            Kind::Rate { .. } => "rate",
            Kind::Transfers { .. } => "MT/s",
            Kind::Count { .. } | Kind::Ratio { .. } => "number",
            Kind::Flag => "flag",
            Kind::Text => "text",
            Kind::Choice(_) => "word",
            Kind::Words(_) => "list of words",
            Kind::Pcie => "PCIe link",
        }
    }
}

fn listed(words: &[&str]) -> String {
    words
        .iter()
        .map(|word| format!("`{word}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// One key of the drive file, as the documentation shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyReference {
    /// Dotted key, e.g. `nand.channel_mt_s`.
    pub key: &'static str,
    /// What kind of value it takes.
    pub unit: &'static str,
    /// What is allowed.
    pub range: String,
    /// What holds when it is not given.
    pub default: String,
    /// What it means.
    pub meaning: &'static str,
}

/// Every key a drive file may have, in the order in which values are shown.
#[must_use]
pub fn reference() -> Vec<KeyReference> {
    KEYS.iter()
        .map(|key| KeyReference {
            key: key.path,
            unit: key.kind.unit(),
            range: match key.kind {
                Kind::Size { multiple, .. } if multiple > 1 => {
                    format!(
                        "{}, a multiple of {}",
                        key.kind.range(),
                        show_size(multiple)
                    )
                }
                kind => kind.range(),
            },
            default: match (key.absent, optional_table(key.path)) {
                (Absent::Required, None) => "required".to_owned(),
                (Absent::Required, Some(table)) => format!("required with `[{table}]`"),
                (Absent::Is(text), None) => format!("`{text}`"),
                (Absent::Is(text), Some(table)) => format!("`{text}` with `[{table}]`"),
                (Absent::From(words), _) => format!("from {words}"),
            },
            meaning: key.meaning,
        })
        .collect()
}

/// [`reference()`] as a Markdown table.
#[must_use]
pub fn reference_markdown() -> String {
    let mut out =
        String::from("| key | value | allowed | default | meaning |\n|---|---|---|---|---|\n");
    for row in reference() {
        out += &format!(
            "| `{}` | {} | {} | {} | {} |\n",
            row.key, row.unit, row.range, row.default, row.meaning
        );
    }
    out
}

/// The words that keys take and what each means, as sections of Markdown.
#[must_use]
pub fn words_markdown() -> String {
    let section = |(title, words): (&str, &[Word])| {
        let rows = words
            .iter()
            .map(|entry| format!("| `{}` | {} |\n", entry.word, entry.meaning));
        let head = format!("\n## {title}\n\n| word | meaning |\n|---|---|\n");
        head + &rows.collect::<String>()
    };
    let sections = [
        ("Replacement policies", Replacement::WORDS),
        ("Garbage collection policies", GcPolicy::WORDS),
        ("Memories", Tier::WORDS),
        ("Flash cells (`nand.cell`)", Cell::WORDS),
        ("Host memory used (`tier.hmb.rounding`)", Rounding::WORDS),
        (
            "Protection (`tier.hmb.integrity`, `hpb.integrity`)",
            Integrity::WORDS,
        ),
        (
            "Forms of the map in memory (`role.map.encoding`)",
            Encoding::WORDS,
        ),
        (
            "When writes are acknowledged (`role.write_buffer.acknowledge`)",
            Acknowledge::WORDS,
        ),
        (
            "Room for writes (`role.write_buffer.pacing`)",
            Pacing::WORDS,
        ),
        ("The write log (`role.write_buffer.log`)", Log::WORDS),
        (
            "Block commands to pinned ranges (`role.window.gate`)",
            Gate::WORDS,
        ),
        ("HPB protocols (`hpb.protocol`)", HpbProtocol::WORDS),
        (
            "Versions of JEDEC's protocol (`hpb.version`)",
            HpbVersion::WORDS,
        ),
        (
            "Who decides what is active (`hpb.control`)",
            HpbControl::WORDS,
        ),
        ("The host's entries at boot (`hpb.boot`)", HpbBoot::WORDS),
    ];
    sections.into_iter().map(section).collect()
}
