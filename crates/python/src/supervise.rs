//! Work on a thread of its own, while the calling thread waits for it and for signals.
//!
//! Python runs signal handlers on its main thread alone. If that thread simulated, the simulation
//! would have to take the interpreter again and again to ask for Ctrl-C, and work that Rust spreads
//! over its own threads could not ask at all.

use lodger_core::time::NS;
use lodger_run::Progress;
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// How often signals are looked for: soon enough for a person, and seldom enough not to be felt
/// by other threads.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Stands for an unknown number of requests.
const UNKNOWN: u64 = u64::MAX;

/// Stops work from another thread.
#[pyclass(frozen, module = "lodger._native")]
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Work that was given this ends soon.
    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What the work and the waiting thread share.
#[derive(Debug)]
pub struct Control {
    stop: AtomicBool,
    outer: Stop,
    done: AtomicBool,
    requests: AtomicU64,
    expected: AtomicU64,
    simulated_ps: AtomicU64,
}

impl Control {
    fn new(outer: Option<&Stop>) -> Self {
        Self {
            stop: AtomicBool::new(false),
            outer: outer.cloned().unwrap_or_default(),
            done: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            expected: AtomicU64::new(UNKNOWN),
            simulated_ps: AtomicU64::new(0),
        }
    }

    /// Called by the work every few milliseconds: how far it is, and whether to go on.
    pub fn beat(&self, progress: Progress) -> ControlFlow<()> {
        // Only shown to people, so it does not matter that the three may be of different instants.
        self.requests.store(progress.requests, Ordering::Relaxed);
        self.expected
            .store(progress.expected.unwrap_or(UNKNOWN), Ordering::Relaxed);
        self.simulated_ps
            .store(progress.simulated_ps, Ordering::Relaxed);
        if self.stop.load(Ordering::Relaxed) || self.outer.0.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// Runs signal handlers and tells `progress` how far the work is.
    fn look(&self, py: Python<'_>, progress: Option<&Py<PyAny>>) -> PyResult<()> {
        py.check_signals()?;
        let Some(progress) = progress else {
            return Ok(());
        };
        let requests = self.requests.load(Ordering::Relaxed);
        let expected = Some(self.expected.load(Ordering::Relaxed)).filter(|n| *n != UNKNOWN);
        let simulated_ns = self.simulated_ps.load(Ordering::Relaxed) as f64 / NS as f64;
        progress
            .call1(py, (requests, expected, simulated_ns))
            .map(drop)
    }
}

/// Does `work` with the interpreter released. What a signal handler or `progress` raises makes
/// [`Control::beat`] say stop, and is raised here.
pub fn supervise<T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    stop: Option<&Stop>,
    work: impl FnOnce(&Control) -> T + Send,
) -> PyResult<T> {
    let control = Control::new(stop);
    let waiting = thread::current();
    let mut raised = None;
    let joined = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let made = work(&control);
            control.done.store(true, Ordering::Release);
            waiting.unpark();
            made
        });
        while !control.done.load(Ordering::Acquire) && !worker.is_finished() {
            py.detach(|| thread::park_timeout(LOOK_EVERY));
            if raised.is_some() {
                continue;
            }
            if let Err(error) = control.look(py, progress) {
                control.stop.store(true, Ordering::Relaxed);
                raised = Some(error);
            }
        }
        py.detach(|| worker.join())
    });
    let made = joined.unwrap_or_else(|panic| resume_unwind(panic));
    match raised {
        Some(error) => Err(error),
        None => Ok(made),
    }
}
