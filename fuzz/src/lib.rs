//! What each target does with bytes. None may panic, hang or take more than [`MEMORY_BYTES_MAX`]; what
//! else must hold (what was read, written and read again, is the same) is asserted.
//!
//! Nothing here draws random numbers: the same bytes do the same, so that a failure can be shown again.

mod targets;

use targets::{command, drive, fio, guest, logging, nbd, nvme, trace};

/// Most memory that an input may take, bytes.
pub const MEMORY_BYTES_MAX: usize = 1 << 30;

/// A target.
pub type Target = fn(&[u8]);

/// Every target, by name.
pub const TARGETS: [(&str, Target); 11] = [
    ("drive", drive::file),
    ("set", drive::sets),
    ("fio", fio::job_file),
    ("trace", trace::file),
    ("logging", logging::file),
    ("captured", logging::captured),
    ("nbd", nbd::server),
    ("nvme", nvme::drive),
    ("command", command::line),
    ("guest", guest::steps),
    ("wire", guest::bytes),
];

/// Seeds and words for targets, from the repository's own files.
pub use targets::seeds;
