//! What the experiments of Kim & Kim (PLOS ONE 2020) find on their drives A, B and C, and on a drive
//! that does what none of theirs did: keep data in host memory. Sizes around the knees only; the
//! studies `hmb-study-*` draw whole figures with the same functions.

use lodger_run::hmb_study::{Twice, map_cache, read_cache, write_buffer};
use lodger_run::{Command, Drive, HmbChoice, RunConfig, Session};
use std::ops::ControlFlow;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Enough to fill any cache of these tests; the paper's is 512 MB, for host memory of 480.
const FLOOD: u64 = 8 * MIB;
const ON: HmbChoice = HmbChoice::Exactly(64 * MIB);

fn session(name: &str, sets: &[(&str, &str)], hmb: HmbChoice) -> Session {
    let drive = Drive::open(name, sets).unwrap();
    let config = RunConfig {
        hmb,
        ..RunConfig::new(drive)
    };
    Session::open(&config).unwrap()
}

fn sizes(kib: impl IntoIterator<Item = u64>) -> Vec<u64> {
    kib.into_iter().map(|kib| kib * KIB).collect()
}

/// Sizes every 4 KiB around `kib`.
fn around(kib: u64) -> Vec<u64> {
    sizes((kib - 24..kib + 24).step_by(4))
}

/// Where the second curve makes its first step of more than `times` its median step: the last size
/// before it, KiB.
fn first_step(sizes: &[u64], twice: &[Twice], times: i64) -> Option<u64> {
    let steps: Vec<i64> = twice
        .windows(2)
        .map(|pair| pair[1].again_ps as i64 - pair[0].again_ps as i64)
        .collect();
    let mut sorted: Vec<i64> = steps.iter().map(|step| step.abs()).collect();
    sorted.sort_unstable();
    let median = sorted[sorted.len() / 2].max(1);
    let at = steps.iter().position(|&step| step > times * median)?;
    Some(sizes[at] / KIB)
}

fn read(name: &str, sets: &[(&str, &str)], hmb: HmbChoice, sizes: &[u64]) -> Vec<Twice> {
    let watch = &mut |_| ControlFlow::Continue(());
    read_cache(&mut session(name, sets, hmb), sizes, FLOOD, watch).unwrap()
}

fn write(name: &str, sets: &[(&str, &str)], hmb: HmbChoice, sizes: &[u64]) -> Vec<Twice> {
    let watch = &mut |_| ControlFlow::Continue(());
    write_buffer(&mut session(name, sets, hmb), sizes, FLOOD, watch).unwrap()
}

fn again(twice: &[Twice]) -> Vec<u64> {
    twice.iter().map(|twice| twice.again_ps).collect()
}

#[test]
fn reads_come_from_a_buffer_that_is_not_in_host_memory() {
    for (name, kib) in [("a80", 32), ("ex900", 768), ("m730", 512)] {
        let at = around(kib);
        let with = read(name, &[], ON, &at);
        assert_eq!(first_step(&at, &with, 10), Some(kib), "{name}");
        let without = read(name, &[], HmbChoice::Off, &at);
        let (with, without) = (again(&with), again(&without));
        assert_eq!(with[1..], without[1..], "{name}: the same curve");
        // Beside the first, the unit of the map that it has missed is still being written to host memory, over
        // the same link. Once that is done, it is the same, too.
        assert!(with[0] >= without[0], "{name}");
        assert_eq!(after_a_pause(name, ON, at[0]), without[0], "{name}");
        assert_eq!(after_a_pause(name, HmbChoice::Off, at[0]), without[0]);
    }
}

/// The second read of the first round of Algorithm 1, when the drive has had a millisecond between the two.
fn after_a_pause(name: &str, hmb: HmbChoice, size: u64) -> u64 {
    let mut session = session(name, &[], hmb);
    let end = session.capacity_bytes();
    let piece = 128 * KIB;
    let flood = (end - FLOOD..end).step_by(piece as usize);
    let flood: Vec<Command> = flood.map(|at| Command::read(at, piece)).collect();
    session.batch(&flood, 1).unwrap();
    session.run(Command::read(0, size)).unwrap();
    session.idle(1_000_000_000);
    session.run(Command::read(0, size)).unwrap()
}

#[test]
fn writes_go_to_a_buffer_that_is_not_in_host_memory() {
    let at = around(964);
    let with = write("a80", &[], ON, &at);
    assert_eq!(first_step(&at, &with, 10), Some(964));
    let without = write("a80", &[], HmbChoice::Off, &at);
    assert_eq!(again(&with), again(&without), "the same curve");
    // Drives B and C show no knee up to 2048 KB, with host memory or without.
    let at = sizes((64..=2048).step_by(64));
    for name in ["ex900", "m730"] {
        for hmb in [ON, HmbChoice::Off] {
            assert_eq!(
                first_step(&at, &write(name, &[], hmb, &at), 10),
                None,
                "{name}"
            );
        }
    }
}

#[test]
fn the_map_is_in_host_memory() {
    let mean_us = |name: &str, hmb, at: &[u64]| -> Vec<u64> {
        let watch = &mut |_| ControlFlow::Continue(());
        let rounds = map_cache(&mut session(name, &[], hmb), at, watch).unwrap();
        rounds
            .iter()
            .map(|round| round.mean_ps / 1_000_000)
            .collect()
    };
    // Published: knees at 2000, 4000, 8000 and 16000 sections, read off a grid of 100.
    for (mib, last_fast) in [(8, 2000), (64, 16_300)] {
        let us = mean_us(
            "a80",
            HmbChoice::Exactly(mib * MIB),
            &[last_fast, last_fast + 100],
        );
        assert!(us[0] < 90 && us[1] > 140, "{mib} MiB: {us:?}");
    }
    let off = mean_us("m730", HmbChoice::Off, &[200, 2000]);
    assert!(off.iter().all(|&us| us > 140), "slow throughout: {off:?}");
}

/// What none of the paper's drives did; the same experiments must find it.
#[test]
fn the_experiments_find_data_in_host_memory_where_there_is_some() {
    let cache = [
        ("role.read_cache.tier", "hmb"),
        ("role.read_cache.size", "1MiB"),
        ("role.write_buffer.size", "128KiB"),
    ];
    let at = around(1024);
    let with = read("a80", &cache, ON, &at);
    assert_eq!(first_step(&at, &with, 10), Some(1024));
    let without = read("a80", &cache, HmbChoice::Off, &at);
    assert_eq!(first_step(&at, &without, 10), None, "gone with the memory");
    assert!(without[0].again_ps > with[0].again_ps);

    let buffer = [
        ("role.write_buffer.tier", "hmb"),
        // Not 1280: there its host parts requests.
        ("role.write_buffer.size", "1MiB"),
    ];
    let at = around(1024);
    let with = write("a80", &buffer, ON, &at);
    assert_eq!(first_step(&at, &with, 10), Some(1024));
    let without = write("a80", &buffer, HmbChoice::Off, &at);
    assert_eq!(first_step(&at, &without, 10), None, "gone with the memory");
}

#[test]
fn impossible_settings_are_errors_and_an_end_is_possible() {
    let go = &mut |_| ControlFlow::Continue(());
    let mut tiny = session("tiny", &[], HmbChoice::Off);
    assert!(read_cache(&mut tiny, &[0], MIB, go).is_err());
    assert!(read_cache(&mut tiny, &[4096], 1 << 40, go).is_err());
    assert!(map_cache(&mut tiny, &[0], go).is_err());
    assert!(map_cache(&mut tiny, &[1 << 40], go).is_err());
    let stop = &mut |_| ControlFlow::Break(());
    assert!(map_cache(&mut tiny, &[1, 2], stop).is_err());
}
