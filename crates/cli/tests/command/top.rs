//! Does `lodger top` show what a served drive counts, and say what is wrong where there is none?

use crate::common::Sandbox;
use crate::nbd::{PATIENCE, Served};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn a_running_drive_is_looked_at() {
    let sandbox = Sandbox::new();
    let served = Served::new(&sandbox, "unix:drive", &["--metrics", "unix:metrics"]);
    for place in ["metrics", "unix:metrics"] {
        let look = sandbox.ok(&["top", place]);
        assert!(
            look.stdout.starts_with("Tiny teaching drive"),
            "{}",
            look.stdout
        );
        for word in [
            "commands ",
            "host memory ",
            "write amplification",
            "late by ",
        ] {
            assert!(look.stdout.contains(word), "{word}: {}", look.stdout);
        }
        assert!(!look.stdout.contains('\u{1b}'), "{}", look.stdout);
    }
    let refused = |args: &[&str], words: &str| {
        let outcome = sandbox.run(args);
        assert_eq!(outcome.code, Some(2), "{args:?}: {}", outcome.stderr);
        assert!(
            outcome.stderr.contains(words),
            "{args:?}: {}",
            outcome.stderr
        );
    };
    refused(&["top", "nowhere"], "hint: ");
    refused(
        &["top", "localhost:1"],
        "cannot look at the drive at `localhost:1`",
    );
    refused(&["top", "metrics", "--interval", "0"], "0.1 to 3600");
    // What serves blocks greets, and then waits for a client to speak NBD.
    refused(&["top", "drive"], "no drive of `lodger serve --metrics`");
    let taken = [
        "serve",
        "--drive",
        "tiny",
        "--nbd",
        "unix:other",
        "--metrics",
        "unix:metrics",
    ];
    refused(&taken, "cannot listen at `metrics`");
    let wrong = [
        "serve",
        "--drive",
        "tiny",
        "--nbd",
        "unix:other",
        "--metrics",
        "nonsense",
    ];
    refused(&wrong, "--metrics");
    assert_eq!(served.end().code, Some(0));
}

/// The bytes that a program on a terminal writes, until there are so many screens.
fn screens(out: &mut impl Read, count: usize) -> String {
    let mut text = String::new();
    let mut bytes = [0; 4096];
    while text.matches("late by").count() < count {
        let length = out.read(&mut bytes).unwrap();
        assert!(length > 0, "it has ended: {text}");
        text += &String::from_utf8_lossy(&bytes[..length]);
    }
    text
}

#[test]
fn on_a_terminal_it_looks_again_and_again_until_ctrl_c() {
    let sandbox = Sandbox::new();
    if Command::new("script").arg("--version").output().is_err() {
        println!("left out: script, which has a terminal, is not here");
        return;
    }
    let served = Served::new(&sandbox, "unix:drive", &["--metrics", "unix:metrics"]);
    let top = sandbox.command(&["top", "metrics", "--interval", "0.1"]);
    let program = top.get_program().to_str().unwrap();
    let mut terminal = Command::new("script")
        .args(["--quiet", "--return", "--flush", "--command"])
        .arg(format!("exec '{program}' top metrics --interval 0.1"))
        .arg("/dev/null")
        .current_dir(&sandbox.dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text = screens(terminal.stdout.as_mut().unwrap(), 3);
    assert!(text.contains("\u{1b}[H"), "each in the place of the last");
    assert!(terminal.try_wait().unwrap().is_none(), "it goes on");
    // What a terminal makes SIGINT of.
    terminal.stdin.as_mut().unwrap().write_all(b"\x03").unwrap();
    let start = Instant::now();
    let ended = loop {
        match terminal.try_wait().unwrap() {
            Some(ended) => break ended,
            None => assert!(start.elapsed() < PATIENCE, "it does not end"),
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(ended.code(), Some(0));
    assert_eq!(served.end().code, Some(0));
}
