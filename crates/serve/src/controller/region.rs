//! The persistent memory region (Base 2.0 §8.14): the byte window in the standard's form, for hosts that know nothing of
//! the vendor's calls.
//!
//! Its registers enable it; its bytes are those of the window, behind the window's base address register. From when a host
//! has enabled it first all of the window is saved when power fails, as far as the capacitors last, and not what is
//! pinned alone: what was stored in such a region persists whether it is enabled or not. Sanitize ends that.
//!
//! A store is in the window's memory at once, so that nothing is to be done for one to persist: what a load finds, and
//! what came before a read of PMRSTS, persists. Where a file keeps the drive, that is so for the end of this process; what is to
//! outlast the machine, too, is what came before a read of PMRSTS.

use super::Controller;
use crate::window::all_but;
use lodger_core::DriveSpec;
use lodger_core::spec::WindowSpec;
use lodger_wire::memory::GuestMemory;
use lodger_wire::registers::{Capabilities, PmrCapabilities, PmrHealth, PmrSize};
use lodger_wire::status::Status;

/// The base address register that window and region lie behind.
pub const WINDOW_BAR: u8 = 4;
/// Unit of rates that are given in bytes (PMRSWTU 1h: KiB a second).
const KIB: (u8, u64) = (1, 1 << 10);

/// What there is of it beside the registers.
#[derive(Debug, Default)]
pub(super) struct Region {
    /// Some host has enabled it: all of the window persists.
    is_kept: bool,
    /// When flash says that it does.
    ready_ps: u64,
    /// Something of it was lost, and no host has disabled it since it could know.
    has_lost: bool,
    /// The file that keeps the drive says that it persists.
    pub is_in_file: bool,
}

/// What the controller of a drive can do.
pub(super) fn capabilities(spec: &DriveSpec) -> Capabilities {
    let plain = Capabilities::default();
    // A region is as large as what lies behind its register, which is a power of two: where the window is smaller a
    // host could not know where it ends.
    let is_whole = |window: &&WindowSpec| window.bytes.is_power_of_two();
    let Some(_) = spec.roles.window.as_ref().filter(is_whole) else {
        return plain;
    };
    let sustained_bytes = spec.tiers.pm.as_ref().map_or(0, |pm| pm.bytes_per_s);
    let count = sustained_bytes.min(spec.link.bytes_per_s) / KIB.1;
    Capabilities {
        pmr: Some(PmrCapabilities {
            // Commands' data lies in the host's memory.
            data_reads: false,
            data_writes: false,
            memory_space: false,
            bar: WINDOW_BAR,
            memory_read_persists: true,
            status_read_persists: true,
            // As long as the drive itself may take: it may have to come back first.
            timeout_500ms: plain.ready_timeout_500ms,
            elasticity: PmrSize::default(),
            reads_bypass_writes: false,
            sustained_writes: PmrSize {
                unit: KIB.0,
                count: count.min((1 << 24) - 1) as u32,
            },
        }),
        ..plain
    }
}

impl<M: GuestMemory + Clone> Controller<M> {
    /// A host enables the region, or disables it.
    pub(super) fn region_enabled(&mut self, is_enabled: bool) {
        if is_enabled {
            // What the capacitors did not last for is told once: by a region that is enabled with it missing.
            let has_lost = self.region.is_kept && self.device.window_has_lost();
            let marked_ps = self.device.keep_whole_window(true);
            self.region.ready_ps = self.region.ready_ps.max(marked_ps);
            self.region.is_kept = true;
            self.region.has_lost |= has_lost;
            self.keep_that_region_is_kept();
        } else {
            self.region.has_lost = false;
        }
    }

    /// When a region that is being enabled may be ready.
    pub(super) fn next_of_region_ps(&self) -> Option<u64> {
        let waits = self.registers.pmr_waits() && !self.device_is_elsewhere();
        (waits && self.region_is_in_file()).then_some(self.region.ready_ps)
    }

    fn region_is_in_file(&self) -> bool {
        self.region.is_in_file || !self.device.contents.is_kept()
    }

    /// The region of a drive that was found in a file.
    pub(super) fn restore_region(&mut self) {
        self.region.is_kept = self.device.keeps_whole_window();
        self.region.is_in_file = self.region.is_kept;
    }

    /// PMRSTS is read: what was stored before outlasts the machine as well.
    pub(super) fn persist_region(&mut self) {
        if self.region.is_kept
            && let Some(backing) = self.device.contents.backing()
            && backing.settle_window().is_err()
            && !self.registers.pmr_waits()
        {
            self.registers.pmr_ready(PmrHealth::Unreliable);
        }
    }

    fn device_is_elsewhere(&self) -> bool {
        // No region is enabled while a sanitize goes on (Base 2.0 §5.24).
        self.plight.is_recovering() || self.wipe.is_sanitizing()
    }

    /// A region that was enabled is ready once flash says that it persists.
    pub(super) fn go_on_with_region(&mut self) {
        let is_due = self.region.ready_ps <= self.device.now_ps() && self.region_is_in_file();
        if is_due && self.registers.pmr_waits() && !self.device_is_elsewhere() {
            self.registers.pmr_ready(match self.region.has_lost {
                true => PmrHealth::RestoreError,
                false => PmrHealth::Normal,
            });
        }
    }

    /// Whether the region keeps the drive from being sanitized.
    ///
    /// # Errors
    /// [`Status::PMR_SANITIZE_PROHIBITED`] if so: it is enabled (Base 2.0 §5.24).
    pub(super) fn region_is_disabled(&self) -> Result<(), Status> {
        match self.registers.pmr_is_enabled() {
            true => Err(Status::PMR_SANITIZE_PROHIBITED),
            false => Ok(()),
        }
    }

    /// The region's bytes are erased with all others, and nothing of it persists any more.
    pub(super) fn region_is_sanitized(&mut self) {
        self.region = Region::default();
        self.device.keep_whole_window(false);
        self.clear_window();
    }

    fn clear_window(&mut self) {
        self.device.contents.clear_window(vec![(0, u64::MAX)]);
    }

    /// A format erases what was pinned of the drive's blocks, and is not about a region.
    pub(super) fn clear_window_without_region(&mut self) {
        if !self.region.is_kept {
            self.clear_window();
        }
    }

    /// Ranges of the window that outlast power and clients, offset and length, bytes: all of it, or what is pinned.
    pub(super) fn kept_ranges(&self) -> Vec<(u64, u64)> {
        match self.region.is_kept {
            true => vec![(0, self.device.contents.window.bytes())],
            false => self.pinned_ranges(),
        }
    }

    /// Power was away: what was not saved of the window is gone.
    pub(super) fn window_lost_power(&mut self) {
        let ranges = match self.device.window_has_lost() {
            true => self.pinned_ranges(),
            false => self.kept_ranges(),
        };
        self.device.contents.clear_window(all_but(ranges));
        self.region.ready_ps = 0;
    }
}
