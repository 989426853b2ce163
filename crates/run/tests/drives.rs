//! The collection of drives: every file parses, every number says where it comes from, and what
//! follows from the numbers is near what the drives are rated or known for.

use lodger_core::spec::{DriveSpec, ParsedDrive, SourceKind, Tier};
use lodger_run::{Drive, drives};

fn drive(name: &str) -> ParsedDrive {
    match Drive::open(name, &[]) {
        Ok(drive) => drive.parsed,
        Err(error) => panic!("{name}: {error}"),
    }
}

fn all() -> impl Iterator<Item = (&'static str, ParsedDrive)> {
    drives::names().map(|name| (name, drive(name)))
}

#[test]
fn the_collection_has_every_drive_and_the_folder_no_more() {
    let mut names: Vec<_> = drives::names().map(|name| format!("{name}.toml")).collect();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../drives");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    files.sort();
    assert_eq!(names, files);
    assert_eq!(all().count(), names.len());
}

#[test]
fn every_number_has_a_source_and_an_assumption_its_reason() {
    for (name, drive) in all() {
        for value in &drive.values {
            let (key, source) = (value.key, &value.source);
            assert!(
                !value.numeric || source.kind != SourceKind::Unstated,
                "{name}: `{key}` has no source"
            );
            let said = source.from.trim().len();
            assert!(
                said >= 5,
                "{name}: `{key}`: `{}` says too little",
                source.from
            );
            if source.kind == SourceKind::Assumed {
                assert!(
                    said >= 15,
                    "{name}: `{key}`: an assumption needs its reason"
                );
            }
        }
    }
}

#[test]
fn a_drive_reads_back_from_what_show_prints() {
    for (name, drive) in all() {
        let text = drive.to_toml();
        let again = Drive::parse("again.toml", &text, &[]);
        let again = again.unwrap_or_else(|e| panic!("{e}\n{text}")).parsed;
        assert_eq!(again.spec, drive.spec, "{name}");
        assert_eq!(again.to_toml(), text, "{name}");
    }
}

#[test]
fn capacity_fits_and_spare_is_what_the_flash_can_have() {
    for (name, drive) in all() {
        let spec = &drive.spec;
        let layout = spec.layout();
        assert_eq!(
            layout.superblocks(),
            u64::from(spec.nand.blocks_per_plane),
            "{name}"
        );
        let spare = layout.spare_factor();
        let asked = 1.0 - 1.0 / (1.0 + spec.ftl.overprovisioning);
        assert!(
            (spare - asked).abs() < 0.02,
            "{name}: spare {spare:.4}, asked {asked:.4}"
        );
        if name == "tiny" {
            continue;
        }
        // Raw flash comes in powers of two: the model must not need more than the drive can have.
        let raw = layout.superblocks() * layout.slots_per_superblock * 4096;
        let dies = u64::from(spec.nand.dies());
        let die_bytes = 32u64 << 30;
        assert!(
            raw <= dies * die_bytes,
            "{name}: {raw} bytes on {dies} dies of 256 Gbit"
        );
    }
}

/// Addresses that the map held by the HMB of `granted` bytes covers.
fn hmb_reach(spec: &DriveSpec, granted: u64) -> u64 {
    let hmb = spec.tiers.hmb.as_ref().expect("HMB");
    let tier = spec
        .roles
        .map
        .tiers
        .iter()
        .find(|t| t.tier == Tier::Hmb)
        .expect("map on HMB");
    tier.reach_bytes(hmb.usable_bytes(granted))
}

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

#[test]
fn bg4_reach_by_host_memory() {
    // ascii.jp 1829152: 61 MB reach less than 32 GB, 64 MB reach 48 GB.
    let spec = drive("bg4").spec;
    assert_eq!(hmb_reach(&spec, 61 * MIB), 24 * GIB);
    assert_eq!(hmb_reach(&spec, 64 * MIB), 48 * GIB);
    assert_eq!(hmb_reach(&spec, 9 * MIB), 0);
    let sram = &spec.roles.map.tiers[0];
    let off = sram.reach_bytes(sram.bytes);
    assert!(
        (GIB..2 * GIB).contains(&off),
        "without HMB 1 GB is fast and 2 GB slow, reach {off}"
    );
}

#[test]
fn rc100_reach_by_host_memory() {
    // AnandTech 12819: a sharp drop approaching 32 GB; no use below 10 MB.
    for name in ["rc100-240", "rc100-480"] {
        let spec = drive(name).spec;
        let reach = hmb_reach(&spec, 38 * MIB);
        assert!((20 * GIB..=32 * GIB).contains(&reach), "{name}: {reach}");
        assert_eq!(hmb_reach(&spec, 10 * MIB - 4096), 0);
        assert!(hmb_reach(&spec, 10 * MIB) > 0);
        let sram = &spec.roles.map.tiers[0];
        assert_eq!(sram.reach_bytes(sram.bytes), GIB, "{name}");
    }
}

#[test]
fn caching_units_of_the_kim_and_kim_drives() {
    // PLOS ONE 2020, Figure 10: A and C 2000 units for 8 MB and in proportion, B fewer than 200.
    for name in ["a80", "m730"] {
        let spec = drive(name).spec;
        for (mib, units) in [(8, 2048), (16, 4096), (32, 8192), (64, 16_384)] {
            assert_eq!(hmb_reach(&spec, mib * MIB) / (4 * MIB), units, "{name}");
        }
        assert_eq!(hmb_reach(&spec, 8 * MIB - 4096), 0, "{name}");
    }
    let spec = drive("ex900").spec;
    let unit = u64::from(spec.roles.map.tiers[1].unit_translation_pages) * 4 * MIB;
    assert_eq!(hmb_reach(&spec, 64 * MIB) / unit, 199);
    assert_eq!(hmb_reach(&spec, 63 * MIB), 0);
}

#[test]
fn drives_with_dram_hold_their_whole_map() {
    for name in ["wd-black-3d", "970-pro"] {
        let spec = drive(name).spec;
        let dram = &spec.roles.map.tiers[0];
        assert_eq!(dram.tier, Tier::Dram);
        assert!(
            dram.reach_bytes(dram.bytes) >= spec.capacity_bytes,
            "{name}"
        );
        assert!(spec.tiers.hmb.is_none());
    }
}

/// What the narrowest part lets through: 4 KiB random reads per second at any queue depth.
fn read_iops(spec: &DriveSpec) -> f64 {
    let nand = &spec.nand;
    let read_ps = nand.read_ps.iter().sum::<u64>() as f64 / nand.read_ps.len() as f64;
    let dies = f64::from(nand.dies()) * 1e12 / read_ps;
    let bus =
        nand.channels as f64 * nand.channel_bytes_per_s as f64 / f64::from(nand.codeword_bytes);
    let core = f64::from(spec.controller.cores) * 1e12 / spec.controller.read_ps as f64;
    dies.min(bus).min(core)
}

/// Sequential reads, bytes per second.
fn read_rate(spec: &DriveSpec) -> f64 {
    let nand = &spec.nand;
    let payload = f64::from(spec.link.max_payload_bytes);
    let packets = payload / (payload + f64::from(spec.link.packet_overhead_bytes));
    let link = spec.link.bytes_per_s as f64 * packets;
    let share = 4096.0 / f64::from(nand.codeword_bytes);
    let bus = nand.channels as f64 * nand.channel_bytes_per_s as f64 * share;
    // 128 KiB requests.
    let core_ps = spec.controller.read_ps + 31 * spec.controller.next_slot_ps;
    let core = f64::from(spec.controller.cores) * 131_072e12 / core_ps as f64;
    link.min(bus).min(core)
}

/// Random writes per second that the cores let through.
fn write_iops(spec: &DriveSpec) -> f64 {
    f64::from(spec.controller.cores) * 1e12 / spec.controller.write_ps as f64
}

/// Unloaded latency of a 4 KiB read whose map entry is at hand, microseconds.
fn read_latency_us(spec: &DriveSpec) -> f64 {
    let (nand, link) = (&spec.nand, &spec.link);
    let read_ps = nand.read_ps.iter().sum::<u64>() as f64 / nand.read_ps.len() as f64;
    let bus = f64::from(nand.codeword_bytes) * 1e12 / nand.channel_bytes_per_s as f64;
    let data = 4096.0 * 1.1 * 1e12 / link.bytes_per_s as f64;
    // Doorbell, fetch of the command, data and completion entry.
    let flights = 5.0 * link.one_way_ps as f64 + link.host_memory_ps as f64;
    let drive = (spec.controller.read_ps + nand.command_ps + nand.ecc_ps) as f64;
    let host = (spec.host.submit_ps + spec.host.complete_ps) as f64;
    (host + flights + drive + read_ps + bus + data) / 1e6
}

#[test]
fn peaks_are_near_the_ratings() {
    // Random reads and writes per second, sequential reads in bytes per second.
    let ratings = [
        ("rc100-240", 130e3, 110e3, 1600e6),
        ("rc100-480", 150e3, 110e3, 1600e6),
        ("bg4", 390e3, 200e3, 2300e6),
        ("wd-black-3d", 410e3, 330e3, 3400e6),
        ("970-pro", 370e3, 500e3, 3500e6),
    ];
    for (name, reads, writes, sequential) in ratings {
        let spec = drive(name).spec;
        let near = |what: &str, value: f64, rated: f64| {
            let ratio = value / rated;
            assert!(
                (0.95..1.30).contains(&ratio),
                "{name}: {what} {value:.0}, rated {rated:.0}"
            );
        };
        near("random reads", read_iops(&spec), reads);
        near("random writes", write_iops(&spec), writes);
        near("sequential reads", read_rate(&spec), sequential);
    }
}

#[test]
fn unloaded_reads_take_as_long_as_flash_lets_them() {
    for (name, drive) in all() {
        let us = read_latency_us(&drive.spec);
        let range = if drive.spec.nand.cell == lodger_core::spec::Cell::Slc {
            10.0..20.0
        } else if name == "galaxy-s7" {
            // A phone's processor and firmware take longer.
            50.0..125.0
        } else {
            50.0..110.0
        };
        assert!(range.contains(&us), "{name}: {us:.1} us");
    }
}

#[test]
fn rc100_240_is_the_480_with_half_the_dies() {
    let (half, whole) = (drive("rc100-240"), drive("rc100-480"));
    assert_eq!(half.spec.nand.dies() * 2, whole.spec.nand.dies());
    assert_eq!(half.spec.tiers, whole.spec.tiers);
    assert_eq!(half.spec.roles, whole.spec.roles);
    let sources = half.sources();
    assert_eq!(sources["tier.hmb.min"].kind, SourceKind::Measured);
    assert!(sources["capacity"].from.starts_with("240 GB"));
}
