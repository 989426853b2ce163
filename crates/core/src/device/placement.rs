//! Which role stands on which memory, and on how much of it.

use super::{Contents, Device, HostMemory};
use crate::controller::{ReadCache, WriteBuffer};
use crate::memory::STAGING;
use crate::observe::Tracer;
use crate::spec::{DriveSpec, Tier};

/// Of the host memory granted, what the drive can use, bytes.
pub(super) fn usable_bytes(spec: &DriveSpec, granted_bytes: u64) -> u64 {
    let hmb = spec.tiers.hmb.as_ref();
    hmb.map_or(0, |hmb| hmb.usable_bytes(granted_bytes))
}

impl<C: Contents, M: HostMemory, T: Tracer> Device<C, M, T> {
    /// Gives each role its share of memory, given `usable` bytes of host memory. Host memory
    /// serves the data roles first: their sizes are fixed, the map takes what is left.
    pub(super) fn place_roles(&mut self, usable: u64) {
        if Self::PAGES_IN_HOST {
            self.rescue_buffered();
        }
        let mut left = usable;
        let roles = &self.spec.roles;
        let share = |tier: Tier, bytes: u64, left: &mut u64| {
            if !tier.is_granted() {
                return bytes;
            }
            let share = bytes.min(*left);
            *left -= share;
            share
        };
        let buffer_bytes = share(roles.write_buffer.tier, roles.write_buffer.bytes, &mut left);
        let cache_base = usable - left;
        if let Some(cache) = &roles.read_cache {
            let bytes = share(cache.tier, cache.bytes, &mut left);
            // A cache in the drive's own memory keeps what it holds.
            if self.read_cache.is_none() || cache.tier.is_granted() {
                self.read_cache = Some(ReadCache::new(cache, bytes, self.seed));
            }
        }
        // Without memory for a buffer, the controller still stages what it programs.
        let at_once = self.board.array.geometry().unit_slots * self.board.array.geometry().dies;
        let mut spec = roles.write_buffer.clone();
        let (tier, slots) = match WriteBuffer::slots_of(buffer_bytes) {
            0 => {
                // What passes it does not wait there for more.
                (spec.high_permille, spec.low_permille) = (0, 0);
                (STAGING, at_once)
            }
            slots => (spec.tier, slots),
        };
        self.buffer_tier = tier;
        self.buffer.resize(&spec, slots, at_once);
        if Self::PAGES_IN_HOST {
            let pages = if tier.is_granted() { slots } else { 0 };
            self.lay_out_host_data(pages, cache_base);
        }
        self.hmb_bytes = usable;
        let (board, memory) = (&mut self.board, &mut self.host_memory);
        self.map.place(board, &self.ftl, memory, (left, usable));
    }
}
