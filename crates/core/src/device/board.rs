//! What every part of the drive works with: the clock, what takes time, and the counters. Parts are handed
//! it; they keep none of it.

use crate::controller::Cores;
use crate::engine::Engine;
use crate::ftl::{Ftl, Stream};
use crate::ids::FlashOpId;
use crate::memory::{Memories, PROTECTED};
use crate::nand::{Array, Cause, CellMode, Class, FlashOp};
use crate::observe::{Counters, Tracer};
use crate::spec::{DriveSpec, HOST_PROGRAMS_PER_DIE, MOVES_PROGRAMMED_PER_DIE, Tier};
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
    map_slc: bool,
    /// Where the byte window stands, if there is one.
    window_tier: Tier,
}

impl<T: Tracer> Board<T> {
    /// All at rest, at time 0.
    pub(super) fn new(spec: &DriveSpec, seed: u64, tracer: T) -> Self {
        Board {
            engine: Engine::new(tracer),
            link: Link::new(&spec.link),
            cores: Cores::new(spec.controller.cores),
            memories: Memories::new(&spec.tiers),
            array: Array::new(&spec.nand, seed),
            counters: Counters::default(),
            map_slc: spec.ftl.map_slc,
            window_tier: spec.roles.window.as_ref().map_or(PROTECTED, |it| it.tier),
        }
    }

    /// Hands a read to the array; its superblock is not erased before it is done.
    #[inline]
    pub(super) fn read_flash(&mut self, ftl: &mut Ftl, op: FlashOp) -> FlashOpId {
        self.counters.reads_by_cause[op.cause as usize] += 1;
        let block = &mut ftl.blocks[op.superblock];
        block.reads += 1;
        // Translation pages may be kept in single-bit mode wherever they lie.
        let mode = match op.cause == Cause::Map && self.map_slc {
            true => CellMode::Slc,
            false => block.mode,
        };
        self.array.enqueue(&mut self.engine, op, mode)
    }

    /// When `bytes` have passed into or out of power-protected memory and are at hand.
    pub(super) fn protected_ps(&mut self, bytes: u64) -> u64 {
        self.memories.load(PROTECTED, self.engine.now(), bytes)
    }

    /// When `bytes` have passed into or out of the byte window and are at hand.
    pub(super) fn window_ps(&mut self, bytes: u64) -> u64 {
        let now = self.engine.now();
        self.memories.load(self.window_tier, now, bytes)
    }

    /// When written data is in a memory that has come over the link by now, or out of the window.
    #[inline]
    pub(super) fn taken_in_ps(&mut self, tier: Tier, bytes: u64, from_window: bool) -> u64 {
        let arriving_ps = match from_window {
            true => self.memories.moved_ps(self.window_tier, bytes),
            false => self.link.wire_ps(bytes),
        };
        let now = self.engine.now();
        self.memories.take_in(tier, now, bytes, arriving_ps)
    }

    /// Nothing that was under way takes place any more; the clock stays.
    pub(super) fn drop_all(&mut self) {
        self.engine.drop_all();
        self.link.drop_all();
        self.cores.drop_all();
        self.memories.drop_all();
        self.array.drop_all();
    }

    /// Whether the die that comes next for data moved to a stream has twice its part of it waiting. All that is under way would come to lie on
    /// the slowest die, or the one that is read most, each victim wait for it, and no superblock be erased meanwhile. Without a
    /// stream of its own it does not wait: new data would take the place that it waits for.
    pub fn is_behind_with_moves(&self, ftl: &Ftl, stream: Stream) -> bool {
        if ftl.relocation_stream() != Stream::Gc {
            return false;
        }
        let (next, mode) = (ftl.next_place(stream), stream.mode());
        let mut moves = self.array.programs_waiting(next, mode, Class::Background);
        moves
            .nth(2 * MOVES_PROGRAMMED_PER_DIE as usize - 1)
            .is_some()
    }

    /// Whether so many program operations of new data wait for the die that comes next for it. What a buffer of many MiB holds would else be
    /// handed to the dies at once, in an order that nothing can change any more: who has to have a page in flash soon (FUA) would wait for
    /// all of it.
    #[inline]
    pub fn is_behind_with_new_data(&self, ftl: &Ftl, stream: Stream, most: u32) -> bool {
        let (next, mode) = (ftl.next_place(stream), stream.mode());
        let waiting = self.array.programs_waiting(next, mode, Class::HostProgram);
        let mut data = waiting.filter(|cause| *cause == Cause::Host);
        data.nth(most as usize - 1).is_some()
    }
}

/// Program operations of new data that may wait for a die: those of single-bit flash carry less, and take less time.
#[inline]
pub(super) fn host_programs_per_die(ftl: &Ftl, stream: Stream) -> u32 {
    let geometry = ftl.geometry();
    HOST_PROGRAMS_PER_DIE * geometry.unit_slots(CellMode::Native)
        / geometry.unit_slots(stream.mode())
}
