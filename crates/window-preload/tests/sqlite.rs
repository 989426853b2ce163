//! SQLite, unmodified, with its write-ahead log on a window in a file: is each commit that was acknowledged there after the
//! process was killed and all was lost that the log had not synced itself?
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Says what is there, and commits until it is killed, a row each.
const PROGRAM: &str = r#"
import os, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
assert db.execute("pragma journal_mode=wal").fetchone()[0] == "wal"
db.execute("pragma synchronous=full")
db.execute("pragma wal_autocheckpoint=40")
db.execute("create table if not exists t (n integer primary key, data blob)")
rows = db.execute("select n, length(data) from t order by n").fetchall()
assert all(row == (n, n * 37 % 3000) for n, row in enumerate(rows, 1)), "rows are missing"
assert db.execute("pragma integrity_check").fetchone()[0] == "ok"
print(len(rows), flush=True)
for n in range(len(rows) + 1, 10**6):
    db.execute("insert into t values (?, ?)", (n, os.urandom(n * 37 % 3000)))
    print(n, flush=True)
"#;

fn library() -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    let folders = test.ancestors().skip(1).take(2);
    let mut places = folders.map(|folder| folder.join("liblodger_window_preload.so"));
    places.find(|place| place.exists())
}

struct Place {
    folder: PathBuf,
    preload: PathBuf,
}

impl Place {
    fn command(&self, program: &str, has_window: bool) -> Command {
        let mut command = Command::new(program);
        if has_window {
            let window = format!("file:{}", self.folder.join("window").display());
            command
                .env("LD_PRELOAD", &self.preload)
                .env("LODGER_WINDOW", window);
        }
        command
    }

    fn log(&self) -> PathBuf {
        self.folder.join("db-wal")
    }

    /// One life of the program: how much it found, and how much it said that it had committed.
    fn live(&self, commits: usize, has_window: bool) -> Result<(usize, usize), String> {
        let mut command = self.command("python3", has_window);
        let command = command.args(["-c", PROGRAM]).arg(self.folder.join("db"));
        let mut child = command.stdout(Stdio::piped()).spawn().expect("python3");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let said: Vec<usize> = lines
            .map_while(Result::ok)
            .filter_map(|line| line.parse().ok())
            .take(commits + 1)
            .collect();
        // It goes on while it is killed.
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        match (said.first(), said.last()) {
            (Some(found), Some(last)) if said.len() == commits + 1 => Ok((*found, *last)),
            _ => Err(format!("it ended by itself after {said:?}")),
        }
    }

    /// What the log's file holds that is safe: all that was there as it was opened.
    fn safe_part(&self, has_window: bool) -> Vec<u8> {
        // Programs that start with the window do again what is in it.
        let done = self.command("true", has_window).status();
        assert!(done.expect("`true` runs").success());
        fs::read(self.log()).unwrap_or_default()
    }

    /// Power fails: what the log's file was given since is lost. The file stays the one it is.
    fn lose(&self, safe: &[u8]) {
        if self.log().exists() {
            fs::write(self.log(), safe).expect("the log is written");
        }
        let _ = fs::remove_file(self.folder.join("db-shm"));
    }
}

fn place(name: &str) -> Option<Place> {
    let sqlite = Command::new("python3")
        .args(["-c", "import sqlite3"])
        .status();
    if !sqlite.is_ok_and(|status| status.success()) {
        eprintln!("left out: there is no python3 with sqlite3");
        return None;
    }
    let folder = std::env::temp_dir().join(format!("lodger-preload-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    let preload = library().expect("the library is built with its tests");
    Some(Place { folder, preload })
}

fn end(place: &Path) {
    fs::remove_dir_all(place).expect("the folder is ours");
}

#[test]
fn each_commit_that_was_acknowledged_is_there_after_a_loss_of_power() {
    let Some(place) = place("window") else { return };
    let mut acknowledged = 0;
    for life in 0..12 {
        let safe = place.safe_part(true);
        let commits = 1 + life * 29 % 83;
        let (found, last) = place.live(commits, true).expect("a life");
        assert!(
            found >= acknowledged,
            "{acknowledged} were acknowledged, {found} are there"
        );
        acknowledged = last;
        place.lose(&safe);
    }
    end(&place.folder);
}

#[test]
fn without_the_window_they_are_lost() {
    let Some(place) = place("none") else { return };
    let safe = place.safe_part(false);
    let (_, last) = place.live(20, false).expect("a life");
    place.lose(&safe);
    let found = place.live(1, false).map(|(found, _)| found);
    assert!(
        found.clone().is_ok_and(|found| found < last),
        "{found:?} of {last}"
    );
    end(&place.folder);
}
