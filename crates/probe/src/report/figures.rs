//! Which curves are shown, in which order, and what they say.

use crate::bench::Series;
use crate::outcome::Outcome;
use crate::role::Role;
use crate::stats::Estimate;
use lodger_page::{COLOURS, Line, Mark, Plot, WIDTH};
use std::collections::{BTreeMap, BTreeSet};

/// One more than other pages have: where points are drawn and no lines, dashes tell no two of a colour apart.
const GREY: &str = "#777777";

/// A picture, or two: host memory on beside off.
#[derive(Debug)]
pub(crate) struct Figure<'a> {
    /// First part of its series' names.
    pub group: &'a str,
    pub title: &'a str,
    pub says: &'a str,
    /// On and off apart, for each has several curves.
    pub apart: bool,
    /// Quantities or roles to mark.
    pub marks: &'a [&'a str],
    /// What it shows if the verdict of its role is right.
    pub expects: &'a str,
    /// Points without lines between them.
    pub dots: bool,
}

impl<'a> Figure<'a> {
    pub const fn plain(group: &'a str) -> Self {
        Figure {
            group,
            title: group,
            says: "",
            apart: false,
            marks: &[],
            expects: "",
            dots: false,
        }
    }

    pub const fn of(group: &'a str, title: &'a str, says: &'a str) -> Self {
        Figure {
            title,
            says,
            ..Figure::plain(group)
        }
    }
}

/// What is shown, in order, first with the verdict that it speaks for or against; all other series come after.
/// What is shown beside what speaks for or against a verdict; all other series come after.
pub(super) const FIGURES: &[Figure<'_>] = &[
    Figure {
        marks: &["map_reach_on"],
        ..Figure::of(
            "working set",
            "Working set against rate",
            "Random reads over more and more of the drive, as reviewers draw them.",
        )
    },
    Figure {
        marks: &["write_cliff"],
        ..Figure::of(
            "write cliff",
            "Write cliff",
            "Rate of sequential writes until it falls for good.",
        )
    },
    Figure::of(
        "queue depth",
        "Queue depth",
        "Random reads over the whole drive.",
    ),
    Figure {
        marks: &["stripe", "round"],
        ..Figure::of(
            "pairs of reads",
            "Pairs of reads",
            "Share of pairs that get in each other's way, by their distance: where they share a die.",
        )
    },
];

/// All figures: those of each role, with its verdict, and the others.
fn figures() -> impl Iterator<Item = &'static Figure<'static>> {
    Role::ALL
        .into_iter()
        .flat_map(|role| role.about().figures)
        .chain(FIGURES)
}

/// A series' name in parts: `group, host memory STATE: kind`.
fn parts(name: &str) -> (String, &str, &str) {
    let (group, rest) = name.split_once(", ").unwrap_or((name, ""));
    let (state, kind) = rest.split_once(": ").unwrap_or((rest, ""));
    (group.to_owned(), state, kind)
}

/// Series that belong to one picture, or to two side by side.
fn group(name: &str) -> String {
    let (group, _, kind) = parts(name);
    let apart = figures().any(|figure| figure.apart && figure.group == group);
    if apart || kind.is_empty() {
        group
    } else {
        format!("{group}: {kind}")
    }
}

/// Groups of curves that no figure has.
pub(super) fn others(outcome: &Outcome) -> Vec<String> {
    let groups: BTreeSet<String> = outcome.raw.keys().map(|name| group(name)).collect();
    let known = |name: &String| figures().any(|figure| figure.group == name);
    groups.into_iter().filter(|name| !known(name)).collect()
}

/// A figure's pictures, each with its title; none where nothing was measured.
pub(super) fn plots(outcome: &Outcome, figure: &Figure<'_>) -> Vec<(String, Plot)> {
    let mut panels: BTreeMap<(Rank, &str), Vec<(&str, &Series)>> = BTreeMap::new();
    for (name, series) in outcome
        .raw
        .iter()
        .filter(|(name, _)| group(name) == figure.group)
    {
        let (_, state, kind) = parts(name);
        let (panel, line) = if figure.apart {
            (state, kind)
        } else {
            ("", state)
        };
        panels
            .entry((rank(panel), panel))
            .or_default()
            .push((line, series));
    }
    let plots = panels.into_iter().map(|((_, panel), mut lines)| {
        lines.sort_by(|a, b| rank(a.0).cmp(&rank(b.0)).then(b.0.cmp(a.0)));
        let (x, y) = lines
            .first()
            .map_or(("", ""), |(_, series)| (series.x, series.y));
        let lines = lines
            .into_iter()
            .zip(COLOURS.into_iter().chain([GREY]).cycle());
        let lines = lines.map(|((name, series), colour)| Line {
            name: shown(name),
            points: series.points.clone(),
            colour,
        });
        let plot = Plot {
            lines: lines.collect(),
            marks: marks(outcome, figure, panel),
            x,
            y,
            log_y: figure.apart,
            dots: figure.dots,
            width: WIDTH,
        };
        (shown(panel), plot)
    });
    plots.collect()
}

/// On before off before amounts, the largest first.
type Rank = (u8, std::cmp::Reverse<u64>);

fn rank(state: &str) -> Rank {
    let amount = amount_kib(state).unwrap_or(0);
    let kind = match state {
        _ if amount > 0 => 3,
        "host memory off" => 2,
        "host memory on" => 0,
        _ => 1,
    };
    (kind, std::cmp::Reverse(amount))
}

fn amount_kib(state: &str) -> Option<u64> {
    let amount = state.strip_prefix("host memory ")?;
    amount.strip_suffix(" KiB")?.parse().ok()
}

/// A state, or a kind of curve, as the legend has it.
fn shown(state: &str) -> String {
    let amount = amount_kib(state).map(|kib| lodger_page::bytes_text(kib as f64 * 1024.0));
    amount.map_or(state.to_owned(), |amount| format!("host memory {amount}"))
}

fn marks(outcome: &Outcome, figure: &Figure<'_>, panel: &str) -> Vec<Mark> {
    let state = panel.strip_prefix("host memory ").unwrap_or("");
    let found = |name: &str| -> Option<Estimate> {
        if let Some(role) = outcome.roles.get(name) {
            return role.size_bytes;
        }
        let quantities = &outcome.findings.quantities;
        let own = quantities.get(&format!("{name}_{state}"));
        let quantity = own.or(quantities.get(name))?;
        // In the units of the axis: pages.
        let pages = figure.group == "pairs of reads";
        Some(if pages {
            quantity.value.scaled(1.0 / 4096.0)
        } else {
            quantity.value
        })
    };
    let mark = |name: &&str| {
        let at = found(name)?;
        let name = match *name {
            "map_reach_on" => "reach",
            "read_again_knee_bytes" | "write_knee_bytes" => "knee",
            "write_cliff" => "fast",
            name if outcome.roles.contains_key(name) => "size",
            name => name,
        };
        Some(Mark {
            at: at.estimate,
            low: at.low,
            high: at.high,
            name: name.to_owned(),
        })
    };
    figure.marks.iter().filter_map(mark).collect()
}
