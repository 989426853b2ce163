//! A page for who asks over HTTP, beside the drive: a few short connections, none of which is waited for.

use super::listener::Listener;
use super::{Address, ServeError};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Visitors at once; who comes then is sent away.
const VISITORS_MAX: usize = 8;
/// Longest request, bytes.
const REQUEST_BYTES_MAX: usize = 8192;
/// How long a visitor may take in all.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks while the drive works without a pause.
const LOOK_EVERY: Duration = Duration::from_millis(2);

#[derive(Debug)]
struct Visitor {
    socket: OwnedFd,
    since: Instant,
    asked: Vec<u8>,
    /// What is to be sent, once it is known, and how much of it is.
    answer: Option<(Vec<u8>, usize)>,
}

/// Gives the page.
#[derive(Debug)]
pub struct Exporter {
    listener: Listener,
    visitors: Vec<Visitor>,
    looked: Instant,
}

fn answer(status: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// What is answered to a request; `None`: there is more to come of it.
fn answered(asked: &[u8], page: impl FnOnce() -> String) -> Option<Vec<u8>> {
    if !asked.windows(4).any(|four| four == b"\r\n\r\n") {
        let is_too_long = asked.len() >= REQUEST_BYTES_MAX;
        return is_too_long.then(|| answer("431 Request Header Fields Too Large", ""));
    }
    let line = asked
        .split(|byte| *byte == b'\r')
        .next()
        .unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let method = words.next().unwrap_or_default();
    let path = words.next().unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    Some(match (method, path) {
        ("GET", "/metrics" | "/") => answer("200 OK", &page()),
        ("GET", _) => answer("404 Not Found", "metrics are at /metrics\n"),
        _ => answer("405 Method Not Allowed", "ask with GET\n"),
    })
}

impl Visitor {
    /// Goes on with it; `false`: it is over.
    fn step(&mut self, page: &mut dyn FnMut() -> String) -> bool {
        if self.answer.is_none() {
            let mut bytes = [0; 1024];
            loop {
                match recv(&self.socket, &mut bytes, RecvFlags::DONTWAIT) {
                    Ok((0, _)) => return false,
                    Ok((count, _)) => self.asked.extend_from_slice(&bytes[..count]),
                    Err(Errno::AGAIN | Errno::INTR) => break,
                    Err(_) => return false,
                }
                if self.asked.len() >= REQUEST_BYTES_MAX {
                    break;
                }
            }
            self.answer = answered(&self.asked, page).map(|answer| (answer, 0));
        }
        if let Some((answer, sent)) = &mut self.answer {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match send(&self.socket, &answer[*sent..], flags) {
                Ok(count) => *sent += count,
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return false,
            }
            return *sent < answer.len() && self.since.elapsed() < PATIENCE;
        }
        self.since.elapsed() < PATIENCE
    }
}

impl Exporter {
    /// At that place.
    ///
    /// # Errors
    /// If there can be nothing.
    pub fn new(address: &Address) -> Result<Self, ServeError> {
        Ok(Exporter {
            listener: Listener::new(address)?,
            visitors: Vec::new(),
            looked: Instant::now(),
        })
    }

    /// The addresses that it listens at; none: it is a path.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listener.addresses()
    }

    /// Takes and answers who has come. `page` is what it gives.
    pub(super) fn look(&mut self, mut page: impl FnMut() -> String) {
        if self.looked.elapsed() < LOOK_EVERY {
            return;
        }
        self.looked = Instant::now();
        // Who is gone has left a place.
        self.visitors.retain_mut(|visitor| visitor.step(&mut page));
        while let Some(socket) = self.listener.accept() {
            if self.visitors.len() < VISITORS_MAX {
                self.visitors.push(Visitor {
                    socket,
                    since: Instant::now(),
                    asked: Vec::new(),
                    answer: None,
                });
            }
        }
        self.visitors.retain_mut(|visitor| visitor.step(&mut page));
    }

    /// What a sleep ends with.
    pub(super) fn wait_for<'a>(&'a self, files: &mut Vec<PollFd<'a>>) {
        self.listener.wait_for(files);
        for visitor in &self.visitors {
            let flags = match visitor.answer {
                Some(_) => PollFlags::OUT,
                None => PollFlags::IN,
            };
            files.push(PollFd::new(&visitor.socket, flags));
        }
    }
}
