//! Which way does the data of Read, Verify and Compare go, how long does that take, and what is counted? In simulated time, on
//! a link that is slower than flash.

mod driver;
mod simulated;

use driver::{Driver, number};
use lodger_core::DriveSpec;
use simulated::{Simulated, ram, spec};

const WRITE: u8 = 1;
const READ: u8 = 2;
const COMPARE: u8 = 5;
const VERIFY: u8 = 0xc;
/// Blocks of a command, and their bytes.
const BLOCKS: u32 = 128;
const BYTES: u64 = BLOCKS as u64 * 512;
/// PCI Express 1.0 x1: 250 MB/s, of which packets take a part.
const LINK_PS: u64 = BYTES * 1_000_000_000_000 / 250_000_000;
/// A command's entry and its completion, and no more.
const ENTRIES: u64 = 100;

fn slow() -> DriveSpec {
    spec(&[("link.pcie", "1.0 x1")])
}

/// Does one command; what went to the host and came from it, and how long it took, picoseconds.
fn cost(driver: &mut Driver<Simulated<'_>>, opcode: u8) -> (u64, u64, u64) {
    let moved = |driver: &Driver<Simulated<'_>>| {
        let counters = driver.port.controller.device().counters();
        (counters.link_to_host_bytes, counters.link_from_host_bytes)
    };
    let (before, from_ps) = (moved(driver), driver.port.now_ps);
    let entry = driver.entry(1, opcode, 0, BLOCKS);
    driver.run(1, entry).expect("a command");
    let after = moved(driver);
    let took_ps = driver.port.now_ps - from_ps;
    (after.0 - before.0, after.1 - before.1, took_ps)
}

/// A drive with data that is in flash.
fn written<'a>(driver: &mut Driver<Simulated<'a>>) {
    driver.enable();
    driver.create_queues(1);
    cost(driver, WRITE);
    let flush = driver.entry(1, 0, 0, 0);
    driver.run(1, flush).expect("a flush");
}

/// Both went to the host, as reads do.
#[test]
fn verify_moves_no_data_and_compare_takes_the_hosts() {
    let ram = ram();
    let mut driver = Simulated::driver(&slow(), &ram);
    written(&mut driver);
    let (to_host, from_host, read_ps) = cost(&mut driver, READ);
    assert!(to_host >= BYTES && from_host < ENTRIES);
    assert!(read_ps > LINK_PS);
    let (to_host, from_host, verify_ps) = cost(&mut driver, VERIFY);
    assert!(to_host < ENTRIES && from_host < ENTRIES, "{to_host}");
    assert!(verify_ps + LINK_PS / 2 < read_ps, "{verify_ps} {read_ps}");
    let (to_host, from_host, compare_ps) = cost(&mut driver, COMPARE);
    assert!(to_host < ENTRIES, "{to_host}");
    assert!((BYTES..BYTES + ENTRIES).contains(&from_host), "{from_host}");
    // Its two sides come at the same time.
    assert!(compare_ps > LINK_PS.max(verify_ps));
    assert!(compare_ps < LINK_PS * 3 / 2 + verify_ps, "{compare_ps}");
}

/// As the NVM Command Set has it (1.0, §1.4): all three count as data read, Verify not as a command that reads.
#[test]
fn what_verify_reads_is_data_read_and_no_read_command() {
    let ram = ram();
    let mut driver = Simulated::driver(&slow(), &ram);
    written(&mut driver);
    let mut counted = |opcode| {
        for _ in 0..20 {
            cost(&mut driver, opcode);
        }
        let page = driver.log(2, 512);
        (number(&page, 32, 8), number(&page, 64, 8))
    };
    // 20 x 64 KiB are 2.56 units of 512,000 B.
    assert_eq!(counted(READ), (3, 20));
    assert_eq!(counted(VERIFY), (6, 20));
    assert_eq!(counted(COMPARE), (8, 40));
}
