//! One client: what it says, what is under way for it, what is to be said to it. Its socket never blocks, and
//! nothing that it says or leaves unsaid takes more than a fixed share of memory or time.

use super::handshake::{Export, Handshake, Next};
use super::host::{ENTRIES, Host, HostRam};
use super::message::{self, Command, Failure, REQUEST_BYTES, Request, flag};
use super::requests;
use lodger_wire::entry::{Outcome, SubmissionEntry};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, sendmsg};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Bytes taken from the socket at once. The longest option is shorter.
const INPUT_BYTES: usize = 64 << 10;
/// Most that is taken before others have their turn.
const TURN_BYTES: usize = 1 << 20;
/// Requests under way, replies that wait among them.
const REQUESTS_MAX: usize = 1024;
/// Most data under way, unless it is of one request.
const DATA_BYTES_MAX: usize = 32 << 20;
/// Replies handed to the socket at once.
const REPLIES_AT_ONCE: usize = 32;

/// A request under way.
#[derive(Debug)]
struct UnderWay {
    request: Request,
    /// Commands of it that have not ended.
    parts: u32,
    failure: Option<Failure>,
    /// Where its data is.
    memory: Option<u64>,
    /// To be followed by a flush.
    then_flush: bool,
}

#[derive(Debug)]
struct Reply {
    head: Vec<u8>,
    data: Vec<u8>,
}

/// What the next bytes of a client are.
#[derive(Debug)]
enum Expects {
    Options(Handshake),
    Request,
    /// Data of a write, so far taken.
    Data {
        request: Request,
        address: u64,
        taken: usize,
    },
    /// Data of a write that has failed already: so much is left of it.
    Nothing {
        request: Request,
        failure: Failure,
        left: u64,
    },
    /// Nothing is heard any more; what is to be sent is.
    End,
}

/// A client.
#[derive(Debug)]
pub struct Client {
    /// Gone when it is; what it has asked for comes to its end then.
    socket: Option<OwnedFd>,
    /// The queue that its commands go by.
    queue: u16,
    expects: Expects,
    input: Box<[u8]>,
    /// What of the input has come and is not used.
    has: std::ops::Range<usize>,
    under_way: Vec<Option<UnderWay>>,
    free: Vec<usize>,
    /// Commands that the queue had no room for, with the requests they are of.
    waiting: VecDeque<(usize, SubmissionEntry)>,
    /// Whose each command is.
    commands: [usize; ENTRIES as usize],
    replies: VecDeque<Reply>,
    /// What of the first reply is sent.
    sent: usize,
    data_bytes: usize,
    /// When something was last heard from it, or was not waited for.
    heard: Instant,
    /// When it last took something, or nothing was to be taken.
    took: Instant,
}

impl Client {
    /// A client that has connected; its commands go by that queue.
    pub fn new(socket: OwnedFd, queue: u16, now: Instant) -> Self {
        let mut client = Client {
            socket: Some(socket),
            queue,
            expects: Expects::Options(Handshake::default()),
            input: vec![0; INPUT_BYTES].into_boxed_slice(),
            has: 0..0,
            under_way: Vec::new(),
            free: Vec::new(),
            waiting: VecDeque::new(),
            commands: [0; ENTRIES as usize],
            replies: VecDeque::new(),
            sent: 0,
            data_bytes: 0,
            heard: now,
            took: now,
        };
        client.say(message::greeting().to_vec());
        client
    }

    /// Its socket, to wait for; `None`: it is gone.
    pub fn socket(&self) -> Option<&OwnedFd> {
        self.socket.as_ref()
    }

    /// Whether nothing of it is left.
    pub fn is_over(&self) -> bool {
        self.socket.is_none() && self.free.len() == self.under_way.len()
    }

    /// Whether replies wait for it to take those before.
    pub fn has_unsent(&self) -> bool {
        !self.replies.is_empty()
    }

    fn has_room(&self) -> bool {
        self.under_way.len() - self.free.len() + self.replies.len() < REQUESTS_MAX
    }

    /// Whether more is taken from it now.
    pub fn is_listened_to(&self) -> bool {
        match self.expects {
            Expects::End => false,
            // An answer at a time.
            Expects::Options(_) => self.replies.len() < REPLIES_AT_ONCE,
            Expects::Request => self.has_room() && self.has.len() < INPUT_BYTES,
            Expects::Data { .. } | Expects::Nothing { .. } => true,
        }
    }

    /// Whether it has begun something that it has to end.
    fn is_owing(&self) -> bool {
        match self.expects {
            Expects::Request => (1..REQUEST_BYTES).contains(&self.has.len()),
            Expects::End => false,
            _ => true,
        }
    }

    fn say(&mut self, head: Vec<u8>) {
        let data = Vec::new();
        self.replies.push_back(Reply { head, data });
    }

    /// The client is gone, or is to be.
    pub fn close(&mut self, memory: &HostRam) {
        self.socket = None;
        self.replies.clear();
        self.expects_end(memory);
        for (request, _) in std::mem::take(&mut self.waiting) {
            self.part_done(request, Some(Failure::Io), memory);
        }
    }

    fn expects_end(&mut self, memory: &HostRam) {
        if let Expects::Data { address, .. } = self.expects {
            memory.take(address);
        }
        self.expects = Expects::End;
    }

    /// Sends and takes what can be. Returns whether there was anything to do.
    pub fn step(
        &mut self,
        now: Instant,
        patience: Duration,
        memory: &HostRam,
        export: &Export,
    ) -> bool {
        let worked = self.try_step(now, memory, export);
        if !self.is_owing() {
            self.heard = now;
        }
        if self.replies.is_empty() {
            self.took = now;
        }
        let is_silent = now.duration_since(self.heard.min(self.took)) > patience;
        let is_done = matches!(self.expects, Expects::End)
            && self.free.len() == self.under_way.len()
            && self.replies.is_empty();
        match worked {
            Ok(worked) if !is_silent && !is_done => worked,
            _ if self.socket.is_none() => false,
            _ => {
                self.close(memory);
                true
            }
        }
    }

    fn try_step(&mut self, now: Instant, memory: &HostRam, export: &Export) -> Result<bool, Errno> {
        let mut worked = self.send(now)?;
        // What had to wait may have room now.
        worked |= self.digest(memory, export);
        let mut taken = 0;
        while self.is_listened_to() && taken < TURN_BYTES {
            let bytes = match self.take(memory) {
                Err(Errno::AGAIN | Errno::INTR) => 0,
                Ok(0) => return Err(Errno::CONNRESET),
                Ok(bytes) => bytes,
                Err(errno) => return Err(errno),
            };
            // An option after the other does not buy time.
            if bytes > 0 && !matches!(self.expects, Expects::Options(_)) {
                self.heard = now;
            }
            taken += bytes;
            let went_on = self.digest(memory, export);
            worked |= bytes > 0 || went_on;
            if bytes == 0 {
                break;
            }
        }
        worked |= self.send(now)?;
        Ok(worked)
    }

    /// Bytes from the socket: a write's data where it belongs, all else to the input.
    fn take(&mut self, memory: &HostRam) -> Result<usize, Errno> {
        let Some(socket) = &self.socket else {
            return Err(Errno::BADF);
        };
        if let Expects::Data {
            request,
            address,
            taken,
        } = &mut self.expects
            && self.has.is_empty()
        {
            let (at, left) = (*address + *taken as u64, request.length as usize - *taken);
            let into = |part: &mut [u8]| recv(socket, part, RecvFlags::DONTWAIT);
            let (bytes, _) = memory.with(at, left, into).map_err(|_| Errno::FAULT)??;
            *taken += bytes;
            return Ok(bytes);
        }
        if self.has.start > 0 {
            self.input.copy_within(self.has.clone(), 0);
            self.has = 0..self.has.len();
        }
        if self.has.end == INPUT_BYTES {
            return Err(Errno::AGAIN);
        }
        let into = &mut self.input[self.has.end..];
        let (bytes, _) = recv(socket, into, RecvFlags::DONTWAIT)?;
        self.has.end += bytes;
        Ok(bytes)
    }

    /// Goes through what has come. Returns whether anything came of it.
    fn digest(&mut self, memory: &HostRam, export: &Export) -> bool {
        let mut went_on = false;
        while self.digest_one(memory, export) {
            went_on = true;
        }
        went_on
    }

    fn digest_option(&mut self, export: &Export) -> bool {
        let Expects::Options(handshake) = &mut self.expects else {
            return false;
        };
        let mut answer = Vec::new();
        match handshake.step(&self.input[self.has.clone()], &mut answer, export) {
            Next::More => return false,
            Next::Option(used) => self.has.start += used,
            Next::Requests(used) => {
                self.has.start += used;
                self.expects = Expects::Request;
            }
            Next::Close => self.expects = Expects::End,
        }
        if !answer.is_empty() {
            self.say(answer);
        }
        true
    }

    fn digest_one(&mut self, memory: &HostRam, export: &Export) -> bool {
        let input = &self.input[self.has.clone()];
        match &mut self.expects {
            Expects::End => false,
            Expects::Options(_) => self.digest_option(export),
            Expects::Request => {
                let Some((head, _)) = input.split_first_chunk::<REQUEST_BYTES>() else {
                    return false;
                };
                match Request::parse(head) {
                    Some(request) => self.begin(request, memory, export),
                    None => {
                        // Nothing that follows can be told from what is meant.
                        self.close(memory);
                        false
                    }
                }
            }
            Expects::Data {
                request,
                address,
                taken,
            } => {
                let left = request.length as usize - *taken;
                let part = &input[..input.len().min(left)];
                let copied = memory.with(*address + *taken as u64, part.len(), |to| {
                    to.copy_from_slice(part);
                });
                debug_assert!(copied.is_ok(), "room was set aside");
                *taken += part.len();
                self.has.start += part.len();
                let (request, address) = (*request, *address);
                let is_whole = *taken == request.length as usize;
                if is_whole {
                    self.expects = Expects::Request;
                    self.start(request, Some(address), export);
                }
                is_whole
            }
            Expects::Nothing {
                request,
                failure,
                left,
            } => {
                let skipped = (input.len() as u64).min(*left);
                *left -= skipped;
                self.has.start += skipped as usize;
                let is_whole = *left == 0;
                if is_whole {
                    let head = message::reply_head(request.cookie, Some(*failure));
                    self.expects = Expects::Request;
                    self.say(head.to_vec());
                }
                is_whole
            }
        }
    }

    /// A request has come. `false`: it has to wait.
    fn begin(&mut self, request: Request, memory: &HostRam, export: &Export) -> bool {
        let moves = matches!(request.command, Command::Read | Command::Write);
        let checked = requests::check(&request, export);
        let bytes = request.length as usize;
        let is_full = self.data_bytes > 0 && self.data_bytes + bytes > DATA_BYTES_MAX;
        if checked.is_ok() && moves && is_full || !self.has_room() {
            return false;
        }
        self.has.start += REQUEST_BYTES;
        if request.command == Command::Disconnect {
            self.expects = Expects::End;
            return true;
        }
        let is_write = request.command == Command::Write;
        match checked {
            Err(failure) if is_write => {
                let left = request.length.into();
                self.expects = Expects::Nothing {
                    request,
                    failure,
                    left,
                };
            }
            Err(failure) => {
                let head = message::reply_head(request.cookie, Some(failure));
                self.say(head.to_vec());
            }
            Ok(()) => {
                let address = requests::memory_for(&request, export, memory);
                if moves {
                    self.data_bytes += bytes;
                }
                match address {
                    Some(address) if is_write => {
                        let taken = 0;
                        self.expects = Expects::Data {
                            request,
                            address,
                            taken,
                        };
                    }
                    _ => self.start(request, address, export),
                }
            }
        }
        true
    }

    /// A request that is whole becomes commands.
    fn start(&mut self, request: Request, memory: Option<u64>, export: &Export) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.under_way.push(None);
            self.under_way.len() - 1
        });
        let mut parts = 0;
        requests::commands(&request, export, memory.unwrap_or(0), |command| {
            self.waiting.push_back((index, command));
            parts += 1;
        });
        self.under_way[index] = Some(UnderWay {
            request,
            parts,
            failure: None,
            memory,
            then_flush: request.command == Command::Trim && request.flags & flag::FUA != 0,
        });
    }

    /// Commands that wait go to the queue, as far as it has room.
    pub fn submit(&mut self, host: &mut Host) -> bool {
        let before = self.waiting.len();
        while host.has_room(self.queue)
            && let Some((request, command)) = self.waiting.pop_front()
        {
            if let Some(id) = host.submit(self.queue, command) {
                self.commands[usize::from(id)] = request;
            }
        }
        self.waiting.len() < before
    }

    /// A command has ended.
    pub fn done(&mut self, command: u16, outcome: Outcome, memory: &HostRam) {
        let request = self.commands[usize::from(command)];
        self.part_done(request, requests::failure_of(outcome.status), memory);
    }

    fn part_done(&mut self, index: usize, failure: Option<Failure>, memory: &HostRam) {
        let Some(Some(under_way)) = self.under_way.get_mut(index) else {
            return;
        };
        under_way.failure = under_way.failure.or(failure);
        under_way.parts -= 1;
        if under_way.parts > 0 {
            return;
        }
        if under_way.then_flush && under_way.failure.is_none() && self.socket.is_some() {
            under_way.then_flush = false;
            under_way.parts = 1;
            self.waiting.push_back((index, requests::flush()));
            return;
        }
        let ended = self.under_way[index].take();
        self.free.push(index);
        let Some(ended) = ended else { return };
        let mut data = ended.memory.map_or_else(Vec::new, |at| memory.take(at));
        let is_read = ended.request.command == Command::Read;
        if !is_read || ended.failure.is_some() {
            if is_read || ended.request.command == Command::Write {
                self.data_bytes -= ended.request.length as usize;
            }
            data = Vec::new();
        }
        if self.socket.is_some() {
            let head = message::reply_head(ended.request.cookie, ended.failure).to_vec();
            self.replies.push_back(Reply { head, data });
        }
    }

    /// Hands replies to the socket.
    fn send(&mut self, now: Instant) -> Result<bool, Errno> {
        let mut worked = false;
        while !self.replies.is_empty() {
            let Some(socket) = &self.socket else {
                return Err(Errno::BADF);
            };
            let mut parts = Vec::with_capacity(2 * REPLIES_AT_ONCE);
            let mut skip = self.sent;
            for reply in self.replies.iter().take(REPLIES_AT_ONCE) {
                for part in [&reply.head, &reply.data] {
                    let from = skip.min(part.len());
                    skip -= from;
                    if from < part.len() {
                        parts.push(IoSlice::new(&part[from..]));
                    }
                }
            }
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let mut none = SendAncillaryBuffer::default();
            let bytes = match sendmsg(socket, &parts, &mut none, flags) {
                Ok(bytes) => bytes,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(worked),
                Err(errno) => return Err(errno),
            };
            drop(parts);
            worked = true;
            self.took = now;
            self.sent += bytes;
            while let Some(reply) = self.replies.front()
                && self.sent >= reply.head.len() + reply.data.len()
            {
                self.sent -= reply.head.len() + reply.data.len();
                self.data_bytes -= reply.data.len();
                self.replies.pop_front();
            }
        }
        Ok(worked)
    }
}
