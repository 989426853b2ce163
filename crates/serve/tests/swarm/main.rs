//! A swarm: simulated hosts, each drawn from a seed, do what they can to a whole controller in simulated time, beside a
//! naive model of a namespace. What must hold, whatever they do:
//!
//! - the controller touches no host memory but what it was given, and nothing of it once it was taken back;
//! - every command ends once, or its queue is gone;
//! - a well-behaved queue reads no wrong byte, whatever others do; what was flushed survives power cuts;
//! - (liveness) once nothing disturbs any more, all that was asked for is done.
//!
//! A failure prints its seed, and a smaller plan; `LODGER_SEED=N LODGER_CASES=1` plays it again, bit for bit. A longer run:
//! `LODGER_SEED=1 LODGER_CASES=100000 cargo test --release -p lodger-serve --test swarm -- --nocapture`.

mod ask;
mod host;
mod manage;
mod memory;
mod namespace;
mod plan;
mod queue;
mod run;
mod wrong;

use plan::{Mode, Plan};
use run::{Drive, drives, play};

/// Seeds of each mode in the ordinary tests: a few seconds.
const CASES: u32 = 300;
/// Failing seeds after which no more are tried.
const FAILING_MAX: usize = 10;

fn report(plan: &Plan, drives: &[Drive]) -> String {
    let smaller = plan.clone().shrink(|plan| play(plan, drives).is_err());
    let what = play(&smaller, drives).err().unwrap_or_default();
    let steps: Vec<String> = (smaller.steps.iter())
        .map(|step| format!("{step} {:?}", smaller.kind(*step, &mut smaller.rng(*step))))
        .collect();
    format!(
        "LODGER_SEED={} LODGER_CASES=1, {:?}, drive {}, with these steps only: {what}\n{}",
        plan.seed,
        plan.mode,
        plan.drive,
        steps.join(", ")
    )
}

fn swarm(mode: Mode) {
    let drives = drives();
    let cases = u64::from(lodger_testing::cases(CASES));
    let first = lodger_testing::seed().unwrap_or(1);
    let (mut done, mut failing) = (0, Vec::new());
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    for seed in first..first + cases {
        let plan = Plan::draw(seed, mode, drives.len());
        match play(&plan, &drives) {
            Ok(outcome) => done += outcome.done,
            Err(what) => {
                println!("{mode:?} {seed}: {what}");
                failing.push(plan);
            }
        }
        if failing.len() >= FAILING_MAX {
            break;
        }
    }
    let first_of_all = failing.first().map(|plan| report(plan, &drives));
    std::panic::set_hook(before);
    println!("{mode:?}: {cases} seeds from {first}, {done} commands");
    if let Some(what) = first_of_all {
        panic!(
            "{} seeds fail; the first, made smaller:\n{what}",
            failing.len()
        );
    }
    assert!(done > cases, "hardly anything was asked for: {done}");
}

#[test]
fn nothing_wrong_happens_whatever_happens() {
    swarm(Mode::Safety);
}

#[test]
fn everything_is_done_once_nothing_disturbs() {
    swarm(Mode::Liveness);
}

/// Found among a million: a write that was under way with one with FUA; host memory that was corrupted, by a rule,
/// between a reset and the last transfer; a read that is heard of after its namespace is deleted; a host that lowers the
/// number of queues below what another uses, and one whose queues make it too late to ask for a number.
const FAILED_ONCE: [(Mode, u64); 6] = [
    (Mode::Safety, 2_611_264_016),
    (Mode::Safety, 2_611_587_813),
    (Mode::Safety, 2_611_760_475),
    (Mode::Liveness, 2_611_492_665),
    (Mode::Liveness, 386_026_630),
    (Mode::Liveness, 386_031_126),
];

#[test]
fn seeds_that_failed_once_pass() {
    let drives = drives();
    for (mode, seed) in FAILED_ONCE {
        let plan = Plan::draw(seed, mode, drives.len());
        play(&plan, &drives).unwrap_or_else(|what| panic!("{seed}: {what}"));
    }
}

#[test]
fn a_seed_is_played_again_bit_for_bit() {
    let drives = drives();
    for seed in 1..20 {
        let plan = Plan::draw(seed, Mode::Liveness, drives.len());
        let (one, other) = (play(&plan, &drives), play(&plan, &drives));
        assert_eq!(one, other, "seed {seed}");
        let next = play(
            &Plan::draw(seed + 100, Mode::Liveness, drives.len()),
            &drives,
        );
        assert_ne!(one, next, "another seed is another run");
    }
}

/// Drives that do what they must not, by rules, and what the swarm is to say of them.
const BROKEN: [(&str, &str); 8] = [
    ("change 0 0102030405060708 opcode=read every=20", "reads as"),
    ("pretend opcode=write every=20", "reads as"),
    ("pretend opcode=trim every=3", "reads as"),
    ("stale 0-511 opcode=read every=20", "not granted"),
    ("pretend opcode=flush", "reads as"),
    ("drop opcode=write skip=20", "waited for in vain"),
    ("touch former on=take-back after=1us", "not granted"),
    ("touch beside on=grant after=1ms", "not granted"),
];

#[test]
fn drives_that_do_what_they_must_not_are_found() {
    let drives = drives();
    for (rules, expected) in BROKEN {
        let found = (1..300).find_map(|seed| {
            let plan = Plan {
                rules,
                ..Plan::draw(seed, Mode::Liveness, drives.len())
            };
            play(&plan, &drives).err()
        });
        let found = found.unwrap_or_else(|| panic!("`{rules}` is not found"));
        assert!(found.contains(expected), "`{rules}`: {found}");
    }
}
