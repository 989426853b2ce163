//! A drive's own window: calls through the driver, bytes through the mapped BAR 4.

use crate::files::place;
use crate::{Back, Pin, UNIT_BYTES};
use lodger_guest_ram::Mapping;
use lodger_nvme_ioctl::{
    Command, Device, ENTRY_INFO_BYTES, PAGE_BYTES, WINDOW_READ_MAX, WindowCall,
};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, fence};

/// Namespace that windows are of: a drive of Lodger has one.
const NAMESPACE: u32 = 1;
/// Vendor's statuses (type 7h) of the calls, as `crates/wire/src/command/window.rs` has them.
const NOT_PINNED: u16 = 0x701;
const IN_USE: u16 = 0x702;
const BUSY: u16 = 0x706;

#[derive(Debug)]
pub struct Drive {
    device: Device,
    memory: Mapping,
    /// Name of the block device that file systems lie on.
    block: String,
    /// Locked as long as this one has the window.
    _bar: File,
}

/// The PCI function's folder in sysfs, by a namespace's block or character device.
fn function(device: &Path) -> io::Result<PathBuf> {
    let name = device.file_name().unwrap_or_default();
    let classes = ["/sys/class/block", "/sys/class/nvme-generic"];
    let places = classes.map(|class| Path::new(class).join(name).join("device/device"));
    let found = places.iter().find_map(|place| place.canonicalize().ok());
    found.ok_or_else(|| {
        let what = format!("`{}` is no NVMe namespace's device", device.display());
        io::Error::new(io::ErrorKind::NotFound, what)
    })
}

/// Name of the block device: `nvme0n1`, and of `ng0n1`, too.
fn block_of(device: &Path) -> String {
    let name = device.file_name().unwrap_or_default().to_string_lossy();
    match name.strip_prefix("ng") {
        Some(rest) => format!("nvme{rest}"),
        None => name.into_owned(),
    }
}

fn error_of(status: u16) -> io::Error {
    let kind = match status & 0x7ff {
        NOT_PINNED => io::ErrorKind::NotFound,
        IN_USE => io::ErrorKind::AlreadyExists,
        BUSY => io::ErrorKind::ResourceBusy,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(
        kind,
        format!("the drive refuses: status {:#x}", status & 0x7ff),
    )
}

impl Drive {
    pub fn open(path: &Path) -> io::Result<Self> {
        let function = function(path)?;
        let named = |error: io::Error, what: String| {
            io::Error::new(error.kind(), format!("{what}: {error}"))
        };
        // Stores are combined where the kernel offers that.
        let places = ["resource4_wc", "resource4"].map(|name| function.join(name));
        let place = places.iter().find(|place| place.exists()).ok_or_else(|| {
            let what = format!("`{}` has no byte window (no BAR 4)", path.display());
            io::Error::new(io::ErrorKind::NotFound, what)
        })?;
        let bar = File::options().read(true).write(true).open(place);
        let bar = bar.map_err(|error| named(error, place.display().to_string()))?;
        flock(&bar, FlockOperation::NonBlockingLockExclusive)?;
        let bytes = bar.metadata()?.len();
        let memory = Mapping::new(&bar, 0, bytes, true).map_err(|error| {
            let what = format!(
                "cannot map `{}` (boot with `iomem=relaxed`?)",
                place.display()
            );
            named(error, what)
        })?;
        let device = Device::new(File::options().read(true).write(true).open(path)?);
        Ok(Drive {
            device,
            memory,
            block: block_of(path),
            _bar: bar,
        })
    }

    fn call(&self, entry: u8, call: WindowCall, data: &mut [u8]) -> io::Result<()> {
        let command = Command::Window(NAMESPACE, entry, call);
        match self.device.submit(&command, data)?.status & 0x7ff {
            0 => Ok(()),
            status => Err(error_of(status)),
        }
    }

    /// Stores before this are in the drive after it: a load follows them over the link (PCI Express 6.0 §2.4.1).
    fn drain(&self) {
        fence(Ordering::SeqCst);
        let _ = self.memory.load_u32(0);
    }
}

impl Back for Drive {
    fn bytes(&self) -> u64 {
        self.memory.bytes()
    }

    fn store(&mut self, at: u64, from: &[u8]) -> io::Result<()> {
        let stored = self.memory.write(at, from);
        stored.map_err(|_| crate::invalid("that is not within the window"))
    }

    fn load(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let loaded = self.memory.read(at, into);
        loaded.map_err(|_| crate::invalid("that is not within the window"))
    }

    fn pin(&mut self, entry: u8, pin: Pin) -> io::Result<()> {
        let units = |bytes: u64| {
            u32::try_from(bytes / UNIT_BYTES).map_err(|_| crate::invalid("that is too long"))
        };
        let (lba, at, length) = (pin.lba, units(pin.at)?, units(pin.bytes)?);
        self.call(entry, WindowCall::Pin { lba, at, length }, &mut [])
    }

    fn info(&self, entry: u8) -> io::Result<Option<Pin>> {
        let mut bytes = [0; ENTRY_INFO_BYTES];
        match self.call(entry, WindowCall::Info, &mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        }
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        Ok(Some(Pin {
            lba: number(8),
            at: number(24),
            bytes: number(32),
        }))
    }

    fn sync(&mut self, entry: u8) -> io::Result<()> {
        self.drain();
        self.call(entry, WindowCall::Sync, &mut [])
    }

    fn flush(&mut self, entry: u8) -> io::Result<()> {
        self.drain();
        self.call(entry, WindowCall::Flush, &mut [])
    }

    fn read_dma(&self, entry: u8, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.drain();
        for (piece, part) in (0..).zip(into.chunks_mut(WINDOW_READ_MAX)) {
            let at = at + piece * WINDOW_READ_MAX as u64;
            let at =
                u32::try_from(at).map_err(|_| crate::invalid("that is not within the entry"))?;
            let bytes = part.len() as u32;
            self.call(entry, WindowCall::Read { at, bytes }, part)?;
        }
        Ok(())
    }

    fn drive(&self) -> io::Result<(u32, u32)> {
        place::number_of(Path::new("/"), &self.block)
    }
}

const _: () = assert!(PAGE_BYTES as u64 == UNIT_BYTES);
