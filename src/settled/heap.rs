//! What is free of the heap goes back to the kernel.
//!
//! The allocator gives back pages a while after they are free, and looks at that when it is asked for
//! memory: a process that came to rest would keep what its last work left.
#![allow(unsafe_code)] // Functions of the allocators.

/// More only where more threads allocate at the same time.
const ARENAS_MAX: usize = 4;

/// Before there are threads. What is written in C asks glibc, which makes an arena for every thread,
/// up to eight a processor.
pub fn few_arenas() {
    let processors = std::thread::available_parallelism().map_or(1, Into::into);
    let arenas = i32::try_from(processors.min(ARENAS_MAX)).expect("there are few");
    // SAFETY: it sets a number.
    #[cfg(target_env = "gnu")]
    if unsafe { libc::mallopt(libc::M_ARENA_MAX, arenas) } == 0 {
        tracing::debug!(arenas, "the allocator makes as many arenas as it likes");
    }
}

pub fn give_back() {
    // SAFETY: it touches free memory only.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

#[cfg(test)]
mod tests {
    use super::give_back;

    const PIECES: usize = 1 << 16;

    fn resident_kib() -> u64 {
        let status = procfs::process::Process::myself().unwrap().status();
        status.unwrap().rssanon.unwrap()
    }

    #[test]
    fn what_is_free_goes_back_at_once() {
        let pieces: Vec<_> = (0..PIECES).map(|_| vec![1_u8; 1000]).collect();
        let full = resident_kib();
        drop(pieces);
        give_back();
        let left = resident_kib();
        assert!(left + 48 * 1024 < full, "{full} KiB before, {left} after");
    }
}
