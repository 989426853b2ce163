//! The command run in a folder of its own.
#![allow(dead_code)] // Each test file uses a part of it.

mod probed;

pub use probed::probed;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that is removed at the end.
pub struct Sandbox {
    pub dir: PathBuf,
}

/// What a run of the command left.
pub struct Outcome {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Sandbox {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("lodger-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Sandbox { dir }
    }

    pub fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.join(name);
        std::fs::write(&path, contents).unwrap();
        path
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lodger"));
        command
            .args(args)
            .current_dir(&self.dir)
            .env_remove("COLUMNS")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str]) -> Outcome {
        Outcome::of(self.command(args).output().unwrap())
    }

    /// Runs it and expects it to do what was asked.
    pub fn ok(&self, args: &[&str]) -> Outcome {
        let outcome = self.run(args);
        assert_eq!(outcome.code, Some(0), "{args:?}\n{}", outcome.stderr);
        outcome
    }

    /// Names of the files here.
    pub fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(&self.dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl Outcome {
    pub fn of(output: Output) -> Self {
        Outcome {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Ctrl-C, and what the command makes of it within some seconds.
    #[cfg(unix)]
    pub fn interrupted(mut child: std::process::Child) -> Self {
        use std::time::{Duration, Instant};
        let id = child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &id]).status();
        assert!(sent.unwrap().success());
        let started = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if started.elapsed() > Duration::from_secs(20) {
                child.kill().unwrap();
                panic!("it goes on waiting");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Outcome::of(child.wait_with_output().unwrap())
    }
}

/// A path from the root of the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

/// Files with that extension in a folder of the repository.
pub fn files_in(folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(repository(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "nothing in {folder}");
    files
}
