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
    /// The role whose verdict it is shown with.
    pub role: Option<&'a str>,
    /// What it shows if that verdict is right.
    pub expects: &'a str,
    /// Points without lines between them.
    dots: bool,
}

impl<'a> Figure<'a> {
    pub(super) const fn plain(group: &'a str) -> Self {
        Figure {
            group,
            title: group,
            says: "",
            apart: false,
            marks: &[],
            role: None,
            expects: "",
            dots: false,
        }
    }

    const fn of(group: &'a str, title: &'a str, says: &'a str) -> Self {
        Figure {
            title,
            says,
            ..Figure::plain(group)
        }
    }
}

/// What is shown, in order, first with the verdict that it speaks for or against; all other series come after.
pub(super) const FIGURES: &[Figure<'_>] = &[
    Figure {
        marks: &["map_reach_on"],
        role: Some("map"),
        expects: "Speaks against \"device\" or \"none\" where the curves of host memory on and off lie apart, or where \
                  one rises from 1 GiB on although all of the map is said to be at hand. Speaks for \"hmb\" where \
                  they lie apart between the two reaches.",
        ..Figure::of(
            "working set latency",
            "Working set against latency",
            "Random reads, 32 in flight, over more and more of the drive.",
        )
    },
    Figure {
        role: Some("map"),
        dots: true,
        expects: "Speaks for the verdict where low points end at one number of places, and for host memory where \
                  that number is larger with it on.",
        ..Figure::of(
            "map cache",
            "How long ago may a place have been read?",
            "Each point is one read of a place, by how many other places were read since its last time. Low: \
             its map entry was still at hand.",
        )
    },
    Figure {
        marks: &["map_reach_on"],
        role: Some("map"),
        expects: "Fast up to the reach, slow beyond.",
        ..Figure::of(
            "reach",
            "Reach",
            "The longest stretch over which random reads stay fast.",
        )
    },
    Figure {
        role: Some("map"),
        dots: true,
        expects: "Points on a line speak for a map in host memory; its slope is what an entry takes.",
        ..Figure::of(
            "reach of host memory",
            "Reach against host memory given",
            "Amounts that were tried, and nothing between them.",
        )
    },
    Figure {
        marks: &["read_cache"],
        role: Some("read_cache"),
        expects: "Speaks for a read cache where it is low up to the size, and for host memory where that is larger \
                  with it on.",
        ..Figure::of(
            "read cache",
            "Pages read again",
            "Pages near each other, read in turn: fast while all of them are kept.",
        )
    },
    Figure {
        apart: true,
        marks: &["read_again_knee_bytes"],
        role: Some("read_cache"),
        expects: "Speaks against \"none\" where the second read is faster, and against a size where the curves meet \
                  elsewhere.",
        ..Figure::of(
            "read request",
            "Request size against latency: reads",
            "One request, read for the first time and again. Where the curves meet, it no longer fits \
             a read cache. The same knee with host memory off: the cache is not there.",
        )
    },
    Figure {
        role: Some("write_buffer"),
        dots: true,
        expects: "Points on one level speak for a size; points that rise with what was acknowledged, against it.",
        ..Figure::of(
            "bytes ahead",
            "Bytes ahead of flash",
            "What was acknowledged and had not arrived in flash, by how much was acknowledged: the size of \
             the write buffer.",
        )
    },
    Figure {
        role: Some("write_buffer"),
        expects: "A bend speaks for a buffer that was full from there on; without one no size can be told.",
        ..Figure::of(
            "write burst",
            "A long burst of writes",
            "Bytes acknowledged by time: first at the rate of the link, then at that of flash.",
        )
    },
    Figure {
        role: Some("write_buffer"),
        expects: "A jump speaks for a buffer that holds no more than the write before it.",
        ..Figure::of(
            "single writes",
            "Single writes of growing size",
            "Each to a drive at rest. Where they jump, they no longer fit the write buffer.",
        )
    },
    Figure {
        apart: true,
        marks: &["write_knee_bytes"],
        role: Some("write_buffer"),
        expects: "A knee elsewhere than at the size speaks against it.",
        ..Figure::of(
            "write request",
            "Request size against latency: writes",
            "One request written to a rested drive. Where it jumps, it no longer fits the write buffer.",
        )
    },
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
            dots: figure.dots,
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
