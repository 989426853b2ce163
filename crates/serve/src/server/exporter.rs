//! A page for who asks over HTTP, beside the drive.

use super::visitors::{QUESTION_BYTES_MAX, Visitors};
use super::{Address, ServeError};
use rustix::event::PollFd;
use std::net::SocketAddr;

/// Gives the page.
#[derive(Debug)]
pub struct Exporter {
    visitors: Visitors,
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
        let is_too_long = asked.len() >= QUESTION_BYTES_MAX;
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

impl Exporter {
    /// At that place.
    ///
    /// # Errors
    /// If there can be nothing.
    pub fn new(address: &Address) -> Result<Self, ServeError> {
        let visitors = Visitors::new(address)?;
        Ok(Exporter { visitors })
    }

    /// The addresses that it listens at; none: it is a path.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.visitors.addresses()
    }

    /// Takes and answers who has come. `page` is what it gives.
    pub(super) fn look(&mut self, mut page: impl FnMut() -> String) {
        self.visitors.look(&mut |asked| answered(asked, &mut page));
    }

    /// What a sleep ends with.
    pub(super) fn wait_for<'a>(&'a self, files: &mut Vec<PollFd<'a>>) {
        self.visitors.wait_for(files);
    }
}
