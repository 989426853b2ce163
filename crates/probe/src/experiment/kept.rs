//! What a read cache keeps must not answer for flash where the same pages are read again.
//!
//! Where pages are of several kinds, only pages that were picked tell whether their map entry was at hand, and
//! they are read more than once. A page that a read cache keeps takes as long as its translation page if its
//! entry is not at hand: as long as a page of another kind, or of the same one. So the read cache is filled
//! with other pages before each look, from stretches whose entries are at hand anyway.

use super::samples::KEPT;
use super::walk::{TRANSLATED, page_of};
use crate::bench::{Bench, Stop};

/// Most pages that are read to push another one out: 16 MiB of them.
const MOST: u64 = 4096;
/// Pages that must be gone.
const TRIES: usize = 8;
/// A stretch whose entries surely come together.
const STRETCH: u64 = 1 << 20;
/// Requests in flight.
const DEPTH: u32 = 32;

/// Reads after which a page is surely not kept any more, 0 where none is kept in the first place; nothing
/// where it takes more than can be read without pushing map entries out. `fast_ns` is what a page of the
/// fastest kind takes.
pub(super) fn learned(bench: &mut Bench<'_>, fast_ns: f64) -> Result<Option<u64>, Stop> {
    if !is_kept(bench, 0, fast_ns)? {
        return Ok(Some(0));
    }
    let mut pages = 16;
    while is_kept(bench, pages, fast_ns)? {
        pages *= 2;
        if pages > MOST {
            return Ok(None);
        }
    }
    Ok(Some((pages * 3 / 2).min(MOST)))
}

/// Whether one of some pages comes from a read cache after so many others were read.
fn is_kept(bench: &mut Bench<'_>, others: u64, fast_ns: f64) -> Result<bool, Stop> {
    let stretches = (bench.capacity() / TRANSLATED).saturating_sub(8).max(1);
    for _ in 0..TRIES {
        let start = bench.below(stretches) * TRANSLATED;
        let at = page_of(bench, start, STRETCH);
        bench.read_pages([at], 1, &mut Vec::new())?;
        push(bench, start + STRETCH, others)?;
        // Its entry is at hand again.
        bench.read_pages([at ^ bench.page()], 1, &mut Vec::new())?;
        let mut latency = Vec::with_capacity(1);
        bench.read_pages([at], 1, &mut latency)?;
        if latency[0] < KEPT * fast_ns {
            return Ok(true);
        }
    }
    Ok(false)
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
