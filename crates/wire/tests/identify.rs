//! Does a drive say of itself what it is told to, where the standard has it, and are wrong fields refused with
//! words that help?

use lodger_wire::hmb::HmbLimits;
use lodger_wire::identify::command_set::{self, DatasetLimits};
use lodger_wire::identify::controller::{self, Controller, PowerState};
use lodger_wire::identify::lists::{self, NamespaceName};
use lodger_wire::identify::namespace::{self, Format, Namespace, Preferred};
use lodger_wire::identify::{AssignError, Kind, Page, STRUCTURES, structure_with};
use lodger_wire::lba::BlockSize;
use lodger_wire::registers::Version;
use lodger_wire::status::Status;
use lodger_wire::{ControllerId, NamespaceId};
use proptest::prelude::*;

const STATES: [PowerState; 2] = [state(450, 0, 0), state(5, 2, 8000)];

const fn state(power_max: u16, flags: u8, exit_us: u32) -> PowerState {
    PowerState {
        power_max,
        flags,
        entry_us: 2000,
        exit_us,
        relative: [0; 4],
        idle_power: 0,
        idle_unit: 0,
        active_power: 0,
        active_unit: 0,
    }
}

fn rc100() -> Controller<'static> {
    Controller {
        vendor: 0x1179,
        serial: "68GS10IYTUXL",
        model: "TOSHIBA-RC100",
        firmware: "ADRA0101",
        ieee_oui: 0x00_080d,
        subsystem_name: "nqn.2017-03.jp.co.toshiba:rc100",
        controller: ControllerId(0),
        version: Version::V2_0,
        mdts: 7,
        namespaces_max: 4,
        capacity_bytes: 480_103_981_056,
        host_memory: HmbLimits {
            preferred_4kib: 9728,
            min_4kib: 2560,
            descriptor_min_4kib: 4,
            descriptors_max: 32,
            restrictable: true,
        },
        volatile_write_cache: true,
        doorbell_buffers: true,
        scatter_gather: true,
        sanitize: 3,
        atomic_blocks_z: 7,
        error_entries_z: 63,
        power_states: &STATES,
        temperatures_kelvin: (351, 355),
    }
}

const FORMATS: [Format; 2] = [
    Format {
        block: BlockSize::B512,
        performance: 1,
    },
    Format {
        block: BlockSize::KIB4,
        performance: 0,
    },
];

fn first_namespace() -> Namespace<'static> {
    Namespace {
        size_blocks: 937_703_088,
        used_blocks: 1000,
        formats: &FORMATS,
        format: 0,
        preferred: Some(Preferred {
            write_blocks_z: 7,
            deallocate_blocks_z: 7,
            optimal_write_blocks_z: 255,
        }),
        eui64: Some([0, 8, 0xd, 4, 0, 5, 6, 7]),
        nguid: None,
        deallocated_is_zero: true,
        unwritten_errors: false,
        shared: false,
        write_protected: false,
        capacity_bytes: 480_103_981_056,
    }
}

#[test]
fn fields_are_where_the_standard_has_them() {
    let at = |index: usize, name: &str| {
        let field = STRUCTURES[index].find(name).unwrap();
        (field.offset, field.bytes)
    };
    for (name, offset, bytes) in [
        ("VID", 0, 2),
        ("SN", 4, 20),
        ("MN", 24, 40),
        ("FR", 64, 8),
        ("MDTS", 77, 1),
        ("CTRATT", 96, 4),
        ("CNTRLTYPE", 111, 1),
        ("OACS", 256, 2),
        ("NPSS", 263, 1),
        ("CCTEMP", 268, 2),
        ("HMPRE", 272, 4),
        ("HMMIN", 276, 4),
        ("TNVMCAP", 280, 16),
        ("SANICAP", 328, 4),
        ("HMMINDS", 332, 4),
        ("HMMAXD", 336, 2),
        ("SQES", 512, 1),
        ("NN", 516, 4),
        ("ONCS", 520, 2),
        ("VWC", 525, 1),
        ("SGLS", 536, 4),
        ("SUBNQN", 768, 256),
        ("PSD0.MP", 2048, 2),
        ("PSD31.APWS", 3062, 1),
        ("VS", 3072, 1024),
    ] {
        assert_eq!(at(0, name), (offset, bytes), "{name}");
    }
    for (name, offset, bytes) in [
        ("NSZE", 0, 8),
        ("FLBAS", 26, 1),
        ("DLFEAT", 33, 1),
        ("NVMCAP", 48, 16),
        ("NOWS", 72, 2),
        ("NSATTR", 99, 1),
        ("NGUID", 104, 16),
        ("EUI64", 120, 8),
        ("LBAF0.LBADS", 130, 1),
        ("LBAF63.RP", 383, 1),
    ] {
        assert_eq!(at(1, name), (offset, bytes), "{name}");
    }
    assert_eq!(at(2, "DMSL"), (8, 8));
    assert_eq!(at(3, "PIC"), (8, 1));
    assert_eq!(at(4, "NSTAT"), (14, 1));
}

#[test]
fn a_controller_says_what_linux_looks_for() {
    let page = rc100().page();
    let bytes = page.bytes();
    assert_eq!(&bytes[4..24], b"68GS10IYTUXL        ");
    assert_eq!(bytes[512..514], [0x66, 0x44]);
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!((u32_at(272), u32_at(276)), (9728, 2560));
    assert_eq!(u32_at(96) >> 17 & 1, 1, "HMBR");
    assert_eq!(bytes[256 + 1] & 1, 1, "doorbell buffers");
    assert_eq!(page.number(controller::NPSS), 1);
    assert_eq!(page.number(controller::APSTA), 1);
    assert_eq!(&bytes[2048 + 32..2048 + 36], [5, 0, 0, 2]);
    assert_eq!(
        PowerState::decode(bytes[2080..2112].try_into().unwrap()),
        STATES[1]
    );
}

#[test]
fn a_namespace_says_its_size_and_formats() {
    let page = first_namespace().page();
    assert_eq!(page.number(namespace::NSZE), 937_703_088);
    assert_eq!(page.number(namespace::NLBAF), 1);
    assert_eq!(page.bytes()[128..136], [0, 0, 9, 1, 0, 0, 12, 0]);
    assert_eq!(page.number(namespace::DLFEAT), 9);
    assert_eq!(page.number(namespace::NSFEAT), 16);
    assert_eq!(page.number(namespace::NOWS), 255);
    let many = [FORMATS[0]; 40];
    let used = Namespace {
        formats: &many,
        format: 0x25,
        ..first_namespace()
    };
    assert_eq!(
        used.page().number(namespace::FLBAS),
        0x45,
        "bits 6:5 above 3:0"
    );
    let independent = command_set::independent_page(&first_namespace(), true);
    assert_eq!(independent.number(command_set::independent::NSTAT), 1);
    let ranges_max = 255;
    let limits = DatasetLimits {
        ranges_max,
        ..DatasetLimits::default()
    };
    assert_eq!(command_set::controller_page(limits).bytes()[3], 255);
    assert_eq!(command_set::namespace_page().bytes(), &[0; 4096]);
}

#[test]
fn any_field_can_be_set_by_its_name() {
    let mut page = rc100().page();
    for assignment in [
        "HMPRE=16384",
        "hmmaxd = 0x20",
        "SN=ABC 123",
        "PSD1.EXLAT=9000",
        "TNVMCAP=1000000000000000000000",
        "FGUID=00112233445566778899aabbccddeeff",
        "VS=4c6f6467",
    ] {
        page.assign(assignment).unwrap();
    }
    assert_eq!(page.number(controller::HMPRE), 16384);
    assert_eq!(page.number(controller::HMMAXD), 32);
    assert_eq!(&page.bytes()[4..12], b"ABC 123 ");
    assert_eq!(
        page.number(controller::TNVMCAP),
        1_000_000_000_000_000_000_000
    );
    assert_eq!(&page.bytes()[3072..3077], b"Lodg\0");
    assert_eq!(&page.bytes()[112..114], &[0, 0x11]);
}

#[test]
fn errors_say_what_would_be_right() {
    let mut page = rc100().page();
    let mut refused = |assignment: &str| page.assign(assignment).unwrap_err();
    let shown = |error: &AssignError| (error.to_string(), error.hint().unwrap_or_default());
    assert_eq!(
        shown(&refused("HMPER=1")),
        (
            "`HMPER` is no field of Identify Controller".into(),
            "did you mean `HMPRE`?".into()
        )
    );
    assert_eq!(refused("colour=1").hint(), None);
    assert_eq!(
        shown(&refused("HMMAXD=65536")),
        (
            "`HMMAXD` must be between 0 and 65535, found `65536`".into(),
            "numbers are decimal, or `0x` and hexadecimal".into()
        )
    );
    assert!(matches!(refused("HMPRE=-1"), AssignError::Number { .. }));
    assert!(matches!(refused("HMPRE=+1"), AssignError::Number { .. }));
    assert!(matches!(refused("HMPRE="), AssignError::Number { .. }));
    assert!(matches!(refused("HMPRE"), AssignError::Form { .. }));
    assert_eq!(
        refused("FR=ADRA01012").to_string(),
        "`FR` must be at most 8 printable ASCII characters, found `ADRA01012`"
    );
    assert!(matches!(refused("SN=gr\u{fc}n"), AssignError::Text { .. }));
    assert!(matches!(refused("FGUID=123"), AssignError::Bytes { .. }));
    assert!(matches!(refused("FGUID=xy"), AssignError::Bytes { .. }));
    assert_eq!(page.bytes(), rc100().page().bytes(), "nothing has changed");
}

#[test]
fn a_name_leads_to_its_structure() {
    let of = |name| structure_with(name).map(|structure| structure.name);
    assert_eq!(of("hmpre"), Ok("Identify Controller"));
    assert_eq!(of("LBAF1.LBADS"), Ok("Identify Namespace"));
    assert_eq!(
        of("DMRSL"),
        Ok("Identify Controller of the NVM command set")
    );
    let hint = structure_with("HMMIM").unwrap_err().hint();
    assert_eq!(hint.as_deref(), Some("did you mean `HMMIN`?"));
}

#[test]
fn what_is_set_can_be_said_and_set_again() {
    let pages = [rc100().page(), first_namespace().page()];
    for (structure, page) in STRUCTURES.into_iter().zip(pages) {
        let mut again = Page::new(structure);
        for assignment in page.assignments() {
            again.assign(&assignment).unwrap();
        }
        assert_eq!(again.bytes(), page.bytes(), "{}", structure.name);
    }
}

#[test]
fn names_are_told_apart_and_described() {
    for structure in STRUCTURES {
        let mut names: Vec<_> = structure.all().map(|(name, _)| name).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count, "{}", structure.name);
        let is_good = |field: &lodger_wire::identify::Field| {
            !field.about.is_empty() && (field.kind != Kind::Number || field.bytes <= 16)
        };
        assert!(structure.all().all(|(_, field)| is_good(&field)));
    }
}

#[test]
fn lists_of_namespaces_begin_after_the_one_named() {
    let all = [1, 2, 5].map(NamespaceId);
    let page = lists::namespaces(all, NamespaceId(1)).unwrap();
    assert_eq!(page[..12], [2, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
    for last in [0xffff_fffe, u32::MAX] {
        let refused = lists::namespaces(all, NamespaceId(last));
        assert_eq!(refused, Err(Status::INVALID_NAMESPACE));
    }
    let many = (1..5000).map(NamespaceId);
    let page = lists::namespaces(many, NamespaceId(0)).unwrap();
    assert_eq!(page[4092..], 1024u32.to_le_bytes());
}

#[test]
fn lists_of_controllers_begin_at_the_one_named() {
    let page = lists::controllers([0, 3, 7].map(ControllerId), ControllerId(3));
    assert_eq!(page[..8], [2, 0, 3, 0, 7, 0, 0, 0]);
    let page = lists::controllers((0..4000).map(ControllerId), ControllerId(0));
    assert_eq!(page[..2], 2047u16.to_le_bytes());
}

#[test]
fn descriptors_name_a_namespace() {
    let name = NamespaceName {
        eui64: Some([1; 8]),
        nguid: None,
        uuid: Some([2; 16]),
    };
    let page = name.descriptors();
    assert_eq!(page[..4], [1, 8, 0, 0]);
    assert_eq!(page[12..17], [3, 16, 0, 0, 2]);
    assert_eq!(page[32..38], [4, 1, 0, 0, 0, 0]);
    assert_eq!(lists::command_sets()[..2], [1, 0]);
    let listed = |bytes: &[u8]| {
        let mut page = [0; 4096];
        page[..bytes.len()].copy_from_slice(bytes);
        let ids = lists::listed_controllers(&page);
        ids.map(|ids| ids.map(|id| id.0).collect::<Vec<_>>())
    };
    assert_eq!(listed(&[2, 0, 3, 0, 7, 1]), Ok(vec![3, 0x107]));
    let as_sent = lists::controllers([0, 3].map(ControllerId), ControllerId(0));
    assert_eq!(listed(&as_sent), Ok(vec![0, 3]));
    let refused: [&[u8]; 4] = [&[0, 0], &[2, 0, 3, 0, 3, 0], &[2, 0, 3, 0], &[0, 8]];
    for list in refused {
        assert_eq!(listed(list), Err(Status::CONTROLLER_LIST_INVALID));
    }
}

proptest! {
    #![proptest_config(lodger_testing::config(500))]

    /// Any text as assignment: taken or refused, and what was taken can be read back.
    #[test]
    fn any_text_is_an_assignment_or_an_error(
        index in 0..STRUCTURES.len(), field: usize, value in "[ -~]{0,40}|[0-9]{1,25}|0x[0-9a-f]{1,12}|\\PC{0,8}",
    ) {
        let structure = STRUCTURES[index];
        let names: Vec<_> = structure.all().collect();
        let (name, place) = &names[field % names.len()];
        let mut page = Page::new(structure);
        if page.assign(&format!("{name}={value}")).is_ok() {
            let mut again = Page::new(structure);
            for assignment in page.assignments() {
                again.assign(&assignment).unwrap();
            }
            prop_assert_eq!(again.bytes(), page.bytes());
            let outside = page.bytes().iter().enumerate().all(|(at, byte)| {
                *byte == 0 || (place.offset..place.offset + place.bytes).contains(&at)
            });
            prop_assert!(outside);
        }
        let _ = page.assign(&value);
    }
}
