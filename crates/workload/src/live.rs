//! Recordings of live drives: what a host has asked, and when, so exactly that a simulation gives the same completions.
//!
//! Not a block trace, which says what was asked of some drive: this is all that entered the model of one drive, by its
//! own clock. `docs/recordings.md` describes the form for others.
//!
//! A file is a head and records. A record is a byte, with its kind below and a parameter above, the time since the one
//! before, and its fields; numbers are LEB128: seven bits a byte, the lowest first, the highest bit set where more follow.

use lodger_core::time::RUN_PS_MAX;
use lodger_core::{Op, Purpose, Request, Status};
use std::io::{self, BufRead, Write};

/// How a recording begins.
pub const MAGIC: [u8; 8] = *b"LODGREC\n";
/// The form's version. What an older one cannot say makes a new one.
pub const VERSION: u8 = 2;
/// The first, whose reads all went to the host: those that verify and compare as well.
const VERSION_MIN: u8 = 1;
/// Longest name in a head, bytes.
const NAME_BYTES_MAX: u64 = 1024;
const SECTOR_BYTES: u64 = 512;
const FUA: u8 = 4;
/// Reads that do not go to the host, in place of kind of command and FUA.
const VERIFY: u8 = 8;
const COMPARE: u8 = 9;

// Kinds of records.
const END: u8 = 0;
const COMMAND: u8 = 1;
const TAKEN: u8 = 2;
const HOST_MEMORY: u8 = 3;
const SHUTDOWN: u8 = 4;
const RAN: u8 = 5;
const DOUBT: u8 = 6;
const ABORT: u8 = 7;

/// What a recording is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Seed of the drive.
    pub seed: u64,
    /// What was written before: 0 nothing, 1 everything in order, 2 everything at random.
    pub precondition: u8,
    /// [`digest`] of the drive's description.
    pub drive_digest: u64,
    /// The drive's name.
    pub drive: String,
    /// The version of Lodger that recorded.
    pub by: String,
}

/// Why a simulation may not give the same completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The host's memory held other bytes than the drive had put there, or was gone.
    HostMemory,
    /// The drive had a past that the recording does not have.
    Past,
    /// Power was cut: the recording ends there.
    PowerCut,
    /// The byte window was used, whose calls the recording does not have.
    Window,
}

/// Something that entered the drive, or left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A command, whose doorbell is rung, and what becomes of what it reads. The first is number 0, the next 1, and so on. Its tag
    /// is 0.
    Command(Request, Purpose),
    /// The host takes a completion.
    Taken {
        /// The command's number.
        command: u64,
        /// When it stood in the host's memory.
        arrived_ps: u64,
        /// How it ended.
        status: Status,
    },
    /// Host memory is granted, so many bytes; 0: taken back.
    HostMemory(u64),
    /// A shutdown begins.
    Shutdown,
    /// The host has asked for a command, by its number, to be aborted.
    Abort(u64),
    /// The drive has worked off what is due, though time stands still.
    Ran,
    /// From here on completions may differ.
    Doubt(Doubt),
    /// The recording is whole.
    End,
}

/// An event and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// When, picoseconds since the drive was made.
    pub at_ps: u64,
    /// What.
    pub event: Event,
}

/// A number for a text: FNV-1a of 64 bits. It tells drives apart that differ by mistake, not on purpose.
#[must_use]
pub fn digest(text: &str) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

fn put_number(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

const STATUSES: [Status; 7] = [
    Status::Success,
    Status::OutOfRange,
    Status::InvalidField,
    Status::AccessDenied,
    Status::MediaError,
    Status::ReadOnly,
    Status::Aborted,
];
const OPS: [Op; 4] = [Op::Read, Op::Write, Op::Flush, Op::Trim];

fn place<T: PartialEq>(all: &[T], one: &T) -> u8 {
    all.iter().position(|other| other == one).unwrap_or(0) as u8
}

/// Writes a recording.
#[derive(Debug)]
pub struct Writer<W> {
    to: W,
    at_ps: u64,
    commands: u64,
    scratch: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Begins one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(mut to: W, head: &Head) -> io::Result<Self> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&[VERSION, head.precondition]);
        bytes.extend_from_slice(&head.seed.to_le_bytes());
        bytes.extend_from_slice(&head.drive_digest.to_le_bytes());
        for name in [&head.drive, &head.by] {
            let name: String = name.chars().take(NAME_BYTES_MAX as usize / 4).collect();
            put_number(name.len() as u64, &mut bytes);
            bytes.extend_from_slice(name.as_bytes());
        }
        to.write_all(&bytes)?;
        Ok(Writer {
            to,
            at_ps: 0,
            commands: 0,
            scratch: Vec::new(),
        })
    }

    /// Writes what happens next.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn put(&mut self, recorded: &Recorded) -> io::Result<()> {
        let bytes = &mut self.scratch;
        bytes.clear();
        let (kind, parameter) = match &recorded.event {
            Event::Command(_, Purpose::Verify) => (COMMAND, VERIFY),
            Event::Command(_, Purpose::Compare) => (COMMAND, COMPARE),
            Event::Command(request, Purpose::Deliver) => {
                let fua = if request.fua { FUA } else { 0 };
                (COMMAND, place(&OPS, &request.op) | fua)
            }
            Event::Taken { status, .. } => (TAKEN, place(&STATUSES, status)),
            Event::HostMemory(_) => (HOST_MEMORY, 0),
            Event::Shutdown => (SHUTDOWN, 0),
            Event::Abort(_) => (ABORT, 0),
            Event::Ran => (RAN, 0),
            Event::Doubt(Doubt::HostMemory) => (DOUBT, 0),
            Event::Doubt(Doubt::Past) => (DOUBT, 1),
            Event::Doubt(Doubt::PowerCut) => (DOUBT, 2),
            Event::Doubt(Doubt::Window) => (DOUBT, 3),
            Event::End => (END, 0),
        };
        bytes.push(kind | parameter << 4);
        debug_assert!(recorded.at_ps >= self.at_ps, "time goes on");
        put_number(recorded.at_ps.saturating_sub(self.at_ps), bytes);
        self.at_ps = self.at_ps.max(recorded.at_ps);
        match recorded.event {
            Event::Command(request, _) => {
                put_number(request.queue.into(), bytes);
                if request.op != Op::Flush {
                    put_number(request.offset_bytes / SECTOR_BYTES, bytes);
                    put_number(request.length_bytes / SECTOR_BYTES, bytes);
                }
                self.commands += 1;
            }
            Event::Taken {
                command,
                arrived_ps,
                ..
            } => {
                put_number(self.commands.saturating_sub(command + 1), bytes);
                put_number(self.at_ps.saturating_sub(arrived_ps), bytes);
            }
            Event::HostMemory(granted_bytes) => put_number(granted_bytes, bytes),
            Event::Abort(command) => {
                put_number(self.commands.saturating_sub(command + 1), bytes);
            }
            _ => {}
        }
        self.to.write_all(&self.scratch)
    }

    /// What was written stands where it is to be.
    ///
    /// # Errors
    /// If it does not.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Nothing that was recorded.
    #[error("it is no recording of a live drive")]
    NotOne,
    /// Of another version.
    #[error("it has version {0}, and this is for versions up to {VERSION}")]
    Version(u8),
    /// Nonsense.
    #[error("byte {at}: {what}")]
    Malformed {
        /// Where, counted from 0.
        at: u64,
        /// What is wrong.
        what: &'static str,
    },
}

/// Reads a recording.
#[derive(Debug)]
pub struct Reader<R> {
    from: R,
    at: u64,
    at_ps: u64,
    commands: u64,
    head: Head,
    is_over: bool,
    is_cut: bool,
}

/// Whether a file that begins so is a recording.
#[must_use]
pub fn is_recording(head: &[u8]) -> bool {
    head.starts_with(&MAGIC)
}

impl<R: BufRead> Reader<R> {
    /// Reads the head.
    ///
    /// # Errors
    /// If it is none.
    pub fn new(from: R) -> Result<Self, ReadError> {
        let mut reader = Reader {
            from,
            at: 0,
            at_ps: 0,
            commands: 0,
            head: Head {
                seed: 0,
                precondition: 0,
                drive_digest: 0,
                drive: String::new(),
                by: String::new(),
            },
            is_over: false,
            is_cut: false,
        };
        match reader.read_head() {
            Ok(()) => Ok(reader),
            Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(reader.malformed("the head is cut off"))
            }
            Err(error) => Err(error),
        }
    }

    fn read_head(&mut self) -> Result<(), ReadError> {
        if self.bytes::<8>()? != MAGIC {
            return Err(ReadError::NotOne);
        }
        let [version] = self.bytes()?;
        if !(VERSION_MIN..=VERSION).contains(&version) {
            return Err(ReadError::Version(version));
        }
        let [precondition] = self.bytes()?;
        if precondition > 2 {
            return Err(self.malformed("what was written before must be 0, 1 or 2"));
        }
        self.head.precondition = precondition;
        self.head.seed = u64::from_le_bytes(self.bytes()?);
        self.head.drive_digest = u64::from_le_bytes(self.bytes()?);
        self.head.drive = self.name()?;
        self.head.by = self.name()?;
        Ok(())
    }

    fn malformed(&self, what: &'static str) -> ReadError {
        let at = self.at;
        ReadError::Malformed { at, what }
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let mut bytes = [0; N];
        self.from.read_exact(&mut bytes)?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn number(&mut self) -> Result<u64, ReadError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.bytes()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                break;
            }
            number |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.malformed("the number has more than 64 bits"))
    }

    fn name(&mut self) -> Result<String, ReadError> {
        let length = self.number()?;
        if length > NAME_BYTES_MAX {
            return Err(self.malformed("the name is too long"));
        }
        let mut bytes = vec![0; length as usize];
        self.from.read_exact(&mut bytes)?;
        self.at += length;
        String::from_utf8(bytes).map_err(|_| self.malformed("the name is not UTF-8"))
    }

    /// What it is of.
    #[must_use]
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Whether it ends before its end, as one does whose server was killed, or found no room.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// What happens next; nothing after the end, or where it is cut off.
    ///
    /// # Errors
    /// If it makes no sense, or cannot be read.
    pub fn next_event(&mut self) -> Result<Option<Recorded>, ReadError> {
        if self.is_over {
            return Ok(None);
        }
        match self.record() {
            Ok(recorded) => {
                self.is_over = recorded.event == Event::End;
                if self.is_over {
                    self.nothing_follows()?;
                }
                Ok(Some(recorded))
            }
            Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                (self.is_over, self.is_cut) = (true, true);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// What comes after the end is of another recording, or the end is a byte that was damaged into one.
    fn nothing_follows(&mut self) -> Result<(), ReadError> {
        match self.from.read_exact(&mut [0]) {
            Ok(()) => Err(self.malformed("more follows after its end")),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
            Err(error) => Err(ReadError::Io(error)),
        }
    }

    fn record(&mut self) -> Result<Recorded, ReadError> {
        let [head] = self.bytes()?;
        let (kind, parameter) = (head & 15, head >> 4);
        let passed_ps = self.number()?;
        let at_ps = self.at_ps.checked_add(passed_ps);
        let Some(at_ps) = at_ps.filter(|at_ps| *at_ps <= RUN_PS_MAX) else {
            return Err(self.malformed("the time is beyond 200 days"));
        };
        self.at_ps = at_ps;
        let event = match (kind, parameter) {
            (END, 0) => Event::End,
            (COMMAND, 0..=COMPARE) => self.command(parameter)?,
            (TAKEN, _) if usize::from(parameter) < STATUSES.len() => {
                let command = self.earlier()?;
                let late_ps = self.number()?;
                let arrived_ps = at_ps.checked_sub(late_ps);
                Event::Taken {
                    command,
                    arrived_ps: arrived_ps
                        .ok_or_else(|| self.malformed("it came before the start"))?,
                    status: STATUSES[usize::from(parameter)],
                }
            }
            (HOST_MEMORY, 0) => Event::HostMemory(self.number()?),
            (SHUTDOWN, 0) => Event::Shutdown,
            (ABORT, 0) => Event::Abort(self.earlier()?),
            (RAN, 0) => Event::Ran,
            (DOUBT, 0) => Event::Doubt(Doubt::HostMemory),
            (DOUBT, 1) => Event::Doubt(Doubt::Past),
            (DOUBT, 2) => Event::Doubt(Doubt::PowerCut),
            (DOUBT, 3) => Event::Doubt(Doubt::Window),
            _ => return Err(self.malformed("there is no such record")),
        };
        Ok(Recorded { at_ps, event })
    }

    /// The number of a command, as so many before the last.
    fn earlier(&mut self) -> Result<u64, ReadError> {
        let back = self.number()?;
        let last = self.commands.checked_sub(1);
        let command = last.and_then(|last| last.checked_sub(back));
        command.ok_or_else(|| self.malformed("there is no such command"))
    }

    fn command(&mut self, parameter: u8) -> Result<Event, ReadError> {
        let (op, fua, purpose) = match parameter {
            VERIFY => (Op::Read, false, Purpose::Verify),
            COMPARE => (Op::Read, false, Purpose::Compare),
            _ => {
                let op = OPS[usize::from(parameter & 3)];
                (op, parameter & FUA != 0, Purpose::Deliver)
            }
        };
        let queue = self.number()?;
        let queue = u16::try_from(queue).map_err(|_| self.malformed("there is no such queue"))?;
        let mut range = [0; 2];
        if op != Op::Flush {
            for number in &mut range {
                let bytes = self.number()?.checked_mul(SECTOR_BYTES);
                *number = bytes.ok_or_else(|| self.malformed("no drive is so large"))?;
            }
        }
        self.commands += 1;
        let request = Request {
            tag: 0,
            queue,
            op,
            fua,
            offset_bytes: range[0],
            length_bytes: range[1],
        };
        Ok(Event::Command(request, purpose))
    }
}

#[cfg(test)]
mod tests;
