//! Is a wrong place never taken for a file's? Answers of the kernel, true and untrue.

use super::*;
use proptest::prelude::*;

const BLOCK: u64 = 4096;
const LAST: u32 = 1;

fn extent(file_at: u64, device_at: u64, bytes: u64, flags: u32) -> FileExtent {
    FileExtent {
        file_at,
        device_at,
        bytes,
        flags,
    }
}

/// Numbers in blocks.
fn blocks(file_at: u64, device_at: u64, count: u64) -> FileExtent {
    extent(file_at * BLOCK, device_at * BLOCK, count * BLOCK, 0)
}

fn told(range: Range<u64>, told: &[FileExtent]) -> io::Result<Vec<Piece>> {
    pieces(&range, |_, _| Ok(told.to_vec()))
}

fn refused_for(range: Range<u64>, extents: &[FileExtent], kind: io::ErrorKind, words: &str) {
    let error = told(range, extents).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn what_is_around_the_range_is_cut_off() {
    // 16 blocks of a longer file, and those behind them on the device: one piece.
    let found = told(
        2 * BLOCK..10 * BLOCK,
        &[blocks(0, 100, 4), blocks(4, 104, 100)],
    )
    .unwrap();
    let piece = Piece {
        file_at: 2 * BLOCK,
        device_at: 102 * BLOCK,
        bytes: 8 * BLOCK,
    };
    assert_eq!(found, [piece]);
}

#[test]
fn each_flag_that_speaks_against_it_is_told_by_name() {
    let flags = [
        (0x2, "does not say"),
        (0x4 | 0x2, "delayed allocation"),
        (0x8, "encoded"),
        (0x80 | 0x8, "encrypted"),
        (0x200 | 0x100, "inline"),
        (0x400 | 0x100, "share a block"),
        (0x800, "never written"),
        (0x2000, "reflink"),
    ];
    for (flag, words) in flags {
        for others in [0, LAST, 0x1000] {
            let extents = [extent(0, 1 << 20, 1 << 16, flag | others)];
            refused_for(0..8192, &extents, io::ErrorKind::Unsupported, words);
        }
    }
    // Alone it is no more than that; and of flags of later kernels nobody knows.
    for flag in [0x100, 0x10, 0x4000, 1 << 31] {
        let extents = [extent(0, 1 << 20, 1 << 16, flag)];
        refused_for(0..8192, &extents, io::ErrorKind::InvalidData, "flags");
    }
    assert!(told(0..8192, &[extent(0, 1 << 20, 1 << 16, LAST | 0x1000)]).is_ok());
    // Behind the range it is of no matter.
    assert!(told(0..8192, &[blocks(0, 7, 2), extent(8192, 0, 4096, 0x800)]).is_err());
    assert!(told(0..8192, &[blocks(0, 7, 2)]).is_ok());
}

#[test]
fn holes_are_told_with_their_ends() {
    let hole = |extents: &[FileExtent], words| {
        refused_for(0..4 * BLOCK, extents, io::ErrorKind::Unsupported, words);
    };
    hole(&[], "bytes 0 to 16384 ");
    hole(&[blocks(1, 10, 3)], "bytes 0 to 4096 ");
    hole(&[blocks(0, 10, 1), blocks(2, 12, 2)], "bytes 4096 to 8192 ");
    // The second question is answered with nothing.
    let mut answers = vec![vec![], vec![blocks(0, 10, 3)]];
    let error = pieces(&(0..4 * BLOCK), |_, _| Ok(answers.pop().unwrap())).unwrap_err();
    assert!(
        error.to_string().contains("bytes 12288 to 16384 "),
        "{error}"
    );
}

#[test]
fn answers_that_cannot_be_are_refused() {
    let lie = |extents: &[FileExtent], words| {
        let range = 4 * BLOCK..8 * BLOCK;
        refused_for(range, extents, io::ErrorKind::InvalidData, words);
    };
    let huge = u64::MAX - 511;
    lie(&[extent(0, 0, huge, 0), extent(huge, 0, huge, 0)], "no end");
    lie(&[extent(4096, 0, huge, 0)], "no end");
    lie(&[extent(0, 4096, huge, 0)], "no end on the device");
    lie(&[blocks(0, 10, 4)], "before what was asked for");
    lie(&[blocks(4, 10, 0)], "before what was asked for");
    lie(&[blocks(8, 10, 4)], "behind");
    lie(&[blocks(4, 10, 4), blocks(8, 14, 1)], "behind");
    // Out of order, and over each other.
    lie(&[blocks(4, 10, 2), blocks(4, 10, 2)], "before");
    lie(&[blocks(4, 10, 2), blocks(5, 11, 3)], "before");
    lie(&[blocks(4, 10, 2), blocks(6, 11, 2)], "same place");
    lie(
        &[extent(4 * BLOCK, 10 * BLOCK, 4 * BLOCK + 7, 0)],
        "whole blocks",
    );
    lie(
        &[extent(4 * BLOCK, 10 * BLOCK + 7, 4 * BLOCK, 0)],
        "whole blocks",
    );
}

#[test]
fn pieces_of_smaller_blocks_are_refused_unless_they_are_one() {
    let small = |at: u64, device: u64, count: u64| extent(at << 10, device << 10, count << 10, 0);
    assert!(told(0..BLOCK, &[small(0, 8, 1), small(1, 9, 7)]).is_ok());
    let extents = [small(0, 8, 1), small(1, 12, 7)];
    refused_for(0..BLOCK, &extents, io::ErrorKind::Unsupported, "-b 4096");
}

/// Whether the pieces are the range, and what the kernel told of each block of it.
fn is_right(range: &Range<u64>, told: &[FileExtent], pieces: &[Piece]) -> bool {
    let place_of = |at: u64| {
        let mut of = told
            .iter()
            .filter(|extent| extent.file_at <= at && at - extent.file_at < extent.bytes);
        let first = of.next()?;
        Some(u128::from(first.device_at) + u128::from(at - first.file_at))
            .filter(|_| of.next().is_none() && first.flags & !(LAST | 0x1000) == 0)
    };
    let mut at = range.start;
    for piece in pieces {
        let places = (0..piece.bytes).step_by(512);
        let is_told = |offset: u64| {
            place_of(piece.file_at + offset) == Some(u128::from(piece.device_at + offset))
        };
        if piece.file_at != at || piece.bytes == 0 || !places.clone().all(is_told) {
            return false;
        }
        at += piece.bytes;
    }
    let mut taken: Vec<_> = pieces.iter().map(|it| (it.device_at, it.bytes)).collect();
    taken.sort_unstable();
    at == range.end && taken.windows(2).all(|two| two[0].0 + two[0].1 <= two[1].0)
}

/// A file's extents without gaps, in any places of the device, cut as file systems do or as they do not.
fn layout() -> impl Strategy<Value = Vec<FileExtent>> {
    prop::collection::vec((1u64..6, 0u64..3), 1..12).prop_map(|parts| {
        let (mut file, mut device) = (0, 1000);
        let placed = parts.into_iter().map(|(count, jump)| {
            device += jump;
            let placed = blocks(file, device, count);
            (file, device) = (file + count, device + count);
            placed
        });
        placed.collect()
    })
}

proptest! {
    #![proptest_config(lodger_testing::config(512))]

    #[test]
    fn true_answers_are_taken_as_they_are(
        extents in layout(), from in 0u64..20, count in 1u64..20, at_once in 1usize..4,
    ) {
        let end = extents.last().map_or(0, |last| last.file_at + last.bytes);
        let range = (from * BLOCK).min(end - BLOCK)..((from + count) * BLOCK).min(end);
        prop_assume!(range.start < range.end);
        let found = pieces(&range, |from, bytes| {
            let meets = |it: &&FileExtent| it.file_at < from + bytes && it.file_at + it.bytes > from;
            Ok(extents.iter().filter(meets).take(at_once).copied().collect())
        });
        let found = found.unwrap();
        prop_assert!(is_right(&range, &extents, &found));
        // A checker that takes anything would show nothing.
        let shifted: Vec<_> = found.iter().map(|it| Piece { device_at: it.device_at - 512, ..*it }).collect();
        prop_assert!(!is_right(&range, &extents, &shifted));
        prop_assert!(!is_right(&range, &extents, &found[1..]));
        // In one piece as long as one follows the other on the device.
        prop_assert!(found.windows(2).all(|two| two[0].device_at + two[0].bytes != two[1].device_at));
    }

    #[test]
    fn answers_with_a_lie_are_refused_or_no_lie(
        extents in layout(), which: prop::sample::Index, what in 0..6, by in 0u64..80_000, flag in 0u32..32,
    ) {
        let mut told = extents.clone();
        let end = extents.last().map_or(0, |last| last.file_at + last.bytes);
        let place = which.index(told.len());
        let lie = &mut told[place];
        match what {
            0 => lie.file_at = by,
            1 => lie.device_at = 1000 * BLOCK + by / 512 * 512,
            2 => lie.bytes = u64::MAX - by,
            3 => lie.flags |= 1 << flag,
            4 => lie.bytes = by / 512 * 512,
            _ => { told.remove(place); }
        }
        let range = 0..end;
        let mut asked = 0;
        // A kernel that says the same again and again must end it, too.
        let found = pieces(&range, |_, _| {
            asked += 1;
            Ok(told.clone())
        });
        prop_assert!(asked <= 2);
        if let Ok(found) = found {
            prop_assert!(is_right(&range, &told, &found), "{found:?}");
        }
    }
}
