//! A naive drive: a list of who wrote each sector, no caching, no cleaning; and contents that follow
//! the tag of the request that wrote each sector through the real one.

use lodger_core::device::{Contents, Source};
use lodger_core::ids::{BufferSlot, Lpn, Ppn};
use lodger_core::{Op, Request};
use std::collections::HashMap;

/// Tags of a page's sectors.
pub type Page = [u32; 8];

/// Follows the tag of the request that wrote each sector through buffer and flash.
#[derive(Default)]
pub struct Tags {
    pub flash: HashMap<Ppn, Page>,
    pub buffer: HashMap<BufferSlot, Page>,
    /// What flash holds from before the first request; nothing by default.
    pub before: Option<fn(Ppn) -> Page>,
    /// Read tag, page, sectors read, what was read.
    pub seen: Vec<(u32, u32, u8, Page)>,
}

/// Lays the sectors of a mask over a page.
pub fn overlay(onto: &mut Page, from: &Page, sectors: u8) {
    for sector in 0..8 {
        if sectors >> sector & 1 != 0 {
            onto[sector] = from[sector];
        }
    }
}

impl Tags {
    fn at(&self, source: Source) -> Page {
        match source {
            Source::Buffer(slot) => self.buffer[&slot],
            Source::Flash(ppn) => match (self.flash.get(&ppn), self.before) {
                (Some(page), _) => *page,
                (None, Some(before)) => before(ppn),
                (None, None) => Page::default(),
            },
            Source::Unwritten => Page::default(),
        }
    }

    /// Read tag, sector, value of every sector read.
    pub fn sectors_seen(&self) -> impl Iterator<Item = (u32, u64, u32)> {
        let sectors = |&(tag, lpn, sectors, page): &(u32, u32, u8, Page)| {
            let read = (0..8u64).filter(move |sector| sectors >> sector & 1 != 0);
            read.map(move |sector| (tag, u64::from(lpn) * 8 + sector, page[sector as usize]))
        };
        self.seen.iter().flat_map(sectors)
    }
}

impl Contents for Tags {
    fn arrive(&mut self, tag: u32, _: Lpn, slot: BufferSlot, sectors: u8) {
        let mut page = Page::default();
        overlay(&mut page, &[tag; 8], sectors);
        self.buffer.insert(slot, page);
    }
    fn merge(&mut self, slot: BufferSlot, source: Source, written: u8) {
        let mut page = self.at(source);
        overlay(&mut page, &self.buffer[&slot], written);
        self.buffer.insert(slot, page);
    }
    fn absorb(&mut self, from: BufferSlot, to: BufferSlot, sectors: u8) {
        let newer = self.buffer[&from];
        overlay(self.buffer.get_mut(&to).unwrap(), &newer, sectors);
    }
    fn program(&mut self, from: BufferSlot, to: Ppn) {
        self.flash.insert(to, self.buffer[&from]);
    }
    fn relocate(&mut self, from: Ppn, to: Ppn) {
        let page = self.at(Source::Flash(from));
        self.flash.insert(to, page);
    }
    fn read(&mut self, tag: u32, lpn: Lpn, source: Source, sectors: u8) {
        self.seen.push((tag, lpn.0, sectors, self.at(source)));
    }
}

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
