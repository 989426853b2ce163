//! What lies between a prober and a drive: a host whose noise wanders, that can turn host memory on and off
//! and nothing else, and a drive with work of its own after it was left alone.

use super::Draw;
use lodger::probe_target::SimTarget;
use lodger_core::rng::Rng;
use lodger_probe::{Description, HmbState, HmbSwitch, Io, Sample, Target, TargetError};
use std::time::Duration;

/// Part of a latency that noise of the host acts on, ns.
const NOISY_NS_MAX: f64 = 200_000.0;

/// What is drawn of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Around {
    /// The host cannot give some host memory, but all or none.
    pub on_off: bool,
    /// How far all latencies go up and down together (standard deviation of the logarithm), and in which time.
    pub wander: f64,
    pub wander_s: f64,
    /// After rest the drive works for itself for so long, and holds commands up meanwhile; 0 for not.
    pub own_work_s: f64,
}

impl Around {
    /// Nothing of it.
    pub const QUIET: Around = Around {
        on_off: false,
        wander: 0.0,
        wander_s: 1.0,
        own_work_s: 0.0,
    };

    pub(super) fn draw(draw: &mut Draw) -> Self {
        Around {
            on_off: draw.chance(50),
            wander: f64::from(draw.of(&[0u32, 0, 5, 10, 20])) / 1000.0,
            wander_s: f64::from(draw.of(&[1u32, 10, 100, 1000, 10_000])) / 1000.0,
            own_work_s: if draw.chance(25) {
                f64::from(1 + draw.below(20)) / 1000.0
            } else {
                0.0
            },
        }
    }
}

/// A drive and its surroundings.
pub struct Surrounded {
    drive: SimTarget,
    description: Description,
    around: Around,
    rng: Rng,
    /// Logarithm of the factor that wanders, and when it was last moved on.
    level: f64,
    at: Duration,
    /// The drive is busy with itself until then.
    busy: Duration,
}

impl Surrounded {
    pub fn new(drive: SimTarget, around: Around, seed: u64) -> Self {
        let mut description = drive.describe().clone();
        if let (HmbSwitch::Sizes { granted_bytes, .. }, true) = (&description.hmb, around.on_off) {
            let granted_bytes = *granted_bytes;
            description.hmb = HmbSwitch::OnOff { granted_bytes };
        }
        Surrounded {
            drive,
            description,
            around,
            rng: Rng::new(seed ^ 0xA40D),
            level: 0.0,
            at: Duration::ZERO,
            busy: Duration::ZERO,
        }
    }

    fn uniform(&mut self) -> f64 {
        (f64::from(self.rng.below(1 << 30)) + 0.5) / f64::from(1u32 << 30)
    }

    /// The factor now: it forgets where it was in about `wander_s` (Ornstein and Uhlenbeck).
    fn factor(&mut self) -> f64 {
        if self.around.wander > 0.0 {
            let now = self.drive.now();
            let past = now.saturating_sub(self.at).as_secs_f64();
            self.at = now;
            let left = (-past / self.around.wander_s).exp();
            let (a, b) = (self.uniform(), self.uniform());
            let normal = (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos();
            self.level =
                left * self.level + (1.0 - left * left).sqrt() * self.around.wander * normal;
        }
        self.level.exp()
    }

    fn seen_ns(&mut self, latency_ns: u64) -> u64 {
        let own = (latency_ns as f64).min(NOISY_NS_MAX);
        let mut seen = latency_ns as f64 + own * (self.factor() - 1.0);
        // One command in five meets what the drive does for itself.
        if self.drive.now() < self.busy && self.rng.below(5) == 0 {
            seen += 400_000.0 * self.uniform();
        }
        seen as u64
    }
}

impl Target for Surrounded {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn run(
        &mut self,
        ios: &[Io],
        queue_depth: u32,
        samples: &mut Vec<Sample>,
    ) -> Result<(), TargetError> {
        self.drive.run(ios, queue_depth, samples)?;
        for sample in samples {
            sample.latency_ns = self.seen_ns(sample.latency_ns);
        }
        Ok(())
    }

    fn run_flushing(
        &mut self,
        ios: &[Io],
        queue_depth: u32,
        after: usize,
        samples: &mut Vec<Sample>,
    ) -> Result<u64, TargetError> {
        let flushed_ns = self.drive.run_flushing(ios, queue_depth, after, samples)?;
        for sample in samples {
            sample.latency_ns = self.seen_ns(sample.latency_ns);
        }
        // The flush was seen late by as much as one that takes as long as the host's noise acts on.
        let late = self.seen_ns(NOISY_NS_MAX as u64) as f64 - NOISY_NS_MAX;
        Ok((flushed_ns as f64 + late) as u64)
    }

    fn flush(&mut self) -> Result<u64, TargetError> {
        let took = self.drive.flush()?;
        Ok(self.seen_ns(took))
    }

    fn deallocate(&mut self, offset: u64, bytes: u64) -> Result<u64, TargetError> {
        self.drive.deallocate(offset, bytes)
    }

    fn idle(&mut self, time: Duration) {
        self.drive.idle(time);
        // Now and then it has something to do.
        if self.around.own_work_s > 0.0
            && time >= Duration::from_millis(20)
            && self.rng.below(10) == 0
        {
            self.busy = self.drive.now() + Duration::from_secs_f64(self.around.own_work_s);
        }
    }

    fn set_hmb(&mut self, state: HmbState) -> Result<(), TargetError> {
        if let (HmbState::Bytes(_), HmbSwitch::OnOff { .. }) = (state, &self.description.hmb) {
            return Err(TargetError::Unsupported("on or off".to_owned()));
        }
        self.drive.set_hmb(state)
    }

    fn now(&self) -> Duration {
        self.drive.now()
    }
}
