//! What can be seen of a drive from outside.

use super::{Contents, Device, HostMemory};
use crate::ftl::Ftl;
use crate::nand::{Geometry, OpKind};
use crate::observe::Tracer;
use crate::spec::Tier;

impl<C: Contents, M: HostMemory, T: Tracer> Device<C, M, T> {
    /// Host memory the drive can use of what it was granted, bytes.
    #[must_use]
    pub fn hmb_usable_bytes(&self) -> u64 {
        self.map.hmb_bytes()
    }

    /// Host memory in use by the map, bytes.
    #[must_use]
    pub fn hmb_map_bytes(&self) -> u64 {
        self.map.role().hmb_used_bytes()
    }

    /// Host memory that was given to the write buffer and the read cache, bytes.
    #[must_use]
    pub fn hmb_data_bytes(&self) -> u64 {
        let roles = &self.spec.roles;
        let buffer = (self.buffer.tier, roles.write_buffer.bytes);
        let cache = roles.read_cache.as_ref();
        let data = [Some(buffer), cache.map(|cache| (cache.tier, cache.bytes))];
        let bytes = data.into_iter().flatten();
        let bytes = bytes.filter_map(|(tier, bytes)| tier.is_granted().then_some(bytes));
        bytes.sum::<u64>().min(self.hmb_usable_bytes())
    }

    /// The map role's memories, the nearest first.
    #[must_use]
    pub fn map_tiers(&self) -> Vec<Tier> {
        self.spec
            .roles
            .map
            .tiers
            .iter()
            .map(|tier| tier.tier)
            .collect()
    }

    /// Memories of compressed pages: pages held, bytes in use, bytes there are.
    #[must_use]
    pub fn compressed_map_use(&self) -> Vec<(Tier, u32, u64, u64)> {
        self.map.role().compressed_use()
    }

    /// Checks that compressed pages take what their entries say, and fit.
    ///
    /// # Panics
    /// If not. For tests and small drives.
    pub fn check_map(&self) {
        self.map.check(&self.ftl);
    }

    /// Who is told of each step.
    #[inline]
    pub fn tracer(&mut self) -> &mut T {
        &mut self.board.engine.tracer
    }

    /// The same; the drive is gone.
    #[must_use]
    pub fn into_tracer(self) -> T {
        self.board.engine.tracer
    }

    /// Shape of the flash array.
    #[must_use]
    pub fn geometry(&self) -> &Geometry {
        self.board.array.geometry()
    }

    /// Whether the cells of some die are in the middle of a program operation.
    #[must_use]
    pub fn is_programming(&self) -> bool {
        let mut begun = self.board.array.begun();
        begun.any(|(kind, _)| kind == OpKind::Program)
    }

    /// The translation layer, to look at.
    #[must_use]
    pub fn ftl(&self) -> &Ftl {
        &self.ftl
    }

    /// Time each kind of resource was busy: name and one entry per instance, picoseconds. `map_reads`
    /// are the translation pages that may be read at once (`role.map.fills_in_flight`).
    #[must_use]
    pub fn busy_ps(&self) -> Vec<(&'static str, Vec<u64>)> {
        let (dies, channels) = self.board.array.busy_ps();
        let (to_host, from_host) = self.board.link.busy_ps();
        let mut busy = vec![
            ("core", self.board.cores.busy_ps()),
            ("die", dies),
            ("channel", channels),
            ("link_to_host", vec![to_host]),
            ("link_from_host", vec![from_host]),
        ];
        busy.extend(
            self.board
                .link
                .memory_busy_ps()
                .map(|ps| ("host_memory", vec![ps])),
        );
        busy.extend(self.hmb_path.busy_ps());
        let memories = self.board.memories.busy_ps();
        busy.extend(memories.map(|(name, ps)| (name, vec![ps])));
        let window = self.window.as_ref();
        busy.extend(window.map(|window| ("window_core", vec![window.busy_ps()])));
        // The last, as it may not be there yet: the others keep their places.
        let map_reads_ps = self.map.reads_busy_ps(self.board.engine.now());
        if map_reads_ps > 0 {
            let at_once = self.spec.roles.map.fills_in_flight;
            let each_ps = map_reads_ps / u64::from(at_once);
            busy.push(("map_reads", vec![each_ps; at_once as usize]));
        }
        busy
    }
}
