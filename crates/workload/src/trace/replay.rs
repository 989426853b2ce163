//! A trace as a job: its requests submitted at their instants, or as fast as the drive takes them.

use super::Trace;
use super::record::Packed;
use super::stream::{Ending, Incoming};
use crate::{Job, Next, Source, Workload, WorkloadError};
use lodger_core::{Completion, Request};

/// Requests in flight in a closed replay, unless the user says otherwise.
pub const CLOSED_QUEUE_DEPTH: u32 = 32;

/// Percentiles reported for a trace, in per cent: fio's default list.
pub const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

/// When the requests of a trace are submitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// At their recorded instants after the job's start, however many are in flight.
    #[default]
    Timed,
    /// As soon as fewer than `queue_depth` are in flight; recorded times are ignored.
    Closed {
        /// Requests in flight.
        queue_depth: u32,
    },
}

/// State machine of one replayed trace.
///
/// Requests are submitted in order of time on queue 0, tagged by their number modulo 2^32. A
/// flush is a request like any other: it is submitted in order, counts as one in flight, and
/// neither waits for the requests before it nor holds up those after it. NVMe gives it no more
/// than that (a Flush covers the commands completed before it), and what the traced program
/// waited for is not in the trace; replay by time keeps the waits that were recorded.
#[derive(Debug)]
pub struct Replay {
    /// All requests, or those that have been read and not been submitted yet.
    records: Vec<Packed>,
    /// The next of them to submit.
    next: usize,
    /// Where the others come from.
    incoming: Option<Box<Incoming>>,
    submitted: u32,
    in_flight: u32,
    /// Requests wait for their instants.
    timed: bool,
    /// Most in flight; 0 for no bound.
    queue_depth: u32,
    /// The instant of the first call.
    start_ps: Option<u64>,
}

impl Replay {
    fn new(records: Vec<Packed>, queue_depth: u32) -> Self {
        Self {
            records,
            next: 0,
            incoming: None,
            submitted: 0,
            in_flight: 0,
            timed: queue_depth == 0,
            queue_depth,
            start_ps: None,
        }
    }

    /// A replay with at most so many requests in flight, at their recorded instants or not; a request whose instant
    /// passes while the queue is full follows as soon as it may.
    pub(crate) fn bounded(trace: Trace, timed: bool, queue_depth: u32) -> Self {
        Self {
            timed,
            ..Self::new(trace.records, queue_depth)
        }
    }

    /// One of requests that are being read.
    pub(super) fn streamed(first: Vec<Packed>, incoming: Incoming) -> Self {
        Self {
            incoming: Some(Box::new(incoming)),
            ..Self::new(first, 0)
        }
    }

    /// Submits nothing more.
    pub(crate) fn stop(&mut self) {
        self.next = self.records.len();
        self.incoming = None;
    }

    /// What is known at the end of a trace that was read meanwhile.
    pub(crate) fn ending(&mut self) -> Option<Result<Ending, WorkloadError>> {
        self.incoming.as_mut()?.ending()
    }

    /// The next request, if there is one.
    #[inline]
    fn upcoming(&mut self) -> Option<Packed> {
        if self.next == self.records.len() {
            self.read_on();
        }
        self.records.get(self.next).copied()
    }

    #[cold]
    fn read_on(&mut self) {
        if let Some(incoming) = &mut self.incoming {
            self.records = incoming.next();
            self.next = 0;
        }
    }

    /// What the replay wants to do at `now_ps`. The first call is its start.
    #[inline]
    pub fn next(&mut self, now_ps: u64) -> Next {
        let Some(packed) = self.upcoming() else {
            return if self.in_flight == 0 {
                Next::Done
            } else {
                Next::Blocked
            };
        };
        if self.queue_depth > 0 && self.in_flight >= self.queue_depth {
            return Next::Blocked;
        }
        if self.timed {
            let start_ps = *self.start_ps.get_or_insert(now_ps);
            let due_ps = start_ps.saturating_add(packed.time_ps);
            if due_ps > now_ps {
                return Next::At(due_ps);
            }
        }
        let tag = self.submitted;
        self.submitted = tag.wrapping_add(1);
        self.next += 1;
        self.in_flight += 1;
        Next::Submit(Request {
            tag,
            queue: 0,
            op: packed.op(),
            fua: packed.fua(),
            offset_bytes: packed.offset_bytes,
            length_bytes: packed.length_bytes(),
        })
    }

    /// One of the replay's requests has completed.
    #[inline]
    pub fn complete(&mut self, _completion: &Completion) {
        debug_assert!(self.in_flight > 0, "a completion nobody asked for");
        self.in_flight = self.in_flight.saturating_sub(1);
    }
}

impl Trace {
    /// The trace as a workload of one job. Make it fit the drive first: see [`Trace::fit`].
    ///
    /// # Errors
    /// If the queue depth of a closed replay is 0.
    pub fn into_workload(self, mode: Mode) -> Result<Workload, WorkloadError> {
        let requests = self.records.len() as u64;
        let replay = Replay::new(self.records, 0);
        let mut workload = replay.into_workload(&self.name, self.title, mode)?;
        let job = &mut workload.jobs[0];
        job.requests_expected = Some(requests);
        job.recorded = self.recorded;
        Ok(workload)
    }
}

impl Replay {
    /// The replay as a workload of one job.
    pub(super) fn into_workload(
        self,
        name: &str,
        title: String,
        mode: Mode,
    ) -> Result<Workload, WorkloadError> {
        let (queue_depth, how) = match mode {
            Mode::Timed => (0, "timed"),
            Mode::Closed { queue_depth: 0 } => {
                let message = "the queue depth of a closed replay must be at least 1, found 0";
                return Err(WorkloadError::new(message).hint("for example `--iodepth 32`"));
            }
            Mode::Closed { queue_depth } => (queue_depth, "closed"),
        };
        let job = Job {
            name: job_name(name),
            group: 0,
            stage: 0,
            after: Vec::new(),
            ends: None,
            ends_in_error: None,
            steady: None,
            group_reporting: false,
            options: vec![
                ("replay".to_owned(), how.to_owned()),
                ("iodepth".to_owned(), queue_depth.to_string()),
            ],
            global_options: Vec::new(),
            percentiles: PERCENTILES.to_vec(),
            queue_depth,
            ramp_ps: 0,
            requests_expected: None,
            note: None,
            logs: None,
            recorded: None,
            source: Source::Trace(Box::new(Self {
                timed: queue_depth == 0,
                queue_depth,
                ..self
            })),
        };
        Ok(Workload {
            description: title,
            jobs: vec![job],
        })
    }
}

/// The file's name without folders and last extension.
fn job_name(file: &str) -> String {
    let stem = std::path::Path::new(file).file_stem();
    match stem.map(|stem| stem.to_string_lossy()) {
        Some(stem) if stem != "-" => stem.into_owned(),
        _ => "trace".to_owned(),
    }
}
