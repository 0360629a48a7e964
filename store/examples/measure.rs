//! Measures the store on this machine; the figures are in docs/store.md.
//!
//! `cargo run --release -p coracle-store --example measure`

use coracle_store::{Change, Config, Durability, Expect, Stamped, Store, Write};
use std::time::Instant;

fn write(key: u64, bytes: usize) -> Write {
    Write {
        partition: "/configmaps".into(),
        key: format!("default/c{key}").into(),
        change: Change::Put(Stamped {
            value: vec![b'x'; bytes],
            revision_at: Some(10),
        }),
        expect: Expect::Any,
        durability: Durability::Synced,
    }
}

fn resident_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kb = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kb.unwrap_or(0) / 1024
}

#[allow(clippy::disallowed_methods, clippy::print_stdout)] // It measures and tells.
#[tokio::main]
async fn main() {
    let directory = tempfile::tempdir().expect("a directory to measure in");
    let store = Store::open(Config::new(directory.path())).expect("an empty store opens");
    for in_flight in [1_u64, 64] {
        let (begun, total) = (Instant::now(), if in_flight == 1 { 5_000 } else { 195_200 });
        let tasks: Vec<_> = (0..in_flight)
            .map(|task| {
                let store = store.clone();
                tokio::spawn(async move {
                    for number in 0..total / in_flight {
                        let key = (number * in_flight + task) % 3000;
                        store.commit(write(key, 1000)).await.expect("a write");
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("a writer");
        }
        let rate = total as f64 / begun.elapsed().as_secs_f64();
        println!("{in_flight} in flight: {rate:.0} synced writes/s");
    }
    println!(
        "3,000 live values of 1 KB after 200,000 writes: {} MB resident, {} MB on disk",
        resident_mb(),
        store.stats().disk_bytes / 1_000_000
    );
    for key in 3000..10_000 {
        store
            .commit(Write {
                durability: Durability::Lazy,
                ..write(key, 1000)
            })
            .await
            .expect("a write");
    }
    store.close().await;
    let begun = Instant::now();
    let store = Store::open(Config::new(directory.path())).expect("the store opens again");
    let stats = store.stats();
    println!(
        "open with 10,000 live values: {:.1} ms",
        begun.elapsed().as_secs_f64() * 1e3
    );
    println!("{stats:?}");
}
