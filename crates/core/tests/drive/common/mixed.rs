//! Requests of all kinds, drawn at random, for the tests of a hostile host: what they touch, what they leave, and how
//! long they take.

use super::contents::SectorTags;
use lodger_core::device::{Contents, HostMemory};
use lodger_core::rng::Rng;
use lodger_core::{Host, Op, Request};
use std::ops::Range;

/// What requests are drawn from.
pub struct Mixed {
    /// Each request begins in one of the drive's first pages, and how many of them count is drawn from these numbers:
    /// where they are few, old versions of them abound.
    pub spans: &'static [u32],
    /// Reads for each trim; there are as many writes as reads, and as many flushes as trims.
    pub reads: u32,
    /// The longest request, pages.
    pub pages_max: u32,
}

impl Mixed {
    pub fn request(&self, tag: u32, rng: &mut Rng) -> Request {
        let span = self.spans[rng.below(self.spans.len() as u32) as usize];
        let lpn = u64::from(rng.below(span));
        let op = match rng.below(2 * self.reads + 2) {
            kind if kind < self.reads => Op::Read,
            kind if kind < 2 * self.reads => Op::Write,
            kind if kind == 2 * self.reads => Op::Trim,
            _ => Op::Flush,
        };
        let (offset, length) = match rng.below(4) {
            // Part of a page, so that the rest must be read.
            0 if op != Op::Trim => (lpn * 4096 + 512 * u64::from(rng.below(7)), 512),
            1 => (
                lpn * 4096,
                4096 * (1 + u64::from(rng.below(self.pages_max))),
            ),
            _ => (lpn * 4096, 4096),
        };
        Request {
            tag,
            queue: 0,
            op,
            fua: false,
            offset_bytes: offset,
            length_bytes: if op == Op::Flush { 0 } else { length },
        }
    }
}

/// The pages that a request touches.
pub fn pages_of(request: &Request) -> Range<u32> {
    let end = request.offset_bytes + request.length_bytes;
    (request.offset_bytes / 4096) as u32..end.div_ceil(4096) as u32
}

/// Whether two requests touch the same page.
pub fn overlap(one: &Request, other: &Request) -> bool {
    let (one, other) = (pages_of(one), pages_of(other));
    one.start < other.end && other.start < one.end
}

/// Makes a page what a write or a trim leaves of it.
pub fn overwrite(page: &mut SectorTags, request: &Request, lpn: u32) {
    let start = u64::from(lpn) * 4096;
    let end = request.offset_bytes + request.length_bytes;
    for (at, sector) in (0u64..).zip(page) {
        let at = start + at * 512;
        if at >= request.offset_bytes && at < end {
            *sector = if request.op == Op::Trim {
                0
            } else {
                request.tag
            };
        }
    }
}

/// Requests at random times, while the host changes how much memory it gives.
pub struct Program {
    pub requests: u32,
    pub draw: fn(&mut Rng) -> Request,
    /// The next request comes less than so much later.
    pub gap_ps: u32,
    /// Requests between two changes of the host's memory, which is the one amount and the other in turn.
    pub change_every: u32,
    pub hmb_bytes: [u64; 2],
}

impl Program {
    /// When each request completed, and all that the drive has counted.
    pub fn play<C: Contents, M: HostMemory>(
        &self,
        mut host: Host<C, M>,
    ) -> (Vec<(u32, u64)>, String) {
        let mut rng = Rng::new(5);
        let mut done = Vec::new();
        for tag in 0..self.requests {
            let mut request = (self.draw)(&mut rng);
            request.tag = tag;
            host.submit(request);
            let to_ps = host.now_ps() + u64::from(rng.below(self.gap_ps));
            host.advance(to_ps, &mut done);
            if (tag + 1).is_multiple_of(self.change_every) {
                let change = tag / self.change_every;
                host.set_hmb(self.hmb_bytes[change as usize % 2]);
            }
        }
        done.extend(super::settle(&mut host));
        let times = done.iter().map(|d| (d.tag, d.completed_ps)).collect();
        (times, format!("{:?}", host.counters()))
    }
}
