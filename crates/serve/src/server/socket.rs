//! A socket in a folder, gone with it. Only its owner can connect.

use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// A socket that its owner alone can connect to. Nothing waits at it.
#[derive(Debug)]
pub struct PrivateSocket {
    /// Who listens.
    pub listener: UnixListener,
    path: PathBuf,
}

impl PrivateSocket {
    /// One at that path. So many clients can have come before the first is accepted; more are told to try again.
    ///
    /// # Errors
    /// If something else is there, or nothing can be.
    pub fn new(path: &Path, backlog: usize) -> io::Result<Self> {
        remove_stale(path)?;
        let flags = rustix::net::SocketFlags::CLOEXEC | rustix::net::SocketFlags::NONBLOCK;
        let kind = (AddressFamily::UNIX, SocketType::STREAM);
        let socket = rustix::net::socket_with(kind.0, kind.1, flags, None)?;
        rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
        // Nobody can connect before the next but one line.
        let made = PrivateSocket {
            listener: UnixListener::from(socket),
            path: path.to_owned(),
        };
        rustix::fs::chmod(path, Mode::RUSR | Mode::WUSR)?;
        rustix::net::listen(&made.listener, backlog as i32)?;
        Ok(made)
    }
}

impl Drop for PrivateSocket {
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
