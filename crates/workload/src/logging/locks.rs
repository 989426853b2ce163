//! Locks that transactions hold until they are acknowledged: whoever finds one held waits in turn.

use std::collections::VecDeque;

#[derive(Debug, Default)]
struct Lock {
    held: bool,
    waiting: VecDeque<u32>,
}

#[derive(Debug)]
pub struct Locks(Vec<Lock>);

impl Locks {
    pub fn new(count: u32) -> Self {
        Self((0..count).map(|_| Lock::default()).collect())
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.0.len() as u32
    }

    /// Whether `client` has the lock; otherwise it waits.
    pub fn take(&mut self, lock: u32, client: u32) -> bool {
        let lock = &mut self.0[lock as usize];
        if lock.held {
            lock.waiting.push_back(client);
            return false;
        }
        lock.held = true;
        true
    }

    /// Gives a lock back; returns who has it now.
    pub fn give(&mut self, lock: u32) -> Option<u32> {
        let lock = &mut self.0[lock as usize];
        let next = lock.waiting.pop_front();
        lock.held = next.is_some();
        next
    }
}
