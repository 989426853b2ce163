//! One page that needs nothing else: verdicts, plots, how it was measured, and the raw data.

use super::json;
use crate::bench::Series;
use crate::experiment::ALL;
use crate::probe::Outcome;
use std::collections::BTreeMap;
use std::fmt::Write as _;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 80.0;
const BOTTOM: f64 = 42.0;
const TOP: f64 = 14.0;
const COLOURS: [&str; 6] = [
    "#1b6ca8", "#c4501b", "#2e8540", "#7b3fa0", "#8a6d1d", "#555555",
];

const STYLE: &str = "body{font:16px/1.45 sans-serif;max-width:46em;margin:2em auto;padding:0 1em;\
color:#222}table{border-collapse:collapse;width:100%}td,th{border-bottom:1px solid #ddd;\
padding:.3em .5em;text-align:left;vertical-align:top}svg{max-width:100%}.partial{color:#b00}\
code,pre{font-size:13px}details{margin:1em 0}text{font:12px sans-serif;fill:#333}";

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// The page.
#[must_use]
pub fn html(outcome: &Outcome) -> String {
    let target = &outcome.target;
    let title = escaped(&format!("{} {}", target.name, target.model));
    let mut out = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\
         <style>{STYLE}</style><h1>{title}</h1>\n<p>{:.1} GB, serial {}, firmware {}</p>\n",
        target.capacity_bytes as f64 / 1e9,
        escaped(&target.serial),
        escaped(&target.firmware)
    );
    if outcome.partial {
        out += "<p class=\"partial\">Partial: the probe ended before its time.</p>\n";
    }
    out +=
        "<h2>What lives where</h2><table><tr><th>role<th>tier<th>sure<th>size, bytes<th>evidence\n";
    for (name, verdict) in &outcome.roles {
        let size = verdict.size_bytes.map_or("-".to_owned(), |size| {
            format!("{:.0} ({:.0} to {:.0})", size.estimate, size.low, size.high)
        });
        let _ = writeln!(
            out,
            "<tr><td>{name}<td><b>{}</b><td>{:.0} %<td>{size}<td>{}",
            verdict.tier.name(),
            100.0 * verdict.confidence,
            escaped(&verdict.evidence)
        );
    }
    out += "</table>\n<h2>Numbers</h2><table><tr><th>name<th>estimate<th>low<th>high<th>unit\n";
    for (name, quantity) in &outcome.findings.quantities {
        let value = quantity.value;
        let _ = writeln!(
            out,
            "<tr><td>{}<td>{:.2}<td>{:.2}<td>{:.2}<td>{}",
            escaped(name),
            value.estimate,
            value.low,
            value.high,
            quantity.unit
        );
    }
    out += "</table>\n<h2>Curves</h2>\n";
    for (group, lines) in groups(&outcome.raw) {
        let marks = marks(outcome, &group);
        let _ = writeln!(
            out,
            "<h3>{}</h3>\n{}",
            escaped(&group),
            plot(&lines, &marks)
        );
    }
    methods(outcome, &mut out);
    let raw = json(outcome, true).to_string();
    let _ = writeln!(
        out,
        "<details><summary>Raw data (JSON)</summary><pre>{}</pre></details></html>",
        escaped(&raw)
    );
    out
}

fn methods(outcome: &Outcome, out: &mut String) {
    *out += "<h2>How it was measured</h2><table>\n";
    for (about, _) in ALL {
        let skipped = outcome.skipped.iter().find(|s| s.experiment == about.name);
        let done = skipped.map_or(String::new(), |s| {
            format!("<br><i>not done: {}</i>", escaped(&s.reason))
        });
        let _ = writeln!(
            out,
            "<tr><td>{}<td>{} {}. Cannot tell: {}.{done}",
            about.name,
            escaped(about.question),
            escaped(about.method),
            escaped(about.limits)
        );
    }
    *out += "</table>\n<ul>\n";
    for note in outcome.target.notes.iter().chain(&outcome.findings.notes) {
        let _ = writeln!(out, "<li>{}", escaped(note));
    }
    let usage = outcome.usage;
    let _ = writeln!(
        out,
        "<li>{} reads, {} writes of {} bytes in all, {} flushes, {:.1} s of the drive's time\n</ul>",
        usage.reads,
        usage.writes,
        usage.written_bytes,
        usage.flushes,
        outcome.elapsed.as_secs_f64()
    );
}

type Lines<'a> = Vec<(String, &'a Series)>;

/// Series that differ in host memory only belong in one picture.
fn groups(raw: &BTreeMap<String, Series>) -> Vec<(String, Lines<'_>)> {
    let mut groups: BTreeMap<String, Lines<'_>> = BTreeMap::new();
    for (name, series) in raw {
        let (group, line) = match name.split_once(", ") {
            Some((group, rest)) => {
                let kind = rest.split_once(": ").map_or("", |(_, kind)| kind);
                let line = rest.split(": ").next().unwrap_or(rest);
                (format!("{group} {kind}").trim().to_owned(), line.to_owned())
            }
            None => (name.clone(), String::new()),
        };
        groups.entry(group).or_default().push((line, series));
    }
    groups.into_iter().collect()
}

/// Sizes that were found, to mark in their curves.
fn marks(outcome: &Outcome, group: &str) -> Vec<f64> {
    match group {
        "read cache" => {
            let size = outcome
                .roles
                .get("read_cache")
                .and_then(|role| role.size_bytes);
            size.map(|size| size.estimate).into_iter().collect()
        }
        "reach" => {
            let reach = outcome.findings.quantities.get("map_reach_on");
            reach
                .map(|reach| reach.value.estimate)
                .into_iter()
                .collect()
        }
        "write cliff" => {
            let cliff = outcome.findings.cliff_bytes;
            cliff.map(|cliff| cliff.estimate).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn short(value: f64) -> String {
    for (limit, name) in [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if value.abs() >= limit {
            return format!("{:.3}{name}", value / limit).replace(".000", "");
        }
    }
    format!("{value:.3}")
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
}

fn plot(lines: &Lines<'_>, marks: &[f64]) -> String {
    let all = || lines.iter().flat_map(|(_, series)| series.points.iter());
    let least = |of: fn(&(f64, f64)) -> f64| all().map(of).fold(f64::INFINITY, f64::min);
    let most = |of: fn(&(f64, f64)) -> f64| all().map(of).fold(f64::NEG_INFINITY, f64::max);
    let (x_min, x_max) = (least(|p| p.0), most(|p| p.0));
    let y_max = most(|p| p.1).max(f64::MIN_POSITIVE) * 1.05;
    if !(x_min.is_finite() && x_max > x_min) {
        return String::new();
    }
    // Sizes and counts over orders of magnitude: a logarithmic axis.
    let log = x_min > 0.0 && x_max / x_min > 50.0;
    let x_at = |x: f64| {
        let share = if log {
            (x / x_min).ln() / (x_max / x_min).ln()
        } else {
            (x - x_min) / (x_max - x_min)
        };
        LEFT + share * (WIDTH - LEFT - 10.0)
    };
    let y_at = |y: f64| TOP + (1.0 - y / y_max) * (HEIGHT - TOP - BOTTOM);
    let mut out = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">");
    for i in 0..=4 {
        let share = f64::from(i) / 4.0;
        let y = y_at(share * y_max);
        let _ = write!(
            out,
            "<path d=\"M{LEFT} {y:.1}H{WIDTH}\" stroke=\"#ddd\"/><text x=\"{:.0}\" y=\"{:.1}\" \
             text-anchor=\"end\">{}</text>",
            LEFT - 6.0,
            y + 4.0,
            short(share * y_max)
        );
        let x = if log {
            x_min * (x_max / x_min).powf(share)
        } else {
            x_min + share * (x_max - x_min)
        };
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>",
            x_at(x).min(WIDTH - 20.0),
            HEIGHT - 24.0,
            short(x)
        );
    }
    for mark in marks
        .iter()
        .filter(|mark| **mark >= x_min && **mark <= x_max)
    {
        let x = x_at(*mark);
        let bottom = HEIGHT - BOTTOM;
        let _ = write!(
            out,
            "<path d=\"M{x:.1} {TOP}V{bottom}\" stroke=\"#b00\" stroke-dasharray=\"4 3\"/>"
        );
    }
    curves(lines, &x_at, &y_at, &mut out);
    titles(lines, &mut out);
    out
}

/// Names of the axes, and the end of the picture.
fn titles(lines: &Lines<'_>, out: &mut String) {
    let (x, y) = lines
        .first()
        .map_or(("", ""), |(_, series)| (series.x, series.y));
    let _ = write!(
        out,
        "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{x}</text>\
         <text transform=\"translate(14 {:.0}) rotate(-90)\" text-anchor=\"middle\">{y}</text></svg>",
        (LEFT + WIDTH) / 2.0,
        HEIGHT - 6.0,
        HEIGHT / 2.0
    );
}

fn curves(
    lines: &Lines<'_>,
    x_at: &dyn Fn(f64) -> f64,
    y_at: &dyn Fn(f64) -> f64,
    out: &mut String,
) {
    for (i, (name, series)) in lines.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let mut points = series.points.clone();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let path: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{:.1},{:.1}", x_at(*x), y_at(*y)))
            .collect();
        let _ = write!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"/>\
             <text x=\"{:.0}\" y=\"{:.0}\" style=\"fill:{colour}\">{}</text>",
            path.join(" "),
            LEFT + 8.0,
            TOP + 14.0 * (i as f64 + 1.0),
            escaped(name)
        );
    }
}
