//! Is a command's data found where the host says, by pages or by descriptors, and is every list that cannot be
//! refused with the status the standard names?

use lodger_wire::PageSize;
use lodger_wire::memory::{GuestMemory, Ram};
use lodger_wire::sgl::DESCRIPTORS_MAX;
use lodger_wire::status::Status;
use lodger_wire::transfer::{DataPointer, Region};
use proptest::prelude::*;

const PAGE: u64 = 4096;

fn put(memory: &Ram, at: u64, entries: &[u64]) {
    for (index, entry) in entries.iter().enumerate() {
        memory
            .write(at + 8 * index as u64, &entry.to_le_bytes())
            .unwrap();
    }
}

fn walk(memory: &Ram, pointer: DataPointer, bytes: u64) -> Result<Vec<Region>, Status> {
    pointer
        .regions(memory, PageSize::MIN, bytes, true)
        .collect()
}

fn prp(memory: &Ram, prp1: u64, prp2: u64, bytes: u64) -> Result<Vec<(u64, u64)>, Status> {
    let regions = walk(memory, DataPointer::Prp { prp1, prp2 }, bytes)?;
    let pair = |region: Region| (region.address.expect("memory"), region.bytes);
    Ok(regions.into_iter().map(pair).collect())
}

#[test]
fn one_page_needs_one_entry_and_two_need_two() {
    let memory = Ram::new(0);
    assert_eq!(prp(&memory, 0x5000, 0, 4096), Ok(vec![(0x5000, 4096)]));
    assert_eq!(prp(&memory, 0x5e00, 7, 512), Ok(vec![(0x5e00, 512)]));
    assert_eq!(
        prp(&memory, 0x5e00, 0x9000, 4096),
        Ok(vec![(0x5e00, 512), (0x9000, 3584)])
    );
    assert_eq!(prp(&memory, 0, 0, 0), Ok(vec![]));
}

#[test]
fn unaligned_prp_from_the_guest() {
    let memory = Ram::new(0x4000);
    let refused = |prp1, prp2, bytes| prp(&memory, prp1, prp2, bytes);
    let invalid = Err(Status::PRP_OFFSET_INVALID);
    assert_eq!(refused(0x5001, 0, 512), invalid);
    assert_eq!(refused(0x5002, 0, 512), invalid);
    assert_eq!(refused(0x5000, 0x6004, 8192), invalid, "a second page");
    assert_eq!(refused(0x5000, 0x1004, 12288), invalid, "a list");
    put(&memory, 0x1000, &[0x7000, 0x8010]);
    assert_eq!(refused(0x5000, 0x1000, 12288), invalid, "a page in it");
    put(&memory, 0x2ff8, &[0x1008]);
    assert_eq!(refused(0x5000, 0x2ff8, 12288), invalid, "its second part");
    assert_eq!(
        refused(0x5000, 0x10_0000, 12288),
        Err(Status::DATA_TRANSFER_ERROR)
    );
}

#[test]
fn a_list_that_starts_mid_page_goes_on_at_the_next() {
    let memory = Ram::new(0x4000);
    // Two entries to the page's end: a page, and where the list goes on.
    put(&memory, 0x1ff0, &[0xa000, 0x3000]);
    put(&memory, 0x3000, &[0xb000, 0xc000]);
    let pages = |addresses: &[u64]| Ok(addresses.iter().map(|at| (*at, PAGE)).collect());
    assert_eq!(
        prp(&memory, 0x9000, 0x1ff0, 4 * PAGE),
        pages(&[0x9000, 0xa000, 0xb000, 0xc000])
    );
    // If the last entry is the last page, it is data.
    assert_eq!(
        prp(&memory, 0x9000, 0x1ff0, 3 * PAGE),
        pages(&[0x9000, 0xa000, 0x3000])
    );
}

/// The list of `pages` as a host lays it out from `at` on, parts of it in the pages of `parts`.
fn lay_out(memory: &Ram, at: u64, pages: &[u64], mut parts: impl Iterator<Item = u64>) {
    let to_end = ((PAGE - at % PAGE) / 8) as usize;
    if pages.len() <= to_end {
        put(memory, at, pages);
        return;
    }
    let (here, rest) = pages.split_at(to_end - 1);
    let next = parts.next().expect("a page for the list");
    put(memory, at, here);
    put(memory, at + 8 * here.len() as u64, &[next]);
    lay_out(memory, next, rest, parts);
}

#[derive(Clone, Debug)]
struct Piece {
    address: u64,
    bytes: u32,
    is_bucket: bool,
}

fn descriptor(kind: u8, address: u64, bytes: u32) -> [u8; 16] {
    let mut descriptor = [0; 16];
    descriptor[..8].copy_from_slice(&address.to_le_bytes());
    descriptor[8..12].copy_from_slice(&bytes.to_le_bytes());
    descriptor[15] = kind;
    descriptor
}

/// Segments of `per_segment` pieces each; the descriptor that leads to the first.
fn segments(memory: &Ram, pieces: &[Piece], per_segment: usize) -> [u8; 16] {
    let (mut at, mut rest) = (0x1000, pieces);
    let lead = |at, rest: usize| {
        let (kind, count) = if rest <= per_segment {
            (0x30, rest)
        } else {
            (0x20, per_segment + 1)
        };
        descriptor(kind, at, 16 * count as u32)
    };
    let first = lead(at, rest.len());
    while !rest.is_empty() {
        let (here, after) = rest.split_at(per_segment.min(rest.len()));
        for piece in here {
            let kind = if piece.is_bucket { 0x10 } else { 0 };
            memory
                .write(at, &descriptor(kind, piece.address, piece.bytes))
                .unwrap();
            at += 16;
        }
        if !after.is_empty() {
            // Segments are anywhere: leave a gap.
            let next = at + 16 + 48;
            memory.write(at, &lead(next, after.len())).unwrap();
            at = next;
        }
        rest = after;
    }
    first
}

#[test]
fn every_error_of_a_scatter_gather_list_has_its_status() {
    let memory = Ram::new(0x10_0000);
    let sgl = |first: [u8; 16], segment: &[[u8; 16]], bytes| {
        memory.write(0x1000, &segment.concat()).unwrap();
        walk(&memory, DataPointer::Sgl(first), bytes).map(|regions| regions.len())
    };
    let block = descriptor(0, 0x8000, 512);
    let last = |count: u32| descriptor(0x30, 0x1000, 16 * count);
    let more = |count: u32| descriptor(0x20, 0x1000, 16 * count);
    assert_eq!(sgl(block, &[], 512), Ok(1));
    assert_eq!(sgl(last(2), &[block, block], 1024), Ok(2));
    assert_eq!(
        sgl(last(2), &[block, block], 600),
        Ok(2),
        "longer than its data"
    );
    let length = Err(Status::SGL_DATA_LENGTH_INVALID);
    assert_eq!(sgl(block, &[], 513), length);
    assert_eq!(sgl(last(2), &[block, block], 1025), length);
    let kind = Err(Status::SGL_TYPE_INVALID);
    assert_eq!(sgl(descriptor(0x40, 0, 512), &[], 512), kind, "keyed");
    assert_eq!(sgl(descriptor(0x01, 0, 512), &[], 512), kind, "an offset");
    assert_eq!(sgl(last(1), &[descriptor(0xf0, 0, 1)], 512), kind);
    let segment = Err(Status::SGL_SEGMENT_INVALID);
    assert_eq!(sgl(last(0), &[], 512), segment);
    assert_eq!(sgl(descriptor(0x30, 0x1000, 24), &[block], 512), segment);
    let askew = sgl(descriptor(0x30, 0xffc, 16), &[block], 512);
    assert_eq!(askew, segment, "at no multiple of 8");
    assert_eq!(
        sgl(last(2), &[block, last(1)], 1024),
        segment,
        "after the last"
    );
    assert_eq!(sgl(more(1), &[block], 1024), segment, "nothing follows");
    let count = Err(Status::SGL_COUNT_INVALID);
    assert_eq!(
        sgl(more(2), &[last(1), block], 1024),
        count,
        "not at the end"
    );
    let outside = descriptor(0x30, 0x20_0000, 16);
    assert_eq!(sgl(outside, &[], 512), Err(Status::DATA_TRANSFER_ERROR));
    let beyond = descriptor(0x30, u64::MAX - 15, 32);
    assert_eq!(sgl(beyond, &[], 512), Err(Status::DATA_TRANSFER_ERROR));
}

#[test]
fn a_list_that_goes_round_for_ever_is_refused() {
    let memory = Ram::new(0x2000);
    let round = descriptor(0x20, 0x1000, 32);
    memory.write(0x1000, &descriptor(0, 0, 0)).unwrap();
    memory.write(0x1010, &round).unwrap();
    let walked = walk(&memory, DataPointer::Sgl(round), 512);
    assert_eq!(walked, Err(Status::SGL_COUNT_INVALID));
    assert_eq!(DESCRIPTORS_MAX, 4096);
}

#[test]
fn a_bit_bucket_takes_data_and_gives_none() {
    let memory = Ram::new(0x1_0000);
    let bucket = Piece {
        address: 0,
        bytes: 8,
        is_bucket: true,
    };
    let piece = |address| Piece {
        address,
        bytes: 8,
        is_bucket: false,
    };
    let first = segments(&memory, &[piece(0x8000), bucket, piece(0x9000)], 5);
    let pointer = DataPointer::Sgl(first);
    let data: Vec<u8> = (1..25).collect();
    pointer.write(&memory, PageSize::MIN, &data).unwrap();
    let mut read = [0; 16];
    pointer.read(&memory, PageSize::MIN, &mut read).unwrap();
    assert_eq!(read[..8], data[..8]);
    assert_eq!(read[8..], data[16..]);
}

proptest! {
    #![proptest_config(lodger_testing::config(200))]

    /// Data of any length and offset, in lists that begin anywhere, is found page by page.
    #[test]
    fn lists_of_pages_are_followed(
        offset in 0..1024u64, bytes in 1..6_000_000u64, entry in 0..512u64, seed: u64,
    ) {
        let memory = Ram::new(0x20_000);
        let prp1 = (1 << 40) + 4 * offset;
        let first = bytes.min(PAGE - 4 * offset);
        let count = (bytes - first).div_ceil(PAGE);
        let page = |index: u64| (seed.wrapping_mul(2 * index + 1) >> 8) & !0xfff;
        let pages: Vec<u64> = (0..count).map(page).collect();
        let list = 0x4000 + 8 * entry;
        lay_out(&memory, list, &pages, (0..5).map(|part| 0x10_000 + part * PAGE));
        let prp2 = match &pages[..] {
            [] => seed,
            [page] => *page,
            _ => list,
        };
        let mut expected = vec![(prp1, first)];
        let mut left = bytes - first;
        for page in pages {
            expected.push((page, left.min(PAGE)));
            left -= left.min(PAGE);
        }
        prop_assert_eq!(prp(&memory, prp1, prp2, bytes), Ok(expected));
    }

    /// Pieces in segments of any length are found, empty ones skipped.
    #[test]
    fn lists_of_descriptors_are_followed(
        pieces in prop::collection::vec((any::<u32>(), 0..5000u32, any::<bool>()), 1..200),
        per_segment in 1..70usize, to_host: bool,
    ) {
        let memory = Ram::new(0x1_0000);
        let pieces: Vec<_> = pieces.into_iter().map(|(address, bytes, is_bucket)| {
            Piece { address: address.into(), bytes, is_bucket }
        }).collect();
        let first = segments(&memory, &pieces, per_segment);
        let counted = pieces.iter().filter(|piece| piece.bytes > 0 && (to_host || !piece.is_bucket));
        let expected: Vec<_> = counted.map(|piece| Region {
            address: (!piece.is_bucket).then_some(piece.address),
            bytes: piece.bytes.into(),
        }).collect();
        let bytes = expected.iter().map(|region| region.bytes).sum();
        let regions = DataPointer::Sgl(first).regions(&memory, PageSize::MIN, bytes, to_host);
        let regions: Result<Vec<_>, _> = regions.collect();
        prop_assert_eq!(regions, Ok(expected));
    }

    /// Any entries over any memory: no panic, an end, never more than the data, and all of it or an error.
    #[test]
    fn hostile_lists_end(
        bytes in any::<u32>(), entry in any::<[u8; 16]>(), memory_bytes in prop::collection::vec(any::<u8>(), 0..2000),
        places in any::<[u16; 2]>(), kind in 0..5u8, to_host: bool,
    ) {
        let memory = Ram::new(0x1_0000);
        for at in (0..0x1_0000 - memory_bytes.len()).step_by(memory_bytes.len().max(512)) {
            memory.write(at as u64, &memory_bytes).unwrap();
        }
        let mut sgl = entry;
        sgl[2..8].fill(0);
        sgl[15] = kind << 4;
        let [prp1, prp2] = places.map(u64::from);
        for pointer in [DataPointer::Sgl(entry), DataPointer::Sgl(sgl), DataPointer::Prp { prp1, prp2 },
            DataPointer::Prp { prp1: prp1 & !3, prp2: prp2 & !7 }] {
            let mut sum = 0;
            let mut error = None;
            for region in pointer.regions(&memory, PageSize::MIN, bytes.into(), to_host) {
                prop_assert_eq!(error, None, "nothing comes after an error");
                match region {
                    Ok(region) => {
                        prop_assert!(region.bytes > 0);
                        let last = region.address.unwrap_or(0).checked_add(region.bytes - 1);
                        prop_assert!(last.is_some());
                        sum += region.bytes;
                    }
                    Err(status) => error = Some(status),
                }
            }
            prop_assert!(sum <= u64::from(bytes));
            prop_assert!(sum == u64::from(bytes) || error.is_some());
        }
    }
}
