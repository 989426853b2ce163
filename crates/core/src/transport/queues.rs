//! NVMe submission queues: fetched from in turn, a burst at a time (NVM Express Base 2.0, section
//! 3.4.4.1, round robin arbitration), while the drive has room for commands.

use crate::ids::CommandId;
use std::collections::VecDeque;

/// Submission queues of a drive.
#[derive(Debug)]
pub struct SubmissionQueues {
    queues: Vec<VecDeque<CommandId>>,
    waiting: usize,
    free_slots: u32,
    burst: u32,
    turn: usize,
    taken_in_turn: u32,
}

impl SubmissionQueues {
    /// No queues yet; the drive works on `slots` commands at once.
    #[must_use]
    pub fn new(slots: u32, burst: u32) -> Self {
        SubmissionQueues {
            queues: Vec::new(),
            waiting: 0,
            free_slots: slots,
            burst,
            turn: 0,
            taken_in_turn: 0,
        }
    }

    /// A command has been submitted. True: the drive has a slot for it and takes it now.
    #[inline]
    pub fn submit(&mut self, queue: u16, command: CommandId) -> bool {
        if self.free_slots > 0 {
            debug_assert_eq!(self.waiting, 0);
            self.free_slots -= 1;
            return true;
        }
        let queue = usize::from(queue);
        if queue >= self.queues.len() {
            self.queues.resize_with(queue + 1, VecDeque::new);
        }
        self.queues[queue].push_back(command);
        self.waiting += 1;
        false
    }

    /// A command has left the drive. Returns the next one to take, whose slot it inherits.
    #[inline]
    pub fn release(&mut self) -> Option<CommandId> {
        if self.waiting == 0 {
            self.free_slots += 1;
            return None;
        }
        if self.taken_in_turn >= self.burst {
            self.next_turn();
        }
        while self.queues[self.turn].is_empty() {
            self.next_turn();
        }
        self.taken_in_turn += 1;
        self.waiting -= 1;
        self.queues[self.turn].pop_front()
    }

    fn next_turn(&mut self) {
        self.turn = (self.turn + 1) % self.queues.len();
        self.taken_in_turn = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_take_turns_by_bursts() {
        let mut queues = SubmissionQueues::new(1, 2);
        assert!(queues.submit(0, CommandId(99)));
        for n in 0..4 {
            assert!(!queues.submit(0, CommandId(n)));
            assert!(!queues.submit(2, CommandId(10 + n)));
        }
        let order: Vec<u32> = std::iter::from_fn(|| queues.release().map(|c| c.0)).collect();
        assert_eq!(order, [0, 1, 10, 11, 2, 3, 12, 13]);
        assert!(queues.submit(1, CommandId(5)), "the slot is free again");
    }
}
