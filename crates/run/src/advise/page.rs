//! The advice as a page: the answer first, then what the drive does with each amount of host memory, then the drive
//! and its sources.

use super::measure::{Run, Subject};
use super::search::Found;
use super::text::{count, percent, size, time};
use super::{Advice, Advised, RASPBERRY_PI_BYTES};
use super::{answer, report};
use crate::report::page::{Card, show_cards, show_drives, show_printed};
use lodger_page::{Mark, Plot, Points, escaped, figure, foot, head, prose};
use std::fmt::Write as _;

/// The page.
pub(super) fn page(advice: &Advice, workload: &str) -> String {
    let mut out = head(&format!(
        "How much host memory {} needs for {workload}",
        advice.drive.name
    ));
    let class = if advice.is_yes() {
        ""
    } else {
        " class=\"partial\""
    };
    let _ = writeln!(
        out,
        "<p{class}><b>{}.</b></p>",
        escaped(&answer::answer(advice))
    );
    show_cards(&cards(advice), &mut out);
    for says in [report::drive(advice), report::workload(advice)] {
        let _ = writeln!(out, "<p>{}.</p>", escaped(&says));
    }
    for note in report::notes(advice) {
        let _ = writeln!(out, "<p class=\"small\">Note: {}.</p>", prose(&note));
    }
    out += "<div class=\"charts\">\n";
    for (title, says, plot) in plots(advice) {
        out += &figure(title, says, &plot);
    }
    out += "</div>\n";
    table(advice, &mut out);
    show_printed(&advice.text(), &mut out);
    show_drives(&[&advice.drive], &mut out);
    out + &foot()
}

/// What is enough, beside the two amounts that everybody has: none, and the default.
fn cards(advice: &Advice) -> Vec<Card> {
    let says = |bytes: u64, run: &Run| {
        let hits = run.lookups.hit_ratio();
        let hits = hits.map_or(String::new(), |hits| {
            format!(", map hits {}", percent(hits))
        });
        let p99 = time(run.percentile_ns(99.0) as f64);
        let more = format!(
            "99 %: {p99}, {} {}{hits}",
            count(run.rate()),
            run.subject.rate()
        );
        let with = if bytes == 0 {
            "without".to_owned()
        } else {
            format!("with {}", size(bytes))
        };
        (with, time(run.mean_ns()), more)
    };
    let mut cards = Vec::new();
    let mut add = |lead: &str, bytes: u64, run: Option<&Run>| {
        if let Some(run) = run {
            let (with, mean, more) = says(bytes, run);
            cards.push((format!("{lead}mean latency {with}"), mean, more));
        }
    };
    let yardstick_bytes = advice.place.yardstick_bytes();
    match advice.found {
        Found::Size { enough_bytes, .. } if enough_bytes != yardstick_bytes => {
            add("enough: ", enough_bytes, advice.run(enough_bytes));
        }
        Found::Nothing { best_bytes } if ![0, yardstick_bytes].contains(&best_bytes) => {
            add("the best: ", best_bytes, advice.run(best_bytes));
        }
        _ => {}
    }
    add("", 0, advice.run(0));
    add("by default: ", yardstick_bytes, Some(&advice.reference));
    cards
}

/// What is drawn ends at twice what anybody asks for, bytes: beyond that there is only the table.
fn end_bytes(advice: &Advice) -> u64 {
    let curve_ends = advice.curve.as_ref().map_or(0, |curve| curve.useful_bytes);
    let asked_bytes = curve_ends.max(advice.place.preferred_bytes());
    asked_bytes.saturating_mul(2)
}

/// Curves over host memory: hits, rate, latencies.
fn plots(advice: &Advice) -> Vec<(&'static str, &'static str, Plot)> {
    let end_bytes = end_bytes(advice);
    let simulated = |of: &dyn Fn(&Run) -> Option<f64>| -> Points {
        let rows = advice.rows.iter().filter(|(bytes, _)| *bytes <= end_bytes);
        rows.filter_map(|(bytes, run)| Some((*bytes as f64, of(run)?)))
            .collect()
    };
    let us = |ns: f64| (ns > 0.0).then_some(ns / 1e3);
    let mut all = Vec::new();
    if !advice.is_open_loop() {
        let rate = vec![("", simulated(&|run| Some(run.rate())))];
        let (title, says, axis) = match advice.reference.subject {
            Subject::Commits => (
                "Transactions a second",
                "a point is a run",
                "transactions a second",
            ),
            _ => (
                "Requests a second",
                "of all kinds; a point is a run",
                "requests a second",
            ),
        };
        all.push((title, says, plot(advice, axis, rate)));
    }
    let latency = vec![
        ("mean", simulated(&|run| us(run.mean_ns()))),
        ("99 %", simulated(&|run| us(run.percentile_ns(99.0) as f64))),
    ];
    let says = match advice.reference.subject {
        Subject::Reads => "of reads; a point is a run",
        Subject::Writes => "of writes; a point is a run",
        Subject::Commits => "of commits; a point is a run",
    };
    all.push(("Latency", says, plot(advice, "latency, us", latency)));
    let hits = simulated(&|run| Some(100.0 * run.lookups.hit_ratio()?));
    let learnt = advice
        .curve
        .as_ref()
        .filter(|curve| curve.asked().lookups > 0);
    let learnt = learnt.map(|curve| {
        let points = curve
            .points
            .iter()
            .filter(|point| point.hmb_bytes <= end_bytes);
        points
            .map(|point| (point.hmb_bytes as f64, 100.0 * point.hit_ratio))
            .collect()
    });
    let mut lines = vec![("simulated", hits)];
    lines.extend(learnt.map(|points| ("learnt in one pass", points)));
    let says = "map look-ups that need no read from flash";
    all.push(("Map hits", says, plot(advice, "per cent", lines)));
    all
}

fn plot(advice: &Advice, y: &'static str, lines: Vec<(&'static str, Points)>) -> Plot {
    let lines = lines.into_iter().filter(|(_, points)| !points.is_empty());
    let lines = lines.map(|(name, points)| (name.to_owned(), points));
    Plot {
        marks: marks(advice),
        ..Plot::of_lines("host memory, bytes", y, false, lines.collect())
    }
}

/// What is enough, what Linux gives by itself and what a Raspberry Pi does; places with two names are marked once.
fn marks(advice: &Advice) -> Vec<Mark> {
    let place = &advice.place;
    let mut places: Vec<(u64, &str)> = Vec::new();
    match advice.found {
        Found::Off => places.push((0, "enough")),
        Found::Size { enough_bytes, .. } => places.push((enough_bytes, "enough")),
        Found::Nothing { best_bytes } => places.push((best_bytes, "best, not enough")),
    }
    places.push((place.yardstick_bytes(), "Linux by default"));
    if place.preferred_bytes() > RASPBERRY_PI_BYTES {
        places.push((RASPBERRY_PI_BYTES, "Raspberry Pi OS"));
    }
    let mut marks: Vec<Mark> = Vec::new();
    for (bytes, name) in places {
        let at = bytes as f64;
        match marks.iter_mut().find(|mark| mark.at.total_cmp(&at).is_eq()) {
            Some(mark) => mark.name = format!("{}, {name}", mark.name),
            None => marks.push(Mark {
                at,
                low: at,
                high: at,
                name: name.to_owned(),
            }),
        }
    }
    marks
}

fn table(advice: &Advice, out: &mut String) {
    *out += "<h2>Amounts of host memory</h2>\n<div class=\"wide\"><table class=\"runs\"><tr>";
    for (at, name) in report::header(advice).iter().enumerate() {
        let class = if at == 0 { "" } else { " class=\"r\"" };
        let _ = write!(out, "<th{class}>{name}");
    }
    *out += "<th>remark";
    for (bytes, run) in &advice.rows {
        let enough = matches!(advice.found, Found::Size { enough_bytes, .. } if enough_bytes == *bytes)
            || (advice.found == Found::Off && *bytes == 0);
        *out += "\n<tr>";
        for (at, cell) in report::cells(advice, *bytes, run).iter().enumerate() {
            let class = match (at, enough) {
                (0, true) => " class=\"best\"",
                (0, false) => "",
                _ => " class=\"r\"",
            };
            let _ = write!(out, "<td{class}>{}", escaped(cell));
        }
        let _ = write!(
            out,
            "<td class=\"says\">{}",
            escaped(&report::remark(advice, *bytes))
        );
    }
    let says = escaped(&report::legend(advice));
    let _ = writeln!(out, "</table></div>\n<p class=\"small\">{says}.</p>");
}
