//! Memory that another process lends by a file descriptor: mapped once, then read and written by plain
//! loads and stores while the other side changes it as it likes.
//!
//! A [`Mapping`] never hands out a reference to its bytes, as they are not this process's alone: all
//! access copies, by relaxed atomic loads and stores or the processor's own copy. Every access is held against the length first.
//!
//! Who shrinks the file below its mapping makes the next access beyond its end a SIGBUS. [`Mapping::new`] therefore asks the
//! kernel to seal the file against that, and says in [`Mapping::is_sealed`] whether it did; a server calls [`survive`], after
//! which such a mapping is lost, and not the process.
#![cfg(target_os = "linux")]

mod lost;

use lost::Watch;
pub use lost::survive;
use rustix::fs::SealFlags;
use rustix::mm::{MapFlags, ProtFlags};
use std::fs::File;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Memory of another process, a part of a file that both have mapped.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    is_writable: bool,
    is_sealed: bool,
    watch: Watch,
}

// SAFETY: the mapping is owned until it is dropped, and all access to it is by atomics.
unsafe impl Send for Mapping {}
// SAFETY: as above; nothing but the bytes, which are accessed by atomics, changes behind `&self`.
unsafe impl Sync for Mapping {}

/// An access that is not within the mapping, a write to one that may only be read, or any to one that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outside;

/// From so many bytes on a copy is the processor's own: no entry of a queue is as long, and eight bytes at a time take it
/// several times as long.
#[cfg(target_arch = "x86_64")]
const LONG_BYTES: usize = 512;

/// Copies bytes of which one side may change meanwhile: the processor does it, and the compiler takes nothing from it.
/// What is stored after it is seen after it (Intel SDM, volume 3A, "Fast-String Operation and Out-of-Order Stores": later
/// stores do not pass those of a string operation).
///
/// # Safety
/// So many bytes at `from` can be read, and at `to` written, and they do not overlap.
#[cfg(target_arch = "x86_64")]
unsafe fn copy_long(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: as the caller says; the direction flag is clear by the calling convention.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") bytes => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags)
        );
    }
}

impl Mapping {
    /// Maps `bytes` of a file from `offset` on, to be read, and written if so said.
    ///
    /// # Errors
    /// If the file ends before, the offset is not that of a page, `bytes` is 0, or the kernel refuses.
    pub fn new(file: &File, offset: u64, bytes: u64, is_writable: bool) -> io::Result<Self> {
        let invalid = |what| io::Error::new(io::ErrorKind::InvalidInput, what);
        let end = offset.checked_add(bytes);
        let end = end.ok_or_else(|| invalid("the range has no end"))?;
        if end > file.metadata()?.len() {
            return Err(invalid("the file ends before the range"));
        }
        let length = usize::try_from(bytes).map_err(|_| invalid("the range is too long"))?;
        let shrink = SealFlags::SHRINK;
        // Files other than memfds have no seals; those whose seals are sealed may have this one.
        let _ = rustix::fs::fcntl_add_seals(file, shrink);
        let is_sealed = rustix::fs::fcntl_get_seals(file).is_ok_and(|seals| seals.contains(shrink));
        let watch = Watch::new()?;
        let mut access = ProtFlags::READ;
        access.set(ProtFlags::WRITE, is_writable);
        // SAFETY: a new mapping at an address of the kernel's choice; nothing else is there.
        let start = unsafe {
            let anywhere = std::ptr::null_mut();
            rustix::mm::mmap(anywhere, length, access, MapFlags::SHARED, file, offset)?
        };
        let start = NonNull::new(start.cast()).ok_or_else(|| invalid("mapped at 0"))?;
        watch.begin(start.as_ptr() as usize, length);
        Ok(Mapping {
            start,
            bytes: length,
            is_writable,
            is_sealed,
            watch,
        })
    }

    /// Length, bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// Whether it can be written.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// Whether the kernel keeps the file from shrinking.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.is_sealed
    }

    /// Where `length` bytes at `at` begin.
    #[inline]
    fn within(&self, at: u64, length: usize) -> Result<NonNull<u8>, Outside> {
        let at = usize::try_from(at).map_err(|_| Outside)?;
        let end = at.checked_add(length).ok_or(Outside)?;
        if end > self.bytes {
            return Err(Outside);
        }
        // SAFETY: `at <= end <= self.bytes`: within the mapping, or one past its end.
        Ok(unsafe { self.start.add(at) })
    }

    /// Copies from `at` on.
    ///
    /// # Errors
    /// If not all of it is within; nothing is copied then.
    #[inline]
    pub fn read(&self, at: u64, into: &mut [u8]) -> Result<(), Outside> {
        let from = self.within(at, into.len())?.as_ptr();
        #[cfg(target_arch = "x86_64")]
        if into.len() >= LONG_BYTES {
            // SAFETY: so many bytes are within the mapping, which lives as long as `self`, and as many in `into`.
            unsafe { copy_long(from, into.as_mut_ptr(), into.len()) };
            return self.watch.held();
        }
        let head = from.align_offset(8).min(into.len());
        let (first, rest) = into.split_at_mut(head);
        let (words, last) = rest.as_chunks_mut::<8>();
        let tail = head + 8 * words.len();
        // SAFETY: all three parts are within the mapping, which lives as long as `self`; the words begin at
        // an aligned address.
        unsafe {
            for (index, byte) in first.iter_mut().enumerate() {
                *byte = AtomicU8::from_ptr(from.add(index)).load(Ordering::Relaxed);
            }
            for (index, word) in words.iter_mut().enumerate() {
                let at = from.add(head + 8 * index).cast::<u64>();
                *word = AtomicU64::from_ptr(at)
                    .load(Ordering::Relaxed)
                    .to_ne_bytes();
            }
            for (index, byte) in last.iter_mut().enumerate() {
                *byte = AtomicU8::from_ptr(from.add(tail + index)).load(Ordering::Relaxed);
            }
        }
        self.watch.held()
    }

    /// Copies to `at` on.
    ///
    /// # Errors
    /// If not all of it is within, or it cannot be written; nothing is copied then.
    #[inline]
    pub fn write(&self, at: u64, from: &[u8]) -> Result<(), Outside> {
        if !self.is_writable {
            return Err(Outside);
        }
        let to = self.within(at, from.len())?.as_ptr();
        #[cfg(target_arch = "x86_64")]
        if from.len() >= LONG_BYTES {
            // SAFETY: as in `read`; and the mapping is writable.
            unsafe { copy_long(from.as_ptr(), to, from.len()) };
            return self.watch.held();
        }
        let head = to.align_offset(8).min(from.len());
        let (first, rest) = from.split_at(head);
        let (words, last) = rest.as_chunks::<8>();
        let tail = head + 8 * words.len();
        // SAFETY: as in `read`; and the mapping is writable.
        unsafe {
            for (index, byte) in first.iter().enumerate() {
                AtomicU8::from_ptr(to.add(index)).store(*byte, Ordering::Relaxed);
            }
            for (index, word) in words.iter().enumerate() {
                let at = to.add(head + 8 * index).cast::<u64>();
                AtomicU64::from_ptr(at).store(u64::from_ne_bytes(*word), Ordering::Relaxed);
            }
            for (index, byte) in last.iter().enumerate() {
                AtomicU8::from_ptr(to.add(tail + index)).store(*byte, Ordering::Relaxed);
            }
        }
        self.watch.held()
    }

    /// Four bytes at once where they are aligned; what was written before them is then seen.
    ///
    /// # Errors
    /// If not all of it is within, or it is not aligned.
    #[inline]
    pub fn load_u32(&self, at: u64) -> Result<u32, Outside> {
        let from = self.within(at, 4)?.as_ptr().cast::<u32>();
        if !from.is_aligned() {
            return Err(Outside);
        }
        // SAFETY: within the mapping, and aligned.
        let value = unsafe { AtomicU32::from_ptr(from).load(Ordering::Acquire) };
        self.watch.held()?;
        Ok(u32::from_le(value))
    }

    /// Four bytes at once where they are aligned; who sees them sees what was written before.
    ///
    /// # Errors
    /// If not all of it is within, it is not aligned, or it cannot be written.
    #[inline]
    pub fn store_u32(&self, at: u64, value: u32) -> Result<(), Outside> {
        let to = self.within(at, 4)?.as_ptr().cast::<u32>();
        if !to.is_aligned() || !self.is_writable {
            return Err(Outside);
        }
        // SAFETY: within the mapping, aligned, and writable.
        unsafe { AtomicU32::from_ptr(to).store(value.to_le(), Ordering::Release) };
        self.watch.held()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.watch.end();
        // SAFETY: the mapping is this one's own, and nobody has a pointer into it any more.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
