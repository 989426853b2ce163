//! A guest that does what it likes: registers, doorbells, commands and host memory at random, in simulated time.
//! Nothing panics or waits for ever, and after a reset the drive serves as if nothing had been.

mod driver;
mod simulated;

use driver::mix::Mix;
use driver::{Driver, MEMORY_BYTES, Port};
use lodger_core::rng::Rng;
use lodger_serve::controller::Controller;
use lodger_wire::memory::{GuestMemory, Ram};
use lodger_wire::registers::offset;
use simulated::{Simulated, ram, spec};

/// Where the data of the driver's admin commands lies.
const DATA_AT: u64 = 0x4000;
/// Where queues and lists of the hostile guest lie: low, so that addresses drawn hit them.
const LOW: u32 = 1 << 20;

/// A command: often one there is, with fields that are often small, and addresses that often lead somewhere.
fn command(rng: &mut Rng) -> [u8; 64] {
    let mut bytes = [0; 64];
    for dword in bytes.chunks_exact_mut(4) {
        let value = match rng.below(4) {
            0 => 0,
            1 => rng.below(16),
            2 => rng.below(LOW),
            _ => rng.next_u64() as u32,
        };
        dword.copy_from_slice(&value.to_le_bytes());
    }
    const CODES: [u8; 24] = [
        0, 1, 2, 4, 5, 6, 8, 9, 0xa, 0xc, 0xd, 0x10, 0x11, 0x14, 0x15, 0x18, 0x7c, 0x80, 0x84, 9,
        9, 1, 5, 0xd,
    ];
    bytes[0] = CODES[rng.below(CODES.len() as u32) as usize];
    bytes[1] = if rng.below(4) == 0 { bytes[1] } else { 0 };
    let namespace = match rng.below(8) {
        0 => 0,
        1 => [2, 3, u32::MAX][rng.below(3) as usize],
        _ => 1,
    };
    bytes[4..8].copy_from_slice(&namespace.to_le_bytes());
    for at in [24, 32] {
        let address = u64::from(rng.below(LOW)) & if rng.below(4) == 0 { !0 } else { !0xfff };
        bytes[at..at + 8].copy_from_slice(&address.to_le_bytes());
    }
    match rng.below(6) {
        // Host memory.
        0 => {
            bytes[40..44].copy_from_slice(&0xdu32.to_le_bytes());
            bytes[44..48].copy_from_slice(&rng.below(4).to_le_bytes());
            bytes[48..52].copy_from_slice(&rng.below(256).to_le_bytes());
            bytes[52..56].copy_from_slice(&(rng.below(LOW) & !0xf).to_le_bytes());
            bytes[56..60].copy_from_slice(&0u32.to_le_bytes());
            bytes[60..64].copy_from_slice(&rng.below(8).to_le_bytes());
        }
        // Queues.
        1 | 2 => {
            let size = rng.below(64) << 16 | rng.below(5);
            bytes[40..44].copy_from_slice(&size.to_le_bytes());
            let other = rng.below(5) << 16 | rng.below(8) | 1;
            bytes[44..48].copy_from_slice(&other.to_le_bytes());
        }
        _ => {}
    }
    bytes
}

fn enable(controller: &mut Controller<&Ram>, rng: &mut Rng) {
    let mut write = |at, value: u32| controller.register_write(at, &value.to_le_bytes());
    write(offset::AQA, (1 + rng.below(63)) << 16 | (1 + rng.below(63)));
    write(offset::ASQ, rng.below(8) << 12);
    write(offset::ACQ, (8 + rng.below(8)) << 12);
    write(offset::CC, 4 << 20 | 6 << 16 | 1);
}

fn one_thing(controller: &mut Controller<&Ram>, memory: &Ram, now_ps: &mut u64, rng: &mut Rng) {
    match rng.below(40) {
        0 if rng.below(16) == 0 => enable(controller, rng),
        1 if rng.below(16) == 0 => {
            let at = offset::CC;
            controller.register_write(at, &(rng.next_u64() as u32).to_le_bytes());
        }
        2 if rng.below(16) == 0 => {
            let at = u64::from(rng.below(0x40)) & !3;
            controller.register_write(at, &(rng.next_u64() as u32).to_le_bytes());
        }
        3 if rng.below(16) == 0 => controller.function_reset(),
        4..=15 => {
            let at = offset::DOORBELLS + 4 * u64::from(rng.below(12));
            controller.register_write(at, &rng.below(64).to_le_bytes());
        }
        16..=24 => {
            let at = u64::from(rng.below(LOW / 64)) * 64;
            memory.write(at, &command(rng)).unwrap();
        }
        25..=30 => {
            // The admin queue, wherever it is, or one for I/O.
            let at = match rng.below(2) {
                0 => u64::from(rng.below(8) << 12 | rng.below(64) << 6),
                // The first I/O queue, as the driver has made it.
                _ => u64::from(LOW + (rng.below(64) << 6)),
            };
            memory.write(at, &command(rng)).unwrap();
        }
        31 => {
            // Descriptors of host memory, and PRP lists.
            let at = u64::from(rng.below(LOW)) & !0xf;
            let address = u64::from(rng.below(MEMORY_BYTES as u32 + LOW)) & !0xfff;
            memory.write(at, &address.to_le_bytes()).unwrap();
            memory
                .write(at + 8, &rng.below(32).to_le_bytes())
                .unwrap_or(());
        }
        _ => {
            controller.poll(*now_ps);
            if let Some(next_ps) = controller.next_time_ps() {
                *now_ps = next_ps.min(*now_ps + u64::from(rng.below(1 << 30)));
            }
        }
    }
    let _ = controller.may_sleep();
    let _ = controller.is_waited_for();
}

/// Whatever namespaces there are, there is one that has all of the drive.
fn one_namespace(driver: &mut Driver<Simulated<'_>>, capacity_bytes: u64) {
    while driver.admin(0xd, u32::MAX, &[1]).is_err() {
        assert!(driver.port.wait(), "what goes on does not end");
    }
    let blocks = (capacity_bytes / 512).to_le_bytes();
    let told = [&blocks[..], &blocks[..], &[0; 15]].concat();
    driver.port.memory().write(DATA_AT, &told).unwrap();
    assert_eq!(driver.admin(0xd, 0, &[0]), Ok(1), "it is made");
    driver.port.memory().write(DATA_AT, &[1, 0, 0, 0]).unwrap();
    driver.admin(0x15, 1, &[0]).expect("it is attached");
}

#[test]
fn whatever_a_guest_does_the_drive_serves_the_next() {
    let mut commands = 0;
    for seed in 0..u64::from(lodger_testing::config(6).cases) {
        let memory = ram();
        let is_managed = seed % 2 == 1;
        let namespaces = is_managed.then_some(("controller.namespaces", "3"));
        let sets = [("tier.hmb.integrity", "mac")]
            .into_iter()
            .chain(namespaces);
        let spec = spec(&sets.collect::<Vec<_>>());
        let mut driver = Simulated::driver(&spec, &memory);
        let mut rng = Rng::new(seed);
        for _ in 0..8 {
            driver.enable();
            driver.create_queues(4);
            let Simulated {
                controller, now_ps, ..
            } = &mut driver.port;
            for _ in 0..5000 {
                one_thing(controller, &memory, now_ps, &mut rng);
            }
            if rng.below(2) == 0 {
                controller.function_reset();
            }
        }
        commands += driver.port.controller.statistics().commands;
        driver.enable();
        driver.create_queues(2);
        if is_managed {
            one_namespace(&mut driver, spec.capacity_bytes);
        }
        // What the blocks hold is anybody's guess, and how long they are.
        while driver.admin(0x80, 1, &[0]).is_err() {
            assert!(driver.port.wait(), "a sanitize, or a format, does not end");
        }
        let mut mix = Mix::new(8192, seed);
        mix.run(&mut driver, 300, 8);
        mix.check_all(&mut driver);
    }
    println!("{commands} commands of I/O queues");
    assert!(commands > 0, "no I/O queue was ever made");
}
