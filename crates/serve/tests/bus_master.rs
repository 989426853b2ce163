//! Does a function keep off the host's memory while it may not access it, and go on then? In simulated time, at the function.
#![cfg(target_os = "linux")]

mod attached;
mod driver;

use attached::{Shared, spec};
use driver::{Driver, MEMORY_BYTES, Port};
use lodger_guest_ram::Mapping;
use lodger_serve::controller::{Controller, Settings};
use lodger_serve::transport::{Function, GuestRam, Map, NvmeFunction, irq, region};
use lodger_wire::memory::GuestMemory;
use lodger_wire::registers::offset;
use lodger_wire::status::Status;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::os::fd::OwnedFd;

const COMMAND: u64 = 4;
const POWER: u64 = 0x44;
const MEMORY_SPACE: u16 = 2;
const BUS_MASTER: u16 = 4;
const PS_PER_MS: u64 = 1_000_000_000;

/// A function, and a host without a socket between them.
struct Slot {
    function: NvmeFunction,
    memory: Shared,
    signal: OwnedFd,
    now_ps: u64,
    waits: u64,
}

impl Slot {
    fn driver() -> Driver<Self> {
        let file = File::from(memfd_create("guest", MemfdFlags::CLOEXEC).expect("memory"));
        file.set_len(MEMORY_BYTES).expect("memory");
        let memory = Shared(Mapping::new(&file, 0, MEMORY_BYTES, true).expect("memory"));
        let (spec, ram) = (spec(&[("tier.hmb.integrity", "mac")]), GuestRam::default());
        let controller = Controller::new(&spec, &Settings::default(), ram.clone());
        let mut function = NvmeFunction::new(&spec, controller.expect("a drive"), ram);
        let map = Map {
            address: 0,
            bytes: MEMORY_BYTES,
            offset: 0,
            is_writable: true,
            file: Some(file),
        };
        function.map(map).expect("memory is lent");
        let signal = eventfd(0, EventfdFlags::NONBLOCK).expect("an event");
        let theirs = signal.try_clone().expect("the same event");
        let all = (0..4).map(|_| theirs.try_clone().ok()).collect();
        function
            .set_interrupts(irq::MSIX, 0, all)
            .expect("interrupts");
        Driver::new(Slot {
            function,
            memory,
            signal,
            now_ps: 0,
            waits: 0,
        })
    }

    fn set_command(&mut self, bits: u16) {
        let bytes = bits.to_le_bytes();
        self.function.write(region::CONFIG, COMMAND, &bytes);
    }

    fn set_power_state(&mut self, state: u8) {
        self.function.write(region::CONFIG, POWER, &[state, 0]);
    }

    fn is_signalled(&self) -> bool {
        rustix::io::read(&self.signal, &mut [0; 8]).is_ok()
    }

    fn poll(&mut self, pass_ps: u64) -> bool {
        self.now_ps += pass_ps;
        let worked = self.function.controller.poll(self.now_ps);
        self.function.signal();
        worked
    }

    fn all_memory(&self) -> Vec<u8> {
        let mut bytes = vec![0; MEMORY_BYTES as usize];
        self.memory.read(0, &mut bytes).expect("all of it");
        bytes
    }

    /// A second passes, and the drive leaves the host alone.
    fn is_left_alone_for_a_second(&mut self) {
        self.is_signalled();
        let before = self.all_memory();
        for _ in 0..1000 {
            self.poll(PS_PER_MS);
        }
        assert!(self.all_memory() == before, "host memory was written");
        assert!(!self.is_signalled(), "an interrupt was raised");
        assert_eq!(self.function.controller.next_time_ps(), None, "it waits");
    }
}

impl Port for Slot {
    type Memory = Shared;

    fn memory(&self) -> &Shared {
        &self.memory
    }

    fn read(&mut self, at: u64) -> u32 {
        let mut bytes = [0; 4];
        self.function.read(region::BAR0, at, &mut bytes);
        u32::from_le_bytes(bytes)
    }

    fn write(&mut self, at: u64, value: u32) {
        let bytes = value.to_le_bytes();
        self.function.write(region::BAR0, at, &bytes);
        self.waits = 0;
    }

    fn wait(&mut self) -> bool {
        self.waits += 1;
        if !self.poll(0)
            && let Some(next_ps) = self.function.controller.next_time_ps()
        {
            self.now_ps = next_ps;
        }
        self.waits < 100_000
    }
}

/// A drive at work with the host's memory: a write has been done, a read is about to end, others stand in the queue.
fn at_work() -> Driver<Slot> {
    let mut driver = Slot::driver();
    driver.port.set_command(MEMORY_SPACE | BUS_MASTER);
    driver.enable();
    driver.create_queues(1);
    driver.grant_host_memory(256 << 10, false).expect("granted");
    for lba in 0..8 {
        let write = driver.entry(1, 1, lba * 4096, 8);
        driver.run(1, write).expect("a write");
    }
    let read = driver.entry(1, 2, 4096, 8);
    driver.submit(1, read);
    driver.port.poll(0);
    driver
}

fn all_end(driver: &mut Driver<Slot>, commands: usize) {
    let mut done = Vec::new();
    while done.len() < commands {
        assert!(driver.port.wait(), "{} are done", done.len());
        done.extend(driver.reap(1));
    }
    let is_good = |outcome: &lodger_wire::entry::Outcome| outcome.status == Status::SUCCESS;
    assert!(done.iter().all(|(_, outcome)| is_good(outcome)), "{done:?}");
    assert!(driver.port.is_signalled());
}

#[test]
fn without_bus_mastering_nothing_of_the_hosts_is_touched_and_doorbells_are_remembered() {
    let mut driver = at_work();
    driver.port.set_command(MEMORY_SPACE);
    for opcode in [1, 2] {
        let entry = driver.entry(1, opcode, 8 * 4096, 8);
        driver.submit(1, entry);
    }
    driver.port.is_left_alone_for_a_second();
    assert_eq!(driver.port.read(offset::CSTS), 1, "registers answer");
    assert!(driver.reap(1).is_empty());
    driver.port.set_command(MEMORY_SPACE | BUS_MASTER);
    all_end(&mut driver, 3);
}

#[test]
fn a_reset_without_bus_mastering_comes_to_its_end() {
    let mut driver = at_work();
    driver.port.set_command(MEMORY_SPACE);
    driver.port.is_signalled();
    let before = driver.port.all_memory();
    driver.disable();
    assert!(
        driver.port.all_memory() == before,
        "host memory was written"
    );
    assert!(!driver.port.is_signalled());
    driver.port.set_command(MEMORY_SPACE | BUS_MASTER);
    driver.enable();
    driver.create_queues(1);
    let read = driver.entry(1, 2, 4096, 8);
    driver.run(1, read).expect("a read");
}

/// What was under way has ended by then, and could not be told: that was taken for a failure.
#[test]
fn a_shutdown_without_bus_mastering_comes_to_its_end() {
    let mut driver = at_work();
    driver.port.set_command(MEMORY_SPACE);
    let before = driver.port.all_memory();
    driver
        .port
        .write(offset::CC, 4 << 20 | 6 << 16 | 1 << 14 | 1);
    while driver.port.read(offset::CSTS) >> 2 & 3 != 2 {
        assert!(driver.port.wait(), "CSTS.SHST");
    }
    assert_eq!(driver.port.read(offset::CSTS) & 2, 0, "CSTS.CFS");
    assert!(
        driver.port.all_memory() == before,
        "host memory was written"
    );
}

#[test]
fn in_d3hot_only_configuration_space_answers() {
    let mut driver = at_work();
    driver.port.set_power_state(3);
    assert_eq!(driver.port.read(offset::CSTS), u32::MAX);
    let entry = driver.entry(1, 2, 8 * 4096, 8);
    driver.submit(1, entry); // Its doorbell leads nowhere.
    driver.port.is_left_alone_for_a_second();
    driver.port.set_power_state(0);
    assert_eq!(driver.port.read(offset::CSTS), 1, "no soft reset");
    all_end(&mut driver, 1);
    let entry = driver.entry(1, 2, 8 * 4096, 8);
    driver.submit(1, entry);
    all_end(&mut driver, 2);
}

#[test]
fn bars_answer_with_ones_once_memory_space_is_switched_off_again() {
    let mut driver = at_work();
    driver.port.set_command(BUS_MASTER);
    assert_eq!(driver.port.read(offset::CSTS), u32::MAX);
    driver.port.write(offset::CC, 0);
    all_end(&mut driver, 1);
    driver.port.set_command(MEMORY_SPACE | BUS_MASTER);
    assert_eq!(driver.port.read(offset::CSTS), 1, "still enabled");
}

#[test]
fn what_a_host_has_never_switched_on_counts_as_on() {
    // SPDK's client switches bus mastering on and memory space not; others leave configuration space to themselves.
    for bits in [None, Some(BUS_MASTER)] {
        let mut driver = Slot::driver();
        for _ in 0..2 {
            if let Some(bits) = bits {
                driver.port.set_command(bits);
            }
            driver.enable();
            driver.create_queues(1);
            let read = driver.entry(1, 2, 0, 8);
            driver.run(1, read).expect("a read");
            driver.port.function.reset();
        }
    }
}

#[test]
fn interrupts_are_masked_in_the_table_at_first_and_after_a_reset() {
    let mut driver = Slot::driver();
    for _ in 0..2 {
        assert_eq!(driver.port.read(0x2000 + 12), 1);
        assert_eq!(driver.port.read(0x2000 + 63 * 16 + 12), 1);
        assert_eq!(driver.port.read(0x2000), 0);
        driver.port.write(0x2000 + 12, 0);
        driver.port.function.reset();
    }
}

/// A guest whose memory was lent without a file got errors, and nobody a word of why.
#[test]
fn who_uses_memory_that_is_lent_without_a_file_is_found_out() {
    const AT: u64 = 1 << 30;
    let mut driver = Slot::driver();
    driver.enable();
    driver.create_queues(1);
    let map = Map {
        address: AT,
        bytes: 1 << 20,
        offset: 0,
        is_writable: true,
        file: None,
    };
    driver.port.function.map(map).expect("it is lent");
    let entry = driver.entry(1, 2, 0, 8);
    driver.run(1, entry).expect("a read");
    assert!(!driver.port.function.takes_no_file(), "nobody uses it");
    let entry = driver.entry(1, 2, 0, 8).with_prp(AT, 0);
    let ended = driver.run(1, entry);
    assert_eq!(ended, Err(Status::DATA_TRANSFER_ERROR.with_more()));
    assert!(driver.port.function.takes_no_file());
    assert!(!driver.port.function.takes_no_file(), "since it was asked");
    // Where there is no memory at all, it is another thing.
    let entry = driver.entry(1, 2, 0, 8).with_prp(2 * AT, 0);
    let ended = driver.run(1, entry);
    assert_eq!(ended, Err(Status::DATA_TRANSFER_ERROR.with_more()));
    assert!(!driver.port.function.takes_no_file());
}
