//! Where clients find a server: a path, or a port.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

/// A place that clients can connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A socket in a folder.
    Unix(PathBuf),
    /// A host, by name or number, and a port.
    Tcp(String, u16),
}

/// What is no such place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be `unix:PATH` or HOST:PORT, found `{0}`")]
pub struct AddressError(String);

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong = || AddressError(text.escape_debug().to_string());
        if let Some(path) = text.strip_prefix("unix:") {
            return match path.is_empty() {
                true => Err(wrong()),
                false => Ok(Address::Unix(path.into())),
            };
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().map_err(|_| wrong())?;
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        if bare.is_none() && host.contains(':') {
            // An address of IPv6 without its brackets: its last part may be a port, or not.
            return Err(wrong());
        }
        let host = match bare.unwrap_or(host) {
            "" => "localhost",
            host => host,
        };
        Ok(Address::Tcp(host.to_owned(), port))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(to, "unix:{}", path.display()),
            Address::Tcp(host, port) if host.contains(':') => write!(to, "[{host}]:{port}"),
            Address::Tcp(host, port) => write!(to, "{host}:{port}"),
        }
    }
}

/// The addresses that a name and a port stand for; of a name that leads to this machine alone, only those.
///
/// # Errors
/// If there are none.
pub fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let mut all: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    if host == "localhost" {
        all.retain(|address| address.ip().is_loopback());
    }
    all.sort();
    all.dedup();
    match all.is_empty() {
        true => Err(io::Error::new(io::ErrorKind::NotFound, "no such host")),
        false => Ok(all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_paths_or_ports() {
        let tcp = |host: &str, port| Ok(Address::Tcp(host.to_owned(), port));
        assert_eq!("unix:a b".parse(), Ok(Address::Unix("a b".into())));
        assert_eq!("localhost:10809".parse(), tcp("localhost", 10809));
        assert_eq!("[::1]:0".parse(), tcp("::1", 0));
        assert_eq!(":7".parse(), tcp("localhost", 7));
        for wrong in ["", "unix:", "host", "host:", "host:70000", "::1", "1:2:3"] {
            let error = wrong.parse::<Address>().unwrap_err();
            assert!(error.to_string().contains(&format!("`{wrong}`")), "{error}");
        }
        for text in ["unix:/a", "[::1]:10809", "127.0.0.1:1"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert!(resolve("127.0.0.1", 1).unwrap()[0].ip().is_loopback());
    }
}
