//! What is free of the heap goes back to the kernel.
//!
//! glibc makes an arena for every thread, up to eight a processor, and gives back only what is free at
//! an arena's end. An agent that ran a hundred pods at a time kept twenty megabytes of holes.
#![allow(unsafe_code)] // Functions of the allocator.

/// More only where more threads allocate at the same time.
const ARENAS_MAX: usize = 4;

/// Before there are threads.
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
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::give_back;

    const PIECES: usize = 1 << 16;

    fn resident_kib() -> u64 {
        let status = procfs::process::Process::myself().unwrap().status();
        status.unwrap().rssanon.unwrap()
    }

    #[cfg(target_env = "gnu")]
    #[test]
    fn holes_go_back() {
        let mut pieces: Vec<_> = (0..PIECES).map(|_| vec![1_u8; 1000]).collect();
        let full = resident_kib();
        // Every sixteenth stays: none of the holes is at an end.
        let mut place = 0;
        pieces.retain(|_| {
            place += 1;
            place % 16 == 0
        });
        give_back();
        let left = resident_kib();
        assert!(left + 32 * 1024 < full, "{full} KiB before, {left} after");
        assert_eq!(pieces.len(), PIECES / 16);
    }
}
