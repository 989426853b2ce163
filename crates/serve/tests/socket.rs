//! Does a drive on a socket do what a driver in another process needs of it? The client's side of the protocol is
//! another implementation's (`vfio_user`), the memory is shared, time is real.
#![cfg(target_os = "linux")]

mod driver;

use driver::mix::Mix;
use driver::{Driver, MEMORY_BYTES, Port};
use lodger_core::DriveSpec;
use lodger_core::spec::parse;
use lodger_guest_ram::Mapping;
use lodger_serve::clock::Speed;
use lodger_serve::controller::Settings;
use lodger_serve::server::{Report, ServeError, Server};
use lodger_wire::memory::{GuestMemory, MemoryError};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use vfio_user::Client;

const TINY: &str = include_str!("../../../drives/tiny.toml");
const HMB_BYTES: u64 = 256 << 10;
/// Longest time that anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

fn spec(sets: &[(&str, &str)]) -> DriveSpec {
    parse(TINY, "tiny.toml", sets, &|_| None)
        .expect("a drive")
        .spec
}

/// A server in a thread of its own, with a folder for its socket.
struct Served {
    folder: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Report>>,
}

impl Served {
    fn new(name: &str, speed: f64) -> Self {
        let folder = std::env::temp_dir().join(format!("lodger-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let stop = Arc::new(AtomicBool::new(false));
        let (path, stops) = (folder.join("drive"), Arc::clone(&stop));
        let (told, ready) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let spec = spec(&[("tier.hmb.integrity", "mac")]);
            let speed = Speed::new(speed).expect("a speed");
            let server = Server::new(&spec, &Settings::default(), speed, &path);
            let mut server = server.expect("a server");
            told.send(()).expect("somebody waits");
            server
                .run(|| stops.load(Ordering::Relaxed))
                .expect("it serves")
        });
        ready.recv_timeout(PATIENCE).expect("the server starts");
        Served {
            folder,
            stop,
            thread: Some(thread),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.join("drive")
    }

    fn end(mut self) -> Report {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("it runs");
        thread.join().expect("the server has not panicked")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The client's memory.
struct Shared(Mapping);

fn error(address: u64, length: usize) -> MemoryError {
    let length = length as u64;
    MemoryError { address, length }
}

impl GuestMemory for Shared {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        let length = into.len();
        self.0
            .read(address, into)
            .map_err(|_| error(address, length))
    }
    fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        self.0
            .write(address, from)
            .map_err(|_| error(address, from.len()))
    }
    fn load_u32(&self, address: u64) -> Result<u32, MemoryError> {
        self.0.load_u32(address).map_err(|_| error(address, 4))
    }
    fn store_u32(&self, address: u64, value: u32) -> Result<(), MemoryError> {
        self.0
            .store_u32(address, value)
            .map_err(|_| error(address, 4))
    }
}

/// A client with memory and interrupts.
struct Attached {
    client: Client,
    memory: Shared,
    file: File,
    interrupts: Vec<OwnedFd>,
    since: Instant,
    register_writes: u64,
}

impl Attached {
    fn new(path: &Path) -> Self {
        let mut client = Client::new(path).expect("a connection");
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create("guest", flags).expect("memory"));
        file.set_len(MEMORY_BYTES).expect("memory");
        // In two pieces, of which commands' data may lie across the seam.
        let seam = MEMORY_BYTES / 2 + 4096;
        for (start, end) in [(0, seam), (seam, MEMORY_BYTES)] {
            client
                .dma_map(start, start, end - start, file.as_raw_fd())
                .expect("memory is lent");
        }
        let new = |_| eventfd(0, EventfdFlags::NONBLOCK).expect("an event");
        let interrupts: Vec<OwnedFd> = (0..4).map(new).collect();
        let files: Vec<_> = interrupts.iter().map(AsRawFd::as_raw_fd).collect();
        client
            .set_irqs(2, 4 | 32, 0, 4, &files)
            .expect("interrupts");
        Attached {
            client,
            memory: Shared(Mapping::new(&file, 0, MEMORY_BYTES, true).expect("memory")),
            file,
            interrupts,
            since: Instant::now(),
            register_writes: 0,
        }
    }

    fn interrupts(&self) -> Vec<u64> {
        let count = |event: &OwnedFd| {
            let mut bytes = [0; 8];
            rustix::io::read(event, &mut bytes).map_or(0, |_| u64::from_ne_bytes(bytes))
        };
        self.interrupts.iter().map(count).collect()
    }
}

impl Port for Attached {
    type Memory = Shared;

    fn memory(&self) -> &Shared {
        &self.memory
    }

    fn read(&mut self, at: u64) -> u32 {
        let mut bytes = [0; 4];
        self.client
            .region_read(0, at, &mut bytes)
            .expect("a register");
        u32::from_le_bytes(bytes)
    }

    fn write(&mut self, at: u64, value: u32) {
        self.register_writes += 1;
        self.since = Instant::now();
        self.client
            .region_write(0, at, &value.to_le_bytes())
            .expect("a register");
    }

    fn wait(&mut self) -> bool {
        std::thread::yield_now();
        self.since.elapsed() < PATIENCE
    }
}

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
    let serve =
        |path: &Path| Server::new(&spec, &Settings::default(), Speed::REAL, path).map(|_| ());
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
