//! Power cuts on drives whose flash fails: programs and erases, reads that are hard and reads that are lost.

use super::{Run, small};
use lodger_core::observe::AgeingCounters;

/// Flash near its end: programs and erases fail, reads are hard, some are lost.
const AGEING: [(&str, &str); 14] = [
    ("nand.ageing.endurance", "4"),
    ("nand.ageing.acceleration", "1"),
    ("nand.ageing.spare_blocks", "24"),
    ("nand.ageing.program_failures", "0.3"),
    ("nand.ageing.erase_failures", "0.2"),
    ("nand.ageing.errors.base", "0.009"),
    ("nand.ageing.errors.disturb", "0.01"),
    ("nand.ageing.errors.disturb_power", "1"),
    ("nand.ageing.errors.spread", "0.2"),
    ("nand.ageing.correctable", "0.01"),
    ("nand.ageing.retries", "2"),
    ("nand.ageing.retry_gain", "0.9"),
    ("nand.ageing.soft_reads", "4"),
    ("nand.ageing.soft_correctable", "0.011"),
];

#[test]
fn nothing_flushed_is_lost_where_flash_fails_and_power_is_cut() {
    let refresh = [("nand.ageing.refresh", "1")];
    let few = [("nand.ageing.spare_blocks", "1")];
    let lives = u64::from(lodger_testing::cases(10_000)) / 1600;
    let mut seen = AgeingCounters::default();
    for name in ["tiny", "bg4", "970-pro", "ex900", "hong-hmb-buffer"] {
        for life in 0..lives {
            let more = if life % 2 == 0 { &refresh[..] } else { &[] };
            let few = if life % 3 == 0 { &few[..] } else { &[] };
            let sets = [&AGEING[..], more, few].concat();
            let spec = small(name, &sets);
            assert!(spec.nand.ageing.is_some(), "{name}");
            let mut run = Run::new(format!("{name} that ages, life {life}"), &spec, life);
            while run.seen.cuts < 40 {
                let requests = 1 + run.rng.below(150);
                run.work(requests);
                run.cut();
            }
            run.settle();
            assert!(run.open.is_empty(), "{}: requests left", run.name);
            run.host.drive.ftl().check();
            let counted = run.host.counters().ageing;
            seen.retries += counted.retries;
            seen.soft_reads += counted.soft_reads;
            seen.uncorrectable += counted.uncorrectable;
            seen.program_failures += counted.program_failures;
            seen.erase_failures += counted.erase_failures;
            seen.replaced_blocks += counted.replaced_blocks;
            seen.retired_superblocks += counted.retired_superblocks;
            seen.refreshes += counted.refreshes;
            seen.refused += counted.refused;
        }
    }
    println!("{seen:?}");
    assert!(seen.program_failures > 40 && seen.erase_failures > 40);
    assert!(seen.replaced_blocks > 20 && seen.retired_superblocks > 0);
    assert!(seen.uncorrectable > 100 && seen.soft_reads > 1_000 && seen.refreshes > 0);
}
