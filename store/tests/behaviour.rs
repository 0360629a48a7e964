//! What the store promises, shown on a real directory.

#![allow(clippy::unwrap_used)]

use coracle_store::{
    Change, CommitError, Config, Durability, EventKind, Expect, OpenError, RestoreError, Revision,
    SnapshotContents, SnapshotError, Stamped, Store, Watch, WatchError, Write, read_snapshot,
    restore_newest_snapshot, restore_snapshot,
};
use std::time::Duration;

fn config(directory: &std::path::Path) -> Config {
    Config {
        tick: Duration::from_millis(50),
        ..Config::new(directory)
    }
}

fn put(key: &str, value: &str, expect: Expect) -> Write {
    Write {
        partition: "apps/deployments".into(),
        key: key.into(),
        change: Change::Put(Stamped {
            value: value.as_bytes().to_vec(),
            revision_at: None,
        }),
        expect,
        durability: Durability::Synced,
    }
}

fn delete(key: &str, expect: Expect) -> Write {
    let change = Change::Delete(Stamped {
        value: b"last".to_vec(),
        revision_at: None,
    });
    Write {
        change,
        ..put(key, "", expect)
    }
}

fn shown(store: &Store) -> Vec<String> {
    let snapshot = store.snapshot("apps/deployments");
    let line = |(key, entry): (&std::sync::Arc<str>, &coracle_store::Entry)| {
        format!("{key}={}", String::from_utf8_lossy(&entry.value))
    };
    snapshot.iter().map(line).collect()
}

async fn next(watch: &mut Watch) -> String {
    let event = tokio::time::timeout(Duration::from_secs(20), watch.next())
        .await
        .unwrap()
        .unwrap();
    let previous = event.previous.as_ref().map_or("-".into(), |entry| {
        String::from_utf8_lossy(&entry.value).into_owned()
    });
    let kind = match event.kind {
        EventKind::Added => "added",
        EventKind::Modified => "modified",
        EventKind::Deleted => "deleted",
    };
    let value = String::from_utf8_lossy(&event.value).into_owned();
    format!(
        "{} {kind} {}={value} was {previous}",
        event.revision, event.key
    )
}

#[tokio::test]
async fn preconditions_decide_and_a_refused_write_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(config(directory.path())).unwrap();
    let first = store.commit(put("a", "1", Expect::Absent)).await.unwrap();
    let refused = store.commit(put("a", "2", Expect::Absent)).await;
    assert_eq!(refused, Err(CommitError::Exists { at: first }));
    let refused = store.commit(put("b", "2", Expect::Present)).await;
    assert_eq!(refused, Err(CommitError::NotFound));
    let refused = store.commit(put("a", "2", Expect::At(Revision(99)))).await;
    assert_eq!(
        refused,
        Err(CommitError::Conflict {
            current: Some(first)
        })
    );
    assert_eq!(
        store.commit(delete("b", Expect::Any)).await,
        Err(CommitError::NotFound)
    );
    assert_eq!(store.revision(), first, "nothing refused used a revision");
    let second = store
        .commit(put("a", "2", Expect::At(first)))
        .await
        .unwrap();
    assert_eq!(second, first.next());
    let large = vec![b'x'; 9 * 1024 * 1024];
    let change = Change::Put(Stamped {
        value: large,
        revision_at: None,
    });
    let refused = store
        .commit(Write {
            change,
            ..put("c", "", Expect::Any)
        })
        .await;
    assert!(matches!(refused, Err(CommitError::TooLarge { .. })));
    let long = store.commit(put(&"k".repeat(5000), "", Expect::Any)).await;
    assert!(matches!(long, Err(CommitError::TooLarge { .. })));
}

#[tokio::test]
async fn a_group_is_done_whole_or_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(config(directory.path())).unwrap();
    let other = |value: &str, expect: Expect| Write {
        partition: "/quotas".into(),
        ..put("q", value, expect)
    };
    let group = vec![put("a", "1", Expect::Absent), other("1", Expect::Absent)];
    let done = store.commit_all(group).await.unwrap();
    assert_eq!(done, [Revision(done[0].0), done[0].next()]);
    let group = vec![
        put("b", "1", Expect::Absent),
        other("2", Expect::At(done[0])),
    ];
    let refused = store.commit_all(group).await.unwrap_err();
    assert_eq!(refused.place, 1);
    let current = Some(done[1]);
    assert_eq!(refused.error, CommitError::Conflict { current });
    assert_eq!(store.revision(), done[1], "nothing refused used a revision");
    assert_eq!(shown(&store), ["a=1"]);
    let group = vec![
        put("b", "1", Expect::Absent),
        other("2", Expect::At(done[1])),
    ];
    store.commit_all(group).await.unwrap();
    store.close().await;
    let store = Store::open(config(directory.path())).unwrap();
    assert_eq!(shown(&store), ["a=1", "b=1"]);
    assert_eq!(&store.snapshot("/quotas").get("q").unwrap().value[..], b"2");
}

/// Who reads one part of a group and then the other never finds an older state there.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_group_is_seen_whole_in_either_order() {
    const ROUNDS: u64 = 200;
    const PLACES: [&str; 2] = ["/left", "/right"];
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(config(directory.path())).unwrap();
    let round_in = |store: &Store, partition: &str| {
        let snapshot = store.snapshot(partition);
        let value = snapshot.get("n").map(|entry| entry.value.clone());
        value.map_or(0, |value| {
            std::str::from_utf8(&value).unwrap().parse().unwrap()
        })
    };
    let mut readers = tokio::task::JoinSet::new();
    for [first, second] in [PLACES, [PLACES[1], PLACES[0]]] {
        let store = store.clone();
        readers.spawn_blocking(move || {
            loop {
                let (one, other): (u64, u64) = (round_in(&store, first), round_in(&store, second));
                assert!(
                    other >= one,
                    "{second} was at {other} when {first} was at {one}"
                );
                if one == ROUNDS {
                    return;
                }
            }
        });
    }
    for round in 1..=ROUNDS {
        let write = |partition: &&str| Write {
            partition: (*partition).into(),
            durability: Durability::Lazy,
            ..put("n", &round.to_string(), Expect::Any)
        };
        let group = PLACES.iter().map(write).collect();
        store.commit_all(group).await.unwrap();
    }
    while let Some(done) = readers.join_next().await {
        done.unwrap();
    }
}

#[tokio::test]
async fn the_revision_is_written_into_the_value() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(config(directory.path())).unwrap();
    let stamped = Stamped {
        value: br#"{"rv":""}"#.to_vec(),
        revision_at: Some(7),
    };
    let write = Write {
        change: Change::Put(stamped),
        ..put("a", "", Expect::Any)
    };
    let revision = store.commit(write).await.unwrap();
    assert_eq!(shown(&store), [format!("a={{\"rv\":\"{revision}\"}}")]);
}

#[tokio::test]
async fn a_watcher_sees_everything_after_its_revision_also_across_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(config(directory.path())).unwrap();
    let begun = store.revision();
    let mut live = store.watch("apps/deployments", begun).unwrap();
    let one = store.commit(put("a", "1", Expect::Any)).await.unwrap();
    let two = store.commit(put("a", "2", Expect::Any)).await.unwrap();
    let three = store.commit(delete("a", Expect::Any)).await.unwrap();
    let story = [
        format!("{one} added a=1 was -"),
        format!("{two} modified a=2 was 1"),
        format!("{three} deleted a=last was 2"),
    ];
    for line in &story {
        assert_eq!(&next(&mut live).await, line);
    }
    assert_eq!(live.revision(), three);
    store.close().await;
    assert!(live.next().await.is_err(), "the watch ends with the store");
    drop(live);

    let store = Store::open(config(directory.path())).unwrap();
    assert_eq!(store.revision(), three, "a clean stop leaves no gap");
    let mut resumed = store.watch("apps/deployments", one).unwrap();
    assert_eq!(next(&mut resumed).await, story[1]);
    assert_eq!(next(&mut resumed).await, story[2]);
    let four = store.commit(put("b", "1", Expect::Any)).await.unwrap();
    assert_eq!(next(&mut resumed).await, format!("{four} added b=1 was -"));
    let elsewhere = Write {
        partition: "/pods".into(),
        ..put("x", "1", Expect::Any)
    };
    let five = store.commit(elsewhere).await.unwrap();
    assert_eq!(
        resumed.revision(),
        five,
        "a bookmark moves while nothing happens here"
    );
    let future = store.watch("apps/deployments", Revision(five.0 + 1));
    assert!(matches!(future, Err(WatchError::Future { .. })));
}

#[tokio::test]
async fn old_states_are_read_until_they_are_compacted() {
    let directory = tempfile::tempdir().unwrap();
    let small = Config {
        history_events_max: 2,
        ..config(directory.path())
    };
    let store = Store::open(small).unwrap();
    let mut revisions = Vec::new();
    for number in 0..10 {
        let value = number.to_string();
        revisions.push(store.commit(put("a", &value, Expect::Any)).await.unwrap());
        store
            .commit(put(&format!("k{number}"), &value, Expect::Any))
            .await
            .unwrap();
    }
    for (number, revision) in revisions.iter().enumerate() {
        let snapshot = store.snapshot_at("apps/deployments", *revision).unwrap();
        assert_eq!(
            snapshot.get("a").unwrap().value,
            number.to_string().as_bytes()
        );
        assert_eq!(snapshot.get("a").unwrap().modified, *revision);
        assert_eq!(snapshot.len(), number + 1);
    }
    store.compact(revisions[5]).await.unwrap();
    let gone = store.snapshot_at("apps/deployments", revisions[4]);
    let oldest = revisions[5];
    assert_eq!(
        gone.unwrap_err(),
        SnapshotError::Compacted {
            asked: revisions[4],
            oldest
        }
    );
    let kept = store.snapshot_at("apps/deployments", revisions[5]).unwrap();
    assert_eq!(kept.get("a").unwrap().value, "5");
    let watch = store.watch("apps/deployments", revisions[4]);
    assert!(matches!(watch, Err(WatchError::Compacted { .. })));
    let mut watch = store.watch("apps/deployments", revisions[5]).unwrap();
    assert!(next(&mut watch).await.ends_with("added k5=5 was -"));
    assert!(next(&mut watch).await.ends_with("modified a=6 was 5"));
}

#[tokio::test]
async fn old_states_are_read_for_a_time_alone_and_watched_from_for_longer() {
    let directory = tempfile::tempdir().unwrap();
    let brief = Config {
        tick: Duration::from_millis(5),
        mark_every: Duration::ZERO,
        read_time: Duration::from_millis(20),
        ..Config::new(directory.path())
    };
    let store = Store::open(brief).unwrap();
    let first = store.commit(put("a", "1", Expect::Any)).await.unwrap();
    let second = store.commit(put("a", "2", Expect::Any)).await.unwrap();
    let ended = async {
        loop {
            match store.snapshot_at("apps/deployments", first) {
                Ok(_) => tokio::task::yield_now().await,
                Err(error) => break error,
            }
        }
    };
    let error = tokio::time::timeout(Duration::from_secs(20), ended).await;
    let (asked, oldest) = (first, second);
    assert_eq!(error.unwrap(), SnapshotError::Compacted { asked, oldest });
    let newest = store.snapshot_at("apps/deployments", second).unwrap();
    assert_eq!(newest.get("a").unwrap().value, "2", "however old it is");
    let mut watch = store.watch("apps/deployments", first).unwrap();
    assert!(next(&mut watch).await.ends_with("modified a=2 was 1"));
}

#[tokio::test]
async fn a_slow_watcher_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let small = Config {
        history_events_max: 4,
        ..config(directory.path())
    };
    let store = Store::open(small).unwrap();
    let mut watch = store.watch("apps/deployments", store.revision()).unwrap();
    store.commit(put("a", "0", Expect::Any)).await.unwrap();
    next(&mut watch).await;
    for number in 1..20 {
        store
            .commit(put("a", &number.to_string(), Expect::Any))
            .await
            .unwrap();
    }
    assert_eq!(watch.next().await, Err(coracle_store::WatchClosed::TooSlow));
}

#[tokio::test]
async fn lazy_writes_are_visible_at_once_and_on_disk_later() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(config(directory.path())).unwrap();
    let flushes = store.stats().flushes;
    let lazy = Write {
        durability: Durability::Lazy,
        ..put("a", "1", Expect::Any)
    };
    store.commit(lazy).await.unwrap();
    assert_eq!(shown(&store), ["a=1"]);
    assert_eq!(store.stats().flushes, flushes);
    store.commit(put("b", "1", Expect::Any)).await.unwrap();
    assert_eq!(store.stats().flushes, flushes + 1, "one flush takes both");
    store.close().await;
    let store = Store::open(config(directory.path())).unwrap();
    assert_eq!(shown(&store), ["a=1", "b=1"]);
}

#[tokio::test]
async fn two_processes_cannot_use_one_store() {
    let directory = tempfile::tempdir().unwrap();
    let _store = Store::open(config(directory.path())).unwrap();
    let mut second = config(directory.path());
    second.lock_wait = Duration::ZERO;
    assert!(matches!(Store::open(second), Err(OpenError::InUse { .. })));
}

#[tokio::test]
async fn a_store_that_is_let_go_a_moment_later_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    Store::open(config(directory.path())).unwrap().close().await;
    let held = std::fs::File::open(directory.path().join("lock")).unwrap();
    held.lock().unwrap();
    // What a killed process was starting has its files until it runs.
    let mut child = std::process::Command::new("cat")
        .stdin(std::process::Stdio::piped())
        .stdout(held)
        .spawn()
        .unwrap();
    let mut second = config(directory.path());
    second.lock_wait = Duration::ZERO;
    assert!(matches!(
        Store::open(second.clone()),
        Err(OpenError::InUse { .. })
    ));
    second.lock_wait = Duration::from_secs(60);
    let opening = std::thread::spawn(move || Store::open(second));
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(opening.join().unwrap().is_ok());
}

#[tokio::test]
async fn a_damaged_store_is_refused_and_restored_from_its_snapshot() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(config(directory.path())).unwrap();
    for number in 0..200 {
        store
            .commit(put(&format!("k{number:03}"), &"v".repeat(500), Expect::Any))
            .await
            .unwrap();
    }
    let last = store.revision();
    let file = store.write_snapshot().await.unwrap();
    store.close().await;

    let database = directory.path().join("database/db");
    let mut bytes = std::fs::read(&database).unwrap();
    for place in (0..bytes.len()).step_by(97) {
        bytes[place] ^= 0x55;
    }
    std::fs::write(&database, bytes).unwrap();
    let error = Store::open(config(directory.path())).unwrap_err();
    assert!(error.to_string().contains("--restore-snapshot"), "{error}");

    assert_eq!(
        restore_newest_snapshot(directory.path(), None, Revision(0)).unwrap(),
        file
    );
    let store = Store::open(config(directory.path())).unwrap();
    assert_eq!(store.snapshot("apps/deployments").len(), 200);
    assert!(store.revision() > last, "no revision is used twice");
    let old = store.watch("apps/deployments", last);
    assert!(
        matches!(old, Err(WatchError::Compacted { .. })),
        "clients list again"
    );
}

#[tokio::test]
async fn a_mark_that_says_that_no_revision_is_left_is_told_and_nothing_moves() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(config(directory.path())).unwrap();
    store.commit(put("a", "1", Expect::Any)).await.unwrap();
    store.write_snapshot().await.unwrap();
    store.close().await;
    let mark = directory.path().join("mark");
    let text = format!("coracle-store 1\nreserved {}\n", u64::MAX);
    std::fs::write(&mark, &text).unwrap();
    let refused = restore_newest_snapshot(directory.path(), None, Revision(0)).unwrap_err();
    assert!(refused.to_string().contains("used up"), "{refused}");
    assert_eq!(std::fs::read_to_string(&mark).unwrap(), text);
    assert!(directory.path().join("database/db").exists());
}

/// Threads of a database that was closed may hold its lock a little longer.
#[test]
fn a_store_that_is_opened_again_waits_for_the_last_hold_on_it() {
    let directory = tempfile::tempdir().unwrap();
    let open = |path: &std::path::Path| Store::open(config(path));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(open(directory.path()).unwrap().close());
    let held = std::fs::File::open(directory.path().join("database/db")).unwrap();
    held.lock().unwrap();
    let (done, is_done) = std::sync::mpsc::sync_channel(1);
    let path = directory.path().to_owned();
    let opening = std::thread::spawn(move || done.send(open(&path).map(drop)));
    let early = is_done.recv_timeout(Duration::from_millis(200));
    assert!(early.is_err(), "opened or refused: {early:?}");
    held.unlock().unwrap();
    is_done.recv().unwrap().unwrap();
    opening.join().unwrap().unwrap();
}

async fn frozen_contents(store: &Store) -> SnapshotContents {
    let mut bytes = Vec::new();
    let frozen = store.freeze().await.unwrap();
    store.commit(put("later", "2", Expect::Any)).await.unwrap();
    frozen.write(&mut bytes).unwrap();
    read_snapshot(bytes.as_slice(), None).unwrap()
}

#[tokio::test]
async fn a_frozen_state_is_restored_elsewhere_as_it_was_and_revisions_never_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(config(directory.path())).unwrap();
    store.commit(put("a", "1", Expect::Any)).await.unwrap();
    let contents = frozen_contents(&store).await;
    let seen = store.revision();
    store.close().await;

    let elsewhere = tempfile::tempdir().unwrap();
    let there = elsewhere.path().join("deeper/store");
    let mut begins = seen;
    for round in 0..3 {
        let restored = restore_snapshot(&there, &contents, None, Revision(0), || Ok(())).unwrap();
        assert!(
            restored.begins > begins,
            "also where it was restored before"
        );
        assert_eq!(restored.replaced.len(), usize::from(round > 0));
        let store = Store::open(config(&there)).unwrap();
        let snapshot = store.snapshot("apps/deployments");
        assert_eq!(snapshot.len(), 1, "what came later is not in it");
        assert!(snapshot.get("a").is_some());
        begins = store.commit(put("a", "2", Expect::Any)).await.unwrap();
        assert!(begins > restored.begins);
        store.close().await;
    }
    let floor = Revision(1 << 45);
    let restored = restore_snapshot(&there, &contents, None, floor, || Ok(())).unwrap();
    assert!(restored.begins > floor);
}

/// As a kill between the steps does.
#[tokio::test]
async fn a_restoring_that_broke_off_leaves_a_store_that_is_refused_until_it_is_done_again() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(config(directory.path())).unwrap();
    store.commit(put("a", "1", Expect::Any)).await.unwrap();
    let contents = frozen_contents(&store).await;
    store.close().await;
    let empty = tempfile::tempdir().unwrap();
    for there in [directory.path(), empty.path()] {
        let full = || Err(std::io::Error::from(std::io::ErrorKind::StorageFull));
        let broke = restore_snapshot(there, &contents, None, Revision(0), full).unwrap_err();
        assert!(matches!(broke, RestoreError::Before(_)), "{broke}");
        let refused = Store::open(config(there)).unwrap_err();
        assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
        restore_snapshot(there, &contents, None, Revision(0), || Ok(())).unwrap();
        let store = Store::open(config(there)).unwrap();
        assert_eq!(store.snapshot("apps/deployments").len(), 1);
        store.close().await;
    }
    let store = Store::open(config(empty.path())).unwrap();
    let in_use = restore_snapshot(empty.path(), &contents, None, Revision(0), || Ok(()));
    assert!(matches!(in_use, Err(RestoreError::InUse { .. })));
    store.close().await;
}

#[tokio::test]
async fn as_many_snapshots_are_kept_as_were_asked_for_and_none_is_taken_when_nothing_changed() {
    let directory = tempfile::tempdir().unwrap();
    let opened = Store::open(Config {
        snapshot_every: Duration::from_millis(20),
        snapshots_kept: 2,
        // Longer than the test may take: the writer wakes for a snapshot that is due.
        tick: Duration::from_secs(600),
        ..Config::new(directory.path())
    });
    let store = opened.unwrap();
    let ring = directory.path().join("snapshots");
    let names = || {
        let entries = std::fs::read_dir(&ring).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name.ends_with(".snapshot")).collect();
        names.sort();
        names
    };
    let mut newest = Revision(0);
    for _ in 0..4 {
        newest = store.commit(put("a", "1", Expect::Any)).await.unwrap();
        let name = format!("{:020}.snapshot", newest.0);
        let taken = async {
            while !names().contains(&name) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), taken)
            .await
            .unwrap();
    }
    // What a later one drops goes right after it got its name.
    let dropped = async {
        while names().len() > 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), dropped)
        .await
        .unwrap();
    let kept = names();
    assert_eq!(kept.len(), 2);
    assert_eq!(kept[1], format!("{:020}.snapshot", newest.0));
    store.close().await;
    for name in kept {
        let file = std::fs::File::open(ring.join(name)).unwrap();
        read_snapshot(std::io::BufReader::new(file), None).unwrap();
    }
}
