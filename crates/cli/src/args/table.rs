//! Reports that are tables.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Form and place of a report that is a table.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Report")]
pub struct TableArgs {
    /// Form of the report: a table for people, JSON, Markdown, or comma-separated values with plain numbers
    #[arg(
        id = "output_format",
        long = "output-format",
        value_enum,
        default_value_t = TableFormat::Normal,
        value_name = "FORMAT"
    )]
    pub format: TableFormat,
    /// Write the report to FILE instead of standard output; it appears whole or not at all
    #[arg(id = "output", long = "output", value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// Form of a report that is a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    /// For people
    Normal,
    /// For programs
    Json,
    /// The table of `normal` as GitHub's Markdown
    Markdown,
    /// A row for each run, job and direction (`compare`) or each amount of host memory (`advise`)
    Csv,
}
