//! What `lodger simulate` is to say of time.

use clap::Args;
use std::path::PathBuf;

/// What happened when.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Time")]
pub struct TimeArgs {
    /// Write every completion to FILE as fio's `write_lat_log` does, with offsets
    ///
    /// One line each: time (ms), completion latency (ns), direction (0 read, 1 write, 2 trim,
    /// 3 sync; 4 a commit of a model of database logging), bytes, offset, priority. Times count from
    /// the start of the run, and requests of a `ramp_time` are there, which the report leaves out.
    /// As in fio there is no line for a request that failed.
    #[arg(long, value_name = "FILE")]
    pub latency_log: Option<PathBuf>,
    /// Write requests, flash operations and garbage collection to FILE as slices over time, for Perfetto
    ///
    /// Of each kind every n-th is there, so that the whole run fits into `--trace-events-limit`.
    /// ui.perfetto.dev opens the file.
    #[arg(long, value_name = "FILE")]
    pub trace_events: Option<PathBuf>,
    /// Most bytes of that file [default: 64MiB]
    #[arg(
        long,
        value_name = "SIZE",
        requires = "trace_events",
        allow_hyphen_values = true
    )]
    pub trace_events_limit: Option<String>,
    /// Tell where the time of requests went: waits, firmware, map look-ups by memory, flash, buses, link
    ///
    /// A table by direction, or `lodger.breakdown` in JSON: means, and what the requests met whose
    /// latency is near p50, p99 and p99.9.
    #[arg(long)]
    pub breakdown: bool,
    /// Write what happened over time to FILE, a row for each interval: `.csv`, `.parquet` or `.jsonl`
    ///
    /// Requests, bandwidth and latencies by direction, map hits by memory, write amplification, free
    /// superblocks, fill of the single-bit cache, moved pages, erases, host memory used. Rows add up
    /// to the report's totals: as there, nothing of a `ramp_time` is in them.
    #[arg(long, value_name = "FILE")]
    pub timeline: Option<PathBuf>,
    /// Interval of the timeline, such as `100ms` [default: so long that there are 200 to 1000]
    #[arg(
        long,
        value_name = "TIME",
        requires = "timeline",
        allow_hyphen_values = true
    )]
    pub timeline_interval: Option<String>,
}
