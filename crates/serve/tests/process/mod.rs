//! A server in a process of its own, at a socket, that can be killed: the tests' own program once more.
#![allow(dead_code)]

use super::attached::Attached;
use super::driver::Driver;
use super::lives::SEED;
use lodger_core::DriveSpec;
use lodger_serve::backing::Backing;
use lodger_serve::clock::Speed;
use lodger_serve::controller::Settings;
use lodger_serve::server::{Server, VfioUser};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Where the server is to be, and what drive, for the process that is one.
const FOLDER: &str = "LODGER_TEST_FOLDER";
const DRIVE: &str = "LODGER_TEST_DRIVE";

/// What a test does that is the other process; nothing in a run of the tests. `spec`: the drive of a name.
pub fn serve(spec: impl Fn(&str) -> DriveSpec, speed: f64) {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else {
        return;
    };
    let spec = spec(&std::env::var(DRIVE).expect("a drive"));
    let backing = Backing::open(&folder.join("flash"), &spec, SEED, &mut |_, _| {});
    let front = VfioUser::new(&spec, &Settings::default(), &folder.join("drive"));
    let speed = Speed::new(speed).expect("a speed");
    let mut server = Server::new(front.expect("a drive to serve"), speed);
    let controller = server.controller_mut();
    controller
        .keep_in(backing.expect("a file"))
        .expect("a drive");
    server.run(|| false).expect("it serves");
}

/// It is killed as this goes.
pub struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The process: that test of this program serves that drive.
pub fn start(test: &str, folder: &Path, drive: &str) -> (Killed, Driver<Attached>) {
    let socket = folder.join("drive");
    let _ = std::fs::remove_file(&socket);
    let program = std::env::current_exe().expect("this program");
    let child = Command::new(program)
        .args([test, "--exact"])
        .env(FOLDER, folder)
        .env(DRIVE, drive)
        .stdout(Stdio::null())
        .spawn();
    let child = Killed(child.expect("another process"));
    let since = Instant::now();
    while !socket.exists() {
        assert!(since.elapsed() < Duration::from_secs(60), "no socket");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(50));
    let mut driver = Driver::new(Attached::new(&socket));
    driver.enable();
    driver.create_queues(2);
    (child, driver)
}
