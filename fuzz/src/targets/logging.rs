//! Models of databases' logs: the workload file and the captured distributions.

use super::follow;
use lodger_workload::logging::{Captured, Context, parse};
use std::io;

const DRIVE_BYTES: u64 = 8 << 30;
const CAPTURED: &str = include_str!("../../../workloads/logging/captured/redis.toml");

/// A workload file, and after a byte of 0 the distributions that it names.
pub fn file(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (text, named) = text.split_once('\0').unwrap_or((text, CAPTURED));
    for window_bytes in [0, 8 << 20] {
        let context = Context {
            file_name: "file.toml",
            known: &|name| (name != "own").then_some(CAPTURED),
            include: &|_| match named {
                "" => Err(io::ErrorKind::NotFound.into()),
                text => Ok(text.to_owned()),
            },
            drive_bytes: DRIVE_BYTES,
            volatile_cache: true,
            window_bytes,
            seed: 1,
            commit: None,
            clients: None,
            transactions: None,
            transaction_bytes: None,
        };
        match parse(text, &context) {
            Ok(mut workload) => follow(&mut workload, DRIVE_BYTES),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// Captured distributions alone.
pub fn captured(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = Captured::parse(text, "captured.toml");
    }
}
