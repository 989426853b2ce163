//! Identify Controller (CNS 01h; Base 2.0 §5.17.2.1).

use super::field::{Array, Structure, is_in_order};
use super::{Page, field::fields};
use crate::hmb::HmbLimits;
use crate::ids::ControllerId;
use crate::layout::layout;
use crate::registers::Version;

fields! {
    VID: Number @ 0, 2, "PCI vendor";
    SSVID: Number @ 2, 2, "PCI subsystem vendor";
    SN: Text @ 4, 20, "Serial number";
    MN: Text @ 24, 40, "Model number";
    FR: Text @ 64, 8, "Firmware revision";
    RAB: Number @ 72, 1, "Recommended arbitration burst, a power of two, commands";
    IEEE: Number @ 73, 3, "Vendor's organisationally unique identifier";
    CMIC: Number @ 76, 1, "Whether the subsystem has several ports (bit 0), controllers (1), asymmetric access (3)";
    MDTS: Number @ 77, 1, "Most data of a command: 2 to its power, smallest memory pages; 0 no limit";
    CNTLID: Number @ 78, 2, "Controller's identifier";
    VER: Number @ 80, 4, "Version, as register VS";
    RTD3R: Number @ 84, 4, "Time to resume from D3 at most, us; 0 not said";
    RTD3E: Number @ 88, 4, "Time to enter D3 at most, us; 0 not said";
    OAES: Number @ 92, 4, "Events; bit 8: namespace attributes, 9: firmware activation";
    CTRATT: Number @ 96, 4, "Attributes; bit 0: host identifiers of 128 bits, 1: non-operational permissive mode, 17: host memory restriction";
    RRLS: Number @ 100, 2, "Read recovery levels, a bit each";
    BPCAP: Number @ 102, 1, "Boot partition capabilities";
    NSSL: Number @ 104, 4, "Time for a subsystem shutdown at most, us";
    PLSI: Number @ 110, 1, "Power loss signalling";
    CNTRLTYPE: Number @ 111, 1, "Kind of controller; 1: I/O";
    FGUID: Bytes @ 112, 16, "Identifier of the field replaceable unit; 0 none";
    CRDT1: Number @ 128, 2, "First retry delay, 100 ms";
    CRDT2: Number @ 130, 2, "Second retry delay, 100 ms";
    CRDT3: Number @ 132, 2, "Third retry delay, 100 ms";
    CRCAP: Number @ 134, 1, "Reachability capabilities";
    NVMSR: Number @ 253, 1, "What the subsystem is part of; bit 0: a storage device";
    VWCI: Number @ 254, 1, "Writes left of the vital product data";
    MEC: Number @ 255, 1, "Management endpoints";
    OACS: Number @ 256, 2, "Admin commands; bit 0: security, 1: format, 2: firmware, 3: namespaces, 4: self-test, 5: directives, 8: doorbell buffers";
    ACL: Number @ 258, 1, "Aborts at once at most, 0-based";
    AERL: Number @ 259, 1, "Event requests at once at most, 0-based";
    FRMW: Number @ 260, 1, "Firmware; bit 0: slot 1 is read-only, bits 3:1: slots, 4: activation without reset";
    LPA: Number @ 261, 1, "Log pages; bit 0: SMART by namespace, 1: effects, 2: offsets, 3: telemetry, 4: persistent events, 5: supported pages, scopes, features, management commands";
    ELPE: Number @ 262, 1, "Entries of the error log, 0-based";
    NPSS: Number @ 263, 1, "Power states, 0-based";
    AVSCC: Number @ 264, 1, "Vendor's admin commands; bit 0: in the standard form";
    APSTA: Number @ 265, 1, "Autonomous power state transitions; bit 0: supported";
    WCTEMP: Number @ 266, 2, "Warning temperature, kelvins";
    CCTEMP: Number @ 268, 2, "Critical temperature, kelvins";
    MTFA: Number @ 270, 2, "Time to activate firmware at most, 100 ms";
    HMPRE: Number @ 272, 4, "Host memory preferred, 4 KiB; 0 none";
    HMMIN: Number @ 276, 4, "Host memory at least, 4 KiB";
    TNVMCAP: Number @ 280, 16, "Media in all, bytes";
    UNVMCAP: Number @ 296, 16, "Media not allocated to namespaces, bytes";
    RPMBS: Number @ 312, 4, "Replay protected memory blocks";
    EDSTT: Number @ 316, 2, "Extended self-test, minutes";
    DSTO: Number @ 318, 1, "Self-test; bit 0: one at a time";
    FWUG: Number @ 319, 1, "Unit of firmware updates, 4 KiB; FFh any";
    KAS: Number @ 320, 2, "Unit of the keep alive timer, 100 ms; 0 not supported";
    HCTMA: Number @ 322, 2, "Host controlled thermal management; bit 0: supported";
    MNTMT: Number @ 324, 2, "Lowest temperature a host may choose, kelvins";
    MXTMT: Number @ 326, 2, "Highest temperature a host may choose, kelvins";
    SANICAP: Number @ 328, 4, "Sanitize; bit 0: crypto erase, 1: block erase, 2: overwrite, 29: no-deallocate is inhibited, 31:30: whether media is modified afterwards (1: no, 2: yes)";
    HMMINDS: Number @ 332, 4, "Shortest piece of host memory of use, 4 KiB; 0 any";
    HMMAXD: Number @ 336, 2, "Most pieces of host memory of use; 0 any number";
    NSETIDMAX: Number @ 338, 2, "Highest identifier of an NVM set";
    ENDGIDMAX: Number @ 340, 2, "Highest identifier of an endurance group";
    ANATT: Number @ 342, 1, "Time for a change of asymmetric access, s";
    ANACAP: Number @ 343, 1, "Asymmetric access capabilities";
    ANAGRPMAX: Number @ 344, 4, "Highest identifier of a group of asymmetric access";
    NANAGRPID: Number @ 348, 4, "Groups of asymmetric access";
    PELS: Number @ 352, 4, "Size of the persistent event log, 64 KiB";
    DOMAINID: Number @ 356, 2, "Domain";
    KPIOC: Number @ 358, 1, "Key per I/O capabilities";
    MPTFAWR: Number @ 360, 2, "Time for firmware activation without reset at most, 100 ms";
    MEGCAP: Number @ 368, 16, "Largest endurance group, bytes";
    TMPTHHA: Number @ 384, 1, "Temperature threshold hysteresis";
    CQT: Number @ 386, 2, "Command quiesce time, ms";
    SQES: Number @ 512, 1, "Submission entries, powers of two, bytes; bits 3:0 required, 7:4 at most";
    CQES: Number @ 513, 1, "Completion entries, powers of two, bytes; bits 3:0 required, 7:4 at most";
    MAXCMD: Number @ 514, 2, "Commands at once at most; 0 not said";
    NN: Number @ 516, 4, "Highest identifier of a namespace";
    ONCS: Number @ 520, 2, "I/O commands; bit 0: compare, 1: write uncorrectable, 2: dataset management, 3: write zeroes, 4: saved features, 5: reservations, 6: timestamp, 7: verify, 8: copy";
    FUSES: Number @ 522, 2, "Fused commands; bit 0: compare and write";
    FNA: Number @ 524, 1, "Format; bit 0: all namespaces at once, 1: erases all, 2: cryptographic erase";
    VWC: Number @ 525, 1, "Volatile write cache; bit 0: present, bits 2:1: 2 flush of all namespaces not supported, 3 supported";
    AWUN: Number @ 526, 2, "Atomic write, blocks, 0-based";
    AWUPF: Number @ 528, 2, "Atomic write over power failures, blocks, 0-based";
    ICSVSCC: Number @ 530, 1, "Vendor's I/O commands; bit 0: in the standard form";
    NWPC: Number @ 531, 1, "Namespace write protection";
    ACWU: Number @ 532, 2, "Atomic compare and write, blocks, 0-based";
    CDFS: Number @ 534, 2, "Copy descriptor formats";
    SGLS: Number @ 536, 4, "Scatter gather lists; bits 1:0: 1 supported, 2 if aligned to 4 bytes, 16: bit buckets, 18: lists longer than data";
    MNAN: Number @ 540, 4, "Most namespaces; 0: as NN says";
    MAXDNA: Number @ 544, 16, "Most attached namespaces in the domain";
    MAXCNA: Number @ 560, 4, "Most attached namespaces of the controller";
    OAQD: Number @ 564, 4, "Optimal aggregated queue depth, commands; 0 not said";
    RHIRI: Number @ 568, 1, "Recommended interval of host-initiated refreshes";
    HIRT: Number @ 569, 1, "Time of a host-initiated refresh";
    CMMRTD: Number @ 570, 2, "Most memory range tracking descriptors of the controller";
    NMMRTD: Number @ 572, 2, "Most memory range tracking descriptors of the subsystem";
    MINMRTG: Number @ 574, 1, "Smallest granularity of memory range tracking, a power of two";
    MAXMRTG: Number @ 575, 1, "Largest granularity of memory range tracking, a power of two";
    TRATTR: Number @ 576, 1, "Tracking attributes";
    MCUDMQ: Number @ 578, 2, "Most user data migration queues of the controller";
    MNSUDMQ: Number @ 580, 2, "Most user data migration queues of the subsystem";
    MCMR: Number @ 582, 2, "Most memory ranges tracked by the controller";
    NMCMR: Number @ 584, 2, "Most memory ranges tracked by the subsystem";
    MCDQPC: Number @ 586, 2, "Most controller data queue partitions";
    SUBNQN: Name @ 768, 256, "Name of the subsystem";
    IOCCSZ: Number @ 1792, 4, "Fabrics: I/O command capsules, 16 bytes";
    IORCSZ: Number @ 1796, 4, "Fabrics: I/O response capsules, 16 bytes";
    ICDOFF: Number @ 1800, 2, "Fabrics: offset of data in capsules, 16 bytes";
    FCATT: Number @ 1802, 1, "Fabrics: attributes";
    MSDBD: Number @ 1803, 1, "Fabrics: most data block descriptors";
    OFCS: Number @ 1804, 2, "Fabrics: commands";
    DCTYPE: Number @ 1806, 1, "Fabrics: kind of discovery controller";
    VS: Bytes @ 3072, 1024, "Vendor's own";
}

/// Fields of a power state, `PSD0` to `PSD31`.
pub mod psd {
    use crate::identify::field::fields;

    fields! {
        MP: Number @ 0, 2, "Most power, 10 mW, or 0.1 mW if bit 0 of FLAGS is set";
        FLAGS: Number @ 3, 1, "Bit 0: MP counts 0.1 mW, 1: non-operational";
        ENLAT: Number @ 4, 4, "Time to enter at most, us";
        EXLAT: Number @ 8, 4, "Time to leave at most, us";
        RRT: Number @ 12, 1, "Relative read throughput, 0 best";
        RRL: Number @ 13, 1, "Relative read latency, 0 best";
        RWT: Number @ 14, 1, "Relative write throughput, 0 best";
        RWL: Number @ 15, 1, "Relative write latency, 0 best";
        IDLP: Number @ 16, 2, "Power when idle, in the unit of IPS";
        IPS: Number @ 18, 1, "Unit of IDLP, bits 7:6: 1 0.1 mW, 2 10 mW";
        ACTP: Number @ 20, 2, "Power when active, in the unit of APWS";
        APWS: Number @ 22, 1, "Bits 2:0: workload of ACTP, 7:6: its unit, 1 0.1 mW, 2 10 mW";
        EPFRT: Number @ 23, 1, "Emergency power fail recovery, in the unit of bits 3:0 of EPFTS";
        FQVT: Number @ 24, 1, "Forced quiescence vault, in the unit of bits 7:4 of EPFTS";
        EPFVT: Number @ 25, 1, "Emergency power fail vault, in the unit of EPFVTS";
        EPFTS: Number @ 26, 1, "Units of EPFRT and FQVT";
        EPFVTS: Number @ 27, 1, "Unit of EPFVT";
    }
}

/// Power states a controller can have.
pub const POWER_STATES_MAX: usize = 32;
const POWER_STATES_AT: usize = 2048;

/// The structure.
pub const STRUCTURE: Structure = Structure {
    name: "Identify Controller",
    fields: ALL,
    arrays: &[Array {
        name: "PSD",
        count: POWER_STATES_MAX,
        offset: POWER_STATES_AT,
        bytes: PowerState::BYTES,
        fields: psd::ALL,
    }],
};

const _: () = assert!(is_in_order(&STRUCTURE));

layout! {
    /// A power state (§5.17.2.1).
    pub struct PowerState: 32 {
        /// Most power, 10 mW, or 0.1 mW with bit 0 of `flags` (MP).
        0 => power_max: u16,
        /// Bit 0 (MXPS): the unit of `power_max`; bit 1 (NOPS): no I/O commands are processed.
        3 => flags: u8,
        /// Time to enter at most, us (ENLAT).
        4 => entry_us: u32,
        /// Time to leave at most, us (EXLAT).
        8 => exit_us: u32,
        /// Read throughput, read latency, write throughput and write latency beside other states, 0 best (RRT, RRL,
        /// RWT, RWL).
        12 => relative: [u8; 4],
        /// Power when idle (IDLP).
        16 => idle_power: u16,
        /// Its unit, in bits 7:6 (IPS): 1 0.1 mW, 2 10 mW.
        18 => idle_unit: u8,
        /// Power when active (ACTP).
        20 => active_power: u16,
        /// Workload, bits 2:0, and unit, bits 7:6 (APW, APS).
        22 => active_unit: u8,
    }
}

impl PowerState {
    /// Whether I/O commands are processed in it.
    #[must_use]
    pub fn is_operational(&self) -> bool {
        self.flags & 2 == 0
    }
}

/// What the structure says of a power state.
///
/// # Panics
/// If there are not so many.
#[must_use]
pub fn power_state(page: &Page, index: usize) -> PowerState {
    let (states, _) = page.bytes()[POWER_STATES_AT..].as_chunks();
    PowerState::decode(&states[..POWER_STATES_MAX][index])
}

/// What a controller says of itself. What follows from this crate (commands it parses, events, lists) is said by
/// [`Controller::page`] itself; all else can be set by [`Page::assign`].
#[derive(Clone, Debug)]
pub struct Controller<'a> {
    /// PCI vendor, and subsystem vendor.
    pub vendor: u16,
    /// Serial number, 20 characters of ASCII at most.
    pub serial: &'a str,
    /// Model number, 40 characters at most.
    pub model: &'a str,
    /// Firmware revision, 8 characters at most.
    pub firmware: &'a str,
    /// Organisationally unique identifier, 24 bits.
    pub ieee_oui: u32,
    /// Name of the subsystem, 223 characters at most.
    pub subsystem_name: &'a str,
    /// Identifier.
    pub controller: ControllerId,
    /// Version it follows.
    pub version: Version,
    /// Most data of a command: 2 to its power, smallest memory pages; 0 no limit.
    pub mdts: u8,
    /// Highest identifier of a namespace.
    pub namespaces_max: u32,
    /// Media in all, bytes.
    pub capacity_bytes: u128,
    /// Host memory it asks for.
    pub host_memory: HmbLimits,
    /// Whether it has a write cache that loses data at a power cut.
    pub volatile_write_cache: bool,
    /// Whether it takes shadow doorbells.
    pub doorbell_buffers: bool,
    /// Whether it takes scatter gather lists.
    pub scatter_gather: bool,
    /// Kinds of sanitize (SANICAP).
    pub sanitize: u32,
    /// Blocks written atomically, 0-based, also over a power cut.
    pub atomic_blocks_z: u16,
    /// Entries of the error log, 0-based.
    pub error_entries_z: u8,
    /// Power states, 1 to 32, most power first.
    pub power_states: &'a [PowerState],
    /// Warning and critical temperature, kelvins.
    pub temperatures_kelvin: (u16, u16),
}

/// CTRATT: host identifiers of 128 bits.
const HOST_ID_128: u32 = 1;
/// CTRATT: a host may restrict access to its memory (HMBR).
const HMB_RESTRICT: u32 = 1 << 17;
/// Format, firmware, namespace management, device self-test.
const ADMIN_COMMANDS: u16 = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4;
/// OACS: Doorbell Buffer Config.
const DOORBELL_BUFFERS: u16 = 1 << 8;
/// Compare, dataset management, write zeroes, saved features, timestamp, verify.
const IO_COMMANDS: u16 = 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 6 | 1 << 7;

impl Controller<'_> {
    /// The structure.
    ///
    /// # Panics
    /// If it has no power state, more than 32, or an OUI of more than 24 bits.
    #[must_use]
    pub fn page(&self) -> Page {
        let states = self.power_states;
        assert!((1..=POWER_STATES_MAX).contains(&states.len()));
        let mut page = Page::new(&STRUCTURE);
        self.put_identity(&mut page);
        self.put_abilities(&mut page);
        let host_memory = self.host_memory;
        page.set(HMPRE, host_memory.preferred_4kib)
            .set(HMMIN, host_memory.min_4kib)
            .set(HMMINDS, host_memory.descriptor_min_4kib)
            .set(HMMAXD, host_memory.descriptors_max)
            .set(NPSS, states.len() as u8 - 1)
            // Transitions on its own are of use where there is somewhere to go.
            .set(
                APSTA,
                u8::from(states.iter().any(|state| !state.is_operational())),
            );
        for (index, state) in states.iter().enumerate() {
            let whole = super::Field {
                name: "PSD",
                kind: super::Kind::Bytes,
                offset: POWER_STATES_AT + index * PowerState::BYTES,
                bytes: PowerState::BYTES,
                about: "",
            };
            page.set_bytes(whole, &state.encode());
        }
        page
    }

    fn put_identity(&self, page: &mut Page) {
        page.set(VID, self.vendor)
            .set(SSVID, self.vendor)
            .set_text(SN, self.serial)
            .set_text(MN, self.model)
            .set_text(FR, self.firmware)
            .set(IEEE, self.ieee_oui)
            .set_text(SUBNQN, self.subsystem_name)
            .set(CNTLID, self.controller.0)
            .set(VER, self.version.encode())
            .set(CNTRLTYPE, 1u8)
            .set(NVMSR, 1u8);
    }

    fn put_abilities(&self, page: &mut Page) {
        let attributes = HOST_ID_128
            | if self.host_memory.restrictable {
                HMB_RESTRICT
            } else {
                0
            };
        let admin = ADMIN_COMMANDS
            | if self.doorbell_buffers {
                DOORBELL_BUFFERS
            } else {
                0
            };
        // Flush with the broadcast namespace works; without a cache, too.
        let cache = u8::from(self.volatile_write_cache) | 3 << 1;
        page.set(RAB, 3u8)
            .set(MDTS, self.mdts)
            .set(OAES, 1u32 << 8 | 1 << 9)
            .set(CTRATT, attributes)
            .set(OACS, admin)
            .set(ACL, 3u8)
            .set(AERL, 3u8)
            // Two slots, activation without reset.
            .set(FRMW, 2u8 << 1 | 1 << 4)
            // Effects, offsets, supported pages; no SMART by namespace.
            .set(LPA, 1u8 << 1 | 1 << 2 | 1 << 5)
            .set(ELPE, self.error_entries_z)
            .set(AVSCC, 1u8)
            .set(ICSVSCC, 1u8)
            .set(WCTEMP, self.temperatures_kelvin.0)
            .set(CCTEMP, self.temperatures_kelvin.1)
            .set(TNVMCAP, self.capacity_bytes)
            .set(EDSTT, 1u8)
            .set(SANICAP, self.sanitize)
            .set(SQES, 0x66u8)
            .set(CQES, 0x44u8)
            .set(NN, self.namespaces_max)
            .set(MNAN, self.namespaces_max)
            .set(ONCS, IO_COMMANDS)
            .set(VWC, cache)
            .set(AWUN, self.atomic_blocks_z)
            .set(AWUPF, self.atomic_blocks_z)
            .set(
                SGLS,
                if self.scatter_gather {
                    crate::sgl::SGLS
                } else {
                    0
                },
            );
    }
}
