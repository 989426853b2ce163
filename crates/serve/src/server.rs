//! A drive on a socket, in real time: one client at a time, and the drive stays when clients go.
//!
//! One thread does all: it takes messages, polls the controller, signals interrupts. While something is about to
//! happen it looks again and again and lets others run in between; when nothing is, it asks the guest to ring
//! and sleeps until a message comes or the drive has something to do.

use crate::clock::{Clock, Speed};
use crate::controller::identity::Unservable;
use crate::controller::{Controller, Settings, Statistics};
use crate::transport::{Connection, GuestRam, NvmeFunction, Step};
use lodger_core::DriveSpec;
use lodger_core::observe::Histogram;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long to look again and again after the last thing that happened.
const AWAKE: Duration = Duration::from_micros(100);
/// Sleeping is not more exact than this.
const SLEEP_ERROR: Duration = Duration::from_micros(150);
/// Longest sleep: who wants it to stop is heard then.
const SLEEP_MAX: Duration = Duration::from_millis(100);
/// Polls between two looks at the socket, while there is work.
const POLLS_PER_LOOK: u32 = 8;
/// Steps of a drive that answers at once, before other things are looked at.
const JUMPS_MAX: u32 = 256;
/// Clients that wait while another is there.
const BACKLOG: i32 = 4;

/// Why a drive cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Not this drive.
    #[error(transparent)]
    Drive(#[from] Unservable),
    /// Not at this place.
    #[error("cannot listen at `{}`: {error}", path.display())]
    Socket {
        /// Where.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Waiting failed.
    #[error("cannot wait for clients: {0}")]
    Wait(io::Error),
}

/// A socket in a folder, gone with it. Only its owner can connect.
#[derive(Debug)]
struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    fn new(path: &Path) -> io::Result<Self> {
        remove_stale(path)?;
        let flags = rustix::net::SocketFlags::CLOEXEC | rustix::net::SocketFlags::NONBLOCK;
        let kind = (AddressFamily::UNIX, SocketType::STREAM);
        let socket = rustix::net::socket_with(kind.0, kind.1, flags, None)?;
        rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
        // Nobody can connect before the next but one line.
        let made = Socket {
            listener: UnixListener::from(socket),
            path: path.to_owned(),
        };
        rustix::fs::chmod(path, Mode::RUSR | Mode::WUSR)?;
        rustix::net::listen(&made.listener, BACKLOG)?;
        Ok(made)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A socket that nobody listens at is in the way of nobody.
fn remove_stale(path: &Path) -> io::Result<()> {
    let Ok(found) = std::fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !found.file_type().is_socket() {
        let what = "a file that is no socket is there";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)
        }
        Err(error) => Err(error),
        Ok(_) => {
            let what = "another drive is served there";
            Err(io::Error::new(io::ErrorKind::AddrInUse, what))
        }
    }
}

/// What came of serving.
#[derive(Clone, Debug)]
pub struct Report {
    /// What the controller has counted.
    pub statistics: Statistics,
    /// Clients there were.
    pub clients: u64,
    /// How much later than the model says I/O commands completed, nanoseconds of the drive's time.
    pub lateness: Histogram,
}

/// A drive on a socket.
#[allow(missing_debug_implementations)]
pub struct Server {
    socket: Socket,
    connection: Option<Connection>,
    function: NvmeFunction,
    clock: Clock,
    clients: u64,
    /// The last client is gone, and what it has asked for is not over.
    is_clearing: bool,
}

impl Server {
    /// A drive at a socket of that path, as after power on.
    ///
    /// # Errors
    /// If it cannot be served, or not there.
    pub fn new(
        spec: &DriveSpec,
        settings: &Settings,
        speed: Speed,
        path: &Path,
    ) -> Result<Self, ServeError> {
        let memory = GuestRam::default();
        let controller = Controller::new(spec, settings, memory.clone())?;
        let socket = Socket::new(path).map_err(|error| ServeError::Socket {
            path: path.to_owned(),
            error,
        })?;
        Ok(Server {
            socket,
            connection: None,
            function: NvmeFunction::new(spec, controller, memory),
            clock: Clock::new(speed),
            clients: 0,
            is_clearing: false,
        })
    }

    /// The function, to be changed before anybody comes.
    pub fn function_mut(&mut self) -> &mut NvmeFunction {
        &mut self.function
    }

    /// Serves until `stop` says so, which is asked ten times a second at least.
    ///
    /// # Errors
    /// If there is no way to wait.
    pub fn run(&mut self, mut stop: impl FnMut() -> bool) -> Result<Report, ServeError> {
        let mut awake_until = Instant::now();
        let mut polls = 0;
        loop {
            let mut worked = self.poll();
            polls += 1;
            if !worked || polls >= POLLS_PER_LOOK {
                polls = 0;
                worked |= self.look_at_socket();
            }
            if worked {
                awake_until = Instant::now() + AWAKE;
                continue;
            }
            if stop() {
                break;
            }
            self.rest(awake_until).map_err(ServeError::Wait)?;
        }
        Ok(self.report())
    }

    fn report(&self) -> Report {
        Report {
            statistics: self.function.controller.statistics(),
            clients: self.clients,
            lateness: self.function.controller.lateness().clone(),
        }
    }

    /// The drive up to now. Returns whether there was anything to do.
    fn poll(&mut self) -> bool {
        let mut worked = self.function.controller.poll(self.clock.now_ps());
        if self.clock.speed().is_at_once() {
            let mut jumps = 0;
            while self.function.controller.is_waited_for() && jumps < JUMPS_MAX {
                let Some(next_ps) = self.function.controller.next_time_ps() else {
                    break;
                };
                self.clock.jump(next_ps);
                worked |= self.function.controller.poll(next_ps);
                jumps += 1;
            }
        }
        self.function.signal();
        if self.is_clearing && !self.function.controller.is_waited_for() {
            self.is_clearing = false;
            self.function.forget_memory();
        }
        worked
    }

    fn look_at_socket(&mut self) -> bool {
        let Some(connection) = &mut self.connection else {
            return !self.is_clearing && self.accept();
        };
        match connection.step(&mut self.function) {
            Step::Worked => true,
            Step::Idle => false,
            Step::Closed => {
                self.connection = None;
                self.function.client_gone();
                self.is_clearing = true;
                true
            }
        }
    }

    fn accept(&mut self) -> bool {
        let Ok((stream, _)) = self.socket.listener.accept() else {
            return false;
        };
        self.connection = Connection::new(stream).ok();
        self.clients += u64::from(self.connection.is_some());
        self.connection.is_some()
    }

    /// Nothing is to be done now. Lets others run, or sleeps.
    fn rest(&self, awake_until: Instant) -> io::Result<()> {
        let controller = &self.function.controller;
        let next = controller
            .next_time_ps()
            .map(|at_ps| self.clock.until(at_ps));
        let is_soon = next.is_some_and(|next| next < SLEEP_ERROR);
        if is_soon && controller.is_waited_for()
            || Instant::now() < awake_until
            || !controller.may_sleep()
        {
            std::thread::yield_now();
            return Ok(());
        }
        let sleep = match next {
            Some(next) if controller.is_waited_for() => next.saturating_sub(SLEEP_ERROR),
            Some(next) => next,
            None => SLEEP_MAX,
        };
        let mut flags = PollFlags::IN;
        let waiting = match &self.connection {
            Some(connection) => {
                flags.set(PollFlags::OUT, connection.has_unsent());
                connection.socket()
            }
            None => self.socket.listener.as_fd(),
        };
        let sleep = sleep.min(SLEEP_MAX);
        let timeout = Timespec {
            tv_sec: sleep.as_secs() as i64,
            tv_nsec: sleep.subsec_nanos().into(),
        };
        let mut waiting = [PollFd::from_borrowed_fd(waiting, flags)];
        // Without a client to hear of, what it left behind is waited for alone.
        let waiting = match self.is_clearing {
            true => &mut waiting[..0],
            false => &mut waiting[..],
        };
        match rustix::event::poll(waiting, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}
