//! What a drive says of map entries goes with its responses. Do these wait for what nobody has to wait for, and is what
//! they say still heard in order?

use crate::common::drives::drive;
use crate::common::{closed_loop, pages, settle};
use crate::steady::Latencies;
use lodger_core::rng::Rng;
use lodger_core::{DriveSpec, Host, Op, Precondition, Request};

const US: f64 = 1e6;
const LARGE_PAGES: u64 = 256;

fn with_hpb(name: &str, enabled: bool) -> DriveSpec {
    let enabled = if enabled { "true" } else { "false" };
    drive(name, &[("hpb.enabled", enabled)])
}

fn large(rng: &mut Rng) -> Request {
    pages(
        Op::Read,
        u64::from(rng.below(16_000)) * LARGE_PAGES,
        LARGE_PAGES,
    )
}

/// Responses went behind all data that the link had been handed before, for what they may say to be heard in order: a write
/// of 4 KiB took 16 ms on a 970 PRO beside 64 reads of 1 MiB, and 17 us without HPB.
#[test]
fn a_write_does_not_wait_for_the_data_of_large_reads() {
    let mean_ps = |spec: &DriveSpec| {
        let mut host = Host::new(spec, Precondition::Sequential, 0, 1);
        let (mut rng, mut done, mut seen) = (Rng::new(3), Vec::new(), Latencies::default());
        let small = |rng: &mut Rng| pages(Op::Write, u64::from(rng.below(1 << 22)), 1);
        host.submit(small(&mut rng));
        (0..64).for_each(|_| host.submit(large(&mut rng)));
        while host.now_ps() < 200_000_000_000 {
            host.advance_to_completion(u64::MAX, &mut done);
            for completion in done.drain(..) {
                let took_ps = completion.completed_ps - completion.submitted_ps;
                let is_write = completion.op == Op::Write;
                if is_write {
                    seen.add(took_ps);
                }
                host.submit(if is_write {
                    small(&mut rng)
                } else {
                    large(&mut rng)
                });
            }
        }
        settle(&mut host);
        seen.mean_ps()
    };
    for name in ["970-pro", "rc100-480"] {
        let [without, with] = [false, true].map(|enabled| mean_ps(&with_hpb(name, enabled)));
        let [without_us, with_us] = [without / US, with / US];
        assert!(
            with < 1.2 * without,
            "{name}: {with_us:.1} us for {without_us:.1}"
        );
    }
}

/// An entry stands on the version before it. Where the responses of writes pass those of large reads, they must not say what
/// is to be heard after what these say: entries would be behind, and their groups read anew.
#[test]
fn entries_are_heard_in_order_beside_large_reads() {
    let spec = with_hpb("rc100-480", true);
    let mut host = Host::new(&spec, Precondition::Sequential, 0, 1);
    closed_loop(&mut host, 64, 60_000, |rng| match rng.below(100) {
        0..20 => large(rng),
        20..60 => pages(Op::Write, u64::from(rng.below(1 << 14)), 1),
        _ => pages(Op::Read, u64::from(rng.below(1 << 14)), 1),
    });
    settle(&mut host);
    let hpb = &host.counters().hpb;
    println!("{hpb:?}");
    let behind = hpb.refused[1] as f64 / hpb.hits as f64;
    assert!(hpb.entries_delivered > 5_000, "{hpb:?}");
    assert!(behind < 0.002, "{behind}");
    assert!(hpb.groups_fetched == 0, "{hpb:?}");
}
