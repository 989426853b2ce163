//! A probe that is killed at any instant has changed nothing that it was not allowed to change; one that
//! is asked to end leaves a report, and host memory as it was.
use crate::common::Sandbox;
use std::path::Path;
use std::process::{Child, Command, Stdio};
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

/// A command that hears the signals that ask to end, even if the tests themselves do not, as under `nohup`:
/// what is ignored stays so in a child, unless it is told.
fn listening(program: &str) -> Command {
    let mut reset = Command::new("env");
    reset.arg("--default-signal=HUP,INT,TERM");
    if reset
        .arg("true")
        .status()
        .is_ok_and(|status| status.success())
    {
        let mut command = Command::new("env");
        command.args(["--default-signal=HUP,INT,TERM", program]);
        return command;
    }
    eprintln!("signals are as they were found: `env` is too old to set them");
    Command::new(program)
}

fn send(child: &Child, signal: &str) {
    let sent = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
}

fn wait_until(child: &mut Child, ready: impl Fn(&Child) -> bool) {
    let began = Instant::now();
    while !ready(child) {
        assert_eq!(child.try_wait().unwrap(), None, "it ended too early");
        assert!(began.elapsed() < Duration::from_secs(20), "it does nothing");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn every_signal_that_asks_to_end_leaves_a_partial_report() {
    let sandbox = Sandbox::new();
    sandbox.file("disk.img", contents());
    for (signal, number) in [("-INT", 2), ("-TERM", 15), ("-HUP", 1)] {
        let args = [
            "probe",
            "disk.img",
            "--budget",
            "1h",
            "--output-format",
            "json",
        ];
        let mut command = listening(env!("CARGO_BIN_EXE_lodger"));
        command.args(args).current_dir(&sandbox.dir);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let began = Instant::now();
        wait_until(&mut child, |child| {
            read_bytes(child) >= 4 << 20 || began.elapsed() > Duration::from_secs(2)
        });
        send(&child, signal);
        let outcome = crate::common::Outcome::of(child.wait_with_output().unwrap());
        assert_eq!(outcome.code, Some(128 + number), "{}", outcome.stderr);
        let report: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!(report["partial"], true, "{signal}");
    }
}

#[test]
fn a_closed_terminal_does_not_end_what_nohup_protects() {
    let sandbox = Sandbox::new();
    sandbox.file("disk.img", contents());
    let lodger = env!("CARGO_BIN_EXE_lodger");
    // As `nohup` does it.
    let script = "trap '' HUP; exec \"$0\" probe disk.img --budget 1h";
    let mut command = Command::new("sh");
    command
        .args(["-c", script, lodger])
        .current_dir(&sandbox.dir);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    let busy =
        |child: &Child| read_bytes(child) >= 4 << 20 || began.elapsed() > Duration::from_secs(2);
    wait_until(&mut child, busy);
    send(&child, "-HUP");
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(child.try_wait().unwrap(), None, "it goes on");
    send(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

/// A loop device, with a `/sys` in which it has a switch for host memory.
struct Switched {
    sandbox: Sandbox,
    device: String,
}

impl Switched {
    fn new() -> Option<Self> {
        let sandbox = Sandbox::new();
        let disk = sandbox.file("disk.img", contents());
        let may = Command::new("unshare").args(["--mount", "true"]).status();
        let made = Command::new("losetup")
            .args(["--find", "--show"])
            .arg(disk)
            .output();
        let made = made
            .ok()
            .filter(|made| made.status.success() && may.is_ok_and(|s| s.success()));
        let Some(made) = made else {
            eprintln!("left out: it needs root and loop devices");
            return None;
        };
        let device = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        let name = Path::new(&device).file_name().unwrap().to_owned();
        let number =
            std::fs::read_to_string(Path::new("/sys/block").join(&name).join("dev")).unwrap();
        let folder = sandbox.dir.join("sys/block").join(&name);
        std::fs::create_dir_all(folder.join("device")).unwrap();
        std::fs::create_dir_all(sandbox.dir.join("sys/dev/block")).unwrap();
        let link = sandbox.dir.join("sys/dev/block").join(number.trim());
        std::os::unix::fs::symlink(Path::new("../../block").join(&name), link).unwrap();
        std::fs::write(folder.join("device/hmb"), "1").unwrap();
        Some(Switched { sandbox, device })
    }

    fn says(&self) -> String {
        let name = Path::new(&self.device).file_name().unwrap();
        let switch = self
            .sandbox
            .dir
            .join("sys/block")
            .join(name)
            .join("device/hmb");
        std::fs::read_to_string(switch).unwrap()
    }

    /// A probe that sees that `/sys` in place of the real one.
    fn probe(&self) -> Child {
        let script = "mount --bind sys /sys && exec \"$0\" probe \"$1\" --budget 1h";
        let mut command = listening("unshare");
        command.args([
            "--mount",
            "sh",
            "-c",
            script,
            env!("CARGO_BIN_EXE_lodger"),
            &self.device,
        ]);
        command
            .current_dir(&self.sandbox.dir)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().unwrap()
    }
}

impl Drop for Switched {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.device]).status();
    }
}

#[test]
fn host_memory_is_as_it_was_after_every_signal_sent_once_or_twice() {
    let Some(switched) = Switched::new() else {
        return;
    };
    for (signal, number) in [("-INT", 2), ("-TERM", 15), ("-HUP", 1)] {
        for times in [1, 2] {
            assert_eq!(switched.says(), "1");
            let mut child = switched.probe();
            wait_until(&mut child, |_| switched.says() == "0");
            for _ in 0..times {
                send(&child, signal);
            }
            let status = child.wait().unwrap();
            assert_eq!(status.code(), Some(128 + number), "{signal} {times}");
            assert_eq!(switched.says(), "1", "{signal} {times}");
        }
    }
}
