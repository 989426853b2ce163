//! Reads and writes of one file, many in flight, through Linux's io_uring.
//!
//! A [`Ring`] owns the file and the memory that the kernel reads and fills: however its user ends (an
//! error, a panic, a device that never answers), memory that the kernel may still use is neither
//! lent nor freed. When to give up is not this crate's matter.
#![cfg(target_os = "linux")]

mod buffer;

pub use buffer::{ALIGNMENT, Buffer};

use io_uring::{IoUring, opcode, squeue, types};
use rustix::io::Errno;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Most transfers in flight; more make no drive of today faster.
pub const DEPTH_MAX: usize = 1024;
/// Transfers that can be queued until they are handed over: a few, each is timed by itself.
const QUEUED_MAX: u32 = 8;
/// Marks the ends of waits and of cancellations; transfers are marked by their slot.
const TICKED: u64 = u64::MAX;
const CANCELLATION: u64 = u64::MAX - 1;
/// Longest wait: one timer in the ring, not one for each wait, which would cost half a microsecond.
static TICK: types::Timespec = types::Timespec::new().nsec(100_000_000);

/// Memory of one transfer. While it is busy, it is the kernel's.
#[derive(Debug)]
struct Slot {
    incoming: Buffer,
    outgoing: Buffer,
    is_busy: bool,
}

/// A file with queues for transfers. Used only by the thread that made it, as the kernel demands of
/// a ring with a single issuer.
#[allow(missing_debug_implementations)]
pub struct Ring {
    ring: IoUring,
    slots: Vec<Slot>,
    /// How many slots, from the first on, have registered memory for reads.
    registered: usize,
    is_ticking: bool,
    one_thread: PhantomData<*const ()>,
}

impl Ring {
    /// Sets a ring up.
    ///
    /// # Errors
    /// If the kernel has no io_uring, or one older than 5.6, or forbids it.
    pub fn new(file: BorrowedFd<'_>) -> io::Result<Self> {
        let mut builder = IoUring::builder();
        builder.setup_cqsize(2 * DEPTH_MAX as u32);
        // Since 6.1: completions are worked off where they are waited for, without interrupting.
        let mut quick = builder.clone();
        quick.setup_single_issuer().setup_defer_taskrun();
        let ring = match quick.build(QUEUED_MAX) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => builder.build(QUEUED_MAX),
            other => other,
        }?;
        // Came with the reads and writes that are used here.
        if !ring.params().is_feature_rw_cur_pos() {
            return Err(Errno::NOSYS.into());
        }
        ring.submitter().register_files(&[file.as_raw_fd()])?;
        Ok(Ring {
            ring,
            slots: Vec::new(),
            registered: 0,
            is_ticking: false,
            one_thread: PhantomData,
        })
    }

    /// Sees to it that there are so many slots (at most [`DEPTH_MAX`]), for reads and writes of so
    /// many bytes; not while one is busy.
    pub fn make_room(&mut self, slots: usize, read_bytes: usize, write_bytes: usize) {
        if self.slots.iter().any(|slot| slot.is_busy) {
            return;
        }
        let mut is_new = false;
        for index in 0..slots.min(DEPTH_MAX) {
            if index == self.slots.len() {
                let [incoming, outgoing] = [0, 0].map(|length| Buffer::new(length, 0));
                self.slots.push(Slot {
                    incoming,
                    outgoing,
                    is_busy: false,
                });
            }
            let slot = &mut self.slots[index];
            is_new |= slot.incoming.grow(read_bytes, index as u64);
            slot.outgoing.grow(write_bytes, index as u64);
        }
        if is_new {
            self.register();
        }
    }

    /// The pages of registered memory are not looked up anew for every read, which makes a read cost
    /// no more than `pread`. Where too much memory is locked already, they are looked up.
    fn register(&mut self) {
        let _ = self.ring.submitter().unregister_buffers();
        let filled = self.slots.iter_mut().map(|slot| &mut slot.incoming);
        let filled = filled.take_while(|buffer| !buffer.is_empty());
        let table: Vec<_> = filled
            .map(|buffer| libc::iovec {
                iov_base: buffer.pointer().cast(),
                iov_len: buffer.len(),
            })
            .collect();
        // SAFETY: each entry is a buffer. The kernel holds its pages by itself and uses them for reads
        // only, which name a buffer's pointer: see `push`.
        let registered = unsafe { self.ring.submitter().register_buffers(&table) };
        self.registered = registered.map_or(0, |()| table.len());
    }

    /// Queues a read into a slot, which is busy from now on.
    ///
    /// # Errors
    /// If the slot is busy or too small, or the queue is full.
    pub fn read(&mut self, slot: usize, offset: u64, bytes: u32) -> io::Result<()> {
        self.transfer(slot, offset, bytes, false)
    }

    /// Queues a write of bytes that do not compress; the slot is busy from now on.
    ///
    /// # Errors
    /// As [`Ring::read`].
    pub fn write(&mut self, slot: usize, offset: u64, bytes: u32) -> io::Result<()> {
        self.transfer(slot, offset, bytes, true)
    }

    fn transfer(&mut self, at: usize, offset: u64, bytes: u32, write: bool) -> io::Result<()> {
        let slot = self.slots.get_mut(at).filter(|slot| !slot.is_busy);
        let slot = slot.ok_or(io::ErrorKind::InvalidInput)?;
        let buffer = if write {
            &mut slot.outgoing
        } else {
            &mut slot.incoming
        };
        if buffer.len() < bytes as usize {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let file = types::Fixed(0);
        // Above that are no offsets, and -1 would mean the file's position.
        let offset = offset.min(i64::MAX as u64);
        let pointer = buffer.pointer();
        let entry = if write {
            opcode::Write::new(file, pointer, bytes)
                .offset(offset)
                .build()
        } else if at < self.registered {
            opcode::ReadFixed::new(file, pointer, bytes, at as u16)
                .offset(offset)
                .build()
        } else {
            opcode::Read::new(file, pointer, bytes)
                .offset(offset)
                .build()
        };
        // Busy only if it is queued: what was refused, the kernel never hears of.
        self.push(&entry.user_data(at as u64))?;
        self.slots[at].is_busy = true;
        Ok(())
    }

    /// Queues the wish that a busy slot's transfer ends; it may end as if nothing had been wished.
    ///
    /// # Errors
    /// If the queue is full.
    pub fn cancel(&mut self, slot: usize) -> io::Result<()> {
        let entry = opcode::AsyncCancel::new(slot as u64).build();
        self.push(&entry.user_data(CANCELLATION))
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: an entry is a cancellation, which has no memory, or from `transfer`: its pointer
        // and length are those of a buffer of its slot, which is busy until its completion is reaped;
        // a busy slot's buffers are neither lent nor changed, and `drop` gives them up.
        unsafe { self.ring.submission().push(entry) }.map_err(|_| Errno::BUSY.into())
    }

    /// Whether the kernel has yet to take something that was queued.
    pub fn has_queued(&mut self) -> bool {
        !self.ring.submission().is_empty()
    }

    /// Hands over what is queued; if it `waits`, for a completion, but no longer than 100 ms.
    ///
    /// # Errors
    /// If the kernel refuses to go on. That nothing has completed is no error.
    pub fn enter(&mut self, waits: bool) -> io::Result<()> {
        if waits && !self.is_ticking {
            let entry = opcode::Timeout::new(&raw const TICK).build();
            self.push(&entry.user_data(TICKED))?;
            self.is_ticking = true;
        }
        let entered = self.ring.submit_and_wait(usize::from(waits));
        match entered.map_err(|error| (Errno::from_io_error(&error), error)) {
            Ok(_) | Err((Some(Errno::INTR), _)) => Ok(()),
            // Too much is under way in the system: later.
            Err((Some(Errno::AGAIN | Errno::BUSY), _)) => {
                std::thread::sleep(Duration::from_millis(1));
                Ok(())
            }
            Err((_, error)) => Err(error),
        }
    }

    /// Takes a completion: the slot, no longer busy, and the bytes moved (which may be fewer than were
    /// asked for) or the error.
    pub fn reap(&mut self) -> Option<(usize, io::Result<u32>)> {
        loop {
            let entry = self.ring.completion().next()?;
            if entry.user_data() == TICKED {
                self.is_ticking = false;
            }
            let index = usize::try_from(entry.user_data()).unwrap_or(usize::MAX);
            if let Some(slot) = self.slots.get_mut(index).filter(|slot| slot.is_busy) {
                slot.is_busy = false;
                let result = entry.result();
                let error = |_| io::Error::from_raw_os_error(-result);
                return Some((index, u32::try_from(result).map_err(error)));
            }
        }
    }

    /// What the last reads have put into a slot; nothing if it is busy.
    pub fn incoming(&mut self, slot: usize) -> &mut [u8] {
        let slot = self.slots.get_mut(slot).filter(|slot| !slot.is_busy);
        slot.map_or(&mut [], |slot| slot.incoming.all())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        for slot in self.slots.drain(..).filter(|slot| slot.is_busy) {
            // The kernel may still write there: lost to this process, rather than freed.
            std::mem::forget(slot);
        }
    }
}
