//! The advice as tables that other programs read.

use super::measure::{Latency, Run};
use super::{Advice, answer, report};
use crate::report::forms;

/// Answer, table and notes.
pub(super) fn markdown(advice: &Advice) -> String {
    let names = report::header(advice).into_iter();
    let mut head: Vec<String> = names.map(str::to_owned).collect();
    head.push("remark".to_owned());
    let row = |(bytes, run): &(u64, Run)| {
        let mut cells = report::cells(advice, *bytes, run);
        cells.push(report::remark(advice, *bytes));
        cells
    };
    let rows: Vec<Vec<String>> = advice.rows.iter().map(row).collect();
    let text = |text: &str| forms::markdown_text(text);
    let mut out = format!("**{}**\n\n", text(&answer::answer(advice)));
    for (name, says) in [
        ("drive", report::drive(advice)),
        ("workload", report::workload(advice)),
    ] {
        out += &format!("- {name}: {}\n", text(&says));
    }
    out += &format!("\n{}\n", forms::markdown(&head, &rows));
    for note in std::iter::once(report::legend(advice)).chain(report::notes(advice)) {
        out += &format!("- {}\n", text(&note));
    }
    out
}

const NAMES: [&str; 29] = [
    "hmb_bytes",
    "usable_bytes",
    "simulated_at_bytes",
    "is_enough",
    "hit_ratio",
    "curve_hit_ratio",
    "iops",
    "read_ios",
    "read_clat_mean_ns",
    "read_clat_p50_ns",
    "read_clat_p99_ns",
    "write_ios",
    "write_clat_mean_ns",
    "write_clat_p50_ns",
    "write_clat_p99_ns",
    "iops_lost",
    "mean_added",
    "p99_added",
    "against_bytes",
    "remark",
    "transactions_per_second",
    "commits",
    "commit_mean_ns",
    "commit_p50_ns",
    "commit_p99_ns",
    "granted_bytes",
    "read_clat_p99_9_ns",
    "write_clat_p99_9_ns",
    "commit_p99_9_ns",
];

/// A row for each size; shares are from 0 to 1, and empty where there is nothing to be told.
pub(super) fn csv(advice: &Advice) -> String {
    let row = |(bytes, run): &(u64, Run)| {
        let loss = advice.loss(run);
        let curve = advice.curve.as_ref().filter(|_| run.lookups.all > 0);
        let real = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
        let mut cells = vec![
            bytes.to_string(),
            advice.place.usable_bytes(*bytes).to_string(),
            run.hmb_bytes.to_string(),
            advice.goal.is_met(run, &advice.reference).to_string(),
            real(run.lookups.hit_ratio()),
            real(curve.map(|curve| curve.hit_ratio(*bytes))),
            run.iops.to_string(),
        ];
        cells.extend(latency(&run.read));
        cells.extend(latency(&run.write));
        cells.extend([loss.rate, loss.mean, loss.p99].map(|share| {
            // Nothing is lost, not minus nothing.
            (share + 0.0).to_string()
        }));
        cells.push(advice.place.yardstick_bytes().to_string());
        cells.push(report::remark(advice, *bytes));
        cells.push(real(run.transactions_per_second));
        cells.extend(latency(&run.commit));
        cells.push(advice.place.granted_bytes(*bytes).to_string());
        let tails = [run.read, run.write, run.commit].map(|of| of.p99_9_ns);
        cells.extend(tails.map(|ns| ns.map_or(String::new(), |ns| ns.to_string())));
        cells
    };
    forms::csv(&NAMES, &advice.rows.iter().map(row).collect::<Vec<_>>())
}

fn latency(latency: &Latency) -> [String; 4] {
    let Latency {
        count,
        mean_ns,
        p50_ns,
        p99_ns,
        ..
    } = *latency;
    if count == 0 {
        return ["0".to_owned(), String::new(), String::new(), String::new()];
    }
    [
        count.to_string(),
        mean_ns.to_string(),
        p50_ns.to_string(),
        p99_ns.to_string(),
    ]
}
