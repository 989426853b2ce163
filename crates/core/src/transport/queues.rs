//! NVMe submission queues: fetched from in turn, a burst at a time (NVM Express Base 2.0, section
//! 3.4.4.1, round robin arbitration), while the drive has room for commands.

use crate::ids::CommandId;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A command in its queue.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
struct Waiting {
    command: CommandId,
    /// When the drive knows of it: its doorbell has arrived.
    known_ps: u64,
}

/// Submission queues of a drive.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct SubmissionQueues {
    queues: Vec<VecDeque<Waiting>>,
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

    /// A command has been submitted, which the drive will know of at `known_ps`. True: the drive has
    /// a slot for it and takes it then.
    #[inline]
    pub fn submit(&mut self, queue: u16, command: CommandId, known_ps: u64) -> bool {
        if self.free_slots > 0 {
            debug_assert_eq!(self.waiting, 0);
            self.free_slots -= 1;
            return true;
        }
        self.wait(queue, Waiting { command, known_ps });
        false
    }

    #[inline(never)]
    fn wait(&mut self, queue: u16, waiting: Waiting) {
        let queue = usize::from(queue);
        if queue >= self.queues.len() {
            self.queues.resize_with(queue + 1, VecDeque::new);
        }
        self.queues[queue].push_back(waiting);
        self.waiting += 1;
    }

    /// A command is taken out of its queue again; false: it does not wait in one any more.
    pub fn withdraw(&mut self, queue: u16, command: CommandId) -> bool {
        let Some(queue) = self.queues.get_mut(usize::from(queue)) else {
            return false;
        };
        let at = queue.iter().position(|waiting| waiting.command == command);
        let is_there = at.and_then(|at| queue.remove(at)).is_some();
        self.waiting -= usize::from(is_there);
        is_there
    }

    /// A command has left the drive at `now_ps`. Returns the next one to take, which inherits its
    /// slot, and when the drive knows of it.
    #[inline]
    pub fn release(&mut self, now_ps: u64) -> Option<(CommandId, u64)> {
        if self.waiting == 0 {
            self.free_slots += 1;
            return None;
        }
        self.next_waiting(now_ps)
    }

    #[inline(never)]
    fn next_waiting(&mut self, now_ps: u64) -> Option<(CommandId, u64)> {
        if self.taken_in_turn >= self.burst {
            self.next_turn();
        }
        let first = self.turn;
        while !self.has_known(self.turn, now_ps) {
            self.next_turn();
            if self.turn == first {
                self.turn_to_earliest();
                break;
            }
        }
        self.taken_in_turn += 1;
        self.waiting -= 1;
        let next = self.queues[self.turn].pop_front()?;
        Some((next.command, next.known_ps))
    }

    #[inline]
    fn has_known(&self, queue: usize, now_ps: u64) -> bool {
        let front = self.queues[queue].front();
        front.is_some_and(|waiting| waiting.known_ps <= now_ps)
    }

    /// The drive knows of no waiting command: it takes the first one it hears of.
    #[cold]
    fn turn_to_earliest(&mut self) {
        let queues = self.queues.iter().enumerate();
        let fronts = queues.filter_map(|(at, queue)| Some((queue.front()?.known_ps, at)));
        if let Some((_, at)) = fronts.min() {
            (self.turn, self.taken_in_turn) = (at, 0);
        }
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
        assert!(queues.submit(0, CommandId(99), 0));
        for n in 0..4 {
            assert!(!queues.submit(0, CommandId(n), 0));
            assert!(!queues.submit(2, CommandId(10 + n), 0));
        }
        let next = || queues.release(0).map(|(command, _)| command.0);
        let order: Vec<u32> = std::iter::from_fn(next).collect();
        assert_eq!(order, [0, 1, 10, 11, 2, 3, 12, 13]);
        assert!(queues.submit(1, CommandId(5), 0), "the slot is free again");
    }

    #[test]
    fn a_command_that_is_withdrawn_is_not_taken_and_leaves_the_others_as_they_were() {
        let mut queues = SubmissionQueues::new(1, 2);
        assert!(queues.submit(0, CommandId(99), 0));
        for n in 0..3 {
            queues.submit(0, CommandId(n), 0);
            queues.submit(1, CommandId(10 + n), 0);
        }
        assert!(queues.withdraw(0, CommandId(1)) && !queues.withdraw(0, CommandId(1)));
        assert!(!queues.withdraw(7, CommandId(2)) && !queues.withdraw(0, CommandId(10)));
        let next = || queues.release(0).map(|(command, _)| command.0);
        let order: Vec<u32> = std::iter::from_fn(next).collect();
        assert_eq!(order, [0, 2, 10, 11, 12]);
        assert!(queues.submit(0, CommandId(5), 0), "the slot is free again");
    }

    #[test]
    fn a_queue_whose_doorbell_has_not_rung_is_passed_over() {
        let mut queues = SubmissionQueues::new(1, 1);
        assert!(queues.submit(0, CommandId(99), 0));
        for (queue, command, known_ps) in [(0, 1, 30), (1, 2, 10), (1, 3, 40), (2, 4, 20)] {
            queues.submit(queue, CommandId(command), known_ps);
        }
        let mut next = |now_ps| queues.release(now_ps).unwrap();
        assert_eq!(next(10), (CommandId(2), 10), "the only one that has rung");
        assert_eq!(next(15), (CommandId(4), 20), "the first that will");
        assert_eq!(next(50), (CommandId(1), 30));
        assert_eq!(next(50), (CommandId(3), 40));
    }
}
