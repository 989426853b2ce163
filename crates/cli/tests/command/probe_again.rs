//! Does the prober measure again where that helps, and only there?

use lodger::probe_target::{Noise, SimTarget};
use lodger_probe::{
    Description, HmbState, Io, Options, Outcome, Sample, Target, TargetError, Tier, probe,
};
use lodger_run::{Drive, RunConfig};
use std::ops::Range;
use std::time::Duration;

/// A simulated drive behind a host that slows everything down for a while.
struct Slowed {
    drive: SimTarget,
    when: Range<f64>,
    factor: f64,
}

impl Target for Slowed {
    fn describe(&self) -> &Description {
        self.drive.describe()
    }

    fn run(
        &mut self,
        ios: &[Io],
        queue_depth: u32,
        samples: &mut Vec<Sample>,
    ) -> Result<(), TargetError> {
        let now = self.now().as_secs_f64();
        self.drive.run(ios, queue_depth, samples)?;
        if self.when.contains(&now) {
            for sample in samples {
                sample.latency_ns = (sample.latency_ns as f64 * self.factor) as u64;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<u64, TargetError> {
        self.drive.flush()
    }

    fn deallocate(&mut self, offset: u64, bytes: u64) -> Result<u64, TargetError> {
        self.drive.deallocate(offset, bytes)
    }

    fn idle(&mut self, time: Duration) {
        self.drive.idle(time);
    }

    fn set_hmb(&mut self, state: HmbState) -> Result<(), TargetError> {
        self.drive.set_hmb(state)
    }

    fn now(&self) -> Duration {
        self.drive.now()
    }
}

fn tiny(when: Range<f64>) -> Slowed {
    let drive = Drive::open("tiny", &[]).expect("a drive of the collection");
    let drive = SimTarget::open(&RunConfig::new(drive), Noise::default(), 1).expect("it opens");
    Slowed {
        drive,
        when,
        factor: 1.5,
    }
}

fn options(confidence: f64) -> Options {
    Options {
        experiments: ["map-cache", "read-cache", "parallelism"]
            .map(str::to_owned)
            .to_vec(),
        budget: Duration::from_secs(1 << 20),
        may_write: false,
        seed: 5,
        confidence,
    }
}

fn probed(when: Range<f64>, confidence: f64) -> Outcome {
    probe(&mut tiny(when), &options(confidence), &mut |_| true)
}

#[test]
fn what_is_sure_at_once_is_measured_once() {
    let (asked, never) = (probed(0.0..0.0, 0.9), probed(0.0..0.0, 0.5));
    assert_eq!(asked.roles["map"].tier, Tier::Hmb);
    assert!(asked.roles.values().all(|role| role.runs == 1));
    assert_eq!(asked.usage, never.usage);
}

#[test]
fn a_run_during_which_the_drive_changed_is_discarded_and_made_again() {
    let still = probed(0.0..0.0, 0.9);
    // Slow while the reference is taken for the first time: later it seems to have changed.
    let outcome = probed(0.0..0.030, 0.9);
    let again = probed(0.0..0.030, 0.9);
    assert_eq!(outcome, again, "the same seed gives the same result");
    let (role, quiet) = (&outcome.roles["map"], &still.roles["map"]);
    assert_eq!(role.tier, quiet.tier, "{}", role.evidence);
    assert!(role.confidence >= 0.9, "{}", role.evidence);
    let (size, expected) = (role.size_bytes.unwrap(), quiet.size_bytes.unwrap());
    assert!((size.estimate / expected.estimate - 1.0).abs() < 0.05);
    let notes = &outcome.findings.notes;
    assert!(
        notes.iter().any(|note| note.contains("were discarded")),
        "{notes:?}"
    );
    assert!(outcome.raw.keys().any(|name| name.contains("(run 2)")));
}

#[test]
fn what_reads_tell_is_measured_again_before_the_first_write() {
    let mut options = options(0.9);
    let names = ["map-cache", "read-cache", "parallelism", "flush"];
    options.experiments = names.map(str::to_owned).to_vec();
    options.may_write = true;
    let mut order: Vec<&str> = Vec::new();
    let mut look = |experiment| {
        if order.last() != Some(&experiment) {
            order.push(experiment);
        }
        true
    };
    let mut drive = tiny(0.0..0.030);
    let outcome = probe(&mut drive, &options, &mut |now| look(now.experiment));
    assert!(outcome.raw.keys().any(|name| name.contains("(run 2)")));
    assert!(outcome.usage.writes > 0);
    let first_write = order.iter().position(|name| *name == "flush").unwrap();
    assert!(
        order[first_write..].iter().all(|name| *name == "flush"),
        "{order:?}"
    );
    // With no more room than for everything once, writing is not given up for it.
    let once = outcome
        .spent
        .values()
        .map(|spent| spent.time)
        .sum::<Duration>();
    options.budget = once.mul_f64(1.2);
    let outcome = probe(&mut tiny(0.0..0.030), &options, &mut |_| true);
    assert!(outcome.usage.writes > 0, "{:?}", outcome.skipped);
    let map = &outcome.roles["map"];
    assert!(
        map.runs == 1 && map.evidence.contains("kept for flush"),
        "{}",
        map.evidence
    );
}

#[test]
fn a_drive_that_never_holds_still_is_undecided_and_says_so() {
    struct Shaking(Slowed);
    impl Target for Shaking {
        fn describe(&self) -> &Description {
            self.0.describe()
        }
        fn run(
            &mut self,
            ios: &[Io],
            queue_depth: u32,
            samples: &mut Vec<Sample>,
        ) -> Result<(), TargetError> {
            // A little slower from transfer to transfer.
            self.0.factor *= 1.0 + 1e-4 * ios.len() as f64;
            self.0.run(ios, queue_depth, samples)
        }
        fn flush(&mut self) -> Result<u64, TargetError> {
            self.0.flush()
        }
        fn deallocate(&mut self, offset: u64, bytes: u64) -> Result<u64, TargetError> {
            self.0.deallocate(offset, bytes)
        }
        fn idle(&mut self, time: Duration) {
            self.0.idle(time);
        }
        fn set_hmb(&mut self, state: HmbState) -> Result<(), TargetError> {
            self.0.set_hmb(state)
        }
        fn now(&self) -> Duration {
            self.0.now()
        }
    }
    let mut target = Shaking(tiny(0.0..f64::INFINITY));
    let outcome = probe(&mut target, &options(0.95), &mut |_| true);
    let role = &outcome.roles["map"];
    assert_eq!(role.tier, Tier::Undecided);
    assert!(
        role.evidence.contains("moves whenever it is measured"),
        "{}",
        role.evidence
    );
}

#[test]
fn a_confidence_that_no_number_of_runs_gives_is_not_tried_for() {
    let outcome = probed(0.0..0.0, 0.9999);
    let role = &outcome.roles["map"];
    assert_eq!(role.runs, 1, "{}", role.evidence);
    assert!(
        role.evidence.contains("not the 100.0 % asked for") || role.evidence.contains("asked for"),
        "{}",
        role.evidence
    );
}
