//! Measures what a snapshot costs those who write meanwhile; the figures are in docs/snapshots.md.
//!
//! `cargo run --release -p coracle-store --example stall`

use coracle_store::{Change, Config, Durability, Expect, Stamped, Store, Write};
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const VALUES: u64 = 50_000;
const VALUE_BYTES: usize = 1000;
const IN_FLIGHT: u64 = 16;
/// Each phase takes at least as long.
const PHASE: Duration = Duration::from_secs(10);

fn write(key: u64, durability: Durability) -> Write {
    Write {
        partition: "/configmaps".into(),
        key: format!("default/c{key}").into(),
        change: Change::Put(Stamped {
            value: vec![b'x'; VALUE_BYTES],
            revision_at: Some(10),
        }),
        expect: Expect::Any,
        durability,
    }
}

/// How long each synced write took, of some writers at the same time, until `until` is over.
#[allow(clippy::disallowed_methods)] // It measures.
async fn took(store: &Store, until: impl Future<Output = ()>) -> Vec<Duration> {
    let stop = Arc::<AtomicBool>::default();
    let writers: Vec<_> = (0..IN_FLIGHT)
        .map(|writer| {
            let (store, stop) = (store.clone(), stop.clone());
            tokio::spawn(async move {
                let mut all = Vec::new();
                let mut key = writer;
                while !stop.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    let done = store.commit(write(key, Durability::Synced)).await;
                    done.expect("a write");
                    all.push(begun.elapsed());
                    key = (key + IN_FLIGHT) % VALUES;
                }
                all
            })
        })
        .collect();
    until.await;
    stop.store(true, Ordering::Relaxed);
    let mut all = Vec::new();
    for writer in writers {
        all.extend(writer.await.expect("a writer"));
    }
    all.sort();
    all
}

/// Repeats until the phase is over.
#[allow(clippy::disallowed_methods, clippy::print_stdout)] // It measures and tells.
async fn again<F: Future<Output = ()>>(mut once: impl FnMut() -> F) {
    let (begun, mut count) = (Instant::now(), 0);
    while begun.elapsed() < PHASE {
        once().await;
        count += 1;
    }
    println!("{count} snapshots of {VALUES} values of {VALUE_BYTES} bytes, one after the other:");
}

#[allow(clippy::print_stdout)] // It tells.
fn tell(what: &str, all: &[Duration]) {
    let at = |part: f64| all[((all.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
    println!(
        "{what}: {} writes, p50 {:.2} ms, p99 {:.2} ms, p99.9 {:.2} ms, longest {:.2} ms",
        all.len(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
}

async fn save(store: &Store, file: &Path) {
    let frozen = store.freeze().await.expect("the store is open");
    let file = file.to_owned();
    let written = tokio::task::spawn_blocking(move || {
        let out = std::fs::File::create(file)?;
        frozen.write(BufWriter::new(out))
    });
    written.await.expect("it ends").expect("it is written");
}

#[tokio::main]
async fn main() {
    let directory = tempfile::tempdir().expect("a directory to measure in");
    let config = Config {
        snapshot_every: Duration::ZERO,
        ..Config::new(directory.path())
    };
    let store = Store::open(config).expect("an empty store opens");
    for key in 0..VALUES {
        let done = store.commit(write(key, Durability::Lazy)).await;
        done.expect("a write");
    }
    let quiet = took(&store, tokio::time::sleep(PHASE)).await;
    tell("no snapshot", &quiet);
    let once = || async { drop(store.write_snapshot().await.expect("a snapshot")) };
    let ring = took(&store, again(once)).await;
    tell("  of the ring", &ring);
    let file = directory.path().join("saved");
    let saved = took(&store, again(|| save(&store, &file))).await;
    tell("  as a client saves one", &saved);
    store.close().await;
}
