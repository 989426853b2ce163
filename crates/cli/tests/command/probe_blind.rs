//! How often is the prober right about drives it has never seen? A small sample here; the whole
//! table of docs/validation with `LODGER_PROBE_DRIVES=300 cargo test --release -p lodger --test
//! probe_blind -- --nocapture`. `LODGER_PROBE_FIRST` is the first seed, `LODGER_PROBE_NOISE` the noise
//! of all drives as a multiple of the default, `LODGER_PROBE_THREADS` how many are probed at a time; `LODGER_PROBE_CONFIDENCE=0` runs every experiment once.
//! `LODGER_PROBE_CALIBRATE=1 LODGER_PROBE_FIRST=50001 LODGER_PROBE_DRIVES=300` prints how often each rule
//! is right and how wide intervals must be: seeds that are used for nothing else; `LODGER_PROBE_ALL=0` with what
//! verdicts rest on alone, which takes a third of the time. `LODGER_PROBE_WRITES=0` leaves out what writes, in
//! either, and the write buffer; `LODGER_PROBE_WRITES=2` all but what that rests on. `LODGER_PROBE_UNMOVED=1` calibrates by such
//! drives alone as are given host memory and keep their map in memory of their own, which few drawn at random do.

use crate::blind::calibration::{self, Record};
use crate::blind::host::Surrounded;
use crate::blind::{Planted, Subject, subject};
use lodger::probe_target::{Noise, SimTarget};
use lodger_core::Precondition;
use lodger_core::nand::Cause;
use lodger_probe::{Options, Tier, Verdict, probe};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const ROLES: [&str; 3] = ["map", "read_cache", "write_buffer"];
/// Drives in the test suite.
const SAMPLE: u64 = 5;
/// A range with ends further apart says nothing.
const RANGE_MAX: f64 = 2.3;

fn opened(subject: &Subject, seed: u64) -> Surrounded {
    let noise = Noise::default().times(subject.noise);
    let drive = SimTarget::open(&subject.config, noise, seed).expect("it opens");
    Surrounded::new(drive, subject.around, seed)
}

/// What verdicts rest on.
const DECIDING: [&str; 5] = [
    "map-cache",
    "read-cache",
    "parallelism",
    "flush",
    "write-buffer",
];

/// What verdicts rest on, or what of it only reads, or what that on the write buffer rests on.
fn deciding() -> &'static [&'static str] {
    match setting("WRITES").unwrap_or(1_u8) {
        0 => &DECIDING[..3],
        1 => &DECIDING,
        _ => &DECIDING[2..],
    }
}

/// Roles that are told by that.
fn roles() -> &'static [&'static str] {
    match setting("WRITES").unwrap_or(1_u8) {
        0 => &ROLES[..2],
        1 => &ROLES,
        _ => &ROLES[2..],
    }
}

/// A number from the environment, if it is given.
fn setting<T: std::str::FromStr>(name: &str) -> Option<T> {
    let name = format!("LODGER_PROBE_{name}");
    let text = std::env::var(&name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is no number")),
    )
}

fn options(experiments: &[&str], seed: u64) -> Options {
    Options {
        experiments: experiments.iter().map(|&name| name.to_owned()).collect(),
        budget: Duration::from_secs(1 << 20),
        may_write: true,
        seed,
        confidence: 0.95,
    }
}

#[derive(Clone, Debug, Default)]
struct Score {
    confidences: Vec<f64>,
    verdicts: u32,
    decided: u32,
    right: u32,
    /// Sizes given as a number, those near the truth, and those given as a range, narrow enough to tell something.
    sizes: u32,
    near: u32,
    ranges: u32,
    narrow: u32,
    covered: u32,
    no_size: u32,
}

impl Score {
    fn plus(self, other: &Score) -> Score {
        Score {
            confidences: [self.confidences, other.confidences.clone()].concat(),
            verdicts: self.verdicts + other.verdicts,
            decided: self.decided + other.decided,
            right: self.right + other.right,
            sizes: self.sizes + other.sizes,
            near: self.near + other.near,
            ranges: self.ranges + other.ranges,
            narrow: self.narrow + other.narrow,
            covered: self.covered + other.covered,
            no_size: self.no_size + other.no_size,
        }
    }

    fn count(&mut self, planted: &Planted, verdict: &Verdict, tolerance: f64) -> Option<String> {
        self.verdicts += 1;
        let found = verdict.tier.name();
        if found == "undecided" {
            return Some(format!("undecided: {}", verdict.evidence));
        }
        self.decided += 1;
        self.confidences.push(verdict.confidence);
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
        let covered = size.low <= bytes && bytes <= size.high;
        self.covered += u32::from(covered);
        let near = if verdict.size_is_range {
            // What a map takes where entries of 4 to 8 B are possible.
            let is_narrow = size.high < RANGE_MAX * size.low;
            self.ranges += 1;
            self.narrow += u32::from(is_narrow);
            is_narrow
        } else {
            let near = (size.estimate / bytes - 1.0).abs() <= tolerance;
            self.sizes += 1;
            self.near += u32::from(near);
            near
        };
        (!near || !covered).then(|| {
            let share = size.estimate / bytes - 1.0;
            let kind = if verdict.size_is_range {
                "range"
            } else {
                "size"
            };
            format!(
                "{kind} {:+.1} %, covered {covered}: {size:?} for {bytes}",
                100.0 * share
            )
        })
    }
}

/// A score as shares of 1.
struct Shares {
    role: &'static str,
    right: f64,
    undecided: f64,
    near: f64,
    covered: f64,
}

fn shares(role: &'static str, score: &Score) -> Shares {
    let share = |part: u32, whole: u32| f64::from(part) / f64::from(whole.max(1));
    let given = |part: u32, whole: u32| if whole == 0 { 1.0 } else { share(part, whole) };
    Shares {
        role,
        right: share(score.right, score.decided),
        undecided: share(score.verdicts - score.decided, score.verdicts),
        near: given(score.near, score.sizes),
        covered: given(score.covered, score.sizes + score.ranges),
    }
}

impl Shares {
    /// Prints them; with the shares of sizes that must be near and covered, asserts.
    fn assert_least(&self, least: Option<(f64, f64)>) {
        let Shares {
            role,
            right,
            undecided,
            near,
            covered,
        } = self;
        println!(
            "{role}: tiers right {:.1} %, undecided {:.1} %, sizes near {:.1} %, covered {:.1} %",
            100.0 * right,
            100.0 * undecided,
            100.0 * near,
            100.0 * covered
        );
        if let Some((nearness, covering)) = least {
            assert!(*right >= 0.95, "{role}: tiers right in {right}");
            assert!(*undecided <= 0.1, "{role}: undecided {undecided}");
            assert!(*near >= nearness, "{role}: sizes near in {near}");
            assert!(*covered >= covering, "{role}: intervals cover in {covered}");
        }
    }
}

fn table(scores: &[Score; 3]) -> String {
    let mut out = String::from(
        "role          right/decided  undecided  numbers near/given  ranges narrow/given  covered  no size\n",
    );
    for (role, s) in roles().iter().zip(scores) {
        let undecided = s.verdicts - s.decided;
        out += &format!(
            "{role:<14}{:>5}/{:<8}{undecided:>10}{:>13}/{:<6}{:>14}/{:<6}{:>8}{:>9}\n",
            s.right, s.decided, s.near, s.sizes, s.narrow, s.ranges, s.covered, s.no_size
        );
    }
    out
}

/// What was planted and what was found, by role: how often.
type Confusion = BTreeMap<(&'static str, &'static str, &'static str), u32>;

fn confusion_table(confusion: &Confusion) -> String {
    let mut out = String::from("role          planted   found      drives\n");
    for ((role, planted, found), drives) in confusion {
        out += &format!("{role:<14}{planted:<10}{found:<10}{drives:>7}\n");
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
    let (state, noise) = (subject.config.precondition, subject.noise);
    format!(
        "    {state:?} noise {noise} {}",
        from[..end].trim().replace('\n', "; ")
    )
}

/// A verdict for whoever counts in another way.
fn raw(seed: u64, role: &str, planted: &Planted, verdict: &Verdict) -> String {
    let (rule, sure, fit) = (verdict.rule, verdict.confidence, verdict.fit);
    let (tier, range) = (verdict.tier.name(), verdict.size_is_range);
    let (truth, size) = (planted.bytes, verdict.size_bytes);
    format!(
        "verdict {seed} {role} {} {tier} {rule:?} {sure:.4} {fit:.4} {range} {truth:?} {size:?}",
        planted.tier
    )
}

fn run(drives: u64) -> ([Score; 3], Confusion) {
    let confusion = Mutex::new(Confusion::new());
    let scores = Mutex::new(std::array::from_fn(|_| Score::default()));
    let next = AtomicU64::new(0);
    let first: u64 = setting("FIRST").unwrap_or(1);
    let noise: Option<f64> = setting("NOISE");
    let confidence = setting("CONFIDENCE").unwrap_or(0.95);
    std::thread::scope(|scope| {
        for _ in 0..setting("THREADS").unwrap_or(2) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= drives {
                        return;
                    }
                    let seed = first + at;
                    let mut subject = subject(seed);
                    subject.noise = noise.unwrap_or(subject.noise);
                    let options = Options {
                        confidence,
                        ..options(deciding(), seed)
                    };
                    let outcome = probe(&mut opened(&subject, seed), &options, &mut |_| true);
                    if drives == 1 {
                        println!("{}\n{}", subject.text, lodger_probe::report::text(&outcome));
                    }
                    calibration::assert_announced(&outcome);
                    let tolerance = if subject.noise > 1.0 { 0.1 } else { 0.05 };
                    let mut scores = scores.lock().unwrap();
                    for (role, score) in roles().iter().zip(&mut *scores) {
                        let planted = match *role {
                            "map" => subject.map,
                            "read_cache" => subject.read_cache,
                            _ => subject.write_buffer,
                        };
                        let verdict = outcome.roles.get(role).unwrap_or_else(|| {
                            panic!("{seed}: no verdict on {role}: {:?}", outcome.skipped)
                        });
                        let kind = (*role, planted.tier, verdict.tier.name());
                        *confusion.lock().unwrap().entry(kind).or_insert(0) += 1;
                        // Line by line, so that slices of seeds, of one each if need be, can be added up; not in the suite.
                        if drives > SAMPLE || drives == 1 {
                            println!("{}", raw(seed, role, &planted, verdict));
                        }
                        if let Some(remark) = score.count(&planted, verdict, tolerance) {
                            println!("{seed} {role}: {remark}\n{}", excerpt(&subject, role));
                        }
                    }
                }
            });
        }
    });
    (
        scores.into_inner().unwrap(),
        confusion.into_inner().unwrap(),
    )
}

#[test]
fn what_is_drawn_are_drives() {
    for seed in (1..=400).chain([97_114]) {
        // It panics where the drive file is not valid.
        assert!(!subject(seed).text.is_empty());
    }
}

#[test]
fn drives_drawn_at_random_are_seen_through() {
    let drives = setting("DRIVES").unwrap_or(SAMPLE);
    let (scores, confusion) = run(drives);
    println!("{drives} drives\n{}", table(&scores));
    println!("{}", confusion_table(&confusion));
    let mut all = Score::default();
    for (role, score) in roles().iter().zip(&scores) {
        // Shares of a few drives say little; what is demanded of each role is demanded of many.
        shares(role, score).assert_least((drives >= 100).then_some((0.9, 0.9)));
        all = all.plus(score);
    }
    // Of the eleven sizes of the sample two may miss, and four intervals.
    shares("all", &all).assert_least(Some(if drives >= 100 {
        (0.9, 0.9)
    } else {
        (0.75, 0.6)
    }));
    assert_as_sure_as_right(&scores);
}

/// Verdicts are wrong no more often than their confidence says, within what chance allows. Rarer is no
/// fault: a rule that was counted on few drives is less sure than it is right.
fn assert_as_sure_as_right(scores: &[Score; 3]) {
    let sure: Vec<f64> = scores.iter().flat_map(|s| s.confidences.clone()).collect();
    let wrong: u32 = scores.iter().map(|s| s.decided - s.right).sum();
    let (at_least, at_most) = calibration::chances(&sure, wrong as usize);
    let mean = sure.iter().sum::<f64>() / sure.len().max(1) as f64;
    println!(
        "mean confidence {:.2} %, {wrong} of {} wrong; chance of so many or more {at_least:.4}, of so \
         many or fewer {at_most:.4}",
        100.0 * mean,
        sure.len()
    );
    assert!(at_least > 0.001, "too sure: {wrong} wrong at {mean}");
}

/// Seeds 20147 and 20165 of an earlier generator: bursts of writes run alike with host memory on and
/// off, and the prober said "device".
#[test]
fn a_write_buffer_in_host_memory_that_never_fills_is_not_taken_for_one_on_the_drive() {
    let drives = [
        (include_str!("blind/never_fills_20147.toml"), 0.7, 20147),
        (include_str!("blind/never_fills_20165.toml"), 0.5, 20165),
    ];
    for (text, noise, seed) in drives {
        let config = crate::blind::config(text, Precondition::Sequential, seed);
        let mut target = SimTarget::open(&config, Noise::default().times(noise), seed).unwrap();
        let outcome = probe(&mut target, &options(&["write-buffer"], seed), &mut |_| {
            true
        });
        let verdict = &outcome.roles["write_buffer"];
        assert!(
            matches!(verdict.tier, Tier::Hmb | Tier::Undecided),
            "{seed}: {verdict:?}"
        );
    }
}

/// Seed 97888: 0.6 MiB, for 7.6 MiB, of a buffer that never fills.
#[test]
fn what_is_on_its_way_into_flash_is_not_taken_for_all_that_a_buffer_holds() {
    let text = include_str!("blind/never_fills_97888.toml");
    let seed = 97_888;
    let config = crate::blind::config(text, Precondition::Sequential, seed);
    let mut target = SimTarget::open(&config, Noise::default().times(0.7), seed).unwrap();
    let outcome = probe(&mut target, &options(&["write-buffer"], seed), &mut |_| {
        true
    });
    let verdict = &outcome.roles["write_buffer"];
    assert_eq!(verdict.tier, Tier::Device, "{seed}: {verdict:?}");
    // That it is larger than something may be said.
    let size = verdict.size_bytes;
    assert!(
        size.is_none_or(|size| size.high >= 7_938_048.0),
        "{seed}: {verdict:?}"
    );
}

/// Seed 99087: a cache of 42 MB on the drive was "in host memory", 98 % sure. Without host memory the map
/// reaches 32 MiB, and what the cache holds beyond waits for its map entry.
#[test]
fn a_read_cache_that_ends_where_the_map_ends_is_not_taken_for_one_in_host_memory() {
    let text = include_str!("blind/map_ends_99087.toml");
    let seed = 99_087;
    let config = crate::blind::config(text, Precondition::Sequential, seed);
    for experiments in [&["map-cache", "read-cache"][..], &["read-cache"]] {
        let mut target = SimTarget::open(&config, Noise::default().times(0.8), seed).unwrap();
        let outcome = probe(&mut target, &options(experiments, seed), &mut |_| true);
        let verdict = &outcome.roles["read_cache"];
        assert!(
            matches!(verdict.tier, Tier::Device | Tier::Undecided),
            "{experiments:?}: {verdict:?}"
        );
    }
}

/// Where pages take different times to read, the same page of each place is read again, and a read cache in host
/// memory kept those: a map on the drive was "in host memory", 99.6 % sure.
#[test]
fn a_read_cache_in_host_memory_is_not_taken_for_a_map_there() {
    let text = include_str!("blind/read_cache_of_kinds.toml");
    for seed in 0..2 {
        let config = crate::blind::config(text, Precondition::Sequential, seed);
        let mut target = SimTarget::open(&config, Noise::default(), seed).unwrap();
        let experiments = &["map-cache", "read-cache"];
        let outcome = probe(&mut target, &options(experiments, seed), &mut |_| true);
        let map = &outcome.roles["map"];
        assert!(
            matches!(map.tier, Tier::Device | Tier::Undecided),
            "{seed}: {map:?}"
        );
        assert_eq!(outcome.roles["read_cache"].tier, Tier::Hmb, "{seed}");
    }
}

#[test]
fn drives_in_the_steady_state_clean_while_they_are_probed() {
    let random = (1..).map(|seed| (seed, subject(seed)));
    let random = random.filter(|(_, drawn)| {
        drawn.config.precondition == Precondition::Random
            && drawn.text.contains("slc_superblocks = 0")
    });
    let mut moved = 0;
    for (seed, drawn) in random.take(2) {
        let mut target = SimTarget::open(&drawn.config, Noise::default(), seed).unwrap();
        probe(&mut target, &options(&["write-buffer"], seed), &mut |_| {
            true
        });
        let counters = target.counters();
        assert!(counters.erases > 0, "{seed}\n{}", drawn.text);
        moved += counters.programs_by_cause[Cause::Gc as usize];
    }
    // Not on each: where superblocks are small, what the prober overwrites leaves some without a valid page.
    assert!(moved > 0);
}

/// A number of the drive file, the only one of that name.
fn number(text: &str, key: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let value = line.unwrap_or_else(|| panic!("{key} in\n{text}"));
    let digits = value.trim_start_matches([' ', '=', '"']);
    let end = digits.find(|c: char| !c.is_ascii_digit());
    digits[..end.unwrap_or(digits.len())].parse().unwrap()
}

#[test]
fn what_one_read_of_the_flash_fetches_is_found_or_left_open() {
    let drives = (1..).map(|seed| (seed, subject(seed)));
    let in_order =
        drives.filter(|(_, drawn)| drawn.config.precondition == Precondition::Sequential);
    let (mut pages, mut units) = (0, 0);
    for (seed, drawn) in in_order.take(40) {
        let mut target = opened(&drawn, seed);
        let outcome = probe(&mut target, &options(&["parallelism"], seed), &mut |_| true);
        let text = &drawn.text;
        let found = |name: &str, planted: f64| {
            let value = outcome.findings.quantities.get(name)?.value;
            let covered = value.low <= planted && planted <= value.high;
            assert!(
                covered,
                "{seed} {name}: {value:?} for {planted}
{text}"
            );
            Some(())
        };
        let page_bytes = 1024.0 * number(text, "page_size") * number(text, "planes");
        pages += u32::from(found("flash_page", page_bytes).is_some());
        let dies = number(text, "channels") * number(text, "dies_per_channel");
        units += u32::from(found("parallel_units", dies).is_some());
    }
    // Where pages of several kinds are kept once read, or pages are small, nothing is said: 26 and 26 of 40 are found,
    // and every interval covers what was planted.
    println!("{pages} pages, {units} numbers of dies of 40");
    assert!(pages >= 24, "{pages}");
    assert!(units >= 25, "{units}");
}

#[test]
fn every_rule_is_as_often_right_as_its_table_says() {
    if std::env::var_os("LODGER_PROBE_CALIBRATE").is_none() {
        return;
    }
    let first: u64 = setting("FIRST").unwrap_or(50_001);
    let drives: u64 = setting("DRIVES").unwrap_or(300);
    // Others with numbers, so that their intervals are counted, too.
    let all = setting("ALL").unwrap_or(1_u8) > 0;
    let more: &[&str] = if all {
        &["queue-depth", "read-ahead", "write-cliff"]
    } else {
        &[]
    };
    let experiments = [deciding(), more].concat();
    let only_unmoved = setting("UNMOVED").unwrap_or(0_u8) > 0;
    let is_asked = |drawn: &Subject| {
        !only_unmoved || drawn.map.tier == "device" && drawn.text.contains("[tier.hmb]")
    };
    let single = |seed| Options {
        confidence: 0.0,
        ..options(&experiments, seed)
    };
    let record = Mutex::new(Record::default());
    let asked = (first..).map(|seed| (seed, subject(seed)));
    let asked = asked.filter(|(_, drawn)| is_asked(drawn));
    let next = Mutex::new(asked.take(drives as usize));
    std::thread::scope(|scope| {
        for _ in 0..setting("THREADS").unwrap_or(2) {
            scope.spawn(|| {
                loop {
                    let Some((seed, subject)) = next.lock().unwrap().next() else {
                        return;
                    };
                    let mut target = opened(&subject, seed);
                    let once = probe(&mut target, &single(seed), &mut |_| true);
                    let twice = (all && calibration::is_twice(seed))
                        .then(|| probe(&mut target, &single(seed ^ 1 << 32), &mut |_| true));
                    let mut record = record.lock().unwrap();
                    record.count(seed, &subject, &once, twice.as_ref());
                }
            });
        }
    });
    println!("{}", record.into_inner().unwrap().table());
}
