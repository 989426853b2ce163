//! Does new data go on where the map takes many superblocks, each of which comes to be collected in its turn?

use crate::common::drive;
use crate::steady::{Arrival, Load, run};
use lodger_core::time::MS;

/// Values of a drive file in place of its own.
type Sets<'a> = &'a [(&'a str, &'a str)];

/// A victim of data had a page of the map written for each that was moved, which took more room than it gave, and new data waited
/// until several victims of the map had given it back: 284, 291, 422, 408 and 118 ms. No drive of the collection has more than two
/// superblocks of map.
#[test]
fn new_data_does_not_wait_until_a_large_map_gives_back_what_moves_took() {
    let two_dies = ("nand.dies_per_channel", "1");
    let short_blocks = [("ftl.slc_superblocks", "0"), ("nand.pages_per_block", "96")];
    let cases: [(&str, Sets<'_>, u32); 5] = [
        ("tiny", &[two_dies, ("capacity", "40GiB")], 16),
        ("tiny", &[two_dies, ("capacity", "40GiB")], 1),
        ("tiny", &[two_dies, ("capacity", "100GiB")], 16),
        (
            "tiny",
            &[two_dies, ("nand.channels", "1"), ("capacity", "20GiB")],
            16,
        ),
        ("rc100-240", &short_blocks, 16),
    ];
    for (name, sets, depth) in cases {
        let spec = drive(name, sets);
        let load = Load {
            requests: 15_000,
            reads_percent: 0,
            arrival: Arrival::Depth(depth),
        };
        let seen = run(&spec, 0, load);
        let silence_ms = seen.silence_ps / MS;
        println!(
            "{name} {sets:?}, {depth} in flight: {silence_ms} ms, {:.0} a second",
            seen.iops()
        );
        assert!(
            silence_ms <= 25,
            "{name} {sets:?}: silent for {silence_ms} ms"
        );
    }
}
