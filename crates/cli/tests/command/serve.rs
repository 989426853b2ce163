//! Does `lodger serve` begin, say how to attach, and end as it should? What a driver does with the drive is tested
//! in `lodger-serve`.
use crate::common::{Outcome, Sandbox};
use std::io::{Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

/// What a client of vfio-user says first, and what it hears.
fn shake_hands(stream: &mut UnixStream) -> Vec<u8> {
    let text = b"{\"capabilities\":{\"max_msg_fds\":8}}\0";
    let mut message = vec![7, 0, 1, 0];
    message.extend_from_slice(&(20 + text.len() as u32).to_le_bytes());
    message.extend_from_slice(&[0; 12]);
    message.extend_from_slice(text);
    stream.write_all(&message).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = vec![0; 20];
    stream.read_exact(&mut answer).unwrap();
    answer
}

/// Starts drives.
fn started(sandbox: &Sandbox, args: &[&str]) -> Child {
    let mut command = sandbox.command(args);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// A client of a drive that is being started, once it has been answered.
fn client(socket: &Path) -> UnixStream {
    let mut stream = connected(socket);
    let answer = shake_hands(&mut stream);
    assert_eq!((answer[0], answer[2], answer[8]), (7, 1, 1), "{answer:?}");
    stream
}

/// Waits for a drive that is being started.
fn connected(socket: &Path) -> UnixStream {
    let start = Instant::now();
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => return stream,
            Err(_) => assert!(start.elapsed() < PATIENCE, "no socket"),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Ends it as a service manager does.
fn ended(mut child: Child) -> Outcome {
    let start = Instant::now();
    let pid = child.id().to_string();
    let kill = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(kill.unwrap().success());
    while child.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < PATIENCE, "it does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
    Outcome::of(child.wait_with_output().unwrap())
}

#[test]
fn several_drives_of_one_command_have_a_socket_each() {
    let sandbox = Sandbox::new();
    let args = [
        "serve", "--drive", "tiny", "--socket", "one", "--drive", "bg4", "--socket", "two",
    ];
    let child = started(&sandbox, &args);
    // Both at once: neither waits for the other's client to go.
    let _clients = ["one", "two"].map(|name| client(&sandbox.dir.join(name)));
    let ended = ended(child);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines: Vec<_> = ended
        .stdout
        .lines()
        .filter(|line| line.starts_with("clients: 1, "))
        .collect();
    assert_eq!(lines.len(), 2, "{}", ended.stdout);
    assert!(ended.stdout.contains("bg4 at two"), "{}", ended.stdout);
    for name in ["one", "two"] {
        assert!(!sandbox.dir.join(name).exists());
    }
}

#[test]
fn several_drives_of_which_one_cannot_be_are_none() {
    let sandbox = Sandbox::new();
    for (args, says) in [
        (
            &[
                "--drive", "tiny", "--socket", "one", "--drive", "tiny", "--socket", "no/such",
            ][..],
            "no/such",
        ),
        (
            &["--drive", "tiny", "--drive", "bg4", "--socket", "one"],
            "found 2 and 1",
        ),
        (
            &["--drive", "tiny", "--drive", "bg4", "--nbd", "unix:one"],
            "found 2 and 0",
        ),
        (
            &[
                "--drive", "tiny", "--socket", "one", "--drive", "bg4", "--socket", "two",
                "--record", "r",
            ],
            "`--record` goes with a single",
        ),
    ] {
        let args: Vec<_> = ["serve"].iter().chain(args).copied().collect();
        let outcome = sandbox.run(&args);
        assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
        assert!(outcome.stderr.contains(says), "{}", outcome.stderr);
        assert!(!sandbox.dir.join("one").exists());
    }
}

#[test]
fn a_drive_waits_for_clients_until_it_is_told_to_stop() {
    let sandbox = Sandbox::new();
    let args = [
        "serve",
        "--drive",
        "tiny",
        "--socket",
        "drive",
        "--identify",
        "HMPRE=0",
    ];
    let child = started(&sandbox, &args);
    let socket = sandbox.dir.join("drive");
    let _client = client(&socket);
    assert!(std::fs::metadata(&socket).unwrap().file_type().is_socket());
    let second = sandbox.run(&["serve", "--drive", "tiny", "--socket", "drive"]);
    assert_eq!(second.code, Some(2), "{}", second.stderr);
    assert!(
        second.stderr.contains("another drive is served there"),
        "{}",
        second.stderr
    );
    let ended = ended(child);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.starts_with("clients: 1, "), "{}", ended.stdout);
    assert!(ended.stderr.contains("vfio-user-pci"), "{}", ended.stderr);
    assert!(!socket.exists());
}

#[test]
fn what_cannot_be_served_is_said() {
    let sandbox = Sandbox::new();
    let refused = |more: &[&str], words: &str| {
        let args = [&["serve", "--socket", "drive"], more].concat();
        let outcome = sandbox.run(&args);
        assert_eq!(outcome.code, Some(2), "{args:?}: {}", outcome.stderr);
        assert!(
            outcome.stderr.contains(words),
            "{args:?}: {}",
            outcome.stderr
        );
        assert!(!sandbox.files().contains(&"drive".to_owned()));
    };
    refused(&["--drive", "galaxy-s7"], "UFS");
    refused(&["--drive", "tiny", "--speed", "-1"], "--speed");
    refused(&["--drive", "tiny", "--block", "513"], "--block");
    refused(&["--drive", "tiny", "--identify", "HMPER=0"], "HMPRE");
    refused(&["--drive", "tinny"], "tiny");
    let divided = |drive: &str, sizes: &str, words: &str| {
        refused(&["--drive", drive, "--namespaces", sizes], words);
    };
    divided("tiny", "8GiB,rest", "536870912 bytes are left");
    divided("tiny", "512MiB,rest", "a multiple of 4 KiB, and some");
    divided("tiny", "1000B", "a multiple of 4 KiB");
    divided("tiny", "8MiB,", "`--namespaces` must be a size");
    divided("tiny", "8MiB;rest", "or `rest`");
    divided("tiny", "rest,rest", "`rest` once at most");
    divided("tiny", &["1MiB"; 129].join(","), "at most 128");
    divided("2b-ssd", "8GiB,rest", "byte window has one namespace");
    let nbd = [
        "serve",
        "--drive",
        "tiny",
        "--nbd",
        "unix:drive",
        "--namespaces",
        "8MiB,rest",
    ];
    let outcome = sandbox.run(&nbd);
    assert_eq!(outcome.code, Some(2));
    assert!(
        outcome.stderr.contains("goes with `--socket`"),
        "{}",
        outcome.stderr
    );
    let outcome = sandbox.run(&["serve", "--drive", "tiny", "--socket", "no/such/folder"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("hint:"), "{}", outcome.stderr);
}

/// What it prints at the end is talk: nobody asked for it.
#[test]
fn a_quiet_server_says_nothing_at_its_end() {
    for places in [
        &["--drive", "tiny", "--socket", "one"][..],
        &[
            "--drive", "tiny", "--socket", "one", "--drive", "tiny", "--socket", "two",
        ],
    ] {
        let sandbox = Sandbox::new();
        let child = started(&sandbox, &[&["serve", "-q"], places].concat());
        let _client = client(&sandbox.dir.join("one"));
        let ended = ended(child);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
    }
}
