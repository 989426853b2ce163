//! What was captured of a real server (`workloads/logging/captured`).

use super::draw::{Dice, Weighted};
use crate::WorkloadError;
use lodger_core::time::NS;
use serde::Deserialize;

/// Longest processor time of a transaction, and largest record: far beyond any real one, and small
/// enough that sums do not overflow.
const CPU_NS_MAX: u64 = 60_000_000_000;
const LOG_BYTES_MAX: u64 = 64 << 20;

#[derive(Deserialize)]
struct File {
    log: LogTable,
    operation: Vec<OperationTable>,
}

#[derive(Deserialize)]
struct LogTable {
    write_call_ns: u64,
    sync_call_ns: u64,
    #[serde(default)]
    group_bytes: u64,
    journalled: f64,
    #[serde(default)]
    journal_bytes: Vec<(u64, u64)>,
    #[serde(default)]
    journal_commit_bytes: Vec<(u64, u64)>,
}

#[derive(Deserialize)]
struct OperationTable {
    name: String,
    share: f64,
    cpu_ns: u64,
    #[serde(default)]
    server_cpu_ns: u64,
    #[serde(default)]
    log_bytes: Vec<(u64, u64)>,
}

/// One kind of transaction.
#[derive(Clone, Debug)]
struct Operation {
    client_ps: u64,
    server_ps: u64,
    log_bytes: Option<Weighted<u64>>,
}

/// Distributions of one server under one load.
#[derive(Clone, Debug)]
pub struct Captured {
    operations: Vec<Operation>,
    shares: Weighted<u32>,
    /// Host time of a call of `write()` to the log, picoseconds.
    pub write_call_ps: u64,
    /// Host time of a call of `fdatasync()` beside the drive's, picoseconds.
    pub sync_call_ps: u64,
    /// What the log adds to each group.
    pub group_bytes: u64,
    journal: Option<Journal>,
}

/// The file system's own log.
#[derive(Clone, Debug)]
struct Journal {
    /// Syncs in a million that commit it.
    per_million: u64,
    blocks: Option<Weighted<u64>>,
    commit: Weighted<u64>,
}

/// A transaction as drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// On any core.
    pub client_ps: u64,
    /// On the server's one thread.
    pub server_ps: u64,
    /// 0: it writes no log.
    pub log_bytes: u64,
}

impl Captured {
    /// Reads a file of distributions.
    ///
    /// # Errors
    /// If it is no TOML of that form, or a value is out of its range.
    pub fn parse(text: &str, file_name: &str) -> Result<Self, WorkloadError> {
        let file: File = super::file::toml(text, file_name)?;
        Self::build(&file).map_err(|problem| WorkloadError::new(format!("{problem} ({file_name})")))
    }

    fn build(file: &File) -> Result<Self, String> {
        let log = &file.log;
        for (key, ns) in [
            ("write_call_ns", log.write_call_ns),
            ("sync_call_ns", log.sync_call_ns),
        ] {
            at_most(&format!("log.{key}"), ns, CPU_NS_MAX)?;
        }
        at_most("log.group_bytes", log.group_bytes, LOG_BYTES_MAX)?;
        let operations: Result<Vec<_>, _> = file.operation.iter().map(Operation::build).collect();
        let operations = operations?;
        let shares = file.operation.iter().enumerate();
        // Shares are per cent with seven digits after the point, as LinkBench publishes them.
        let shares = shares.map(|(index, table)| (index as u32, weight(table.share, 1e7)));
        Ok(Self {
            operations,
            shares: Weighted::new(shares).ok_or("no `share` of an operation is above 0")?,
            write_call_ps: log.write_call_ns * NS,
            sync_call_ps: log.sync_call_ns * NS,
            group_bytes: log.group_bytes,
            journal: Journal::build(log)?,
        })
    }

    /// From now on each transaction that logs at all logs so many bytes.
    ///
    /// # Errors
    /// If that is nothing, or more than a record can have.
    pub fn set_log_bytes(&mut self, bytes: u64) -> Result<(), String> {
        if !(1..=LOG_BYTES_MAX).contains(&bytes) {
            return Err(format!(
                "the size of transactions must be between 1 B and {} MiB, found {bytes} B",
                LOG_BYTES_MAX >> 20
            ));
        }
        for operation in &mut self.operations {
            if operation.log_bytes.is_some() {
                operation.log_bytes = Weighted::new([(bytes, 1)]);
            }
        }
        Ok(())
    }

    /// Draws the next transaction.
    pub fn draw(&self, dice: &mut Dice) -> Transaction {
        let operation = &self.operations[self.shares.draw(dice) as usize];
        let log_bytes = operation.log_bytes.as_ref();
        Transaction {
            client_ps: operation.client_ps,
            server_ps: operation.server_ps,
            log_bytes: log_bytes.map_or(0, |sizes| sizes.draw(dice)),
        }
    }

    /// Draws what the file system writes of its journal with a sync: blocks, then the commit record.
    pub fn draw_journal(&self, dice: &mut Dice) -> Option<(u64, u64)> {
        let journal = self.journal.as_ref()?;
        if dice.below(1_000_000) >= journal.per_million {
            return None;
        }
        let blocks = journal.blocks.as_ref();
        Some((
            blocks.map_or(0, |blocks| blocks.draw(dice)),
            journal.commit.draw(dice),
        ))
    }
}

impl Operation {
    fn build(table: &OperationTable) -> Result<Self, String> {
        let name = table.name.escape_debug();
        if !(table.share >= 0.0 && table.share.is_finite()) {
            return Err(format!(
                "`share` of `{name}` must be 0 or more, found {}",
                table.share
            ));
        }
        if table.cpu_ns == 0 {
            return Err(format!(
                "`cpu_ns` of `{name}` must be at least 1: a transaction takes time"
            ));
        }
        at_most(&format!("cpu_ns of `{name}`"), table.cpu_ns, CPU_NS_MAX)?;
        let Some(client_ns) = table.cpu_ns.checked_sub(table.server_cpu_ns) else {
            return Err(format!(
                "`server_cpu_ns` of `{name}` is part of `cpu_ns`, and cannot be more"
            ));
        };
        for &(bytes, _) in &table.log_bytes {
            at_most(&format!("log_bytes of `{name}`"), bytes, LOG_BYTES_MAX)?;
        }
        let log_bytes = Weighted::new(table.log_bytes.iter().copied());
        if log_bytes.is_none() && !table.log_bytes.is_empty() {
            return Err(format!(
                "no weight in `log_bytes` of `{name}` is above 0, or they are too many"
            ));
        }
        Ok(Self {
            client_ps: client_ns * NS,
            server_ps: table.server_cpu_ns * NS,
            log_bytes,
        })
    }
}

impl Journal {
    fn build(log: &LogTable) -> Result<Option<Self>, String> {
        if !(0.0..=1.0).contains(&log.journalled) {
            return Err(format!(
                "`log.journalled` must be between 0 and 1, found {}",
                log.journalled
            ));
        }
        let per_million = weight(log.journalled, 1e6);
        if per_million == 0 {
            return Ok(None);
        }
        for &(bytes, _) in log.journal_bytes.iter().chain(&log.journal_commit_bytes) {
            at_most("journal_bytes", bytes, 1 << 20)?;
            if !bytes.is_multiple_of(4096) {
                return Err(format!(
                    "the journal has blocks of 4096 bytes, found {bytes}"
                ));
            }
        }
        let commit = Weighted::new(log.journal_commit_bytes.iter().copied());
        Ok(Some(Self {
            per_million,
            blocks: Weighted::new(log.journal_bytes.iter().copied()),
            commit: commit.ok_or("`journalled` needs `journal_commit_bytes`")?,
        }))
    }
}

/// A share as a whole number; what is no share is none.
fn weight(share: f64, scale: f64) -> u64 {
    // Saturates: negative numbers and NaN become 0.
    (share * scale).round().min(1e15) as u64
}

fn at_most(what: &str, value: u64, max: u64) -> Result<(), String> {
    if value > max {
        return Err(format!("{what} must be at most {max}, found {value}"));
    }
    Ok(())
}
