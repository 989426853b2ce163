//! How much host memory a drive gets, and in which pieces.
//!
//! [`negotiate`] does what the Linux driver does (`drivers/nvme/host/pci.c`, `nvme_setup_host_mem`
//! and `__nvme_alloc_host_mem`): it caps what the drive prefers, allocates pieces of the largest
//! size that can be had, halves the size when it cannot, and hands over what it got if that is
//! enough for the drive. What the drive makes of a grant is [`HmbSpec::usable_bytes`].

use crate::spec::HmbSpec;
use serde::{Deserialize, Serialize};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Page of the host and unit of a descriptor (CC.MPS), bytes.
pub const PAGE_BYTES: u64 = 4 * KIB;
/// Linux asks for no larger piece than its page allocator gives at once, bytes.
pub const CHUNK_BYTES_MAX: u64 = 4 * MIB;
/// Linux does not go below two pages, bytes.
pub const CHUNK_BYTES_MIN: u64 = 2 * PAGE_BYTES;
/// Default of the Linux module parameter `max_host_mem_size_mb`, bytes.
pub const LINUX_CAP_BYTES: u64 = 128 * MIB;

/// Longest descriptor list of this model: 4 TiB in the largest pieces, more than the map of any
/// drive. Without it an absurd offer would allocate an absurd list.
pub const DESCRIPTORS_MAX: u64 = 1 << 20;

/// What a host is willing to give.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq, Eq)]
pub struct HostPolicy {
    /// No drive gets more, bytes. 0 turns host memory off.
    pub cap_bytes: u64,
    /// Exactly this much is offered, whatever the drive prefers, bytes: less than preferred, or
    /// more, as Windows can be told to. It replaces the cap.
    pub offer_bytes: Option<u64>,
    /// Largest piece that the host's allocator gives, bytes; smaller in a fragmented memory. A power
    /// of two of at least a page.
    pub largest_chunk_bytes: u64,
    /// All that the host's allocator has for drives, bytes.
    pub available_bytes: u64,
}

impl HostPolicy {
    /// Linux as it comes: 128 MiB at most, memory plentiful and not fragmented.
    #[must_use]
    pub const fn linux() -> Self {
        Self {
            cap_bytes: LINUX_CAP_BYTES,
            offer_bytes: None,
            largest_chunk_bytes: CHUNK_BYTES_MAX,
            available_bytes: u64::MAX,
        }
    }

    /// Linux with `max_host_mem_size_mb` set: no drive gets more than `bytes`, 0 turns host memory off.
    #[must_use]
    pub const fn capped(bytes: u64) -> Self {
        Self {
            cap_bytes: bytes,
            ..Self::linux()
        }
    }

    /// A host that offers exactly `bytes`; 0 turns host memory off.
    #[must_use]
    pub const fn offering(bytes: u64) -> Self {
        Self {
            offer_bytes: Some(bytes),
            ..Self::linux()
        }
    }

    /// A host that gives no memory.
    #[must_use]
    pub const fn off() -> Self {
        Self::offering(0)
    }
}

impl Default for HostPolicy {
    fn default() -> Self {
        Self::linux()
    }
}

/// One piece of host memory: a descriptor of the list without its address.
#[derive(Clone, Serialize, Deserialize, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Size, bytes; a multiple of [`PAGE_BYTES`].
    pub bytes: u64,
}

/// What the host hands over with Set Features, Host Memory Buffer.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The descriptor list.
    pub chunks: Vec<Chunk>,
    /// Sum of the pieces (HSIZE), bytes.
    pub total_bytes: u64,
}

/// How the negotiation ended.
#[derive(Clone, Serialize, Deserialize, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The drive does not ask for host memory.
    NotAsked,
    /// The host gives no memory to drives.
    Off,
    /// The drive's minimum is above what the host gives; Linux warns and goes on without.
    MinimumAboveCap {
        /// The drive's minimum, bytes.
        min_bytes: u64,
        /// What the host gives at most, bytes.
        cap_bytes: u64,
    },
    /// The drive's smallest useful piece is above the largest that the host gives.
    PiecesTooShort {
        /// The drive's smallest useful piece, bytes.
        least_bytes: u64,
        /// The host's largest, bytes.
        largest_bytes: u64,
    },
    /// The host could not allocate the drive's minimum in pieces that the drive accepts.
    AllocationFailed {
        /// What it tried to allocate, bytes.
        wanted_bytes: u64,
    },
    /// Memory handed over.
    Granted(Grant),
}

impl Outcome {
    /// Bytes handed over.
    #[must_use]
    pub const fn granted_bytes(&self) -> u64 {
        match self {
            Outcome::Granted(grant) => grant.total_bytes,
            _ => 0,
        }
    }

    /// What the user should hear, if anything went otherwise than the drive asked.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        // What differs by a page is to be seen to differ.
        let size = |bytes: &u64| match (bytes % MIB, bytes % KIB) {
            (0, _) => format!("{} MiB", bytes / MIB),
            (_, 0) => format!("{} KiB", bytes / KIB),
            _ => format!("{bytes} B"),
        };
        match self {
            Outcome::MinimumAboveCap {
                min_bytes,
                cap_bytes,
            } => Some(format!(
                "the drive needs at least {} of host memory and the host gives {}: it runs without",
                size(min_bytes),
                size(cap_bytes)
            )),
            Outcome::PiecesTooShort {
                least_bytes,
                largest_bytes,
            } => Some(format!(
                "the drive has no use for pieces of host memory below {} (`tier.hmb.min_descriptor`) and the \
                 host gives none above {}: it runs without",
                size(least_bytes),
                size(largest_bytes)
            )),
            Outcome::AllocationFailed { wanted_bytes } => Some(format!(
                "the host could not allocate {} of its memory in pieces that the drive takes: it runs without",
                size(wanted_bytes)
            )),
            _ => None,
        }
    }
}

/// What the host gives the drive.
#[must_use]
pub fn negotiate(drive: &HmbSpec, host: &HostPolicy) -> Outcome {
    if drive.preferred_bytes == 0 {
        return Outcome::NotAsked;
    }
    let cap_bytes = host.offer_bytes.unwrap_or(host.cap_bytes);
    if cap_bytes == 0 {
        return Outcome::Off;
    }
    if drive.min_bytes > cap_bytes {
        return Outcome::MinimumAboveCap {
            min_bytes: drive.min_bytes,
            cap_bytes,
        };
    }
    let wanted_bytes = match host.offer_bytes {
        Some(offered) => offered,
        None => drive.preferred_bytes.min(cap_bytes),
    };
    // The unit of the list is a page: what does not fill one is not given.
    let wanted_bytes = wanted_bytes / PAGE_BYTES * PAGE_BYTES;
    if wanted_bytes < PAGE_BYTES || wanted_bytes < drive.min_bytes {
        return Outcome::AllocationFailed { wanted_bytes };
    }
    let smallest = drive.min_descriptor_bytes.max(CHUNK_BYTES_MIN);
    let largest = wanted_bytes
        .min(CHUNK_BYTES_MAX)
        .min(host.largest_chunk_bytes);
    if largest < drive.min_descriptor_bytes {
        return Outcome::PiecesTooShort {
            least_bytes: drive.min_descriptor_bytes,
            largest_bytes: largest,
        };
    }
    let mut chunk_bytes = wanted_bytes.min(CHUNK_BYTES_MAX);
    while chunk_bytes >= smallest {
        if let Some(grant) = allocate(drive, host, wanted_bytes, chunk_bytes) {
            return of_use(drive, grant, wanted_bytes);
        }
        chunk_bytes = chunk_bytes / 2 / PAGE_BYTES * PAGE_BYTES;
    }
    Outcome::AllocationFailed { wanted_bytes }
}

/// What the drive has of a grant. Linux hands the rest over as a last piece, however short it is; the drive passes over
/// pieces below its smallest (HMMINDS), and the host has no say in it any more.
fn of_use(drive: &HmbSpec, mut grant: Grant, wanted_bytes: u64) -> Outcome {
    grant
        .chunks
        .retain(|chunk| chunk.bytes >= drive.min_descriptor_bytes);
    grant.total_bytes = grant.chunks.iter().map(|chunk| chunk.bytes).sum();
    if grant.total_bytes > 0 && grant.total_bytes >= drive.min_bytes {
        Outcome::Granted(grant)
    } else {
        Outcome::AllocationFailed { wanted_bytes }
    }
}

/// Pieces of `chunk_bytes` up to `wanted_bytes`; `None` if they do not add up to the drive's minimum.
fn allocate(
    drive: &HmbSpec,
    host: &HostPolicy,
    wanted_bytes: u64,
    chunk_bytes: u64,
) -> Option<Grant> {
    // Linux asks its allocator for whole powers of two.
    if chunk_bytes.next_power_of_two() > host.largest_chunk_bytes {
        return None;
    }
    let most = match drive.max_descriptors {
        0 => DESCRIPTORS_MAX,
        most => u64::from(most).min(DESCRIPTORS_MAX),
    };
    let count = wanted_bytes.div_ceil(chunk_bytes).min(most);
    let mut grant = Grant {
        chunks: Vec::new(),
        total_bytes: 0,
    };
    for _ in 0..count {
        let bytes = chunk_bytes.min(wanted_bytes - grant.total_bytes);
        if grant.total_bytes + bytes > host.available_bytes {
            break;
        }
        grant.chunks.push(Chunk { bytes });
        grant.total_bytes += bytes;
    }
    (grant.total_bytes > 0 && grant.total_bytes >= drive.min_bytes).then_some(grant)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Rounding;
    use proptest::prelude::*;

    /// The RC100: 38 MiB preferred, 10 MiB at least.
    fn rc100() -> HmbSpec {
        HmbSpec {
            preferred_bytes: 38 * MIB,
            min_bytes: 10 * MIB,
            min_descriptor_bytes: 0,
            max_descriptors: 0,
            rounding: Rounding::PowerOfTwo,
            stalls_core: false,
            integrity: crate::spec::Integrity::None,
            check_ps: 0,
            check_bytes_per_s: 1,
            check_in_path: false,
        }
    }

    fn sizes(outcome: &Outcome) -> Vec<u64> {
        match outcome {
            Outcome::Granted(grant) => grant.chunks.iter().map(|chunk| chunk.bytes).collect(),
            other => panic!("nothing granted: {other:?}"),
        }
    }

    #[test]
    fn linux_gives_what_is_preferred_in_pieces_of_4_mib() {
        let outcome = negotiate(&rc100(), &HostPolicy::linux());
        let mut expected = vec![4 * MIB; 9];
        expected.push(2 * MIB);
        assert_eq!(sizes(&outcome), expected);
        assert_eq!(outcome.granted_bytes(), 38 * MIB);
        assert_eq!(outcome.warning(), None);
    }

    #[test]
    fn linux_caps_at_128_mib() {
        let drive = HmbSpec {
            preferred_bytes: 480 * MIB,
            min_bytes: 8 * MIB,
            ..rc100()
        };
        let outcome = negotiate(&drive, &HostPolicy::linux());
        assert_eq!(sizes(&outcome), vec![4 * MIB; 32]);
    }

    #[test]
    fn less_than_one_chunk_is_one_piece() {
        let drive = HmbSpec {
            preferred_bytes: 256 * KIB,
            min_bytes: 64 * KIB,
            ..rc100()
        };
        assert_eq!(sizes(&negotiate(&drive, &HostPolicy::linux())), [256 * KIB]);
    }

    #[test]
    fn a_minimum_at_the_cap_is_granted_and_above_it_warned_of() {
        let at = |bytes| negotiate(&rc100(), &HostPolicy::offering(bytes));
        assert_eq!(at(10 * MIB).granted_bytes(), 10 * MIB);
        let below = at(10 * MIB - PAGE_BYTES);
        assert_eq!(below.granted_bytes(), 0);
        assert_eq!(
            below.warning().unwrap(),
            "the drive needs at least 10 MiB of host memory and the host gives 10236 KiB: it runs \
             without"
        );
        let warning = negotiate(&rc100(), &HostPolicy::capped(64))
            .warning()
            .unwrap();
        assert!(warning.contains("the host gives 64 B"), "{warning}");
        let capped = HostPolicy {
            cap_bytes: 9 * MIB,
            ..HostPolicy::linux()
        };
        let outcome = negotiate(&rc100(), &capped);
        let (min_bytes, cap_bytes) = (10 * MIB, 9 * MIB);
        assert_eq!(
            outcome,
            Outcome::MinimumAboveCap {
                min_bytes,
                cap_bytes
            }
        );
    }

    #[test]
    fn an_offer_may_exceed_what_is_preferred() {
        let outcome = negotiate(&rc100(), &HostPolicy::offering(64 * MIB));
        assert_eq!(outcome.granted_bytes(), 64 * MIB);
        assert_eq!(
            negotiate(&rc100(), &HostPolicy::offering(256 * MIB)).granted_bytes(),
            256 * MIB
        );
    }

    #[test]
    fn an_absurd_offer_is_cut_short() {
        let outcome = negotiate(&rc100(), &HostPolicy::offering(u64::MAX));
        assert_eq!(outcome.granted_bytes(), DESCRIPTORS_MAX * CHUNK_BYTES_MAX);
    }

    #[test]
    fn off_and_not_asked_are_silent() {
        let off = negotiate(&rc100(), &HostPolicy::off());
        assert_eq!(off, Outcome::Off);
        assert_eq!(off.warning(), None);
        let none = HmbSpec {
            preferred_bytes: 0,
            min_bytes: 0,
            ..rc100()
        };
        assert_eq!(negotiate(&none, &HostPolicy::linux()), Outcome::NotAsked);
    }

    #[test]
    fn fragmented_memory_halves_the_pieces() {
        let host = HostPolicy {
            largest_chunk_bytes: 64 * KIB,
            ..HostPolicy::linux()
        };
        assert_eq!(sizes(&negotiate(&rc100(), &host)), vec![64 * KIB; 608]);
    }

    #[test]
    fn pieces_do_not_shrink_below_what_the_drive_takes() {
        let host = HostPolicy {
            largest_chunk_bytes: 64 * KIB,
            ..HostPolicy::linux()
        };
        let fits = HmbSpec {
            min_descriptor_bytes: 64 * KIB,
            ..rc100()
        };
        assert_eq!(negotiate(&fits, &host).granted_bytes(), 38 * MIB);
        let too_large = HmbSpec {
            min_descriptor_bytes: 68 * KIB,
            ..rc100()
        };
        assert_eq!(
            negotiate(&too_large, &host),
            Outcome::PiecesTooShort {
                least_bytes: 68 * KIB,
                largest_bytes: 64 * KIB
            }
        );
        // Two pages are the least.
        let page = HostPolicy {
            largest_chunk_bytes: PAGE_BYTES,
            ..HostPolicy::linux()
        };
        assert_eq!(negotiate(&rc100(), &page).granted_bytes(), 0);
    }

    /// `tier.hmb.min_descriptor` was looked at only after the host had failed to allocate.
    #[test]
    fn a_drive_whose_smallest_piece_is_above_the_hosts_largest_gets_nothing() {
        let of = |min_descriptor_bytes| HmbSpec {
            min_descriptor_bytes,
            ..rc100()
        };
        for host in [HostPolicy::linux(), HostPolicy::offering(38 * MIB)] {
            // The last of the pieces that Linux makes has 2 MiB, and is none.
            assert_eq!(sizes(&negotiate(&of(4 * MIB), &host)), [4 * MIB; 9]);
            assert_eq!(
                negotiate(&of(2 * MIB), &host).granted_bytes(),
                38 * MIB,
                "{host:?}"
            );
            let outcome = negotiate(&of(4 * MIB + PAGE_BYTES), &host);
            assert_eq!(outcome.granted_bytes(), 0);
            assert_eq!(
                outcome.warning().unwrap(),
                "the drive has no use for pieces of host memory below 4100 KiB (`tier.hmb.min_descriptor`) and the \
                 host gives none above 4 MiB: it runs without"
            );
        }
        // A grant below it is one piece that is too short.
        let small = HmbSpec {
            min_bytes: 64 * KIB,
            ..of(256 * KIB)
        };
        let granted = |bytes| negotiate(&small, &HostPolicy::offering(bytes)).granted_bytes();
        assert_eq!(granted(128 * KIB), 0);
        assert_eq!(granted(256 * KIB), 256 * KIB);
        // What is left of the pieces that count must be enough.
        let tight = HmbSpec {
            min_bytes: 38 * MIB,
            ..of(4 * MIB)
        };
        assert_eq!(negotiate(&tight, &HostPolicy::linux()).granted_bytes(), 0);
    }

    #[test]
    fn linux_asks_for_no_piece_of_a_single_page() {
        let drive = HmbSpec {
            min_bytes: PAGE_BYTES,
            ..rc100()
        };
        let granted = |bytes| negotiate(&drive, &HostPolicy::offering(bytes)).granted_bytes();
        assert_eq!(granted(PAGE_BYTES), 0);
        assert_eq!(granted(CHUNK_BYTES_MIN), CHUNK_BYTES_MIN);
    }

    #[test]
    fn few_descriptors_give_a_part_if_it_is_enough() {
        let three = HmbSpec {
            max_descriptors: 3,
            ..rc100()
        };
        assert_eq!(
            sizes(&negotiate(&three, &HostPolicy::linux())),
            [4 * MIB; 3]
        );
        let two = HmbSpec {
            max_descriptors: 2,
            ..rc100()
        };
        assert_eq!(negotiate(&two, &HostPolicy::linux()).granted_bytes(), 0);
    }

    #[test]
    fn scarce_memory_gives_a_part_if_it_is_enough() {
        let host = HostPolicy {
            available_bytes: 13 * MIB,
            ..HostPolicy::linux()
        };
        assert_eq!(sizes(&negotiate(&rc100(), &host)), [4 * MIB; 3]);
        let host = HostPolicy {
            available_bytes: 11 * MIB,
            ..HostPolicy::linux()
        };
        // Pieces of 4 MiB give 8, below the minimum; of 2 MiB they give 10.
        assert_eq!(sizes(&negotiate(&rc100(), &host)), [2 * MIB; 5]);
        let host = HostPolicy {
            available_bytes: 10 * MIB - 1,
            ..HostPolicy::linux()
        };
        assert_eq!(negotiate(&rc100(), &host).granted_bytes(), 0);
    }

    #[test]
    fn a_drive_uses_the_largest_power_of_two_or_everything() {
        let drive = rc100();
        let cases = [(38, 32), (61, 32), (64, 64), (10, 8), (127, 64), (128, 128)];
        for (granted, usable) in cases {
            assert_eq!(
                drive.usable_bytes(granted * MIB),
                usable * MIB,
                "{granted} MiB"
            );
            let all = HmbSpec {
                rounding: Rounding::None,
                ..drive.clone()
            };
            assert_eq!(all.usable_bytes(granted * MIB), granted * MIB);
        }
        assert_eq!(drive.usable_bytes(10 * MIB - 1), 0);
        assert_eq!(drive.usable_bytes(0), 0);
        assert_eq!(drive.usable_bytes(u64::MAX), 1 << 63);
    }

    proptest! {
        #![proptest_config(lodger_testing::config(256))]

        #[test]
        fn a_grant_keeps_every_limit(
            preferred_pages in 1u64..100_000,
            min_share in 0.0f64..=1.0,
            min_descriptor_pages in 0u64..2_000,
            max_descriptors in 0u32..64,
            cap_bytes in 0u64..512 * MIB,
            offer in proptest::option::of(0u64..512 * MIB),
            largest_order in 0u32..11,
            available_bytes in 0u64..512 * MIB,
        ) {
            let preferred_bytes = preferred_pages * PAGE_BYTES;
            let drive = HmbSpec {
                preferred_bytes,
                min_bytes: (preferred_pages as f64 * min_share) as u64 * PAGE_BYTES,
                min_descriptor_bytes: min_descriptor_pages * PAGE_BYTES,
                max_descriptors,
                ..rc100()
            };
            let host = HostPolicy {
                cap_bytes,
                offer_bytes: offer,
                largest_chunk_bytes: PAGE_BYTES << largest_order,
                available_bytes,
            };
            let Outcome::Granted(grant) = negotiate(&drive, &host) else {
                return Ok(());
            };
            let total: u64 = grant.chunks.iter().map(|chunk| chunk.bytes).sum();
            prop_assert_eq!(total, grant.total_bytes);
            prop_assert!(total >= drive.min_bytes && total > 0);
            prop_assert!(total <= available_bytes);
            prop_assert!(total <= offer.unwrap_or(cap_bytes));
            prop_assert!(offer.is_some() || total <= preferred_bytes);
            if max_descriptors > 0 {
                prop_assert!(grant.chunks.len() <= max_descriptors as usize);
            }
            for chunk in &grant.chunks {
                prop_assert!(chunk.bytes.is_multiple_of(PAGE_BYTES) && chunk.bytes > 0);
                prop_assert!(chunk.bytes <= host.largest_chunk_bytes);
                prop_assert!(chunk.bytes >= drive.min_descriptor_bytes);
            }
            // All pieces but the last have one size.
            let first = grant.chunks[0].bytes;
            let body = &grant.chunks[..grant.chunks.len() - 1];
            prop_assert!(body.iter().all(|chunk| chunk.bytes == first));
        }
    }
}
