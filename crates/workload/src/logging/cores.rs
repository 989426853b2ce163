//! The host's cores: whoever finds none waits in turn.

use std::collections::VecDeque;

#[derive(Debug)]
pub struct Cores {
    free: Vec<u16>,
    waiting: VecDeque<u32>,
}

impl Cores {
    pub fn new(count: u16) -> Self {
        Self {
            free: (0..count).rev().collect(),
            waiting: VecDeque::new(),
        }
    }

    /// A core for `client`, or `None`: it waits then.
    pub fn take(&mut self, client: u32) -> Option<u16> {
        let core = self.free.pop();
        if core.is_none() {
            self.waiting.push_back(client);
        }
        core
    }

    /// Gives a core back; returns who has it now.
    pub fn give(&mut self, core: u16) -> Option<u32> {
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.free.push(core);
        }
        next
    }
}
