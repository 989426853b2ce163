//! `make bench`: how fast is the simulator? Requests per second of real time on one core through the
//! whole stack: job file, run loop, drive, statistics. Absolute figures depend on the machine and on
//! what else it does; each line also says what it is as a ratio to the first, measured in the same
//! run. Rounds alternate and the best of each counts.

use lodger_core::{Host, Op, Precondition, Request};
use lodger_run::{Drive, RunConfig, WorkloadFile, run};
use std::error::Error;
use std::fs;
use std::time::Instant;

const ROUNDS: usize = 3;

struct Case {
    name: &'static str,
    drive: &'static str,
    sets: &'static [(&'static str, &'static str)],
    precondition: Precondition,
    job: &'static str,
}

const CASES: [Case; 6] = [
    Case {
        name: "4 KiB random reads, QD32, full map (64 GiB)",
        drive: "970-pro",
        sets: &[("capacity", "64GiB")],
        precondition: Precondition::Sequential,
        job: "[j]\nrw=randread\nbs=4k\niodepth=32\nnorandommap\nnumber_ios=2000000",
    },
    Case {
        name: "4 KiB random reads, QD32, DRAM-less beyond reach",
        drive: "rc100-480",
        sets: &[],
        precondition: Precondition::Sequential,
        job: "[j]\nrw=randread\nbs=4k\niodepth=32\nnorandommap\nnumber_ios=1000000",
    },
    Case {
        name: "4 KiB random writes, QD32, steady state (8 GiB)",
        drive: "970-pro",
        sets: &[
            ("capacity", "8GiB"),
            ("nand.pages_per_block", "64"),
            ("ftl.overprovisioning", "0.15"),
        ],
        precondition: Precondition::Random,
        job: "[j]\nrw=randwrite\nbs=4k\niodepth=32\nnorandommap\nnumber_ios=2000000",
    },
    Case {
        name: "128 KiB sequential reads, QD32",
        drive: "970-pro",
        sets: &[("capacity", "64GiB")],
        precondition: Precondition::Sequential,
        job: "[j]\nrw=read\nbs=128k\niodepth=32\nnumber_ios=300000",
    },
    Case {
        name: "128 KiB sequential writes, QD32",
        drive: "970-pro",
        sets: &[("capacity", "64GiB")],
        precondition: Precondition::None,
        job: "[j]\nrw=write\nbs=128k\niodepth=32\nnumber_ios=300000",
    },
    Case {
        name: "4 KiB random reads, QD1",
        drive: "970-pro",
        sets: &[("capacity", "64GiB")],
        precondition: Precondition::Sequential,
        job: "[j]\nrw=randread\nbs=4k\niodepth=1\nnorandommap\nnumber_ios=2000000",
    },
];

/// Requests per second and events per request.
fn measure(case: &Case) -> Result<(f64, f64), Box<dyn Error>> {
    let mut config = RunConfig::new(Drive::open(case.drive, case.sets)?);
    config.precondition = case.precondition;
    let (workload, _) = WorkloadFile::fio("bench.fio", case.job).workload(config.spec(), 1)?;
    let result = run(&config, workload, &mut ())?;
    let requests = result.requests as f64;
    Ok((requests / result.wall_s, result.events as f64 / requests))
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
    let before = resident_kib();
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
    let memory = match (before, resident_kib()) {
        (Some(before), Some(after)) => format!("{:.1} MiB", (after - before) as f64 / 1024.0),
        _ => "unknown memory".into(),
    };
    Ok((took_ms, memory))
}

/// Resident memory of this process, where the system tells.
fn resident_kib() -> Option<i64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn main() -> Result<(), Box<dyn Error>> {
    let (start_ms, memory) = start_8_tb()?;
    println!(
        "start of a preconditioned 8 TB drive and its first read: {start_ms:.1} ms, {memory}\n"
    );
    let mut best = [(0.0f64, 0.0f64); CASES.len()];
    for _ in 0..ROUNDS {
        for (at, case) in CASES.iter().enumerate() {
            let (rate, events) = measure(case)?;
            best[at] = (best[at].0.max(rate), events);
        }
    }
    println!(
        "{:<52} {:>10} {:>8} {:>12}",
        "best of 3 rounds, one core", "requests/s", "ratio", "events each"
    );
    for (case, (rate, events)) in CASES.iter().zip(best) {
        let ratio = rate / best[0].0;
        println!(
            "{:<52} {:>8.2} M {:>8.2} {:>12.2}",
            case.name,
            rate / 1e6,
            ratio,
            events
        );
    }
    Ok(())
}
