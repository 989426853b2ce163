//! Files that are not text as they stand: compressed, or in blktrace's binary format. Both are read as the text
//! they stand for, a piece at a time, so that whoever parses the lines knows nothing of it.

mod blktrace;
mod zstd;

use super::lines::{damaged, read_error};
use crate::WorkloadError;
use flate2::bufread::GzDecoder;
use std::cell::RefCell;
use std::fmt;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::rc::Rc;

/// The longest sign of a packing.
const SIGN_BYTES: u64 = 4;

const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";
/// Skippable frames (RFC 8878, section 3.1.2) begin with any of 16 numbers; `pzstd` writes one first.
const ZSTD_SKIPPABLE: &[u8] = b"\x2a\x4d\x18";

/// A file as text.
pub(super) struct Unpacked<'r> {
    pub(super) text: Box<dyn BufRead + 'r>,
    /// What it was packed in, from the outside in.
    pub(super) packings: Vec<&'static str>,
    /// What there is to say of it when it has been read.
    pub(super) found: Rc<RefCell<blktrace::Found>>,
}

/// Recognises packings by a file's first bytes.
pub(super) fn unpack<'r>(
    reader: impl BufRead + 'r,
    name: &str,
) -> Result<Unpacked<'r>, WorkloadError> {
    let mut unpacked = Unpacked {
        text: Box::new(reader),
        packings: Vec::new(),
        found: Rc::default(),
    };
    let sign = unpacked.peek(name)?;
    if sign.starts_with(GZIP) {
        unpacked.packings.push("gzip");
        unpacked.text = Box::new(BufReader::new(Gzip::new(unpacked.text)));
    } else if sign.starts_with(ZSTD) || sign.get(1..) == Some(ZSTD_SKIPPABLE) {
        unpacked.packings.push("zstd");
        unpacked.text = Box::new(BufReader::new(zstd::Frames::new(unpacked.text)));
    }
    let sign = unpacked.peek(name)?;
    if let Some(order) = blktrace::Order::of(&sign) {
        unpacked.packings.push("blktrace's binary format");
        let found = Rc::clone(&unpacked.found);
        let events = blktrace::Events::new(unpacked.text, order, found);
        unpacked.text = Box::new(BufReader::new(events));
    }
    Ok(unpacked)
}

/// A packed file is not what its packer wrote.
#[derive(Debug)]
pub(super) struct Damaged {
    /// The name of that program.
    pub(super) packer: &'static str,
    /// What it packed is whole, but something else follows.
    is_followed: bool,
}

impl Damaged {
    fn by(packer: &'static str) -> io::Error {
        let is_followed = false;
        Self {
            packer,
            is_followed,
        }
        .error()
    }

    fn error(self) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, self)
    }
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_followed {
            false => write!(f, "what {} packed is cut short or damaged", self.packer),
            true => write!(
                f,
                "what {} packed is whole, but something else follows it",
                self.packer
            ),
        }
    }
}

impl std::error::Error for Damaged {}

/// Reads what gzip packed: one member after another (RFC 1952, section 2.2). Zeros behind the last one are no damage: tapes and
/// disks fill their blocks up with them, and gzip itself passes over them.
struct Gzip<R> {
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Gzip<R> {
    fn new(reader: R) -> Self {
        let member = Some(GzDecoder::new(reader));
        Gzip { member }
    }

    /// Begins what follows a member that has ended; nothing at the end of the file.
    fn open_next(&mut self) -> io::Result<()> {
        let Some(mut reader) = self.member.take().map(GzDecoder::into_inner) else {
            return Ok(());
        };
        loop {
            let ahead = reader.fill_buf()?;
            let zeros = ahead.iter().take_while(|&&byte| byte == 0).count();
            let next = ahead.get(zeros).copied();
            reader.consume(zeros);
            match next {
                Some(byte) if byte == GZIP[0] => break,
                Some(_) => {
                    let (packer, is_followed) = ("gzip", true);
                    return Err(Damaged {
                        packer,
                        is_followed,
                    }
                    .error());
                }
                None if zeros == 0 => return Ok(()),
                None => {}
            }
        }
        self.member = Some(GzDecoder::new(reader));
        Ok(())
    }
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
        while let Some(member) = &mut self.member {
            let read = member.read(out).map_err(|error| match error.kind() {
                InvalidData | InvalidInput | UnexpectedEof => Damaged::by("gzip"),
                // Of the file itself.
                _ => error,
            });
            match read? {
                0 if !out.is_empty() => self.open_next()?,
                bytes => return Ok(bytes),
            }
        }
        Ok(0)
    }
}

impl Unpacked<'_> {
    /// Reads on to the end, and says whether the packing is damaged: known only there.
    pub(super) fn damage(&mut self, name: &str) -> Option<WorkloadError> {
        let is_packed = !self.packings.is_empty();
        let rest = is_packed.then(|| io::copy(&mut self.text, &mut io::sink()).map(drop));
        damaged(rest?, name)
    }

    /// The first bytes, which stay to be read.
    fn peek(&mut self, name: &str) -> Result<Vec<u8>, WorkloadError> {
        let mut sign = Vec::new();
        self.text
            .by_ref()
            .take(SIGN_BYTES)
            .read_to_end(&mut sign)
            .map_err(|error| read_error(&error, name))?;
        let rest = std::mem::replace(&mut self.text, Box::new(std::io::empty()));
        self.text = Box::new(Cursor::new(sign.clone()).chain(rest));
        Ok(sign)
    }
}
