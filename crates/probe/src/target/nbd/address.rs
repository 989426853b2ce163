//! Where an NBD server is, as the user types it, and the socket to it.

use super::TargetError;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

/// A server and one of its exports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The server.
    pub server: Server,
    /// Name of the export; empty for the default one.
    pub export: String,
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    /// A socket of this machine.
    Unix(PathBuf),
    /// Name or number of a host (an IPv6 number in brackets), and port.
    Tcp(String, u16),
}

/// Longest name of an export that the protocol allows, bytes.
const EXPORT_BYTES_MAX: usize = 4096;

impl Address {
    /// Reads `unix:PATH[:EXPORT]` or `HOST:PORT[/EXPORT]`, what follows `nbd:`.
    ///
    /// # Errors
    /// If it is neither.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let wrong = |why: &str| {
            let shown = text.escape_debug();
            TargetError::Unsupported(format!(
                "`nbd:{shown}` {why}: it must be `nbd:unix:PATH[:EXPORT]` or `nbd:HOST:PORT[/EXPORT]`"
            ))
        };
        let (server, export) = if let Some(rest) = text.strip_prefix("unix:") {
            let (path, export) = rest.split_once(':').unwrap_or((rest, ""));
            if path.is_empty() {
                return Err(wrong("has no path"));
            }
            (Server::Unix(PathBuf::from(path)), export)
        } else {
            let (place, export) = text.split_once('/').unwrap_or((text, ""));
            let (host, port) = place.rsplit_once(':').ok_or_else(|| wrong("has no port"))?;
            let host = host
                .strip_prefix('[')
                .map_or(host, |inner| inner.strip_suffix(']').unwrap_or(inner));
            let port = port.parse().map_err(|_| wrong("has no port"))?;
            if host.is_empty() || port == 0 {
                return Err(wrong("has no host or port"));
            }
            (Server::Tcp(host.to_owned(), port), export)
        };
        if export.len() > EXPORT_BYTES_MAX {
            return Err(wrong("has too long a name"));
        }
        Ok(Address {
            server,
            export: export.to_owned(),
        })
    }
}

/// A connection; both directions may be used at the same time.
#[derive(Debug)]
pub(super) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    /// Connects within `timeout`; every later read and write waits no longer than that at once.
    pub(super) fn connect(server: &Server, timeout: Duration) -> io::Result<Self> {
        // Resolving a name, and connecting to a local socket whose queue is full, know no time
        // limit. The thread is left behind if they do not come back.
        let (sender, receiver) = mpsc::channel();
        let server = server.clone();
        std::thread::spawn(move || sender.send(Self::open(&server, timeout)));
        let socket = match receiver.recv_timeout(timeout) {
            Ok(result) => result?,
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        };
        socket.limit(timeout)?;
        Ok(socket)
    }

    fn open(server: &Server, timeout: Duration) -> io::Result<Self> {
        match server {
            Server::Unix(path) => UnixStream::connect(path).map(Socket::Unix),
            Server::Tcp(host, port) => {
                let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, timeout) {
                        Ok(stream) => {
                            // Small requests must not wait for each other.
                            stream.set_nodelay(true)?;
                            return Ok(Socket::Tcp(stream));
                        }
                        Err(error) => failure = error,
                    }
                }
                Err(failure)
            }
        }
    }

    /// Sets the longest wait of a single read or write.
    pub(super) fn limit(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Socket::Unix(stream) => {
                stream.set_read_timeout(Some(timeout))?;
                stream.set_write_timeout(Some(timeout))
            }
            Socket::Tcp(stream) => {
                stream.set_read_timeout(Some(timeout))?;
                stream.set_write_timeout(Some(timeout))
            }
        }
    }

    /// Ends both directions: whoever waits in a read or write wakes.
    pub(super) fn close(&self) {
        let _ = match self {
            Socket::Unix(stream) => stream.shutdown(Shutdown::Both),
            Socket::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Read for &Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => { stream }.read(bytes),
            Socket::Tcp(stream) => { stream }.read(bytes),
        }
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => { stream }.write(bytes),
            Socket::Tcp(stream) => { stream }.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_or_refused_with_what_is_allowed() {
        let unix = |path: &str| Server::Unix(PathBuf::from(path));
        let tcp = |host: &str, port| Server::Tcp(host.to_owned(), port);
        for (text, server, export) in [
            ("unix:/run/nbd.sock", unix("/run/nbd.sock"), ""),
            ("unix:a.sock:disk:1", unix("a.sock"), "disk:1"),
            ("localhost:10809", tcp("localhost", 10809), ""),
            ("[::1]:1/a/b", tcp("::1", 1), "a/b"),
        ] {
            let export = export.to_owned();
            assert_eq!(Address::parse(text), Ok(Address { server, export }));
        }
        for text in [
            "",
            "unix:",
            "host",
            "host:",
            "host:0",
            "host:70000",
            ":1",
            "host/x:1",
        ] {
            let said = Address::parse(text).unwrap_err().to_string();
            assert!(said.contains("nbd:HOST:PORT[/EXPORT]"), "{text}: {said}");
        }
    }
}
