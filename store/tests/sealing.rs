//! What is sealed is nowhere on the disk in plain, and what was sealed otherwise is written anew.

#![allow(clippy::unwrap_used)]

use coracle_store::{
    Change, Config, Durability, EventKind, Expect, OpenError, Revision, Stamped, Store, Write,
    restore_newest_snapshot,
};
use flip::{Flip, SEALED, flipped};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

#[path = "support/flip.rs"]
mod flip;

const PLAIN: &str = "/configmaps";
/// Long enough that chance does not write it.
const MARKER: &str = "hunter2-correct-horse";

fn config(directory: &Path, seal: Option<&Arc<Flip>>) -> Config {
    Config {
        tick: Duration::from_millis(50),
        seal: seal.map(|seal| Arc::clone(seal) as Arc<dyn coracle_store::Seal>),
        ..Config::new(directory)
    }
}

fn put(partition: &str, key: &str, value: &str) -> Write {
    Write {
        partition: partition.into(),
        key: key.into(),
        change: Change::Put(Stamped {
            value: value.as_bytes().to_vec(),
            revision_at: None,
        }),
        expect: Expect::Any,
        durability: Durability::Synced,
    }
}

fn delete(partition: &str, key: &str, last: &str) -> Write {
    let Change::Put(stamped) = put(partition, key, last).change else {
        unreachable!();
    };
    Write {
        change: Change::Delete(stamped),
        ..put(partition, key, last)
    }
}

/// How many files under a directory hold these bytes.
fn files_with(directory: &Path, bytes: &[u8]) -> usize {
    let mut count = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            count += files_with(&path, bytes);
        } else {
            let content = std::fs::read(&path).unwrap();
            count += usize::from(content.windows(bytes.len()).any(|window| window == bytes));
        }
    }
    count
}

/// A value that was written over, one that is there, one that is gone, and one too large for the
/// log of the database.
async fn fill(store: &Store, partition: &str) {
    for (key, more) in [("a", "old"), ("a", "new"), ("b", "last"), ("c", "large")] {
        let filling = match more {
            "large" => "x".repeat(600_000),
            _ => String::new(),
        };
        let value = format!("{MARKER} {more} {filling}");
        store.commit(put(partition, key, &value)).await.unwrap();
    }
    let last = format!("{MARKER} gone");
    store.commit(delete(partition, "b", &last)).await.unwrap();
}

fn shown(store: &Store, partition: &str) -> Vec<String> {
    let snapshot = store.snapshot(partition);
    let all = snapshot.iter().map(|(key, entry)| {
        let value = String::from_utf8_lossy(&entry.value).into_owned();
        format!("{key} {} {}", entry.modified, value.trim_end_matches('x'))
    });
    all.collect()
}

/// The kinds and values of everything that happened after a revision.
async fn history(store: &Store, partition: &str, after: Revision, count: usize) -> Vec<String> {
    let mut watch = store.watch(partition, after).unwrap();
    let mut seen = Vec::new();
    for _ in 0..count {
        let event = tokio::time::timeout(Duration::from_secs(20), watch.next()).await;
        let event = event.unwrap().unwrap();
        let was = event.previous.as_ref().map(|entry| entry.value.len());
        let is_gone = event.kind == EventKind::Deleted;
        seen.push(format!(
            "{} {} gone={is_gone} {} {was:?}",
            event.revision,
            event.key,
            event.value.len()
        ));
        assert!(event.value.starts_with(MARKER.as_bytes()));
    }
    seen
}

#[tokio::test]
async fn what_is_sealed_is_nowhere_in_plain_and_is_there_again_after_a_start() {
    let directory = tempfile::tempdir().unwrap();
    let seal = Arc::new(Flip::new(1));
    let store = Store::open(config(directory.path(), Some(&seal))).unwrap();
    let before = store.revision();
    fill(&store, SEALED).await;
    let (values, events) = (
        shown(&store, SEALED),
        history(&store, SEALED, before, 5).await,
    );
    store.write_snapshot().await.unwrap();
    store.close().await;
    assert_eq!(files_with(directory.path(), MARKER.as_bytes()), 0);
    assert!(files_with(directory.path(), &flipped(1, MARKER.as_bytes())) >= 3);
    let store = Store::open(config(directory.path(), Some(&seal))).unwrap();
    assert_eq!(store.stale(), 0);
    assert_eq!(shown(&store, SEALED), values);
    assert_eq!(history(&store, SEALED, before, 5).await, events);
    // The search finds what is there.
    fill(&store, PLAIN).await;
    store.close().await;
    assert!(files_with(directory.path(), MARKER.as_bytes()) >= 1);
}

#[tokio::test]
async fn plain_values_of_before_are_read_and_written_anew_with_all_their_history() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(config(directory.path(), None)).unwrap();
    let before = store.revision();
    fill(&store, SEALED).await;
    let (values, events) = (
        shown(&store, SEALED),
        history(&store, SEALED, before, 5).await,
    );
    store.write_snapshot().await.unwrap();
    store.close().await;
    let seal = Arc::new(Flip::new(1));
    let store = Store::open(config(directory.path(), Some(&seal))).unwrap();
    assert_eq!(store.stale(), 5);
    assert!(files_with(directory.path(), MARKER.as_bytes()) >= 3);
    let mut watch = store.watch(SEALED, store.revision()).unwrap();
    let done = store.rewrite().await.unwrap();
    assert_eq!((done.snapshots, done.unreadable), (1, Vec::new()));
    assert_eq!(files_with(directory.path(), MARKER.as_bytes()), 0);
    assert_eq!(shown(&store, SEALED), values);
    assert_eq!(history(&store, SEALED, before, 5).await, events);
    // Writes and watches go on in the new database.
    store.commit(put(SEALED, "d", MARKER)).await.unwrap();
    assert_eq!(&*watch.next().await.unwrap().key, "d");
    let values = shown(&store, SEALED);
    // Who watches holds the database.
    drop(watch);
    store.close().await;
    let store = Store::open(config(directory.path(), Some(&seal))).unwrap();
    assert_eq!((store.stale(), shown(&store, SEALED)), (0, values));
    store.close().await;
    assert_eq!(files_with(directory.path(), MARKER.as_bytes()), 0);
}

#[tokio::test]
async fn nothing_of_an_old_key_is_left_after_a_rotation_under_load() {
    let directory = tempfile::tempdir().unwrap();
    let seal = Arc::new(Flip::new(1));
    let store = Store::open(config(directory.path(), Some(&seal))).unwrap();
    fill(&store, SEALED).await;
    store.write_snapshot().await.unwrap();
    for number in 0..1500 {
        let write = put(PLAIN, &format!("k{number}"), "v");
        store.commit(write).await.unwrap();
    }
    for key in [2, 3] {
        seal.key.store(key, Ordering::SeqCst);
        let (busy, rewritten) = (store.clone(), store.rewrite());
        let writing = async {
            for number in 0..200 {
                let write = put(SEALED, &format!("w{number}"), MARKER);
                busy.commit(write).await.unwrap();
            }
        };
        let (done, ()) = tokio::join!(rewritten, writing);
        assert!(done.unwrap().records > 1500);
        seal.oldest.store(key, Ordering::SeqCst);
        let old = flipped(key - 1, MARKER.as_bytes());
        assert_eq!(files_with(directory.path(), &old), 0);
    }
    let values = shown(&store, SEALED);
    store.close().await;
    let store = Store::open(config(directory.path(), Some(&seal))).unwrap();
    assert_eq!((store.stale(), shown(&store, SEALED)), (0, values));
    assert_eq!(store.snapshot(PLAIN).len(), 1500);
    store.close().await;
    restore_newest_snapshot(directory.path(), Some(seal), Revision(0)).unwrap();
}

#[tokio::test]
async fn a_store_whose_key_is_lost_is_named_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let seal = Arc::new(Flip::new(5));
    let store = Store::open(config(directory.path(), Some(&seal))).unwrap();
    fill(&store, SEALED).await;
    let values = shown(&store, SEALED);
    let file = store.write_snapshot().await.unwrap();
    store.close().await;
    for seal in [Some(Arc::new(Flip::new(4))), None] {
        let refused = Store::open(config(directory.path(), seal.as_ref())).unwrap_err();
        assert!(matches!(refused, OpenError::Sealed { .. }), "{refused}");
        let text = refused.to_string();
        assert!(text.contains("/secrets a: it is sealed"), "{text}");
        assert!(!text.contains("--restore-snapshot"), "{text}");
        let seal = seal.map(|seal| seal as Arc<dyn coracle_store::Seal>);
        let refused = restore_newest_snapshot(directory.path(), seal, Revision(0)).unwrap_err();
        assert!(refused.to_string().contains(&file.display().to_string()));
    }
    let store = Store::open(config(directory.path(), Some(&seal))).unwrap();
    assert_eq!(shown(&store, SEALED), values);
    store.close().await;
}

#[tokio::test]
async fn a_store_that_was_written_anew_is_restored_like_any_other() {
    let directory = tempfile::tempdir().unwrap();
    let seal = Arc::new(Flip::new(1));
    let store = Store::open(config(directory.path(), Some(&seal))).unwrap();
    fill(&store, SEALED).await;
    store.rewrite().await.unwrap();
    store.write_snapshot().await.unwrap();
    let keys = store.snapshot(SEALED).len();
    store.close().await;
    // Without its mark nothing says which database counts: it does not begin empty.
    let (mark, aside) = (
        directory.path().join("mark"),
        directory.path().join("aside"),
    );
    std::fs::rename(&mark, &aside).unwrap();
    let refused = Store::open(config(directory.path(), Some(&seal))).unwrap_err();
    assert!(refused.to_string().contains("its mark is missing"));
    std::fs::rename(&aside, &mark).unwrap();
    let as_seal: Arc<dyn coracle_store::Seal> = Arc::clone(&seal) as _;
    restore_newest_snapshot(directory.path(), Some(as_seal), Revision(0)).unwrap();
    let store = Store::open(config(directory.path(), Some(&seal))).unwrap();
    assert_eq!(store.snapshot(SEALED).len(), keys);
    assert!(directory.path().join("database.replaced-0").exists());
    store.close().await;
}
