//! Which drive and which block of it? On a sysfs of a temporary folder.

use super::*;
use std::fs;
use std::os::unix::fs::symlink;

const DRIVE: Number = (259, 0);
const PARTITION: Number = (259, 1);

/// As sysfs of a machine whose drive has one partition, from sector 2048 on, and a device mapper's volume on that.
struct Sysfs(PathBuf);

impl Sysfs {
    fn new(test: &str) -> Self {
        let name = format!("lodger-place-{test}-{}", std::process::id());
        let sysfs = Sysfs(std::env::temp_dir().join(name));
        let _ = fs::remove_dir_all(&sysfs.0);
        sysfs.device("nvme0n1", DRIVE, 1 << 21);
        sysfs.set("nvme0n1/queue/logical_block_size", "512");
        sysfs.device("nvme0n1/nvme0n1p1", PARTITION, 1 << 20);
        sysfs.set("nvme0n1/nvme0n1p1/partition", "1");
        sysfs.set("nvme0n1/nvme0n1p1/start", "2048");
        sysfs
    }

    fn set(&self, file: &str, text: &str) {
        let path = self.0.join("sys/devices").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    fn device(&self, folder: &str, number: Number, sectors: u64) {
        self.set(&format!("{folder}/size"), &sectors.to_string());
        let number = format!("{}:{}", number.0, number.1);
        self.set(&format!("{folder}/dev"), &number);
        let name = folder.rsplit('/').next().unwrap();
        for (class, name) in [("class/block", name), ("dev/block", &number)] {
            let class = self.0.join("sys").join(class);
            fs::create_dir_all(&class).unwrap();
            symlink(format!("../../devices/{folder}"), class.join(name)).unwrap();
        }
    }

    fn of(&self, number: Number) -> io::Result<Place> {
        of(&self.0, number, DRIVE)
    }

    fn refuses(&self, number: Number, kind: io::ErrorKind, words: &str) {
        let error = self.of(number).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

impl Drop for Sysfs {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn piece(device_at: u64, bytes: u64) -> Piece {
    Piece {
        file_at: 0,
        device_at,
        bytes,
    }
}

#[test]
fn blocks_are_counted_from_the_start_of_the_drive() {
    let sysfs = Sysfs::new("start");
    let partition = sysfs.of(PARTITION).unwrap();
    assert_eq!(partition.name, "nvme0n1p1");
    assert_eq!(partition.lba(&piece(8192, 4096)).unwrap(), 2048 + 16);
    let whole = sysfs.of(DRIVE).unwrap();
    assert_eq!(whole.name, "nvme0n1");
    assert_eq!(whole.lba(&piece(8192, 4096)).unwrap(), 16);
    // Sectors of sysfs are 512 bytes whatever the drive's blocks are.
    sysfs.set("nvme0n1/queue/logical_block_size", "4096");
    let partition = sysfs.of(PARTITION).unwrap();
    assert_eq!(partition.lba(&piece(8192, 4096)).unwrap(), 256 + 2);
}

#[test]
fn what_lies_on_something_else_is_refused_by_name() {
    let sysfs = Sysfs::new("other");
    let unsupported = io::ErrorKind::Unsupported;
    sysfs.device("nvme1n1", (259, 2), 1 << 21);
    sysfs.refuses((259, 2), unsupported, "`nvme1n1` 259:2,");
    for (part, words) in [("dm", "device mapper"), ("md", "RAID"), ("loop", "loop")] {
        let number = (253, part.len() as u32);
        sysfs.device(&format!("{part}-0"), number, 1 << 20);
        sysfs.set(&format!("{part}-0/{part}/name"), "data");
        sysfs.refuses(number, unsupported, words);
        let _ = fs::remove_file(sysfs.0.join(format!("sys/dev/block/253:{}", number.1)));
    }
    sysfs.refuses((0, 35), unsupported, "0:35, which is no block device");
    assert!(of(&sysfs.0, PARTITION, (259, 7)).is_err());
}

#[test]
fn what_cannot_be_is_refused() {
    let sysfs = Sysfs::new("lies");
    let invalid = io::ErrorKind::InvalidData;
    for (file, texts) in [
        (
            "nvme0n1/nvme0n1p1/start",
            ["", "-1", "99999999999999999999", "36028797018963967"],
        ),
        (
            "nvme0n1/nvme0n1p1/size",
            ["x", "0x10", "18446744073709551615", "36028797018963968"],
        ),
        (
            "nvme0n1/queue/logical_block_size",
            ["0", "511", "256", "8192"],
        ),
        ("nvme0n1/dev", ["", "259", "259:", "259:0:0"]),
    ] {
        let path = sysfs.0.join("sys/devices").join(file);
        let before = fs::read_to_string(&path).unwrap();
        for text in texts {
            sysfs.set(file, text);
            sysfs.refuses(PARTITION, invalid, "");
        }
        sysfs.set(file, before.trim());
    }
    let place = sysfs.of(PARTITION).unwrap();
    let bytes = (1 << 20) * SECTOR_BYTES;
    assert!(place.lba(&piece(bytes - 4096, 4096)).is_ok());
    for lie in [
        piece(bytes - 4096, 8192),
        piece(bytes, 4096),
        piece(u64::MAX - 4095, 8192),
    ] {
        assert_eq!(place.lba(&lie).unwrap_err().kind(), invalid);
    }
}

#[test]
fn a_partition_that_begins_between_units_is_refused() {
    let sysfs = Sysfs::new("unit");
    sysfs.set("nvme0n1/nvme0n1p1/start", "63");
    let error = sysfs
        .of(PARTITION)
        .unwrap()
        .lba(&piece(8192, 4096))
        .unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    assert!(error.to_string().contains("begins at 32256"), "{error}");
    // One that is as far off as the file system's blocks are is none.
    assert!(sysfs.of(PARTITION).unwrap().lba(&piece(512, 4096)).is_ok());
}

#[test]
fn a_drive_is_found_by_its_name() {
    let sysfs = Sysfs::new("name");
    assert_eq!(number_of(&sysfs.0, "nvme0n1").unwrap(), DRIVE);
    let error = number_of(&sysfs.0, "nvme7n1").unwrap_err();
    assert!(error.to_string().contains("nvme7n1"), "{error}");
}
