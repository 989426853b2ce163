//! What a seed stands for: a drive, a mode, and which things happen how often. A plan that fails is made smaller.

use lodger_core::rng::{Rng, mix};

/// How much a host may be disturbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By anything, without end: whatever happens, nothing wrong happens.
    Safety,
    /// By so much, and then by nothing: after that everything asked for is done, and all data is there.
    Liveness,
}

/// What a host does, or what befalls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Wait,
    Reap,
    Read,
    Write,
    Zeroes,
    Deallocate,
    Flush,
    Compare,
    Verify,
    /// Identify, log pages, features.
    Ask,
    Grant,
    TakeBack,
    MakeQueue,
    DeleteQueue,
    Shadows,
    WriteCache,
    PowerState,
    Abort,
    Wipe,
    /// Namespaces are made, deleted, attached, detached.
    Manage,
    BadCommand,
    BadAdmin,
    BadGrant,
    BadDoorbell,
    BadRegister,
    Reset,
    FunctionReset,
    Shutdown,
    Unmap,
    Scribble,
    PowerCut,
    Corrupt,
    Withdraw,
    Vanish,
    Stall,
    Throttle,
    ReadOnly,
    ClientDeath,
}

use Kind::*;

impl Kind {
    /// Whether it is more than a well-behaved host does to a drive that is well.
    pub fn disturbs(self) -> bool {
        KINDS
            .iter()
            .any(|(kind, _, disturbs)| *kind == self && *disturbs && !matches!(kind, Wipe | Manage))
    }
}

/// How often each is done, beside the others; the last column: whether it disturbs.
pub const KINDS: [(Kind, u32, bool); 38] = [
    (Wait, 60, false),
    (Reap, 30, false),
    (Read, 24, false),
    (Write, 36, false),
    (Zeroes, 5, false),
    (Deallocate, 5, false),
    (Flush, 6, false),
    (Compare, 4, false),
    (Verify, 2, false),
    (Ask, 4, false),
    (Grant, 5, false),
    (TakeBack, 3, false),
    (MakeQueue, 16, false),
    (DeleteQueue, 2, false),
    (Shadows, 1, false),
    (WriteCache, 1, false),
    (PowerState, 1, false),
    (Abort, 3, false),
    (Wipe, 1, true),
    (Manage, 4, true),
    (BadCommand, 12, true),
    (BadAdmin, 6, true),
    (BadGrant, 2, true),
    (BadDoorbell, 3, true),
    (BadRegister, 2, true),
    (Reset, 1, true),
    (FunctionReset, 1, true),
    (Shutdown, 1, true),
    (Unmap, 4, true),
    (Scribble, 6, true),
    (PowerCut, 2, true),
    (Corrupt, 3, true),
    (Withdraw, 1, true),
    (Vanish, 1, true),
    (Stall, 1, true),
    (Throttle, 1, true),
    (ReadOnly, 1, true),
    (ClientDeath, 1, true),
];

/// Steps of a plan, at most.
const STEPS_MAX: u32 = 800;
/// Of them, in the liveness mode, those that may disturb.
const DISTURBED_SHARE: u32 = 2;

/// All that a run depends on.
#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub mode: Mode,
    /// Which of the swarm's drives.
    pub drive: usize,
    /// Weights by place in [`KINDS`]; 0: never.
    pub weights: [u32; KINDS.len()],
    /// The steps that are made, by number: what a step does does not depend on which others are made.
    pub steps: Vec<u32>,
    /// Rules by which the drive itself goes wrong, to see whether that is found.
    pub rules: &'static str,
}

impl Plan {
    /// The plan of a seed, for one of so many drives. Each seed leaves out about half of the kinds, so that in
    /// some runs much happens of what is rare in others.
    pub fn draw(seed: u64, mode: Mode, drives: usize) -> Self {
        let mut rng = Rng::new(seed ^ 0x5357_4152_4d00_0000);
        let mut weights = [0; KINDS.len()];
        for (weight, (kind, usual, _)) in weights.iter_mut().zip(KINDS) {
            let is_always = matches!(kind, Wait | Reap | MakeQueue);
            *weight = match rng.below(4) {
                0 | 1 if !is_always => 0,
                2 => usual * 3,
                _ => usual,
            };
        }
        let count = 20 + rng.below(STEPS_MAX - 20);
        Plan {
            seed,
            mode,
            drive: rng.below(drives as u32) as usize,
            weights,
            steps: (0..count).collect(),
            rules: "",
        }
    }

    /// The random numbers of a step.
    pub fn rng(&self, step: u32) -> Rng {
        Rng::new(mix(self.seed) ^ u64::from(step) << 32)
    }

    /// What is done in a step.
    pub fn kind(&self, step: u32, rng: &mut Rng) -> Kind {
        let is_calm =
            self.mode == Mode::Liveness && step > self.steps.last().unwrap_or(&0) / DISTURBED_SHARE;
        let weight = |at: usize| match KINDS[at].2 && is_calm {
            true => 0,
            false => self.weights[at],
        };
        let all: u32 = (0..KINDS.len()).map(weight).sum();
        let mut drawn = rng.below(all.max(1));
        for (at, (kind, ..)) in KINDS.iter().enumerate() {
            match drawn.checked_sub(weight(at)) {
                Some(rest) => drawn = rest,
                None => return *kind,
            }
        }
        Wait
    }

    /// A smaller plan that fails as well, if not in the same way.
    pub fn shrink(mut self, mut fails: impl FnMut(&Plan) -> bool) -> Self {
        let mut still_fails = |plan: &Plan| fails(plan);
        let mut size = self.steps.len().div_ceil(2);
        while size > 0 {
            let mut at = 0;
            while at < self.steps.len() {
                let mut smaller = self.clone();
                let end = (at + size).min(smaller.steps.len());
                smaller.steps.drain(at..end);
                match still_fails(&smaller) {
                    true => self = smaller,
                    false => at += size,
                }
            }
            size /= 2;
        }
        self
    }
}
