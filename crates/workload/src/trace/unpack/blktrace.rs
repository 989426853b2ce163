//! blktrace's binary format, as the kernel writes it (`struct blk_io_trace`, `linux/blktrace_api.h`): what
//! `blktrace -d DEVICE` leaves in a file for each CPU and `blkparse -d` puts together.
//!
//! | bytes | field | |
//! |---|---|---|
//! | 0..4 | magic | `65617400h` and the version, 7; its order of bytes is the file's |
//! | 4..8 | sequence | |
//! | 8..16 | time | ns |
//! | 16..24 | sector | of 512 B |
//! | 24..28 | bytes | |
//! | 28..32 | action | below the action, above what kind of request it is |
//! | 32..36 | pid | |
//! | 36..40 | device | minor in the lower 20 bits |
//! | 40..44 | cpu | |
//! | 44..46 | error | |
//! | 46..48 | `pdu_len` | bytes of payload that follow |
//!
//! Each event is given out as the line that `blkparse` prints for it.

use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::rc::Rc;

const EVENT_BYTES: usize = 48;
/// `BLK_IO_TRACE_MAGIC | BLK_IO_TRACE_VERSION`.
const MAGIC: u32 = 0x6561_7407;

/// `enum blktrace_act`: the letter that `blkparse` prints for each, from 1.
const ACTIONS: &[u8] = b"QMFGSRDCPUTIXBA";
/// Above the lower byte of an action stands a flag for a cgroup's identifier in the payload.
const ACTION_MASK: u32 = 0xff;

/// `enum blktrace_cat`, in the upper half of the action.
mod kind {
    pub(super) const WRITE: u32 = 1 << 17;
    pub(super) const FLUSH: u32 = 1 << 18;
    pub(super) const SYNC: u32 = 1 << 19;
    /// A command of the driver's own, without sectors.
    pub(super) const PASS_THROUGH: u32 = 1 << 25;
    /// A message of the tracer's.
    pub(super) const NOTIFY: u32 = 1 << 26;
    pub(super) const AHEAD: u32 = 1 << 27;
    pub(super) const META: u32 = 1 << 28;
    pub(super) const DISCARD: u32 = 1 << 29;
    pub(super) const FUA: u32 = 1 << 31;
}

/// The order of bytes in a file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    /// The order in which a file begins with the magic number.
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        let head: [u8; 4] = head.get(..4)?.try_into().ok()?;
        if u32::from_le_bytes(head) == MAGIC {
            Some(Order::Little)
        } else if u32::from_be_bytes(head) == MAGIC {
            Some(Order::Big)
        } else {
            None
        }
    }

    fn number(self, bytes: &[u8]) -> u64 {
        let digit = |number, &byte: &u8| number << 8 | u64::from(byte);
        match self {
            Order::Little => bytes.iter().rev().fold(0, digit),
            Order::Big => bytes.iter().fold(0, digit),
        }
    }
}

/// What the events say beside their requests.
#[derive(Debug, Default)]
pub(in crate::trace) struct Found {
    /// The CPU of the first event.
    cpu: Option<u32>,
    several_cpus: bool,
    /// What is there of the last event, where that is not all of it.
    cut_bytes: Option<usize>,
}

impl Found {
    /// What a user should know.
    pub(in crate::trace) fn notes(&self) -> impl Iterator<Item = String> {
        let cut = self.cut_bytes.map(|found| {
            format!("the file was cut short: its last event has {found} of {EVENT_BYTES} bytes; left out")
        });
        let cpu = self.cpu.filter(|_| !self.several_cpus).map(|cpu| {
            format!(
                "all events are of CPU {cpu}: blktrace writes a file for each, and \
                 `cat DEVICE.blktrace.* | lodger ... -` takes them together"
            )
        });
        cut.into_iter().chain(cpu)
    }
}

/// Gives events out as lines.
pub(super) struct Events<R> {
    reader: R,
    order: Order,
    found: Rc<RefCell<Found>>,
    /// Events read.
    count: u64,
    line: Vec<u8>,
    /// Bytes of it given out.
    given: usize,
}

impl<R: Read> Events<R> {
    pub(super) fn new(reader: R, order: Order, found: Rc<RefCell<Found>>) -> Self {
        Events {
            reader,
            order,
            found,
            count: 0,
            line: Vec::new(),
            given: 0,
        }
    }

    /// Makes the line of the next event; none at the end.
    fn next_line(&mut self) -> io::Result<()> {
        self.line.clear();
        self.given = 0;
        let mut event = Vec::with_capacity(EVENT_BYTES);
        let length = EVENT_BYTES as u64;
        self.reader.by_ref().take(length).read_to_end(&mut event)?;
        if event.is_empty() {
            return Ok(());
        }
        self.count += 1;
        if event.len() < EVENT_BYTES {
            self.found.borrow_mut().cut_bytes = Some(event.len());
            return Ok(());
        }
        let field = |from: usize, to: usize| self.order.number(&event[from..to]);
        if field(0, 4) != u64::from(MAGIC) {
            let found = format!("{:#010x}", field(0, 4));
            let message = format!(
                "event {} begins with {found}, not with blktrace's magic number {MAGIC:#x}",
                self.count
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let payload_bytes = field(46, 48);
        let mut payload = self.reader.by_ref().take(payload_bytes);
        io::copy(&mut payload, &mut io::sink())?;
        self.write_line(&event)
    }

    fn write_line(&mut self, event: &[u8]) -> io::Result<()> {
        let field = |from: usize, to: usize| self.order.number(&event[from..to]);
        let action = field(28, 32) as u32;
        let letter = (action & ACTION_MASK).checked_sub(1);
        let letter = letter.and_then(|at| ACTIONS.get(at as usize));
        let Some(&letter) = letter.filter(|_| action & (kind::NOTIFY | kind::PASS_THROUGH) == 0)
        else {
            // An empty line: passed over, and counted where errors name their place.
            return self.line.write_all(b"\n");
        };
        let cpu = field(40, 44) as u32;
        let mut found = self.found.borrow_mut();
        found.several_cpus |= *found.cpu.get_or_insert(cpu) != cpu;
        let (time_ns, bytes, device) = (field(8, 16), field(24, 28), field(36, 40));
        write!(
            self.line,
            "{},{} {cpu} {} {}.{:09} {} {} {}",
            device >> 20,
            device & 0xf_ffff,
            field(4, 8),
            time_ns / 1_000_000_000,
            time_ns % 1_000_000_000,
            field(32, 36),
            char::from(letter),
            letters(action, bytes > 0),
        )?;
        if bytes > 0 {
            write!(self.line, " {} + {}", field(16, 24), bytes.div_ceil(512))?;
        }
        writeln!(self.line, " [blktrace]")
    }
}

/// The kernel's letters for a request.
fn letters(action: u32, has_data: bool) -> String {
    let is = |kind: u32| action & kind != 0;
    let what = match (is(kind::DISCARD), is(kind::WRITE), has_data) {
        (true, ..) => "D",
        (_, true, _) => "W",
        (.., true) => "R",
        _ => "N",
    };
    let flags = [
        (kind::FUA, "F"),
        (kind::AHEAD, "A"),
        (kind::SYNC, "S"),
        (kind::META, "M"),
    ];
    let mut all = String::from(if is(kind::FLUSH) { "F" } else { "" });
    all.push_str(what);
    all.extend(
        flags
            .iter()
            .filter(|(kind, _)| is(*kind))
            .map(|(_, letter)| *letter),
    );
    all
}

impl<R: Read> Read for Events<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.given == self.line.len() {
            self.next_line()?;
        }
        let rest = &self.line[self.given..];
        let bytes = rest.len().min(out.len());
        out[..bytes].copy_from_slice(&rest[..bytes]);
        self.given += bytes;
        Ok(bytes)
    }
}
