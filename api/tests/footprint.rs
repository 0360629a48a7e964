//! What the schema costs in memory: little while it is only used to decode, and what OpenAPI
//! documents take is given back. `--nocapture` shows the figures.
#![allow(unsafe_code)] // An allocator can only be written so; this one counts.
#![allow(clippy::print_stdout)] // The figures are for people.

use coracle_api::custom::Kinds;
use coracle_api::openapi::{self, Form};
use coracle_api::{protobuf, schema};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator; only numbers are kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What stays and what was the most while `work` ran, in KiB above what there was before.
fn cost<T>(work: impl FnOnce() -> T) -> (usize, usize) {
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    drop(work());
    let stays = LIVE.load(Ordering::Relaxed).saturating_sub(before);
    let peak = PEAK.load(Ordering::Relaxed).saturating_sub(before);
    (stays / 1024, peak / 1024)
}

/// The one test of this file: others beside it would be counted, too.
#[test]
fn the_schema_is_small_and_documents_are_given_back() {
    let (schema_kib, _) = cost(|| {
        assert!(schema::schema().types().count() > 500);
        assert!(schema::kinds().len() > 100);
        assert!(protobuf::knows("io.k8s.api.core.v1.Pod"));
    });
    let first = openapi::v2_hash(&Kinds::default()); // Computed once and kept.
    let (v2_kib, v2_peak_kib) = cost(|| openapi::v2(&Kinds::default(), Form::Json).len());
    let (v3_kib, v3_peak_kib) =
        cost(|| openapi::v3_group(&Kinds::default(), "api/v1", Form::Protobuf));
    println!("schema, kinds and protobuf: {schema_kib} KiB stay");
    println!("OpenAPI v2 in JSON: {v2_kib} KiB stay, {v2_peak_kib} KiB at most");
    println!("OpenAPI v3 of v1 in protobuf: {v3_kib} KiB stay, {v3_peak_kib} KiB at most");
    assert_eq!(openapi::v2_hash(&Kinds::default()), first);
    assert!(schema_kib < 1024, "{schema_kib} KiB");
    assert!(v2_kib < 16 && v3_kib < 16, "{v2_kib} and {v3_kib} KiB stay");
    assert!(v2_peak_kib < 10 * 1024, "{v2_peak_kib} KiB");
}
