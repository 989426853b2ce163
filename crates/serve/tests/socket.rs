//! Does a drive on a socket do what a driver in another process needs of it? The client's side of the protocol is
//! another implementation's (`vfio_user`), the memory is shared, time is real.
#![cfg(target_os = "linux")]

mod attached;
mod driver;

use attached::{Attached, Raw, Served, spec};
use driver::mix::Mix;
use driver::{Driver, MEMORY_BYTES};
use lodger_serve::controller::Settings;
use lodger_serve::server::{ServeError, VfioUser};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

const HMB_BYTES: u64 = 256 << 10;

#[test]
fn a_driver_finds_a_function_and_uses_it() {
    let served = Served::new("uses", 1.0);
    let mut driver = Driver::new(Attached::new(&served.path()));
    let client = &mut driver.port.client;
    let sizes: Vec<_> = (0..9)
        .map(|index| client.region(index).map(|region| region.size))
        .collect();
    let none = Some(0);
    assert_eq!(sizes[..2], [Some(0x4000), none]);
    assert_eq!(sizes[7], Some(4096));
    assert_eq!(client.get_irq_info(2).expect("MSI-X").count, 64);
    let mut class = [0; 4];
    client
        .region_read(7, 8, &mut class)
        .expect("configuration space");
    assert_eq!(class[1..], [2, 8, 1], "an NVMe controller");
    driver.enable();
    assert_eq!(&driver.identify(1, 0)[24..44], b"Lodger Tiny teaching");
    driver
        .grant_host_memory(HMB_BYTES, false)
        .expect("host memory");
    driver.create_queues(3);
    let mut mix = Mix::new(1 << 19, 1);
    mix.run(&mut driver, 2500, 16);
    mix.finish(&mut driver);
    let interrupts = driver.port.interrupts();
    assert!(interrupts.iter().all(|count| *count > 0), "{interrupts:?}");
    let memory = driver.host_memory(HMB_BYTES);
    assert!(
        memory.iter().any(|byte| *byte != 0),
        "host memory holds something"
    );
    driver.take_host_memory_back().expect("host memory back");
    let after = driver.host_memory(HMB_BYTES);
    mix.run(&mut driver, 500, 16);
    assert!(
        driver.host_memory(HMB_BYTES) == after,
        "touched after it was taken back"
    );
    mix.check_all(&mut driver);
    driver.shutdown();
    let report = served.end();
    assert!(report.lateness.count() > 3000);
    println!(
        "late by p50 {} p99 {} max {} ns",
        report.lateness.percentile_ns(50.0),
        report.lateness.percentile_ns(99.0),
        report.lateness.max_ns()
    );
}

#[test]
fn shadow_doorbells_spare_registers() {
    let served = Served::new("shadows", 0.0);
    let mut driver = Driver::new(Attached::new(&served.path()));
    driver.enable();
    driver.create_queues(2);
    driver.use_shadows();
    let mut mix = Mix::new(8 << 10, 2);
    let before = driver.port.register_writes;
    mix.run(&mut driver, 20_000, 16);
    mix.finish(&mut driver);
    let writes = driver.port.register_writes - before;
    assert!(
        writes < 10_000,
        "{writes} writes of registers for 20000 commands"
    );
    // A server that sleeps hears of a command all the same.
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(20));
        mix.run(&mut driver, 1, 1);
    }
    mix.check_all(&mut driver);
}

#[test]
fn clients_come_and_go_under_load_and_the_data_stays() {
    let served = Served::new("comes", 4.0);
    let mut mix = Mix::new(8 << 10, 3);
    for round in 0..10 {
        let mut driver = Driver::new(Attached::new(&served.path()));
        for _ in 0..2 {
            driver.enable();
            driver.create_queues(3);
            if round % 2 == 0 {
                driver.use_shadows();
            }
            driver
                .grant_host_memory(HMB_BYTES, false)
                .expect("host memory");
            mix.run(&mut driver, 300, 24);
            if round % 3 == 0 {
                driver.port.client.reset().expect("a reset of the device");
            } else {
                driver.disable();
            }
            mix.reset();
        }
        driver.enable();
        driver.create_queues(2);
        mix.run(&mut driver, 300, 24);
        // The client dies with commands under way.
        mix.reset();
        let writes = driver.port.file;
        drop((driver.port.client, writes));
    }
    let mut driver = Driver::new(Attached::new(&served.path()));
    driver.enable();
    driver.create_queues(1);
    mix.check_all(&mut driver);
    drop(driver);
    let report = served.end();
    assert_eq!(report.clients, 11);
    assert!(report.statistics.abandoned > 0);
}

#[test]
fn memory_that_goes_away_is_an_error_and_nothing_worse() {
    let served = Served::new("unmap", 0.0);
    let mut driver = Driver::new(Attached::new(&served.path()));
    driver.enable();
    driver.create_queues(1);
    driver
        .grant_host_memory(HMB_BYTES, false)
        .expect("host memory");
    let mut mix = Mix::new(8 << 10, 4);
    mix.run(&mut driver, 300, 16);
    mix.finish(&mut driver);
    // The upper piece, with the host memory in it, but not the queues.
    let seam = MEMORY_BYTES / 2 + 4096;
    driver
        .port
        .client
        .dma_unmap(seam, MEMORY_BYTES - seam)
        .expect("memory back");
    mix.run(&mut driver, 1000, 16);
    mix.finish(&mut driver);
    let entry = driver.entry(1, 2, 0, 8).with_prp(seam, 0);
    assert!(driver.run(1, entry).is_err(), "data that has nowhere to go");
    mix.check_all(&mut driver);
}

/// As QEMU does where an address space goes (`VFIO_DMA_UNMAP_FLAG_ALL`, 2, of `linux/vfio.h`): no address, no length.
#[test]
fn all_memory_can_be_unmapped_at_once() {
    let served = Served::new("unmap-all", 0.0);
    let mut client = Raw::new(&served.path());
    let mut ask = |command: u16, body: &[u8]| client.ask(command, body).0;
    let range = |flags: u32, address: u64, bytes: u64| {
        let mut body = [24u32.to_le_bytes(), flags.to_le_bytes()].concat();
        body.extend([address.to_le_bytes(), bytes.to_le_bytes()].concat());
        body
    };
    // Readable memory that the drive would have to ask for.
    let mapped = [
        &[32, 0, 0, 0, 1, 0, 0, 0],
        &[0; 8][..],
        &[0; 8],
        &(1u64 << 20).to_le_bytes(),
    ];
    assert_eq!(ask(2, &mapped.concat()), 0, "memory");
    assert_eq!(ask(3, &range(2, 4096, 0)), 22, "all of it has no address");
    assert_eq!(ask(3, &range(2, 0, 0)), 0);
    assert_ne!(ask(3, &range(0, 0, 1 << 20)), 0, "nothing is left to unmap");
}

#[test]
fn memory_whose_file_is_cut_off_is_an_error_and_the_drive_goes_on() {
    let served = Served::new("cut-off", 0.0);
    let mut driver = Driver::new(Attached::new(&served.path()));
    driver.enable();
    driver.create_queues(1);
    let mut mix = Mix::new(8 << 10, 4);
    mix.run(&mut driver, 300, 16);
    // Without seals: nobody keeps it from shrinking.
    let lent = File::from(memfd_create("cut-off", MemfdFlags::CLOEXEC).expect("memory"));
    for (at, opcode) in [(MEMORY_BYTES, 2), (2 * MEMORY_BYTES, 1)] {
        lent.set_len(64 << 10).expect("room");
        let client = &mut driver.port.client;
        client
            .dma_map(0, at, 64 << 10, lent.as_raw_fd())
            .expect("memory is lent");
        let entry = |driver: &mut Driver<_>| driver.entry(1, opcode, 0, 8).with_prp(at, 0);
        let is_there = entry(&mut driver);
        driver.run(1, is_there).expect("it is there");
        lent.set_len(0).expect("it can shrink");
        let is_gone = entry(&mut driver);
        assert!(
            driver.run(1, is_gone).is_err(),
            "data that has nowhere to go"
        );
    }
    let zeroed = driver.entry(1, 8, 0, 8);
    driver.run(1, zeroed).expect("Write Zeroes");
    mix.run(&mut driver, 300, 16);
    mix.finish(&mut driver);
}

#[test]
fn what_makes_no_sense_ends_a_connection_and_not_the_drive() {
    let served = Served::new("hostile", 0.0);
    let mut rng = lodger_core::rng::Rng::new(9);
    let version = |text: &[u8]| {
        let mut message = vec![1, 0, 1, 0];
        message.extend_from_slice(&(20 + text.len() as u32).to_le_bytes());
        message.extend_from_slice(&[0; 12]);
        message.extend_from_slice(text);
        message
    };
    for round in 0..300 {
        let mut stream = UnixStream::connect(served.path()).expect("a connection");
        let mut bytes = match round % 3 {
            0 => Vec::new(),
            1 => version(b"{}\0"),
            _ => version(b"no text at all"),
        };
        for _ in 0..1 + rng.below(6) {
            let length = rng.below(200);
            let mut message: Vec<u8> = (0..length).map(|_| rng.next_u64() as u8).collect();
            if rng.below(3) > 0 && message.len() >= 16 {
                message[2..4].copy_from_slice(&(rng.below(16) as u16).to_le_bytes());
                message[4..8].copy_from_slice(&length.to_le_bytes());
                message[8..12].copy_from_slice(&[0; 4]);
            }
            bytes.extend(message);
        }
        let _ = stream.write_all(&bytes);
        if round % 2 == 0 {
            stream
                .set_read_timeout(Some(Duration::from_millis(2)))
                .expect("a time");
            let _ = stream.read(&mut [0; 4096]);
        }
    }
    let mut driver = Driver::new(Attached::new(&served.path()));
    driver.enable();
    driver.create_queues(1);
    let mut mix = Mix::new(4 << 10, 5);
    mix.run(&mut driver, 200, 8);
    mix.check_all(&mut driver);
}

#[test]
fn a_socket_is_its_owners_alone() {
    let served = Served::new("owner", 1.0);
    let mode = std::fs::metadata(served.path())
        .expect("a socket")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let spec = spec(&[]);
    let serve = |path: &Path| VfioUser::new(&spec, &Settings::default(), path).map(|_| ());
    let again = serve(&served.path());
    assert!(
        matches!(again, Err(ServeError::Socket { .. })),
        "it is in use"
    );
    let file = served.folder.join("file");
    std::fs::write(&file, "precious").expect("a file");
    assert!(serve(&file).is_err());
    assert_eq!(std::fs::read(&file).expect("a file"), b"precious");
    let stale = served.folder.join("stale");
    drop(std::os::unix::net::UnixListener::bind(&stale).expect("a socket"));
    serve(&stale).expect("nobody listens there");
    assert!(!stale.exists(), "gone with its server");
    let path = served.path();
    served.end();
    assert!(!path.exists());
}
