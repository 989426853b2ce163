//! What a drive file means: units, defaults, derived values, `extends` and `--set`.

use lodger_core::spec::{ParsedDrive, SpecError, Tier, parse, reference};

const TINY: &str = include_str!("../../../drives/tiny.toml");

fn none(_: &str) -> Option<String> {
    None
}

fn tiny(sets: &[(&str, &str)]) -> Result<ParsedDrive, SpecError> {
    parse(TINY, "tiny.toml", sets, &none)
}

#[test]
fn tiny_is_understood() {
    let spec = tiny(&[]).unwrap().spec;
    assert_eq!(spec.capacity_bytes, 512 << 20);
    assert_eq!(spec.link.bytes_per_s, 1_969_230_769);
    assert_eq!(spec.nand.read_ps, [50_000_000, 55_000_000, 65_000_000]);
    assert_eq!(spec.nand.program_ps.iter().sum::<u64>(), 1_500_000_000);
    assert_eq!(spec.nand.channel_bytes_per_s, 533_000_000);
    let [sram, hmb] = &spec.roles.map.tiers[..] else {
        panic!("two tiers");
    };
    assert_eq!((sram.tier, sram.bytes, sram.unit_bytes()), (Tier::Sram, 32 << 10, 4096));
    assert_eq!(sram.reach_bytes(sram.bytes), 32 << 20);
    assert_eq!((hmb.tier, hmb.bytes), (Tier::Hmb, 256 << 10));
    assert_eq!(hmb.reach_bytes(hmb.bytes), 256 << 20);
    let layout = spec.layout();
    assert_eq!(layout.slots_per_superblock, 3072);
    assert_eq!(layout.superblocks(), u64::from(spec.nand.blocks_per_plane));
    assert_eq!(layout.translation_pages, 128);
    assert_eq!(layout.data_superblocks, (131_072.0f64 * 1.12 / 3072.0).ceil() as u64);
    assert_eq!(layout.map_superblocks, 2);
    assert_eq!(layout.reserve_superblocks, 6);
    assert_eq!(layout.slc_superblocks, 4);
}

#[test]
fn the_reference_lists_every_key_once() {
    let keys: Vec<_> = reference().into_iter().map(|r| r.key).collect();
    let mut unique = keys.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), keys.len());
}
