//! Room for cleaning, however often power is cut.
//!
//! A cut costs each open superblock the program operations that were under way, and leaves victims
//! half emptied. Cut again and again in the middle of cleaning, a drive would lose its free
//! superblocks one by one, until there is none left to move anything to. So recovery cleans, before
//! it lets the host in, until more superblocks are free than the reserve of cleaning, and takes the
//! victims with the least to be moved, whatever policy is best in the long run. Where superblocks are so
//! short that moving takes as much room as it gives, it does not wait for what will not come.

use super::{Contents, Device, HostMemory};

/// How often recovery may erase as many superblocks as there are.
const ROUNDS_MAX: u64 = 4;

impl<C: Contents, M: HostMemory> Device<C, M> {
    /// Recovery: cleans until the reserve is back. Returns the time it took, picoseconds.
    pub(super) fn reclaim(&mut self) -> u64 {
        let reserve = self.spec.ftl.gc_reserve_superblocks;
        if self.ftl.blocks.free_count(false) > reserve {
            return 0;
        }
        let from_ps = self.now_ps();
        self.background.reclaiming = true;
        self.pump();
        let end_ps = from_ps.saturating_add(self.reclaim_limit_ps);
        let geometry = self.ftl.geometry();
        let round = u64::from(geometry.superblocks) * u64::from(geometry.dies);
        let erases_max = self.board.counters.erases + ROUNDS_MAX * round;
        while self.ftl.blocks.free_count(false) <= reserve
            && self.board.counters.erases < erases_max
            && self.next_time().is_some_and(|next_ps| next_ps <= end_ps)
        {
            self.work();
        }
        self.background.reclaiming = false;
        self.now_ps() - from_ps
    }
}
