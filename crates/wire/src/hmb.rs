//! The Host Memory Buffer: what a controller asks for, what a host grants, and the rules between them (Base
//! 2.0 §8.9 and §5.27.1.10; restricted access of TP4104).
//!
//! Two units that are easy to mistake: what Identify Controller says counts 4 KiB; what Set Features and the
//! descriptors say counts memory pages (CC.MPS).

use crate::ids::PageSize;
use crate::layout::layout;
use crate::memory::GuestMemory;
use crate::status::Status;

/// Unit of what Identify Controller says, bytes.
pub const IDENTIFY_UNIT_BYTES: u64 = 4096;
/// Bytes of a descriptor.
const DESCRIPTOR_BYTES: usize = HmbDescriptor::BYTES;
/// Most descriptors that are looked at, whatever the host says: what HMMAXD can hold.
const DESCRIPTORS_MAX: u32 = 65535;

layout! {
    /// An entry of the host's list (§5.27.1.10).
    pub struct HmbDescriptor: 16 {
        /// BADD: first byte, aligned to memory pages.
        0 => address: u64,
        /// BSIZE: length, memory pages; 0: to be skipped.
        8 => pages: u32,
    }
}

layout! {
    /// What Get Features 0Dh returns as data (§5.27.1.10).
    pub struct HmbAttributes: 4096 {
        /// HSIZE: size granted, memory pages.
        0 => size_pages: u32,
        /// HMDLAL: address of the list, low half.
        4 => list_low: u32,
        /// HMDLAU: high half.
        8 => list_high: u32,
        /// HMDLEC: entries of the list.
        12 => descriptors: u32,
    }
}

/// What a controller asks for, as Identify Controller has it (§5.17.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HmbLimits {
    /// HMPRE: what it would like to have, 4 KiB; 0: it has no use for host memory.
    pub preferred_4kib: u32,
    /// HMMIN: what it requests at least, 4 KiB. A grant of less is no error; what it is good for, the drive says.
    pub min_4kib: u32,
    /// HMMINDS: shortest piece it can use, 4 KiB; 0: any.
    pub descriptor_min_4kib: u32,
    /// HMMAXD: most pieces it can use; 0: any number.
    pub descriptors_max: u16,
    /// CTRATT bit 17 (HMBR): whether a host may keep it from its memory in power states in which it does
    /// no work.
    pub restrictable: bool,
}

/// What Set Features 0Dh asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HmbRequest {
    /// EHM: the memory is the controller's from now on; or no more.
    pub enable: bool,
    /// MR: it is the same memory as before, with the same bytes.
    pub memory_return: bool,
    /// HMNARE: the controller keeps off it in non-operational power states.
    pub restrict_non_operational: bool,
    /// HSIZE: size, memory pages.
    pub size_pages: u32,
    /// HMDLA: address of the list of descriptors. Bits 3:0 are reserved and not looked at.
    pub list_address: u64,
    /// HMDLEC: entries of the list.
    pub descriptors: u32,
}

impl HmbRequest {
    /// From dwords 11 to 15 of the command.
    #[must_use]
    pub fn decode(dwords: [u32; 5]) -> Self {
        let [flags, size_pages, low, high, descriptors] = dwords;
        HmbRequest {
            enable: flags & 1 != 0,
            memory_return: flags & 2 != 0,
            restrict_non_operational: flags & 4 != 0,
            size_pages,
            list_address: (u64::from(high) << 32 | u64::from(low)) & !0xf,
            descriptors,
        }
    }

    /// Dwords 11 to 15 of the command.
    #[must_use]
    pub fn encode(&self) -> [u32; 5] {
        [
            self.flags(),
            self.size_pages,
            self.list_address as u32,
            (self.list_address >> 32) as u32,
            self.descriptors,
        ]
    }

    fn flags(&self) -> u32 {
        u32::from(self.enable)
            | u32::from(self.memory_return) << 1
            | u32::from(self.restrict_non_operational) << 2
    }
}

/// A piece of host memory, contiguous in the addresses the host gives to devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostRange {
    /// First byte.
    pub address: u64,
    /// Length, bytes; not 0, and `address + bytes` is an address or 2 to the power of 64.
    pub bytes: u64,
}

/// What a controller may use of a grant: its pieces, in the host's order.
///
/// Skipped, as the standard has it no error: entries of size 0, entries shorter than HMMINDS, and entries
/// beyond the first HMMAXD. What the list holds beyond HSIZE is left alone.
///
/// # Errors
/// [`Status::INVALID_FIELD`] if the list is empty, an entry is not aligned to memory pages, ends beyond all
/// addresses, or two entries overlap: a controller that believed such a list would overwrite its own data.
/// [`Status::DATA_TRANSFER_ERROR`] if the list cannot be read.
pub fn usable_ranges(
    memory: &impl GuestMemory,
    request: &HmbRequest,
    limits: &HmbLimits,
    page: PageSize,
) -> Result<Vec<HostRange>, Status> {
    if request.descriptors == 0 {
        return Err(Status::INVALID_FIELD);
    }
    let most = match limits.descriptors_max {
        0 => DESCRIPTORS_MAX,
        most => u32::from(most),
    };
    let shortest = u64::from(limits.descriptor_min_4kib) * IDENTIFY_UNIT_BYTES;
    let mut ranges = Vec::new();
    for index in 0..u64::from(request.descriptors.min(most)) {
        let at = request
            .list_address
            .checked_add(index * DESCRIPTOR_BYTES as u64);
        let mut bytes = [0; DESCRIPTOR_BYTES];
        memory.read(at.ok_or(Status::INVALID_FIELD)?, &mut bytes)?;
        let range = checked(HmbDescriptor::decode(&bytes), page)?;
        ranges.extend(range.filter(|range| range.bytes >= shortest));
    }
    none_overlap(&ranges)?;
    limit(&mut ranges, u64::from(request.size_pages) * page.bytes());
    Ok(ranges)
}

fn checked(descriptor: HmbDescriptor, page: PageSize) -> Result<Option<HostRange>, Status> {
    let (address, bytes) = (
        descriptor.address,
        u64::from(descriptor.pages) * page.bytes(),
    );
    if bytes == 0 {
        return Ok(None);
    }
    if !page.is_aligned(address) || address.checked_add(bytes - 1).is_none() {
        return Err(Status::INVALID_FIELD);
    }
    Ok(Some(HostRange { address, bytes }))
}

fn none_overlap(ranges: &[HostRange]) -> Result<(), Status> {
    let mut sorted: Vec<_> = ranges.to_vec();
    sorted.sort_unstable_by_key(|range| range.address);
    let overlap = |pair: &[HostRange]| pair[1].address - pair[0].address < pair[0].bytes;
    if sorted.windows(2).any(overlap) {
        return Err(Status::INVALID_FIELD);
    }
    Ok(())
}

/// Leaves what lies beyond the first `bytes` alone.
fn limit(ranges: &mut Vec<HostRange>, bytes: u64) {
    let mut left = bytes;
    ranges.retain_mut(|range| {
        range.bytes = range.bytes.min(left);
        left -= range.bytes;
        range.bytes > 0
    });
}

/// What the controller has to do so that a Set Features 0Dh can complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HmbAction {
    /// Read the list ([`usable_ranges`]) and use it; then [`HmbFeature::enabled`].
    Enable,
    /// Stop using the memory, and wait for what is under way; then complete.
    Drain,
    /// Nothing: it was off.
    None,
}

/// The feature's state: when Set Features is allowed, and what Get Features answers.
#[derive(Clone, Copy, Debug, Default)]
pub struct HmbFeature {
    /// The last request that was granted; its flag says whether it still counts.
    request: HmbRequest,
}

impl HmbFeature {
    /// Whether the memory is the controller's to use.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.request.enable
    }

    /// Whether the controller has to keep off the memory in power states without I/O (HMNARE).
    #[must_use]
    pub fn is_restricted(&self) -> bool {
        self.request.restrict_non_operational
    }

    /// A Set Features command.
    ///
    /// # Errors
    /// [`Status::COMMAND_SEQUENCE_ERROR`] if it enables what is enabled; [`Status::INVALID_FIELD`] if it
    /// restricts a controller that does not offer it, or enables where no host memory is asked for.
    pub fn set(&mut self, request: &HmbRequest, limits: &HmbLimits) -> Result<HmbAction, Status> {
        if !request.enable {
            let was_enabled = std::mem::take(&mut self.request.enable);
            return Ok(if was_enabled {
                HmbAction::Drain
            } else {
                HmbAction::None
            });
        }
        if self.request.enable {
            return Err(Status::COMMAND_SEQUENCE_ERROR);
        }
        let is_unknown = request.restrict_non_operational && !limits.restrictable;
        if is_unknown || limits.preferred_4kib == 0 {
            return Err(Status::INVALID_FIELD);
        }
        Ok(HmbAction::Enable)
    }

    /// The list was good and the memory is in use.
    pub fn enabled(&mut self, request: &HmbRequest) {
        self.request = *request;
        self.request.enable = true;
    }

    /// A controller level reset: the memory is the host's again (§3.7.2).
    pub fn reset(&mut self) {
        *self = HmbFeature::default();
    }

    /// Dword 0 of Get Features' completion, and its data. `is_restricted`: whether the controller keeps off
    /// the memory right now (HMNAR status).
    #[must_use]
    pub fn get(&self, is_restricted: bool) -> (u32, HmbAttributes) {
        let request = &self.request;
        let attributes = HmbAttributes {
            size_pages: request.size_pages,
            list_low: request.list_address as u32,
            list_high: (request.list_address >> 32) as u32,
            descriptors: request.descriptors,
        };
        (request.flags() | u32::from(is_restricted) << 3, attributes)
    }
}

/// Length of a list of descriptors, bytes.
#[must_use]
pub fn list_bytes(descriptors: u32) -> u64 {
    u64::from(descriptors) * HmbDescriptor::BYTES as u64
}
