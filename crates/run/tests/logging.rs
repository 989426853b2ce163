//! Does database logging hold on whole drives? The workload files that come with Lodger, shortened.

use lodger_run::advise::Advised;
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
        ..LoggingChoice::default()
    })
}

fn opened(path: &Path) -> WorkloadFile {
    WorkloadFile::open(path, &TraceOptions::default()).expect("a workload")
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

/// How the log is read back decides how long that takes, and nothing else.
#[test]
fn the_window_is_read_back_by_dma_sooner_than_by_loads() {
    let recovered = |path: &str, read_dma: &str| {
        let text = "[logging]\ndatabase = \"redis\"\ncommit = \"ba\"\ncaptured = \"redis\"\nclients = 1\n\
                    transactions = 20000\nsegment_kib = 1024\n";
        let file = WorkloadFile::logging("back.toml", format!("{text}{path}\n"));
        let sets = [("role.window.read_dma", read_dma)];
        let config = RunConfig::new(Drive::open("2b-ssd", &sets).expect("a drive"));
        let (workload, _) = file.workload(config.spec(), 0).expect("it fits");
        let result = run_on(&config, workload, &mut ()).expect("it runs");
        let (config, result) = (&config, &result);
        json_value(Report { config, result }, false)["lodger"]["logging"].take()
    };
    let without = recovered("", "47us");
    assert_eq!(without["recovery"], Value::Null);
    let [dma, loads, blocks] = ["read-dma", "loads", "blocks"].map(|path| {
        let mut logging = recovered(&format!("recovery = \"{path}\""), "47us");
        let recovery = logging["recovery"].take();
        assert_eq!(logging, without, "{path}");
        assert_eq!(recovery["path"], path);
        assert!(number(&recovery, "/window_bytes") > 1e5);
        number(&recovery, "/ns")
    });
    println!("{dma} {loads} {blocks}");
    assert!(dma < blocks && blocks < loads / 10.0);
    let slow = recovered("recovery = \"read-dma\"", "10ms");
    let slower = number(&slow, "/recovery/ns") - dma;
    assert!((slower - 9_953_000.0).abs() < 2.0, "{slower}");
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

/// The log and the timeline tell of every commit, and of each once: fails without the call of `committed`.
#[test]
fn every_commit_is_told_over_time() {
    for commit in ["block", "ba"] {
        let choice = LoggingChoice {
            transactions: Some(2000),
            ..choice(commit, Some(4)).unwrap()
        };
        let file = opened(&redis()).choose(choice).unwrap();
        let config = config("2b-ssd");
        let spec = config.spec();
        let (workload, _) = file.workload(spec, 0).unwrap();
        let mut all = (
            Commits::default(),
            lodger_run::Timeline::new(lodger_run::timeline::Interval::default(), spec, 0),
        );
        let result = run_on(&config, workload, &mut all).unwrap();
        let (told, over_time) = all;
        let logging = result.jobs[0].logging.as_ref().unwrap();
        assert!(logging.statistics.commits > 500);
        assert_eq!(told.count, logging.statistics.commits, "{commit}");
        assert_eq!(told.count, logging.latency.count());
        assert_eq!(told.max_ns, logging.latency.max_ns());
        let table = over_time.finish(&result);
        let column = table
            .columns
            .iter()
            .find(|column| column.name == "commit_ios");
        let lodger_run::timeline::Values::Whole(ios) = &column.unwrap().values else {
            panic!("a count is a whole number");
        };
        assert_eq!(ios.iter().flatten().sum::<u64>(), told.count);
    }
}

#[derive(Default)]
struct Commits {
    count: u64,
    max_ns: u64,
}

impl lodger_run::Observer for Commits {
    fn committed(&mut self, _now_ps: u64, latency_ns: u64) {
        self.count += 1;
        self.max_ns = self.max_ns.max(latency_ns);
    }
}

/// Transactions of one size log that size; the break-even is where more runs find it.
#[test]
fn a_byte_window_pays_for_small_transactions_and_not_for_large_ones() {
    let source = opened(&repository("workloads/logging/linkbench.toml"));
    let config = config("2b-ssd");
    let watch = |_: lodger_run::Progress, _: f64| std::ops::ControlFlow::Continue(());
    let advice = lodger_run::window_advice::advise(&config, &source, &watch).unwrap();
    let json = advice.json();
    let points = json["points"].as_array().unwrap();
    let pays = |clients: u64, bytes: u64| {
        let found = points
            .iter()
            .find(|point| point["clients"] == clients && point["transaction_bytes"] == bytes);
        found.unwrap()["pays"].as_bool().unwrap()
    };
    assert!(pays(4, 64) && !pays(4, 65536));
    // 64 clients on 36 cores wait for these, whatever a commit takes.
    assert!(!pays(64, 64));
    let of_4 = json["break_even"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["clients"] == 4);
    let end = of_4.unwrap()["pays"][0]["to_bytes"].as_u64().unwrap();
    assert!((16384..65536).contains(&end), "{end}");
    // Both sides of the end were run, and are close to each other.
    let next = points.iter().filter(|point| point["clients"] == 4);
    let next = next.filter_map(|point| point["transaction_bytes"].as_u64());
    let next = next.filter(|bytes| *bytes > end).min().unwrap();
    assert!(pays(4, end) && !pays(4, next) && (next as f64) <= 1.2 * end as f64);
    for text in [
        advice.text(),
        advice.markdown(),
        advice.csv(),
        advice.page("linkbench"),
    ] {
        assert!(text.contains("64"), "{text}");
    }
}
