//! Compressed translation pages: what the map takes in memory when it is kept as runs or as learned
//! segments instead of one entry for each 4 KiB.
//!
//! *Runs*: start, length and first physical page of what lies side by side.
//!
//! *Learned segments*, after LeaFTL (Sun et al., ASPLOS 2023): within groups of 256 entries, start,
//! length, slope and intercept of a line, 8 bytes, that gives every physical page of its range. A
//! newer segment may lie on top of an older one: an entry that was overwritten does not break the
//! line below it. LeaFTL also has segments that are wrong by up to gamma pages, for which a read
//! looks into the spare area and may have to read a neighbour; here gamma is 0: every segment is
//! exact, a look-up never reads twice, and mappings that are only nearly lines do not compress.
//! Slopes are fixed-point with 8 fractional bits (LeaFTL: 16-bit floats).
//!
//! A page that takes no less in either form is kept flat, behind the same header.

use crate::spec::{ENCODING_HEADER_BYTES as HEADER_BYTES, ENTRIES_PER_TRANSLATION_PAGE, Encoding};
use serde::{Deserialize, Serialize};

/// Entry of a logical page without data.
pub const UNMAPPED: u32 = u32::MAX;
/// Entries of a translation page.
pub const ENTRIES: usize = ENTRIES_PER_TRANSLATION_PAGE as usize;
/// Entries of a group of segments.
const GROUP: usize = 256;
/// Bytes of a run or a segment beside its physical page: start and length of 2 bytes each, or start
/// and length of 1 byte and a slope of 2.
const RECORD_BYTES: u64 = 4;
/// One, as a slope.
const ONE: u32 = 256;

/// The entries of one translation page.
pub type Entries = [u32; ENTRIES];

/// Entries that lie on a line.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Index of its first entry in the translation page.
    pub start: u16,
    /// Number of entries.
    pub length: u16,
    /// Physical pages for each further entry, in 256ths; 0 where there are none.
    pub slope: u16,
    /// Physical page of the first entry, or [`UNMAPPED`] for all of them.
    pub ppn: u32,
}

impl Segment {
    fn end(&self) -> usize {
        usize::from(self.start) + usize::from(self.length)
    }

    fn is_hole(&self) -> bool {
        self.ppn == UNMAPPED
    }

    /// What the segment says of an entry at or after its start.
    fn predict(&self, at: usize) -> u32 {
        if self.is_hole() {
            return UNMAPPED;
        }
        let steps = (at - usize::from(self.start)) as u32;
        self.ppn.wrapping_add(rise(u32::from(self.slope), steps))
    }
}

fn rise(slope: u32, steps: u32) -> u32 {
    (slope * steps + ONE / 2) / ONE
}

/// Encodes translation pages; keeps its lists, so that nothing is allocated per page.
#[derive(Clone, Serialize, Deserialize, Debug, Default)]
pub struct Encoder {
    pieces: Vec<Segment>,
    segments: Vec<Segment>,
}

impl Encoder {
    /// The runs or segments of a page, in the order in which a look-up tries them.
    pub fn encode(&mut self, entries: &Entries, encoding: Encoding) -> &[Segment] {
        self.segments.clear();
        match encoding {
            Encoding::Flat => {}
            Encoding::Runs => self.runs(entries),
            Encoding::Learned => {
                for group in (0..ENTRIES).step_by(GROUP) {
                    self.pieces(entries, group);
                    self.layer(entries, 0, self.pieces.len(), false);
                }
            }
        }
        &self.segments
    }

    /// Bytes a page takes, header included, with entries of `entry_millibytes`.
    pub fn bytes(&mut self, entries: &Entries, encoding: Encoding, entry_millibytes: u32) -> u64 {
        let records = self.encode(entries, encoding).len() as u64;
        let record_millibytes = RECORD_BYTES * 1000 + u64::from(entry_millibytes);
        let flat = flat_bytes(entry_millibytes);
        match encoding {
            Encoding::Flat => flat,
            _ => HEADER_BYTES + (records * record_millibytes).div_ceil(1000).min(flat),
        }
    }

    fn runs(&mut self, entries: &Entries) {
        for (at, &ppn) in entries.iter().enumerate() {
            if ppn == UNMAPPED {
                continue;
            }
            match self.segments.last_mut() {
                Some(run) if run.end() == at && run.predict(at) == ppn => run.length += 1,
                _ => self.segments.push(Segment {
                    start: at as u16,
                    length: 1,
                    slope: ONE as u16,
                    ppn,
                }),
            }
        }
    }

    /// Cuts a group into exact lines and holes, greedily from the left.
    fn pieces(&mut self, entries: &Entries, group: usize) {
        self.pieces.clear();
        let end = (group + GROUP).min(ENTRIES);
        let mut start = group;
        while start < end {
            let ppn = entries[start];
            let mut length = 1;
            // Slopes, in 256ths, that give every entry so far.
            let (mut low, mut high) = (0, u32::from(u16::MAX));
            while start + length < end {
                let next = entries[start + length];
                if ppn == UNMAPPED || next == UNMAPPED {
                    if ppn != next {
                        break;
                    }
                } else {
                    let Some(rise) = next.checked_sub(ppn).filter(|&rise| rise <= 1 << 16) else {
                        break;
                    };
                    let steps = length as u32;
                    let least = (rise * ONE).saturating_sub(ONE / 2).div_ceil(steps);
                    let most = (rise * ONE + ONE / 2 - 1) / steps;
                    if least.max(low) > most.min(high) {
                        break;
                    }
                    (low, high) = (least.max(low), most.min(high));
                }
                length += 1;
            }
            self.pieces.push(Segment {
                start: start as u16,
                length: length as u16,
                slope: ONE.clamp(low, high) as u16,
                ppn,
            });
            start += length;
        }
    }

    /// Emits pieces `from..to`; a line that goes on behind others becomes one segment below them.
    /// `nested`: a segment lies below, so that holes must be said.
    fn layer(&mut self, entries: &Entries, from: usize, to: usize, nested: bool) {
        let mut at = from;
        while at < to {
            let base = self.pieces[at];
            let mut last = at;
            if base.length >= 2 && !base.is_hole() {
                let mut holes = 0;
                for next in at + 1..to {
                    let piece = self.pieces[next];
                    if piece.is_hole() {
                        holes += 1;
                        continue;
                    }
                    let on_line = |at: usize| base.predict(at) == entries[at];
                    if (usize::from(piece.start)..piece.end()).all(on_line) {
                        // Outside, holes cost nothing unless something lies below them.
                        if !nested && holes > 1 {
                            break;
                        }
                        self.layer(entries, last + 1, next, true);
                        (last, holes) = (next, 0);
                    }
                }
            }
            if nested || !base.is_hole() {
                let length = self.pieces[last].end() - usize::from(base.start);
                self.segments.push(Segment {
                    length: length as u16,
                    ..base
                });
            }
            at = last + 1;
        }
    }
}

/// Bytes of a page with an entry for each 4 KiB.
#[must_use]
pub fn flat_bytes(entry_millibytes: u32) -> u64 {
    (ENTRIES_PER_TRANSLATION_PAGE * u64::from(entry_millibytes)).div_ceil(1000)
}

/// Memory accesses of a look-up in a page of `bytes` bytes: one where it is flat, otherwise as many
/// as a binary search takes.
#[must_use]
pub fn search_steps(bytes: u64, entry_millibytes: u32) -> u64 {
    if bytes >= flat_bytes(entry_millibytes) {
        return 1;
    }
    let record_millibytes = RECORD_BYTES * 1000 + u64::from(entry_millibytes);
    let records = bytes.saturating_sub(HEADER_BYTES) * 1000 / record_millibytes;
    u64::from(records.max(1).ilog2()) + 1
}

/// The entry that runs or segments say.
#[must_use]
pub fn decode(segments: &[Segment], at: usize) -> u32 {
    segments
        .iter()
        .find(|segment| usize::from(segment.start) <= at && at < segment.end())
        .map_or(UNMAPPED, |segment| segment.predict(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a page goes through: (kind, start, length, number).
    type Change = (u8, usize, usize, u32);

    fn page(changes: &[Change]) -> Entries {
        let mut entries = [UNMAPPED; ENTRIES];
        for &(kind, start, length, ppn) in changes {
            let range = start..(start + length).min(ENTRIES);
            for (step, at) in (0u32..).zip(range) {
                entries[at] = match kind {
                    0 => ppn + step,
                    1 => UNMAPPED,
                    2 => ppn + 2 * step,
                    3 => ppn + step / 3,
                    4 if step % 4 == 0 => ppn + step,
                    4 => entries[at],
                    5 => ppn.wrapping_mul(step + 1) >> 2,
                    _ => ppn - step.min(ppn),
                };
            }
        }
        entries
    }

    fn changes() -> impl Strategy<Value = Vec<Change>> {
        let length = prop_oneof![Just(1usize), 1..40usize, 200..ENTRIES];
        let change = (0u8..7, 0..ENTRIES, length, 0u32..1 << 31);
        prop::collection::vec(change, 0..40)
    }

    /// A run begins wherever an entry is not its predecessor's neighbour.
    fn naive_runs(entries: &Entries) -> usize {
        let begins = |at: usize| {
            entries[at] != UNMAPPED
                && (at == 0 || entries[at - 1] == UNMAPPED || entries[at] != entries[at - 1] + 1)
        };
        (0..ENTRIES).filter(|&at| begins(at)).count()
    }

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        #[test]
        fn what_is_decoded_is_what_was_encoded(changes in changes()) {
            let entries = page(&changes);
            let mut encoder = Encoder::default();
            for encoding in [Encoding::Runs, Encoding::Learned] {
                let segments = encoder.encode(&entries, encoding).to_vec();
                for (at, &entry) in entries.iter().enumerate() {
                    prop_assert_eq!(decode(&segments, at), entry, "{:?} at {}", encoding, at);
                }
                if encoding == Encoding::Runs {
                    prop_assert_eq!(segments.len(), naive_runs(&entries));
                } else {
                    let fits = |s: &Segment| usize::from(s.start) % GROUP + usize::from(s.length) <= GROUP;
                    prop_assert!(segments.iter().all(fits), "a length has a byte");
                }
                let bytes = encoder.bytes(&entries, encoding, 4000);
                prop_assert!(bytes <= 4096 + HEADER_BYTES);
            }
        }
    }

    fn count(entries: &Entries, encoding: Encoding) -> usize {
        Encoder::default().encode(entries, encoding).len()
    }

    #[test]
    fn a_page_written_in_order_is_one_run_or_a_segment_for_each_group() {
        let entries = page(&[(0, 0, ENTRIES, 5000)]);
        assert_eq!(count(&entries, Encoding::Runs), 1);
        assert_eq!(count(&entries, Encoding::Learned), 4);
        let mut encoder = Encoder::default();
        assert_eq!(encoder.bytes(&entries, Encoding::Flat, 4000), 4096);
        assert_eq!(encoder.bytes(&entries, Encoding::Runs, 4000), 8 + 8);
        assert_eq!(encoder.bytes(&entries, Encoding::Learned, 4000), 8 + 4 * 8);
    }

    #[test]
    fn an_overwritten_entry_breaks_a_run_but_lies_on_top_of_a_segment() {
        let mut entries = page(&[(0, 0, ENTRIES, 5000)]);
        for at in [10, 20, 30, 700] {
            entries[at] = 1_000_000 + 977 * at as u32;
        }
        assert_eq!(count(&entries, Encoding::Runs), 1 + 2 * 4);
        assert_eq!(count(&entries, Encoding::Learned), 4 + 4);
    }

    #[test]
    fn two_interleaved_streams_are_lines_but_not_runs() {
        let entries = page(&[(2, 0, ENTRIES, 5000)]);
        assert_eq!(count(&entries, Encoding::Runs), ENTRIES);
        assert_eq!(count(&entries, Encoding::Learned), 4);
    }

    #[test]
    fn entries_at_random_stay_flat() {
        let mut rng = crate::rng::Rng::new(1);
        let entries = std::array::from_fn(|_| rng.below(1 << 30));
        for encoding in [Encoding::Runs, Encoding::Learned] {
            let bytes = Encoder::default().bytes(&entries, encoding, 4000);
            assert_eq!(bytes, 4096 + HEADER_BYTES);
            assert_eq!(search_steps(bytes, 4000), 1);
        }
        assert_eq!(search_steps(HEADER_BYTES + 8 * 8, 4000), 4);
    }
}
