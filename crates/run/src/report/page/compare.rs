//! Several runs side by side as a page: what is best and by how much, then bars and curves with one colour a run,
//! then all values, then the drives and their sources.

use super::curves::{self, OverTime};
use super::quantity::{Quantity, first_letter_large, quantities};
use super::{Asked, Card, directions, show_cards, show_drives, show_printed};
use crate::drives::Drive;
use crate::logging::LoggingResult;
use crate::report::compare::{self, Variant, commits_differ, hosts_differ};
use crate::report::latency::Latencies;
use crate::report::number::count_of;
use crate::report::{drive, percent};
use crate::timeline::Table;
use lodger_core::spec::Tier;
use lodger_page::{Bar, COLOURS, Part, Plot, Points, bars, escaped, figure, foot, head, prose};
use std::fmt::Write as _;

/// A run as the page speaks of it.
pub(super) struct Told<'a> {
    pub(super) name: String,
    pub(super) colour: &'static str,
    pub(super) variant: &'a Variant<'a>,
    directions: Vec<Asked>,
    over_time: OverTime<'a>,
}

impl<'a> Told<'a> {
    pub(super) fn direction(&self, name: &str) -> Option<&Asked> {
        self.directions.iter().find(|asked| asked.name == name)
    }

    /// Latencies of a direction, or of commits.
    pub(super) fn latency(&self, kind: &str) -> Option<Latencies<'_>> {
        match kind {
            "commit" => Latencies::plain(&self.logging()?.latency),
            direction => self.direction(direction)?.latencies(),
        }
    }

    pub(super) fn logging(&self) -> Option<&'a LoggingResult> {
        self.variant.logging()
    }
}

/// The page of a comparison; `over_time` has a table for each run.
#[must_use]
pub fn page(workload: &str, variants: &[Variant<'_>], over_time: &[Table]) -> String {
    let (with_host, with_commit) = (hosts_differ(variants), commits_differ(variants));
    let told: Vec<Told<'_>> = variants
        .iter()
        .zip(over_time)
        .zip(COLOURS.iter().cycle())
        .map(|((variant, table), &colour)| Told {
            name: name(variant, with_host, with_commit),
            colour,
            variant,
            directions: directions(variant.report),
            over_time: OverTime::new(table),
        })
        .collect();
    let mut out = head(&format!("{workload}: {} runs compared", told.len()));
    let quantities = quantities(&told);
    answer(&told, &quantities, &mut out);
    out += "<div class=\"charts\">\n";
    for quantity in &quantities {
        out += &quantity.bars(&told);
    }
    out += &hits(&told);
    for (title, says, plot) in latencies(&told) {
        out += &figure(&title, says, &plot);
    }
    out += "</div>\n";
    table(&told, &quantities, &mut out);
    for run in &told {
        for warning in &run.variant.report.result.warnings {
            let _ = writeln!(
                out,
                "<p class=\"partial\">{}: {}</p>",
                escaped(&run.name),
                prose(warning)
            );
        }
    }
    show_printed(&compare::text(variants), &mut out);
    let mut drives: Vec<&Drive> = Vec::new();
    for variant in variants {
        let drive = &variant.report.config.drive;
        if drives.iter().all(|other| other.name != drive.name) {
            drives.push(drive);
        }
    }
    show_drives(&drives, &mut out);
    out + &foot()
}

/// The drive, what the host gives where that was spoken of, and how commits are made where runs differ in that.
fn name(variant: &Variant<'_>, with_host: bool, with_commit: bool) -> String {
    let mut name = variant.drive().to_owned();
    if with_host {
        name += &match variant.host_gives().as_str() {
            "none" => ", no host memory".to_owned(),
            gives => format!(", {gives}"),
        };
    }
    if let Some(commit) = variant.commit().filter(|_| with_commit) {
        name += &format!(", commit {commit}");
    }
    name
}

/// Best of each quantity that leads, in which run.
fn answer(runs: &[Told<'_>], quantities: &[Quantity], out: &mut String) {
    let leading = quantities.iter().filter(|quantity| quantity.leads);
    let cards: Vec<Card> = leading.filter_map(|quantity| quantity.card(runs)).collect();
    if cards.is_empty() {
        *out += "<p class=\"partial\">No request has completed: there is nothing to compare.</p>\n";
        return;
    }
    show_cards(&cards, out);
    let requests: u64 = runs
        .iter()
        .map(|run| run.variant.report.result.requests)
        .sum();
    let _ = writeln!(
        out,
        "<p>{} in {}. Colours and dashes are those of the runs in all pictures.</p>",
        count_of(requests, "request"),
        count_of(runs.len() as u64, "run")
    );
}

/// Where map entries were found, a bar for each run.
fn hits(runs: &[Told<'_>]) -> String {
    let all = runs.iter().filter_map(|run| {
        let result = run.variant.report.result;
        let map = &result.counters.map;
        if map.lookups == 0 {
            return None;
        }
        let share = |count: u64| count as f64 / map.lookups as f64;
        let part = |(tier, colour): (&Tier, &&'static str)| {
            let found = drive::map_hits_in(result, *tier).unwrap_or(0);
            let name = format!("found in {}", tier.name());
            (found > 0).then(|| Part {
                name,
                share: share(found),
                colour,
            })
        };
        let found = drive::MAP_MEMORIES.iter().zip(&COLOURS).filter_map(part);
        // What waits for flash is left empty, so that the filled part is what helps.
        Some(Bar {
            name: run.name.clone(),
            value: format!("{:.1} %", percent(map.lookups - map.misses, map.lookups)),
            parts: found.collect(),
        })
    });
    let all: Vec<Bar> = all.collect();
    bars(
        "Map entries at hand",
        "by the memory that had them; what is left empty was read from flash",
        &all,
    )
}

type Pictures = Vec<(String, &'static str, Plot)>;

/// Latency by rank and over time, and rates over time, a curve for each run.
fn latencies(runs: &[Told<'_>]) -> Pictures {
    let mut all = Vec::new();
    let lines = |of: &dyn Fn(&Told<'_>) -> Option<Points>| -> Vec<(String, Points)> {
        // A run without the curve keeps its place, and its colour with it.
        let lines = runs
            .iter()
            .map(|run| (run.name.clone(), of(run).unwrap_or_default()));
        lines.collect()
    };
    let by_rank = "one request in so many takes longer than that; the last point is the longest";
    for (kind, by_rank, x, rate) in [
        (
            "commit",
            "one commit in so many takes longer than that",
            "one commit in",
            "commits a second",
        ),
        ("read", by_rank, "one request in", "requests a second"),
        ("write", by_rank, "one request in", "requests a second"),
        ("trim", by_rank, "one request in", "requests a second"),
        ("sync", by_rank, "one request in", "requests a second"),
    ] {
        let title = first_letter_large(kind);
        let ranks = lines(&|run| Some(curves::rank(run.latency(kind)?)));
        all.push((
            format!("{title} latency by rank"),
            by_rank,
            Plot::of_lines(x, "latency, us", true, ranks),
        ));
        let iops = lines(&|run| run.over_time.curve(&format!("{kind}_iops"), |iops, _| iops));
        all.push((
            format!("{title}s over time"),
            "completed a second; 0 in a silence, and in a ramp_time, which does not count",
            Plot::of_lines("time, s", rate, false, iops),
        ));
        let p99 = lines(&|run| {
            let more_ns = run.direction(kind).map_or(0, Asked::more_ns) as f64;
            let column = format!("{kind}_clat_p99_ns");
            run.over_time.curve(&column, |ns, _| (ns + more_ns) / 1e3)
        });
        all.push((
            format!("{title} latency over time"),
            "99 % of those that completed in each interval took at most so long",
            Plot::of_lines("time, s", "latency, us", true, p99),
        ));
    }
    let moved = lines(&|run| run.over_time.curve("gc_moved_pages", per_s));
    all.push((
        "Garbage collection over time".to_owned(),
        "pages of 4 KiB moved a second",
        Plot::of_lines("time, s", "pages a second", false, moved),
    ));
    all
}

fn per_s(count: f64, length_s: f64) -> f64 {
    count / length_s
}

/// A row for each run; the best of each column is marked where it makes a difference.
fn table(runs: &[Told<'_>], quantities: &[Quantity], out: &mut String) {
    *out += "<h2>All runs</h2>\n<div class=\"wide\"><table class=\"runs\"><tr><th>run";
    for quantity in quantities {
        let _ = write!(
            out,
            "<th class=\"r\">{}",
            escaped(&first_letter_large(&quantity.name))
        );
    }
    for (at, run) in runs.iter().enumerate() {
        let _ = write!(out, "\n<tr><td>{}", escaped(&run.name));
        for quantity in quantities {
            let differs = quantity.differs();
            let class = if quantity.is_best(at) && differs {
                "r best"
            } else {
                "r"
            };
            let value = quantity.values[at].map_or("-".to_owned(), quantity.text);
            let _ = write!(out, "<td class=\"{class}\">{}", escaped(&value));
        }
    }
    *out += "</table></div>\n<p class=\"small\">\u{2713}: the best of its column, where runs differ by 1 % or more.</p>\n";
}
