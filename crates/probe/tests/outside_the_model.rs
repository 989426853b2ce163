//! Drives that are none, or misbehave: the prober must say "undecided" rather than something false,
//! write nothing without consent, and leave host memory as it found it however it ends.

use lodger_probe::Role;
use lodger_probe::findings::{Findings, Held};
use lodger_probe::infer::read_cache::ReadCacheArm;
use lodger_probe::infer::verdict;
use lodger_probe::{
    Description, HmbState, HmbSwitch, Io, Op, Options, Outcome, Sample, Target, TargetError, Tier,
    Transport, probe,
};
use std::time::Duration;

/// Latency in ns of a transfer at an instant (ns), with host memory on or off, and a random number.
type Latency = fn(&Io, u64, bool, u64) -> u64;

struct Mock {
    description: Description,
    latency: Latency,
    clock_ns: u64,
    state: u64,
    hmb: HmbState,
    transfers: u64,
    writes: u64,
    fails_after: Option<(u64, TargetError)>,
    fails_once: bool,
}

impl Mock {
    fn new(latency: Latency, hmb: HmbSwitch) -> Self {
        Mock {
            description: Description {
                name: "mock".to_owned(),
                model: "mock".to_owned(),
                serial: "1".to_owned(),
                firmware: String::new(),
                capacity_bytes: 64 << 30,
                block_bytes: 512,
                transfer_bytes_max: 128 << 10,
                transport: Transport::Direct,
                no_flush: None,
                no_deallocate: None,
                no_write: None,
                hmb,
                notes: Vec::new(),
            },
            latency,
            clock_ns: 0,
            state: 88_172_645_463_325_252,
            hmb: HmbState::AsFound,
            transfers: 0,
            writes: 0,
            fails_after: None,
            fails_once: false,
        }
    }

    fn random(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }
}

impl Target for Mock {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn run(
        &mut self,
        ios: &[Io],
        queue_depth: u32,
        samples: &mut Vec<Sample>,
    ) -> Result<(), TargetError> {
        samples.clear();
        let mut lanes = vec![0u64; queue_depth.max(1) as usize];
        for io in ios {
            self.transfers += 1;
            self.writes += u64::from(io.op == Op::Write);
            if let Some((after, error)) = &self.fails_after
                && self.transfers > *after
            {
                let error = error.clone();
                if self.fails_once {
                    self.fails_after = None;
                }
                return Err(error);
            }
            let on = self.hmb != HmbState::Off;
            let random = self.random();
            let lane = lanes.iter_mut().min().expect("one lane at least");
            let latency_ns = (self.latency)(io, self.clock_ns + *lane, on, random);
            samples.push(Sample {
                issued_ns: *lane,
                latency_ns,
            });
            *lane += latency_ns;
        }
        self.clock_ns += lanes.into_iter().max().unwrap_or(0);
        Ok(())
    }

    fn flush(&mut self) -> Result<u64, TargetError> {
        self.clock_ns += 5_000;
        Ok(5_000)
    }

    fn deallocate(&mut self, _offset: u64, _bytes: u64) -> Result<u64, TargetError> {
        Ok(5_000)
    }

    fn idle(&mut self, time: Duration) {
        self.clock_ns += time.as_nanos() as u64;
    }

    fn set_hmb(&mut self, state: HmbState) -> Result<(), TargetError> {
        self.hmb = state;
        Ok(())
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.clock_ns)
    }
}

const SWITCH: HmbSwitch = HmbSwitch::OnOff {
    granted_bytes: 64 << 20,
};

fn options(may_write: bool) -> Options {
    Options {
        experiments: Vec::new(),
        budget: Duration::from_secs(1 << 30),
        may_write,
        seed: 3,
        confidence: 0.95,
    }
}

fn whole(mock: &mut Mock) -> Outcome {
    probe(mock, &options(false), &mut |_| true)
}

fn tiers(outcome: &Outcome) -> Vec<(&'static str, Tier)> {
    let roles = outcome.roles.iter();
    roles.map(|(name, verdict)| (*name, verdict.tier)).collect()
}

/// A few per cent around a level.
fn around(ns: u64, random: u64) -> u64 {
    ns + ns * (random % 60) / 1000
}

fn ram(io: &Io, _: u64, _: bool, random: u64) -> u64 {
    around(3_000 + u64::from(io.bytes) / 8, random)
}

fn network(_: &Io, _: u64, _: bool, random: u64) -> u64 {
    // 150 us and a long tail.
    150_000
        + 40_000 * (random >> 8 & 7)
        + if random.is_multiple_of(50) {
            3_000_000
        } else {
            0
        }
}

/// Slower and slower: heat, or a neighbour.
fn throttled(_: &Io, now_ns: u64, _: bool, random: u64) -> u64 {
    let slower = 1 + now_ns / 400_000_000;
    around(80_000 * slower.min(6), random)
}

/// Blocks that compress well are answered from a small place.
fn compressed(io: &Io, _: u64, _: bool, random: u64) -> u64 {
    let block = io.offset >> 12;
    let well = block.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 63 == 0;
    around(if well { 30_000 } else { 90_000 }, random)
}

/// Everything passes an engine that encrypts 500 MB/s while it is cool, and a third of that for the second
/// half of every 3 s.
fn encrypted(io: &Io, now_ns: u64, _: bool, random: u64) -> u64 {
    let hot = now_ns % 3_000_000_000 > 1_500_000_000;
    let engine_ns = u64::from(io.bytes) * 2;
    around(70_000 + if hot { 3 * engine_ns } else { engine_ns }, random)
}

#[test]
fn memory_is_not_taken_for_a_drive() {
    for hmb in [SWITCH, HmbSwitch::NotUsed] {
        let outcome = whole(&mut Mock::new(ram, hmb));
        assert_eq!(
            tiers(&outcome),
            [("map", Tier::Undecided), ("read_cache", Tier::Undecided)]
        );
    }
}

#[test]
fn a_network_hides_what_is_behind_it() {
    for hmb in [SWITCH, HmbSwitch::NotUsed] {
        let outcome = whole(&mut Mock::new(network, hmb));
        for (role, tier) in tiers(&outcome) {
            let (evidence, seen) = (&outcome.roles[role].evidence, &outcome.findings.quantities);
            assert_eq!(tier, Tier::Undecided, "{role}: {evidence}; {seen:?}");
        }
    }
}

#[test]
fn a_drive_that_gets_slower_is_said_to() {
    let outcome = whole(&mut Mock::new(throttled, SWITCH));
    for (role, tier) in tiers(&outcome) {
        let evidence = &outcome.roles[role].evidence;
        assert_eq!(tier, Tier::Undecided, "{role}: {evidence}");
    }
    let notes = &outcome.findings.notes;
    let said = notes.iter().any(|note| note.contains("latency moved"));
    assert!(said, "{notes:?}");
}

#[test]
fn contents_that_decide_the_latency_are_no_cache() {
    let outcome = whole(&mut Mock::new(compressed, SWITCH));
    for (role, tier) in tiers(&outcome) {
        let evidence = &outcome.roles[role].evidence;
        assert_eq!(tier, Tier::Undecided, "{role}: {evidence}");
    }
}

#[test]
fn an_engine_that_everything_passes_is_no_cache() {
    for hmb in [SWITCH, HmbSwitch::NotUsed] {
        let outcome = whole(&mut Mock::new(encrypted, hmb));
        for (role, tier) in tiers(&outcome) {
            let evidence = &outcome.roles[role].evidence;
            assert_eq!(tier, Tier::Undecided, "{role}: {evidence}");
        }
    }
}

/// Writes that take no longer than reads, and flushes that cost nothing, say nothing of a write buffer.
#[test]
fn with_writing_too_what_is_no_flash_stays_undecided() {
    let latencies: [(&str, Latency); 4] = [
        ("memory", ram),
        ("network", network),
        ("compressed", compressed),
        ("encrypted", encrypted),
    ];
    for (name, latency) in latencies {
        for hmb in [SWITCH, HmbSwitch::NotUsed] {
            let mut mock = Mock::new(latency, hmb);
            let outcome = probe(&mut mock, &options(true), &mut |_| true);
            assert!(outcome.roles.contains_key("write_buffer"), "{name}");
            for (role, tier) in tiers(&outcome) {
                let verdict = &outcome.roles[role];
                assert_eq!(
                    tier,
                    Tier::Undecided,
                    "{name}, {role}: {}",
                    verdict.evidence
                );
            }
        }
    }
}

/// The same findings, told of a drive and of what need not be one.
#[test]
fn what_lies_between_is_not_taken_for_a_drive() {
    let mut findings = Findings {
        collisions: Some(true),
        ..Findings::default()
    };
    let (bytes, levels) = (Held::Nothing, None);
    let saved = lodger_probe::stats::Estimate::new(0.0, 0.0, 0.0);
    let arm = ReadCacheArm {
        levels,
        saved,
        bytes,
    };
    findings.roles.read_cache.arms.insert("as found", arm);
    let mut about = Mock::new(ram, HmbSwitch::NotUsed).description;
    for (transport, tier) in [
        (Transport::Direct, Tier::None),
        (Transport::Block, Tier::None),
        (Transport::Layered, Tier::Undecided),
        (Transport::Network, Tier::Undecided),
    ] {
        about.transport = transport;
        let verdict = verdict(Role::ReadCache, &mut findings, &about).unwrap();
        assert_eq!(verdict.tier, tier, "{transport:?}: {}", verdict.evidence);
        let is_named = verdict.evidence.contains("page cache");
        assert_eq!(is_named, tier == Tier::Undecided, "{}", verdict.evidence);
    }
}

#[test]
fn a_drive_file_of_what_need_not_be_a_drive_says_so_at_its_head() {
    for (transport, is_said) in [(Transport::Direct, false), (Transport::Layered, true)] {
        let mut mock = Mock::new(ram, HmbSwitch::NotUsed);
        mock.description.transport = transport;
        let file = lodger_probe::report::drive(&whole(&mut mock)).unwrap();
        let head = file.split("name = ").next().unwrap();
        assert_eq!(
            head.contains("need not be like any drive"),
            is_said,
            "{head}"
        );
    }
}

/// Stopped at any point: host memory is as it was, the report is marked, nothing was written.
#[test]
fn an_interrupted_probe_leaves_everything_as_it_was() {
    for stop_at in [0, 1, 7, 50, 333, 2_000, 9_999] {
        let mut mock = Mock::new(compressed, SWITCH);
        let mut looks = 0;
        let outcome = probe(&mut mock, &options(false), &mut |_| {
            looks += 1;
            looks <= stop_at
        });
        assert!(outcome.partial && outcome.interrupted, "after {stop_at}");
        assert_eq!(mock.hmb, HmbState::AsFound, "after {stop_at}");
        assert_eq!(mock.writes, 0);
        let json = lodger_probe::report::json(&outcome, true);
        assert_eq!(json["partial"], true);
    }
}

#[test]
fn a_failing_target_ends_the_probe_and_host_memory_is_given_back() {
    let errors = [
        TargetError::Gone("no such device".to_owned()),
        TargetError::Io {
            what: "read",
            offset: 4096,
            bytes: 4096,
            reason: "input/output error".to_owned(),
        },
        TargetError::Short {
            offset: 4096,
            bytes: 4096,
            got: 512,
        },
    ];
    for (i, error) in errors.into_iter().enumerate() {
        for after in [0, 100, 5_000] {
            let mut mock = Mock::new(compressed, SWITCH);
            mock.fails_after = Some((after, error.clone()));
            let outcome = whole(&mut mock);
            assert!(outcome.partial && !outcome.interrupted, "{i} after {after}");
            let reasons = outcome
                .skipped
                .iter()
                .any(|s| s.reason == error.to_string());
            assert!(reasons, "{:?}", outcome.skipped);
            assert_eq!(mock.hmb, HmbState::AsFound);
        }
    }
}

#[test]
fn without_consent_nothing_is_written_and_with_it_a_drive_that_forbids_it_is_left_alone() {
    let mut mock = Mock::new(ram, SWITCH);
    whole(&mut mock);
    assert_eq!(mock.writes, 0);
    let mut mock = Mock::new(ram, SWITCH);
    mock.description.no_write = Some("write-protected".to_owned());
    let outcome = probe(&mut mock, &options(true), &mut |_| true);
    assert_eq!(mock.writes, 0);
    assert!(
        outcome
            .skipped
            .iter()
            .any(|s| s.reason == "write-protected")
    );
}

#[test]
fn one_error_of_the_drive_does_not_end_a_probe() {
    let error = TargetError::Io {
        what: "read",
        offset: 4096,
        bytes: 4096,
        reason: "input/output error".to_owned(),
    };
    for at in [0, 100, 5_000, 20_000] {
        let mut mock = Mock::new(compressed, SWITCH);
        mock.fails_after = Some((at, error.clone()));
        mock.fails_once = true;
        let outcome = whole(&mut mock);
        assert!(mock.transfers > at && mock.fails_after.is_none());
        assert!(!outcome.partial, "at {at}: {:?}", outcome.skipped);
        let notes = &outcome.findings.notes;
        let said = notes.iter().any(|note| note.contains("input/output error"));
        assert!(said, "at {at}: {notes:?}");
    }
}

#[test]
fn what_was_found_is_kept_after_each_experiment() {
    let mut mock = Mock::new(compressed, SWITCH);
    let mut kept = Vec::new();
    let outcome =
        lodger_probe::probe_and_keep(&mut mock, &options(false), &mut |_| true, &mut |so_far| {
            assert!(so_far.partial);
            kept.push(so_far.spent.len());
        });
    assert!(!outcome.partial);
    assert_eq!(kept, (1..=outcome.spent.len()).collect::<Vec<_>>());
}
