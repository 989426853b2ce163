//! Read-ahead: which reads form streams, what is expected to be asked for next, and who waits for what of it is on
//! its way from flash. It takes no time; the drive reads what it is told.

use crate::ids::{CommandId, Maybe, Ppn};
use crate::nand::SlotMask;
use crate::slab::{Linked, Queue, Slab};
use crate::spec::{ReadAheadSpec, SLOT_BYTES};
use crate::table::Table;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Reads that follow each other in one submission queue.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
struct Stream {
    queue: u16,
    /// Where the next of them begins.
    next_bytes: u64,
    /// How many there have been, and how far they have come, in slots.
    reads: u32,
    come_slots: u32,
    /// Up to which page data has been asked for ahead.
    ahead_to: u32,
    /// When it last went on.
    used_at: u64,
}

/// Slots of one page that are on their way from flash.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
struct Coming {
    first: Ppn,
    mask: SlotMask,
    /// Commands that wait for them.
    waiting: Queue,
    /// The last of these.
    last: Maybe<u32>,
}

/// A command that waits for some bytes of them.
#[derive(Clone, Serialize, Deserialize, Copy, Debug)]
struct Waiting {
    command: CommandId,
    bytes: u32,
    next: Maybe<u32>,
}

impl Linked<u32> for Waiting {
    fn next(&self) -> Maybe<u32> {
        self.next
    }
    fn set_next(&mut self, next: Maybe<u32>) {
        self.next = next;
    }
}

/// Streams of reads, and what is read ahead of them.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub struct ReadAhead {
    window_slots: u32,
    after: u32,
    streams: Vec<Stream>,
    streams_max: usize,
    /// Reads observed so far.
    observed: u64,
    /// The stream that the last of them belongs to.
    last: usize,
    coming: Slab<Coming>,
    /// Which of these brings a slot, by physical page.
    coming_by_ppn: Table,
    waiting: Slab<Waiting>,
}

impl ReadAhead {
    /// No streams yet.
    #[must_use]
    pub fn new(spec: &ReadAheadSpec) -> Self {
        ReadAhead {
            window_slots: spec.window_slots,
            after: spec.after,
            streams: Vec::new(),
            streams_max: spec.streams as usize,
            observed: 0,
            last: 0,
            coming: Slab::default(),
            coming_by_ppn: Table::with_capacity(spec.window_slots as usize),
            waiting: Slab::default(),
        }
    }

    /// A read of `bytes` comes from a queue. Returns the pages, below `end`, that are to be read ahead now: as many
    /// as the stream has come so far, the window at most, and no less than half of it at a time, so that whole flash
    /// pages are read.
    pub fn observe(&mut self, queue: u16, bytes: Range<u64>, end: u32) -> Option<Range<u32>> {
        self.observed += 1;
        self.last = self.stream_of(queue, bytes.start);
        let stream = &mut self.streams[self.last];
        let pages = (bytes.start / SLOT_BYTES) as u32..bytes.end.div_ceil(SLOT_BYTES) as u32;
        stream.used_at = self.observed;
        stream.next_bytes = bytes.end;
        stream.reads = stream.reads.saturating_add(1);
        stream.come_slots = stream.come_slots.saturating_add(pages.len() as u32);
        if stream.reads < self.after {
            return None;
        }
        let reach = self.window_slots.min(stream.come_slots);
        let to = pages.end.saturating_add(reach).min(end);
        let from = stream.ahead_to.max(pages.end);
        let is_worth_it = to > from && (2 * (to - from) >= reach || to == end);
        is_worth_it.then(|| {
            stream.ahead_to = to;
            from..to
        })
    }

    /// Of what was to be read ahead last nothing is read from this page on.
    pub fn stop_at(&mut self, page: u32) {
        self.streams[self.last].ahead_to = page;
    }

    /// The stream that a read goes on with, or a new one in place of the one that has stood still the longest; of
    /// those that are none yet, if there are any.
    fn stream_of(&mut self, queue: u16, start_bytes: u64) -> usize {
        let goes_on = |s: &Stream| s.queue == queue && s.next_bytes == start_bytes;
        if let Some(at) = self.streams.iter().position(goes_on) {
            return at;
        }
        let new = Stream {
            queue,
            next_bytes: start_bytes,
            reads: 0,
            come_slots: 0,
            ahead_to: 0,
            used_at: 0,
        };
        if self.streams.len() < self.streams_max {
            self.streams.push(new);
            return self.streams.len() - 1;
        }
        let after = self.after;
        let all = self.streams.iter().enumerate();
        let oldest = all.min_by_key(|(_, s)| (s.reads >= after, s.used_at));
        let (at, _) = oldest.expect("at least one stream is followed");
        self.streams[at] = new;
        at
    }

    /// Whether a physical page is on its way.
    #[inline]
    #[must_use]
    pub fn is_coming(&self, ppn: Ppn) -> bool {
        !self.coming_by_ppn.is_empty() && self.coming_by_ppn.get(ppn.0).is_some()
    }

    /// Slots from `first` on are being read; returns the name under which they arrive.
    pub fn begin(&mut self, first: Ppn, mask: SlotMask) -> u32 {
        let coming = self.coming.insert(Coming {
            first,
            mask,
            waiting: Queue::default(),
            last: Maybe::NONE,
        });
        for slot in slots(first, mask) {
            self.coming_by_ppn.insert(slot, coming);
        }
        coming
    }

    /// A command waits for so many bytes of a page, if that is on its way. Returns whether the command has one read
    /// more to wait for.
    pub fn join(&mut self, ppn: Ppn, command: CommandId, bytes: u32) -> Option<bool> {
        if self.coming_by_ppn.is_empty() {
            return None;
        }
        let at = self.coming_by_ppn.get(ppn.0)?;
        let coming = &mut self.coming[at];
        if let Some(last) = coming.last.get()
            && self.waiting[last].command == command
        {
            self.waiting[last].bytes += bytes;
            return Some(false);
        }
        let last = self.waiting.insert(Waiting {
            command,
            bytes,
            next: Maybe::NONE,
        });
        coming.last = last.into();
        coming.waiting.push_back(&mut self.waiting, last);
        Some(true)
    }

    /// What was begun under that name is here: the next command that waits for it, and for how many bytes.
    pub fn next_waiting(&mut self, coming: u32) -> Option<(CommandId, u32)> {
        let at = self.coming[coming].waiting.pop_front(&mut self.waiting)?;
        let Waiting { command, bytes, .. } = self.waiting[at];
        self.waiting.remove(at);
        Some((command, bytes))
    }

    /// What was begun under that name is here, and nobody waits for it any more.
    pub fn end(&mut self, coming: u32) {
        let Coming { first, mask, .. } = self.coming[coming];
        for slot in slots(first, mask) {
            self.coming_by_ppn.remove(slot);
        }
        self.coming.remove(coming);
    }
}

/// Physical pages of a mask.
fn slots(first: Ppn, mask: SlotMask) -> impl Iterator<Item = u32> {
    let set = move |slot: &u32| mask >> slot & 1 != 0;
    (0..SlotMask::BITS)
        .filter(set)
        .map(move |slot| first.0 + slot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use proptest::prelude::*;

    /// Every read there was, from the first: a stream is looked for in all of them.
    #[derive(Default)]
    struct Naive(Vec<(u16, Range<u64>)>);

    impl Naive {
        /// Reads and slots of the chain that a read is the end of.
        fn chain(&mut self, queue: u16, bytes: Range<u64>) -> (u32, u32) {
            self.0.push((queue, bytes));
            let (mut reads, mut slots, mut at) = (0, 0, self.0.len() - 1);
            loop {
                let (queue, bytes) = self.0[at].clone();
                reads += 1;
                slots += (bytes.end.div_ceil(SLOT_BYTES) - bytes.start / SLOT_BYTES) as u32;
                let before = self.0[..at]
                    .iter()
                    .rposition(|(q, b)| *q == queue && b.end == bytes.start);
                match before {
                    Some(before) => at = before,
                    None => return (reads, slots),
                }
            }
        }
    }

    proptest! {
        #![proptest_config(lodger_testing::config(64))]

        #[test]
        fn streams_are_found_as_by_search_through_all_reads(
            seed in any::<u64>(), window_slots in 1u32..64, after in 1u32..5,
        ) {
            // Fewer streams than are followed, those that have come to an end included.
            let spec = ReadAheadSpec { window_slots, streams: 100, after };
            agree(&spec, &mut Rng::new(seed));
        }
    }

    /// Streams side by side in three queues, each of which may end and begin anew elsewhere.
    fn agree(spec: &ReadAheadSpec, rng: &mut Rng) {
        let mut ahead = ReadAhead::new(spec);
        let mut naive = Naive::default();
        let mut at: Vec<u64> = (0..8).map(|n| n << 33).collect();
        let mut asked: Vec<Vec<Range<u32>>> = vec![Vec::new(); 8];
        for _ in 0..400 {
            let stream = rng.below(8) as usize;
            if rng.below(40) == 0 {
                at[stream] += 1 << 26;
                asked[stream].clear();
            }
            let bytes = at[stream]..at[stream] + 512 * u64::from(1 + rng.below(64));
            at[stream] = bytes.end;
            let queue = (stream % 3) as u16;
            let (reads, slots) = naive.chain(queue, bytes.clone());
            let page = bytes.end.div_ceil(SLOT_BYTES) as u32;
            let reach = spec.window_slots.min(slots);
            let Some(range) = ahead.observe(queue, bytes, u32::MAX) else {
                let known = asked[stream].last().map_or(page, |range| range.end);
                let left = (page + reach).saturating_sub(known.max(page));
                assert!(reads < spec.after || 2 * left < reach, "{left} of {reach}");
                continue;
            };
            assert!(reads >= spec.after, "no stream yet");
            assert_eq!(range.end, page + reach);
            assert!(range.start >= page, "asked for by the host itself");
            let overlaps = |other: &Range<u32>| other.end > range.start;
            assert!(!asked[stream].iter().any(overlaps), "asked for once");
            asked[stream].push(range);
        }
    }

    #[test]
    fn who_waits_hears_in_turn_and_of_all_bytes() {
        let spec = ReadAheadSpec {
            window_slots: 8,
            streams: 1,
            after: 1,
        };
        let mut ahead = ReadAhead::new(&spec);
        let coming = ahead.begin(Ppn(40), 0b1101);
        assert!(ahead.is_coming(Ppn(40)) && !ahead.is_coming(Ppn(41)));
        assert_eq!(ahead.join(Ppn(41), CommandId(7), 4096), None);
        assert_eq!(ahead.join(Ppn(40), CommandId(7), 4096), Some(true));
        assert_eq!(ahead.join(Ppn(42), CommandId(7), 512), Some(false));
        assert_eq!(ahead.join(Ppn(42), CommandId(3), 512), Some(true));
        let waiting: Vec<_> = std::iter::from_fn(|| ahead.next_waiting(coming)).collect();
        assert_eq!(waiting, [(CommandId(7), 4608), (CommandId(3), 512)]);
        ahead.end(coming);
        assert!(!ahead.is_coming(Ppn(40)) && ahead.join(Ppn(42), CommandId(1), 1).is_none());
    }
}
