//! Blocks that are bad when the drive is new: are there spare blocks for them, and are those taken? A share beyond the spare
//! blocks was dropped: a fifth of all blocks bad and none to spare ran as a drive without a bad block.

use crate::common::drive;
use lodger_core::spec::{Problem, parse};
use lodger_core::{DriveSpec, Host, Precondition};

const TINY: &str = include_str!("../../../../drives/tiny.toml");

const AGES: (&str, &str) = ("nand.ageing.endurance", "3000");

#[test]
fn more_bad_blocks_than_spare_ones_are_an_error() {
    let with = |bad: &str, spares: &str| {
        let sets = [
            AGES,
            ("nand.ageing.factory_bad", bad),
            ("nand.ageing.spare_blocks", spares),
        ];
        parse(TINY, "mine.toml", &sets, &|_: &str| None)
    };
    // 60 blocks of two planes.
    let Err(error) = with("0.2", "0") else {
        panic!("nothing stands in for 24 blocks");
    };
    assert_eq!(
        error.to_string(),
        "`nand.ageing.factory_bad` must be at most 0: 0.2 of the 120 blocks of a die is more than its \
         `nand.ageing.spare_blocks` (0), found `0.2` (--set)"
    );
    assert_eq!(error.problem, Problem::Contradiction);
    let hint = error.hint.expect("every error has one");
    assert!(
        hint.contains("`nand.ageing.spare_blocks` of 24 or more"),
        "{hint}"
    );
    let Err(error) = with("0.05", "4") else {
        panic!("6 blocks are bad");
    };
    assert!(
        error
            .message
            .contains("must be at most 0.0333: 0.05 of the 120 blocks"),
        "{error}"
    );
    // What the messages say is enough.
    with("0.2", "24").expect("enough spares");
    with("0.0333", "4").expect("few enough bad blocks");
    with("0", "0").expect("none bad");
}

fn with_bad(bad: &str) -> DriveSpec {
    let sets = [
        AGES,
        ("nand.ageing.factory_bad", bad),
        ("nand.ageing.spare_blocks", "40"),
    ];
    drive("tiny", &sets)
}

/// Each one is one spare block less, and no die has more of them than spare blocks.
#[test]
fn bad_blocks_are_taken_from_the_spare_ones() {
    for (bad, least, most) in [("0", 0, 0), ("0.1", 30, 72), ("0.2", 75, 126)] {
        let spec = with_bad(bad);
        let dies = spec.nand.dies();
        for seed in 0..20 {
            let host = Host::new(&spec, Precondition::None, 0, seed);
            let age = host.drive.flash_age().expect("it ages");
            // Of four dies: 12 and 24 blocks each in the mean.
            assert!(
                (least..=most).contains(&age.factory_bad_blocks),
                "{bad}: {}",
                age.factory_bad_blocks
            );
            assert_eq!(age.spare_blocks, dies * 40 - age.factory_bad_blocks);
            assert_eq!(age.spare_blocks, age.spare_blocks_at_first);
        }
    }
    // As many spare blocks as are bad in the mean: what a die draws beyond them is not there.
    let sets = [
        AGES,
        ("nand.ageing.factory_bad", "0.1"),
        ("nand.ageing.spare_blocks", "12"),
    ];
    let spec = drive("tiny", &sets);
    let bad: Vec<u32> = (0..20)
        .map(|seed| {
            let host = Host::new(&spec, Precondition::None, 0, seed);
            host.drive.flash_age().expect("it ages").factory_bad_blocks
        })
        .collect();
    assert!(
        bad.iter().all(|&bad| (24..=48).contains(&bad)) && bad.iter().any(|&bad| bad < 44),
        "{bad:?}"
    );
}
