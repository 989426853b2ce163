//! What every part of the drive works with: the clock, what takes time, and the counters. Parts are handed
//! it; they keep none of it.

use crate::controller::Cores;
use crate::engine::Engine;
use crate::memory::Memories;
use crate::nand::Array;
use crate::observe::{Counters, Tracer};
use crate::spec::DriveSpec;
use crate::transport::Link;
use serde::{Deserialize, Serialize};

/// Clock, link, firmware cores, memories, flash, counters.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Board<T> {
    pub engine: Engine<T>,
    pub link: Link,
    pub cores: Cores,
    pub memories: Memories,
    pub array: Array,
    pub counters: Counters,
}

impl<T: Tracer> Board<T> {
    /// All at rest, at time 0.
    pub(super) fn new(spec: &DriveSpec, tracer: T) -> Self {
        Board {
            engine: Engine::new(tracer),
            link: Link::new(&spec.link),
            cores: Cores::new(spec.controller.cores),
            memories: Memories::new(&spec.tiers),
            array: Array::new(&spec.nand),
            counters: Counters::default(),
        }
    }

    /// Nothing that was under way takes place any more; the clock moves on by `pause_ps`.
    pub(super) fn drop_all(&mut self) {
        self.engine.drop_all();
        self.link.drop_all();
        self.cores.drop_all();
        self.memories.drop_all();
        self.array.drop_all();
    }
}
