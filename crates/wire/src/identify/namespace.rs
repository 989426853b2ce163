//! Identify Namespace (CNS 00h and 11h; NVM Command Set 1.0 §4.1.5.1).

use super::field::{Array, Structure, is_in_order};
use super::{Page, field::fields};
use crate::lba::BlockSize;

fields! {
    NSZE: Number @ 0, 8, "Size, blocks";
    NCAP: Number @ 8, 8, "Most blocks that can be allocated at once";
    NUSE: Number @ 16, 8, "Blocks allocated now";
    NSFEAT: Number @ 24, 1, "Features; bit 0: thin provisioning, 1: own atomic writes, 2: errors on blocks not written, 3: identifiers are not used again, 4: NPWG to NOWS count";
    NLBAF: Number @ 25, 1, "Number of LBA formats, 0-based";
    FLBAS: Number @ 26, 1, "LBA format in use, bits 3:0 and above them 6:5; bit 4: metadata between blocks";
    MC: Number @ 27, 1, "Where metadata can be; bit 0: between blocks, 1: apart";
    DPC: Number @ 28, 1, "What protection information can be";
    DPS: Number @ 29, 1, "What protection information is";
    NMIC: Number @ 30, 1, "Whether several controllers can have it; bit 0: yes";
    RESCAP: Number @ 31, 1, "Kinds of reservations";
    FPI: Number @ 32, 1, "Progress of formatting; bit 7: told, bits 6:0: per cent left";
    DLFEAT: Number @ 33, 1, "Deallocated blocks; bits 2:0: read as 1 zeros or 2 ones, 3: Write Zeroes deallocates, 4: guard is a CRC";
    NAWUN: Number @ 34, 2, "Atomic write, blocks, 0-based";
    NAWUPF: Number @ 36, 2, "Atomic write over power failures, blocks, 0-based";
    NACWU: Number @ 38, 2, "Atomic compare and write, blocks, 0-based";
    NABSN: Number @ 40, 2, "Atomic boundary, blocks, 0-based";
    NABO: Number @ 42, 2, "Offset of the atomic boundary, blocks";
    NABSPF: Number @ 44, 2, "Atomic boundary over power failures, blocks, 0-based";
    NOIOB: Number @ 46, 2, "Boundary that accesses should not cross, blocks; 0 none";
    NVMCAP: Number @ 48, 16, "Media of the namespace, bytes";
    NPWG: Number @ 64, 2, "Preferred length of writes, blocks, 0-based";
    NPWA: Number @ 66, 2, "Preferred alignment of writes, blocks, 0-based";
    NPDG: Number @ 68, 2, "Preferred length of deallocations, blocks, 0-based";
    NPDA: Number @ 70, 2, "Preferred alignment of deallocations, blocks, 0-based";
    NOWS: Number @ 72, 2, "Optimal write, blocks, 0-based";
    MSSRL: Number @ 74, 2, "Longest source range of a Copy, blocks";
    MCL: Number @ 76, 4, "Longest Copy, blocks";
    MSRC: Number @ 80, 1, "Most source ranges of a Copy, 0-based";
    KPIOS: Number @ 81, 1, "Key per I/O status";
    NULBAF: Number @ 82, 1, "Number of LBA formats with unique attributes";
    KPIODAAG: Number @ 84, 4, "Key per I/O data access alignment and granularity, blocks, 0-based";
    ANAGRPID: Number @ 92, 4, "Group of asymmetric access";
    NSATTR: Number @ 99, 1, "Attributes; bit 0: write protected";
    NVMSETID: Number @ 100, 2, "NVM set";
    ENDGID: Number @ 102, 2, "Endurance group";
    NGUID: Bytes @ 104, 16, "Globally unique identifier; 0 none";
    EUI64: Bytes @ 120, 8, "IEEE extended unique identifier; 0 none";
    VS: Bytes @ 384, 3712, "Vendor's own";
}

/// Fields of an LBA format, `LBAF0` to `LBAF63`.
pub mod lbaf {
    use crate::identify::field::fields;

    fields! {
        MS: Number @ 0, 2, "Metadata of a block, bytes";
        LBADS: Number @ 2, 1, "Bytes of a block, as a power of two";
        RP: Number @ 3, 1, "Relative performance, 0 best to 3 degraded";
    }
}

/// LBA formats a namespace can have.
pub const FORMATS_MAX: usize = 64;

/// The structure.
pub const STRUCTURE: Structure = Structure {
    name: "Identify Namespace",
    fields: ALL,
    arrays: &[Array {
        name: "LBAF",
        count: FORMATS_MAX,
        offset: 128,
        bytes: 4,
        fields: lbaf::ALL,
    }],
};

const _: () = assert!(is_in_order(&STRUCTURE));

/// An LBA format; no metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Bytes of a block.
    pub block: BlockSize,
    /// Relative performance, 0 best to 3 degraded (RP).
    pub performance: u8,
}

/// How accesses do best (NSFEAT bit 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preferred {
    /// Length and alignment of writes, blocks, 0-based (NPWG, NPWA).
    pub write_blocks_z: u16,
    /// Length and alignment of deallocations, blocks, 0-based (NPDG, NPDA).
    pub deallocate_blocks_z: u16,
    /// Optimal write, blocks, 0-based (NOWS).
    pub optimal_write_blocks_z: u16,
}

/// What a namespace says of itself.
#[derive(Clone, Copy, Debug)]
pub struct Namespace<'a> {
    /// Size, blocks; as many can be allocated.
    pub size_blocks: u64,
    /// Blocks that hold data.
    pub used_blocks: u64,
    /// Formats that it can have, 1 to 64.
    pub formats: &'a [Format],
    /// The one in use.
    pub format: u8,
    /// How accesses do best, if it says so.
    pub preferred: Option<Preferred>,
    /// Identifier, if it has one.
    pub eui64: Option<[u8; 8]>,
    /// Identifier, if it has one.
    pub nguid: Option<[u8; 16]>,
    /// Whether deallocated blocks read as zeros; Write Zeroes then may deallocate.
    pub deallocated_is_zero: bool,
    /// Whether a host may ask for errors on blocks not written.
    pub unwritten_errors: bool,
    /// Whether several controllers have it.
    pub shared: bool,
    /// Whether it takes no writes now.
    pub write_protected: bool,
    /// Media of it, bytes.
    pub capacity_bytes: u128,
}

impl Namespace<'_> {
    /// The structure.
    ///
    /// # Panics
    /// If it has no format, more than 64, or uses one it has not.
    #[must_use]
    pub fn page(&self) -> Page {
        let formats = self.formats;
        assert!(
            (1..=FORMATS_MAX).contains(&formats.len()) && usize::from(self.format) < formats.len()
        );
        let mut page = Page::new(&STRUCTURE);
        let features =
            u8::from(self.unwritten_errors) << 2 | u8::from(self.preferred.is_some()) << 4;
        page.set(NSZE, self.size_blocks)
            .set(NCAP, self.size_blocks)
            .set(NUSE, self.used_blocks)
            .set(NSFEAT, features)
            .set(NLBAF, formats.len() as u8 - 1)
            .set(FLBAS, self.format & 15 | (self.format >> 4) << 5)
            .set(NMIC, u8::from(self.shared))
            .set(
                DLFEAT,
                if self.deallocated_is_zero {
                    1 | 1 << 3
                } else {
                    0u8
                },
            )
            .set(NSATTR, u8::from(self.write_protected))
            .set(NVMCAP, self.capacity_bytes)
            .set_bytes(NGUID, &self.nguid.unwrap_or_default())
            .set_bytes(EUI64, &self.eui64.unwrap_or_default());
        if let Some(preferred) = self.preferred {
            page.set(NPWG, preferred.write_blocks_z)
                .set(NPWA, preferred.write_blocks_z)
                .set(NPDG, preferred.deallocate_blocks_z)
                .set(NPDA, preferred.deallocate_blocks_z)
                .set(NOWS, preferred.optimal_write_blocks_z);
        }
        for (index, format) in formats.iter().enumerate() {
            let at = |field: super::Field| super::Field {
                offset: 128 + 4 * index + field.offset,
                ..field
            };
            page.set(at(lbaf::LBADS), format.block.lbads())
                .set(at(lbaf::RP), format.performance & 3);
        }
        page
    }
}
