//! Did a simulated result move? What `simulate` prints and logs, for many pairs of drive and workload, is
//! held against what was recorded (`tests/command/recorded.txt`), to the byte.
//!
//! A change that means to move results records them again with `UPDATE_RECORDED=1 cargo test -p lodger
//! --test command recorded::` and says so in the changelog; the difference of the file shows which moved.

use crate::common::Sandbox;
use lodger_testing::hash;
use std::fmt::Write;

/// Small, and each with something the others lack.
const JOBS: [(&str, &str); 5] = [
    (
        "mixed",
        "rw=randrw\nrwmixread=60\nbs=4k\niodepth=8\nnorandommap\nnumber_ios=1500\nfsync=64",
    ),
    (
        "writes",
        "rw=randwrite\nbs=4k\niodepth=16\nnorandommap\nnumber_ios=3000",
    ),
    (
        "sizes",
        "rw=randrw\nrwmixread=40\nbssplit=512/20:4k/50:20k/30\nblockalign=512\niodepth=4\nnorandommap\nnumber_ios=1200\nwritefua=1",
    ),
    ("stream", "rw=readwrite\nbs=128k\niodepth=4\nnumber_ios=300"),
    (
        "trims",
        "rw=randtrim\nbs=64k\niodepth=4\nnorandommap\nnumber_ios=300\n[beside]\nrw=randrw\nbs=4k\nnorandommap\nnumber_ios=900",
    ),
];

/// Keys of the tiny drive that bring in what no drive of the collection has.
const VARIANTS: [&[&str]; 20] = [
    &["tier.hmb.integrity=crc"],
    &["tier.hmb.integrity=mac"],
    &["role.map.encoding.hmb=runs"],
    &["role.map.exclusive=true"],
    &["role.map.replacement=fifo"],
    &["role.map.replacement=clock"],
    &["role.map.replacement=2q"],
    &["role.map.replacement=random"],
    &["ftl.gc_policy=fifo"],
    &["ftl.gc_policy=cost-benefit"],
    &["ftl.gc_policy=d-choices"],
    &["ftl.hot_cold_streams=true"],
    &["ftl.gc_own_stream=false"],
    &["ftl.wear_static_threshold=3"],
    &["role.write_buffer.tier=slc"],
    &["role.write_buffer.tier=hmb", "tier.hmb.preferred=4MiB"],
    &["role.write_buffer.acknowledge=programmed"],
    &[
        "role.read_cache.tier=hmb",
        "role.read_cache.size=1MiB",
        "tier.hmb.preferred=4MiB",
    ],
    &["nand.cache_program=false"],
    &["nand.one_shot=false"],
];

struct Case {
    name: String,
    args: Vec<String>,
}

fn case(name: String, args: &[&str]) -> Case {
    let args = args.iter().map(ToString::to_string).collect();
    Case { name, args }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for drive in lodger_run::drives::names() {
        for (number, (job, _)) in JOBS.iter().enumerate() {
            let file = format!("{job}.fio");
            let hmb = ["default", "off", "32MiB", "default", "16MiB"][number];
            let state = ["sequential", "random", "random", "none", "sequential"][number];
            cases.push(case(
                format!("{drive} {job} {state} hmb={hmb}"),
                &[
                    &file,
                    "--drive",
                    drive,
                    "--hmb",
                    hmb,
                    "--precondition",
                    state,
                ],
            ));
        }
    }
    for keys in VARIANTS {
        for job in ["mixed", "writes"] {
            let file = format!("{job}.fio");
            let mut args = vec![&*file, "--drive", "tiny", "--precondition", "random"];
            for key in keys {
                args.extend(["--set", key]);
            }
            cases.push(case(format!("tiny {job} {}", keys.join(" ")), &args));
        }
    }
    for model in ["redis", "rocksdb", "linkbench"] {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/logging");
        let file = format!("{root}/{model}.toml");
        for drive in ["2b-ssd", "pm963"] {
            cases.push(case(format!("{drive} {model}"), &[&file, "--drive", drive]));
        }
    }
    cases
}

/// Everything but the time that the run took here, and what is told since the recording, of wear and of the busiest
/// of a kind: it follows from the rest.
fn without_wall_time(json: &str) -> String {
    let mut within = None;
    let lines = json.lines().filter(|line| {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if text == "\"wear\": {" || text == "\"busiest\": {" {
            within = Some(indent);
        }
        let is_left_out = within.is_some();
        if within == Some(indent) && text.starts_with('}') {
            within = None;
        }
        !is_left_out
            && text != "\"busiest\": {},"
            && !line.contains("\"wall_s\"")
            && !line.contains("\"ftl.rated_")
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn outcome(sandbox: &Sandbox, number: usize, case: &Case) -> String {
    let log = format!("log{number}.csv");
    let mut args = vec!["simulate"];
    args.extend(case.args.iter().map(String::as_str));
    args.extend(["--output-format", "json"]);
    let logs = case.args[0].ends_with(".fio");
    if logs {
        args.extend(["--latency-log", &log]);
    }
    let ran = sandbox.ok(&args);
    let json = without_wall_time(&ran.stdout);
    let requests = match logs {
        true => std::fs::read_to_string(sandbox.dir.join(&log)).unwrap(),
        false => String::new(),
    };
    let (json, requests) = (hash(&json), hash(&requests));
    format!("{}: {json:016x} {requests:016x}", case.name)
}

#[test]
fn results_are_those_that_were_recorded() {
    let sandbox = Sandbox::new();
    for (name, job) in JOBS {
        sandbox.file(&format!("{name}.fio"), format!("[{name}]\n{job}\n"));
    }
    let cases = cases();
    let mut now = String::new();
    for (number, case) in cases.iter().enumerate() {
        writeln!(now, "{}", outcome(&sandbox, number, case)).unwrap();
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command/recorded.txt");
    lodger_testing::is_as_recorded(path, &now);
}
