//! Caches of the host's CPUs, as far as they hold lines of a byte window that is memory of the host (CXL.mem): what was
//! stored and is not written back yet.
//!
//! They are coherent: a line is in one of them, and all CPUs see it there. What was only loaded is not kept. Which line
//! gives way once they are full is not known of any CPU; here a hand goes round, which of a log takes the oldest.

use crate::controller::HostMemory;
use crate::device::{Contents, Device};
use crate::observe::Tracer;
use crate::spec::CpuSpec;
use crate::transport::bar::{LINE_BYTES, Packet};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// What of a line was stored.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
struct Dirty {
    id: u32,
    mask: u64,
}

/// Bytes of a line that a load waits for: from and to, offsets in the window, and when they are here.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
struct Fetch {
    from: u64,
    to: u64,
    here_ps: u64,
}

/// A load under way on a CPU.
#[derive(Clone, Serialize, Deserialize, Debug, Default)]
struct Load {
    fetches: VecDeque<Fetch>,
    /// When the CPU has done with what has come so far.
    done_ps: u64,
}

/// The caches of all CPUs.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct Caches {
    lines_max: usize,
    fetches_max: usize,
    dirty: BTreeMap<u32, Dirty>,
    hand: u32,
    /// When the line that gave way last is out of the caches.
    evicted_ps: u64,
    /// When all that was written back so far is acknowledged.
    acknowledged_ps: u64,
    loads: Vec<Load>,
}

impl Caches {
    /// Caches that hold nothing.
    #[must_use]
    pub fn new(spec: &CpuSpec) -> Self {
        Caches {
            lines_max: (spec.cache_bytes / LINE_BYTES).max(1) as usize,
            fetches_max: spec.wc_buffers.max(1) as usize,
            dirty: BTreeMap::new(),
            hand: 0,
            evicted_ps: 0,
            acknowledged_ps: 0,
            loads: Vec::new(),
        }
    }

    /// Lines leave until the rest fits, one after the other. Returns until when that takes, if it does.
    pub fn make_room<C: Contents, M: HostMemory, T: Tracer>(
        &mut self,
        drive: &mut Device<C, M, T>,
    ) -> Option<u64> {
        while self.dirty.len() > self.lines_max {
            if drive.now_ps() < self.evicted_ps {
                return Some(self.evicted_ps);
            }
            let next = self.next(self.hand..u32::MAX).or(self.next(0..self.hand));
            let line = next.expect("more lines than there may be");
            self.hand = line + 1;
            self.evicted_ps = self.write_back(drive, line);
        }
        None
    }

    /// Bytes of a line are stored; [`Caches::make_room`] makes room for them. Returns the name of the bytes.
    pub fn store<C: Contents, M: HostMemory, T: Tracer>(
        &mut self,
        drive: &mut Device<C, M, T>,
        line: u32,
        mask: u64,
    ) -> u32 {
        let new = || Dirty {
            id: drive.new_packet_id(),
            mask: 0,
        };
        let dirty = self.dirty.entry(line).or_insert_with(new);
        dirty.mask |= mask;
        dirty.id
    }

    /// The first line of a range that must be written back.
    #[must_use]
    pub fn next(&self, lines: std::ops::Range<u32>) -> Option<u32> {
        self.dirty.range(lines).next().map(|(line, _)| *line)
    }

    /// A line is written back, if it must be. Returns when it is out of the caches.
    pub fn write_back<C: Contents, M: HostMemory, T: Tracer>(
        &mut self,
        drive: &mut Device<C, M, T>,
        line: u32,
    ) -> u64 {
        let Some(Dirty { id, mask }) = self.dirty.remove(&line) else {
            return drive.now_ps();
        };
        let (out_ps, acknowledged_ps) = drive.write_back_to_window(Packet {
            id,
            line,
            mask,
            last: true,
        });
        self.acknowledged_ps = acknowledged_ps;
        out_ps
    }

    /// When all that was written back so far is acknowledged.
    #[must_use]
    pub fn acknowledged_ps(&self) -> u64 {
        self.acknowledged_ps
    }

    /// What is stored of a line: the name of the bytes, and which.
    #[must_use]
    pub fn stored(&self, line: u32) -> Option<(u32, u64)> {
        self.dirty.get(&line).map(|dirty| (dirty.id, dirty.mask))
    }

    fn load(&mut self, cpu: u16) -> &mut Load {
        let index = usize::from(cpu);
        if index >= self.loads.len() {
            self.loads.resize_with(index + 1, Load::default);
        }
        &mut self.loads[index]
    }

    /// Whether a CPU can ask for another line.
    #[must_use]
    pub fn may_fetch(&mut self, cpu: u16) -> bool {
        let most = self.fetches_max;
        self.load(cpu).fetches.len() < most
    }

    /// A CPU has asked for bytes of a line, which are here then; later ones come no earlier.
    pub fn fetch(&mut self, cpu: u16, from: u64, to: u64, here_ps: u64) {
        self.load(cpu)
            .fetches
            .push_back(Fetch { from, to, here_ps });
    }

    /// When the next line comes that a CPU has asked for; otherwise, when it is done.
    pub fn next_fetched_ps(&mut self, cpu: u16) -> Result<u64, u64> {
        let load = self.load(cpu);
        let next = load.fetches.front().map(|fetch| fetch.here_ps);
        next.ok_or(load.done_ps)
    }

    /// That line has come: which bytes of it were asked for.
    pub fn fetched(&mut self, cpu: u16) -> (u64, u64) {
        let fetch = self.load(cpu).fetches.pop_front();
        let fetch = fetch.expect("it was asked for");
        (fetch.from, fetch.to)
    }

    /// A CPU takes bytes that it has, from `now_ps` on or once it has taken those before.
    pub fn take(&mut self, cpu: u16, now_ps: u64, takes_ps: u64) {
        let load = self.load(cpu);
        load.done_ps = load.done_ps.max(now_ps) + takes_ps;
    }

    /// The CPUs lose what they hold. Returns how many bytes were stored and not written back.
    pub fn cut(&mut self) -> u64 {
        let lost: u32 = self
            .dirty
            .values()
            .map(|dirty| dirty.mask.count_ones())
            .sum();
        self.dirty.clear();
        self.loads.clear();
        self.hand = 0;
        self.evicted_ps = 0;
        self.acknowledged_ps = 0;
        u64::from(lost)
    }
}
