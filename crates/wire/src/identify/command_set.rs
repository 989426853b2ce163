//! What the NVM command set says of controller and namespace (CNS 06h and 05h, NVM Command Set 1.0 §4.1.5), and
//! what holds for a namespace of any command set (CNS 08h, Base 2.0 §5.17.2).

use super::Page;
use super::field::{Structure, is_in_order};
use super::namespace::Namespace;

/// Fields of the controller's structure, CNS 06h.
pub mod controller {
    use crate::identify::field::fields;

    fields! {
        VSL: Number @ 0, 1, "Verify size limit: 2 to its power, smallest memory pages; 0 no limit";
        WZSL: Number @ 1, 1, "Write zeroes size limit: 2 to its power, smallest memory pages; 0 no limit";
        WUSL: Number @ 2, 1, "Write uncorrectable size limit: 2 to its power, smallest memory pages; 0 no limit";
        DMRL: Number @ 3, 1, "Most ranges of a Dataset Management; 0 no limit";
        DMRSL: Number @ 4, 4, "Longest range of a Dataset Management, blocks; 0 no limit";
        DMSL: Number @ 8, 8, "Most blocks of a Dataset Management; 0 no limit";
    }
}

/// Fields of the namespace's structure, CNS 05h.
pub mod namespace {
    use crate::identify::field::fields;

    fields! {
        LBSTM: Number @ 0, 8, "Mask of the storage tag";
        PIC: Number @ 8, 1, "What protection information can be";
        PIFA: Number @ 9, 1, "Attributes of formats of protection information";
        ELBAF: Bytes @ 12, 256, "Extensions of the LBA formats, 4 bytes each";
        NPDGL: Number @ 268, 4, "Preferred length of deallocations, blocks";
        NPRG: Number @ 272, 4, "Preferred length of reads, blocks";
        NPRA: Number @ 276, 4, "Preferred alignment of reads, blocks";
        NORS: Number @ 280, 4, "Optimal read, blocks";
        NPDAL: Number @ 284, 4, "Preferred alignment of deallocations, blocks";
        LBAPSS: Number @ 288, 4, "Tracking of allocation, size of a packet, blocks";
        TLBAAG: Number @ 292, 4, "Tracking of allocation, granularity, blocks";
    }
}

/// Fields of the structure for any command set, CNS 08h.
pub mod independent {
    use crate::identify::field::fields;

    fields! {
        NSFEAT: Number @ 0, 1, "Features of the namespace; bit 3: identifiers are not used again";
        NMIC: Number @ 1, 1, "Whether several controllers can have it; bit 0: yes";
        RESCAP: Number @ 2, 1, "Kinds of reservations";
        FPI: Number @ 3, 1, "Progress of formatting; bit 7: told, bits 6:0: per cent left";
        ANAGRPID: Number @ 4, 4, "Group of asymmetric access";
        NSATTR: Number @ 8, 1, "Attributes; bit 0: write protected";
        NVMSETID: Number @ 10, 2, "NVM set";
        ENDGID: Number @ 12, 2, "Endurance group";
        NSTAT: Number @ 14, 1, "Status; bit 0: ready";
        KPIOS: Number @ 15, 1, "Key per I/O status";
        MAXKT: Number @ 16, 2, "Most key tags";
        RGRPID: Number @ 20, 4, "Reachability group";
    }
}

/// The controller's structure.
pub const CONTROLLER: Structure = Structure {
    name: "Identify Controller of the NVM command set",
    fields: controller::ALL,
    arrays: &[],
};

/// The namespace's structure.
pub const NAMESPACE: Structure = Structure {
    name: "Identify Namespace of the NVM command set",
    fields: namespace::ALL,
    arrays: &[],
};

/// The structure for any command set.
pub const INDEPENDENT: Structure = Structure {
    name: "Identify Namespace of any command set",
    fields: independent::ALL,
    arrays: &[],
};

const _: () =
    assert!(is_in_order(&CONTROLLER) && is_in_order(&NAMESPACE) && is_in_order(&INDEPENDENT));

/// What limits Dataset Management, where it is limited. All 0 is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatasetLimits {
    /// Ranges of a command (DMRL).
    pub ranges_max: u8,
    /// Blocks of a range (DMRSL).
    pub range_blocks_max: u32,
    /// Blocks of a command (DMSL).
    pub blocks_max: u64,
}

/// CNS 06h. Bit 2 of ONCS must be set for the limits to count.
#[must_use]
pub fn controller_page(limits: DatasetLimits) -> Page {
    let mut page = Page::new(&CONTROLLER);
    page.set(controller::DMRL, limits.ranges_max)
        .set(controller::DMRSL, limits.range_blocks_max)
        .set(controller::DMSL, limits.blocks_max);
    page
}

/// CNS 05h: no protection information, so nothing to say.
#[must_use]
pub fn namespace_page() -> Page {
    Page::new(&NAMESPACE)
}

/// CNS 08h.
#[must_use]
pub fn independent_page(namespace: &Namespace<'_>, is_ready: bool) -> Page {
    let mut page = Page::new(&INDEPENDENT);
    page.set(independent::NMIC, u8::from(namespace.shared))
        .set(independent::NSATTR, u8::from(namespace.write_protected))
        .set(independent::NSTAT, u8::from(is_ready));
    page
}
