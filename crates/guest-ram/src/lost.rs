//! Memory whose file gives its bytes no more: who shrinks the file below its mapping, or lends one on a file system that is
//! full, makes the next access a SIGBUS, which ends a process that does not handle it.
//!
//! After [`survive`] such a mapping is lost instead: zeros of this process's own take its place, so that the access comes to
//! an end, and from then on [`crate::Mapping`] refuses all access. Nobody else's signals are touched.

use crate::Outside;
use std::io;
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Mappings at once: more than all clients of a server may ask for.
const PLACES: usize = 8192;
/// Nobody's, and of one that is not mapped yet.
const FREE: usize = 0;
const TAKEN: usize = 1;

/// Where a mapping is, for the handler, which may neither lock nor allocate.
struct Place {
    start: AtomicUsize,
    bytes: AtomicUsize,
    is_lost: AtomicBool,
}

static ALL: [Place; PLACES] = [const {
    Place {
        start: AtomicUsize::new(FREE),
        bytes: AtomicUsize::new(0),
        is_lost: AtomicBool::new(false),
    }
}; PLACES];

/// A mapping's place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Watch(usize);

impl Watch {
    /// A place for one that is not mapped yet.
    pub(crate) fn new() -> io::Result<Self> {
        let free = |place: &Place| {
            let start = &place.start;
            start
                .compare_exchange(FREE, TAKEN, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        };
        let at = ALL.iter().position(free);
        let at = at.ok_or_else(|| io::Error::other("too many mappings"))?;
        ALL[at].is_lost.store(false, Ordering::Release);
        Ok(Watch(at))
    }

    pub(crate) fn begin(&self, start: usize, bytes: usize) {
        ALL[self.0].bytes.store(bytes, Ordering::Release);
        ALL[self.0].start.store(start, Ordering::Release);
    }

    /// It is about to be unmapped.
    pub(crate) fn end(&self) {
        ALL[self.0].start.store(TAKEN, Ordering::Release);
    }

    /// After an access: whether it was one of memory that is there.
    #[inline]
    pub(crate) fn held(&self) -> Result<(), Outside> {
        match ALL[self.0].is_lost.load(Ordering::Acquire) {
            true => Err(Outside),
            false => Ok(()),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        ALL[self.0].start.store(FREE, Ordering::Release);
    }
}

/// What was done about the signal before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// From now on this process outlives memory that its owner takes away.
///
/// # Errors
/// If the system refuses.
pub fn survive() -> io::Result<()> {
    if BEFORE.get().is_some() {
        return Ok(());
    }
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_bus_error;
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: of integers and pointers all of which may be 0.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: both are valid, and the handler calls nothing but what handlers may call.
    let done = unsafe { libc::sigaction(libc::SIGBUS, &raw const action, before.as_mut_ptr()) };
    if done != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has filled it in.
    let _ = BEFORE.set(unsafe { before.assume_init() });
    Ok(())
}

extern "C" fn on_bus_error(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel hands a valid structure to a handler with SA_SIGINFO.
    let (address, code) = unsafe { ((*info).si_addr() as usize, (*info).si_code) };
    // Others are sent by somebody, and tell no address.
    let is_of_access = code > 0;
    for place in ALL.iter().filter(|_| is_of_access) {
        let start = place.start.load(Ordering::Acquire);
        let bytes = place.bytes.load(Ordering::Acquire);
        if start > TAKEN && start <= address && address - start < bytes {
            // Before there are zeros to be read.
            place.is_lost.store(true, Ordering::SeqCst);
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let flags =
                libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            // SAFETY: all of it is a mapping of this crate's, to which there are no references.
            let mapped = unsafe { libc::mmap(start as *mut _, bytes, access, flags, -1, 0) };
            if mapped != libc::MAP_FAILED {
                return;
            }
        }
    }
    // Not ours: what would have happened happens as the access is tried again, or the signal is sent again.
    // SAFETY: of integers and pointers; `SIG_DFL` is 0.
    let default = || unsafe { std::mem::zeroed() };
    let before = BEFORE.get().copied().unwrap_or_else(default);
    // SAFETY: it is valid, and a handler may do so.
    unsafe {
        libc::sigaction(libc::SIGBUS, &raw const before, std::ptr::null_mut());
        if !is_of_access {
            libc::raise(libc::SIGBUS);
        }
    }
}
