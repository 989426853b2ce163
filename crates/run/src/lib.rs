//! A workload on a simulated drive: what a program needs to read both, run one on the other and say
//! what came of it.
//!
//! ```
//! use lodger_run::{Drive, RunConfig, WorkloadFile, report, run};
//!
//! let config = RunConfig::new(Drive::open("rc100-480", &[("nand.channels", "8")])?);
//! let job = "[job]\nrw=randread\nbs=4k\niodepth=8\nnumber_ios=1000";
//! let file = WorkloadFile::fio("job.fio", job);
//! let (workload, _notes) = file.workload(config.spec(), config.seed)?;
//! let result = run(&config, workload, &mut ())?;
//! assert_eq!(result.jobs[0].read.ios, 1000);
//! let json = report::json(report::Report { config: &config, result: &result }, false);
//! # assert!(json.starts_with('{'));
//! # Ok::<(), lodger_run::Error>(())
//! ```
//!
//! - [`Drive`]: a drive of the [collection](drives), or of a drive file, with changed values.
//! - [`WorkloadFile`]: a fio job file, a block trace or a model of database logging, before it is
//!   fitted to a drive.
//! - [`run`] with a [`RunConfig`] gives a [`RunResult`]; an [`Observer`] may watch and stop it.
//!   [`report`] tells it as fio does, for people and for programs.
//! - [`Timeline`]: an observer that tells what a run does over time.
//! - [`Session`]: a drive that is asked command by command, for experiments that decide what to ask
//!   next by what they have just heard. [`hmb_study`] and [`window_study`] are such experiments.
//! - [`advise`]: how much host memory is enough for a workload; [`window_advice`]: whether a byte window pays for a
//!   database's commits.
//!
//! Nothing here talks to a terminal, listens to signals or reads a drive's own bytes: the command
//! `lodger` and the Python package do that. A program with wishes of its own about how files are
//! opened says so with [`Files`].

pub mod advise;
mod breakdown;
mod config;
mod course;
pub mod drives;
mod error;
mod files;
mod fio_logs;
mod hmb;
pub mod hmb_study;
mod latency_log;
mod logging;
mod refused;
pub mod replay;
pub mod report;
mod runner;
mod session;
pub mod size;
mod state;
mod stats;
mod steady;
mod stopwatch;
pub mod timeline;
pub mod trace_events;
pub mod window_advice;
pub mod window_study;
mod workers;
mod workload_file;

pub use breakdown::{Breakdown, Recorder};
pub use config::RunConfig;
pub use course::{Beginning, Course};
pub use drives::Drive;
pub use error::{Error, ErrorKind};
pub use files::{Files, reason};
pub use fio_logs::FioLogs;
pub use hmb::{HmbChoice, HmbResult};
pub use latency_log::LatencyLog;
pub use logging::{LoggingChoice, LoggingResult, Target};
pub use runner::{Busy, DriveState, Observer, Progress, Ramp, RunResult, Worn, run, run_traced};
pub use session::{Command, Session};
pub use stats::{Direction, JobResult, SAMPLE_PS, Samples};
pub use steady::SteadyResult;
pub use timeline::Timeline;
pub use trace_events::TraceEvents;
pub use workers::with_workers;
pub use workload_file::{Replay, TraceOptions, WorkloadFile};

// What the types above are made of, so that one crate is enough to run a workload.
pub use lodger_core::{Completion, Op, Precondition, Request};
pub use lodger_workload::Workload;
