//! SQLite, unmodified, with its write-ahead log on a window in a file: is each commit that was acknowledged there after the
//! process was killed and all was lost that the log had not synced itself?
#![cfg(target_os = "linux")]

mod common;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

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

struct Place(common::Place);

impl Place {
    fn log(&self) -> PathBuf {
        self.0.folder.join("db-wal")
    }

    /// One life of the program: how much it found, and how much it said that it had committed.
    fn live(&self, commits: usize, has_window: bool) -> Result<(usize, usize), String> {
        let mut command = self.0.command("python3", has_window);
        let command = command.args(["-c", PROGRAM]).arg(self.0.folder.join("db"));
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
        self.0.recover(has_window);
        fs::read(self.log()).unwrap_or_default()
    }

    /// Power fails: what the log's file was given since is lost. The file stays the one it is.
    fn lose(&self, safe: &[u8]) {
        if self.log().exists() {
            fs::write(self.log(), safe).expect("the log is written");
        }
        let _ = fs::remove_file(self.0.folder.join("db-shm"));
    }
}

fn place(name: &str) -> Option<Place> {
    common::Place::new(name, "sqlite3").map(Place)
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
}
