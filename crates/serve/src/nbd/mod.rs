//! A drive for clients of NBD: block only, for programs that need neither a virtual machine nor root (fio, QEMU,
//! nbdcopy, nbd-client).
//!
//! | question | module |
//! |---|---|
//! | what do the bytes mean? | `message` |
//! | how do client and server come to terms? | `handshake` |
//! | what is under way for a client? | `client` |
//! | which commands does a request become? | `requests` |
//! | who talks to the controller? | `host` |
//!
//! The drive is the same controller that a guest would have: requests become NVMe commands, in a pair of queues for
//! each client, of a driver in this process, which also grants host memory as Linux would. A request enters the
//! drive once all of it has come, and is answered when its last command has completed.
//!
//! Not there: structured replies, block status, encryption, resizing.

mod client;
mod handshake;
mod host;
mod message;
mod requests;

pub use handshake::Export;
pub use host::HostRam;

use crate::controller::{Controller, Settings};
use crate::server::{Address, FrontEnd, Listener, ServeError};
use client::Client;
use host::Host;
use lodger_core::DriveSpec;
use lodger_core::host::hmb::{HostPolicy, negotiate};
use lodger_core::spec::SLOT_BYTES;
use lodger_wire::hmb::IDENTIFY_UNIT_BYTES;
use rustix::event::{PollFd, PollFlags};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Clients at once, each with a queue.
const CLIENTS_MAX: usize = 16;
/// Most data of a request: what clients may rely on that have not asked.
const REQUEST_BYTES_MAX: u32 = 32 << 20;
/// How long a client may leave something unsaid, or not listen.
const PATIENCE: Duration = Duration::from_secs(30);
/// Most host memory that this process grants, bytes.
pub const GRANT_BYTES_MAX: u64 = 1 << 30;

/// A drive for clients of NBD.
#[allow(missing_debug_implementations)]
pub struct Nbd {
    listener: Listener,
    controller: Controller<HostRam>,
    memory: HostRam,
    host: Host,
    spec: DriveSpec,
    granted_bytes: u64,
    export: Export,
    clients: [Option<Client>; CLIENTS_MAX],
    clients_so_far: u64,
    patience: Duration,
}

impl Nbd {
    /// A drive at that place, as after power on, with so much host memory on offer.
    ///
    /// # Errors
    /// If it cannot be served, or not there.
    pub fn new(
        spec: &DriveSpec,
        settings: &Settings,
        granted_bytes: u64,
        address: &Address,
    ) -> Result<Self, ServeError> {
        let memory = HostRam::default();
        let mut controller = Controller::new(spec, settings, memory.clone())?;
        let command_bytes_max = SLOT_BYTES << controller.identity_mut().mdts;
        Ok(Nbd {
            listener: Listener::new(address, CLIENTS_MAX)?,
            controller,
            host: Host::new(memory.clone(), CLIENTS_MAX as u16),
            memory,
            spec: spec.clone(),
            granted_bytes,
            export: Export {
                bytes: spec.capacity_bytes,
                block_bytes: settings.block_bytes,
                request_bytes_max: REQUEST_BYTES_MAX,
                command_bytes_max,
                description: spec.name.clone(),
            },
            clients: [const { None }; CLIENTS_MAX],
            clients_so_far: 0,
            patience: PATIENCE,
        })
    }

    /// How long a client may leave something unsaid, or not listen, before it is let go.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// The addresses that it listens at; none: it is a path.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listener.addresses()
    }

    /// Takes a client, or sends it away: who would wait for a place might wait for ever.
    fn accept(&mut self, now: Instant) -> bool {
        let Some(socket) = self.listener.accept() else {
            return false;
        };
        if let Some(place) = self.clients.iter().position(Option::is_none) {
            self.clients[place] = Some(Client::new(socket, place as u16 + 1, now));
            self.clients_so_far += 1;
        }
        true
    }
}

impl FrontEnd for Nbd {
    type Memory = HostRam;

    fn controller(&self) -> &Controller<HostRam> {
        &self.controller
    }

    fn controller_mut(&mut self) -> &mut Controller<HostRam> {
        &mut self.controller
    }

    fn clients(&self) -> u64 {
        self.clients_so_far
    }

    fn begin(&mut self) -> Result<(), ServeError> {
        let asked = self.controller.identity_mut().host_memory;
        let wish = self.spec.tiers.hmb.clone().map(|mut hmb| {
            hmb.preferred_bytes = u64::from(asked.preferred_4kib) * IDENTIFY_UNIT_BYTES;
            hmb.min_bytes = u64::from(asked.min_4kib) * IDENTIFY_UNIT_BYTES;
            hmb
        });
        let policy = HostPolicy::offering(self.granted_bytes.min(GRANT_BYTES_MAX));
        let chunks = match wish.map(|wish| negotiate(&wish, &policy)) {
            Some(lodger_core::host::hmb::Outcome::Granted(grant)) => grant.chunks,
            _ => Vec::new(),
        };
        self.host.start(&mut self.controller, &chunks)
    }

    fn polled(&mut self) -> bool {
        let mut due = self.controller.take_interrupts(!1);
        let worked = due != 0;
        while due != 0 {
            let queue = due.trailing_zeros() as u16;
            due &= due - 1;
            while let Some((command, outcome)) = self.host.next_done(queue) {
                if let Some(Some(client)) = self.clients.get_mut(usize::from(queue) - 1) {
                    client.done(command, outcome, &self.memory);
                }
            }
            self.host.acknowledge(&mut self.controller, queue);
        }
        worked
    }

    fn look(&mut self) -> bool {
        let now = Instant::now();
        let mut worked = self.accept(now);
        for place in &mut self.clients {
            let Some(client) = place else { continue };
            worked |= client.step(now, self.patience, &self.memory, &self.export);
            worked |= client.submit(&mut self.host);
            if client.is_over() {
                *place = None;
            }
        }
        self.host.ring(&mut self.controller);
        worked
    }

    fn wait_for<'a>(&'a self, files: &mut Vec<PollFd<'a>>) {
        self.listener.wait_for(files);
        for client in self.clients.iter().flatten() {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, client.is_listened_to());
            flags.set(PollFlags::OUT, client.has_unsent());
            files.extend(client.socket().map(|socket| PollFd::new(socket, flags)));
        }
    }
}
