//! Reports that look like fio's.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Form and place of a fio-like report.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Report")]
pub struct ReportArgs {
    /// Form of the report: fio's text, its JSON, that with every histogram bin, or its terse lines
    #[arg(long, value_enum, default_value_t = ReportFormat::Normal, value_name = "FORMAT")]
    pub output_format: ReportFormat,
    /// Write the report to FILE instead of standard output; it appears whole or not at all
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Form of a fio-like report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// For people, as fio prints it
    Normal,
    /// fio's JSON with an object `lodger`
    Json,
    /// The same with the bins of every latency histogram
    #[value(name = "json+")]
    JsonPlus,
    /// fio's `terse` lines, version 3: 130 values and more, separated by semicolons
    Terse,
}
