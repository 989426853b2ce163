//! A server in a thread of its own.

use lodger_core::DriveSpec;
use lodger_core::spec::parse;
use lodger_serve::server::Report;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

const TINY: &str = include_str!("../../../../drives/tiny.toml");
/// Longest time that anything may take.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub fn spec(sets: &[(&str, &str)]) -> DriveSpec {
    parse(TINY, "tiny.toml", sets, &|_| None)
        .expect("a drive")
        .spec
}

/// A server, with a folder for its sockets.
pub struct Served {
    pub folder: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Report>>,
}

/// Is told that the server listens, and says when it is to end.
pub struct Owner {
    told: Sender<()>,
    stop: Arc<AtomicBool>,
}

impl Owner {
    pub fn hears(&self) {
        self.told.send(()).expect("somebody waits");
    }

    pub fn wants_the_end(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl Served {
    /// Returns when `serve` says that it listens.
    pub fn start(name: &str, serve: impl FnOnce(&Path, &Owner) -> Report + Send + 'static) -> Self {
        let folder = std::env::temp_dir().join(format!("lodger-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let stop = Arc::new(AtomicBool::new(false));
        let (told, ready) = channel();
        let (place, owner) = (
            folder.clone(),
            Owner {
                told,
                stop: Arc::clone(&stop),
            },
        );
        let thread = std::thread::spawn(move || serve(&place, &owner));
        ready.recv_timeout(PATIENCE).expect("the server starts");
        Served {
            folder,
            stop,
            thread: Some(thread),
        }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.join("drive")
    }

    pub fn end(mut self) -> Report {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("it runs");
        thread.join().expect("the server has not panicked")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
