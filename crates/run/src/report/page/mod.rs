//! A run as a page: the answer first, then curves, then where the time went, then the drive and its sources. Every
//! number is one that the other reports have.

mod curves;

use super::number::{bandwidth, duration_ns, grouped};
use super::{Report, text, waf};
use crate::breakdown::{self, Breakdown};
use crate::stats::Direction;
use crate::timeline::Table;
use lodger_page::{bytes_text, escaped, figure, foot, head};
use std::fmt::Write as _;

/// Directions as people call them, and what became of them in all jobs together.
fn directions(report: Report<'_>) -> Vec<(&'static str, Direction)> {
    let mut all = [
        ("read", Direction::default()),
        ("write", Direction::default()),
        ("trim", Direction::default()),
    ];
    for job in &report.result.jobs {
        for ((_, sum), more) in all.iter_mut().zip([&job.read, &job.write, &job.trim]) {
            sum.merge(more);
        }
    }
    let all = all.into_iter();
    all.filter(|(_, direction)| direction.ios > 0).collect()
}

/// The page; `over_time` is of the same run.
#[must_use]
pub fn page(workload: &str, report: Report<'_>, over_time: &Table) -> String {
    let drive = &report.config.spec().name;
    let mut out = head(&format!("{workload} on {drive}"));
    let directions = directions(report);
    answer(report, &directions, &mut out);
    out += "<div class=\"charts\">\n";
    for (title, says, plot) in curves::all(&directions, over_time) {
        out += &figure(title, says, &plot);
    }
    out += "</div>\n";
    if let Some(breakdown) = &report.result.breakdown {
        where_time_went(breakdown, &mut out);
    }
    let told = escaped(&text(report));
    let _ = writeln!(
        out,
        "<h2>The whole report</h2><details><summary>As the command prints it</summary><pre>{told}</pre></details>"
    );
    drive_values(report, &mut out);
    out + &foot()
}

/// What people look for first.
fn answer(report: Report<'_>, directions: &[(&str, Direction)], out: &mut String) {
    let mut cards = Vec::new();
    for (name, direction) in directions {
        let Some(clat) = direction.clat() else {
            continue;
        };
        let rate = bandwidth(direction.bytes_per_second());
        let iops = grouped(direction.ios_per_second().round() as u64);
        cards.push((format!("{name}s a second"), iops, rate));
        let ns = |percent| duration_ns(clat.percentile_ns(percent) as f64);
        let tail = format!(
            "99.9 %: {}, longest {}",
            ns(99.9),
            duration_ns(clat.max_ns() as f64)
        );
        let mean = duration_ns(clat.mean_ns());
        cards.push((format!("{name} latency, mean"), mean, tail));
    }
    let counters = &report.result.counters;
    let lookups = counters.map.lookups;
    if lookups > 0 {
        let share = 100.0 * (lookups - counters.map.misses) as f64 / lookups as f64;
        let of = format!("of {} look-ups", grouped(lookups));
        cards.push(("map entry at hand".to_owned(), format!("{share:.1} %"), of));
    }
    if let Some(waf) = waf(counters) {
        let says = "bytes programmed for each written".to_owned();
        cards.push(("write amplification".to_owned(), format!("{waf:.2}"), says));
    }
    let busiest = report.result.utilisation.iter();
    if let Some((part, share)) = busiest.max_by(|a, b| a.1.total_cmp(&b.1)) {
        let percent = format!("{:.0} %", 100.0 * share);
        cards.push(("busiest part".to_owned(), (*part).to_owned(), percent));
    }
    *out += "<div class=\"answer\">";
    for (what, value, more) in cards {
        let (what, value, more) = (escaped(&what), escaped(&value), escaped(&more));
        let _ = write!(
            out,
            "<div><span class=\"small\">{what}</span><b>{value}</b><span class=\"small\">{more}</span></div>"
        );
    }
    let hmb = &report.result.hmb;
    let _ = writeln!(
        out,
        "</div>\n<p>{} requests in {} of simulated time; host memory: {} of {} used.</p>",
        grouped(report.result.requests),
        duration_ns(report.result.simulated_ps as f64 / 1e3),
        bytes_text(hmb.used_bytes as f64),
        bytes_text(hmb.granted_bytes as f64),
    );
    for warning in &report.result.warnings {
        let _ = writeln!(out, "<p class=\"partial\">{}</p>", escaped(warning));
    }
}

fn where_time_went(breakdown: &Breakdown, out: &mut String) {
    *out += "<h2>Where the time of requests went</h2>\n";
    for (name, requests, rows) in breakdown::rows(breakdown) {
        let _ = write!(
            out,
            "<h3>{} {name} requests</h3><div class=\"wide\"><table><tr><th>part<th class=\"r\">mean\
             <th>share<th class=\"r\">near p50<th class=\"r\">near p99<th class=\"r\">near p99.9",
            grouped(requests)
        );
        for row in rows {
            let percent = 100.0 * row.share;
            let [mean, p50, p99, p99_9] = row.ns.map(duration_ns);
            let _ = write!(
                out,
                "<tr><td>{}<td class=\"r\">{mean}<td class=\"n\"><span class=\"bar\"><i style=\"width:\
                 {percent:.0}%\"></i></span>{percent:.1} %<td class=\"r\">{p50}<td class=\"r\">{p99}<td class=\"r\">{p99_9}",
                row.name
            );
        }
        *out += "</table></div>\n";
    }
}

/// Every value of the drive, and where it comes from.
fn drive_values(report: Report<'_>, out: &mut String) {
    *out += "<h2>The drive</h2><details><summary>Every value, and where it comes from</summary>\
             <div class=\"wide\"><table><tr><th>key<th>value<th>kind<th>source\n";
    for value in &report.config.drive.parsed.values {
        let _ = writeln!(
            out,
            "<tr><td>{}<td>{}<td>{}<td>{}",
            escaped(value.key),
            escaped(&value.text),
            value.source.kind.name(),
            escaped(&value.source.from)
        );
    }
    *out += "</table></div></details>\n";
}
