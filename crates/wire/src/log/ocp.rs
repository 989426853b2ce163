//! SMART / Health Information Extended (LID C0h) of the OCP Datacenter NVMe SSD Specification: where exporters look
//! for what was written to the media. With [`super::Health`] beside it, write amplification is
//! `media_bytes_written / (data_units_written x 512000)`.

use crate::layout::{Short, layout};

/// What the page ends with, so that it is told from other vendors' C0h: AFD514C97C6F4F9CA4F2BFEA2810AFC5h.
pub const OCP_GUID: u128 = 0xafd5_14c9_7c6f_4f9c_a4f2_bfea_2810_afc5;

layout! {
    /// The page, version 5. A count and its normalised value (100 new, 0 worn out) often stand together.
    pub struct OcpHealth: 512 {
        /// Written to the media, by hosts and by the drive, bytes.
        0 => media_bytes_written: u128,
        /// Read from it, bytes.
        16 => media_bytes_read: u128,
        /// Bad blocks among those for data.
        32 => bad_user_blocks: Short<6>,
        /// Normalised.
        38 => bad_user_blocks_normalized: u16,
        /// Bad blocks among those for the drive itself.
        40 => bad_system_blocks: Short<6>,
        /// Normalised.
        46 => bad_system_blocks_normalized: u16,
        /// Data recovered from parity.
        48 => xor_recoveries: u64,
        /// Reads that failed for good.
        56 => uncorrectable_reads: u64,
        /// Reads corrected by the stronger code.
        64 => soft_ecc_errors: u64,
        /// Errors found between host and media.
        72 => end_to_end_detected: u32,
        /// Of these, corrected.
        76 => end_to_end_corrected: u32,
        /// Life of the system area used, per cent.
        80 => system_used_percent: u8,
        /// Blocks rewritten to keep their data readable.
        81 => refreshes: Short<7>,
        /// Most erases of a block for data.
        88 => user_erases_max: u32,
        /// Fewest.
        92 => user_erases_min: u32,
        /// Times that it slowed down for heat, 255 at most.
        96 => throttles: u8,
        /// How it does now: 0 not at all, 1 to 3.
        97 => throttle_state: u8,
        /// Version of the specification: errata.
        98 => errata_version: u8,
        /// Point.
        99 => point_version: u16,
        /// Minor.
        101 => minor_version: u16,
        /// Major.
        103 => major_version: u8,
        /// Errors of the link that were corrected.
        104 => link_corrected: u64,
        /// Shutdowns that did not end.
        112 => incomplete_shutdowns: u32,
        /// Free blocks, per cent.
        120 => free_blocks_percent: u8,
        /// Energy held for power cuts, per cent of what is needed; FFFFh: none is.
        128 => capacitor_percent: u16,
        /// Version of NVMe's errata: base.
        130 => base_errata: u8,
        /// Command set.
        131 => command_set_errata: u8,
        /// Accesses not aligned to the drive's unit.
        136 => unaligned_accesses: u64,
        /// Security version of the firmware.
        144 => security_version: u64,
        /// Blocks allocated in all namespaces.
        152 => used_blocks: u64,
        /// Power cuts that were saved from.
        160 => power_loss_starts: u128,
        /// Data that can be written in the drive's life, bytes.
        176 => endurance_bytes: u128,
        /// Times that the link was trained anew.
        192 => link_retrainings: u64,
        /// Changes of the power state.
        200 => power_state_changes: u64,
        /// Lowest firmware revision that is accepted.
        208 => lowest_firmware: u64,
        /// Dies.
        216 => dies: u16,
        /// Dies that may fail.
        218 => dies_tolerated: u16,
        /// Dies that have failed.
        220 => dies_offline: u16,
        /// Highest temperature ever, degrees Celsius.
        222 => temperature_max_celsius: u8,
        /// Mean erases of blocks.
        224 => erases_mean: u64,
        /// Commands that took too long.
        232 => command_timeouts: u32,
        /// Version of the page.
        494 => page_version: u16,
        /// [`OCP_GUID`].
        496 => guid: u128,
    }
}

impl OcpHealth {
    /// A page that counts nothing yet, of a new drive.
    #[must_use]
    pub fn new() -> Self {
        OcpHealth {
            bad_user_blocks_normalized: 100,
            bad_system_blocks_normalized: 100,
            major_version: 2,
            minor_version: 5,
            capacitor_percent: u16::MAX,
            page_version: 5,
            guid: OCP_GUID,
            ..OcpHealth::default()
        }
    }
}
