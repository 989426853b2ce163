//! What is asked of the drive: fio job files, block traces, generators and databases' logs.
//!
//! A [`Workload`] is a list of [`Job`]s. Each job is a state machine without a clock: the runner
//! asks [`Job::next`] what the job wants to do at an instant, submits what it is given, and tells
//! it of every completion through [`Job::complete`]. Nothing here knows the device model; only its
//! request types.

use lodger_core::{Completion, Op, Request, Status, WindowCall, WindowCompletion};

pub mod error;
pub mod fio;
pub mod live;
pub mod logging;
mod near;
pub mod trace;

pub use error::{Place, WorkloadError};

/// What a job wants to do at a given instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Submit this request now, then ask again.
    Submit(Request),
    /// Make this call of the byte window now, on this CPU, then ask again.
    Call {
        /// CPU of the host that calls.
        cpu: u16,
        /// The call.
        call: WindowCall,
    },
    /// Take so many of the job's completions that have [arrived](Job::arrived), the first of them, as completed now, then
    /// ask again.
    Reap(u32),
    /// Nothing before this instant (picoseconds); ask again then, or after a completion.
    At(u64),
    /// Nothing until one of the job's own requests completes, or another job of its flow does something.
    Blocked,
    /// Everything was issued and completed.
    Done,
}

/// How a request counts in its job's statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// By itself.
    Yes,
    /// Not at all: the flush at the end of a pass (fio's `end_fsync`).
    No,
    /// Only together with the flush that follows.
    Head,
    /// Together with the request before: the flush that Linux adds to a write with `O_SYNC`.
    Tail,
}

/// A set of jobs to run against one drive.
#[derive(Debug)]
pub struct Workload {
    /// What it was taken for, for the user: `fio job file`, `MSR Cambridge trace, ...`.
    pub description: String,
    /// In the order of the file.
    pub jobs: Vec<Job>,
}

/// One job (for fio: one clone of `numjobs`), or one trace.
#[derive(Debug)]
pub struct Job {
    /// fio's `jobname`.
    pub name: String,
    /// fio's `groupid`: a new group starts at every stonewall (and `new_group`).
    pub group: u32,
    /// Jobs of stage n start when every job of stage n-1 is done (fio's `stonewall`).
    pub stage: u32,
    /// Places of the jobs that must be done before it starts, all of its own stage or an earlier one (fio's `wait_for`).
    pub after: Vec<usize>,
    /// What else ends once this job is done (fio's `exitall` and `exit_what`).
    pub ends: Option<Ends>,
    /// What else ends if it has [failed](Job::failure) (fio's `exitall_on_error`).
    pub ends_in_error: Option<Ends>,
    /// It ends once its rate keeps still, with its group if that is reported as one (fio's `steadystate`).
    pub steady: Option<fio::Steady>,
    /// Reported as one with its group (fio's `group_reporting`).
    pub group_reporting: bool,
    /// Options in the file's order, as fio echoes them in `job options`.
    pub options: Vec<(String, String)>,
    /// Options from `[global]`, as fio echoes them in `global options`.
    pub global_options: Vec<(String, String)>,
    /// Percentiles to report, in per cent, ascending (fio's `percentile_list`).
    pub percentiles: Vec<f64>,
    /// Largest number of requests in flight (fio's `iodepth`); a trace replayed by time has no
    /// bound of its own and says 0.
    pub queue_depth: u32,
    /// Completions of requests submitted before this much time has passed since the job's start
    /// are not counted (fio's `ramp_time`), picoseconds.
    pub ramp_ps: u64,
    /// Number of requests this job will issue, where it is known beforehand (for progress).
    pub requests_expected: Option<u64>,
    /// What the user should hear of it.
    pub note: Option<String>,
    /// Log files that it asks for (fio's `write_lat_log` and its like).
    pub logs: Option<Box<fio::Logs>>,
    /// How long its requests took when they were recorded, of a trace that says so.
    pub recorded: Option<Box<trace::Recorded>>,
    /// Where the requests come from.
    pub source: Source,
}

/// What ends with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// The jobs of its group, those yet to start among them.
    Group,
    /// Every job that runs; later stages follow.
    Running,
    /// Every job, now and later.
    All,
}

/// Where a job's requests come from.
#[derive(Debug)]
pub enum Source {
    /// Generated as fio would.
    Fio(Box<fio::Generator>),
    /// Replayed from a trace.
    Trace(Box<trace::Replay>),
    /// A database's log.
    Logging(Box<logging::Model>),
}

impl Job {
    /// What the job wants to do at `now_ps`. The first call is the job's start.
    pub fn next(&mut self, now_ps: u64) -> Next {
        match &mut self.source {
            Source::Fio(generator) => generator.next(now_ps),
            Source::Trace(replay) => replay.next(now_ps),
            Source::Logging(model) => model.next(now_ps),
        }
    }

    /// Submits nothing more; what is in flight completes. One that has not started is done.
    pub fn stop(&mut self) {
        match &mut self.source {
            Source::Fio(generator) => generator.stop(),
            Source::Trace(replay) => replay.stop(),
            // Nothing that ends others stands beside a database.
            Source::Logging(_) => {}
        }
    }

    /// What is known at the end of a trace that was read while it was replayed; an error if it could not be read to its end.
    pub fn ending(&mut self) -> Option<Result<trace::Ending, WorkloadError>> {
        match &mut self.source {
            Source::Trace(replay) => replay.ending(),
            Source::Fio(_) | Source::Logging(_) => None,
        }
    }

    /// The flow that the job belongs to, if any: what one of its jobs submits may let others go on (fio's `flow_id`).
    #[must_use]
    pub fn flow(&self) -> Option<u64> {
        match &self.source {
            Source::Fio(generator) => generator.flow(),
            Source::Trace(_) | Source::Logging(_) => None,
        }
    }

    /// The latency that it is to keep, the depth that does, and whether none did (fio's `latency_target`).
    #[must_use]
    pub fn latency(&self) -> Option<(fio::LatencyGoal, u32, bool)> {
        match &self.source {
            Source::Fio(generator) => generator.latency(),
            Source::Trace(_) | Source::Logging(_) => None,
        }
    }

    /// What the drive said to the request that ended the job (fio's `continue_on_error`), if one did.
    #[must_use]
    pub fn failure(&self) -> Option<Status> {
        match &self.source {
            Source::Fio(generator) => generator.failure(),
            Source::Trace(_) | Source::Logging(_) => None,
        }
    }

    /// Whether it was asked to go on after errors of some kind.
    #[must_use]
    pub fn survives_errors(&self) -> bool {
        match &self.source {
            Source::Fio(generator) => generator.survives_errors(),
            Source::Trace(_) | Source::Logging(_) => false,
        }
    }

    /// What is to end with the job, as it is done.
    #[must_use]
    pub fn ends_now(&self) -> Option<Ends> {
        self.ends.or(self.failure().and(self.ends_in_error))
    }

    /// How long the job runs from its stage's start, if its runtime bounds that, picoseconds.
    #[must_use]
    pub fn runs_ps(&self) -> Option<u64> {
        match &self.source {
            Source::Fio(generator) => generator.runs_ps(),
            Source::Trace(_) | Source::Logging(_) => None,
        }
    }

    /// How the request submitted last counts.
    #[inline]
    #[must_use]
    pub fn counting(&self, op: Op) -> Counting {
        match &self.source {
            Source::Fio(generator) => generator.counting(op),
            Source::Trace(_) | Source::Logging(_) => Counting::Yes,
        }
    }

    /// How a request counts that completes now and was not told of yet: a write that failed by itself, as no flush follows.
    #[inline]
    #[must_use]
    pub fn counted(&self, completion: &Completion) -> Counting {
        match self.counting(completion.op) {
            Counting::Head if completion.status != Status::Success => Counting::Yes,
            counting => counting,
        }
    }

    /// Whether the job takes the completion of the request submitted last when it looks: it is told that it has
    /// [arrived](Self::arrived), and later asks to [take](Next::Reap) it.
    #[inline]
    #[must_use]
    pub fn takes_later(&self, op: Op) -> bool {
        match &self.source {
            Source::Fio(generator) => generator.takes_later(op),
            Source::Trace(_) | Source::Logging(_) => false,
        }
    }

    /// Tells the job that a completion has arrived that it takes later.
    pub fn arrived(&mut self) {
        if let Source::Fio(generator) = &mut self.source {
            generator.arrived();
        }
    }

    /// Whether the job is past its work and reads back what it has written (fio's `verify`, or a log's recovery).
    #[inline]
    #[must_use]
    pub fn is_reading_back(&self) -> bool {
        match &self.source {
            Source::Fio(generator) => generator.is_reading_back(),
            Source::Logging(model) => model.is_recovering(),
            Source::Trace(_) => false,
        }
    }

    /// Tells the job that one of its requests has completed. Called at the completion's instant.
    pub fn complete(&mut self, completion: &Completion) {
        match &mut self.source {
            Source::Fio(generator) => generator.complete(completion),
            Source::Trace(replay) => replay.complete(completion),
            Source::Logging(model) => model.complete(completion),
        }
    }

    /// Tells the job that one of its calls of the byte window is done. Called at that instant.
    pub fn called(&mut self, completion: &WindowCompletion) {
        if let Source::Logging(model) = &mut self.source {
            model.called(completion);
        }
    }
}
