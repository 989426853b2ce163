//! What can be typed after `lodger compare`.

use super::{LoggingArgs, RunArgs, TableArgs, TraceArgs, WorkersArgs};
use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  lodger compare randread.fio --drive rc100-480 --hmb off,10MiB,default
  lodger compare randread.fio --drive rc100-480 --drive bg4 --drive 970-pro
  lodger compare randread.fio --drive bg4 --hmb off,default --hmb-offer 64MiB
  lodger compare trace.csv --drive a80 --drive ex900 --hmb off,64MiB --output-format csv
  lodger compare randread.fio --drive bg4 --hmb off,32MiB,default --report compare.html
  lodger compare redis.toml --drive 2b-ssd --commit block,ba,async

Every drive is run with every amount of host memory and every way to commit.";

/// `lodger compare`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CompareArgs {
    /// fio job file (`.fio`), block trace (the format is recognised), model of database logging
    /// (`.toml`), or `-` for standard input
    pub workload: PathBuf,
    /// Drive of the collection or a drive file; give it once for each drive
    #[arg(long = "drive", value_name = "NAME|FILE", required = true)]
    pub drives: Vec<String>,
    /// Most that the host gives, such as `off,8MiB,default`; see `lodger simulate --help`
    #[arg(
        long,
        value_name = "SIZE|off|default,...",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    pub hmb: Vec<String>,
    /// Exact amounts offered whatever the drive prefers, such as `64MiB,128MiB`
    #[arg(
        long,
        value_name = "SIZE,...",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    pub hmb_offer: Vec<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub run: RunArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub trace: TraceArgs,
    /// When a transaction is acknowledged: `block`, `ba` (through the byte window), `async`, or several as `block,ba`
    #[arg(
        long,
        value_name = "MODE,...",
        value_delimiter = ',',
        help_heading = "Database logging"
    )]
    pub commit: Vec<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub logging: LoggingArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub workers: WorkersArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub output: TableArgs,
    /// Write a page to FILE, too: what is best and by how much, then each run's latencies by rank and over time,
    /// rates and hits by memory side by side, the drives and their sources
    ///
    /// One file that needs nothing else and no network.
    #[arg(long = "report", value_name = "FILE.html", help_heading = "Report")]
    pub page: Option<PathBuf>,
}
