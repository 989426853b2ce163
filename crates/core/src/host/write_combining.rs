//! Write-combining buffers of the host's CPUs.
//!
//! Stores to the byte window gather in them, one line of 64 bytes each, and leave as posted packets
//! when a line is full, when a buffer is needed for another line, or at a flush or fence (Intel 64 and
//! IA-32 Architectures Software Developer's Manual, volume 3A, section 12.3.1). A line with gaps leaves
//! as several packets.

use crate::controller::HostMemory;
use crate::device::{Contents, Device};
use crate::observe::Tracer;
use crate::transport::bar::Packet;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Whether a store can be combined now.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// There is a buffer for the line.
    Ready,
    /// There will be one at that time.
    Wait(u64),
}

/// Bytes of a line that are being combined.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
struct Open {
    id: u32,
    line: u32,
    mask: u64,
}

#[derive(Clone, Serialize, Deserialize, Debug, Default)]
struct Cpu {
    /// Buffers that combine, in the order in which they were taken.
    open: Vec<Open>,
    /// When the buffers whose packets are leaving are free again, the first at the front.
    leaving: VecDeque<u64>,
}

/// The buffers of all CPUs.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct WriteCombining {
    /// Number of buffers that each CPU has.
    buffers: usize,
    cpus: Vec<Cpu>,
}

impl WriteCombining {
    /// `buffers` for each CPU; with none, each store goes out by itself.
    #[must_use]
    pub fn new(buffers: u32) -> Self {
        WriteCombining {
            buffers: buffers as usize,
            cpus: Vec::new(),
        }
    }

    /// Whether stores combine; otherwise each goes out by itself.
    #[must_use]
    pub fn combines(&self) -> bool {
        self.buffers > 0
    }

    fn cpu(&mut self, cpu: u16) -> &mut Cpu {
        let index = usize::from(cpu);
        if index >= self.cpus.len() {
            self.cpus.resize_with(index + 1, Cpu::default);
        }
        &mut self.cpus[index]
    }

    /// Looks for a buffer for a line: one that holds it, a free one, or one that gives way.
    pub fn take<C: Contents, M: HostMemory, T: Tracer>(
        &mut self,
        drive: &mut Device<C, M, T>,
        cpu: u16,
        line: u32,
    ) -> Room {
        // Uncached stores leave one at a time.
        let buffers = self.buffers.max(1);
        let now_ps = drive.now_ps();
        let state = self.cpu(cpu);
        if state.open.iter().any(|open| open.line == line) {
            return Room::Ready;
        }
        while state.leaving.front().is_some_and(|ps| *ps <= now_ps) {
            state.leaving.pop_front();
        }
        if state.open.len() + state.leaving.len() < buffers {
            let id = drive.new_packet_id();
            state.open.push(Open { id, line, mask: 0 });
            return Room::Ready;
        }
        if state.leaving.is_empty() {
            // Partly filled ones give way in the order in which they were taken.
            state.post(drive, 0);
        }
        let free_ps = state.leaving.front();
        Room::Wait(*free_ps.expect("a buffer is leaving"))
    }

    /// Bytes are combined into the buffer of their line, which leaves if that fills it. Returns the
    /// name of the bytes. A buffer must have been taken for the line.
    pub fn combine<C: Contents, M: HostMemory, T: Tracer>(
        &mut self,
        drive: &mut Device<C, M, T>,
        cpu: u16,
        line: u32,
        mask: u64,
    ) -> u32 {
        let combines = self.combines();
        let state = self.cpu(cpu);
        let place = state.open.iter().position(|open| open.line == line);
        let place = place.expect("a buffer was taken for the line");
        state.open[place].mask |= mask;
        let Open { id, mask, .. } = state.open[place];
        if mask == u64::MAX || !combines {
            state.post(drive, place);
        }
        id
    }

    /// All of a CPU's buffers leave, as at a fence. Returns when the last is out of the CPU.
    pub fn drain<C: Contents, M: HostMemory, T: Tracer>(
        &mut self,
        drive: &mut Device<C, M, T>,
        cpu: u16,
    ) -> u64 {
        let now_ps = drive.now_ps();
        let state = self.cpu(cpu);
        while !state.open.is_empty() {
            state.post(drive, 0);
        }
        let last_ps = state.leaving.back();
        last_ps.map_or(now_ps, |ps| now_ps.max(*ps))
    }

    /// The host is gone. Returns how many bytes were still in the buffers.
    pub fn cut(&mut self) -> u64 {
        let open = self.cpus.iter().flat_map(|cpu| &cpu.open);
        let lost: u32 = open.map(|open| open.mask.count_ones()).sum();
        self.cpus.clear();
        u64::from(lost)
    }
}

impl Cpu {
    /// A buffer's bytes leave.
    fn post<C: Contents, M: HostMemory, T: Tracer>(
        &mut self,
        drive: &mut Device<C, M, T>,
        place: usize,
    ) {
        let Open { id, line, mut mask } = self.open.remove(place);
        debug_assert_ne!(mask, 0, "a buffer is taken for bytes");
        let mut sent_ps = drive.now_ps();
        while mask != 0 {
            let first = mask.trailing_zeros();
            let count = (mask >> first).trailing_ones();
            let run = (u64::MAX >> (64 - count)) << first;
            mask &= !run;
            sent_ps = drive.post_to_window(Packet {
                id,
                line,
                mask: run,
                last: mask == 0,
            });
        }
        // Packets leave one after the other.
        debug_assert!(self.leaving.back().is_none_or(|ps| *ps <= sent_ps));
        self.leaving.push_back(sent_ps);
    }
}
