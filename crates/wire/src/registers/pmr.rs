//! The persistent memory region's registers (Base 2.0 §3.1.3.22 to §3.1.3.28, §8.14).

use super::{Effect, Ignored, offset};
use crate::layout::{bit, bits};

/// Unit of a size or rate: 2 to the power of 10 x `unit`, bytes; and how many (fields PMRSZU, PMRWBZ and
/// PMRSWTU, PMRSWTV).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PmrSize {
    /// 0 bytes, 1 KiB, 2 MiB, 3 GiB; more are reserved.
    pub unit: u8,
    /// How many, 24 bits.
    pub count: u32,
}

impl PmrSize {
    fn encode(self) -> u32 {
        u32::from(self.unit & 15) | self.count << 8
    }
}

/// What PMRCAP, PMREBS and PMRSWTP say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PmrCapabilities {
    /// Whether commands may read data from it (RDS).
    pub data_reads: bool,
    /// Whether commands may write data to it (WDS).
    pub data_writes: bool,
    /// The base address register it lies behind, 2 to 5 (BIR).
    pub bar: u8,
    /// Whether a read of any of its bytes makes earlier stores persistent (PMRWBM bit 0).
    pub memory_read_persists: bool,
    /// Whether a read of PMRSTS does (PMRWBM bit 1).
    pub status_read_persists: bool,
    /// Longest time to be ready, 500 ms (PMRTO, PMRTU 00b).
    pub timeout_500ms: u8,
    /// Whether commands of this controller may name its addresses (CMSS).
    pub memory_space: bool,
    /// How much can be stored at full speed after a pause (PMREBS); 0: any amount.
    pub elasticity: PmrSize,
    /// Whether reads do not wait for stores (PMREBS.RBB).
    pub reads_bypass_writes: bool,
    /// Sustained rate of stores, a second (PMRSWTP).
    pub sustained_writes: PmrSize,
}

/// How well the region is (PMRSTS.HSTS).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum PmrHealth {
    /// As it should be.
    #[default]
    Normal = 0,
    /// What it held is lost.
    RestoreError = 1,
    /// It can be read only.
    ReadOnly = 2,
    /// It can be relied on no more.
    Unreliable = 3,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Pmr {
    capabilities: PmrCapabilities,
    is_enabled: bool,
    is_ready: bool,
    health: PmrHealth,
    /// PMRMSC, 64 bits of two registers.
    memory_space: u64,
}

/// CMSE.
const MEMORY_SPACE_ENABLE: u64 = 1 << 1;
/// CBA and CMSE.
const MEMORY_SPACE_FIELDS: u64 = !0xfff | MEMORY_SPACE_ENABLE;

impl Pmr {
    pub(super) fn new(capabilities: PmrCapabilities) -> Self {
        Pmr {
            capabilities,
            is_enabled: false,
            is_ready: false,
            health: PmrHealth::Normal,
            memory_space: 0,
        }
    }

    pub(super) fn ready(&mut self, health: PmrHealth) {
        self.is_ready = self.is_enabled;
        self.health = health;
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    pub(super) fn waits(&self) -> bool {
        self.is_enabled && !self.is_ready
    }

    pub(super) fn status_read_persists(&self) -> bool {
        self.capabilities.status_read_persists
    }

    pub(super) fn dword(&self, at: u64) -> u32 {
        let can = &self.capabilities;
        match at {
            offset::PMRCAP => {
                u32::from(can.data_reads) << 3
                    | u32::from(can.data_writes) << 4
                    | u32::from(can.bar & 7) << 5
                    | u32::from(can.memory_read_persists) << 10
                    | u32::from(can.status_read_persists) << 11
                    | u32::from(can.timeout_500ms) << 16
                    | u32::from(can.memory_space) << 24
            }
            offset::PMRCTL => u32::from(self.is_enabled),
            // NRDY: 1 until it is ready.
            offset::PMRSTS => u32::from(!self.is_ready) << 8 | (self.health as u32) << 9,
            offset::PMREBS => can.elasticity.encode() | u32::from(can.reads_bypass_writes) << 4,
            offset::PMRSWTP => can.sustained_writes.encode(),
            offset::PMRMSCL => self.memory_space as u32,
            offset::PMRMSCU => (self.memory_space >> 32) as u32,
            _ => 0,
        }
    }

    pub(super) fn write(&mut self, at: u64, value: u32) -> Effect {
        let value = u64::from(value);
        match at {
            offset::PMRCTL => {
                let wanted = bit(value, 0);
                if wanted == self.is_enabled {
                    return Effect::None;
                }
                self.is_enabled = wanted;
                self.is_ready = false;
                Effect::PmrEnable(wanted)
            }
            offset::PMRMSCL if self.capabilities.memory_space => {
                let space = self.memory_space & !0xffff_ffff | value & MEMORY_SPACE_FIELDS;
                self.move_to(space)
            }
            offset::PMRMSCU if self.capabilities.memory_space => {
                self.move_to(bits(self.memory_space, 0, 32) | value << 32)
            }
            _ => Effect::Ignored(Ignored::ReadOnly),
        }
    }

    fn move_to(&mut self, space: u64) -> Effect {
        self.memory_space = space;
        let is_enabled = space & MEMORY_SPACE_ENABLE != 0;
        Effect::PmrMemorySpace(is_enabled.then_some(space & !0xfff))
    }
}
