//! Namespaces of a drive (Base 2.0 §3.2.1): slices of its logical space, one behind the other, from identifier 1 on.

use super::identity::Unservable;
use lodger_core::spec::SLOT_BYTES;
use lodger_wire::NamespaceId;
use lodger_wire::identify::command_set;
use lodger_wire::identify::lists::NamespaceName;
use lodger_wire::identify::namespace::{self, Format};
use lodger_wire::identify::{AssignError, Page};
use lodger_wire::lba::{BlockRange, BlockSize};
use lodger_wire::status::Status;

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
}

impl Namespace {
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

    /// It has blocks of that format now.
    fn set_format(&mut self, format: u8) {
        self.block = FORMATS[usize::from(format)].block;
        self.size_blocks = self.bytes / self.block.bytes();
        for field in [namespace::NSZE, namespace::NCAP, namespace::NUSE] {
            self.page.set(field, self.size_blocks);
        }
        self.page.set(namespace::FLBAS, format);
    }
}

/// All namespaces of a drive.
#[derive(Debug)]
pub struct Namespaces {
    all: Vec<Namespace>,
    is_whole: bool,
}

impl Namespaces {
    /// Namespaces of these sizes, bytes; without any, one that has all of a drive. `eui64` is that of the first.
    ///
    /// # Errors
    /// If a drive cannot be divided so.
    pub(super) fn new(
        sizes_bytes: &[u64],
        capacity_bytes: u64,
        block: BlockSize,
        eui64: [u8; 8],
    ) -> Result<Self, Unservable> {
        let whole = [capacity_bytes];
        let sizes_bytes = match sizes_bytes {
            [] => &whole,
            some => some,
        };
        if sizes_bytes.len() > NAMESPACES_MAX {
            return Err(Unservable::TooManyNamespaces(sizes_bytes.len()));
        }
        let (mut all, mut offset_bytes) = (Vec::new(), 0);
        for (index, &bytes) in (0u8..).zip(sizes_bytes) {
            // Pages of the drive are of one namespace. One that has all of it may have a part of a page at its end.
            let is_whole = bytes.is_multiple_of(SLOT_BYTES) || bytes == capacity_bytes;
            if bytes == 0 || !is_whole {
                return Err(Unservable::NamespaceSize(bytes));
            }
            let left = capacity_bytes - offset_bytes;
            if bytes > left {
                return Err(Unservable::NamespaceTooLarge { bytes, left });
            }
            let mut eui64 = eui64;
            eui64[1] ^= index;
            all.push(Namespace::new((offset_bytes, bytes), block, eui64));
            offset_bytes += bytes;
        }
        let is_whole = all.len() == 1 && offset_bytes == capacity_bytes;
        Ok(Namespaces { all, is_whole })
    }

    /// Whether it is one that has all of the drive, as it is if nobody asks for another division.
    pub(super) fn are_the_whole(&self) -> bool {
        self.is_whole
    }

    /// Whether they have these sizes, bytes; none: one has all of the drive.
    pub(super) fn have(&self, sizes_bytes: impl ExactSizeIterator<Item = u64>) -> bool {
        match sizes_bytes.len() {
            0 => self.is_whole,
            _ => sizes_bytes.eq(self.all.iter().map(|namespace| namespace.bytes)),
        }
    }

    /// How many there are; that is the highest identifier, too.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.all.len() as u32
    }

    /// One of them.
    ///
    /// # Errors
    /// [`Status::INVALID_NAMESPACE`] if that identifies none (Base 2.0 §3.2.1.5).
    pub fn get(&self, id: NamespaceId) -> Result<&Namespace, Status> {
        let index = id.0.wrapping_sub(1) as usize;
        self.all.get(index).ok_or(Status::INVALID_NAMESPACE)
    }

    /// Each with its identifier.
    pub fn iter(&self) -> impl Iterator<Item = (NamespaceId, &Namespace)> {
        (1..).map(NamespaceId).zip(&self.all)
    }

    /// Those that an identifier stands for have blocks of that format now.
    pub(super) fn set_format(&mut self, id: NamespaceId, format: u8) {
        for (each, namespace) in (1..).map(NamespaceId).zip(&mut self.all) {
            if id == each || id == NamespaceId::ALL {
                namespace.set_format(format);
            }
        }
    }

    /// Bytes that are in none of them, if the drive has so many.
    pub(super) fn unallocated_bytes(&self, capacity_bytes: u64) -> u64 {
        capacity_bytes
            - self
                .all
                .iter()
                .map(|namespace| namespace.bytes)
                .sum::<u64>()
    }

    /// What all have in common (CNS 00h of the broadcast value, NVM Command Set 1.0 §4.1.5.1): the rest is zeros.
    pub(super) fn common(&self) -> Page {
        let mut page = self.all[0].page.clone();
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

    /// Sets a field of all of them (`FIELD=VALUE`).
    pub(super) fn assign(&mut self, assignment: &str) -> Result<(), AssignError> {
        let mut all = self.all.iter_mut();
        all.try_for_each(|namespace| namespace.page.assign(assignment))
    }
}
