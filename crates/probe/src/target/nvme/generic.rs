//! `/dev/ngXnY`: every command is passed through, from as many threads as are in flight.

use super::super::disk::hmb_switch;
use super::super::file::{reason, unknown};
use super::super::hmb::HmbGuard;
use super::super::threads;
use super::{Command, Commands, Device, Span, ask, describe, namespace, nsid, refused};
use crate::safety::{self, Disk, Identity, Machine, Node};
use crate::target::{
    Description, HmbState, HmbSwitch, Io, Op, Sample, Target, TargetError, Transport,
};
use lodger_uring::Buffer;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest piece of a deallocation, bytes.
const DEALLOCATE_BYTES_MAX: u64 = 1 << 30;

/// How long what a namespace says of its blocks is believed: formatting takes longer on most drives, and
/// asking before each batch would disturb what is measured.
const IDENTIFIED_FOR: Duration = Duration::from_millis(500);

/// A namespace behind its generic character device.
#[derive(Debug)]
pub struct NgTarget {
    commands: Box<dyn Commands>,
    pub(in crate::target) path: PathBuf,
    pub(in crate::target) identity: Identity,
    /// The block device, open for us alone.
    _held: Option<File>,
    nsid: u32,
    /// When it last said what its blocks are.
    asked: Instant,
    lba_bytes: u32,
    description: Description,
    hmb: Option<HmbGuard>,
    buffers: Vec<Buffer>,
    pub(in crate::target) stopped: fn() -> bool,
    started: Instant,
}

/// Of a character device that is something else.
const NO_DRIVE: &str =
    "it is not a drive: of character devices only those of NVMe (`/dev/ng0n1`) are";

impl NgTarget {
    /// Opens a generic device; for writing only if `write`, and then no one else can use its block device.
    ///
    /// # Errors
    /// If it cannot be opened, is none, or does not describe its namespace.
    pub fn open(path: &Path, write: bool, machine: &Machine) -> Result<Self, TargetError> {
        let name = path.display().to_string();
        let failed = |error: std::io::Error| refused(&name, &reason(&error));
        // Of other devices, opening alone may do something.
        let node = Node::of(&std::fs::metadata(path).map_err(failed)?);
        let disk = match node {
            Some(Node::Character(number)) => safety::disk_of_generic(&machine.sys, number),
            _ => None,
        };
        let (Some(node), Some(disk)) = (node, disk) else {
            // Only what is called like one may be a drive that is not there: `/dev/null` is none.
            let is_called_so = path
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("ng"));
            if !is_called_so {
                return Err(refused(&name, NO_DRIVE));
            }
            return Err(refused(&name, "`/sys` knows no NVMe drive of that number"));
        };
        let mut options = std::fs::OpenOptions::new();
        let options = options.read(true).write(write);
        let file = options.open(path).map_err(failed)?;
        if Node::of(&file.metadata().map_err(failed)?) != Some(node) {
            return Err(refused(
                &name,
                "it became something else while it was opened",
            ));
        }
        // Before it is asked anything: from now on nobody else begins to use it.
        let held = write.then(|| safety::hold(&disk, machine)).transpose();
        let held = held.map_err(|why| refused(&name, &why))?;
        let mut target = Self::over(Box::new(Device::new(file)), path, write, (node, &disk))?;
        target._held = held;
        Ok(target)
    }

    /// The same over anybody who takes commands.
    ///
    /// # Errors
    /// As [`NgTarget::open`].
    pub fn over(
        commands: Box<dyn Commands>,
        path: &Path,
        write: bool,
        (node, disk): (Node, &Disk),
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
        let identity = Identity::new(node, Some(disk), &description);
        Ok(NgTarget {
            commands,
            path: path.to_owned(),
            identity,
            _held: None,
            nsid,
            asked: Instant::now(),
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

    fn is_within(&self, io: &Io) -> bool {
        let span = self.span(io.offset, u64::from(io.bytes));
        span.is_some() && io.bytes <= self.description.transfer_bytes_max
    }

    fn transfer(&self, io: &Io, slice: &mut [u8]) -> Result<(), TargetError> {
        let span = self.span(io.offset, u64::from(io.bytes));
        let span = span.ok_or_else(|| failed(io, "these are no blocks of the drive".to_owned()))?;
        let command = match (io.op, &self.description.no_write) {
            (Op::Read, _) => Command::Read(span),
            (Op::Write, None) => Command::Write(span),
            (Op::Write, Some(reason)) => return Err(TargetError::Unsupported(reason.clone())),
        };
        ask(&*self.commands, &command, slice)
            .map(|_| ())
            .map_err(|why| failed(io, why))
    }

    /// Asks anew what its blocks are, unless that has just been done: a drive that was formatted meanwhile
    /// would move more bytes than the buffers have.
    fn identify_again(&mut self) -> Result<(), TargetError> {
        if self.asked.elapsed() < IDENTIFIED_FOR {
            return Ok(());
        }
        let gone = |why: &str| TargetError::Gone(format!("its namespace: {why}"));
        let now = namespace(&*self.commands, self.nsid).map_err(|why| gone(&why))?;
        let is_same = now.metadata_bytes == 0
            && now.block_bytes == self.lba_bytes
            && now.capacity_bytes == self.description.capacity_bytes;
        if !is_same {
            return Err(gone("its size or its blocks are not what they were"));
        }
        self.asked = Instant::now();
        Ok(())
    }

    fn timed(&self, command: &Command) -> Result<u64, TargetError> {
        let began = Instant::now();
        ask(&*self.commands, command, &mut [])
            .map_err(|why| TargetError::Unsupported(format!("{command:?} failed: {why}")))?;
        Ok(began.elapsed().as_nanos() as u64)
    }
}

fn failed(io: &Io, reason: String) -> TargetError {
    let what = match io.op {
        Op::Read => "read",
        Op::Write => "write",
    };
    TargetError::Io {
        what,
        offset: io.offset,
        bytes: io.bytes,
        reason,
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
        // Before memory is taken for it.
        if let Some(io) = ios.iter().find(|io| !self.is_within(io)) {
            return Err(failed(io, "these are no blocks of the drive".to_owned()));
        }
        self.identify_again()?;
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
        self.identify_again()?;
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
