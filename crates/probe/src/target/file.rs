//! Regular files and block devices: `O_DIRECT` reads and writes through io_uring, or, where the
//! kernel refuses that, from as many threads as transfers are in flight.

use super::hmb::HmbGuard;
use super::threads;
use super::uring::Queue;
use super::{
    Description, HmbState, HmbSwitch, Io, Op, Sample, Target, TargetError, Transport, nvme,
};
use crate::safety::Disk;
use lodger_uring::{ALIGNMENT, Buffer};
use rustix::fs::{FallocateFlags, OFlags};
use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// Longest transfer, bytes: what Linux passes on in one piece to most drives.
pub(super) const TRANSFER_BYTES_MAX: u32 = 128 << 10;

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
    description: Description,
    hmb: Option<HmbGuard>,
    way: Way,
    stopped: fn() -> bool,
    started: Instant,
}

/// What the system says, without its number.
pub(super) fn reason(error: &io::Error) -> String {
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
        Self::open_under(path, write, Path::new("/sys"), Engine::Ring)
    }

    /// The same with another place for `/sys`, by the engine given, if it is at hand.
    ///
    /// # Errors
    /// As [`FileTarget::open`].
    pub fn open_under(
        path: &Path,
        write: bool,
        sys: &Path,
        engine: Engine,
    ) -> Result<Self, TargetError> {
        let failed = |error: &io::Error| {
            let message = format!("cannot open `{}`: {}", path.display(), reason(error));
            TargetError::Unsupported(message)
        };
        let metadata = std::fs::metadata(path).map_err(|error| failed(&error))?;
        let is_block = metadata.file_type().is_block_device();
        if !is_block && !metadata.is_file() {
            let message = format!("`{}` is neither a file nor a block device", path.display());
            return Err(TargetError::Unsupported(message));
        }
        let (mut file, note) = handle(path, is_block, write).map_err(|error| failed(&error))?;
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
        let hmb = if is_block {
            let device = metadata.rdev();
            let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
            let disk = crate::safety::disk_of(sys, major, minor);
            disk.and_then(|disk| {
                let hmb = describe_disk(&mut description, &disk);
                nvme::describe_block(&mut description, &file, &disk);
                hmb
            })
        } else {
            describe_file(&mut description, path, &metadata);
            None
        };
        let (way, note) = engine.open(&file);
        description.notes.push(note);
        Ok(FileTarget {
            file,
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
fn handle(path: &Path, is_block: bool, write: bool) -> io::Result<(File, Option<String>)> {
    let open = |direct: OFlags| {
        let mut flags = direct;
        // The kernel refuses devices that are mounted or otherwise in use.
        if is_block && write {
            flags |= OFlags::EXCL;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(write);
        options.custom_flags(flags.bits() as i32).open(path)
    };
    match open(OFlags::DIRECT) {
        Ok(file) => Ok((file, None)),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            let note = "no O_DIRECT here: the page cache answers what it has, and little is learnt \
                        of the drive";
            Ok((open(OFlags::empty())?, Some(note.to_owned())))
        }
        Err(error) => Err(error),
    }
}

/// Before anything is known but its size.
pub(super) fn unknown(path: &Path, capacity_bytes: u64, write: bool) -> Description {
    let reading = || (!write).then(|| "it was opened for reading".to_owned());
    Description {
        name: path.display().to_string(),
        model: String::new(),
        serial: String::new(),
        firmware: String::new(),
        capacity_bytes,
        block_bytes: ALIGNMENT as u32,
        transfer_bytes_max: TRANSFER_BYTES_MAX,
        transport: Transport::Layered,
        no_flush: reading(),
        no_deallocate: reading(),
        no_write: (!write).then(|| "it writes, which needs --destroy-data".to_owned()),
        hmb: HmbSwitch::Unavailable(
            "host memory can be turned off only for an NVMe drive of this machine".to_owned(),
        ),
        notes: Vec::new(),
    }
}

fn describe_file(description: &mut Description, path: &Path, metadata: &std::fs::Metadata) {
    description.model = "regular file".to_owned();
    let name = path.file_name().unwrap_or_default();
    description.serial = name.to_string_lossy().into_owned();
    description.notes.push(
        "a file: the file system and whatever lies under it are between the prober and a drive"
            .to_owned(),
    );
    let stored = metadata.blocks() * 512;
    if stored < metadata.len() / 10 * 9 {
        description.notes.push(format!(
            "only {} MiB of the file's {} MiB are stored: reads of the holes reach no drive",
            stored >> 20,
            metadata.len() >> 20
        ));
    }
}

/// What `/sys` knows of a disk; the switch for its host memory, if it has one.
fn describe_disk(description: &mut Description, disk: &Disk) -> Option<HmbGuard> {
    let text = |name: &str| {
        let text = std::fs::read_to_string(disk.path.join(name)).unwrap_or_default();
        text.trim().to_owned()
    };
    description.model = text("device/model");
    description.serial = text("device/serial");
    description.firmware = text("device/firmware_rev");
    if let Ok(block) = text("queue/logical_block_size").parse() {
        description.block_bytes = block;
    }
    let name = &disk.name;
    let (transport, note) = match name.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "loop" => (
            Transport::Layered,
            Some("a loop device: the file under it may be answered from the page cache"),
        ),
        "nbd" | "rbd" | "drbd" => (
            Transport::Network,
            Some("a network lies between: its latency hides the drive's"),
        ),
        "vd" | "vda" | "vdb" | "vdc" | "xvd" | "xvda" => (
            Transport::Layered,
            Some("a virtual machine's disk: its host may answer instead of a drive"),
        ),
        "zram" | "ram" => (Transport::Layered, Some("this is memory, not a drive")),
        _ => (Transport::Block, None),
    };
    description.transport = transport;
    description.notes.extend(note.map(str::to_owned));
    if transport == Transport::Layered && name.starts_with("vd") {
        description.model = format!("virtual disk {name}");
    }
    hmb_switch(description, &disk.path)
}

/// The switch of a disk's host memory, if it has one.
pub(super) fn hmb_switch(description: &mut Description, disk: &Path) -> Option<HmbGuard> {
    let path = disk.join("device/hmb");
    if !path.exists() {
        if disk.join("device/firmware_rev").exists() {
            description.hmb = HmbSwitch::Unavailable(
                "the kernel shows no switch for host memory (`hmb` in /sys/class/nvme): it is older \
                 than 5.17 or the drive uses none"
                    .to_owned(),
            );
        }
        return None;
    }
    match HmbGuard::take(&path) {
        Ok(guard) => {
            description.hmb = HmbSwitch::OnOff { granted_bytes: 0 };
            Some(guard)
        }
        Err(reason) => {
            description.hmb = HmbSwitch::Unavailable(reason);
            None
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
        match &mut self.way {
            Way::Ring(queue) => queue.run(ios, queue_depth, samples, stopped, |i, moved, _| {
                Self::judge(&ios[i], moved)
            }),
            Way::Threads(buffers) => {
                threads::run(ios, queue_depth, buffers, samples, stopped, |io, bytes| {
                    Self::judge(io, transfer(file, io, bytes))
                })
            }
        }
    }

    fn flush(&mut self) -> Result<u64, TargetError> {
        let began = Instant::now();
        self.file
            .sync_data()
            .map_err(|error| TargetError::Gone(format!("flush failed: {}", reason(&error))))?;
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
