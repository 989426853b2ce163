//! A live drive is asked to go on whenever its process comes to it, a replay of its recording where something enters, and a
//! simulation from event to event. Is what the drive does the same, however often it is asked?

use crate::common::{VARIANTS, drive, pages};
use lodger_core::device::{Device, Sent};
use lodger_core::observe::Counters;
use lodger_core::rng::Rng;
use lodger_core::{DriveSpec, Op, Precondition};

/// What enters a drive.
#[derive(Clone, Copy, Debug)]
enum Step {
    Submit(Op, u64, u64),
    HostMemory(u64),
    Shutdown,
}

/// Bursts and rests, some of them long enough to be idle in, on a small part of the drive.
fn script(spec: &DriveSpec, rng: &mut Rng) -> Vec<(u64, Step)> {
    let pages_of_drive = (spec.capacity_bytes / 4096).min(40_000) as u32;
    let granted = spec.tiers.hmb.as_ref().map_or(0, |hmb| hmb.preferred_bytes);
    let mut at_ps = 0;
    let mut steps = Vec::new();
    for _ in 0..400 {
        at_ps += match rng.below(40) {
            0 => u64::from(rng.below(1_000)) * 1_000_000_000,
            1..8 => u64::from(rng.below(1_000)) * 1_000_000,
            _ => u64::from(rng.below(1_000)) * 1_000,
        };
        let lpn = u64::from(rng.below(pages_of_drive - 64));
        let count = 1 + u64::from(rng.below(64));
        steps.push((
            at_ps,
            match rng.below(50) {
                0 => Step::Shutdown,
                1 => Step::HostMemory(granted * u64::from(rng.below(3)) / 2),
                2 => Step::Submit(Op::Flush, 0, 0),
                3 => Step::Submit(Op::Trim, lpn, count),
                4..15 => Step::Submit(Op::Read, lpn, count),
                _ => Step::Submit(Op::Write, lpn, count),
            },
        ));
    }
    // What is left comes to its end.
    steps.push((at_ps + 100_000_000_000_000, Step::Submit(Op::Read, 0, 1)));
    steps
}

/// What has left the drive, and what it has counted, when between two steps it is asked as often as `often` says.
fn outcome(
    spec: &DriveSpec,
    steps: &[(u64, Step)],
    mut often: impl FnMut(&Device) -> Option<u64>,
) -> (Vec<Sent>, Counters) {
    let mut drive = Device::new(spec, Precondition::Random, 0, 5);
    let (mut all, mut under_way) = (Vec::new(), Vec::new());
    for &(at_ps, step) in steps {
        while drive.now_ps() < at_ps {
            let until_ps = often(&drive).unwrap_or(at_ps).min(at_ps);
            while drive.run(until_ps).is_some() {
                drive.take_sent(&mut under_way);
            }
            drive.idle_until(until_ps);
        }
        // The host looks only now.
        under_way.retain(|sent: &Sent| {
            let has_arrived = sent.arrives_ps <= at_ps;
            if has_arrived {
                drive.consume(sent.command, at_ps);
                all.push(*sent);
            }
            !has_arrived
        });
        match step {
            Step::Submit(op, lpn, count) => {
                let command = drive.enqueue(pages(op, lpn, count));
                drive.ring(command, at_ps);
            }
            Step::HostMemory(bytes) => drive.set_hmb(bytes),
            Step::Shutdown => drive.begin_shutdown(),
        }
    }
    (all, drive.counters())
}

#[test]
fn a_drive_does_the_same_however_often_it_is_asked() {
    let (cases, mut shutdowns) = (lodger_testing::cases(63), 0);
    for case in 0..cases {
        let seed = lodger_testing::seed().unwrap_or(1) + u64::from(case);
        let mut rng = Rng::new(seed);
        // Of the small drive, which does all it can within a few requests, every third.
        let (name, sets) = match case % 3 {
            0 => ("tiny", &[][..]),
            _ => VARIANTS[case as usize / 3 % VARIANTS.len()],
        };
        let spec = drive(name, sets);
        let steps = script(&spec, &mut rng);
        shutdowns += steps
            .iter()
            .filter(|(_, step)| matches!(step, Step::Shutdown))
            .count();
        let (sent, counters) = outcome(&spec, &steps, |_| None);
        // At each event, where the simulation stops; and wherever a process may have come to it.
        let eager = outcome(&spec, &steps, |drive| {
            Some(drive.next_time().unwrap_or(u64::MAX))
        });
        let often = outcome(&spec, &steps, |drive| {
            let next_ps = drive.next_time().unwrap_or(u64::MAX);
            let pause_ps = 1 + u64::from(rng.below(200)) * 1_000_000;
            Some(
                next_ps
                    .min(drive.now_ps() + 1_000_000_000)
                    .max(drive.now_ps() + pause_ps),
            )
        });
        for (name_of, (other_sent, other)) in [("at each event", eager), ("at any time", often)] {
            let differs = sent.iter().zip(&other_sent).position(|(a, b)| a != b);
            let differs = differs.map(|at| (sent[at], other_sent[at]));
            assert_eq!(differs, None, "{name}, seed {seed}: asked {name_of}");
            assert_eq!(sent.len(), other_sent.len(), "{name}, seed {seed}");
            assert_eq!(counters, other, "{name}, seed {seed}: asked {name_of}");
        }
    }
    assert!(shutdowns > cases as usize, "{shutdowns}");
}
