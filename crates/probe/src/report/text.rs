//! The report for people: a page of text.

use crate::outcome::Outcome;
use crate::role::Role;
use crate::stats::Estimate;
use std::fmt::Write as _;

fn bytes(value: f64) -> String {
    if !value.is_finite() {
        return "?".to_owned();
    }
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (value, 0);
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if value >= 100.0 || unit == 0 { 0 } else { 2 };
    format!("{value:.digits$} {}", units[unit])
}

fn interval(value: &Estimate) -> String {
    format!(
        "{} ({} to {})",
        bytes(value.estimate),
        bytes(value.low),
        bytes(value.high)
    )
}

/// Two ends of which neither is likelier.
fn range(value: &Estimate) -> String {
    if value.low <= 0.0 {
        return format!("at most {}", bytes(value.high));
    }
    format!("between {} and {}", bytes(value.low), bytes(value.high))
}

/// Text broken at spaces into lines of at most `width` characters.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        if !lines[last].is_empty() && lines[last].len() + word.len() >= width {
            lines.push(word.to_owned());
        } else {
            if !lines[last].is_empty() {
                lines[last].push(' ');
            }
            lines[last].push_str(word);
        }
    }
    lines
}

/// The report.
#[must_use]
pub fn text(outcome: &Outcome) -> String {
    let mut out = String::new();
    let target = &outcome.target;
    let named = [&target.model, &target.serial, &target.firmware];
    let named: Vec<&str> = named
        .iter()
        .map(|text| text.as_str())
        .filter(|text| !text.is_empty())
        .collect();
    let _ = writeln!(out, "{}: {}", target.name, named.join(", "));
    let size = target.capacity_bytes as f64;
    let _ = writeln!(out, "  size {} ({:.1} GB)", bytes(size), size / 1e9);
    if outcome.partial {
        out += "  PARTIAL: the probe ended before its time\n";
    }
    out.push('\n');
    for role in Role::ALL {
        let (name, title) = (role.name(), role.about().title);
        let Some(verdict) = outcome.roles.get(name) else {
            continue;
        };
        let _ = write!(out, "{title:<14}{:<11}", verdict.tier.name());
        if verdict.confidence > 0.0 {
            // Never 100 % by rounding.
            let percent = (1000.0 * verdict.confidence).floor() / 10.0;
            let _ = write!(out, "{percent:>5.1} % sure");
        }
        if let Some(size) = &verdict.size_bytes {
            if size.high.is_infinite() {
                let _ = write!(out, "   more than {}", bytes(size.estimate));
            } else if verdict.size_is_range {
                let _ = write!(out, "   {}", range(size));
            } else {
                let _ = write!(out, "   {}", interval(size));
            }
        }
        out.push('\n');
        if let Some(reach) = &verdict.reach_bytes {
            let _ = writeln!(out, "    for {} of the drive", interval(reach));
        }
        if let Some(unit) = &verdict.unit_bytes {
            let _ = writeln!(out, "    unit {}", interval(unit));
        }
        for line in wrapped(&verdict.evidence, 92) {
            let _ = writeln!(out, "    {line}");
        }
    }
    quantities(outcome, &mut out);
    for skipped in &outcome.skipped {
        let _ = writeln!(out, "skipped {}: {}", skipped.experiment, skipped.reason);
    }
    for note in target.notes.iter().chain(&outcome.findings.notes) {
        let _ = writeln!(out, "note: {note}");
    }
    let usage = outcome.usage;
    let _ = writeln!(
        out,
        "\n{} reads ({}), {} writes ({}), {} flushes in {:.1} s of the drive's time",
        usage.reads,
        bytes(usage.read_bytes as f64),
        usage.writes,
        bytes(usage.written_bytes as f64),
        usage.flushes,
        outcome.elapsed.as_secs_f64()
    );
    out
}

fn quantities(outcome: &Outcome, out: &mut String) {
    if outcome.findings.quantities.is_empty() && outcome.findings.replacement_verdict.is_none() {
        return;
    }
    out.push('\n');
    let names = outcome.findings.quantities.keys();
    let width = names.map(String::len).max().unwrap_or(0).max(22) + 2;
    if let Some(verdict) = outcome.findings.replacement_verdict {
        let _ = writeln!(out, "{:<width$}{verdict}", "map replacement");
    }
    for (name, quantity) in &outcome.findings.quantities {
        let value = &quantity.value;
        let text = if quantity.unit == "bytes" && name != "map_bytes_per_entry" {
            interval(value)
        } else {
            format!(
                "{:.2} ({:.2} to {:.2}) {}",
                value.estimate, value.low, value.high, quantity.unit
            )
        };
        let _ = writeln!(out, "{name:<width$}{text}");
    }
    out.push('\n');
}
