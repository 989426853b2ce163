//! Did a simulated result move where power is cut? Completions, what recovery found and all counters of
//! drives that are cut off, crash with their host, lose host memory and shut down, held against what was
//! recorded (`recorded.txt`). Whole commands: `tests/recorded.rs` of the command.
//!
//! A change that means to move them records them again with `UPDATE_RECORDED=1` and says so in the changelog.

use crate::common::{DRIVES, VARIANTS, drive, pages};
use lodger_core::rng::Rng;
use lodger_core::{Completion, DriveSpec, Host, Op, Precondition};
use lodger_testing::hash;
use std::fmt::Write;

/// Everything that a user of the drive can see.
fn seen(spec: &DriveSpec, precondition: Precondition) -> String {
    let mut host = Host::new(spec, precondition, 64 << 20, 5);
    let mut rng = Rng::new(11);
    let slots = host.drive.ftl().user_slots();
    let mut text = String::new();
    let mut done: Vec<Completion> = Vec::new();
    for round in 0..6 {
        for tag in 0..250 {
            let op = match rng.below(20) {
                0 => Op::Flush,
                1 => Op::Trim,
                2..=8 => Op::Read,
                _ => Op::Write,
            };
            let first = u64::from(rng.below(slots.min(40_000) - 8));
            let mut request = pages(op, first, 1 + u64::from(rng.below(6)));
            request.fua = op == Op::Write && rng.below(9) == 0;
            request.tag = tag;
            host.submit(request);
            if rng.below(3) == 0 {
                let to_ps = host.now_ps() + u64::from(rng.below(400)) * 1_000_000;
                host.advance(to_ps, &mut done);
            }
        }
        match round {
            0 | 3 => writeln!(text, "{:?}", host.power_cut()).unwrap(),
            1 => writeln!(text, "{:?}", host.host_crash()).unwrap(),
            2 => host.set_hmb(0),
            4 => host.set_hmb(16 << 20),
            _ => {
                while host.in_flight() > 0 {
                    host.advance_to_completion(u64::MAX, &mut done);
                }
                host.shutdown();
            }
        }
        for done in done.drain(..) {
            writeln!(text, "{done:?}").unwrap();
        }
    }
    // Counted since the record was made, and never here.
    let mut counters = format!("{:?}", host.counters());
    for counter in [
        "hmb_given_up",
        "read_ahead_slots",
        "read_ahead_joined_slots",
    ] {
        counters = counters.replace(&format!(", {counter}: 0"), "");
    }
    let ageing = lodger_core::observe::AgeingCounters::default();
    counters = counters.replace(&format!(", ageing: {ageing:?}"), "");
    writeln!(text, "{counters} {}", host.now_ps()).unwrap();
    if slots < 1 << 20 {
        host.drive.ftl().check();
    }
    text
}

#[test]
fn what_drives_do_when_power_is_cut_is_what_was_recorded() {
    let mut now = String::new();
    for (name, _) in DRIVES {
        let seen = seen(&drive(name, &[]), Precondition::Sequential);
        writeln!(now, "{name}: {:016x}", hash(&seen)).unwrap();
    }
    for (name, keys) in VARIANTS {
        for state in [Precondition::None, Precondition::Random] {
            let seen = seen(&drive(name, keys), state);
            writeln!(now, "{name} {keys:?} {state:?}: {:016x}", hash(&seen)).unwrap();
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/drive/recorded.txt");
    lodger_testing::is_as_recorded(path, &now);
}
