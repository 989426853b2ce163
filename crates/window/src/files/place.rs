//! On which drive a file system lies, and where: sysfs tells. `root` is `/`, but for tests.

use super::{refused, untrue};
use crate::UNIT_BYTES;
use crate::files::extents::Piece;
use std::io;
use std::path::{Path, PathBuf};

/// Sectors of sysfs, bytes, whatever the blocks of the drive are.
const SECTOR_BYTES: u64 = 512;

/// Number of a device, major and minor.
pub type Number = (u32, u32);

/// A partition, or a whole drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The kernel's name for it.
    pub name: String,
    /// Where on the drive it begins, and its length, bytes.
    start: u64,
    bytes: u64,
    /// The drive's blocks, bytes.
    block_bytes: u64,
}

fn text(path: &Path) -> io::Result<String> {
    let text = std::fs::read_to_string(path);
    let text = text
        .map_err(|error| io::Error::new(error.kind(), format!("`{}`: {error}", path.display())))?;
    Ok(text.trim().to_owned())
}

fn number(path: &Path) -> io::Result<u64> {
    let text = text(path)?;
    text.parse()
        .map_err(|_| untrue(format!("`{}` has `{text}`, no number", path.display())))
}

fn bytes_of(sectors: u64) -> io::Result<u64> {
    let bytes = sectors.checked_mul(SECTOR_BYTES);
    bytes.ok_or_else(|| {
        untrue(format!(
            "the kernel says that a drive has {sectors} sectors"
        ))
    })
}

fn device_number(path: &Path) -> io::Result<Number> {
    let text = text(path)?;
    let parts = text.split_once(':');
    let parsed = parts.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    parsed.ok_or_else(|| untrue(format!("`{}` has `{text}`, no device", path.display())))
}

/// Of a block device, by its name.
pub fn number_of(root: &Path, name: &str) -> io::Result<Number> {
    device_number(&root.join("sys/class/block").join(name).join("dev"))
}

fn name(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// What stands between a file system and a drive, if something does.
fn layer(disk: &Path) -> &'static str {
    let is = |part: &str| disk.join(part).exists();
    match () {
        () if is("dm") => " (device mapper: LVM, encryption)",
        () if is("md") => " (a RAID)",
        () if is("loop") => " (a loop device)",
        () => "",
    }
}

/// Where the device `of` of a file system lies on `drive`; refused if that is another one.
pub fn of(root: &Path, of: Number, drive: Number) -> io::Result<Place> {
    let link = root.join(format!("sys/dev/block/{}:{}", of.0, of.1));
    let Ok(folder) = link.canonicalize() else {
        return Err(refused(
            format!(
                "the file is on device {}:{}, which is no block device (tmpfs, overlay, network and some other file systems have such)",
                of.0, of.1
            ),
            "pin a file of an ext4 that is made on the window's drive",
        ));
    };
    let is_partition = folder.join("partition").exists();
    let disk: PathBuf = match is_partition {
        true => folder.parent().unwrap_or(&folder).to_owned(),
        false => folder.clone(),
    };
    let on = device_number(&disk.join("dev"))?;
    if on != drive {
        return Err(refused(
            format!(
                "the file is on `{}` {}:{}{}, the window is of the drive {}:{}",
                name(&disk),
                on.0,
                on.1,
                layer(&disk),
                drive.0,
                drive.1
            ),
            "pin a file of an ext4 that is made on the window's drive or a partition of it, with nothing between",
        ));
    }
    let start = match is_partition {
        true => bytes_of(number(&folder.join("start"))?)?,
        false => 0,
    };
    let bytes = bytes_of(number(&folder.join("size"))?)?;
    let block_bytes = number(&disk.join("queue/logical_block_size"))?;
    let end = start.checked_add(bytes);
    if end.is_none_or(|end| end > i64::MAX as u64)
        || !block_bytes.is_power_of_two()
        || !(SECTOR_BYTES..=UNIT_BYTES).contains(&block_bytes)
    {
        return Err(untrue(format!(
            "the kernel says that `{}` has {bytes} bytes from {start} on, in blocks of {block_bytes}",
            name(&folder)
        )));
    }
    Ok(Place {
        name: name(&folder),
        start,
        bytes,
        block_bytes,
    })
}

impl Place {
    /// First block of what lies on this device.
    pub fn lba(&self, piece: &Piece) -> io::Result<u64> {
        let end = piece.device_at.checked_add(piece.bytes);
        if end.is_none_or(|end| end > self.bytes) {
            return Err(untrue(format!(
                "the kernel says that the file has {} bytes at {} of `{}`, which has {}",
                piece.bytes, piece.device_at, self.name, self.bytes
            )));
        }
        let at = self.start + piece.device_at;
        if !at.is_multiple_of(UNIT_BYTES) {
            return Err(refused(
                format!(
                    "byte {} of the file is at byte {at} of the drive (`{}` begins at {}), no multiple of 4096",
                    piece.file_at, self.name, self.start
                ),
                "let the partition begin at a multiple of 4096 bytes, and make its file system with blocks of 4096 (`mkfs.ext4 -b 4096`)",
            ));
        }
        Ok(at / self.block_bytes)
    }
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;
