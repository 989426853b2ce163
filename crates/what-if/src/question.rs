//! What can be asked.

use lodger_run::{Drive, Error, Files, HmbChoice, Precondition, Progress, RunConfig};
use serde::Deserialize;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;

/// Most requests of one run: some seconds of work.
const REQUESTS_MAX: u64 = 2_000_000;

#[derive(Deserialize)]
#[serde(tag = "ask", rename_all = "lowercase")]
pub(crate) enum Question {
    About,
    Run(Run),
    Advise(Advise),
    Draw(Draw),
}

/// A drive and its host, as options of `lodger simulate` say them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Setup {
    /// `--drive`, a name of the collection.
    drive: String,
    /// `--set`, keys and values.
    #[serde(default)]
    sets: Vec<(String, String)>,
    /// `--hmb`.
    hmb: Option<String>,
    /// `--precondition`.
    #[serde(default)]
    precondition: Before,
    /// `--seed`.
    #[serde(default)]
    seed: u64,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Before {
    None,
    #[default]
    Sequential,
    Random,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Run {
    pub(crate) setup: Setup,
    /// Text of a fio job file.
    pub(crate) job: String,
    /// `--breakdown`.
    #[serde(default)]
    pub(crate) breakdown: bool,
    /// `--timeline`.
    #[serde(default)]
    pub(crate) timeline: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Advise {
    pub(crate) setup: Setup,
    /// What the trace is called.
    pub(crate) name: String,
    /// Its text.
    pub(crate) trace: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Draw {
    pub(crate) title: String,
    /// What there is to see.
    pub(crate) says: String,
    /// Names of the axes, ending with the unit.
    #[serde(default)]
    pub(crate) axes: (String, String),
    #[serde(default)]
    pub(crate) lines: Vec<Line>,
    #[serde(default)]
    pub(crate) marks: Vec<Mark>,
    /// Instead of lines.
    #[serde(default)]
    pub(crate) bars: Vec<Bar>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mark {
    pub(crate) at: f64,
    pub(crate) name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) value: String,
    /// Names and shares.
    pub(crate) parts: Vec<(String, f64)>,
}

impl Setup {
    /// # Errors
    /// If the drive, a value or the amount of host memory is wrong.
    pub(crate) fn config(&self) -> Result<RunConfig, Error> {
        let sets = self.sets.iter();
        let sets: Vec<(&str, &str)> = sets.map(|(key, value)| (&**key, &**value)).collect();
        Ok(RunConfig {
            drive: drive(&self.drive, &sets)?,
            hmb: HmbChoice::parse(self.hmb.as_deref(), None)?,
            precondition: match self.precondition {
                Before::None => Precondition::None,
                Before::Sequential => Precondition::Sequential,
                Before::Random => Precondition::Random,
            },
            seed: self.seed,
        })
    }
}

/// A drive of the collection.
pub(crate) fn drive(name: &str, sets: &[(&str, &str)]) -> Result<Drive, Error> {
    files().drive(name, sets)
}

/// A question holds all it speaks of: no file is opened for it.
pub(crate) fn files() -> Files {
    Files::opened_by(refuse)
}

fn refuse(_: &Path) -> io::Result<Box<dyn Read>> {
    let why = "a page reads no files";
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}

/// Ends a run that is too long for a page.
pub(crate) fn within_limits(progress: Progress) -> ControlFlow<()> {
    match progress.requests > REQUESTS_MAX {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

pub(crate) fn too_long() -> Error {
    let message = format!("the run has more than {REQUESTS_MAX} requests: too long for a page");
    Error::input(message).hint("`lodger simulate` has no such limit")
}
