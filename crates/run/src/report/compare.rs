//! Several runs of one workload side by side.

use super::number::{duration_ns, grouped, short};
use super::{DIRECTIONS, Entry, Report, drive, entries, json_value, waf};
use crate::hmb::HmbChoice;
use crate::logging::LoggingResult;
use crate::size;
use serde_json::{Value, json};

/// What the user said of host memory; nothing for what the drive gets by itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given<'a> {
    /// `--hmb`.
    pub hmb: Option<&'a str>,
    /// `--hmb-offer`.
    pub hmb_offer: Option<&'a str>,
}

/// One run of the comparison.
#[derive(Clone, Copy, Debug)]
pub struct Variant<'a> {
    /// What the user said of host memory.
    pub given: Given<'a>,
    /// The run.
    pub report: Report<'a>,
}

/// `{"compare": [{"drive", "hmb", "hmb_offer", "result"}]}`, where `result` is what `simulate` writes.
#[must_use]
pub fn json(variants: &[Variant<'_>]) -> String {
    let runs: Vec<Value> = variants
        .iter()
        .map(|variant| {
            json!({
                "drive": variant.report.config.drive.name,
                "hmb": match variant.given {
                    Given { hmb: None, hmb_offer: None } => Some("default"),
                    given => given.hmb,
                },
                "hmb_offer": variant.given.hmb_offer,
                "result": json_value(variant.report, false),
            })
        })
        .collect();
    format!("{:#}\n", json!({ "compare": runs }))
}

/// A table: a row for each quantity, a column for each run.
#[must_use]
pub fn text(variants: &[Variant<'_>]) -> String {
    let all: Vec<Vec<Entry>> = variants
        .iter()
        .map(|variant| entries(&variant.report.result.jobs))
        .collect();
    let mut rows = vec![row("", variants, |v| v.report.config.drive.name.clone())];
    rows.extend(host_memory_rows(variants));
    rows.extend(logging_rows(variants));
    for place in 0..all.first().map_or(0, Vec::len) {
        for name in DIRECTIONS {
            let column: Vec<&Entry> = all.iter().filter_map(|run| run.get(place)).collect();
            rows.extend(latency_rows(name, &column));
        }
    }
    rows.extend(drive_rows(variants));
    layout(&rows)
}

type Row = (String, Vec<String>);

/// What the host gives where that was asked, what the drive takes of it, and what it can use of that
/// where it is less.
fn host_memory_rows(variants: &[Variant<'_>]) -> Vec<Row> {
    let mut rows = Vec::new();
    let choice = |v: &Variant<'_>| v.report.config.hmb;
    let said = |v: &Variant<'_>| matches!(choice(v), HmbChoice::AtMost(_) | HmbChoice::Exactly(_));
    if variants.iter().any(said) {
        rows.push(row("host gives", variants, |v| match choice(v) {
            HmbChoice::Negotiated => "default".to_owned(),
            HmbChoice::Off => "none".to_owned(),
            HmbChoice::AtMost(bytes) => format!("<= {}", size::show(bytes)),
            HmbChoice::Exactly(bytes) => size::show(bytes),
        }));
    }
    rows.push(row("host memory", variants, |v| {
        let hmb = &v.report.result.hmb;
        match (hmb.granted_bytes, choice(v)) {
            (0, HmbChoice::Off) => "none".to_owned(),
            (0, _) if hmb.requested_bytes == 0 => "not asked for".to_owned(),
            (0, _) => "too little".to_owned(),
            (bytes, _) => size::show(bytes),
        }
    }));
    let falls_short = |v: &Variant<'_>| {
        let hmb = &v.report.result.hmb;
        hmb.usable_bytes < hmb.granted_bytes
    };
    if variants.iter().any(falls_short) {
        rows.push(row("  usable", variants, |v| {
            match v.report.result.hmb.usable_bytes {
                0 => "-".to_owned(),
                bytes => size::show(bytes),
            }
        }));
    }
    rows
}

/// What a database did, if the runs are of one.
fn logging_rows(variants: &[Variant<'_>]) -> Vec<Row> {
    let found = |v: &Variant<'_>| {
        let mut jobs = v.report.result.jobs.iter();
        jobs.find_map(|job| job.logging.clone())
    };
    let all: Vec<_> = variants.iter().map(found).collect();
    let Some(first) = all.iter().flatten().next() else {
        return Vec::new();
    };
    let row = |label: &str, cell: &dyn Fn(&LoggingResult) -> String| -> Row {
        let cells = all.iter();
        let cells = cells.map(|logging| logging.as_ref().map_or("-".to_owned(), |l| cell(l)));
        (format!("  {label}"), cells.collect())
    };
    let percentile = |percent: f64| {
        move |l: &LoggingResult| duration_ns(l.latency.percentile_ns(percent) as f64)
    };
    vec![
        (format!("database {}", first.database), Vec::new()),
        row("commit mode", &|l| l.commit.to_owned()),
        row("clients", &|l| l.clients.to_string()),
        row("transactions/s", &|l| {
            short(l.statistics.transactions_per_s(), 4, 1000, "")
        }),
        row("commit mean", &|l| duration_ns(l.latency.mean_ns())),
        row("commit p50", &percentile(50.0)),
        row("commit p99", &percentile(99.0)),
        row("commit p99.9", &percentile(99.9)),
        row("log write amplification", &|l| {
            let amplification = l.statistics.write_amplification();
            amplification.map_or("-".to_owned(), |a| format!("{a:.2}"))
        }),
    ]
}

fn row(name: &str, variants: &[Variant<'_>], cell: impl Fn(&Variant<'_>) -> String) -> Row {
    (name.to_owned(), variants.iter().map(cell).collect())
}

/// What fio would say of one direction of one job, if any run has it.
fn latency_rows(name: &str, column: &[&Entry]) -> Vec<Row> {
    let Some(first) = column.iter().find(|entry| entry.direction(name).ios > 0) else {
        return Vec::new();
    };
    let row = |label: &str, cell: &dyn Fn(&Entry) -> String| -> Row {
        (
            format!("  {label}"),
            column.iter().map(|entry| cell(entry)).collect(),
        )
    };
    let percentile = |entry: &Entry, percent: f64| {
        let clat = entry.direction(name).clat();
        clat.map_or("-".to_owned(), |clat| {
            duration_ns(clat.percentile_ns(percent) as f64)
        })
    };
    vec![
        (format!("{} {name}", first.job.name), Vec::new()),
        row("IOPS", &|e| {
            short(e.direction(name).ios_per_second(), 4, 1000, "")
        }),
        row("bandwidth", &|e| {
            short(e.direction(name).bytes_per_second(), 4, 1024, "B/s")
        }),
        row("clat mean", &|e| {
            let clat = e.direction(name).clat();
            clat.map_or("-".to_owned(), |clat| duration_ns(clat.mean_ns()))
        }),
        row("clat p50", &|e| percentile(e, 50.0)),
        row("clat p99", &|e| percentile(e, 99.0)),
        row("clat p99.9", &|e| percentile(e, 99.9)),
    ]
}

fn drive_rows(variants: &[Variant<'_>]) -> Vec<Row> {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let share = |part: u64, all: u64| match all {
        0 => "-".to_owned(),
        _ => percent(part as f64 / all as f64),
    };
    let mut rows = vec![("drive".to_owned(), Vec::new())];
    for tier in ["sram", "dram", "hmb"] {
        let cells = row(&format!("  map hits in {tier}"), variants, |v| {
            let result = v.report.result;
            let place = result.map_tiers.iter().position(|t| t.name() == tier);
            let map = &result.counters.map;
            place.map_or("-".to_owned(), |place| share(map.hits[place], map.lookups))
        });
        if cells.1.iter().any(|cell| cell != "-") {
            rows.push(cells);
        }
    }
    rows.push(row("  map misses", variants, |v| {
        let map = &v.report.result.counters.map;
        share(map.misses, map.lookups)
    }));
    rows.push(row("  flash reads", variants, |v| {
        grouped(v.report.result.counters.reads_by_cause.iter().sum())
    }));
    rows.push(row("  programs", variants, |v| {
        grouped(v.report.result.counters.programs_by_cause.iter().sum())
    }));
    rows.push(row("  write amplification", variants, |v| {
        waf(&v.report.result.counters).map_or("-".to_owned(), |waf| format!("{waf:.2}"))
    }));
    rows.push(row("  host memory used", variants, |v| {
        size::show(v.report.result.hmb.used_bytes)
    }));
    for kind in ["core", "die", "channel", "link_to_host", "link_from_host"] {
        rows.push(row(
            &format!("  {} busy", kind.replace('_', " ")),
            variants,
            |v| percent(drive::utilisation(v.report.result, kind)),
        ));
    }
    rows
}

/// Names to the left, values to the right, columns as wide as their longest cell.
fn layout(rows: &[Row]) -> String {
    let columns = rows.iter().map(|(_, cells)| cells.len()).max().unwrap_or(0);
    let chars = |text: &str| text.chars().count();
    let name_width = rows.iter().map(|(name, _)| chars(name)).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|(_, cells)| cells.get(column));
        cells.map(|cell| chars(cell)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for (name, cells) in rows {
        let mut line = format!("{name:name_width$}");
        for (cell, width) in cells.iter().zip(&widths) {
            line += &format!("  {cell:>width$}");
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_longest_cell() {
        let cells = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let rows = [
            (String::new(), cells(["a", "longer"])),
            ("name".to_owned(), cells(["1", "2"])),
            ("head".to_owned(), Vec::new()),
        ];
        assert_eq!(layout(&rows), "      a  longer\nname  1       2\nhead\n");
    }
}
