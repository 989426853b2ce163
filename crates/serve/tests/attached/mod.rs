//! A drive served in a thread of its own, and a client with memory and interrupts at its socket.
#![allow(dead_code)]

#[path = "../served/mod.rs"]
mod served;

use super::driver::{MEMORY_BYTES, Port};
use lodger_guest_ram::Mapping;
use lodger_serve::clock::Speed;
use lodger_serve::controller::{Settings, Sink};
use lodger_serve::server::{Server, VfioUser};
use lodger_wire::memory::{GuestMemory, MemoryError};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, memfd_create};
pub use served::{PATIENCE, Served, spec};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Instant;
use vfio_user::Client;

impl Served {
    pub fn new(name: &str, speed: f64) -> Self {
        Self::recording(name, speed, &[("tier.hmb.integrity", "mac")], None)
    }

    /// One of a changed drive, that is recorded.
    pub fn recording(name: &str, speed: f64, sets: &[(&str, &str)], record: Option<Sink>) -> Self {
        let spec = spec(sets);
        Self::start(name, move |folder, owner| {
            let speed = Speed::new(speed).expect("a speed");
            let front = VfioUser::new(&spec, &Settings::default(), &folder.join("drive"));
            let mut server = Server::new(front.expect("a drive to serve"), speed);
            if let Some(sink) = record {
                let controller = server.controller_mut();
                controller.record_to(sink).expect("a recording");
            }
            owner.hears();
            let report = server.run(|| owner.wants_the_end());
            let recorded = server.controller_mut().end_record();
            recorded.expect("all is written");
            report.expect("it serves")
        })
    }
}

/// The client's memory.
pub struct Shared(pub Mapping);

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
pub struct Attached {
    pub client: Client,
    pub memory: Shared,
    pub file: File,
    interrupts: Vec<OwnedFd>,
    since: Instant,
    pub register_writes: u64,
    /// The server is: what is written to registers is nobody's.
    pub is_gone: bool,
}

impl Attached {
    pub fn new(path: &Path) -> Self {
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
            is_gone: false,
        }
    }

    /// Something has happened: patience begins anew.
    pub fn progress(&mut self) {
        self.since = Instant::now();
    }

    pub fn interrupts(&self) -> Vec<u64> {
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
        if self.is_gone {
            return;
        }
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

/// A client that says what it likes: one message, answered by its number for an error and what else is said.
pub struct Raw(UnixStream);

impl Raw {
    /// One that has agreed on version 0.1, without a word about what it can do.
    pub fn new(path: &Path) -> Self {
        let mut raw = Raw(UnixStream::connect(path).expect("a connection"));
        assert_eq!(raw.ask(1, &[0, 0, 1, 0]).0, 0, "a version");
        raw
    }

    pub fn ask(&mut self, command: u16, body: &[u8]) -> (u32, Vec<u8>) {
        let mut message = vec![1, 0];
        message.extend_from_slice(&command.to_le_bytes());
        message.extend_from_slice(&(16 + body.len() as u32).to_le_bytes());
        message.extend_from_slice(&[0; 8]);
        message.extend_from_slice(body);
        self.0.write_all(&message).expect("it is sent");
        let mut head = [0; 16];
        self.0.read_exact(&mut head).expect("a reply");
        let (words, _) = head.as_chunks::<4>();
        let mut reply = vec![0; u32::from_le_bytes(words[1]) as usize - 16];
        self.0.read_exact(&mut reply).expect("all of it");
        (u32::from_le_bytes(words[3]), reply)
    }
}
