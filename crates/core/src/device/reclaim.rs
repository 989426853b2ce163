//! Room for cleaning, however often power is cut.
//!
//! A cut costs each open superblock the program operations that were under way, and leaves victims
//! half emptied. Cut again and again in the middle of cleaning, a drive would lose its free
//! superblocks one by one, until there is none left to move anything to. So recovery cleans, before
//! it lets the host in, until more superblocks are free than the reserve of cleaning, and takes the
//! victims with the least to be moved, whatever policy is best in the long run.

use super::{Contents, Device, HostMemory};

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
        while self.ftl.blocks.free_count(false) <= reserve && self.next_time().is_some() {
            self.work();
        }
        self.background.reclaiming = false;
        self.now_ps() - from_ps
    }
}
