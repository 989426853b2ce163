//! Where a file's bytes lie on the device of its file system, as the kernel tells (`FS_IOC_FIEMAP`): beside the calls of a
//! byte window, whose pins are of blocks. What the flags mean, and whether the answer makes sense, is not this crate's matter.

use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

/// Most that one call of [`file_extents`] returns.
pub const EXTENTS_MAX: usize = 64;
/// Dirty pages are written before (`linux/fiemap.h`).
const FLAG_SYNC: u32 = 1;

/// A piece of a file, as the kernel told of it: all in bytes, and nothing of it is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct FileExtent {
    pub file_at: u64,
    pub device_at: u64,
    pub bytes: u64,
    /// `FIEMAP_EXTENT_*` of `linux/fiemap.h`.
    pub flags: u32,
}

/// `struct fiemap_extent` of `linux/fiemap.h`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Told {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}
const _: () = assert!(size_of::<Told>() == 56);

/// `struct fiemap` without its extents, which is what the ioctl's number has the size of.
#[repr(C)]
#[derive(Default)]
struct Head {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
}
const _: () = assert!(size_of::<Head>() == 32);

#[repr(C)]
struct Map {
    head: Head,
    extents: [Told; EXTENTS_MAX],
}
const _: () = assert!(size_of::<Map>() == 32 + 56 * EXTENTS_MAX);

struct Call<'a>(&'a mut Map);

// SAFETY: the pointer is to a live `Map`, exclusively borrowed as long as the call lasts. The kernel writes the head, and
// behind it as many extents as the head's `count` says, which is how many there are.
unsafe impl Ioctl for Call<'_> {
    type Output = ();
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        opcode::read_write::<Head>(b'f', 11)
    }

    fn as_ptr(&mut self) -> *mut core::ffi::c_void {
        core::ptr::from_mut(&mut *self.0).cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut core::ffi::c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}

/// The first [`EXTENTS_MAX`] extents that meet `bytes` of a file from `from` on, dirty pages written before if so said.
///
/// # Errors
/// If the file system does not tell, what is dirty cannot be written, or the kernel says that it gave more than was asked for.
pub fn file_extents(
    file: &File,
    from: u64,
    bytes: u64,
    is_synced: bool,
) -> io::Result<Vec<FileExtent>> {
    let mut map = Map {
        head: Head {
            start: from,
            length: bytes,
            flags: if is_synced { FLAG_SYNC } else { 0 },
            count: EXTENTS_MAX as u32,
            ..Head::default()
        },
        extents: [Told::default(); EXTENTS_MAX],
    };
    // SAFETY: `Map` is what this ioctl takes, and has room for as many extents as its `count` says.
    unsafe { ioctl(file.as_fd(), Call(&mut map)) }?;
    let told = map.extents.get(..map.head.mapped as usize);
    let told = told.ok_or(io::ErrorKind::InvalidData)?;
    Ok(told
        .iter()
        .map(|told| FileExtent {
            file_at: told.logical,
            device_at: told.physical,
            bytes: told.length,
            flags: told.flags,
        })
        .collect())
}
