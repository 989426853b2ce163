//! Workloads as they are read, before they are fitted to a drive.

use crate::error::Error;
use crate::files::{Files, text_of};
use crate::logging::{self, LoggingChoice, Target};
use lodger_workload::fio::Beside;
use lodger_workload::live::{self, Reader};
use lodger_workload::trace::{self, Description, Fit, Mode, Trace};
use lodger_workload::{Workload, WorkloadError, fio};
use std::io::BufRead;
use std::path::Path;

/// A workload as it was read, before it is fitted to a drive: it can be run many times.
#[derive(Clone, Debug)]
pub enum WorkloadFile {
    /// A fio job file.
    Fio {
        /// Its name, as given.
        name: String,
        /// Its text.
        text: String,
        /// How the files that it includes are read.
        files: Files,
        /// What is said beside it: options of a command line, further files.
        beside: Beside,
    },
    /// A database's log.
    Logging {
        /// The file's name, as given.
        name: String,
        /// Its text.
        text: String,
        /// What is chosen instead of what it says.
        choice: LoggingChoice,
        /// How the captured distributions that it names are read.
        files: Files,
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

/// Said where a job file's logs are not written.
const NO_LOGS: &str = "the log files that the job file asks for (`write_lat_log` and its like) are not written: \
                       `lodger simulate` writes them";

/// What the user should hear of its jobs; what several clones say alike, once.
fn notes(workload: &Workload) -> Vec<String> {
    let mut notes: Vec<String> = workload
        .jobs
        .iter()
        .filter_map(|job| job.note.clone())
        .collect();
    notes.dedup();
    notes
}

/// When the requests of a trace are submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// At the recorded instants.
    Timed,
    /// As fast as the drive takes them.
    Closed,
}

/// How a trace is read and replayed; wrong on any other workload, which says all of this itself. What
/// is not given is decided by the trace.
#[derive(Clone, Debug, Default)]
pub struct TraceOptions {
    /// When its requests are submitted; timed if not given.
    pub replay: Option<Replay>,
    /// Requests in flight of a closed replay.
    pub iodepth: Option<u32>,
    /// What to do about addresses beyond the drive; an error if not given.
    pub fit: Option<Fit>,
    /// How the file is read.
    pub read: trace::Options,
}

impl WorkloadFile {
    /// The text of a fio job file. `name` is what messages call it.
    #[must_use]
    pub fn fio(name: impl Into<String>, text: impl Into<String>) -> Self {
        WorkloadFile::Fio {
            name: name.into(),
            text: text.into(),
            files: Files::default(),
            beside: Beside::default(),
        }
    }

    /// The text of a model of database logging. `name` is what messages call it.
    #[must_use]
    pub fn logging(name: impl Into<String>, text: impl Into<String>) -> Self {
        WorkloadFile::Logging {
            name: name.into(),
            text: text.into(),
            choice: LoggingChoice::default(),
            files: Files::default(),
        }
    }

    /// Reads a job file, a trace or a model of database logging; `-` is standard input.
    ///
    /// # Errors
    /// If it cannot be read or understood, or options for traces are given with another workload.
    pub fn open(path: &Path, options: &TraceOptions) -> Result<Self, Error> {
        Files::default().workload(path, options)
    }

    /// The same, with what is chosen instead of what the file says.
    ///
    /// # Errors
    /// If something is chosen, and this is no logging model.
    pub fn choose(mut self, chosen: LoggingChoice) -> Result<Self, Error> {
        let is = match &mut self {
            WorkloadFile::Logging { choice, .. } => {
                *choice = chosen;
                return Ok(self);
            }
            _ if chosen == LoggingChoice::default() => return Ok(self),
            WorkloadFile::Fio { name, .. } => format!("`{name}` is a fio job file"),
            WorkloadFile::Trace { trace, .. } => format!("`{}` is a trace", trace.name()),
        };
        let option = chosen.option().unwrap_or("transactions");
        let message = format!("`{option}` is for models of database logging, and {is}");
        Err(Error::input(message)
            .hint("leave it out, or give a model such as `workloads/logging/redis.toml`"))
    }

    /// The same with options of a command line, further job files and a choice of sections.
    ///
    /// # Errors
    /// If there are any, and this or one of the others is no fio job file.
    pub fn with_beside(
        mut self,
        more: Vec<WorkloadFile>,
        line: Vec<(String, Option<String>)>,
        sections: Vec<String>,
    ) -> Result<Self, Error> {
        if more.is_empty() && line.is_empty() && sections.is_empty() {
            return Ok(self);
        }
        let no_jobs = |what: &str| {
            let message = format!(
                "jobs on the command line, `--section` and several files are for fio job files: {what} is none"
            );
            Error::input(message).hint("run it by itself")
        };
        let mut others = Vec::new();
        for file in more {
            match file {
                WorkloadFile::Fio { name, text, .. } => others.push((name, text)),
                other => return Err(no_jobs(&other.shown())),
            }
        }
        let WorkloadFile::Fio { beside, .. } = &mut self else {
            return Err(no_jobs(&self.shown()));
        };
        *beside = Beside {
            line,
            files: others,
            sections,
        };
        Ok(self)
    }

    /// A model of database logging.
    #[must_use]
    pub fn is_logging(&self) -> bool {
        matches!(self, WorkloadFile::Logging { .. })
    }

    fn shown(&self) -> String {
        match self {
            WorkloadFile::Fio { name, .. } | WorkloadFile::Logging { name, .. } => {
                format!("`{name}`")
            }
            WorkloadFile::Trace { .. } => "a trace".to_owned(),
        }
    }

    /// What the user should hear about what was read, a line each.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        match self {
            WorkloadFile::Fio { .. } | WorkloadFile::Logging { .. } => Vec::new(),
            WorkloadFile::Trace { description, .. } => {
                let mut notes = vec![description.summary.clone()];
                notes.extend(description.notes.iter().cloned());
                notes
            }
        }
    }

    /// The workload for a drive, and what had to be done to make it fit. For runs that write no logs: who does
    /// takes [`WorkloadFile::into_workload`].
    ///
    /// # Errors
    /// If it does not fit the drive, or the file is wrong.
    pub fn workload(
        &self,
        drive: impl Into<Target>,
        seed: u64,
    ) -> Result<(Workload, Vec<String>), Error> {
        let target = drive.into();
        match self {
            WorkloadFile::Fio {
                name,
                text,
                files,
                beside,
            } => {
                let workload = parse_fio(name, (text, beside), *files, target.bytes, seed)?;
                let mut notes = notes(&workload);
                if workload.jobs.iter().any(|job| job.logs.is_some()) {
                    notes.push(NO_LOGS.to_owned());
                }
                Ok((workload, notes))
            }
            WorkloadFile::Logging {
                name,
                text,
                choice,
                files,
            } => {
                let workload = logging::parse(name, text, *files, *choice, target, seed)?;
                Ok((workload, Vec::new()))
            }
            WorkloadFile::Trace {
                trace, fit, mode, ..
            } => fit_trace(trace.clone(), target.bytes, *fit, *mode),
        }
    }

    /// The same, the last time: a trace is not copied. The log files that a job file asks for are then for the caller
    /// to write ([`crate::FioLogs`]).
    ///
    /// # Errors
    /// If it does not fit the drive, or the file is wrong.
    pub fn into_workload(
        self,
        drive: impl Into<Target>,
        seed: u64,
    ) -> Result<(Workload, Vec<String>), Error> {
        let target = drive.into();
        match self {
            WorkloadFile::Trace {
                trace, fit, mode, ..
            } => fit_trace(trace, target.bytes, fit, mode),
            WorkloadFile::Fio {
                name,
                text,
                files,
                beside,
            } => {
                let workload = parse_fio(&name, (&text, &beside), files, target.bytes, seed)?;
                let notes = notes(&workload);
                Ok((workload, notes))
            }
            WorkloadFile::Logging { .. } => self.workload(target, seed),
        }
    }
}

impl Files {
    /// As [`WorkloadFile::open`].
    ///
    /// # Errors
    /// If it cannot be read or understood, or options for traces are given with another workload.
    pub fn workload(self, path: &Path, options: &TraceOptions) -> Result<WorkloadFile, Error> {
        let name = path.display().to_string();
        let (mut reader, head) = self.head(path, "workload")?;
        if is_logging_file(path, &head) {
            refuse_trace_options(options, &format!("`{name}` is a logging model"))?;
            let text = text_of(&mut reader, &name, "logging model")?;
            return Ok(WorkloadFile::Logging {
                name,
                text,
                choice: LoggingChoice::default(),
                files: self,
            });
        }
        if is_job_file(path, &head) {
            refuse_trace_options(options, &format!("`{name}` is a fio job file"))?;
            let text = text_of(&mut reader, &name, "fio job file")?;
            return Ok(WorkloadFile::Fio {
                name,
                text,
                files: self,
                beside: Beside::default(),
            });
        }
        refuse_recording(&head, &name)?;
        let mode = mode(options)?;
        let (trace, description) = trace::load(reader, &name, &options.read)?;
        Ok(WorkloadFile::Trace {
            trace,
            description,
            fit: options.fit.unwrap_or(Fit::Error),
            mode,
        })
    }

    /// A trace as a workload for a drive of `drive_bytes`, simulated while it is read: its length takes no memory, and what is
    /// known only at its end the result's notes say. It must be in order of time, of one device or of one that is named.
    ///
    /// # Errors
    /// If it cannot be read or understood, or is no trace.
    pub fn stream(
        self,
        path: &Path,
        options: &TraceOptions,
        drive_bytes: u64,
    ) -> Result<Workload, Error> {
        let name = path.display().to_string();
        let file = path.to_owned();
        let open = move || {
            let reader = self.trace_reader(&file);
            reader.map_err(|error| WorkloadError {
                message: error.message,
                place: None,
                hint: error.hint,
            })
        };
        let fit = options.fit.unwrap_or(Fit::Error);
        let read = options.read.clone();
        Ok(trace::stream(
            open,
            &name,
            read,
            (drive_bytes, fit),
            mode(options)?,
        )?)
    }

    /// Jobs that stand on a command line alone ([`WorkloadFile::with_beside`] has them).
    ///
    /// # Errors
    /// If options for traces are given.
    pub fn command_line(self, options: &TraceOptions) -> Result<WorkloadFile, Error> {
        if let Some(option) = option_given(options) {
            let message = format!("`{option}` is for traces, and the command line has fio jobs");
            return Err(Error::input(message).hint("leave it out, or name the trace's file"));
        }
        Ok(WorkloadFile::Fio {
            name: "command line".to_owned(),
            text: String::new(),
            files: self,
            beside: Beside::default(),
        })
    }

    /// A recording of a live drive, if that is what the file is. Only a regular file is looked at.
    ///
    /// # Errors
    /// If it cannot be read, or options for traces are given.
    pub fn recording(
        self,
        path: &Path,
        options: &TraceOptions,
    ) -> Result<Option<Reader<Box<dyn BufRead>>>, Error> {
        if !std::fs::metadata(path).is_ok_and(|found| found.is_file()) {
            return Ok(None);
        }
        let (reader, head) = self.head(path, "workload")?;
        if !live::is_recording(&head) {
            return Ok(None);
        }
        let name = path.display().to_string();
        let is = format!("`{name}` is a recording of a live drive");
        refuse_trace_options(options, &is)?;
        crate::replay::open(reader, &name).map(Some)
    }

    /// Reads a trace, to look at or to convert.
    ///
    /// # Errors
    /// If it cannot be read or understood.
    pub fn trace(
        self,
        path: &Path,
        options: &trace::Options,
    ) -> Result<(Trace, Description), Error> {
        let name = path.display().to_string();
        Ok(trace::load(self.trace_reader(path)?, &name, options)?)
    }

    fn trace_reader(self, path: &Path) -> Result<Box<dyn BufRead>, Error> {
        let name = path.display();
        let (reader, head) = self.head(path, "trace")?;
        let is = match (is_logging_file(path, &head), is_job_file(path, &head)) {
            (true, _) => Some("logging model"),
            (false, true) => Some("fio job file"),
            (false, false) => None,
        };
        if let Some(is) = is {
            let message = format!("`{name}` is a {is}, not a trace");
            return Err(Error::input(message).hint(format!(
                "`lodger simulate {name} --drive rc100-480` runs it"
            )));
        }
        refuse_recording(&head, &name.to_string())?;
        Ok(reader)
    }
}

fn parse_fio(
    name: &str,
    (text, beside): (&str, &Beside),
    files: Files,
    drive_bytes: u64,
    seed: u64,
) -> Result<Workload, Error> {
    let context = fio::Context {
        file_name: name,
        env: &|variable| std::env::var(variable).ok(),
        include: &|file| files.text_within(Path::new(file), "included file"),
        drive_bytes,
        seed,
    };
    Ok(fio::parse_beside(text, beside, &context)?)
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

/// A recording of a live drive is no trace of what was asked of some drive.
fn refuse_recording(head: &[u8], name: &str) -> Result<(), Error> {
    if !live::is_recording(head) {
        return Ok(());
    }
    let message = format!("`{name}` is a recording of a live drive");
    Err(Error::input(message)
        .hint("`lodger simulate FILE` does it again, on the drive that was recorded, and nothing else takes it; it cannot come from standard input"))
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

fn mode(options: &TraceOptions) -> Result<Mode, Error> {
    match (options.replay, options.iodepth) {
        (Some(Replay::Closed), depth) => Ok(Mode::Closed {
            queue_depth: depth.unwrap_or(trace::CLOSED_QUEUE_DEPTH),
        }),
        (_, Some(_)) => Err(Error::input(
            "`--iodepth` needs `--replay closed`: a timed replay submits at the recorded instants",
        )
        .hint("add `--replay closed`, or leave `--iodepth` out")),
        (_, None) => Ok(Mode::Timed),
    }
}

/// The first option for traces that is given.
fn option_given(options: &TraceOptions) -> Option<&'static str> {
    let read = &options.read;
    let given = [
        (options.replay.is_some(), "--replay"),
        (options.iodepth.is_some(), "--iodepth"),
        (options.fit.is_some(), "--fit"),
        (read.format.is_some(), "--format"),
        (read.device != trace::DeviceChoice::Busiest, "--device"),
        (read.time_unit.is_some(), "--time-unit"),
        (read.action.is_some(), "--action"),
        (read.skip_malformed, "--skip-malformed"),
    ];
    let first = given.iter().find(|(given, _)| *given);
    first.map(|(_, option)| *option)
}

/// Options that would silently do nothing are refused; `is` says what the file is.
fn refuse_trace_options(options: &TraceOptions, is: &str) -> Result<(), Error> {
    match option_given(options) {
        None => Ok(()),
        Some(option) => {
            let message = format!("`{option}` is for traces, and {is}");
            Err(Error::input(message).hint("the file says all of this itself"))
        }
    }
}
