//! What the drive says of itself: Identify's structures, from the drive file.

use super::namespaces::Namespaces;
use lodger_core::DriveSpec;
use lodger_core::spec::{LinkProtocol, SLOT_BYTES};
use lodger_wire::command::{Cns, Identify};
use lodger_wire::hmb::{HmbLimits, IDENTIFY_UNIT_BYTES};
use lodger_wire::identify::command_set::{self, DatasetLimits};
use lodger_wire::identify::controller::{self, Controller, PowerState};
use lodger_wire::identify::{AssignError, PAGE_BYTES, Page};
use lodger_wire::identify::{lists, namespace};
use lodger_wire::lba::BlockSize;
use lodger_wire::registers::Version;
use lodger_wire::status::Status;
use lodger_wire::{ControllerId, NamespaceId};

/// The one controller there is.
pub(super) const CONTROLLER: ControllerId = ControllerId(0);
/// Most data of a command where the drive file does not say: 2 to its power, pages of 4 KiB; 512 KiB.
const MDTS: u8 = 7;
/// Entries of the error log, 0-based.
pub const ERROR_ENTRIES_Z: u8 = 63;
/// Warning and critical temperature, kelvins: 70 and 80 degrees Celsius.
pub(super) const TEMPERATURES_KELVIN: (u16, u16) = (343, 353);
/// OACS: Format NVM and Doorbell Buffer Config.
const ADMIN_COMMANDS: u16 = 1 << 1 | 1 << 8;
/// OACS: Namespace Management and Attachment.
const NAMESPACE_COMMANDS: u16 = 1 << 3;
/// SANICAP: crypto erase and block erase; blocks are always deallocated, and the media is not modified once a sanitize is over
/// (NODMMAS 01b; 00b says nothing, which controllers after NVMe 1.3 must not).
const SANITIZE: u32 = 1 | 1 << 1 | 1 << 29 | 1 << 30;
/// FNA: a format deletes keys, too.
const FORMAT_KEYS: u8 = 1 << 2;
/// FNA: what a format erases are the data of all namespaces, as they share flash.
const ERASES_ALL: u8 = 1 << 1;
/// Power states: one, and one without I/O commands, that is left at once unless the user says otherwise.
const POWER_STATES: [PowerState; 2] = [
    POWER_STATE,
    PowerState {
        flags: 2,
        ..POWER_STATE
    },
];
const POWER_STATE: PowerState = PowerState {
    power_max: 0,
    flags: 0,
    entry_us: 0,
    exit_us: 0,
    relative: [0; 4],
    idle_power: 0,
    idle_unit: 0,
    active_power: 0,
    active_unit: 0,
};
/// Vendor of the PCI function and of the structure. A placeholder: not held against the list of the PCI-SIG.
pub const VENDOR: u16 = 0x1d0d;

/// What a drive says of itself.
#[derive(Debug)]
pub struct Identity {
    controller: Page,
    /// What hosts see of the drive's logical space.
    pub namespaces: Namespaces,
    /// Most data of a command: 2 to its power, pages of 4 KiB.
    pub mdts: u8,
    /// Host memory it asks for.
    pub host_memory: HmbLimits,
    /// Whether a power cut loses writes that were not flushed.
    pub has_volatile_cache: bool,
    /// Whether it loses records of what was deallocated until a flush has them written; writes may be safe already.
    pub has_volatile_records: bool,
}

/// A drive that cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unservable {
    /// It speaks UFS.
    #[error("the drive speaks UFS: only NVMe drives can be served")]
    Ufs,
    /// Its map in host memory cannot be kept as bytes.
    #[error("the drive keeps its map in host memory compressed, or in less than 4 bytes an entry")]
    MapInHostMemory,
    /// Its byte window would have to be memory of the guest.
    #[error(
        "its byte window is memory of the host (`role.window.tier`), which a guest would have of its own and not through \
         the drive: a live drive has a window behind a base address register"
    )]
    WindowOfHost,
    /// Blocks of a size that drives do not have.
    #[error("blocks must have 512 or 4096 bytes, found `{0}`")]
    Block(u32),
    /// More namespaces than the drive can have.
    #[error("there must be at most {most} namespaces, found {found}")]
    #[allow(missing_docs)]
    TooManyNamespaces { found: usize, most: u32 },
    /// A namespace that is not made of whole pages of the drive.
    #[error("a namespace must have a multiple of 4 KiB, and some, found {0} bytes")]
    NamespaceSize(u64),
    /// A namespace for which there is no room.
    #[error("a namespace of {bytes} bytes does not fit: {left} bytes are left of the drive")]
    #[allow(missing_docs)]
    NamespaceTooLarge { bytes: u64, left: u64 },
    /// Calls of a byte window would be about blocks of several.
    #[error(
        "a drive with a byte window has one namespace: its calls do not say which they are about"
    )]
    WindowOfSeveral,
}

fn limits(spec: &DriveSpec) -> HmbLimits {
    let Some(hmb) = &spec.tiers.hmb else {
        return HmbLimits::default();
    };
    let units = |bytes: u64| u32::try_from(bytes.div_ceil(IDENTIFY_UNIT_BYTES)).unwrap_or(u32::MAX);
    HmbLimits {
        preferred_4kib: units(hmb.preferred_bytes),
        min_4kib: units(hmb.min_bytes),
        descriptor_min_4kib: units(hmb.min_descriptor_bytes),
        descriptors_max: u16::try_from(hmb.max_descriptors).unwrap_or(u16::MAX),
        restrictable: true,
    }
}

/// Most data of a command of a drive: 2 to its power, pages of 4 KiB.
fn mdts(spec: &DriveSpec) -> u8 {
    let pages = |bytes: u64| bytes / SLOT_BYTES;
    let most = spec.controller.transfer_bytes_max;
    most.map_or(MDTS, |bytes| pages(bytes).ilog2() as u8)
}

/// Whether a drive can be served at all.
///
/// # Errors
/// Why not.
pub fn check(spec: &DriveSpec) -> Result<(), Unservable> {
    if spec.link.protocol == LinkProtocol::Ufs {
        return Err(Unservable::Ufs);
    }
    let window = spec.roles.window.as_ref();
    if window.is_some_and(|window| window.tier.is_cacheable()) {
        return Err(Unservable::WindowOfHost);
    }
    let mut granted = spec
        .roles
        .map
        .tiers
        .iter()
        .filter(|map| map.tier.is_granted());
    let is_flat = granted.all(|map| {
        map.encoding == lodger_core::spec::Encoding::Flat && map.entry_millibytes >= 4000
    });
    match is_flat {
        true => Ok(()),
        false => Err(Unservable::MapInHostMemory),
    }
}

fn bytes_of(page: Option<&Page>) -> [u8; PAGE_BYTES] {
    page.map_or([0; PAGE_BYTES], |page| *page.bytes())
}

impl Identity {
    /// That of a drive, with blocks of a size, and namespaces of these sizes in bytes (none: one that has all);
    /// `serial` tells it from others of its kind.
    ///
    /// # Errors
    /// If the drive cannot be divided into such namespaces.
    pub fn new(
        spec: &DriveSpec,
        block: BlockSize,
        sizes_bytes: &[u64],
        serial: u64,
    ) -> Result<Self, Unservable> {
        let most = spec.controller.namespaces_max;
        if spec.roles.window.is_some() && (sizes_bytes.len() > 1 || most.is_some()) {
            return Err(Unservable::WindowOfSeveral);
        }
        let mut eui64 = serial.to_be_bytes();
        eui64[0] |= 2; // Locally administered.
        let capacity_bytes = spec.capacity_bytes;
        let namespaces = Namespaces::new(sizes_bytes, most, capacity_bytes, block, eui64)?;
        let host_memory = limits(spec);
        let has_volatile_cache = spec.has_volatile_cache();
        let serial_text = format!("LODGER{serial:014X}");
        let subsystem_name = format!("nqn.2026-01.io.lodger:{serial:x}");
        let mut controller_page = Controller {
            vendor: VENDOR,
            serial: &serial_text,
            model: &format!("Lodger {}", spec.name),
            firmware: env!("CARGO_PKG_VERSION"),
            ieee_oui: 0,
            subsystem_name: &subsystem_name,
            controller: CONTROLLER,
            version: Version::V2_0,
            mdts: mdts(spec),
            namespaces_max: namespaces.id_max(),
            capacity_bytes: capacity_bytes.into(),
            host_memory,
            volatile_write_cache: has_volatile_cache,
            doorbell_buffers: true,
            scatter_gather: true,
            sanitize: SANITIZE,
            atomic_blocks_z: 0,
            error_entries_z: ERROR_ENTRIES_Z,
            power_states: &POWER_STATES,
            temperatures_kelvin: TEMPERATURES_KELVIN,
        }
        .page();
        let commands = match namespaces.are_managed() {
            true => ADMIN_COMMANDS | NAMESPACE_COMMANDS,
            false => ADMIN_COMMANDS,
        };
        let format = match namespaces.id_max() {
            1 => FORMAT_KEYS,
            _ => FORMAT_KEYS | ERASES_ALL,
        };
        controller_page
            .set(controller::OACS, commands)
            .set(controller::UNVMCAP, namespaces.unallocated_bytes())
            .set(controller::FNA, format)
            .set(controller::EDSTT, 0u8);
        Ok(Identity {
            controller: controller_page,
            namespaces,
            mdts: mdts(spec),
            host_memory,
            has_volatile_cache,
            has_volatile_records: !spec.tiers.survives_power_cut(spec.roles.write_buffer.tier),
        })
    }

    /// Identify Controller.
    #[must_use]
    pub fn controller(&self) -> &Page {
        &self.controller
    }

    /// Power states there are.
    #[must_use]
    pub fn power_states(&self) -> u8 {
        let last = self.controller.number(controller::NPSS) as u8;
        last.min(controller::POWER_STATES_MAX as u8 - 1) + 1
    }

    /// A power state.
    #[must_use]
    pub fn power_state(&self, state: u8) -> PowerState {
        controller::power_state(&self.controller, state.into())
    }

    /// Sets a field of Identify Controller or Identify Namespace (`FIELD=VALUE`), whatever becomes of it: what
    /// the drive asks for as host memory is then what it says.
    ///
    /// # Errors
    /// If there is no such field in these two, or it cannot be so.
    pub fn assign(&mut self, assignment: &str) -> Result<(), AssignError> {
        let name = assignment.split('=').next().unwrap_or_default();
        let in_namespace = namespace::STRUCTURE.find(name.trim()).is_ok();
        match in_namespace && controller::STRUCTURE.find(name.trim()).is_err() {
            true => self.namespaces.assign(assignment)?,
            false => self.controller.assign(assignment)?,
        }
        let number = |field| self.controller.number(field) as u32;
        self.host_memory = HmbLimits {
            preferred_4kib: number(controller::HMPRE),
            min_4kib: number(controller::HMMIN),
            descriptor_min_4kib: number(controller::HMMINDS),
            descriptors_max: number(controller::HMMAXD) as u16,
            ..self.host_memory
        };
        Ok(())
    }

    /// What Identify answers (Base 2.0 §5.17).
    ///
    /// # Errors
    /// The status it ends with.
    pub fn answer(
        &self,
        identify: &Identify,
        namespace: NamespaceId,
    ) -> Result<[u8; PAGE_BYTES], Status> {
        use Cns::{
            ActiveNamespaces, AllocatedNamespace, AllocatedNamespaces, AttachedControllers,
            CommandSetActiveNamespaces, CommandSetController, CommandSetNamespace, CommandSets,
            Controllers, IndependentNamespace, NamespaceDescriptors,
        };
        let (cns, all) = (identify.cns, &self.namespaces);
        let is_of_command_set = matches!(
            cns,
            CommandSetNamespace | CommandSetController | CommandSetActiveNamespaces
        );
        if is_of_command_set && identify.command_set != 0 {
            return Err(Status::INVALID_FIELD);
        }
        Ok(match cns {
            Cns::Controller => *self.controller.bytes(),
            // What all namespaces have in common is asked of the broadcast value.
            Cns::Namespace if namespace == NamespaceId::ALL => *self.namespaces.common().bytes(),
            // Of what is not there, or not attached, zeros (§5.17.2.1).
            Cns::Namespace => bytes_of(all.active(namespace)?.map(|one| &one.page)),
            AllocatedNamespace => bytes_of(all.allocated(namespace)?.map(|one| &one.page)),
            NamespaceDescriptors => all.get(namespace)?.name.descriptors(),
            ActiveNamespaces | CommandSetActiveNamespaces => {
                let active = all.iter().filter(|(_, one)| one.is_active());
                lists::namespaces(active.map(|(id, _)| id), namespace)?
            }
            AllocatedNamespaces => lists::namespaces(all.iter().map(|(id, _)| id), namespace)?,
            CommandSetNamespace => {
                all.active(namespace)?;
                *command_set::namespace_page().bytes()
            }
            CommandSetController => *command_set::controller_page(DatasetLimits::default()).bytes(),
            IndependentNamespace => bytes_of(all.active(namespace)?.map(|one| &one.independent)),
            AttachedControllers => {
                let one = all.allocated(namespace)?.ok_or(Status::INVALID_FIELD)?;
                let attached = one.is_active().then_some(CONTROLLER);
                lists::controllers(attached, identify.controller)
            }
            Controllers => lists::controllers([CONTROLLER], identify.controller),
            CommandSets => lists::command_sets(),
        })
    }

    /// Whether it may work in the background in power states without I/O at the price of more power (CTRATT, NOPSPM).
    pub(super) fn has_permissive_mode(&self) -> bool {
        self.controller.number(controller::CTRATT) >> 1 & 1 == 1
    }

    /// Blocks of all namespaces.
    #[must_use]
    pub fn used_blocks(&self) -> u64 {
        let namespaces = self.namespaces.iter();
        namespaces.map(|(_, namespace)| namespace.size_blocks).sum()
    }

    /// Namespaces were made or deleted: what is left for others.
    pub(super) fn namespaces_changed(&mut self) {
        let left = self.namespaces.unallocated_bytes();
        self.controller.set(controller::UNVMCAP, left);
    }
}
