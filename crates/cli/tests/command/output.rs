//! What comes out: fio's keys, the text, the log, and that a file appears whole or not at all.

use crate::common::{Sandbox, files_in};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const FIXTURES: &str = "crates/cli/tests/fixtures/fio";

fn report(sandbox: &Sandbox, job: &Path, format: &str) -> Value {
    let job = job.to_str().unwrap();
    let outcome = sandbox.ok(&[
        "simulate",
        job,
        "--drive",
        "tiny",
        "--output-format",
        format,
    ]);
    serde_json::from_str(&outcome.stdout).unwrap()
}

/// Everything that fio writes is there, in the same place and of the same type.
fn covers(fio: &Value, ours: &Value, at: &str) {
    match (fio, ours) {
        // What the bins are is the drive's doing; that there are some is not.
        (Value::Object(_), Value::Object(ours)) if at.ends_with(".bins") => {
            assert!(!ours.is_empty(), "{at} is empty");
            assert!(
                ours.iter()
                    .all(|(ns, count)| ns.parse::<u64>().is_ok() && count.is_u64())
            );
        }
        (Value::Object(fio), Value::Object(ours)) => {
            for (key, value) in fio {
                let at = format!("{at}.{key}");
                covers(
                    value,
                    ours.get(key).unwrap_or_else(|| panic!("{at} is missing")),
                    &at,
                );
            }
        }
        (Value::Array(fio), Value::Array(ours)) => {
            assert_eq!(fio.len(), ours.len(), "entries of {at}");
            for (place, (fio, ours)) in fio.iter().zip(ours).enumerate() {
                covers(fio, ours, &format!("{at}[{place}]"));
            }
        }
        (Value::Number(fio), Value::Number(ours)) => {
            assert_eq!(
                fio.is_f64(),
                ours.is_f64(),
                "type of {at}: {fio} and {ours}"
            );
        }
        (Value::String(fio), Value::String(ours)) => {
            if at.contains("options") {
                assert_eq!(fio, ours, "{at}");
            }
        }
        _ => panic!("type of {at}: {fio} and {ours}"),
    }
}

#[test]
fn every_key_of_fio_is_there() {
    let sandbox = Sandbox::new();
    for job in files_in(FIXTURES, "fio") {
        for (format, fixture) in [("json", "json"), ("json+", "plus.json")] {
            let text = std::fs::read_to_string(job.with_extension(fixture)).unwrap();
            let fio: Value = serde_json::from_str(&text).unwrap();
            let name = job.file_stem().unwrap().to_str().unwrap();
            covers(
                &fio,
                &report(&sandbox, &job, format),
                &format!("{name} {format}"),
            );
        }
    }
}

/// What names a line of fio's text: all before its first number or unit.
fn label(line: &str) -> String {
    let end = line.find(|c: char| c.is_ascii_digit() || "(=|[".contains(c));
    line[..end.unwrap_or(line.len())].trim_end().to_owned()
}

#[test]
fn the_text_has_the_lines_of_fio() {
    let sandbox = Sandbox::new();
    for job in files_in(FIXTURES, "fio") {
        let ours = sandbox
            .ok(&["simulate", job.to_str().unwrap(), "--drive", "tiny"])
            .stdout;
        let labels: Vec<String> = ours.lines().map(label).collect();
        let fio = std::fs::read_to_string(job.with_extension("txt")).unwrap();
        let lines = fio.lines().skip_while(|line| !line.contains("groupid="));
        for line in lines.take_while(|line| !line.starts_with("Disk stats")) {
            let label = label(line);
            assert!(
                labels.contains(&label),
                "{}: no line like `{line}`\n{ours}",
                job.display()
            );
        }
    }
}

#[test]
fn the_text_of_a_small_job() {
    let sandbox = Sandbox::new();
    let job = "[global]\nsize=4m\niodepth=4\n[write]\nrw=randwrite\nbs=16k\nfsync=64\n\
               [read]\nstonewall\nrw=randread\nbs=4k\nnumjobs=2\ngroup_reporting\nnumber_ios=200\n";
    sandbox.file("small.fio", job);
    let text = sandbox
        .ok(&["simulate", "small.fio", "--drive", "tiny"])
        .stdout;
    insta::assert_snapshot!(text);
}

/// `--help` and whatever else prints text fails if nobody can have read it.
#[cfg(unix)]
#[test]
fn what_cannot_be_printed_is_no_success() {
    let sandbox = Sandbox::new();
    sandbox.file("job.fio", "[a]\nrw=read\nsize=64k\n");
    sandbox.file(
        "one.csv",
        "time_us,op,offset_bytes,length_bytes,flags\n0,R,0,4096,\n",
    );
    let drive = sandbox
        .ok(&["drives", "show", "tiny", "--output-format", "toml"])
        .stdout;
    sandbox.file("drive.toml", drive);
    let cases: &[&[&str]] = &[
        &["--help"],
        &["--version"],
        &["simulate", "--help"],
        &["drives", "show", "--help"],
        &["drives", "list"],
        &["drives", "show", "tiny"],
        &["drives", "show", "tiny", "--output-format", "json"],
        &["drives", "check", "drive.toml"],
        &["trace", "info", "one.csv"],
        &["simulate", "job.fio", "--drive", "tiny"],
        &[
            "simulate",
            "job.fio",
            "--drive",
            "tiny",
            "--output-format",
            "json",
        ],
        &[
            "compare",
            "job.fio",
            "--drive",
            "tiny",
            "--hmb",
            "off,default",
        ],
        &["advise", "job.fio", "--drive", "tiny"],
    ];
    for args in cases {
        let well = sandbox.run(args);
        assert!(!well.stdout.is_empty(), "{args:?}: {}", well.stderr);
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        let output = sandbox
            .command(args)
            .stdout(full.unwrap())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_ne!(output.status.code(), Some(0), "{args:?}");
        assert!(
            text.contains("error: cannot write standard output: no space left on device"),
            "{args:?}: {text}"
        );
        // A reader that has gone away has read enough.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = sandbox
            .command(args)
            .stdout(writer)
            .output()
            .unwrap()
            .status;
        assert_eq!(status.code(), well.code, "{args:?}");
    }
}

/// Percentiles that the text rounds are not above the maximum that it rounds the other way.
#[test]
fn no_percentile_is_above_the_maximum() {
    let sandbox = Sandbox::new();
    let mut seen = 0;
    for (size, depth) in [("1m", 4), ("2m", 32), ("64k", 1), ("4m", 256)] {
        let job = format!(
            "[a]\nrw=randrw\nbs=4k\nsize={size}\niodepth={depth}\nlat_percentiles=1\nfsync=7\n"
        );
        sandbox.file("job.fio", job);
        let text = sandbox
            .ok(&["simulate", "job.fio", "--drive", "tiny"])
            .stdout;
        // By what it is of: sync, clat, lat.
        let mut max_ns = std::collections::BTreeMap::new();
        let (mut of, mut unit_ns) = ("", 1.0);
        for line in text.lines() {
            let unit = line
                .split_once('(')
                .and_then(|(_, rest)| rest.split_once(')'));
            let unit = unit.and_then(|(unit, _)| {
                let units = [("nsec", 1.0), ("usec", 1e3), ("msec", 1e6)];
                Some(units.iter().find(|known| known.0 == unit)?.1)
            });
            let name = line.trim().split(' ').next().unwrap();
            if let (Some(unit), Some((_, max))) = (unit, line.split_once("max=")) {
                let max = max.split(',').next().unwrap().trim();
                // Six digits: what is longer is in thousands.
                let (max, step) = max.strip_suffix('k').map_or((max, 1.0), |max| (max, 1e3));
                max_ns.insert(name, max.parse::<f64>().unwrap() * step * unit);
            } else if line.contains(" percentiles (") {
                (of, unit_ns) = (name, unit.unwrap());
            }
            for value in line.split("th=[").skip(1) {
                let value: f64 = value.split(']').next().unwrap().trim().parse().unwrap();
                assert!(value * unit_ns <= max_ns[of], "{of}: {line}\n{text}");
                seen += 1;
            }
        }
    }
    assert!(seen > 300, "{seen}");
}

/// The JSON with the only value that differs between equal runs taken out.
fn without_wall_time(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.contains("\"wall_s\":"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let sandbox = Sandbox::new();
    sandbox.file(
        "job.fio",
        "[a]\nrw=randrw\nbs=4k\nsize=64m\niodepth=8\nnumber_ios=5000\n",
    );
    for precondition in ["none", "sequential", "random"] {
        let run = |seed: &str| {
            let args = [
                "simulate",
                "job.fio",
                "--drive",
                "tiny",
                "--output-format",
                "json+",
                "--seed",
                seed,
                "--precondition",
                precondition,
            ];
            without_wall_time(&sandbox.ok(&args).stdout)
        };
        let first = run("7");
        assert_eq!(first, run("7"));
        assert_ne!(first, run("8"));
        assert!(first.contains("\"simulated_s\""));
    }
}

#[test]
fn fio_s_own_tool_reads_the_bins() {
    let sandbox = Sandbox::new();
    let job = crate::common::repository(FIXTURES).join("percentiles.fio");
    let args = [
        "simulate",
        job.to_str().unwrap(),
        "--drive",
        "tiny",
        "--output-format",
        "json+",
        "--output",
        "report.json",
    ];
    sandbox.ok(&args);
    let tool = Command::new("fio_jsonplus_clat2csv")
        .args(["report.json", "latency.csv"])
        .current_dir(&sandbox.dir)
        .output();
    let Ok(output) = tool else {
        eprintln!("skipped: `fio_jsonplus_clat2csv` (package fio) is not installed");
        return;
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let csv = std::fs::read_to_string(sandbox.dir.join("latency_job0.csv")).unwrap();
    assert!(csv.lines().count() > 2, "{csv}");
}

#[test]
fn the_latency_log_has_a_line_for_every_request() {
    let sandbox = Sandbox::new();
    sandbox.file("job.fio", "[a]\nrw=write\nbs=8k\nsize=1m\nfsync=16\n");
    sandbox.ok(&[
        "simulate",
        "job.fio",
        "--drive",
        "tiny",
        "--latency-log",
        "lat.log",
    ]);
    let log = std::fs::read_to_string(sandbox.dir.join("lat.log")).unwrap();
    // 128 writes, a flush after every 16th but the last.
    assert_eq!(log.lines().count(), 128 + 7);
    let mut offsets = Vec::new();
    for line in log.lines() {
        let fields: Vec<&str> = line.split(", ").collect();
        let [ms, ns, direction, bytes, offset, priority] = fields[..] else {
            panic!("{line}");
        };
        assert!(
            ms.parse::<u64>().is_ok() && ns.parse::<u64>().unwrap() > 0,
            "{line}"
        );
        assert_eq!(priority, "0x0000");
        match direction {
            "1" => {
                assert_eq!(bytes, "8192");
                offsets.push(offset.parse::<u64>().unwrap());
            }
            "3" => assert_eq!((bytes, offset), ("0", "0")),
            other => panic!("direction {other}"),
        }
    }
    offsets.sort_unstable();
    assert_eq!(offsets, (0..128).map(|n| n * 8192).collect::<Vec<u64>>());
    assert_eq!(sandbox.files(), ["job.fio", "lat.log"]);
}

#[test]
fn an_output_file_replaces_the_old_one_and_a_failure_does_not() {
    let sandbox = Sandbox::new();
    sandbox.file("job.fio", "[a]\nrw=read\nbs=4k\nsize=64k\n");
    sandbox.file("report.json", "old");
    let simulate = |drive: &str| {
        let args = [
            "simulate",
            "job.fio",
            "--drive",
            drive,
            "--output",
            "report.json",
            "--output-format",
            "json",
        ];
        sandbox.run(&args)
    };
    assert_eq!(simulate("nowhere").code, Some(2));
    assert_eq!(
        std::fs::read(sandbox.dir.join("report.json")).unwrap(),
        b"old"
    );
    let outcome = simulate("tiny");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), ""));
    let written = std::fs::read_to_string(sandbox.dir.join("report.json")).unwrap();
    assert!(serde_json::from_str::<Value>(&written).is_ok());
    assert_eq!(sandbox.files(), ["job.fio", "report.json"]);
}

/// Runs a job that never ends for some time, then has it interrupted.
#[cfg(unix)]
fn interrupted(sandbox: &Sandbox, more: &[&str]) -> crate::common::Outcome {
    sandbox.file(
        "long.fio",
        "[a]\nrw=randread\nbs=4k\niodepth=32\ntime_based\nruntime=1d\n",
    );
    let mut args = vec![
        "simulate",
        "long.fio",
        "--drive",
        "tiny",
        "--latency-log",
        "latency.log",
    ];
    args.extend(more);
    let mut command = sandbox.command(&args);
    let child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // The work has begun once the files have.
    let started = Instant::now();
    let begun = 2 + usize::from(more.contains(&"--output"));
    while sandbox.files().len() < begun {
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "it never begins"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(100));
    let interrupted = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(interrupted.unwrap().success());
    let outcome = crate::common::Outcome::of(child.wait_with_output().unwrap());
    assert_eq!(outcome.code, Some(130), "{}", outcome.stderr);
    let said = "warning: interrupted: the report tells of the first ";
    assert!(outcome.stderr.starts_with(said), "{}", outcome.stderr);
    outcome
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_speaks_of_no_file_that_is_not_there() {
    let sandbox = Sandbox::new();
    let files = ["--trace-events", "t.pf", "--timeline", "t.csv"];
    let outcome = interrupted(&sandbox, &files);
    assert!(!outcome.stderr.contains("t.pf"), "{}", outcome.stderr);
    assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
    assert_eq!(sandbox.files(), ["long.fio"]);
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_tells_what_it_has_and_leaves_no_logs() {
    let sandbox = Sandbox::new();
    let outcome = interrupted(&sandbox, &[]);
    let mut lines = outcome.stdout.lines();
    let first = lines.next().unwrap();
    assert!(
        first.starts_with("PARTIAL: interrupted, this is the first "),
        "{first}"
    );
    assert!(
        outcome.stdout.contains("\n  read: IOPS="),
        "{}",
        outcome.stdout
    );
    assert!(
        outcome.stdout.contains("\nDrive tiny"),
        "{}",
        outcome.stdout
    );
    assert_eq!(sandbox.files(), ["long.fio"]);
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_marks_its_json() {
    let sandbox = Sandbox::new();
    let outcome = interrupted(
        &sandbox,
        &["--output-format", "json", "--output", "report.json"],
    );
    assert_eq!(outcome.stdout, "");
    let written = std::fs::read_to_string(sandbox.dir.join("report.json")).unwrap();
    let report: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(report["lodger"]["partial"], true);
    assert!(report["jobs"][0]["read"]["total_ios"].as_u64().unwrap() > 1000);
    assert_eq!(sandbox.files(), ["long.fio", "report.json"]);
}

#[test]
fn a_workload_may_come_from_standard_input() {
    let sandbox = Sandbox::new();
    for text in [
        "[a]\nrw=read\nbs=4k\nsize=64k\n",
        "time_us,op,offset_bytes,length_bytes\n0,R,0,4096\n",
    ] {
        let path = sandbox.file("input", text);
        let mut command = sandbox.command(&["simulate", "-", "--drive", "tiny"]);
        let output = command
            .stdin(std::fs::File::open(path).unwrap())
            .output()
            .unwrap();
        let outcome = crate::common::Outcome::of(output);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        assert!(outcome.stdout.contains("read: IOPS="), "{}", outcome.stdout);
    }
}

#[test]
fn a_comparison_has_a_column_for_every_run() {
    let sandbox = Sandbox::new();
    sandbox.file(
        "job.fio",
        "[a]\nrw=randread\nbs=4k\nsize=64m\nnumber_ios=2000\n",
    );
    let common = [
        "compare",
        "job.fio",
        "--drive",
        "tiny",
        "--hmb",
        "off,64KiB,256KiB",
    ];
    let text = sandbox.ok(&common).stdout;
    insta::assert_snapshot!(text);
    let json = sandbox
        .ok(&[&common[..], &["--output-format", "json"]].concat())
        .stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    let runs = json["compare"].as_array().unwrap();
    let hmb: Vec<&str> = runs
        .iter()
        .map(|run| run["hmb"].as_str().unwrap())
        .collect();
    assert_eq!(hmb, ["off", "64KiB", "256KiB"]);
    assert!(
        runs.iter()
            .all(|run| run["result"]["jobs"][0]["read"]["total_ios"] == 2000)
    );
}

#[test]
fn drives_are_listed_shown_and_read_back() {
    let sandbox = Sandbox::new();
    let list = sandbox.ok(&["drives"]).stdout;
    let listed: Vec<&str> = (list.lines().skip(1))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(listed, lodger_run::drives::names().collect::<Vec<_>>());
    assert!(
        list.contains("rc100-480              480 GB       38 MiB  Toshiba RC100 480 GB\n"),
        "{list}"
    );
    let toml = sandbox
        .ok(&["drives", "show", "tiny", "--output-format", "toml"])
        .stdout;
    sandbox.file("mine.toml", toml);
    let checked = sandbox.ok(&["drives", "check", "mine.toml"]).stdout;
    assert!(checked.starts_with("mine.toml: ok"), "{checked}");
    let shown = sandbox
        .ok(&["drives", "show", "tiny", "--set", "nand.channels=2"])
        .stdout;
    assert!(shown.contains("--set nand.channels=2"), "{shown}");
    let json = sandbox
        .ok(&["drives", "show", "tiny", "--output-format", "json"])
        .stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["values"]["nand.channels"]["value"].is_u64());
}

#[test]
fn a_trace_converted_there_and_back_is_the_same_trace() {
    let sandbox = Sandbox::new();
    let csv = "time_us,op,offset_bytes,length_bytes\n0,R,0,4096\n12,W,8192,512\n40,R,4096,1024\n";
    sandbox.file("a.csv", csv);
    sandbox.ok(&[
        "trace", "convert", "a.csv", "--to", "msr", "--output", "a.msr",
    ]);
    let back = sandbox
        .ok(&["trace", "convert", "a.msr", "--to", "csv"])
        .stdout;
    let info = |file: &str| {
        let args = [
            "trace",
            "info",
            file,
            "--format",
            "csv",
            "--output-format",
            "json",
        ];
        let mut json: Value = serde_json::from_str(&sandbox.ok(&args).stdout).unwrap();
        json["name"] = Value::Null;
        json
    };
    sandbox.file("b.csv", back);
    assert_eq!(info("a.csv"), info("b.csv"));
}
