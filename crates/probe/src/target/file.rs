//! Regular files and block devices: `O_DIRECT` reads and writes through io_uring, or, where the
//! kernel refuses that, from as many threads as transfers are in flight.

use super::disk::{describe_disk, describe_file};
use super::hmb::HmbGuard;
use super::threads;
use super::uring::Queue;
use super::{
    Description, HmbState, HmbSwitch, Io, NEEDS_CONSENT, Op, Sample, Target, TargetError,
    Transport, nvme,
};
use crate::safety::{self, Identity, Machine, Node};
use lodger_uring::{ALIGNMENT, Buffer};
use rustix::fs::{FallocateFlags, OFlags};
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Longest transfer, bytes, where the kernel does not say what it passes on in one piece: less than any
/// drive of today takes.
const TRANSFER_BYTES: u32 = 128 << 10;

/// How transfers reach the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Through io_uring; from threads where the kernel refuses that.
    Ring,
    /// From threads.
    Threads,
}

impl Engine {
    /// What it works with, and a note for the user.
    fn open(self, file: &File) -> (Way, String) {
        let refused = match self {
            Engine::Threads => "it is not wanted".to_owned(),
            Engine::Ring => match Queue::new(file) {
                Ok(queue) => {
                    let note = "read and written through io_uring".to_owned();
                    return (Way::Ring(Box::new(queue)), note);
                }
                Err(error) => reason(&error),
            },
        };
        let note = format!(
            "read and written from threads, which costs some microseconds: no io_uring ({refused})"
        );
        (Way::Threads(Vec::new()), note)
    }
}

enum Way {
    Ring(Box<Queue>),
    /// Each with a buffer.
    Threads(Vec<Buffer>),
}

/// A file or block device.
#[allow(missing_debug_implementations)]
pub struct FileTarget {
    file: File,
    pub(super) path: PathBuf,
    pub(super) identity: Identity,
    pub(super) engine: Engine,
    description: Description,
    hmb: Option<HmbGuard>,
    way: Way,
    pub(super) stopped: fn() -> bool,
    started: Instant,
}

/// What the system says, without its number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_lowercase()
}

impl FileTarget {
    /// Opens a file or block device; for writing only if `write`.
    ///
    /// # Errors
    /// If it cannot be opened, is neither, or is empty; or if a device is in use and `write`.
    pub fn open(path: &Path, write: bool) -> Result<Self, TargetError> {
        Self::open_under(path, write, &Machine::default(), Engine::Ring)
    }

    /// The same with other places for `/sys` and such, by the engine given, if it is at hand.
    ///
    /// # Errors
    /// As [`FileTarget::open`].
    pub fn open_under(
        path: &Path,
        write: bool,
        machine: &Machine,
        engine: Engine,
    ) -> Result<Self, TargetError> {
        let failed = |error: &io::Error| {
            let message = format!("cannot open `{}`: {}", path.display(), reason(error));
            TargetError::Unsupported(message)
        };
        let (mut file, note) = handle(path, write).map_err(|error| failed(&error))?;
        let metadata = file.metadata().map_err(|error| failed(&error))?;
        let node = Node::of(&metadata);
        let Some(node @ (Node::File { .. } | Node::Block(_))) = node else {
            let message = format!("`{}` is neither a file nor a block device", path.display());
            return Err(TargetError::Unsupported(message));
        };
        let capacity_bytes = file
            .seek(SeekFrom::End(0))
            .map_err(|error| failed(&error))?;
        let capacity_bytes = capacity_bytes / ALIGNMENT as u64 * ALIGNMENT as u64;
        if capacity_bytes < 1 << 20 {
            let message = format!("`{}` is smaller than 1 MiB", path.display());
            return Err(TargetError::Unsupported(message));
        }
        let mut description = unknown(path, capacity_bytes, write);
        description.notes.extend(note);
        let sys = &machine.sys;
        let (identity, hmb) = if let Node::Block(number) = node {
            let disk = safety::disk_of(sys, number);
            let hmb = disk.as_ref().and_then(|disk| {
                let hmb = describe_disk(&mut description, disk, sys);
                nvme::describe_block(&mut description, &file, disk);
                hmb
            });
            (Identity::new(node, disk.as_ref(), &description), hmb)
        } else {
            let device = metadata.dev();
            let number = (rustix::fs::major(device), rustix::fs::minor(device));
            let disk = safety::disk_of(sys, number);
            let link = format!("/proc/self/fd/{}", file.as_raw_fd());
            let name = std::fs::read_link(link).unwrap_or_else(|_| path.to_owned());
            describe_file(&mut description, &name, &metadata, (disk.as_ref(), sys));
            (Identity::new(node, None, &description), None)
        };
        description.notes.extend(description.cuts());
        let (way, note) = engine.open(&file);
        description.notes.push(note);
        Ok(FileTarget {
            file,
            path: path.to_owned(),
            identity,
            engine,
            description,
            hmb,
            way,
            stopped: || false,
            started: Instant::now(),
        })
    }

    /// The same with a question that is asked all the time: whether to stop.
    #[must_use]
    pub fn stopped_by(mut self, stopped: fn() -> bool) -> Self {
        self.stopped = stopped;
        self
    }

    fn judge(io: &Io, moved: io::Result<usize>) -> Result<(), TargetError> {
        let what = match io.op {
            Op::Read => "read",
            Op::Write => "write",
        };
        match moved {
            Ok(got) if got == io.bytes as usize => Ok(()),
            Ok(got) => Err(TargetError::Short {
                offset: io.offset,
                bytes: io.bytes,
                got: got as u32,
            }),
            // ENODEV, ENXIO: what was there is gone.
            Err(error) if matches!(error.raw_os_error(), Some(6 | 19)) => {
                Err(TargetError::Gone(reason(&error)))
            }
            Err(error) => Err(TargetError::Io {
                what,
                offset: io.offset,
                bytes: io.bytes,
                reason: reason(&error),
            }),
        }
    }
}

/// A transfer that returns when it has ended.
pub(super) fn transfer(file: &File, io: &Io, bytes: &mut [u8]) -> io::Result<usize> {
    match io.op {
        Op::Read => file.read_at(bytes, io.offset),
        Op::Write => file.write_at(bytes, io.offset),
    }
}

/// Opens past the page cache where that is possible, and says so where it is not.
fn handle(path: &Path, write: bool) -> io::Result<(File, Option<String>)> {
    let node = Node::of(&std::fs::metadata(path)?);
    // Others are not opened: a pipe or a device may wait, or do something.
    if !matches!(node, Some(Node::File { .. } | Node::Block(_))) {
        return Err(io::Error::other("it is neither a file nor a block device"));
    }
    let open = |direct: OFlags| {
        // Whatever the path may lead to by now, opening it does not wait.
        let mut flags = direct | OFlags::NONBLOCK;
        // The kernel refuses devices that are mounted or otherwise in use.
        if write && matches!(node, Some(Node::Block(_))) {
            flags |= OFlags::EXCL;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(write);
        options.custom_flags(flags.bits() as i32).open(path)
    };
    let (file, note) = match open(OFlags::DIRECT) {
        Ok(file) => (file, None),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            let note = "no O_DIRECT here: the page cache answers what it has, and little is learnt \
                        of the drive";
            (open(OFlags::empty())?, Some(note.to_owned()))
        }
        Err(error) => return Err(error),
    };
    if Node::of(&file.metadata()?) != node {
        return Err(io::Error::other(
            "it became something else while it was opened",
        ));
    }
    // From here on, waiting is right.
    let flags = rustix::fs::fcntl_getfl(&file)? - OFlags::NONBLOCK;
    rustix::fs::fcntl_setfl(&file, flags)?;
    Ok((file, note))
}

/// Before anything is known but its size.
pub(crate) fn unknown(path: &Path, capacity_bytes: u64, write: bool) -> Description {
    let reading = || (!write).then(|| "it was opened for reading".to_owned());
    Description {
        name: path.display().to_string(),
        model: String::new(),
        serial: String::new(),
        firmware: String::new(),
        capacity_bytes,
        block_bytes: ALIGNMENT as u32,
        transfer_bytes_max: TRANSFER_BYTES,
        transport: Transport::Layered,
        no_flush: reading(),
        no_deallocate: reading(),
        no_write: (!write).then(|| NEEDS_CONSENT.to_owned()),
        hmb: HmbSwitch::Unavailable(
            "host memory can be turned off only for an NVMe drive of this machine".to_owned(),
        ),
        notes: Vec::new(),
    }
}

fn flush_failed(error: &io::Error) -> TargetError {
    TargetError::Gone(format!("flush failed: {}", reason(error)))
}

/// Transfers by either way; `done` is called as each has ended well.
fn transfers(
    way: &mut Way,
    file: &File,
    (ios, queue_depth): (&[Io], u32),
    samples: &mut Vec<Sample>,
    stopped: fn() -> bool,
    done: &(impl Fn() + Sync),
) -> Result<(), TargetError> {
    let judge = |io: &Io, moved| FileTarget::judge(io, moved).inspect(|()| done());
    match way {
        Way::Ring(queue) => queue.run(ios, queue_depth, samples, stopped, |i, moved, _| {
            judge(&ios[i], moved)
        }),
        Way::Threads(buffers) => {
            threads::run(ios, queue_depth, buffers, samples, stopped, |io, bytes| {
                judge(io, transfer(file, io, bytes))
            })
        }
    }
}

impl Target for FileTarget {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn run(
        &mut self,
        ios: &[Io],
        queue_depth: u32,
        samples: &mut Vec<Sample>,
    ) -> Result<(), TargetError> {
        let (file, stopped) = (&self.file, self.stopped);
        transfers(
            &mut self.way,
            file,
            (ios, queue_depth),
            samples,
            stopped,
            &|| {},
        )
    }

    fn run_flushing(
        &mut self,
        ios: &[Io],
        queue_depth: u32,
        after: usize,
        samples: &mut Vec<Sample>,
    ) -> Result<u64, TargetError> {
        let (file, stopped) = (&self.file, self.stopped);
        let way = &mut self.way;
        let began = Instant::now();
        let (tell, told) = mpsc::sync_channel(1);
        let done = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let flush = scope.spawn(move || {
                // Nobody tells where a transfer has failed before.
                told.recv().ok()?;
                Some(file.sync_data().map(|()| began.elapsed()))
            });
            let count = || {
                if done.fetch_add(1, Ordering::Relaxed) + 1 == after.clamp(1, ios.len()) {
                    let _ = tell.send(());
                }
            };
            let ended = transfers(way, file, (ios, queue_depth), samples, stopped, &count);
            drop(tell);
            let flushed = flush.join().ok().flatten();
            ended?;
            match flushed {
                Some(Ok(at)) => Ok(at.as_nanos() as u64),
                Some(Err(error)) => Err(flush_failed(&error)),
                None => Err(TargetError::Gone("no flush was issued".to_owned())),
            }
        })
    }

    fn flush(&mut self) -> Result<u64, TargetError> {
        let began = Instant::now();
        self.file
            .sync_data()
            .map_err(|error| flush_failed(&error))?;
        Ok(began.elapsed().as_nanos() as u64)
    }

    fn deallocate(&mut self, offset: u64, bytes: u64) -> Result<u64, TargetError> {
        let began = Instant::now();
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&self.file, flags, offset, bytes)
            .map_err(|error| TargetError::Unsupported(format!("cannot deallocate: {error}")))?;
        Ok(began.elapsed().as_nanos() as u64)
    }

    fn idle(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn set_hmb(&mut self, state: HmbState) -> Result<(), TargetError> {
        let Some(hmb) = &self.hmb else {
            return Err(TargetError::Unsupported(
                "host memory cannot be switched here".to_owned(),
            ));
        };
        hmb.set(state)
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }
}
