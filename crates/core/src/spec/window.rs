//! The byte window: what loads and stores cost, what the window is, what saves it when power fails.

use super::{Gate, Tier};
use serde::{Deserialize, Serialize};

/// What loads and stores to the drive's memory cost on a CPU of the host.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct CpuSpec {
    /// Write-combining buffers of one CPU, 64 bytes each; 0: stores are uncached. In the same buffers stand the
    /// lines that it fetches at once from cacheable memory.
    pub wc_buffers: u32,
    /// Most that the CPUs' caches hold of what was stored to a window in cacheable memory, bytes.
    pub cache_bytes: u64,
    /// CPU time of a store of up to 8 bytes.
    pub store_ps: u64,
    /// CPU time of a load of up to 8 bytes, beside the round trip it waits for.
    pub load_ps: u64,
    /// CPU time of flushing one line of 64 bytes.
    pub flush_line_ps: u64,
    /// CPU time of a fence, beside the packets it waits for.
    pub fence_ps: u64,
    /// CPU time of a call to the window's driver.
    pub call_ps: u64,
}

/// Role `window`: memory that the host reaches by loads and stores.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct WindowSpec {
    /// Which memory.
    pub tier: Tier,
    /// How much of it, bytes; a multiple of 4 KiB.
    pub bytes: u64,
    /// Ranges of the drive that can be pinned at once.
    pub entries: u32,
    /// What becomes of block commands to a pinned range.
    pub gate: Gate,
    /// Firmware time of taking one call apart.
    pub call_ps: u64,
    /// Firmware time of moving 4 KiB between window and flash: this path is not automated.
    pub page_ps: u64,
    /// Firmware time of setting up the read-DMA engine.
    pub read_dma_ps: u64,
}

/// What feeds the dump when power fails.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq)]
pub struct PowerSpec {
    /// Number of capacitors.
    pub capacitors: u32,
    /// Capacitance of one, microfarads.
    pub capacitance_uf: f64,
    /// Voltage they are charged to, volts.
    pub rail_v: f64,
    /// Voltage below which the converter stops, volts.
    pub cutoff_v: f64,
    /// Share of their energy that the converter delivers.
    pub efficiency: f64,
    /// What the drive draws while it dumps, watts.
    pub draw_w: f64,
    /// From the loss of power to the first program of the dump.
    pub detect_ps: u64,
}

impl PowerSpec {
    /// Energy the drive can draw before the converter stops, joules.
    #[must_use]
    pub fn usable_j(&self) -> f64 {
        let farads = f64::from(self.capacitors) * self.capacitance_uf * 1e-6;
        let volts2 = self.rail_v * self.rail_v - self.cutoff_v * self.cutoff_v;
        0.5 * farads * volts2 * self.efficiency
    }

    /// How long the drive runs on its capacitors.
    #[must_use]
    pub fn hold_up_ps(&self) -> u64 {
        // Saturates: a day of picoseconds is less than 2^57.
        (self.usable_j() / self.draw_w * 1e12) as u64
    }
}
