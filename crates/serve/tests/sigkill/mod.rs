//! A server in a process of its own, at a socket, that is killed while commands are under way. What it has acknowledged stands in
//! the client's memory, which outlives it.

use super::attached::Attached;
use super::driver::{Driver, Port};
use super::kept::Naive;
use super::lives::{read_all, small, take, work_on};
use super::process::{self, Killed};
use super::{naive, protected};
use lodger_core::DriveSpec;
use lodger_core::rng::Rng;
use std::path::Path;

/// So slow that something is in the buffer whenever the process ends.
const SPEED: f64 = 0.05;
/// Kills that are to meet commands under way, and kills at most.
const KILLS: u32 = 4;
const KILLS_MAX: u32 = 40;

fn drive(buffer: &str) -> DriveSpec {
    match buffer {
        "protected" => protected(&[]),
        _ => small(&[]),
    }
}

#[test]
fn a_server_until_it_is_killed() {
    process::serve(drive, SPEED);
}

fn start(folder: &Path, buffer: &str) -> (Killed, Driver<Attached>) {
    process::start("sigkill::a_server_until_it_is_killed", folder, buffer)
}

fn check(driver: &mut Driver<impl Port>, naive: &mut Naive) -> Result<(), String> {
    let all = read_all(driver);
    let holds = |lba: u64| {
        let bytes = &all[lba as usize * 512..][..512];
        bytes.try_into().expect("a block")
    };
    naive.restart(holds).map(|_| ())
}

/// Lives of a drive with such a buffer, each ended by SIGKILL, beside a naive drive that loses nothing it has acknowledged.
/// Returns how many commands were under way as it came.
fn lives(buffer: &str) -> Result<usize, String> {
    let name = format!("lodger-sigkill-{buffer}-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    let (mut naive, mut rng) = (naive(11), Rng::new(12));
    let (mut kills, mut met, mut in_flight) = (0, 0, 0);
    let mut ended = Ok(());
    while met < KILLS && ended.is_ok() {
        kills += 1;
        assert!(kills <= KILLS_MAX, "commands end before the process does");
        let (child, mut driver) = start(&folder, buffer);
        ended = check(&mut driver, &mut naive);
        let commands = 20 + rng.below(200);
        let worked = work_on(&mut driver, &mut naive, commands, 1 + rng.below(3));
        let mut under_way = worked.expect("it works");
        // SIGKILL: nothing of it runs any more. Some commands have ended before it came.
        drop(child);
        driver.port.is_gone = true;
        take(&mut driver, &mut naive, &mut under_way).expect("it works");
        in_flight += under_way.len();
        met += u32::from(!under_way.is_empty());
    }
    if ended.is_ok() {
        let (child, mut driver) = start(&folder, buffer);
        ended = check(&mut driver, &mut naive);
        drop(child);
    }
    std::fs::remove_dir_all(&folder).expect("it is gone");
    ended.map(|()| in_flight)
}

#[test]
fn what_was_acknowledged_over_the_socket_is_there_after_sigkill() {
    let in_flight = lives("protected").unwrap_or_else(|what| panic!("{what}"));
    println!("{in_flight} commands were under way at {KILLS} kills");
}

/// The null: a volatile buffer has acknowledged what was not flushed, and the process takes it along.
#[test]
fn a_volatile_buffer_loses_what_it_has_acknowledged_over_the_socket() {
    let lost = lives("volatile").expect_err("something was not flushed");
    assert!(lost.contains("block"), "{lost}");
}
