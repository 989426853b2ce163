//! What a wrong drive file is told: the value, what is allowed, the place, what to do next.

use lodger_core::spec::{Problem, SpecError, parse};

const TINY: &str = include_str!("../../../../drives/tiny.toml");

fn none(_: &str) -> Option<String> {
    None
}

fn error(text: &str, sets: &[(&str, &str)]) -> SpecError {
    match parse(text, "my-drive.toml", sets, &none) {
        Err(error) => error,
        Ok(_) => panic!("no error with {sets:?}"),
    }
}

/// `tiny` with one line replaced; places are its lines.
fn edited(line: &str, with: &str) -> String {
    let found = TINY.lines().filter(|l| *l == line).count();
    assert_eq!(found, 1, "`{line}` stands once in tiny.toml");
    let lines = TINY.lines().map(|l| if l == line { with } else { l });
    lines.collect::<Vec<_>>().join("\n")
}

fn line_of(line: &str) -> usize {
    1 + TINY.lines().position(|l| l == line).unwrap()
}

/// `with` in place of `line`; `message` is what stands before the place.
#[track_caller]
fn check(line: &str, with: &str, message: &str) {
    let error = error(&edited(line, with), &[]);
    assert_eq!(
        error.to_string(),
        format!("{message} (my-drive.toml:{})", line_of(line))
    );
    assert!(error.hint.is_some());
}

#[track_caller]
fn check_set(key: &str, value: &str, message: &str) {
    let error = error(TINY, &[(key, value)]);
    assert_eq!(error.to_string(), format!("{message} (--set)"));
}

#[test]
fn a_value_out_of_range_names_key_range_value_and_line() {
    let error = error(&edited("channel_mt_s = 533", "channel_mt_s = 0"), &[]);
    let line = line_of("channel_mt_s = 533");
    assert_eq!(
        error.to_string(),
        format!(
            "`nand.channel_mt_s` must be between 40 and 4800, found `0` (my-drive.toml:{line})"
        )
    );
    assert_eq!(error.problem, Problem::Range);
    assert_eq!(error.place.line, Some(line as u32));
    assert_eq!(
        error.hint.as_deref(),
        Some(
            "`nand.channel_mt_s`: Rate of a channel, one byte a transfer; `lodger drives show tiny` prints that of a small drive"
        )
    );
}

#[test]
fn the_edges_of_a_range_are_inside() {
    for value in ["40", "4800", "40MT/s", "4.8GT/s", "533.33"] {
        let parsed = parse(
            TINY,
            "my-drive.toml",
            &[("nand.channel_mt_s", value)],
            &none,
        );
        assert!(parsed.is_ok(), "{value}");
    }
    for value in [
        "0",
        "39",
        "39.999999",
        "4801",
        "4800.000001",
        "-5",
        "nan",
        "inf",
        "-inf",
    ] {
        let message = format!("`nand.channel_mt_s` must be between 40 and 4800, found `{value}`");
        check_set("nand.channel_mt_s", value, &message);
    }
}

#[test]
fn wrong_types_say_what_is_expected() {
    let rate = "`nand.channel_mt_s` must be a rate in MT/s, such as `533` or `\"533MT/s\"`";
    for value in ["fast", "533MB/s", "true", "1e3", "[533]"] {
        check_set(
            "nand.channel_mt_s",
            value,
            &format!("{rate}, found `{value}`"),
        );
    }
    let size = "`capacity` must be a size with its unit, such as `\"480GB\"` or `\"38MiB\"`";
    for value in ["480", "480 gigabytes", "4.8e2GB", "false"] {
        check_set("capacity", value, &format!("{size}, found `{value}`"));
    }
    check(
        "channels = 2",
        "channels = \"two\"",
        "`nand.channels` must be a whole number, found `\"two\"`",
    );
    check(
        "channels = 2",
        "channels = 2.5",
        "`nand.channels` must be a whole number, found `2.5`",
    );
    check(
        "one_shot = true",
        "one_shot = 1",
        "`nand.one_shot` must be `true` or `false`, found `1`",
    );
    check(
        "erase = \"5ms\"",
        "erase = 5",
        "`nand.erase` must be a time with its unit, such as `\"58us\"` or `\"1.72ms\"`, found `5`",
    );
    check(
        "erase = \"5ms\"",
        "erase = 1979-05-27",
        "`nand.erase` must be a time with its unit, such as `\"58us\"` or `\"1.72ms\"`, found `1979-05-27`",
    );
    check_set(
        "ftl.overprovisioning",
        "7%",
        "`ftl.overprovisioning` must be a number, found `7%`",
    );
    check_set(
        "nand.read",
        "58",
        "`nand.read` must be a time such as `\"58us\"`, or a list with one time for each page type, found `58`",
    );
    check_set(
        "link.rate",
        "4GB",
        "`link.rate` must be a rate with its unit, such as `\"3.2GB/s\"`, found `4GB`",
    );
    check_set(
        "link.pcie",
        "3.0 x3",
        "`link.pcie` must be a PCIe generation from 1.0 to 5.0 and x1, x2, x4, x8 or x16, such as `\"3.0 x2\"`, found `3.0 x3`",
    );
    check_set(
        "nand.cell",
        "plc",
        "`nand.cell` must be one of `slc`, `mlc`, `tlc`, `qlc`, found `plc`",
    );
    check_set(
        "name",
        "",
        "`name` must be a text of 1 to 100 printable characters, found ``",
    );
}

#[test]
fn numbers_beyond_any_range() {
    check_set(
        "nand.channels",
        "18446744073709551616",
        "`nand.channels` must be between 1 and 64, found `18446744073709551616`",
    );
    check_set(
        "nand.channels",
        "-1",
        "`nand.channels` must be between 1 and 64, found `-1`",
    );
    check_set(
        "nand.channels",
        "0",
        "`nand.channels` must be between 1 and 64, found `0`",
    );
    check_set(
        "capacity",
        "0B",
        "`capacity` must be between 1MiB and 8TiB, found `0B`",
    );
    check_set(
        "capacity",
        "-1GB",
        "`capacity` must be between 1MiB and 8TiB, found `-1GB`",
    );
    check_set(
        "capacity",
        "18446744073709551616B",
        "`capacity` must be between 1MiB and 8TiB, found `18446744073709551616B`",
    );
    check_set(
        "capacity",
        "8193GiB",
        "`capacity` must be between 1MiB and 8TiB, found `8193GiB`",
    );
    check_set(
        "capacity",
        "1GB",
        "`capacity` must be a multiple of 4KiB, found `1GB`",
    );
    check_set(
        "capacity",
        "1.0000005MiB",
        "`capacity` must be a whole number of bytes, found `1.0000005MiB`",
    );
    check_set(
        "nand.read",
        "0us",
        "`nand.read` must be between 100ns and 10ms, found `0us`",
    );
    check_set(
        "nand.erase",
        "1.0000000000001s",
        "`nand.erase` must be a whole number of picoseconds, found `1.0000000000001s`",
    );
    check_set(
        "link.rate",
        "0B/s",
        "`link.rate` must be between 1MB/s and 256GB/s, found `0B/s`",
    );
    for value in ["nan", "inf", "-0.1", "16.1", "-nan"] {
        check_set(
            "ftl.overprovisioning",
            value,
            &format!("`ftl.overprovisioning` must be between 0 and 16, found `{value}`"),
        );
    }
}

#[test]
fn unknown_keys_name_the_nearest() {
    let cases = [
        ("nand.chanels", "did you mean `nand.channels`?"),
        ("nands.channels", "did you mean `nand.channels`?"),
        ("channel_mt_s", "did you mean `nand.channel_mt_s`?"),
        (
            "ftl.over_provisioning",
            "did you mean `ftl.overprovisioning`?",
        ),
        ("hmb.preferred", "did you mean `tier.hmb.preferred`?"),
        ("role.map.tier", "did you mean `role.map.tiers`?"),
        ("colour", "`lodger drives show tiny` prints every key"),
    ];
    for (key, hint) in cases {
        let error = error(TINY, &[(key, "1")]);
        assert_eq!(error.to_string(), format!("unknown key `{key}` (--set)"));
        assert_eq!(
            (error.problem, error.hint.as_deref()),
            (Problem::UnknownKey, Some(hint))
        );
    }
    check("channels = 2", "chanels = 2", "unknown key `nand.chanels`");
    check(
        "preferred = \"256KiB\"",
        "prefered = \"256KiB\"",
        "unknown key `tier.hmb.prefered`",
    );
}

#[test]
fn tables_and_values_are_told_apart() {
    check_set("nand", "4", "`nand` must be a table");
    assert_eq!(
        error("nand = []", &[]).to_string(),
        "`nand` must be a table (my-drive.toml:1)"
    );
    assert_eq!(
        error("[[role.map.tier]]\nname = \"sram\"", &[]).to_string(),
        "unknown key `role.map.tier` (my-drive.toml:1)"
    );
    let twice = "name = \"x\"\n\"nand.cell\" = \"tlc\"\nnand.cell = \"tlc\"";
    assert_eq!(
        error(twice, &[]).to_string(),
        "`nand.cell` is given twice (my-drive.toml:3)"
    );
}

#[test]
fn missing_keys() {
    let empty = error("", &[]);
    assert_eq!(empty.to_string(), "`name` is required (my-drive.toml)");
    assert_eq!(
        empty.hint.as_deref(),
        Some("`lodger drives show tiny --output-format toml` prints a small drive to start from")
    );
    let bare: String = TINY.split("[sources]").next().unwrap().to_owned();
    let without = |line: &str| error(&bare.replace(&format!("\n{line}\n"), "\n"), &[]).to_string();
    assert_eq!(
        without("capacity = \"512MiB\""),
        "`capacity` is required (my-drive.toml)"
    );
    assert_eq!(
        without("channels = 2"),
        "`nand.channels` is required (my-drive.toml)"
    );
    assert_eq!(
        without("tiers = [\"sram\", \"hmb\"]"),
        "`role.map.tiers` is required (my-drive.toml)"
    );
    assert_eq!(
        without("min = \"64KiB\""),
        "`tier.hmb.min` is required with `[tier.hmb]` (my-drive.toml)"
    );
    check_file(
        &format!("{bare}\n[tier.dram]\n"),
        "`tier.dram.size` is required with `[tier.dram]` (my-drive.toml)",
    );
}

#[track_caller]
fn check_file(text: &str, message: &str) {
    assert_eq!(error(text, &[]).to_string(), message);
}

#[test]
fn what_is_not_toml() {
    check_file(
        "capacity = ",
        "not valid TOML: string values must be quoted, expected literal string (my-drive.toml:1)",
    );
    check_file(
        "\na = 1\na = 2",
        "not valid TOML: duplicate key (my-drive.toml:3)",
    );
    check_file(
        "\n\nx = [[[",
        "not valid TOML: unclosed array, expected `]` (my-drive.toml:3)",
    );
    let long = "#".repeat((1 << 20) + 1);
    check_file(
        &long,
        "a drive file must not be longer than 1048576 bytes (my-drive.toml)",
    );
}

#[test]
fn sources_must_say_something() {
    let form = "every entry of `[sources]` must be `{ kind = \"...\", from = \"...\" }`";
    check_file("sources = 3", &format!("{form} (my-drive.toml:1)"));
    let entry = |entry: &str| format!("name = \"x\"\n[sources]\n{entry}\n");
    check_file(
        &entry("name = { kind = \"assumed\" }"),
        &format!("{form} (my-drive.toml:3)"),
    );
    check_file(&entry("name = 1"), &format!("{form} (my-drive.toml:3)"));
    check_file(
        &entry("name = { kind = \"assumed\", from = \"x\", why = \"y\" }"),
        &format!("{form} (my-drive.toml:3)"),
    );
    check_file(
        &entry("name = { kind = \"guess\", from = \"x\" }"),
        "`kind` of `name` must be one of `measured`, `datasheet`, `paper`, `fitted`, `assumed`, found `guess` (my-drive.toml:3)",
    );
    check_file(
        &entry("name = { kind = \"assumed\", from = \" \" }"),
        "`from` of `name` must name a source or a reason (my-drive.toml:3)",
    );
    check_file(
        &entry("\"nand.chanels\" = { kind = \"assumed\", from = \"x\" }"),
        "unknown key `nand.chanels` (my-drive.toml:3)",
    );
    check_file(
        &entry("\"nand.channels\" = { kind = \"assumed\", from = \"x\" }"),
        "`[sources]` names `nand.channels`, which my-drive.toml does not set (my-drive.toml:3)",
    );
}

#[test]
fn extends_that_lead_nowhere() {
    check_file(
        "extends = 3",
        "`extends` must be the name of a drive (my-drive.toml:1)",
    );
    let error_of = |text: &str| {
        parse(text, "my-drive.toml", &[], &|name| {
            Some(format!("extends = \"{name}\""))
        })
        .unwrap_err()
    };
    let unknown = error("\nextends = \"nope\"", &[]);
    assert_eq!(
        unknown.to_string(),
        "`extends` names no known drive, found `nope` (my-drive.toml:2)"
    );
    assert_eq!(
        unknown.hint.as_deref(),
        Some(
            "`lodger drives list` prints the known drives; a file of your own is named with its ending, \
             such as `base.toml`, from the folder of the one that extends it"
        )
    );
    assert_eq!(unknown.problem, Problem::Extends);
    assert_eq!(
        error_of("extends = \"self\"").to_string(),
        "`extends` must not lead in a circle, found `self` (self.toml:1)"
    );
    let chain = parse("extends = \"d1\"", "d0.toml", &[], &|name| {
        let next: u32 = name[1..].parse().unwrap();
        Some(format!("extends = \"d{}\"", next + 1))
    });
    assert_eq!(
        chain.unwrap_err().to_string(),
        "`extends` must lead to a whole drive in at most 8 steps, found `d9` after as many (d8.toml:1)"
    );
    check_set("extends", "bg4", "unknown key `extends`");
}

#[test]
fn an_error_in_a_base_names_the_base() {
    let base = edited("channels = 2", "channels = 0");
    let found = parse("extends = \"base\"", "my-drive.toml", &[], &|_| {
        Some(base.clone())
    })
    .unwrap_err();
    let line = line_of("channels = 2");
    assert_eq!(
        found.to_string(),
        format!("`nand.channels` must be between 1 and 64, found `0` (base.toml:{line})")
    );
}

#[test]
fn flash_that_does_not_add_up() {
    check(
        "pages_per_block = 96",
        "pages_per_block = 64",
        "`nand.pages_per_block` must be a multiple of 3 for tlc cells, found `64`",
    );
    check_set(
        "nand.read",
        "[\"50us\", \"60us\"]",
        "`nand.read` must be one time or 3 for tlc cells, found `[50us, 60us]`",
    );
    check_set(
        "nand.page_size",
        "5000B",
        "`nand.page_size` must be a multiple of 4KiB, found `5000B`",
    );
    check_set(
        "nand.blocks_per_plane",
        "59",
        "`nand.blocks_per_plane` must be at least 60: 48 superblocks of 12MiB for `capacity` and \
         over-provisioning, 12 for map, reserve and single-bit mode, found `59`",
    );
    check_set(
        "ftl.overprovisioning",
        "0.01",
        "`ftl.overprovisioning` must leave at least 2 superblocks of 12MiB beyond `capacity` (0.0469 \
         here), found `0.01`",
    );
    let sets = [("capacity", "8TiB"), ("ftl.overprovisioning", "1.0")];
    assert_eq!(
        error(TINY, &sets).to_string(),
        "`capacity` with its spare must stay below 2^32 pages of 4 KiB (16TiB of flash, here 1398881 \
         superblocks of 12MiB), found `8TiB` (--set)"
    );
    check_set(
        "ftl.gc_reserve_superblocks",
        "1",
        "`ftl.gc_reserve_superblocks` must be between 2 and 4095, found `1`",
    );
    check_set(
        "ftl.gc_reserve_superblocks",
        "4",
        "`ftl.gc_reserve_superblocks` must be less than `ftl.gc_start_superblocks` (4), found `4`",
    );
}

#[test]
fn roles_that_do_not_fit_their_tiers() {
    check(
        "tiers = [\"sram\", \"hmb\"]",
        "tiers = [\"sram\", \"dram\"]",
        "`role.map.tiers` needs a table `[tier.dram]`, which this drive does not have, found `sram, dram`",
    );
    check_set(
        "role.write_buffer.tier",
        "dram",
        "`role.write_buffer.tier` needs a table `[tier.dram]`, which this drive does not have, found `dram`",
    );
    check_set(
        "role.read_cache.tier",
        "dram",
        "`role.read_cache.tier` needs a table `[tier.dram]`, which this drive does not have, found `dram`",
    );
    check_set(
        "role.map.tiers",
        "sram,sram",
        "`role.map.tiers` must be a list with each word once, found `sram,sram`",
    );
    check_set(
        "role.map.tiers",
        "[]",
        "`role.map.tiers` must be a list with at least one word, found `[]`",
    );
    check_set(
        "role.map.tiers",
        "slc",
        "`role.map.tiers` must be a list of `sram`, `dram`, `hmb`, `cxl`, found `slc`",
    );
}

#[test]
fn a_write_buffer_on_a_single_bit_cache_that_is_not_there() {
    let sets = [
        ("role.write_buffer.tier", "slc"),
        ("ftl.slc_superblocks", "0"),
    ];
    assert_eq!(
        error(TINY, &sets).to_string(),
        "`role.write_buffer.tier` needs a single-bit cache (`ftl.slc_superblocks`), found `slc` (--set)"
    );
}

#[test]
fn exclusive_tiers_with_units_that_cannot_move() {
    let sets = [
        ("role.map.exclusive", "true"),
        ("role.map.unit.hmb", "8KiB"),
    ];
    assert_eq!(
        error(TINY, &sets).to_string(),
        "`role.map.exclusive` needs units of 4KiB on every tier (`role.map.unit`), found `true` (--set)"
    );
}

#[test]
fn sizes_of_roles_that_do_not_fit_their_tiers() {
    check_set(
        "role.map.size.sram",
        "1MiB",
        "`role.map.size.sram` must fit beside the other roles (448KiB left), found `1MiB`",
    );
    check_set(
        "role.map.unit",
        "128KiB",
        "`role.map.unit` must let one unit fit: it takes 128KiB and the map has 32KiB of `sram`, found `128KiB`",
    );
    check_set(
        "role.map.unit.hmb",
        "68KiB",
        "`role.map.unit.hmb` must let one unit fit: it takes 68KiB and the map has 64KiB of `tier.hmb.min`, found `68KiB`",
    );
    check_set(
        "role.write_buffer.size",
        "64KiB",
        "`role.write_buffer.size` must hold a program operation of one die (96KiB), found `64KiB`",
    );
    check_set(
        "role.write_buffer.low",
        "0.5",
        "`role.write_buffer.low` must not be above `role.write_buffer.high` (0), found `0.5`",
    );
    check_set(
        "role.read_cache.size",
        "1B",
        "`role.read_cache.size` must be 0 or at least 4KiB, found `1B`",
    );
    let line = line_of("size = \"1MiB\"");
    assert_eq!(
        error(TINY, &[("role.write_buffer.size", "2MiB")]).to_string(),
        format!(
            "`tier.sram.size` must hold the roles placed on it: 2112KiB (`role.read_cache.size` 64KiB, `role.write_buffer.size` 2MiB), found `1MiB` (my-drive.toml:{line})"
        )
    );
    let sets = [
        ("role.map.unit.hmb", "8KiB"),
        ("role.map.background_reads", "0"),
    ];
    assert_eq!(
        error(TINY, &sets).to_string(),
        "`role.map.background_reads` must not be 0 with units larger than 4KiB: nothing would ever \
         complete them, found `0` (--set)"
    );
}

#[test]
fn host_memory_that_contradicts_itself() {
    check(
        "min = \"64KiB\"",
        "min = \"1MiB\"",
        "`tier.hmb.min` must not be larger than `tier.hmb.preferred` (256KiB), found `1MiB`",
    );
    check_set(
        "tier.hmb.min_descriptor",
        "1MiB",
        "`tier.hmb.min_descriptor` must not be larger than `tier.hmb.preferred` (256KiB), found `1MiB`",
    );
    check_set(
        "tier.hmb.min",
        "5KB",
        "`tier.hmb.min` must be a multiple of 4KiB, found `5KB`",
    );
}
