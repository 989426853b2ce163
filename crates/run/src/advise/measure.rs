//! One simulated size of host memory, and the numbers the advice is made of.

use super::stream::Stream;
use crate::Error;
use crate::config::RunConfig;
use crate::hmb::HmbChoice;
use crate::report::together::Together;
use crate::runner::{self, Observer, Progress, RunResult};
use crate::stats::{Direction, JobResult};
use lodger_core::Request;
use lodger_core::observe::Histogram;
use lodger_core::spec::Tier;
use lodger_workload::Workload;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

/// Share of the requests from which on reads must keep up by themselves, and not as a part of all alone.
const COUNTS_ALONE_MIN: f64 = 0.01;

/// A percentile with fewer requests beyond it is a matter of chance.
pub(super) const BEYOND_MIN: f64 = 10.0;

/// Latencies of one kind of request, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latency {
    /// Requests.
    pub count: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 99 per cent take at most so long.
    pub p99_ns: u64,
    /// 99.9 per cent; `None` of too few.
    pub p99_9_ns: Option<u64>,
}

impl Latency {
    fn of(histogram: &Histogram) -> Self {
        Latency {
            count: histogram.count(),
            mean_ns: histogram.mean_ns(),
            p50_ns: histogram.percentile_ns(50.0),
            p99_ns: histogram.percentile_ns(99.0),
            p99_9_ns: sure_percentile_ns(histogram, 99.9),
        }
    }
}

/// A percentile, if enough requests lie beyond it.
fn sure_percentile_ns(histogram: &Histogram, percent: f64) -> Option<u64> {
    let is_sure = beyond(histogram.count(), percent) >= BEYOND_MIN;
    is_sure.then(|| histogram.percentile_ns(percent))
}

/// How many of so many requests lie beyond a percentile.
pub(super) fn beyond(count: u64, percent: f64) -> f64 {
    let beyond = count as f64 * (100.0 - percent) / 100.0;
    // What is rounded on the way is not to cost the last of 10,000.
    (beyond * 1e6).round() / 1e6
}

/// Look-ups of the map by reads, as the drive counted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lookups {
    /// All.
    pub all: u64,
    /// Answered by the drive's own memory.
    pub near: u64,
    /// Answered by host memory.
    pub hmb: u64,
    /// Came with their entry, which the host's driver keeps (HPB).
    pub host: u64,
    /// Waited for a page that another request was reading already.
    pub joined: u64,
    /// Had a page read.
    pub missed: u64,
}

impl Lookups {
    /// A part of all; nothing is no share of nothing.
    pub(super) fn share(&self, part: u64) -> Option<f64> {
        (self.all > 0).then(|| part as f64 / self.all as f64)
    }

    /// Share answered at once, from any memory: what the drive counts as hits. `None` if the map was
    /// never looked up.
    #[must_use]
    pub fn hit_ratio(&self) -> Option<f64> {
        self.share(self.near + self.hmb + self.host)
    }

    /// Share that needed no read from flash of its own, those who joined another's included: what
    /// the curve counts as hits.
    #[must_use]
    pub fn without_read(&self) -> Option<f64> {
        self.share(self.near + self.hmb + self.host + self.joined)
    }
}

/// What a workload is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Of reads, which alone need the map at once.
    Reads,
    /// Of writes, where there are no reads.
    Writes,
    /// Of a database's commits, which wait for writes and flushes.
    Commits,
}

impl Subject {
    /// Whose latencies count.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Subject::Reads => "reads",
            Subject::Writes => "writes",
            Subject::Commits => "commits",
        }
    }

    /// What is counted a second.
    #[must_use]
    pub fn rate(self) -> &'static str {
        match self {
            Subject::Commits => "transactions/s",
            Subject::Reads | Subject::Writes => "IOPS",
        }
    }
}

/// A database's transactions in a run.
#[derive(Clone, Debug, Default)]
struct Committed {
    transactions: u64,
    began_ps: u64,
    ended_ps: u64,
    latency: Histogram,
}

impl Committed {
    /// Those of all jobs that are databases; none if no job is.
    fn of(result: &RunResult) -> Option<Self> {
        let mut all: Option<Self> = None;
        for logging in result.jobs.iter().filter_map(|job| job.logging.as_ref()) {
            let of = &logging.statistics;
            let sum = all.get_or_insert_with(|| Committed {
                began_ps: of.began_ps,
                ..Committed::default()
            });
            sum.transactions += of.transactions;
            sum.began_ps = sum.began_ps.min(of.began_ps);
            sum.ended_ps = sum.ended_ps.max(of.ended_ps);
            sum.latency.merge(&logging.latency);
        }
        all.filter(|all| all.latency.count() > 0)
    }

    fn per_second(&self) -> f64 {
        self.transactions as f64 * 1e12 / self.ended_ps.saturating_sub(self.began_ps).max(1) as f64
    }
}

/// How long a job's requests take.
#[derive(Clone, Debug, PartialEq)]
pub struct JobMean {
    /// Its name.
    pub name: String,
    /// Mean latency of its reads, or of its writes if it does not read, nanoseconds.
    pub mean_ns: f64,
}

impl JobMean {
    fn of(job: &JobResult) -> Self {
        let clat = job.read.clat().or(job.write.clat());
        JobMean {
            name: job.name.clone(),
            mean_ns: clat.map_or(0.0, Histogram::mean_ns),
        }
    }
}

/// What a size of host memory brings.
#[derive(Clone, Debug)]
pub struct Run {
    /// Each job.
    pub jobs: Vec<JobMean>,
    /// Host memory granted, bytes; 0 for none.
    pub hmb_bytes: u64,
    /// What was in use at the end, bytes.
    pub used_bytes: u64,
    /// Requests of all kinds per second.
    pub iops: f64,
    /// A database's transactions per second.
    pub transactions_per_second: Option<f64>,
    /// A database's commits.
    pub commit: Latency,
    /// Reads.
    pub read: Latency,
    /// Writes.
    pub write: Latency,
    /// Map look-ups.
    pub lookups: Lookups,
    /// Units of the map that gave way in host memory.
    pub evictions: u64,
    /// Bytes programmed for each that the host wrote, the map's and moved ones included; `None` where it wrote nothing.
    pub waf: Option<f64>,
    /// Share of the bytes written that found room from the start, before anything had to be collected for it.
    pub into_room: f64,
    /// Something was erased.
    pub has_erased: bool,
    /// Bytes read that had never been written.
    pub unwritten_bytes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Largest queue depth of any job; 0 when requests come at instants of their own.
    pub queue_depth: u32,
    /// What the user should hear.
    pub warnings: Vec<String>,
    /// What the goal is about.
    pub subject: Subject,
    /// Latencies of that.
    decisive: Histogram,
}

impl Run {
    fn new(result: &RunResult) -> Self {
        let (mut read, mut write) = (Histogram::default(), Histogram::default());
        for job in &result.jobs {
            merge(&mut read, &job.read);
            merge(&mut write, &job.write);
        }
        let committed = Committed::of(result);
        let counters = &result.counters;
        // Whether a miss joins another is counted later, which may be after a ramp.
        let mut lookups = Lookups {
            all: counters.map.lookups,
            host: counters.hpb.used,
            joined: counters.map.shared_misses,
            missed: counters
                .map
                .misses
                .saturating_sub(counters.map.shared_misses),
            ..Lookups::default()
        };
        let mut evictions = 0;
        for (tier, number) in result.map_tiers.iter().zip(0..) {
            let hits: u64 = counters.map.hits[number];
            if *tier == Tier::Hmb {
                lookups.hmb += hits;
                evictions += counters.map.evictions[number];
            } else {
                lookups.near += hits;
            }
        }
        let depths = result.jobs.iter().map(|job| job.queue_depth);
        Run {
            jobs: result.jobs.iter().map(JobMean::of).collect(),
            hmb_bytes: result.hmb.granted_bytes,
            used_bytes: result.hmb.used_bytes,
            iops: Together::of(&result.jobs).all.ios_per_second(),
            transactions_per_second: committed.as_ref().map(Committed::per_second),
            commit: committed
                .as_ref()
                .map_or(Latency::default(), |all| Latency::of(&all.latency)),
            read: Latency::of(&read),
            write: Latency::of(&write),
            lookups,
            evictions,
            waf: crate::report::waf(counters),
            into_room: crate::runner::share_into_room(counters),
            has_erased: counters.erases > 0,
            unwritten_bytes: counters.unwritten_slots * lodger_core::spec::SLOT_BYTES,
            read_bytes: counters.host_read_bytes,
            queue_depth: depths.max().unwrap_or(0),
            warnings: result.warnings.clone(),
            subject: match (&committed, read.count() > 0) {
                (Some(_), _) => Subject::Commits,
                (None, true) => Subject::Reads,
                (None, false) => Subject::Writes,
            },
            decisive: match committed {
                Some(committed) => committed.latency,
                None if read.count() > 0 => read,
                None => write,
            },
        }
    }

    /// Whether there is anything to advise on.
    ///
    /// # Errors
    /// If nothing was read or written.
    pub fn has_latencies(&self) -> Result<(), Error> {
        if self.read.count + self.write.count > 0 {
            return Ok(());
        }
        let message =
            "advice is about latencies of reads and writes, and this workload has neither";
        Err(Error::input(message)
            .hint("`lodger compare --hmb off,default` sets its runs beside each other"))
    }

    /// Requests per second, or a database's transactions.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.transactions_per_second.unwrap_or(self.iops)
    }

    /// Mean latency of reads (of writes where there are none; of commits of a database), nanoseconds.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        self.decisive.mean_ns()
    }

    /// Mean latency of reads and writes together; of commits of a database.
    #[must_use]
    pub fn mean_of_all_ns(&self) -> f64 {
        if self.subject == Subject::Commits {
            return self.mean_ns();
        }
        let sum_ns = |latency: Latency| latency.mean_ns * latency.count as f64;
        let all = self.read.count + self.write.count;
        (sum_ns(self.read) + sum_ns(self.write)) / all.max(1) as f64
    }

    /// Whether there are enough of those that a load is judged by to count for themselves.
    #[must_use]
    pub fn counts_alone(&self) -> bool {
        let (reads, writes) = (self.read.count as f64, self.write.count as f64);
        self.subject != Subject::Reads || reads >= (reads + writes) * COUNTS_ALONE_MIN
    }

    /// Share by which requests take longer on average than in another run: all of them, or reads, whichever is more. Reads count
    /// by themselves where they do in the other run.
    #[must_use]
    pub fn longer_than(&self, other: &Run) -> f64 {
        let longer = |now: f64, then: f64| if then > 0.0 { now / then - 1.0 } else { 0.0 };
        let all = longer(self.mean_of_all_ns(), other.mean_of_all_ns());
        match other.counts_alone() {
            true => all.max(longer(self.mean_ns(), other.mean_ns())),
            false => all,
        }
    }

    /// Whose latencies these are, to follow their name where a load reads and writes, so that nobody takes them for all
    /// requests': ` of reads`; or a database's commits.
    #[must_use]
    pub fn of_subject(&self) -> &'static str {
        match self.subject {
            Subject::Commits => " of commits",
            Subject::Reads if self.write.count > 0 => " of reads",
            Subject::Reads | Subject::Writes => "",
        }
    }

    /// Percentile of the same, nanoseconds.
    #[must_use]
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        self.decisive.percentile_ns(percent)
    }

    /// The same, if enough requests lie beyond it.
    #[must_use]
    pub fn sure_percentile_ns(&self, percent: f64) -> Option<u64> {
        sure_percentile_ns(&self.decisive, percent)
    }

    /// How many requests, or commits, those latencies are of.
    #[must_use]
    pub fn decisive_count(&self) -> u64 {
        self.decisive.count()
    }
}

fn merge(histogram: &mut Histogram, direction: &Direction) {
    if let Some(latency) = direction.clat() {
        histogram.merge(latency);
    }
}

/// Told how far a run is, and how much of all runs is done, from 0 to 1; [`ControlFlow::Break`] ends it.
pub type Watch<'w> = dyn Fn(Progress, f64) -> ControlFlow<()> + Sync + 'w;

/// Adds up how far runs are that go on side by side.
pub struct Tally<'w> {
    watch: &'w Watch<'w>,
    /// Runs that are done, and parts of others, in millionths.
    done: AtomicU64,
    /// Runs there will be, as far as is known.
    planned: AtomicU64,
}

const WHOLE: u64 = 1_000_000;

impl<'w> Tally<'w> {
    /// Nothing is done yet of so many runs.
    #[must_use]
    pub fn new(watch: &'w Watch<'w>, planned: usize) -> Self {
        Tally {
            watch,
            done: AtomicU64::new(0),
            planned: AtomicU64::new(planned as u64),
        }
    }

    /// So many runs come, and none after them.
    pub fn expect(&self, more: usize) {
        let done = self.done.load(Ordering::Relaxed) / WHOLE;
        self.planned.store(done + more as u64, Ordering::Relaxed);
    }

    /// A run has come from `before` millionths to `now`.
    fn add(&self, progress: Progress, before: u64, now: u64) -> ControlFlow<()> {
        let more = now.saturating_sub(before);
        let done = self.done.fetch_add(more, Ordering::Relaxed) + more;
        let all = self.planned.load(Ordering::Relaxed).max(1) * WHOLE;
        (self.watch)(progress, (done as f64 / all as f64).min(1.0))
    }
}

/// Simulates one size. The requests go to `stream` as well, if there is one.
///
/// # Errors
/// If the run fails or is interrupted.
pub fn measure(
    config: &RunConfig,
    workload: Workload,
    hmb_bytes: u64,
    stream: Option<Stream>,
    tally: &Tally<'_>,
) -> Result<(Run, Option<Stream>), Error> {
    let config = RunConfig {
        hmb: match hmb_bytes {
            0 => HmbChoice::Off,
            bytes => HmbChoice::Exactly(bytes),
        },
        ..config.clone()
    };
    let mut watched = Watched {
        stream,
        tally,
        done: 0,
    };
    let result = runner::run(&config, workload, &mut watched)?;
    // What was not seen to be done, as its end was not known.
    let rest = WHOLE - watched.done;
    tally.done.fetch_add(rest, Ordering::Relaxed);
    if result.interrupted {
        return Err(Error::interrupted());
    }
    let mut run = Run::new(&result);
    // Below the drive's minimum nothing is granted, whatever was offered.
    run.hmb_bytes = hmb_bytes;
    Ok((run, watched.stream))
}

struct Watched<'w> {
    stream: Option<Stream>,
    tally: &'w Tally<'w>,
    /// How much of this run is told, in millionths.
    done: u64,
}

impl Observer for Watched<'_> {
    #[inline]
    fn submitted(&mut self, _now_ps: u64, job: usize, request: &Request) {
        if let Some(stream) = &mut self.stream {
            stream.submitted(job, request);
        }
    }

    #[inline]
    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        let share = progress.share().unwrap_or(0.0);
        let now = ((share * WHOLE as f64) as u64).min(WHOLE);
        let now = now.max(self.done);
        let before = std::mem::replace(&mut self.done, now);
        self.tally.add(progress, before, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_side_by_side_add_up() {
        let told = std::sync::Mutex::new(Vec::new());
        let watch = |_: Progress, share: f64| {
            told.lock().unwrap().push(share);
            ControlFlow::Continue(())
        };
        let tally = Tally::new(&watch, 4);
        let of = |before, now| assert!(tally.add(Progress::default(), before, now).is_continue());
        of(0, WHOLE / 2);
        of(0, WHOLE / 4);
        of(WHOLE / 2, WHOLE);
        // Only one more comes after the one that is done.
        tally.expect(1);
        of(WHOLE / 4, WHOLE);
        assert_eq!(*told.lock().unwrap(), [0.125, 0.1875, 0.3125, 1.0]);
    }
}
