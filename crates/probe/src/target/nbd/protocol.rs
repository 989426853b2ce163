//! The messages of the NBD protocol that a client needs: fixed newstyle handshake, `NBD_OPT_GO`,
//! requests and simple replies. Numbers are those of the protocol's description (`doc/proto.md` of
//! the nbd project); integers are big-endian. What the server sends is hostile: every field is
//! checked, no length is believed.

use super::{Failure, Line};

const GREETING: u64 = 0x4e42_444d_4147_4943; // "NBDMAGIC"
const OPTION: u64 = 0x4948_4156_454f_5054; // "IHAVEOPT"
const OLD_STYLE: u64 = 0x0000_4202_8186_1253;
const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
const REQUEST: u32 = 0x2560_9513;
const SIMPLE_REPLY: u32 = 0x6744_6698;
const STRUCTURED_REPLY: u32 = 0x668e_33ef;

const FIXED_NEWSTYLE: u16 = 1;
const NO_ZEROES: u16 = 2;
const OPT_GO: u32 = 7;
const REP_ACK: u32 = 1;
const REP_INFO: u32 = 3;
const REP_ERROR: u32 = 1 << 31;
const INFO_EXPORT: u16 = 0;
const INFO_BLOCK_SIZE: u16 = 3;

/// Longest reply to an option that is read, bytes, and how many of them.
const REPLY_BYTES_MAX: u32 = 16 << 10;
const REPLIES_MAX: usize = 32;

/// Bytes of a request before its data.
pub(super) const REQUEST_BYTES: usize = 28;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Read = 0,
    Write = 1,
    Disconnect = 2,
    Flush = 3,
    Trim = 4,
}

/// What the server says of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Export {
    pub(super) bytes: u64,
    flags: u16,
    /// Smallest and longest transfer, bytes.
    pub(super) block_bytes: (u32, u32),
}

impl Export {
    fn has(self, bit: u16) -> bool {
        // Bit 0: the other flags mean something.
        self.flags & 1 == 1 && self.flags >> bit & 1 == 1
    }

    pub(super) fn read_only(self) -> bool {
        self.has(1)
    }

    pub(super) fn flushes(self) -> bool {
        self.has(2)
    }

    pub(super) fn trims(self) -> bool {
        self.has(5)
    }
}

fn be16(bytes: &[u8]) -> u16 {
    bytes
        .iter()
        .take(2)
        .fold(0, |sum, byte| sum << 8 | u16::from(*byte))
}

fn be32(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .take(4)
        .fold(0, |sum, byte| sum << 8 | u32::from(*byte))
}

fn be64(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .take(8)
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Greets the server and opens an export.
pub(super) fn handshake(line: &Line<'_>, export: &str) -> Result<Export, Failure> {
    let mut greeting = [0; 18];
    line.receive(&mut greeting)?;
    if be64(&greeting) != GREETING {
        return Err(Failure::new(
            "this is no NBD server: it greets with something else",
        ));
    }
    match be64(&greeting[8..]) {
        OPTION => {}
        OLD_STYLE => {
            return Err(Failure::new(
                "the server speaks the old handshake, without options",
            ));
        }
        _ => return Err(Failure::new("the server greets with an unknown handshake")),
    }
    let flags = be16(&greeting[16..]);
    if flags & FIXED_NEWSTYLE == 0 {
        return Err(Failure::new(
            "the server does not speak the fixed newstyle handshake",
        ));
    }
    let mut message = Vec::new();
    message.extend(u32::from(flags & (FIXED_NEWSTYLE | NO_ZEROES)).to_be_bytes());
    message.extend(OPTION.to_be_bytes());
    message.extend(OPT_GO.to_be_bytes());
    // Length of the name, the name, one piece of information wanted.
    message.extend((4 + export.len() as u32 + 2 + 2).to_be_bytes());
    message.extend((export.len() as u32).to_be_bytes());
    message.extend(export.as_bytes());
    message.extend(1u16.to_be_bytes());
    message.extend(INFO_BLOCK_SIZE.to_be_bytes());
    line.send(&message)?;
    let mut found = Export {
        block_bytes: (1, u32::MAX),
        ..Export::default()
    };
    let mut has_size = false;
    for _ in 0..REPLIES_MAX {
        let (kind, data) = option_reply(line)?;
        match kind {
            REP_ACK if has_size => return Ok(found),
            REP_ACK => {
                return Err(Failure::new(
                    "the server does not say how large the export is",
                ));
            }
            REP_INFO => has_size |= information(&data, &mut found)?,
            error if error & REP_ERROR != 0 => return Err(refused(error, &data)),
            other => {
                return Err(Failure::new(format!(
                    "the server answers with a reply of type {other}"
                )));
            }
        }
    }
    Err(Failure::new(
        "the server does not come to an end with its information",
    ))
}

fn option_reply(line: &Line<'_>) -> Result<(u32, Vec<u8>), Failure> {
    let mut head = [0; 20];
    line.receive(&mut head)?;
    if be64(&head) != OPTION_REPLY || be32(&head[8..]) != OPT_GO {
        return Err(Failure::new("the server's reply to an option is not one"));
    }
    let (kind, length) = (be32(&head[12..]), be32(&head[16..]));
    if length > REPLY_BYTES_MAX {
        return Err(Failure::new(format!(
            "the server announces a reply of {length} bytes"
        )));
    }
    let mut data = vec![0; length as usize];
    line.receive(&mut data)?;
    Ok((kind, data))
}

/// Takes over one piece of information; whether it was the size.
fn information(data: &[u8], export: &mut Export) -> Result<bool, Failure> {
    let wrong = || Failure::new(format!("a piece of information of {} bytes", data.len()));
    let kind = data.get(..2).map(be16).ok_or_else(wrong)?;
    match (kind, data.len()) {
        (INFO_EXPORT, 12) => {
            export.bytes = be64(&data[2..]);
            export.flags = be16(&data[10..]);
            // File offsets are signed 64-bit numbers.
            if i64::try_from(export.bytes).is_err() {
                let bytes = export.bytes;
                return Err(Failure::new(format!(
                    "the export is said to have {bytes} bytes"
                )));
            }
            Ok(true)
        }
        (INFO_BLOCK_SIZE, 14) => {
            let [least, preferred, most] = [2, 6, 10].map(|at| be32(&data[at..]));
            let sane = least.is_power_of_two()
                && least <= 64 << 10
                && preferred >= least
                && most >= preferred
                && (most == u32::MAX || most.is_multiple_of(least));
            if !sane {
                let sizes = format!("{least}, {preferred}, {most}");
                return Err(Failure::new(format!(
                    "impossible block sizes: {sizes} bytes"
                )));
            }
            export.block_bytes = (least, most);
            Ok(false)
        }
        (INFO_EXPORT | INFO_BLOCK_SIZE, _) => Err(wrong()),
        _ => Ok(false),
    }
}

fn refused(kind: u32, data: &[u8]) -> Failure {
    let why = match kind & !REP_ERROR {
        1 => "the server does not know NBD_OPT_GO",
        2 => "the server does not allow it",
        3 => "the server finds the request invalid",
        5 => "the server wants TLS, which is not spoken here",
        6 => "the server has no such export",
        7 => "the server is shutting down",
        8 => "the server wants to be asked for block sizes in another way",
        _ => "the server refuses",
    };
    let said: String = String::from_utf8_lossy(data).chars().take(200).collect();
    if said.is_empty() {
        return Failure::new(why);
    }
    Failure::new(format!("{why} (`{}`)", said.escape_debug()))
}

/// Writes a request's head into its place before the data.
pub(super) fn request(place: &mut [u8], command: Command, cookie: u64, offset: u64, bytes: u32) {
    let head = [
        &REQUEST.to_be_bytes()[..],
        &0u16.to_be_bytes(),
        &(command as u16).to_be_bytes(),
        &cookie.to_be_bytes(),
        &offset.to_be_bytes(),
        &bytes.to_be_bytes(),
    ];
    for (to, from) in place.iter_mut().zip(head.into_iter().flatten()) {
        *to = *from;
    }
}

/// Receives a reply's head: the request it answers and its error number, 0 for none. Data of a
/// successful read follow.
pub(super) fn reply(line: &Line<'_>) -> Result<(u64, u32), Failure> {
    let mut head = [0; 16];
    line.receive(&mut head)?;
    match be32(&head) {
        SIMPLE_REPLY => Ok((be64(&head[8..]), be32(&head[4..]))),
        STRUCTURED_REPLY => Err(Failure::new("a structured reply, which was not agreed on")),
        _ => Err(Failure::new(
            "what came is no reply: the connection is out of step",
        )),
    }
}

/// What an error number says.
pub(super) fn error(number: u32) -> String {
    match number {
        1 => "operation not permitted".to_owned(),
        5 => "input/output error".to_owned(),
        12 => "cannot allocate memory".to_owned(),
        22 => "invalid argument".to_owned(),
        28 => "no space left on device".to_owned(),
        75 => "value too large".to_owned(),
        95 => "operation not supported".to_owned(),
        108 => "the server is shutting down".to_owned(),
        other => format!("the server's error {other}"),
    }
}
