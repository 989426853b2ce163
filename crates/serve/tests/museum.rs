//! Does each exhibit of the museum (`faults/*.rules`) show at the socket what hosts have seen, and is it gone without its
//! rules? Each is shown with a client of vfio-user and a driver in this process; what only a kernel can show is not shown.
#![cfg(target_os = "linux")]

mod attached;
mod driver;

use attached::{Attached, PATIENCE, Served, spec};
use driver::mix::Mix;
use driver::{Driver, HMB_AT, MEMORY_BYTES, PAGE, Port};
use lodger_serve::clock::Speed;
use lodger_serve::controller::{STRAY_BYTES, Settings};
use lodger_serve::faults::Faults;
use lodger_serve::server::{Server, VfioUser};
use lodger_wire::memory::GuestMemory;
use lodger_wire::registers::offset;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

const READ: u8 = 2;
const WRITE: u8 = 1;
const HMB_BYTES: u64 = 256 << 10;
const SET_FEATURES: u8 = 9;
const GONE: u32 = u32::MAX;

/// A drive with the rules of an exhibit, or without.
fn exhibit(rules: &'static str, name: &str, speed: f64, on: bool) -> (Served, Driver<Attached>) {
    let name = format!("museum-{name}-{on}");
    let served = Served::start(&name, move |folder, owner| {
        let spec = spec(&[
            ("tier.hmb.integrity", "mac"),
            ("tier.hmb.max_descriptors", "8"),
            ("tier.hmb.min_descriptor", "8KiB"),
        ]);
        let front = VfioUser::new(&spec, &Settings::default(), &folder.join("drive"));
        let mut server = Server::new(front.expect("a drive"), Speed::new(speed).expect("a speed"));
        let faults = Faults::parse(if on { rules } else { "" }, 1).expect("rules");
        for (_, assignment) in faults.identify() {
            let identity = server.controller_mut().identity_mut();
            identity.assign(assignment).expect("a field");
        }
        server.controller_mut().set_faults(faults);
        owner.hears();
        server.run(|| owner.wants_the_end()).expect("it serves")
    });
    let mut driver = Driver::new(Attached::new(&served.path()));
    driver.enable();
    (served, driver)
}

macro_rules! rules {
    ($name:literal) => {
        include_str!(concat!("../../../faults/", $name, ".rules"))
    };
}

/// Whether the 64 bytes that a rule writes astray stand there.
fn is_stray(driver: &Driver<Attached>, at: u64) -> bool {
    let mut bytes = [0; 64];
    driver.port.memory().read(at, &mut bytes).expect("memory");
    &bytes == STRAY_BYTES
}

/// Waits until something is so; whether it has come to that.
fn comes(mut is_so: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !is_so() {
        if start.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// So long nothing is to happen, where it would with the rules.
fn pause() {
    std::thread::sleep(Duration::from_millis(50));
}

/// Whether something comes to be so with the rules, and does not without them.
fn comes_only_if(on: bool, mut is_so: impl FnMut() -> bool) -> bool {
    if on {
        return comes(is_so);
    }
    pause();
    !is_so()
}

fn csts(driver: &mut Driver<Attached>) -> u32 {
    driver.port.read(offset::CSTS)
}

/// Grants host memory beside the driver's own, and returns it.
fn lend(driver: &mut Driver<Attached>, bytes: u64, pieces: u64) -> File {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let file = File::from(rustix::fs::memfd_create("large", flags).expect("memory"));
    file.set_len(bytes).expect("memory");
    let client = &mut driver.port.client;
    let lent = client.dma_map(0, MEMORY_BYTES, bytes, file.as_raw_fd());
    lent.expect("memory is lent");
    let pages = (bytes / PAGE / pieces) as u32;
    for piece in 0..pieces {
        let mut descriptor = [0; 16];
        let address = MEMORY_BYTES + piece * u64::from(pages) * PAGE;
        descriptor[..8].copy_from_slice(&address.to_le_bytes());
        descriptor[8..12].copy_from_slice(&pages.to_le_bytes());
        let at = LIST_AT + 16 * piece;
        driver.port.memory().write(at, &descriptor).expect("a list");
    }
    let (all, low) = ((bytes / PAGE) as u32, LIST_AT as u32);
    let words = [0xd, 1, all, low, 0, pieces as u32];
    driver.admin(SET_FEATURES, 0, &words).expect("a grant");
    file
}

/// Where lists of pieces lie: behind what the driver uses of its own memory.
const LIST_AT: u64 = HMB_AT + (1 << 20);

#[test]
fn host_memory_is_given_and_never_answered() {
    for on in [true, false] {
        let (_served, mut driver) = exhibit(rules!("hmb-enable-dropped"), "dropped", 1.0, on);
        let command = lodger_wire::CommandId(driver.free_command(0));
        let words = [0xd, 1, 8, LIST_AT as u32, 0, 1];
        let mut entry = lodger_wire::entry::SubmissionEntry::new(
            SET_FEATURES,
            command,
            lodger_wire::NamespaceId::NONE,
        );
        for (index, word) in words.into_iter().enumerate() {
            entry = entry.with_dword(10 + index, word);
        }
        let mut descriptor = [0; 16];
        descriptor[..8].copy_from_slice(&HMB_AT.to_le_bytes());
        descriptor[8] = 8;
        driver.port.memory().write(LIST_AT, &descriptor).unwrap();
        driver.submit(0, entry);
        pause();
        assert_eq!(driver.reap(0).is_empty(), on);
        // The host gives up, resets, and tries again.
        driver.enable();
        driver.grant_host_memory(HMB_BYTES, false).expect("a grant");
        driver.create_queues(1);
        let mut mix = Mix::new(4096, 1);
        mix.run(&mut driver, 200, 8);
        mix.check_all(&mut driver);
    }
}

#[test]
fn the_drive_is_gone_as_host_memory_is_given() {
    for on in [true, false] {
        let (served, mut driver) = exhibit(rules!("hmb-enable-gone"), "gone", 1.0, on);
        if !on {
            driver.grant_host_memory(HMB_BYTES, false).expect("a grant");
            assert_ne!(csts(&mut driver), GONE);
            continue;
        }
        let command = lodger_wire::CommandId(driver.free_command(0));
        let none = lodger_wire::NamespaceId::NONE;
        let entry = lodger_wire::entry::SubmissionEntry::new(SET_FEATURES, command, none);
        driver.submit(0, entry.with_dword(10, 0xd).with_dword(11, 1));
        assert!(comes(|| csts(&mut driver) == GONE));
        let mut vendor = [0; 4];
        driver.port.client.region_read(7, 0, &mut vendor).unwrap();
        assert_eq!(vendor, [0xff; 4], "its configuration space, too");
        assert!(driver.reap(0).is_empty());
        // Plugged in again, it is there.
        drop(driver);
        let mut driver = Driver::new(Attached::new(&served.path()));
        driver.enable();
        driver.grant_host_memory(HMB_BYTES, false).expect("a grant");
    }
}

#[test]
fn host_memory_is_refused_with_8578() {
    for on in [true, false] {
        let (_served, mut driver) = exhibit(rules!("hmb-enable-refused"), "refused", 1.0, on);
        let given = driver.grant_host_memory(HMB_BYTES, false);
        match on {
            true => assert_eq!(given.unwrap_err().bits(), 8578),
            false => assert!(given.is_ok()),
        }
        driver.create_queues(1);
        let mut mix = Mix::new(4096, 2);
        mix.run(&mut driver, 200, 8);
        mix.check_all(&mut driver);
    }
}

#[test]
fn two_hundred_mebibytes_are_asked_for_and_taken_in_one_piece_or_many() {
    for on in [true, false] {
        for pieces in [1, 50] {
            let (_served, mut driver) = exhibit(rules!("large-request"), "large", 1.0, on);
            let page = driver.identify(1, 0);
            let asks = u32::from_le_bytes(page[272..276].try_into().unwrap());
            assert_eq!(asks == 51200, on, "HMPRE is {asks}");
            lend(&mut driver, 200 << 20, pieces);
            driver.create_queues(1);
            let mut mix = Mix::new(4096, 3);
            mix.run(&mut driver, 200, 8);
            mix.check_all(&mut driver);
        }
    }
}

#[test]
fn a_list_of_thousands_of_pieces_is_taken() {
    for on in [true, false] {
        let (_served, mut driver) = exhibit(rules!("long-list"), "list", 1.0, on);
        let page = driver.identify(1, 0);
        let limits = (page[332..336].to_vec(), page[336..338].to_vec());
        assert_eq!(limits == (vec![0; 4], vec![0; 2]), on, "HMMINDS, HMMAXD");
        let file = lend(&mut driver, 64 << 20, 8192);
        let list = driver.admin(10, 0, &[0xd]).map(|_| driver.scratch());
        let entries = list.expect("Get Features")[12..16].to_vec();
        assert_eq!(entries, 8192u32.to_le_bytes(), "whatever it uses of it");
        driver.create_queues(2);
        let mut mix = Mix::new(1 << 19, 7);
        mix.run(&mut driver, 1500, 16);
        mix.check_all(&mut driver);
        // Eight pieces of 8 KiB are what a drive with limits uses.
        let mut beyond = vec![0; 1 << 20];
        file.read_exact_at(&mut beyond, 64 << 10).expect("memory");
        assert_eq!(beyond.iter().any(|byte| *byte != 0), on);
    }
}

#[test]
fn deep_sleep_is_not_entered_without_host_memory() {
    for on in [true, false] {
        let (_served, mut driver) = exhibit(rules!("shallow-sleep"), "sleep", 1.0, on);
        let sleeps = |driver: &mut Driver<Attached>| {
            driver.admin(SET_FEATURES, 0, &[2, 1]).expect("it says so");
            let state = driver.admin(10, 0, &[2]).expect("a state") & 31;
            driver.admin(SET_FEATURES, 0, &[2, 0]).expect("awake");
            state
        };
        driver.grant_host_memory(HMB_BYTES, false).expect("a grant");
        assert_eq!(sleeps(&mut driver), 1, "with host memory");
        driver.take_host_memory_back().expect("back");
        assert_eq!(sleeps(&mut driver), u32::from(!on), "without");
    }
}

#[test]
fn host_memory_is_touched_asleep_when_it_is_the_hosts_again() {
    for on in [true, false] {
        let (_served, mut driver) = exhibit(rules!("touch-while-asleep"), "asleep", 1.0, on);
        driver.grant_host_memory(HMB_BYTES, false).expect("a grant");
        driver.take_host_memory_back().expect("back");
        pause();
        assert!(!is_stray(&driver, HMB_AT), "awake");
        driver.admin(SET_FEATURES, 0, &[2, 1]).expect("asleep");
        assert!(comes_only_if(on, || is_stray(&driver, HMB_AT)));
    }
}

#[test]
fn a_gibibyte_is_asked_for_and_less_is_enough() {
    for on in [true, false] {
        let (_served, mut driver) = exhibit(rules!("larger-than-pool"), "pool", 1.0, on);
        let page = driver.identify(1, 0);
        let asks = u32::from_le_bytes(page[272..276].try_into().unwrap());
        assert_eq!(u64::from(asks) * 4096 == 1 << 30, on);
        // The host gives what it has, and none to a second drive.
        driver.create_queues(1);
        let mut mix = Mix::new(4096, 4);
        mix.run(&mut driver, 200, 8);
        driver.grant_host_memory(HMB_BYTES, false).expect("a grant");
        mix.run(&mut driver, 200, 8);
        mix.check_all(&mut driver);
    }
}

#[test]
fn without_its_minimum_the_drive_hangs_after_eleven_hours() {
    // A day of the drive is a second.
    let speed = 86_400.0;
    for (on, grants) in [(true, false), (true, true), (false, false)] {
        let name = if grants { "granted" } else { "minimum" };
        let (_served, mut driver) = exhibit(rules!("minimum-above-cap"), name, speed, on);
        let page = driver.identify(1, 0);
        let least = u32::from_le_bytes(page[276..280].try_into().unwrap());
        assert_eq!(least == 16384, on, "HMMIN");
        if grants {
            driver.grant_host_memory(HMB_BYTES, false).expect("a grant");
        }
        std::thread::sleep(Duration::from_millis(600));
        let command = lodger_wire::CommandId(driver.free_command(0));
        let any = lodger_wire::NamespaceId::ALL;
        let entry = lodger_wire::entry::SubmissionEntry::new(READ, command, any);
        let log = entry.with_dword(10, 127 << 16 | 2).with_prp(PAGE, 0);
        driver.submit(0, log);
        pause();
        let hangs = on && !grants;
        assert_eq!(driver.reap(0).is_empty(), hangs, "{on} {grants}");
        assert_eq!(csts(&mut driver) & 1, 1, "the registers answer");
        if hangs {
            driver.port.write(offset::CC, 0);
            pause();
            assert_eq!(csts(&mut driver) & 1, 1, "no reset ends");
        }
    }
}

#[test]
fn a_large_grant_kills_the_drive_and_a_small_one_does_not() {
    for (on, bytes) in [(true, 200 << 20), (true, 64 << 20), (false, 200 << 20)] {
        let (_served, mut driver) = exhibit(rules!("large-grant"), "grant", 1.0, on);
        lend(&mut driver, bytes, 1);
        assert_ne!(csts(&mut driver), GONE, "the grant itself is good");
        if on && bytes > 64 << 20 {
            assert!(comes(|| csts(&mut driver) == GONE));
        } else {
            std::thread::sleep(Duration::from_millis(200));
            assert_ne!(csts(&mut driver), GONE);
        }
    }
}

#[test]
fn the_drive_is_gone_under_load_and_what_was_flushed_is_there() {
    for on in [true, false] {
        let (served, mut driver) = exhibit(rules!("gone-under-load"), "load", 1.0, on);
        driver.grant_host_memory(HMB_BYTES, false).expect("a grant");
        driver.create_queues(2);
        let entry = driver.entry(1, WRITE, 4096, 8);
        let buffer = driver.io[0].buffer(entry.command().0);
        let data = [0x5a; 4096];
        driver.port.memory().write(buffer, &data).unwrap();
        driver.run(1, entry).expect("a write");
        let entry = driver.entry(1, 0, 0, 0);
        driver.run(1, entry).expect("a flush");
        // Many commands at once, without a message for each.
        driver.use_shadows();
        let mut is_gone = false;
        for round in 0..60 {
            for _ in 0..16 {
                let entry = driver.entry(2, READ, round * 8, 8);
                driver.submit(2, entry);
            }
            let (all, start) = (&mut driver, Instant::now());
            while !all.io[1].under_way.is_empty() && !is_gone {
                all.reap(2);
                is_gone = csts(all) == GONE;
                assert!(start.elapsed() < PATIENCE);
            }
            if is_gone {
                break;
            }
        }
        assert_eq!(is_gone, on);
        drop(driver);
        let mut driver = Driver::new(Attached::new(&served.path()));
        driver.enable();
        driver.create_queues(1);
        let entry = driver.entry(1, READ, 4096, 8);
        let buffer = driver.io[0].buffer(entry.command().0);
        driver.run(1, entry).expect("a read");
        let mut read = [0; 4096];
        driver.port.memory().read(buffer, &mut read).unwrap();
        assert!(read == data);
    }
}

#[test]
fn the_drive_writes_beside_its_host_memory() {
    for on in [true, false] {
        let (_served, mut driver) = exhibit(rules!("stray-write"), "stray", 1.0, on);
        driver.grant_host_memory(HMB_BYTES, false).expect("a grant");
        driver.create_queues(1);
        // The driver's last piece, of eight, ends here.
        let beside = HMB_AT + 7 * (64 << 10) + (32 << 10);
        assert!(!is_stray(&driver, beside));
        for _ in 0..2 {
            let entry = driver.entry(1, WRITE, 0, 8);
            driver.run(1, entry).expect("a write");
        }
        assert_eq!(is_stray(&driver, beside), on);
    }
}

/// Bytes of host memory, after commands that make the drive use some if it has it.
fn used(driver: &mut Driver<Attached>, mix: &mut Mix) -> bool {
    let before = driver.host_memory(HMB_BYTES);
    mix.run(driver, 1500, 16);
    mix.finish(driver);
    driver.host_memory(HMB_BYTES) != before
}

#[test]
fn host_memory_is_used_after_it_was_taken_back() {
    for on in [true, false] {
        let (_served, mut driver) = exhibit(rules!("use-after-disable"), "after", 1.0, on);
        driver.grant_host_memory(HMB_BYTES, false).expect("a grant");
        driver.create_queues(2);
        let mut mix = Mix::new(1 << 19, 5);
        assert!(used(&mut driver, &mut mix), "while it is granted");
        driver.take_host_memory_back().expect("it says so");
        assert_eq!(used(&mut driver, &mut mix), on);
    }
}

#[test]
fn host_memory_of_before_a_reset_is_touched() {
    for on in [true, false] {
        let (_served, mut driver) = exhibit(rules!("use-after-reset"), "reset", 1.0, on);
        driver.grant_host_memory(HMB_BYTES, false).expect("a grant");
        driver.enable();
        assert!(comes_only_if(on, || is_stray(&driver, HMB_AT)));
    }
}

#[test]
fn sixty_four_bytes_of_every_seventh_read_are_stale() {
    for on in [true, false] {
        let (_served, mut driver) = exhibit(rules!("stale-reads"), "stale", 1.0, on);
        driver.create_queues(1);
        let entry = driver.entry(1, WRITE, 0, 8);
        let buffer = driver.io[0].buffer(entry.command().0);
        driver.port.memory().write(buffer, &[7; 4096]).unwrap();
        driver.run(1, entry).expect("a write");
        let mut stale = Vec::new();
        for read in 0..15 {
            let entry = driver.entry(1, READ, 0, 8);
            let buffer = driver.io[0].buffer(entry.command().0);
            driver.port.memory().write(buffer, &[9; 4096]).unwrap();
            driver.run(1, entry).expect("a read");
            let mut bytes = [0; 4096];
            driver.port.memory().read(buffer, &mut bytes).unwrap();
            let old = bytes.iter().filter(|byte| **byte == 9).count();
            if old > 0 {
                assert_eq!((old, bytes[64], bytes[127]), (64, 9, 9));
                stale.push(read);
            }
        }
        let wanted: &[u32] = if on { &[0, 7, 14] } else { &[] };
        assert_eq!(stale, wanted);
    }
}

/// Not of the drives here, but of an emulator (OpenVMM 4080): it went on with shadow doorbells of before a reset.
#[test]
fn shadow_doorbells_are_forgotten_at_a_reset() {
    for resets in [true, false] {
        let (_served, mut driver) = exhibit("", "shadows", 1.0, resets);
        driver.create_queues(1);
        driver.use_shadows();
        let mut mix = Mix::new(4096, 6);
        mix.run(&mut driver, 50, 4);
        mix.finish(&mut driver);
        if resets {
            driver.enable();
        }
        // The event indices, which the drive writes.
        let at = driver::SHADOWS_AT + PAGE;
        let fill = [0xee; PAGE as usize];
        driver.port.memory().write(at, &fill).expect("memory");
        if resets {
            driver.create_queues(1);
        }
        let entry = driver.entry(1, READ, 0, 8);
        driver.submit(1, entry);
        assert!(comes(|| !driver.reap(1).is_empty()));
        pause();
        let mut bytes = [0; PAGE as usize];
        driver.port.memory().read(at, &mut bytes).expect("memory");
        assert_eq!(bytes == fill, resets);
    }
}
