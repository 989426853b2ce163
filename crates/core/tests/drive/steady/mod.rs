//! A load of 4 KiB requests on a drive, and what its user saw: latencies, silences, busy parts.

use crate::common::pages;
use lodger_core::rng::Rng;
use lodger_core::{Completion, DriveSpec, Host, Op, Precondition};

/// How requests come.
#[derive(Clone, Copy, Debug)]
pub enum Arrival {
    /// So many are kept in flight.
    Depth(u32),
    /// One each so many picoseconds, whatever the drive does.
    Every(u64),
}

/// Requests of 4 KiB at random over the whole drive.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub arrival: Arrival,
    /// Of a hundred requests.
    pub reads_percent: u32,
    pub requests: u64,
}

/// Latencies of one kind of request, picoseconds.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    all_ps: Vec<u64>,
    sorted: bool,
}

impl Latencies {
    fn sort(&mut self) {
        if !self.sorted {
            self.all_ps.sort_unstable();
            self.sorted = true;
        }
    }
    pub fn add(&mut self, latency_ps: u64) {
        self.all_ps.push(latency_ps);
        self.sorted = false;
    }
    pub fn count(&self) -> usize {
        self.all_ps.len()
    }
    pub fn mean_ps(&self) -> f64 {
        self.all_ps.iter().map(|&ps| ps as f64).sum::<f64>() / self.all_ps.len().max(1) as f64
    }
    /// The latency that `share` of all requests stay within.
    pub fn quantile_ps(&mut self, share: f64) -> u64 {
        self.sort();
        let rank = (self.all_ps.len() as f64 * share).ceil() as usize;
        self.all_ps[rank.clamp(1, self.all_ps.len()) - 1]
    }
    pub fn longest_ps(&mut self) -> u64 {
        self.quantile_ps(1.0)
    }
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub seconds: f64,
    /// Completions a second in the second half of the run, when what new room hides is used up.
    pub settled_iops: f64,
    pub reads: Latencies,
    pub writes: Latencies,
    /// Longest time in which nothing completed though something was in flight, picoseconds.
    pub silence_ps: u64,
    /// Completions in each 50 ms.
    pub series: Vec<u32>,
    /// Mean share of its time that each kind of part was busy, in the second half of the run.
    pub busy: Vec<(&'static str, f64)>,
    /// Programmed over host-written slots, in the second half of the run.
    pub amplification: f64,
}

impl Seen {
    pub fn iops(&self) -> f64 {
        self.series.iter().map(|&n| f64::from(n)).sum::<f64>() / self.seconds
    }
    /// The busiest kind of part.
    pub fn narrowest(&self) -> (&'static str, f64) {
        let most = self.busy.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        *most.expect("a drive has parts")
    }
}

const SERIES_PS: u64 = 50_000_000_000;
/// How often to look whether it is silent.
const LOOK_STEP_PS: u64 = 2_000_000_000;

struct Watch {
    seen: Seen,
    last_ps: u64,
    start_ps: u64,
}

impl Watch {
    fn note(&mut self, done: &Completion, was_idle_since_ps: u64) {
        let at_ps = done.completed_ps;
        let since_ps = self.last_ps.max(was_idle_since_ps);
        self.seen.silence_ps = self.seen.silence_ps.max(at_ps.saturating_sub(since_ps));
        self.last_ps = at_ps;
        let bin = ((at_ps - self.start_ps) / SERIES_PS) as usize;
        if self.seen.series.len() <= bin {
            self.seen.series.resize(bin + 1, 0);
        }
        self.seen.series[bin] += 1;
        let kind = match done.op {
            Op::Read => &mut self.seen.reads,
            _ => &mut self.seen.writes,
        };
        kind.add(at_ps - done.submitted_ps);
    }
}

type Halfway = (u64, Vec<(&'static str, Vec<u64>)>, u64, u64, u64);

fn state(host: &Host, completed: u64) -> Halfway {
    let counters = host.counters();
    let programmed = counters.programmed_slots_by_cause.iter().sum::<u64>() + counters.padded_slots;
    (
        host.now_ps(),
        host.drive.busy_ps(),
        programmed,
        counters.host_written_bytes / 4096,
        completed,
    )
}

/// Runs the load on a drive in the state that random writes lead to.
pub fn run(spec: &DriveSpec, hmb_bytes: u64, load: Load) -> Seen {
    let mut host = Host::new(spec, Precondition::Random, hmb_bytes, 1);
    run_on(&mut host, load)
}

/// How long a silence may last before somebody looks.
fn look_after_ps() -> Option<u64> {
    let ms = std::env::var("LODGER_LOOK").ok()?;
    Some(ms.parse::<u64>().expect("milliseconds") * 1_000_000_000)
}

fn look_at(look_ps: Option<u64>, host: &Host, watch: &Watch) {
    let silent_ps = host.now_ps() - watch.last_ps;
    if look_ps.is_some_and(|look_ps| silent_ps >= look_ps) {
        let seconds = (host.now_ps() - watch.start_ps) as f64 / 1e12;
        let (silent_ms, state) = (silent_ps / 1_000_000_000, host.drive.debug_state());
        println!("{seconds:.4} s, silent for {silent_ms} ms: {state}");
    }
}

/// Runs the load on a drive as it is. With `LODGER_LOOK=MS` it says what the drive waits for when nothing has completed for
/// so many milliseconds.
pub fn run_on(host: &mut Host, load: Load) -> Seen {
    let look = look_after_ps();
    let mut rng = Rng::new(host.now_ps() ^ 17);
    let slots = host.drive.ftl().user_slots();
    let mut next = |tag: u32| {
        let op = match rng.below(100) < load.reads_percent {
            true => Op::Read,
            false => Op::Write,
        };
        let mut request = pages(op, u64::from(rng.below(slots)), 1);
        request.tag = tag;
        request
    };
    let start_ps = host.now_ps();
    let mut watch = Watch {
        seen: Seen::default(),
        last_ps: start_ps,
        start_ps,
    };
    let (mut issued, mut completed) = (0u64, 0u64);
    let mut done: Vec<Completion> = Vec::new();
    let mut halfway = None;
    // When something came to be in flight again.
    let mut busy_since_ps = start_ps;
    while completed < load.requests {
        let limit_ps = match load.arrival {
            Arrival::Depth(depth) => {
                while issued < load.requests && issued - completed < u64::from(depth) {
                    host.submit(next(0));
                    issued += 1;
                }
                look.map_or(u64::MAX, |_| host.now_ps() + LOOK_STEP_PS)
            }
            Arrival::Every(gap_ps) => {
                while issued < load.requests && start_ps + issued * gap_ps <= host.now_ps() {
                    if issued == completed {
                        busy_since_ps = host.now_ps();
                    }
                    host.submit(next(0));
                    issued += 1;
                }
                match issued < load.requests {
                    true => start_ps + issued * gap_ps,
                    false => u64::MAX,
                }
            }
        };
        host.advance_to_completion(limit_ps, &mut done);
        look_at(look, host, &watch);
        assert!(
            !done.is_empty() || limit_ps != u64::MAX,
            "the drive has stopped: {}",
            host.drive.debug_state()
        );
        for completion in done.drain(..) {
            watch.note(&completion, busy_since_ps);
            completed += 1;
        }
        if halfway.is_none() && completed >= load.requests / 2 {
            halfway = Some(state(host, completed));
        }
    }
    let halfway = halfway.expect("half of the requests come before all of them");
    finish(watch, state(host, completed), &halfway)
}

fn finish(watch: Watch, end: Halfway, halfway: &Halfway) -> Seen {
    let mut seen = watch.seen;
    seen.seconds = (end.0 - watch.start_ps) as f64 / 1e12;
    let span_ps = (end.0 - halfway.0) as f64;
    seen.settled_iops = (end.4 - halfway.4) as f64 / span_ps * 1e12;
    let before_ps = |name: &str| -> u64 {
        let part = halfway.1.iter().find(|(before, _)| *before == name);
        part.map_or(0, |(_, busy_ps)| busy_ps.iter().sum())
    };
    let parts = end.1.iter();
    seen.busy = parts
        .map(|(name, after)| {
            let ps = after.iter().sum::<u64>() - before_ps(name);
            (*name, ps as f64 / span_ps / after.len() as f64)
        })
        .collect();
    seen.amplification = (end.2 - halfway.2) as f64 / (end.3 - halfway.3).max(1) as f64;
    seen
}
