//! What a read cache keeps must not answer for flash where the same pages are read again.
//!
//! Where pages are of several kinds, only pages that were picked tell whether their map entry was at hand, and
//! they are read more than once. A page that a read cache keeps takes as long as its translation page if its
//! entry is not at hand: as long as a page of another kind, or of the same one. So the read cache is filled
//! with other pages before each look, from stretches whose entries are at hand anyway.

use super::walk::{TRANSLATED, page_of};
use crate::bench::{Bench, Stop};
use std::time::Duration;

/// Most pages that are read to push another one out: 16 MiB of them.
const MOST: u64 = 4096;
/// Pages that must be gone, and how many of them a held up command may speak for.
const TRIES: usize = 8;
const STRAYS: usize = 1;
/// A page that takes less than this share of what it took before was kept: four times what a quiet machine's 3 % make two
/// reads of one page differ by. It is its own measure, for pages differ, and a hit may save a small part of slow firmware.
const AGAIN: f64 = 0.85;
/// What a drive has left to do for itself after a read is done by then.
const REST: Duration = Duration::from_millis(1);
/// A stretch whose entries surely come together.
const STRETCH: u64 = 1 << 20;
/// Requests in flight.
const DEPTH: u32 = 32;

/// Reads after which a page is surely not kept any more, 0 where none is kept in the first place; nothing
/// where it takes more than can be read without pushing map entries out. Only of the state that host memory is in: a
/// cache there is gone with it.
pub(super) fn learned(bench: &mut Bench<'_>) -> Result<Option<u64>, Stop> {
    if !is_kept(bench, 0)? {
        return Ok(Some(0));
    }
    let mut pages = 16;
    while is_kept(bench, pages)? {
        pages *= 2;
        if pages > MOST {
            return Ok(None);
        }
    }
    Ok(Some((pages * 3 / 2).min(MOST)))
}

/// Whether some pages come from a read cache after so many others were read.
fn is_kept(bench: &mut Bench<'_>, others: u64) -> Result<bool, Stop> {
    let stretches = (bench.capacity() / TRANSLATED).saturating_sub(8).max(1);
    let mut kept = 0;
    for _ in 0..TRIES {
        let start = bench.below(stretches) * TRANSLATED;
        let at = page_of(bench, start, STRETCH);
        // Its entry is at hand, the first time and again.
        let neighbour = at ^ bench.page();
        let mut took = Vec::with_capacity(4);
        for others in [0, others] {
            push(bench, start + STRETCH, others)?;
            bench.read_pages([neighbour], 1, &mut took)?;
            // The rest of a large unit comes meanwhile, and no read waits for it.
            bench.idle(REST)?;
            bench.read_pages([at], 1, &mut took)?;
        }
        kept += usize::from(took[3] < AGAIN * took[1]);
    }
    Ok(kept > STRAYS)
}

/// Reads so many pages from there on.
pub(super) fn push(bench: &mut Bench<'_>, start: u64, pages: u64) -> Result<(), Stop> {
    let page = bench.page();
    let last = bench.capacity() / page - 1;
    let offsets: Vec<u64> = (0..pages)
        .map(|i| (start / page + i).min(last) * page)
        .collect();
    bench.read_pages(offsets, DEPTH, &mut Vec::new())
}
