//! Options of models of database logging.

use clap::Args;
use lodger_run::{Error, LoggingChoice, size};
use lodger_workload::WorkloadError;
use lodger_workload::logging::Commit;

/// What is chosen of a model of database logging instead of what its file says.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Database logging")]
pub struct LoggingArgs {
    /// Number of clients
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub clients: Option<u32>,
    /// What each transaction logs that logs at all, such as `4KiB`, instead of what was captured
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub transaction_size: Option<String>,
}

impl LoggingArgs {
    /// As the model wants it, committed as `commit` says, or as the file does.
    ///
    /// # Errors
    /// If there is no such commit mode, or the size is wrong.
    pub fn choice(&self, commit: Option<&str>) -> Result<LoggingChoice, Error> {
        let bytes = self.transaction_size.as_deref();
        let bytes = bytes.map(|text| size::parse("--transaction-size", text, None));
        Ok(LoggingChoice {
            commit: commit.map(commit_of).transpose()?,
            clients: self.clients,
            transactions: None,
            transaction_bytes: bytes.transpose()?,
        })
    }
}

/// A way to commit; what is wrong is the option.
fn commit_of(text: &str) -> Result<Commit, Error> {
    text.parse().map_err(|error: WorkloadError| {
        let error = Error::from(error);
        Error {
            message: error.message.replacen("`commit`", "`--commit`", 1),
            ..error
        }
    })
}
