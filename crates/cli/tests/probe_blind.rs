//! How often is the prober right about drives it has never seen? A small sample here; the whole
//! table of docs/validation with `LODGER_PROBE_DRIVES=300 cargo test --release -p lodger --test
//! probe_blind -- --nocapture`. `LODGER_PROBE_FIRST` is the first seed, `LODGER_PROBE_NOISE` the noise
//! of all drives as a multiple of the default.

mod blind;

use blind::{Planted, Subject, subject};
use lodger::probe_target::{Noise, SimTarget};
use lodger_probe::{Options, Outcome, Verdict, probe};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const ROLES: [&str; 3] = ["map", "read_cache", "write_buffer"];
/// Drives in the test suite.
const SAMPLE: u64 = 5;

fn probed(subject: &Subject, seed: u64) -> Outcome {
    let noise = Noise::default().times(subject.noise);
    let mut target = SimTarget::open(&subject.config, noise, seed).expect("it opens");
    let experiments = [
        "map-cache",
        "read-cache",
        "parallelism",
        "flush",
        "write-buffer",
    ];
    let options = Options {
        experiments: experiments.map(str::to_owned).to_vec(),
        budget: Duration::from_secs(1 << 20),
        may_write: true,
        seed,
        confidence: 0.95,
    };
    probe(&mut target, &options, &mut |_| true)
}

#[derive(Clone, Copy, Debug, Default)]
struct Score {
    verdicts: u32,
    decided: u32,
    right: u32,
    sizes: u32,
    near: u32,
    covered: u32,
    no_size: u32,
}

impl Score {
    fn count(&mut self, planted: &Planted, verdict: &Verdict, tolerance: f64) -> Option<String> {
        self.verdicts += 1;
        let found = verdict.tier.name();
        if found == "undecided" {
            return Some(format!("undecided: {}", verdict.evidence));
        }
        self.decided += 1;
        if found != planted.tier {
            return Some(format!(
                "WRONG: {found} for {planted:?}: {}",
                verdict.evidence
            ));
        }
        self.right += 1;
        let bytes = planted.bytes?;
        let Some(size) = verdict.size_bytes else {
            self.no_size += 1;
            return None;
        };
        self.sizes += 1;
        let near = (size.estimate / bytes - 1.0).abs() <= tolerance;
        let covered = size.low <= bytes && bytes <= size.high;
        self.near += u32::from(near);
        self.covered += u32::from(covered);
        (!near || !covered).then(|| {
            let share = size.estimate / bytes - 1.0;
            format!(
                "size {:+.1} %, covered {covered}: {size:?} for {bytes}",
                100.0 * share
            )
        })
    }
}

fn table(scores: &[Score; 3]) -> String {
    let mut out = String::from(
        "role          right/decided  undecided  sizes near/given  covered  no size\n",
    );
    for (role, s) in ROLES.iter().zip(scores) {
        let undecided = s.verdicts - s.decided;
        out += &format!(
            "{role:<14}{:>5}/{:<8}{undecided:>10}{:>11}/{:<6}{:>9}{:>9}\n",
            s.right, s.decided, s.near, s.sizes, s.covered, s.no_size
        );
    }
    out
}

/// What the drive file says about a role.
fn excerpt(subject: &Subject, role: &str) -> String {
    let text = &subject.text;
    let from = text
        .find(&format!("[role.{role}]"))
        .map_or("", |at| &text[at..]);
    let end = from[1.min(from.len())..]
        .find("\n[")
        .map_or(from.len(), |at| at + 1);
    let state = subject.config.precondition;
    format!("    {state:?} {}", from[..end].trim().replace('\n', "; "))
}

fn run(drives: u64) -> [Score; 3] {
    let scores = Mutex::new([Score::default(); 3]);
    let next = AtomicU64::new(0);
    let first: u64 = std::env::var("LODGER_PROBE_FIRST").map_or(1, |text| text.parse().unwrap());
    let noise: Option<f64> = std::env::var("LODGER_PROBE_NOISE")
        .ok()
        .map(|text| text.parse().unwrap());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= drives {
                        return;
                    }
                    let seed = first + at;
                    let mut subject = subject(seed);
                    subject.noise = noise.unwrap_or(subject.noise);
                    let outcome = probed(&subject, seed);
                    if drives == 1 {
                        println!("{}\n{}", subject.text, lodger_probe::report::text(&outcome));
                    }
                    let tolerance = if subject.noise > 1.0 { 0.1 } else { 0.05 };
                    let planted = [subject.map, subject.read_cache, subject.write_buffer];
                    let mut scores = scores.lock().unwrap();
                    for ((role, planted), score) in ROLES.iter().zip(planted).zip(&mut *scores) {
                        let verdict = outcome.roles.get(role).unwrap_or_else(|| {
                            panic!("{seed}: no verdict on {role}: {:?}", outcome.skipped)
                        });
                        if let Some(remark) = score.count(&planted, verdict, tolerance) {
                            println!("{seed} {role}: {remark}\n{}", excerpt(&subject, role));
                        }
                    }
                }
            });
        }
    });
    scores.into_inner().unwrap()
}

#[test]
fn drives_drawn_at_random_are_seen_through() {
    let drives = std::env::var("LODGER_PROBE_DRIVES").map(|text| text.parse().unwrap());
    let drives = drives.unwrap_or(SAMPLE);
    let scores = run(drives);
    println!("{drives} drives\n{}", table(&scores));
    let sum = |of: fn(&Score) -> u32| f64::from(scores.iter().map(of).sum::<u32>());
    let share = |part: f64, whole: f64| part / whole.max(1.0);
    let right = share(sum(|s| s.right), sum(|s| s.decided));
    let undecided = 1.0 - share(sum(|s| s.decided), sum(|s| s.verdicts));
    let near = share(sum(|s| s.near), sum(|s| s.sizes));
    let covered = share(sum(|s| s.covered), sum(|s| s.sizes));
    println!(
        "tiers right {:.1} %, undecided {:.1} %, sizes near {:.1} %, covered {:.1} %",
        100.0 * right,
        100.0 * undecided,
        100.0 * near,
        100.0 * covered
    );
    assert!(right >= 0.95, "tiers right in {right}");
    assert!(undecided <= 0.1, "undecided {undecided}");
    assert!(near >= 0.9, "sizes near in {near}");
    assert!(covered >= 0.9, "intervals cover in {covered}");
}
