//! Are files of this machine's temporary folder pinned where they are, and refused where they should be? The drive is a fake
//! one, the file system and the kernel's answers are not.

use super::*;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::linux::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// A drive that notes what it is asked.
#[derive(Debug)]
struct Fake {
    drive: Number,
    pinned: Arc<Mutex<Vec<(u8, Pin)>>>,
    /// Cut short as it pins.
    cut: Option<File>,
}

impl Fake {
    fn of(drive: Number, pinned: &Arc<Mutex<Vec<(u8, Pin)>>>) -> Self {
        let (pinned, cut) = (pinned.clone(), None);
        Fake { drive, pinned, cut }
    }

    fn window(self) -> Window {
        Window::of(Box::new(self))
    }
}

impl Back for Fake {
    fn bytes(&self) -> u64 {
        8 << 20
    }
    fn store(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
    fn load(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
        Ok(())
    }
    fn pin(&mut self, entry: u8, pin: Pin) -> io::Result<()> {
        self.pinned.lock().unwrap().push((entry, pin));
        if let Some(file) = &self.cut {
            file.set_len(0)?;
        }
        Ok(())
    }
    fn info(&self, entry: u8) -> io::Result<Option<Pin>> {
        let pinned = self.pinned.lock().unwrap();
        let found = pinned.iter().find(|(is, _)| *is == entry);
        Ok(found.map(|(_, pin)| *pin))
    }
    fn sync(&mut self, _: u8) -> io::Result<()> {
        Ok(())
    }
    fn flush(&mut self, entry: u8) -> io::Result<()> {
        self.pinned.lock().unwrap().retain(|(is, _)| *is != entry);
        Ok(())
    }
    fn read_dma(&self, _: u8, _: u64, _: &mut [u8]) -> io::Result<()> {
        Ok(())
    }
    fn drive(&self) -> io::Result<Number> {
        Ok(self.drive)
    }
}

/// A file of random bytes, and a window of the drive that it is on.
struct Case {
    path: PathBuf,
    file: File,
    content: Vec<u8>,
    window: Window,
    pinned: Arc<Mutex<Vec<(u8, Pin)>>>,
}

impl Drop for Case {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The drive that a file is on, by another way than the code's.
fn drive_of(file: &File) -> Option<Number> {
    let device = file.metadata().unwrap().st_dev();
    let number = (rustix::fs::major(device), rustix::fs::minor(device));
    let folder = PathBuf::from(format!("/sys/dev/block/{}:{}", number.0, number.1));
    let disk = match folder.join("partition").exists() {
        true => folder.join("../dev"),
        false => folder.join("dev"),
    };
    let text = std::fs::read_to_string(disk).ok()?;
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// None, and a word of it, if the temporary folder is on no ext4 of a drive.
fn case(test: &str) -> Option<Case> {
    let path = std::env::temp_dir().join(format!("lodger-pin-{test}-{}", std::process::id()));
    let mut options = File::options();
    let mut file = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)
        .unwrap();
    let mut content = vec![0; 1 << 20];
    File::open("/dev/urandom")
        .unwrap()
        .read_exact(&mut content)
        .unwrap();
    file.write_all(&content).unwrap();
    let kind = rustix::fs::fstatfs(&file).unwrap().f_type as u64;
    let Some(drive) = drive_of(&file).filter(|_| kind == EXT4) else {
        eprintln!("left out: `{test}`, as the temporary folder is on no ext4 of a drive");
        std::fs::remove_file(&path).unwrap();
        return None;
    };
    let pinned = Arc::new(Mutex::new(Vec::new()));
    let window = Fake::of(drive, &pinned).window();
    Some(Case {
        path,
        file,
        content,
        window,
        pinned,
    })
}

fn refuses<T: std::fmt::Debug>(result: io::Result<T>, kind: io::ErrorKind, words: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn a_file_is_pinned_where_the_device_has_its_bytes() {
    let Some(mut case) = case("where") else {
        return;
    };
    let extents = case.window.extents(&case.file, 0..1 << 20).unwrap();
    assert_eq!(extents.iter().map(|it| it.bytes).sum::<u64>(), 1 << 20);
    let first = extents[0];
    let range = if first.bytes > 8192 {
        8192..first.bytes
    } else {
        0..first.bytes
    };
    let pin = case
        .window
        .pin_file(3, &case.file, range.clone(), 65536)
        .unwrap();
    assert_eq!(*case.pinned.lock().unwrap(), [(3, pin)]);
    assert_eq!((pin.at, pin.bytes), (65536, range.end - range.start));
    // What the drive itself has there, for those who may read it; not what was cached of it.
    let drive = case.window.back.drive().unwrap();
    let folder = PathBuf::from(format!("/sys/dev/block/{}:{}", drive.0, drive.1));
    let folder = folder.canonicalize().unwrap();
    match File::open(PathBuf::from("/dev").join(folder.file_name().unwrap())) {
        Err(error) => eprintln!("left out: a look at the drive's own blocks: {error}"),
        Ok(mut device) => {
            let block = std::fs::read_to_string(folder.join("queue/logical_block_size")).unwrap();
            let block: u64 = block.trim().parse().unwrap();
            let mut read = |lba: u64| {
                let mut found = vec![0; pin.bytes as usize];
                drop_pages(&device).unwrap();
                device.seek(SeekFrom::Start(lba * block)).unwrap();
                device.read_exact(&mut found).unwrap();
                found
            };
            let meant = &case.content[range.start as usize..range.end as usize];
            assert!(read(pin.lba) == *meant);
            assert!(read(pin.lba + 1) != *meant, "any block would do");
        }
    }
    case.window.flush(3).unwrap();
    assert!(case.pinned.lock().unwrap().is_empty());
}

#[test]
fn ranges_that_are_none_are_refused() {
    let Some(mut case) = case("ranges") else {
        return;
    };
    let invalid = io::ErrorKind::InvalidInput;
    #[allow(clippy::reversed_empty_ranges)]
    for range in [0..0, 8192..4096, 0..4097, 7..4103, 512..4608] {
        refuses(
            case.window.pin_file(0, &case.file, range, 0),
            invalid,
            "units of 4096",
        );
    }
    let long = (1 << 20)..(1 << 20) + 4096;
    refuses(
        case.window.pin_file(0, &case.file, long, 0),
        invalid,
        "has 1048576 bytes",
    );
    refuses(
        case.window.pin_file(0, &case.file, 0..16 << 20, 0),
        invalid,
        "the window has 8388608",
    );
    refuses(
        case.window.pin_file(0, &case.file, 0..4096, 100),
        invalid,
        "multiples of 4096",
    );
    let null = File::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .unwrap();
    refuses(
        case.window.pin_file(0, &null, 0..4096, 0),
        invalid,
        "no regular file",
    );
    let reader = File::open(&case.path).unwrap();
    let denied = io::ErrorKind::PermissionDenied;
    refuses(
        case.window.pin_file(0, &reader, 0..4096, 0),
        denied,
        "open for reading alone",
    );
    // Not cut short by the length of the file: no block of a file's is half of a pin.
    case.file.set_len((1 << 20) + 100).unwrap();
    let last = (1 << 20)..(1 << 20) + 4096;
    refuses(
        case.window.pin_file(0, &case.file, last, 0),
        invalid,
        "has 1048676 bytes",
    );
    assert!(case.pinned.lock().unwrap().is_empty());
}

#[test]
fn files_whose_blocks_are_not_their_bytes_are_refused() {
    let Some(mut case) = case("bytes") else {
        return;
    };
    let unsupported = io::ErrorKind::Unsupported;
    case.file.set_len(2 << 20).unwrap();
    let hole = (1 << 20)..(1 << 20) + 8192;
    refuses(
        case.window.pin_file(0, &case.file, hole.clone(), 0),
        unsupported,
        "a hole",
    );
    rustix::fs::fallocate(
        &case.file,
        rustix::fs::FallocateFlags::empty(),
        1 << 20,
        1 << 20,
    )
    .unwrap();
    refuses(
        case.window.pin_file(0, &case.file, hole.clone(), 0),
        unsupported,
        "never written",
    );
    let mut device = case.window.back.drive().unwrap();
    device.1 += 1;
    let mut other = Fake::of(device, &case.pinned).window();
    refuses(
        other.pin_file(0, &case.file, 0..4096, 0),
        unsupported,
        "the window is of the drive",
    );
    assert!(case.pinned.lock().unwrap().is_empty());
    // Once it is written it can be.
    case.file.seek(SeekFrom::Start(hole.start)).unwrap();
    case.file.write_all(&case.content[..8192]).unwrap();
    case.window.pin_file(0, &case.file, hole, 0).unwrap();
}

#[test]
fn several_pieces_are_told_with_the_end_of_the_first() {
    let Some(mut case) = case("pieces") else {
        return;
    };
    // Every other block of a file, written before the ones between, and blocks of another file between them.
    let path = case.path.with_extension("beside");
    let beside = File::create(&path).unwrap();
    let file = File::options()
        .read(true)
        .write(true)
        .open(&case.path)
        .unwrap();
    file.set_len(0).unwrap();
    for at in 0..8u64 {
        for file in [&file, &beside] {
            let from = at * 3 * 4096;
            rustix::io::pwrite(file, &case.content[..4096], from).unwrap();
            rustix::fs::fsync(file).unwrap();
        }
    }
    for at in (0..24u64).filter(|at| at % 3 != 0) {
        rustix::io::pwrite(&file, &case.content[..4096], at * 4096).unwrap();
    }
    file.set_len(24 * 4096).unwrap();
    let extents = case.window.extents(&file, 0..24 * 4096).unwrap();
    std::fs::remove_file(path).unwrap();
    if extents.len() == 1 {
        eprintln!("left out: this file system has kept the file in one piece");
        return;
    }
    let words = format!(
        "in {} pieces on the drive, the first from byte 0 to {} ",
        extents.len(),
        extents[0].bytes
    );
    refuses(
        case.window.pin_file(0, &file, 0..24 * 4096, 0),
        io::ErrorKind::Unsupported,
        &words,
    );
    let mut at = 0;
    for (entry, extent) in extents.iter().enumerate().take(4) {
        let range = extent.from..extent.from + extent.bytes;
        let pin = case.window.pin_file(entry as u8, &file, range, at).unwrap();
        assert_eq!(pin.lba, extent.lba);
        at += extent.bytes;
    }
}

#[test]
fn a_file_that_was_moved_while_it_was_pinned_is_told_at_the_flush() {
    let Some(mut case) = case("moved") else {
        return;
    };
    case.window.pin_file(0, &case.file, 0..8192, 0).unwrap();
    case.window
        .pin_file(1, &case.file, 8192..12288, 8192)
        .unwrap();
    // Deleted is not moved: its blocks are its own as long as it is open.
    std::fs::remove_file(&case.path).unwrap();
    case.window.flush(1).unwrap();
    case.file.set_len(0).unwrap();
    let words = "bytes 0 to 8192 of the file are not in the blocks from";
    refuses(
        case.window.flush(0),
        io::ErrorKind::StaleNetworkFileHandle,
        words,
    );
    assert!(
        case.pinned.lock().unwrap().is_empty(),
        "flushed all the same"
    );
}

/// As after `msync` of mapped bytes: who copies what has changed goes by the time.
#[test]
fn a_flush_is_a_change_of_the_file_by_its_time() {
    let Some(mut case) = case("time") else { return };
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1000);
    case.window.pin_file(0, &case.file, 0..8192, 0).unwrap();
    case.file.set_modified(long_ago).unwrap();
    case.window.flush(0).unwrap();
    assert!(case.file.metadata().unwrap().modified().unwrap() > long_ago);
}

#[test]
fn a_file_that_moves_as_it_is_pinned_is_not_pinned() {
    let Some(case) = case("race") else { return };
    let mut fake = Fake::of(case.window.back.drive().unwrap(), &case.pinned);
    fake.cut = Some(case.file.try_clone().unwrap());
    let mut window = fake.window();
    refuses(
        window.pin_file(0, &case.file, 0..8192, 0),
        io::ErrorKind::StaleNetworkFileHandle,
        "not in the blocks from",
    );
    assert!(case.pinned.lock().unwrap().is_empty(), "unpinned again");
    assert!(window.held.is_empty());
}

#[test]
fn what_was_left_pinned_is_taken_up_again_if_it_is_the_file_s() {
    let Some(mut case) = case("again") else {
        return;
    };
    refuses(
        case.window.resume_file(0, &case.file, 0),
        io::ErrorKind::NotFound,
        "",
    );
    let pin = case.window.pin_file(0, &case.file, 0..8192, 4096).unwrap();
    // Another program, the same drive.
    let drive = case.window.back.drive().unwrap();
    let mut window = Fake::of(drive, &case.pinned).window();
    let stale = io::ErrorKind::StaleNetworkFileHandle;
    refuses(
        window.resume_file(0, &case.file, 4096),
        stale,
        "entry 0 has the blocks",
    );
    assert!(window.held.is_empty());
    assert_eq!(window.resume_file(0, &case.file, 0).unwrap(), pin);
    window.flush(0).unwrap();
}

#[test]
fn a_file_system_that_journals_data_is_refused() {
    let Some(case) = case("journal") else { return };
    let root = case.path.with_extension("root");
    let folder = root.join("proc/fs/ext4/nvme0n1p1");
    std::fs::create_dir_all(&folder).unwrap();
    let say = |text: &str| std::fs::write(folder.join("options"), text).unwrap();
    assert!(check_file(&root, &case.file, "nvme0n1").is_ok());
    say("rw\ndata=ordered\n");
    assert!(check_file(&root, &case.file, "nvme0n1p1").is_ok());
    say("rw\ndata=journal\n");
    let result = check_file(&root, &case.file, "nvme0n1p1");
    refuses(result, io::ErrorKind::Unsupported, "through its journal");
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn what_is_on_no_drive_is_refused() {
    let memory = rustix::fs::memfd_create("file", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let memory = File::from(memory);
    memory.set_len(8192).unwrap();
    let mut window = Fake::of((259, 0), &Arc::default()).window();
    let unsupported = io::ErrorKind::Unsupported;
    refuses(
        window.pin_file(0, &memory, 0..4096, 0),
        unsupported,
        "no block device",
    );
    // A window in a file has no drive.
    let path = std::env::temp_dir().join(format!("lodger-pin-window-{}", std::process::id()));
    let mut window = Window::open(&format!("file:{}", path.display())).unwrap();
    refuses(
        window.pin_file(0, &memory, 0..4096, 0),
        unsupported,
        "this window is in a file",
    );
    std::fs::remove_file(path).unwrap();
}
