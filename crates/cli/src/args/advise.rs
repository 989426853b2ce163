//! What can be typed after `lodger advise`.

use super::{RunArgs, TableArgs, TraceArgs, WorkersArgs};
use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  lodger advise trace.csv --drive rc100-480                 the least that costs 5 % at most
  lodger advise trace.csv --drive rc100-480 --slo p99=200us the least that keeps a promise
  lodger advise oltp.fio --drive a80 --within 1%            the same, more strictly
  lodger advise trace.csv --drive bg4 --report advice.html  with curves, to be looked at
  lodger advise redis.toml --drive 2b-ssd                   whether a byte window pays for commits

Exit status 1: no amount of host memory is enough, or the byte window does not pay.";

/// `lodger advise`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct AdviseArgs {
    /// fio job file (`.fio`), block trace (the format is recognised), model of database logging
    /// (`.toml`), or `-` for standard input
    pub workload: PathBuf,
    /// Drive of the collection (`lodger drives list`) or a drive file
    #[arg(long, value_name = "NAME|FILE")]
    pub drive: String,
    /// Promise to keep: `p99=200us`, `mean=90us` or `iops=100k`; latencies are those of reads,
    /// or of writes where nothing is read
    #[arg(long, value_name = "NAME=LIMIT", allow_hyphen_values = true)]
    pub slo: Option<String>,
    /// How much worse than with the host memory that the drive has under Linux by default (128 MiB at most; where it needs
    /// more, all that it asks for): requests take so much longer on average at most, all of them, and reads by themselves if
    /// they are one in a hundred, and so many fewer of them are done a second [default: 5%]
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true)]
    pub within: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub run: RunArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub trace: TraceArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub workers: WorkersArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub output: TableArgs,
    /// Write a page to FILE, too: the answer, then rate, latency and map hits over host memory with the amounts that
    /// are enough and that Linux gives by default, the drive and its sources
    ///
    /// One file that needs nothing else and no network.
    #[arg(long = "report", value_name = "FILE.html", help_heading = "Report")]
    pub page: Option<PathBuf>,
}
