//! Namespaces of a drive (Base 2.0 §3.2.1): slices of its logical space. A drive is made with one or some of them, one behind the
//! other, from identifier 1 on. If the drive file says how many it can have (`controller.namespaces`), hosts delete them, make
//! others where there is room, and attach them to the controller or not (§5.22, §5.23).
//!
//! Each is in one piece: what is free between others is of use only to one that fits there.

use super::identity::Unservable;
use lodger_core::spec::SLOT_BYTES;
use lodger_wire::NamespaceId;
use lodger_wire::command::NewNamespace;
use lodger_wire::identify::command_set;
use lodger_wire::identify::lists::NamespaceName;
use lodger_wire::identify::namespace::{self, Format};
use lodger_wire::identify::{AssignError, Page};
use lodger_wire::lba::{BlockRange, BlockSize};
use lodger_wire::status::Status;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Namespaces a drive has at most.
pub const NAMESPACES_MAX: usize = 128;

/// LBA formats of each namespace.
pub const FORMATS: [Format; 2] = [
    Format {
        block: BlockSize::B512,
        performance: 2,
    },
    Format {
        block: BlockSize::KIB4,
        performance: 0,
    },
];

/// The index of a format with such blocks.
fn format_of(block: BlockSize) -> u8 {
    let format = FORMATS.iter().position(|format| format.block == block);
    format.expect("blocks of a size that there is") as u8
}

/// A namespace.
#[derive(Debug)]
pub struct Namespace {
    pub(super) page: Page,
    pub(super) independent: Page,
    pub(super) name: NamespaceName,
    /// Where it begins in the drive's logical space.
    offset_bytes: u64,
    bytes: u64,
    /// Bytes of a block.
    pub block: BlockSize,
    /// Blocks that it has.
    pub size_blocks: u64,
    is_shared: bool,
    /// The controller has it.
    is_attached: bool,
    /// It is being deleted.
    is_going: bool,
}

impl Namespace {
    /// One with all blocks that its place has room for, attached.
    fn new((offset_bytes, bytes): (u64, u64), block: BlockSize, eui64: [u8; 8]) -> Self {
        let size_blocks = bytes / block.bytes();
        let said = namespace::Namespace {
            size_blocks,
            used_blocks: size_blocks,
            formats: &FORMATS,
            format: format_of(block),
            preferred: None,
            eui64: Some(eui64),
            nguid: None,
            deallocated_is_zero: true,
            unwritten_errors: false,
            shared: false,
            write_protected: false,
            capacity_bytes: bytes.into(),
        };
        Namespace {
            page: said.page(),
            independent: command_set::independent_page(&said, true),
            name: NamespaceName {
                eui64: Some(eui64),
                ..NamespaceName::default()
            },
            offset_bytes,
            bytes,
            block,
            size_blocks,
            is_shared: false,
            is_attached: true,
            is_going: false,
        }
    }

    /// Where blocks are on the drive, and how much they are, bytes.
    ///
    /// # Errors
    /// [`Status::LBA_OUT_OF_RANGE`] if they are not all of this namespace.
    pub fn place(&self, range: BlockRange) -> Result<(u64, u64), Status> {
        let range = range.within(self.size_blocks)?;
        let block_bytes = self.block.bytes();
        let start = self.offset_bytes + range.start.0 * block_bytes;
        Ok((start, range.blocks * block_bytes))
    }

    /// Where all of it is on the drive, and how much it is, bytes.
    #[must_use]
    pub fn whole(&self) -> (u64, u64) {
        (self.offset_bytes, self.bytes)
    }

    /// The format in use.
    #[must_use]
    pub fn format(&self) -> u8 {
        format_of(self.block)
    }

    /// Whether hosts can use it.
    pub(super) fn is_active(&self) -> bool {
        self.is_attached && !self.is_going
    }

    /// It has blocks of that format now, as many as there is room for.
    fn set_format(&mut self, format: u8) {
        self.block = FORMATS[usize::from(format)].block;
        self.set_size(self.bytes / self.block.bytes());
        self.page.set(namespace::FLBAS, format);
    }

    fn set_size(&mut self, blocks: u64) {
        self.size_blocks = blocks;
        for field in [namespace::NSZE, namespace::NCAP, namespace::NUSE] {
            self.page.set(field, blocks);
        }
    }

    fn set_shared(&mut self, is_shared: bool) {
        self.is_shared = is_shared;
        let said = u8::from(is_shared);
        self.page.set(namespace::NMIC, said);
        let nmic = command_set::independent::NMIC;
        self.independent.set(nmic, said);
    }
}

/// All namespaces of a drive.
#[derive(Debug)]
pub struct Namespaces {
    /// By identifier.
    all: BTreeMap<u32, Namespace>,
    is_whole: bool,
    /// Highest identifier that there can be.
    id_max: u32,
    /// Whether hosts can make and delete them.
    is_managed: bool,
    /// Whether hosts have.
    is_changed: bool,
    capacity_bytes: u64,
    eui64: [u8; 8],
    /// How many there have been: each has a name of its own.
    made: u32,
    /// Those that are others than when the host asked last (Changed Namespace List).
    changed: BTreeSet<u32>,
    assignments: Vec<String>,
}

/// Those that hosts have made, as they are in a file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedNamespaces {
    made: u32,
    all: Vec<SavedPlace>,
}

#[derive(Debug, Serialize, Deserialize)]
struct SavedPlace {
    id: u32,
    eui64: [u8; 8],
    offset_bytes: u64,
    bytes: u64,
    size_blocks: u64,
    format: u8,
    is_shared: bool,
    is_attached: bool,
}

impl SavedNamespaces {
    /// Bytes of each and its format.
    pub(super) fn sizes(&self) -> impl Iterator<Item = (u64, u8)> + '_ {
        self.all.iter().map(|saved| (saved.bytes, saved.format))
    }
}

impl Namespaces {
    /// Namespaces of these sizes, bytes; without any, one that has all of a drive. `most`: how many there can be, if hosts
    /// make and delete them. `eui64` is that of the first.
    ///
    /// # Errors
    /// If a drive cannot be divided so.
    pub(super) fn new(
        sizes_bytes: &[u64],
        most: Option<u32>,
        capacity_bytes: u64,
        block: BlockSize,
        eui64: [u8; 8],
    ) -> Result<Self, Unservable> {
        let whole = [capacity_bytes];
        let sizes_bytes = match sizes_bytes {
            [] => &whole,
            some => some,
        };
        let (found, count_max) = (sizes_bytes.len(), most.unwrap_or(NAMESPACES_MAX as u32));
        if found > count_max as usize {
            let most = count_max;
            return Err(Unservable::TooManyNamespaces { found, most });
        }
        let mut namespaces = Namespaces {
            all: BTreeMap::new(),
            is_whole: false,
            id_max: most.unwrap_or(found as u32),
            is_managed: most.is_some(),
            is_changed: false,
            capacity_bytes,
            eui64,
            made: 0,
            changed: BTreeSet::new(),
            assignments: Vec::new(),
        };
        let mut offset_bytes = 0;
        for (id, &bytes) in (1..).zip(sizes_bytes) {
            // Pages of the drive are of one namespace. One that has all of it may have a part of a page at its end.
            let is_whole = bytes.is_multiple_of(SLOT_BYTES) || bytes == capacity_bytes;
            if bytes == 0 || !is_whole {
                return Err(Unservable::NamespaceSize(bytes));
            }
            let left = capacity_bytes - offset_bytes;
            if bytes > left {
                return Err(Unservable::NamespaceTooLarge { bytes, left });
            }
            let eui64 = namespaces.next_eui64();
            let new = Namespace::new((offset_bytes, bytes), block, eui64);
            namespaces.all.insert(id, new);
            offset_bytes += bytes;
        }
        namespaces.is_whole = found == 1 && offset_bytes == capacity_bytes;
        Ok(namespaces)
    }

    fn next_eui64(&mut self) -> [u8; 8] {
        let mut eui64 = self.eui64;
        eui64[1] ^= self.made as u8;
        eui64[2] ^= (self.made >> 8) as u8;
        self.made += 1;
        eui64
    }

    /// Whether it is one that has all of the drive, as it is if nobody asks for another division.
    pub(super) fn are_the_whole(&self) -> bool {
        self.is_whole
    }

    /// Whether they have these sizes, bytes; none: one has all of the drive.
    pub(super) fn have(&self, sizes_bytes: impl ExactSizeIterator<Item = u64>) -> bool {
        match sizes_bytes.len() {
            0 => self.is_whole,
            _ => sizes_bytes.eq(self.all.values().map(|namespace| namespace.bytes)),
        }
    }

    /// The highest identifier there can be; as many there can be, too.
    #[must_use]
    pub fn id_max(&self) -> u32 {
        self.id_max
    }

    /// Whether hosts can make and delete them.
    #[must_use]
    pub fn are_managed(&self) -> bool {
        self.is_managed
    }

    /// What an identifier that can be stands for, be it attached or not.
    ///
    /// # Errors
    /// [`Status::INVALID_NAMESPACE`] if there can be none (Base 2.0 §3.2.1.5).
    pub(super) fn allocated(&self, id: NamespaceId) -> Result<Option<&Namespace>, Status> {
        match (1..=self.id_max).contains(&id.0) {
            true => Ok(self.all.get(&id.0)),
            false => Err(Status::INVALID_NAMESPACE),
        }
    }

    /// What hosts can use by an identifier.
    ///
    /// # Errors
    /// [`Status::INVALID_NAMESPACE`] if there can be none (Base 2.0 §3.2.1.5).
    pub(super) fn active(&self, id: NamespaceId) -> Result<Option<&Namespace>, Status> {
        let namespace = self.allocated(id)?;
        Ok(namespace.filter(|namespace| namespace.is_active()))
    }

    /// The same, for commands that are of one.
    ///
    /// # Errors
    /// [`Status::INVALID_FIELD`] too, if there is none, or it is not attached (§3.2.1.5).
    pub fn get(&self, id: NamespaceId) -> Result<&Namespace, Status> {
        self.active(id)?.ok_or(Status::INVALID_FIELD)
    }

    /// Each with its identifier, attached or not.
    pub fn iter(&self) -> impl Iterator<Item = (NamespaceId, &Namespace)> {
        self.all
            .iter()
            .map(|(id, namespace)| (NamespaceId(*id), namespace))
    }

    /// Those that an identifier stands for have blocks of that format now.
    pub(super) fn set_format(&mut self, id: NamespaceId, format: u8) {
        for (each, namespace) in &mut self.all {
            if id.0 == *each || id == NamespaceId::ALL && namespace.is_attached {
                namespace.set_format(format);
            }
        }
    }

    /// Where that lies which an identifier stands for: one, or all that are attached or being deleted.
    pub(super) fn places(&self, id: NamespaceId) -> Vec<(u64, u64)> {
        let is_meant = |namespace: &&Namespace| namespace.is_attached || namespace.is_going;
        match self.all.get(&id.0) {
            Some(namespace) => vec![namespace.whole()],
            None if self.all.values().all(|each| is_meant(&each)) => vec![(0, self.capacity_bytes)],
            None => {
                let meant = self.all.values().filter(is_meant);
                meant.map(Namespace::whole).collect()
            }
        }
    }

    /// What is in none of them: where it is, and how many bytes, whole pages.
    fn holes(&self) -> Vec<(u64, u64)> {
        let mut taken: Vec<(u64, u64)> = self.all.values().map(Namespace::whole).collect();
        taken.sort_unstable();
        taken.push((self.capacity_bytes, 0));
        let mut at = 0;
        let holes = taken.into_iter().map(|(offset, bytes)| {
            let hole = (at, (offset - at) / SLOT_BYTES * SLOT_BYTES);
            at = offset + bytes;
            hole
        });
        holes.filter(|(_, bytes)| *bytes > 0).collect()
    }

    /// Bytes that are in none of them.
    pub(super) fn unallocated_bytes(&self) -> u64 {
        self.holes().iter().map(|(_, bytes)| bytes).sum()
    }

    /// One is made as a host wants it, in the smallest place that it fits in.
    ///
    /// # Errors
    /// Why not (Base 2.0 §5.23).
    pub(super) fn create(&mut self, new: &NewNamespace) -> Result<NamespaceId, Status> {
        const INLINE_METADATA: u8 = 1 << 4;
        let format = FORMATS.get(new.format_index());
        let format = format.filter(|_| new.format & INLINE_METADATA == 0 && new.protection == 0);
        let block = format.ok_or(Status::FORMAT_INVALID)?.block;
        // There are no groups and no sets to choose from.
        let chosen =
            u64::from(new.access_group) | u64::from(new.nvm_set) | u64::from(new.endurance_group);
        let is_known = new.sharing <= 1 && chosen == 0;
        if new.size_blocks == 0 || new.capacity_blocks > new.size_blocks || !is_known {
            return Err(Status::INVALID_FIELD);
        }
        if new.capacity_blocks < new.size_blocks {
            return Err(Status::THIN_PROVISIONING_UNSUPPORTED);
        }
        let is_free = |id: &u32| !self.all.contains_key(id);
        let id = (1..=self.id_max).find(is_free);
        let id = id.ok_or(Status::NAMESPACE_ID_UNAVAILABLE)?;
        let bytes = new.size_blocks.checked_mul(block.bytes());
        let bytes = bytes.and_then(|bytes| bytes.checked_next_multiple_of(SLOT_BYTES));
        let fits = |hole: &(u64, u64)| bytes.is_some_and(|bytes| bytes <= hole.1);
        let holes = self.holes().into_iter().filter(fits);
        let hole = holes.min_by_key(|(_, bytes)| *bytes);
        let (Some((offset_bytes, _)), Some(bytes)) = (hole, bytes) else {
            return Err(Status::NAMESPACE_CAPACITY_INSUFFICIENT);
        };
        let eui64 = self.next_eui64();
        let mut namespace = Namespace::new((offset_bytes, bytes), block, eui64);
        namespace.set_size(new.size_blocks);
        namespace.set_shared(new.sharing & 1 == 1);
        namespace.is_attached = false;
        self.add(id, namespace);
        Ok(NamespaceId(id))
    }

    fn add(&mut self, id: u32, mut namespace: Namespace) {
        for assignment in &self.assignments {
            let assigned = namespace.page.assign(assignment);
            debug_assert!(assigned.is_ok(), "it was when it was said");
        }
        self.all.insert(id, namespace);
        self.divided();
    }

    /// Hosts have changed which there are.
    fn divided(&mut self) {
        (self.is_changed, self.is_whole) = (true, false);
    }

    /// The controller has one from now on, or not.
    ///
    /// # Errors
    /// Why not (Base 2.0 §5.22).
    pub(super) fn attach(&mut self, id: NamespaceId, is_to_be: bool) -> Result<(), Status> {
        let namespace = self.all.get_mut(&id.0).ok_or(Status::INVALID_FIELD)?;
        match (namespace.is_attached, is_to_be) {
            (true, true) => return Err(Status::NAMESPACE_ALREADY_ATTACHED),
            (false, false) => return Err(Status::NAMESPACE_NOT_ATTACHED),
            _ => namespace.is_attached = is_to_be,
        }
        self.changed.insert(id.0);
        self.divided();
        Ok(())
    }

    /// Those that an identifier stands for are being deleted, or are not any more.
    pub(super) fn set_going(&mut self, id: NamespaceId, is_going: bool) {
        for (each, namespace) in &mut self.all {
            if id.0 == *each || id == NamespaceId::ALL {
                namespace.is_going = is_going;
            }
        }
    }

    /// Those that are being deleted are gone. Returns whether the controller had any of them.
    pub(super) fn remove_going(&mut self) -> bool {
        let all = std::mem::take(&mut self.all).into_iter();
        let (gone, left): (BTreeMap<_, _>, BTreeMap<_, _>) =
            all.partition(|(_, namespace)| namespace.is_going);
        self.all = left;
        let attached = gone.iter().filter(|(_, namespace)| namespace.is_attached);
        let attached: Vec<u32> = attached.map(|(id, _)| *id).collect();
        self.changed.extend(&attached);
        self.divided();
        !attached.is_empty()
    }

    /// Those that have changed since the host asked last.
    pub(super) fn changed(&self) -> Vec<NamespaceId> {
        self.changed.iter().copied().map(NamespaceId).collect()
    }

    /// The host has asked.
    pub(super) fn changes_are_known(&mut self) {
        self.changed.clear();
    }

    /// What outlasts power, if hosts have changed it.
    pub(super) fn saved(&self) -> Option<SavedNamespaces> {
        let saved = |(id, namespace): (NamespaceId, &Namespace)| SavedPlace {
            id: id.0,
            eui64: namespace.name.eui64.unwrap_or_default(),
            offset_bytes: namespace.offset_bytes,
            bytes: namespace.bytes,
            size_blocks: namespace.size_blocks,
            format: namespace.format(),
            is_shared: namespace.is_shared,
            is_attached: namespace.is_attached,
        };
        self.is_changed.then(|| SavedNamespaces {
            made: self.made,
            all: self.iter().map(saved).collect(),
        })
    }

    /// Power comes. Returns false if they cannot be this drive's.
    pub(super) fn restore(&mut self, saved: &SavedNamespaces) -> bool {
        self.all.clear();
        for each in &saved.all {
            let end = each.offset_bytes.checked_add(each.bytes);
            let is_inside = end.is_some_and(|end| end <= self.capacity_bytes);
            let format = FORMATS.get(usize::from(each.format));
            let (true, Some(format)) = (is_inside && self.is_managed, format) else {
                return false;
            };
            let place = (each.offset_bytes, each.bytes);
            let mut namespace = Namespace::new(place, format.block, each.eui64);
            let is_new = self
                .allocated(NamespaceId(each.id))
                .is_ok_and(|old| old.is_none());
            if !is_new || each.size_blocks > namespace.size_blocks {
                return false;
            }
            namespace.set_size(each.size_blocks);
            namespace.set_shared(each.is_shared);
            namespace.is_attached = each.is_attached;
            self.add(each.id, namespace);
        }
        self.made = saved.made;
        self.divided();
        let mut taken: Vec<(u64, u64)> = self.all.values().map(Namespace::whole).collect();
        taken.sort_unstable();
        let apart = |pair: &[(u64, u64)]| pair[0].0 + pair[0].1 <= pair[1].0;
        taken.windows(2).all(apart)
    }

    /// What all have in common (CNS 00h of the broadcast value, NVM Command Set 1.0 §4.1.5.1): the rest is zeros.
    pub(super) fn common(&self) -> Page {
        let mut page = Namespace::new((0, 0), BlockSize::B512, [0; 8]).page;
        for assignment in &self.assignments {
            let assigned = page.assign(assignment);
            debug_assert!(assigned.is_ok(), "it was when it was said");
        }
        for field in [
            namespace::NSZE,
            namespace::NCAP,
            namespace::NUSE,
            namespace::FLBAS,
            namespace::NVMCAP,
        ] {
            page.set(field, 0u8);
        }
        page.set_bytes(namespace::EUI64, &[0; 8]);
        page
    }

    /// Sets a field of all of them (`FIELD=VALUE`), and of those that are made later.
    pub(super) fn assign(&mut self, assignment: &str) -> Result<(), AssignError> {
        // Of none, if it cannot be.
        self.common().assign(assignment)?;
        for namespace in self.all.values_mut() {
            namespace.page.assign(assignment)?;
        }
        self.assignments.push(assignment.to_owned());
        Ok(())
    }
}
