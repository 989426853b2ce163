//! Are log pages laid out as readers expect, is the part handed out that is asked for, and do events name the page
//! that explains them?

use lodger_wire::command::GetLogPage;
use lodger_wire::command::feature::FeatureId;
use lodger_wire::entry::SubmissionEntry;
use lodger_wire::event::AsyncEvent;
use lodger_wire::layout::{Place, Short};
use lodger_wire::log::{
    ErrorEntry, FirmwareSlots, Health, LogId, OCP_GUID, OcpHealth, SanitizeState, SanitizeStatus,
    answer, changed_namespaces, command_effects, counters, counters_page, data_units,
    empty_self_test, error_page, feature_effects, supported_pages,
};
use lodger_wire::memory::{GuestMemory, Ram};
use lodger_wire::queue::DoorbellError;
use lodger_wire::status::Status;
use lodger_wire::transfer::DataPointer;
use lodger_wire::{CommandId, NamespaceId, PageSize, QueueId};
use proptest::prelude::*;

fn place(places: &[Place], name: &str) -> (usize, usize) {
    let place = places.iter().find(|place| place.name == name);
    place.map(|place| (place.offset, place.bytes)).unwrap()
}

#[test]
fn health_is_laid_out_as_the_standard_has_it() {
    for (name, offset, bytes) in [
        ("temperature_kelvin", 1, 2),
        ("used_percent", 5, 1),
        ("data_units_read", 32, 16),
        ("write_commands", 80, 16),
        ("unsafe_shutdowns", 144, 16),
        ("error_entries", 176, 16),
        ("sensors_kelvin", 200, 16),
        ("heavy_throttle_s", 228, 4),
    ] {
        assert_eq!(place(Health::PLACES, name), (offset, bytes), "{name}");
    }
    assert_eq!(
        (data_units(0), data_units(1), data_units(512_001)),
        (0, 1, 2)
    );
}

#[test]
fn ocps_page_is_laid_out_as_exporters_expect() {
    for (name, offset, bytes) in [
        ("media_bytes_written", 0, 16),
        ("bad_user_blocks", 32, 6),
        ("refreshes", 81, 7),
        ("user_erases_max", 88, 4),
        ("major_version", 103, 1),
        ("free_blocks_percent", 120, 1),
        ("capacitor_percent", 128, 2),
        ("unaligned_accesses", 136, 8),
        ("endurance_bytes", 176, 16),
        ("lowest_firmware", 208, 8),
        ("erases_mean", 224, 8),
        ("page_version", 494, 2),
        ("guid", 496, 16),
    ] {
        assert_eq!(place(OcpHealth::PLACES, name), (offset, bytes), "{name}");
    }
    let page = OcpHealth {
        media_bytes_written: 1 << 70,
        refreshes: Short::saturating(u64::MAX),
        ..OcpHealth::new()
    };
    let bytes = page.encode();
    assert_eq!(bytes[8], 64);
    assert_eq!(bytes[81..88], [0xff; 7]);
    assert_eq!(bytes[496..500], [0xc5, 0xaf, 0x10, 0x28]);
    assert_eq!(OcpHealth::decode(&bytes).guid, OCP_GUID);
}

#[test]
fn errors_stand_newest_first_with_their_command() {
    let command = SubmissionEntry::new(2, CommandId(9), NamespaceId(1));
    let entry = ErrorEntry::of(&command, QueueId(3), Status::LBA_OUT_OF_RANGE);
    let count = 77;
    let page = error_page([ErrorEntry { count, ..entry }], 3);
    assert_eq!(page.len(), 4 * 64);
    assert_eq!(page[..8], 77u64.to_le_bytes());
    assert_eq!(page[8..12], [3, 0, 9, 0]);
    assert_eq!(page[12..14], (0x4080u16 << 1).to_le_bytes());
    assert_eq!(page[24], 1);
    assert_eq!((page[31], page[63]), (2, 1));
    assert_eq!(page[64..], [0; 192]);
    assert_eq!(
        error_page([entry; 9], 3).len(),
        256,
        "no more than it holds"
    );
}

#[test]
fn what_is_supported_says_so() {
    let pages = supported_pages();
    assert_eq!(pages[4 * 2], 1);
    assert_eq!(pages[4 * 0xc0], 1);
    assert_eq!(pages[4 * 7], 0, "no telemetry");
    let effects = command_effects(&[0xc1], &[0x81]);
    let at = |queue: usize, code: usize| {
        let at = 1024 * queue + 4 * code;
        u32::from_le_bytes(effects[at..at + 4].try_into().unwrap())
    };
    // With their scopes, which LPA bit 5 promises.
    let (namespace, controller, subsystem) = (1 << 20, 1 << 21, 1 << 25);
    assert_eq!(at(0, 0x06), controller | 1, "identify");
    assert_eq!(at(0, 0x80), namespace | 1 << 16 | 0b111, "format");
    assert_eq!(at(0, 0x0d), subsystem | 0b1011, "namespace management");
    assert_eq!(at(0, 0x15), subsystem | 0b1001, "namespace attachment");
    assert_eq!(at(0, 0x19), 0, "directives");
    assert_eq!((at(0, 0xc1), at(0, 0xc2)), (controller | 1, 0));
    assert_eq!(at(1, 1), namespace | 0b11, "write");
    assert_eq!((at(1, 0x81), at(1, 0x19)), (namespace | 1, 0));
    assert_eq!(
        pages[4 * 0x13],
        1,
        "management commands, of which there are none"
    );
    assert_eq!(feature_effects([FeatureId::HostMemoryBuffer])[4 * 0xd], 1);
}

#[test]
fn small_pages_are_as_the_standard_has_them() {
    let mut slots = FirmwareSlots {
        active: 1,
        ..FirmwareSlots::default()
    };
    slots.revisions[0] = *b"ADRA0101";
    assert_eq!(&slots.encode()[8..16], b"ADRA0101");
    let changed = changed_namespaces(&[NamespaceId(2), NamespaceId(4)]);
    assert_eq!(changed[..9], [2, 0, 0, 0, 4, 0, 0, 0, 0]);
    assert_eq!(
        changed_namespaces(&[NamespaceId(1); 1025])[..5],
        [255, 255, 255, 255, 0]
    );
    assert_eq!((empty_self_test()[4], empty_self_test()[32]), (15, 15));
    let sanitize = SanitizeStatus::new(SanitizeState::UnderWay, 0x8000, false).encode();
    assert_eq!(sanitize[..4], [0, 0x80, 2, 0]);
    let sanitize = SanitizeStatus::new(SanitizeState::Done, 0x8000, true).encode();
    assert_eq!(sanitize[..4], [0xff, 0xff, 1, 1]);
}

#[test]
fn the_drives_own_counters_name_themselves() {
    let page = counters_page([("map.lookups", 5), ("map.hits.hmb", u64::MAX)]);
    let read = counters(&page).unwrap();
    assert_eq!(read.len(), 2);
    assert_eq!((&*read[1].name, read[1].value), ("map.hits.hmb", u64::MAX));
    assert_eq!(counters(&page[..100]), None);
    assert_eq!(counters(&[0; 64]), None);
}

#[test]
fn events_name_the_page_that_explains_them() {
    assert_eq!(AsyncEvent::Temperature.result(), 0x02_0101);
    assert_eq!(AsyncEvent::NamespaceChanged.result(), 0x04_0002);
    assert_eq!(AsyncEvent::from(DoorbellError::Overrun).result(), 0x01_0100);
    assert_eq!(AsyncEvent::SanitizeDone.result(), 0x81_0106);
    assert_eq!(AsyncEvent::Spare.page(), LogId::Health);
}

fn asked(page: &[u8], offset_bytes: u64, dwords_z: u32) -> Result<Vec<u8>, Status> {
    let get = GetLogPage {
        page: 2,
        specific: 0,
        retain_event: false,
        dwords_z,
        specific_id: 0,
        offset_bytes,
        command_set: 0,
    };
    let memory = Ram::new(0x4000);
    memory.write(0, &[0xee; 0x4000]).unwrap();
    let (prp1, prp2) = (0x1000, 0x2000);
    let data = DataPointer::Prp { prp1, prp2 };
    answer(page, &get, &data, &memory, PageSize::MIN)?;
    let mut read = vec![0; get.bytes() as usize + 1];
    memory.read(0x1000, &mut read).unwrap();
    assert_eq!(read.pop(), Some(0xee), "no byte more");
    Ok(read)
}

#[test]
fn pages_that_are_not_have_their_status() {
    assert_eq!(LogId::from_code(0x7), Err(Status::LOG_PAGE_INVALID));
    assert_eq!(LogId::from_code(0xc0), Ok(LogId::OcpHealth));
    assert_eq!(asked(&[1; 512], 516, 0), Err(Status::INVALID_FIELD));
    assert_eq!(
        asked(&[1; 512], u64::MAX - 3, 0),
        Err(Status::INVALID_FIELD)
    );
    assert_eq!(asked(&[1; 512], 512, 0), Ok(vec![0; 4]));
}

proptest! {
    #![proptest_config(lodger_testing::config(300))]

    /// Of any page, any part: what is there, and zeros beyond its end.
    #[test]
    fn the_part_is_handed_out_that_is_asked_for(
        page in prop::collection::vec(any::<u8>(), 0..3000), offset in 0..800u64, dwords_z in 0..2000u32,
    ) {
        let start = 4 * offset as usize;
        match asked(&page, 4 * offset, dwords_z) {
            Ok(read) => {
                let expected = page[start..].iter().copied().chain(std::iter::repeat(0));
                prop_assert!(read.into_iter().eq(expected.take(4 * (dwords_z as usize + 1))));
            }
            Err(status) => {
                prop_assert_eq!(status, Status::INVALID_FIELD);
                prop_assert!(start > page.len());
            }
        }
    }

    /// Any bytes are structures, and say the same when encoded again.
    #[test]
    fn structures_come_through(bytes in prop::collection::vec(any::<u8>(), 512)) {
        let page: [u8; 512] = bytes.try_into().unwrap();
        let health = Health::decode(&page);
        prop_assert_eq!(Health::decode(&health.encode()), health);
        let ocp = OcpHealth::decode(&page);
        prop_assert_eq!(OcpHealth::decode(&ocp.encode()), ocp);
        let encoded = health.encode();
        for place in Health::PLACES {
            let bytes = place.offset..place.offset + place.bytes;
            prop_assert_eq!(&encoded[bytes.clone()], &page[bytes], "{}", place.name);
        }
        let _ = counters(&page);
    }
}
