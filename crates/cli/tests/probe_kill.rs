//! A probe that is killed at any instant has changed nothing that it was not allowed to change.
#![cfg(target_os = "linux")]

mod common;

use common::Sandbox;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const BYTES: usize = 8 << 20;

/// Bytes that no write of the prober can match by chance.
fn contents() -> Vec<u8> {
    let mut state = 3u64;
    let words = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 8).to_le_bytes()
    });
    words.take(BYTES / 8).flatten().collect()
}

/// Bytes that a process has read: the kernel counts them where they are asked for, or, with io_uring,
/// where the drive is.
fn read_bytes(child: &Child) -> u64 {
    let path = format!("/proc/{}/io", child.id());
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let number = |name| {
        let number = text.lines().find_map(|line| line.strip_prefix(name))?;
        number.trim().parse::<u64>().ok()
    };
    number("rchar:").max(number("read_bytes:")).unwrap_or(0)
}

/// Starts a probe of `disk.img` and kills it (SIGKILL) once `ready`.
fn killed(sandbox: &Sandbox, more: &[&str], ready: impl Fn(&Child) -> bool) {
    let args = [&["probe", "disk.img", "--budget", "1h"], more].concat();
    let mut command = sandbox.command(&args);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while !ready(&child) {
        let ended = child.try_wait().unwrap();
        assert_eq!(ended, None, "it ended before it could be killed");
        assert!(began.elapsed() < Duration::from_secs(20), "it does nothing");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), None, "killed by a signal");
}

#[test]
fn a_killed_probe_has_written_nothing_without_consent() {
    let sandbox = Sandbox::new();
    let before = contents();
    let path = sandbox.file("disk.img", &before);
    let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
    for bytes in [1, 1 << 20, 4 << 20] {
        // In memory, io_uring's reads are counted nowhere.
        let began = Instant::now();
        killed(&sandbox, &[], |child| {
            read_bytes(child) >= bytes || began.elapsed() > Duration::from_secs(2)
        });
        assert!(std::fs::read(&path).unwrap() == before, "after {bytes}");
        let now = std::fs::metadata(&path).unwrap().modified().unwrap();
        assert_eq!(now, modified, "after {bytes}");
        assert_eq!(sandbox.files(), ["disk.img"], "nothing is left behind");
    }
}

/// The test above would see writes: with consent there are some when the probe is killed.
#[test]
fn a_killed_probe_with_consent_has_written() {
    let sandbox = Sandbox::new();
    let before = contents();
    let path = sandbox.file("disk.img", &before);
    let consent = [
        "--destroy-data",
        "--yes",
        "disk.img",
        "--experiment",
        "flush",
    ];
    killed(&sandbox, &consent, |_| {
        std::fs::read(&path).unwrap() != before
    });
    let after = std::fs::read(&path).unwrap();
    assert!(after != before && after.len() == before.len());
}
