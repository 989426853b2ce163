//! Syncing takes milliseconds, which the drive need not wait for: a thread does it.

use super::disk::Disk;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

/// One sync at a time.
#[derive(Debug)]
pub struct Syncer {
    disk: Arc<dyn Disk>,
    thread: Option<(Sender<()>, Receiver<io::Result<()>>)>,
    /// What the sync under way has ended with, without a thread.
    ended: Option<io::Result<()>>,
}

impl Syncer {
    pub fn new(disk: Arc<dyn Disk>, has_thread: bool) -> Self {
        let thread = has_thread.then(|| {
            let (ask, asked) = channel();
            let (tell, told) = channel();
            let disk = Arc::clone(&disk);
            std::thread::spawn(move || {
                while asked.recv().is_ok() {
                    if tell.send(disk.sync()).is_err() {
                        return;
                    }
                }
            });
            (ask, told)
        });
        Syncer {
            disk,
            thread,
            ended: None,
        }
    }

    pub fn begin(&mut self) {
        match &self.thread {
            // A thread that is gone shows as it is asked how it went.
            Some((ask, _)) => drop(ask.send(())),
            None => self.ended = Some(self.disk.sync()),
        }
    }

    /// How the sync that was begun has ended, if it has.
    pub fn ended(&mut self) -> Option<io::Result<()>> {
        match &self.thread {
            None => self.ended.take(),
            Some((_, told)) => match told.try_recv() {
                Ok(ended) => Some(ended),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => Some(Err(io::Error::other("nobody syncs"))),
            },
        }
    }
}
