//! Whole workloads: what comes with the repository, and published traces where they are at hand.

use crate::common::{Sandbox, files_in, repository};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Runs a workload and checks that every request is accounted for.
fn requests_of(sandbox: &Sandbox, workload: &Path, more: &[&str]) -> u64 {
    let start = [
        "simulate",
        workload.to_str().unwrap(),
        "--output-format",
        "json",
    ];
    let json: Value = serde_json::from_str(&sandbox.ok(&[&start, more].concat()).stdout).unwrap();
    let requests = json["lodger"]["requests"].as_u64().unwrap();
    let jobs = json["jobs"].as_array().unwrap();
    let ios = |job: &Value| -> u64 {
        let directions = ["read", "write", "trim", "sync"];
        directions
            .iter()
            .map(|name| job[*name]["total_ios"].as_u64().unwrap())
            .sum()
    };
    assert_eq!(
        jobs.iter().map(ios).sum::<u64>(),
        requests,
        "{}",
        workload.display()
    );
    assert!(json["lodger"]["simulated_s"].as_f64().unwrap() > 0.0);
    requests
}

#[test]
fn captured_traces_run() {
    let sandbox = Sandbox::new();
    for trace in files_in("workloads", "ftrace") {
        let path = trace.to_str().unwrap();
        let args = ["trace", "info", path, "--output-format", "json"];
        let info: Value = serde_json::from_str(&sandbox.ok(&args).stdout).unwrap();
        let expected = info["requests"].as_u64().unwrap();
        for replay in ["timed", "closed"] {
            let more = ["--drive", "rc100-240", "--replay", replay];
            assert_eq!(
                requests_of(&sandbox, &trace, &more),
                expected,
                "{path} {replay}"
            );
        }
    }
}

#[test]
fn recorded_latencies_stand_beside_the_simulated_ones() {
    let sandbox = Sandbox::new();
    // Reads of 100, 200 ... 1000 us; no latency is known of the write.
    let reads = (1..=10u64).map(|at| {
        let ticks = 128_166_372_003_061_629 + at * 100_000;
        format!("{ticks},hm,1,Read,{},4096,{}\n", at * 8192, at * 1000)
    });
    let write = "128166372026382245,hm,1,Write,0,4096,0\n".to_owned();
    let text: String = reads.chain([write]).collect();
    sandbox.file("hm.csv", &text);
    let json = sandbox.ok(&[
        "simulate",
        "hm.csv",
        "--drive",
        "tiny",
        "--output-format",
        "json",
    ]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    let job = &json["jobs"][0];
    let recorded = &job["read"]["recorded_ns"];
    assert_eq!(recorded["N"], 10);
    assert_eq!(recorded["min"], 100_000);
    assert_eq!(recorded["max"], 1_000_000);
    assert_eq!(recorded["mean"], 550_000.0);
    assert!((recorded["percentile"]["50.000000"].as_f64().unwrap() / 500_000.0 - 1.0).abs() < 0.01);
    assert!(job["write"].get("recorded_ns").is_none());
    let text = sandbox
        .ok(&["simulate", "hm.csv", "--drive", "tiny"])
        .stdout;
    assert_eq!(text.matches("recorded percentiles").count(), 1);
    let info = sandbox.ok(&["trace", "info", "hm.csv"]).stdout;
    assert!(
        info.contains("reads took when recorded: mean 550 us"),
        "{info}"
    );
}

#[test]
fn job_files_run() {
    let sandbox = Sandbox::new();
    for job in files_in("workloads/jobs", "fio") {
        // Shorter than as written: this asks whether they run, not how fast.
        let text = std::fs::read_to_string(&job).unwrap();
        let text = text.replace("runtime=5s", "runtime=50ms");
        let text = text
            .replace("io_size=256m", "io_size=4m")
            .replace("size=8g\n", "size=1g\n");
        let name = job.file_name().unwrap().to_str().unwrap();
        let short = sandbox.file(name, text);
        assert!(
            requests_of(&sandbox, &short, &["--drive", "rc100-480"]) > 100,
            "{name}"
        );
    }
}

/// Traces made by others, which the repository does not ship.
fn shared(name: &str) -> Option<PathBuf> {
    let folder = match std::env::var_os("LODGER_TRACES") {
        Some(folder) => PathBuf::from(folder),
        None => repository("../shared/traces"),
    };
    let path = folder.join(name);
    if !path.exists() {
        eprintln!("skipped: no `{name}`; LODGER_TRACES names the folder that has it");
        return None;
    }
    Some(path)
}

#[test]
fn a_published_virtual_machine_s_trace_runs() {
    let sandbox = Sandbox::new();
    let Some(trace) = shared("cloudphysics.csv") else {
        return;
    };
    for more in [
        &["--replay", "timed"][..],
        &["--replay", "closed"],
        &["--hmb", "off"],
    ] {
        let more = [&["--drive", "rc100-240"], more].concat();
        assert_eq!(requests_of(&sandbox, &trace, &more), 113_872);
    }
}

#[test]
fn a_published_database_s_trace_runs() {
    let sandbox = Sandbox::new();
    let Some(trace) = shared("tpcc-small.trace") else {
        return;
    };
    let text = std::fs::read_to_string(&trace).unwrap();
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count() as u64;
    for replay in ["timed", "closed"] {
        for fit in ["wrap", "scale"] {
            let more = [
                "--drive",
                "rc100-240",
                "--device",
                "all",
                "--replay",
                replay,
                "--fit",
                fit,
            ];
            assert_eq!(
                requests_of(&sandbox, &trace, &more),
                lines,
                "{replay} {fit}"
            );
        }
    }
}

/// A trace that is simulated while it is read gives the report and the notes of one that is kept; what its end would have to
/// tell is refused, and nothing is written then.
#[test]
fn a_trace_can_be_simulated_while_it_is_read() {
    let sandbox = Sandbox::new();
    let line = |at: u64| {
        let (time, offset) = (128_166_372_003_061_629 + at * 40, at * 7919 % 5000 * 4096);
        let kind = if at.is_multiple_of(4) {
            "Write"
        } else {
            "Read"
        };
        format!("{time},hm,1,{kind},{offset},4096,413\n")
    };
    let mut text: String = (0..20_000).map(line).collect();
    sandbox.file("hm.csv", &text);
    let run = |more: &[&str]| {
        let start = [
            "simulate",
            "hm.csv",
            "--drive",
            "tiny",
            "--output-format",
            "json",
        ];
        let told = sandbox.ok(&[&start, more].concat());
        let report = told
            .stdout
            .lines()
            .filter(|line| !line.contains("\"wall_s\""));
        (report.collect::<Vec<_>>().join("\n"), told.stderr)
    };
    for replay in [&["--replay", "timed"][..], &["--replay", "closed"]] {
        assert_eq!(run(replay), run(&[replay, &["--stream"]].concat()));
    }
    text.push_str("128166372003061629,hm,1,Read,0,4096,413\n");
    sandbox.file("hm.csv", &text);
    let start = ["simulate", "hm.csv", "--drive", "tiny", "--stream"];
    let failed = sandbox.run(&[&start[..], &["--output", "o.json"]].concat());
    assert_eq!(failed.code, Some(2), "{}", failed.stderr);
    assert!(failed.stderr.contains("hm.csv:20001"), "{}", failed.stderr);
    assert!(failed.stderr.contains("--stream"), "{}", failed.stderr);
    assert!(!sandbox.files().iter().any(|file| file.contains("o.json")));
    let jobs = sandbox.run(&[
        "simulate",
        "--drive",
        "tiny",
        "--stream",
        "--name=a",
        "--rw=read",
    ]);
    assert_eq!(jobs.code, Some(2), "{}", jobs.stderr);
}
