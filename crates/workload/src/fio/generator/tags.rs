//! Which of a job's requests are in flight.

/// Tags below the queue depth; those that are free are used again, the last one first.
#[derive(Clone, Debug)]
pub(super) struct Tags {
    depth: u32,
    in_flight: u32,
    /// Usually the depth; the refill mark while a full queue drains to it.
    limit: u32,
    free: Vec<u32>,
    /// Tags from here on were never used.
    fresh: u32,
}

impl Tags {
    pub fn new(depth: u32) -> Self {
        Tags {
            depth,
            in_flight: 0,
            limit: depth,
            free: Vec::new(),
            fresh: 0,
        }
    }

    #[inline]
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Whether another request may be in flight; if not, not before as few as `refill_at` are.
    #[inline]
    pub fn has_room(&mut self, refill_at: u32) -> bool {
        let has_room = self.in_flight < self.limit;
        self.limit = match has_room {
            true => self.depth,
            false => refill_at + 1,
        };
        has_room
    }

    #[inline]
    pub fn take(&mut self) -> u32 {
        self.in_flight += 1;
        self.free.pop().unwrap_or_else(|| {
            self.fresh += 1;
            self.fresh - 1
        })
    }

    #[inline]
    pub fn give_back(&mut self, tag: u32) {
        debug_assert!(self.in_flight > 0 && tag < self.depth);
        self.in_flight -= 1;
        self.free.push(tag);
    }
}
