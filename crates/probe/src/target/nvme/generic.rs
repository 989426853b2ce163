//! `/dev/ngXnY`: every command is passed through, from as many threads as are in flight.

use super::super::disk::hmb_switch;
use super::super::file::{reason, unknown};
use super::super::hmb::HmbGuard;
use super::super::threads;
use super::{Command, Commands, Device, Span, ask, describe, nsid, refused};
use crate::safety::Disk;
use crate::target::{
    Description, HmbState, HmbSwitch, Io, Op, Sample, Target, TargetError, Transport,
};
use lodger_uring::Buffer;
use std::path::Path;
use std::time::{Duration, Instant};

/// Longest piece of a deallocation, bytes.
const DEALLOCATE_BYTES_MAX: u64 = 1 << 30;

/// A namespace behind its generic character device.
#[derive(Debug)]
pub struct NgTarget {
    commands: Box<dyn Commands>,
    nsid: u32,
    lba_bytes: u32,
    description: Description,
    hmb: Option<HmbGuard>,
    buffers: Vec<Buffer>,
    stopped: fn() -> bool,
    started: Instant,
}

/// The disk that a generic device belongs to: `ng0n1` is `nvme0n1`.
#[must_use]
pub fn disk_of(path: &Path, sys: &Path) -> Option<Disk> {
    let name = path.file_name()?.to_str()?.strip_prefix("ng")?;
    let name = format!("nvme{name}");
    let path = sys.join("block").join(&name).canonicalize().ok()?;
    Some(Disk {
        name,
        path,
        is_partition: false,
    })
}

impl NgTarget {
    /// Opens a generic device; for writing only if `write`.
    ///
    /// # Errors
    /// If it cannot be opened, is none, or does not describe its namespace.
    pub fn open(path: &Path, write: bool, sys: &Path) -> Result<Self, TargetError> {
        let name = path.display().to_string();
        let disk = disk_of(path, sys)
            .ok_or_else(|| refused(&name, "`/sys` knows no NVMe drive of that name"))?;
        let mut options = std::fs::OpenOptions::new();
        let file = options.read(true).write(write).open(path);
        let file = file.map_err(|error| refused(&name, &reason(&error)))?;
        Self::over(Box::new(Device(file)), path, write, &disk)
    }

    /// The same over anybody who takes commands.
    ///
    /// # Errors
    /// As [`NgTarget::open`].
    pub fn over(
        commands: Box<dyn Commands>,
        path: &Path,
        write: bool,
        disk: &Disk,
    ) -> Result<Self, TargetError> {
        let name = path.display().to_string();
        let mut description = unknown(path, 0, write);
        description.transport = Transport::Direct;
        let hmb = hmb_switch(&mut description, &disk.path);
        let nsid = nsid(disk).map_err(|why| refused(&name, &why))?;
        let Some(namespace) = describe(&mut description, &*commands, Ok(nsid)) else {
            return Err(refused(&name, &description.notes.join("; ")));
        };
        if namespace.metadata_bytes != 0 {
            // Its blocks are longer than their data: a transfer would not fit its buffer.
            return Err(refused(&name, "its blocks have metadata"));
        }
        if namespace.capacity_bytes < 1 << 20 {
            return Err(refused(&name, "it is smaller than 1 MiB"));
        }
        description.block_bytes = namespace.block_bytes;
        description.notes.extend(description.cuts());
        Ok(NgTarget {
            commands,
            nsid,
            lba_bytes: namespace.block_bytes,
            description,
            hmb,
            buffers: Vec::new(),
            stopped: || false,
            started: Instant::now(),
        })
    }

    /// The same with a question that is asked before every command: whether to stop.
    #[must_use]
    pub fn stopped_by(mut self, stopped: fn() -> bool) -> Self {
        self.stopped = stopped;
        self
    }

    fn span(&self, offset: u64, bytes: u64) -> Option<Span> {
        let block_bytes = self.lba_bytes;
        let block = u64::from(block_bytes);
        let end = offset.checked_add(bytes)?;
        let fits = bytes > 0 && end <= self.description.capacity_bytes;
        if !fits || !offset.is_multiple_of(block) || !bytes.is_multiple_of(block) {
            return None;
        }
        Some(Span {
            nsid: self.nsid,
            lba: offset / block,
            blocks: u32::try_from(bytes / block).ok()?,
            block_bytes,
        })
    }

    fn transfer(&self, io: &Io, slice: &mut [u8]) -> Result<(), TargetError> {
        let what = match io.op {
            Op::Read => "read",
            Op::Write => "write",
        };
        let failed = |reason: String| TargetError::Io {
            what,
            offset: io.offset,
            bytes: io.bytes,
            reason,
        };
        let span = self.span(io.offset, u64::from(io.bytes));
        let span = span.filter(|_| io.bytes <= self.description.transfer_bytes_max);
        let span = span.ok_or_else(|| failed("these are no blocks of the drive".to_owned()))?;
        let command = match (io.op, &self.description.no_write) {
            (Op::Read, _) => Command::Read(span),
            (Op::Write, None) => Command::Write(span),
            (Op::Write, Some(reason)) => return Err(TargetError::Unsupported(reason.clone())),
        };
        ask(&*self.commands, &command, slice)
            .map(|_| ())
            .map_err(failed)
    }

    fn timed(&self, command: &Command) -> Result<u64, TargetError> {
        let began = Instant::now();
        ask(&*self.commands, command, &mut [])
            .map_err(|why| TargetError::Unsupported(format!("{command:?} failed: {why}")))?;
        Ok(began.elapsed().as_nanos() as u64)
    }
}

impl Target for NgTarget {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn run(
        &mut self,
        ios: &[Io],
        queue_depth: u32,
        samples: &mut Vec<Sample>,
    ) -> Result<(), TargetError> {
        let mut buffers = std::mem::take(&mut self.buffers);
        let stopped = self.stopped;
        let result = threads::run(
            ios,
            queue_depth,
            &mut buffers,
            samples,
            stopped,
            |io, bytes| self.transfer(io, bytes),
        );
        self.buffers = buffers;
        result
    }

    fn flush(&mut self) -> Result<u64, TargetError> {
        match &self.description.no_flush {
            Some(reason) => Err(TargetError::Unsupported(reason.clone())),
            None => self.timed(&Command::Flush(self.nsid)),
        }
    }

    fn deallocate(&mut self, offset: u64, bytes: u64) -> Result<u64, TargetError> {
        if let Some(reason) = &self.description.no_deallocate {
            return Err(TargetError::Unsupported(reason.clone()));
        }
        let (mut done, mut sum_ns) = (0, 0);
        while done < bytes {
            let length = (bytes - done).min(DEALLOCATE_BYTES_MAX);
            let at = offset.checked_add(done);
            let span = at.and_then(|at| self.span(at, length));
            let none = || TargetError::Unsupported("these are no blocks of the drive".to_owned());
            sum_ns += self.timed(&Command::Deallocate(span.ok_or_else(none)?))?;
            done += length;
        }
        Ok(sum_ns)
    }

    fn idle(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn set_hmb(&mut self, state: HmbState) -> Result<(), TargetError> {
        match (&self.hmb, &self.description.hmb) {
            (Some(hmb), HmbSwitch::OnOff { .. }) => hmb.set(state),
            _ => Err(TargetError::Unsupported(
                "host memory cannot be switched here".to_owned(),
            )),
        }
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }
}
