//! What a controller can do: CAP, VS and CRTO (Base 2.0 §3.1.3.1, §3.1.3.2, §3.1.3.21).

use super::PmrCapabilities;
use crate::ids::PageSize;

/// Version of the base specification (VS, and VER of Identify Controller).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// Before the first point.
    pub major: u16,
    /// After it.
    pub minor: u8,
    /// After the second.
    pub tertiary: u8,
}

impl Version {
    /// 2.0.
    pub const V2_0: Version = Version {
        major: 2,
        minor: 0,
        tertiary: 0,
    };

    /// The register.
    #[must_use]
    pub const fn encode(self) -> u32 {
        (self.major as u32) << 16 | (self.minor as u32) << 8 | self.tertiary as u32
    }
}

/// What a controller can do; fixed while it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Version it follows.
    pub version: Version,
    /// Entries of an I/O queue at most, 0-based (MQES): 1 to 65535.
    pub queue_entries_max_z: u16,
    /// Whether I/O queues must be contiguous (CQR).
    pub contiguous_queues: bool,
    /// Whether queues can be weighted, with an urgent class (AMS bit 0).
    pub weighted_arbitration: bool,
    /// Longest time to become ready, or not, 500 ms (TO).
    pub ready_timeout_500ms: u8,
    /// Doorbells lie 4 bytes times 2 to the power of this apart (DSTRD), 0 to 15.
    pub doorbell_stride: u8,
    /// Whether a host can reset the subsystem (NSSRS).
    pub subsystem_reset: bool,
    /// Whether there are command sets beside NVM to choose from (CSS bit 6).
    pub command_set_selection: bool,
    /// Smallest memory pages (MPSMIN).
    pub page_min: PageSize,
    /// Largest memory pages (MPSMAX).
    pub page_max: PageSize,
    /// Longest time to be ready with media, 500 ms (CRTO.CRWMT, CAP.CRMS.CRWMS).
    pub ready_with_media_500ms: u16,
    /// Longest time to be ready without media, 500 ms (CRTO.CRIMT, CAP.CRMS.CRIMS); `None`: it cannot.
    pub ready_without_media_500ms: Option<u16>,
    /// The persistent memory region, if there is one (PMRS).
    pub pmr: Option<PmrCapabilities>,
}

impl Default for Capabilities {
    /// As most drives have it: queues of 1024 entries, pages of 4 KiB to 64 KiB, 20 s to be ready.
    fn default() -> Self {
        Capabilities {
            version: Version::V2_0,
            queue_entries_max_z: 1023,
            contiguous_queues: true,
            weighted_arbitration: true,
            ready_timeout_500ms: 40,
            doorbell_stride: 0,
            subsystem_reset: true,
            command_set_selection: true,
            page_min: PageSize::MIN,
            page_max: PageSize::from_mps(4).expect("64 KiB"),
            ready_with_media_500ms: 40,
            ready_without_media_500ms: None,
            pmr: None,
        }
    }
}

impl Capabilities {
    /// CAP.
    #[must_use]
    pub fn encode(&self) -> u64 {
        // CSS: NVM, and all that support I/O command sets.
        let command_sets = 1 | u64::from(self.command_set_selection) << 6;
        let ready_modes = 1 | u64::from(self.ready_without_media_500ms.is_some()) << 1;
        u64::from(self.queue_entries_max_z)
            | u64::from(self.contiguous_queues) << 16
            | u64::from(self.weighted_arbitration) << 17
            | u64::from(self.ready_timeout_500ms) << 24
            | u64::from(self.doorbell_stride & 15) << 32
            | u64::from(self.subsystem_reset) << 36
            | command_sets << 37
            | u64::from(self.page_min.mps()) << 48
            | u64::from(self.page_max.mps()) << 52
            | u64::from(self.pmr.is_some()) << 56
            | ready_modes << 59
    }

    /// CRTO.
    pub(super) fn ready_timeouts(&self) -> u32 {
        let without = self.ready_without_media_500ms.unwrap_or(0);
        u32::from(self.ready_with_media_500ms) | u32::from(without) << 16
    }

    /// How far doorbells lie apart, bytes; those in memory (Doorbell Buffer Config), too.
    #[must_use]
    pub fn doorbell_stride_bytes(&self) -> u64 {
        4 << (self.doorbell_stride & 15)
    }

    /// Whether a host may write `css` to CC.CSS.
    pub(super) fn selectable(&self, css: u8) -> bool {
        match css {
            0b000 => true,
            0b110 => self.command_set_selection,
            _ => false,
        }
    }
}
