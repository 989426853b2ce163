//! Plays a plan, and says what has gone wrong.

use crate::host::{Host, State, WILD_PAGES};
use crate::memory::Watched;
use crate::namespace::Span;
use crate::plan::{Kind, Mode, Plan};
use crate::queue::{Asked, ENTRIES, What};
use lodger_core::spec::parse;
use lodger_core::{DriveSpec, Precondition};
use lodger_serve::controller::Settings;
use lodger_serve::faults::Act;
use std::panic::{AssertUnwindSafe, catch_unwind};

const TINY: &str = include_str!("../../../../drives/tiny.toml");

/// Waits after which what is asked for must have been done, once nothing disturbs any more.
const WAITS_MAX: u32 = 100_000;

/// A drive of the swarm.
pub struct Drive {
    spec: DriveSpec,
    block_bytes: u32,
    precondition: Precondition,
    namespaces_bytes: Vec<u64>,
}

/// Small, so that all of what a drive does comes up soon.
const SMALL: [(&str, &str); 5] = [
    ("capacity", "24MiB"),
    ("nand.pages_per_block", "12"),
    ("ftl.overprovisioning", "0.5"),
    ("role.write_buffer.size", "256KiB"),
    ("tier.hmb.integrity", "mac"),
];

/// Namespaces of which the naive drive knows all, a part, and all; what comes behind is in none.
const SEVERAL: [u64; 3] = [512 << 10, 8 << 20, 512 << 10];

/// All of them.
pub fn drives() -> Vec<Drive> {
    let drive = |sets: &[(&str, &str)], block_bytes, precondition| {
        let sets: Vec<(&str, &str)> = SMALL.iter().chain(sets).copied().collect();
        let parsed = parse(TINY, "tiny.toml", &sets, &|_| None);
        Drive {
            spec: parsed.expect("a drive").spec,
            block_bytes,
            precondition,
            namespaces_bytes: Vec::new(),
        }
    };
    let several = |drive: Drive| Drive {
        namespaces_bytes: SEVERAL.to_vec(),
        ..drive
    };
    let cache = [
        ("role.read_cache.tier", "hmb"),
        ("role.read_cache.size", "64KiB"),
    ];
    let managed = [("controller.namespaces", "3")];
    vec![
        drive(&[], 512, Precondition::None),
        drive(&[], 4096, Precondition::Random),
        drive(
            &[("ftl.slc_superblocks", "0")],
            512,
            Precondition::Sequential,
        ),
        drive(&cache, 512, Precondition::Sequential),
        several(drive(&[], 512, Precondition::Random)),
        several(drive(&cache, 4096, Precondition::None)),
        several(drive(&managed, 512, Precondition::Random)),
        several(drive(
            &[managed[0], cache[0], cache[1]],
            4096,
            Precondition::None,
        )),
    ]
}

/// What came of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Commands that were complete.
    pub done: u64,
    /// Of all that was seen, and when.
    pub digest: u64,
}

/// Plays a plan.
///
/// # Errors
/// What has gone wrong first.
pub fn play(plan: &Plan, drives: &[Drive]) -> Result<Outcome, String> {
    let played = catch_unwind(AssertUnwindSafe(|| play_unguarded(plan, drives)));
    played.unwrap_or_else(|what| {
        let text = what.downcast_ref::<String>().cloned();
        let text = text.or(what.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("panic: {}", text.unwrap_or_default()))
    })
}

fn play_unguarded(plan: &Plan, drives: &[Drive]) -> Result<Outcome, String> {
    let drive = &drives[plan.drive];
    let settings = Settings {
        block_bytes: drive.block_bytes,
        seed: plan.seed,
        precondition: drive.precondition,
        namespaces_bytes: drive.namespaces_bytes.clone(),
    };
    let memory = Watched::new(WILD_PAGES.end);
    let mut host = Host::new(plan, &drive.spec, &settings, &memory);
    for step in &plan.steps {
        host.rng = plan.rng(*step);
        let mut rng = host.rng.clone();
        let kind = plan.kind(*step, &mut rng);
        host.rng = rng;
        host.step(kind);
        if let Some(wrong) = host.wrong.take() {
            return Err(format!("step {step} ({kind:?}): {wrong}"));
        }
    }
    if plan.mode == Mode::Liveness {
        host.settle()
            .map_err(|what| format!("at the end: {what}"))?;
    }
    Ok(Outcome {
        done: host.done,
        digest: host.digest ^ memory.digest(),
    })
}

impl Host<'_> {
    fn step(&mut self, kind: Kind) {
        self.go_on();
        match kind {
            Kind::Wait => self.wait(),
            Kind::Reap => {
                let most = 1 + self.rng.below(ENTRIES.into());
                self.reap(most);
            }
            _ if kind.disturbs() => self.go_wrong(kind),
            _ => self.ask(kind),
        }
        if self.rng.below(2) == 0 {
            self.poll();
        }
    }

    /// Waits for something, and says what is waited for in vain.
    fn until(
        &mut self,
        what: &str,
        mut is_so: impl FnMut(&mut Self) -> bool,
    ) -> Result<(), String> {
        for _ in 0..WAITS_MAX {
            self.go_on();
            self.reap(ENTRIES.into());
            if let Some(wrong) = self.wrong.take() {
                return Err(wrong);
            }
            if is_so(self) {
                return Ok(());
            }
            self.wait();
        }
        Err(format!("{what} is waited for in vain"))
    }

    fn all_done(&self) -> bool {
        let pairs = self.io.iter().chain([&self.admin]);
        let mut under_way = pairs.flat_map(|pair| pair.under_way.values());
        under_way.all(|asked| matches!(asked.what, What::Wild))
    }

    /// Nothing disturbs any more: what was asked for is done, and the drive holds what it must, after power has
    /// failed as well.
    fn settle(&mut self) -> Result<(), String> {
        for act in [Act::Resume, Act::Return, Act::Writable, Act::Cool] {
            self.perform(act);
        }
        if self.state == State::Gone {
            self.state = State::Off;
        }
        self.until("the end of all commands", |host| {
            host.state == State::Ready && host.all_done()
        })?;
        self.reset();
        self.mend_all()?;
        self.check_all()?;
        let submitted = self.space.flush();
        let span = self.everything();
        self.run(0, u32::MAX, What::Flush { submitted, span })?;
        self.perform(Act::PowerCut);
        self.check_all()
    }

    /// A queue to ask by.
    fn begin_anew(&mut self) -> Result<u16, String> {
        self.until("a controller that is ready", |host| {
            host.state == State::Ready
        })?;
        self.make_queue(1);
        self.until("a queue", |host| host.all_done())?;
        Ok(1)
    }

    /// All namespaces are there, and attached: those that were detached with what they held, and others with nothing.
    fn mend_all(&mut self) -> Result<(), String> {
        self.until("a drive with all its namespaces", |host| {
            host.state == State::Ready && !host.mend() && host.all_done()
        })?;
        self.reset();
        Ok(())
    }

    /// A command without data, until it is not refused for a format any more.
    fn run(&mut self, opcode: u8, namespace: u32, what: What) -> Result<(), String> {
        let asked = Asked::new(what, None);
        self.submit(1, opcode, &[(1, namespace)], asked);
        self.until("the end of a command", |host| host.all_done())
    }

    /// Reads everything.
    fn check_all(&mut self) -> Result<(), String> {
        let queue = self.begin_anew()?;
        // A format that was under way goes on; it ends. One of all namespaces is one of those there are.
        self.may_be_wiping &= (1 << self.namespaces) - 1;
        for _ in 0..WAITS_MAX {
            if self.may_be_wiping == 0 {
                break;
            }
            let before = self.refused;
            let namespace = 1 + self.may_be_wiping.trailing_zeros();
            self.run(0xc, namespace, What::Verify)?;
            if self.refused == before {
                // It is over there.
                self.may_be_wiping &= self.may_be_wiping - 1;
            }
            self.wait();
        }
        let page = (4096 / self.block_bytes) as u32;
        for lba in (0..self.space.blocks()).step_by(4 * page as usize) {
            let span = Span {
                lba,
                blocks: 4 * page,
            };
            self.read_span(queue, span, 0);
            self.until("a read", |host| host.all_done())?;
        }
        Ok(())
    }
}
