//! A database that commits: clients, transactions, and a log that a drive makes durable.
//!
//! Clients run in a closed loop. A transaction takes processor time on one of the host's cores, adds
//! its records to the log, and waits until they are durable, in one of three commit modes:
//!
//! - [`Commit::Block`]: one client at a time, the leader, writes what all waiting clients have logged
//!   and waits for the drive (group commit). Blocks are written whole, so that the last, partly
//!   filled one is written again by the next leader; a file system's journal comes on top.
//! - [`Commit::ByteAddressed`]: the leader stores the same bytes, and no more, through the drive's byte
//!   window, and syncs them (BA_SYNC). A full segment is flushed to its place in the log while the
//!   next one is filled.
//! - [`Commit::Asynchronous`]: nobody waits as long as memory has room, a background process writes the log now and
//!   then. What it has not written is lost in a crash: the upper bound of what a log device can give.
//!
//! Transactions are drawn from what [`captured`] says of a real server. Reads and writes of tables are
//! no part of the model: the captured databases hold their data in memory, and the processor time
//! of such accesses is in the captured times.
//!
//! After the last transaction the host may crash, and the log be read back ([`Settings::recovery`]).
//!
//! Locks between transactions, what a context switch costs whoever has slept, and the clients' own processor time
//! are [`Settings`], as the captured distributions say nothing of them.
//!
//! Not modelled: the leader's own need of a core, checkpoints and compactions.

pub mod captured;
mod cores;
mod draw;
mod file;
mod locks;
mod log;
mod model;
mod statistics;
#[cfg(test)]
mod tests;
mod words;

pub use captured::Captured;
pub use file::{Context, parse};
pub use model::{Model, Recovered, RecoveryPath};
pub use statistics::Statistics;

/// How many clients, as people say it.
#[must_use]
pub fn clients_text(clients: u32) -> String {
    match clients {
        1 => "1 client".to_owned(),
        more => format!("{more} clients"),
    }
}

/// Which server's way of committing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Database {
    /// Processes; whoever holds WALWriteLock writes whole pages of 8 KiB for all who wait (`xlog.c`,
    /// `XLogFlush`). An asynchronous commit leaves the log to the walwriter.
    PostgreSql,
    /// Threads; the leader of a write group appends one batch for the group (`db_impl_write.cc`).
    RocksDb,
    /// One thread that takes all requests at hand, appends their records with one write, syncs, and
    /// only then answers any of them (`aof.c`, `flushAppendOnlyFile` before the event loop sleeps).
    Redis,
}

impl Database {
    /// Name as in a workload file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Database::PostgreSql => "postgresql",
            Database::RocksDb => "rocksdb",
            Database::Redis => "redis",
        }
    }

    /// Unit in which the log reaches the drive: PostgreSQL writes pages of its own (XLOG_BLCKSZ), the
    /// others leave it to the file system's blocks.
    #[must_use]
    pub fn block_bytes(self) -> u64 {
        match self {
            Database::PostgreSql => 8192,
            Database::RocksDb | Database::Redis => 4096,
        }
    }

    /// How often an asynchronous log is written: PostgreSQL's `wal_writer_delay`, the kernel's
    /// `dirty_writeback_centisecs` behind RocksDB without sync, and Redis's `appendfsync everysec`; the
    /// defaults of all three.
    fn background_ps(self) -> u64 {
        use lodger_core::time::MS;
        match self {
            Database::PostgreSql => 200 * MS,
            Database::RocksDb => 5_000 * MS,
            Database::Redis => 1_000 * MS,
        }
    }

    /// Whether an asynchronous commit still hands its records to the kernel. PostgreSQL's do not.
    fn writes_when_asynchronous(self) -> bool {
        self != Database::PostgreSql
    }
}

/// When a transaction is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
pub enum Commit {
    /// When its blocks are written (and, if the drive may lose them, flushed).
    #[serde(rename = "block")]
    Block,
    /// When its bytes are stored through the byte window and synced.
    #[serde(rename = "ba")]
    ByteAddressed,
    /// At once.
    #[serde(rename = "async")]
    Asynchronous,
}

impl Commit {
    /// Name as in a workload file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Commit::Block => "block",
            Commit::ByteAddressed => "ba",
            Commit::Asynchronous => "async",
        }
    }
}

impl std::str::FromStr for Commit {
    type Err = crate::WorkloadError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Commit::Block, Commit::ByteAddressed, Commit::Asynchronous]
            .into_iter()
            .find(|commit| commit.name() == text)
            .ok_or_else(|| {
                let shown = text.escape_debug();
                let error = crate::WorkloadError::new(format!(
                    "`commit` must be `block`, `ba` or `async`, found `{shown}`"
                ));
                let names = ["block", "ba", "async"];
                let near = crate::near::nearest(text, names);
                error.hint(match near {
                    Some(name) => format!("did you mean `{name}`?"),
                    None => "`block` waits for a write and a flush, `ba` for the byte window, `async` for nothing".to_owned(),
                })
            })
    }
}

/// Everything about a run but the drive.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whose way of committing.
    pub database: Database,
    /// Commit mode.
    pub commit: Commit,
    /// Clients, each with one transaction at a time.
    pub clients: u32,
    /// Cores of the host, for clients and servers alike.
    pub cores: u32,
    /// A client's own processor time between two transactions, beside what was captured: a benchmark's client that
    /// makes keys and values, for example.
    pub client_ps: u64,
    /// Processor time of a context switch, for whoever has slept: a client that has waited for a commit, a lock or a core.
    /// A leader that stores bytes itself does not sleep.
    pub switch_ps: u64,
    /// Locks, of which each transaction that logs takes one at random from before its work to its acknowledgement; 0:
    /// none.
    pub locks: u32,
    /// Transactions in all.
    pub transactions: u64,
    /// Where the log's files lie on the drive, bytes.
    pub log_offset_bytes: u64,
    /// Size of the log, after which its segments are used again, bytes.
    pub log_bytes: u64,
    /// Most of the log that memory holds until it is written, with asynchronous commits, bytes: then those who log wait.
    pub unwritten_bytes: u64,
    /// Most that is written before it is made durable, with asynchronous commits, bytes.
    pub batch_bytes: u64,
    /// Segment pinned to the byte window at a time; two are pinned, bytes.
    pub segment_bytes: u64,
    /// Where the file system's journal lies, bytes.
    pub journal_offset_bytes: u64,
    /// Size of the journal, bytes.
    pub journal_bytes: u64,
    /// Whether the drive may lose what it has acknowledged: then the host flushes.
    pub volatile_cache: bool,
    /// After the last transaction the host crashes, and the server reads its log back: how it reads what stands in the byte
    /// window. `None`: it does not.
    pub recovery: Option<RecoveryPath>,
    /// Seed of what is drawn.
    pub seed: u64,
}
