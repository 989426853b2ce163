//! The table of a comparison. Few runs have a column each, with a row for each quantity; many have a row each, in as
//! many tables as there are kinds of quantities.

use super::{Variant, commits_differ, hosts_differ};
use crate::hmb::HmbChoice;
use crate::logging::LoggingResult;
use crate::report::forms;
use crate::report::latency::{self, Latencies};
use crate::report::number::{duration_ns, grouped, short};
use crate::report::{Entry, KINDS, SYNC, busy, drive, entries, waf, wear};
use crate::size;

/// Tables for people are no wider, as the command's help is, unless one name alone is.
const WIDTH_MAX: usize = 100;

/// A table for people.
#[must_use]
pub fn text(variants: &[Variant<'_>]) -> String {
    let rows = rows(variants);
    let columns = layout(&rows);
    if columns.lines().all(|line| width(line) <= WIDTH_MAX) {
        return columns;
    }
    let by_run = by_run(&rows, variants);
    by_run
        .iter()
        .map(RunTable::text)
        .collect::<Vec<_>>()
        .join("\n")
}

/// The same tables as Markdown.
#[must_use]
pub fn markdown(variants: &[Variant<'_>]) -> String {
    let rows = rows(variants);
    if layout(&rows).lines().any(|line| width(line) > WIDTH_MAX) {
        let by_run = by_run(&rows, variants);
        return by_run
            .iter()
            .map(RunTable::markdown)
            .collect::<Vec<_>>()
            .join("\n");
    }
    let cells = |(name, values): &Row| {
        let mut cells = vec![name.clone()];
        cells.extend(values.clone());
        cells.resize(variants.len() + 1, String::new());
        cells
    };
    let all: Vec<Vec<String>> = rows.iter().map(cells).collect();
    all.split_first()
        .map_or(String::new(), |(head, rows)| forms::markdown(head, rows))
}

/// A row for each quantity, a column for each run.
fn rows(variants: &[Variant<'_>]) -> Vec<Row> {
    let all: Vec<Vec<Entry>> = variants
        .iter()
        .map(|variant| entries(&variant.report.result.jobs))
        .collect();
    let mut rows = vec![row("", variants, |v| v.drive().to_owned())];
    if commits_differ(variants) {
        rows.push(row("commit mode", variants, |v| {
            v.commit().unwrap_or("-").to_owned()
        }));
    }
    rows.extend(host_memory_rows(variants));
    rows.extend(logging_rows(variants));
    for place in 0..all.first().map_or(0, Vec::len) {
        for name in KINDS {
            let column: Vec<&Entry> = all.iter().filter_map(|run| run.get(place)).collect();
            rows.extend(latency_rows(name, &column));
        }
    }
    rows.extend(drive_rows(variants));
    rows
}

/// A quantity and its value in each run; a heading has no values.
type Row = (String, Vec<String>);

/// What the host gives where that was asked, what the drive takes of it, and what it can use of that
/// where it is less.
fn host_memory_rows(variants: &[Variant<'_>]) -> Vec<Row> {
    let mut rows = Vec::new();
    if hosts_differ(variants) {
        rows.push(row("host gives", variants, |v| v.host_gives()));
    }
    rows.push(row("host memory", variants, |v| {
        let hmb = &v.report.result.hmb;
        let spec = &v.report.config.drive.parsed.spec;
        match (hmb.granted_bytes, v.report.config.hmb) {
            // Its driver's own, whatever is granted to drives.
            (0, _) if hmb.requested_bytes == 0 && spec.hpb.is_some() => "with driver".to_owned(),
            (0, HmbChoice::Off) => "none".to_owned(),
            (0, _) if hmb.requested_bytes == 0 => "not asked for".to_owned(),
            (0, _) => "too little".to_owned(),
            (bytes, _) => size::show(bytes),
        }
    }));
    let driver_bytes = |v: &Variant<'_>| {
        let hpb = v.report.config.drive.parsed.spec.hpb.as_ref();
        hpb.map(|hpb| hpb.host_bytes())
    };
    if variants.iter().any(|v| driver_bytes(v).is_some()) {
        rows.push(row("  driver keeps", variants, |v| {
            driver_bytes(v).map_or("-".to_owned(), size::show)
        }));
    }
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
    let all: Vec<_> = variants.iter().map(Variant::logging).collect();
    let Some(first) = all.iter().flatten().next() else {
        return Vec::new();
    };
    let row = |label: &str, cell: &dyn Fn(&LoggingResult) -> String| -> Row {
        let cells = all.iter();
        let cells = cells.map(|logging| logging.map_or("-".to_owned(), cell));
        (format!("  {label}"), cells.collect())
    };
    let percentile = |percent: f64| {
        move |l: &LoggingResult| duration_ns(l.latency.percentile_ns(percent) as f64)
    };
    let mut rows = vec![(format!("database {}", first.database), Vec::new())];
    // Where runs differ in it, it stands above, where they are told apart.
    if !commits_differ(variants) {
        rows.push(row("commit mode", &|l| l.commit.to_owned()));
    }
    rows.extend([
        row("clients", &|l| l.clients.to_string()),
        row("transactions/s", &|l| {
            short(l.statistics.transactions_per_s(), 4, 1000, "")
        }),
        row("commit mean", &|l| duration_ns(l.latency.mean_ns())),
        row("commit p50", &percentile(50.0)),
        row("commit p99", &percentile(99.0)),
        row("commit p99.9", &percentile(99.9)),
        row("commit max", &|l| duration_ns(l.latency.max_ns() as f64)),
        row("log write amplification", &|l| {
            let amplification = l.statistics.write_amplification();
            amplification.map_or("-".to_owned(), |a| format!("{a:.2}"))
        }),
    ]);
    if all.iter().flatten().any(|l| l.exposed_bytes().is_some()) {
        rows.push(row("log a crash takes", &|l| {
            l.exposed_bytes().map_or("-".to_owned(), size::show)
        }));
    }
    rows
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
    let mut rows = vec![
        (format!("{} {name}", first.job.name), Vec::new()),
        row("IOPS", &|e| {
            short(e.direction(name).ios_per_second(), 4, 1000, "")
        }),
    ];
    // Flushes carry no data.
    if name != SYNC {
        rows.push(row("bandwidth", &|e| {
            short(e.direction(name).bytes_per_second(), 4, 1024, "B/s")
        }));
    }
    let kind = latency::kind(name);
    let mut latency = |which: &str, of: &dyn Fn(Latencies<'_>) -> f64| {
        rows.push(row(&format!("{kind} {which}"), &|e| {
            let all = e.latencies(name);
            all.map_or("-".to_owned(), |all| duration_ns(of(all)))
        }));
    };
    latency("mean", &|all| all.mean_ns());
    for percent in [50.0, 99.0, 99.9] {
        let which = format!("p{percent}");
        latency(&which, &|all| all.percentile_ns(percent) as f64);
    }
    latency("max", &|all| all.max_ns() as f64);
    rows
}

fn drive_rows(variants: &[Variant<'_>]) -> Vec<Row> {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let share = |part: u64, all: u64| match all {
        0 => "-".to_owned(),
        _ => percent(part as f64 / all as f64),
    };
    let mut rows = vec![("drive".to_owned(), Vec::new())];
    for memory in drive::MAP_MEMORIES {
        let cells = row(&format!("  map hits in {}", memory.name()), variants, |v| {
            let hits = drive::map_hits_in(v.report.result, memory);
            let lookups = v.report.result.counters.map.lookups;
            hits.map_or("-".to_owned(), |hits| share(hits, lookups))
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
    let lives = row("  1000 cycles last", variants, |v| {
        let days = wear::days_per_1000_cycles(v.report);
        days.map_or("-".to_owned(), wear::days_text)
    });
    if lives.1.iter().any(|cell| cell != "-") {
        rows.push(lives);
    }
    rows.push(row("  host memory used", variants, |v| {
        size::show(v.report.result.hmb.used_bytes)
    }));
    for kind in ["core", "die", "channel", "link_to_host", "link_from_host"] {
        rows.push(row(
            &format!("  {} busy", kind.replace('_', " ")),
            variants,
            |v| percent(busy::utilisation(v.report.result, kind)),
        ));
        let busiest = |v: &Variant<'_>| busy::busiest(v.report.result, kind);
        if variants.iter().any(|v| busiest(v).1) {
            rows.push(row(&format!("    busiest {kind}"), variants, |v| {
                percent(busiest(v).0)
            }));
        }
    }
    rows
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// Names to the left, values to the right, columns as wide as their longest cell.
fn layout(rows: &[Row]) -> String {
    let columns = rows.iter().map(|(_, cells)| cells.len()).max().unwrap_or(0);
    let name_width = rows.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
    let widest = |column: usize| {
        let cells = rows.iter().filter_map(|(_, cells)| cells.get(column));
        cells.map(|cell| width(cell)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(widest).collect();
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

/// Quantities of one kind with a row for each run.
struct RunTable {
    title: String,
    /// What tells the runs apart, a column each.
    runs: Vec<Row>,
    /// Quantities, a column each.
    columns: Vec<Row>,
}

/// The tables of many runs, a heading each. What a drive takes of host memory stands with the drive.
fn by_run(rows: &[Row], variants: &[Variant<'_>]) -> Vec<RunTable> {
    let told_apart =
        1 + usize::from(commits_differ(variants)) + usize::from(hosts_differ(variants));
    let first_heading = rows.iter().position(|(_, cells)| cells.is_empty());
    let (before, rest) = rows.split_at(first_heading.unwrap_or(rows.len()));
    let (runs, host_memory) = before.split_at(told_apart.min(before.len()));
    let mut tables: Vec<RunTable> = Vec::new();
    for (name, cells) in rest {
        match tables.last_mut() {
            Some(table) if !cells.is_empty() => table.columns.push((name.clone(), cells.clone())),
            _ => tables.push(RunTable {
                title: name.clone(),
                runs: runs.to_vec(),
                columns: Vec::new(),
            }),
        }
    }
    if let Some(of_the_drive) = tables.last_mut() {
        of_the_drive.columns.splice(0..0, host_memory.to_vec());
    }
    tables
}

impl RunTable {
    /// As wide as [`WIDTH_MAX`] allows; what does not fit follows below, with the runs named again.
    fn text(&self) -> String {
        let column_width = |(name, cells): &Row| {
            let words = name.split_whitespace().map(width);
            words
                .chain(cells.iter().map(|cell| width(cell)))
                .max()
                .unwrap_or(0)
        };
        // Runs are indented below the heading.
        let of_runs: usize = self.runs.iter().map(|row| column_width(row) + 2).sum();
        let mut out = format!("{}\n", self.title);
        let mut left = &self.columns[..];
        while !left.is_empty() {
            let mut all = of_runs;
            let fits = left.iter().take_while(|row| {
                all += column_width(row) + 2;
                all <= WIDTH_MAX
            });
            let (now, later) = left.split_at(fits.count().max(1));
            out += &self.part(now, &column_width);
            left = later;
        }
        out
    }

    /// Some of the columns; the words of their names stand below each other.
    fn part(&self, columns: &[Row], column_width: &dyn Fn(&Row) -> usize) -> String {
        let all: Vec<&Row> = self.runs.iter().chain(columns).collect();
        let words = |row: &Row| {
            row.0
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let height = all.iter().map(|row| words(row).len()).max().unwrap_or(0);
        let runs = all.first().map_or(0, |row| row.1.len());
        let mut out = String::new();
        for line in 0..height + runs {
            let mut text = String::new();
            for (at, row) in all.iter().enumerate() {
                let cell = match line.checked_sub(height) {
                    Some(run) => row.1.get(run).cloned(),
                    None => (line + words(row).len())
                        .checked_sub(height)
                        .map(|at| words(row)[at].clone()),
                };
                let cell = cell.unwrap_or_default();
                let width = column_width(row);
                text += &match at {
                    0 => format!("  {cell:width$}"),
                    _ => format!("  {cell:>width$}"),
                };
            }
            out += text.trim_end();
            out.push('\n');
        }
        out
    }

    fn markdown(&self) -> String {
        let all: Vec<&Row> = self.runs.iter().chain(&self.columns).collect();
        let head: Vec<String> = all.iter().map(|(name, _)| name.trim().to_owned()).collect();
        let runs = all.first().map_or(0, |row| row.1.len());
        let cell = |row: &Row, run: usize| row.1.get(run).cloned().unwrap_or_default();
        let rows = (0..runs).map(|run| all.iter().map(|row| cell(row, run)).collect());
        let rows: Vec<Vec<String>> = rows.collect();
        let title = forms::markdown_text(&self.title);
        format!("**{title}**\n\n{}", forms::markdown(&head, &rows))
    }
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
