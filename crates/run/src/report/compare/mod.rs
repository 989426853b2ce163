//! Several runs of one workload side by side.

mod flat;
mod table;

use super::{Report, json_value};
use crate::hmb::HmbChoice;
use crate::logging::LoggingResult;
use crate::size;
use serde_json::{Value, json};

pub use flat::csv;
pub use table::{markdown, text};

/// What the user said of host memory; nothing for what the drive gets by itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given<'a> {
    /// `--hmb`.
    pub hmb: Option<&'a str>,
    /// `--hmb-offer`.
    pub hmb_offer: Option<&'a str>,
}

impl<'a> Given<'a> {
    /// As `--hmb` would have it; nothing where an exact amount is offered.
    fn hmb(self) -> Option<&'a str> {
        match self {
            Given {
                hmb: None,
                hmb_offer: None,
            } => Some("default"),
            given => given.hmb,
        }
    }
}

/// One run of the comparison.
#[derive(Clone, Copy, Debug)]
pub struct Variant<'a> {
    /// What the user said of host memory.
    pub given: Given<'a>,
    /// The run.
    pub report: Report<'a>,
}

impl Variant<'_> {
    /// The drive's name, as the user gave it.
    pub(super) fn drive(&self) -> &str {
        &self.report.config.drive.name
    }

    /// What its database did, if it is of one.
    pub(super) fn logging(&self) -> Option<&LoggingResult> {
        let mut jobs = self.report.result.jobs.iter();
        jobs.find_map(|job| job.logging.as_deref())
    }

    /// When its transactions are acknowledged.
    pub(super) fn commit(&self) -> Option<&'static str> {
        self.logging().map(|logging| logging.commit)
    }

    /// What the host gives.
    pub(super) fn host_gives(&self) -> String {
        match self.report.config.hmb {
            HmbChoice::Negotiated => "default".to_owned(),
            HmbChoice::Off => "none".to_owned(),
            HmbChoice::AtMost(bytes) => format!("<= {}", size::show(bytes)),
            HmbChoice::Exactly(bytes) => size::show(bytes),
        }
    }
}

/// Whether host memory was spoken of, so that runs of one drive differ in it.
pub(super) fn hosts_differ(variants: &[Variant<'_>]) -> bool {
    let mut choices = variants.iter().map(|variant| variant.report.config.hmb);
    choices.any(|hmb| hmb != HmbChoice::Negotiated)
}

/// Whether runs differ in when their transactions are acknowledged.
pub(super) fn commits_differ(variants: &[Variant<'_>]) -> bool {
    let mut commits = variants.iter().map(Variant::commit);
    let first = commits.next();
    commits.any(|commit| Some(commit) != first)
}

/// `{"compare": [{"drive", "hmb", "hmb_offer", "result"}]}`, where `result` is what `simulate` writes.
#[must_use]
pub fn json(variants: &[Variant<'_>]) -> String {
    let runs: Vec<Value> = variants
        .iter()
        .map(|variant| {
            json!({
                "drive": variant.drive(),
                "hmb": variant.given.hmb(),
                "hmb_offer": variant.given.hmb_offer,
                "result": json_value(variant.report, false),
            })
        })
        .collect();
    format!("{:#}\n", json!({ "compare": runs }))
}
