//! Wall clock and drive's time.

use std::time::{Duration, Instant};

const PS_PER_NS: f64 = 1000.0;

/// How fast the drive's time passes, beside the wall clock's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed(f64);

/// A speed that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("a speed is a number from 0 to 1000000, found `{0}`")]
pub struct SpeedError(f64);

impl Speed {
    /// As fast as the wall clock.
    pub const REAL: Speed = Speed(1.0);

    /// So many times as fast; 0: whatever a host waits for is done at once.
    ///
    /// # Errors
    /// If it is not from 0 to 1000000.
    pub fn new(times: f64) -> Result<Self, SpeedError> {
        match (0.0..=1e6).contains(&times) {
            true => Ok(Speed(times)),
            false => Err(SpeedError(times)),
        }
    }

    /// Whether hosts do not wait for the drive.
    #[must_use]
    pub fn is_at_once(self) -> bool {
        self.0 == 0.0
    }
}

/// What time it is for the drive, picoseconds since it was made.
#[derive(Clone, Debug)]
pub struct Clock {
    speed: Speed,
    /// When it was what time.
    since: Instant,
    base_ps: u64,
}

impl Clock {
    /// One that begins now, at 0.
    #[must_use]
    pub fn new(speed: Speed) -> Self {
        Clock {
            speed,
            since: Instant::now(),
            base_ps: 0,
        }
    }

    /// Picoseconds of the drive's time that pass in a nanosecond. Drives that answer at once age as fast as
    /// others while nobody waits.
    fn ps_per_ns(&self) -> f64 {
        match self.speed.is_at_once() {
            true => PS_PER_NS,
            false => self.speed.0 * PS_PER_NS,
        }
    }

    /// How much of the drive's time passes in so much of the wall clock's, picoseconds.
    #[must_use]
    pub fn ps_in(&self, duration: Duration) -> u64 {
        (duration.as_nanos() as f64 * self.ps_per_ns()) as u64
    }

    /// How fast it goes.
    #[must_use]
    pub fn speed(&self) -> Speed {
        self.speed
    }

    /// Now.
    #[must_use]
    pub fn now_ps(&self) -> u64 {
        let passed_ns = self.since.elapsed().as_nanos() as f64;
        self.base_ps
            .saturating_add((passed_ns * self.ps_per_ns()) as u64)
    }

    /// It is later now: nobody waits for what lies between.
    pub fn jump(&mut self, to_ps: u64) {
        if to_ps > self.now_ps() {
            (self.base_ps, self.since) = (to_ps, Instant::now());
        }
    }

    /// How long until then, by the wall clock.
    #[must_use]
    pub fn until(&self, at_ps: u64) -> Duration {
        let left_ps = at_ps.saturating_sub(self.now_ps()) as f64;
        Duration::try_from_secs_f64(left_ps / self.ps_per_ns() / 1e9).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_as_fast_as_said_and_jumps_forward_only() {
        let mut clock = Clock::new(Speed::new(1000.0).unwrap());
        std::thread::sleep(Duration::from_millis(2));
        let now_ps = clock.now_ps();
        assert!(now_ps >= 2_000_000_000_000, "2 ms are 2 s: {now_ps}");
        clock.jump(now_ps / 2);
        assert!(clock.now_ps() >= now_ps);
        clock.jump(1 << 60);
        assert!(clock.now_ps() >= 1 << 60);
        let until = clock.until(clock.now_ps() + 1_000_000_000_000);
        assert!(until <= Duration::from_millis(1), "{until:?}");
        assert_eq!(clock.until(0), Duration::ZERO);
        assert_eq!(clock.ps_in(Duration::from_millis(2)), 2_000_000_000_000);
        for times in [f64::NAN, -1.0, 1e9] {
            assert!(Speed::new(times).is_err());
        }
    }
}
