//! CPUs of the host that load from and store to the drive: each works off its calls in order.

use crate::request::EntryId;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What one CPU has to do, and what it remembers of its stores.
#[derive(Clone, Serialize, Deserialize, Debug, Default)]
struct Cpu {
    /// Calls not begun.
    waiting: VecDeque<u32>,
    /// A call keeps it busy.
    busy: bool,
    /// Lines stored to each entry and not flushed since, and the last of them.
    stored: Vec<(EntryId, u64, u64)>,
}

/// The CPUs; they come into being when first used.
#[derive(Clone, Serialize, Deserialize, Debug, Default)]
pub struct Cpus(Vec<Cpu>);

impl Cpus {
    fn cpu(&mut self, cpu: u16) -> &mut Cpu {
        let index = usize::from(cpu);
        if index >= self.0.len() {
            self.0.resize_with(index + 1, Cpu::default);
        }
        &mut self.0[index]
    }

    /// A call is made on a CPU. True: it begins now.
    pub fn call(&mut self, cpu: u16, call: u32) -> bool {
        let cpu = self.cpu(cpu);
        if cpu.busy {
            cpu.waiting.push_back(call);
            return false;
        }
        cpu.busy = true;
        true
    }

    /// A CPU is done with a call; returns the one that begins now.
    pub fn release(&mut self, cpu: u16) -> Option<u32> {
        let cpu = self.cpu(cpu);
        let next = cpu.waiting.pop_front();
        cpu.busy = next.is_some();
        next
    }

    /// A CPU stores to lines `first..=last` of an entry.
    pub fn stored(&mut self, cpu: u16, entry: EntryId, first: u64, last: u64) {
        let stored = &mut self.cpu(cpu).stored;
        let lines = last - first + 1;
        match stored.iter_mut().find(|known| known.0 == entry) {
            // Appending goes on in the line where it stopped.
            Some(known) => {
                known.1 += lines - u64::from(known.2 == first);
                known.2 = last;
            }
            None => stored.push((entry, lines, last)),
        }
    }

    /// Lines of an entry that a CPU must flush; it remembers none of them any more.
    pub fn take_stored(&mut self, cpu: u16, entry: EntryId) -> u64 {
        let stored = &mut self.cpu(cpu).stored;
        let place = stored.iter().position(|known| known.0 == entry);
        place.map_or(0, |place| stored.swap_remove(place).1)
    }
}
