//! Recordings of live drives, done again in simulated time.
//!
//! What entered the live drive enters this one at the same instants. The same drive with the same seed then gives the
//! same completions, to the picosecond, and the recording says which those were. Another drive gives its own; a
//! completion that comes later than the live host took one is taken as it arrives.

use crate::config::{self, RunConfig, STUCK_AFTER};
use crate::error::Error;
use crate::hmb::HmbChoice;
use crate::runner::{
    DriveState, Observer, Progress, RunResult, Worn, busy_ps, hmb_used_bytes, refused, utilisation,
};
use crate::stats::JobResult;
use crate::stopwatch::Stopwatch;
use lodger_core::device::{News, NoContents, Sent};
use lodger_core::ids::CommandId;
use lodger_core::{Completion, Host, Precondition, Purpose, Request, Status};
use lodger_workload::Counting;
use lodger_workload::live::{Doubt, Event, Head, ReadError, Reader, digest};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::BufRead;
use std::ops::ControlFlow;

/// Time is gone through in steps of this, so that the observer is asked.
const STEP_PS: u64 = 1_000_000_000_000;
/// Records between two questions to the observer.
const PROGRESS_EVERY: u64 = 1 << 12;
/// Most host memory that a recording may grant: as much as any host is taken to have.
const GRANT_BYTES_MAX: u64 = 4 << 40;

/// What came of a recording.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// What the drive did, in one job.
    pub result: RunResult,
    /// What the recording is of.
    pub head: Head,
    /// The drive as it was then, but for what was chosen otherwise.
    pub config: RunConfig,
    /// Whether this was the same drive with the same seed.
    pub is_same: bool,
    /// Completions whose times the recording has.
    pub compared: u64,
    /// Of them, those that came at another time, or ended otherwise.
    pub different: u64,
    /// The first of them, in words.
    pub first_difference: Option<String>,
    /// Why they may be different.
    pub doubts: Vec<Doubt>,
    /// The recording ends before its end.
    pub is_cut: bool,
    /// Commands whose completions the live host has not taken.
    pub left: u64,
}

/// A command of the recording.
#[derive(Clone, Copy)]
struct Under {
    command: CommandId,
    request: Request,
    at_ps: u64,
    arrives_ps: Option<u64>,
    /// The live host has taken it: when it had arrived there, and how it had ended.
    taken: Option<(u64, Status)>,
}

struct Replay<'o, O> {
    host: Host<NoContents>,
    observer: &'o mut O,
    job: JobResult,
    /// Commands from number `first` on; those that are over are gone.
    under_way: VecDeque<Option<Under>>,
    first: u64,
    /// Numbers of commands, by what the drive calls them.
    numbers: Vec<u64>,
    /// Completions that the live host has taken before they arrive here.
    due: BinaryHeap<Reverse<(u64, u64)>>,
    /// Commands that it has taken, and that have not come to their end here.
    behind: u64,
    sent: Vec<Sent>,
    in_flight: u64,
    busy_since_ps: u64,
    busy_ps: u64,
    records: u64,
    requests: u64,
    granted_bytes: u64,
    compared: u64,
    different: u64,
    first_difference: Option<String>,
}

fn unreadable(name: &str, error: &ReadError) -> Error {
    Error::input(format!("recording `{name}`: {error}"))
        .hint("recordings are what `lodger serve --record` writes, of this version of Lodger")
}

/// The drive of a recording, as it began.
///
/// # Errors
/// If it cannot be read.
pub fn open<R: BufRead>(from: R, name: &str) -> Result<Reader<R>, Error> {
    Reader::new(from).map_err(|error| unreadable(name, &error))
}

/// Does a recording again on a drive. What was written before, and host memory, are as recorded.
///
/// # Errors
/// If the recording makes no sense, or the simulator is at fault.
pub fn replay<R: BufRead, O: Observer>(
    config: &RunConfig,
    mut recording: Reader<R>,
    name: &str,
    observer: &mut O,
) -> Result<Replayed, Error> {
    let stopwatch = Stopwatch::started();
    let head = recording.head().clone();
    let config = RunConfig {
        hmb: HmbChoice::Off,
        precondition: match head.precondition {
            0 => Precondition::None,
            1 => Precondition::Sequential,
            _ => Precondition::Random,
        },
        ..config.clone()
    };
    let is_same =
        head.drive_digest == digest(&format!("{:?}", config.spec())) && head.seed == config.seed;
    let made = config::make(&config, NoContents)?;
    observer.begins(0, 0);
    let mut replay = Replay::new(made.host, observer);
    let mut doubts = Vec::new();
    let (mut interrupted, mut last_ps) = (false, None);
    while let Some(recorded) = recording
        .next_event()
        .map_err(|error| unreadable(name, &error))?
    {
        // What the live drive has taken in at one instant, it has taken in without working in between.
        let goes_on = last_ps.replace(recorded.at_ps) != Some(recorded.at_ps);
        if (goes_on || recorded.event == Event::Ran) && replay.advance(recorded.at_ps).is_break() {
            interrupted = true;
            break;
        }
        let done = match recorded.event {
            Event::Doubt(doubt) => {
                doubts.push(doubt);
                Ok(())
            }
            event => replay.enter(recorded.at_ps, event),
        };
        done.map_err(|why| {
            let at_s = recorded.at_ps as f64 / 1e12;
            Error::input(format!("recording `{name}`: at {at_s:.9} s {why}"))
        })?;
    }
    interrupted = interrupted || replay.finish()?.is_break();
    let left = replay.under_way.iter().flatten().count() as u64;
    let mut replayed = Replayed {
        is_same,
        compared: replay.compared,
        different: replay.different,
        first_difference: replay.first_difference.take(),
        doubts,
        is_cut: recording.is_cut(),
        left,
        head,
        config,
        result: replay.result(made.hmb, interrupted),
    };
    replayed.result.wall_s = stopwatch.seconds();
    Ok(replayed)
}

/// A word for the user about a doubt.
#[must_use]
pub fn told(doubt: Doubt) -> &'static str {
    match doubt {
        Doubt::HostMemory => {
            "the host has changed what the drive kept in its memory, or taken it away unasked"
        }
        Doubt::Past => "the drive was used before its recording began",
        Doubt::PowerCut => "power was cut, and the recording ends there",
        Doubt::Window => "the byte window was used, whose calls the recording does not have",
    }
}

impl<'o, O: Observer> Replay<'o, O> {
    fn new(host: Host<NoContents>, observer: &'o mut O) -> Self {
        Replay {
            host,
            observer,
            job: JobResult::recorded("recorded"),
            under_way: VecDeque::new(),
            first: 0,
            numbers: Vec::new(),
            due: BinaryHeap::new(),
            behind: 0,
            sent: Vec::new(),
            in_flight: 0,
            busy_since_ps: 0,
            busy_ps: 0,
            records: 0,
            requests: 0,
            granted_bytes: 0,
            compared: 0,
            different: 0,
            first_difference: None,
        }
    }

    fn place(&mut self, number: u64) -> Option<&mut Option<Under>> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.under_way.get_mut(index)
    }

    /// Time goes on to `to_ps`, and all that is due by then happens.
    fn advance(&mut self, to_ps: u64) -> ControlFlow<()> {
        self.records += 1;
        let mut asks = self.records.is_multiple_of(PROGRESS_EVERY);
        loop {
            let due_ps = self.due.peek().map_or(to_ps, |Reverse((at_ps, _))| *at_ps);
            let now_ps = self.host.drive.now_ps();
            let look_ps = self.observer.next_look_ps();
            let mut until_ps = to_ps.min(due_ps.max(now_ps)).min(look_ps.max(now_ps));
            if until_ps - now_ps > STEP_PS && self.host.drive.next_time().is_some() {
                until_ps = now_ps + STEP_PS;
                asks = true;
            }
            if std::mem::take(&mut asks) && self.ask().is_break() {
                return ControlFlow::Break(());
            }
            if let Some(news) = self.host.drive.run(until_ps) {
                if news == News::Sent {
                    self.take_sent();
                }
                continue;
            }
            self.host.drive.idle_until(until_ps);
            while let Some(&Reverse((at_ps, number))) = self.due.peek()
                && at_ps <= until_ps
            {
                self.due.pop();
                self.take(number);
            }
            if until_ps >= look_ps {
                self.observer.look(&DriveState::of(&self.host));
            }
            if until_ps == to_ps {
                return ControlFlow::Continue(());
            }
        }
    }

    fn ask(&mut self) -> ControlFlow<()> {
        self.observer.progress(Progress {
            requests: self.requests,
            expected: None,
            expected_ps: None,
            simulated_ps: self.host.drive.now_ps(),
        })
    }

    fn take_sent(&mut self) {
        let mut sent = std::mem::take(&mut self.sent);
        self.host.drive.take_sent(&mut sent);
        for sent in sent.drain(..) {
            let number = self.numbers[sent.command.0 as usize];
            let Some(Some(under)) = self.place(number) else {
                continue;
            };
            under.arrives_ps = Some(sent.arrives_ps);
            if under.taken.is_some() {
                self.due.push(Reverse((sent.arrives_ps, number)));
            }
        }
        self.sent = sent;
    }

    /// Something enters the drive, now.
    fn enter(&mut self, now_ps: u64, event: Event) -> Result<(), &'static str> {
        match event {
            Event::Command(request, purpose) => self.command(now_ps, request, purpose),
            Event::Taken {
                command,
                arrived_ps,
                status,
            } => {
                let Some(Some(under)) = self.place(command) else {
                    return Err("a completion is taken twice");
                };
                if under.taken.replace((arrived_ps, status)).is_some() {
                    return Err("a completion is taken twice");
                }
                let arrives_ps = under.arrives_ps;
                self.behind += 1;
                match arrives_ps {
                    Some(at_ps) if at_ps <= now_ps => self.take(command),
                    Some(at_ps) => self.due.push(Reverse((at_ps, command))),
                    None => {}
                }
            }
            Event::HostMemory(bytes) if bytes > GRANT_BYTES_MAX => {
                return Err("more host memory is granted than any host has");
            }
            Event::HostMemory(bytes) => {
                self.granted_bytes = self.granted_bytes.max(bytes);
                self.host.drive.set_hmb(bytes);
            }
            Event::Shutdown => self.host.drive.begin_shutdown(),
            Event::Abort(number) => {
                // On another drive it may have completed.
                let under = self.place(number).and_then(|under| under.as_ref());
                let waits = under.filter(|under| under.arrives_ps.is_none());
                if let Some(command) = waits.map(|under| under.command) {
                    self.host.drive.abort(command);
                }
            }
            // `advance` has worked off what is due.
            Event::Ran | Event::Doubt(_) | Event::End => {}
        }
        Ok(())
    }

    fn command(&mut self, now_ps: u64, request: Request, purpose: Purpose) {
        let command = self.host.drive.enqueue(request);
        self.host.drive.read_for(command, purpose);
        let index = command.0 as usize;
        if index >= self.numbers.len() {
            self.numbers.resize(index + 1, 0);
        }
        self.numbers[index] = self.first + self.under_way.len() as u64;
        self.under_way.push_back(Some(Under {
            command,
            request,
            at_ps: now_ps,
            arrives_ps: None,
            taken: None,
        }));
        if self.in_flight == 0 {
            self.busy_since_ps = now_ps;
        }
        self.in_flight += 1;
        self.job.submitted(now_ps, Counting::Yes);
        self.observer.submitted(now_ps, 0, &request);
        self.host.drive.ring(command, now_ps);
    }

    /// The host takes a completion that has arrived.
    fn take(&mut self, number: u64) {
        let Some(Some(under)) = self.place(number).map(Option::take) else {
            return;
        };
        while let Some(None) = self.under_way.front() {
            self.under_way.pop_front();
            self.first += 1;
        }
        let now_ps = self.host.drive.now_ps();
        let (_, status) = self.host.drive.consume(under.command, now_ps);
        let arrived_ps = under.arrives_ps.unwrap_or(now_ps);
        self.behind -= 1;
        self.requests += 1;
        self.in_flight -= 1;
        if self.in_flight == 0 {
            self.busy_ps += arrived_ps.saturating_sub(self.busy_since_ps);
        }
        let completion = Completion {
            tag: 0,
            op: under.request.op,
            status,
            submitted_ps: under.at_ps,
            completed_ps: arrived_ps,
        };
        self.job.returned();
        self.job.completed(&under.request, &completion);
        self.observer.completed(0, &under.request, &completion);
        self.observer.counts(0, &under.request, &completion);
        if let Some(recorded) = under.taken {
            self.compared += 1;
            if recorded != (arrived_ps, status) {
                self.different += 1;
                let (was_ps, was) = recorded;
                self.first_difference.get_or_insert_with(|| {
                    format!(
                        "command {number} ({:?} of {} bytes at {}) ended with {status:?} at {arrived_ps} ps, \
                         and live with {was:?} at {was_ps} ps",
                        under.request.op, under.request.length_bytes, under.request.offset_bytes
                    )
                });
            }
        }
    }

    /// What the live host has heard of comes to its end.
    fn finish(&mut self) -> Result<ControlFlow<()>, Error> {
        let (mut events, mut behind) = (self.host.drive.events(), self.behind);
        while self.behind > 0 {
            let next_ps = self.due.peek().map(|Reverse((at_ps, _))| *at_ps);
            let next_ps = next_ps.or(self.host.drive.next_time());
            if self.behind < behind {
                (events, behind) = (self.host.drive.events(), self.behind);
            }
            let is_stuck = self.host.drive.events() - events > STUCK_AFTER;
            let Some(next_ps) = next_ps.filter(|_| !is_stuck) else {
                let text = format!("{behind} commands of the recording never complete");
                return Err(
                    Error::failed(text).hint("this is a defect of the simulator: please report it")
                );
            };
            if self.advance(next_ps).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn result(mut self, mut hmb: crate::hmb::HmbResult, interrupted: bool) -> RunResult {
        self.job.close();
        if self.observer.next_look_ps() != u64::MAX {
            self.observer.ended(&DriveState::of(&self.host));
        }
        let simulated_ps = self.host.now_ps();
        hmb.granted_bytes = self.granted_bytes;
        hmb.usable_bytes = self.host.drive.hmb_usable_bytes();
        hmb.used_bytes = hmb_used_bytes(&self.host);
        let jobs = vec![self.job];
        let wear = self.host.drive.wear();
        RunResult {
            map_tiers: self.host.drive.map_tiers(),
            worn: wear.each_ref().map(Worn::of),
            wear,
            utilisation: utilisation(&self.host, &busy_ps(&self.host), simulated_ps),
            simulated_ps,
            measured_ps: simulated_ps,
            busy_ps: self.busy_ps,
            wall_s: 0.0,
            events: self.host.events(),
            requests: self.requests,
            hmb,
            notes: Vec::new(),
            warnings: refused(&jobs).into_iter().collect(),
            interrupted,
            counters: self.host.counters(),
            breakdown: None,
            jobs,
        }
    }
}
