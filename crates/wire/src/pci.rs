//! The PCI function's configuration space: 4096 bytes, which of their bits a host may write, and what such
//! writes ask for (PCI Express Base 5.0 §7.5; PCIe Transport 1.0 for what NVMe wants there).
//!
//! Capabilities: power management at 40h, MSI-X at 50h, PCI Express at 60h. Base address registers are
//! 64-bit; a virtual machine monitor finds their sizes as any firmware does, by writing ones. What stands in the table of
//! MSI-X is the monitor's own matter: over vfio-user it hands out a file to signal for each vector.

use crate::layout::bit;

/// Bytes of the configuration space.
pub const CONFIG_BYTES: usize = 4096;
/// Class of a controller with NVMe's interface: mass storage, non-volatile memory, NVM Express.
pub const CLASS_NVME: u32 = 0x01_0802;
/// Class of a function that is memory and nothing else, as a byte window on its own.
pub const CLASS_MEMORY: u32 = 0x05_8000;

/// Byte offsets.
#[allow(missing_docs)]
pub mod offset {
    pub const VENDOR_ID: usize = 0x00;
    pub const COMMAND: usize = 0x04;
    pub const STATUS: usize = 0x06;
    pub const CLASS_REVISION: usize = 0x08;
    pub const HEADER_TYPE: usize = 0x0e;
    pub const BARS: usize = 0x10;
    pub const SUBSYSTEM: usize = 0x2c;
    pub const CAPABILITIES: usize = 0x34;
    pub const INTERRUPT_LINE: usize = 0x3c;
    pub const POWER: usize = 0x40;
    pub const MSIX: usize = 0x50;
    pub const EXPRESS: usize = 0x60;
}

const POWER_STATUS: usize = offset::POWER + 4;
const MSIX_CONTROL: usize = offset::MSIX + 2;
const DEVICE_CONTROL: usize = offset::EXPRESS + 8;
const LINK_CONTROL: usize = offset::EXPRESS + 0x10;
const DEVICE_CONTROL_2: usize = offset::EXPRESS + 0x28;

/// Who made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PciIdentity {
    /// Vendor; Identify Controller's VID is the same.
    pub vendor: u16,
    /// Device.
    pub device: u16,
    /// Vendor of the subsystem; Identify Controller's SSVID is the same.
    pub subsystem_vendor: u16,
    /// Subsystem.
    pub subsystem: u16,
    /// Revision.
    pub revision: u8,
    /// Class, subclass, programming interface: 24 bits.
    pub class: u32,
}

/// A window into the host's address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Its first register: 0, 2 or 4, as each takes two.
    pub index: u8,
    /// Size, bytes: a power of two, 16 or more.
    pub bytes: u64,
    /// Whether reads have no side effects, so that a CPU may combine stores and read ahead.
    pub prefetchable: bool,
}

/// Where the interrupts' table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Msix {
    /// Interrupt vectors, 1 to 2048.
    pub vectors: u16,
    /// BAR of table and pending bits.
    pub bar: u8,
    /// Offset of the table, 16 bytes a vector; a multiple of 8.
    pub table_offset: u32,
    /// Offset of the pending bits; a multiple of 8.
    pub pending_offset: u32,
}

/// The link, as the drive file has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Generation of PCI Express, 1 to 6.
    pub generation: u8,
    /// Lanes, 1 to 16.
    pub lanes: u8,
}

/// Why a function cannot be as described. These are the program's or a drive file's mistakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PciError {
    /// Not one of registers 0, 2 and 4, or twice the same.
    #[error("a base address register must be 0, 2 or 4, each once, found `{0}`")]
    BarIndex(u8),
    /// Not a power of two, or too small.
    #[error("a window's size must be a power of two of 16 bytes or more, found `{0}`")]
    BarSize(u64),
    /// No vectors, too many, or not within their BAR.
    #[error(
        "interrupt table and pending bits must be aligned to 8 bytes, apart, and inside their window"
    )]
    Msix,
}

/// What writes ask for; several may come at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConfigChange {
    /// Memory accesses and bus mastering were switched.
    pub command: Option<Command>,
    /// The power state was set: 0 for D0, 3 for D3hot.
    pub power_state: Option<u8>,
    /// MSI-X was switched or masked.
    pub msix: Option<MsixControl>,
    /// A base address register was written.
    pub bars: bool,
    /// A function level reset: registers and configuration space are as after power on. The controller
    /// stops and forgets, then the monitor may go on.
    pub function_reset: bool,
}

/// Bits of the command register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// Whether BARs answer.
    pub memory: bool,
    /// Whether the function may access host memory.
    pub bus_master: bool,
}

/// Bits of MSI-X' message control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MsixControl {
    /// Whether interrupts go by MSI-X.
    pub enabled: bool,
    /// Whether all vectors are masked.
    pub masked: bool,
}

/// Configuration space of one function.
#[derive(Clone, Debug)]
pub struct ConfigSpace {
    bytes: Box<[u8; CONFIG_BYTES]>,
    writable: Box<[u8; CONFIG_BYTES]>,
    at_power_on: Box<[u8; CONFIG_BYTES]>,
}

impl ConfigSpace {
    /// A function with these windows, of which the interrupts' table is in one.
    ///
    /// # Errors
    /// If windows or table cannot be so.
    pub fn new(
        identity: PciIdentity,
        bars: &[Bar],
        msix: Option<Msix>,
        link: Link,
    ) -> Result<Self, PciError> {
        let empty = || Box::new([0; CONFIG_BYTES]);
        let mut space = ConfigSpace {
            bytes: empty(),
            writable: empty(),
            at_power_on: empty(),
        };
        space.put_header(identity);
        for (index, bar) in bars.iter().enumerate() {
            if bars[..index].iter().any(|other| other.index == bar.index) {
                return Err(PciError::BarIndex(bar.index));
            }
            space.put_bar(*bar)?;
        }
        space.put_power(if msix.is_some() {
            offset::MSIX
        } else {
            offset::EXPRESS
        });
        if let Some(msix) = msix {
            space.put_msix(msix, bars)?;
        }
        space.put_express(link);
        space.at_power_on = space.bytes.clone();
        Ok(space)
    }

    fn put16(&mut self, at: usize, value: u16, writable: u16) {
        self.bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
        self.writable[at..at + 2].copy_from_slice(&writable.to_le_bytes());
    }

    fn put32(&mut self, at: usize, value: u32, writable: u32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        self.writable[at..at + 4].copy_from_slice(&writable.to_le_bytes());
    }

    fn put_header(&mut self, identity: PciIdentity) {
        self.put16(offset::VENDOR_ID, identity.vendor, 0);
        self.put16(offset::VENDOR_ID + 2, identity.device, 0);
        // Memory space, bus master, parity errors, SERR, interrupt disable.
        self.put16(offset::COMMAND, 0, 0x0546);
        // There is a list of capabilities.
        self.put16(offset::STATUS, 0x10, 0);
        let class = identity.class << 8 | u32::from(identity.revision);
        self.put32(offset::CLASS_REVISION, class, 0);
        // Cache line size is the host's own note.
        self.writable[0x0c] = 0xff;
        let subsystem = u32::from(identity.subsystem) << 16 | u32::from(identity.subsystem_vendor);
        self.put32(offset::SUBSYSTEM, subsystem, 0);
        self.bytes[offset::CAPABILITIES] = offset::POWER as u8;
        // Interrupt line is the host's own note. No pin: interrupts go by MSI-X.
        self.put16(offset::INTERRUPT_LINE, 0, 0x00ff);
    }

    fn put_bar(&mut self, bar: Bar) -> Result<(), PciError> {
        if !matches!(bar.index, 0 | 2 | 4) {
            return Err(PciError::BarIndex(bar.index));
        }
        if !bar.bytes.is_power_of_two() || bar.bytes < 16 {
            return Err(PciError::BarSize(bar.bytes));
        }
        // Memory, 64 bits wide (type 10b).
        let kind = 0b100 | u32::from(bar.prefetchable) << 3;
        let mask = !(bar.bytes - 1);
        let at = offset::BARS + 4 * usize::from(bar.index);
        self.put32(at, kind, mask as u32);
        self.put32(at + 4, 0, (mask >> 32) as u32);
        Ok(())
    }

    fn put_power(&mut self, next: usize) {
        self.put16(offset::POWER, (next as u16) << 8 | 0x01, 0);
        // Version 3, no PME.
        self.put16(offset::POWER + 2, 3, 0);
        // No soft reset: D3hot to D0 keeps the configuration.
        self.put16(POWER_STATUS, 1 << 3, 3);
    }

    fn put_msix(&mut self, msix: Msix, bars: &[Bar]) -> Result<(), PciError> {
        let bar = bars.iter().find(|bar| bar.index == msix.bar);
        let vectors = u64::from(msix.vectors);
        let [table, pending] = [msix.table_offset, msix.pending_offset].map(u64::from);
        let (table_end, pending_end) = (table + 16 * vectors, pending + 8 * vectors.div_ceil(64));
        let is_good = bar.is_some_and(|bar| table_end.max(pending_end) <= bar.bytes)
            && (1..=2048).contains(&vectors)
            && (table | pending) % 8 == 0
            && (table_end <= pending || pending_end <= table);
        if !is_good {
            return Err(PciError::Msix);
        }
        self.put16(offset::MSIX, (offset::EXPRESS as u16) << 8 | 0x11, 0);
        // Table size is 0-based; enable and mask are the host's.
        self.put16(MSIX_CONTROL, msix.vectors - 1, 3 << 14);
        let bar = u32::from(msix.bar);
        self.put32(offset::MSIX + 4, msix.table_offset | bar, 0);
        self.put32(offset::MSIX + 8, msix.pending_offset | bar, 0);
        Ok(())
    }

    fn put_express(&mut self, link: Link) {
        self.put16(offset::EXPRESS, 0x10, 0);
        // Version 2, endpoint.
        self.put16(offset::EXPRESS + 2, 2, 0);
        // Payloads up to 256 bytes, tags of 8 bits, role-based errors, function level reset.
        self.put32(offset::EXPRESS + 4, 1 | 1 << 5 | 1 << 15 | 1 << 28, 0);
        // Error reporting, payload, tags, no snoop and read request size; reset reads as 0.
        self.put16(DEVICE_CONTROL, 0x2810, 0x7fff);
        let (speed, lanes) = (u16::from(link.generation), u16::from(link.lanes));
        let both = speed & 15 | (lanes & 0x3f) << 4;
        self.put32(offset::EXPRESS + 0x0c, u32::from(both), 0);
        self.put16(LINK_CONTROL, 0, 0x01cb);
        self.put16(LINK_CONTROL + 2, both, 0);
        // Completion time-outs can be disabled.
        self.put32(offset::EXPRESS + 0x24, 1 << 4, 0);
        self.put16(DEVICE_CONTROL_2, 0, 0x001f);
        // Speeds up to that of the link, a bit each from bit 1 on.
        let speeds = (1u32 << link.generation.min(7)) - 1;
        self.put32(offset::EXPRESS + 0x2c, speeds << 1, 0);
        self.put16(offset::EXPRESS + 0x30, speed & 15, 0x000f);
    }

    fn get16(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    /// A read of any width anywhere; beyond the end, zeros.
    pub fn read(&self, at: u64, into: &mut [u8]) {
        for (byte, at) in into.iter_mut().zip(at..) {
            let at = usize::try_from(at).ok();
            *byte = at.and_then(|at| self.bytes.get(at)).copied().unwrap_or(0);
        }
    }

    /// A write of any width anywhere: what may change does, the rest is ignored.
    pub fn write(&mut self, at: u64, from: &[u8]) -> ConfigChange {
        let before = (self.command(), self.power_state(), self.msix());
        let asks_reset = from
            .iter()
            .zip(at..)
            .any(|(byte, at)| at == DEVICE_CONTROL as u64 + 1 && byte & 0x80 != 0);
        if asks_reset {
            self.function_reset();
            let function_reset = true;
            return ConfigChange {
                function_reset,
                ..ConfigChange::default()
            };
        }
        let mut bars = false;
        for (byte, at) in from.iter().zip(at..) {
            let Some(at) = usize::try_from(at).ok().filter(|at| *at < CONFIG_BYTES) else {
                break;
            };
            let writable = self.writable[at];
            self.bytes[at] = self.bytes[at] & !writable | byte & writable;
            bars |= (offset::BARS..offset::BARS + 24).contains(&at);
        }
        if matches!(self.power_state(), 1 | 2) {
            // A state that is not offered: the write is as good as none (PCI Power Management 1.2 §3.2.4).
            self.bytes[POWER_STATUS] = self.bytes[POWER_STATUS] & !3 | before.1;
        }
        let (command, power_state, msix) = (self.command(), self.power_state(), self.msix());
        ConfigChange {
            command: (command != before.0).then_some(command),
            power_state: (power_state != before.1).then_some(power_state),
            msix: (msix != before.2).then_some(msix),
            bars,
            function_reset: false,
        }
    }

    /// As after power on. The monitor that set addresses sets them again.
    pub fn function_reset(&mut self) {
        self.bytes.clone_from(&self.at_power_on);
    }

    /// What the command register says.
    #[must_use]
    pub fn command(&self) -> Command {
        let command = u64::from(self.get16(offset::COMMAND));
        Command {
            memory: bit(command, 1),
            bus_master: bit(command, 2),
        }
    }

    /// 0 for D0, 3 for D3hot.
    #[must_use]
    pub fn power_state(&self) -> u8 {
        self.bytes[POWER_STATUS] & 3
    }

    /// How MSI-X is set; off where there is none.
    #[must_use]
    pub fn msix(&self) -> MsixControl {
        let control = u64::from(self.get16(MSIX_CONTROL));
        MsixControl {
            enabled: bit(control, 15),
            masked: bit(control, 14),
        }
    }

    /// Where the host has put a window; 0 before it has.
    #[must_use]
    pub fn bar_address(&self, index: u8) -> Option<u64> {
        let at = offset::BARS + 4 * usize::from(index);
        let bytes = self.bytes.get(at..at + 8)?;
        let address = bytes
            .iter()
            .rev()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        matches!(index, 0 | 2 | 4).then_some(address & !0xf)
    }
}
