//! What can be typed. The text here is the help.

mod advise;
mod compare;
mod ctl;
mod fio;
mod logging;
mod manual;
mod report;
mod serve;
mod table;
mod time;
mod top;
mod workers;

pub use advise::AdviseArgs;
pub use compare::CompareArgs;
pub use ctl::{After, CtlArgs, Order, RulesOrder};
pub use fio::FioArgs;
pub use logging::LoggingArgs;
pub use manual::{CompletionsArgs, HelpArgs, ManArgs};
pub use report::{ReportArgs, ReportFormat};
pub use serve::ServeArgs;
pub use table::{TableArgs, TableFormat};
pub use time::TimeArgs;
pub use top::TopArgs;
pub use workers::WorkersArgs;

use clap::{Args, Parser, Subcommand, ValueEnum};
use lodger_core::Precondition;
use lodger_run::{Error, HmbChoice};
use lodger_workload::trace::Format;
use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  lodger simulate randread.fio --drive rc100-480            what fio would print on this drive
  lodger simulate trace.csv --drive bg4 --hmb off           a block trace, without host memory
  lodger compare randread.fio --drive rc100-480 --hmb off,10MiB,default
  lodger advise trace.csv --drive rc100-480 --slo p99=200us how much host memory is enough
  lodger sweep randread.fio --drive bg4,a80 --vary iodepth=1,32 --vary hmb=off,32MiB,64MiB
  lodger drives show rc100-480                              every number of a drive and its source

Exit status: 0 done, 1 a check or verdict failed, 2 wrong use or input, 130 interrupted
(143 by SIGTERM, 129 by SIGHUP); `serve` ends so with 0.";

/// A software-defined SSD that lodges in host memory.
#[derive(Debug, Parser)]
#[command(name = "lodger", version, about, after_help = EXAMPLES, max_term_width = 100)]
#[command(disable_help_subcommand = true)]
pub struct Cli {
    /// Say nothing but what was asked for, errors and warnings: no notes, no progress
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a workload on a simulated drive and report as fio does
    Simulate(Box<SimulateArgs>),
    /// Run a workload on several drives, or with several amounts of host memory, side by side
    Compare(CompareArgs),
    /// Tell how much host memory is enough for a workload
    Advise(AdviseArgs),
    /// List, show and check drives
    Drives(DrivesArgs),
    /// Find out from outside what is in a drive and what it does with host memory
    Probe(ProbeArgs),
    /// Serve a drive as a real NVMe device, for virtual machines and drivers in user space
    Serve(ServeArgs),
    /// Tell a running drive of `lodger serve` what is to happen to it: faults, power cuts, heat
    Ctl(CtlArgs),
    /// Look at a running drive of `lodger serve --metrics`
    Top(TopArgs),
    /// Describe and convert block traces
    Trace(TraceCommandArgs),
    /// Run a workload in many settings, resumably: a grid, a random part of it, or a search (Python
    /// package)
    ///
    /// `lodger sweep --help` tells more where the package is installed.
    #[command(disable_help_flag = true)]
    Sweep(OutsideArgs),
    /// Check what published papers say (Python package)
    ///
    /// `lodger reproduce --help` tells more where the package is installed.
    #[command(disable_help_flag = true)]
    Reproduce(OutsideArgs),
    /// Run and show study files of your own (Python package)
    ///
    /// `lodger study --help` tells more where the package is installed.
    #[command(disable_help_flag = true)]
    Study(OutsideArgs),
    /// Tell what a command does, as its `--help` does
    #[command(disable_help_flag = true)]
    Help(HelpArgs),
    /// Print what a shell needs to complete commands, options and drives
    Completions(CompletionsArgs),
    /// Print a manual page, or write all of them to a folder
    Man(ManArgs),
}

/// Arguments of a command that is a program of its own.
#[derive(Debug, Args)]
pub struct OutsideArgs {
    /// Handed on as they are
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENT"
    )]
    pub arguments: Vec<OsString>,
}

const SIMULATE_EXAMPLES: &str = "\
Examples:
  lodger simulate randread.fio --drive rc100-480
  lodger simulate randread.fio --drive rc100-480 --hmb off --output-format json --output off.json
  lodger simulate --drive tiny --name=job --rw=randread --bs=4k --iodepth=8 --runtime=1
  lodger simulate server.csv --drive bg4 --replay closed --iodepth 8 --fit scale
  lodger simulate job.fio --drive rc100-480 --set nand.channels=8 --set tier.hmb.rounding=none
  lodger simulate trace.csv.zst --drive a80                 gzip and zstd as they are
  ssh server cat trace.csv | lodger simulate - --drive a80
  lodger simulate run.rec --drive tiny                      what `lodger serve --record` wrote

What is simulated starts at time zero on a fresh drive, so equal commands give equal results; only
`wall_s` in the JSON differs.";

/// `lodger simulate`.
#[derive(Debug, Args)]
#[command(after_help = SIMULATE_EXAMPLES)]
pub struct SimulateArgs {
    /// fio job file (`.fio`; of several each runs after the one before), block trace (the format is recognised), model of
    /// database logging (`.toml`), recording of a live drive (`lodger serve --record`), or `-` for standard input
    #[arg(required_unless_present = "options")]
    pub workload: Vec<PathBuf>,
    /// Drive of the collection (`lodger drives list`) or a drive file
    #[arg(long, value_name = "NAME|FILE")]
    pub drive: String,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub hmb: HmbArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub run: RunArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub trace: TraceArgs,
    /// Simulate a trace, one in order of time, while it is read: its length takes no memory
    #[arg(long, help_heading = "Traces")]
    pub stream: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub report: ReportArgs,
    /// Write a page with curves to FILE, too: rates and latencies over time and by rank, where requests spent their
    /// time, hits by memory, the drive and its sources
    ///
    /// One file that needs nothing else and no network.
    #[arg(long = "report", value_name = "FILE.html", help_heading = "Report")]
    pub page: Option<PathBuf>,
    /// When a transaction is acknowledged: `block`, `ba` (through the byte window) or `async`
    #[arg(long, value_name = "MODE", help_heading = "Database logging")]
    pub commit: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub logging: LoggingArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub time: TimeArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub fio: FioArgs,
}

/// Host memory of one drive.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Drive")]
pub struct HmbArgs {
    /// Most that the host gives a simulated drive, such as `64MiB`, `off`, or `default`
    ///
    /// The drive gets what it prefers, up to this much, as from Linux with `max_host_mem_size_mb`.
    /// `default` is what Linux does by itself: 128 MiB at most.
    #[arg(long, value_name = "SIZE|off|default", allow_hyphen_values = true)]
    pub hmb: Option<String>,
    /// Offer a simulated drive exactly this much, whatever it prefers, such as `64MiB`
    #[arg(
        long,
        value_name = "SIZE",
        allow_hyphen_values = true,
        conflicts_with = "hmb"
    )]
    pub hmb_offer: Option<String>,
}

impl HmbArgs {
    /// As a run wants it.
    ///
    /// # Errors
    /// If it is wrong.
    pub fn choice(&self) -> Result<HmbChoice, Error> {
        HmbChoice::parse(self.hmb.as_deref(), self.hmb_offer.as_deref())
    }
}

/// The drive's state and what is changed about it.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Drive")]
pub struct RunArgs {
    /// Change a value of the drive, such as `nand.channels=8`; may be repeated
    ///
    /// `lodger drives show NAME` prints every key.
    #[arg(long = "set", value_name = "KEY=VALUE", allow_hyphen_values = true)]
    pub sets: Vec<String>,
    /// What was written before
    #[arg(long, value_enum, default_value_t, value_name = "STATE")]
    pub precondition: PreconditionArg,
    /// Seed of everything drawn at random
    #[arg(
        long,
        default_value_t = 0,
        value_name = "N",
        allow_negative_numbers = true
    )]
    pub seed: u64,
}

/// `--precondition`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PreconditionArg {
    /// Nothing: reads of what the workload did not write are answered without flash
    None,
    /// Written once, in order
    #[default]
    Sequential,
    /// In the steady state of random writes: full and fragmented
    Random,
}

impl From<PreconditionArg> for Precondition {
    fn from(state: PreconditionArg) -> Self {
        match state {
            PreconditionArg::None => Precondition::None,
            PreconditionArg::Sequential => Precondition::Sequential,
            PreconditionArg::Random => Precondition::Random,
        }
    }
}

/// How a trace is read and replayed. Wrong on a fio job file.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Traces")]
pub struct TraceArgs {
    /// `timed`: at the recorded instants (the default); `closed`: as fast as the drive takes them
    #[arg(long, value_enum, value_name = "HOW")]
    pub replay: Option<ReplayArg>,
    /// Requests in flight of a closed replay [default: 32]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub iodepth: Option<u32>,
    /// Addresses beyond the drive: refuse (the default), wrap around, or scale the volume down
    #[arg(long, value_enum, value_name = "HOW")]
    pub fit: Option<FitArg>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub read: TraceReadArgs,
}

/// How a trace file is read.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Traces")]
pub struct TraceReadArgs {
    /// Format of the trace, if it is not to be recognised
    #[arg(long, value_name = "NAME", long_help = format!(
        "Format of the trace, if it is not to be recognised\n\nOne of {}.", Format::names()
    ))]
    pub format: Option<String>,
    /// Device to take of a trace of several: a name, `all` (at the addresses that they have, which may be the same), or the
    /// busiest (the default)
    #[arg(long, visible_alias = "trace-device", value_name = "NAME|all")]
    pub device: Option<String>,
    /// Unit of the trace's times, if it is not the format's: ps, ns, us, ms, s, filetime
    #[arg(long, value_name = "UNIT")]
    pub time_unit: Option<String>,
    /// blkparse: the action to take, `Q` (queued) or `D` (issued)
    #[arg(long, value_name = "Q|D")]
    pub action: Option<char>,
    /// Leave out and count lines that cannot be read, instead of stopping at the first
    #[arg(long)]
    pub skip_malformed: bool,
}

/// `--replay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReplayArg {
    /// At the recorded instants
    Timed,
    /// As fast as the drive takes them
    Closed,
}

/// `--fit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FitArg {
    /// Refuse, and say what would help
    Error,
    /// Address modulo the drive's size; a request across its end is moved in front of it
    Wrap,
    /// The traced volume compressed to the drive
    Scale,
}

/// Form and place of other reports.
#[derive(Clone, Debug, Args)]
pub struct OutputArgs {
    /// Form of the report
    #[arg(
        id = "output_format",
        long = "output-format",
        value_enum,
        default_value_t = PlainFormat::Normal,
        value_name = "FORMAT"
    )]
    pub format: PlainFormat,
    /// Write the report to FILE instead of standard output
    #[arg(id = "output", long = "output", value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// Form of other reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PlainFormat {
    /// For people
    Normal,
    /// For programs
    Json,
}

const PROBE_EXAMPLES: &str = "\
Examples:
  lodger probe sim:rc100-480 --destroy-data                 a simulated drive, everything
  lodger probe sim:rc100-480 --hmb off                      the same without host memory at any time
  lodger probe /dev/nvme0n1                                 a real one, reading only
  lodger probe /dev/nvme0n1 --budget 10min --report out.html
  lodger probe --compare before.json after.json             two drives, or two firmwares

Nothing is written to a drive without --destroy-data, and nothing to a real one without its serial
number being typed. Host memory is turned off and on where that can be done, and left as it was found.
`--hmb` and `--hmb-offer` say what a simulated drive has when it is on; after `--hmb off` it is never on,
and what a drive would keep there stays undecided.";

/// `lodger probe`.
#[derive(Debug, Args)]
#[command(after_help = PROBE_EXAMPLES)]
pub struct ProbeArgs {
    /// `sim:DRIVE`, a block device, `nbd:unix:PATH[:EXPORT]`, `nbd:HOST:PORT[/EXPORT]`, or a file
    #[arg(required_unless_present = "compare")]
    pub target: Option<String>,
    /// Do only this; may be repeated
    ///
    /// One of map-cache, read-cache, parallelism, replacement, queue-depth, read-ahead, working-set,
    /// request-size, flush, write-buffer, request-size-write, write-cliff.
    #[arg(long = "experiment", value_name = "NAME")]
    pub experiments: Vec<String>,
    /// Longest time to keep the drive busy, such as `90s`, `10min`, `2h` [default: 1h; sim: 30 days]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub budget: Option<String>,
    /// How sure each verdict should be, 0.5 to 0.999
    ///
    /// What is less sure is measured again with other random numbers, as long as that helps and the
    /// budget lasts.
    #[arg(
        long,
        default_value_t = 0.95,
        value_name = "SHARE",
        allow_negative_numbers = true
    )]
    pub confidence: f64,
    /// Do what needs writing, too: the data on the drive is lost
    #[arg(long)]
    pub destroy_data: bool,
    /// Serial number of the drive whose data may be lost, in place of typing it
    #[arg(long, value_name = "SERIAL", requires = "destroy_data")]
    pub yes: Option<String>,
    /// Write a page with plots and raw data to FILE
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Write a drive file made from the findings, for `lodger simulate`
    #[arg(long, value_name = "FILE.toml")]
    pub emit_drive: Option<PathBuf>,
    /// Compare two JSON reports instead of probing
    #[arg(long, num_args = 2, value_names = ["A.json", "B.json"], conflicts_with = "target")]
    pub compare: Option<Vec<PathBuf>>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub output: OutputArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub hmb: HmbArgs,
    /// Noise of a simulated drive's latencies, as a multiple of a quiet machine's (3 % jitter, one
    /// command in a thousand held up) [default: 1]
    #[arg(long, value_name = "FACTOR", allow_negative_numbers = true)]
    pub noise: Option<f64>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub run: RunArgs,
}

/// `lodger drives`.
#[derive(Debug, Args)]
pub struct DrivesArgs {
    /// What to do; `list` without it
    #[command(subcommand)]
    pub command: Option<DrivesCommand>,
}

/// What to do with drives.
#[derive(Debug, Subcommand)]
pub enum DrivesCommand {
    /// List the drives that come with the program
    List {
        /// Form of the list
        #[arg(long, value_enum, default_value_t = PlainFormat::Normal, value_name = "FORMAT")]
        output_format: PlainFormat,
    },
    /// Print every value of a drive with its kind and source
    Show {
        /// Drive of the collection or a drive file
        drive: String,
        /// Change a value first, such as `nand.channels=8`; may be repeated
        #[arg(long = "set", value_name = "KEY=VALUE", allow_hyphen_values = true)]
        sets: Vec<String>,
        /// Form: for people, JSON, or a drive file to start from
        #[arg(long, value_enum, default_value_t = ShowFormat::Normal, value_name = "FORMAT")]
        output_format: ShowFormat,
    },
    /// Check a drive file; exit status 1 if something is wrong with it
    Check {
        /// The drive file
        file: PathBuf,
    },
}

/// Form of `drives show`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ShowFormat {
    /// For people
    Normal,
    /// For programs
    Json,
    /// A drive file that means the same
    Toml,
}

/// `lodger trace`.
#[derive(Debug, Args)]
pub struct TraceCommandArgs {
    /// What to do with the trace
    #[command(subcommand)]
    pub command: TraceCommand,
}

/// What to do with a trace.
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Say what a trace asks for: requests, sizes, footprint, rates
    Info {
        /// The trace, or `-` for standard input
        file: PathBuf,
        #[command(flatten)]
        #[allow(missing_docs)]
        read: TraceReadArgs,
        /// Form of the description
        #[arg(long, value_enum, default_value_t = PlainFormat::Normal, value_name = "FORMAT")]
        output_format: PlainFormat,
    },
    /// Write a trace in another format
    Convert {
        /// The trace, or `-` for standard input
        file: PathBuf,
        /// Format to write
        #[arg(long, value_name = "FORMAT", help = format!("Format to write: {}", Format::names()))]
        to: String,
        #[command(flatten)]
        #[allow(missing_docs)]
        read: TraceReadArgs,
        /// Write to FILE instead of standard output; it appears whole or not at all
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}
