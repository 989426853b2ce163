//! The advice on a byte window in words and tables.

use super::{BreakEven, PAYS, Pair, Point, SIZES, Span, TRANSACTIONS, WindowAdvice};
use crate::advise::Advised;
use crate::report::forms;
use crate::report::number::{duration_ns, grouped};
use lodger_page::bytes_text;
use lodger_workload::logging::clients_text;
use std::fmt::Write;

/// Bytes that a transaction logs, to two digits that count: a break-even is not known better.
pub(super) fn size(bytes: u64) -> String {
    let bytes = bytes as f64;
    let step = 10f64.powf(bytes.max(1.0).log10().floor() - 1.0).max(1.0);
    if SIZES.iter().any(|known| *known as f64 == bytes) {
        bytes_text(bytes)
    } else {
        bytes_text((bytes / step).round() * step)
            .split_once(' ')
            .map_or(String::new(), |(number, unit)| {
                let number: f64 = number.parse().unwrap_or(0.0);
                if number >= 10.0 {
                    format!("{number:.0} {unit}")
                } else {
                    format!("{number:.1} {unit}")
                }
            })
    }
}

/// `+12.3 %`.
pub(super) fn more(pair: &Pair) -> String {
    format!("{:+.1} %", 100.0 * (pair.factor() - 1.0))
}

fn span(span: &Span) -> String {
    match (span.from_bytes, span.to_bytes) {
        (None, None) => format!("at every size up to {}", size(SIZES[SIZES.len() - 1])),
        (None, Some(to)) => format!("up to {}", size(to)),
        (Some(from), None) => format!("from {} on", size(from)),
        (Some(from), Some(to)) => format!("from {} to {}", size(from), size(to)),
    }
}

/// `up to 23 KiB`; `at no size`.
pub(super) fn where_it_pays(found: &BreakEven) -> String {
    if found.spans.is_empty() {
        return "at no size".to_owned();
    }
    let spans: Vec<String> = found.spans.iter().map(span).collect();
    spans.join(" and ")
}

/// What people look for.
pub(super) fn answer(advice: &WindowAdvice) -> String {
    let own = &advice.own;
    let verdict = if advice.is_yes() {
        "pays"
    } else {
        "does not pay"
    };
    format!(
        "With {} the byte window {verdict} for this workload: {} transactions a second, a commit takes {} instead of {}",
        clients_text(advice.own_clients),
        more(own),
        duration_ns(own.ba.commit_mean_ns),
        duration_ns(own.block.commit_mean_ns),
    )
}

/// What it means to pay.
pub(super) fn legend() -> String {
    format!(
        "It pays where {:.0} % more transactions a second are done; sizes are bytes that a transaction logs",
        100.0 * (PAYS - 1.0)
    )
}

/// Numbers of clients in order.
fn columns(advice: &WindowAdvice) -> Vec<u32> {
    advice.break_even.iter().map(|one| one.clients).collect()
}

fn head(advice: &WindowAdvice) -> Vec<String> {
    let mut head = vec!["a transaction logs".to_owned()];
    head.extend(columns(advice).into_iter().map(clients_text));
    head
}

/// A row for each size of the grid, a column for each number of clients.
fn rows(advice: &WindowAdvice, cell: impl Fn(&Pair) -> String) -> Vec<Vec<String>> {
    let row = |bytes: u64| {
        let mut cells = vec![size(bytes)];
        cells.extend(columns(advice).into_iter().map(|clients| {
            let at = |point: &&Point| point.clients == clients && point.bytes == bytes;
            let point = advice.points.iter().find(at);
            point.map_or(String::new(), |point| cell(&point.pair))
        }));
        cells
    };
    SIZES.into_iter().map(row).collect()
}

fn latencies(pair: &Pair) -> String {
    let [block, ba] = [pair.block, pair.ba].map(|side| duration_ns(side.commit_mean_ns));
    format!("{block} / {ba}")
}

const GAINS: &str = "More transactions a second through the byte window than by blocks";
const COMMITS: &str = "Mean commit latency, by blocks / through the byte window";

/// The report for people.
pub(super) fn text(advice: &WindowAdvice) -> String {
    let mut out = format!("{}\n\n", answer(advice));
    let own = &advice.own;
    let _ = writeln!(
        out,
        "  drive     {} ({})\n  workload  {}\n  blocks    {}/s\n  window    {}/s\n  runs      {} transactions each\n",
        advice.drive.name,
        advice.drive.parsed.spec.name,
        advice.workload,
        grouped(own.block.transactions_per_s.round() as u64),
        grouped(own.ba.transactions_per_s.round() as u64),
        grouped(TRANSACTIONS),
    );
    out += "Where it pays, by bytes that a transaction logs:\n";
    for found in &advice.break_even {
        let _ = writeln!(
            out,
            "  {:<12}{}",
            clients_text(found.clients),
            where_it_pays(found)
        );
    }
    for (title, rows) in [
        (GAINS, rows(advice, more)),
        (COMMITS, rows(advice, latencies)),
    ] {
        let _ = writeln!(out, "\n{title}:");
        let all: Vec<Vec<String>> = std::iter::once(head(advice)).chain(rows).collect();
        let width = |at: usize| {
            all.iter()
                .map(|row| row[at].chars().count())
                .max()
                .unwrap_or(0)
        };
        for row in &all {
            let _ = write!(out, "  {:<1$}", row[0], width(0));
            for (at, cell) in row.iter().enumerate().skip(1) {
                let _ = write!(out, "  {:>1$}", cell, width(at));
            }
            out.push('\n');
        }
    }
    let _ = writeln!(out, "\n{}.", legend());
    out
}

/// The same as Markdown.
pub(super) fn markdown(advice: &WindowAdvice) -> String {
    let mut out = format!("**{}**\n\n", forms::markdown_text(&answer(advice)));
    for found in &advice.break_even {
        let _ = writeln!(
            out,
            "- {}: {}",
            clients_text(found.clients),
            where_it_pays(found)
        );
    }
    for (title, rows) in [
        (GAINS, rows(advice, more)),
        (COMMITS, rows(advice, latencies)),
    ] {
        let _ = writeln!(
            out,
            "\n{title}:\n\n{}",
            forms::markdown(&head(advice), &rows)
        );
    }
    let _ = writeln!(out, "{}.", legend());
    out
}

const NAMES: [&str; 10] = [
    "clients",
    "transaction_bytes",
    "block_transactions_per_s",
    "block_commit_mean_ns",
    "block_commit_p99_ns",
    "ba_transactions_per_s",
    "ba_commit_mean_ns",
    "ba_commit_p99_ns",
    "factor",
    "pays",
];

/// A row for each run; the workload as captured has no size.
pub(super) fn csv(advice: &WindowAdvice) -> String {
    let row = |clients: u32, bytes: Option<u64>, pair: &Pair| {
        let mut cells = vec![
            clients.to_string(),
            bytes.map_or(String::new(), |bytes| bytes.to_string()),
        ];
        for side in [&pair.block, &pair.ba] {
            cells.push(side.transactions_per_s.to_string());
            cells.push(side.commit_mean_ns.to_string());
            cells.push(side.commit_p99_ns.to_string());
        }
        cells.extend([pair.factor().to_string(), pair.pays().to_string()]);
        cells
    };
    let mut rows = vec![row(advice.own_clients, None, &advice.own)];
    let points = advice.points.iter();
    rows.extend(points.map(|point| row(point.clients, Some(point.bytes), &point.pair)));
    forms::csv(&NAMES, &rows)
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_two_digits() {
        assert_eq!([64, 1024, 65536].map(size), ["64 B", "1 KiB", "64 KiB"]);
        assert_eq!(
            [724, 23_170, 5_793].map(size),
            ["720 B", "22 KiB", "5.7 KiB"]
        );
    }
}
