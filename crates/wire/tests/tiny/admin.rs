//! Admin commands of the small controller.

use super::{BLOCKS, End, LIMITS, MDTS, QUEUES, Tiny};
use lodger_wire::command::feature::{Feature, FeatureId, NumberOfQueues};
use lodger_wire::command::{AdminCommand, Cns, GetFeatures, Parsed, QueueLimits, SetFeatures};
use lodger_wire::entry::{Outcome, SubmissionEntry};
use lodger_wire::hmb::{HmbAction, HmbAttributes, HmbRequest, usable_ranges};
use lodger_wire::identify::command_set::{self, DatasetLimits};
use lodger_wire::identify::controller::{Controller, PowerState};
use lodger_wire::identify::lists::{self, NamespaceName};
use lodger_wire::identify::namespace::{Format, Namespace};
use lodger_wire::lba::BlockSize;
use lodger_wire::log::{Health, LogId, OcpHealth, answer, command_effects, supported_pages};
use lodger_wire::queue::{CompletionQueue, ShadowDoorbells, SubmissionQueue};
use lodger_wire::registers::Version;
use lodger_wire::status::Status;
use lodger_wire::transfer::DataPointer;
use lodger_wire::{ControllerId, NamespaceId, QueueId};

const FORMATS: [Format; 1] = [Format {
    block: BlockSize::B512,
    performance: 0,
}];

pub(super) fn serve(tiny: &mut Tiny, entry: &SubmissionEntry) -> Result<End, Status> {
    let parsed = AdminCommand::parse(entry)?;
    let transfer = parsed.command.transfer();
    transfer.within(MDTS, tiny.page.bytes())?;
    let outcome = match parsed.command {
        AdminCommand::AsyncEventRequest => return Ok(End::Later),
        AdminCommand::Identify(identify) => {
            let page = structure(identify.cns, parsed.namespace, identify.controller)?;
            parsed.data.write(&tiny.memory, tiny.page, &page)?;
            Outcome::SUCCESS
        }
        AdminCommand::GetLogPage(get) => {
            let page = match LogId::from_code(get.page)? {
                LogId::SupportedPages => supported_pages().to_vec(),
                LogId::Health => Health::default().encode().to_vec(),
                LogId::OcpHealth => OcpHealth::new().encode().to_vec(),
                LogId::CommandEffects => command_effects(&[], &[]).to_vec(),
                _ => vec![0; 64],
            };
            answer(&page, &get, &parsed.data, &tiny.memory, tiny.page)?;
            Outcome::SUCCESS
        }
        AdminCommand::SetFeatures(set) => set_features(tiny, &set, &parsed.data)?,
        AdminCommand::GetFeatures(get) => get_features(tiny, &get, &parsed.data)?,
        AdminCommand::DoorbellBufferConfig => {
            let DataPointer::Prp { prp1, prp2 } = parsed.data else {
                return Err(Status::INVALID_FIELD);
            };
            let stride = tiny.registers.capabilities().doorbell_stride_bytes();
            tiny.shadows = Some(ShadowDoorbells::new(prp1, prp2, tiny.page, stride)?);
            Outcome::SUCCESS
        }
        AdminCommand::Abort { .. } => Outcome::with_result(1),
        AdminCommand::FirmwareDownload(_) => {
            let mut image = vec![0; transfer.bytes as usize];
            parsed.data.read(&tiny.memory, tiny.page, &mut image)?;
            Outcome::SUCCESS
        }
        AdminCommand::Vendor(_) => return Err(Status::INVALID_OPCODE),
        _ => queues(tiny, &parsed)?,
    };
    Ok(End::Now(outcome))
}

fn queues(tiny: &mut Tiny, parsed: &Parsed<AdminCommand>) -> Result<Outcome, Status> {
    let limits = QueueLimits {
        submission_id_max: QueueId(QUEUES),
        completion_id_max: QueueId(QUEUES),
        entries_max_z: tiny.registers.capabilities().queue_entries_max_z,
        vectors: QUEUES + 1,
        page: tiny.page,
        entry_sizes: tiny.registers.io_entry_sizes(),
    };
    match parsed.command {
        AdminCommand::CreateCompletionQueue(create) => {
            let memory = create.checked(&limits)?;
            let place = &mut tiny.completions[usize::from(create.queue.0)];
            if place.is_some() {
                return Err(Status::QUEUE_ID_INVALID);
            }
            tiny.epoch += 1;
            let queue = CompletionQueue::new(create.queue, memory, create.vector, tiny.epoch);
            *place = Some(queue);
        }
        AdminCommand::CreateSubmissionQueue(create) => {
            let memory = create.checked(&limits)?;
            let completion = create.completion_queue;
            let place = &mut tiny.submissions[usize::from(create.queue.0)];
            if place.is_some() {
                return Err(Status::QUEUE_ID_INVALID);
            }
            if tiny.completions[usize::from(completion.0)].is_none() {
                return Err(Status::COMPLETION_QUEUE_INVALID);
            }
            let queue = SubmissionQueue::new(create.queue, memory, completion, create.priority);
            *place = Some(queue);
        }
        AdminCommand::DeleteSubmissionQueue(QueueId(id @ 1..=QUEUES)) => {
            let queue = tiny.submissions[usize::from(id)].take();
            queue.ok_or(Status::QUEUE_ID_INVALID)?;
        }
        AdminCommand::DeleteCompletionQueue(QueueId(id @ 1..=QUEUES)) => {
            let uses = |queue: &&SubmissionQueue| queue.completion_queue() == QueueId(id);
            if tiny.submissions.iter().flatten().any(|queue| uses(&queue)) {
                return Err(Status::QUEUE_DELETION_INVALID);
            }
            let queue = tiny.completions[usize::from(id)].take();
            queue.ok_or(Status::QUEUE_ID_INVALID)?;
        }
        AdminCommand::DeleteSubmissionQueue(_) | AdminCommand::DeleteCompletionQueue(_) => {
            return Err(Status::QUEUE_ID_INVALID);
        }
        _ => {} // Done at once, as nothing changes.
    }
    Ok(Outcome::SUCCESS)
}

fn set_features(tiny: &mut Tiny, set: &SetFeatures, data: &DataPointer) -> Result<Outcome, Status> {
    let mut bytes = [0; 512];
    let bytes = &mut bytes[..set.transfer().bytes as usize];
    data.read(&tiny.memory, tiny.page, bytes)?;
    match &set.feature {
        Feature::NumberOfQueues(_) => {
            let granted = Feature::NumberOfQueues(NumberOfQueues {
                submission_z: QUEUES - 1,
                completion_z: QUEUES - 1,
            });
            Ok(Outcome::with_result(granted.dword()))
        }
        Feature::HostMemoryBuffer(request) => host_memory(tiny, request),
        _ if set.save => Err(Status::FEATURE_NOT_SAVEABLE),
        _ => Ok(Outcome::SUCCESS),
    }
}

fn host_memory(tiny: &mut Tiny, request: &HmbRequest) -> Result<Outcome, Status> {
    match tiny.hmb.set(request, &LIMITS)? {
        HmbAction::Enable => {
            tiny.host_ranges = usable_ranges(&tiny.memory, request, &LIMITS, tiny.page)?;
            tiny.hmb.enabled(request);
        }
        HmbAction::Drain => tiny.host_ranges.clear(),
        HmbAction::None => {}
    }
    Ok(Outcome::SUCCESS)
}

fn get_features(tiny: &Tiny, get: &GetFeatures, data: &DataPointer) -> Result<Outcome, Status> {
    let (mut dword, mut bytes) = (0, [0; HmbAttributes::BYTES]);
    if get.id == FeatureId::HostMemoryBuffer {
        let (says, attributes) = tiny.hmb.get(false);
        (dword, bytes) = (says, attributes.encode());
    }
    let bytes = &bytes[..get.transfer().bytes as usize];
    data.write(&tiny.memory, tiny.page, bytes)?;
    Ok(Outcome::with_result(dword))
}

fn structure(cns: Cns, id: NamespaceId, controller: ControllerId) -> Result<[u8; 4096], Status> {
    let only = NamespaceId(1);
    let namespace = Namespace {
        size_blocks: BLOCKS as u64,
        used_blocks: BLOCKS as u64,
        formats: &FORMATS,
        format: 0,
        preferred: None,
        eui64: Some([1; 8]),
        nguid: None,
        deallocated_is_zero: true,
        unwritten_errors: false,
        shared: false,
        write_protected: false,
        capacity_bytes: BLOCKS as u128 * 512,
    };
    let needs_one = matches!(
        cns,
        Cns::Namespace | Cns::NamespaceDescriptors | Cns::CommandSetNamespace
    );
    if needs_one && id != only {
        return Err(Status::INVALID_NAMESPACE);
    }
    Ok(match cns {
        Cns::Controller => *controller_page().bytes(),
        Cns::Namespace | Cns::AllocatedNamespace => *namespace.page().bytes(),
        Cns::NamespaceDescriptors => NamespaceName {
            eui64: namespace.eui64,
            ..NamespaceName::default()
        }
        .descriptors(),
        Cns::ActiveNamespaces | Cns::AllocatedNamespaces | Cns::CommandSetActiveNamespaces => {
            lists::namespaces([only], id)?
        }
        Cns::CommandSetNamespace => *command_set::namespace_page().bytes(),
        Cns::CommandSetController => {
            *command_set::controller_page(DatasetLimits::default()).bytes()
        }
        Cns::IndependentNamespace => *command_set::independent_page(&namespace, true).bytes(),
        Cns::AttachedControllers | Cns::Controllers => {
            lists::controllers([ControllerId(0)], controller)
        }
        Cns::CommandSets => lists::command_sets(),
    })
}

fn controller_page() -> lodger_wire::identify::Page {
    Controller {
        vendor: 0x1179,
        serial: "1",
        model: "tiny",
        firmware: "1",
        ieee_oui: 0,
        subsystem_name: "nqn.2026-01.org.example:tiny",
        controller: ControllerId(0),
        version: Version::V2_0,
        mdts: MDTS,
        namespaces_max: 1,
        capacity_bytes: BLOCKS as u128 * 512,
        host_memory: LIMITS,
        volatile_write_cache: false,
        doorbell_buffers: true,
        scatter_gather: true,
        sanitize: 0,
        atomic_blocks_z: 0,
        error_entries_z: 0,
        power_states: &[PowerState::default()],
        temperatures_kelvin: (350, 360),
    }
    .page()
}
