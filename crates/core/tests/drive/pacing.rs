//! When is a write held back to the pace at which flash gives room back?

use crate::common::drive;
use crate::steady::{Arrival, Load, run_on};
use lodger_core::{Host, Precondition};

const HMB_BYTES: u64 = 128 << 20;

fn closed(depth: u32, reads_percent: u32, requests: u64) -> Load {
    Load {
        arrival: Arrival::Depth(depth),
        reads_percent,
        requests,
    }
}

/// A large buffer was paced only once it had been turned over: from when it was full until then, and after each pause anew, single writes
/// waited as if nothing were paced, for 7 ms where they wait for one.
#[test]
fn a_large_buffer_is_paced_from_when_it_is_full() {
    let [paced_ps, unpaced_ps] = ["drain", "none"].map(|pacing| {
        let keys = [
            ("tier.sram.size", "32MiB"),
            ("role.write_buffer.size", "16MiB"),
            ("ftl.slc_superblocks", "0"),
            ("role.write_buffer.pacing", pacing),
        ];
        let spec = drive("tiny", &keys);
        let mut host = Host::new(&spec, Precondition::Random, HMB_BYTES, 1);
        let slots = spec.roles.write_buffer.bytes / 4096;
        // It fills, and has not been turned over.
        run_on(&mut host, closed(8, 0, 2 * slots));
        let mut seen = run_on(&mut host, closed(8, 0, slots / 2));
        println!("{pacing}: {:.0} a second", seen.iops());
        seen.writes.quantile_ps(0.99)
    });
    assert!(paced_ps < unpaced_ps / 2, "{paced_ps} ps, not {unpaced_ps}");
}
