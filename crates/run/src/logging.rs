//! Database logging: the workload file on a drive, and what is reported of it.

use crate::error::Error;
use crate::files::Files;
use crate::report::number::grouped;
use crate::size;
use crate::stats::JobResult;
use lodger_core::observe::Histogram;
use lodger_core::spec::DriveSpec;
use lodger_core::time::NS;
use lodger_workload::logging::{self, Commit, Model, RecoveryPath, Statistics};
use lodger_workload::{Workload, WorkloadError};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// What a workload must know of the drive it is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Capacity, bytes.
    pub bytes: u64,
    /// It may lose what it has acknowledged, and says so (NVMe: Volatile Write Cache).
    pub volatile_cache: bool,
    /// Its byte window, bytes; 0 for none.
    pub window_bytes: u64,
}

impl From<u64> for Target {
    /// A drive of which only the size is known: it keeps what it acknowledges.
    fn from(bytes: u64) -> Self {
        Target {
            bytes,
            volatile_cache: false,
            window_bytes: 0,
        }
    }
}

impl From<&DriveSpec> for Target {
    fn from(spec: &DriveSpec) -> Self {
        let window = spec.roles.window.as_ref();
        Target {
            bytes: spec.capacity_bytes,
            volatile_cache: spec.has_volatile_cache(),
            window_bytes: window.map_or(0, |window| window.bytes),
        }
    }
}

/// What is chosen instead of what the file of a model of database logging says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoggingChoice {
    /// Commit mode.
    pub commit: Option<Commit>,
    /// Number of clients.
    pub clients: Option<u32>,
    /// Number of transactions.
    pub transactions: Option<u64>,
    /// Bytes that each transaction logs which logs at all.
    pub transaction_bytes: Option<u64>,
}

impl LoggingChoice {
    /// The first option of the command that is given.
    #[must_use]
    pub fn option(&self) -> Option<&'static str> {
        let given = [
            (self.commit.is_some(), "--commit"),
            (self.clients.is_some(), "--clients"),
            (self.transaction_bytes.is_some(), "--transaction-size"),
        ];
        let first = given.iter().find(|(given, _)| *given);
        first.map(|(_, option)| *option)
    }
}

/// Captured distributions that come with the program.
const CAPTURED: [(&str, &str); 3] = [
    (
        "linkbench",
        include_str!("../../../workloads/logging/captured/linkbench.toml"),
    ),
    (
        "rocksdb",
        include_str!("../../../workloads/logging/captured/rocksdb.toml"),
    ),
    (
        "redis",
        include_str!("../../../workloads/logging/captured/redis.toml"),
    ),
];

/// The workload of a file for a drive.
///
/// # Errors
/// If something is wrong with the file, or the drive cannot commit that way.
pub(crate) fn parse(
    name: &str,
    text: &str,
    files: Files,
    choice: LoggingChoice,
    target: Target,
    seed: u64,
) -> Result<Workload, WorkloadError> {
    let context = logging::Context {
        file_name: name,
        known: &|name| {
            let found = CAPTURED.iter().find(|(known, _)| *known == name);
            found.map(|(_, text)| *text)
        },
        include: &|path| files.text_within(path, "file of captured distributions"),
        drive_bytes: target.bytes,
        volatile_cache: target.volatile_cache,
        window_bytes: target.window_bytes,
        seed,
        commit: choice.commit,
        clients: choice.clients,
        transactions: choice.transactions,
        transaction_bytes: choice.transaction_bytes,
    };
    logging::parse(text, &context)
}

/// The object `lodger.logging`: a workload file has one such job, the others none.
pub(crate) fn json(jobs: &[JobResult]) -> Value {
    let job = jobs.iter().find(|job| job.logging.is_some());
    job.and_then(|job| Some(job.logging.as_ref()?.json(&job.percentiles)))
        .unwrap_or(Value::Null)
}

/// What one job of this kind did.
#[derive(Clone, Debug)]
pub struct LoggingResult {
    /// Whose way of committing.
    pub database: &'static str,
    /// Commit mode.
    pub commit: &'static str,
    /// Clients.
    pub clients: u32,
    /// How the part of its log that stands in the byte window is read back, if it is.
    pub recovery: Option<&'static str>,
    /// What was counted.
    pub statistics: Statistics,
    /// From the end of a transaction's own work to its acknowledgement.
    pub latency: Histogram,
    scratch: Vec<u64>,
}

impl LoggingResult {
    /// Before the start.
    pub(crate) fn new(model: &Model) -> Self {
        let settings = model.settings();
        Self {
            database: settings.database.name(),
            commit: settings.commit.name(),
            clients: settings.clients,
            recovery: settings.recovery.map(RecoveryPath::name),
            statistics: Statistics::default(),
            latency: Histogram::default(),
            scratch: Vec::new(),
        }
    }

    /// Takes over what the model has counted; `told` hears of each commit.
    pub(crate) fn follow(&mut self, model: &mut Model, mut told: impl FnMut(u64)) {
        model.take_latencies(&mut self.scratch);
        for latency_ps in self.scratch.drain(..) {
            self.latency.record(latency_ps / NS);
            told(latency_ps / NS);
        }
    }

    /// The same, at the end.
    pub(crate) fn finish(&mut self, model: &mut Model) -> Result<(), Error> {
        // The last commits were told of when the model said that it was done.
        self.follow(model, |_| {});
        self.statistics = model.statistics().clone();
        match &self.statistics.failure {
            None => Ok(()),
            Some(failure) => Err(Error::failed(failure.clone()).hint(
                "blocks and window cannot serve the same range at once: is the file's layout right?",
            )),
        }
    }

    /// Most that a crash would have taken of what was logged, of commits that do not wait for the drive.
    pub(crate) fn exposed_bytes(&self) -> Option<u64> {
        let is_asynchronous = self.commit == Commit::Asynchronous.name();
        is_asynchronous.then_some(self.statistics.exposed_bytes_max)
    }

    /// The object `lodger.logging`.
    pub(crate) fn json(&self, percentiles: &[f64]) -> Value {
        let statistics = &self.statistics;
        let latency = &self.latency;
        let list = percentiles.iter();
        let list = list.map(|&p| (format!("{p:.6}"), json!(latency.percentile_ns(p))));
        let list: Map<String, Value> = list.collect();
        let per_group =
            |n: u64| (statistics.groups > 0).then(|| n as f64 / statistics.groups as f64);
        let recovered = statistics.recovered.map(|recovered| {
            json!({
                "path": self.recovery,
                "bytes": recovered.bytes,
                "window_bytes": recovered.window_bytes,
                "ns": recovered.took_ps / NS,
            })
        });
        json!({
            "database": self.database,
            "commit": self.commit,
            "clients": self.clients,
            "transactions": statistics.transactions,
            "transactions_per_s": statistics.transactions_per_s(),
            "commits": statistics.commits,
            "groups": statistics.groups,
            "commits_per_group": per_group(statistics.commits),
            "commit_ns": {
                "min": latency.min_ns(),
                "max": latency.max_ns(),
                "mean": latency.mean_ns(),
                "stddev": latency.stddev_ns(),
                "N": latency.count(),
                "percentile": list,
            },
            "log_bytes": statistics.log_bytes,
            "covered_bytes": statistics.covered_bytes,
            "written_bytes": statistics.written_bytes,
            "journal_bytes": statistics.journal_bytes,
            "write_amplification": statistics.write_amplification(),
            "flushes": statistics.flushes,
            "stalls": statistics.stalls,
            "exposed_bytes_max": self.exposed_bytes(),
            "recovery": recovered,
        })
    }

    /// The same for people.
    pub(crate) fn text(&self) -> String {
        let statistics = &self.statistics;
        let mut out = String::new();
        let mut line = |text: String| writeln!(out, "{text}").expect("a string takes all");
        line(format!(
            "\nDatabase {}, commit {}, {}:",
            self.database,
            self.commit,
            logging::clients_text(self.clients)
        ));
        line(format!(
            "  transactions : {} ({:.0}/s), of which {} commit in {} groups",
            grouped(statistics.transactions),
            statistics.transactions_per_s(),
            grouped(statistics.commits),
            grouped(statistics.groups)
        ));
        if self.latency.count() == 0 {
            line("  commit       : none".to_owned());
        } else {
            line(format!(
                "  commit       : mean={:.2} us, 50th={:.2} us, 99th={:.2} us, max={:.2} us",
                self.latency.mean_ns() / 1e3,
                self.latency.percentile_ns(50.0) as f64 / 1e3,
                self.latency.percentile_ns(99.0) as f64 / 1e3,
                self.latency.max_ns() as f64 / 1e3
            ));
        }
        let amplification = statistics.write_amplification();
        let waits = statistics
            .log_bytes
            .saturating_sub(statistics.covered_bytes);
        line(format!(
            "  log          : {} logged{}; written {} of log, {} of file system journal; \
             write amplification {}",
            size::show(statistics.log_bytes),
            if waits > 0 {
                format!(", {} of it not written yet", size::show(waits))
            } else {
                String::new()
            },
            size::show(statistics.written_bytes),
            size::show(statistics.journal_bytes),
            amplification.map_or("unknown: nothing written yet".to_owned(), |a| format!(
                "{a:.2}"
            ))
        ));
        if let Some(bytes) = self.exposed_bytes() {
            line(format!(
                "  exposed      : up to {} at once to a crash; commits waited {} times for room",
                size::show(bytes),
                grouped(statistics.stalls)
            ));
        }
        if let Some(recovered) = statistics.recovered {
            line(format!(
                "  recovery     : {:.2} us to read {}, of which {} stood in the byte window ({})",
                recovered.took_ps as f64 / 1e6,
                size::show(recovered.bytes),
                size::show(recovered.window_bytes),
                self.recovery.unwrap_or_default()
            ));
        }
        out
    }
}
