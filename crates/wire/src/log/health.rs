//! SMART / Health Information (LID 02h, Base 2.0 §5.16.1.3).

use crate::layout::layout;

/// Bits of [`Health::critical_warning`]; hosts can have events for each (Asynchronous Event Configuration).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CriticalWarning {
    /// Spare blocks are below the threshold.
    Spare = 1,
    /// Temperature is beyond a threshold.
    Temperature = 1 << 1,
    /// The media is worn or failing.
    Reliability = 1 << 2,
    /// It takes no writes any more.
    ReadOnly = 1 << 3,
    /// What saves the volatile memory at a power cut has failed.
    Backup = 1 << 4,
    /// The persistent memory region is read-only or unreliable.
    PersistentMemory = 1 << 5,
}

layout! {
    /// The page.
    pub struct Health: 512 {
        /// Bits of [`CriticalWarning`].
        0 => critical_warning: u8,
        /// Composite temperature, kelvins.
        1 => temperature_kelvin: u16,
        /// Spare blocks left, per cent.
        3 => available_spare_percent: u8,
        /// Spare blocks below which a warning is due, per cent.
        4 => spare_threshold_percent: u8,
        /// Life used, per cent; beyond 100 it goes on, 255 at most.
        5 => used_percent: u8,
        /// Warnings of endurance groups.
        6 => endurance_warning: u8,
        /// Data read by hosts, 1000 x 512 bytes, rounded up: see [`data_units`].
        32 => data_units_read: u128,
        /// Data written by hosts, in the same unit.
        48 => data_units_written: u128,
        /// Read and compare commands of hosts.
        64 => read_commands: u128,
        /// Write commands of hosts.
        80 => write_commands: u128,
        /// Time with commands under way, minutes.
        96 => busy_minutes: u128,
        /// Power cycles.
        112 => power_cycles: u128,
        /// Time with power on, hours.
        128 => power_on_hours: u128,
        /// Power cuts without shutdown before.
        144 => unsafe_shutdowns: u128,
        /// Uncorrected errors.
        160 => media_errors: u128,
        /// Entries that the error log has had.
        176 => error_entries: u128,
        /// Time above the warning temperature, minutes.
        192 => warning_minutes: u32,
        /// Time above the critical temperature, minutes.
        196 => critical_minutes: u32,
        /// Sensors, kelvins; 0 there is none.
        200 => sensors_kelvin: [u16; 8],
        /// Times that it slowed down lightly for heat.
        216 => light_throttles: u32,
        /// Times that it slowed down heavily for heat.
        220 => heavy_throttles: u32,
        /// Time so, lightly, seconds.
        224 => light_throttle_s: u32,
        /// Time so, heavily, seconds.
        228 => heavy_throttle_s: u32,
    }
}

/// Bytes in the unit of the page: thousands of 512 bytes, rounded up.
#[must_use]
pub fn data_units(bytes: u128) -> u128 {
    bytes.div_ceil(512_000)
}
