//! What a drive file means: units, defaults, derived values, `extends` and `--set`.

use lodger_core::spec::{
    GcPolicy, ParsedDrive, Replacement, SourceKind, SpecError, Tier, parse, reference,
    reference_markdown,
};
use proptest::prelude::*;

const TINY: &str = include_str!("../../../../drives/tiny.toml");

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
    assert_eq!(
        (sram.tier, sram.bytes, sram.unit_bytes()),
        (Tier::Sram, 32 << 10, 4096)
    );
    assert_eq!(sram.reach_bytes(sram.bytes), 32 << 20);
    assert_eq!((hmb.tier, hmb.bytes), (Tier::Hmb, 256 << 10));
    assert_eq!(hmb.reach_bytes(hmb.bytes), 256 << 20);
    let layout = spec.layout();
    assert_eq!(layout.slots_per_superblock, 3072);
    assert_eq!(layout.superblocks(), u64::from(spec.nand.blocks_per_plane));
    assert_eq!(layout.translation_pages, 128);
    assert_eq!(
        layout.data_superblocks,
        (131_072.0f64 * 1.12 / 3072.0).ceil() as u64
    );
    assert_eq!(layout.map_superblocks, 2);
    assert_eq!(layout.reserve_superblocks, 6);
    assert_eq!(layout.slc_superblocks, 4);
}

#[test]
fn command_line_values_need_no_quotes() {
    let sets = [
        ("nand.read", "50us"),
        ("link.pcie", "4.0 x4"),
        ("role.map.tiers", "sram"),
        ("role.map.replacement", "2q"),
        ("name", "970"),
        ("ftl.gc_policy", "d-choices"),
        ("ftl.gc_choices", "3"),
        ("nand.one_shot", "false"),
        ("nand.program", "[\"500us\", \"600us\", \"700us\"]"),
    ];
    let spec = tiny(&sets).unwrap().spec;
    assert_eq!(spec.nand.read_ps, [50_000_000; 3]);
    assert_eq!(spec.link.bytes_per_s, 7_876_923_076);
    assert_eq!(spec.roles.map.tiers.len(), 1);
    assert_eq!(spec.roles.map.replacement, Replacement::TwoQ);
    assert_eq!(spec.name, "970");
    assert_eq!(spec.ftl.gc_policy, GcPolicy::DChoices(3));
    assert_eq!(
        spec.nand.program_ps,
        [500_000_000, 600_000_000, 700_000_000]
    );
}

#[test]
fn a_single_program_time_is_a_pages_or_a_word_lines() {
    let times = |one_shot| tiny(&[("nand.one_shot", one_shot), ("nand.program", "1000001ps")]);
    assert_eq!(times("false").unwrap().spec.nand.program_ps, [1_000_001; 3]);
    assert_eq!(
        times("true").unwrap().spec.nand.program_ps,
        [333_333, 333_333, 333_335]
    );
}

#[test]
fn parts_can_be_turned_off() {
    let sets = [
        ("nand.suspend.max_per_operation", "0"),
        ("role.read_cache.size", "0B"),
    ];
    let spec = tiny(&sets).unwrap().spec;
    assert_eq!(spec.nand.suspend, None);
    assert_eq!(spec.roles.read_cache, None);
}

#[test]
fn a_log_of_the_write_buffer_that_cannot_be() {
    let with = |more: &[(&str, &str)]| {
        let log = ("role.write_buffer.log", "pm");
        let sets: Vec<_> = [log].iter().chain(more).copied().collect();
        tiny(&sets).expect_err("refused").to_string()
    };
    assert_eq!(
        with(&[]),
        "`role.write_buffer.log` needs a table `[tier.pm]`, which this drive does not have, found `pm` (--set)"
    );
    let pm = ("tier.pm.size", "64KiB");
    let volatile = "`role.write_buffer.log` needs a buffer in volatile memory that acknowledges what is not in flash, found `pm` (--set)";
    assert_eq!(with(&[pm, ("role.write_buffer.tier", "slc")]), volatile);
    let programmed = ("role.write_buffer.acknowledge", "programmed");
    assert_eq!(with(&[pm, programmed]), volatile);
    assert_eq!(
        with(&[pm, ("role.write_buffer.log_size", "128KiB")]),
        "`tier.pm.size` must hold the roles placed on it: 128KiB (`role.write_buffer.log_size` 128KiB), found `64KiB` (--set)"
    );
    assert_eq!(
        with(&[("tier.pm.size", "1KiB")]),
        "`role.write_buffer.log` needs 4KiB of `tier.pm.size` that no other role takes, found `pm` (--set)"
    );
}

#[test]
fn a_rate_replaces_that_of_the_link() {
    assert_eq!(
        tiny(&[("link.rate", "3.91GB/s")])
            .unwrap()
            .spec
            .link
            .bytes_per_s,
        3_910_000_000
    );
}

#[test]
fn a_derived_drive_takes_what_it_does_not_give() {
    let text = "extends = \"tiny\"\nname = \"Twice\"\ncapacity = \"1GiB\"\n[sources]\n\
                capacity = { kind = \"assumed\", from = \"twice the other\" }";
    let base = |name: &str| (name == "tiny").then(|| TINY.to_owned());
    let derived = parse(text, "twice.toml", &[], &base).unwrap();
    let tiny = tiny(&[]).unwrap();
    assert_eq!(derived.spec.name, "Twice");
    assert_eq!(derived.spec.capacity_bytes, 2 * tiny.spec.capacity_bytes);
    assert_eq!(derived.spec.roles, tiny.spec.roles);
    assert!(derived.spec.nand.blocks_per_plane > tiny.spec.nand.blocks_per_plane);
    let sources = derived.sources();
    assert_eq!(sources["capacity"].from, "twice the other");
    assert_eq!(sources["nand.channels"], tiny.sources()["nand.channels"]);
    assert_eq!(sources["name"].kind, SourceKind::Unstated);
    assert_eq!(sources["nand.blocks_per_plane"].kind, SourceKind::Derived);
    assert_eq!(sources["host.submit"].kind, SourceKind::Default);
}

#[test]
fn an_overridden_value_loses_its_source() {
    let drive = tiny(&[("nand.channels", "4")]).unwrap();
    let sources = drive.sources();
    assert_eq!(sources["nand.channels"].kind, SourceKind::CommandLine);
    assert_eq!(sources["nand.channels"].from, "--set nand.channels=4");
}

#[test]
fn a_value_for_all_tiers_replaces_those_by_tier() {
    let pages = |sets: &[(&str, &str)]| {
        let spec = tiny(sets).unwrap().spec;
        spec.roles
            .map
            .tiers
            .iter()
            .map(|t| t.unit_translation_pages)
            .collect::<Vec<_>>()
    };
    assert_eq!(pages(&[]), [1, 1]);
    assert_eq!(pages(&[("role.map.unit.hmb", "16KiB")]), [1, 4]);
    assert_eq!(
        pages(&[("role.map.unit", "8KiB"), ("role.map.unit.hmb", "16KiB")]),
        [2, 4]
    );
    assert_eq!(
        pages(&[("role.map.unit.hmb", "16KiB"), ("role.map.unit", "8KiB")]),
        [2, 2]
    );
}

#[test]
fn given_blocks_decide_the_spare() {
    let spec = tiny(&[("nand.blocks_per_plane", "100")]).unwrap().spec;
    let layout = spec.layout();
    assert_eq!(
        (spec.nand.blocks_per_plane, layout.superblocks()),
        (100, 100)
    );
    assert_eq!(layout.data_superblocks, 88);
    let spare = 1.0 - 131_072.0 / (88.0 * 3072.0);
    assert!((layout.spare_factor() - spare).abs() < 1e-12);
}

#[test]
fn over_provisioning_gives_the_spare_factor_that_formulas_speak_of() {
    for (asked, key) in [(0.1, "0.111111111111"), (0.2, "0.25"), (0.5, "1.0")] {
        let sets = [("capacity", "8GiB"), ("ftl.overprovisioning", key)];
        let layout = tiny(&sets).unwrap().spec.layout();
        let spare = layout.spare_factor();
        // One superblock of 8 GiB is a seventh of a percent.
        assert!(
            spare >= asked - 1e-9 && spare < asked + 0.0015,
            "{spare} for {asked}"
        );
    }
}

#[test]
fn what_is_kept_aside_does_not_change_the_data() {
    let data = |sets: &[(&str, &str)]| tiny(sets).unwrap().spec.layout().data_superblocks;
    let plain = data(&[]);
    for (key, value) in [
        ("ftl.gc_start_superblocks", "20"),
        ("ftl.slc_superblocks", "0"),
        ("ftl.hot_cold_streams", "true"),
        ("ftl.gc_own_stream", "false"),
    ] {
        assert_eq!(data(&[(key, value)]), plain, "{key}");
    }
}

#[test]
fn the_reference_lists_every_key_once() {
    let keys: Vec<_> = reference().into_iter().map(|r| r.key).collect();
    let mut unique = keys.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), keys.len());
    let rows = reference_markdown().lines().count();
    assert_eq!(rows, keys.len() + 2);
    let row = "| `nand.channel_mt_s` | MT/s | between 40 and 4800 | required |";
    assert!(reference_markdown().contains(row));
}

#[test]
fn every_default_of_the_reference_is_what_the_parser_uses() {
    let drive = tiny(&[]).unwrap();
    for row in reference() {
        let value = drive.values.iter().find(|v| v.key == row.key);
        if let Some(value) = value.filter(|v| v.source.kind == SourceKind::Default) {
            // Of an optional table: "`20us` with `[nand.suspend]`".
            let default = row.default.split(" with ").next().unwrap();
            let set = [(row.key, default.trim_matches('`'))];
            let again = tiny(&set).unwrap();
            assert_eq!(again.spec, drive.spec, "{}", row.key);
            assert_eq!(format!("`{}`", value.text), default, "{}", row.key);
        }
    }
}

/// A value that may well be right for a key, as on the command line.
fn plausible(row: &lodger_core::spec::KeyReference) -> BoxedStrategy<String> {
    let words: Vec<String> = row
        .range
        .split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect();
    let number = 0u64..3000;
    match row.unit {
        "size" => (number, "(B|KiB|MiB|GiB|kB|MB)")
            .prop_map(|(n, u)| format!("{n}{u}"))
            .boxed(),
        "time" => (number, "(ps|ns|us|ms)")
            .prop_map(|(n, u)| format!("{n}{u}"))
            .boxed(),
        "time, or list of times" => (1u64..2000, "(us|ns)", 1usize..4)
            .prop_map(|(n, u, len)| {
                let times: Vec<_> = (0..len as u64)
                    .map(|i| format!("\"{}{u}\"", n + i))
                    .collect();
                if len == 1 {
                    format!("{n}{u}")
                } else {
                    format!("[{}]", times.join(", "))
                }
            })
            .boxed(),
        "rate" => (1u64..9999, "(MB/s|kB/s|GB/s)")
            .prop_map(|(n, u)| format!("{n}{u}"))
            .boxed(),
        "MT/s" => (4000u64..480_000)
            .prop_map(|n| format!("{}.{:02}", n / 100, n % 100))
            .boxed(),
        "number" if row.default.contains('.') || row.range.contains("1 and 64") => (0u32..8000)
            .prop_map(|n| format!("{}", f64::from(n) / 1000.0))
            .boxed(),
        "number" => (0u64..600).prop_map(|n| n.to_string()).boxed(),
        "flag" => any::<bool>().prop_map(|flag| flag.to_string()).boxed(),
        "text" => "[ -~]{1,20}".boxed(),
        "list of words" => Just("sram,hmb".to_owned()).boxed(),
        _ if words.is_empty() => Just("3.0 x4".to_owned()).boxed(),
        _ => prop::sample::select(words).boxed(),
    }
}

#[test]
fn what_a_value_was_fitted_to_goes_with_it() {
    let text = "extends = \"tiny\"\n[nand]\nread = \"60us\"\n[sources]\n\"nand.read\" = { kind = \"fitted\", \
                from = \"x\", to = [\"kim-2020/Figure 5\", \"y/z\"] }\n";
    let tiny = |_: &str| Some(TINY.to_owned());
    let to = |drive: &ParsedDrive| drive.sources()["nand.read"].to.clone();
    let drive = parse(text, "mine.toml", &[], &tiny).unwrap();
    assert_eq!(to(&drive), ["kim-2020/Figure 5", "y/z"]);
    let again = parse(&drive.to_toml(), "again.toml", &[], &none).unwrap();
    assert_eq!(to(&again), to(&drive));
    let heir = |_: &str| Some(drive.to_toml());
    let derived = parse("extends = \"mine\"", "heir.toml", &[], &heir).unwrap();
    assert_eq!(to(&derived), to(&drive));
    let changed = parse(text, "mine.toml", &[("nand.read", "61us")], &tiny).unwrap();
    assert!(to(&changed).is_empty());
    for wrong in ["5", "\"x\"", "[5]", "[\" \"]"] {
        let text = text.replace("[\"kim-2020/Figure 5\", \"y/z\"]", wrong);
        let error = parse(&text, "mine.toml", &[], &tiny).unwrap_err();
        assert!(error.to_string().contains("every entry of `[sources]`"));
    }
}

/// A value that a drive gives as the one it extends has it was fitted there, whatever it says of it: it lost that.
#[test]
fn a_fitted_value_given_again_stays_fitted() {
    let base = "extends = \"tiny\"\nnand.ecc = \"3us\"\nrole.map.unit.hmb = \"16KiB\"\n[sources]\n\
                \"nand.ecc\" = { kind = \"fitted\", from = \"x\", to = [\"a/b\", \"c/d\"] }\n\
                \"role.map.unit.hmb\" = { kind = \"fitted\", from = \"y\", to = [\"e/f\"] }\n";
    let text_of = |name: &str| {
        let text = if name == "base" { base } else { TINY };
        Some(text.to_owned())
    };
    let of = |text: &str, sets: &[(&str, &str)], key: &str| {
        let text = format!("extends = \"base\"\n{text}");
        let drive = parse(&text, "heir.toml", sets, &text_of).unwrap();
        let to = drive.sources()[key].to.clone();
        let again = parse(&drive.to_toml(), "again.toml", &[], &none).unwrap();
        assert_eq!(again.sources()[key].to, to, "{text}");
        to
    };
    let ecc = |text: &str| of(text, &[], "nand.ecc");
    let assumed = "[sources]\n\"nand.ecc\" = { kind = \"assumed\", from = \"z\" }\n";
    assert_eq!(ecc(""), ["a/b", "c/d"]);
    for again in ["3us", "3000ns", "0.003ms"] {
        let text = format!("nand.ecc = \"{again}\"\n");
        assert_eq!(ecc(&text), ["a/b", "c/d"]);
        assert_eq!(ecc(&format!("{text}{assumed}")), ["a/b", "c/d"]);
        let own = format!("{text}{assumed}").replace("\"z\"", "\"z\", to = [\"c/d\", \"g/h\"]");
        let mut both = ecc(&own);
        both.sort();
        assert_eq!(both, ["a/b", "c/d", "g/h"]);
        assert_eq!(of("", &[("nand.ecc", again)], "nand.ecc"), ["a/b", "c/d"]);
    }
    let other = "nand.ecc = \"3001ns\"\n";
    assert!(ecc(other).is_empty());
    assert!(ecc(&format!("{other}{assumed}")).is_empty());
    assert!(of("", &[("nand.ecc", "2us")], "nand.ecc").is_empty());
    // For all memories what was fitted for one.
    let unit = |size: &str| {
        of(
            &format!("role.map.unit = \"{size}\"\n"),
            &[],
            "role.map.unit",
        )
    };
    assert_eq!(unit("16KiB"), ["e/f"]);
    assert!(unit("4KiB").is_empty());
}

fn plausible_sets() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    let rows: Vec<_> = reference();
    let pick = prop::sample::select(rows);
    let set = pick.prop_flat_map(|row| (Just(row.key), plausible(&row)));
    prop::collection::vec(set, 1..5)
}

proptest! {
    #![proptest_config(lodger_testing::config(512))]

    #[test]
    fn a_valid_drive_reads_back_from_its_own_text(sets in plausible_sets()) {
        let sets: Vec<_> = sets.iter().map(|(key, value)| (*key, value.as_str())).collect();
        if let Ok(drive) = tiny(&sets) {
            let text = drive.to_toml();
            let again = parse(&text, "again.toml", &[], &none);
            prop_assert!(again.is_ok(), "{:?}\n{}", again, text);
            let again = again.unwrap();
            prop_assert_eq!(&again.spec, &drive.spec);
            prop_assert_eq!(again.to_toml(), text);
        }
    }

    #[test]
    fn a_valid_drive_holds_what_it_promises(sets in plausible_sets()) {
        let sets: Vec<_> = sets.iter().map(|(key, value)| (*key, value.as_str())).collect();
        if let Ok(drive) = tiny(&sets) {
            let spec = &drive.spec;
            let layout = spec.layout();
            prop_assert_eq!(layout.superblocks(), u64::from(spec.nand.blocks_per_plane));
            let user = spec.capacity_bytes.div_ceil(4096);
            prop_assert!(layout.data_slots() >= user + 2 * layout.slots_per_superblock);
            let slots = layout.superblocks() * layout.slots_per_superblock;
            prop_assert!(slots < u64::from(u32::MAX));
            let bits = spec.nand.cell.bits() as usize;
            prop_assert_eq!(spec.nand.read_ps.len(), bits);
            prop_assert_eq!(spec.nand.program_ps.len(), bits);
            for tier in &spec.roles.map.tiers {
                prop_assert!(tier.unit_translation_pages > 0 && tier.bytes >= tier.unit_bytes());
            }
            prop_assert!(spec.roles.write_buffer.bytes >= spec.nand.program_bytes());
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC*|[\\x00-\\x7f]{0,200}") {
        let _ = parse(&text, "any.toml", &[], &none);
    }

    #[test]
    fn no_damage_to_a_drive_file_makes_the_parser_panic(
        at in 0usize..TINY.len(),
        cut in 0usize..30,
        with in "[-0-9a-z\\[\\]{}\"'.=,#\n ]{0,12}",
    ) {
        let mut text = TINY.to_owned();
        let end = (at + cut).min(text.len());
        if text.is_char_boundary(at) && text.is_char_boundary(end) {
            text.replace_range(at..end, &with);
            if let Err(error) = parse(&text, "any.toml", &[], &none) {
                prop_assert!(!error.message.is_empty() && !error.message.contains('\n'));
            }
        }
    }

    #[test]
    fn no_override_makes_the_parser_panic(
        key in prop::sample::select(reference()),
        value in "\\PC*|[-+0-9.a-zA-Z/\\[\\]\" ]{0,30}",
    ) {
        if let Err(error) = tiny(&[(key.key, &value)]) {
            prop_assert!(!error.message.contains('\n'));
        }
        let _ = tiny(&[(&value, "1")]);
    }
}

/// `--set link.pcie` of a drive whose file states a rate was read, shown and not used.
#[test]
fn a_link_given_later_has_the_rate_of_that_link() {
    let stated = TINY.replace("[link]\n", "[link]\nrate = \"3.2GB/s\"\n");
    assert_ne!(stated, TINY);
    let rate = |sets: &[(&str, &str)]| {
        let parsed = parse(&stated, "stated.toml", sets, &none).unwrap();
        parsed.spec.link.bytes_per_s
    };
    let slow = ("link.pcie", "1.0 x1");
    assert_eq!(rate(&[]), 3_200_000_000, "one file says both");
    assert_eq!(rate(&[slow]), 250_000_000);
    let own = ("link.rate", "100MB/s");
    assert_eq!(rate(&[own, slow]), 100_000_000);
    assert_eq!(rate(&[slow, own]), 100_000_000);
    let extended = |child: &str| {
        let base = stated.clone();
        let parsed = parse(child, "child.toml", &[], &move |_: &str| Some(base.clone()));
        parsed.unwrap().spec.link.bytes_per_s
    };
    let child = "extends = \"stated\"\n[link]\npcie = \"1.0 x1\"\n";
    assert_eq!(extended(child), 250_000_000);
    assert_eq!(
        extended(&format!("{child}rate = \"100MB/s\"\n")),
        100_000_000
    );
}
