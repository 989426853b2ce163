//! Files with logs in a window that loses power, or fails.

use super::{Logs, Settings};
use crate::{Back, Pin, Window};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

const BYTES: u64 = 4 * 4096;

#[derive(Debug)]
struct Memory {
    now: Vec<u8>,
    synced: Vec<u8>,
    pin: Option<Pin>,
    is_failing: bool,
}

/// A window's memory, which outlives the program.
#[derive(Clone, Debug)]
struct Ram(Arc<Mutex<Memory>>);

impl Ram {
    fn new() -> Self {
        let bytes = || vec![0; BYTES as usize];
        let (now, synced, pin, is_failing) = (bytes(), bytes(), None, false);
        Ram(Arc::new(Mutex::new(Memory {
            now,
            synced,
            pin,
            is_failing,
        })))
    }

    fn of<T>(&self, what: impl FnOnce(&mut Memory) -> T) -> io::Result<T> {
        let mut memory = self.0.lock().unwrap();
        match memory.is_failing {
            true => Err(io::Error::other("the drive is gone")),
            false => Ok(what(&mut memory)),
        }
    }

    fn fail(&self, is_failing: bool) {
        self.0.lock().unwrap().is_failing = is_failing;
    }

    /// What was stored and not synced is gone, all of it: the drive may keep any of it, and here keeps none.
    fn lose_power(&self) {
        self.of(|memory| memory.now.clone_from(&memory.synced))
            .unwrap();
    }
}

impl Back for Ram {
    fn bytes(&self) -> u64 {
        BYTES
    }

    fn store(&mut self, at: u64, from: &[u8]) -> io::Result<()> {
        self.of(|memory| memory.now[at as usize..][..from.len()].copy_from_slice(from))
    }

    fn load(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.of(|memory| into.copy_from_slice(&memory.now[at as usize..][..into.len()]))
    }

    fn pin(&mut self, _: u8, pin: Pin) -> io::Result<()> {
        self.of(|memory| memory.pin = Some(pin))
    }

    fn info(&self, _: u8) -> io::Result<Option<Pin>> {
        self.of(|memory| memory.pin)
    }

    fn sync(&mut self, _: u8) -> io::Result<()> {
        self.of(|memory| memory.synced.clone_from(&memory.now))
    }

    fn flush(&mut self, _: u8) -> io::Result<()> {
        unreachable!("logs stay pinned")
    }

    fn read_dma(&self, _: u8, _: u64, _: &mut [u8]) -> io::Result<()> {
        unreachable!("logs are loaded")
    }
}

fn logs(ram: &Ram) -> Logs {
    let settings = Settings {
        place: String::new(),
        pin: Pin {
            lba: 0,
            at: 0,
            bytes: BYTES,
        },
    };
    Logs::in_window(Window::of(Box::new(ram.clone())), &settings).unwrap()
}

struct Kept {
    file: File,
    path: PathBuf,
}

impl Kept {
    fn new(name: &str) -> Self {
        let name = format!("lodger-logs-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(true);
        let file = options.open(&path).unwrap();
        Kept { file, path }
    }

    fn opened(&self, logs: &mut Logs) {
        let (file, raw) = (self.file.as_fd(), self.file.as_raw_fd());
        assert!(logs.opened(file, raw, &self.path).unwrap());
    }

    fn write(&self, logs: &mut Logs, data: &[u8]) {
        self.file.write_all_at(data, 0).unwrap();
        logs.changed(self.file.as_raw_fd(), 0, Some(data));
    }

    fn sync(&self, logs: &mut Logs) -> io::Result<()> {
        logs.sync(self.file.as_fd(), self.file.as_raw_fd())
    }

    fn holds(&self, data: &[u8]) {
        assert_eq!(std::fs::read(Path::new(&self.path)).unwrap(), data);
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[test]
fn the_log_of_a_closed_file_does_not_come_back() {
    let (ram, kept) = (Ram::new(), Kept::new("closed"));
    let mut now = logs(&ram);
    kept.opened(&mut now);
    kept.write(&mut now, b"old");
    kept.sync(&mut now).unwrap();
    now.closed(kept.file.as_fd(), kept.file.as_raw_fd())
        .unwrap();
    // Somebody without a window writes it, and has it synced.
    kept.file.write_all_at(b"new", 0).unwrap();
    kept.file.sync_all().unwrap();
    ram.lose_power();
    logs(&ram);
    kept.holds(b"new");
}

#[test]
fn a_sync_is_no_success_while_an_older_log_may_come_back() {
    let (ram, kept) = (Ram::new(), Kept::new("failing"));
    let mut now = logs(&ram);
    kept.opened(&mut now);
    kept.write(&mut now, b"old");
    kept.sync(&mut now).unwrap();
    ram.fail(true);
    kept.write(&mut now, b"new");
    kept.sync(&mut now)
        .expect_err("the log in the window is that of `old`");
    ram.fail(false);
    kept.sync(&mut now).unwrap();
    ram.lose_power();
    logs(&ram);
    kept.holds(b"new");
}
