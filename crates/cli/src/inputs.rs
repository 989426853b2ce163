//! From what was typed to a drive and a workload.

use crate::args::{FioArgs, FitArg, ReplayArg, RunArgs, TraceArgs, TraceReadArgs};
use crate::error::Error;
use crate::interrupt::{self, Interruptible};
use crate::progress::Meter;
use crate::used;
use lodger_core::spec::DriveSpec;
use lodger_run::{
    Drive, Files, HmbChoice, Replay, RunConfig, TraceOptions, Workload, WorkloadFile,
};
use lodger_workload::WorkloadError;
use lodger_workload::live::Reader;
use lodger_workload::trace::{self, DeviceChoice, Fit};
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

/// Files are opened so that the user can stop the wait for them, and none is read that is also written.
#[must_use]
pub fn files() -> Files {
    Files::opened_by(open)
}

/// A trace that is simulated while it is read.
///
/// # Errors
/// If it cannot be read or understood, or is no trace.
pub fn streamed(path: &Path, args: &TraceArgs, spec: &DriveSpec) -> Result<Workload, Error> {
    // How far the simulation has come is shown, not how far the file was read.
    let files = Files::opened_by(|path| open_with(path, false));
    files.stream(path, &trace_options(args)?, spec.capacity_bytes)
}

fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    open_with(path, true)
}

fn open_with(path: &Path, shows_progress: bool) -> io::Result<Box<dyn Read>> {
    if path == Path::new("-") {
        if let Ok(metadata) = std::fs::metadata("/dev/stdin") {
            used::input(&metadata);
        }
        return Ok(Box::new(Interruptible(interrupt::patient(|| {
            Ok(io::stdin())
        }))));
    }
    let metadata = std::fs::metadata(path)?;
    used::input(&metadata);
    if metadata.is_file() {
        let file = File::open(path)?;
        if !shows_progress {
            return Ok(Box::new(Interruptible(file)));
        }
        let file = Metered {
            file,
            bytes: metadata.len(),
            read: 0,
            shown: path.display().to_string(),
            meter: Meter::new(),
        };
        return Ok(Box::new(Interruptible(file)));
    }
    let path = path.to_owned();
    let file = interrupt::patient(move || File::open(path));
    Ok(Box::new(Interruptible(file)))
}

/// A file whose reading is shown where it takes long.
struct Metered {
    file: File,
    bytes: u64,
    read: u64,
    shown: String,
    meter: Meter,
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read(buffer)?;
        self.read += length as u64;
        let share = self.read as f64 / self.bytes.max(1) as f64;
        let shown = &self.shown;
        self.meter.show(Some(share), || format!("reading {shown}"));
        Ok(length)
    }
}

/// The drive called `name` in the collection, or the drive file of that name, changed by `sets`.
///
/// # Errors
/// If there is no such drive or file, or something is wrong with it or with `sets`.
pub fn drive(name: &str, sets: &[String]) -> Result<Drive, Error> {
    let sets = sets.iter().map(|set| key_value(set));
    let sets: Vec<(&str, &str)> = sets.collect::<Result<_, _>>()?;
    files().drive(name, &sets)
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

/// Everything about a run but the workload.
///
/// # Errors
/// If the drive or `sets` are wrong.
pub fn config(name: &str, hmb: HmbChoice, run: &RunArgs) -> Result<RunConfig, Error> {
    Ok(RunConfig {
        drive: drive(name, &run.sets)?,
        hmb,
        precondition: run.precondition.into(),
        seed: run.seed,
    })
}

/// Reads a job file, a trace or a model of database logging; `-` is standard input.
///
/// # Errors
/// If it cannot be read or understood, or options for traces are given with another workload.
pub fn workload(path: &Path, args: &TraceArgs) -> Result<WorkloadFile, Error> {
    files().workload(path, &trace_options(args)?)
}

/// The same of several job files, and of jobs on the command line.
///
/// # Errors
/// As [`workload`], or if there are several workloads and one is no job file.
pub fn workloads(
    paths: &[PathBuf],
    fio: &FioArgs,
    args: &TraceArgs,
) -> Result<WorkloadFile, Error> {
    let mut all = paths.iter().map(|path| workload(path, args));
    let mut line = fio.line();
    let first = match all.next() {
        Some(first) => first?,
        None => {
            // Nothing is replayed: given before the first `--name`, it is of all jobs, as any option of fio's.
            let mut options = trace_options(args)?;
            if let Some(depth) = options.iodepth.take() {
                line.insert(0, ("iodepth".to_owned(), Some(depth.to_string())));
            }
            files().command_line(&options)?
        }
    };
    let more = all.collect::<Result<_, _>>()?;
    first.with_beside(more, line, fio.sections.clone())
}

/// What messages call the workloads.
#[must_use]
pub fn named(workloads: &[PathBuf]) -> String {
    let names = workloads.iter().map(|path| path.display().to_string());
    names.collect::<Vec<_>>().join(", ")
}

/// What a page calls several workloads.
#[must_use]
pub fn all_shown(workloads: &[PathBuf]) -> String {
    let names: Vec<String> = workloads.iter().map(|path| shown(path)).collect();
    match names.is_empty() {
        true => "a workload".to_owned(),
        false => names.join(", "),
    }
}

/// What a page calls a workload.
#[must_use]
pub fn shown(workload: &Path) -> String {
    let name = workload.file_name().unwrap_or_default().to_string_lossy();
    match name.as_ref() {
        "-" => "a workload".to_owned(),
        name => name.to_owned(),
    }
}

/// A recording of a live drive, if that is what the file is.
///
/// # Errors
/// If it cannot be read, or options for traces are given.
pub fn recording(path: &Path, args: &TraceArgs) -> Result<Option<Reader<Box<dyn BufRead>>>, Error> {
    // Standard input, whatever files have that name.
    if path == Path::new("-") {
        return Ok(None);
    }
    files().recording(path, &trace_options(args)?)
}

fn trace_options(args: &TraceArgs) -> Result<TraceOptions, Error> {
    Ok(TraceOptions {
        replay: args.replay.map(|replay| match replay {
            ReplayArg::Timed => Replay::Timed,
            ReplayArg::Closed => Replay::Closed,
        }),
        iodepth: args.iodepth,
        fit: args.fit.map(|fit| match fit {
            FitArg::Error => Fit::Error,
            FitArg::Wrap => Fit::Wrap,
            FitArg::Scale => Fit::Scale,
        }),
        read: read_options(&args.read)?,
    })
}

/// What the options say about reading a trace.
///
/// # Errors
/// If there is no such format or unit.
pub fn read_options(args: &TraceReadArgs) -> Result<trace::Options, WorkloadError> {
    Ok(trace::Options {
        format: args.format.as_deref().map(str::parse).transpose()?,
        device: DeviceChoice::typed(args.device.as_deref()),
        time_unit: args.time_unit.as_deref().map(str::parse).transpose()?,
        action: args.action,
        skip_malformed: args.skip_malformed,
        ..trace::Options::default()
    })
}
