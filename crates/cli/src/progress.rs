//! How far the work is: a line on a terminal, which goes when the work is done.

use crate::terminal;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Shorter work shows no progress: it would only flicker.
const SILENT: Duration = Duration::from_secs(1);
/// Steps of the bar: tenths of a percent.
const STEPS: f64 = 1000.0;

/// Shows how far something is. Nothing without a terminal, and under `--quiet`.
#[derive(Debug)]
pub struct Meter {
    started: Instant,
    is_shown: bool,
    bar: Option<ProgressBar>,
}

impl Meter {
    /// Begins now.
    #[must_use]
    pub fn new() -> Self {
        Self {
            started: Instant::now(),
            is_shown: terminal::shows_progress(),
            bar: None,
        }
    }

    /// So much is done, from 0 to 1, if the end is known.
    pub fn show(&mut self, share: Option<f64>, doing: impl FnOnce() -> String) {
        let elapsed = self.started.elapsed();
        if !self.is_shown || elapsed < SILENT {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let target = ProgressDrawTarget::stderr_with_hz(4);
            ProgressBar::with_draw_target(Some(STEPS as u64), target).with_style(style(share))
        });
        if let Some(share) = share {
            bar.set_position((share.clamp(0.0, 1.0) * STEPS) as u64);
        }
        let left = share.and_then(|share| left(elapsed, share));
        let left = left.map_or(String::new(), |left| format!(", {} left", about(left)));
        bar.set_message(doing() + &left);
        bar.tick();
    }
}

/// The same, of work that goes on side by side.
#[derive(Debug)]
pub struct Shared(Mutex<Meter>);

impl Shared {
    /// Begins now.
    #[must_use]
    pub fn new() -> Self {
        Shared(Mutex::new(Meter::new()))
    }

    /// As [`Meter::show`]; who finds it taken has nothing to add.
    pub fn show(&self, share: Option<f64>, doing: impl FnOnce() -> String) {
        if let Ok(mut meter) = self.0.try_lock() {
            meter.show(share, doing);
        }
    }

    /// Something else is said: the line makes way, and comes back.
    pub fn beside<R>(&self, say: impl FnOnce() -> R) -> R {
        let meter = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &meter.bar {
            Some(bar) => bar.suspend(say),
            None => say(),
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn style(share: Option<f64>) -> ProgressStyle {
    let template = match share {
        Some(_) => "{bar:30} {percent}% {msg}",
        None => "{spinner} {msg}",
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// How long the rest takes if it goes on as it did; nothing while that would be a guess.
#[must_use]
pub fn left(elapsed: Duration, share: f64) -> Option<Duration> {
    let is_told = share > 0.005 && share <= 1.0;
    let seconds = elapsed.as_secs_f64() * (1.0 - share) / share;
    is_told
        .then(|| Duration::try_from_secs_f64(seconds).ok())
        .flatten()
}

/// A time for people, rounded up.
#[must_use]
pub fn about(time: Duration) -> String {
    let seconds = time.as_secs_f64().ceil().max(1.0);
    match seconds {
        ..120.0 => format!("{seconds:.0} s"),
        ..172_800.0 => format!("{:.0} min", (seconds / 60.0).ceil()),
        _ => format!("{:.0} days", (seconds / 86_400.0).ceil()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_what_is_done() {
        let ten = Duration::from_secs(10);
        assert_eq!(left(ten, 0.25), Some(Duration::from_secs(30)));
        assert_eq!(left(ten, 1.0), Some(Duration::ZERO));
        assert_eq!(left(ten, 0.001), None);
        assert_eq!(left(ten, f64::NAN), None);
        assert_eq!(about(Duration::from_millis(1100)), "2 s");
        assert_eq!(about(Duration::from_secs(121)), "3 min");
    }
}
