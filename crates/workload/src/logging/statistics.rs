//! What a run of the model counts.

use super::Recovered;

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Transactions completed.
    pub transactions: u64,
    /// Those that wrote log.
    pub commits: u64,
    /// Groups of commits made durable together.
    pub groups: u64,
    /// Bytes of records, group headers included.
    pub log_bytes: u64,
    /// The part of them for which the drive's flash has been given something to program.
    pub covered_bytes: u64,
    /// Bytes written to the log's place on the drive: blocks, or flushed segments.
    pub written_bytes: u64,
    /// Bytes written to the file system's journal.
    pub journal_bytes: u64,
    /// Flushes of the drive's volatile cache.
    pub flushes: u64,
    /// Times that a leader found its segment not pinned yet, or no room in memory for what is not on the drive yet.
    pub stalls: u64,
    /// Most of the log that was acknowledged, or about to be, and not durable: what a crash can take. Counted with
    /// asynchronous commits alone.
    pub exposed_bytes_max: u64,
    /// When the clients began, picoseconds.
    pub began_ps: u64,
    /// When the last transaction ended, picoseconds.
    pub ended_ps: u64,
    /// What reading the log back took, if it was.
    pub recovered: Option<Recovered>,
    /// Why the run could not go on.
    pub failure: Option<String>,
}

impl Statistics {
    /// Transactions per second of simulated time.
    #[must_use]
    pub fn transactions_per_s(&self) -> f64 {
        let took_ps = self.ended_ps.saturating_sub(self.began_ps);
        if took_ps == 0 {
            return 0.0;
        }
        self.transactions as f64 * 1e12 / took_ps as f64
    }

    /// Bytes written to the drive for each byte logged, the file system's journal included; `None`
    /// while nothing was written.
    #[must_use]
    pub fn write_amplification(&self) -> Option<f64> {
        let written = self.written_bytes + self.journal_bytes;
        (self.covered_bytes > 0).then(|| written as f64 / self.covered_bytes as f64)
    }
}
