//! A naive drive: a list of who wrote each sector, no caching, no garbage collection.

use lodger_core::{Op, Request};
use std::collections::HashMap;

/// A write (or trim, value 0) of one sector: its order of submission and of completion.
#[derive(Clone, Copy, Debug)]
pub struct Wrote {
    pub value: u32,
    pub submitted: u64,
    pub completed: u64,
}

/// Who wrote each sector, and when.
#[derive(Default)]
pub struct Naive {
    pub wrote: HashMap<u64, Vec<Wrote>>,
    reads: HashMap<u32, (u64, u64)>,
    clock: u64,
}

impl Naive {
    fn sectors(request: &Request) -> std::ops::Range<u64> {
        let (mut from, mut to) = (
            request.offset_bytes,
            request.offset_bytes + request.length_bytes,
        );
        if request.op == Op::Trim {
            // Only whole pages are deallocated.
            from = from.next_multiple_of(4096);
            to = to / 4096 * 4096;
        }
        from / 512..(to / 512).max(from / 512)
    }

    /// A request goes to the drive.
    pub fn submit(&mut self, request: &Request) {
        self.clock += 1;
        let at = Wrote {
            value: if request.op == Op::Trim {
                0
            } else {
                request.tag
            },
            submitted: self.clock,
            completed: u64::MAX,
        };
        match request.op {
            Op::Read => {
                self.reads.insert(request.tag, (self.clock, u64::MAX));
            }
            Op::Write | Op::Trim => {
                for sector in Self::sectors(request) {
                    self.wrote.entry(sector).or_default().push(at);
                }
            }
            Op::Flush => {}
        }
    }

    /// A request has completed.
    pub fn complete(&mut self, request: &Request) {
        self.clock += 1;
        match request.op {
            Op::Read => self.reads.get_mut(&request.tag).unwrap().1 = self.clock,
            Op::Write | Op::Trim => {
                let value = if request.op == Op::Trim {
                    0
                } else {
                    request.tag
                };
                for sector in Self::sectors(request) {
                    let all = self.wrote.get_mut(&sector).unwrap();
                    let this = all
                        .iter_mut()
                        .find(|w| w.value == value && w.completed == u64::MAX)
                        .unwrap();
                    this.completed = self.clock;
                }
            }
            Op::Flush => {}
        }
    }

    /// A read may return a write that was submitted before it completed and was not overwritten
    /// before it was submitted by a write that came after.
    pub fn allows(&self, tag: u32, sector: u64, value: u32) -> bool {
        let (submitted, completed) = self.reads[&tag];
        let none = Vec::new();
        // In the order of submission; the newest candidates are the likely ones.
        let all = self.wrote.get(&sector).unwrap_or(&none);
        let candidates = all.partition_point(|w| w.submitted < completed);
        let overwritten = |since: usize, completed: u64| {
            all[since..candidates]
                .iter()
                .any(|later| later.submitted > completed && later.completed < submitted)
        };
        let newest_first = (0..candidates).rev();
        let written = newest_first
            .filter(|&at| all[at].value == value)
            .any(|at| !overwritten(at, all[at].completed));
        written || (value == 0 && !overwritten(0, 0))
    }
}
