//! Does the command record a live drive, and do it again? That times are the same is tested in `lodger-serve`; here is
//! what users see.

use crate::common::Sandbox;
use crate::nbd::Served;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

/// Writes and reads a little over NBD.
fn use_a_little(sandbox: &Sandbox) {
    ask(sandbox, &[1, 1, 0, 3, 0]);
}

/// Reads (0), writes (1) and flushes (3).
fn ask(sandbox: &Sandbox, commands: &[u8]) {
    let mut stream = UnixStream::connect(sandbox.dir.join("drive")).unwrap();
    stream.read_exact(&mut [0; 18]).unwrap();
    stream
        .write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\0")
        .unwrap();
    stream.read_exact(&mut [0; 10]).unwrap();
    for &command in commands {
        let length: u32 = if command == 3 { 0 } else { 8192 };
        let mut message = vec![0x25, 0x60, 0x95, 0x13, 0, 0, 0, command];
        message.extend_from_slice(&[0; 16]);
        message.extend_from_slice(&length.to_be_bytes());
        if command == 1 {
            message.resize(message.len() + length as usize, 7);
        }
        stream.write_all(&message).unwrap();
        let mut reply = vec![0; 16 + if command == 0 { length as usize } else { 0 }];
        stream.read_exact(&mut reply).unwrap();
        assert_eq!(reply[4..8], [0; 4]);
    }
}

#[test]
fn a_live_drive_is_recorded_and_done_again() {
    let sandbox = Sandbox::new();
    let served = Served::new(
        &sandbox,
        "unix:drive",
        &["--record", "run.rec", "--seed", "3"],
    );
    use_a_little(&sandbox);
    assert_eq!(served.end().code, Some(0));
    let simulate = ["simulate", "run.rec", "--drive", "tiny"];
    let same = sandbox.ok(&[&simulate[..], &["--seed", "3"]].concat());
    assert!(
        same.stderr.contains("5 completions, 0 at another time"),
        "{}",
        same.stderr
    );
    assert!(same.stdout.contains("recorded: "), "{}", same.stdout);
    assert!(same.stdout.contains("read: IOPS="), "{}", same.stdout);
    let twice = sandbox.ok(&[&simulate[..], &["--seed", "3"]].concat());
    assert_eq!(twice.stdout, same.stdout);
    // Another drive with the same commands at the same times.
    let other = sandbox.ok(&["simulate", "run.rec", "--drive", "bg4"]);
    assert!(other.stderr.contains("another drive"), "{}", other.stderr);
    let json = [&simulate[..], &["--output-format", "json"]].concat();
    let json: serde_json::Value = serde_json::from_str(&sandbox.ok(&json).stdout).unwrap();
    assert_eq!(json["jobs"][0]["read"]["total_ios"], 2);
    assert_eq!(json["lodger"]["requests"], 5);
    // What a recording says itself, and who does not take one.
    for more in [
        &["--hmb", "off"][..],
        &["--replay", "timed"],
        &["--precondition", "none"],
        &["--stream"],
    ] {
        refused(&sandbox, &[&simulate[..], more].concat(), more[0]);
    }
    // Each by its own name.
    for more in [
        ["--commit", "async"],
        ["--clients", "2"],
        ["--transaction-size", "4KiB"],
    ] {
        let told = format!("`{}` is for other workloads", more[0]);
        refused(&sandbox, &[&simulate[..], &more].concat(), &told);
    }
    refused(
        &sandbox,
        &["trace", "info", "run.rec"],
        "recording of a live drive",
    );
    refused(
        &sandbox,
        &["advise", "run.rec", "--drive", "tiny"],
        "recording of a live drive",
    );
}

#[test]
fn what_was_written_before_is_read_from_flash() {
    // The second read of the same is answered from the read cache, once there is something to hold.
    for (state, reads, unwritten) in [("none", 0, 4), ("sequential", 1, 0)] {
        let sandbox = Sandbox::new();
        let args = ["--record", "run.rec", "--precondition", state];
        let served = Served::new(&sandbox, "unix:drive", &args);
        ask(&sandbox, &[0, 0]);
        assert_eq!(served.end().code, Some(0));
        let args = [
            "simulate",
            "run.rec",
            "--drive",
            "tiny",
            "--output-format",
            "json",
        ];
        let again = sandbox.ok(&args);
        assert!(again.stderr.contains("2 completions, 0 at another time"));
        let json: serde_json::Value = serde_json::from_str(&again.stdout).unwrap();
        let of_host = &json["lodger"]["nand"]["reads_by_cause"]["host"];
        assert_eq!(of_host, reads, "{state}");
        assert_eq!(json["lodger"]["unwritten_reads"], unwritten, "{state}");
    }
}

fn refused(sandbox: &Sandbox, args: &[&str], words: &str) {
    let outcome = sandbox.run(args);
    assert_eq!(outcome.code, Some(2), "{args:?}: {}", outcome.stderr);
    let said = outcome.stderr;
    assert!(said.contains(words), "{args:?}: {said}");
}

#[test]
fn recordings_that_are_not_whole_or_not_right_are_told_from_others() {
    let sandbox = Sandbox::new();
    let args = ["--seed", "3", "--record", "run.rec"];
    let served = Served::new(&sandbox, "unix:drive", &args);
    use_a_little(&sandbox);
    served.end();
    // One that is not whole, one that is not right, one of a drive that behaved otherwise.
    let bytes = std::fs::read(sandbox.dir.join("run.rec")).unwrap();
    sandbox.file("cut.rec", &bytes[..bytes.len() - 5]);
    let cut = sandbox.ok(&["simulate", "cut.rec", "--drive", "tiny", "--seed", "3"]);
    assert!(cut.stderr.contains("cut off"), "{}", cut.stderr);
    let head_bytes = 28 + "Tiny teaching drive 512 MiB".len() + env!("CARGO_PKG_VERSION").len();
    let wrong = [&bytes[..head_bytes], &[0x0f, 0][..]].concat();
    sandbox.file("wrong.rec", wrong);
    refused(
        &sandbox,
        &["simulate", "wrong.rec", "--drive", "tiny"],
        "no such record",
    );
    sandbox.file("version.rec", [&bytes[..8], &[9], &bytes[9..]].concat());
    refused(
        &sandbox,
        &["simulate", "version.rec", "--drive", "tiny"],
        "version 9",
    );
    let mut other = bytes.clone();
    // The drive's description says it is the slow one's; the times are the fast one's.
    other[18..26].copy_from_slice(&slow_digest(&sandbox));
    sandbox.file("other.rec", &other);
    let args = [
        "simulate",
        "other.rec",
        "--drive",
        "tiny",
        "--seed",
        "3",
        "--set",
        "controller.read=50us",
    ];
    let differs = sandbox.run(&args);
    assert_eq!(differs.code, Some(1), "{}", differs.stderr);
    assert!(
        differs.stderr.contains("hint: the first: command "),
        "{}",
        differs.stderr
    );
}

/// How recordings name a drive that reads slowly.
fn slow_digest(sandbox: &Sandbox) -> Vec<u8> {
    let args = ["--record", "slow.rec", "--set", "controller.read=50us"];
    let served = Served::new(sandbox, "unix:slow", &args);
    served.end();
    std::fs::read(sandbox.dir.join("slow.rec")).unwrap()[18..26].to_vec()
}

#[test]
fn a_recording_that_cannot_be_written_is_said_before_anybody_waits() {
    let sandbox = Sandbox::new();
    let args = [
        "serve",
        "--drive",
        "tiny",
        "--nbd",
        "unix:drive",
        "--record",
        "no/such/run.rec",
    ];
    let outcome = sandbox.run(&args);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("no/such/run.rec"),
        "{}",
        outcome.stderr
    );
}
