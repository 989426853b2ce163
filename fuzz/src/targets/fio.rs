//! fio job files.

use super::follow;
use lodger_workload::fio::{Context, parse};
use std::io;

const DRIVE_BYTES: u64 = 64 << 20;

/// A file, and after a byte of 0 another that it may include.
pub fn job_file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (text, included) = text.split_once('\0').unwrap_or((text, ""));
    let include = |_: &str| match included {
        "" => Err(io::ErrorKind::NotFound.into()),
        text => Ok(text.to_owned()),
    };
    let context = Context {
        file_name: "job.fio",
        env: &|name| (name == "SIZE").then(|| "16k".to_owned()),
        include: &include,
        drive_bytes: DRIVE_BYTES,
        seed: 1,
    };
    match parse(text, &context) {
        Ok(mut workload) => follow(&mut workload, DRIVE_BYTES),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
