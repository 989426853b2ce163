//! Drives drawn at random, over all keys of a drive file; random requests, many of them in flight at
//! once; power cut at random instants, again at once, and during recovery. Every read and every
//! restart is held against the naive model: nothing promised is lost, nothing old returns, and the
//! drive never stops.
//!
//! `LODGER_CASES` drives are tried from `LODGER_SEED` on. A failure prints the smallest case that
//! still fails, and the seed that draws the whole of it:
//! `LODGER_CASES=20000 cargo test --release -p lodger-core --test drive swarm:: -- --nocapture`

use crate::common::contents::Media;
use crate::common::durable::Model;
use crate::drawn::Keys;
use lodger_core::Host;
use lodger_core::ids::Lpn;
use lodger_core::rng::Rng;
use lodger_core::spec::Tier;
use lodger_core::{Completion, DriveSpec, Op, Precondition, Request, Status};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Cases in the ordinary tests: a few seconds.
const CASES: u32 = 60;
/// Events after which a drive that is asked nothing more must be at rest.
const REST_EVENTS: u32 = 400_000;
/// A case takes some milliseconds, a few take two seconds; on a machine busy with other things, twenty times
/// that. One that takes this long hangs.
const HANG: Duration = Duration::from_secs(180);
/// Runs spent on making a failing case smaller.
const SHRINKING_RUNS: u32 = 1_500;
/// Failing drives after which no more are tried.
const FAILING_MAX: usize = 20;

/// One thing that happens to a drive. Numbers are taken modulo what the drive has.
#[derive(Clone, Copy, Debug)]
enum Action {
    /// Pages and sectors from the start of the drive, or (`span` 0) of its hot pages.
    Ask {
        op: Op,
        fua: bool,
        queue: u16,
        span: u8,
        offset: u32,
        sectors: u32,
    },
    /// The whole drive is trimmed.
    TrimAll,
    /// So many events.
    Steps(u32),
    /// To an instant before the next event.
    Between(u32),
    /// Until at most so many requests are open.
    Wait(u32),
    /// Until the drive is at rest.
    Rest,
    /// So many quarters of the preferred host memory.
    HostMemory(u32),
    Cut,
    Crash,
    /// Power fails again during recovery, that long after it came back.
    CutTwice(u64),
    Shutdown,
}

#[derive(Clone)]
struct Case {
    seed: u64,
    keys: Keys,
    precondition: Precondition,
    actions: Vec<Action>,
}

fn request(rng: &mut Rng) -> Action {
    let op = match rng.below(100) {
        0..50 => Op::Write,
        50..76 => Op::Read,
        76..90 => Op::Trim,
        _ => Op::Flush,
    };
    let sectors = match rng.below(5) {
        0 => 1 + rng.below(12),
        1 | 2 => 8,
        3 => 64,
        _ => 8 * (1 + rng.below(40)),
    };
    let offset = rng.next_u64() as u32;
    let aligned = rng.below(4) != 0;
    Action::Ask {
        op,
        fua: op == Op::Write && rng.below(6) == 0,
        queue: rng.below(3) as u16,
        span: rng.below(3) as u8,
        offset: if aligned { offset / 8 * 8 } else { offset },
        sectors,
    }
}

fn draw(seed: u64) -> Case {
    let mut rng = Rng::new(seed);
    let (keys, _) = crate::drawn::draw(&mut rng);
    let precondition = match rng.below(3) {
        0 => Precondition::None,
        1 => Precondition::Sequential,
        _ => Precondition::Random,
    };
    let mut actions = Vec::new();
    let depth = 1 + rng.below(32);
    for _ in 0..3 + rng.below(38) {
        for _ in 0..rng.below(60) {
            actions.push(request(&mut rng));
            match rng.below(80) {
                0 => actions.push(Action::HostMemory(rng.below(5))),
                1 if rng.below(8) == 0 => actions.push(Action::TrimAll),
                _ => {}
            }
            actions.push(Action::Wait(rng.below(depth)));
        }
        actions.push(Action::Steps(rng.below(40)));
        actions.push(match rng.below(10) {
            0..5 => Action::Between(rng.next_u64() as u32),
            5 => Action::Rest,
            6 if rng.below(3) == 0 => Action::Shutdown,
            _ => Action::Steps(1),
        });
        actions.push(match rng.below(10) {
            0..2 => Action::Crash,
            2..4 => Action::CutTwice(u64::from(rng.below(1 << 31)) << rng.below(8)),
            _ => Action::Cut,
        });
        if rng.below(2) == 0 {
            actions.push(Action::HostMemory(4));
        }
    }
    Case {
        seed,
        keys,
        precondition,
        actions,
    }
}

struct Run {
    host: Host<Media>,
    model: Model,
    open: HashMap<u32, Request>,
    next_tag: u32,
    cuts: u32,
    hmb_bytes: u64,
    /// Events since a request completed or power was cut.
    idle_events: u32,
}

impl Run {
    fn new(case: &Case, spec: &DriveSpec) -> Self {
        let hmb = spec.tiers.hmb.as_ref();
        let hmb_bytes = hmb.map_or(0, |hmb| hmb.preferred_bytes);
        let media = Media::default();
        Run {
            host: Host::with_contents(spec, case.precondition, hmb_bytes, case.seed, media),
            model: Model::new((spec.capacity_bytes / 4096) as u32),
            open: HashMap::new(),
            next_tag: 1,
            cuts: 0,
            hmb_bytes,
            idle_events: 0,
        }
    }

    fn write_buffer(&self) -> &lodger_core::spec::WriteBufferSpec {
        &self.host.spec().roles.write_buffer
    }

    fn submit(&mut self, mut request: Request) {
        request.tag = self.next_tag;
        self.next_tag += 1;
        self.model.submit(&request);
        self.open.insert(request.tag, request);
        self.host.submit(request);
    }

    fn ask(&mut self, action: Action) {
        let Action::Ask {
            op,
            fua,
            queue,
            span,
            offset,
            sectors,
        } = action
        else {
            return;
        };
        let all = self.model.pages() * 8;
        let span = [all.min(512), all.min(4096), all][usize::from(span)];
        let offset = offset % (span - 1);
        let length = if op == Op::Flush {
            0
        } else {
            sectors.min(all - offset)
        };
        self.submit(Request {
            tag: 0,
            queue,
            op,
            fua,
            offset_bytes: u64::from(offset) * 512,
            length_bytes: u64::from(length) * 512,
        });
    }

    /// Goes on to the next event. False: nothing is left to happen.
    fn step(&mut self) -> bool {
        let Some(at) = self.host.next_time() else {
            let state = self.host.drive.debug_state();
            assert!(self.open.is_empty(), "stuck: {state}\n{:?}", self.open);
            return false;
        };
        self.advance(at);
        self.idle_events += 1;
        let state = || self.host.drive.debug_state();
        let is_on = self.idle_events < REST_EVENTS;
        assert!(is_on, "does not come to rest: {}", state());
        true
    }

    fn advance(&mut self, to_ps: u64) {
        let mut done = Vec::new();
        self.host.advance(to_ps, &mut done);
        for (tag, lpn, sectors, page) in self.host.drive.contents.seen.drain(..) {
            let checked = self.model.check_read(tag, lpn, sectors, &page);
            checked.unwrap_or_else(|what| panic!("{what}"));
        }
        self.complete(&done);
    }

    fn complete(&mut self, done: &[Completion]) {
        let buffer = self.write_buffer();
        let is_pm = self.host.spec().tiers.survives_power_cut(buffer.tier);
        let unbuffered = buffer.acknowledges_programmed || buffer.tier == Tier::Slc;
        for completion in done {
            self.idle_events = 0;
            let request = self.open.remove(&completion.tag).expect("completes once");
            if completion.status != Status::Success {
                self.fail(&request, completion.status);
                continue;
            }
            assert!(completion.completed_ps >= completion.submitted_ps);
            let forced = request.op == Op::Write && (request.fua || unbuffered);
            self.model.complete(&request, forced || is_pm);
        }
    }

    /// Only flash that ages fails commands, and counts them.
    fn fail(&mut self, request: &Request, status: Status) {
        let counted = self.host.counters().ageing;
        match status {
            Status::MediaError => assert!(counted.uncorrectable > 0, "{request:?}"),
            Status::ReadOnly => assert!(counted.refused > 0 && request.op != Op::Flush),
            _ => panic!("{status:?}: {request:?}"),
        }
        self.model.fail(request, status == Status::ReadOnly);
    }

    fn rest(&mut self) {
        while self.step() {}
    }

    fn restarted(&mut self, crash: bool) {
        let buffer_lives = crash && self.write_buffer().tier != Tier::Hmb;
        self.open.clear();
        self.idle_events = 0;
        self.host.drive.contents.seen.clear();
        self.cuts += 1;
        let host = &self.host;
        let holds = |lpn| host.drive.contents.at(host.drive.source(Lpn(lpn)));
        let all = self.cuts.is_multiple_of(8);
        let checked = self.model.restart(holds, buffer_lives, all);
        checked.unwrap_or_else(|what| panic!("cut {}: {what}", self.cuts));
        if self.cuts.is_multiple_of(4) {
            self.host.drive.ftl().check();
            self.host.drive.check_map();
        }
    }

    /// An orderly shutdown makes everything durable, as a flush does.
    fn shutdown(&mut self) {
        // The host's own driver may have commands in flight, too.
        while self.host.in_flight() > 0 {
            self.step();
        }
        let flush = Request {
            tag: self.next_tag,
            op: Op::Flush,
            length_bytes: 0,
            ..NOTHING
        };
        self.next_tag += 1;
        self.model.submit(&flush);
        self.host.shutdown();
        self.model.complete(&flush, true);
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Ask { .. } => self.ask(action),
            Action::TrimAll => {
                let length_bytes = u64::from(self.model.pages()) * 4096;
                self.submit(Request {
                    op: Op::Trim,
                    length_bytes,
                    ..NOTHING
                });
            }
            Action::Steps(count) => (0..count).for_each(|_| {
                self.step();
            }),
            Action::Between(share) => {
                let now = self.host.now_ps();
                let gap = self.host.next_time().map_or(0, |at| at - now);
                let part = (u128::from(gap) * u128::from(share)) >> 32;
                self.advance(now + part as u64);
            }
            Action::Wait(open) => {
                while self.open.len() > open as usize {
                    self.step();
                }
            }
            Action::Rest => self.rest(),
            Action::HostMemory(quarters) => {
                self.host.set_hmb(self.hmb_bytes * u64::from(quarters) / 4);
            }
            Action::Cut => {
                self.host.power_cut();
                self.restarted(false);
            }
            Action::CutTwice(after_ps) => {
                self.host.power_cut_in_recovery(after_ps);
                self.restarted(false);
            }
            Action::Crash => {
                self.host.host_crash();
                self.restarted(true);
            }
            Action::Shutdown => self.shutdown(),
        }
    }
}

const NOTHING: Request = Request {
    tag: 0,
    queue: 0,
    op: Op::Flush,
    fua: false,
    offset_bytes: 0,
    length_bytes: 0,
};

/// Plays a case; returns how often power was cut.
fn play(case: &Case) -> u32 {
    let spec = crate::drawn::build(&case.keys).expect("a valid drive");
    let mut run = Run::new(case, &spec);
    for &action in &case.actions {
        run.act(action);
    }
    run.rest();
    run.host.drive.ftl().check();
    run.host.drive.check_map();
    run.cuts
}

/// Plays a case: how often power was cut, or what went wrong.
fn outcome(case: &Case) -> Result<u32, String> {
    now_playing(Some(case));
    let played = catch_unwind(AssertUnwindSafe(|| play(case)));
    now_playing(None);
    played.map_err(|what| {
        let text = what.downcast_ref::<String>().cloned();
        let text = text.or(what.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        text.unwrap_or_default()
    })
}

/// A smaller case that fails as well, if not in the same way.
fn shrink(mut case: Case) -> Case {
    let mut runs = 0;
    let mut still_fails = |smaller: &Case| {
        runs += 1;
        runs <= SHRINKING_RUNS
            && crate::drawn::build(&smaller.keys).is_ok()
            && outcome(smaller).is_err()
    };
    let mut size = case.actions.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < case.actions.len() {
            let mut smaller = case.clone();
            let end = (at + size).min(smaller.actions.len());
            smaller.actions.drain(at..end);
            if still_fails(&smaller) {
                case = smaller;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    let keys: Vec<&str> = case.keys.keys().copied().collect();
    for key in keys
        .into_iter()
        .filter(|key| crate::drawn::is_optional(key))
    {
        let mut smaller = case.clone();
        smaller.keys.remove(key);
        if still_fails(&smaller) {
            case = smaller;
        }
    }
    case
}

fn report(case: &Case, what: &str) -> String {
    let mut out = format!("LODGER_SEED={} LODGER_CASES=1: {what}\n", case.seed);
    let _ = writeln!(
        out,
        "{}",
        crate::drawn::text(&case.keys)
            .split("[sources]")
            .next()
            .unwrap()
    );
    let _ = writeln!(out, "preconditioned: {:?}", case.precondition);
    for action in &case.actions {
        let _ = writeln!(out, "{action:?}");
    }
    out
}

/// The case being played, and since when.
static PLAYED: Mutex<Option<(Instant, Case)>> = Mutex::new(None);

fn now_playing(case: Option<&Case>) {
    let played = case.map(|case| (Instant::now(), case.clone()));
    *PLAYED.lock().expect("nobody panics with it") = played;
}

/// Ends the program when one case takes too long, and says which.
fn watch() {
    std::thread::spawn(|| {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let played = PLAYED.lock().expect("nobody panics with it");
            if let Some((since, case)) = played.as_ref()
                && since.elapsed() > HANG
            {
                eprintln!("{}", report(case, "hangs"));
                std::process::abort();
            }
        }
    });
}

#[test]
fn drives_drawn_at_random_keep_what_they_promise_through_power_cuts() {
    watch();
    let cases = u64::from(lodger_testing::cases(CASES));
    let first = lodger_testing::seed().unwrap_or(1);
    let mut cuts = 0;
    let mut failing = Vec::new();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    for seed in first..first + cases {
        let case = draw(seed);
        match outcome(&case) {
            Ok(seen) => cuts += u64::from(seen),
            Err(what) => {
                println!("{seed}: {}", what.lines().next().unwrap_or_default());
                failing.push(case);
            }
        }
        if failing.len() >= FAILING_MAX {
            break;
        }
    }
    let smallest = failing.first().map(|case| {
        let smallest = shrink(case.clone());
        let what = outcome(&smallest).err().unwrap_or_default();
        report(&smallest, &what)
    });
    std::panic::set_hook(before);
    let seeds: Vec<u64> = failing.iter().map(|case| case.seed).collect();
    println!("{cases} drives from seed {first}, {cuts} power cuts");
    if let Some(smallest) = smallest {
        panic!("drives {seeds:?} fail. The first, made smaller:\n{smallest}");
    }
}

#[test]
fn every_key_of_a_drive_file_is_drawn() {
    assert_eq!(crate::drawn::missing(), Vec::<String>::new());
}
