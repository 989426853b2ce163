//! Exports of an NBD server (`nbd-server`, `nbdkit`, `qemu-nbd`), over a socket of this machine or
//! TCP. Requests are pipelined on one connection: one thread sends, another receives. Every wait has
//! an end; a server that breaks the protocol once is not asked again.

mod address;
mod protocol;

pub use address::{Address, Server};

use super::{
    Description, HmbState, HmbSwitch, Io, NEEDS_CONSENT, Op, Sample, TRANSFER_BYTES_MAX, Target,
    TargetError, Transport,
};
use address::Socket;
use protocol::{Command, Export, REQUEST_BYTES};
use std::io::{self, Read, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest wait for the server: connecting, or a single message.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Smallest block we ask for, and the transfer that every experiment needs, bytes.
const BLOCK_BYTES_MIN: u32 = 512;
const TRANSFER_BYTES_MIN: u32 = 4096;
/// Longest piece of a deallocation, bytes; lengths are 32-bit numbers.
const TRIM_BYTES_MAX: u64 = 1 << 30;

/// An export of an NBD server.
#[derive(Debug)]
pub struct NbdTarget {
    socket: Socket,
    timeout: Duration,
    description: Description,
    export: Export,
    /// Why the connection cannot be used any more.
    broken: Option<String>,
    cookie: u64,
    /// Room for a request's head, then bytes that no drive can compress.
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    started: Instant,
}

/// Why a conversation cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Failure(String);

impl Failure {
    fn new(why: impl Into<String>) -> Self {
        Failure(why.into())
    }
}

impl From<Failure> for TargetError {
    fn from(failure: Failure) -> Self {
        TargetError::Gone(failure.0)
    }
}

/// A socket with a time limit for whole messages, so that a byte now and then does not count.
struct Line<'a> {
    socket: &'a Socket,
    timeout: Duration,
}

impl Line<'_> {
    fn failed(&self, error: &io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Failure::new(format!(
                "the server did not answer within {:.1} s",
                self.timeout.as_secs_f64()
            )),
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted => Failure::new("the server closed the connection"),
            _ => Failure::new(format!("the connection failed: {error}")),
        }
    }

    fn whole(
        &self,
        length: usize,
        mut step: impl FnMut(usize) -> io::Result<usize>,
    ) -> Result<(), Failure> {
        let began = Instant::now();
        let mut done = 0;
        while done < length {
            let result = match step(done) {
                Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(more) => {
                    done += more;
                    Ok(())
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
                Err(error) => Err(error),
            };
            result.map_err(|error| self.failed(&error))?;
            if done < length && began.elapsed() > self.timeout {
                return Err(self.failed(&io::ErrorKind::TimedOut.into()));
            }
        }
        Ok(())
    }

    fn receive(&self, bytes: &mut [u8]) -> Result<(), Failure> {
        let mut socket = self.socket;
        self.whole(bytes.len(), |done| socket.read(&mut bytes[done..]))
    }

    fn send(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut socket = self.socket;
        self.whole(bytes.len(), |done| socket.write(&bytes[done..]))
    }
}

/// A batch on its way.
struct Flight {
    /// When each transfer was issued; `None` before, and after its completion.
    issued: Vec<Option<Duration>>,
    under_way: usize,
    sent_all: bool,
    /// Nothing more is to be sent.
    stop: bool,
    failure: Option<Failure>,
}

fn lock(flight: &Mutex<Flight>) -> MutexGuard<'_, Flight> {
    flight.lock().unwrap_or_else(PoisonError::into_inner)
}

impl NbdTarget {
    /// Connects, `text` being what follows `nbd:`; nothing is written unless `write`.
    ///
    /// # Errors
    /// If there is no such server or export, or the server is not to be made sense of.
    pub fn open(text: &str, write: bool) -> Result<Self, TargetError> {
        Self::open_within(text, write, TIMEOUT)
    }

    /// The same with another longest wait.
    ///
    /// # Errors
    /// As [`NbdTarget::open`].
    pub fn open_within(text: &str, write: bool, timeout: Duration) -> Result<Self, TargetError> {
        let address = Address::parse(text)?;
        let failed = |why: &str| {
            let shown = text.escape_debug();
            TargetError::Unsupported(format!("cannot use `nbd:{shown}`: {why}"))
        };
        let socket = Socket::connect(&address.server, timeout)
            .map_err(|error| failed(&format!("cannot connect: {error}")))?;
        let line = Line {
            socket: &socket,
            timeout,
        };
        let export = protocol::handshake(&line, &address.export).map_err(|why| failed(&why.0))?;
        let description = describe(text, &address, export, write).map_err(|why| failed(&why))?;
        let longest = description.transfer_bytes_max as usize;
        let mut state = 0x9E37_79B9_7F4A_7C15u64;
        let mut outgoing = vec![0; REQUEST_BYTES + longest];
        for byte in &mut outgoing {
            // xorshift64
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *byte = (state >> 32) as u8;
        }
        Ok(NbdTarget {
            socket,
            timeout,
            description,
            export,
            broken: None,
            cookie: 1,
            outgoing,
            incoming: vec![0; longest],
            started: Instant::now(),
        })
    }

    /// The same for writing, once its user has agreed: over the same connection, as the server or the export
    /// behind the name may be another one by now.
    #[must_use]
    pub fn for_writing(mut self) -> Self {
        allow(&mut self.description, self.export, true);
        self
    }

    /// Whether the connection may still be used, and the transfers are within the export.
    fn check(&self, ios: &[Io]) -> Result<(), TargetError> {
        if let Some(why) = &self.broken {
            return Err(TargetError::Gone(why.clone()));
        }
        let about = &self.description;
        for io in ios {
            let end = io.offset.checked_add(u64::from(io.bytes));
            let inside = end.is_some_and(|end| end <= about.capacity_bytes);
            if !inside || io.bytes > about.transfer_bytes_max {
                return Err(TargetError::Io {
                    what: name(io.op),
                    offset: io.offset,
                    bytes: io.bytes,
                    reason: "outside of the export, or too long".to_owned(),
                });
            }
            if let Some(reason) = about.no_write.as_ref().filter(|_| io.op == Op::Write) {
                return Err(TargetError::Unsupported(reason.clone()));
            }
        }
        Ok(())
    }

    /// One request without data, and its reply. Returns the error number and the time, ns.
    fn simple(&mut self, command: Command, offset: u64, bytes: u32) -> Result<u64, TargetError> {
        self.check(&[])?;
        let cookie = self.cookie;
        self.cookie += 1;
        let mut head = [0; REQUEST_BYTES];
        protocol::request(&mut head, command, cookie, offset, bytes);
        let line = Line {
            socket: &self.socket,
            timeout: self.timeout,
        };
        let began = Instant::now();
        let talk = || {
            line.send(&head)?;
            let (answered, error) = protocol::reply(&line)?;
            if answered != cookie {
                return Err(Failure::new("a reply to what was not asked"));
            }
            Ok(error)
        };
        match talk() {
            Ok(0) => Ok(began.elapsed().as_nanos() as u64),
            Ok(error) => Err(TargetError::Unsupported(format!(
                "the server cannot {command:?}: {}",
                protocol::error(error)
            ))),
            Err(failure) => {
                self.broken = Some(failure.0.clone());
                self.socket.close();
                Err(failure.into())
            }
        }
    }
}

fn name(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
    }
}

fn describe(text: &str, at: &Address, export: Export, write: bool) -> Result<Description, String> {
    let (least, most) = export.block_bytes;
    let block_bytes = least.max(BLOCK_BYTES_MIN);
    let transfer_bytes_max = most.min(TRANSFER_BYTES_MAX) / block_bytes * block_bytes;
    if transfer_bytes_max < TRANSFER_BYTES_MIN {
        return Err(format!("it takes no more than {most} bytes at once"));
    }
    let capacity_bytes = export.bytes / u64::from(block_bytes) * u64::from(block_bytes);
    if capacity_bytes < 1 << 20 {
        return Err("the export is smaller than 1 MiB".to_owned());
    }
    let (transport, between) = match at.server {
        Server::Unix(_) => (Transport::Layered, "a socket and a server of this machine"),
        Server::Tcp(..) => (Transport::Network, "a network and a server"),
    };
    let mut notes = vec![
        format!(
            "NBD: {between} lie between; their latency is added to every command, and the server's \
             page cache may answer instead of a drive (let it open the drive with O_DIRECT)"
        ),
        "NBD passes on no admin commands: model, serial number, firmware and host memory of the \
         drive behind it are not to be seen"
            .to_owned(),
    ];
    if !export.flushes() {
        notes.push("the server offers no flush: nothing can be said of durability".to_owned());
    }
    let serial = match at.export.as_str() {
        "" => text,
        name => name,
    };
    let mut description = Description {
        name: format!("nbd:{text}"),
        model: "NBD export".to_owned(),
        serial: serial.to_owned(),
        firmware: String::new(),
        capacity_bytes,
        block_bytes,
        transfer_bytes_max,
        transport,
        no_flush: None,
        no_deallocate: None,
        no_write: None,
        hmb: HmbSwitch::Unavailable(
            "NBD cannot switch host memory; only the machine that has the drive can".to_owned(),
        ),
        notes,
    };
    description.notes.extend(description.cuts());
    allow(&mut description, export, write);
    Ok(description)
}

/// What may be done to an export.
fn allow(description: &mut Description, export: Export, write: bool) {
    let reading = (!write).then(|| "it was opened for reading".to_owned());
    let lacks = |has: bool, what: &str| {
        let lacking = (!has).then(|| format!("the server offers no {what}"));
        reading.clone().or(lacking)
    };
    description.no_flush = lacks(export.flushes(), "flush");
    description.no_deallocate = lacks(export.trims(), "trim");
    description.no_write = if export.read_only() {
        Some("the server gives it out for reading only".to_owned())
    } else {
        (!write).then(|| NEEDS_CONSENT.to_owned())
    };
}

/// A batch and the two ends of the line it goes over.
struct Batch<'a> {
    line: &'a Line<'a>,
    ios: &'a [Io],
    first_cookie: u64,
    began: Instant,
    queue_depth: usize,
    flight: Mutex<Flight>,
    changed: Condvar,
}

impl Batch<'_> {
    fn send_all(&self, outgoing: &mut [u8]) {
        for (i, io) in self.ios.iter().enumerate() {
            let mut flight = lock(&self.flight);
            while flight.under_way >= self.queue_depth && !flight.stop {
                flight = self
                    .changed
                    .wait(flight)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            if flight.stop {
                break;
            }
            flight.issued[i] = Some(self.began.elapsed());
            flight.under_way += 1;
            drop(flight);
            self.changed.notify_all();
            if let Err(failure) = self.send(i, io, outgoing) {
                self.fail(failure);
                break;
            }
        }
        lock(&self.flight).sent_all = true;
        self.changed.notify_all();
    }

    /// One at a time, without a second thread, whose waking would be part of the latency.
    fn one_by_one(
        &self,
        outgoing: &mut [u8],
        incoming: &mut [u8],
        samples: &mut [Sample],
    ) -> Option<TargetError> {
        for (i, io) in self.ios.iter().enumerate() {
            {
                let mut flight = lock(&self.flight);
                flight.issued[i] = Some(self.began.elapsed());
                flight.under_way = 1;
            }
            let answer = self
                .send(i, io, outgoing)
                .and_then(|()| self.receive(incoming, samples));
            match answer {
                Ok(None) => {}
                Ok(refused) => return refused,
                Err(failure) => {
                    self.fail(failure);
                    return None;
                }
            }
        }
        None
    }

    fn send(&self, i: usize, io: &Io, outgoing: &mut [u8]) -> Result<(), Failure> {
        let (command, length) = match io.op {
            Op::Read => (Command::Read, REQUEST_BYTES),
            Op::Write => (Command::Write, REQUEST_BYTES + io.bytes as usize),
        };
        let cookie = self.first_cookie + i as u64;
        protocol::request(outgoing, command, cookie, io.offset, io.bytes);
        self.line.send(&outgoing[..length])
    }

    /// The first failure counts. The other thread wakes from whatever it waits for.
    fn fail(&self, failure: Failure) {
        let mut flight = lock(&self.flight);
        flight.failure.get_or_insert(failure);
        flight.stop = true;
        drop(flight);
        self.line.socket.close();
        self.changed.notify_all();
    }

    /// Receives until nothing is under way and nothing will be. Returns the first transfer that the
    /// server refused.
    fn receive_all(&self, incoming: &mut [u8], samples: &mut [Sample]) -> Option<TargetError> {
        let mut refused = None;
        loop {
            let mut flight = lock(&self.flight);
            while flight.under_way == 0 && !flight.sent_all && !flight.stop {
                flight = self
                    .changed
                    .wait(flight)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            if flight.failure.is_some() || flight.under_way == 0 {
                return refused;
            }
            drop(flight);
            match self.receive(incoming, samples) {
                Ok(None) => {}
                Ok(Some(error)) => {
                    refused.get_or_insert(error);
                    lock(&self.flight).stop = true;
                }
                Err(failure) => {
                    self.fail(failure);
                    return refused;
                }
            }
            self.changed.notify_all();
        }
    }

    fn receive(
        &self,
        incoming: &mut [u8],
        samples: &mut [Sample],
    ) -> Result<Option<TargetError>, Failure> {
        let (cookie, error) = protocol::reply(self.line)?;
        let unknown = || Failure::new("a reply to what was not asked");
        let i = usize::try_from(cookie.wrapping_sub(self.first_cookie)).map_err(|_| unknown())?;
        let io = self.ios.get(i).ok_or_else(unknown)?;
        // Taken: a second reply to the same request is as wrong as one to none.
        let issued = lock(&self.flight).issued[i].take().ok_or_else(unknown)?;
        if error == 0 && io.op == Op::Read {
            self.line.receive(&mut incoming[..io.bytes as usize])?;
        }
        let latency = self.began.elapsed().saturating_sub(issued);
        samples[i] = Sample {
            issued_ns: issued.as_nanos() as u64,
            latency_ns: latency.as_nanos() as u64,
        };
        lock(&self.flight).under_way -= 1;
        Ok((error != 0).then(|| TargetError::Io {
            what: name(io.op),
            offset: io.offset,
            bytes: io.bytes,
            reason: protocol::error(error),
        }))
    }
}

impl Target for NbdTarget {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn run(
        &mut self,
        ios: &[Io],
        queue_depth: u32,
        samples: &mut Vec<Sample>,
    ) -> Result<(), TargetError> {
        samples.clear();
        self.check(ios)?;
        samples.resize(ios.len(), Sample::default());
        let line = Line {
            socket: &self.socket,
            timeout: self.timeout,
        };
        let batch = Batch {
            line: &line,
            ios,
            first_cookie: self.cookie,
            began: Instant::now(),
            queue_depth: queue_depth.max(1) as usize,
            flight: Mutex::new(Flight {
                issued: vec![None; ios.len()],
                under_way: 0,
                sent_all: false,
                stop: false,
                failure: None,
            }),
            changed: Condvar::new(),
        };
        self.cookie += ios.len() as u64;
        let (outgoing, incoming) = (&mut self.outgoing, &mut self.incoming);
        let refused = if queue_depth <= 1 {
            batch.one_by_one(outgoing, incoming, samples)
        } else {
            std::thread::scope(|scope| {
                scope.spawn(|| batch.send_all(outgoing));
                batch.receive_all(incoming, samples)
            })
        };
        let failure = batch.flight.into_inner();
        let failure = failure.unwrap_or_else(PoisonError::into_inner).failure;
        if let Some(failure) = failure {
            self.broken = Some(failure.0.clone());
            return Err(failure.into());
        }
        refused.map_or(Ok(()), Err)
    }

    fn flush(&mut self) -> Result<u64, TargetError> {
        match &self.description.no_flush {
            Some(reason) => Err(TargetError::Unsupported(reason.clone())),
            None => self.simple(Command::Flush, 0, 0),
        }
    }

    fn deallocate(&mut self, offset: u64, bytes: u64) -> Result<u64, TargetError> {
        let about = &self.description;
        if let Some(reason) = about.no_deallocate.as_ref().or(about.no_write.as_ref()) {
            return Err(TargetError::Unsupported(reason.clone()));
        }
        let end = offset.checked_add(bytes);
        let Some(end) = end.filter(|end| *end <= about.capacity_bytes) else {
            return Err(TargetError::Unsupported("outside of the export".to_owned()));
        };
        let (mut at, mut sum_ns) = (offset, 0);
        while at < end {
            let length = (end - at).min(TRIM_BYTES_MAX);
            sum_ns += self.simple(Command::Trim, at, length as u32)?;
            at += length;
        }
        Ok(sum_ns)
    }

    fn idle(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn set_hmb(&mut self, _state: HmbState) -> Result<(), TargetError> {
        Err(TargetError::Unsupported(
            "NBD cannot switch host memory".to_owned(),
        ))
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }
}

impl Drop for NbdTarget {
    /// Says goodbye, if the server still listens.
    fn drop(&mut self) {
        if self.broken.is_none() {
            let brief = Duration::from_secs(1).min(self.timeout);
            let _ = self.socket.limit(brief);
            let mut head = [0; REQUEST_BYTES];
            protocol::request(&mut head, Command::Disconnect, self.cookie, 0, 0);
            let line = Line {
                socket: &self.socket,
                timeout: brief,
            };
            let _ = line.send(&head);
        }
        self.socket.close();
    }
}
