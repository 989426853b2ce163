//! The workload file: `[logging]` and the captured distributions it names.

use super::words;
use super::{Captured, Commit, Database, Model, RecoveryPath, Settings, clients_text};
use crate::{Job, Source, Workload, WorkloadError};
use lodger_core::time::NS;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::path::Path;

/// What a file cannot say itself.
pub struct Context<'a> {
    /// Its name, for messages and for the files it names.
    pub file_name: &'a str,
    /// Captured distributions that come with the program, by name.
    pub known: &'a dyn Fn(&str) -> Option<&'static str>,
    /// Reads a named file, relative to the current directory.
    pub include: &'a dyn Fn(&Path) -> std::io::Result<String>,
    /// Size of the drive, bytes.
    pub drive_bytes: u64,
    /// Whether the drive may lose what it has acknowledged.
    pub volatile_cache: bool,
    /// The drive's byte window, bytes; 0 for none.
    pub window_bytes: u64,
    /// Seed of what is drawn.
    pub seed: u64,
    /// Commit mode instead of the file's.
    pub commit: Option<Commit>,
    /// Number of clients instead of the file's.
    pub clients: Option<u32>,
    /// Number of transactions instead of the file's.
    pub transactions: Option<u64>,
    /// Bytes that each transaction logs which logs at all, instead of what was captured.
    pub transaction_bytes: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    logging: Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    database: Database,
    commit: Commit,
    captured: String,
    clients: u32,
    #[serde(default = "default_cores")]
    cores: u32,
    #[serde(default)]
    client_ns: u64,
    #[serde(default)]
    switch_ns: u64,
    #[serde(default)]
    locks: u32,
    transactions: u64,
    #[serde(default = "default_log_mib")]
    log_mib: u64,
    unwritten_mib: Option<u64>,
    #[serde(default = "default_segment_kib")]
    segment_kib: u64,
    recovery: Option<RecoveryPath>,
}

/// Two Xeon E5-2699 with 18 cores each, the testbed of Bae et al., "2B-SSD", ISCA 2018.
fn default_cores() -> u32 {
    36
}

/// PostgreSQL's `max_wal_size`.
fn default_log_mib() -> u64 {
    1024
}

/// Half of the byte window of 8 MiB, so that two fit (assumed: the slides do not say).
fn default_segment_kib() -> u64 {
    4096
}

/// PostgreSQL syncs each segment of its log as it is full (`wal_segment_size`, 16 MB). Assumed of the others.
const BATCH_BYTES: u64 = 16 << 20;

/// ext4's journal on a file system of 4 GiB and more (`mke2fs`).
const JOURNAL_BYTES: u64 = 64 << 20;

/// Reads a workload file.
///
/// # Errors
/// If it is no TOML of that form, a value is out of its range, the captured distributions cannot be
/// read, or the drive cannot commit in the way asked for.
pub fn parse(text: &str, context: &Context<'_>) -> Result<Workload, WorkloadError> {
    let File { logging: table } = toml(text, context.file_name)?;
    let wrong = |message: String| WorkloadError::new(format!("{message} ({})", context.file_name));
    let settings = settings(&table, context).map_err(wrong)?;
    let mut captured = captured(&table.captured, context)?;
    if let Some(bytes) = context.transaction_bytes {
        captured.set_log_bytes(bytes).map_err(wrong)?;
    }
    let name = table.database.name();
    let commit = settings.commit.name();
    let options = [("database", name), ("commit", commit)];
    let mut options: Vec<(String, String)> = options
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
    options.push(("clients".to_owned(), settings.clients.to_string()));
    let description = format!(
        "database logging: {name}, commit {commit}, {}, {} transactions",
        clients_text(settings.clients),
        settings.transactions
    );
    let job = Job {
        name: name.to_owned(),
        group: 0,
        stage: 0,
        after: Vec::new(),
        ends: None,
        ends_in_error: None,
        steady: None,
        group_reporting: false,
        options,
        global_options: Vec::new(),
        percentiles: crate::trace::PERCENTILES.to_vec(),
        queue_depth: 0,
        ramp_ps: 0,
        requests_expected: None,
        note: None,
        logs: None,
        recorded: None,
        source: Source::Logging(Box::new(Model::new(settings, captured))),
    };
    Ok(Workload {
        description,
        jobs: vec![job],
    })
}

/// Captured distributions by name, or of a file beside the workload file.
fn captured(name: &str, context: &Context<'_>) -> Result<Captured, WorkloadError> {
    if let Some(text) = (context.known)(name) {
        return Captured::parse(text, name);
    }
    let beside = Path::new(context.file_name).parent();
    let path = beside.unwrap_or(Path::new("")).join(name);
    let shown = path.display().to_string();
    let text = (context.include)(&path).map_err(|error| {
        let file = context.file_name;
        let message = format!("`captured` names `{shown}`, which cannot be read: {error} ({file})");
        WorkloadError::new(message).hint(
            "`linkbench`, `rocksdb` and `redis` are known; other names are relative to the file's folder",
        )
    })?;
    Captured::parse(&text, &shown)
}

/// That the drive's byte window is there for what is asked of it, and that this is asked where it is used.
fn fits_the_window(table: &Table, commit: Commit, context: &Context<'_>) -> Result<(), String> {
    let segment_bytes = table.segment_kib << 10;
    if commit == Commit::ByteAddressed {
        if context.window_bytes == 0 {
            return Err(
                "`commit` is `ba`, but the drive has no byte window; `2b-ssd` has one".into(),
            );
        }
        if 2 * segment_bytes > context.window_bytes {
            return Err(format!(
                "two segments do not fit the byte window of {} KiB: `segment_kib` must be at most {}",
                context.window_bytes >> 10,
                context.window_bytes >> 11
            ));
        }
    }
    let of_window = |path: &RecoveryPath| *path != RecoveryPath::Blocks;
    if let Some(path) = table.recovery.filter(of_window)
        && commit != Commit::ByteAddressed
    {
        return Err(format!(
            "`recovery` must be `blocks` where `commit` is `{}`, which leaves nothing of the log in the byte window, found \
             `{}`",
            commit.name(),
            path.name()
        ));
    }
    Ok(())
}

fn settings(table: &Table, context: &Context<'_>) -> Result<Settings, String> {
    let within = |key: &str, value: u64, min: u64, max: u64| {
        if (min..=max).contains(&value) {
            return Ok(());
        }
        Err(format!(
            "`{key}` must be between {min} and {max}, found {value}"
        ))
    };
    let clients = context.clients.unwrap_or(table.clients);
    let commit = context.commit.unwrap_or(table.commit);
    let transactions = context.transactions.unwrap_or(table.transactions);
    within("clients", clients.into(), 1, 100_000)?;
    within("cores", table.cores.into(), 1, 10_000)?;
    within("client_ns", table.client_ns, 0, 1_000_000_000)?;
    within("switch_ns", table.switch_ns, 0, 1_000_000_000)?;
    within("locks", table.locks.into(), 0, 1_000_000)?;
    within("transactions", transactions, 1, 1_000_000_000)?;
    within("log_mib", table.log_mib, 16, 1 << 20)?;
    // The log is used over and over: more of it than there is cannot be on its way.
    let unwritten_mib = table.unwritten_mib.unwrap_or(table.log_mib);
    within("unwritten_mib", unwritten_mib, 1, table.log_mib)?;
    within("segment_kib", table.segment_kib, 4, 1 << 20)?;
    let (log_bytes, segment_bytes) = (table.log_mib << 20, table.segment_kib << 10);
    if !segment_bytes.is_multiple_of(4096) || !log_bytes.is_multiple_of(2 * segment_bytes) {
        return Err(
            "`segment_kib` must be a multiple of 4, and two of it a part of `log_mib`".into(),
        );
    }
    if JOURNAL_BYTES + log_bytes > context.drive_bytes {
        return Err(format!(
            "the drive has {} MiB: no room for `log_mib` = {} and a journal of {} MiB",
            context.drive_bytes >> 20,
            table.log_mib,
            JOURNAL_BYTES >> 20
        ));
    }
    fits_the_window(table, commit, context)?;
    Ok(Settings {
        database: table.database,
        commit,
        clients,
        cores: table.cores,
        client_ps: table.client_ns * NS,
        switch_ps: table.switch_ns * NS,
        locks: table.locks,
        transactions,
        log_offset_bytes: JOURNAL_BYTES,
        log_bytes,
        unwritten_bytes: unwritten_mib << 20,
        batch_bytes: BATCH_BYTES,
        segment_bytes,
        journal_offset_bytes: 0,
        journal_bytes: JOURNAL_BYTES,
        volatile_cache: context.volatile_cache,
        recovery: table.recovery,
        seed: context.seed,
    })
}

/// A TOML file of a given form; a problem names its line.
pub(super) fn toml<T: DeserializeOwned>(text: &str, file_name: &str) -> Result<T, WorkloadError> {
    toml::from_str(text).map_err(|error| {
        let Some(span) = error.span() else {
            return WorkloadError::new(error.message().to_owned());
        };
        let above = text[..span.start.min(text.len())].matches('\n').count();
        let line = text.lines().nth(above).unwrap_or_default();
        words::error(error.message(), line).at(file_name, above as u64 + 1)
    })
}
