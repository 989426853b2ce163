//! What `/sys` knows of disks, and what lies between the prober and a drive.

use super::hmb::HmbGuard;
use super::{Description, HmbSwitch, TRANSFER_BYTES_MAX, Transport};
use crate::safety::Disk;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What is known of a regular file, which lies on `disk` where its file system has one.
pub(super) fn describe_file(
    description: &mut Description,
    name: &Path,
    metadata: &std::fs::Metadata,
    (disk, sys): (Option<&Disk>, &Path),
) {
    description.model = "regular file".to_owned();
    // As it is called, not a link to it.
    let name = name.file_name().unwrap_or_default();
    description.serial = name.to_string_lossy().into_owned();
    description.notes.push(
        "a file: the file system and whatever lies under it are between the prober and a drive"
            .to_owned(),
    );
    if let Some(disk) = disk {
        limit_transfers(description, disk, sys);
        if let (_, Some(note)) = between(disk) {
            let note = format!("the file lies on `{}`, {note}", disk.name);
            description.notes.push(note);
        }
    }
    let stored = metadata.blocks() * 512;
    if stored < metadata.len() / 10 * 9 {
        description.notes.push(format!(
            "only {} MiB of the file's {} MiB are stored: reads of the holes reach no drive",
            stored >> 20,
            metadata.len() >> 20
        ));
    }
}

/// What is known of a disk; the switch for its host memory, if it has one.
pub(super) fn describe_disk(
    description: &mut Description,
    disk: &Disk,
    sys: &Path,
) -> Option<HmbGuard> {
    description.model = disk.text("device/model");
    description.serial = disk.text("device/serial");
    description.firmware = disk.text("device/firmware_rev");
    if let Ok(block) = disk.text("queue/logical_block_size").parse() {
        description.block_bytes = block;
    }
    limit_transfers(description, disk, sys);
    let (transport, note) = between(disk);
    description.transport = transport;
    description.notes.extend(note.map(str::to_owned));
    if transport != Transport::Block {
        name_layer(description, disk);
    }
    hmb_switch(description, &disk.path)
}

/// Longest transfer that the kernel passes on in one piece.
fn limit_transfers(description: &mut Description, disk: &Disk, sys: &Path) {
    let Ok(kib) = disk.text("queue/max_sectors_kb").parse::<u32>() else {
        return;
    };
    let mut most = kib.saturating_mul(1 << 10).min(TRANSFER_BYTES_MAX);
    // Without huge pages, memory lies in single pages, each a segment ([`lodger_uring::Buffer`]).
    let huge = std::fs::read_to_string(sys.join("kernel/mm/transparent_hugepage/enabled"));
    let has_huge = huge.is_ok_and(|state| !state.contains("[never]"));
    if let Ok(segments) = disk.text("queue/max_segments").parse::<u32>()
        && !has_huge
    {
        most = most.min(segments.saturating_mul(4096));
    }
    let whole = most / description.block_bytes.max(1) * description.block_bytes;
    if whole >= description.block_bytes.max(4096) {
        description.transfer_bytes_max = whole;
    }
}

/// A loop device has the name of its file for a serial number; virtual disks have one or not.
fn name_layer(description: &mut Description, disk: &Disk) {
    let file = disk.text("loop/backing_file");
    let file = Path::new(&file).file_name();
    let (model, serial) = match file {
        Some(name) => (
            "loop device".to_owned(),
            name.to_string_lossy().into_owned(),
        ),
        None => (format!("virtual disk {}", disk.name), disk.text("serial")),
    };
    if description.model.is_empty() {
        description.model = model;
    }
    if description.serial.is_empty() {
        description.serial = serial;
    }
}

/// What lies between a disk of the kernel and a drive, and what that hides.
fn between(disk: &Disk) -> (Transport, Option<&'static str>) {
    let kind = disk.name.trim_end_matches(|c: char| c.is_ascii_digit());
    let (transport, note) = match kind {
        "loop" if disk.text("loop/dio") == "1" => (
            Transport::Layered,
            "a loop device past the page cache: the file system and whatever lies under it are between \
             the prober and a drive",
        ),
        "loop" => (
            Transport::Layered,
            "a loop device: the page cache keeps what was read of its file, and answers instead of a \
             drive (`losetup --direct-io=on` goes past it)",
        ),
        "nbd" | "rbd" | "drbd" => (
            Transport::Network,
            "a disk behind a network: its latency hides the drive's",
        ),
        "zram" | "ram" => (Transport::Layered, "memory, and no drive"),
        _ if kind.starts_with("vd") || kind.starts_with("xvd") => (
            Transport::Layered,
            "a virtual machine's disk: its host may answer instead of a drive",
        ),
        _ => return (Transport::Block, None),
    };
    (transport, Some(note))
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A disk on paper: a folder with what matters of it in `/sys`.
    struct Paper(Disk);

    impl Paper {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let folder = format!("lodger-probe-disk-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(folder);
            let _ = std::fs::remove_dir_all(&path);
            for (file, text) in files {
                let file = path.join(file);
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, format!("{text}\n")).unwrap();
            }
            Paper(Disk {
                name: name.to_owned(),
                path,
                is_partition: false,
            })
        }

        fn about(&self) -> Description {
            let path = PathBuf::from("/dev").join(&self.0.name);
            let mut about = super::super::file::unknown(&path, 1 << 30, false);
            about.transport = Transport::Direct;
            assert!(describe_disk(&mut about, &self.0, &self.0.path).is_none());
            about
        }
    }

    impl Drop for Paper {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0.path);
        }
    }

    #[test]
    fn what_lies_before_a_drive_is_named_and_what_is_one_is_not() {
        let dio = |state| {
            Paper::new(
                "loop3",
                &[
                    ("loop/dio", state),
                    ("loop/backing_file", "/images/disk 1.img"),
                ],
            )
            .about()
        };
        for (about, transport, said) in [
            (dio("0"), Transport::Layered, "page cache keeps"),
            (dio("1"), Transport::Layered, "past the page cache"),
            (
                Paper::new("vdd", &[]).about(),
                Transport::Layered,
                "its host",
            ),
            (
                Paper::new("xvdb", &[]).about(),
                Transport::Layered,
                "its host",
            ),
            (
                Paper::new("zram0", &[]).about(),
                Transport::Layered,
                "no drive",
            ),
            (
                Paper::new("nbd0", &[]).about(),
                Transport::Network,
                "network",
            ),
        ] {
            assert_eq!(about.transport, transport, "{}", about.name);
            assert!(about.notes[0].contains(said), "{:?}", about.notes);
            assert!(about.transport.hides().is_some());
        }
        let loops = dio("0");
        assert_eq!([loops.model, loops.serial], ["loop device", "disk 1.img"]);
        let numbered = Paper::new("vdb", &[("serial", "V1")]).about();
        assert_eq!(
            [numbered.model, numbered.serial],
            ["virtual disk vdb", "V1"]
        );
        for name in ["nvme0n1", "sda", "dm-3", "md0"] {
            let about = Paper::new(name, &[]).about();
            assert_eq!(about.transport, Transport::Block, "{name}");
            assert_eq!(about.notes, [""; 0], "{name}");
            assert_eq!(about.transport.hides(), None);
        }
    }

    #[test]
    fn memory_in_single_pages_makes_transfers_shorter() {
        for (state, kib) in [
            ("always [madvise] never", 1280),
            ("always madvise [never]", 512),
        ] {
            let about = Paper::new(
                "sdy",
                &[
                    ("queue/max_sectors_kb", "1280"),
                    ("queue/max_segments", "128"),
                    ("kernel/mm/transparent_hugepage/enabled", state),
                ],
            )
            .about();
            assert_eq!(about.transfer_bytes_max >> 10, kib, "{state}");
        }
    }

    #[test]
    fn a_transfer_is_as_long_as_the_kernel_passes_on_in_one_piece() {
        for (kib, block, bytes) in [
            ("1280", "512", 1280 << 10),
            ("124", "4096", 124 << 10),
            // Longer than any experiment asks for.
            ("2147483647", "512", 2 << 20),
            // What makes no sense is not believed.
            ("2", "4096", 128 << 10),
            ("-1", "512", 128 << 10),
            ("", "512", 128 << 10),
        ] {
            let about = Paper::new(
                "sdz",
                &[
                    ("queue/max_sectors_kb", kib),
                    ("queue/logical_block_size", block),
                ],
            )
            .about();
            assert_eq!(
                about.transfer_bytes_max, bytes,
                "{kib} KiB, blocks of {block}"
            );
            let cut = about.cuts();
            assert_eq!(cut.is_some(), bytes < 2 << 20, "{cut:?}");
        }
    }
}
