//! Is the time of each request told apart without a rest, into the right parts, and does telling change nothing?
//!
//! That the parts of every request are its latency to the picosecond is asserted in [`Breakdown`] itself: here are the
//! drives and loads under which it must hold.

use lodger_core::observe::{PARTS, Part, PartsPs};
use lodger_core::{Completion, Op, Precondition, Request};
use lodger_run::report::{self, Report};
use lodger_run::{
    Breakdown, Drive, Observer, Recorder, RunConfig, RunResult, TraceEvents, WorkloadFile, run,
    run_traced,
};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

fn config(drive: &str, sets: &[(&str, &str)]) -> RunConfig {
    RunConfig {
        precondition: match drive {
            "tiny" => Precondition::Random,
            _ => Precondition::Sequential,
        },
        ..RunConfig::new(Drive::open(drive, sets).expect("a drive of the collection"))
    }
}

fn traced(config: &RunConfig, file: &WorkloadFile) -> (RunResult, Breakdown) {
    let (workload, _) = file.workload(config.spec(), 3).expect("it fits");
    let mut breakdown = Breakdown::default();
    let (result, _) =
        run_traced(config, workload, &mut breakdown, Recorder::default()).expect("it runs");
    let breakdown = breakdown.finish(&result);
    (result, breakdown)
}

fn told(config: &RunConfig, result: &RunResult) -> Value {
    let mut json = report::json_value(Report { config, result }, false);
    json["lodger"]["wall_s"] = Value::Null;
    json
}

/// Every kind of request, alone and crowded, small and spanning many dies and translation pages.
fn jobs() -> Vec<String> {
    let mut jobs = Vec::new();
    for (depth, size) in [(1, "4k"), (1, "512"), (32, "4k"), (4, "256k"), (64, "16k")] {
        for rw in ["randread", "randwrite", "randrw", "trim", "randtrimwrite"] {
            for more in ["fsync=7", "sync=1", "ramp_time=1ms"] {
                jobs.push(format!(
                    "[j]\nrw={rw}\nbs={size}\nsize=32m\niodepth={depth}\nnumber_ios=300\nnorandommap\n{more}\n"
                ));
            }
        }
    }
    jobs.push("[a]\nrw=randread\nbs=4k\nsize=32m\niodepth=16\nnumber_ios=3000\n[b]\nrw=randwrite\nbs=4k\nsize=32m\niodepth=16\nnumber_ios=9000\n".to_owned());
    // Beyond what small map caches reach.
    jobs.push(
        "[w]\nrw=randread\nbs=4k\nsize=50%\niodepth=4\nnumber_ios=3000\nnorandommap\n".to_owned(),
    );
    jobs
}

const DRIVES: [&str; 10] = [
    "tiny",
    "rc100-480",
    "970-pro",
    "a1000",
    "m730",
    "2b-ssd",
    "sz985",
    "ufs21-64",
    "galaxy-s7",
    "hong-hmb-buffer",
];

#[test]
fn parts_are_the_latency_on_every_drive_and_change_no_result() {
    let mut met = BTreeSet::new();
    for drive in DRIVES {
        for job in jobs() {
            let file = WorkloadFile::fio("jobs.fio", &job);
            let config = config(drive, &[]);
            let (workload, _) = file.workload(config.spec(), 3).expect("it fits");
            let untraced = run(&config, workload, &mut ()).expect("it runs");
            let (mut result, breakdown) = traced(&config, &file);
            assert_eq!(
                told(&config, &result),
                told(&config, &untraced),
                "{drive}: {job}"
            );
            let directions = [
                |job: &lodger_run::JobResult| job.read.ios,
                |job: &lodger_run::JobResult| job.write.ios,
                |job: &lodger_run::JobResult| job.trim.ios,
                |job: &lodger_run::JobResult| job.sync.ios,
            ];
            for (direction, ios) in breakdown.directions.iter().zip(directions) {
                let all = direction.all();
                assert_eq!(
                    all.requests,
                    result.jobs.iter().map(ios).sum::<u64>(),
                    "{drive}: {job}"
                );
                for part in Part::ALL {
                    if all.parts_ps[part as usize] > 0 {
                        met.insert(part);
                    }
                }
            }
            result.breakdown = Some(breakdown);
            let json = told(&config, &result);
            assert!(json["lodger"]["breakdown"]["read"]["mean"]["parts_ns"]["array"].is_number());
        }
    }
    let missing: Vec<Part> = Part::ALL
        .into_iter()
        .filter(|part| !met.contains(part))
        .collect();
    // No drive of the collection keeps its map there, and no workload here goes through a window.
    assert_eq!(missing, [Part::Gate, Part::MapPm, Part::MapCxl]);
}

#[test]
fn every_superblock_that_is_erased_is_in_the_events_as_a_victim() {
    let job = "[w]\nrw=randwrite\nbs=4k\nsize=100%\niodepth=8\nnorandommap\nio_size=64m\n";
    let file = WorkloadFile::fio("job.fio", job);
    for map_cache in ["32KiB", "8KiB"] {
        let config = config("tiny", &[("role.map.size.sram", map_cache)]);
        let (workload, _) = file.workload(config.spec(), 3).expect("it fits");
        let recorder = Recorder::keeping(Some(TraceEvents::new(1 << 32)));
        let (result, recorder) = run_traced(&config, workload, &mut (), recorder).expect("it runs");
        let events = recorder.into_events().expect("they were asked for");
        let kept = events.write(&mut std::io::sink()).expect("a sink takes it");
        let each = result.wear.iter().flat_map(|wear| &wear.erases);
        let erases = each.map(|erases| u64::from(*erases)).sum();
        assert!(erases > 0, "nothing was erased");
        assert_eq!(kept.kinds[2], (erases, erases), "map cache of {map_cache}");
    }
}

#[test]
fn logging_and_traces_are_told_apart_too() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (name, drive) in [
        ("workloads/logging/redis.toml", "2b-ssd"),
        ("workloads/git.ftrace", "rc100-480"),
    ] {
        let text = std::fs::read_to_string(root.join(name)).expect("a workload file");
        let file = if name.ends_with("toml") {
            let shorter = text.lines().map(|line| match line.split_once(" = ") {
                Some(("transactions", _)) => "transactions = 4000",
                _ => line,
            });
            WorkloadFile::logging(name, shorter.collect::<Vec<_>>().join("\n"))
        } else {
            WorkloadFile::open(&root.join(name), &Default::default()).expect("it can be read")
        };
        let (_, breakdown) = traced(&config(drive, &[]), &file);
        let all = breakdown
            .directions
            .iter()
            .map(|direction| direction.all().requests);
        assert!(all.sum::<u64>() > 0, "{name}");
    }
}

/// Parts of the first request that counts.
#[derive(Default)]
struct First(Option<PartsPs>);

impl Observer for First {
    fn went(&mut self, _: usize, _: &Request, completion: &Completion, parts_ps: &PartsPs) {
        if completion.op != Op::Flush {
            self.0.get_or_insert(*parts_ps);
        }
    }
}

fn first(drive: &str, sets: &[(&str, &str)], job: &str) -> PartsPs {
    let config = config(drive, sets);
    let file = WorkloadFile::fio("one.fio", job);
    let (workload, _) = file.workload(config.spec(), 3).expect("it fits");
    let mut first = First::default();
    run_traced(&config, workload, &mut first, Recorder::default()).expect("it runs");
    first.0.expect("a request")
}

const ONE_READ: &str = "[j]\nrw=randread\nbs=4k\nsize=32m\nnumber_ios=1\n";
const ONE_WRITE: &str = "[j]\nrw=randwrite\nbs=4k\nsize=32m\nnumber_ios=1\n";

fn of(parts_ps: &PartsPs, part: Part) -> u64 {
    parts_ps[part as usize]
}

#[test]
fn an_unloaded_read_is_told_apart_as_the_drive_file_says() {
    for drive in ["970-pro", "a1000", "tiny", "rc100-480"] {
        let config = config(drive, &[]);
        let spec = config.spec();
        let parts = first(drive, &[], ONE_READ);
        assert_eq!(of(&parts, Part::Submission), spec.host.submit_ps);
        assert_eq!(of(&parts, Part::Completion), spec.host.complete_ps);
        assert_eq!(of(&parts, Part::Decoder), spec.nand.ecc_ps);
        let array_ps = of(&parts, Part::Array) - spec.nand.command_ps;
        let reads = spec.nand.read_ps.iter().chain([&spec.nand.slc_read_ps]);
        assert!(
            reads.clone().any(|read_ps| *read_ps == array_ps),
            "{drive}: {array_ps}"
        );
        for part in [
            Part::Queue,
            Part::Gate,
            Part::FirmwareWait,
            Part::BufferWait,
            Part::Memory,
            Part::ProgramWait,
            Part::DieWait,
            Part::Suspended,
            Part::BusWait,
            Part::LinkWait,
        ] {
            assert_eq!(
                of(&parts, part),
                0,
                "{drive}: nothing is in its way, but {part:?}"
            );
        }
    }
}

/// Null: the same flash, young, is read once, and each part is what one try takes.
#[test]
fn tries_of_a_read_are_array_bus_and_decoder_and_no_wait_for_the_die() {
    let aged = |erased: &str| {
        let sets = [
            ("nand.ageing.erased", erased),
            ("nand.ageing.age_days", "365"),
            ("nand.ageing.refresh", "0"),
            ("nand.ageing.errors.spread", "0"),
        ];
        first("aging-tlc", &sets, ONE_READ)
    };
    let (young, worn) = (aged("0"), aged("3000"));
    assert_eq!(of(&young, Part::DieWait), 0);
    assert_eq!(of(&worn, Part::DieWait), 0, "nothing else is on the drive");
    let tries = of(&worn, Part::Array) / of(&young, Part::Array);
    assert!(tries > 1, "worn flash is read again");
    for part in [Part::Array, Part::Bus] {
        assert_eq!(of(&worn, part), tries * of(&young, part), "{part:?}");
    }
    let decoder = of(&worn, Part::Decoder);
    assert!(
        decoder > tries * of(&young, Part::Decoder),
        "{decoder}: more errors take longer"
    );
}

/// A request that is split is over with the last of its commands, whose parts are its own.
#[test]
fn requests_in_parts_and_reads_ahead_are_told_apart_without_a_rest() {
    let split = [("host.max_request", "12KiB")];
    let ahead = [
        ("role.read_cache.size", "256KiB"),
        ("controller.read_ahead.window", "64KiB"),
        ("controller.read_ahead.streams", "4"),
    ];
    let in_order = "[r]\nrw=read\nbs=16k\nsize=16m\niodepth=2\n".to_owned();
    for (drive, sets) in [("970-pro", &split[..]), ("tiny", &split), ("tiny", &ahead)] {
        let config = config(drive, sets);
        for job in jobs().into_iter().step_by(4).chain([in_order.clone()]) {
            let file = WorkloadFile::fio("parts.fio", &job);
            let (result, _) = traced(&config, &file);
            let (workload, _) = file.workload(config.spec(), 3).expect("it fits");
            let plain = run(&config, workload, &mut ()).expect("it runs");
            assert_eq!(told(&config, &result), told(&config, &plain), "{job}");
        }
    }
}

/// The null of every attribution: what is made slower alone becomes longer, and by as much.
#[test]
fn what_is_made_slower_is_the_part_that_grows() {
    for (job, key, value, grows) in [
        (ONE_READ, "nand.ecc", "77us", &[Part::Decoder][..]),
        (ONE_READ, "nand.command", "77us", &[Part::Array]),
        (ONE_READ, "host.submit", "77us", &[Part::Submission]),
        (ONE_READ, "host.complete", "77us", &[Part::Completion]),
        (ONE_READ, "controller.read", "77us", &[Part::Firmware]),
        (ONE_WRITE, "controller.write", "77us", &[Part::Firmware]),
        (ONE_READ, "link.one_way", "77us", &[Part::Fetch, Part::Link]),
        (
            ONE_WRITE,
            "link.one_way",
            "77us",
            &[Part::Fetch, Part::Link],
        ),
        (ONE_READ, "nand.channel_mt_s", "40", &[Part::Bus]),
        (ONE_READ, "tier.dram.access", "77us", &[Part::MapDram]),
    ] {
        let Ok(_) = Drive::open("970-pro", &[(key, value)]) else {
            panic!("no key {key}");
        };
        let before = first("970-pro", &[], job);
        let after = first("970-pro", &[(key, value)], job);
        let grown: Vec<Part> = Part::ALL
            .into_iter()
            .filter(|part| of(&after, *part) != of(&before, *part))
            .collect();
        assert_eq!(grown, grows, "{key}: {before:?}, {after:?}");
    }
}

#[test]
fn a_map_miss_and_each_memory_of_the_map_have_parts_of_their_own() {
    // The same read again: it is a miss first, and then a hit.
    let job = "[j]\nrw=read\nbs=4k\nsize=4k\nloops=2\nnumber_ios=2\nnorandommap\n";
    struct All(Vec<PartsPs>);
    impl Observer for All {
        fn went(&mut self, _: usize, _: &Request, _: &Completion, parts_ps: &PartsPs) {
            self.0.push(*parts_ps);
        }
    }
    let config = config("rc100-480", &[]);
    let file = WorkloadFile::fio("twice.fio", job);
    let (workload, _) = file.workload(config.spec(), 3).expect("it fits");
    let mut all = All(Vec::new());
    run_traced(&config, workload, &mut all, Recorder::default()).expect("it runs");
    let [miss, hit] = all.0[..] else {
        panic!("{} requests", all.0.len());
    };
    assert!(of(&miss, Part::MapFlash) > 10_000_000 && of(&hit, Part::MapFlash) == 0);
    assert_eq!(of(&miss, Part::Array), of(&hit, Part::Array));
    assert_eq!(PARTS, Part::ALL.len());
}
