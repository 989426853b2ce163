//! The controller's registers: what a host reads, and what its writes ask for.
//!
//! Offsets and fields are those of Base 2.0 §3.1.3 ("controller properties"); doorbells and widths those of
//! the PCIe Transport 1.0 §3.1. [`Registers`] is a state machine without clock or memory: a write returns an
//! [`Effect`], the controller does what it says and reports back ([`Registers::ready`],
//! [`Registers::reset_done`], [`Registers::shutdown_done`]).
//!
//! What the standard leaves undefined changes nothing here: accesses of a wrong width, or to a part of a
//! register, and doorbells of a controller that is not ready are [`Effect::Ignored`].
//!
//! There is no controller memory buffer and no boot partition: their registers read as 0.

mod capabilities;
mod pmr;

pub use capabilities::{Capabilities, Version};
pub use pmr::{PmrCapabilities, PmrHealth, PmrSize};

use crate::entry::SUBMISSION_BYTES;
use crate::ids::{PageSize, QueueId};
use crate::layout::{bit, bits};
use pmr::Pmr;

/// Byte offsets of the registers.
#[allow(missing_docs)]
pub mod offset {
    pub const CAP: u64 = 0x00;
    pub const VS: u64 = 0x08;
    pub const INTMS: u64 = 0x0c;
    pub const INTMC: u64 = 0x10;
    pub const CC: u64 = 0x14;
    pub const CSTS: u64 = 0x1c;
    pub const NSSR: u64 = 0x20;
    pub const AQA: u64 = 0x24;
    pub const ASQ: u64 = 0x28;
    pub const ACQ: u64 = 0x30;
    pub const CMBLOC: u64 = 0x38;
    pub const CMBSZ: u64 = 0x3c;
    pub const BPINFO: u64 = 0x40;
    pub const CRTO: u64 = 0x68;
    pub const PMRCAP: u64 = 0xe00;
    pub const PMRCTL: u64 = 0xe04;
    pub const PMRSTS: u64 = 0xe08;
    pub const PMREBS: u64 = 0xe0c;
    pub const PMRSWTP: u64 = 0xe10;
    pub const PMRMSCL: u64 = 0xe14;
    pub const PMRMSCU: u64 = 0xe18;
    /// The first doorbell, that of the admin submission queue.
    pub const DOORBELLS: u64 = 0x1000;
}

/// What NSSR must be written to reset the subsystem: "NVMe".
pub const SUBSYSTEM_RESET_WORD: u32 = 0x4e56_4d65;

/// Where a queue is, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueMemory {
    /// First byte, aligned to memory pages.
    pub address: u64,
    /// Entries, 2 to 65536.
    pub entries: u32,
}

impl QueueMemory {
    /// Whether all of it is within all addresses, whichever kind of queue it is.
    #[must_use]
    pub fn is_addressable(self) -> bool {
        let last = u64::from(self.entries) * SUBMISSION_BYTES as u64 - 1;
        self.address.checked_add(last).is_some()
    }
}

/// What a host asks for as it enables the controller; valid for it (Base 2.0 §3.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enable {
    /// The admin submission queue, at most 4096 entries.
    pub admin_submission: QueueMemory,
    /// The admin completion queue, at most 4096 entries.
    pub admin_completion: QueueMemory,
    /// Size of memory pages (CC.MPS).
    pub page: PageSize,
    /// Command sets selected (CC.CSS): 000b NVM alone, 110b all, 111b admin commands alone.
    pub command_sets: u8,
    /// Whether queues have weights and an urgent class (CC.AMS 001b), or are served in turn.
    pub is_weighted: bool,
    /// Whether it may become ready before its media is (CC.CRIME).
    pub ready_without_media: bool,
}

/// How a host says goodbye (CC.SHN).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// There is time to save everything.
    Normal,
    /// Power will be gone at once.
    Abrupt,
}

/// Which of a pair of queues a doorbell is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoorbellKind {
    /// Tail of a submission queue: commands have been added.
    SubmissionTail,
    /// Head of a completion queue: completions have been taken.
    CompletionHead,
}

/// A doorbell that was rung. Whether the queue exists, and the value fits, is for the queues to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doorbell {
    /// Whose.
    pub queue: QueueId,
    /// Which.
    pub kind: DoorbellKind,
    /// The index written.
    pub value: u16,
}

/// Why an access changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// It has not the width of a register, or is not aligned.
    Width,
    /// There is no register, or it cannot be written.
    ReadOnly,
    /// A doorbell of a controller that is not ready.
    NotReady,
    /// A value that is reserved.
    Reserved,
    /// The device is gone ([`Registers::vanish`]).
    Vanished,
}

/// Why a controller cannot be enabled as asked. CSTS.CFS is then set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnableError {
    /// CC.CSS is not one of CAP.CSS.
    #[error("CC.CSS selects a command set that is not supported")]
    CommandSet,
    /// CC.MPS is not between CAP.MPSMIN and CAP.MPSMAX.
    #[error("CC.MPS selects a page size that is not supported")]
    PageSize,
    /// CC.AMS is not one of CAP.AMS.
    #[error("CC.AMS selects an arbitration that is not supported")]
    Arbitration,
    /// A queue of AQA has one entry.
    #[error("an admin queue has fewer than two entries")]
    QueueSize,
    /// ASQ or ACQ is not aligned to memory pages, or the queue ends beyond all addresses.
    #[error("an admin queue is not aligned to memory pages, or ends beyond all addresses")]
    QueueAddress,
}

/// What a write asks of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: a value was noted.
    None,
    /// Nothing: it was not an access that counts.
    Ignored(Ignored),
    /// Start; then call [`Registers::ready`].
    Enable(Enable),
    /// Nothing, the host asked for what there is not: CSTS.CFS is set.
    Refused(EnableError),
    /// Controller reset (§3.7.2): stop, forget queues and host memory; then [`Registers::reset_done`].
    Disable,
    /// Save; then [`Registers::shutdown_done`].
    Shutdown(Shutdown),
    /// NVM subsystem reset (§3.7.1): as [`Effect::Disable`], for every controller of the subsystem.
    SubsystemReset,
    /// A doorbell.
    Doorbell(Doorbell),
    /// These vectors of pin or MSI interrupts are masked now, a bit each (§3.1.3.3).
    InterruptMask(u32),
    /// The persistent memory region is to be enabled or disabled; then [`Registers::pmr_ready`].
    PmrEnable(bool),
    /// Where the host has the region in its address space for use by commands; `None`: not at all.
    PmrMemorySpace(Option<u64>),
}

/// What a read asks of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadEffect {
    /// Nothing.
    None,
    /// PMRSTS was read and PMRCAP says that this makes what was stored before persistent: do so before
    /// the value is answered (§3.1.3.22, PMRWBM bit 1).
    PersistPmr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// CC.EN is 0, nothing goes on.
    Disabled,
    /// CC.EN is 1, not ready yet.
    Enabling,
    /// CSTS.RDY.
    Ready,
    /// CC.EN was cleared; `was_ready` still shows in CSTS.RDY.
    Resetting { was_ready: bool },
    /// CSTS.CFS: only a reset helps. CSTS.RDY says until then what it said before.
    Failed { was_ready: bool },
}

const CC_ENABLE: u32 = 1;
/// IOSQES and IOCQES, which may change while the controller is enabled.
const CC_ENTRY_SIZES: u32 = 0x00ff_0000;
const CC_SHUTDOWN: u32 = 3 << 14;
/// All that CC has.
const CC_FIELDS: u32 = 0x01ff_fff1;
const CSTS_NSSRO: u32 = 1 << 4;
/// ASQS and ACQS.
const AQA_FIELDS: u32 = 0x0fff_0fff;
/// ASQB and ACQB.
const QUEUE_ADDRESS: u64 = !0xfff;

/// The registers of one controller.
#[derive(Clone, Debug)]
pub struct Registers {
    capabilities: Capabilities,
    state: State,
    cc: u32,
    /// SHST: 0 none, 1 under way, 2 done.
    shutdown: u32,
    subsystem_was_reset: bool,
    interrupt_mask: u32,
    aqa: u32,
    asq: u64,
    acq: u64,
    pmr: Option<Pmr>,
    has_vanished: bool,
}

impl Registers {
    /// As after power on.
    #[must_use]
    pub fn new(capabilities: Capabilities) -> Self {
        Registers {
            capabilities,
            state: State::Disabled,
            cc: 0,
            shutdown: 0,
            subsystem_was_reset: false,
            interrupt_mask: 0,
            aqa: 0,
            asq: 0,
            acq: 0,
            pmr: capabilities.pmr.map(Pmr::new),
            has_vanished: false,
        }
    }

    /// What the controller can do.
    #[must_use]
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// Whether CSTS.RDY is 1: commands are processed.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.state == State::Ready
    }

    /// Entry sizes of I/O queues, powers of two, bytes (CC.IOSQES, CC.IOCQES). Hosts set them at the
    /// latest before they create such queues: 6 and 4.
    #[must_use]
    pub fn io_entry_sizes(&self) -> (u8, u8) {
        let cc = u64::from(self.cc);
        (bits(cc, 16, 4) as u8, bits(cc, 20, 4) as u8)
    }

    /// The controller is ready, as asked for by [`Effect::Enable`].
    pub fn ready(&mut self) {
        if self.state == State::Enabling {
            self.state = State::Ready;
        }
    }

    /// The reset asked for by [`Effect::Disable`] or [`Effect::SubsystemReset`] is complete. If the host has
    /// meanwhile enabled the controller again, says so.
    pub fn reset_done(&mut self) -> Effect {
        if !matches!(self.state, State::Resetting { .. }) {
            return Effect::None;
        }
        self.state = State::Disabled;
        if self.cc & CC_ENABLE != 0 {
            return self.enable();
        }
        Effect::None
    }

    /// The shutdown asked for by [`Effect::Shutdown`] is complete.
    pub fn shutdown_done(&mut self) {
        if self.shutdown == 1 {
            self.shutdown = 2;
        }
    }

    /// A fatal error: CSTS.CFS is set until the host resets the controller (§3.1.3.6).
    pub fn fail(&mut self) {
        self.state = match self.state {
            State::Ready => State::Failed { was_ready: true },
            State::Enabling => State::Failed { was_ready: false },
            // A reset is under way already, or it has failed before.
            state => state,
        };
    }

    /// A reset of the PCI function, or power on: all registers are as at first, the admin queues' too.
    pub fn function_reset(&mut self) {
        *self = Registers::new(self.capabilities);
    }

    /// The device is gone from its slot (or back): all reads give ones, as CSTS FFFFFFFFh.
    pub fn vanish(&mut self, is_gone: bool) {
        self.has_vanished = is_gone;
    }

    /// The persistent memory region is as the host wants it ([`Effect::PmrEnable`]), and how well it is.
    pub fn pmr_ready(&mut self, health: PmrHealth) {
        if let Some(pmr) = &mut self.pmr {
            pmr.ready(health);
        }
    }

    /// Whether the host has the persistent memory region enabled (PMRCTL.EN).
    #[must_use]
    pub fn pmr_is_enabled(&self) -> bool {
        self.pmr.as_ref().is_some_and(Pmr::is_enabled)
    }

    /// Whether the host waits for the region it has enabled ([`Registers::pmr_ready`]).
    #[must_use]
    pub fn pmr_waits(&self) -> bool {
        self.pmr.as_ref().is_some_and(Pmr::waits)
    }

    fn is_enabled(&self) -> bool {
        self.cc & CC_ENABLE != 0
    }

    /// CSTS.
    #[must_use]
    pub fn status(&self) -> u32 {
        let is_ready = matches!(
            self.state,
            State::Ready | State::Resetting { was_ready: true } | State::Failed { was_ready: true }
        );
        let has_failed = matches!(self.state, State::Failed { .. });
        u32::from(is_ready)
            | u32::from(has_failed) << 1
            | self.shutdown << 2
            | u32::from(self.subsystem_was_reset) << 4
    }

    /// The four bytes at an aligned offset.
    fn dword(&self, at: u64) -> u32 {
        let half = |number: u64| (number >> (8 * (at & 4))) as u32;
        match at {
            0x00 | 0x04 => half(self.capabilities.encode()),
            offset::VS => self.capabilities.version.encode(),
            offset::INTMS | offset::INTMC => self.interrupt_mask,
            offset::CC => self.cc,
            offset::CSTS => self.status(),
            offset::AQA => self.aqa,
            0x28 | 0x2c => half(self.asq),
            0x30 | 0x34 => half(self.acq),
            offset::CRTO => self.capabilities.ready_timeouts(),
            offset::PMRCAP..offset::DOORBELLS => self.pmr.as_ref().map_or(0, |pmr| pmr.dword(at)),
            _ => 0,
        }
    }

    /// A read of any width anywhere. Reserved bytes and doorbells are 0.
    pub fn read(&self, at: u64, into: &mut [u8]) -> ReadEffect {
        if self.has_vanished {
            into.fill(0xff);
            return ReadEffect::None;
        }
        let end = at.saturating_add(into.len() as u64);
        for (byte, at) in into.iter_mut().zip(at..) {
            *byte = self.dword(at & !3).to_le_bytes()[(at & 3) as usize];
        }
        let is_pmr_status = at < offset::PMRSTS + 4 && end > offset::PMRSTS;
        match &self.pmr {
            Some(pmr) if is_pmr_status && pmr.status_read_persists() => ReadEffect::PersistPmr,
            _ => ReadEffect::None,
        }
    }

    /// A write of any width anywhere.
    pub fn write(&mut self, at: u64, from: &[u8]) -> Effect {
        if self.has_vanished {
            return Effect::Ignored(Ignored::Vanished);
        }
        match *from {
            [a, b, c, d] if at & 3 == 0 => self.write_dword(at, u32::from_le_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => {
                let value = u64::from_le_bytes([a, b, c, d, e, f, g, h]) & QUEUE_ADDRESS;
                match at {
                    offset::ASQ => self.asq = value,
                    offset::ACQ => self.acq = value,
                    offset::CAP => return Effect::Ignored(Ignored::ReadOnly),
                    _ => return Effect::Ignored(Ignored::Width),
                }
                Effect::None
            }
            _ => Effect::Ignored(Ignored::Width),
        }
    }

    fn write_dword(&mut self, at: u64, value: u32) -> Effect {
        let low = |old: u64| old & !0xffff_ffff | u64::from(value) & QUEUE_ADDRESS;
        let high = |old: u64| old & 0xffff_ffff | u64::from(value) << 32;
        match at {
            offset::INTMS => return self.mask_interrupts(self.interrupt_mask | value),
            offset::INTMC => return self.mask_interrupts(self.interrupt_mask & !value),
            offset::CC => return self.write_cc(value & CC_FIELDS),
            offset::CSTS if value & CSTS_NSSRO != 0 => self.subsystem_was_reset = false,
            offset::CSTS => {}
            offset::NSSR => return self.write_nssr(value),
            offset::AQA => self.aqa = value & AQA_FIELDS,
            0x28 => self.asq = low(self.asq),
            0x2c => self.asq = high(self.asq),
            0x30 => self.acq = low(self.acq),
            0x34 => self.acq = high(self.acq),
            offset::PMRCAP..offset::DOORBELLS => {
                let pmr = self.pmr.as_mut();
                return pmr.map_or(Effect::Ignored(Ignored::ReadOnly), |pmr| {
                    pmr.write(at, value)
                });
            }
            offset::DOORBELLS.. => return self.ring(at - offset::DOORBELLS, value),
            _ => return Effect::Ignored(Ignored::ReadOnly),
        }
        Effect::None
    }

    fn mask_interrupts(&mut self, mask: u32) -> Effect {
        self.interrupt_mask = mask;
        Effect::InterruptMask(mask)
    }

    fn write_nssr(&mut self, value: u32) -> Effect {
        if !self.capabilities.subsystem_reset || value != SUBSYSTEM_RESET_WORD {
            return Effect::Ignored(Ignored::Reserved);
        }
        self.function_reset();
        self.subsystem_was_reset = true;
        self.state = State::Resetting { was_ready: false };
        Effect::SubsystemReset
    }

    /// Doorbells lie `stride` apart, submission and completion queue in turn (PCIe Transport 1.0 §3.1.2).
    fn ring(&self, offset_bytes: u64, value: u32) -> Effect {
        let stride_bytes = self.capabilities.doorbell_stride_bytes();
        let index = offset_bytes / stride_bytes;
        let (Ok(queue), true) = (
            u16::try_from(index / 2),
            offset_bytes.is_multiple_of(stride_bytes),
        ) else {
            return Effect::Ignored(Ignored::ReadOnly);
        };
        if !self.is_ready() {
            return Effect::Ignored(Ignored::NotReady);
        }
        Effect::Doorbell(Doorbell {
            queue: QueueId(queue),
            kind: match index % 2 {
                0 => DoorbellKind::SubmissionTail,
                _ => DoorbellKind::CompletionHead,
            },
            // Bits 31:16 are reserved.
            value: value as u16,
        })
    }

    fn write_cc(&mut self, new: u32) -> Effect {
        let old = self.cc;
        match (self.is_enabled(), new & CC_ENABLE != 0) {
            (false, true) => {
                // A shutdown in the same write would be one of a controller that has not begun.
                self.cc = new & !CC_SHUTDOWN;
                if matches!(self.state, State::Resetting { .. }) {
                    return Effect::None; // `reset_done` goes on from here.
                }
                self.enable()
            }
            (true, false) => self.disable(),
            (true, true) => {
                // CSS, MPS and AMS are the host's to change while EN is 0 only.
                let changes = CC_ENTRY_SIZES | CC_SHUTDOWN;
                self.cc = old & !changes | new & changes;
                self.notice_shutdown(old)
            }
            (false, false) => {
                self.cc = new;
                self.notice_shutdown(old)
            }
        }
    }

    fn disable(&mut self) -> Effect {
        self.cc = 0;
        self.shutdown = 0;
        if let State::Resetting { .. } = self.state {
            return Effect::None; // The reset is under way; no one waits to be enabled after it now.
        }
        let ready = State::Failed { was_ready: true };
        let was_ready = self.state == State::Ready || self.state == ready;
        self.state = State::Resetting { was_ready };
        self.interrupt_mask = 0;
        Effect::Disable
    }

    fn notice_shutdown(&mut self, old: u32) -> Effect {
        let notice = self.cc & CC_SHUTDOWN;
        if notice == old & CC_SHUTDOWN || notice == 0 {
            return Effect::None;
        }
        let kind = match notice >> 14 {
            1 => Shutdown::Normal,
            2 => Shutdown::Abrupt,
            _ => return Effect::Ignored(Ignored::Reserved),
        };
        self.shutdown = 1;
        Effect::Shutdown(kind)
    }

    fn enable(&mut self) -> Effect {
        self.shutdown = 0;
        match self.checked() {
            Ok(enable) => {
                self.state = State::Enabling;
                Effect::Enable(enable)
            }
            Err(error) => {
                self.state = State::Failed { was_ready: false };
                Effect::Refused(error)
            }
        }
    }

    fn checked(&self) -> Result<Enable, EnableError> {
        let (can, cc, aqa) = (&self.capabilities, u64::from(self.cc), u64::from(self.aqa));
        let command_sets = bits(cc, 4, 3) as u8;
        if !can.selectable(command_sets) {
            return Err(EnableError::CommandSet);
        }
        let page = PageSize::from_mps(bits(cc, 7, 4) as u8);
        let page = page.filter(|page| (can.page_min..=can.page_max).contains(page));
        let page = page.ok_or(EnableError::PageSize)?;
        let is_weighted = match bits(cc, 11, 3) {
            0 => false,
            1 if can.weighted_arbitration => true,
            _ => return Err(EnableError::Arbitration),
        };
        let [admin_submission, admin_completion] =
            [(self.asq, 0), (self.acq, 16)].map(|(address, low)| QueueMemory {
                address,
                entries: bits(aqa, low, 12) as u32 + 1,
            });
        for queue in [admin_submission, admin_completion] {
            if queue.entries < 2 {
                return Err(EnableError::QueueSize);
            }
            if !page.is_aligned(queue.address) || !queue.is_addressable() {
                return Err(EnableError::QueueAddress);
            }
        }
        Ok(Enable {
            admin_submission,
            admin_completion,
            page,
            command_sets,
            is_weighted,
            ready_without_media: bit(cc, 24) && can.ready_without_media_500ms.is_some(),
        })
    }
}
