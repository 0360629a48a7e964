//! An allocator that counts: how much is in use, and how often it was asked.
#![allow(unsafe_code)] // An allocator can only be written so.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static ASKED: AtomicUsize = AtomicUsize::new(0);

/// What a piece takes of the heap of glibc: a word before it, in steps of 16 bytes.
const fn taken(bytes: usize) -> usize {
    match (bytes + 8).next_multiple_of(16) {
        16 => 32,
        enough => enough,
    }
}

// SAFETY: everything is passed on to the system's allocator; only numbers are kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(taken(layout.size()), Ordering::Relaxed);
        ASKED.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(taken(layout.size()), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes in use.
pub fn live() -> usize {
    LIVE.load(Ordering::Relaxed)
}

/// How often something was asked for.
pub fn asked() -> usize {
    ASKED.load(Ordering::Relaxed)
}
