//! Can a running drive be told what is to happen to it, at a socket that is its owner's alone, and is whatever else comes
//! there answered with an error, at once, while the drive goes on?
#![cfg(target_os = "linux")]

mod attached;
mod driver;

use attached::{Attached, Served, spec};
use driver::Driver;
use driver::mix::Mix;
use lodger_core::rng::Rng;
use lodger_serve::clock::Speed;
use lodger_serve::controller::Settings;
use lodger_serve::server::{Control, Server, VfioUser};
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn controlled(name: &str) -> Served {
    Served::start(&format!("control-{name}"), |folder, owner| {
        let front = VfioUser::new(&spec(&[]), &Settings::default(), &folder.join("drive"));
        let speed = Speed::new(1.0).expect("a speed");
        let mut server = Server::new(front.expect("a drive"), speed);
        let control = Control::new(&folder.join("ctl"), true);
        server.set_control(control.expect("a socket"));
        owner.hears();
        server.run(|| owner.wants_the_end()).expect("it serves")
    })
}

fn place(served: &Served) -> PathBuf {
    served.folder.join("ctl")
}

/// What is answered to these bytes; nothing, if the drive hangs up.
fn heard(path: &Path, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(path).expect("a connection");
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("a time");
    let _ = stream.write_all(bytes);
    let mut text = Vec::new();
    // A drive that hangs up with something unread resets the connection.
    let _ = stream.read_to_end(&mut text);
    String::from_utf8(text).expect("text")
}

fn ask(served: &Served, line: &str) -> Value {
    let text = heard(&place(served), format!("{line}\n").as_bytes());
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn a_drive_does_what_it_is_told() {
    let served = controlled("told");
    let mode = std::fs::metadata(place(&served)).expect("a socket");
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    let mut driver = Driver::new(Attached::new(&served.path()));
    driver.enable();
    driver.create_queues(1);
    let read = |driver: &mut Driver<Attached>| {
        let entry = driver.entry(1, 2, 0, 8);
        driver.run(1, entry).map_err(|status| status.bits() & 0x7ff)
    };
    assert_eq!(read(&mut driver), Ok(0));
    let added = ask(&served, "add fail 0x281 opcode=read times=1");
    assert_eq!(added["number"], 1, "{added}");
    assert_eq!(read(&mut driver), Err(0x281));
    assert_eq!(read(&mut driver), Ok(0));
    let rules = ask(&served, "rules");
    assert_eq!(rules["rules"][0]["done"], 1, "{rules}");
    assert_eq!(rules["rules"][0]["rule"], "fail 0x281 opcode=read times=1");
    assert_eq!(ask(&served, "add drop opcode=flush")["number"], 2);
    assert_eq!(ask(&served, "remove 1")["removed"], 1);
    assert_eq!(ask(&served, "remove 1")["ok"], false);
    assert_eq!(ask(&served, "remove all")["removed"], 1);
    assert_eq!(ask(&served, "do read-only")["act"], "read-only");
    let status = ask(&served, "status");
    assert_eq!(status["status"]["read_only"], true, "{status}");
    assert_eq!(status["status"]["faults"], 1, "{status}");
    let entry = driver.entry(1, 1, 0, 8);
    assert!(driver.run(1, entry).is_err());
    assert_eq!(ask(&served, "do vanish")["ok"], true);
    let start = Instant::now();
    while driver.port.client.region_read(0, 0x1c, &mut [0; 4]).is_ok()
        && ask(&served, "status")["status"]["gone"] != true
    {
        assert!(start.elapsed() < attached::PATIENCE);
    }
    assert_eq!(ask(&served, "do return")["ok"], true);
    assert_eq!(ask(&served, "do power-cut after=1ms")["ok"], true);
    std::thread::sleep(Duration::from_millis(20));
    driver.enable();
    driver.create_queues(1);
    assert_eq!(read(&mut driver), Ok(0));
}

#[test]
fn what_makes_no_sense_is_an_error_and_the_drive_goes_on() {
    let served = controlled("hostile");
    let mut driver = Driver::new(Attached::new(&served.path()));
    driver.enable();
    driver.create_queues(1);
    let mut mix = Mix::new(8 << 10, 1);
    for line in [
        "",
        "nonsense",
        "add",
        "add nonsense",
        "add fail 0",
        "remove",
        "remove -1",
        "remove 99999999999",
        "do",
        "do drop",
        "do vanish opcode=read",
        "do touch nowhere",
        "do corrupt 4294967296",
        "status now",
        "rules x",
        "do vanish 99h",
        "add drop dword99=1",
        "do stall 1s after=25h",
    ] {
        let answer = ask(&served, line);
        assert_eq!(answer["ok"], false, "{line}: {answer}");
        assert!(!answer["error"].as_str().expect("words").is_empty());
    }
    let endless = heard(&place(&served), &[b'x'; 9000]);
    assert!(endless.contains("must end within 8192 bytes"), "{endless}");
    let mut rng = Rng::new(5);
    for round in 0..200 {
        let length = rng.below(300);
        let mut bytes: Vec<u8> = (0..length).map(|_| rng.next_u64() as u8).collect();
        if round % 3 == 0 {
            bytes.splice(0..0, *b"add drop ");
        }
        bytes.push(b'\n');
        let text = heard(&place(&served), &bytes);
        if !text.is_empty() {
            let answer: Value = serde_json::from_str(&text).expect("JSON");
            assert_eq!(answer["ok"], false, "{answer}");
        }
        mix.run(&mut driver, 5, 4);
    }
    assert!(heard(&place(&served), &[b'x'; 100_000]).len() < 1000);
    // Those that say nothing are let go; while they are there, the drive goes on, and so do others.
    let silent: Vec<_> = (0..7)
        .map(|_| UnixStream::connect(place(&served)).expect("a connection"))
        .collect();
    let start = Instant::now();
    mix.run(&mut driver, 500, 8);
    assert_eq!(ask(&served, "status")["ok"], true);
    assert!(start.elapsed() < Duration::from_secs(4), "held up");
    drop(silent);
    for _ in 0..1100 {
        ask(&served, "add drop opcode=verify");
    }
    let rules = ask(&served, "rules");
    assert_eq!(rules["rules"].as_array().expect("rules").len(), 1000);
    mix.finish(&mut driver);
    mix.check_all(&mut driver);
}
