//! A drive at a socket of vfio-user: one client at a time, and the drive stays when clients go.

use super::socket::PrivateSocket;
use super::{FrontEnd, ServeError};
use crate::controller::{Controller, Settings};
use crate::transport::{Connection, GuestRam, NvmeFunction, Step};
use lodger_core::DriveSpec;
use rustix::event::{PollFd, PollFlags};
use std::path::Path;

/// Clients that wait while another is there.
const BACKLOG: usize = 4;

/// Said once: each command of such a guest fails, and it hears no more of why than that.
const NO_FILE: &str = "the guest uses memory that its client has lent without a file, which cannot be reached: what needs it fails; \
    QEMU lends it with `share=on` at its memory (`-object memory-backend-memfd,id=mem,size=1G,share=on`)";

/// A PCI function at a socket.
#[allow(missing_debug_implementations)]
pub struct VfioUser {
    socket: PrivateSocket,
    connection: Option<Connection>,
    function: NvmeFunction,
    clients: u64,
    /// The last client is gone, and what it has asked for is not over.
    is_clearing: bool,
    has_warned: bool,
}

impl VfioUser {
    /// A drive at a socket of that path, as after power on.
    ///
    /// # Errors
    /// If it cannot be served, or not there.
    pub fn new(spec: &DriveSpec, settings: &Settings, path: &Path) -> Result<Self, ServeError> {
        // A client that shrinks what it lends is not to end the drives of others.
        lodger_guest_ram::survive().map_err(|error| ServeError::Start(error.to_string()))?;
        let memory = GuestRam::default();
        let controller = Controller::new(spec, settings, memory.clone())?;
        let function = NvmeFunction::new(spec, controller, memory);
        let socket = PrivateSocket::new(path, BACKLOG);
        let socket = socket.map_err(|error| ServeError::socket(path, error))?;
        Ok(VfioUser {
            socket,
            connection: None,
            function,
            clients: 0,
            is_clearing: false,
            has_warned: false,
        })
    }

    fn accept(&mut self) -> bool {
        let Ok((stream, _)) = self.socket.listener.accept() else {
            return false;
        };
        if self.function.has_old_window() && self.function.renew_window().is_err() {
            // Who was here before could reach what the next one stores.
            return true;
        }
        self.connection = Connection::new(stream).ok();
        self.clients += u64::from(self.connection.is_some());
        self.connection.is_some()
    }
}

impl FrontEnd for VfioUser {
    type Memory = GuestRam;

    fn controller(&self) -> &Controller<GuestRam> {
        &self.function.controller
    }

    fn controller_mut(&mut self) -> &mut Controller<GuestRam> {
        &mut self.function.controller
    }

    fn clients(&self) -> u64 {
        self.clients
    }

    fn begin(&mut self) -> Result<(), ServeError> {
        let renewed = self.function.renew_window();
        renewed.map_err(|error| match self.function.controller.is_kept() {
            true => ServeError::WindowFile(error),
            false => ServeError::Window(error),
        })
    }

    fn answers_at_once(&mut self) {
        self.function.gather_interrupts();
    }

    fn holds_back(&self) -> bool {
        self.function.holds_interrupts()
    }

    fn polled(&mut self) -> bool {
        self.function.signal();
        if self.is_clearing && !self.function.controller.is_waited_for() {
            self.is_clearing = false;
            self.function.forget_memory();
        }
        false
    }

    fn warning(&mut self) -> Option<&'static str> {
        let is_first = !self.has_warned && self.function.takes_no_file();
        self.has_warned |= is_first;
        is_first.then_some(NO_FILE)
    }

    fn look(&mut self) -> bool {
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

    fn wait_for<'a>(&'a self, files: &mut Vec<PollFd<'a>>) {
        match &self.connection {
            Some(connection) => {
                let mut flags = PollFlags::IN;
                flags.set(PollFlags::OUT, connection.has_unsent());
                files.push(PollFd::from_borrowed_fd(connection.socket(), flags));
            }
            // Without a client to hear of, what it left behind is waited for alone.
            None if self.is_clearing => {}
            None => files.push(PollFd::new(&self.socket.listener, PollFlags::IN)),
        }
    }
}
