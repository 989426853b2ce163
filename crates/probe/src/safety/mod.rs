//! What must not be written to, and whether what is written to is what its user agreed to. Targets are
//! told by what is open (`fstat`) and by numbers, never by names, which anybody may give to something else
//! while the user is asked. Everything else is read from `/sys`, `/proc` and `/dev`, whose places are
//! parameters, so that the refusals can be tested.

mod in_use;
#[cfg(test)]
mod tests;

pub use in_use::refusal;

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Where the kernel tells of itself.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Machine {
    pub sys: PathBuf,
    pub proc: PathBuf,
    pub dev: PathBuf,
}

impl Default for Machine {
    fn default() -> Self {
        Machine::under(Path::new("/"))
    }
}

impl Machine {
    /// The three folders under another one.
    #[must_use]
    pub fn under(root: &Path) -> Self {
        let [sys, proc, dev] = ["sys", "proc", "dev"].map(|name| root.join(name));
        Machine { sys, proc, dev }
    }
}

/// Major and minor number of a device.
pub type Number = (u32, u32);

fn number(device: u64) -> Number {
    (rustix::fs::major(device), rustix::fs::minor(device))
}

/// A whole disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Kernel name, such as `nvme0n1`.
    pub name: String,
    /// Its folder in `/sys`.
    pub path: PathBuf,
    /// The device given was a partition of it.
    pub is_partition: bool,
}

impl Disk {
    /// A file of its folder; empty if there is none.
    pub(crate) fn text(&self, name: &str) -> String {
        let text = std::fs::read_to_string(self.path.join(name)).unwrap_or_default();
        text.trim().to_owned()
    }
}

/// The disk that a block device's number belongs to.
#[must_use]
pub fn disk_of(sys: &Path, (major, minor): Number) -> Option<Disk> {
    let link = sys.join(format!("dev/block/{major}:{minor}"));
    let path = link.canonicalize().ok()?;
    let is_partition = path.join("partition").exists();
    let path = if is_partition {
        path.parent()?.to_owned()
    } else {
        path
    };
    let name = path.file_name()?.to_string_lossy().into_owned();
    Some(Disk {
        name,
        path,
        is_partition,
    })
}

/// The disk that a generic NVMe device's number belongs to: `ng0n1`, as the kernel calls it, is `nvme0n1`,
/// beside it in `/sys`.
#[must_use]
pub fn disk_of_generic(sys: &Path, (major, minor): Number) -> Option<Disk> {
    let link = sys.join(format!("dev/char/{major}:{minor}"));
    let generic = link.canonicalize().ok()?;
    let class = generic.join("subsystem").canonicalize().ok()?;
    if class.file_name()? != "nvme-generic" {
        return None;
    }
    let name = generic.file_name()?.to_str()?.strip_prefix("ng")?;
    let name = format!("nvme{name}");
    let path = sys.join("block").join(&name).canonicalize().ok()?;
    let is_partition = false;
    (path.parent() == generic.parent()).then_some(Disk {
        name,
        path,
        is_partition,
    })
}

/// What is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// A regular file, by the device that it lies on and its inode.
    File {
        /// Number of the file system's device.
        device: u64,
        /// Number of the inode.
        inode: u64,
    },
    /// A block device.
    Block(Number),
    /// A character device.
    Character(Number),
}

impl Node {
    /// Of something open, or that a path leads to; `None` if it is neither a file nor a device.
    #[must_use]
    pub fn of(metadata: &std::fs::Metadata) -> Option<Self> {
        let kind = metadata.file_type();
        if kind.is_block_device() {
            Some(Node::Block(number(metadata.rdev())))
        } else if kind.is_char_device() {
            Some(Node::Character(number(metadata.rdev())))
        } else if kind.is_file() {
            let (device, inode) = (metadata.dev(), metadata.ino());
            Some(Node::File { device, inode })
        } else {
            None
        }
    }

    fn shown(&self) -> String {
        match self {
            Node::File { device, inode } => {
                let (major, minor) = number(*device);
                format!("file {inode} of device {major}:{minor}")
            }
            Node::Block((major, minor)) => format!("block device {major}:{minor}"),
            Node::Character((major, minor)) => format!("character device {major}:{minor}"),
        }
    }
}

/// What a target was when it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    node: Node,
    /// Of a device.
    disk: Option<Disk>,
    bytes: u64,
    /// What else makes it this one, with a word for each.
    facts: Vec<(&'static str, String)>,
}

impl Identity {
    /// Of something open that describes itself so; `disk` is that of a device.
    #[must_use]
    pub fn new(node: Node, disk: Option<&Disk>, about: &crate::target::Description) -> Self {
        let mut facts = vec![
            ("model", about.model.clone()),
            ("serial number", about.serial.clone()),
            ("firmware", about.firmware.clone()),
            ("size", about.capacity_bytes.to_string()),
        ];
        if let Some(disk) = disk {
            facts.extend([
                ("folder in /sys", disk.path.display().to_string()),
                ("unique name", unique_name(disk)),
                // Counts what is put into a device: another file in a loop device, another medium.
                ("attachment", disk.text("diskseq")),
                ("file", disk.text("loop/backing_file")),
            ]);
        }
        Identity {
            node,
            disk: disk.cloned(),
            bytes: about.capacity_bytes,
            facts,
        }
    }

    /// In what another differs, if it does.
    #[must_use]
    pub fn difference(&self, other: &Identity) -> Option<String> {
        if self.node != other.node {
            let (was, is) = (self.node.shown(), other.node.shown());
            return Some(format!("it was {was} and is {is}"));
        }
        let pairs = self.facts.iter().zip(&other.facts);
        let differ = pairs.into_iter().find(|(was, is)| was != is);
        let (was, is) = differ?;
        Some(format!(
            "its {} was `{}` and is `{}`",
            was.0,
            was.1.escape_debug(),
            is.1.escape_debug()
        ))
    }
}

/// What a disk is called by whoever made it, the same on every way to it; empty if unknown.
fn unique_name(disk: &Disk) -> String {
    let names = ["wwid", "device/wwid"].map(|file| disk.text(file));
    names
        .into_iter()
        .find(|name| !name.is_empty())
        .unwrap_or_default()
}

/// Opens a disk's block device so that nobody can mount it, swap to it or build on it meanwhile; nothing
/// is read or written through it.
///
/// # Errors
/// If it is in use already, or its node is missing or leads elsewhere.
pub fn hold(disk: &Disk, machine: &Machine) -> Result<File, String> {
    let name = format!("/dev/{}", disk.name);
    match claim(&disk.name, &disk.text("dev"), machine) {
        Ok(file) => Ok(file),
        Err(error) if is_busy(&error) => Err(format!("`{name}` is {CLAIMED}")),
        Err(error) => {
            let why = crate::target::file::reason(&error);
            Err(format!("`{name}` cannot be kept from others: {why}"))
        }
    }
}

/// What the kernel says by EBUSY.
const CLAIMED: &str = "in use: a file system, a larger device or a program has it for itself alone";

fn is_busy(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ResourceBusy
}

/// Opens a block device for oneself alone, if its node has the number that `/sys` says.
fn claim(name: &str, numbers: &str, machine: &Machine) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;
    let path = machine.dev.join(name);
    let is_it = |metadata: &std::fs::Metadata| match Node::of(metadata) {
        Some(Node::Block((major, minor))) => format!("{major}:{minor}") == numbers,
        _ => false,
    };
    let other = || io::Error::other("its node in /dev is another device's");
    if !is_it(&std::fs::metadata(&path)?) {
        return Err(other());
    }
    let flags = OFlags::EXCL | OFlags::NONBLOCK;
    let mut options = std::fs::OpenOptions::new();
    let options = options.read(true).custom_flags(flags.bits() as i32);
    let file = options.open(path)?;
    if is_it(&file.metadata()?) {
        Ok(file)
    } else {
        Err(other())
    }
}
