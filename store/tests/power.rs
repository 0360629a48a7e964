//! The power goes: unflushed writes are lost, torn and done in another order, at thousands of moments
//! of a process that writes, and each time the store opens with all that was answered.
//!
//! A child writes, compacts, writes its database anew and takes snapshots, under strace, which says
//! in which order it asked the disk for what, and when it said that a write was done. From that the
//! disk is put together as it could be after a loss of power at any moment (`support/disk.rs`).
//!
//! `CORACLE_POWER_ROUNDS=5000` tries as many moments, `CORACLE_POWER_SEED=7` other ones.

#![allow(clippy::unwrap_used)]

use coracle_store::{Change, Config, Durability, Expect, Revision, Stamped, Store, Write};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

#[path = "support/disk.rs"]
mod disk;

use disk::{Deed, deeds, left};

const PARTITION: &str = "things";
const CALLS: &str = "openat,mkdir,rename,unlink,unlinkat,rmdir,write,pwrite64,ftruncate,fsync,\
                     fdatasync";
const CHILD: &str = "CORACLE_POWER_CHILD";
/// So that a build takes seconds.
const ROUNDS: usize = 60;
const TASKS: u64 = 4;
const WRITES_PER_TASK: u64 = 80;
const KEYS_PER_TASK: u64 = 4;

fn config(directory: &Path) -> Config {
    Config {
        retain_bytes_max: 32 * 1024,
        compact_bytes_min: 8 * 1024,
        history_events_max: 50,
        lazy_delay: Duration::from_millis(5),
        renewal_delay: Duration::from_millis(20),
        ..Config::new(directory)
    }
}

#[allow(clippy::disallowed_methods)] // Only tests read it.
fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[test]
fn nothing_that_was_answered_is_lost_with_the_power() {
    let number = |name, default| setting(name).map_or(default, |text| text.parse().unwrap());
    let rounds = number("CORACLE_POWER_ROUNDS", ROUNDS);
    let seed = number("CORACLE_POWER_SEED", 1) as u64;
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("store");
    let log = scratch.path().join("strace");
    let done = Command::new("strace")
        .args(["-f", "-y", "-xx", "-s", "20000000", "-o"])
        .arg(&log)
        .args(["-e", &format!("trace={CALLS}"), "-e", "signal=none"])
        .arg(std::env::current_exe().unwrap())
        .args(["child_writes", "--exact", "--ignored", "--nocapture"])
        .env(CHILD, &root)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    let deeds = deeds(&std::fs::read_to_string(&log).unwrap(), &root);
    let said = deeds.iter().filter(|deed| matches!(deed, Deed::Said(_)));
    assert!(
        said.count() as u64 > TASKS * WRITES_PER_TASK,
        "too little was said"
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let mut random = StdRng::seed_from_u64(seed);
    for round in 0..rounds {
        let count = random.random_range(0..=deeds.len());
        let there = scratch.path().join(format!("round-{round}"));
        for (path, bytes) in left(&deeds, count, &mut random) {
            let path = there.join(Path::new(&path).strip_prefix(&root).unwrap());
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        let promised = Promised::by(&deeds[..count]);
        let what = format!(
            "seed {seed}, round {round}, after {count} of {}",
            deeds.len()
        );
        runtime.block_on(check(&there, &promised, &what));
        std::fs::remove_dir_all(&there).unwrap();
    }
}

/// What the child had said by then.
#[derive(Default)]
struct Promised {
    /// By key: the last serial that was answered as synced, and the last that was tried.
    serials: BTreeMap<String, (u64, u64)>,
    /// The newest that anybody can have seen.
    revision: u64,
    /// Of synced writes.
    revisions: Vec<u64>,
}

impl Promised {
    fn by(deeds: &[Deed]) -> Self {
        let mut promised = Self::default();
        for deed in deeds {
            let Deed::Said(line) = deed else { continue };
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["try", key, serial] => {
                    let serials = promised.serials.entry(key.to_owned()).or_default();
                    serials.1 = serial.parse().unwrap();
                }
                ["did", key, serial, revision, how] => {
                    let revision = revision.parse().unwrap();
                    promised.revision = promised.revision.max(revision);
                    if how == "synced" {
                        promised.revisions.push(revision);
                        let serials = promised.serials.get_mut(key).unwrap();
                        serials.0 = serial.parse().unwrap();
                    }
                }
                _ => {}
            }
        }
        promised
    }
}

async fn check(directory: &Path, promised: &Promised, what: &str) {
    std::fs::create_dir_all(directory).unwrap();
    let store = Store::open(config(directory)).unwrap_or_else(|error| panic!("{what}: {error}"));
    let snapshot = store.snapshot(PARTITION);
    for (key, (answered, tried)) in &promised.serials {
        let serial = match snapshot.get(key) {
            Some(entry) => {
                let text = std::str::from_utf8(&entry.value).unwrap();
                let serial = text.split(' ').next().unwrap();
                serial.parse::<u64>().unwrap()
            }
            // Every fifth write of a key deletes it.
            None => (*answered..=*tried)
                .find(|serial| is_deletion(*serial))
                .unwrap_or(0),
        };
        assert!(
            (*answered..=*tried).contains(&serial),
            "{what}: {key} is at {serial}, answered was {answered}, tried {tried}"
        );
    }
    // Whoever follows from the oldest that is left sees each answered revision once, in order.
    let compacted = store.compacted();
    let mut watch = store.watch(PARTITION, compacted).unwrap();
    let newest = snapshot.iter().map(|(_, entry)| entry.modified).max();
    let mut seen = vec![compacted];
    while newest.is_some_and(|newest| *seen.last().unwrap() < newest) {
        let event = watch.next().await.unwrap();
        assert!(
            event.revision > *seen.last().unwrap(),
            "{what}: out of order"
        );
        seen.push(event.revision);
    }
    let newest = newest.unwrap_or_default();
    for revision in promised.revisions.iter().map(|number| Revision(*number)) {
        let is_there = revision <= compacted || revision > newest || seen.contains(&revision);
        assert!(is_there, "{what}: {revision} is not in {seen:?}");
    }
    let next = store
        .commit(write("after", 1, Durability::Synced))
        .await
        .unwrap();
    assert!(next.0 > promised.revision, "{what}: {next} is given twice");
    store.close().await;
}

fn is_deletion(serial: u64) -> bool {
    serial.is_multiple_of(5)
}

fn write(key: &str, serial: u64, durability: Durability) -> Write {
    let padding = "x".repeat((serial as usize * 397) % 3000);
    let value = Stamped {
        value: format!("{serial} {padding}").into_bytes(),
        revision_at: None,
    };
    Write {
        partition: PARTITION.into(),
        key: key.into(),
        change: match is_deletion(serial) {
            true => Change::Delete(value),
            false => Change::Put(value),
        },
        expect: Expect::Any,
        durability,
    }
}

/// The process that loses its power; one line a write, before and after.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the test above"]
async fn child_writes() {
    let Some(directory) = setting(CHILD) else {
        return;
    };
    let store = Store::open(config(Path::new(&directory))).unwrap();
    let say = |line: String| {
        let mut out = std::io::stdout().lock();
        // In one call.
        out.write_all(format!("{line}\n").as_bytes()).unwrap();
        out.flush().unwrap();
    };
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..TASKS {
        let store = store.clone();
        tasks.spawn(async move {
            for turn in 0..WRITES_PER_TASK {
                let key = format!("k{task}-{}", turn % KEYS_PER_TASK);
                let serial = 1 + turn / KEYS_PER_TASK;
                let (durability, how) = match turn % 7 {
                    6 => (Durability::Lazy, "lazy"),
                    4 | 5 => (Durability::Renewal, "renewal"),
                    _ => (Durability::Synced, "synced"),
                };
                say(format!("try {key} {serial}"));
                let revision = store.commit(write(&key, serial, durability)).await;
                say(format!("did {key} {serial} {} {how}", revision.unwrap()));
            }
        });
    }
    let other = store.clone();
    tasks.spawn(async move {
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(30)).await;
            other.rewrite().await.unwrap();
            other.write_snapshot().await.unwrap();
        }
    });
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    store.close().await;
}
