//! The few NVMe commands a prober needs, through Linux's passthrough ioctls. Nothing else can be
//! sent: a caller names a [`Command`], not an opcode. What the bytes mean is not this crate's matter.
#![cfg(target_os = "linux")]

use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};
use std::io;
use std::os::fd::BorrowedFd;

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
}

/// Blocks of a namespace, from `lba` on; at least one, at most 65536 in a read or write. A block
/// has `block_bytes` of data and no metadata: those of the format in use.
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

/// Sends a command and waits for its end. `data` is filled by, or taken from.
///
/// # Errors
/// If `data` has not the length that the command moves, or the kernel refuses. A drive's own error
/// is a [`Completion::status`].
pub fn submit(device: BorrowedFd<'_>, what: &Command, data: &mut [u8]) -> io::Result<Completion> {
    let mut range = [0; 16];
    let sent = encode(what, &mut range).filter(|(_, _, length)| data.len() == *length);
    let (number, mut call, _) = sent.ok_or(io::ErrorKind::InvalidInput)?;
    let moved = match what {
        Command::Deallocate(_) => &mut range[..],
        _ => data,
    };
    call.addr = moved.as_mut_ptr() as u64;
    call.data_len = u32::try_from(moved.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: `addr` and `data_len` are those of `moved`, exclusively borrowed until the kernel,
    // which moves no more than that and is done with it when the call returns, is back.
    let status = unsafe { ioctl(device, Call(&mut call, number)) }?;
    let result = call.result;
    Ok(Completion { status, result })
}

/// The ioctl's number, the command, and the bytes that the caller must bring.
fn encode(what: &Command, range: &mut [u8; 16]) -> Option<(u8, Passthru, usize)> {
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
        Command::IdentifyController => Some((ADMIN, call(0x06, 0, [1, 0, 0, 0, 0, 0]), PAGE_BYTES)),
        Command::IdentifyNamespace(nsid) => Some((ADMIN, call(0x06, *nsid, [0; 6]), PAGE_BYTES)),
        Command::GetWriteCache => Some((ADMIN, call(0x0a, 0, [6, 0, 0, 0, 0, 0]), 0)),
        Command::GetHostMemory => Some((ADMIN, call(0x0a, 0, [0x0d, 0, 0, 0, 0, 0]), PAGE_BYTES)),
        Command::Read(span) => moving(0x02, span),
        Command::Write(span) => moving(0x01, span),
        Command::Flush(nsid) => Some((IO, call(0x00, *nsid, [0; 6]), 0)),
        Command::Deallocate(span) => {
            range[4..8].copy_from_slice(&span.blocks.to_le_bytes());
            range[8..].copy_from_slice(&span.lba.to_le_bytes());
            // One range; bit 2 of dword 11: deallocate.
            Some((IO, call(0x09, span.nsid, [0, 4, 0, 0, 0, 0]), 0))
        }
    }
}
