//! Job files of tests.

use lodger_run::RunConfig;
use lodger_workload::{Workload, fio};

/// A job file for that drive, which includes no other.
pub fn parse(text: &str, config: &RunConfig) -> Workload {
    let context = fio::Context {
        file_name: "job.fio",
        env: &|_| None,
        include: &|_| Err(std::io::ErrorKind::NotFound.into()),
        drive_bytes: config.drive.parsed.spec.capacity_bytes,
        seed: 1,
    };
    fio::parse(text, &context).expect("a job file")
}
