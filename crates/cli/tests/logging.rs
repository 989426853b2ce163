//! Does database logging hold on whole drives? The workload files that come with Lodger, run by the
//! command.

use serde_json::Value;
use std::path::{Path, PathBuf};

fn workload(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("workloads/logging").join(name)
}

fn lodger(args: &[&str]) -> (u8, String, String) {
    let args = ["lodger"].iter().chain(args).map(ToString::to_string);
    let (mut out, mut talk) = (Vec::new(), Vec::new());
    let status = lodger::main_with_args(args, &mut out, &mut talk);
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (status, text(out), text(talk))
}

/// A short run: the file's own mix, fewer transactions.
fn run(name: &str, drive: &str, commit: &str, clients: &str) -> Value {
    let text = std::fs::read_to_string(workload(&format!("{name}.toml"))).expect("a workload file");
    let text: Vec<String> = text
        .lines()
        .map(|line| match line.split_once(" = ") {
            Some(("transactions", _)) => "transactions = 40000".to_owned(),
            // Small segments, so that a short run fills some.
            Some(("cores", value)) => format!("cores = {value}\nsegment_kib = 64"),
            _ => line.to_owned(),
        })
        .collect();
    let folder = std::env::temp_dir().join(format!("lodger-logging-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join(format!("{name}-{drive}-{commit}-{clients}.toml"));
    std::fs::write(&file, text.join("\n")).expect("a file");
    let (status, out, talk) = lodger(&[
        "simulate",
        &file.to_string_lossy(),
        "--drive",
        drive,
        "--commit",
        commit,
        "--clients",
        clients,
        "--output-format",
        "json",
    ]);
    std::fs::remove_file(&file).expect("it is there");
    assert_eq!(status, 0, "{talk}");
    serde_json::from_str(&out).expect("JSON")
}

fn number(value: &Value, path: &str) -> f64 {
    let found = value.pointer(path).and_then(Value::as_f64);
    found.unwrap_or_else(|| panic!("no number at {path}"))
}

const RATE: &str = "/lodger/logging/transactions_per_s";

#[test]
fn bytes_beat_blocks_and_write_less_for_every_database() {
    for name in ["linkbench", "rocksdb", "redis"] {
        let blocks = run(name, "sz985", "block", "4");
        let bytes = run(name, "2b-ssd", "ba", "4");
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
fn equal_commands_give_equal_results() {
    let [mut first, mut second] = [(); 2].map(|()| run("redis", "2b-ssd", "ba", "3"));
    for result in [&mut first, &mut second] {
        result["lodger"]["wall_s"] = Value::Null;
    }
    assert_eq!(first, second);
}

#[test]
fn a_volatile_drive_is_flushed() {
    // The 970 PRO's buffer is plain DRAM.
    let volatile = run("linkbench", "970-pro", "block", "1");
    let commits = number(&volatile, "/lodger/logging/commits");
    assert_eq!(number(&volatile, "/lodger/logging/flushes"), commits);
    let protected = run("linkbench", "pm963", "block", "1");
    assert_eq!(number(&protected, "/lodger/logging/flushes"), 0.0);
}

#[test]
fn what_cannot_be_is_said() {
    let redis = workload("redis.toml");
    let redis = redis.to_string_lossy();
    let (status, _, talk) = lodger(&["simulate", &redis, "--drive", "pm963", "--commit", "ba"]);
    assert_eq!(status, 2);
    assert!(talk.contains("the drive has no byte window"), "{talk}");
    let (status, _, talk) = lodger(&["simulate", &redis, "--drive", "pm963", "--commit", "never"]);
    assert_eq!(status, 2);
    assert!(
        talk.contains("`commit` must be `block`, `ba` or `async`"),
        "{talk}"
    );
    let (status, _, talk) = lodger(&["simulate", &redis, "--drive", "pm963", "--fit", "wrap"]);
    assert_eq!(status, 2);
    assert!(talk.contains("`--fit` is for traces"), "{talk}");
    let fio = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/jobs/randread.fio");
    let (status, _, talk) = lodger(&[
        "simulate",
        &fio.to_string_lossy(),
        "--drive",
        "tiny",
        "--clients",
        "3",
    ]);
    assert_eq!(status, 2);
    assert!(talk.contains("models of database logging"), "{talk}");
}
