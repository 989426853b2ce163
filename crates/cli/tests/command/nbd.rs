//! Can programs that know nothing of Lodger use a drive over NBD? With those of this machine; others are named.

use crate::common::{Outcome, Sandbox};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub const PATIENCE: Duration = Duration::from_secs(60);

/// A drive over NBD.
pub struct Served {
    child: Child,
    pub uri: String,
}

impl Served {
    pub fn new(sandbox: &Sandbox, place: &str, more: &[&str]) -> Self {
        let args = [&["serve", "--drive", "tiny", "--nbd", place], more].concat();
        let mut child = sandbox
            .command(&args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = child.stderr.as_mut().unwrap();
        let mut lines = BufReader::new(stderr).lines().map(Result::unwrap);
        let line = lines.find(|line| line.contains(" waits at ")).unwrap();
        let uri = line.split(" waits at ").nth(1).unwrap().to_owned();
        Served { child, uri }
    }

    /// Ends it as a user would, and returns what it says.
    pub fn end(mut self) -> Outcome {
        let pid = self.child.id().to_string();
        let told = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(told.unwrap().success());
        let start = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut stdout = String::new();
        let out = self.child.stdout.as_mut().unwrap();
        out.read_to_string(&mut stdout).unwrap();
        Outcome {
            code: self.child.wait().unwrap().code(),
            stdout,
            stderr: String::new(),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a program is here; says so if not.
fn has(program: &str, args: &[&str], word: &str) -> bool {
    let said = Command::new(program).args(args).output();
    let has = said.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains(word));
    if !has {
        println!("left out: {program} ({word}) is not here");
    }
    has
}

/// Runs a program that has to do what it is asked; what it prints.
fn run(sandbox: &Sandbox, program: &str, args: &[&str]) -> String {
    let command = Command::new(program)
        .args(args)
        .current_dir(&sandbox.dir)
        .output()
        .unwrap();
    let outcome = Outcome::of(command);
    assert_eq!(
        outcome.code,
        Some(0),
        "{program} {args:?}: {} {}",
        outcome.stdout,
        outcome.stderr
    );
    outcome.stdout
}

#[test]
fn fio_verifies_what_it_wrote() {
    if !has("fio", &["--enghelp"], "nbd") {
        return;
    }
    let sandbox = Sandbox::new();
    let served = Served::new(&sandbox, "unix:drive", &["--speed", "0"]);
    let uri = format!("--uri={}", served.uri);
    let job = "--name=v --ioengine=nbd --rw=randrw --bsrange=512-128k --iodepth=16 --size=24m \
               --verify=crc32c --verify_fatal=1 --fsync=32";
    let mut args: Vec<&str> = job.split_whitespace().collect();
    args.push(&uri);
    let said = run(&sandbox, "fio", &args);
    assert!(said.contains("err= 0"), "{said}");
    let ended = served.end();
    assert_eq!(ended.code, Some(0));
    assert!(ended.stdout.contains("written: "), "{}", ended.stdout);
}

#[test]
fn copies_come_back_as_they_were() {
    let tools = [
        ("nbdcopy", &["--version"][..], "nbdcopy"),
        ("nbdinfo", &["--version"], "nbdinfo"),
        ("qemu-img", &["--help"], "nbd"),
    ];
    let sandbox = Sandbox::new();
    let served = Served::new(&sandbox, "localhost:0", &["--speed", "0", "--block", "512"]);
    assert!(served.uri.starts_with("nbd://"), "{}", served.uri);
    let mut rng = lodger_core::rng::Rng::new(5);
    let bytes: Vec<u8> = (0..16 << 20).map(|_| rng.below(256) as u8).collect();
    sandbox.file("data", &bytes);
    for (tool, args, word) in tools {
        if !has(tool, args, word) {
            continue;
        }
        match tool {
            // Over several connections.
            "nbdcopy" => {
                run(&sandbox, tool, &["data", &served.uri]);
                run(&sandbox, tool, &[&served.uri, "back"]);
                let back = std::fs::read(sandbox.dir.join("back")).unwrap();
                assert!(back[..bytes.len()] == bytes, "other bytes");
                assert!(back[bytes.len()..].iter().all(|byte| *byte == 0));
                assert_eq!(back.len(), 512 << 20);
                std::fs::remove_file(sandbox.dir.join("back")).unwrap();
            }
            "nbdinfo" => {
                let said = run(&sandbox, tool, &[&served.uri]);
                assert!(said.contains("can_multi_conn: true"), "{said}");
                let listed = run(&sandbox, tool, &["--list", &served.uri]);
                assert!(listed.contains("export=\"\""), "{listed}");
            }
            _ => {
                let raw = ["-f", "raw", "-O", "raw"];
                let to = [&["convert", "-n"], &raw[..], &["data", &served.uri]].concat();
                run(&sandbox, tool, &to);
                run(
                    &sandbox,
                    tool,
                    &["bench", "-f", "raw", "-c", "2000", &served.uri],
                );
                let args = ["compare", "-f", "raw", "-F", "raw", "data", &served.uri];
                assert!(run(&sandbox, tool, &args).contains("identical"));
            }
        }
    }
    assert_eq!(served.end().code, Some(0));
}

#[test]
fn faults_reach_programs() {
    if !has("qemu-img", &["--help"], "nbd") {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.file("rules", "fail 0x281 opcode=read lba=0-100000 times=1\n");
    let served = Served::new(
        &sandbox,
        "unix:drive",
        &["--faults", "rules", "--speed", "0"],
    );
    let read = ["bench", "-f", "raw", "-c", "1", "-d", "1", &served.uri];
    let failed = Command::new("qemu-img").args(read).output().unwrap();
    let said = Outcome::of(failed);
    assert!(
        said.code != Some(0) && said.stderr.contains("Input/output error"),
        "{}",
        said.stderr
    );
    run(&sandbox, "qemu-img", &read);
    assert_eq!(served.end().code, Some(0));
}

#[test]
fn what_cannot_be_is_said() {
    let sandbox = Sandbox::new();
    let refused = |more: &[&str], words: &str| {
        let args = [&["serve", "--drive", "tiny"], more].concat();
        let outcome = sandbox.run(&args);
        assert_eq!(outcome.code, Some(2), "{args:?}: {}", outcome.stderr);
        let said = outcome.stderr;
        assert!(said.contains(words), "{args:?}: {said}");
    };
    refused(&[], "--socket");
    refused(&["--socket", "a", "--nbd", "unix:b"], "--nbd");
    refused(&["--nbd", "drive"], "unix:PATH");
    refused(&["--nbd", "unix:no/such/folder"], "hint:");
    refused(&["--nbd", "unix:a", "--hmb-offer", "2GiB"], "1 GiB");
    refused(&["--socket", "a", "--hmb", "off"], "--nbd");
    sandbox.file("rules", "drop opcode=flush\nfail 0x281 opcode=reed\n");
    refused(
        &["--nbd", "unix:a", "--faults", "rules"],
        "found `reed` (rules:2)",
    );
    refused(&["--nbd", "unix:a", "--faults", "nowhere"], "fault rules");
    let served = Served::new(&sandbox, "127.0.0.1:0", &[]);
    let port = served.uri.rsplit(':').next().unwrap();
    refused(&["--nbd", &format!("127.0.0.1:{port}")], "in use");
    assert_eq!(served.end().code, Some(0));
    // Another address than this machine's own is a risk that is named.
    let mut child = sandbox
        .command(&["serve", "--drive", "tiny", "--nbd", "0.0.0.0:0"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        line.starts_with("warning: whoever reaches 0.0.0.0:"),
        "{line}"
    );
}
