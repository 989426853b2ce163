//! How client and server come to terms: options of the fixed newstyle handshake, until an export is chosen.

use super::message::{self, Wanted, answer, export, info, option};

/// Longest data of an option: a name of 4 KiB, and what a client may want to know of it.
const OPTION_BYTES_MAX: usize = 8192;
/// Zeros after the answer to the oldest option.
const ZEROES: usize = 124;

/// What is exported.
#[derive(Clone, Debug)]
pub struct Export {
    /// Its length, bytes.
    pub bytes: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Most bytes of a request that moves data.
    pub request_bytes_max: u32,
    /// Most bytes of a command of the drive that moves data.
    pub command_bytes_max: u64,
    /// What people may be told.
    pub description: String,
}

impl Export {
    fn flags() -> u16 {
        export::HAS_FLAGS
            | export::SEND_FLUSH
            | export::SEND_FUA
            | export::SEND_TRIM
            | export::SEND_WRITE_ZEROES
            // A flush makes safe what was acknowledged, by whatever queue it came.
            | export::CAN_MULTI_CONN
    }

    fn size_and_flags(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.bytes.to_be_bytes());
        to.extend_from_slice(&Self::flags().to_be_bytes());
    }

    /// There is one, and it is the default.
    fn is_named(name: &[u8]) -> bool {
        name.is_empty()
    }

    /// Who does not ask for the size of a block may send requests of any length, which blocks of 4 KiB cannot serve.
    fn needs_its_block_size(&self) -> bool {
        self.block_bytes > 512
    }
}

/// How far a client has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// More bytes are needed.
    More,
    /// So many bytes are used up; on with the next option.
    Option(usize),
    /// So many bytes are used up, and requests follow.
    Requests(usize),
    /// Nothing more is to be heard or said, after what is to be sent.
    Close,
}

/// A client's side of the handshake.
#[derive(Debug, Default)]
pub struct Handshake {
    has_flags: bool,
    no_zeroes: bool,
}

impl Handshake {
    /// Takes what has come, one option at most, and appends what is to be answered.
    pub fn step(&mut self, input: &[u8], to: &mut Vec<u8>, export: &Export) -> Next {
        if !self.has_flags {
            let Some((flags, _)) = input.split_first_chunk::<4>() else {
                return Next::More;
            };
            let known = u32::from(message::FIXED_NEWSTYLE | message::NO_ZEROES);
            let flags = u32::from_be_bytes(*flags);
            if flags & !known != 0 {
                return Next::Close;
            }
            self.has_flags = true;
            self.no_zeroes = flags & u32::from(message::NO_ZEROES) != 0;
            return Next::Option(4);
        }
        let Some((head, rest)) = input.split_first_chunk() else {
            return Next::More;
        };
        let Some((option, length)) = message::option_head(head) else {
            return Next::Close;
        };
        let length = length as usize;
        if length > OPTION_BYTES_MAX {
            return Next::Close;
        }
        match rest.get(..length) {
            Some(data) => self.answer(option, data, to, export),
            None => Next::More,
        }
    }

    fn answer(&self, option: u32, data: &[u8], to: &mut Vec<u8>, export: &Export) -> Next {
        let used = message::OPTION_HEAD_BYTES + data.len();
        let mut say = |answer, data: &[u8]| message::option_reply(option, answer, data, to);
        match option {
            option::EXPORT_NAME if Export::is_named(data) && !export.needs_its_block_size() => {
                export.size_and_flags(to);
                if !self.no_zeroes {
                    to.resize(to.len() + ZEROES, 0);
                }
                return Next::Requests(used);
            }
            // There is no other way to say no, and none to ask for the block size.
            option::EXPORT_NAME => return Next::Close,
            option::ABORT => {
                say(answer::ACK, &[]);
                return Next::Close;
            }
            option::LIST if data.is_empty() => {
                say(answer::SERVER, &0u32.to_be_bytes());
                say(answer::ACK, &[]);
            }
            option::LIST => say(answer::INVALID, b"LIST has no data"),
            option::INFO | option::GO => match Wanted::parse(data) {
                None => say(answer::INVALID, b"the option's data is cut off or too long"),
                Some(wanted) if !Export::is_named(wanted.name) => {
                    say(
                        answer::UNKNOWN,
                        b"there is one export, and its name is empty",
                    );
                }
                Some(wanted) if export.needs_its_block_size() && !wanted.has(info::BLOCK_SIZE) => {
                    say(answer::BLOCK_SIZE_REQUIRED, b"ask for the block size");
                }
                Some(wanted) => {
                    tell(option, &wanted, to, export);
                    if option == option::GO {
                        return Next::Requests(used);
                    }
                }
            },
            // Encryption (STARTTLS) among them.
            _ => say(answer::UNSUPPORTED, &[]),
        }
        Next::Option(used)
    }
}

/// What a client wants to know of the export, and what it is always told.
fn tell(option: u32, wanted: &Wanted<'_>, to: &mut Vec<u8>, export: &Export) {
    let mut say = |kind: u16, fill: &dyn Fn(&mut Vec<u8>)| {
        let mut data = kind.to_be_bytes().to_vec();
        fill(&mut data);
        message::option_reply(option, answer::INFO, &data, to);
    };
    say(info::EXPORT, &|data| export.size_and_flags(data));
    if wanted.has(info::NAME) {
        say(info::NAME, &|_| {});
    }
    if wanted.has(info::DESCRIPTION) {
        say(info::DESCRIPTION, &|data| {
            data.extend_from_slice(export.description.as_bytes());
        });
    }
    if wanted.has(info::BLOCK_SIZE) {
        let sizes = [export.block_bytes, 4096, export.request_bytes_max];
        say(info::BLOCK_SIZE, &|data| {
            data.extend(sizes.iter().flat_map(|size| size.to_be_bytes()));
        });
    }
    message::option_reply(option, answer::ACK, &[], to);
}
