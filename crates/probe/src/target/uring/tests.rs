//! Does io_uring say of every transfer what `pread` and `pwrite` from threads say, and does it end
//! where they would wait?

use super::*;
use crate::safety::Machine;
use crate::target::file::{Engine, FileTarget, transfer};
use crate::target::{Target, threads};
use proptest::prelude::*;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

const DIRECT: i32 = rustix::fs::OFlags::DIRECT.bits() as i32;
const FILE_BYTES: usize = (1 << 20) + 100;

/// A file whose every page begins with its number; gone in the end.
struct Image(PathBuf);

impl Image {
    fn new(name: &str) -> Self {
        let name = format!("lodger-uring-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let page = |n: usize| (n as u64).to_le_bytes().into_iter().cycle().take(4096);
        let bytes: Vec<u8> = (0..).flat_map(page).take(FILE_BYTES).collect();
        std::fs::write(&path, bytes).unwrap();
        Image(path)
    }

    fn open(&self, flags: i32, write: bool) -> File {
        open(&self.0, flags, write)
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn open(path: &Path, flags: i32, write: bool) -> File {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(write)
        .custom_flags(flags)
        .open(path)
        .unwrap()
}

/// A loop device over an image, where one can be had.
struct Loop(PathBuf);

impl Loop {
    fn new(image: &Image) -> Option<Self> {
        let made = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(&image.0)
            .output();
        match made {
            Ok(made) if made.status.success() => {
                let device = String::from_utf8(made.stdout).unwrap();
                Some(Loop(device.trim().into()))
            }
            _ => {
                eprintln!("left out: no loop device to be had");
                None
            }
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.0).status();
    }
}

/// What became of every transfer: what a read brought, or how much was written, or the error.
type Ends = Vec<Result<Vec<u8>, Option<i32>>>;

fn end(io: &Io, moved: io::Result<usize>, came: &[u8]) -> Result<Vec<u8>, Option<i32>> {
    let moved = moved.map_err(|error| error.raw_os_error())?;
    Ok(match io.op {
        Op::Read => came[..moved].to_vec(),
        Op::Write => moved.to_le_bytes().to_vec(),
    })
}

/// Ends by io_uring, and the order they came in.
fn by_ring(file: &File, ios: &[Io], queue_depth: u32) -> Option<(Ends, Vec<usize>)> {
    let Ok(mut queue) = Queue::new(file) else {
        eprintln!("left out: no io_uring here");
        return None;
    };
    let (mut ends, mut order) = (vec![Err(None); ios.len()], Vec::new());
    let mut samples = Vec::new();
    let judge = |i: usize, moved: io::Result<usize>, came: &[u8]| {
        ends[i] = end(&ios[i], moved, came);
        order.push(i);
        Ok(())
    };
    queue
        .run(ios, queue_depth, &mut samples, || false, judge)
        .unwrap();
    assert_eq!(samples.len(), ios.len());
    assert!(samples.iter().all(|sample| sample.latency_ns > 0));
    let issued = samples.iter().map(|sample| sample.issued_ns);
    assert!(issued.is_sorted(), "issued in order");
    // At no time more in flight than asked for.
    let began: Vec<u64> = samples.iter().map(|sample| sample.issued_ns).collect();
    for sample in &samples {
        let at = sample.issued_ns;
        let over = samples
            .iter()
            .filter(|other| other.completed_ns() <= at)
            .count();
        let issued = began.iter().filter(|other| **other <= at).count();
        assert!(issued - over <= queue_depth as usize);
    }
    Some((ends, order))
}

fn by_threads(file: &File, ios: &[Io], queue_depth: u32) -> Ends {
    let ends = Mutex::new(vec![None; ios.len()]);
    let one = |io: &Io, bytes: &mut [u8]| {
        let moved = transfer(file, io, bytes);
        // The slice of transfers tells which one this is.
        let index = (std::ptr::from_ref(io) as usize - ios.as_ptr() as usize) / size_of::<Io>();
        ends.lock().unwrap()[index] = Some(end(io, moved, bytes));
        Ok(())
    };
    threads::run(
        ios,
        queue_depth,
        &mut Vec::new(),
        &mut Vec::new(),
        || false,
        one,
    )
    .unwrap();
    let ends = ends.into_inner().unwrap();
    ends.into_iter()
        .map(|end| end.expect("every transfer ends"))
        .collect()
}

/// Transfers in a file of a mebibyte and 100 bytes: aligned or not, across its end and past it, at
/// offsets that are none.
fn any_io() -> impl Strategy<Value = Io> {
    let offset = prop_oneof![
        8 => (0u64..260).prop_map(|page| page * 4096),
        2 => 0u64..FILE_BYTES as u64 + 5000,
        1 => prop_oneof![Just(u64::MAX), Just(1 << 63), Just(i64::MAX as u64)],
    ];
    let bytes =
        prop_oneof![4 => Just(4096u32), 2 => (1u32..33).prop_map(|n| n * 4096), 1 => 0u32..9000];
    (offset, bytes).prop_map(|(offset, bytes)| Io::read(offset, bytes))
}

proptest! {
    #![proptest_config(lodger_testing::config_without_file(48))]

    #[test]
    fn reads_bring_the_same_bytes_and_errors_by_both_ways(
        ios in proptest::collection::vec(any_io(), 0..60),
        queue_depth in prop_oneof![Just(1u32), Just(32), 1u32..9],
        direct: bool,
    ) {
        let image = Image::new("reads");
        let file = image.open(if direct { DIRECT } else { 0 }, false);
        if let Some((ends, order)) = by_ring(&file, &ios, queue_depth) {
            // Not `assert_eq`, which would print them.
            prop_assert!(ends == by_threads(&file, &ios, queue_depth));
            if queue_depth == 1 {
                prop_assert!(order.is_sorted());
            }
        }
    }

    /// One at a time: what overlapping transfers bring otherwise is chance.
    #[test]
    fn writes_end_the_same_by_both_ways_and_touch_nothing_else(
        ios in proptest::collection::vec((any_io(), any::<bool>()), 1..30),
        may_write in prop_oneof![4 => Just(true), 1 => Just(false)],
        direct: bool,
    ) {
        let write = |(io, is_write)| if is_write { Io { op: Op::Write, ..io } } else { io };
        let mut ios: Vec<Io> = ios.into_iter().map(write).collect();
        // Of two things that are wrong with a write, each way names another.
        ios.retain(|io| may_write || io.offset <= i64::MAX as u64);
        let images = [Image::new("ring"), Image::new("threads")];
        let files = images.each_ref().map(|i| i.open(if direct { DIRECT } else { 0 }, may_write));
        let Some((by_ring, _)) = by_ring(&files[0], &ios, 1) else { return Ok(()) };
        let by_threads = by_threads(&files[1], &ios, 1);
        // Of a read its length: what it brings may be what was written before, which is random.
        let length = |(io, end): (&Io, &Result<Vec<u8>, Option<i32>>)| {
            let number = |came: &Vec<u8>| usize::from_le_bytes(came[..].try_into().unwrap());
            let length = |came| if io.op == Op::Write { number(came) } else { came.len() };
            end.as_ref().map(length).map_err(|errno| *errno)
        };
        let lengths = |ends: &Ends| ios.iter().zip(ends).map(length).collect::<Vec<_>>();
        prop_assert_eq!(lengths(&by_ring), lengths(&by_threads));
        let mut contents = images.each_ref().map(|image| std::fs::read(&image.0).unwrap());
        prop_assert_eq!(contents[0].len(), contents[1].len());
        let writes = || ios.iter().zip(lengths(&by_ring)).filter(|(io, _)| io.op == Op::Write);
        let written: Vec<_> = writes()
            .filter_map(|(io, length)| Some(io.offset as usize..io.offset as usize + length.ok()?))
            .collect();
        for range in written.iter().filter(|range| range.len() > 64) {
            let zeros = contents[0][range.clone()].iter().filter(|byte| **byte == 0).count();
            prop_assert!(zeros < range.len() / 8, "what is written is noise");
        }
        for contents in &mut contents {
            for (io, _) in writes() {
                // Of a write that fails, too, a part may have arrived.
                let end = contents.len().min((io.offset as usize).saturating_add(io.bytes as usize));
                contents[end.min(io.offset as usize)..end].fill(0);
            }
        }
        prop_assert!(contents[0] == contents[1], "outside what was written");
    }
}

#[test]
fn completions_out_of_order_find_their_transfers() {
    let image = Image::new("order");
    let device = Loop::new(&image);
    for path in [Some(&image.0), device.as_ref().map(|device| &device.0)]
        .into_iter()
        .flatten()
    {
        // Reads that fail at once overtake those that have to go to the drive.
        let read = |i: u64| match i % 2 {
            0 => Io::read(i * 37 % 256 * 4096, 4096),
            _ => Io::read(7, 4096),
        };
        let ios: Vec<Io> = (0..400).map(read).collect();
        let file = open(path, DIRECT, false);
        for queue_depth in [1, 32] {
            let Some((ends, order)) = by_ring(&file, &ios, queue_depth) else {
                return;
            };
            assert_eq!(order.is_sorted(), queue_depth == 1, "{}", path.display());
            for (io, end) in ios.iter().zip(&ends) {
                let page = (io.offset / 4096).to_le_bytes();
                match end {
                    Ok(bytes) => assert!(bytes.len() == 4096 && bytes.chunks(8).all(|c| c == page)),
                    Err(errno) => assert_eq!((io.offset, *errno), (7, Some(22))),
                }
            }
        }
    }
}

#[test]
fn a_file_that_ends_early_and_a_device_that_shrinks_are_told_alike() {
    let image = Image::new("short");
    let mut said = Vec::new();
    for engine in [Engine::Ring, Engine::Threads] {
        let mut target =
            FileTarget::open_under(&image.0, false, &Machine::default(), engine).unwrap();
        let notes = target.describe().notes.join("\n");
        if engine == Engine::Threads {
            assert!(notes.contains("from threads"), "{notes}");
            assert!(notes.contains("no io_uring (it is not wanted)"), "{notes}");
        }
        for queue_depth in [1, 32] {
            let whole = [Io::read(0, 4096); 40];
            let mut samples = Vec::new();
            target.run(&whole, queue_depth, &mut samples).unwrap();
            assert_eq!(samples.len(), 40);
            // Truncated under the target.
            let mut ios = whole.to_vec();
            ios.insert(20, Io::read(1 << 20, 4096));
            let error = target.run(&ios, queue_depth, &mut samples).unwrap_err();
            let (offset, bytes, got) = (1 << 20, 4096, 100);
            assert_eq!(error, TargetError::Short { offset, bytes, got });
            let write = target.run(&[Io::write(0, 4096)], queue_depth, &mut samples);
            said.push(write.unwrap_err());
        }
    }
    let (what, reason) = ("write", "bad file descriptor".to_owned());
    let (offset, bytes) = (0, 4096);
    let denied = TargetError::Io {
        what,
        offset,
        bytes,
        reason,
    };
    assert!(said.iter().all(|error| *error == denied), "{said:?}");
    let Some(device) = Loop::new(&image) else {
        return;
    };
    let file = open(&device.0, DIRECT, false);
    let ios = [Io::read(0, 4096), Io::read(1 << 19, 4096)];
    let ends =
        |ends: Ends| -> Vec<_> { ends.into_iter().map(|end| end.map(|b| b.len())).collect() };
    // The file under the device, and then the device.
    OpenOptions::new()
        .write(true)
        .open(&image.0)
        .unwrap()
        .set_len(256 << 10)
        .unwrap();
    for second in [Err(Some(5)), Ok(0)] {
        let Some((by_ring, _)) = by_ring(&file, &ios, 2) else {
            return;
        };
        assert_eq!(ends(by_ring), [Ok(4096), second]);
        assert_eq!(ends(by_threads(&file, &ios, 2)), [Ok(4096), second]);
        let resized = Command::new("losetup").arg("-c").arg(&device.0).status();
        assert!(resized.unwrap().success());
    }
}

static STOPPED: AtomicBool = AtomicBool::new(false);

#[test]
fn a_device_that_never_answers_is_given_up() {
    let (reader, mut writer) = io::pipe().unwrap();
    let file = File::from(OwnedFd::from(reader));
    let Ok(mut queue) = Queue::new(&file) else {
        return eprintln!("left out: no io_uring here");
    };
    queue.patience.stall = Duration::from_millis(250);
    let ios = [Io::read(0, 4096); 3];
    let mut samples = Vec::new();
    let fine = |_, _, _: &[u8]| Ok(());
    let stalled = queue.run(&ios, 2, &mut samples, || false, fine);
    assert_eq!(stalled, Err(no_answer("for 0.25 s")));
    // What was in flight has been taken back: it can be asked again, and stopped.
    writer.write_all(b"abc").unwrap();
    queue
        .run(
            &ios[..1],
            1,
            &mut samples,
            || false,
            |_, moved, came: &[u8]| {
                assert_eq!((moved.unwrap(), came), (3, &b"abc"[..]));
                Ok(())
            },
        )
        .unwrap();
    queue.patience.stall = Duration::from_secs(60);
    let stopped = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            STOPPED.store(true, Ordering::Relaxed);
        });
        queue.run(
            &ios,
            2,
            &mut samples,
            || STOPPED.load(Ordering::Relaxed),
            fine,
        )
    });
    assert_eq!(stopped, Err(TargetError::Interrupted));
    // What does not come back in time keeps its memory, and the queue is of no use.
    queue.patience.stall = Duration::ZERO;
    queue.patience.grace = Duration::ZERO;
    assert!(queue.run(&ios, 2, &mut samples, || false, fine).is_err());
    let after = queue.run(&ios, 2, &mut samples, || false, fine);
    assert_eq!(after, Err(no_answer("in an earlier run")));
}

#[test]
fn a_panic_in_between_leaves_the_memory_to_the_kernel() {
    let (reader, mut writer) = io::pipe().unwrap();
    let file = File::from(OwnedFd::from(reader));
    let Ok(mut queue) = Queue::new(&file) else {
        return eprintln!("left out: no io_uring here");
    };
    queue.patience.stall = Duration::from_secs(10);
    let ios = [Io::read(0, 4096); 3];
    let panicked = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            writer.write_all(b"one").unwrap();
        });
        let run = || {
            queue.run(
                &ios,
                3,
                &mut Vec::new(),
                || false,
                |_, _, _| panic!("in between"),
            )
        };
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(run))
    });
    assert!(panicked.is_err());
    let after = queue.run(&ios, 3, &mut Vec::new(), || false, |_, _, _| Ok(()));
    assert_eq!(after, Err(no_answer("in an earlier run")));
    drop(queue);
}

#[test]
fn a_flush_beside_writes_ends_after_those_before_it_and_is_issued_by_either_engine() {
    let image = Image::new("flushing");
    OpenOptions::new()
        .write(true)
        .open(&image.0)
        .unwrap()
        .set_len(4 << 20)
        .unwrap();
    for engine in [Engine::Ring, Engine::Threads] {
        let mut target =
            FileTarget::open_under(&image.0, true, &Machine::default(), engine).unwrap();
        let ios: Vec<Io> = (0..64).map(|i| Io::write(i << 16, 4096)).collect();
        let mut samples = Vec::new();
        let flushed_ns = target.run_flushing(&ios, 4, 40, &mut samples).unwrap();
        let mut ended: Vec<u64> = samples.iter().map(Sample::completed_ns).collect();
        ended.sort_unstable();
        // The target's own clock begins a little before that of the batch.
        assert!(ended.len() == 64 && flushed_ns >= ended[39], "{ended:?}");
        // What fails before it is told as without a flush, and nobody waits for ever.
        let mut target =
            FileTarget::open_under(&image.0, false, &Machine::default(), engine).unwrap();
        assert!(target.run_flushing(&ios, 4, 40, &mut samples).is_err());
    }
}
