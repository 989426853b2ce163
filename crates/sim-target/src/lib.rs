//! A simulated drive as the prober sees it: commands in, latencies out, and the noise that a real
//! machine adds to them.

mod emitted;

pub use emitted::drive_file;
use lodger_core::observe::Counters;
use lodger_core::rng::Rng;
use lodger_core::time::{MS, NS};
use lodger_core::{Completion, DriveSpec, Status};
use lodger_probe::{
    Description, HmbState, HmbSwitch, Io, Op, Sample, Target, TargetError, Transport,
};
use lodger_run::{Command, Error, HmbChoice, RunConfig, Session};
use std::time::Duration;

/// Longest transfer, bytes: what Linux passes on in one piece (`max_sectors_kb`) where the drive sets
/// no lower limit.
const TRANSFER_BYTES_MAX: u32 = 1280 << 10;

/// The same on this drive's host, whose limit and whose drive's may be lower.
fn transfer_bytes_max(spec: &DriveSpec) -> u32 {
    let most = spec.controller.request_bytes_max(&spec.host);
    most.map_or(TRANSFER_BYTES_MAX, |bytes| {
        TRANSFER_BYTES_MAX.min(bytes as u32)
    })
}

/// Part of a latency that the host's noise acts on, ns.
const NOISY_NS_MAX: f64 = 200_000.0;

/// What a real machine adds to the drive's own latency. The drive's timing itself stays exact: noise
/// lengthens what is measured, not what happens. It comes from the host (interrupts, scheduling), so
/// it does not grow with the time that a command waits in a queue of the drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Standard deviation of the logarithm of the latency, of which at most 200 us count.
    pub jitter: f64,
    /// Share of commands that are held up (an interrupt, another process).
    pub outlier_share: f64,
    /// Longest such delay, as a multiple of the latency.
    pub outlier_most: f64,
}

impl Default for Noise {
    /// A quiet machine: a few per cent, and one command in a thousand held up.
    fn default() -> Self {
        Noise {
            jitter: 0.03,
            outlier_share: 0.001,
            outlier_most: 20.0,
        }
    }
}

impl Noise {
    /// None at all.
    pub const NONE: Noise = Noise {
        jitter: 0.0,
        outlier_share: 0.0,
        outlier_most: 1.0,
    };

    /// So many times as much.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Noise {
            jitter: self.jitter * factor,
            outlier_share: self.outlier_share * factor,
            outlier_most: self.outlier_most,
        }
    }
}

/// A simulated drive.
#[allow(missing_debug_implementations)]
pub struct SimTarget {
    session: Session,
    description: Description,
    found: HmbChoice,
    noise: Noise,
    rng: Rng,
    commands: Vec<Command>,
    completions: Vec<Completion>,
}

impl SimTarget {
    /// A fresh drive with noise of its own seed.
    ///
    /// # Errors
    /// If the configuration does not go with the drive.
    pub fn open(config: &RunConfig, noise: Noise, seed: u64) -> Result<Self, Error> {
        let session = Session::open(config)?;
        let spec = config.spec();
        let granted_bytes = config.hmb.negotiate(spec)?.0.granted_bytes;
        // What Identify Controller would say, and no more.
        let hmb = match &spec.tiers.hmb {
            None if spec.hpb.is_some() => HmbSwitch::MapWithDriver,
            None => HmbSwitch::NotUsed,
            Some(_) if config.hmb == HmbChoice::Off => {
                HmbSwitch::NotGiven("the host is to give none (`--hmb off`)".to_owned())
            }
            Some(_) if granted_bytes == 0 => {
                HmbSwitch::NotGiven("the host gives less than the drive needs".to_owned())
            }
            Some(hmb) => HmbSwitch::Sizes {
                granted_bytes,
                min_bytes: hmb.min_bytes,
                preferred_bytes: hmb.preferred_bytes,
            },
        };
        let mut notes = Vec::new();
        if let Some(warning) = session.warning() {
            notes.push(warning.to_owned());
        }
        let description = Description {
            name: format!("sim:{}", config.drive.name),
            model: spec.name.clone(),
            serial: String::new(),
            firmware: String::new(),
            capacity_bytes: spec.capacity_bytes,
            block_bytes: 512,
            transfer_bytes_max: transfer_bytes_max(spec),
            transport: Transport::Direct,
            no_flush: None,
            no_deallocate: None,
            no_write: None,
            hmb,
            notes,
        };
        Ok(SimTarget {
            session,
            description,
            found: config.hmb,
            noise,
            rng: Rng::new(seed),
            commands: Vec::new(),
            completions: Vec::new(),
        })
    }

    /// What the drive has done: for whoever checks the prober, which does not see it.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.session.counters()
    }

    /// A number of 0 to 1, not 0.
    fn uniform(&mut self) -> f64 {
        (f64::from(self.rng.below(1 << 31)) + 0.5) / f64::from(1u32 << 31)
    }

    /// What a stopwatch on the host would show, ns.
    fn measured_ns(&mut self, latency_ps: u64) -> u64 {
        let latency_ns = latency_ps as f64 / NS as f64;
        if self.noise == Noise::NONE {
            return latency_ns as u64;
        }
        // Box and Muller.
        let normal =
            (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos();
        let mut factor = (self.noise.jitter * normal).exp();
        if self.uniform() < self.noise.outlier_share {
            factor *= 1.0 + self.uniform() * self.noise.outlier_most;
        }
        let own_ns = latency_ns.min(NOISY_NS_MAX);
        (latency_ns + own_ns * (factor - 1.0)) as u64
    }

    /// Transfers, and a flush once `after` of them have completed: its times.
    fn transfers(
        &mut self,
        ios: &[Io],
        queue_depth: u32,
        after: usize,
        samples: &mut Vec<Sample>,
    ) -> Result<Sample, TargetError> {
        let begin_ps = self.session.now_ps();
        self.commands.clear();
        self.commands.extend(ios.iter().map(|io| match io.op {
            Op::Read => Command::read(io.offset, u64::from(io.bytes)),
            Op::Write => Command::write(io.offset, u64::from(io.bytes)),
        }));
        let mut completions = std::mem::take(&mut self.completions);
        completions.clear();
        let depth = queue_depth as usize;
        let commands = &self.commands;
        let result = self
            .session
            .batch_flushing(commands, depth, after, &mut completions);
        samples.clear();
        samples.resize(ios.len(), Sample::default());
        let mut flushed = Sample::default();
        for completion in &completions {
            let issued_ps = completion.submitted_ps - begin_ps;
            let seen = Sample {
                issued_ns: issued_ps / NS,
                latency_ns: self.measured_ns(completion.completed_ps - completion.submitted_ps),
            };
            *samples
                .get_mut(completion.tag as usize)
                .unwrap_or(&mut flushed) = seen;
        }
        let refused = refused(&completions, ios);
        self.completions = completions;
        refused.map_or(Ok(()), Err)?;
        result.map_err(stopped)?;
        Ok(flushed)
    }

    fn command(&mut self, command: Command) -> Result<u64, TargetError> {
        let latency_ps = self.session.run(command).map_err(stopped)?;
        Ok(self.measured_ns(latency_ps))
    }
}

/// The first transfer that the drive answered with an error: it has not gone.
fn refused(completions: &[Completion], ios: &[Io]) -> Option<TargetError> {
    let failed = completions
        .iter()
        .find(|completion| completion.status != Status::Success)?;
    let io = ios.get(failed.tag as usize)?;
    Some(TargetError::Io {
        what: match io.op {
            Op::Read => "read",
            Op::Write => "write",
        },
        offset: io.offset,
        bytes: io.bytes,
        reason: match failed.status {
            Status::MediaError => "the flash cannot be read any more".to_owned(),
            other => format!("{other:?}"),
        },
    })
}

/// A simulator that stops is a drive that is gone.
fn stopped(error: Error) -> TargetError {
    TargetError::Gone(error.message)
}

impl Target for SimTarget {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn run(
        &mut self,
        ios: &[Io],
        queue_depth: u32,
        samples: &mut Vec<Sample>,
    ) -> Result<(), TargetError> {
        self.transfers(ios, queue_depth, usize::MAX, samples)?;
        Ok(())
    }

    fn run_flushing(
        &mut self,
        ios: &[Io],
        queue_depth: u32,
        after: usize,
        samples: &mut Vec<Sample>,
    ) -> Result<u64, TargetError> {
        let flushed = self.transfers(ios, queue_depth, after.clamp(1, ios.len()), samples)?;
        Ok(flushed.completed_ns())
    }

    fn flush(&mut self) -> Result<u64, TargetError> {
        self.command(Command::flush())
    }

    fn deallocate(&mut self, offset: u64, bytes: u64) -> Result<u64, TargetError> {
        self.command(Command::trim(offset, bytes))
    }

    fn idle(&mut self, time: Duration) {
        let ps = time.as_nanos() as u64 * NS;
        self.session.idle(ps.max(MS / 1000));
    }

    fn set_hmb(&mut self, state: HmbState) -> Result<(), TargetError> {
        let choice = match state {
            HmbState::Off => HmbChoice::Off,
            HmbState::On | HmbState::AsFound => self.found,
            HmbState::Bytes(bytes) => HmbChoice::Exactly(bytes),
        };
        self.session.set_hmb(choice).map_err(stopped)?;
        Ok(())
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.session.now_ps() / NS)
    }
}
