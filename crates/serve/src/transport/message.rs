//! Messages of the vfio-user protocol, version 0.0: a header of 16 bytes, then what the command has. All
//! numbers are little-endian.

use rustix::io::Errno;

/// Bytes of a header.
pub const HEADER_BYTES: usize = 16;
/// Longest message that is taken: the largest region access, with room for its head.
pub const MESSAGE_BYTES_MAX: usize = DATA_BYTES_MAX + 4096;
/// Most data of one region access (`max_data_xfer_size`).
pub const DATA_BYTES_MAX: usize = 1 << 20;
/// Most files with one message (`max_msg_fds`). QEMU 11 refuses who takes more.
pub const FILES_MAX: usize = 16;

const TYPE_MASK: u32 = 0xf;
const TYPE_COMMAND: u32 = 0;
const REPLY: u32 = 1;
const NO_REPLY: u32 = 1 << 4;
const ERROR: u32 = 1 << 5;

/// Commands.
#[allow(missing_docs)]
pub mod command {
    pub const VERSION: u16 = 1;
    pub const DMA_MAP: u16 = 2;
    pub const DMA_UNMAP: u16 = 3;
    pub const DEVICE_GET_INFO: u16 = 4;
    pub const DEVICE_GET_REGION_INFO: u16 = 5;
    pub const DEVICE_GET_IRQ_INFO: u16 = 7;
    pub const DEVICE_SET_IRQS: u16 = 8;
    pub const REGION_READ: u16 = 9;
    pub const REGION_WRITE: u16 = 10;
    pub const DEVICE_RESET: u16 = 13;
}

/// The head of a message.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// Number that the reply has, too.
    pub id: u16,
    /// What is asked.
    pub command: u16,
    /// Bytes of the whole message.
    pub bytes: usize,
    flags: u32,
}

impl Header {
    /// From the first bytes of a message.
    ///
    /// # Errors
    /// If it cannot be the head of a command; nothing that follows can be trusted then.
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Self, Errno> {
        let [i0, i1, c0, c1, s0, s1, s2, s3, f0, f1, f2, f3, ..] = *bytes;
        let header = Header {
            id: u16::from_le_bytes([i0, i1]),
            command: u16::from_le_bytes([c0, c1]),
            bytes: u32::from_le_bytes([s0, s1, s2, s3]) as usize,
            flags: u32::from_le_bytes([f0, f1, f2, f3]),
        };
        let is_long_enough = (HEADER_BYTES..=MESSAGE_BYTES_MAX).contains(&header.bytes);
        if header.flags & TYPE_MASK != TYPE_COMMAND || !is_long_enough {
            return Err(Errno::PROTO);
        }
        Ok(header)
    }

    /// Whether the client waits for an answer.
    #[must_use]
    pub fn wants_reply(&self) -> bool {
        self.flags & NO_REPLY == 0
    }

    /// Appends the answer to what is to be sent.
    pub fn answer(&self, answer: Result<&[u8], Errno>, to: &mut Vec<u8>) {
        let (body, flags, error) = match answer {
            Ok(body) => (body, REPLY, 0),
            Err(errno) => (&[][..], REPLY | ERROR, errno.raw_os_error() as u32),
        };
        to.extend_from_slice(&self.id.to_le_bytes());
        to.extend_from_slice(&self.command.to_le_bytes());
        to.extend_from_slice(&((HEADER_BYTES + body.len()) as u32).to_le_bytes());
        to.extend_from_slice(&flags.to_le_bytes());
        to.extend_from_slice(&error.to_le_bytes());
        to.extend_from_slice(body);
    }
}

/// Numbers from a message's body, one after the other.
#[derive(Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Errno> {
        let (first, rest) = self.0.split_first_chunk().ok_or(Errno::INVAL)?;
        self.0 = rest;
        Ok(*first)
    }

    /// The next two bytes.
    ///
    /// # Errors
    /// If the message ends before; so for the others.
    pub fn u16(&mut self) -> Result<u16, Errno> {
        Ok(u16::from_le_bytes(self.take()?))
    }

    /// The next four bytes.
    ///
    /// # Errors
    /// If the message ends before.
    pub fn u32(&mut self) -> Result<u32, Errno> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    /// The next eight bytes.
    ///
    /// # Errors
    /// If the message ends before.
    pub fn u64(&mut self) -> Result<u64, Errno> {
        Ok(u64::from_le_bytes(self.take()?))
    }
}

/// A body of numbers of four bytes.
pub fn dwords(dwords: &[u32], to: &mut Vec<u8>) {
    for dword in dwords {
        to.extend_from_slice(&dword.to_le_bytes());
    }
}
