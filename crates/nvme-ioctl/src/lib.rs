//! The few NVMe commands a prober needs, and the calls of a byte window, through Linux's passthrough ioctls. Nothing
//! else can be sent: a caller names a [`Command`], not an opcode. What the bytes mean is not this crate's matter.
//! And where a file's bytes lie ([`fiemap`]), for those who pin them.
#![cfg(target_os = "linux")]

pub mod fiemap;

use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// Longest a drive may take for a command, ms.
const TIMEOUT_MS: u32 = 30_000;
/// Bytes of the structures that Identify and Get Features 0Dh return.
pub const PAGE_BYTES: usize = 4096;

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Identify, CNS 01h: [`PAGE_BYTES`].
    IdentifyController,
    /// Identify, CNS 00h: [`PAGE_BYTES`].
    IdentifyNamespace(u32),
    /// Get Features, FID 06h (volatile write cache): no bytes.
    GetWriteCache,
    /// Get Features, FID 0Dh (host memory buffer): [`PAGE_BYTES`].
    GetHostMemory,
    /// Read: as many bytes as the span has.
    Read(Span),
    /// Write: as many bytes as the span has.
    Write(Span),
    /// Flush of a namespace: no bytes.
    Flush(u32),
    /// Dataset Management, deallocate: no bytes of the caller's.
    Deallocate(Span),
    /// A call of the byte window, of a namespace and for an entry of the drive's table.
    Window(u32, u8, WindowCall),
}

/// Bytes that [`WindowCall::Info`] returns.
pub const ENTRY_INFO_BYTES: usize = 64;
/// Most that one [`WindowCall::Read`] returns, bytes: Linux maps more in pieces, which it may refuse.
pub const WINDOW_READ_MAX: usize = 128 << 10;

/// Calls of the byte window, vendor's commands of a drive of Lodger; one that knows none of them refuses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum WindowCall {
    /// Blocks from `lba` on become bytes of the window: no bytes. Place and length in units of 4 KiB.
    Pin { lba: u64, at: u32, length: u32 },
    /// They are blocks again, durably: no bytes.
    Flush,
    /// What was stored outlives power: no bytes.
    Sync,
    /// What is pinned: [`ENTRY_INFO_BYTES`].
    Info,
    /// Bytes of the entry from a place on: so many, a multiple of 4, at most [`WINDOW_READ_MAX`].
    Read { at: u32, bytes: u32 },
}

/// Blocks of a namespace, from `lba` on; at least one, at most 65536 in a read or write. A block
/// has `block_bytes` of data and no metadata, as the last Identify Namespace said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Span {
    pub nsid: u32,
    pub lba: u64,
    pub blocks: u32,
    pub block_bytes: u32,
}

/// What came back: status code and type, 0 being success, and dword 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Completion {
    pub status: u16,
    pub result: u32,
}

/// `struct nvme_passthru_cmd` of `linux/nvme_ioctl.h`.
#[repr(C)]
#[derive(Debug, Default)]
struct Passthru {
    opcode: u8,
    flags: [u8; 3],
    nsid: u32,
    cdw2: [u32; 2],
    metadata: u64,
    addr: u64,
    metadata_len: u32,
    data_len: u32,
    cdw10: [u32; 6],
    timeout_ms: u32,
    result: u32,
}
const _: () = assert!(size_of::<Passthru>() == 72);

struct Call<'a>(&'a mut Passthru, u8);

// SAFETY: the pointer is to a live `Passthru`, exclusively borrowed as long as the call lasts; its
// size is part of the ioctl's number; the kernel writes `result` only. A 0 or positive return value
// is the NVMe status.
unsafe impl Ioctl for Call<'_> {
    type Output = u16;
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        opcode::read_write::<Passthru>(b'N', self.1)
    }

    fn as_ptr(&mut self) -> *mut core::ffi::c_void {
        core::ptr::from_mut(&mut *self.0).cast()
    }

    unsafe fn output_from_ptr(
        status: IoctlOutput,
        _: *mut core::ffi::c_void,
    ) -> rustix::io::Result<u16> {
        Ok(u16::try_from(status).unwrap_or(u16::MAX))
    }
}

/// What Dataset Management reads: 4096 bytes although one range has 16, as some drives read them all
/// (Linux, `nvme_setup_discard`); on a page of their own, as a drive's queue may demand alignment.
#[repr(align(4096))]
struct Ranges([u8; PAGE_BYTES]);

/// A drive's file, and what it last said of the blocks of one namespace: a drive moves as many bytes as
/// its blocks have, whatever the length of the buffer, and the kernel compares the two no more.
#[derive(Debug)]
pub struct Device {
    file: File,
    /// Number of the namespace, and above it bytes of a block; 0 before it has said so.
    format: AtomicU64,
}

impl Device {
    /// Takes over an open `/dev/nvmeXnY` or `/dev/ngXnY`.
    #[must_use]
    pub fn new(file: File) -> Self {
        let format = AtomicU64::new(0);
        Device { file, format }
    }

    /// Sends a command and waits for its end. `data` is filled by, or taken from. Reads and writes need
    /// an Identify Namespace before, which is to be sent anew where blocks may have changed.
    ///
    /// # Errors
    /// If `data` has not the length that the command moves, a span's blocks are not those that the
    /// namespace has said it has, or the kernel refuses. A drive's own error is a
    /// [`Completion::status`].
    pub fn submit(&self, what: &Command, data: &mut [u8]) -> io::Result<Completion> {
        if let Command::Read(span) | Command::Write(span) = what
            && self.format.load(Ordering::Acquire) != format(span.nsid, span.block_bytes)
        {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut ranges = Ranges([0; PAGE_BYTES]);
        let sent = encode(what, &mut ranges.0).filter(|(_, _, length)| data.len() == *length);
        let (number, mut call, _) = sent.ok_or(io::ErrorKind::InvalidInput)?;
        let moved = match what {
            Command::Deallocate(_) => &mut ranges.0[..],
            _ => &mut *data,
        };
        call.addr = moved.as_mut_ptr() as u64;
        call.data_len = u32::try_from(moved.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: `addr` and `data_len` are those of `moved`, exclusively borrowed until the kernel,
        // which is done with it when the call returns, is back. The drive moves `data_len` bytes: a
        // structure has that length, and a span's blocks are as long as the drive itself has said.
        let status = unsafe { ioctl(self.file.as_fd(), Call(&mut call, number)) }?;
        if let Command::IdentifyNamespace(nsid) = what {
            let block_bytes = if status == 0 { block_bytes(data) } else { None };
            let says = block_bytes.map_or(0, |bytes| format(*nsid, bytes));
            self.format.store(says, Ordering::Release);
        }
        let result = call.result;
        Ok(Completion { status, result })
    }
}

fn format(nsid: u32, block_bytes: u32) -> u64 {
    u64::from(block_bytes) << 32 | u64::from(nsid)
}

/// Bytes of a block in the format in use, by Identify Namespace; `None` if it has metadata, which would
/// be moved, too, or cannot be.
fn block_bytes(identify: &[u8]) -> Option<u32> {
    // FLBAS: bits 3:0, and above them bits 6:5.
    let flbas = usize::from(*identify.get(26)?);
    let at = 128 + 4 * (flbas & 0xf | (flbas >> 5 & 3) << 4);
    match identify.get(at..at + 3)? {
        [0, 0, shift @ 9..=16] => Some(1 << shift),
        _ => None,
    }
}

/// The ioctl's number, the command, and the bytes that the caller must bring.
fn encode(what: &Command, ranges: &mut [u8; PAGE_BYTES]) -> Option<(u8, Passthru, usize)> {
    const ADMIN: u8 = 0x41; // NVME_IOCTL_ADMIN_CMD
    const IO: u8 = 0x43; // NVME_IOCTL_IO_CMD
    let call = |opcode, nsid, cdw10| Passthru {
        opcode,
        nsid,
        cdw10,
        timeout_ms: TIMEOUT_MS,
        ..Passthru::default()
    };
    let moving = |opcode, span: &Span| {
        let last = span.blocks.checked_sub(1).filter(|last| *last <= 0xffff)?;
        let length = span.blocks.checked_mul(span.block_bytes)? as usize;
        let (low, high) = (span.lba as u32, (span.lba >> 32) as u32);
        let call = call(opcode, span.nsid, [low, high, last, 0, 0, 0]);
        Some((IO, call, length))
    };
    match what {
        Command::Window(nsid, entry, window) => {
            let (opcode, cdw10, length) = encode_window(*entry, window)?;
            Some((IO, call(opcode, *nsid, cdw10), length))
        }
        Command::IdentifyController => Some((ADMIN, call(0x06, 0, [1, 0, 0, 0, 0, 0]), PAGE_BYTES)),
        Command::IdentifyNamespace(nsid) => Some((ADMIN, call(0x06, *nsid, [0; 6]), PAGE_BYTES)),
        Command::GetWriteCache => Some((ADMIN, call(0x0a, 0, [6, 0, 0, 0, 0, 0]), 0)),
        Command::GetHostMemory => Some((ADMIN, call(0x0a, 0, [0x0d, 0, 0, 0, 0, 0]), PAGE_BYTES)),
        Command::Read(span) => moving(0x02, span),
        Command::Write(span) => moving(0x01, span),
        Command::Flush(nsid) => Some((IO, call(0x00, *nsid, [0; 6]), 0)),
        Command::Deallocate(span) => {
            ranges[4..8].copy_from_slice(&span.blocks.to_le_bytes());
            ranges[8..16].copy_from_slice(&span.lba.to_le_bytes());
            // One range; bit 2 of dword 11: deallocate.
            Some((IO, call(0x09, span.nsid, [0, 4, 0, 0, 0, 0]), 0))
        }
    }
}

/// Opcode, dwords 10 to 15, and the bytes that the caller must bring.
fn encode_window(entry: u8, call: &WindowCall) -> Option<(u8, [u32; 6], usize)> {
    let entry = u32::from(entry);
    Some(match *call {
        WindowCall::Pin { lba, at, length } => {
            let length = length.checked_mul(1 << 8).filter(|_| length < 1 << 24)?;
            let (low, high) = (lba as u32, (lba >> 32) as u32);
            (0xc0, [0, 0, low, high, at, length | entry], 0)
        }
        WindowCall::Flush => (0xc4, [0, 0, 0, 0, 0, entry], 0),
        WindowCall::Sync => (0xc8, [0, 0, 0, 0, 0, entry], 0),
        WindowCall::Info => {
            let dwords = ENTRY_INFO_BYTES as u32 / 4;
            (0xce, [dwords, 0, 0, 0, 0, entry], ENTRY_INFO_BYTES)
        }
        WindowCall::Read { at, bytes } => {
            let length = bytes as usize;
            if bytes == 0 || !bytes.is_multiple_of(4) || length > WINDOW_READ_MAX {
                return None;
            }
            (0xd2, [bytes / 4, 0, at, 0, 0, entry], length)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_those_of_the_format_in_use() {
        let says = |flbas: u8, at: usize, format: [u8; 3]| {
            let mut identify = vec![0; PAGE_BYTES];
            identify[26] = flbas;
            identify[at..at + 3].copy_from_slice(&format);
            block_bytes(&identify)
        };
        assert_eq!(says(0, 128, [0, 0, 9]), Some(512));
        assert_eq!(says(0x21, 128 + 4 * 17, [0, 0, 12]), Some(4096));
        // Of another format; with metadata; none that can be.
        assert_eq!(says(1, 128, [0, 0, 9]), None);
        assert_eq!(says(0, 128, [8, 0, 9]), None);
        assert_eq!(says(0, 128, [0, 0, 8]), None);
        assert_eq!(says(0, 128, [0, 0, 17]), None);
        assert_eq!(block_bytes(&[0; 128]), None);
    }

    #[test]
    fn deallocate_brings_as_many_bytes_as_drives_read() {
        let (nsid, lba, blocks, block_bytes) = (1, 7, 3, 512);
        let mut ranges = Ranges([0; PAGE_BYTES]);
        let span = Span {
            nsid,
            lba,
            blocks,
            block_bytes,
        };
        let (_, call, length) = encode(&Command::Deallocate(span), &mut ranges.0).unwrap();
        // Dword 10: one range.
        assert_eq!((length, call.cdw10[..2].to_vec()), (0, vec![0, 4]));
        assert_eq!(
            ranges.0[..16],
            [0, 0, 0, 0, 3, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]
        );
        assert!(ranges.0[16..].iter().all(|byte| *byte == 0));
        assert!(ranges.0.as_ptr().addr().is_multiple_of(PAGE_BYTES));
    }

    #[test]
    fn calls_of_the_window_are_as_the_drive_reads_them() {
        // As `crates/wire/src/command/window.rs` has the table.
        let pin = WindowCall::Pin {
            lba: 0x1_0000_0320,
            at: 16,
            length: 2,
        };
        let pinned = encode_window(3, &pin);
        assert_eq!(pinned, Some((0xc0, [0, 0, 0x320, 1, 16, 0x203], 0)));
        let read = WindowCall::Read { at: 8, bytes: 4096 };
        let read = encode_window(3, &read);
        assert_eq!(read, Some((0xd2, [1024, 0, 8, 0, 0, 3], 4096)));
        for bytes in [0, 6, WINDOW_READ_MAX as u32 + 4] {
            assert_eq!(encode_window(3, &WindowCall::Read { at: 0, bytes }), None);
        }
        let (lba, at, length) = (0, 0, 1 << 24);
        assert_eq!(encode_window(3, &WindowCall::Pin { lba, at, length }), None);
    }
}
