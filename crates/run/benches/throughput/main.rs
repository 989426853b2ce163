//! `make bench`: how fast is the simulator? Requests per second of processor time through the whole stack: job
//! file, run loop, drive, statistics. Absolute figures depend on the machine and on what else it does, so each
//! line also says how many requests are done while a fixed loop, measured before and after in the same run, goes
//! round a thousand times. Rounds alternate, and the best of each counts. Traces are read and simulated in two threads: they
//! are measured in real time.
//!
//! `LODGER_BENCH_REQUESTS=x0.1` has a tenth of the requests of every case, `LODGER_BENCH_TRACE=100000000` traces
//! of a hundred million, `LODGER_BENCH_ONLY=text` only cases whose name contains it.

mod cases;
mod trace;

use cases::{CASES, Case, Work};
use lodger_core::{Host, Op, Precondition, Request};
use lodger_run::report::{Report, json};
use lodger_run::{Drive, RunConfig, WorkloadFile, run};
use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 3;
const TRACE_REQUESTS: u64 = 10_000_000;

/// The smallest drive, one without DRAM, one with a byte window.
const WHOLE_RUNS: [&str; 3] = ["tiny", "bg4", "2b-ssd"];

/// Seconds of processor time of this thread; of real time where the system does not tell.
fn processor_s(started: Instant) -> f64 {
    let stat = fs::read_to_string("/proc/thread-self/schedstat");
    let ran_ns = stat
        .ok()
        .and_then(|stat| stat.split(' ').next()?.parse::<u64>().ok());
    ran_ns.map_or_else(|| started.elapsed().as_secs_f64(), |ns| ns as f64 * 1e-9)
}

/// How long something takes, seconds, and what it gives.
fn timed<R>(work: impl FnOnce() -> R) -> (f64, R) {
    let started = Instant::now();
    let before_s = processor_s(started);
    let result = work();
    (processor_s(started) - before_s, result)
}

/// Rounds a second of the fixed loop: a random number, and a look at a table of 1 MiB that its last answer and
/// the number choose. Half of it the processor computes, half it waits for its second cache, as simulation does.
fn fixed_loop() -> f64 {
    const ROUNDS: u32 = 10_000_000;
    let mut table = vec![0u32; 1 << 18];
    let (took_s, last) = timed(|| {
        let (mut state, mut answer) = (0x9E37_79B9_7F4A_7C15u64, 0u32);
        for _ in 0..ROUNDS {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let place = &mut table[((state as u32 ^ answer) & 0x3_FFFF) as usize];
            answer = *place;
            *place = place.wrapping_add(state as u32);
        }
        answer
    });
    black_box(last);
    f64::from(ROUNDS) / took_s
}

/// What was found out of a case: requests a second, events a request, and of a trace the memory it took at most.
#[derive(Clone, Copy, Default)]
struct Found {
    rate: f64,
    events: f64,
    memory_kib: Option<i64>,
}

impl Found {
    fn keep_best(&mut self, other: Found) {
        self.rate = self.rate.max(other.rate);
        self.events = other.events;
        self.memory_kib = self.memory_kib.max(other.memory_kib);
    }
}

fn measure(case: &Case, share: f64) -> Result<Found, Box<dyn Error>> {
    let count = ((case.count as f64 * share) as u64).max(1);
    let (took_s, result) = timed(|| -> Result<_, Box<dyn Error>> {
        let sets = [case.sets, case.physics].concat();
        let mut config = RunConfig::new(Drive::open(case.drive, &sets)?);
        config.precondition = case.precondition;
        let file = match case.work {
            Work::Fio(_) => WorkloadFile::fio("bench.fio", case.text(count)),
            Work::Window => WorkloadFile::logging("bench.toml", case.text(count)),
        };
        let (workload, _) = file.workload(config.spec(), 1)?;
        Ok(run(&config, workload, &mut ())?)
    });
    let events = result?.events as f64 / count as f64;
    let rate = count as f64 / took_s;
    Ok(Found {
        rate,
        events,
        memory_kib: None,
    })
}

/// In real time: two threads are at work. One of them makes the text, too.
fn measure_trace(
    format: lodger_workload::trace::Format,
    count: u64,
) -> Result<Found, Box<dyn Error>> {
    let replayed = trace::replay(format, count)?;
    Ok(Found {
        rate: count as f64 / replayed.wall_s,
        events: replayed.events as f64 / count as f64,
        memory_kib: replayed.memory_kib,
    })
}

/// Milliseconds to start a preconditioned 8 TB drive and serve its first read, and what memory that
/// took.
fn start_8_tb() -> Result<(f64, String), Box<dyn Error>> {
    let sets = [
        ("capacity", "8TB"),
        ("nand.pages_per_block", "4608"),
        ("tier.dram.size", "10GiB"),
        ("role.map.size.dram", "9GiB"),
    ];
    let drive = Drive::open("970-pro", &sets)?;
    let before = kib("VmRSS:");
    let started = Instant::now();
    let mut host = Host::new(drive.spec(), Precondition::Random, 0, 1);
    host.submit(Request {
        tag: 0,
        queue: 0,
        op: Op::Read,
        fua: false,
        offset_bytes: 1 << 42,
        length_bytes: 4096,
    });
    let mut done = Vec::new();
    host.advance_to_completion(u64::MAX, &mut done);
    let took_ms = started.elapsed().as_secs_f64() * 1e3;
    let memory = match (before, kib("VmRSS:")) {
        (Some(before), Some(after)) => format!("{:.1} MiB", (after - before) as f64 / 1024.0),
        _ => "unknown memory".into(),
    };
    Ok((took_ms, memory))
}

/// Milliseconds for a run that is over at once, as a sweep makes by the million: texts parsed, drive built, a
/// hundred reads, JSON made.
fn whole_run(drive: &str) -> Result<f64, Box<dyn Error>> {
    const RUNS: u32 = 50;
    let (took_s, made) = timed(|| -> Result<(), Box<dyn Error>> {
        for _ in 0..RUNS {
            let config = RunConfig::new(Drive::open(drive, &[])?);
            let job = "[j]\nrw=randread\nbs=4k\niodepth=4\nnumber_ios=100\n".to_string();
            let (workload, _) = WorkloadFile::fio("bench.fio", job).workload(config.spec(), 1)?;
            let result = run(&config, workload, &mut ())?;
            let report = Report {
                config: &config,
                result: &result,
            };
            black_box(json(report, false));
        }
        Ok(())
    });
    made?;
    Ok(took_s * 1e3 / f64::from(RUNS))
}

/// What the system tells of this process's memory: `VmRSS:` is resident now, `VmHWM:` was at most.
fn kib(what: &str) -> Option<i64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(what))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// A number that the environment gives, or `otherwise`.
fn given(name: &str, otherwise: f64) -> Result<f64, Box<dyn Error>> {
    match std::env::var(name) {
        Ok(text) => {
            let number = text.trim_start_matches('x').parse();
            number.map_err(|_| format!("{name} must be a number, found `{text}`").into())
        }
        Err(_) => Ok(otherwise),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let share = given("LODGER_BENCH_REQUESTS", 1.0)?;
    let traced = given("LODGER_BENCH_TRACE", TRACE_REQUESTS as f64)? as u64;
    let only = std::env::var("LODGER_BENCH_ONLY").unwrap_or_default();
    let (start_ms, memory) = start_8_tb()?;
    println!("start of a preconditioned 8 TB drive and its first read: {start_ms:.1} ms, {memory}");
    for drive in WHOLE_RUNS {
        let took_ms = (0..ROUNDS)
            .map(|_| whole_run(drive))
            .try_fold(f64::INFINITY, |least, took| took.map(|ms| least.min(ms)))?;
        println!("a whole run of 100 reads, from text to JSON, {drive}: {took_ms:.2} ms");
    }
    println!();
    let mut fixed = 0.0f64;
    let mut best = [Found::default(); CASES.len()];
    let mut traces = [Found::default(); trace::FORMATS.len()];
    let is_chosen = |name: &str| name.contains(&only);
    for _ in 0..ROUNDS {
        for (found, case) in best.iter_mut().zip(&CASES) {
            if is_chosen(case.name) {
                fixed = fixed.max(fixed_loop());
                found.keep_best(measure(case, share)?);
            }
        }
        for (found, &format) in traces.iter_mut().zip(&trace::FORMATS) {
            if is_chosen("trace") && traced > 0 {
                fixed = fixed.max(fixed_loop());
                found.keep_best(measure_trace(format, traced)?);
            }
        }
    }
    println!(
        "the fixed loop goes round {:.1} M times a second\n",
        fixed / 1e6
    );
    println!(
        "{:<52} {:>12} {:>15} {:>12}",
        "best of 3 rounds, one core", "requests/s", "per 1000 rounds", "events each"
    );
    let line = |name: &str, found: Found| {
        if found.rate > 0.0 {
            let (rate, ratio) = (found.rate / 1e6, found.rate / fixed * 1e3);
            let memory = found.memory_kib.map(|kib| format!("{:>9} MiB", kib >> 10));
            println!(
                "{name:<52} {rate:>10.2} M {ratio:>15.2} {:>12.2}{}",
                found.events,
                memory.unwrap_or_default()
            );
        }
    };
    for (case, &found) in CASES.iter().zip(&best) {
        line(case.name, found);
    }
    let requests = traced as f64 / 1e6;
    if traces.iter().any(|found| found.rate > 0.0) {
        let title = "in real time, read and simulated in two threads";
        println!("\n{title:<94} {:>12}", "memory");
    }
    for (format, &found) in trace::FORMATS.iter().zip(&traces) {
        line(&format!("trace: {requests} M requests as {format}"), found);
    }
    Ok(())
}
