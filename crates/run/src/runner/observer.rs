//! Those who watch a run.

use super::{Ramp, hmb_used_bytes};
use crate::config::Traced;
use lodger_core::nand::CellMode;
use lodger_core::observe::{Counters, PartsPs, Tracer};
use lodger_core::{Completion, Request};
use std::ops::ControlFlow;

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Requests completed.
    pub requests: u64,
    /// Requests in all, where that is known beforehand.
    pub expected: Option<u64>,
    /// Simulated time in all where the jobs' runtimes bound it, picoseconds.
    pub expected_ps: Option<u64>,
    /// Simulated time so far, picoseconds.
    pub simulated_ps: u64,
}

impl Progress {
    /// How much of the run is done, from 0 to 1, where its end is known.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        let (done, all) = match (self.expected, self.expected_ps) {
            (Some(all), _) => (self.requests, all),
            (None, Some(all_ps)) => (self.simulated_ps, all_ps),
            (None, None) => return None,
        };
        Some((done as f64 / all.max(1) as f64).min(1.0))
    }
}

/// Watches a run. Every method may be left as it is; none costs anything then.
pub trait Observer {
    /// The stage of job `job` begins, whose requests count that are submitted from `counted_from_ps` on, after its
    /// delay and its ramp.
    #[inline]
    fn begins(&mut self, job: usize, counted_from_ps: u64) {
        let _ = (job, counted_from_ps);
    }

    /// Job `job` (its place in the workload) submitted a request. What counts as a part of another request is
    /// not told.
    #[inline]
    fn submitted(&mut self, now_ps: u64, job: usize, request: &Request) {
        let _ = (now_ps, job, request);
    }

    /// A request of job `job` has completed.
    #[inline]
    fn completed(&mut self, job: usize, request: &Request, completion: &Completion) {
        let _ = (job, request, completion);
    }

    /// A request of job `job` counts, as [`crate::JobResult`] counts it: not in the job's ramp, and those that
    /// belong together as one.
    #[inline]
    fn counts(&mut self, job: usize, request: &Request, completion: &Completion) {
        let _ = (job, request, completion);
    }

    /// A database's transaction is acknowledged, so long after its own work had ended.
    #[inline]
    fn committed(&mut self, now_ps: u64, latency_ns: u64) {
        let _ = (now_ps, latency_ns);
    }

    /// Where the time of a request went that has just [counted](Observer::counts), in a run that follows requests.
    #[inline]
    fn went(&mut self, job: usize, request: &Request, completion: &Completion, parts_ps: &PartsPs) {
        let _ = (job, request, completion, parts_ps);
    }

    /// Every job that runs is in its ramp or in the delay before it, or no longer: the drive now. Counters of the drive
    /// are those of all of the run.
    #[inline]
    fn ramp(&mut self, ramp: Ramp, drive: &DriveState) {
        let _ = (ramp, drive);
    }

    /// When it wants to [look](Observer::look) at the drive next, picoseconds; asked at every step.
    #[inline]
    fn next_look_ps(&self) -> u64 {
        u64::MAX
    }

    /// The drive when everything at that instant and before it has happened.
    #[inline]
    fn look(&mut self, drive: &DriveState) {
        let _ = drive;
    }

    /// The drive at the end of the run, for one that wants to look at it.
    #[inline]
    fn ended(&mut self, drive: &DriveState) {
        let _ = drive;
    }

    /// Called now and then; [`ControlFlow::Break`] ends the run early.
    #[inline]
    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        let _ = progress;
        ControlFlow::Continue(())
    }
}

/// Watches nothing.
impl Observer for () {}

/// Two watch.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn begins(&mut self, job: usize, counted_from_ps: u64) {
        self.0.begins(job, counted_from_ps);
        self.1.begins(job, counted_from_ps);
    }

    #[inline]
    fn submitted(&mut self, now_ps: u64, job: usize, request: &Request) {
        self.0.submitted(now_ps, job, request);
        self.1.submitted(now_ps, job, request);
    }

    #[inline]
    fn completed(&mut self, job: usize, request: &Request, completion: &Completion) {
        self.0.completed(job, request, completion);
        self.1.completed(job, request, completion);
    }

    #[inline]
    fn counts(&mut self, job: usize, request: &Request, completion: &Completion) {
        self.0.counts(job, request, completion);
        self.1.counts(job, request, completion);
    }

    fn committed(&mut self, now_ps: u64, latency_ns: u64) {
        self.0.committed(now_ps, latency_ns);
        self.1.committed(now_ps, latency_ns);
    }

    fn went(&mut self, job: usize, request: &Request, completion: &Completion, parts_ps: &PartsPs) {
        self.0.went(job, request, completion, parts_ps);
        self.1.went(job, request, completion, parts_ps);
    }

    fn ramp(&mut self, ramp: Ramp, drive: &DriveState) {
        self.0.ramp(ramp, drive);
        self.1.ramp(ramp, drive);
    }

    #[inline]
    fn next_look_ps(&self) -> u64 {
        self.0.next_look_ps().min(self.1.next_look_ps())
    }

    fn look(&mut self, drive: &DriveState) {
        self.0.look(drive);
        self.1.look(drive);
    }

    fn ended(&mut self, drive: &DriveState) {
        self.0.ended(drive);
        self.1.ended(drive);
    }

    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        self.0.progress(progress)?;
        self.1.progress(progress)
    }
}

/// Watches if there is one.
impl<A: Observer> Observer for Option<A> {
    fn begins(&mut self, job: usize, counted_from_ps: u64) {
        if let Some(observer) = self {
            observer.begins(job, counted_from_ps);
        }
    }

    #[inline]
    fn submitted(&mut self, now_ps: u64, job: usize, request: &Request) {
        if let Some(observer) = self {
            observer.submitted(now_ps, job, request);
        }
    }

    #[inline]
    fn completed(&mut self, job: usize, request: &Request, completion: &Completion) {
        if let Some(observer) = self {
            observer.completed(job, request, completion);
        }
    }

    #[inline]
    fn counts(&mut self, job: usize, request: &Request, completion: &Completion) {
        if let Some(observer) = self {
            observer.counts(job, request, completion);
        }
    }

    fn committed(&mut self, now_ps: u64, latency_ns: u64) {
        if let Some(observer) = self {
            observer.committed(now_ps, latency_ns);
        }
    }

    fn went(&mut self, job: usize, request: &Request, completion: &Completion, parts_ps: &PartsPs) {
        if let Some(observer) = self {
            observer.went(job, request, completion, parts_ps);
        }
    }

    fn ramp(&mut self, ramp: Ramp, drive: &DriveState) {
        if let Some(observer) = self {
            observer.ramp(ramp, drive);
        }
    }

    #[inline]
    fn next_look_ps(&self) -> u64 {
        self.as_ref().map_or(u64::MAX, Observer::next_look_ps)
    }

    fn look(&mut self, drive: &DriveState) {
        if let Some(observer) = self {
            observer.look(drive);
        }
    }

    fn ended(&mut self, drive: &DriveState) {
        if let Some(observer) = self {
            observer.ended(drive);
        }
    }

    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        match self {
            Some(observer) => observer.progress(progress),
            None => ControlFlow::Continue(()),
        }
    }
}

/// What an observer sees of the drive.
#[derive(Clone, Debug)]
pub struct DriveState {
    /// Now, picoseconds.
    pub now_ps: u64,
    /// What it has counted so far.
    pub counters: Counters,
    /// Superblocks that are erased and not opened since, those of the single-bit cache apart.
    pub free_superblocks: u32,
    /// The same, of the single-bit cache.
    pub slc_free_superblocks: u32,
    /// Ordinary superblocks that run in single-bit mode.
    pub slc_borrowed_superblocks: u32,
    /// Host memory in use, bytes.
    pub hmb_used_bytes: u64,
}

impl DriveState {
    pub(crate) fn of<T: Tracer>(host: &Traced<T>) -> Self {
        let blocks = &host.drive.ftl().blocks;
        DriveState {
            now_ps: host.now_ps(),
            counters: host.counters(),
            free_superblocks: blocks.free_count(CellMode::Native),
            slc_free_superblocks: blocks.free_count(CellMode::Slc),
            slc_borrowed_superblocks: blocks.borrowed(),
            hmb_used_bytes: hmb_used_bytes(host),
        }
    }
}
