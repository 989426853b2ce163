//! The run loop: one drive, one [`Workload`], simulated time from one completion to the next.
//!
//! Jobs of a stage run at the same time; a stage starts when the one before it is done. The loop
//! has three steps: ask every job that may want something, find the next instant at which anything
//! happens, let the drive work up to it and tell the jobs what has completed.

mod counting;
mod difference;
mod host_flushes;
mod later;
mod measured;
mod observer;
mod order;
mod steady;
mod summary;

use crate::breakdown::Breakdown;
use crate::config::{self, RunConfig, STUCK_AFTER, Traced};
use crate::course;
use crate::error::Error;
use crate::hmb::HmbResult;
use crate::stats::JobResult;
use crate::stopwatch::Stopwatch;
use crate::window_study;
use host_flushes::HostFlushes;
use lodger_core::device::NoContents;
use lodger_core::ftl::Wear;
use lodger_core::observe::{Counters, PartsPs, Tracer, Untraced};
use lodger_core::spec::Tier;
use lodger_core::time::{RUN_PS_MAX, S};
use lodger_core::{Completion, Op, Request, WindowCompletion};
use lodger_workload::{Counting, Job, Next, Workload};
pub use measured::{Ramp, Worn};
pub use observer::{DriveState, Observer, Progress};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::ControlFlow;
pub use summary::Busy;
use summary::expected_ps;
pub(crate) use summary::{busy_ps, hmb_used_bytes, refused, share_into_room, utilisation};

/// The observer is asked once in this much work, an instant being one: some milliseconds.
const PROGRESS_EVERY: u64 = 1 << 14;
/// And once in so many of the drive's events: a request of 2 MiB takes hundreds of them.
const PROGRESS_EVENTS: u64 = 1 << 17;
/// Trimming so many bytes, each page of which is looked up, takes the simulator as long as an instant at least.
const TRIMMED_BYTES: u64 = 64 << 10;
/// The drive is left to itself no longer than this: a drive that is busy for ever must not keep
/// the loop from noticing.
const STEP_PS: u64 = S;
/// What a run found out.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// One entry per job of the workload, in its order.
    pub jobs: Vec<JobResult>,
    /// What the drive counted in the time that counts.
    pub counters: Counters,
    /// How worn the flash is at the end, by all of the run: in ordinary mode, in single-bit mode.
    pub wear: [Wear; 2],
    /// What of that is due to the time that counts.
    pub worn: [Worn; 2],
    /// Memories of the map role, in the order of `counters.map.hits`.
    pub map_tiers: Vec<Tier>,
    /// Share of the time that counts that each kind of resource was busy.
    pub utilisation: Vec<Busy>,
    /// Simulated time from the start of the run to its end, picoseconds.
    pub simulated_ps: u64,
    /// Part of it that counts: without the time in which every job that ran was in its ramp.
    pub measured_ps: u64,
    /// Part of that with at least one request in flight.
    pub busy_ps: u64,
    /// Real time it took, seconds. The only value that differs between two equal runs.
    pub wall_s: f64,
    /// Events the simulator worked off.
    pub events: u64,
    /// Requests completed.
    pub requests: u64,
    /// Host memory.
    pub hmb: HmbResult,
    /// Where the time of requests went, if that was asked for.
    pub breakdown: Option<Breakdown>,
    /// What is known of the workload only at its end: what a trace was taken for that was read meanwhile.
    pub notes: Vec<String>,
    /// What the user should hear: host memory refused, requests refused.
    pub warnings: Vec<String>,
    /// The observer ended the run early: the rest is what was known by then.
    pub interrupted: bool,
}

/// Runs `workload` on a fresh drive.
///
/// # Errors
/// If the choice of host memory does not go with the drive, or if the simulator is at fault: a
/// drive or a job that can never go on.
pub fn run<O: Observer>(
    config: &RunConfig,
    workload: Workload,
    observer: &mut O,
) -> Result<RunResult, Error> {
    let (result, Untraced) = run_traced(config, workload, observer, Untraced)?;
    Ok(result)
}

/// As [`run`], with a tracer that is told of each step and handed back; the observer hears where the time of each
/// request [went](Observer::went), if it tells.
///
/// # Errors
/// As [`run`].
pub fn run_traced<O: Observer, T: Tracer>(
    config: &RunConfig,
    workload: Workload,
    observer: &mut O,
    tracer: T,
) -> Result<(RunResult, T), Error> {
    let stopwatch = Stopwatch::started();
    let made = config::make_traced(config, NoContents, tracer)?;
    let mut runner = Runner::new(made.host, workload, observer);
    let mut interrupted = runner.run()?.is_break();
    let mut notes = Vec::new();
    for index in 0..runner.jobs.len() {
        match runner.jobs[index].ending() {
            Some(Ok(ending)) => runner.results[index].was_read(ending, &mut notes),
            // Its reader was told to stop, too: what it has read counts.
            Some(Err(_)) if interrupted || runner.ask().is_break() => interrupted = true,
            Some(Err(error)) => return Err(error.into()),
            None => {}
        }
        runner.results[index].ended(&mut runner.jobs[index])?;
    }
    let too_slow: Vec<String> = summary::too_slow(&runner.results).collect();
    let begins = course::words(&runner.results);
    let (mut result, tracer) = runner.finish(made.hmb, interrupted);
    result.notes = notes;
    result.warnings.splice(0..0, made.warning);
    result.warnings.extend(too_slow);
    result.warnings.extend(begins);
    result
        .warnings
        .extend(summary::nothing_collected(config, &result.counters));
    result
        .warnings
        .extend(summary::held_beyond(&result.counters));
    result.warnings.extend(summary::spare(config.spec()));
    result
        .warnings
        .extend(window_study::shortfall(config.spec()));
    result.wall_s = stopwatch.seconds();
    Ok((result, tracer))
}

/// A request on its way, found by the tag the drive returns.
#[derive(Clone, Copy)]
struct InFlight {
    request: Request,
    job: u32,
    /// Its job takes the completion when it looks.
    later: bool,
}

/// A request that has completed, and where its time went, if that is followed.
#[derive(Clone, Copy)]
struct Done {
    request: Request,
    completion: Completion,
    parts_ps: Option<PartsPs>,
}

struct Runner<'o, O, T> {
    host: Traced<T>,
    jobs: Vec<Job>,
    results: Vec<JobResult>,
    observer: &'o mut O,
    /// Jobs number their tags themselves, so the drive is given places in this list instead.
    in_flight: Vec<InFlight>,
    free: Vec<u32>,
    /// Jobs to ask, and whether a job is among them.
    ready: Vec<u32>,
    is_ready: Vec<bool>,
    /// Instants that jobs wait for. An entry counts only if `wake_at_ps` of its job still says so.
    wakes: BinaryHeap<Reverse<(u64, u32)>>,
    wake_at_ps: Vec<u64>,
    /// Of each job, the request that counts only with the one after it.
    heads: Vec<Option<Done>>,
    /// Of each job, what has arrived and is not taken.
    arrived: Vec<VecDeque<Done>>,
    /// Jobs that run.
    left: usize,
    order: order::Order,
    host_flushes: HostFlushes,
    steady: steady::SteadyStates,
    measured: measured::Measured,
    /// Calls of the byte window under way, and a list used again.
    calls: u32,
    called: Vec<WindowCompletion>,
    done_requests: u64,
    expected: Option<u64>,
    expected_ps: Option<u64>,
    /// Instants, and long trims by their length, since the observer was asked.
    work: u64,
    /// The drive's events up to then.
    events_at_progress: u64,
    /// The drive's events up to the last completion.
    events_at_completion: u64,
    busy_since_ps: u64,
    busy_ps: u64,
}

impl<'o, O: Observer, T: Tracer> Runner<'o, O, T> {
    fn new(host: Traced<T>, workload: Workload, observer: &'o mut O) -> Self {
        let jobs = workload.jobs;
        let submit_ps = host.spec().host.submit_ps;
        let results = jobs.iter().map(|job| JobResult::new(job, submit_ps));
        Self {
            results: results.collect(),
            observer,
            in_flight: Vec::new(),
            free: Vec::new(),
            ready: Vec::new(),
            is_ready: vec![false; jobs.len()],
            wakes: BinaryHeap::new(),
            wake_at_ps: vec![u64::MAX; jobs.len()],
            heads: vec![None; jobs.len()],
            arrived: vec![VecDeque::new(); jobs.len()],
            left: 0,
            order: order::Order::new(&jobs),
            host_flushes: HostFlushes::new(host.spec()),
            steady: steady::SteadyStates::new(&jobs),
            measured: measured::Measured::new(),
            calls: 0,
            called: Vec::new(),
            done_requests: 0,
            expected: jobs.iter().map(|job| job.requests_expected).sum(),
            expected_ps: expected_ps(&jobs),
            work: 0,
            events_at_progress: 0,
            events_at_completion: 0,
            busy_since_ps: 0,
            busy_ps: 0,
            host,
            jobs,
        }
    }

    fn run(&mut self) -> Result<ControlFlow<()>, Error> {
        let mut stages: Vec<u32> = self.jobs.iter().map(|job| job.stage).collect();
        stages.sort_unstable();
        stages.dedup();
        let mut completions = Vec::new();
        for stage in stages {
            self.begin_stage(stage);
            if self.run_stage(&mut completions)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn run_stage(&mut self, completions: &mut Vec<Completion>) -> Result<ControlFlow<()>, Error> {
        loop {
            self.ask_ready();
            if self.left == 0 {
                return Ok(ControlFlow::Continue(()));
            }
            let until_ps = self.next_instant()?;
            self.host.advance_to_completion(until_ps, completions);
            if completions.is_empty() {
                self.check_alive()?;
            } else {
                self.events_at_completion = self.host.events();
            }
            for completion in completions.drain(..) {
                self.route(completion, Self::parts_of_next);
            }
            if self.host_flushes.next_ps() <= self.host.now_ps() {
                self.end_host_flushes();
            }
            if self.calls > 0 {
                self.route_calls();
            }
            self.wake(self.host.now_ps());
            if self.host.now_ps() >= self.measured.next_ps() {
                self.tell_ramp(Ramp::Ends);
            }
            if self.host.now_ps() >= self.steady.next_ps() {
                self.look_at_rates();
            }
            if self.host.now_ps() >= self.observer.next_look_ps() {
                self.observer.look(&DriveState::of(&self.host));
            }
            self.work += 1;
            if self.work >= PROGRESS_EVERY || self.has_gone_on_long() {
                self.work = 0;
                self.events_at_progress = self.host.events();
                if self.ask().is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
    }

    /// Tells the observer how far it is, and asks whether to go on.
    fn ask(&mut self) -> ControlFlow<()> {
        self.observer.progress(Progress {
            requests: self.done_requests,
            expected: self.expected,
            expected_ps: self.expected_ps,
            simulated_ps: self.host.now_ps(),
        })
    }

    /// Asks the jobs to which something has happened, in that order, until none wants to submit.
    fn ask_ready(&mut self) {
        let now_ps = self.host.now_ps();
        let mut place = 0;
        // A job that is done may have others start.
        while let Some(&index) = self.ready.get(place) {
            place += 1;
            let index = index as usize;
            let submitted = self.results[index].submitted;
            self.is_ready[index] = false;
            loop {
                match self.jobs[index].next(now_ps) {
                    Next::Submit(request) => self.submit(index, request, now_ps),
                    Next::Call { cpu, call } => {
                        self.calls += 1;
                        self.host.call_on(cpu, index as u32, call);
                    }
                    Next::Reap(completions) => self.reap(index, completions),
                    Next::At(at_ps) => {
                        // Beyond the end of time is as good as just beyond what can be simulated.
                        let at_ps = at_ps.min(RUN_PS_MAX + 1);
                        debug_assert!(at_ps > now_ps, "a job waits for the past");
                        // Asked again early, a job mostly names the same instant again.
                        if self.wake_at_ps[index] != at_ps {
                            self.wake_at_ps[index] = at_ps;
                            self.wakes.push(Reverse((at_ps, index as u32)));
                        }
                        break;
                    }
                    Next::Blocked => {
                        self.wake_at_ps[index] = u64::MAX;
                        break;
                    }
                    Next::Done => {
                        self.wake_at_ps[index] = u64::MAX;
                        self.results[index].stopped(now_ps);
                        self.job_done(index);
                        break;
                    }
                }
            }
            let observer = &mut *self.observer;
            self.results[index].asked(&mut self.jobs[index], now_ps, |latency_ns| {
                observer.committed(now_ps, latency_ns);
            });
            if self.order.has_flows() {
                self.tell_flow(index, submitted);
            }
        }
        self.ready.clear();
    }

    #[inline]
    fn submit(&mut self, index: usize, request: Request, now_ps: u64) {
        if self.free.len() == self.in_flight.len() {
            self.busy_since_ps = now_ps;
        }
        let counting = self.jobs[index].counting(request.op);
        if counting != Counting::Tail {
            self.observer.submitted(now_ps, index, &request);
        }
        self.results[index].submitted(now_ps, counting);
        let entry = InFlight {
            request,
            job: index as u32,
            later: self.jobs[index].takes_later(request.op),
        };
        let tag = match self.free.pop() {
            Some(tag) => {
                self.in_flight[tag as usize] = entry;
                tag
            }
            None => {
                self.in_flight.push(entry);
                self.in_flight.len() as u32 - 1
            }
        };
        if request.op == Op::Flush && self.host_flushes.is_on() {
            self.events_at_completion = self.host.events();
            self.host_flushes.begin(tag, now_ps);
            return;
        }
        // Every job has a submission queue of its own, as every fio process has its processor's.
        let queue = index as u16;
        self.host.submit(Request {
            tag,
            queue,
            ..request
        });
    }

    /// Where the time of the next request that the drive has completed went.
    #[inline(always)]
    fn parts_of_next(&mut self) -> Option<PartsPs> {
        self.host.drive.tracer().next_parts()
    }

    /// A request is over; `parts_ps` tells where its time went, and is asked here: carried along, it costs every request.
    #[inline(always)]
    fn route(&mut self, completion: Completion, parts_ps: impl Fn(&mut Self) -> Option<PartsPs>) {
        let InFlight {
            request,
            job,
            later,
        } = self.in_flight[completion.tag as usize];
        self.free.push(completion.tag);
        self.done_requests += 1;
        if request.op == Op::Trim {
            self.work += request.length_bytes / TRIMMED_BYTES;
        }
        if self.free.len() == self.in_flight.len() {
            self.busy_ps += completion.completed_ps - self.busy_since_ps;
        }
        let index = job as usize;
        let completion = Completion {
            tag: request.tag,
            ..completion
        };
        if later {
            let parts_ps = parts_ps(self);
            return self.keep(index, request, completion, parts_ps);
        }
        let counting = self.jobs[index].counted(&completion);
        self.jobs[index].complete(&completion);
        self.results[index].returned();
        let parts_ps = parts_ps(self);
        if counting == Counting::Yes {
            self.count(index, &request, &completion, parts_ps.as_ref());
        } else {
            let done = Done {
                request,
                completion,
                parts_ps,
            };
            self.count_together(index, counting, done);
        }
        self.make_ready(job);
    }

    /// Flushes that the host has kept to itself.
    #[cold]
    fn end_host_flushes(&mut self) {
        while let Some(completion) = self.host_flushes.pop(self.host.now_ps()) {
            self.route(completion, |runner| {
                T::ON.then(|| runner.host_flushes.parts_ps())
            });
        }
    }

    /// Calls of the byte window that are done.
    #[cold]
    fn route_calls(&mut self) {
        let mut called = std::mem::take(&mut self.called);
        self.host.take_window_completions(&mut called);
        for completion in called.drain(..) {
            self.calls -= 1;
            self.events_at_completion = self.host.events();
            self.jobs[completion.tag as usize].called(&completion);
            self.make_ready(completion.tag);
        }
        self.called = called;
    }

    #[inline]
    fn make_ready(&mut self, job: u32) {
        let is_ready = &mut self.is_ready[job as usize];
        if !*is_ready {
            *is_ready = true;
            self.ready.push(job);
        }
    }

    /// Marks the jobs whose instant has come.
    #[inline]
    fn wake(&mut self, now_ps: u64) {
        while let Some(&Reverse((at_ps, job))) = self.wakes.peek() {
            if at_ps > now_ps {
                return;
            }
            self.wakes.pop();
            if self.wake_at_ps[job as usize] == at_ps {
                self.wake_at_ps[job as usize] = u64::MAX;
                self.make_ready(job);
            }
        }
    }

    /// How long the drive may be left to itself.
    #[inline]
    fn next_instant(&mut self) -> Result<u64, Error> {
        while let Some(&Reverse((at_ps, job))) = self.wakes.peek()
            && self.wake_at_ps[job as usize] != at_ps
        {
            self.wakes.pop();
        }
        let wake_ps = self.wakes.peek().map_or(u64::MAX, |wake| wake.0.0);
        let wake_ps = wake_ps.min(self.host_flushes.next_ps());
        // An idle drive goes straight to where a job waits.
        let event_ps = self.host.next_time().unwrap_or(wake_ps);
        let until_ps = wake_ps.min(event_ps.max(self.host.now_ps() + STEP_PS));
        if until_ps == u64::MAX {
            return Err(self.stuck("nothing is left to happen"));
        }
        if until_ps > RUN_PS_MAX {
            let message =
                "the run would go beyond 200 days of simulated time, the longest there is";
            let hint = "check the units of times and rates: `startdelay`, `ramp_time`, `runtime` and `thinktime` of all \
                        jobs add up, `rate=1` is one byte a second, and `lodger trace info` shows a trace's duration";
            return Err(Error::input(message).hint(hint));
        }
        let until_ps = until_ps
            .min(self.steady.next_ps())
            .min(self.measured.next_ps());
        Ok(until_ps.min(self.observer.next_look_ps()))
    }

    /// Whether the drive has been working for long without completing anything.
    #[inline]
    fn has_gone_on_long(&self) -> bool {
        self.host.events() - self.events_at_progress > PROGRESS_EVENTS
    }

    #[cold]
    fn check_alive(&self) -> Result<(), Error> {
        let waiting = self.host.events() - self.events_at_completion;
        if waiting > STUCK_AFTER && self.free.len() < self.in_flight.len() {
            return Err(self.stuck("the drive is busy, but completes nothing"));
        }
        Ok(())
    }

    #[cold]
    fn stuck(&self, why: &str) -> Error {
        let waiting = self.in_flight.len() - self.free.len();
        let message = format!(
            "the simulated drive is stuck at {:.9} s: {why}; {waiting} requests wait, {} are done, \
             {} jobs are not",
            self.host.now_ps() as f64 / S as f64,
            self.done_requests,
            self.left
        );
        Error::failed(message).hint(
            "this is a defect of the simulator, not of your input: please report it with the \
             command line and the files",
        )
    }

    fn finish(mut self, mut hmb: HmbResult, interrupted: bool) -> (RunResult, T) {
        for job in &mut self.results {
            job.close();
        }
        for (job, found) in self.steady.found() {
            self.results[job].steady = Some(Box::new(found));
        }
        let measured = self.measured();
        let submitted: u64 = self.results.iter().map(|job| job.submitted).sum();
        assert!(
            interrupted || submitted == self.done_requests,
            "requests are lost: {submitted} submitted, {} completed",
            self.done_requests
        );
        if self.observer.next_look_ps() != u64::MAX {
            self.observer.ended(&DriveState::of(&self.host));
        }
        // After the last completion the clock stands still, so this is the time of the run.
        let simulated_ps = self.host.now_ps();
        hmb.used_bytes = hmb_used_bytes(&self.host);
        let result = RunResult {
            map_tiers: self.host.drive.map_tiers(),
            wear: self.host.drive.wear(),
            worn: measured.worn,
            utilisation: utilisation(&self.host, &measured.busy_ps, measured.ps),
            simulated_ps,
            measured_ps: measured.ps,
            busy_ps: measured.in_flight_ps,
            wall_s: 0.0,
            events: self.host.events(),
            requests: self.done_requests,
            hmb,
            notes: Vec::new(),
            warnings: refused(&self.results).into_iter().collect(),
            interrupted,
            counters: measured.counters,
            breakdown: None,
            jobs: self.results,
        };
        (result, self.host.into_tracer())
    }
}
