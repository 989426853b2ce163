//! Which curves are shown, in which order, and what they say.

use super::plot::{Line, Mark, Plot};
use crate::bench::Series;
use crate::probe::Outcome;
use crate::stats::Estimate;
use std::collections::{BTreeMap, BTreeSet};

const COLOURS: [&str; 8] = [
    "#1b6ca8", "#c4501b", "#2e8540", "#7b3fa0", "#8a6d1d", "#555555", "#c2185b", "#00838f",
];
/// Widths of a picture alone, and of one beside another.
const WIDTH: f64 = 760.0;
const WIDTH_BESIDE: f64 = 420.0;

/// A picture, or two: host memory on beside off.
#[derive(Debug)]
pub(super) struct Figure<'a> {
    /// First part of its series' names.
    group: &'a str,
    pub title: &'a str,
    pub says: &'a str,
    /// On and off apart, for each has several curves.
    apart: bool,
    /// Quantities or roles to mark.
    marks: &'a [&'a str],
}

impl<'a> Figure<'a> {
    pub(super) const fn plain(group: &'a str) -> Self {
        Figure {
            group,
            title: group,
            says: "",
            apart: false,
            marks: &[],
        }
    }
}

/// What is shown, in order; all other series come after.
pub(super) const FIGURES: &[Figure<'_>] = &[
    Figure {
        group: "working set latency",
        title: "Working set against latency",
        says: "Random reads, 32 in flight, over more and more of the drive.",
        apart: false,
        marks: &["map_reach_on"],
    },
    Figure {
        group: "working set",
        title: "Working set against rate",
        says: "The same reads, as reviewers draw them.",
        apart: false,
        marks: &["map_reach_on"],
    },
    Figure {
        group: "map cache",
        title: "Places visited since",
        says: "A place is read fast as long as no more places than the map cache has units were visited \
               since. With less host memory it has fewer.",
        apart: false,
        marks: &[],
    },
    Figure {
        group: "reach",
        title: "Reach",
        says: "The longest stretch over which random reads stay fast.",
        apart: false,
        marks: &["map_reach_on"],
    },
    Figure {
        group: "reach of host memory",
        title: "Reach against host memory given",
        says: "The slope is what an entry of the map takes.",
        apart: false,
        marks: &[],
    },
    Figure {
        group: "read request",
        title: "Request size against latency: reads",
        says: "One request, read for the first time and again. Where the curves meet, it no longer fits \
               a read cache. The same knee with host memory off: the cache is not there.",
        apart: true,
        marks: &["read_again_knee_bytes"],
    },
    Figure {
        group: "write request",
        title: "Request size against latency: writes",
        says: "One request written to a rested drive. Where it jumps, it no longer fits the write buffer.",
        apart: true,
        marks: &["write_knee_bytes"],
    },
    Figure {
        group: "read cache",
        title: "Pages read again",
        says: "Pages near each other, read in turn: fast while all of them are kept.",
        apart: false,
        marks: &["read_cache"],
    },
    Figure {
        group: "write burst",
        title: "A long burst of writes",
        says: "Bytes acknowledged by time: first at the rate of the link, then at that of flash.",
        apart: false,
        marks: &[],
    },
    Figure {
        group: "bytes ahead",
        title: "Bytes ahead of flash",
        says: "What was acknowledged and had not arrived in flash, by how much had arrived: the size of \
               the write buffer.",
        apart: false,
        marks: &[],
    },
    Figure {
        group: "write cliff",
        title: "Write cliff",
        says: "Rate of sequential writes until it falls for good.",
        apart: false,
        marks: &["write_cliff"],
    },
    Figure {
        group: "queue depth",
        title: "Queue depth",
        says: "Random reads over the whole drive.",
        apart: false,
        marks: &[],
    },
    Figure {
        group: "pairs of reads",
        title: "Pairs of reads",
        says: "Share of pairs that get in each other's way, by their distance: where they share a die.",
        apart: false,
        marks: &["stripe", "round"],
    },
];

/// A series' name in parts: `group, host memory STATE: kind`.
fn parts(name: &str) -> (String, &str, &str) {
    let (group, rest) = name.split_once(", ").unwrap_or((name, ""));
    let (state, kind) = rest.split_once(": ").unwrap_or((rest, ""));
    (group.to_owned(), state, kind)
}

/// Series that belong to one picture, or to two side by side.
fn group(name: &str) -> String {
    let (group, _, kind) = parts(name);
    let apart = FIGURES
        .iter()
        .any(|figure| figure.apart && figure.group == group);
    if apart || kind.is_empty() {
        group
    } else {
        format!("{group}: {kind}")
    }
}

/// Groups of curves that no figure has.
pub(super) fn others(outcome: &Outcome) -> Vec<String> {
    let groups: BTreeSet<String> = outcome.raw.keys().map(|name| group(name)).collect();
    let known = |name: &String| FIGURES.iter().any(|figure| figure.group == name);
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
    let width = if panels.len() > 1 {
        WIDTH_BESIDE
    } else {
        WIDTH
    };
    let plots = panels.into_iter().map(|((_, panel), mut lines)| {
        lines.sort_by(|a, b| rank(a.0).cmp(&rank(b.0)).then(b.0.cmp(a.0)));
        let (x, y) = lines
            .first()
            .map_or(("", ""), |(_, series)| (series.x, series.y));
        let lines = lines.into_iter().zip(COLOURS.iter().cycle());
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
            width,
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
    let amount = amount_kib(state).map(|kib| super::plot::bytes_text(kib as f64 * 1024.0));
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
            "read_cache" => "size",
            "write_cliff" => "fast",
            name => name,
        };
        Some(Mark {
            at,
            name: name.to_owned(),
        })
    };
    figure.marks.iter().filter_map(mark).collect()
}
