//! The state machine of one fio job.

mod failing;
mod flushes;
mod left;
mod pairs;
mod passes;
mod tags;

use self::flushes::Flushes;
use self::left::Left;
use self::pairs::Pairs;
use self::tags::Tags;
use super::backlog::Backlog;
use super::distribution::below;
use super::files::Files;
use super::flow::{Flow, Held};
use super::latency::{LatencyGoal, Search, Wish};
use super::offsets::{Direction, READ, WRITE};
use super::pacing::{Gate, Pacer};
use super::plan::{Choice, Plan};
use super::read_back::Written;
use super::reaping::{Batches, Reaper};
use crate::{Counting, Next};
use lodger_core::{Completion, Op, Request, Status};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Not asked yet.
    New,
    /// Waiting for `startdelay`.
    Delayed,
    Running,
    /// Nothing more in this pass; waiting for what is in flight.
    Draining,
    /// Waiting for the flush at the end of a pass.
    Flushing,
    /// Reading back what was written.
    Verifying,
    Done,
}

/// State machine of one fio job: says what to submit, hears what has completed.
///
/// It has no clock: time is what it is told. Tags are below the queue depth and are reused.
#[derive(Clone, Debug)]
pub struct Generator {
    phase: Phase,
    tags: Tags,
    left: Left,
    flushes: Flushes,
    pairs: Pairs,
    offsets: Files,
    mix_rng: Xoshiro256PlusPlus,
    pacer: Option<Box<Pacer>>,
    flow: Option<Box<Flow>>,
    latency: Option<Box<Search>>,
    reaper: Option<Box<Reaper>>,
    /// Other jobs, what was written, a latency to be kept or the end of the ramp may decide what is next.
    is_bound: bool,
    backlog: Backlog,
    plan: Plan,
    start_ps: u64,
    /// Another job has ended this one.
    stopped: bool,
    /// What ended it: the first answer of the drive after which it is not to go on.
    failure: Option<Status>,
    /// What is to be read back.
    written: Option<Written>,
}

impl Generator {
    pub(super) fn new(plan: Plan) -> Self {
        Self {
            phase: Phase::New,
            tags: Tags::new(plan.depth),
            left: Left::new(&plan),
            flushes: Flushes::default(),
            pairs: Pairs::default(),
            offsets: Files::new(&plan.layout),
            mix_rng: Xoshiro256PlusPlus::seed_from_u64(plan.seed),
            pacer: plan.pace.clone().map(|pace| Box::new(Pacer::new(pace))),
            flow: None,
            latency: (plan.latency).map(|goal| Box::new(Search::new(goal, plan.depth))),
            reaper: plan
                .reaping
                .clone()
                .map(|reaping| Box::new(Reaper::new(reaping))),
            is_bound: plan.backlog.0 > 0 || plan.latency.is_some() || plan.counts_after_ramp(),
            backlog: Backlog::new(plan.backlog),
            start_ps: 0,
            stopped: false,
            failure: None,
            written: plan.verify.map(Written::new),
            plan,
        }
    }

    /// Time from the first call of [`Self::next`] to the start proper (fio's `startdelay`), in
    /// picoseconds; the runtime counts from there.
    #[must_use]
    pub fn start_delay_ps(&self) -> u64 {
        self.plan.delay_ps
    }

    /// Delay, ramp and runtime together, picoseconds; `None` without a runtime.
    #[must_use]
    pub fn runs_ps(&self) -> Option<u64> {
        let plan = &self.plan;
        let before_ps = plan.delay_ps.saturating_add(plan.ramp_ps);
        plan.runtime_ps
            .map(|runtime_ps| before_ps.saturating_add(runtime_ps))
    }

    /// Submits nothing more, as if the runtime were over; without having started it is done.
    pub fn stop(&mut self) {
        if matches!(self.phase, Phase::New | Phase::Delayed) {
            self.done();
        }
        self.stopped = true;
        self.left.stop();
    }

    fn done(&mut self) -> Next {
        self.phase = Phase::Done;
        if let Some(flow) = &mut self.flow {
            flow.leave();
        }
        Next::Done
    }

    /// Binds its rate to that of the other jobs of its flow.
    pub(super) fn set_flow(&mut self, flow: Flow) {
        self.flow = Some(Box::new(flow));
        self.is_bound = true;
    }

    /// The flow that the job belongs to: what one of its jobs does may let others go on.
    #[must_use]
    pub fn flow(&self) -> Option<u64> {
        self.flow.as_ref().map(|flow| flow.id())
    }

    /// Submits through another queue than the job's own (its clone number).
    pub fn set_queue(&mut self, queue: u16) {
        self.plan.queue = queue;
    }

    /// What the job wants to do at `now_ps` (picoseconds; never less than before).
    #[inline]
    pub fn next(&mut self, now_ps: u64) -> Next {
        if self.phase != Phase::Running {
            return self.next_outside(now_ps);
        }
        if self.reaper.is_some() {
            if let Some(next) = self.look() {
                return next;
            }
        } else if !self.tags.has_room(self.plan.refill_at) {
            return Next::Blocked;
        }
        if self.flushes.hold_up() {
            return self.after_write();
        }
        // fio thinks after the last request, too, and beyond its runtime.
        if let Some(pacer) = &mut self.pacer
            && !self.stopped
            && let Some(thinking) = pacer.think(now_ps, self.tags.in_flight())
        {
            return match thinking {
                Gate::At(at_ps) => Next::At(at_ps),
                _ => self.quiesce(),
            };
        }
        if self.left.is_over(now_ps) || self.left.ends_pass() {
            return self.end_pass(now_ps);
        }
        if self.is_bound
            && let Some(next) = self.next_bound(now_ps)
        {
            return next;
        }
        if self.pacer.is_some() {
            return self.next_paced(now_ps);
        }
        if self.flushes.is_due() {
            return self.next_flush();
        }
        let direction = self.choose();
        self.issue(direction, now_ps)
    }

    /// One of the job's requests has completed.
    #[inline]
    pub fn complete(&mut self, completion: &Completion) {
        self.tags.give_back(completion.tag);
        let failed = completion.status != Status::Success;
        if failed {
            self.failed(completion);
        }
        if completion.op != Op::Flush {
            self.backlog
                .completed(completion.tag, completion.op == Op::Read);
        } else {
            self.flushes.completed();
        }
        if let Some(search) = &mut self.latency
            && completion.op != Op::Flush
            && !failed
        {
            search.completed(completion.completed_ps - completion.submitted_ps);
        }
        if let Some(pacer) = &mut self.pacer
            && completion.op != Op::Flush
            && self.phase != Phase::Verifying
        {
            pacer.completed();
        }
    }

    /// The latency that it is to keep, the depth that does, and whether none did.
    #[must_use]
    pub fn latency(&self) -> Option<(LatencyGoal, u32, bool)> {
        let search = self.latency.as_ref()?;
        Some((search.goal(), search.depth(), search.has_missed()))
    }

    /// Whether what has completed so far does not count, as the depth was being searched for; asked once.
    pub fn found_its_depth(&mut self) -> bool {
        (self.latency.as_mut()).is_some_and(|search| search.begins_last())
    }

    #[cold]
    fn next_bound(&mut self, now_ps: u64) -> Option<Next> {
        self.left.count_anew(now_ps, self.plan.requests_max);
        if let Some(search) = &mut self.latency {
            match search.look(now_ps, self.tags.in_flight()) {
                Wish::Go => {}
                Wish::Blocked => return Some(self.quiesce()),
                Wish::End => {
                    self.left.end();
                    return Some(self.end_pass(now_ps));
                }
            }
        }
        if let Some(flow) = &mut self.flow {
            match flow.held(now_ps, self.tags.in_flight()) {
                None => {}
                Some(Held::At(at_ps)) => return Some(Next::At(at_ps.min(self.left.deadline_ps()))),
                Some(Held::Blocked)
                    if self.left.deadline_ps() == u64::MAX || self.tags.in_flight() > 0 =>
                {
                    return Some(self.quiesce());
                }
                Some(Held::Blocked) => return Some(Next::At(self.left.deadline_ps())),
            }
        }
        let (offset, length) = self.backlog.take(self.written.as_mut()?)?;
        Some(self.read_again(offset, length))
    }

    #[inline]
    fn choose(&mut self) -> Direction {
        match self.plan.choice {
            Choice::Always(direction) => direction,
            Choice::Mix { read_percent } => {
                if (below(&mut self.mix_rng, 100) as u32) < read_percent {
                    READ
                } else {
                    WRITE
                }
            }
            Choice::TrimThenWrite | Choice::TrimAndWrite => self.pairs.next(),
        }
    }

    fn next_paced(&mut self, now_ps: u64) -> Next {
        let in_flight = self.tags.in_flight();
        let Some(pacer) = &mut self.pacer else {
            unreachable!("only asked of a paced job");
        };
        let waiting = pacer.waiting();
        if self.flushes.is_due() {
            return self.next_flush();
        }
        let chosen = match waiting {
            Some(direction) => direction,
            None => self.choose(),
        };
        let mixed =
            matches!(self.plan.choice, Choice::Mix { read_percent } if read_percent % 100 != 0);
        let Some(pacer) = &mut self.pacer else {
            unreachable!("only asked of a paced job");
        };
        match pacer.gate(chosen, mixed, now_ps, in_flight) {
            Gate::Go(direction) => self.issue(direction, now_ps),
            Gate::At(at_ps) => Next::At(at_ps.min(self.left.deadline_ps())),
            Gate::Quiesce => self.quiesce(),
        }
    }

    #[inline]
    fn issue(&mut self, direction: Direction, now_ps: u64) -> Next {
        let range = match self.pairs.trimmed() {
            Some(range) if direction == WRITE => Some(range),
            _ => self.offsets.next(direction),
        };
        let Some((offset, length)) = range.or_else(|| self.wrap(direction)) else {
            self.left.exhausted();
            return self.end_pass(now_ps);
        };
        let op = match direction {
            READ => Op::Read,
            WRITE => Op::Write,
            _ => Op::Trim,
        };
        if self
            .pairs
            .counts(&self.plan.choice, direction, (offset, length))
        {
            let reads_back = self.written.is_some();
            self.left.take(length, self.plan.time_based, reads_back);
        }
        self.flushes.issued(direction, &self.plan);
        if direction == WRITE
            && let Some(written) = &mut self.written
        {
            written.add(offset, length);
        }
        self.left.issued();
        if let Some(pacer) = &mut self.pacer {
            pacer.issued(direction, length);
        }
        let request = self.request(op, offset + self.plan.layout.base, length);
        if self.is_bound {
            if let Some(flow) = &mut self.flow {
                flow.issued();
            }
            if direction == WRITE {
                self.backlog.wrote(request.tag, offset);
            }
        }
        Next::Submit(request)
    }

    /// A job that runs by time starts the range again without waiting for anything.
    #[cold]
    fn wrap(&mut self, direction: Direction) -> Option<(u64, u64)> {
        if !self.plan.time_based {
            return None;
        }
        self.offsets.rewind(direction);
        self.offsets.next(direction)
    }

    #[inline]
    fn request(&mut self, op: Op, offset_bytes: u64, length_bytes: u64) -> Request {
        let tag = self.tags.take();
        if let Some(reaper) = &mut self.reaper
            && op != Op::Flush
        {
            reaper.issued();
        }
        Request {
            tag,
            queue: self.plan.queue,
            op,
            fua: self.plan.fua && op == Op::Write,
            offset_bytes,
            length_bytes,
        }
    }

    fn flush(&mut self) -> Request {
        self.flushes.begin(self.plan.flush_holds);
        let request = self.request(Op::Flush, 0, 0);
        // That at the end of a pass is none of the thread's requests, as in fio.
        if let Some(reaper) = &mut self.reaper
            && self.phase == Phase::Running
        {
            match self.plan.flush_holds {
                true => reaper.flushes(self.tags.in_flight()),
                false => reaper.issued(),
            }
        }
        request
    }

    /// A flush that is due.
    #[cold]
    fn next_flush(&mut self) -> Next {
        if let Some(reaper) = &mut self.reaper
            && self.plan.flush_holds
            && let Some(next) = reaper.look_before_flush(self.tags.in_flight())
        {
            return next;
        }
        Next::Submit(self.flush())
    }

    /// Until nothing is in flight.
    #[cold]
    fn quiesce(&mut self) -> Next {
        match &mut self.reaper {
            Some(reaper) => reaper.quiesce(self.tags.in_flight()),
            None => Next::Blocked,
        }
    }

    /// What the thread of a job that takes completions when it looks does before it issues anything. In a flush it does nothing.
    #[cold]
    fn look(&mut self) -> Option<Next> {
        if self.flushes.is_in_flight() {
            return Some(Next::Blocked);
        }
        (self.reaper.as_mut()?).look(self.tags.in_flight())
    }

    /// Whether the thread takes the completion of what was submitted last when it looks, and not as it arrives.
    #[inline]
    #[must_use]
    pub fn takes_later(&self, op: Op) -> bool {
        self.reaper.is_some()
            && (op != Op::Flush || (!self.plan.flush_holds && self.phase == Phase::Running))
    }

    /// Whether it counts [`Self::batches`].
    #[must_use]
    pub fn has_batches(&self) -> bool {
        self.reaper.is_some()
    }

    /// What was handed over and taken at once since this was asked last.
    pub fn batches(&mut self) -> Option<Batches> {
        self.reaper.as_mut().map(|reaper| reaper.batches())
    }

    /// A completion has arrived that is to be [taken](Next::Reap) when the thread looks.
    pub fn arrived(&mut self) {
        if let Some(reaper) = &mut self.reaper {
            reaper.arrived();
        }
    }

    /// The flush that a write ends with, or the wait for a flush that holds everything up.
    #[cold]
    fn after_write(&mut self) -> Next {
        if self.flushes.is_in_flight() || self.tags.in_flight() > 0 {
            return Next::Blocked;
        }
        self.flushes.begin_tail();
        Next::Submit(self.request(Op::Flush, 0, 0))
    }

    /// How what was submitted last, or completes now, counts.
    #[must_use]
    pub fn counting(&self, op: Op) -> Counting {
        match op {
            Op::Write if self.plan.write_flushes => Counting::Head,
            Op::Flush if self.flushes.is_tail() => Counting::Tail,
            Op::Flush if self.phase == Phase::Flushing => Counting::No,
            _ => Counting::Yes,
        }
    }

    /// Whether the job reads back what it has written.
    #[must_use]
    pub fn is_reading_back(&self) -> bool {
        self.phase == Phase::Verifying
    }
}
