//! Several runs of one workload side by side.

use super::number::{duration_ns, grouped, short};
use super::{DIRECTIONS, Entry, Report, drive, entries, json_value, waf};
use crate::size;
use serde_json::{Value, json};

/// One run of the comparison.
#[derive(Clone, Copy, Debug)]
pub struct Variant<'a> {
    /// What the user said of host memory; `None` for what the drive gets by itself.
    pub hmb: Option<&'a str>,
    /// The run.
    pub report: Report<'a>,
}

/// `{"compare": [{"drive", "hmb", "result"}]}`, where `result` is what `simulate` writes.
#[must_use]
pub fn json(variants: &[Variant<'_>]) -> String {
    let runs: Vec<Value> = variants
        .iter()
        .map(|variant| {
            json!({
                "drive": variant.report.config.drive.name,
                "hmb": variant.hmb.unwrap_or("negotiated"),
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
    let mut rows = vec![
        row("", variants, |v| v.report.config.drive.name.clone()),
        row("host memory", variants, |v| {
            match v.report.result.hmb.granted_bytes {
                0 => "none".to_owned(),
                bytes => size::show(bytes),
            }
        }),
    ];
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
            short(e.per_second(e.direction(name).ios), 4, 1000, "")
        }),
        row("bandwidth", &|e| {
            short(e.per_second(e.direction(name).bytes), 4, 1024, "B/s")
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
