//! Real time that work takes, where there is a clock: WebAssembly in a page has none.

use std::time::Instant;

/// Runs from when it is made.
pub(crate) struct Stopwatch(Option<Instant>);

impl Stopwatch {
    pub(crate) fn started() -> Self {
        // There, asking for the time is a panic.
        let has_clock = !cfg!(all(target_family = "wasm", target_os = "unknown"));
        Stopwatch(has_clock.then(Instant::now))
    }

    /// Seconds since then; 0 without a clock.
    pub(crate) fn seconds(&self) -> f64 {
        self.0.map_or(0.0, |from| from.elapsed().as_secs_f64())
    }
}
