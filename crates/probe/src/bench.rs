//! The prober's hands: a target with a budget, a count of what was done to it, and a way to stop.

use crate::target::{
    Description, HmbState, HmbSwitch, Io, NEEDS_CONSENT, Op, Sample, Target, TargetError,
};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng};
use std::collections::BTreeMap;
use std::time::Duration;

/// Longest run of transfers between two looks at the budget and at Ctrl-C.
const STEP: usize = 4096;

/// Why an experiment did not end by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The user asked to stop.
    Interrupted,
    /// The budget is used up.
    Budget,
    /// This experiment cannot be done here: skipped, with the reason.
    Skip(String),
    /// The target failed.
    Target(TargetError),
}

impl From<TargetError> for Stop {
    fn from(error: TargetError) -> Self {
        match error {
            TargetError::Unsupported(reason) => Stop::Skip(reason),
            TargetError::Interrupted => Stop::Interrupted,
            other => Stop::Target(other),
        }
    }
}

/// What has been done to the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Reads.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Flushes.
    pub flushes: u64,
}

/// A series of points that was measured, for plots and for whoever doubts the verdict.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Name of the horizontal axis, with its unit.
    pub x: &'static str,
    /// Name of the vertical axis, with its unit.
    pub y: &'static str,
    /// The points.
    pub points: Vec<(f64, f64)>,
}

/// A target at work.
#[allow(missing_debug_implementations)]
pub struct Bench<'a> {
    target: &'a mut dyn Target,
    description: Description,
    watch: &'a mut dyn FnMut(Duration) -> bool,
    rng: Xoshiro256PlusPlus,
    deadline: Duration,
    may_write: bool,
    touched_hmb: bool,
    hmb_is_off: bool,
    no_flush_amid: bool,
    run: usize,
    written_most: u64,
    samples: Vec<Sample>,
    ios: Vec<Io>,
    /// What has been done so far.
    pub usage: Usage,
    /// What was measured, by experiment and series.
    pub raw: BTreeMap<String, Series>,
}

impl<'a> Bench<'a> {
    /// Takes a target in hand until its clock shows `deadline`. `watch` is told the time now and
    /// then and answers whether to go on. Nothing is written unless `may_write`, and then no more than
    /// [`Bench::limit`] says.
    pub fn new(
        target: &'a mut dyn Target,
        deadline: Duration,
        may_write: bool,
        seed: u64,
        watch: &'a mut dyn FnMut(Duration) -> bool,
    ) -> Self {
        let description = target.describe().clone();
        Bench {
            target,
            description,
            watch,
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            deadline,
            may_write,
            touched_hmb: false,
            hmb_is_off: false,
            no_flush_amid: false,
            run: 1,
            written_most: 0,
            samples: Vec::new(),
            ios: Vec::new(),
            usage: Usage::default(),
            raw: BTreeMap::new(),
        }
    }

    /// What the target is.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Size, bytes.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.description.capacity_bytes
    }

    /// Size of the reads that measure: 4 KiB, or a block where that is larger.
    #[must_use]
    pub fn page(&self) -> u64 {
        u64::from(self.description.block_bytes).max(4096)
    }

    /// Whether writing has been consented to, and is possible.
    ///
    /// # Errors
    /// [`Stop::Skip`] with the reason.
    pub fn needs_writing(&self) -> Result<(), Stop> {
        if let Some(reason) = &self.description.no_write {
            return Err(Stop::Skip(reason.clone()));
        }
        if !self.may_write {
            return Err(Stop::Skip(NEEDS_CONSENT.to_owned()));
        }
        Ok(())
    }

    /// Whether a flush was issued beside writes wherever it was asked for.
    #[must_use]
    pub fn can_flush_amid(&self) -> bool {
        !self.no_flush_amid
    }

    /// Whether host memory can be turned off and on.
    #[must_use]
    pub fn can_switch_hmb(&self) -> bool {
        self.description.hmb.can_switch()
    }

    /// Begins run `run` (from 1) of something: other numbers are drawn, and what is kept for the
    /// report is kept apart.
    pub fn begin_run(&mut self, seed: u64, run: usize) {
        self.run = run;
        self.rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    }

    /// Which run of an experiment this is, from 1.
    #[must_use]
    pub fn run(&self) -> usize {
        self.run
    }

    /// What follows ends when the target's clock shows `deadline`, and writes at most so many bytes
    /// from now on.
    pub fn limit(&mut self, deadline: Duration, written_bytes: u64) {
        self.deadline = deadline;
        self.written_most = self.usage.written_bytes.saturating_add(written_bytes);
    }

    /// A random number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.rng.next_u64()) * u128::from(n.max(1))) >> 64) as u64
    }

    /// Brings a list into random order.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for i in (1..list.len()).rev() {
            let j = self.below(i as u64 + 1) as usize;
            list.swap(i, j);
        }
    }

    /// Time the target's clock shows.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.target.now()
    }

    fn check(&mut self) -> Result<(), Stop> {
        let now = self.target.now();
        if !(self.watch)(now) {
            return Err(Stop::Interrupted);
        }
        if now > self.deadline {
            return Err(Stop::Budget);
        }
        Ok(())
    }

    /// Runs transfers, in one batch: all that is in flight counts.
    ///
    /// # Errors
    /// When it is time to stop, or the target fails, or a write was not consented to.
    pub fn batch(&mut self, ios: &[Io], queue_depth: u32) -> Result<&[Sample], Stop> {
        self.count(ios)?;
        self.target.run(ios, queue_depth, &mut self.samples)?;
        Ok(&self.samples)
    }

    /// The same, with a flush beside the others as soon as `after` of them have completed: when that had ended,
    /// ns since the batch began, and how many had completed by then; none where the target has no way to do that.
    ///
    /// # Errors
    /// As [`Bench::batch`].
    pub fn batch_flushing(
        &mut self,
        ios: &[Io],
        queue_depth: u32,
        after: usize,
    ) -> Result<Option<(f64, usize)>, Stop> {
        if let Some(reason) = &self.description.no_flush {
            return Err(Stop::Skip(reason.clone()));
        }
        let usage = self.usage;
        self.count(ios)?;
        self.usage.flushes += 1;
        let samples = &mut self.samples;
        match self.target.run_flushing(ios, queue_depth, after, samples) {
            Ok(flushed_ns) => {
                let before = samples.iter().filter(|s| s.completed_ns() <= flushed_ns);
                Ok(Some((flushed_ns as f64, before.count())))
            }
            Err(TargetError::Unsupported(_)) => {
                (self.usage, self.no_flush_amid) = (usage, true);
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Counts transfers, if they are allowed.
    fn count(&mut self, ios: &[Io]) -> Result<(), Stop> {
        self.check()?;
        if ios.iter().any(|io| io.op == Op::Write) {
            self.needs_writing()?;
            let writes = ios.iter().filter(|io| io.op == Op::Write);
            let bytes: u64 = writes.map(|io| u64::from(io.bytes)).sum();
            if self.usage.written_bytes + bytes > self.written_most {
                return Err(Stop::Skip(
                    "it came to write more than was announced".to_owned(),
                ));
            }
        }
        for io in ios {
            match io.op {
                Op::Read => {
                    self.usage.reads += 1;
                    self.usage.read_bytes += u64::from(io.bytes);
                }
                Op::Write => {
                    self.usage.writes += 1;
                    self.usage.written_bytes += u64::from(io.bytes);
                }
            }
        }
        Ok(())
    }

    /// Reads one page at each offset, `queue_depth` at a time; latencies in ns are appended to
    /// `latencies`.
    ///
    /// # Errors
    /// As [`Bench::batch`].
    pub fn read_pages(
        &mut self,
        offsets: impl IntoIterator<Item = u64>,
        queue_depth: u32,
        latencies: &mut Vec<f64>,
    ) -> Result<(), Stop> {
        let page = self.page() as u32;
        let mut offsets = offsets.into_iter();
        loop {
            let mut ios = std::mem::take(&mut self.ios);
            ios.clear();
            ios.extend(offsets.by_ref().take(STEP).map(|at| Io::read(at, page)));
            let done = ios.is_empty();
            if !done {
                self.batch(&ios, queue_depth)?;
                latencies.extend(self.samples.iter().map(|s| s.latency_ns as f64));
            }
            self.ios = ios;
            if done {
                return Ok(());
            }
        }
    }

    /// Makes everything written durable; returns the time it took, ns.
    ///
    /// # Errors
    /// As [`Bench::batch`]; skipped where the target cannot flush.
    pub fn flush(&mut self) -> Result<f64, Stop> {
        self.check()?;
        if let Some(reason) = &self.description.no_flush {
            return Err(Stop::Skip(reason.clone()));
        }
        self.usage.flushes += 1;
        Ok(self.target.flush()? as f64)
    }

    /// Leaves the drive alone.
    ///
    /// # Errors
    /// When it is time to stop.
    pub fn idle(&mut self, time: Duration) -> Result<(), Stop> {
        let mut left = time;
        while !left.is_zero() {
            self.check()?;
            let step = left.min(Duration::from_millis(200));
            self.target.idle(step);
            left -= step;
        }
        Ok(())
    }

    /// Gives or takes host memory.
    ///
    /// # Errors
    /// Skipped where that cannot be done.
    pub fn set_hmb(&mut self, state: HmbState) -> Result<(), Stop> {
        self.check()?;
        if let HmbSwitch::Unavailable(reason) | HmbSwitch::NotGiven(reason) = &self.description.hmb
        {
            return Err(Stop::Skip(reason.clone()));
        }
        if !self.can_switch_hmb() {
            return Err(Stop::Skip("the drive uses no host memory".to_owned()));
        }
        self.touched_hmb = true;
        self.target.set_hmb(state)?;
        self.hmb_is_off = state == HmbState::Off;
        Ok(())
    }

    /// Whether the drive was last left without host memory.
    #[must_use]
    pub fn is_hmb_off(&self) -> bool {
        self.hmb_is_off
    }

    /// Keeps a point for the report.
    pub fn note(&mut self, series: &str, x: &'static str, y: &'static str, point: (f64, f64)) {
        let name = match (self.run, series.split_once(": ")) {
            (1, _) => series.to_owned(),
            (run, Some((name, kind))) => format!("{name} (run {run}): {kind}"),
            (run, None) => format!("{series} (run {run})"),
        };
        let entry = self.raw.entry(name).or_default();
        (entry.x, entry.y) = (x, y);
        entry.points.push(point);
    }
}

impl Drop for Bench<'_> {
    /// Host memory is left as it was found, however the probe ended.
    fn drop(&mut self) {
        if self.touched_hmb {
            let _ = self.target.set_hmb(HmbState::AsFound);
        }
    }
}
