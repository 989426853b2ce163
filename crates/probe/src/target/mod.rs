//! What a prober needs of a drive, and nothing of what is in it.
//!
//! A target takes batches of reads and writes, keeps a number of them in flight and says when each
//! was issued and how long it took. Everything else (flush, deallocate, host memory) may be
//! missing; [`Description`] says so at the start.

#[cfg(target_os = "linux")]
mod consent;
#[cfg(target_os = "linux")]
mod disk;
#[cfg(target_os = "linux")]
pub mod file;
#[cfg(unix)]
pub mod hmb;
#[cfg(unix)]
pub mod nbd;
#[cfg(target_os = "linux")]
pub mod nvme;
#[cfg(target_os = "linux")]
mod threads;
#[cfg(target_os = "linux")]
mod uring;

use std::time::Duration;

/// Why a target that was opened for reading is not written to.
pub const NEEDS_CONSENT: &str = "it writes, which needs --destroy-data";

/// Longest transfer, bytes: the largest request of an experiment (`request-size`).
pub(crate) const TRANSFER_BYTES_MAX: u32 = 2 << 20;

/// Direction of one transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// From the drive.
    Read,
    /// To the drive: destroys what was there.
    Write,
}

/// One transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// Direction.
    pub op: Op,
    /// First byte; a multiple of [`Description::block_bytes`].
    pub offset: u64,
    /// Bytes; a multiple of [`Description::block_bytes`], at most [`Description::transfer_bytes_max`].
    pub bytes: u32,
}

impl Io {
    /// A read.
    #[must_use]
    pub const fn read(offset: u64, bytes: u32) -> Self {
        Io {
            op: Op::Read,
            offset,
            bytes,
        }
    }

    /// A write.
    #[must_use]
    pub const fn write(offset: u64, bytes: u32) -> Self {
        Io {
            op: Op::Write,
            offset,
            bytes,
        }
    }
}

/// How long one transfer took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// When it was issued, ns since the batch began.
    pub issued_ns: u64,
    /// From then to its completion, ns.
    pub latency_ns: u64,
}

impl Sample {
    /// Of a transfer, by times since the batch began.
    #[cfg(target_os = "linux")]
    fn between(issued: Duration, completed: Duration) -> Self {
        Sample {
            issued_ns: issued.as_nanos() as u64,
            latency_ns: (completed - issued).as_nanos() as u64,
        }
    }

    /// When it completed, ns since the batch began.
    #[must_use]
    pub const fn completed_ns(&self) -> u64 {
        self.issued_ns + self.latency_ns
    }
}

/// How much host memory the drive is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HmbState {
    /// None.
    Off,
    /// What the host gives by itself.
    On,
    /// Exactly this many bytes; only where [`HmbSwitch::Sizes`] says so.
    Bytes(u64),
    /// As it was before the prober came.
    AsFound,
}

/// What can be done about host memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HmbSwitch {
    /// The drive says it uses none (HMPRE is 0).
    NotUsed,
    /// It can be turned on and off.
    OnOff {
        /// Bytes it has when on.
        granted_bytes: u64,
    },
    /// Any amount can be given.
    Sizes {
        /// Bytes it has when on.
        granted_bytes: u64,
        /// Least the drive takes (HMMIN).
        min_bytes: u64,
        /// What it asks for (HMPRE).
        preferred_bytes: u64,
    },
    /// The drive asks for none, but the host's driver may keep entries of its map and send them with reads
    /// (UFS with Host Performance Booster).
    MapWithDriver,
    /// The drive asks for it and is given none, and why.
    NotGiven(String),
    /// Not from here, and why.
    Unavailable(String),
}

impl HmbSwitch {
    /// Whether it can be turned off and on.
    #[must_use]
    pub const fn can_switch(&self) -> bool {
        matches!(self, HmbSwitch::OnOff { .. } | HmbSwitch::Sizes { .. })
    }

    /// Bytes the drive has when host memory is on.
    #[must_use]
    pub const fn granted_bytes(&self) -> Option<u64> {
        match self {
            HmbSwitch::OnOff { granted_bytes } | HmbSwitch::Sizes { granted_bytes, .. } => {
                Some(*granted_bytes)
            }
            _ => None,
        }
    }
}

/// What stands between the prober and the flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Commands reach the drive as they are issued.
    Direct,
    /// A block layer passes them on unchanged (`O_DIRECT` on a disk of this machine).
    Block,
    /// A file system, a loop device or a virtual machine's host may answer instead of the drive.
    Layered,
    /// A network lies between.
    Network,
}

impl Transport {
    /// Why what is measured here need not be a drive's, if so.
    #[must_use]
    pub const fn hides(self) -> Option<&'static str> {
        match self {
            Transport::Direct | Transport::Block => None,
            Transport::Layered => Some(
                "what lies between (a page cache, a file system, a virtual machine's host, a server) may \
                 have answered instead of a drive",
            ),
            Transport::Network => Some(
                "what lies between (a network, a server and its page cache) may have answered instead \
                 of a drive",
            ),
        }
    }
}

/// What a target is and can do.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// As the user named it.
    pub name: String,
    /// Model, as the drive says it; empty if unknown.
    pub model: String,
    /// Serial number; empty if unknown.
    pub serial: String,
    /// Firmware revision; empty if unknown.
    pub firmware: String,
    /// Size, bytes.
    pub capacity_bytes: u64,
    /// Smallest transfer and alignment, bytes.
    pub block_bytes: u32,
    /// Longest single transfer that reaches the drive in one piece, bytes.
    pub transfer_bytes_max: u32,
    /// What lies between.
    pub transport: Transport,
    /// Why it cannot flush, if so.
    pub no_flush: Option<String>,
    /// Why it cannot deallocate, if so.
    pub no_deallocate: Option<String>,
    /// Why it must not be written to, if so.
    pub no_write: Option<String>,
    /// Host memory.
    pub hmb: HmbSwitch,
    /// What the transport hides, and other things the user should know.
    pub notes: Vec<String>,
}

impl Description {
    /// What is not seen because long requests are cut into parts, if they are.
    pub(crate) fn cuts(&self) -> Option<String> {
        let most = self.transfer_bytes_max;
        (most < TRANSFER_BYTES_MAX).then(|| {
            format!(
                "requests above {} KiB go in parts, all at once, which may hide the knee of \
                 `request-size`",
                most >> 10
            )
        })
    }
}

/// Why a target stopped serving.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The drive answered with an error.
    #[error("{what} of {bytes} bytes at byte {offset} failed: {reason}")]
    Io {
        /// `read` or `write`.
        what: &'static str,
        /// First byte.
        offset: u64,
        /// Length.
        bytes: u32,
        /// As the system says it.
        reason: String,
    },
    /// Fewer bytes came than were asked for.
    #[error("read of {bytes} bytes at byte {offset} gave only {got}")]
    Short {
        /// First byte.
        offset: u64,
        /// Asked for.
        bytes: u32,
        /// Came.
        got: u32,
    },
    /// The device is no longer there.
    #[error("the device has gone: {0}")]
    Gone(String),
    /// It cannot do this at all.
    #[error("{0}")]
    Unsupported(String),
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// A drive as the prober sees it.
pub trait Target {
    /// What it is and can do. Must not change while it is probed.
    fn describe(&self) -> &Description;

    /// Issues `ios` in order, with up to `queue_depth` in flight, and waits for all. `samples` is
    /// cleared and gets one entry per transfer, in the same order.
    ///
    /// # Errors
    /// If any transfer fails; those after it may not have been issued.
    fn run(
        &mut self,
        ios: &[Io],
        queue_depth: u32,
        samples: &mut Vec<Sample>,
    ) -> Result<(), TargetError>;

    /// The same, and as soon as `after` of them have completed, a flush beside those that follow. Returns
    /// when that had ended, ns since the batch began.
    ///
    /// # Errors
    /// As [`Target::run`]; unsupported where a flush cannot be issued beside transfers.
    fn run_flushing(
        &mut self,
        _ios: &[Io],
        _queue_depth: u32,
        _after: usize,
        _samples: &mut Vec<Sample>,
    ) -> Result<u64, TargetError> {
        let message = "a flush cannot be issued beside writes here";
        Err(TargetError::Unsupported(message.to_owned()))
    }

    /// Makes everything written so far durable. Returns how long it took, ns.
    ///
    /// # Errors
    /// If the target cannot, or fails.
    fn flush(&mut self) -> Result<u64, TargetError>;

    /// Tells the drive that a range is not needed. Returns how long it took, ns.
    ///
    /// # Errors
    /// If the target cannot, or fails.
    fn deallocate(&mut self, offset: u64, bytes: u64) -> Result<u64, TargetError>;

    /// Leaves the drive alone for a while.
    fn idle(&mut self, time: Duration);

    /// Gives or takes host memory.
    ///
    /// # Errors
    /// If that cannot be done from here, or fails.
    fn set_hmb(&mut self, state: HmbState) -> Result<(), TargetError>;

    /// The target's clock: wall time, or the simulation's.
    fn now(&self) -> Duration;
}
