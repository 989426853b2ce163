//! What must not be written to: disks that are mounted, partitioned, part of something larger, or
//! swapped to. Everything is read from `/sys` and `/proc`, whose places are parameters, so that the
//! refusals can be tested.

use std::path::{Path, PathBuf};

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

/// The disk that a device number belongs to.
#[must_use]
pub fn disk_of(sys: &Path, major: u32, minor: u32) -> Option<Disk> {
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

fn entries(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let names = entries.flatten();
    let mut names: Vec<String> = names
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Why a disk must not be written to; `None` if nothing speaks against it. `name` is the kernel's,
/// `device` the path the user gave.
#[must_use]
pub fn refusal(disk: &Disk, device: &str, proc: &Path) -> Option<String> {
    if disk.is_partition {
        return Some(format!(
            "`{device}` is a partition; only whole disks are probed so"
        ));
    }
    let names = [device.to_owned(), format!("/dev/{}", disk.name)];
    let parts: Vec<String> = entries(&disk.path)
        .into_iter()
        .filter(|entry| disk.path.join(entry).join("partition").exists())
        .collect();
    let all: Vec<String> = names
        .iter()
        .cloned()
        .chain(parts.iter().map(|part| format!("/dev/{part}")))
        .collect();
    let listed = |file: &str| {
        let text = std::fs::read_to_string(proc.join(file)).unwrap_or_default();
        text.lines()
            .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
            .find(|first| all.contains(first))
    };
    if let Some(name) = listed("mounts") {
        return Some(format!("`{name}` is mounted"));
    }
    if let Some(name) = listed("swaps") {
        return Some(format!("`{name}` is used for swapping"));
    }
    let holders = entries(&disk.path.join("holders"));
    if let Some(holder) = holders.first() {
        return Some(format!(
            "`{device}` is part of `{holder}` (LVM, RAID or encryption)"
        ));
    }
    if let Some(part) = parts.first() {
        return Some(format!(
            "`{device}` is partitioned (`{part}`): remove the partitions first if their data may go"
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A machine on paper: a folder with what matters of `/sys` and `/proc`.
    struct Machine(PathBuf);

    impl Machine {
        fn new(name: &str) -> Self {
            let root = std::env::temp_dir()
                .join(format!("lodger-probe-safety-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&root);
            fs::create_dir_all(root.join("sys/dev/block")).unwrap();
            fs::create_dir_all(root.join("sys/devices/nvme0/nvme0n1/holders")).unwrap();
            fs::create_dir_all(root.join("proc")).unwrap();
            std::os::unix::fs::symlink(
                root.join("sys/devices/nvme0/nvme0n1"),
                root.join("sys/dev/block/259:0"),
            )
            .unwrap();
            Machine(root)
        }

        fn partition(&self) {
            let part = self.0.join("sys/devices/nvme0/nvme0n1/nvme0n1p1");
            fs::create_dir_all(&part).unwrap();
            fs::write(part.join("partition"), "1").unwrap();
            std::os::unix::fs::symlink(&part, self.0.join("sys/dev/block/259:1")).unwrap();
        }

        fn proc(&self, file: &str, text: &str) {
            fs::write(self.0.join("proc").join(file), text).unwrap();
        }

        fn refusal(&self) -> Option<String> {
            let disk = disk_of(&self.0.join("sys"), 259, 0).unwrap();
            assert_eq!(disk.name, "nvme0n1");
            refusal(&disk, "/dev/nvme0n1", &self.0.join("proc"))
        }
    }

    impl Drop for Machine {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_disk_in_use_is_refused_and_says_why() {
        let machine = Machine::new("use");
        machine.proc("mounts", "proc /proc proc rw 0 0\n");
        machine.proc("swaps", "Filename Type Size Used Priority\n");
        assert_eq!(machine.refusal(), None, "an unused disk is not refused");
        machine.proc("mounts", "/dev/nvme0n1 /data ext4 rw 0 0\n");
        assert_eq!(machine.refusal().unwrap(), "`/dev/nvme0n1` is mounted");
        machine.proc("mounts", "");
        machine.proc("swaps", "Filename\n/dev/nvme0n1 partition 1 0 -2\n");
        assert!(machine.refusal().unwrap().contains("swapping"));
        machine.proc("swaps", "");
        let holder = machine.0.join("sys/devices/nvme0/nvme0n1/holders/dm-3");
        fs::write(&holder, "").unwrap();
        assert!(machine.refusal().unwrap().contains("`dm-3`"));
        fs::remove_file(holder).unwrap();
        machine.partition();
        assert!(machine.refusal().unwrap().contains("is partitioned"));
        machine.proc("mounts", "/dev/nvme0n1p1 / ext4 rw 0 0\n");
        assert_eq!(machine.refusal().unwrap(), "`/dev/nvme0n1p1` is mounted");
    }

    #[test]
    fn a_partition_is_refused() {
        let machine = Machine::new("partition");
        machine.partition();
        let disk = disk_of(&machine.0.join("sys"), 259, 1).unwrap();
        assert!(disk.is_partition);
        assert_eq!(disk.name, "nvme0n1");
        let refused = refusal(&disk, "/dev/nvme0n1p1", &machine.0.join("proc"));
        assert!(refused.unwrap().contains("partition"));
    }
}
