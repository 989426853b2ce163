//! Is everything in use refused, however it is reached, and nothing else? On machines on paper, and with (`real`)
//! loop devices where they are to be had.

mod real;

use super::*;
use crate::TargetError;
use crate::target::Target;
use crate::target::file::FileTarget;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};

/// A folder of a test's own.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("lodger-safety-{name}-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        // As the kernel will call it.
        Folder(root.canonicalize().unwrap())
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A machine on paper: what matters of `/sys` and `/proc`.
struct Paper(Folder);

impl Paper {
    fn new(name: &str) -> Self {
        let paper = Paper(Folder::new(name));
        paper.file("proc/self/mountinfo", "");
        paper.file("proc/swaps", "Filename Type Size Used Priority\n");
        fs::create_dir_all(paper.0.0.join("sys/block")).unwrap();
        paper.disk("nvme0n1", "259:0");
        paper
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        self.0.file(name, text)
    }

    fn link(&self, name: &str, to: &Path) {
        let path = self.0.0.join("sys").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(to, path).unwrap();
    }

    fn disk(&self, name: &str, number: &str) {
        let folder = format!("sys/devices/pci/{name}");
        self.file(&format!("{folder}/dev"), &format!("{number}\n"));
        fs::create_dir_all(self.0.0.join(&folder).join("holders")).unwrap();
        let path = self.0.0.join(folder);
        self.link(&format!("block/{name}"), &path);
        self.link(&format!("class/block/{name}"), &path);
        self.link(&format!("dev/block/{number}"), &path);
    }

    fn partition(&self, disk: &str, name: &str, number: &str) {
        let folder = format!("sys/devices/pci/{disk}/{name}");
        self.file(&format!("{folder}/partition"), "1");
        self.file(&format!("{folder}/dev"), number);
        let path = self.0.0.join(folder);
        self.link(&format!("class/block/{name}"), &path);
        self.link(&format!("dev/block/{number}"), &path);
    }

    /// A loop device that shows a file.
    fn looped(&self, name: &str, number: &str, shows: &str, sectors: u64) {
        self.disk(name, number);
        let folder = format!("sys/devices/pci/{name}");
        self.file(
            &format!("{folder}/loop/backing_file"),
            &format!("{shows}\n"),
        );
        self.file(&format!("{folder}/size"), &format!("{sectors}\n"));
    }

    /// A process that has a file open.
    fn process(&self, id: &str, flags: &str, open: &Path) {
        self.file(&format!("proc/{id}/comm"), "qemu-system-x86\n");
        self.file(
            &format!("proc/{id}/fdinfo/7"),
            &format!("pos:\t0\nflags:\t{flags}\n"),
        );
        fs::create_dir_all(self.0.0.join(format!("proc/{id}/fd"))).unwrap();
        symlink(open, self.0.0.join(format!("proc/{id}/fd/7"))).unwrap();
    }

    fn machine(&self) -> Machine {
        Machine::under(&self.0.0)
    }

    fn identity(&self, number: Number) -> Identity {
        let disk = disk_of(&self.0.0.join("sys"), number);
        Identity {
            node: Node::Block(number),
            disk,
            bytes: 1 << 30,
            facts: Vec::new(),
        }
    }

    fn refused(&self, number: Number) -> Option<String> {
        refusal(&self.identity(number), "/dev/it", &self.machine(), false)
    }

    fn refused_file(&self, path: &Path) -> Option<String> {
        let metadata = fs::metadata(path).unwrap();
        let identity = Identity {
            node: Node::of(&metadata).unwrap(),
            disk: None,
            bytes: metadata.len(),
            facts: Vec::new(),
        };
        refusal(&identity, "it", &self.machine(), false)
    }
}

const IT: Number = (259, 0);

fn says(refusal: Option<String>, words: &str) {
    let refusal = refusal.expect("refused");
    assert!(refusal.contains(words), "{refusal}");
}

#[test]
fn an_unused_disk_is_not_refused() {
    let paper = Paper::new("unused");
    paper.file(
        "proc/self/mountinfo",
        "36 1 8:1 / / rw - ext4 /dev/sda1 rw\n",
    );
    paper.disk("sda", "8:0");
    paper.partition("sda", "sda1", "8:1");
    assert_eq!(paper.refused(IT), None);
    // And a machine that tells nothing is not taken for one where all is well.
    fs::remove_file(paper.0.0.join("proc/self/mountinfo")).unwrap();
    says(paper.refused(IT), "does not tell");
    says(paper.refused((259, 9)), "does not know");
}

#[test]
fn a_mounted_disk_is_refused_by_whatever_name_it_was_mounted() {
    let paper = Paper::new("mounted");
    for line in [
        "36 1 259:0 / /data rw - ext4 /dev/root rw\n",
        "36 1 0:44 / /my\\040data rw shared:7 master:1 - btrfs /dev/nvme0n1 rw\n",
    ] {
        paper.file("proc/self/mountinfo", line);
        says(paper.refused(IT), "`/dev/nvme0n1` is mounted at `/");
    }
    says(paper.refused(IT), "`/my data`");
    paper.partition("nvme0n1", "nvme0n1p1", "259:1");
    paper.file(
        "proc/self/mountinfo",
        "36 1 259:1 / / rw - ext4 /dev/x rw\n",
    );
    says(paper.refused(IT), "`/dev/nvme0n1p1` is mounted");
}

#[test]
fn a_file_with_the_name_of_a_disk_hides_no_mount() {
    let paper = Paper::new("named");
    // As a program leaves it that was to write the disk, on a machine that has none.
    paper.file("dev/nvme0n1", "no disk");
    paper.file(
        "proc/self/mountinfo",
        "36 1 0:44 / /data rw - btrfs /dev/nvme0n1 rw\n",
    );
    says(paper.refused(IT), "`/dev/nvme0n1` is mounted at `/data`");
}

#[test]
fn swapped_to_held_partitioned_and_partitions_are_refused() {
    let paper = Paper::new("swapped");
    paper.file("proc/swaps", "Filename\n/dev/nvme0n1 partition 1 0 -2\n");
    says(paper.refused(IT), "is used for swapping");
    paper.file("proc/swaps", "Filename\n");
    let holder = paper.file("sys/devices/pci/nvme0n1/holders/dm-3", "");
    says(paper.refused(IT), "`nvme0n1` is part of `dm-3`");
    fs::remove_file(holder).unwrap();
    paper.partition("nvme0n1", "nvme0n1p1", "259:1");
    says(paper.refused(IT), "is partitioned (`nvme0n1p1`)");
    says(paper.refused((259, 1)), "is a partition");
    paper.file("sys/devices/pci/nvme0n1/nvme0n1p1/holders/md0", "");
    says(paper.refused(IT), "`nvme0n1p1` is part of `md0`");
}

#[test]
fn the_file_of_a_loop_device_is_refused_under_any_name() {
    let paper = Paper::new("backing");
    let image = paper.file("images/disk.img", &"x".repeat(4096));
    assert_eq!(paper.refused_file(&image), None);
    let shown = image.display().to_string();
    paper.looped("loop3", "7:3", &shown, 8);
    let hard = paper.0.0.join("hard.img");
    fs::hard_link(&image, &hard).unwrap();
    let soft = paper.0.0.join("soft.img");
    symlink(&image, &soft).unwrap();
    for path in [&image, &hard, &soft] {
        says(
            paper.refused_file(path),
            "loop device `/dev/loop3` shows it",
        );
    }
    let other = paper.file("other.img", &"x".repeat(4096));
    assert_eq!(paper.refused_file(&other), None);
    // Deleted, with another name left: any file with room for it may be it.
    paper.file(
        "sys/devices/pci/loop3/loop/backing_file",
        &format!("{shown} (deleted)\n"),
    );
    says(paper.refused_file(&hard), "may be it");
    let small = paper.file("small.img", "x");
    assert_eq!(paper.refused_file(&small), None);
}

#[test]
fn a_swap_file_is_refused_also_through_a_loop_device() {
    let paper = Paper::new("swapfile");
    let image = paper.file("swap file", &"x".repeat(8192));
    let escaped = image.display().to_string().replace(' ', "\\040");
    paper.file(
        "proc/swaps",
        &format!("Filename\n{escaped}\t\tfile\t4\t0\t-2\n"),
    );
    says(paper.refused_file(&image), "is used for swapping");
    paper.looped("loop3", "7:3", &image.display().to_string(), 16);
    says(paper.refused((7, 3)), "is used for swapping");
    paper.file("proc/swaps", "Filename\n/gone\\040(deleted) file 4 0 -2\n");
    says(paper.refused((7, 3)), "may be it");
}

#[test]
fn a_loop_device_is_refused_where_what_it_shows_is_used() {
    let paper = Paper::new("twins");
    let image = paper.file("disk.img", "x");
    paper.looped("loop3", "7:3", &image.display().to_string(), 0);
    assert_eq!(paper.refused((7, 3)), None);
    paper.looped("loop4", "7:4", &image.display().to_string(), 0);
    says(paper.refused((7, 3)), "loop device `/dev/loop4` shows it");
    // A partition, and the disk it is of.
    paper.partition("nvme0n1", "nvme0n1p1", "259:1");
    paper.looped("loop5", "7:5", "/dev/nvme0n1p1", 0);
    assert_eq!(paper.refused((7, 5)), None);
    says(paper.refused(IT), "loop device `/dev/loop5` shows it");
    for number in ["259:1", "259:0"] {
        let line = format!("36 1 {number} / /data rw - ext4 /dev/root rw\n");
        paper.file("proc/self/mountinfo", &line);
        says(paper.refused((7, 5)), "is mounted at `/data`");
    }
    paper.file("proc/self/mountinfo", "");
    paper.looped("loop6", "7:6", "/nowhere (deleted)", 0);
    says(paper.refused((7, 6)), "not to be found from here");
}

#[test]
fn the_same_drive_by_a_second_way_is_refused_if_that_is_used() {
    let paper = Paper::new("ways");
    paper.disk("nvme1n1", "259:5");
    for disk in ["nvme0n1", "nvme1n1"] {
        paper.file(&format!("sys/devices/pci/{disk}/wwid"), "eui.0011\n");
    }
    assert_eq!(paper.refused(IT), None);
    paper.file(
        "proc/self/mountinfo",
        "36 1 259:5 / /data rw - ext4 /dev/x rw\n",
    );
    says(
        paper.refused(IT),
        "it is also `/dev/nvme1n1`: `/dev/nvme1n1` is mounted",
    );
    paper.file("sys/devices/pci/nvme1n1/wwid", "eui.0022\n");
    assert_eq!(paper.refused(IT), None);
}

#[test]
fn what_a_program_has_open_for_writing_is_refused() {
    let paper = Paper::new("process");
    let image = paper.file("disk.img", "x");
    paper.process("12", "0100000", &image);
    assert_eq!(paper.refused_file(&image), None, "it only reads");
    paper.process("13", "0140002", &image);
    let refusal = paper.refused_file(&image);
    says(
        refusal,
        "process 13 (`qemu-system-x86`) has it open for writing",
    );
    paper.looped("loop3", "7:3", &image.display().to_string(), 0);
    says(paper.refused((7, 3)), "process 13");
}

#[test]
fn a_generic_device_is_known_by_its_number_and_not_by_its_name() {
    let paper = Paper::new("generic");
    let sys = paper.0.0.join("sys");
    let generic = sys.join("devices/pci/ng0n1");
    fs::create_dir_all(sys.join("class/nvme-generic")).unwrap();
    fs::create_dir_all(&generic).unwrap();
    symlink(sys.join("class/nvme-generic"), generic.join("subsystem")).unwrap();
    paper.link("dev/char/240:0", &generic);
    assert_eq!(disk_of_generic(&sys, (240, 0)).unwrap().name, "nvme0n1");
    // Of another class; not beside its disk; unknown.
    fs::create_dir_all(sys.join("class/misc")).unwrap();
    let ttys = sys.join("devices/virtual/ng0n1");
    fs::create_dir_all(&ttys).unwrap();
    symlink(sys.join("class/misc"), ttys.join("subsystem")).unwrap();
    paper.link("dev/char/10:1", &ttys);
    let far = sys.join("devices/far/ng0n1");
    fs::create_dir_all(&far).unwrap();
    symlink(sys.join("class/nvme-generic"), far.join("subsystem")).unwrap();
    paper.link("dev/char/240:1", &far);
    for number in [(10, 1), (240, 1), (240, 2)] {
        assert_eq!(disk_of_generic(&sys, number), None, "{number:?}");
    }
    // And its block device must be there, to be kept from others.
    let disk = disk_of_generic(&sys, (240, 0)).unwrap();
    let why = hold(&disk, &paper.machine()).unwrap_err();
    assert!(why.contains("cannot be kept from others"), "{why}");
    paper.file("dev/nvme0n1", "a file");
    let why = hold(&disk, &paper.machine()).unwrap_err();
    assert!(why.contains("another device's"), "{why}");
}

#[test]
fn whatever_differs_is_named() {
    let paper = Paper::new("differs");
    paper.file("sys/devices/pci/nvme0n1/diskseq", "9\n");
    let about = |serial: &str| {
        let mut about = crate::target::file::unknown(Path::new("/dev/it"), 1 << 30, false);
        about.serial = serial.to_owned();
        about
    };
    let disk = disk_of(&paper.0.0.join("sys"), IT).unwrap();
    let was = Identity::new(Node::Block(IT), Some(&disk), &about("A"));
    assert_eq!(was.difference(&was.clone()), None);
    let is = Identity::new(Node::Block((7, 1)), Some(&disk), &about("A"));
    says(
        was.difference(&is),
        "it was block device 259:0 and is block device 7:1",
    );
    let is = Identity::new(Node::Block(IT), Some(&disk), &about("B"));
    says(was.difference(&is), "serial number was `A` and is `B`");
    paper.file("sys/devices/pci/nvme0n1/diskseq", "10\n");
    let is = Identity::new(Node::Block(IT), Some(&disk), &about("A"));
    says(was.difference(&is), "its attachment was `9` and is `10`");
}
