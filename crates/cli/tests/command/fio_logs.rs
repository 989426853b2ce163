//! Are log files of job files (`write_bw_log`, `write_iops_log`, `write_lat_log`) as fio writes them? Beside fio itself
//! where it is installed.

use crate::common::Sandbox;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Every form of them: one line for each request and for each window, with offsets and priorities, clones, a name
/// given and none, an engine that waits and one that does not.
const JOBS: &str = "\
[global]
filename=data
size=4m
bs=4k
randseed=7
[plain]
ioengine=psync
rw=randrw
number_ios=200
write_bw_log=given
write_iops_log
write_lat_log=given
[columns]
stonewall
ioengine=libaio
iodepth=4
rw=randread
number_ios=100
write_lat_log
write_bw_log
log_offset=1
log_prio=1
[windows]
stonewall
ioengine=libaio
iodepth=4
numjobs=2
rw=randread
rate_iops=200
time_based
runtime=1
log_avg_msec=400
write_iops_log
write_lat_log
";

/// Of each log: number of lines, and of their fields.
fn logs(folder: &Path) -> BTreeMap<String, Vec<Vec<String>>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "log") {
            let text = std::fs::read_to_string(&path).unwrap();
            let fields = |line: &str| line.split(", ").map(str::to_owned).collect();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            all.insert(name, text.lines().map(fields).collect());
        }
    }
    all
}

fn simulated() -> BTreeMap<String, Vec<Vec<String>>> {
    let sandbox = Sandbox::new();
    sandbox.file("job.fio", JOBS);
    sandbox.ok(&["simulate", "job.fio", "--drive", "tiny"]);
    logs(&sandbox.dir)
}

#[test]
fn logs_have_the_names_and_columns_that_fio_gives_them() {
    let ours = simulated();
    let sandbox = Sandbox::new();
    sandbox.file("job.fio", JOBS);
    let ran = Command::new("fio")
        .arg("job.fio")
        .current_dir(&sandbox.dir)
        .output();
    let Ok(ran) = ran.map(|ran| ran.status.success()) else {
        eprintln!("skipped: `fio` is not installed");
        return;
    };
    assert!(ran);
    let theirs = logs(&sandbox.dir);
    let names: Vec<&String> = theirs.keys().collect();
    assert_eq!(ours.keys().collect::<Vec<_>>(), names);
    for (name, lines) in &ours {
        let (fio, shape) = (&theirs[name], |line: &Vec<String>| {
            // Direction, bytes and priority are known; with them the number of fields.
            let from = if name.contains("windows") { 3 } else { 4 };
            (
                line.len(),
                line[from - 1].clone(),
                line[line.len() - 1].clone(),
            )
        });
        let shapes = |lines: &[Vec<String>]| {
            let mut shapes: Vec<_> = lines.iter().map(shape).collect();
            shapes.sort();
            shapes.dedup();
            shapes
        };
        assert_eq!(shapes(lines), shapes(fio), "{name}");
        if !name.contains("windows") {
            assert_eq!(lines.len(), fio.len(), "{name}");
        }
    }
}

#[test]
fn each_request_is_a_line_and_each_window_its_mean() {
    let logs = simulated();
    let number = |text: &String| text.parse::<u64>().unwrap();
    for name in ["given_bw", "plain_iops", "given_clat", "given_lat"] {
        let lines = &logs[&format!("{name}.1.log")];
        assert_eq!(lines.len(), 200, "{name}");
        let directions: Vec<&str> = lines.iter().map(|line| line[2].as_str()).collect();
        assert!(directions.contains(&"0") && directions.contains(&"1"));
    }
    // An engine that waits hands nothing over that could be timed.
    assert!(logs["given_slat.1.log"].is_empty());
    let latencies = logs["given_clat.1.log"].iter().zip(&logs["given_bw.1.log"]);
    for (latency, rate) in latencies {
        assert_eq!(number(&rate[1]), 4096 * 1_000_000 / number(&latency[1]));
    }
    for job in 3..=4 {
        let rates: Vec<_> = logs[&format!("windows_iops.{job}.log")].iter().collect();
        let times: Vec<u64> = rates.iter().map(|line| number(&line[0])).collect();
        assert_eq!(times, [400, 800], "what is left of the last is left out");
        for line in rates {
            assert!((195..=205).contains(&number(&line[1])), "{line:?}");
        }
        let times = logs[&format!("windows_lat.{job}.log")].iter();
        let times: Vec<u64> = times.map(|line| number(&line[0])).collect();
        // A line is written by the first request that completes after its window.
        assert_eq!(times.len(), 3, "{times:?}");
        assert!((400..=406).contains(&times[0]) && (990..=1000).contains(&times[2]));
    }
}

#[test]
fn a_log_takes_the_place_of_no_input_and_of_no_other_output() {
    let sandbox = Sandbox::new();
    let job = "[a]\nrw=read\nsize=64k\nwrite_bw_log=trap\ninclude trap_bw.1.log\n";
    sandbox.file("job.fio", job);
    sandbox.file("trap_bw.1.log", "iodepth=2\n");
    let simulate = |more: &[&str]| {
        let mut args = vec!["simulate", "job.fio", "--drive", "tiny"];
        args.extend(more);
        sandbox.run(&args)
    };
    let refused = simulate(&[]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("this command reads it"));
    let kept = std::fs::read_to_string(sandbox.dir.join("trap_bw.1.log")).unwrap();
    assert_eq!(kept, "iodepth=2\n");
    sandbox.file("job.fio", "[a]\nrw=read\nsize=64k\nwrite_bw_log=out\n");
    let refused = simulate(&["--output", "out_bw.1.log"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert_eq!(sandbox.files(), ["job.fio", "trap_bw.1.log"]);
    sandbox.file("job.fio", "[a]\nrw=read\nsize=64k\nwrite_bw_log=none/out\n");
    let refused = simulate(&[]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("none/out_bw.1.log"),
        "{}",
        refused.stderr
    );
}

#[test]
fn what_would_make_the_logs_others_is_refused_and_who_writes_none_says_so() {
    let sandbox = Sandbox::new();
    for detail in [
        "log_issue_time=1",
        "per_job_logs=0",
        "gtod_reduce=1",
        "log_max_value=1",
    ] {
        let job = format!("[a]\nrw=read\nsize=64k\n{detail}\n");
        sandbox.file("job.fio", &job);
        sandbox.ok(&["simulate", "job.fio", "--drive", "tiny"]);
        sandbox.file("job.fio", format!("{job}write_lat_log\n"));
        let refused = sandbox.run(&["simulate", "job.fio", "--drive", "tiny"]);
        assert_eq!(refused.code, Some(2), "{detail}: {}", refused.stderr);
        assert!(refused.stderr.contains("is not supported with log files"));
    }
    sandbox.file("job.fio", "[a]\nrw=read\nsize=64k\nwrite_lat_log\n");
    let compared = sandbox.ok(&["compare", "job.fio", "--drive", "tiny", "--hmb", "off,1MiB"]);
    assert!(compared.stderr.contains("`lodger simulate` writes them"));
    sandbox.file(
        "job.fio",
        "[a]\nrw=read\nsize=64k\nramp_time=1\nwrite_lat_log\n",
    );
    let ramped = sandbox.ok(&["simulate", "job.fio", "--drive", "tiny"]);
    assert!(
        ramped.stderr.contains("its log files are empty"),
        "{}",
        ramped.stderr
    );
}
