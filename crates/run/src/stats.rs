//! What is measured of each job while it runs, as fio measures it.

use crate::course::Course;
use crate::error::Error;
use crate::logging::LoggingResult;
use crate::steady::SteadyResult;
use lodger_core::observe::Histogram;
use lodger_core::time::{MS, NS, S, US};
use lodger_core::{Completion, Op, Request, Status};
use lodger_workload::trace::{Ending, PERCENTILES, Recorded};
use lodger_workload::{Counting, Job, Source};

/// Interval of the sampled rates: fio's `bwavgtime` and `iopsavgtime`.
pub const SAMPLE_PS: u64 = 500 * MS;

/// Mean, spread and range of rates sampled over time, kept as fio keeps them: groups add theirs up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Samples {
    /// Number of samples.
    pub count: u64,
    /// Smallest.
    pub min: u64,
    /// Largest.
    pub max: u64,
    /// Mean.
    pub mean: f64,
    /// Sum of squared distances from the mean.
    pub squares: f64,
}

impl Samples {
    pub(crate) fn add(&mut self, value: u64) {
        self.min = if self.count == 0 {
            value
        } else {
            self.min.min(value)
        };
        self.max = self.max.max(value);
        self.count += 1;
        let distance = value as f64 - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (value as f64 - self.mean);
    }

    /// Standard deviation of the samples; 0 below two.
    #[must_use]
    pub fn stddev(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        (self.squares / (self.count - 1) as f64).sqrt()
    }

    /// Adds the samples of another job that ran at the same time: rates add up.
    pub fn merge(&mut self, other: &Samples) {
        self.count += other.count;
        self.min += other.min;
        self.max += other.max;
        self.mean += other.mean;
        self.squares += other.squares;
    }
}

/// The number of an operation's direction, as in fio's logs: read, write, trim, sync.
pub(crate) fn direction_of(op: Op) -> usize {
    match op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Trim => 2,
        Op::Flush => 3,
    }
}

/// One direction (read, write, trim, sync) of one job.
#[derive(Clone, Debug, Default)]
pub struct Direction {
    /// Requests completed.
    pub ios: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Completion latency: from the end of the submission (doorbell) to the completion. `None` as
    /// long as there was nothing.
    latency: Option<Box<Histogram>>,
    course: Option<Box<Course>>,
    /// Rates sampled every [`SAMPLE_PS`], KiB/s.
    pub bw: Samples,
    /// Rates sampled every [`SAMPLE_PS`], requests per second.
    pub iops: Samples,
    /// How long the job did this, picoseconds: fio's `runtime` of the direction. What was written is read back
    /// (`verify`) while nothing is written.
    pub runtime_ps: u64,
    window_ios: u64,
    window_bytes: u64,
}

impl Direction {
    /// Completion latency (fio's clat): from the doorbell to the completion handler.
    #[must_use]
    pub fn clat(&self) -> Option<&Histogram> {
        self.latency.as_deref()
    }

    /// How the completion latency went on from where counting begins; of jobs merged, that of the first.
    #[must_use]
    pub fn course(&self) -> Option<&Course> {
        self.course.as_deref()
    }

    /// A request of so many bytes took so long, and completed so long after counting began.
    #[inline]
    fn record(&mut self, bytes: u64, clat_ns: u64, at_ps: u64) {
        self.ios += 1;
        self.bytes += bytes;
        self.window_ios += 1;
        self.window_bytes += bytes;
        self.latency
            .get_or_insert_with(Box::default)
            .record(clat_ns);
        self.course
            .get_or_insert_with(Box::default)
            .record(at_ps, clat_ns);
    }

    fn close_window(&mut self) {
        if self.window_ios > 0 {
            // fio leaves out intervals without a completion.
            let per_second = |n: u64| (u128::from(n) * u128::from(S / SAMPLE_PS)) as u64;
            self.bw.add(per_second(self.window_bytes) / 1024);
            self.iops.add(per_second(self.window_ios));
        }
        self.window_ios = 0;
        self.window_bytes = 0;
    }

    /// Adds another job's requests in the same direction.
    pub fn merge(&mut self, other: &Direction) {
        // fio takes the longest.
        self.runtime_ps = self.runtime_ps.max(other.runtime_ps);
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.bw.merge(&other.bw);
        self.iops.merge(&other.iops);
        if let Some(theirs) = &other.latency {
            match &mut self.latency {
                Some(ours) => ours.merge(theirs),
                none => *none = Some(theirs.clone()),
            }
        }
    }
}

/// What came of fio's `latency_target`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyFound {
    /// The target, nanoseconds.
    pub target_ns: u64,
    /// The window, microseconds.
    pub window_us: u64,
    /// Share of requests that had to keep it, per cent.
    pub percentile: f64,
    /// Depth at the end.
    pub depth: u32,
    /// One request at a time took too long, too.
    pub missed: bool,
}

/// What one job did.
#[derive(Clone, Debug)]
pub struct JobResult {
    /// fio's `jobname`.
    pub name: String,
    /// fio's `groupid`.
    pub group: u32,
    /// Jobs of one stage ran at the same time.
    pub stage: u32,
    /// Reported as one with its group.
    pub group_reporting: bool,
    /// Options as fio echoes them.
    pub options: Vec<(String, String)>,
    /// Options from `[global]`.
    pub global_options: Vec<(String, String)>,
    /// Percentiles to report, per cent.
    pub percentiles: Vec<f64>,
    /// Largest number of requests in flight; 0 for no bound of its own.
    pub queue_depth: u32,
    /// Reads.
    pub read: Direction,
    /// Writes.
    pub write: Direction,
    /// Trims.
    pub trim: Direction,
    /// Flushes.
    pub sync: Direction,
    /// Requests in flight at each submission, that one included (of a batch, all of it): 1, 2-3, 4-7, ... 64 and more.
    pub depth_levels: [u64; 7],
    /// How often so many requests were handed over at once: 0, 1-4, 5-8, 9-16, 17-32, 33-64 and more.
    pub handed_over: [u64; 7],
    /// How often so many completions were taken at once, likewise.
    pub taken: [u64; 7],
    /// What the host takes from submission to doorbell (fio's slat), nanoseconds.
    pub slat_ns: u64,
    /// From here on requests count: the start of the job after its delay and ramp, picoseconds.
    pub start_ps: u64,
    /// The job's end: its last completion, or a wait after it that its runtime ended.
    pub end_ps: u64,
    /// Requests submitted, those in the ramp included.
    pub submitted: u64,
    /// Requests completed, those in the ramp included.
    pub completed: u64,
    /// Requests that the drive refused.
    pub errors: u64,
    /// What it said to the first of them.
    pub first_error: Option<Status>,
    /// What it said to the request that ended the job, as fio's jobs end at an error unless `continue_on_error` says otherwise.
    pub failure: Option<Status>,
    /// The job was to go on after errors of some kind.
    pub survives_errors: bool,
    /// What the database did, of a job that is one.
    pub logging: Option<Box<LoggingResult>>,
    /// How long its requests took when they were recorded, of a trace that says so.
    pub trace: Option<Box<Recorded>>,
    /// The latency it was to keep, and the depth that does.
    pub latency: Option<LatencyFound>,
    /// Whether its rate kept still, if it was to end then.
    pub steady: Option<Box<SteadyResult>>,
    slat_ps: u64,
    sample_at_ps: u64,
    /// When the ramp ends and counting begins anew; at the end of time if it is over.
    ramp_end_ps: u64,
    in_flight: u32,
    /// Since when it reads back what it has written, and how long it did so before.
    reading_back_since_ps: Option<u64>,
    read_back_ps: u64,
    /// It reads otherwise.
    reads: bool,
    /// The job counts itself how many requests it hands over and takes at once, and how many are in flight then.
    has_batches: bool,
}

impl JobResult {
    /// Before the job's start.
    pub(crate) fn new(job: &Job, slat_ps: u64) -> Self {
        Self {
            group: job.group,
            stage: job.stage,
            group_reporting: job.group_reporting,
            options: job.options.clone(),
            global_options: job.global_options.clone(),
            percentiles: job.percentiles.clone(),
            queue_depth: job.queue_depth,
            slat_ns: slat_ps / NS,
            survives_errors: job.survives_errors(),
            logging: match &job.source {
                Source::Logging(model) => Some(Box::new(LoggingResult::new(model))),
                _ => None,
            },
            trace: job.recorded.clone(),
            slat_ps,
            has_batches: matches!(&job.source, Source::Fio(generator) if generator.has_batches()),
            ..Self::recorded(&job.name)
        }
    }

    /// Of what was recorded of a live drive, before its start: everything counts from the beginning.
    pub(crate) fn recorded(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            group: 0,
            stage: 0,
            group_reporting: false,
            options: Vec::new(),
            global_options: Vec::new(),
            percentiles: PERCENTILES.to_vec(),
            queue_depth: 0,
            read: Direction::default(),
            write: Direction::default(),
            trim: Direction::default(),
            sync: Direction::default(),
            depth_levels: [0; 7],
            handed_over: [0; 7],
            taken: [0; 7],
            slat_ns: 0,
            start_ps: 0,
            end_ps: 0,
            submitted: 0,
            completed: 0,
            errors: 0,
            first_error: None,
            failure: None,
            survives_errors: false,
            logging: None,
            trace: None,
            latency: None,
            steady: None,
            slat_ps: 0,
            sample_at_ps: 0,
            ramp_end_ps: u64::MAX,
            in_flight: 0,
            reading_back_since_ps: None,
            read_back_ps: 0,
            reads: false,
            has_batches: false,
        }
    }

    /// The job's stage begins.
    pub(crate) fn begin(&mut self, job: &Job, now_ps: u64) {
        let delay_ps = match &job.source {
            Source::Fio(generator) => generator.start_delay_ps(),
            Source::Trace(_) | Source::Logging(_) => 0,
        };
        self.begin_counting(now_ps.saturating_add(delay_ps));
        // `ramp_ps` counts from the stage's start, so it contains the delay.
        if job.ramp_ps > delay_ps {
            self.ramp_end_ps = now_ps.saturating_add(job.ramp_ps);
        }
    }

    /// Where counting begins, once the stage has begun: after the ramp, if there is one.
    pub(crate) fn counted_from_ps(&self) -> u64 {
        match self.ramp_end_ps {
            u64::MAX => self.start_ps,
            ramp_end_ps => ramp_end_ps,
        }
    }

    /// It is in its ramp or before it, or has ended there.
    pub(crate) fn has_ramp(&self) -> bool {
        self.ramp_end_ps != u64::MAX
    }

    fn begin_counting(&mut self, start_ps: u64) {
        self.start_ps = start_ps;
        self.end_ps = start_ps;
        self.sample_at_ps = start_ps.saturating_add(SAMPLE_PS);
    }

    /// The ramp is over: what was counted in it is forgotten. As in fio, a job that ends before is counted whole.
    #[cold]
    fn end_ramp(&mut self) {
        self.forget(self.ramp_end_ps);
    }

    /// Counting begins anew.
    fn forget(&mut self, now_ps: u64) {
        self.begin_counting(now_ps);
        self.ramp_end_ps = u64::MAX;
        for direction in [
            &mut self.read,
            &mut self.write,
            &mut self.trim,
            &mut self.sync,
        ] {
            *direction = Direction::default();
        }
        self.depth_levels = [0; 7];
        (self.handed_over, self.taken) = ([0; 7], [0; 7]);
        (self.reads, self.read_back_ps) = (false, 0);
        (self.errors, self.first_error) = (0, None);
    }

    /// The job was asked what it wants to do. `committed` hears of a database's commits.
    #[inline]
    pub(crate) fn asked(&mut self, job: &mut Job, now_ps: u64, committed: impl FnMut(u64)) {
        if let Source::Fio(generator) = &mut job.source
            && generator.found_its_depth()
        {
            self.forget(now_ps);
        }
        if self.has_batches
            && let Source::Fio(generator) = &mut job.source
            && let Some(batches) = generator.batches()
        {
            add_all(&mut self.depth_levels, &batches.levels);
            add_all(&mut self.handed_over, &batches.handed_over);
            add_all(&mut self.taken, &batches.taken);
        }
        if job.is_reading_back() != self.reading_back_since_ps.is_some() {
            self.turned(now_ps);
        }
        if let (Some(logging), Source::Logging(model)) = (&mut self.logging, &mut job.source) {
            logging.follow(model, committed);
        }
    }

    /// The job has begun to read back what it has written, or is done with that.
    #[cold]
    fn turned(&mut self, now_ps: u64) {
        self.reading_back_since_ps = match self.reading_back_since_ps {
            None => Some(now_ps),
            Some(since_ps) => {
                self.read_back_ps += now_ps.saturating_sub(since_ps.max(self.start_ps));
                None
            }
        };
    }

    /// The job wants nothing more.
    pub(crate) fn stopped(&mut self, now_ps: u64) {
        if now_ps >= self.ramp_end_ps {
            self.end_ramp();
        }
        self.end_ps = self.end_ps.max(now_ps);
    }

    /// Nothing more comes: the runtime of each direction.
    pub(crate) fn close(&mut self) {
        if !self.has_batches {
            // One by one.
            (self.handed_over[1], self.taken[1]) = (self.completed, self.completed);
        }
        if self.reading_back_since_ps.is_some() {
            self.turned(self.end_ps);
        }
        let work_ps = self.runtime_ps().saturating_sub(self.read_back_ps);
        let read_ps = if self.reads { work_ps } else { 0 } + self.read_back_ps;
        for (direction, runtime_ps) in [
            (&mut self.read, read_ps),
            (&mut self.write, work_ps),
            (&mut self.trim, work_ps),
            (&mut self.sync, work_ps),
        ] {
            direction.runtime_ps = if direction.ios > 0 { runtime_ps } else { 0 };
        }
    }

    /// The job's trace was read meanwhile, to its end: `notes` hears what is known only now.
    pub(crate) fn was_read(&mut self, ending: Ending, notes: &mut Vec<String>) {
        notes.push(ending.description.summary);
        notes.extend(ending.description.notes);
        notes.extend(ending.fitted.notes);
        self.trace = ending.recorded;
    }

    /// The job is done.
    pub(crate) fn ended(&mut self, job: &mut Job) -> Result<(), Error> {
        self.latency = job.latency().map(|(goal, depth, missed)| LatencyFound {
            target_ns: goal.target_ps / NS,
            window_us: goal.window_ps / US,
            percentile: goal.percentile,
            depth,
            missed,
        });
        self.failure = job.failure();
        if self.errors == 0 && self.failure.is_some() {
            // The flush at the end of a pass, which counts nowhere else, or one that the end of a ramp has had forgotten.
            (self.errors, self.first_error) = (1, self.failure);
        }
        match (&mut self.logging, &mut job.source) {
            (Some(logging), Source::Logging(model)) => logging.finish(model),
            _ => Ok(()),
        }
    }

    /// A request was submitted.
    #[inline]
    pub(crate) fn submitted(&mut self, now_ps: u64, counting: Counting) {
        self.submitted += 1;
        self.in_flight += 1;
        if now_ps >= self.ramp_end_ps {
            self.end_ramp();
        }
        if now_ps >= self.start_ps
            && !self.has_batches
            && matches!(counting, Counting::Yes | Counting::Head)
        {
            self.depth_levels[self.in_flight.ilog2().min(6) as usize] += 1;
        }
    }

    /// A request is no longer in flight.
    #[inline]
    pub(crate) fn returned(&mut self) {
        self.completed += 1;
        self.in_flight -= 1;
    }

    /// A request has completed that counts, perhaps with another that belongs to it.
    #[inline]
    pub(crate) fn completed(&mut self, request: &Request, completion: &Completion) {
        if completion.completed_ps >= self.ramp_end_ps {
            self.end_ramp();
        }
        if completion.submitted_ps < self.start_ps {
            return;
        }
        self.end_ps = completion.completed_ps;
        if completion.completed_ps >= self.sample_at_ps {
            self.close_windows(completion.completed_ps);
        }
        if completion.status != Status::Success {
            self.errors += 1;
            self.first_error.get_or_insert(completion.status);
            return;
        }
        let latency_ps = completion.completed_ps - completion.submitted_ps;
        let clat_ns = latency_ps.saturating_sub(self.slat_ps) / NS;
        let direction = match completion.op {
            Op::Read => {
                self.reads |= self.reading_back_since_ps.is_none();
                &mut self.read
            }
            Op::Write => &mut self.write,
            Op::Trim => &mut self.trim,
            Op::Flush => &mut self.sync,
        };
        let at_ps = completion.completed_ps - self.start_ps;
        direction.record(request.length_bytes, clat_ns, at_ps);
    }

    #[cold]
    fn close_windows(&mut self, now_ps: u64) {
        for direction in [&mut self.read, &mut self.write, &mut self.trim] {
            direction.close_window();
        }
        let whole = (now_ps - self.sample_at_ps) / SAMPLE_PS + 1;
        self.sample_at_ps = self
            .sample_at_ps
            .saturating_add(whole.saturating_mul(SAMPLE_PS));
    }

    /// From the first counted instant to the end, picoseconds.
    #[must_use]
    pub fn runtime_ps(&self) -> u64 {
        self.end_ps - self.start_ps
    }

    /// Adds a job reported as one with this one.
    pub fn merge(&mut self, other: &JobResult) {
        self.read.merge(&other.read);
        self.write.merge(&other.write);
        self.trim.merge(&other.trim);
        self.sync.merge(&other.sync);
        add_all(&mut self.depth_levels, &other.depth_levels);
        add_all(&mut self.handed_over, &other.handed_over);
        add_all(&mut self.taken, &other.taken);
        // fio takes the longest runtime of a group.
        if other.runtime_ps() > self.runtime_ps() {
            self.start_ps = other.start_ps;
            self.end_ps = other.end_ps;
        }
        self.submitted += other.submitted;
        self.completed += other.completed;
        self.errors += other.errors;
        self.first_error = self.first_error.or(other.first_error);
        self.failure = self.failure.or(other.failure);
        self.survives_errors |= other.survives_errors;
    }
}

/// Adds lists up, place by place.
fn add_all(sums: &mut [u64; 7], more: &[u64; 7]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum += more;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_those_of_fio() {
        // The `rated` fixture: 240, 240 and 248 KiB/s.
        let mut samples = Samples::default();
        for value in [240, 240, 248] {
            samples.add(value);
        }
        assert_eq!((samples.min, samples.max, samples.count), (240, 248, 3));
        assert!((samples.mean - 242.666667).abs() < 1e-6);
        assert!((samples.stddev() - 4.618802).abs() < 1e-6);
    }
}
