//! Short connections beside the drive: somebody comes, asks once, is answered and gone. None is waited for.

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
/// Longest question, bytes.
pub const QUESTION_BYTES_MAX: usize = 8192;
/// How long a visitor may take in all.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks while the drive works without a pause.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// What is answered to what was asked so far; `None`: there is more to come. With [`QUESTION_BYTES_MAX`] bytes there is
/// always an answer.
pub type Answer<'a> = dyn FnMut(&[u8]) -> Option<Vec<u8>> + 'a;

#[derive(Debug)]
struct Visitor {
    socket: OwnedFd,
    since: Instant,
    asked: Vec<u8>,
    /// What is to be sent, once it is known, and how much of it is.
    answer: Option<(Vec<u8>, usize)>,
}

impl Visitor {
    /// Goes on with it; `false`: it is over.
    fn step(&mut self, answer: &mut Answer<'_>) -> bool {
        if self.answer.is_none() {
            let mut bytes = [0; 1024];
            loop {
                match recv(&self.socket, &mut bytes, RecvFlags::DONTWAIT) {
                    Ok((0, _)) => return false,
                    Ok((count, _)) => self.asked.extend_from_slice(&bytes[..count]),
                    Err(Errno::AGAIN | Errno::INTR) => break,
                    Err(_) => return false,
                }
                if self.asked.len() >= QUESTION_BYTES_MAX {
                    break;
                }
            }
            self.answer = answer(&self.asked).map(|answer| (answer, 0));
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

/// Who has come to a place.
#[derive(Debug)]
pub struct Visitors {
    listener: Listener,
    visitors: Vec<Visitor>,
    looked: Instant,
}

impl Visitors {
    /// At that place.
    pub fn new(address: &Address) -> Result<Self, ServeError> {
        Ok(Visitors {
            listener: Listener::new(address, VISITORS_MAX)?,
            visitors: Vec::new(),
            looked: Instant::now(),
        })
    }

    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listener.addresses()
    }

    /// Takes and answers who has come.
    pub fn look(&mut self, answer: &mut Answer<'_>) {
        if self.looked.elapsed() < LOOK_EVERY {
            return;
        }
        self.looked = Instant::now();
        // Who is gone has left a place.
        self.visitors.retain_mut(|visitor| visitor.step(answer));
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
        self.visitors.retain_mut(|visitor| visitor.step(answer));
    }

    /// What a sleep ends with.
    pub fn wait_for<'a>(&'a self, files: &mut Vec<PollFd<'a>>) {
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
