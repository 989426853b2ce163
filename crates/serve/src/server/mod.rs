//! A drive in real time, before whoever speaks to clients.
//!
//! One thread does all: it takes messages, polls the controller, tells clients what has completed. While something
//! is about to happen it looks again and again and lets others run in between; when nothing is, it asks the guest
//! to ring and sleeps until a message comes or the drive has something to do.

mod address;
mod control;
mod exporter;
mod listener;
mod socket;
mod vfio;
mod visitors;

pub use address::Address;
pub use control::Control;
pub use exporter::Exporter;
pub(crate) use listener::Listener;
pub use socket::PrivateSocket;
pub use vfio::VfioUser;

use crate::clock::{Clock, Speed};
use crate::controller::identity::Unservable;
use crate::controller::{Controller, PAGES_AT_ONCE, Statistics};
use crate::metrics;
use lodger_core::observe::Histogram;
use lodger_core::time::{RUN_PS_MAX, S};
use lodger_wire::memory::GuestMemory;
use rustix::event::{PollFd, Timespec};
use rustix::io::Errno;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long to look again and again after the last thing that happened: for longer than an emulated guest takes from one
/// request to the next (130 us), as to be woken by a register takes a message through the machine's own thread.
const AWAKE: Duration = Duration::from_micros(400);
/// Sleeping is not more exact than this.
const SLEEP_ERROR: Duration = Duration::from_micros(150);
/// Longest sleep: who wants it to stop is heard then.
const SLEEP_MAX: Duration = Duration::from_millis(100);
/// How often to look whether a file is synced.
const FILE_LOOKS: Duration = Duration::from_micros(100);
/// Polls between two looks at the sockets, while there is work.
const POLLS_PER_LOOK: u32 = 8;
/// Between two savings of what a drive has counted, by the wall clock.
const SAVE_EVERY: Duration = Duration::from_secs(10);
/// Days that a drive's time lasts at most, [`RUN_PS_MAX`].
pub const DAYS_MAX: u64 = RUN_PS_MAX / S / (24 * 3600);
/// Steps of a drive that answers at once, before other things are looked at.
const JUMPS_MAX: u32 = 256;

/// Why a drive cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Not this drive.
    #[error(transparent)]
    Drive(#[from] Unservable),
    /// Not at this place.
    #[error("cannot listen at `{place}`: {error}")]
    Socket {
        /// Where.
        place: String,
        /// Why.
        error: io::Error,
    },
    /// The controller has refused what a host does at first.
    #[error("the drive does not start: {0}")]
    Start(String),
    /// There is no memory for the byte window.
    #[error(
        "no memory for the byte window: {0}; a smaller one takes less: --set role.window.size=4KiB or more"
    )]
    Window(io::Error),
    /// The file of the byte window cannot be made anew.
    #[error(
        "cannot make the file of the byte window anew, which takes as much room once more: {0}"
    )]
    WindowFile(io::Error),
    /// The drive's time has ended, and not its user.
    #[error(
        "the drive was switched off: its time is over, of which there are {DAYS_MAX} days at most; started again with \
         `--backing` it goes on with what is kept there, and a clock that begins anew"
    )]
    TimeIsOver,
    /// Waiting failed.
    #[error("cannot wait for clients: {0}")]
    Wait(io::Error),
}

impl ServeError {
    pub(crate) fn socket(path: &Path, error: io::Error) -> Self {
        ServeError::Socket {
            place: path.display().to_string(),
            error,
        }
    }
}

/// Who stands between a controller and its clients. Nothing of it waits.
pub trait FrontEnd {
    /// The memory that the controller reads and writes.
    type Memory: GuestMemory + Clone;

    /// The controller.
    fn controller(&self) -> &Controller<Self::Memory>;

    /// The controller, to be polled; before anybody comes, to be changed.
    fn controller_mut(&mut self) -> &mut Controller<Self::Memory>;

    /// Clients there were.
    fn clients(&self) -> u64;

    /// What is to be done before the first client comes, and after the drive was changed.
    ///
    /// # Errors
    /// If the drive cannot be used.
    fn begin(&mut self) -> Result<(), ServeError> {
        Ok(())
    }

    /// The drive answers at once, so hosts are to be told in a way that keeps them working.
    fn answers_at_once(&mut self) {}

    /// Whether something is due to clients that waits for more, so that polling must go on.
    fn holds_back(&self) -> bool {
        false
    }

    /// The controller was polled: clients are told what has come of it. Returns whether there was anything to do.
    fn polled(&mut self) -> bool;

    /// Something that its user should know, in words, and does not hear of by other means.
    fn warning(&mut self) -> Option<&'static str> {
        None
    }

    /// Looks at the sockets. Returns whether there was anything to do.
    fn look(&mut self) -> bool;

    /// What a sleep ends with.
    fn wait_for<'a>(&'a self, files: &mut Vec<PollFd<'a>>);
}

/// What came of serving.
#[derive(Clone, Debug)]
pub struct Report {
    /// It ended because the drive's time did.
    time_is_over: bool,
    /// What the controller has counted.
    pub statistics: Statistics,
    /// Clients there were.
    pub clients: u64,
    /// How much later than the model says I/O commands completed, nanoseconds of the drive's time.
    pub lateness: Histogram,
}

impl Report {
    /// Whether it went on until it was stopped.
    ///
    /// # Errors
    /// If the drive's time had ended before.
    pub fn went_on(&self) -> Result<(), ServeError> {
        match self.time_is_over {
            true => Err(ServeError::TimeIsOver),
            false => Ok(()),
        }
    }
}

/// A drive in real time.
#[allow(missing_debug_implementations)]
pub struct Server<F> {
    front: F,
    clock: Clock,
    exporter: Option<Exporter>,
    control: Option<Control>,
}

impl<F: FrontEnd> Server<F> {
    /// A drive whose time begins now.
    #[must_use]
    pub fn new(front: F, speed: Speed) -> Self {
        Server {
            front,
            clock: Clock::new(speed),
            exporter: None,
            control: None,
        }
    }

    /// What the drive counts is to be had there.
    pub fn set_exporter(&mut self, exporter: Exporter) {
        self.exporter = Some(exporter);
    }

    /// The drive is told there what is to happen to it.
    pub fn set_control(&mut self, control: Control) {
        self.control = Some(control);
    }

    /// Who speaks to clients.
    pub fn front(&self) -> &F {
        &self.front
    }

    /// The controller, to be changed before anybody comes.
    pub fn controller_mut(&mut self) -> &mut Controller<F::Memory> {
        self.front.controller_mut()
    }

    /// Serves until `stop` says so, which is asked ten times a second at least.
    ///
    /// # Errors
    /// If the drive cannot be used, or there is no way to wait.
    pub fn run(&mut self, stop: impl FnMut() -> bool) -> Result<Report, ServeError> {
        self.run_and_warn(stop, |_| {})
    }

    /// The same; what its user should know meanwhile goes to `warn`.
    ///
    /// # Errors
    /// As [`Server::run`].
    pub fn run_and_warn(
        &mut self,
        mut stop: impl FnMut() -> bool,
        mut warn: impl FnMut(&str),
    ) -> Result<Report, ServeError> {
        // A drive that has come back is as old as it was.
        self.clock.jump(self.front.controller().now_ps());
        let save_gap_ps = self.clock.ps_in(SAVE_EVERY);
        self.front.controller_mut().save_no_sooner_than(save_gap_ps);
        self.front.begin()?;
        if self.clock.speed().is_at_once() {
            self.front.answers_at_once();
        }
        let mut awake_until = Instant::now();
        let (mut polls, mut pages) = (0, 0);
        let mut warns_at_ps = RUN_PS_MAX / 10 * 9;
        loop {
            let mut worked = self.poll();
            polls += 1;
            let pages_now = self.front.controller().deallocated_pages();
            if !worked || polls >= POLLS_PER_LOOK || pages_now.wrapping_sub(pages) >= PAGES_AT_ONCE
            {
                (polls, pages) = (0, pages_now);
                worked |= self.front.look();
                self.front.warning().into_iter().for_each(&mut warn);
                let front = &self.front;
                if let Some(exporter) = &mut self.exporter {
                    exporter.look(|| metrics::page(front.controller(), front.clients()));
                }
                if let Some(control) = &mut self.control {
                    let clients = self.front.clients();
                    control.look(self.front.controller_mut(), clients);
                }
                let now_ps = self.clock.now_ps();
                if now_ps >= warns_at_ps {
                    warn(&format!(
                        "the drive's time ends in {:.0} s: {DAYS_MAX} days are the longest there is; it is switched off then",
                        self.clock.until(RUN_PS_MAX).as_secs_f64()
                    ));
                    warns_at_ps = u64::MAX;
                }
                if stop() || now_ps >= RUN_PS_MAX {
                    break;
                }
            }
            if worked {
                awake_until = Instant::now() + AWAKE;
                continue;
            }
            self.rest(awake_until).map_err(ServeError::Wait)?;
        }
        Ok(self.report())
    }

    fn report(&self) -> Report {
        let controller = self.front.controller();
        Report {
            time_is_over: self.clock.now_ps() >= RUN_PS_MAX,
            statistics: controller.statistics(),
            clients: self.front.clients(),
            lateness: controller.lateness().clone(),
        }
    }

    /// The drive up to now. Returns whether there was anything to do.
    fn poll(&mut self) -> bool {
        let now_ps = self.clock.now_ps().min(RUN_PS_MAX);
        let controller = self.front.controller_mut();
        let mut worked = controller.poll(now_ps);
        if self.clock.speed().is_at_once() {
            let mut jumps = 0;
            let pages_max = controller.deallocated_pages() + PAGES_AT_ONCE;
            while controller.is_waited_for()
                && jumps < JUMPS_MAX
                && controller.deallocated_pages() < pages_max
            {
                let Some(next_ps) = controller.run_to_answers(JUMPS_MAX) else {
                    break;
                };
                self.clock.jump(next_ps);
                if next_ps > RUN_PS_MAX {
                    break;
                }
                worked |= controller.poll(next_ps);
                jumps += 1;
            }
        }
        worked | self.front.polled()
    }

    /// Nothing is to be done now. Lets others run, or sleeps.
    fn rest(&mut self, awake_until: Instant) -> io::Result<()> {
        let controller = self.front.controller();
        let next = controller
            .next_time_ps()
            .map(|at_ps| self.clock.until(at_ps));
        let is_soon = next.is_some_and(|next| next < SLEEP_ERROR);
        if is_soon && controller.is_waited_for()
            || Instant::now() < awake_until
            || self.front.holds_back()
            || !controller.may_sleep()
        {
            std::thread::yield_now();
            return Ok(());
        }
        self.front.controller_mut().flush_record();
        let controller = self.front.controller();
        let sleep = match next {
            Some(next) if controller.is_waited_for() => next.saturating_sub(SLEEP_ERROR),
            Some(next) => next,
            None => SLEEP_MAX,
        };
        let sleep = match controller.waits_for_file() {
            true => sleep.min(FILE_LOOKS),
            false => sleep.min(SLEEP_MAX),
        };
        let timeout = Timespec {
            tv_sec: sleep.as_secs() as i64,
            tv_nsec: sleep.subsec_nanos().into(),
        };
        let mut files = Vec::new();
        self.front.wait_for(&mut files);
        if let Some(exporter) = &self.exporter {
            exporter.wait_for(&mut files);
        }
        if let Some(control) = &self.control {
            control.wait_for(&mut files);
        }
        match rustix::event::poll(&mut files, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}
