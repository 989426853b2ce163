//! Curves and bars, drawn as on all other pages.

use crate::question::{Bar, Draw, Line};
use lodger_page::{COLOURS, Mark, Part, Plot, bars, figure};
use lodger_run::Error;
use serde_json::{Value, json};

/// Width of a picture, in its own units: about its size on a page.
const WIDTH: f64 = 460.0;
/// The axes that there are.
const AXES: [&str; 7] = [
    "host memory, bytes",
    "working set, bytes",
    "requests in flight",
    "time, s",
    "requests a second",
    "4 KiB pages a second",
    "share of look-ups",
];

/// # Errors
/// If there is no such axis.
pub(crate) fn answer(draw: Draw) -> Result<Value, Error> {
    if !draw.bars.is_empty() {
        let all: Vec<lodger_page::Bar> = draw.bars.into_iter().map(bar).collect();
        return Ok(json!({"html": bars(&draw.title, &draw.says, &coloured(all))}));
    }
    let plot = Plot {
        lines: draw.lines.into_iter().enumerate().map(line).collect(),
        marks: draw.marks.into_iter().map(mark).collect(),
        x: axis(&draw.axes.0)?,
        y: axis(&draw.axes.1)?,
        dots: false,
        log_y: false,
        width: WIDTH,
    };
    Ok(json!({"html": figure(&draw.title, &draw.says, &plot)}))
}

fn axis(name: &str) -> Result<&'static str, Error> {
    let found = AXES.into_iter().find(|known| *known == name);
    found.ok_or_else(|| {
        let name = name.escape_debug();
        let message = format!("no axis is called `{name}`: {}", AXES.join(" | "));
        Error::input(message)
    })
}

fn line((at, line): (usize, Line)) -> lodger_page::Line {
    lodger_page::Line {
        name: line.name,
        points: line.points,
        colour: COLOURS[at % COLOURS.len()],
    }
}

fn mark(mark: crate::question::Mark) -> Mark {
    Mark {
        at: mark.at,
        low: mark.at,
        high: mark.at,
        name: mark.name,
    }
}

fn bar(bar: Bar) -> lodger_page::Bar {
    let parts = bar.parts.into_iter().map(|(name, share)| Part {
        name,
        share,
        colour: "",
    });
    lodger_page::Bar {
        name: bar.name,
        value: bar.value,
        parts: parts.collect(),
    }
}

/// Parts of one name have one colour, in the order in which names come.
fn coloured(mut all: Vec<lodger_page::Bar>) -> Vec<lodger_page::Bar> {
    let mut names: Vec<String> = Vec::new();
    for part in all.iter_mut().flat_map(|bar| &mut bar.parts) {
        let at = names.iter().position(|name| *name == part.name);
        let at = at.unwrap_or_else(|| {
            names.push(part.name.clone());
            names.len() - 1
        });
        part.colour = COLOURS[at % COLOURS.len()];
    }
    all
}
