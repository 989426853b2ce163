//! Answers as pages. A run: the answer first, then curves, then where the time went, then the drive and its sources. Every
//! number is one that the other reports have.

pub(super) mod compare;
mod curves;
mod quantity;

use super::latency::{self, Latencies};
use super::number::{bandwidth, count_of, duration_ns, grouped};
use super::together::Together;
use super::{Report, SYNC, text, waf};
use crate::breakdown::{self, Breakdown};
use crate::drives::Drive;
use crate::stats::Direction;
use crate::timeline::Table;
use lodger_page::{bytes_text, escaped, figure, foot, head, prose};
use lodger_workload::logging::clients_text;
use std::fmt::Write as _;

/// What became of one direction, or of flushes, in all jobs together.
pub(super) struct Asked {
    /// As people call it.
    name: &'static str,
    direction: Direction,
    slat_ns: u64,
}

impl Asked {
    fn latencies(&self) -> Option<Latencies<'_>> {
        Latencies::of(self.name, &self.direction, self.slat_ns)
    }

    /// What a latency over time, which is one of completion, is told longer, nanoseconds.
    fn more_ns(&self) -> u64 {
        latency::more_ns(self.name, self.slat_ns)
    }
}

/// Directions that have requests, and flushes.
fn directions(report: Report<'_>) -> Vec<Asked> {
    let jobs = &report.result.jobs;
    // A host takes equally long to submit every request.
    let slat_ns = jobs.first().map_or(0, |job| job.slat_ns);
    let all = Together::of(jobs).busy();
    all.map(|(name, direction)| Asked {
        name,
        direction,
        slat_ns,
    })
    .collect()
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
    super::wear::write_page(&mut out, report);
    show_printed(&text(report), &mut out);
    show_drives(&[&report.config.drive], &mut out);
    out + &foot()
}

/// What people look for first.
fn answer(report: Report<'_>, directions: &[Asked], out: &mut String) {
    let mut cards = commits(report);
    for asked in directions {
        let (name, direction) = (asked.name, &asked.direction);
        let Some(latencies) = asked.latencies() else {
            continue;
        };
        let rate = match name {
            SYNC if report.config.drive.parsed.spec.has_volatile_cache() => {
                "flushes, which wait for what was written".to_owned()
            }
            SYNC => "flushes, which end in the host: the drive loses nothing".to_owned(),
            _ => bandwidth(direction.bytes_per_second()),
        };
        let iops = grouped(direction.ios_per_second().round() as u64);
        cards.push((format!("{name}s a second"), iops, rate));
        let ns = |percent| duration_ns(latencies.percentile_ns(percent) as f64);
        let tail = format!(
            "99.9 %: {}, longest {}",
            ns(99.9),
            duration_ns(latencies.max_ns() as f64)
        );
        let mean = duration_ns(latencies.mean_ns());
        cards.push((format!("{name} latency, mean"), mean, tail));
    }
    let counters = &report.result.counters;
    let lookups = counters.map.lookups;
    if lookups > 0 {
        let share = 100.0 * (lookups - counters.map.misses) as f64 / lookups as f64;
        let of = format!("of {}", count_of(lookups, "look-up"));
        cards.push(("map entry at hand".to_owned(), format!("{share:.1} %"), of));
    }
    if let Some(waf) = waf(counters) {
        let says = "bytes programmed for each written".to_owned();
        cards.push(("write amplification".to_owned(), format!("{waf:.2}"), says));
    }
    let busiest = report.result.utilisation.iter();
    if let Some(busy) = busiest.max_by(|a, b| a.most.total_cmp(&b.most)) {
        let percent = format!("{:.0} %", 100.0 * busy.most);
        cards.push(("busiest part".to_owned(), busy.kind.to_owned(), percent));
    }
    show_cards(&cards, out);
    let _ = writeln!(
        out,
        "<p>{} in {} of simulated time; {}.</p>",
        count_of(report.result.requests, "request"),
        duration_ns(report.result.simulated_ps as f64 / 1e3),
        host_memory(report),
    );
    for warning in &report.result.warnings {
        let _ = writeln!(out, "<p class=\"partial\">{}</p>", prose(warning));
    }
}

/// What the drive got of the host's memory, or what the host's driver keeps of the drive's map.
fn host_memory(report: Report<'_>) -> String {
    let hmb = &report.result.hmb;
    match &report.config.drive.parsed.spec.hpb {
        Some(hpb) if hmb.granted_bytes == 0 => {
            let bytes = bytes_text(hpb.host_bytes() as f64);
            format!("the host's driver keeps up to {bytes} of the map")
        }
        _ => format!(
            "host memory: {} of {} used",
            bytes_text(hmb.used_bytes as f64),
            bytes_text(hmb.granted_bytes as f64)
        ),
    }
}

/// What a database's clients saw, of a run that has one.
fn commits(report: Report<'_>) -> Vec<Card> {
    let mut jobs = report.result.jobs.iter();
    let Some(logging) = jobs.find_map(|job| job.logging.as_ref()) else {
        return Vec::new();
    };
    let latency = &logging.latency;
    let rate = logging.statistics.transactions_per_s().round() as u64;
    let clients = clients_text(logging.clients);
    let clients = format!("commit {}, {clients}", logging.commit);
    let tail = format!(
        "99 %: {}, longest {}",
        duration_ns(latency.percentile_ns(99.0) as f64),
        duration_ns(latency.max_ns() as f64)
    );
    vec![
        ("transactions a second".to_owned(), grouped(rate), clients),
        (
            "commit latency, mean".to_owned(),
            duration_ns(latency.mean_ns()),
            tail,
        ),
    ]
}

/// What is told, its value, and more about it.
pub(crate) type Card = (String, String, String);

/// Values that are seen first.
pub(crate) fn show_cards(cards: &[Card], out: &mut String) {
    *out += "<div class=\"answer\">";
    for (what, value, more) in cards {
        let (what, value, more) = (escaped(what), escaped(value), escaped(more));
        let _ = write!(
            out,
            "<div><span class=\"small\">{what}</span><b>{value}</b><span class=\"small\">{more}</span></div>"
        );
    }
    *out += "</div>\n";
}

fn where_time_went(breakdown: &Breakdown, out: &mut String) {
    for (at, (name, requests, rows)) in breakdown::rows(breakdown).into_iter().enumerate() {
        if at == 0 {
            *out += "<h2>Where the time of requests went</h2>\n";
        }
        let _ = write!(
            out,
            "<h3>{}</h3><div class=\"wide\"><table><tr><th>part<th class=\"r\">mean\
             <th>share<th class=\"r\">near p50<th class=\"r\">near p99<th class=\"r\">near p99.9",
            count_of(requests, &format!("{name} request"))
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

/// The end of a page: every value of the drives, and where it comes from.
pub(crate) fn show_drives(drives: &[&Drive], out: &mut String) {
    *out += match drives {
        [_] => "<h2>The drive</h2>",
        _ => "<h2>The drives</h2>",
    };
    for drive in drives {
        let (name, model) = (escaped(&drive.name), escaped(&drive.parsed.spec.name));
        let _ = writeln!(
            out,
            "<details><summary>{name} ({model}): every value, and where it comes from</summary>\
             <div class=\"wide\"><table><tr><th>key<th>value<th>kind<th>source"
        );
        for value in &drive.parsed.values {
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
}

/// What a command prints, at the end of its page.
pub(crate) fn show_printed(text: &str, out: &mut String) {
    let text = escaped(text);
    let _ = writeln!(
        out,
        "<h2>The whole report</h2><details><summary>As the command prints it</summary><pre>{text}</pre></details>"
    );
}
