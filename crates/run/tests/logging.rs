//! Does database logging hold on whole drives? The workload files that come with Lodger, shortened.

use lodger_run::report::{Report, json_value};
use lodger_run::{
    Drive, Error, LoggingChoice, RunConfig, TraceOptions, WorkloadFile, run as run_on,
};
use lodger_workload::trace::Fit;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn repository(path: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join(path)
}

fn redis() -> PathBuf {
    repository("workloads/logging/redis.toml")
}

fn config(drive: &str) -> RunConfig {
    RunConfig::new(Drive::open(drive, &[]).expect("a drive of the collection"))
}

fn choice(commit: &str, clients: Option<u32>) -> Result<LoggingChoice, Error> {
    Ok(LoggingChoice {
        commit: Some(commit.parse()?),
        clients,
    })
}

/// A short run: the file's own mix, fewer transactions.
fn run(name: &str, drive: &str, commit: &str, clients: u32) -> Value {
    let file = repository(&format!("workloads/logging/{name}.toml"));
    let text = std::fs::read_to_string(file).expect("a workload file");
    let text: Vec<String> = text
        .lines()
        .map(|line| match line.split_once(" = ") {
            Some(("transactions", _)) => "transactions = 40000".to_owned(),
            // Small segments, so that a short run fills some.
            Some(("cores", value)) => format!("cores = {value}\nsegment_kib = 64"),
            _ => line.to_owned(),
        })
        .collect();
    let config = config(drive);
    let file = WorkloadFile::logging("short.toml", text.join("\n"));
    let chosen = choice(commit, Some(clients)).expect("a commit mode");
    let file = file.choose(chosen).expect("a model");
    let (workload, _) = file.workload(config.spec(), 0).expect("it fits");
    let result = run_on(&config, workload, &mut ()).expect("it runs");
    let report = Report {
        config: &config,
        result: &result,
    };
    json_value(report, false)
}

fn number(value: &Value, path: &str) -> f64 {
    let found = value.pointer(path).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("no number at {path}"))
}

const RATE: &str = "/lodger/logging/transactions_per_s";

#[test]
fn bytes_beat_blocks_and_write_less_for_every_database() {
    for name in ["linkbench", "rocksdb", "redis"] {
        let blocks = run(name, "sz985", "block", 4);
        let bytes = run(name, "2b-ssd", "ba", 4);
        assert!(number(&bytes, RATE) > number(&blocks, RATE), "{name}");
        let amplification = "/lodger/logging/write_amplification";
        assert_eq!(
            number(&bytes, amplification),
            1.0,
            "{name}: segments are full"
        );
        assert!(number(&blocks, amplification) > 2.0, "{name}");
        // What the model says it wrote is what the drive says it was asked for.
        let written = number(&blocks, "/lodger/logging/written_bytes")
            + number(&blocks, "/lodger/logging/journal_bytes");
        assert_eq!(written, number(&blocks, "/jobs/0/write/io_bytes"), "{name}");
        assert_eq!(number(&bytes, "/jobs/0/write/io_bytes"), 0.0, "{name}");
        for result in [&blocks, &bytes] {
            assert_eq!(number(result, "/lodger/logging/transactions"), 40000.0);
        }
    }
}

#[test]
fn equal_runs_give_equal_results() {
    let [mut first, mut second] = [(); 2].map(|()| run("redis", "2b-ssd", "ba", 3));
    for result in [&mut first, &mut second] {
        result["lodger"]["wall_s"] = Value::Null;
    }
    assert_eq!(first, second);
}

#[test]
fn a_volatile_drive_is_flushed() {
    // The 970 PRO's buffer is plain DRAM.
    let volatile = run("linkbench", "970-pro", "block", 1);
    let commits = number(&volatile, "/lodger/logging/commits");
    assert_eq!(number(&volatile, "/lodger/logging/flushes"), commits);
    let protected = run("linkbench", "pm963", "block", 1);
    assert_eq!(number(&protected, "/lodger/logging/flushes"), 0.0);
}

fn refusal(result: Result<impl Sized, Error>) -> String {
    match result {
        Ok(_) => panic!("it is not refused"),
        Err(error) => error.message,
    }
}

#[test]
fn what_cannot_be_is_said() {
    let open = |path: &Path| WorkloadFile::open(path, &TraceOptions::default()).unwrap();
    let through_a_window = open(&redis()).choose(choice("ba", None).unwrap()).unwrap();
    let talk = refusal(through_a_window.workload(config("pm963").spec(), 0));
    assert!(talk.contains("the drive has no byte window"), "{talk}");
    let talk = refusal(choice("never", None));
    assert!(
        talk.contains("`commit` must be `block`, `ba` or `async`"),
        "{talk}"
    );
    let wrapped = TraceOptions {
        fit: Some(Fit::Wrap),
        ..TraceOptions::default()
    };
    let talk = refusal(WorkloadFile::open(&redis(), &wrapped));
    assert!(talk.contains("`--fit` is for traces"), "{talk}");
    let fio = open(&repository("workloads/jobs/randread.fio"));
    let clients = LoggingChoice {
        clients: Some(3),
        ..LoggingChoice::default()
    };
    let talk = refusal(fio.choose(clients));
    assert!(talk.contains("models of database logging"), "{talk}");
}
