//! What a process does not need goes back to the kernel: of its own file what only the start needed,
//! and after work what it left free in the heap.
//!
//! Starting runs through much of the binary once: checks, key generation, first connections. The
//! pages stay mapped, whole megabytes at a time where the kernel caches the file in large pieces, and
//! count as the process's own until memory is short. Here they are unmapped once the start is over.
//! They remain in the kernel's cache, and what is used is mapped again when touched, page by page.
#![allow(unsafe_code)] // The kernel is told to forget pages that are in the file as they are.

mod heap;
mod touched; // Page by page.

pub use heap::few_arenas;

use procfs::process::{MMPermissions, MemoryMap, Process};
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;
use std::time::Duration;
use touched::Touched;

/// From READY on: checks, keys and first lists are over; then first connections and pods, too.
const START_PARTS: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(25)];
/// How often the heap may be looked through, which its users wait for.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// The part of a processor that a process at rest takes at most.
const REST_MAX: f64 = 0.1;

/// Ready; what the start needed is given back after a while, and from then on what work left.
pub fn soon() {
    tokio::spawn(async {
        for part in START_PARTS {
            tokio::time::sleep(part).await;
            match give_back() {
                Ok(bytes) => tracing::debug!(bytes, "pages of the start are unmapped"),
                // A kernel without smaps: the process is larger than it need be.
                Err(error) => tracing::debug!(%error, "pages of the start stay mapped"),
            }
        }
        loop {
            heap::give_back();
            until_at_rest().await;
        }
    });
}

/// A while in which little was done.
async fn until_at_rest() {
    loop {
        let before = processor_time();
        tokio::time::sleep(LOOK_EVERY).await;
        let (Some(before), Some(now)) = (before, processor_time()) else {
            continue;
        };
        if now.saturating_sub(before) < LOOK_EVERY.mul_f64(REST_MAX) {
            return;
        }
    }
}

fn processor_time() -> Option<Duration> {
    let stat = Process::myself().ok()?.stat().ok()?;
    let ticks = stat.utime + stat.stime;
    Some(Duration::from_secs(ticks) / u32::try_from(procfs::ticks_per_second()).ok()?)
}

/// The size of the mappings that were given back.
fn give_back() -> anyhow::Result<u64> {
    let inode = std::fs::metadata("/proc/self/exe")?.ino();
    let maps = Process::myself()?.smaps()?;
    let touched = touched_for_ever();
    let mut bytes = 0u64;
    for map in maps.iter().filter(|map| is_as_in_file(map, inode)) {
        let (start, end) = map.address;
        if let Some(Err(error)) = touched.map(|touched| touched.register(start, end - start)) {
            tracing::debug!(%error, "the binary is mapped in pieces of several pages");
        }
        let length = usize::try_from(end - start)?;
        let from = std::ptr::with_exposed_provenance_mut(usize::try_from(start)?);
        // SAFETY: nothing in the mapping differs from the file, which cannot be written to while it
        // runs: what is touched again reads the same.
        let done = unsafe {
            // One touch would map megabytes again. Kernels without such pages know no such advice.
            libc::madvise(from, length, libc::MADV_NOHUGEPAGE);
            libc::madvise(from, length, libc::MADV_DONTNEED)
        };
        if done != 0 {
            return Err(std::io::Error::last_os_error().into());
        }
        bytes += end - start;
    }
    Ok(bytes)
}

/// None where the kernel cannot.
fn touched_for_ever() -> Option<&'static Touched> {
    static TOUCHED: OnceLock<Option<Touched>> = OnceLock::new();
    let new = || {
        let touched = Touched::new();
        touched
            .inspect_err(
                |error| tracing::debug!(%error, "this kernel maps pieces of several pages"),
            )
            .ok()
    };
    TOUCHED.get_or_init(new).as_ref()
}

/// Of the binary, never written to, and without a page that was: data made read-only later has some.
fn is_as_in_file(map: &MemoryMap, inode: u64) -> bool {
    let is_clean = map.extension.map.get("Anonymous") == Some(&0);
    map.inode == inode && is_clean && !map.perms.contains(MMPermissions::WRITE)
}

#[cfg(test)]
mod tests {
    use super::give_back;

    #[test]
    fn the_binary_runs_on_without_its_pages() {
        let text = include_str!("settled.rs");
        let words = || text.split_whitespace().map(str::len).collect::<Vec<_>>();
        let before = words();
        // Text and read-only data at least.
        assert!(give_back().unwrap() > 100_000);
        assert_eq!(words(), before);
        assert!(give_back().is_ok());
    }
}
