//! `make demo`: what does host memory buy an RC100?
//!
//! A DRAM-less drive reads at random over a growing part of its addresses, with the Host Memory
//! Buffer off and on; then the same drive serves a database whose map its own memory does not hold, and a captured
//! PostgreSQL run whose map it does. Tables in the terminal, `out/demo.html` with plots. It uses nothing that a program of yours could not use.

mod page;

use lodger_core::observe::Histogram;
use lodger_run::{
    Drive, HmbChoice, RunConfig, RunResult, TraceOptions, Workload, WorkloadFile, run,
};
use lodger_workload::trace::{self, Fit, Mode};
use std::error::Error;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

const DRIVE: &str = "rc100-480";
const SPANS_GIB: [u64; 12] = [1, 2, 4, 8, 12, 16, 24, 32, 64, 128, 256, 447];
const CHOICES: [(&str, HmbChoice); 2] = [
    ("HMB off", HmbChoice::Off),
    ("HMB on", HmbChoice::Negotiated),
];
/// What `make page` writes.
const PAGE: &str = "out/what-if.html";
const DATABASE: &str = "workloads/jobs/oltp.fio";
/// The job of it whose reads sessions wait for.
const SESSIONS: &str = "pages";
const TRACES: [&str; 2] = ["workloads/pgbench-load.ftrace", "workloads/pgbench.ftrace"];

/// One point of the working-set sweep.
pub struct Point {
    /// Span of the reads, GiB.
    pub span_gib: u64,
    /// Reads per second, with host memory off and on.
    pub iops: [f64; 2],
    /// 99th percentile of the latency likewise, microseconds.
    pub p99_us: [f64; 2],
}

/// A load on the drive with host memory off, and on.
pub struct Load {
    /// What it is.
    pub title: &'static str,
    /// More about it.
    pub says: &'static str,
    /// Off and on.
    pub replays: Vec<Replay>,
}

/// A load on the drive with host memory off or on.
pub struct Replay {
    /// `HMB off` or `HMB on`.
    pub name: &'static str,
    /// Latencies of the reads.
    pub reads: Histogram,
    /// Look-ups of the map that had to wait for flash, and all of them.
    pub map_misses: (u64, u64),
    /// Host memory in use at the end, bytes.
    pub used_bytes: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let sweep = working_set_sweep()?;
    print_sweep(&sweep);
    let loads = [
        Load {
            title: "A database of 15 GiB",
            says: "A model of a transactional database: eight sessions read pages of 15 GiB, some far more often than others, \
                   while a log and a background writer write (workloads/jobs/oltp.fio).",
            replays: replays(database)?,
        },
        Load {
            title: "A small PostgreSQL",
            says: "A captured run of pgbench: 30 transactions a second on a database of 600 MB, loaded first.",
            replays: replays(captured_run)?,
        },
    ];
    for load in &loads {
        print_replays(load);
    }
    println!(
        "\n`lodger advise FILE --drive NAME` says for any load how much host memory it needs."
    );
    fs::create_dir_all("out")?;
    fs::write("out/demo.html", page::html(&sweep, &loads)?)?;
    println!("\nout/demo.html shows it with plots. Next:");
    println!(
        "  target/release/lodger compare workloads/jobs/working-set.fio --drive {DRIVE} --hmb off,8MiB,16MiB,38MiB"
    );
    println!("  target/release/lodger advise workloads/git.ftrace --drive bg4");
    println!("  target/release/lodger drives list");
    match fs::metadata(PAGE) {
        Ok(_) => println!("\n{PAGE}: move working set and host memory yourself, in a browser."),
        Err(_) => println!(
            "\n`make page` makes {PAGE}, to move working set and host memory in a browser."
        ),
    }
    Ok(())
}

fn config(hmb: HmbChoice) -> Result<RunConfig, Box<dyn Error>> {
    let drive = Drive::open(DRIVE, &[])?;
    let mut config = RunConfig::new(drive);
    config.hmb = hmb;
    config.seed = 1;
    Ok(config)
}

/// Touches the map of the whole span once, lets random reads settle, and measures random reads.
fn job_file(span_gib: u64) -> String {
    format!(
        "[global]\niodepth=32\nsize={span_gib}g\nnorandommap\n\
         [touch]\nrw=read:4092k\nbs=4k\n\
         [settle]\nstonewall\nrw=randread\nbs=4k\nio_size=160m\n\
         [measure]\nstonewall\nrw=randread\nbs=4k\nio_size=160m\n"
    )
}

fn working_set_sweep() -> Result<Vec<Point>, Box<dyn Error>> {
    let mut points = Vec::new();
    for span_gib in SPANS_GIB {
        let mut point = Point {
            span_gib,
            iops: [0.0; 2],
            p99_us: [0.0; 2],
        };
        for (which, (name, hmb)) in CHOICES.into_iter().enumerate() {
            progress(&format!("random reads over {span_gib} GiB, {name}"));
            let config = config(hmb)?;
            let job = WorkloadFile::fio("demo.fio", job_file(span_gib));
            let (workload, _) = job.workload(config.spec(), config.seed)?;
            let result = run(&config, workload, &mut ())?;
            let measured = result.jobs.last().ok_or("three jobs were run")?;
            let reads = measured.read.clat().ok_or("the job reads")?;
            point.iops[which] = measured.read.ios as f64 * 1e12 / measured.runtime_ps() as f64;
            point.p99_us[which] = reads.percentile_ns(99.0) as f64 / 1e3;
        }
        points.push(point);
    }
    progress("");
    Ok(points)
}

/// Runs a load on a new drive with host memory off, and on another with it.
fn replays(
    load: impl Fn(&RunConfig) -> Result<Workload, Box<dyn Error>>,
) -> Result<Vec<Replay>, Box<dyn Error>> {
    let mut replays = Vec::new();
    for (name, hmb) in CHOICES {
        progress(&format!("databases, {name}"));
        let config = config(hmb)?;
        let result = run(&config, load(&config)?, &mut ())?;
        replays.push(summary(name, &result)?);
    }
    progress("");
    Ok(replays)
}

fn database(config: &RunConfig) -> Result<Workload, Box<dyn Error>> {
    let file = WorkloadFile::open(Path::new(DATABASE), &TraceOptions::default())?;
    Ok(file.workload(config.spec(), config.seed)?.0)
}

/// The captured run: the load as fast as it goes, then the run at its own pace.
fn captured_run(config: &RunConfig) -> Result<Workload, Box<dyn Error>> {
    let drive_bytes = config.spec().capacity_bytes;
    let mut jobs = Vec::new();
    let mut description = String::new();
    for (stage, name) in TRACES.iter().enumerate() {
        let file = fs::File::open(Path::new(name))?;
        let options = trace::Options::default();
        let (mut trace, what) = trace::load(io::BufReader::new(file), name, &options)?;
        trace.fit(drive_bytes, Fit::Scale)?;
        let mode = match stage {
            0 => Mode::Closed { queue_depth: 8 },
            _ => Mode::Timed,
        };
        let mut workload = trace.into_workload(mode)?;
        for job in &mut workload.jobs {
            job.stage = stage as u32;
            job.group = stage as u32;
        }
        jobs.append(&mut workload.jobs);
        description = what.summary;
    }
    Ok(Workload { description, jobs })
}

fn summary(name: &'static str, result: &RunResult) -> Result<Replay, Box<dyn Error>> {
    let mut reads = Histogram::default();
    let sessions = result.jobs.iter().filter(|job| job.name == SESSIONS);
    let last = result.jobs.last().into_iter();
    let measured: Vec<_> = sessions.collect();
    let measured = match measured.is_empty() {
        true => last.collect(),
        false => measured,
    };
    for job in measured {
        reads.merge(job.read.clat().ok_or("the load reads")?);
    }
    Ok(Replay {
        name,
        reads,
        map_misses: (result.counters.map.misses, result.counters.map.lookups),
        used_bytes: result.hmb.used_bytes,
    })
}

fn print_sweep(points: &[Point]) {
    println!("Toshiba RC100 480 GB, 4 KiB random reads, 32 in flight: thousand reads per second\n");
    println!(
        "{:>10} {:>10} {:>10} {:>8}   p99 off / on",
        "span", "HMB off", "HMB on", "gain"
    );
    for point in points {
        let [off, on] = point.iops;
        println!(
            "{:>6} GiB {:>9.1}k {:>9.1}k {:>7.1}x   {:.0} / {:.0} us",
            point.span_gib,
            off / 1e3,
            on / 1e3,
            on / off,
            point.p99_us[0],
            point.p99_us[1]
        );
    }
}

fn print_replays(load: &Load) {
    let replays = &load.replays;
    println!("\n{} on the same drive: reads\n", load.title);
    println!(
        "{:>10} {:>10} {:>10} {:>10} {:>14}",
        "", "mean", "p50", "p99", "map misses"
    );
    for replay in replays {
        println!(
            "{:>10} {:>7.0} us {:>7.0} us {:>7.0} us {:>13.1}%",
            replay.name,
            replay.reads.mean_ns() / 1e3,
            replay.reads.percentile_ns(50.0) as f64 / 1e3,
            replay.reads.percentile_ns(99.0) as f64 / 1e3,
            100.0 * replay.map_misses.0 as f64 / replay.map_misses.1.max(1) as f64,
        );
    }
    println!("\n{}", verdict(replays));
}

/// What host memory changed for the captured run, in a sentence.
pub fn verdict(replays: &[Replay]) -> String {
    let [off, on] = replays else {
        return String::new();
    };
    let missed = 100.0 * off.map_misses.0 as f64 / off.map_misses.1.max(1) as f64;
    let change = 100.0 * (on.reads.mean_ns() / off.reads.mean_ns() - 1.0);
    let why = if missed < 5.0 {
        "the controller's own map cache holds nearly all that is asked for"
    } else {
        "those had to be read from flash first"
    };
    format!(
        "Without host memory {missed:.1} % of the look-ups missed the map at hand: {why}. \
         Host memory changes the mean latency of a read by {change:+.1} %."
    )
}

/// What is being done, on one line that the next overwrites; for people only.
fn progress(what: &str) {
    let mut stderr = io::stderr();
    if stderr.is_terminal() {
        let _ = write!(stderr, "\r\x1b[2K{what}");
        let _ = stderr.flush();
    }
}
