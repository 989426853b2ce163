//! From what was typed to a drive and a workload.

use crate::args::{FitArg, PreconditionArg, ReplayArg, RunArgs, TraceArgs, TraceReadArgs};
use crate::drives;
use crate::error::Error;
use crate::interrupt::{self, Interruptible};
use crate::logging::{self, Choice, Target};
use crate::run::{Drive, HmbChoice, RunConfig};
use crate::size;
use crate::used;
use lodger_core::Precondition;
use lodger_workload::fio;
use lodger_workload::trace::{self, Description, DeviceChoice, Fit, Mode, Trace};
use lodger_workload::{Workload, WorkloadError};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Longest job or drive file: far beyond any real one, and a wrong file is not read for minutes.
const TEXT_BYTES_MAX: u64 = 16 << 20;
/// What is looked at to tell a job file from a trace.
const HEAD_BYTES: usize = 64 << 10;

/// The drive called `name` in the collection, or the drive file of that name, changed by `sets`.
///
/// # Errors
/// If there is no such drive or file, or something is wrong with it or with `sets`.
pub fn drive(name: &str, sets: &[String]) -> Result<Drive, Error> {
    let sets = sets.iter().map(|set| key_value(set));
    let sets: Vec<(&str, &str)> = sets.collect::<Result<_, _>>()?;
    let parsed = match drives::load(name, &sets) {
        Some(parsed) => parsed?,
        None if looks_like_file(name) => {
            drives::parse(&read_text(Path::new(name), "drive file")?, name, &sets)?
        }
        None => return Err(unknown_drive(name)),
    };
    Ok(Drive {
        name: name.to_owned(),
        parsed,
    })
}

fn key_value(set: &str) -> Result<(&str, &str), Error> {
    match set.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key, value)),
        _ => {
            let message = format!("`--set` must be KEY=VALUE, found `{}`", set.escape_debug());
            Err(Error::input(message).hint("for example `--set nand.channels=8`"))
        }
    }
}

fn looks_like_file(name: &str) -> bool {
    name.contains(['/', '\\']) || name.ends_with(".toml") || Path::new(name).exists()
}

fn unknown_drive(name: &str) -> Error {
    let shown = name.escape_debug().to_string();
    let error = Error::input(format!(
        "no drive is called `{shown}`, and no file is either"
    ));
    let nearest = drives::names()
        .map(|known| (strsim::levenshtein(name, known), known))
        .min()
        .filter(|(edits, known)| *edits <= known.len() / 2);
    let all: Vec<_> = drives::names().collect();
    match nearest {
        Some((_, known)) => error.hint(format!(
            "did you mean `{known}`? `lodger drives list` shows all"
        )),
        None => error.hint(format!("the drives are {}", all.join(", "))),
    }
}

/// Opens a file for reading; a directory is an error here, not at the first read.
fn open(path: &Path, what: &str) -> Result<Box<dyn Read>, Error> {
    let shown = path.display();
    let failed = |error: io::Error| {
        let hint = match error.kind() {
            io::ErrorKind::NotFound => {
                "check the name; a relative one starts at the current directory"
            }
            _ => "check the file and its permissions",
        };
        let reason = reason(&error);
        Error::input(format!("cannot read the {what} `{shown}`: {reason}")).hint(hint)
    };
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if metadata.is_dir() {
        let message = format!("cannot read the {what} `{shown}`: it is a directory");
        return Err(Error::input(message).hint("name a file in it"));
    }
    used::input(&metadata);
    if metadata.is_file() {
        return Ok(Box::new(File::open(path).map_err(failed)?));
    }
    let path = path.to_owned();
    Ok(Box::new(interrupt::patient(move || File::open(path))))
}

/// What the system says, without its number.
#[must_use]
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => "unknown reason".to_owned(),
    }
}

/// The whole of a text file.
///
/// # Errors
/// If it cannot be read, is too long, or is not UTF-8.
pub fn read_text(path: &Path, what: &str) -> Result<String, Error> {
    let mut file = open(path, what)?;
    text_of(&mut file, &path.display().to_string(), what)
}

fn text_of(reader: &mut dyn Read, name: &str, what: &str) -> Result<String, Error> {
    let mut bytes: Vec<u8> = Vec::new();
    reader
        .take(TEXT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| {
            Error::input(format!(
                "cannot read the {what} `{name}`: {}",
                reason(&error)
            ))
        })?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        let message = format!(
            "`{name}` is longer than {} MiB: no {what}",
            TEXT_BYTES_MAX >> 20
        );
        return Err(Error::input(message).hint("a trace must not be called `.fio`"));
    }
    if bytes.starts_with(&BOM) {
        bytes.drain(..BOM.len());
    }
    refuse_utf16(&bytes, name, what)?;
    String::from_utf8(bytes).map_err(|error| {
        let bytes = error.as_bytes();
        let good = error.utf8_error().valid_up_to();
        let line = bytes[..good].iter().filter(|byte| **byte == b'\n').count() + 1;
        Error::input(format!("the {what} is not UTF-8 text ({name}:{line})"))
            .hint("is it the right file?")
    })
}

/// Editors on Windows begin UTF-8 with it.
const BOM: [u8; 3] = [0xef, 0xbb, 0xbf];

fn refuse_utf16(bytes: &[u8], name: &str, what: &str) -> Result<(), Error> {
    if !bytes.starts_with(&[0xff, 0xfe]) && !bytes.starts_with(&[0xfe, 0xff]) {
        return Ok(());
    }
    let message = format!("the {what} `{name}` begins with the byte order mark of UTF-16");
    Err(Error::input(message).hint("save it as UTF-8"))
}

/// What `--hmb`, the host's cap, and `--hmb-offer`, an exact amount, say.
///
/// # Errors
/// If both are given, or one is neither a size nor a word it knows.
pub fn hmb(cap: Option<&str>, offer: Option<&str>) -> Result<HmbChoice, Error> {
    match (cap.map(str::trim), offer) {
        (Some(_), Some(_)) => Err(Error::input("`--hmb` and `--hmb-offer` exclude each other")
            .hint("`--hmb` is the most that the host gives; `--hmb-offer` is given whatever the drive asks for")),
        (None, Some(offer)) => match size::parse("--hmb-offer", offer, None)? {
            0 => Ok(HmbChoice::Off),
            bytes => Ok(HmbChoice::Exactly(bytes)),
        },
        (None | Some("default"), None) => Ok(HmbChoice::Negotiated),
        (Some("off"), None) => Ok(HmbChoice::Off),
        (Some(size), None) => match size::parse("--hmb", size, Some("`off` or `default`"))? {
            0 => Ok(HmbChoice::Off),
            bytes => Ok(HmbChoice::AtMost(bytes)),
        },
    }
}

/// Everything about a run but the workload.
///
/// # Errors
/// If the drive or `sets` are wrong.
pub fn config(name: &str, hmb: HmbChoice, run: &RunArgs) -> Result<RunConfig, Error> {
    Ok(RunConfig {
        drive: drive(name, &run.sets)?,
        hmb,
        precondition: match run.precondition {
            PreconditionArg::None => Precondition::None,
            PreconditionArg::Sequential => Precondition::Sequential,
            PreconditionArg::Random => Precondition::Random,
        },
        seed: run.seed,
    })
}

/// A workload as it was read, before it is fitted to a drive: it can be run many times.
#[derive(Clone, Debug)]
pub enum Source {
    /// A fio job file.
    Fio {
        /// Its name, as given.
        name: String,
        /// Its text.
        text: String,
    },
    /// A database's log.
    Logging {
        /// The file's name, as given.
        name: String,
        /// Its text.
        text: String,
        /// What is chosen instead of what it says.
        choice: Choice,
    },
    /// A block trace.
    Trace {
        /// The trace.
        trace: Trace,
        /// What it was taken for.
        description: Description,
        /// What to do about addresses beyond the drive.
        fit: Fit,
        /// When its requests are submitted.
        mode: Mode,
    },
}

impl Source {
    /// Reads a job file or a trace; `-` is standard input.
    ///
    /// # Errors
    /// If it cannot be read or understood, or options for traces are given with a job file.
    pub fn open(path: &Path, args: &TraceArgs) -> Result<Self, Error> {
        let name = path.display().to_string();
        let (mut reader, head) = open_head(path, "workload")?;
        if is_logging_file(path, &head) {
            refuse_trace_options(args, &name, "logging model")?;
            let text = text_of(&mut reader, &name, "logging model")?;
            let choice = Choice::default();
            return Ok(Source::Logging { name, text, choice });
        }
        if is_job_file(path, &head) {
            refuse_trace_options(args, &name, "fio job file")?;
            let text = text_of(&mut reader, &name, "fio job file")?;
            return Ok(Source::Fio { name, text });
        }
        let mode = mode(args)?;
        let (trace, description) = trace::load(reader, &name, &read_options(&args.read)?)?;
        Ok(Source::Trace {
            trace,
            description,
            fit: match args.fit {
                None | Some(FitArg::Error) => Fit::Error,
                Some(FitArg::Wrap) => Fit::Wrap,
                Some(FitArg::Scale) => Fit::Scale,
            },
            mode,
        })
    }

    /// The same, with what is chosen instead of what the file says.
    ///
    /// # Errors
    /// If something is chosen, and this is no logging model.
    pub fn choose(mut self, chosen: Choice) -> Result<Self, Error> {
        match &mut self {
            Source::Logging { choice, .. } => *choice = chosen,
            _ if chosen == Choice::default() => {}
            _ => {
                let message = "`--commit` and `--clients` are for models of database logging";
                return Err(Error::input(message).hint("such as `workloads/logging/redis.toml`"));
            }
        }
        Ok(self)
    }

    /// What the user should hear about what was read, a line each.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        match self {
            Source::Fio { .. } | Source::Logging { .. } => Vec::new(),
            Source::Trace { description, .. } => {
                let mut notes = vec![description.summary.clone()];
                notes.extend(description.notes.iter().cloned());
                notes
            }
        }
    }

    /// The workload for a drive of `drive_bytes`, and what had to be done to make it fit.
    ///
    /// # Errors
    /// If it does not fit the drive, or the job file is wrong.
    pub fn workload(
        &self,
        drive: impl Into<Target>,
        seed: u64,
    ) -> Result<(Workload, Vec<String>), Error> {
        let target = drive.into();
        let drive_bytes = target.bytes;
        match self {
            Source::Fio { name, text } => parse_fio(name, text, drive_bytes, seed),
            Source::Logging { name, text, choice } => {
                let workload = logging::parse(name, text, *choice, target, seed)?;
                Ok((workload, Vec::new()))
            }
            Source::Trace {
                trace, fit, mode, ..
            } => fit_trace(trace.clone(), drive_bytes, *fit, *mode),
        }
    }

    /// The same, the last time: a trace is not copied.
    ///
    /// # Errors
    /// If it does not fit the drive, or the job file is wrong.
    pub fn into_workload(
        self,
        drive: impl Into<Target>,
        seed: u64,
    ) -> Result<(Workload, Vec<String>), Error> {
        let target = drive.into();
        match self {
            Source::Trace {
                trace, fit, mode, ..
            } => fit_trace(trace, target.bytes, fit, mode),
            _ => self.workload(target, seed),
        }
    }
}

fn parse_fio(
    name: &str,
    text: &str,
    drive_bytes: u64,
    seed: u64,
) -> Result<(Workload, Vec<String>), Error> {
    let context = fio::Context {
        file_name: name,
        env: &|variable| std::env::var(variable).ok(),
        include: &|file| {
            read_text(Path::new(file), "included file")
                .map_err(|error| io::Error::other(error.message))
        },
        drive_bytes,
        seed,
    };
    Ok((fio::parse(text, &context)?, Vec::new()))
}

fn fit_trace(
    mut trace: Trace,
    drive_bytes: u64,
    fit: Fit,
    mode: Mode,
) -> Result<(Workload, Vec<String>), Error> {
    let report = trace.fit(drive_bytes, fit)?;
    Ok((trace.into_workload(mode)?, report.notes))
}

/// Reads a trace for `lodger trace`.
///
/// # Errors
/// If it cannot be read or understood.
pub fn trace(path: &Path, args: &TraceReadArgs) -> Result<(Trace, Description), Error> {
    let name = path.display().to_string();
    let (reader, head) = open_head(path, "trace")?;
    if is_job_file(path, &head) {
        let message = format!("`{name}` is a fio job file, not a trace");
        return Err(Error::input(message).hint(format!(
            "`lodger simulate {name} --drive rc100-480` runs it"
        )));
    }
    Ok(trace::load(reader, &name, &read_options(args)?)?)
}

/// A reader of the whole file and a copy of its beginning.
fn open_head(path: &Path, what: &str) -> Result<(Box<dyn BufRead>, Vec<u8>), Error> {
    let mut file: Box<dyn Read> = if path == Path::new("-") {
        if let Ok(metadata) = std::fs::metadata("/dev/stdin") {
            used::input(&metadata);
        }
        Box::new(interrupt::patient(|| Ok(io::stdin())))
    } else {
        open(path, what)?
    };
    let mut head = Vec::new();
    let head_max = HEAD_BYTES as u64;
    (&mut file)
        .take(head_max)
        .read_to_end(&mut head)
        .map_err(|error| {
            let message = format!("cannot read `{}`: {}", path.display(), reason(&error));
            Error::input(message)
        })?;
    if head.starts_with(&BOM) {
        head.drain(..BOM.len());
    }
    refuse_utf16(&head, &path.display().to_string(), what)?;
    if head.is_empty() {
        let message = format!("the {what} `{}` is empty", path.display());
        return Err(Error::input(message).hint("give a fio job file or a block trace"));
    }
    let rest = BufReader::with_capacity(1 << 18, Interruptible(file));
    Ok((Box::new(io::Cursor::new(head.clone()).chain(rest)), head))
}

/// A logging model is TOML, and its first table is called so.
fn is_logging_file(path: &Path, head: &[u8]) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "toml")
        || first_section(head).is_some_and(|line| line == "[logging]")
}

/// A job file is called so, or its first line of weight is a section.
fn is_job_file(path: &Path, head: &[u8]) -> bool {
    if path.extension().is_some_and(|extension| extension == "fio") {
        return true;
    }
    first_section(head).is_some()
}

/// The first line of weight, if it is a section.
fn first_section(head: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(head);
    let first = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with(['#', ';']))?;
    (first.starts_with('[') && first.ends_with(']')).then(|| first.to_owned())
}

fn mode(args: &TraceArgs) -> Result<Mode, Error> {
    match (args.replay, args.iodepth) {
        (Some(ReplayArg::Closed), depth) => Ok(Mode::Closed {
            queue_depth: depth.unwrap_or(trace::CLOSED_QUEUE_DEPTH),
        }),
        (_, Some(_)) => Err(Error::input(
            "`--iodepth` needs `--replay closed`: a timed replay submits at the recorded instants",
        )
        .hint("add `--replay closed`, or leave `--iodepth` out")),
        (_, None) => Ok(Mode::Timed),
    }
}

/// Options that would silently do nothing are refused.
fn refuse_trace_options(args: &TraceArgs, name: &str, what: &str) -> Result<(), Error> {
    let read = &args.read;
    let given = [
        (args.replay.is_some(), "--replay"),
        (args.iodepth.is_some(), "--iodepth"),
        (args.fit.is_some(), "--fit"),
        (read.format.is_some(), "--format"),
        (read.device.is_some(), "--device"),
        (read.time_unit.is_some(), "--time-unit"),
        (read.action.is_some(), "--action"),
        (read.skip_malformed, "--skip-malformed"),
    ];
    match given.iter().find(|(given, _)| *given) {
        None => Ok(()),
        Some((_, option)) => {
            let message = format!("`{option}` is for traces, and `{name}` is a {what}");
            Err(Error::input(message).hint("the file says all of this itself"))
        }
    }
}

/// What the options say about reading a trace.
fn read_options(args: &TraceReadArgs) -> Result<trace::Options, WorkloadError> {
    Ok(trace::Options {
        format: args.format.as_deref().map(str::parse).transpose()?,
        device: match args.device.as_deref() {
            None => DeviceChoice::Busiest,
            Some("all") => DeviceChoice::All,
            Some(name) => DeviceChoice::Named(name.to_owned()),
        },
        time_unit: args.time_unit.as_deref().map(str::parse).transpose()?,
        action: args.action,
        skip_malformed: args.skip_malformed,
        ..trace::Options::default()
    })
}
