//! Do the hints of a wrong drive file fit what is wrong with it, and is what it says quoted safely?

use lodger_core::spec::parse;

fn hint_of(text: &str) -> String {
    let parsed = parse(text, "my-drive.toml", &[], &|_: &str| None);
    parsed.err().and_then(|error| error.hint).unwrap()
}

#[test]
fn hints_fit_what_is_wrong() {
    let cases = [
        (
            "name = \"x\"\n[nand\n",
            "line 2 is `[nand`; `lodger drives show tiny --output-format toml` prints a drive file",
        ),
        (
            "extends = 7",
            "such as `extends = \"tiny\"`; `lodger drives list` prints the names",
        ),
        (
            "nand = 4",
            "its values have keys of their own, such as `nand.cell`",
        ),
        ("ftl.gc_policy = \"greddy\"", "did you mean `greedy`?"),
        (
            "name = \"x\"\n\"nand.cell\" = \"tlc\"\nnand.cell = \"tlc\"",
            "leave one of them out",
        ),
    ];
    for (text, hint) in cases {
        assert_eq!(hint_of(text), hint, "{text}");
    }
    let source = hint_of("[sources]\n\"nand.read\" = 3");
    assert!(source.contains("kind = \"datasheet\""));
}

#[test]
fn a_long_or_strange_value_is_quoted_safely() {
    let value = format!("a\u{1b}[31m\n{}", "x".repeat(200));
    let tiny = include_str!("../../../../drives/tiny.toml");
    let parsed = parse(
        tiny,
        "my-drive.toml",
        &[("nand.cell", &value)],
        &|_: &str| None,
    );
    let message = parsed.err().unwrap().to_string();
    assert!(message.contains("found `a\\u{1b}[31m\\nxxx"), "{message}");
    assert!(message.len() < 200, "{message}");
}

/// The unit was named, which is a page already and cannot be less.
#[test]
fn host_memory_that_holds_no_page_of_the_map_is_named_and_not_the_page() {
    let text = crate::common::drives::text("tiny").expect("a drive of the collection");
    let sets = [
        ("tier.hmb.min", "4KiB"),
        ("role.map.unit.hmb", "4KiB"),
        ("role.map.bytes_per_page.hmb", "8"),
    ];
    let parsed = parse(&text, "tiny", &sets, &crate::common::drives::text);
    assert_eq!(
        parsed.err().map(|error| error.to_string()).as_deref(),
        Some(
            "`tier.hmb.min` must let one unit of the map fit: 8KiB (`role.map.bytes_per_page.hmb`), found `4KiB` (--set)"
        )
    );
}

#[test]
fn blocks_that_are_too_few_because_some_fail_are_refused_for_that() {
    let text = crate::common::drives::text("tiny").expect("a drive of the collection");
    let message = |failures: &str| {
        let sets = [
            ("nand.blocks_per_plane", "10"),
            ("nand.ageing.endurance", "100"),
            ("nand.ageing.program_failures", failures),
            ("nand.ageing.erase_failures", "0"),
        ];
        let parsed = parse(&text, "tiny", &sets, &crate::common::drives::text);
        parsed.expect_err("they are too few").to_string()
    };
    assert!(message("0.1").contains("for map, reserve, blocks that fail and single-bit mode"));
    assert!(message("0").contains("for map, reserve and single-bit mode"));
}
