//! Are host memory buffers taken as the standard has it: which lists are good, what of them is used, and
//! when the feature may be set?

use lodger_wire::hmb::{
    HmbAction, HmbAttributes, HmbDescriptor, HmbFeature, HmbLimits, HmbRequest, HostRange,
    usable_ranges,
};
use lodger_wire::memory::{GuestMemory, Ram};
use lodger_wire::status::Status;
use lodger_wire::{PageSize, layout::Place};
use proptest::prelude::*;

const LIST: u64 = 0x1000;
const LIMITS: HmbLimits = HmbLimits {
    preferred_4kib: 8192,
    min_4kib: 2560,
    descriptor_min_4kib: 0,
    descriptors_max: 0,
    restrictable: false,
};

fn request(size_pages: u32, descriptors: u32) -> HmbRequest {
    HmbRequest {
        enable: true,
        size_pages,
        list_address: LIST,
        descriptors,
        ..HmbRequest::default()
    }
}

/// Entries as address and pages, a grant of `size_pages`, and what is used of them.
fn used(
    entries: &[(u64, u32)],
    size_pages: u32,
    limits: HmbLimits,
) -> Result<Vec<(u64, u64)>, Status> {
    let ram = Ram::new(0x4000);
    for (index, (address, pages)) in entries.iter().copied().enumerate() {
        let entry = HmbDescriptor { address, pages };
        let at = LIST + 16 * index as u64;
        ram.write(at, &entry.encode()).unwrap();
    }
    let request = request(size_pages, entries.len() as u32);
    let ranges = usable_ranges(&ram, &request, &limits, PageSize::MIN)?;
    let pair = |range: &HostRange| (range.address, range.bytes);
    Ok(ranges.iter().map(pair).collect())
}

fn place(places: &[Place], name: &str) -> (usize, usize) {
    let place = places.iter().find(|place| place.name == name).unwrap();
    (place.offset, place.bytes)
}

#[test]
fn structures_are_laid_out_as_the_standard_has_them() {
    assert_eq!(place(HmbDescriptor::PLACES, "address"), (0, 8));
    assert_eq!(place(HmbDescriptor::PLACES, "pages"), (8, 4));
    assert_eq!(place(HmbAttributes::PLACES, "list_low"), (4, 4));
    assert_eq!(place(HmbAttributes::PLACES, "descriptors"), (12, 4));
}

#[test]
fn linux_grants_pieces_of_4_mib() {
    let pieces: Vec<_> = (0..8).map(|index| (index << 24, 1024)).collect();
    let used = used(&pieces, 8192, LIMITS).unwrap();
    assert_eq!(used.len(), 8);
    assert_eq!(used[7], (7 << 24, 4 << 20));
}

#[test]
fn entries_that_are_no_use_are_skipped() {
    let entries = [
        (0, 0),
        (0x1000, 1),
        (0x10_0000, 4),
        (0x7fff, 0),
        (0x20_0000, 8),
    ];
    let limits = HmbLimits {
        descriptor_min_4kib: 4,
        ..LIMITS
    };
    assert_eq!(
        used(&entries, 13, limits),
        Ok(vec![(0x10_0000, 0x4000), (0x20_0000, 0x8000)])
    );
    let limits = HmbLimits {
        descriptors_max: 3,
        ..LIMITS
    };
    assert_eq!(
        used(&entries, 13, limits),
        Ok(vec![(0x1000, 0x1000), (0x10_0000, 0x4000)])
    );
}

#[test]
fn no_more_is_used_than_the_size_says() {
    let entries = [(0x10_0000, 4), (0x20_0000, 4), (0x30_0000, 4)];
    assert_eq!(
        used(&entries, 6, LIMITS),
        Ok(vec![(0x10_0000, 0x4000), (0x20_0000, 0x2000)])
    );
}

#[test]
fn lists_that_cannot_be_believed_are_refused() {
    let refused = |entries: &[(u64, u32)]| used(entries, 8, LIMITS).unwrap_err();
    assert_eq!(refused(&[]), Status::INVALID_FIELD);
    assert_eq!(refused(&[(0x1200, 1)]), Status::INVALID_FIELD);
    assert_eq!(refused(&[(!0xfff, 2)]), Status::INVALID_FIELD);
    assert_eq!(used(&[(!0xfff, 1)], 1, LIMITS), Ok(vec![(!0xfff, 0x1000)]));
    let overlapping = [(0x3000, 1), (0x1000, 2), (0x2000, 1)];
    assert_eq!(refused(&overlapping), Status::INVALID_FIELD);
    // The list's own end is not there.
    let request = request(1, 0x1000);
    let read = usable_ranges(&Ram::new(0x2000), &request, &LIMITS, PageSize::MIN);
    assert_eq!(read, Err(Status::DATA_TRANSFER_ERROR));
    let address = HmbRequest {
        list_address: !0xf,
        ..request
    };
    let read = usable_ranges(&Ram::new(0x2000), &address, &LIMITS, PageSize::MIN);
    assert!(read.is_err());
}

#[test]
fn low_bits_of_the_lists_address_are_not_looked_at() {
    let request = HmbRequest::decode([1, 8192, 0x1_0005, 0x12, 8]);
    assert_eq!(request.list_address, 0x12_0001_0000);
    assert!(request.enable && !request.memory_return);
}

#[test]
fn enabling_twice_is_an_error_and_disabling_twice_is_none() {
    let mut feature = HmbFeature::default();
    let on = request(8192, 8);
    let off = HmbRequest::default();
    assert_eq!(feature.set(&off, &LIMITS), Ok(HmbAction::None));
    assert_eq!(feature.set(&on, &LIMITS), Ok(HmbAction::Enable));
    assert!(!feature.is_enabled(), "not before the list was read");
    feature.enabled(&on);
    let again = feature.set(&on, &LIMITS);
    assert_eq!(again, Err(Status::COMMAND_SEQUENCE_ERROR));
    let (dword, attributes) = feature.get(false);
    assert_eq!((dword, attributes.size_pages), (1, 8192));
    assert_eq!(feature.set(&off, &LIMITS), Ok(HmbAction::Drain));
    assert_eq!(feature.set(&off, &LIMITS), Ok(HmbAction::None));
    feature.enabled(&on);
    feature.reset();
    assert!(!feature.is_enabled());
}

#[test]
fn restricted_access_is_for_controllers_that_offer_it() {
    let restrictable = true;
    let offers = HmbLimits {
        restrictable,
        ..LIMITS
    };
    let request = HmbRequest {
        restrict_non_operational: true,
        memory_return: true,
        ..request(8192, 8)
    };
    let mut feature = HmbFeature::default();
    let refused = feature.set(&request, &LIMITS);
    assert_eq!(refused, Err(Status::INVALID_FIELD));
    assert_eq!(feature.set(&request, &offers), Ok(HmbAction::Enable));
    feature.enabled(&request);
    assert_eq!(feature.get(true).0, 0b1111);
}

proptest! {
    #![proptest_config(lodger_testing::config(300))]

    /// Of any list: what is used is what the host listed, page by page, in its order, at most HSIZE, and
    /// no byte twice.
    #[test]
    fn what_is_used_was_granted(
        entries in prop::collection::vec((0..64u64, 0..4u32), 1..20),
        size in 0..40u32,
        most in 0..20u16,
    ) {
        let limits = HmbLimits { descriptors_max: most, ..LIMITS };
        let entries: Vec<_> = entries.into_iter().map(|(page, pages)| (page << 12, pages)).collect();
        let looked_at = if most == 0 { entries.len() } else { entries.len().min(most.into()) };
        let pages = |(address, pages): (u64, u32)| {
            (0..u64::from(pages)).map(move |page| address + (page << 12))
        };
        let listed: Vec<u64> = entries[..looked_at].iter().copied().flat_map(pages).collect();
        let mut distinct = listed.clone();
        distinct.sort_unstable();
        distinct.dedup();
        match used(&entries, size, limits) {
            Ok(ranges) => {
                prop_assert_eq!(distinct.len(), listed.len());
                let pages = |(address, bytes): (u64, u64)| pages((address, (bytes >> 12) as u32));
                let used: Vec<u64> = ranges.into_iter().flat_map(pages).collect();
                prop_assert_eq!(&used[..], &listed[..listed.len().min(size as usize)]);
            }
            Err(status) => {
                prop_assert_eq!(status, Status::INVALID_FIELD);
                prop_assert!(distinct.len() < listed.len(), "an overlap");
            }
        }
    }

    /// Any bytes as descriptors and any request: no panic, and nothing outside of all addresses.
    #[test]
    fn hostile_lists_do_no_harm(
        bytes in prop::collection::vec(any::<u8>(), 0..512),
        dwords in any::<[u32; 5]>(),
    ) {
        let ram = Ram::new(0x2000);
        ram.write(LIST, &bytes).unwrap();
        let request = HmbRequest::decode(dwords);
        for list_address in [request.list_address, LIST] {
            let request = HmbRequest { list_address, ..request };
            prop_assert_eq!(HmbRequest::decode(request.encode()), request);
            if let Ok(ranges) = usable_ranges(&ram, &request, &LIMITS, PageSize::MIN) {
                for range in ranges {
                    prop_assert!(range.bytes > 0 && range.address.checked_add(range.bytes - 1).is_some());
                }
            }
        }
    }
}
