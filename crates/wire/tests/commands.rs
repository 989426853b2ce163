//! Does every entry parse to what the standard says it means, or to the status it ends with?

use lodger_wire::command::feature::{
    AsyncEvents, Feature, FeatureId, NumberOfQueues, PowerTransition, Switch, TemperatureThreshold,
    Timestamp,
};
use lodger_wire::command::{
    AdminCommand, Cns, CreateSubmissionQueue, Erase, GetLogPage, IoCommand, NamespaceAttachment,
    NamespaceManagement, NewNamespace, QueueLimits, SanitizeAction, Transfer,
};
use lodger_wire::entry::SubmissionEntry;
use lodger_wire::hmb::HmbRequest;
use lodger_wire::lba::BlockSize;
use lodger_wire::opcode::{AdminOpcode, Direction, IoOpcode};
use lodger_wire::queue::Priority;
use lodger_wire::status::Status;
use lodger_wire::transfer::DataPointer;
use lodger_wire::{CommandId, ControllerId, Lba, NamespaceId, PageSize, QueueId};
use proptest::prelude::*;

fn entry(opcode: u8, dwords: &[(usize, u32)]) -> SubmissionEntry {
    let start = SubmissionEntry::new(opcode, CommandId(0x1234), NamespaceId(1));
    dwords.iter().fold(start, |entry, (index, value)| {
        entry.with_dword(*index, *value)
    })
}

fn admin(opcode: AdminOpcode, dwords: &[(usize, u32)]) -> Result<AdminCommand, Status> {
    let parsed = AdminCommand::parse(&entry(opcode.code(), dwords))?;
    assert_eq!(parsed.namespace, NamespaceId(1));
    Ok(parsed.command)
}

fn io(opcode: IoOpcode, dwords: &[(usize, u32)]) -> Result<IoCommand, Status> {
    IoCommand::parse(&entry(opcode.code(), dwords)).map(|parsed| parsed.command)
}

#[test]
fn what_all_commands_have_is_where_the_standard_has_it() {
    let entry = entry(2, &[(4, 5), (5, 6)]).with_prp(0x1122, 0x3344);
    assert_eq!((entry.opcode(), entry.command().0), (2, 0x1234));
    assert_eq!(entry.metadata_pointer(), 6 << 32 | 5);
    assert_eq!(entry.0[24], 0x22);
    assert_eq!(entry.0[32], 0x44);
    let (prp1, prp2) = (0x1122, 0x3344);
    assert_eq!(entry.data_pointer(), Ok(DataPointer::Prp { prp1, prp2 }));
}

#[test]
fn fused_commands_and_reserved_pointers_are_refused() {
    let parse = |flags| {
        let mut entry = entry(2, &[]);
        entry.0[1] = flags;
        let io = IoCommand::parse(&entry).map(|parsed| parsed.data);
        (io, AdminCommand::parse(&entry).map(|parsed| parsed.data))
    };
    for flags in [1, 2, 3, 0xc0] {
        assert_eq!(parse(flags).0, Err(Status::INVALID_FIELD), "{flags:#x}");
        assert_eq!(parse(flags).1, Err(Status::INVALID_FIELD), "{flags:#x}");
    }
    // Scatter gather lists are for I/O commands.
    for flags in [0x40, 0x80] {
        assert_eq!(parse(flags).0, Ok(DataPointer::Sgl([0; 16])));
        assert_eq!(parse(flags).1, Err(Status::INVALID_FIELD));
    }
    assert!(parse(0x3c).0.is_ok(), "reserved bits are not looked at");
}

#[test]
fn reads_and_writes_name_their_blocks() {
    let flags = 1 << 31 | 1 << 30 | 5 << 26 | 0xffff;
    let read = io(IoOpcode::Read, &[(10, 7), (11, 1), (12, flags), (13, 0x55)]);
    let Ok(IoCommand::Read(access)) = read else {
        panic!("{read:?}");
    };
    assert_eq!((access.start, access.blocks_z), (Lba(1 << 32 | 7), 0xffff));
    assert_eq!(access.range().blocks, 65536, "NLB 0xFFFF");
    assert!(access.force_unit_access && access.limited_retry);
    assert_eq!((access.protection, access.hints), (5, 0x55));
    let transfer = IoCommand::Read(access).transfer(BlockSize::KIB4);
    assert_eq!(
        (transfer.direction, transfer.bytes),
        (Direction::ToHost, 256 << 20)
    );
    let largest = BlockSize::from_lbads(31).unwrap();
    assert_eq!(IoCommand::Read(access).transfer(largest).bytes, 1 << 47);
    let write = io(IoOpcode::Write, &[(12, 1 << 20)]);
    assert_eq!(write, Err(Status::INVALID_FIELD), "directives");
    let Ok(IoCommand::WriteZeroes(zeroes)) = io(IoOpcode::WriteZeroes, &[(12, 1 << 25)]) else {
        panic!("write zeroes");
    };
    assert!(zeroes.deallocate);
}

#[test]
fn dataset_management_has_1_to_256_ranges() {
    let Ok(IoCommand::DatasetManagement(dsm)) =
        io(IoOpcode::DatasetManagement, &[(10, 0xff), (11, 4)])
    else {
        panic!("dataset management");
    };
    assert!(dsm.deallocate && !dsm.read && !dsm.write);
    let transfer = IoCommand::DatasetManagement(dsm).transfer(BlockSize::B512);
    assert_eq!((dsm.ranges(), transfer.bytes), (256, 4096));
}

const LIMITS: QueueLimits = QueueLimits {
    submission_id_max: QueueId(3),
    completion_id_max: QueueId(4),
    entries_max_z: 1023,
    vectors: 5,
    page: PageSize::MIN,
    entry_sizes: (6, 4),
};

fn completion_queue(dwords: &[(usize, u32)]) -> Result<u32, Status> {
    match admin(AdminOpcode::CreateCompletionQueue, dwords)? {
        AdminCommand::CreateCompletionQueue(create) => {
            create.checked(&LIMITS).map(|memory| memory.entries)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn completion_queues_are_made_within_limits() {
    let ok = [(6, 0x1000), (10, 1023 << 16 | 4), (11, 4 << 16 | 3)];
    assert_eq!(completion_queue(&ok), Ok(1024));
    let but = |index: usize, value: u32| {
        let dwords = ok.map(|(at, old)| (at, if at == index { value } else { old }));
        completion_queue(&dwords).unwrap_err()
    };
    assert_eq!(but(10, 1023 << 16), Status::QUEUE_ID_INVALID, "queue id 0");
    assert_eq!(but(10, 1023 << 16 | 5), Status::QUEUE_ID_INVALID);
    assert_eq!(but(10, 1), Status::QUEUE_SIZE_INVALID, "one entry");
    assert_eq!(but(10, 1024 << 16 | 1), Status::QUEUE_SIZE_INVALID);
    assert_eq!(but(10, 0xffff << 16 | 1), Status::QUEUE_SIZE_INVALID);
    assert_eq!(but(11, 5 << 16 | 3), Status::INTERRUPT_VECTOR_INVALID);
    assert_eq!(but(11, 2), Status::INVALID_FIELD, "in pieces");
    assert_eq!(but(6, 0x1004), Status::PRP_OFFSET_INVALID);
    assert_eq!(
        completion_queue(&[(7, u32::MAX), (6, 0xffff_f000), ok[1], ok[2]]),
        Err(Status::INVALID_FIELD)
    );
    // Without interrupts the vector does not count.
    assert_eq!(
        completion_queue(&[ok[0], ok[1], (11, 99 << 16 | 1)]),
        Ok(1024)
    );
}

#[test]
fn submission_queues_need_a_completion_queue() {
    let create = |second| {
        let dwords = [(10, 31 << 16 | 2), (11, second)];
        match admin(AdminOpcode::CreateSubmissionQueue, &dwords) {
            Ok(AdminCommand::CreateSubmissionQueue(create)) => create,
            other => panic!("{other:?}"),
        }
    };
    let queue = create(3 << 16 | 1 << 1 | 1);
    assert_eq!(
        (queue.queue, queue.completion_queue),
        (QueueId(2), QueueId(3))
    );
    assert_eq!(queue.priority, Priority::High);
    assert_eq!(queue.checked(&LIMITS).map(|memory| memory.entries), Ok(32));
    let beyond = CreateSubmissionQueue {
        queue: QueueId(4),
        ..queue
    };
    assert_eq!(beyond.checked(&LIMITS), Err(Status::QUEUE_ID_INVALID));
    for queue in [1, 5 << 16 | 1] {
        let refused = create(queue).checked(&LIMITS);
        assert_eq!(refused, Err(Status::COMPLETION_QUEUE_INVALID));
    }
    let sizes = QueueLimits {
        entry_sizes: (0, 0),
        ..LIMITS
    };
    assert_eq!(queue.checked(&sizes), Err(Status::QUEUE_SIZE_INVALID));
}

fn log_page(dwords: &[(usize, u32)]) -> Result<GetLogPage, Status> {
    match admin(AdminOpcode::GetLogPage, dwords)? {
        AdminCommand::GetLogPage(get) => Ok(get),
        other => panic!("{other:?}"),
    }
}

#[test]
fn log_pages_count_dwords_in_two_halves() {
    let first = 0xffff << 16 | 1 << 15 | 0x12 << 8 | 2;
    let get = log_page(&[(10, first), (11, 0x77 << 16 | 0xffff), (12, 8), (13, 1)]).unwrap();
    assert_eq!((get.page, get.specific, get.retain_event), (2, 0x12, true));
    assert_eq!(get.bytes(), 1 << 34, "NUMD widths");
    assert_eq!(get.specific_id, 0x77);
    assert_eq!(get.offset_bytes, 1 << 32 | 8);
    let transfer = AdminCommand::GetLogPage(get).transfer();
    assert_eq!(transfer.within(5, 4096), Err(Status::INVALID_FIELD));
    assert_eq!(log_page(&[(12, 2)]), Err(Status::INVALID_FIELD));
    assert_eq!(log_page(&[(14, 1 << 23)]), Err(Status::INVALID_FIELD));
    assert_eq!(log_page(&[(10, 2)]).unwrap().bytes(), 4);
}

#[test]
fn identify_names_structure_controller_and_command_set() {
    let identify = admin(AdminOpcode::Identify, &[(10, 9 << 16 | 6), (11, 2 << 24)]);
    let Ok(AdminCommand::Identify(identify)) = identify else {
        panic!("{identify:?}");
    };
    assert_eq!(identify.cns, Cns::CommandSetController);
    assert_eq!(
        (identify.controller, identify.command_set),
        (ControllerId(9), 2)
    );
    let unknown = admin(AdminOpcode::Identify, &[(10, 0x42)]);
    assert_eq!(unknown, Err(Status::INVALID_FIELD));
}

#[test]
fn commands_that_destroy_are_taken_as_meant() {
    let format = admin(AdminOpcode::FormatNvm, &[(10, 1 << 12 | 1 << 9 | 3)]);
    let Ok(AdminCommand::FormatNvm(format)) = format else {
        panic!("{format:?}");
    };
    assert_eq!((format.format, format.erase), (19, Erase::UserData));
    assert!(admin(AdminOpcode::FormatNvm, &[(10, 3 << 9)]).is_err());
    assert!(admin(AdminOpcode::FormatNvm, &[(10, 4 << 5)]).is_err());
    let sanitize = admin(AdminOpcode::Sanitize, &[(10, 1 << 8 | 3), (11, 0xaabb)]);
    let Ok(AdminCommand::Sanitize(sanitize)) = sanitize else {
        panic!("{sanitize:?}");
    };
    let (passes, pattern, invert) = (16, 0xaabb, true);
    assert_eq!(
        sanitize.action,
        SanitizeAction::Overwrite {
            passes,
            pattern,
            invert
        }
    );
    for action in [0, 5, 6, 7] {
        assert!(admin(AdminOpcode::Sanitize, &[(10, action)]).is_err());
    }
}

fn set(id: u32, second: u32) -> Result<Feature, Status> {
    match admin(AdminOpcode::SetFeatures, &[(10, id), (11, second)])? {
        AdminCommand::SetFeatures(set) => Ok(set.feature),
        other => panic!("{other:?}"),
    }
}

#[test]
fn features_have_their_values() {
    assert_eq!(
        set(7, 15 << 16 | 7),
        Ok(Feature::NumberOfQueues(NumberOfQueues {
            submission_z: 7,
            completion_z: 15
        }))
    );
    assert_eq!(set(7, 0xffff), Err(Status::INVALID_FIELD));
    assert_eq!(set(7, 0xffff << 16), Err(Status::INVALID_FIELD));
    assert_eq!(set(6, 0xff), Ok(Feature::VolatileWriteCache(Switch(true))));
    let threshold = TemperatureThreshold {
        kelvin: 343,
        sensor: 0,
        is_under: true,
    };
    assert_eq!(
        set(4, 1 << 20 | 343),
        Ok(Feature::TemperatureThreshold(threshold))
    );
    assert_eq!(set(4, 2 << 20), Err(Status::INVALID_FIELD));
    assert_eq!(set(4, 9 << 16), Err(Status::INVALID_FIELD));
    let events = AsyncEvents(1 << 8 | 1 << 1);
    assert_eq!(set(0xb, 0x102), Ok(Feature::AsyncEvents(events)));
    assert!(events.namespaces_changed() && !events.firmware_activation());
    assert_eq!(events.critical_warnings(), 2);
    assert_eq!(set(0xc0, 0), Err(Status::INVALID_FIELD));
    assert_eq!(set(3, 0), Err(Status::INVALID_FIELD));
}

#[test]
fn linux_grants_host_memory_by_set_features() {
    let dwords = [
        (10, 0xd),
        (11, 3),
        (12, 8192),
        (13, 0x8000),
        (14, 1),
        (15, 8),
    ];
    let Ok(AdminCommand::SetFeatures(set)) = admin(AdminOpcode::SetFeatures, &dwords) else {
        panic!("set features");
    };
    let request = HmbRequest {
        enable: true,
        memory_return: true,
        restrict_non_operational: false,
        size_pages: 8192,
        list_address: 0x1_0000_8000,
        descriptors: 8,
    };
    assert_eq!(set.feature, Feature::HostMemoryBuffer(request));
    assert_eq!(set.transfer(), Transfer::NONE);
    let get = admin(AdminOpcode::GetFeatures, &[(10, 0xd)]).unwrap();
    assert_eq!(get.transfer().bytes, 4096);
    let capabilities = admin(AdminOpcode::GetFeatures, &[(10, 3 << 8 | 0xd)]).unwrap();
    assert_eq!(capabilities.transfer(), Transfer::NONE);
    assert!(admin(AdminOpcode::GetFeatures, &[(10, 4 << 8 | 0xd)]).is_err());
}

#[test]
fn features_with_data_bring_as_much_as_the_standard_says() {
    let bytes = |id: u32, second| {
        let set = admin(AdminOpcode::SetFeatures, &[(10, id), (11, second)]).unwrap();
        set.transfer().bytes
    };
    assert_eq!(
        (bytes(0xc, 1), bytes(0xe, 0), bytes(0x16, 0)),
        (256, 8, 512)
    );
    assert_eq!((bytes(0x81, 0), bytes(0x81, 1)), (8, 16));
    let (state, idle_ms) = (4, 2000);
    let transition = PowerTransition { state, idle_ms };
    assert_eq!(transition.encode(), 4 << 3 | 2000 << 8);
    assert_eq!(PowerTransition::decode(transition.encode()), transition);
    let timestamp = Timestamp::decode(&[1, 0, 0, 0, 0, 1, 2, 0]);
    assert_eq!(
        (timestamp.ms.number(), timestamp.attributes),
        (1 << 40 | 1, 2)
    );
}

#[test]
fn aborts_name_queue_and_command() {
    let (queue, command) = (QueueId(3), CommandId(0x99));
    let abort = admin(AdminOpcode::Abort, &[(10, 0x99 << 16 | 3)]);
    assert_eq!(abort, Ok(AdminCommand::Abort { queue, command }));
}

#[test]
fn vendors_commands_come_through_whole() {
    let raw = entry(0xc2, &[(10, 16), (15, 77)]);
    let Ok(parsed) = AdminCommand::parse(&raw) else {
        panic!("a vendor's command");
    };
    let AdminCommand::Vendor(vendor) = parsed.command else {
        panic!("{parsed:?}");
    };
    assert_eq!(vendor.entry, raw);
    assert_eq!(vendor.dwords(), [16, 0, 0, 0, 0, 77]);
    let transfer = parsed.command.transfer();
    assert_eq!(
        (transfer.direction, transfer.bytes),
        (Direction::ToHost, 64)
    );
    assert!(matches!(
        IoCommand::parse(&entry(0x81, &[])).map(|parsed| parsed.command),
        Ok(IoCommand::Vendor(_))
    ));
}

#[test]
fn namespaces_are_made_and_attached_as_the_standard_has_it() {
    let manage = |dwords: &[(usize, u32)]| admin(AdminOpcode::NamespaceManagement, dwords);
    let create = manage(&[(11, 2 << 24)]).expect("it creates");
    let asked = NamespaceManagement::Create { command_set: 2 };
    assert_eq!(create, AdminCommand::NamespaceManagement(asked));
    let from_host = Transfer {
        direction: Direction::FromHost,
        bytes: 4096,
    };
    assert_eq!(create.transfer(), from_host);
    let delete = manage(&[(10, 1)]).expect("it deletes");
    assert_eq!(delete.transfer(), Transfer::NONE);
    let attach = |select| admin(AdminOpcode::NamespaceAttachment, &[(10, select)]);
    for (select, asked) in [
        (0, NamespaceAttachment::Attach),
        (1, NamespaceAttachment::Detach),
    ] {
        let command = attach(select).expect("it attaches");
        assert_eq!(command, AdminCommand::NamespaceAttachment(asked));
        assert_eq!(command.transfer(), from_host);
    }
    for select in 2..16 {
        assert_eq!(manage(&[(10, select)]), Err(Status::INVALID_FIELD));
        assert_eq!(attach(select), Err(Status::INVALID_FIELD));
    }
    let mut data = [0; 4096];
    (data[0], data[8], data[26], data[30]) = (7, 6, 0b0110_0001, 1);
    let new = NewNamespace::decode(&data);
    assert_eq!((new.size_blocks, new.capacity_blocks), (7, 6));
    assert_eq!((new.format_index(), new.sharing), (0x31, 1));
}

#[test]
fn opcodes_that_are_not_known_have_their_status() {
    for code in 0..=255 {
        let admin = AdminCommand::parse(&entry(code, &[(10, 1)]));
        let is_known =
            code >= 0xc0 || AdminOpcode::from_code(code).is_some_and(AdminCommand::is_known);
        assert_eq!(admin == Err(Status::INVALID_OPCODE), !is_known, "{code:#x}");
        let io = IoCommand::parse(&entry(code, &[]));
        let is_known = code >= 0x80 || IoOpcode::from_code(code).is_some_and(IoCommand::is_known);
        assert_eq!(io == Err(Status::INVALID_OPCODE), !is_known, "{code:#x}");
    }
}

/// Bytes of which the first, the opcode, is often one that there is.
fn entries() -> impl Strategy<Value = SubmissionEntry> {
    let codes = AdminOpcode::ALL.iter().map(|opcode| opcode.code());
    let codes: Vec<u8> = codes
        .chain(IoOpcode::ALL.iter().map(|opcode| opcode.code()))
        .collect();
    let halves = (any::<[u8; 32]>(), any::<[u8; 32]>());
    (
        halves,
        prop::option::of(prop::sample::select(codes)),
        0..32u32,
    )
        .prop_map(|((low, high), code, id)| {
            let mut bytes = [0; 64];
            bytes[..32].copy_from_slice(&low);
            bytes[32..].copy_from_slice(&high);
            if let Some(code) = code {
                (bytes[0], bytes[1]) = (code, bytes[1] & 0x40);
                return SubmissionEntry(bytes).with_dword(10, id);
            }
            SubmissionEntry(bytes)
        })
}

proptest! {
    #![proptest_config(lodger_testing::config(2000))]

    /// Any 64 bytes are a command or have a status, and what they move can be said.
    #[test]
    fn every_entry_is_a_command_or_a_status(entry in entries()) {
        match AdminCommand::parse(&entry) {
            Ok(parsed) => {
                let transfer = parsed.command.transfer();
                prop_assert!(transfer.bytes <= 1 << 34);
                let _ = transfer.within(entry.0[2], 4096);
                match parsed.command {
                    AdminCommand::CreateSubmissionQueue(create) => drop(create.checked(&LIMITS)),
                    AdminCommand::CreateCompletionQueue(create) => drop(create.checked(&LIMITS)),
                    _ => {}
                }
            }
            Err(status) => prop_assert!(!status.is_success()),
        }
        match IoCommand::parse(&entry) {
            Ok(parsed) => prop_assert!(parsed.command.transfer(BlockSize::KIB4).bytes <= 1 << 34),
            Err(status) => prop_assert!(!status.is_success()),
        }
    }

    /// A feature's value, set and asked for, is the same; bits that it has not are gone.
    #[test]
    fn features_that_are_set_can_be_asked_for(index in 0..FeatureId::ALL.len(), dword: u32) {
        let id = FeatureId::ALL[index];
        if let Ok(feature) = set(id as u32, dword) {
            prop_assert_eq!(feature.id(), id);
            let once = feature.dword();
            prop_assert_eq!(once & !dword, 0);
            prop_assert_eq!(set(id as u32, once), Ok(feature));
        }
    }
}
