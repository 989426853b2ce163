//! What the bytes of the NBD protocol mean (`doc/proto.md` of the reference implementation). All numbers are
//! big-endian.

/// First eight bytes of a server.
const MAGIC: u64 = u64::from_be_bytes(*b"NBDMAGIC");
/// Before each option, and what tells the newer handshake from the older.
pub const OPTION_MAGIC: u64 = u64::from_be_bytes(*b"IHAVEOPT");
const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;

/// Flags of the handshake, of both sides: what is not yet known can be refused, and no zeros at its end.
pub const FIXED_NEWSTYLE: u16 = 1;
/// See [`FIXED_NEWSTYLE`].
pub const NO_ZEROES: u16 = 2;

/// Flags of an export.
#[allow(missing_docs)]
pub mod export {
    pub const HAS_FLAGS: u16 = 1;
    pub const SEND_FLUSH: u16 = 1 << 2;
    pub const SEND_FUA: u16 = 1 << 3;
    pub const SEND_TRIM: u16 = 1 << 5;
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
}

/// Options of a client.
#[allow(missing_docs)]
pub mod option {
    pub const EXPORT_NAME: u32 = 1;
    pub const ABORT: u32 = 2;
    pub const LIST: u32 = 3;
    pub const INFO: u32 = 6;
    pub const GO: u32 = 7;
}

/// Answers to options. Those with the highest bit are errors.
#[allow(missing_docs)]
pub mod answer {
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const UNSUPPORTED: u32 = 1 << 31 | 1;
    pub const INVALID: u32 = 1 << 31 | 3;
    pub const UNKNOWN: u32 = 1 << 31 | 6;
    pub const BLOCK_SIZE_REQUIRED: u32 = 1 << 31 | 8;
}

/// Kinds of information about an export.
#[allow(missing_docs)]
pub mod info {
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    pub const BLOCK_SIZE: u16 = 3;
}

/// Flags of a request.
#[allow(missing_docs)]
pub mod flag {
    pub const FUA: u16 = 1;
    pub const NO_HOLE: u16 = 1 << 1;
}

/// How a request has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs)]
pub enum Failure {
    NotPermitted = 1,
    Io = 5,
    Invalid = 22,
    NoSpace = 28,
    Overflow = 75,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Command {
    Read,
    Write,
    Disconnect,
    Flush,
    Trim,
    WriteZeroes,
    /// Something else; without data, as far as can be known.
    Unknown,
}

/// Bytes of a request, without a write's data.
pub const REQUEST_BYTES: usize = 28;
/// Bytes of the head of an option.
pub const OPTION_HEAD_BYTES: usize = 16;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What for.
    pub command: Command,
    /// See [`flag`].
    pub flags: u16,
    /// The client's name of it, that the reply has, too.
    pub cookie: u64,
    /// Where, bytes.
    pub offset: u64,
    /// How much, bytes.
    pub length: u32,
}

fn be<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&bytes[at..at + N]);
    part
}

impl Request {
    /// From its bytes; `None`: they are none, and nothing that follows can be trusted.
    #[must_use]
    pub fn parse(bytes: &[u8; REQUEST_BYTES]) -> Option<Self> {
        if u32::from_be_bytes(be(bytes, 0)) != REQUEST_MAGIC {
            return None;
        }
        let command = match u16::from_be_bytes(be(bytes, 6)) {
            0 => Command::Read,
            1 => Command::Write,
            2 => Command::Disconnect,
            3 => Command::Flush,
            4 => Command::Trim,
            6 => Command::WriteZeroes,
            _ => Command::Unknown,
        };
        Some(Request {
            command,
            flags: u16::from_be_bytes(be(bytes, 4)),
            cookie: u64::from_be_bytes(be(bytes, 8)),
            offset: u64::from_be_bytes(be(bytes, 16)),
            length: u32::from_be_bytes(be(bytes, 24)),
        })
    }
}

/// The head of an option: what it is, and how many bytes follow.
#[must_use]
pub fn option_head(bytes: &[u8; OPTION_HEAD_BYTES]) -> Option<(u32, u32)> {
    let is_option = u64::from_be_bytes(be(bytes, 0)) == OPTION_MAGIC;
    let (option, length) = (be(bytes, 8), be(bytes, 12));
    is_option.then(|| (u32::from_be_bytes(option), u32::from_be_bytes(length)))
}

/// What a server says first.
#[must_use]
pub fn greeting() -> [u8; 18] {
    let mut bytes = [0; 18];
    bytes[..8].copy_from_slice(&MAGIC.to_be_bytes());
    bytes[8..16].copy_from_slice(&OPTION_MAGIC.to_be_bytes());
    bytes[16..].copy_from_slice(&(FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes());
    bytes
}

/// Appends an answer to an option.
pub fn option_reply(option: u32, answer: u32, data: &[u8], to: &mut Vec<u8>) {
    to.extend_from_slice(&OPTION_REPLY_MAGIC.to_be_bytes());
    to.extend_from_slice(&option.to_be_bytes());
    to.extend_from_slice(&answer.to_be_bytes());
    to.extend_from_slice(&(data.len() as u32).to_be_bytes());
    to.extend_from_slice(data);
}

/// The head of a reply; after a read's comes its data, unless it has failed.
#[must_use]
pub fn reply_head(cookie: u64, failure: Option<Failure>) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&REPLY_MAGIC.to_be_bytes());
    let failure = failure.map_or(0, |failure| failure as u32);
    bytes[4..8].copy_from_slice(&failure.to_be_bytes());
    bytes[8..].copy_from_slice(&cookie.to_be_bytes());
    bytes
}

/// A client's answer to an option about an export: its name, and what it wants to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// The export's name.
    pub name: &'a [u8],
    /// See [`info`].
    infos: &'a [u8],
}

impl<'a> Wanted<'a> {
    /// From an option's data.
    #[must_use]
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let (length, rest) = data.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (name, rest) = rest.split_at_checked(length)?;
        let (count, infos) = rest.split_first_chunk::<2>()?;
        let is_whole = infos.len() == 2 * usize::from(u16::from_be_bytes(*count));
        is_whole.then_some(Wanted { name, infos })
    }

    /// Whether it wants to know this.
    #[must_use]
    pub fn has(&self, info: u16) -> bool {
        let (infos, _) = self.infos.as_chunks::<2>();
        infos.contains(&info.to_be_bytes())
    }
}
