//! A word to the processor about memory that is needed soon.
//!
//! Of a drive of real size each entry of the address map misses the processor's caches. What is asked for when a command
//! comes is there when the command's turn does; nothing is waited for in between, as a load would be.

/// Brings an element close, if there is one of that number. Changes nothing but how long the next look at it takes.
#[inline(always)]
pub fn prefetch<T>(list: &[T], index: usize) {
    if let Some(element) = list.get(index) {
        bring(element);
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn bring<T>(element: &T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: the instruction reads nothing that a program could see and faults at no address; every x86-64 processor has it.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(element).cast()) }
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn bring<T>(element: &T) {
    // SAFETY: as for x86-64: a hint, which touches no register, flag or memory that a program could see.
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{0}]",
            in(reg) std::ptr::from_ref(element),
            options(nostack, preserves_flags, readonly)
        );
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
fn bring<T>(_element: &T) {}

#[cfg(test)]
mod tests {
    use super::prefetch;

    #[test]
    fn what_is_there_and_what_is_not_may_be_asked_for() {
        let list = [1u32, 2, 3];
        for index in [0, 2, 3, usize::MAX] {
            prefetch(&list, index);
        }
        prefetch::<u64>(&[], 0);
        assert_eq!(list, [1, 2, 3]);
    }
}
