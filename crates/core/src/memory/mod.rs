//! The memories that roles stand on: how long an access takes and what it books, what each survives, who
//! else can reach it.
//!
//! Everything else asks here; no other code but the description of drives (`spec/`) tells one memory from
//! another by its name.

use crate::engine::{Now, Timeline};
use crate::observe::Part;
use crate::spec::{MemorySpec, Tier, TierSpecs};
use crate::time::transfer_ps;
use serde::{Deserialize, Serialize};

/// What a look-up moves.
const LINE_BYTES: u64 = 64;

/// Lines that the memory's controller takes in ahead: cores that look up at the same instant do not notice
/// each other. Assumed; as many as a common DRAM controller queues for reads.
const LINES_QUEUED: u64 = 16;

/// Data moves on piece by piece, while the next one is fetched.
pub const PIECE_BYTES: u64 = 32 << 10;

/// Number of memories.
pub const TIERS: usize = Tier::ALL.len();

/// Where the controller stages what it programs, whatever the drive has besides.
pub const STAGING: Tier = Tier::Sram;

/// Where the write buffer's log stands.
pub const PROTECTED: Tier = Tier::Pm;

/// Memory of the host that it grants, and takes back.
pub const GRANTED: Tier = Tier::Hmb;

/// What a look-up there is as a part of a request's time.
#[inline]
#[must_use]
pub const fn look_up_part(tier: Tier) -> Part {
    match tier {
        Tier::Sram => Part::MapSram,
        Tier::Dram => Part::MapDram,
        Tier::Hmb => Part::MapHmb,
        Tier::Slc => Part::MapFlash,
        Tier::Pm => Part::MapPm,
        Tier::Cxl => Part::MapCxl,
        Tier::HpbCache => Part::MapHost,
    }
}

/// What becomes of a byte window when power fails.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub enum WindowInCut {
    /// Capacitors feed the drive while it saves table and entries in flash.
    Saved,
    /// Its memory, where the table stands as well, keeps it.
    Kept,
    /// It is gone.
    Gone,
}

impl Tier {
    /// The host grants it and takes it back, can read and change it, and every access crosses the link.
    #[inline]
    #[must_use]
    pub const fn is_granted(self) -> bool {
        matches!(self, GRANTED)
    }

    /// What stands there is there when the host has crashed: what the host granted, it no longer knows of.
    #[must_use]
    pub const fn survives_host_crash(self) -> bool {
        !self.is_granted()
    }

    /// It is memory of the host's CPUs, whose caches hold lines of it: what they load and store there does not cross
    /// the drive's link.
    #[inline]
    #[must_use]
    pub const fn is_cacheable(self) -> bool {
        matches!(self, Tier::Cxl)
    }

    /// It is flash: what is there is safe, and it takes a program operation to come there.
    #[inline]
    #[must_use]
    pub const fn is_flash(self) -> bool {
        matches!(self, Tier::Slc)
    }
}

impl TierSpecs {
    /// Whether what stands on a memory is there when power comes back; [`Tier::is_flash`] is another matter.
    #[must_use]
    pub fn survives_power_cut(&self, tier: Tier) -> bool {
        match tier {
            Tier::Pm => true,
            Tier::Cxl => self.cxl.as_ref().is_some_and(|cxl| cxl.persistent),
            Tier::Sram | Tier::Dram | Tier::Hmb | Tier::Slc | Tier::HpbCache => false,
        }
    }

    /// What becomes of a byte window on a memory when power fails.
    #[must_use]
    pub fn window_in_cut(&self, tier: Tier) -> WindowInCut {
        match tier {
            Tier::Pm => WindowInCut::Saved,
            _ if self.survives_power_cut(tier) => WindowInCut::Kept,
            _ => WindowInCut::Gone,
        }
    }
}

/// How a look-up in a memory is made.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// By the firmware core, which waits so long.
    Load {
        /// Time for which the core waits.
        core_ps: u64,
    },
    /// By a read over the link.
    LinkRead,
}

/// One memory, as the time it takes.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, Default)]
struct Memory {
    access_ps: u64,
    /// Rate at which data moves; 0: no limit.
    bytes_per_s: u64,
    /// Data passes through while it moves over the link or a bus, so that it takes time only where more
    /// comes than the memory takes.
    passes_on: bool,
    /// Time of moving a line; 0: no limit.
    line_ps: u64,
    timeline: Timeline,
    /// Look-ups of map entries, a line each. Beside data they slip in between; by themselves they take no
    /// more than the memory gives.
    look_ups: Timeline,
}

impl Memory {
    fn new(spec: Option<&MemorySpec>) -> Self {
        spec.map_or_else(Memory::default, |spec| Memory {
            access_ps: spec.access_ps,
            bytes_per_s: spec.bytes_per_s,
            line_ps: transfer_ps(LINE_BYTES, spec.bytes_per_s),
            ..Memory::default()
        })
    }
}

/// The memories of a drive.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Memories {
    all: [Memory; TIERS],
}

impl Memories {
    /// The memories of a drive that is idle.
    #[must_use]
    pub fn new(spec: &TierSpecs) -> Self {
        let mut all = [Memory::default(); TIERS];
        let sram = Memory {
            passes_on: true,
            ..Memory::new(spec.sram.as_ref())
        };
        all[Tier::Sram as usize] = sram;
        all[Tier::Dram as usize] = Memory::new(spec.dram.as_ref());
        all[Tier::Pm as usize] = Memory::new(spec.pm.as_ref());
        if let Some(cxl) = &spec.cxl {
            all[Tier::Cxl as usize] = Memory::new(Some(&MemorySpec {
                bytes_per_s: cxl.memory.bytes_per_s / u64::from(cxl.sharers),
                ..cxl.memory.clone()
            }));
        }
        Memories { all }
    }

    /// What is on its way into flash stands in the controller's memory.
    #[inline]
    fn standing(tier: Tier) -> usize {
        match tier.is_flash() {
            true => STAGING as usize,
            false => tier as usize,
        }
    }

    /// How long an access to a memory takes.
    #[must_use]
    pub fn access_ps(&self, tier: Tier) -> u64 {
        self.all[tier as usize].access_ps
    }

    /// How long it takes a memory of the drive to move `bytes`.
    #[must_use]
    pub fn moved_ps(&self, tier: Tier, bytes: u64) -> u64 {
        match self.all[Self::standing(tier)].bytes_per_s {
            0 => 0,
            rate => transfer_ps(bytes, rate),
        }
    }

    /// When `bytes` have moved into a memory of the drive that have come over the link in the last `arriving_ps`: each piece as it was
    /// there, while the next was on its way.
    #[inline]
    pub fn take_in(&mut self, tier: Tier, now: Now, bytes: u64, arriving_ps: u64) -> u64 {
        let memory = &mut self.all[Self::standing(tier)];
        if memory.bytes_per_s == 0 {
            return now.ps();
        }
        let moved_ps = transfer_ps(bytes, memory.bytes_per_s);
        let (first_came_ps, last_moved_ps) = match bytes {
            // Byte by byte.
            _ if memory.passes_on => (0, 0),
            0..=PIECE_BYTES => (arriving_ps, moved_ps),
            _ => {
                let of_piece =
                    |ps: u64| u128::from(ps) * u128::from(PIECE_BYTES) / u128::from(bytes);
                (of_piece(arriving_ps) as u64, of_piece(moved_ps) as u64)
            }
        };
        let from_ps = now.ps() + first_came_ps - arriving_ps;
        let end_ps = memory.timeline.book_from(from_ps, moved_ps);
        end_ps.max(now.ps() + last_moved_ps)
    }

    /// When `bytes` of a memory of the drive are at hand, or begin to pass through.
    #[inline]
    pub fn load(&mut self, tier: Tier, now: Now, bytes: u64) -> u64 {
        let memory = &mut self.all[Self::standing(tier)];
        if memory.bytes_per_s == 0 {
            return now.ps() + memory.access_ps;
        }
        let moved_ps = transfer_ps(bytes, memory.bytes_per_s);
        let end_ps = memory.timeline.book(now, moved_ps);
        let here_ps = match memory.passes_on {
            true => end_ps - moved_ps,
            false => end_ps,
        };
        here_ps + memory.access_ps
    }

    /// How a map entry there is looked up, in so many steps, by a core that begins then.
    #[inline]
    #[must_use]
    pub fn look_up(&mut self, tier: Tier, begin_ps: u64, steps: u64) -> Access {
        if tier.is_granted() {
            return Access::LinkRead;
        }
        let memory = &mut self.all[tier as usize];
        let moved_ps = steps * memory.line_ps;
        let end_ps = memory.look_ups.book_from(begin_ps, moved_ps);
        let behind_ps = end_ps - moved_ps - begin_ps;
        let waits_ps = behind_ps.saturating_sub(LINES_QUEUED * memory.line_ps);
        Access::Load {
            core_ps: steps * memory.access_ps + waits_ps,
        }
    }

    /// Time in which each memory that has a rate moved data and map entries, picoseconds.
    pub fn busy_ps(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let rated = Tier::ALL.iter().zip(&self.all);
        let rated = rated.filter(|(_, memory)| memory.bytes_per_s > 0);
        rated.map(|(tier, memory)| {
            let busy_ps = memory.timeline.busy_ps() + memory.look_ups.busy_ps();
            (tier.name(), busy_ps)
        })
    }

    /// Nothing that was under way takes place any more.
    pub fn drop_all(&mut self) {
        for memory in &mut self.all {
            memory.timeline.drop_all();
            memory.look_ups.drop_all();
        }
    }
}
