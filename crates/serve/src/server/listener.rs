//! Who listens for clients, at a path or at a port.

use super::{Address, PrivateSocket, ServeError};
use rustix::event::{PollFd, PollFlags};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;

/// Who listens.
#[derive(Debug)]
pub(crate) enum Listener {
    Unix(PrivateSocket),
    Tcp(Vec<TcpListener>),
}

impl Listener {
    /// One there. At a path, so many clients can have come before the first is accepted; at a port, 128.
    pub(crate) fn new(address: &Address, backlog: usize) -> Result<Self, ServeError> {
        let (host, port) = match address {
            Address::Unix(path) => {
                let socket = PrivateSocket::new(path, backlog);
                return socket
                    .map(Listener::Unix)
                    .map_err(|error| ServeError::socket(path, error));
            }
            Address::Tcp(host, port) => (host, *port),
        };
        let wrong = |error| ServeError::Socket {
            place: address.to_string(),
            error,
        };
        let mut listeners: Vec<TcpListener> = Vec::new();
        for mut at in super::address::resolve(host, port).map_err(wrong)? {
            // All of them have the port that the first was given.
            if let (0, Some(first)) = (port, listeners.first()) {
                at.set_port(first.local_addr().map_err(wrong)?.port());
            }
            match TcpListener::bind(at) {
                Ok(listener) => {
                    listener.set_nonblocking(true).map_err(wrong)?;
                    listeners.push(listener);
                }
                // `localhost` may have two addresses where one of them is not served.
                Err(error)
                    if listeners.is_empty()
                        || port != 0 && error.kind() == std::io::ErrorKind::AddrInUse =>
                {
                    return Err(wrong(error));
                }
                Err(_) => {}
            }
        }
        Ok(Listener::Tcp(listeners))
    }

    pub(crate) fn accept(&self) -> Option<OwnedFd> {
        match self {
            Listener::Unix(socket) => {
                let (stream, _) = socket.listener.accept().ok()?;
                Some(stream.into())
            }
            Listener::Tcp(listeners) => {
                let mut accepted = listeners.iter().filter_map(|one| one.accept().ok());
                let (stream, _) = accepted.next()?;
                // Replies are whole as they are sent.
                let _ = stream.set_nodelay(true);
                Some(stream.into())
            }
        }
    }

    /// The addresses that it listens at; none: it is a path.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        match self {
            Listener::Unix(_) => Vec::new(),
            Listener::Tcp(listeners) => {
                let addresses = listeners.iter().map(TcpListener::local_addr);
                addresses.filter_map(Result::ok).collect()
            }
        }
    }

    /// What a sleep ends with.
    pub(crate) fn wait_for<'a>(&'a self, files: &mut Vec<PollFd<'a>>) {
        match self {
            Listener::Unix(socket) => files.push(PollFd::new(&socket.listener, PollFlags::IN)),
            Listener::Tcp(listeners) => {
                files.extend(listeners.iter().map(|one| PollFd::new(one, PollFlags::IN)));
            }
        }
    }
}
