//! How much room new data has, and its share of program operations while garbage is collected.
//!
//! *Room* is counted in slots, and garbage collection adds to it as it goes: a victim of S slots of
//! which v were valid has given S k / v of its slots back once k of them have been moved, and takes
//! k elsewhere. So room neither jumps when a victim is chosen nor waits for its erase.
//!
//! Where the whole map takes only a few superblocks, what is invalid in them counts as room, too: a
//! translation page that is written again takes a slot and leaves one behind, and with few superblocks
//! room would swing by a whole one each time it is the map's turn to be collected. Of a larger map some of each superblock
//! is always invalid, which is nothing that anybody could write to soon. But what it has left behind beyond the least of
//! late counts, up to its *swing*: where entries are written back one by one, a victim of data has a page of the map written for each
//! page that is moved, which takes more room than the victim gives, and several victims of the map in a row then give it back.
//!
//! New data's *share* of the programs follows from it, in proportion: all of them while room is
//! above `gc_start + 3` superblocks, hardly any at `gc_start + 2`. Beside a larger map it falls over three times the swing instead of
//! one superblock, so that it outlasts those victims of the map. With victims that are valid to a
//! share u room stays where new data takes 1 - u of the programs, which is just what they give back;
//! whatever the load, no constant has to know u. A victim that gives nothing lowers the share by and
//! by instead of stopping the host: moving all S slots of one takes room down by a factor of e.
//!
//! However little room there is, new data has a quarter of what it could have had of late with room staying as it was ([`Sustained`]): room
//! comes back all the same, and what took it at once (a superblock that was retired, a few victims of the map) stops nobody for long.
//!
//! The superblocks below that are what is not room yet: up to S slots of a victim that is being
//! emptied, as many of one that is being erased, and as many left behind by translation pages. Where a block takes twenty
//! program operations or fewer, so many superblocks are under way between victim and erase that what they have given back
//! cannot be written for long: as many more are kept (`spec/layout.rs`; `gc_start` counts them). Without them new data
//! found room and no superblock to open: with two word lines a block, 62 ms without a write. What is kept for blocks that fail counts
//! in `gc_start`, too, and new data leaves it alone as it does the reserve.

use super::{Ftl, State, Stream};
use crate::nand::{CellMode, Geometry};
use crate::spec::{DriveSpec, FtlSpec, GcPolicy};
use serde::{Deserialize, Serialize};

/// Shares are parts of this.
pub const WHOLE: i64 = 1 << 16;

/// Least share of new data while there is a page left to write: even behind victims that
/// give nothing the host hears something within 256 program operations.
const SHARE_MIN: i64 = WHOLE / TURNS_MAX;

/// Program operations of moved data between two of new data, at most.
const TURNS_MAX: i64 = 256;

/// So many victims make the mean of what new data can have. Assumed, as is the part of it that new data always has: three quarters of what
/// is given back are room then.
const LOOKS: i64 = 8;
/// See [`LOOKS`].
const LEAST_OF_SUSTAINED: i64 = 4;

/// A map of at most so many superblocks counts as one that takes only a few.
const MAP_SUPERBLOCKS_FEW: u64 = 4;

/// Swing of a map that is larger, superblocks, without the eighth of its size that it has to spare (`spec/layout.rs`).
const SWING_SUPERBLOCKS: u32 = 2;

/// Over how many times the swing new data's share falls. `tiny` of 40 GiB on two dies (7 superblocks of map) was silent for up to
/// 272 ms, twice a second, without any swing; for up to 161 with one superblock of it and 44 with two, where the share falls over one
/// superblock; for 11 as it is. That of 100 GiB (17 superblocks) was silent for up to 437, 430, 278 and 10 ms, and for 90 where the share
/// falls over twice the swing (20,000 and 30,000 random writes, 16 in flight).
const FALLS_OVER_SWINGS: u32 = 3;

/// Whose turn it is between new data and moved data.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, Default)]
pub struct Pacer {
    /// Slots moved since new data last had its turn.
    moved: i64,
}

impl Pacer {
    /// Slots have been moved, by program operations of `unit_slots`. What would be more than one turn
    /// at the least share is not remembered: a host that was silent does not get all its turns at once.
    pub fn moved(&mut self, slots: u32, unit_slots: u32) {
        let most = i64::from(unit_slots) * TURNS_MAX;
        self.moved = (self.moved + i64::from(slots)).min(most);
    }

    /// Whether new data of so many slots has its turn at this share.
    #[must_use]
    pub fn has_turn(&self, slots: u32, share: i64) -> bool {
        self.moved * share >= i64::from(slots) * (WHOLE - share)
    }

    /// New data has taken its turn.
    pub fn take_turn(&mut self, slots: u32, share: i64) {
        let cost = i64::from(slots) * (WHOLE - share) / share.max(1);
        self.moved = (self.moved - cost).max(0);
    }
}

/// What share of the program operations new data could have had of late, with room staying as it was.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, Default)]
pub struct Sustained {
    share: i64,
    /// Slots that new data has taken.
    new_slots: i64,
    before: Option<Seen>,
}

/// What a look has seen, slots.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
struct Seen {
    room: i64,
    /// All that new data had taken.
    new: i64,
    /// All that was given out, to new and moved data and the map.
    given: i64,
}

impl Sustained {
    /// New data has taken a program operation.
    pub fn take_turn(&mut self, slots: u32) {
        self.new_slots += i64::from(slots);
    }

    /// A victim has been chosen: what has happened since the last one was?
    pub fn look(&mut self, ftl: &Ftl) {
        let now = Seen {
            room: ftl.room(),
            new: self.new_slots,
            given: ftl.allocated_slots[CellMode::Native.index()] as i64,
        };
        if let Some(before) = self.before {
            if now.given == before.given {
                // What that one gives counts with what comes next.
                return;
            }
            let gained = now.room - before.room + now.new - before.new;
            // What was given out and left alone, as its block had failed, is taken back.
            let given = (now.given - before.given).max(1);
            let share = (gained * WHOLE / given).clamp(0, WHOLE);
            self.share += (share - self.share) / LOOKS;
        }
        self.before = Some(now);
    }

    /// Share that new data has however little room there is: so far below the sustained one that room comes back.
    #[must_use]
    pub fn least_share(&self) -> i64 {
        (self.share / LEAST_OF_SUSTAINED).max(SHARE_MIN)
    }
}

impl Ftl {
    /// Slots of ordinary flash that can be written before an erase.
    fn erased_slots(&self) -> i64 {
        let slots = i64::from(self.geometry.superblock_slots);
        let native = Stream::ALL
            .into_iter()
            .filter(|stream| !stream.mode().is_slc());
        let open: i64 = native.map(|stream| self.left_in(stream)).sum();
        i64::from(self.blocks.free_count(CellMode::Native)) * slots + open
    }

    /// Slots left in a stream's open superblock.
    pub(super) fn left_in(&self, stream: Stream) -> i64 {
        let open = &self.open[stream as usize];
        let usable = self.geometry.usable_slots(stream.mode());
        open.superblock
            .map_or(0, |_| i64::from(usable - open.next_slot))
    }

    /// Slots that new data can take before it opens a superblock.
    #[must_use]
    pub fn left_for_new_data(&self) -> i64 {
        match self.open[Stream::Cold as usize].superblock {
            Some(_) => self.left_in(Stream::Host).min(self.left_in(Stream::Cold)),
            None => self.left_in(Stream::Host),
        }
    }

    /// Room for new data, slots; see the head of this file.
    fn room(&self) -> i64 {
        let slots = i64::from(self.geometry.superblock_slots);
        let victims = self
            .blocks
            .victims()
            .iter()
            .filter(|victim| !victim.is_apart);
        let few = self.map_takes_few();
        let given: i64 = victims
            .map(|victim| {
                let left = i64::from(self.blocks[victim.superblock].valid);
                match (victim.is_map && few, i64::from(victim.valid_at_start)) {
                    (true, _) => slots - left,
                    (false, 0) => slots,
                    (false, at_start) => slots * (at_start - left) / at_start,
                }
            })
            .sum();
        let left_behind = match few {
            true => self.map_garbage(),
            false => (self.map_left() - self.map_least_slots).clamp(0, self.swing_slots()),
        };
        self.erased_slots() + given + left_behind
    }

    /// Whether the whole map takes only a few superblocks.
    #[must_use]
    pub fn map_takes_few(&self) -> bool {
        let slots = u64::from(self.geometry.superblock_slots);
        u64::from(self.directory.pages()) <= MAP_SUPERBLOCKS_FEW * slots
    }

    /// How far what a map has left behind goes up and down, superblocks; none where that does not count. Policies that go by age
    /// collect the map only where room is used up, and then much of it at once.
    pub(super) fn swing_superblocks(spec: &FtlSpec, map_slots: u32, superblock_slots: u32) -> u32 {
        let takes_emptiest = matches!(spec.gc_policy, GcPolicy::Greedy | GcPolicy::DChoices(_));
        let is_larger = u64::from(map_slots) > MAP_SUPERBLOCKS_FEW * u64::from(superblock_slots);
        match takes_emptiest && is_larger {
            true => SWING_SUPERBLOCKS + map_slots / superblock_slots / 8,
            false => 0,
        }
    }

    fn swing_slots(&self) -> i64 {
        i64::from(self.map_swing_superblocks) * i64::from(self.geometry.superblock_slots)
    }

    /// Superblocks of room over which new data's share falls.
    fn falls_over(&self) -> u32 {
        Self::falls_over_of(self.map_swing_superblocks)
    }

    fn falls_over_of(swing_superblocks: u32) -> u32 {
        (FALLS_OVER_SWINGS * swing_superblocks).max(1)
    }

    /// Superblocks of room with which nothing need be collected.
    pub(super) fn enough_superblocks(&self) -> u32 {
        self.gc_start + 2 + self.falls_over()
    }

    /// Superblocks below which no new data opens one, without the two for victims.
    pub(super) fn gc_start_of(spec: &DriveSpec) -> u32 {
        let layout = spec.layout();
        let kept = layout.superblocks_under_way + layout.failures_superblocks;
        spec.ftl.gc_start_superblocks + kept as u32
    }

    /// Data superblocks that the drive can do without.
    pub(super) fn retirable_of(spec: &DriveSpec) -> u32 {
        let program_slots = u64::from(Geometry::new(&spec.nand).unit_slots);
        spec.layout().retirable_superblocks(program_slots) as u32
    }

    /// Closed superblocks of data in the steady state of random writes, beside a map that takes `map_blocks`. Beside one of many
    /// superblocks there are fewer, so that what is free is enough to collect nothing: a drive that is only read collects nothing.
    pub(super) fn steady_data_superblocks(spec: &DriveSpec, map_blocks: u32) -> u32 {
        let geometry = Geometry::new(&spec.nand);
        let layout = spec.layout();
        let slots = geometry.superblock_slots;
        let map_slots = layout.translation_pages as u32;
        let swing = Self::swing_superblocks(&spec.ftl, map_slots, slots);
        let data_blocks = layout.data_superblocks as u32;
        if swing == 0 {
            return data_blocks;
        }
        let enough = Self::gc_start_of(spec) + 2 + Self::falls_over_of(swing);
        let used = data_blocks + map_blocks + spec.ftl.slc_superblocks;
        let short = enough.saturating_sub(geometry.superblocks - used);
        data_blocks - short.min(Self::retirable_of(spec))
    }

    /// Slots written with translation pages that have been superseded, outside victims: all that were written, less those
    /// that are current.
    fn map_garbage(&self) -> i64 {
        let open = &self.open[Stream::Map as usize];
        let in_open = open.superblock.map_or(0, |_| i64::from(open.next_slot));
        let victims = self.blocks.victims().iter();
        let in_victims = victims.filter(|victim| victim.is_map);
        let in_victims: i64 = in_victims
            .map(|victim| i64::from(self.blocks[victim.superblock].valid))
            .sum();
        let current = i64::from(self.directory.present()) - in_victims;
        in_open + self.blocks.closed_map_slots() - current
    }

    /// Checks [`Self::map_garbage`] superblock by superblock.
    pub(super) fn check_map_garbage(&self) {
        let blocks = self.blocks.all().iter().filter(|block| block.is_map());
        let written = |state| match state {
            State::Open => i64::from(self.open[Stream::Map as usize].next_slot),
            State::Closed => i64::from(self.geometry.superblock_slots),
            State::Free | State::Collecting | State::Erasing | State::Retired => 0,
        };
        let garbage = blocks
            .filter(|block| matches!(block.state, State::Open | State::Closed))
            .map(|block| written(block.state) - i64::from(block.valid));
        assert_eq!(
            garbage.sum::<i64>(),
            self.map_garbage(),
            "what the map left behind"
        );
    }

    /// What the map has left behind, with what of its victims has not been given back yet.
    fn map_left(&self) -> i64 {
        let slots = i64::from(self.geometry.superblock_slots);
        let victims = self.blocks.victims().iter();
        let victims = victims.filter(|victim| victim.is_map && victim.valid_at_start > 0);
        let to_give: i64 = victims
            .map(|victim| {
                let left = i64::from(self.blocks[victim.superblock].valid);
                let at_start = i64::from(victim.valid_at_start);
                (slots - at_start) * left / at_start
            })
            .sum();
        self.map_garbage() + to_give
    }

    /// Follows the least that a larger map has left behind: down at once, up where that is further away than its swing.
    pub(super) fn follow_map(&mut self) {
        if self.map_swing_superblocks == 0 {
            return;
        }
        let left = self.map_left();
        self.map_least_slots = self.map_least_slots.clamp(left - self.swing_slots(), left);
    }

    /// How far room is above the least, in parts of what new data's share falls over: [`WHOLE`] and more while nothing
    /// need be collected, 0 and less where new data has to wait.
    #[must_use]
    pub fn level(&self) -> i64 {
        self.level_of(self.above_least())
    }

    /// How far room is above the least, slots.
    fn above_least(&self) -> i64 {
        self.room() - i64::from(self.geometry.superblock_slots) * i64::from(self.gc_start + 2)
    }

    /// The level, where something need be collected for new data: where it is below [`WHOLE`].
    fn short_level(&self) -> Option<i64> {
        // What is free, alone, is mostly more than enough, or else far from it.
        if self.blocks.free_count(CellMode::Native) >= self.enough_superblocks() {
            return None;
        }
        let above = self.above_least();
        let level = self.level_of(above);
        (level < WHOLE).then_some(level)
    }

    fn level_of(&self, above_least: i64) -> i64 {
        let slots = i64::from(self.falls_over()) * i64::from(self.geometry.superblock_slots);
        above_least * WHOLE / slots
    }

    /// New data's share of program operations; [`WHOLE`] while nothing need be collected.
    #[must_use]
    pub fn new_data_share(&self) -> i64 {
        self.short_level()
            .map_or(WHOLE, |level| level.max(SHARE_MIN))
    }

    /// Slots that moved data and moved translation pages can take, less what victims under way will
    /// take. Moving changes nothing of it.
    #[must_use]
    pub fn gc_slots_left(&self) -> i64 {
        let victims = self
            .blocks
            .victims()
            .iter()
            .filter(|victim| !victim.is_apart);
        let moving: i64 = victims
            .map(|victim| i64::from(self.blocks[victim.superblock].valid))
            .sum();
        let slots = i64::from(self.geometry.superblock_slots);
        let streams = [self.relocation_stream, Stream::Wear, Stream::Map];
        let open: i64 = streams.iter().map(|&stream| self.left_in(stream)).sum();
        i64::from(self.blocks.free_count(CellMode::Native)) * slots + open - moving
    }

    /// Slots that will be erased without anything more being moved.
    #[must_use]
    pub fn erasing_slots(&self) -> i64 {
        let victims = self
            .blocks
            .victims()
            .iter()
            .filter(|victim| !victim.is_apart);
        let erasing = victims.filter(|v| self.blocks[v.superblock].state == State::Erasing);
        erasing.count() as i64 * i64::from(self.geometry.superblock_slots)
    }

    /// As many of them as let every stream go on, and one more victim be started.
    #[must_use]
    pub fn gc_slots_wanted(&self) -> i64 {
        i64::from(self.reserve + self.failures + 3) * i64::from(self.geometry.superblock_slots)
    }

    /// Whether room is short, for new data or for the map's pages.
    #[must_use]
    pub fn room_is_short(&self) -> bool {
        self.short_level().is_some()
            || self.gc_slots_left() + self.erasing_slots() < self.gc_slots_wanted()
    }
}
