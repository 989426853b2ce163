//! An NVMe controller as a PCI function: configuration space, BAR 0 with registers, doorbells and the interrupts'
//! table, BAR 4 with the byte window where the drive has one, a file to be signalled for each interrupt, and the guest's
//! memory.
//!
//! The window is a file in memory, or beside the one that keeps the drive, which a client maps and whose bytes it then loads
//! and stores without asking. With each client it is another file: one that is gone, and has kept what it had mapped, reaches
//! nothing with it.

use super::gather::Gather;
use super::{Function, GuestRam, Map, guest_ram, irq, region};
use crate::controller::identity::VENDOR;
use crate::controller::{Controller, VECTORS, WINDOW_BAR};
use lodger_core::DriveSpec;
use lodger_wire::pci::{
    Bar, CLASS_NVME, CONFIG_BYTES, Command, ConfigSpace, Link, Msix, PciIdentity,
};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Instant;

/// BAR 0: registers, doorbells at 1000h, the interrupts' table at 2000h, their pending bits at 3000h.
const BAR0_BYTES: u64 = 0x4000;
const TABLE_AT: u64 = 0x2000;
const TABLE_BYTES: usize = 16 * VECTORS as usize;
const PENDING_AT: u64 = 0x3000;
/// Payload rate of a lane of PCI Express 3.0, bytes per second.
const LANE_BYTES_PER_S: u64 = 984_600_000;

/// The function.
#[allow(missing_debug_implementations)]
pub struct NvmeFunction {
    /// The controller. Time is told to it by whoever runs the function.
    pub controller: Controller<GuestRam>,
    memory: GuestRam,
    config: ConfigSpace,
    /// What the host has switched on since the function was reset. What it never has counts as on: SPDK's client switches bus
    /// mastering on alone and uses the registers all the same, and others leave configuration space alone.
    was_on: Command,
    /// The table, for clients that keep it here; who is signalled is said by other means.
    table: [u8; TABLE_BYTES],
    signals: Vec<Option<OwnedFd>>,
    /// Some signal is there: a client listens.
    is_heard: bool,
    /// Of a drive that answers at once: which signals wait for more.
    gather: Option<Gather>,
    window: Option<Rc<File>>,
    window_bytes: u64,
    has_old_window: bool,
}

fn link(spec: &DriveSpec) -> Link {
    let lanes = spec
        .link
        .bytes_per_s
        .div_ceil(LANE_BYTES_PER_S + LANE_BYTES_PER_S / 50);
    let generation = if lanes > 4 { 4 } else { 3 };
    let lanes = if lanes > 4 { lanes.div_ceil(2) } else { lanes };
    Link {
        generation,
        lanes: lanes.next_power_of_two().min(16) as u8,
    }
}

/// Each vector is masked (PCI Local Bus 3.0 §6.8.2.9).
fn table_at_reset() -> [u8; TABLE_BYTES] {
    let mut table = [0; TABLE_BYTES];
    let controls = table.iter_mut().skip(12).step_by(16);
    controls.for_each(|control| *control = 1);
    table
}

impl NvmeFunction {
    /// A function with this controller, whose guest has this memory.
    pub fn new(spec: &DriveSpec, mut controller: Controller<GuestRam>, memory: GuestRam) -> Self {
        let identity = PciIdentity {
            vendor: VENDOR,
            device: 1,
            subsystem_vendor: VENDOR,
            subsystem: 1,
            revision: 0,
            class: CLASS_NVME,
        };
        let bar = Bar {
            index: 0,
            bytes: BAR0_BYTES,
            prefetchable: false,
        };
        let msix = Msix {
            vectors: VECTORS,
            bar: 0,
            table_offset: TABLE_AT as u32,
            pending_offset: PENDING_AT as u32,
        };
        let window_bytes = controller.window_mut().map_or(0, |window| window.bytes());
        let window = Bar {
            index: WINDOW_BAR,
            bytes: window_bytes.next_power_of_two(),
            prefetchable: true,
        };
        let bars = [bar, window];
        let bars = if window_bytes > 0 {
            &bars[..]
        } else {
            &bars[..1]
        };
        let config = ConfigSpace::new(identity, bars, Some(msix), link(spec));
        NvmeFunction {
            controller,
            memory,
            config: config.expect("the table is within its window"),
            was_on: Command::default(),
            table: table_at_reset(),
            signals: (0..VECTORS).map(|_| None).collect(),
            is_heard: false,
            gather: None,
            window: None,
            window_bytes,
            has_old_window: false,
        }
    }

    /// The window lies in another file from now on, with what is pinned: in memory, or beside the file that keeps the
    /// drive. To be done before the first client comes.
    ///
    /// # Errors
    /// If there is no such file.
    pub fn renew_window(&mut self) -> std::io::Result<()> {
        if self.window_bytes == 0 {
            return Ok(());
        }
        let mut file = self.controller.renew_window_file()?;
        if file.is_none() {
            let (shared, memory) = guest_ram::shared_memory(self.window_bytes)?;
            self.controller.window_lies_in(Box::new(memory));
            file = Some(shared);
        }
        self.window = file.map(Rc::new);
        self.has_old_window = false;
        Ok(())
    }

    /// Whether the window lies where a client that is gone may have it mapped.
    pub fn has_old_window(&self) -> bool {
        self.has_old_window
    }

    /// The drive answers at once: hosts with many commands under way are signalled for several.
    pub fn gather_interrupts(&mut self) {
        self.gather = Some(Gather::new(Instant::now()));
    }

    /// Whether an interrupt that is due waits for more.
    pub fn holds_interrupts(&self) -> bool {
        self.is_bus_master()
            && self.is_heard
            && self.gather.as_ref().is_some_and(Gather::is_waiting)
    }

    /// Interrupts that are to be raised now.
    fn take_interrupts(&mut self) -> u64 {
        let controller = &mut self.controller;
        let due = controller.interrupts();
        let Some(gather) = self.gather.as_mut().filter(|_| self.is_heard) else {
            return controller.take_interrupts(due);
        };
        if due == 0 && !gather.is_waiting() {
            return 0;
        }
        let may_wait = due & controller.vectors_that_may_wait();
        let crowded = |least| controller.vectors_with(least) & may_wait;
        let completions = controller.statistics().completions;
        let waiting = gather.waiting(may_wait, crowded, completions, Instant::now);
        // Nobody is interrupted for what was taken meanwhile.
        controller.take_interrupts(due & !waiting) & controller.vectors_with(1)
    }

    /// Whether it is in D0: in D3hot a function answers to nothing but configuration requests, and makes no requests of its own
    /// (PCI Express Base 5.0 §5.3.1.4.1).
    fn is_awake(&self) -> bool {
        self.config.power_state() == 0
    }

    /// Whether the BARs answer.
    fn has_memory_space(&self) -> bool {
        self.is_awake() && (self.config.command().memory || !self.was_on.memory)
    }

    /// Whether it may access host memory, of which interrupts are a kind: not once bus mastering is switched off again
    /// (PCI Express Base 5.0 §7.5.1.1.3).
    fn is_bus_master(&self) -> bool {
        self.is_awake() && (self.config.command().bus_master || !self.was_on.bus_master)
    }

    /// Configuration space may be another.
    fn follow_config(&mut self) {
        let command = self.config.command();
        self.was_on.memory |= command.memory;
        self.was_on.bus_master |= command.bus_master;
        let is_master = self.is_bus_master();
        self.memory.set_open(is_master);
        self.controller.set_bus_master(is_master);
    }

    /// The function is as after power on, and the controller is to follow.
    fn config_is_reset(&mut self) {
        self.was_on = Command::default();
        self.table = table_at_reset();
        self.follow_config();
    }

    /// Signals the interrupts that are due.
    pub fn signal(&mut self) {
        if !self.is_bus_master() {
            return;
        }
        let mut due = self.take_interrupts();
        while due != 0 {
            let vector = due.trailing_zeros() as usize;
            due &= due - 1;
            if let Some(Some(signal)) = self.signals.get(vector) {
                // A counter that is full has been signalled often enough.
                let _ = rustix::io::write(signal, &1u64.to_ne_bytes());
            }
        }
    }

    /// The client is gone: so are its files, and the guest with all it has asked for. Its memory stays until
    /// nothing is under way any more ([`NvmeFunction::forget_memory`]).
    pub fn client_gone(&mut self) {
        self.signals.fill_with(|| None);
        self.is_heard = false;
        self.config.function_reset();
        self.config_is_reset();
        self.controller.client_gone();
        // If there is no room now, there may be when the next client comes.
        self.has_old_window = self.renew_window().is_err();
    }

    /// Whether the guest has had the controller use memory that its client has lent without a file, since this was asked last.
    pub fn takes_no_file(&self) -> bool {
        self.memory.take_met_no_file()
    }

    /// The guest's memory is let go.
    pub fn forget_memory(&mut self) {
        self.memory.clear();
    }

    fn part_of_table(&mut self, at: u64, length: usize) -> Option<&mut [u8]> {
        let at = usize::try_from(at.checked_sub(TABLE_AT)?).ok()?;
        self.table.get_mut(at..at.checked_add(length)?)
    }
}

impl Function for NvmeFunction {
    fn region_bytes(&self, region: u32) -> u64 {
        match region {
            region::BAR0 => BAR0_BYTES,
            region::BAR4 if self.window_bytes > 0 => self.window_bytes.next_power_of_two(),
            region::CONFIG => CONFIG_BYTES as u64,
            _ => 0,
        }
    }

    fn shared(&self, region: u32) -> Option<(Rc<File>, u64)> {
        let window = self.window.as_ref().filter(|_| region == region::BAR4)?;
        Some((Rc::clone(window), self.window_bytes))
    }

    fn interrupts(&self, irq: u32) -> u32 {
        match irq {
            irq::MSIX => VECTORS.into(),
            _ => 0,
        }
    }

    fn read(&mut self, region: u32, at: u64, into: &mut [u8]) {
        match region {
            // What is not there answers nothing, which reads as ones.
            _ if self.controller.is_gone() => into.fill(0xff),
            region::CONFIG => self.config.read(at, into),
            _ if !self.has_memory_space() => into.fill(0xff),
            region::BAR4 => match self.controller.window_mut() {
                Some(window) => window.read(at, into),
                None => into.fill(0),
            },
            _ if at < TABLE_AT => self.controller.register_read(at, into),
            _ => match self.part_of_table(at, into.len()) {
                Some(part) => into.copy_from_slice(part),
                None => into.fill(0),
            },
        }
    }

    fn write(&mut self, region: u32, at: u64, from: &[u8]) {
        match region {
            _ if self.controller.is_gone() => {}
            region::CONFIG => {
                if self.config.write(at, from).function_reset {
                    self.config_is_reset();
                    self.controller.function_reset();
                }
                self.follow_config();
            }
            _ if !self.has_memory_space() => {}
            region::BAR4 => {
                if let Some(window) = self.controller.window_mut() {
                    window.write(at, from);
                }
            }
            _ if at < TABLE_AT => self.controller.register_write(at, from),
            _ => {
                if let Some(part) = self.part_of_table(at, from.len()) {
                    part.copy_from_slice(from);
                }
            }
        }
    }

    fn map(&mut self, map: Map) -> Result<(), Errno> {
        self.memory.map(&map)
    }

    fn unmap(&mut self, range: Option<(u64, u64)>) -> Result<(), Errno> {
        match range {
            Some((address, bytes)) => self.memory.unmap(address, bytes),
            None => {
                self.memory.clear();
                Ok(())
            }
        }
    }

    fn set_interrupts(
        &mut self,
        _irq: u32,
        start: u32,
        files: Vec<Option<OwnedFd>>,
    ) -> Result<(), Errno> {
        let (start, count) = (start as usize, files.len());
        let signals = self
            .signals
            .get_mut(start..start + count)
            .ok_or(Errno::INVAL)?;
        for (signal, file) in signals.iter_mut().zip(files) {
            if let Some(file) = &file {
                // Who does not listen must not hold the drive up.
                let flags = rustix::fs::fcntl_getfl(file)?;
                rustix::fs::fcntl_setfl(file, flags | rustix::fs::OFlags::NONBLOCK)?;
            }
            *signal = file;
        }
        self.is_heard = self.signals.iter().any(Option::is_some);
        Ok(())
    }

    fn reset(&mut self) {
        self.config.function_reset();
        self.config_is_reset();
        self.controller.function_reset();
    }
}
