//! Do requests wait as queueing theory says? Reads that come at random to a single die are an M/D/1 queue: Poisson
//! arrivals, a service that always takes the same time, one server.

use crate::common::{drive, latency, pages, settle};
use lodger_core::rng::Rng;
use lodger_core::time::transfer_ps;
use lodger_core::{Completion, Host, Op, Precondition};

/// A drive whose reads wait for its die and for nothing else.
fn one_die() -> Host {
    let spec = drive(
        "tiny",
        &[
            ("capacity", "64MiB"),
            ("nand.channels", "1"),
            ("nand.dies_per_channel", "1"),
            ("nand.planes", "1"),
            ("nand.read", "100us"),
            // The die is held until its data has left it: one server, not two in a row.
            ("nand.cache_read", "false"),
            ("ftl.slc_superblocks", "0"),
            ("role.read_cache.size", "0B"),
            ("role.map.size.sram", "128KiB"),
            ("controller.cores", "8"),
            ("controller.command_slots", "65536"),
        ],
    );
    let mut host = Host::new(&spec, Precondition::Sequential, 0, 1);
    for page in 0..16 {
        latency(&mut host, pages(Op::Read, page * 1024, 1));
    }
    settle(&mut host);
    host
}

/// Less than nothing for one of 4096 that wants the page the die has just read.
fn wait_ps(read: &Completion, alone_ps: u64) -> f64 {
    (read.completed_ps - read.submitted_ps) as f64 - alone_ps as f64
}

/// Mean time that `count` reads wait, picoseconds, if the die is busy to that share.
fn mean_wait_ps(load: f64, count: u32) -> (f64, f64) {
    let mut host = one_die();
    let nand = &host.spec().nand;
    let slot_ps = transfer_ps(u64::from(nand.codeword_bytes), nand.channel_bytes_per_s);
    let service_ps = (nand.command_ps + nand.read_ps[0] + slot_ps) as f64;
    let alone_ps = latency(&mut host, pages(Op::Read, 5, 1));
    let mut rng = Rng::new(77);
    let mut done: Vec<Completion> = Vec::new();
    let (mut at_ps, mut waited_ps) = (host.now_ps() as f64, 0.0);
    for _ in 0..count {
        let uniform = ((rng.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        at_ps -= uniform.ln() * service_ps / load;
        host.advance(at_ps as u64, &mut done);
        host.submit(pages(Op::Read, u64::from(rng.below(16 << 10)), 1));
        for read in done.drain(..) {
            waited_ps += wait_ps(&read, alone_ps);
        }
    }
    for read in settle(&mut host) {
        waited_ps += wait_ps(&read, alone_ps);
    }
    (waited_ps / f64::from(count), service_ps)
}

/// Pollaczek and Khinchine: W = r s / 2 (1 - r) for a service of s at a load of r. With the double wait of exponential
/// service (M/M/1) every line fails.
#[test]
fn reads_wait_for_a_die_as_an_m_d_1_queue() {
    for (load, tolerance) in [(0.3, 0.01), (0.6, 0.01), (0.9, 0.04)] {
        let (waited_ps, service_ps) = mean_wait_ps(load, 600_000);
        let theory_ps = load * service_ps / (2.0 * (1.0 - load));
        println!(
            "load {load}: {:.2} us, theory {:.2} us",
            waited_ps / 1e6,
            theory_ps / 1e6
        );
        let off = waited_ps / theory_ps - 1.0;
        assert!(off.abs() < tolerance, "load {load}: off by {off:.4}");
    }
}
