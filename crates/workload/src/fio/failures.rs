//! What a job does about requests that fail: fio's `continue_on_error`, `ignore_error` and `exitall_on_error`.
//!
//! A job ends at its first error, unless that is of a kind after which it is to go on. fio has lists of error numbers for
//! reads, for everything else and for data that is not what was written (`td_error.c`); the last happens on no simulated drive.

use super::ini::Setting;
use crate::WorkloadError;
use lodger_core::{Op, Status};

const EIO: u32 = 5;
const EINVAL: u32 = 22;
const ENODATA: u32 = 61;
const EILSEQ: u32 = 84;

/// Errors after which fio goes on where it is asked to, and not told which (`__NON_FATAL_ERR` of `td_error.c`).
const NOT_FATAL: [u32; 2] = [EIO, EILSEQ];

/// Errors by Linux's names that `ignore_error` may say; fio knows all, and takes numbers of all, as is done here.
const NAMES: [(&str, u32); 14] = [
    ("EPERM", 1),
    ("EINTR", 4),
    ("EIO", EIO),
    ("EAGAIN", 11),
    ("ENOMEM", 12),
    ("EBUSY", 16),
    ("EINVAL", EINVAL),
    ("ENOSPC", 28),
    ("EROFS", 30),
    ("ENODATA", ENODATA),
    ("EILSEQ", EILSEQ),
    ("EOPNOTSUPP", 95),
    ("ETIMEDOUT", 110),
    ("EREMOTEIO", 121),
];

/// The error number that Linux makes of a drive's answer: 0 for success.
#[must_use]
pub fn errno(status: Status) -> u32 {
    // By `nvme_error_status` and `blk_status_to_errno`.
    match status {
        Status::Success => 0,
        Status::InvalidField => EINVAL,
        // A range beyond the drive, a drive that takes no data, and what was aborted.
        Status::OutOfRange | Status::ReadOnly | Status::Aborted => EIO,
        // Access Denied, Unrecovered Read Error and Write Fault.
        Status::AccessDenied | Status::MediaError => ENODATA,
    }
}

/// Reads, everything else, and what `verify` finds; in fio's order.
const KINDS: usize = 3;

/// What a job section says.
#[derive(Clone, Debug, Default)]
pub(super) struct FailureOptions {
    goes_on: [bool; KINDS],
    /// Numbers named by `ignore_error`.
    named: [Option<Vec<u32>>; KINDS],
    /// Other jobs end with one that has ended in error.
    pub(super) ends_others: bool,
}

impl FailureOptions {
    /// Takes an option, if it is one of these.
    pub(super) fn apply(&mut self, name: &str, s: &Setting) -> Result<bool, WorkloadError> {
        match name {
            "continue_on_error" => {
                self.goes_on = match s.text() {
                    "none" | "0" => [false; KINDS],
                    "read" => [true, false, false],
                    "write" => [false, true, false],
                    "io" => [true, true, false],
                    "verify" => [false, false, true],
                    "all" | "1" => [true; KINDS],
                    _ => return Err(s.must("`none`, `read`, `write`, `io`, `verify` or `all`")),
                }
            }
            "ignore_error" => self.ignore(s)?,
            // Its value, if it has one, is not looked at.
            "exitall_on_error" => self.ends_others = true,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn ignore(&mut self, s: &Setting) -> Result<(), WorkloadError> {
        let allowed =
            "errors of reads, of writes and of `verify`, such as `ENODATA,EIO:ENODATA,EILSEQ`";
        let kinds: Vec<&str> = s.text().split(',').map(str::trim).collect();
        if kinds.len() > KINDS || s.text().is_empty() {
            return Err(s.must(allowed));
        }
        for (kind, list) in kinds.into_iter().enumerate() {
            if list.is_empty() {
                continue;
            }
            let numbers: Option<Vec<u32>> = list.split(':').map(number_of).collect();
            self.named[kind] = Some(numbers.ok_or_else(|| {
                let message = "a simulated drive ends requests with EIO (5), EINVAL (22) and ENODATA \
                               (61); errors without a name here go by their numbers";
                s.must(allowed).hint(message)
            })?);
            self.goes_on[kind] = true;
        }
        Ok(())
    }

    /// After what the job goes on.
    pub(super) fn survived(&self) -> Survived {
        let of = |kind: usize| match (self.goes_on[kind], &self.named[kind]) {
            (false, _) => Vec::new(),
            (true, None) => NOT_FATAL.to_vec(),
            (true, Some(named)) => named.clone(),
        };
        Survived {
            asked: self.goes_on != [false; KINDS],
            reads: of(0),
            others: of(1),
        }
    }
}

fn number_of(text: &str) -> Option<u32> {
    if text.starts_with('E') {
        let named = NAMES.iter().find(|(name, _)| *name == text);
        return named.map(|(_, number)| *number);
    }
    let digits = text.strip_prefix("0x").or(text.strip_prefix("0X"));
    let number = match digits {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.strip_prefix('-').unwrap_or(text).parse(),
    };
    number.ok().filter(|number| *number > 0)
}

/// Errors after which a job goes on.
#[derive(Clone, Debug, Default)]
pub(super) struct Survived {
    /// It was asked to, after some.
    pub(super) asked: bool,
    reads: Vec<u32>,
    /// Of writes, trims and flushes, which fio takes for one kind.
    others: Vec<u32>,
}

impl Survived {
    /// Whether the job goes on after this.
    pub(super) fn has(&self, op: Op, status: Status) -> bool {
        let list = match op {
            Op::Read => &self.reads,
            Op::Write | Op::Trim | Op::Flush => &self.others,
        };
        list.contains(&errno(status))
    }
}
