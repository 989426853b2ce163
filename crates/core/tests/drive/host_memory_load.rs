//! What the host itself does with its memory slows what a drive does there: off by default, nothing while there is room,
//! and then the memory's rate, shared by both directions.

use crate::common::{closed_loop, drive, pages};
use lodger_core::{Host, Op, Precondition};

const MIB: u64 = 1 << 20;

/// Bytes per second of `mib` MiB in order, 128 KiB each, 32 in flight, every other one read if `mixed`.
fn rate(name: &str, sets: &[(&str, &str)], op: Op, mixed: bool) -> f64 {
    let mut host = Host::new(&drive(name, sets), Precondition::Sequential, 128 * MIB, 1);
    let (mib, mut at) = (48, 0);
    let seconds = closed_loop(&mut host, 32, mib * 8, |_| {
        at += 32;
        let read = mixed && at % 64 == 0;
        pages(if read { Op::Read } else { op }, at - 32, 32)
    });
    (mib * MIB) as f64 / seconds
}

#[test]
fn memory_with_room_changes_nothing() {
    for op in [Op::Read, Op::Write] {
        let free = rate("970-pro", &[], op, false);
        let sets = [
            ("host.memory.rate", "76.8GB/s"),
            ("host.memory.load", "0.5"),
        ];
        assert_eq!(free, rate("970-pro", &sets, op, false), "{op:?}");
    }
}

#[test]
fn what_the_host_leaves_of_its_memory_is_the_limit() {
    for (load, left) in [("0.9", 1.92e9), ("0.95", 0.96e9)] {
        let sets = [("host.memory.rate", "19.2GB/s"), ("host.memory.load", load)];
        for op in [Op::Read, Op::Write] {
            let found = rate("970-pro", &sets, op, false);
            assert!(
                rate("970-pro", &[], op, false) > 1.1 * left,
                "{op:?}: without a limit no faster"
            );
            // Entries of the queues pass through it, too.
            assert!(
                (0.95..=1.0).contains(&(found / left)),
                "{op:?} at {load}: {found:.3e} of {left:.3e}"
            );
        }
        // One memory for both directions, where the link has one rate for each.
        let both = rate("970-pro", &sets, Op::Write, true);
        assert!(
            (0.9..=1.0).contains(&(both / left)),
            "both at {load}: {both:.3e}"
        );
    }
}

/// The engine of the host reads and writes what it copies.
#[test]
fn a_copy_by_the_host_s_engine_takes_its_memory_twice() {
    let sets = [("host.memory.rate", "4.8GB/s")];
    let found = rate("hong-hmb-buffer", &sets, Op::Write, false);
    assert!((0.9..=1.0).contains(&(found / 2.4e9)), "{found:.3e}");
    assert!(rate("hong-hmb-buffer", &[], Op::Write, false) > 3e9);
}

/// Commands are read from there, too: at 1 MB/s a read of 4 KiB took as long as its data and its completion alone.
#[test]
fn a_read_takes_its_data_its_command_and_its_completion_from_the_memory() {
    for (name, bytes) in [("970-pro", 4096 + 64 + 16), ("galaxy-s7", 4096 + 32)] {
        for depth in [1, 8] {
            let spec = drive(name, &[("host.memory.rate", "1MB/s")]);
            let mut host = Host::new(&spec, Precondition::Sequential, 0, 1);
            let reads = 200;
            // Around once for the map.
            let read = |host: &mut Host<_>| {
                let mut at = 0;
                closed_loop(host, depth, reads, |_| {
                    at += 64;
                    pages(Op::Read, at % 512, 1)
                })
            };
            read(&mut host);
            let busy = |host: &Host<_>| {
                let all = host.drive.busy_ps();
                let memory = all.iter().find(|(of, _)| *of == "host_memory");
                memory.expect("it has a rate").1[0]
            };
            let before = busy(&host);
            let seconds = read(&mut host);
            let of_each = (busy(&host) - before) / 1_000_000 / reads;
            assert_eq!(of_each, bytes, "{name}");
            if depth > 1 {
                let found = reads as f64 * bytes as f64 / seconds;
                assert!((0.98..=1.0).contains(&(found / 1e6)), "{name}: {found:.3e}");
            }
        }
    }
}
