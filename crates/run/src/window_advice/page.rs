//! The advice on a byte window as a page: the answer, the curves, the break-even, the drive and its sources.

use super::text::{answer, legend, more, where_it_pays};
use super::{PAYS, WindowAdvice};
use crate::advise::Advised;
use crate::report::number::{duration_ns, grouped};
use crate::report::page::{Card, show_cards, show_drives, show_printed};
use lodger_page::{Plot, Points, escaped, figure, foot, head};
use lodger_workload::logging::clients_text as said;
use std::fmt::Write as _;

/// The page.
pub(super) fn page(advice: &WindowAdvice, workload: &str) -> String {
    let drive = &advice.drive.name;
    let mut out = head(&format!(
        "Does the byte window of {drive} pay for {workload}?"
    ));
    let class = if advice.is_yes() {
        ""
    } else {
        " class=\"partial\""
    };
    let _ = writeln!(out, "<p{class}><b>{}.</b></p>", escaped(&answer(advice)));
    show_cards(&cards(advice), &mut out);
    let _ = writeln!(out, "<p>{}.</p>", escaped(&legend()));
    out += "<div class=\"charts\">\n";
    for (title, says, plot) in plots(advice) {
        out += &figure(title, says, &plot);
    }
    out += "</div>\n<h2>Where it pays</h2>\n<div class=\"wide\"><table><tr><th class=\"r\">clients<th>bytes that a transaction logs";
    for found in &advice.break_even {
        let says = escaped(&where_it_pays(found));
        let _ = write!(out, "\n<tr><td class=\"r\">{}<td>{says}", found.clients);
    }
    out += "</table></div>\n";
    show_printed(&advice.text(), &mut out);
    show_drives(&[&advice.drive], &mut out);
    out + &foot()
}

fn cards(advice: &WindowAdvice) -> Vec<Card> {
    let own = &advice.own;
    let rate = |per_s: f64| format!("{}/s", grouped(per_s.round() as u64));
    vec![
        (
            "more transactions".to_owned(),
            more(own),
            format!(
                "{} instead of {}",
                rate(own.ba.transactions_per_s),
                rate(own.block.transactions_per_s)
            ),
        ),
        (
            "commit by blocks, mean".to_owned(),
            duration_ns(own.block.commit_mean_ns),
            format!("99 %: {}", duration_ns(own.block.commit_p99_ns as f64)),
        ),
        (
            "commit through the window, mean".to_owned(),
            duration_ns(own.ba.commit_mean_ns),
            format!("99 %: {}", duration_ns(own.ba.commit_p99_ns as f64)),
        ),
    ]
}

/// What is gained, and what a commit takes, over sizes; a curve for each number of clients.
fn plots(advice: &WindowAdvice) -> Vec<(&'static str, &'static str, Plot)> {
    let of = |clients: u32, value: &dyn Fn(&super::Pair) -> f64| -> Points {
        let points = advice
            .points
            .iter()
            .filter(|point| point.clients == clients);
        points
            .map(|point| (point.bytes as f64, value(&point.pair)))
            .collect()
    };
    let all = |value: &dyn Fn(&super::Pair) -> f64| -> Vec<(String, Points)> {
        let clients = advice.break_even.iter().map(|found| found.clients);
        clients
            .map(|clients| (said(clients), of(clients, value)))
            .collect()
    };
    let mut gains = all(&super::Pair::factor);
    let ends = [advice.points.first(), advice.points.last()];
    let level: Points = ends
        .into_iter()
        .flatten()
        .map(|point| (point.bytes as f64, PAYS))
        .collect();
    gains.push(("break-even".to_owned(), level));
    let x = "a transaction logs, bytes";
    let us = |ns: f64| ns / 1e3;
    vec![
        (
            "Transactions a second",
            "through the window, over those by blocks; above the break-even it pays",
            Plot::of_lines(x, "times as many", false, gains),
        ),
        (
            "Break-even",
            "the largest transaction for which it pays; no point where it pays for none",
            Plot::of_lines(
                "clients",
                "a transaction logs, bytes",
                false,
                vec![(String::new(), break_even(advice))],
            ),
        ),
        (
            "Commit by blocks",
            "mean latency",
            Plot::of_lines(
                x,
                "latency, us",
                true,
                all(&|pair| us(pair.block.commit_mean_ns)),
            ),
        ),
        (
            "Commit through the byte window",
            "mean latency",
            Plot::of_lines(
                x,
                "latency, us",
                true,
                all(&|pair| us(pair.ba.commit_mean_ns)),
            ),
        ),
    ]
}

/// The largest size that pays, by number of clients.
fn break_even(advice: &WindowAdvice) -> Points {
    let largest = super::SIZES[super::SIZES.len() - 1];
    let found = advice.break_even.iter().filter_map(|found| {
        let last = found.spans.last()?;
        Some((
            f64::from(found.clients),
            last.to_bytes.unwrap_or(largest) as f64,
        ))
    });
    found.collect()
}
