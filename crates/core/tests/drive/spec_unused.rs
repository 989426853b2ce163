//! Are keys that can do nothing refused, and forgotten where a later layer has switched them off?

use lodger_core::spec::{ParsedDrive, SpecError, parse};

const TINY: &str = include_str!("../../../../drives/tiny.toml");

fn over(base: &str, text: &str, sets: &[(&str, &str)]) -> Result<ParsedDrive, SpecError> {
    let extended = |name: &str| match name {
        "tiny" => Some(TINY.to_owned()),
        _ => Some(format!("extends = \"tiny\"\n{base}")),
    };
    let text = format!("extends = \"base\"\n{text}");
    parse(&text, "heir.toml", sets, &extended)
}

fn refused(sets: &[(&str, &str)]) -> String {
    over("", "", sets)
        .expect_err("a key that can do nothing")
        .to_string()
}

#[test]
fn keys_of_another_protocol_are_refused() {
    let on = ("hpb.enabled", "true");
    for (key, value, must) in [
        ("hpb.control", "host", "\"device\""),
        ("hpb.region", "64MiB", "\"16MiB\""),
        ("hpb.pinned_regions", "30", "0"),
        ("hpb.recommend_misses", "1", "4"),
        ("hpb.max_blocks", "3", "255"),
        ("hpb.write_buffer", "900us", "\"5us\""),
        ("hpb.version", "2.0", "\"1.0\""),
    ] {
        assert_eq!(
            refused(&[on, (key, value)]),
            format!(
                "`{key}` must be {must} unless `hpb.protocol` is \"jedec\", found `{value}` (--set)"
            )
        );
    }
    let jedec = ("hpb.protocol", "jedec");
    assert_eq!(
        refused(&[on, jedec, ("hpb.max_blocks", "3")]),
        "`hpb.max_blocks` must be 255 unless `hpb.version` is \"2.0\", found `3` (--set)"
    );
    assert_eq!(
        refused(&[on, jedec, ("hpb.give_back_for", "1s")]),
        "`hpb.give_back_for` must be 0 unless `hpb.protocol` is \"paper\", found `1s` (--set)"
    );
    assert_eq!(
        refused(&[on, jedec, ("hpb.integrity", "mac")]),
        "`hpb.integrity` must be \"none\" unless `hpb.protocol` is \"paper\", found `mac` (--set)"
    );
    over("", "", &[on, jedec, ("hpb.integrity", "none")]).expect("the default");
    over("", "", &[on, ("hpb.integrity", "mac")]).expect("the paper's");
    // The null: what holds anyway may be said, and under their own protocol they hold.
    over("", "", &[on, ("hpb.control", "device")]).expect("the default");
    let two = [("hpb.version", "2.0"), ("hpb.max_blocks", "3")];
    over(
        "",
        "",
        &[&[on, jedec, ("hpb.control", "host")], &two[..]].concat(),
    )
    .expect("JEDEC's");
}

/// A single-bit cache that has only what is empty (`ftl.slc_dynamic`) is none that a role can stand on.
#[test]
fn a_write_buffer_on_flash_that_may_be_none_is_refused() {
    let slc = ("role.write_buffer.tier", "slc");
    let dynamic = ("ftl.slc_dynamic", "0.5");
    assert_eq!(
        refused(&[slc, dynamic, ("ftl.slc_superblocks", "0")]),
        "`role.write_buffer.tier` needs a single-bit cache with flash of its own (`ftl.slc_superblocks`): that of \
         `ftl.slc_dynamic` has only what is empty, and on a full drive maybe nothing, found `slc` (--set)"
    );
    // The null: beside one that has flash of its own it may be.
    over("", "", &[slc, dynamic]).expect("four superblocks of its own");
}

#[test]
fn a_map_of_a_memory_that_it_does_not_stand_on_is_refused() {
    let dram = ("tier.dram.size", "1MiB");
    let size = ("role.map.size.dram", "32KiB");
    assert_eq!(
        refused(&[dram, size]),
        "`role.map.size.dram` does nothing unless `role.map.tiers` names \"dram\", found `32KiB` (--set)"
    );
    // The null: there it does something.
    over("", "", &[dram, size, ("role.map.tiers", "sram, dram")]).expect("a map in DRAM");
    // Who has the map stand elsewhere need not know what it had there; who says both at once has not meant one of them.
    let elsewhere = over("", "[role.map]\ntiers = [\"hmb\"]\n", &[]).expect("without SRAM");
    assert!(
        elsewhere
            .values
            .iter()
            .all(|value| value.key != "role.map.size.sram")
    );
    over(
        "",
        "",
        &[("role.map.tiers", "hmb"), ("role.map.size.sram", "8KiB")],
    )
    .expect_err("both at once");
}

#[test]
fn a_map_of_a_memory_that_is_not_there_is_refused() {
    for (key, value) in [
        ("role.map.size.dram", "32KiB"),
        ("role.map.unit.cxl", "64KiB"),
        ("role.map.encoding.dram", "runs"),
        ("role.map.bytes_per_page.cxl", "8"),
    ] {
        let memory = key.rsplit_once('.').map_or(key, |(_, memory)| memory);
        assert_eq!(
            refused(&[(key, value)]),
            format!(
                "`{key}` needs a table `[tier.{memory}]`, which this drive does not have, found `{value}` (--set)"
            )
        );
    }
    over(
        "role.map.size.dram = \"32KiB\"",
        "tier.dram.size = \"1MiB\"\nrole.map.tiers = [\"sram\", \"dram\"]",
        &[],
    )
    .expect("who extends it has the memory");
}

#[test]
fn a_size_of_a_log_that_is_not_there_is_refused_by_its_name() {
    let size = ("role.write_buffer.log_size", "4MiB");
    let told = "`role.write_buffer.log_size` must be left out unless `role.write_buffer.log` is \"pm\", found `4MiB` (--set)";
    assert_eq!(refused(&[size]), told);
    let pm = ("tier.pm.size", "8MiB");
    assert_eq!(refused(&[pm, size]), told);
    over("", "", &[pm, size, ("role.write_buffer.log", "pm")]).expect("there is a log");
}

/// A drive that extends another may switch off what that one has, and is a whole drive again as a file.
#[test]
fn what_a_later_layer_switches_off_is_forgotten() {
    let base = "[hpb]\nprotocol = \"jedec\"\nversion = \"2.0\"\nmax_blocks = 3\ncontrol = \"host\"\npinned_regions = 2\n\
                [tier.pm]\nsize = \"8MiB\"\n[role.write_buffer]\nlog = \"pm\"\nlog_size = \"4MiB\"\n";
    let paper = "[hpb]\nprotocol = \"paper\"\n[role.write_buffer]\nlog = \"none\"\n";
    let sets = [("hpb.protocol", "paper"), ("role.write_buffer.log", "none")];
    let none = |_: &str| None;
    for drive in [over(base, paper, &[]), over(base, "", &sets)] {
        let drive = drive.expect("what is switched off is no error");
        let again = parse(&drive.to_toml(), "again.toml", &[], &none).expect("a whole drive");
        assert_eq!(again.spec, drive.spec);
        let has = |key: &str| drive.values.iter().find(|value| value.key == key);
        assert_eq!(
            has("hpb.control").map(|value| &value.text[..]),
            Some("device")
        );
        assert_eq!(has("role.write_buffer.log_size"), None);
    }
    // Given beside what switches it off, it is refused, as in a single file.
    let beside = over(base, paper, &[("hpb.control", "host")]).expect_err("it can do nothing");
    assert!(beside.to_string().contains("unless `hpb.protocol`"));
}

#[test]
fn an_entry_for_every_memory_is_written_for_those_that_are_there() {
    let sets = [("role.map.unit", "8KiB"), ("role.map.unit.hmb", "16KiB")];
    let drive = over("", "", &sets).expect("tiny has both");
    let text = drive.to_toml();
    assert!(text.contains("role.map.unit.sram = \"8KiB\""), "{text}");
    assert!(!text.contains("role.map.unit.dram"), "{text}");
    let again = parse(&text, "again.toml", &[], &|_: &str| None).expect("a whole drive");
    assert_eq!(again.spec, drive.spec);
}

/// `--set` takes what `drives show` prints.
#[test]
fn a_list_of_times_needs_no_quotes_on_the_command_line() {
    let times = |text: &str| {
        let drive = over("", "", &[("nand.read", text)])?;
        Ok::<_, SpecError>(drive.spec.nand.read_ps.clone())
    };
    let quoted = times("[\"50us\", \"55us\", \"65us\"]");
    assert_eq!(times("[50us, 55us, 65us]"), quoted);
    assert_eq!(times("[50us,55us,65us]"), quoted);
    for wrong in [
        "[50us, x, 65us]",
        "[50us, , 65us]",
        "[]",
        "[50us]]",
        "[1us,2us,3us,4us,5us]",
    ] {
        let told = times(wrong).expect_err("no times").to_string();
        assert!(
            told.starts_with("`nand.read` must be a time such as"),
            "{wrong}: {told}"
        );
    }
    // In a file it is TOML's list.
    let told = over("", "nand.read = \"[50us, 55us, 65us]\"", &[]).expect_err("a text");
    assert!(told.to_string().contains("found"), "{told}");
}
