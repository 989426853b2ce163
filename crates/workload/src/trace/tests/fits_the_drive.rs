//! Does every request lie inside the drive, and is the user told what that took?

use super::*;
use crate::trace::Fit;
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

fn trace(records: impl IntoIterator<Item = Record>) -> Trace {
    Trace::from_records("t", records)
}

#[test]
fn a_trace_beyond_the_drive_is_refused_with_its_line_and_the_ways_out() {
    let text = "1 0 0 8 1\n2 0 4096 8 1\n3 0 8 8 1\n";
    let (mut trace, _) = read_well(text);
    let error = trace.fit(MIB, Fit::Error).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the trace reaches byte 2,101,248 (2 MiB), the drive ends at 1,048,576 (1 MiB) \
         (t.trace:2)"
    );
    let hint = error.hint.unwrap();
    for way in ["2,101,248 bytes or more", "--fit wrap", "--fit scale"] {
        assert!(hint.contains(way), "{hint}");
    }
    assert!(trace.fit(2_101_248, Fit::Error).unwrap().notes.is_empty());
}

#[test]
fn a_trace_that_fits_is_left_alone() {
    for fit in [Fit::Error, Fit::Wrap, Fit::Scale] {
        let (mut trace, _) = read_well("1 0 0 8 1\n2 0 2040 8 1\n");
        let before: Vec<_> = trace.records().collect();
        assert_eq!(trace.fit(MIB, fit).unwrap(), Default::default());
        assert_eq!(trace.records().collect::<Vec<_>>(), before);
    }
}

#[test]
fn wrapping_takes_addresses_modulo_the_drive_and_moves_back_what_would_cross_its_end() {
    let mut trace = trace([
        record(0, Op::Read, MIB + 8192, 4096),
        record(1, Op::Write, 2 * MIB - 4096, 8192),
        record(2, Op::Trim, 0, 3 * MIB),
        record(3, Op::Flush, 0, 0),
        record(4, Op::Read, 4096, 512),
    ]);
    let report = trace.fit(MIB, Fit::Wrap).unwrap();
    let placed: Vec<_> = trace
        .records()
        .map(|r| (r.offset_bytes, r.length_bytes))
        .collect();
    assert_eq!(
        placed,
        [
            (8192, 4096),
            (MIB - 8192, 8192),
            (0, MIB),
            (0, 0),
            (4096, 512)
        ]
    );
    assert_eq!((report.moved, report.shortened, report.widened), (2, 1, 0));
}

#[test]
fn requests_inside_a_block_are_widened_and_counted() {
    let mut trace = trace([
        record(0, Op::Write, 700, 100),
        record(1, Op::Read, 512, 512),
    ]);
    let report = trace.fit(MIB, Fit::Error).unwrap();
    assert_eq!(
        trace.records().next().unwrap(),
        record(0, Op::Write, 512, 512)
    );
    assert_eq!(report.widened, 1);
    assert!(report.notes[0].contains("1 request widened"));
}

/// A discard names what may be lost: nothing beside it.
#[test]
fn a_trim_never_reaches_outside_its_range() {
    let trims = [(1, 8190), (512, 1024), (700, 100), (1, 1023), (511, 514)];
    let trims = trims.map(|(offset, length)| record(0, Op::Trim, offset, length));
    let mut trace = trace(trims.into_iter().chain([record(5, Op::Read, 0, 8192)]));
    let report = trace.fit(MIB, Fit::Error).unwrap();
    let left: Vec<_> = trace
        .records()
        .map(|r| (r.op, r.offset_bytes, r.length_bytes))
        .collect();
    let wanted = [
        (Op::Trim, 512, 7168),
        (Op::Trim, 512, 1024),
        (Op::Trim, 512, 512),
        (Op::Trim, 512, 512),
        (Op::Read, 0, 8192),
    ];
    assert_eq!(left, wanted);
    assert_eq!((report.narrowed, report.emptied, report.widened), (3, 1, 0));
    let says = |words: &str| report.notes.iter().any(|note| note.contains(words));
    assert!(says("3 trims narrowed"), "{:?}", report.notes);
    assert!(says("1 trim of less than a whole block"));
}

#[test]
fn scaling_spreads_regions_and_keeps_sequences_inside_them() {
    let gib = 1 << 30;
    let run = |at: u64| (0..256u64).map(move |i| record(i, Op::Read, at + i * 4096, 4096));
    // The drive is half as large as the volume.
    let mut trace = trace(run(0).chain(run(3 * gib)).chain([record(
        9,
        Op::Read,
        4 * gib - 4096,
        4096,
    )]));
    trace.fit(2 * gib, Fit::Scale).unwrap();
    let mut offsets: Vec<_> = trace.records().map(|r| r.offset_bytes).collect();
    offsets.sort_unstable();
    assert!(
        offsets[..256]
            .iter()
            .zip(0..)
            .all(|(&at, i)| at == i * 4096)
    );
    let half = 3 * gib / 2;
    assert!(
        offsets[256..512]
            .iter()
            .zip(0..)
            .all(|(&at, i)| at == half + i * 4096)
    );
    assert!(trace.end_bytes() <= 2 * gib && trace.end_bytes() > 2 * gib - 2 * MIB);
}

#[test]
fn a_drive_smaller_than_a_block_is_refused() {
    let mut trace = trace([record(0, Op::Read, 0, 512)]);
    assert!(trace.fit(511, Fit::Wrap).is_err());
    assert_eq!("wrap".parse(), Ok(Fit::Wrap));
    assert!(
        "fold"
            .parse::<Fit>()
            .unwrap_err()
            .message
            .contains("`scale`")
    );
}

proptest! {
    #![proptest_config(lodger_testing::config(256))]

    #[test]
    fn whatever_is_placed_lies_inside_and_is_aligned(
        requests in prop::collection::vec((any::<u64>(), 1u64..1 << 30), 1..50),
        drive_bytes in 512u64..1 << 40,
        scale: bool,
    ) {
        let requests = requests.into_iter().map(|(offset, length)| {
            record(0, Op::Read, offset.min(u64::MAX - length), length)
        });
        let mut trace = trace(requests);
        let fit = if scale { Fit::Scale } else { Fit::Wrap };
        let count = trace.len();
        trace.fit(drive_bytes, fit).unwrap();
        prop_assert_eq!(trace.len(), count);
        for record in trace.records() {
            prop_assert!(record.end_bytes() <= drive_bytes);
            prop_assert!(record.length_bytes > 0);
            prop_assert_eq!(record.offset_bytes % 512, 0);
            prop_assert_eq!(record.length_bytes % 512, 0);
        }
        // Once it fits, it fits.
        let placed: Vec<_> = trace.records().collect();
        prop_assert!(trace.fit(drive_bytes, Fit::Error).unwrap().notes.is_empty());
        prop_assert_eq!(trace.records().collect::<Vec<_>>(), placed);
    }
}
