//! Does a recording of a live drive, done again in simulated time, give the same completions to the picosecond? And does
//! the comparison see it when they are not?

#[cfg(target_os = "linux")]
mod attached;
mod driver;
mod simulated;

use driver::mix::Mix;
use driver::{Driver, Port};
use lodger_core::DriveSpec;
use lodger_core::rng::Rng;
use lodger_run::replay::{self, Replayed};
use lodger_run::{Drive, RunConfig};
use lodger_serve::controller::Sink;
use lodger_wire::command::window::opcode;
use lodger_wire::entry::SubmissionEntry;
use lodger_wire::memory::{GuestMemory, Ram};
use lodger_wire::{CommandId, NamespaceId};
use lodger_workload::live::Doubt;
use simulated::{Simulated, ram, spec};
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Bytes of host memory that are granted.
const HMB_BYTES: u64 = 256 << 10;
/// Chance in the drive shows in times, and its host memory is checked.
const SETS: [(&str, &str); 2] = [
    ("tier.hmb.integrity", "mac"),
    ("role.map.replacement", "random"),
];

/// A file in memory, and how much of it was flushed.
#[derive(Clone, Default)]
struct File(Arc<Mutex<Vec<u8>>>, Arc<AtomicUsize>);

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.1.store(self.bytes().len(), Ordering::SeqCst);
        Ok(())
    }
}

impl File {
    fn sink(&self) -> Sink {
        Box::new(self.clone())
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

fn again(bytes: &[u8], sets: &[(&str, &str)], seed: u64) -> Replayed {
    let config = RunConfig {
        seed,
        ..RunConfig::new(Drive::open("tiny", sets).expect("a drive"))
    };
    let recording = replay::open(bytes, "file").expect("a recording");
    replay::replay(&config, recording, "file", &mut ()).expect("a replay")
}

/// A host that looks when it likes, so that completions are taken late.
struct Late<'a> {
    inner: Simulated<'a>,
    rng: Rng,
}

impl<'a> Port for Late<'a> {
    type Memory = &'a Ram;

    fn memory(&self) -> &&'a Ram {
        self.inner.memory()
    }

    fn read(&mut self, at: u64) -> u32 {
        self.inner.read(at)
    }

    fn write(&mut self, at: u64, value: u32) {
        self.inner.write(at, value);
    }

    fn wait(&mut self) -> bool {
        if self.rng.below(3) == 0 {
            self.inner.now_ps += u64::from(self.rng.below(30_000_000));
        }
        self.inner.wait()
    }
}

fn late<'a>(spec: &DriveSpec, ram: &'a Ram, file: &File, seed: u64) -> Driver<Late<'a>> {
    let driver = Simulated::driver(spec, ram);
    let mut inner = driver.port;
    inner
        .controller
        .record_to(file.sink())
        .expect("a recording");
    Driver::new(Late {
        inner,
        rng: Rng::new(seed),
    })
}

/// Whatever a host does: commands of several queues, host memory given and taken, resets, formats, shutdowns.
fn live_long<P: Port>(driver: &mut Driver<P>, rng: &mut Rng, rounds: u32) -> Mix {
    driver.enable();
    driver.create_queues(3);
    let mut mix = Mix::new(1 << 19, u64::from(rng.below(1000)));
    let mut has_memory = false;
    for _ in 0..rounds {
        mix.run(driver, rng.below(300).into(), 1 + rng.below(40) as usize);
        match rng.below(8) {
            0..3 if has_memory => {
                driver.take_host_memory_back().expect("host memory back");
                has_memory = false;
            }
            0..3 => {
                let pieces = 1 + u64::from(rng.below(8));
                let bytes = pieces * HMB_BYTES / 8;
                driver.grant_host_memory(bytes, false).expect("host memory");
                has_memory = true;
            }
            3 => {
                mix.finish(driver);
                driver.enable();
                driver.create_queues(1 + rng.below(4) as u16);
                has_memory = false;
            }
            4 => {
                mix.finish(driver);
                driver.shutdown();
                driver.enable();
                driver.create_queues(2);
                has_memory = false;
            }
            _ => {}
        }
    }
    mix.finish(driver);
    mix.check_all(driver);
    mix
}

#[test]
fn a_recording_gives_the_same_completions() {
    for case in 0..lodger_testing::cases(6) {
        let seed = lodger_testing::seed().unwrap_or(100) + u64::from(case);
        let (ram, file) = (ram(), File::default());
        let mut driver = late(&spec(&SETS), &ram, &file, seed);
        live_long(&mut driver, &mut Rng::new(seed), 12);
        let controller = &mut driver.port.inner.controller;
        controller.end_record().expect("it is written");
        let counters = controller.device().counters();
        let replayed = again(&file.bytes(), &SETS, 1);
        assert_eq!(replayed.first_difference, None, "seed {seed}");
        assert!(replayed.is_same && replayed.different == 0);
        assert!(replayed.compared > 500 && replayed.doubts.is_empty());
        assert_eq!((replayed.left, replayed.is_cut), (0, false));
        let result = &replayed.result;
        assert_eq!(result.requests, counters.completions);
        let summary = |of: &lodger_core::observe::Counters| (of.map.hits, of.map.misses, of.erases);
        assert_eq!(summary(&result.counters), summary(&counters));
        assert!(result.hmb.granted_bytes > 0);
        // The null: the same with another seed, or another drive.
        let other = again(&file.bytes(), &SETS, 2);
        assert!(!other.is_same && other.different > 0, "seed {seed}");
        assert_eq!(other.compared, replayed.compared);
        let slower = [SETS[0], SETS[1], ("nand.read", "100us")];
        let slower = again(&file.bytes(), &slower, 1);
        assert!(!slower.is_same && slower.different > 0);
        assert_eq!(slower.compared, replayed.compared);
    }
}

#[test]
fn what_a_host_has_done_to_its_memory_is_a_doubt() {
    let (ram, file) = (ram(), File::default());
    let mut driver = late(&spec(&SETS), &ram, &file, 5);
    driver.enable();
    driver.create_queues(1);
    driver.grant_host_memory(HMB_BYTES, false).expect("memory");
    let mut mix = Mix::new(1 << 19, 5);
    mix.run(&mut driver, 400, 8);
    let all = vec![0x5a; 2 * HMB_BYTES as usize];
    driver.port.memory().write(driver::HMB_AT, &all).unwrap();
    mix.run(&mut driver, 400, 8);
    mix.finish(&mut driver);
    mix.check_all(&mut driver);
    driver.port.inner.controller.end_record().expect("written");
    let replayed = again(&file.bytes(), &SETS, 1);
    assert_eq!(replayed.doubts, [Doubt::HostMemory]);
}

#[test]
fn commands_that_a_reset_took_away_are_in_it() {
    let (ram, file) = (ram(), File::default());
    let mut driver = late(&spec(&SETS), &ram, &file, 9);
    for round in 0..20 {
        driver.enable();
        driver.create_queues(2);
        for index in 0..30 {
            let (queue, write) = (1 + index % 2, 1 + (index / 3 % 2) as u8);
            let lba = (round * 30 + index as u64) * 8;
            let entry = driver.entry(queue, write, lba, 8);
            driver.submit(queue, entry);
        }
        let format = SubmissionEntry::new(0x80, CommandId(30), NamespaceId(1));
        if round % 7 == 3 {
            driver.submit(0, format);
        }
        driver.port.wait();
        driver.port.wait();
        // Reset with all of it under way.
    }
    driver.enable();
    driver.port.inner.controller.end_record().expect("written");
    let replayed = again(&file.bytes(), &SETS, 1);
    assert_eq!(replayed.first_difference, None);
    assert!(replayed.compared > 100, "{}", replayed.compared);
}

/// A file that ends early is done as far as it goes; one that makes no sense is an error.
#[test]
fn files_that_are_cut_off_or_wrong_do_no_harm() {
    let (ram, file) = (ram(), File::default());
    let mut driver = late(&spec(&SETS), &ram, &file, 3);
    live_long(&mut driver, &mut Rng::new(3), 3);
    driver.port.inner.controller.end_record().expect("written");
    let bytes = file.bytes();
    let half = again(&bytes[..bytes.len() / 2], &SETS, 1);
    assert!(half.is_cut && half.different == 0 && half.compared > 0);
    let config = RunConfig::new(Drive::open("tiny", &SETS).expect("a drive"));
    let (mut rng, mut refused) = (Rng::new(11), 0);
    for _ in 0..lodger_testing::cases(60) {
        let mut bytes = bytes[..bytes.len().min(6000)].to_vec();
        for _ in 0..=rng.below(4) {
            let at = 60 + rng.below(bytes.len() as u32 - 60) as usize;
            bytes[at] = rng.below(256) as u8;
        }
        let recording = replay::open(&bytes[..], "file").expect("its head is whole");
        match replay::replay(&config, recording, "file", &mut ()) {
            Ok(_) => {}
            Err(error) => {
                assert!(error.message.contains("recording `file`"), "{error:?}");
                refused += 1;
            }
        }
    }
    assert!(refused > 5, "{refused}");
}

/// Over the socket, in real time and at once, with interrupts, shadow doorbells and several queues.
#[cfg(target_os = "linux")]
#[test]
fn a_live_run_over_the_socket_gives_the_same_completions() {
    for (name, speed) in [("record-at-once", 0.0), ("record", 1.0)] {
        let file = File::default();
        let served = attached::Served::recording(name, speed, &SETS, Some(file.sink()));
        let mut driver = Driver::new(attached::Attached::new(&served.path()));
        let mut mix = live_long(&mut driver, &mut Rng::new(7), 6);
        driver.enable();
        driver.create_queues(4);
        driver.use_shadows();
        mix.run(&mut driver, 1000, 24);
        mix.finish(&mut driver);
        drop(driver);
        let report = served.end();
        let replayed = again(&file.bytes(), &SETS, 1);
        assert_eq!(replayed.first_difference, None, "{name}");
        assert!(replayed.is_same && replayed.compared > 1000);
        assert_eq!(replayed.result.requests, report.lateness.count());
        assert!(replayed.doubts.is_empty() && replayed.left == 0);
        let other = again(&file.bytes(), &SETS, 2);
        assert!(other.different > 0, "the null");
        println!(
            "{name}: {} completions, {} bytes",
            replayed.compared,
            file.bytes().len()
        );
    }
}

/// What was recorded waited for the next command: of a server that was killed after a while without one, all was gone.
#[cfg(target_os = "linux")]
#[test]
fn what_was_recorded_is_in_the_file_when_nothing_is_asked_any_more() {
    let file = File::default();
    let served = attached::Served::recording("record-idle", 1.0, &SETS, Some(file.sink()));
    let mut driver = Driver::new(attached::Attached::new(&served.path()));
    let mut mix = live_long(&mut driver, &mut Rng::new(7), 1);
    mix.finish(&mut driver);
    let end = Instant::now() + Duration::from_secs(30);
    while file.bytes().is_empty() || file.1.load(Ordering::SeqCst) < file.bytes().len() {
        assert!(Instant::now() < end, "it is not flushed");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(driver);
    served.end();
}

#[test]
fn calls_of_the_byte_window_are_a_doubt() {
    let file = File::default();
    let sets = [("capacity", "16GiB")];
    let drive = Drive::open("2b-ssd", &sets).expect("a drive");
    let ram = ram();
    let mut driver = Simulated::driver(drive.spec(), &ram);
    let controller = &mut driver.port.controller;
    controller.record_to(file.sink()).expect("a recording");
    driver.enable();
    driver.create_queues(1);
    for _ in 0..2 {
        // No such entry: the drive has looked for it all the same.
        let sync = driver.entry(1, opcode::SYNC, 0, 1);
        driver.run(1, sync).expect_err("not pinned");
    }
    driver.port.controller.end_record().expect("written");
    let config = RunConfig::new(drive);
    let bytes = file.bytes();
    let recording = replay::open(&bytes[..], "file").expect("a recording");
    let replayed = replay::replay(&config, recording, "file", &mut ()).expect("a replay");
    assert_eq!(replayed.doubts, [Doubt::Window]);
}

/// They were recorded as reads, whose data goes to the host.
#[test]
fn verify_and_compare_are_done_again_as_what_they_were() {
    let (ram, file) = (ram(), File::default());
    let sets = [SETS[0], SETS[1], ("link.pcie", "1.0 x1")];
    let mut driver = late(&spec(&sets), &ram, &file, 4);
    driver.enable();
    driver.create_queues(1);
    for round in 0..40 {
        // Write, compare, read, verify.
        let opcode = [1, 5, 2, 0xc][round % 4];
        let entry = driver.entry(1, opcode, round as u64 / 4 * 64, 64);
        driver.run(1, entry).expect("zeros are zeros");
    }
    let controller = &mut driver.port.inner.controller;
    controller.end_record().expect("written");
    let moved = |of: &lodger_core::observe::Counters| {
        let bytes = (of.link_to_host_bytes, of.link_from_host_bytes);
        (bytes, of.host_read_bytes)
    };
    let live = moved(&controller.device().counters());
    let replayed = again(&file.bytes(), &sets, 1);
    assert_eq!(replayed.first_difference, None);
    assert!(replayed.is_same && replayed.compared == 40);
    assert_eq!(moved(&replayed.result.counters), live);
    let data = 10 * 64 * 512;
    let ((to_host, from_host), _) = live;
    assert!((data..2 * data).contains(&to_host), "{to_host}: reads");
    let both = 2 * data..3 * data;
    assert!(both.contains(&from_host), "{from_host}");
}
