//! Kills a process that writes with SIGKILL, two hundred times, and checks what it left.
//!
//! Each round starts this test binary again as a child that opens the store, watches on from where
//! the last round's watcher was cut off, and writes from several tasks. What was acknowledged and
//! what the watcher saw comes over a pipe, a line each. Checked: no synced write is lost, no
//! revision is used twice, the watcher sees every event exactly once and in order. Children seal
//! with a key that changes every other round and, in a quarter of the rounds, write the database
//! anew over and over: a kill falls into that too.

#![allow(clippy::unwrap_used)]

use coracle_store::{Change, Config, Durability, Event, EventKind, Expect, Stamped, Store, Write};
use coracle_store::{Revision, WatchError};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

const ROUNDS: usize = 200;
const TASKS: u64 = 8;
const KEYS_PER_TASK: u64 = 12;
const PARTITION: &str = flip::SEALED;
/// How often the state is compared as well, which opens the store once more.
const ROUNDS_PER_INSPECTION: usize = 25;

#[path = "support/flip.rs"]
mod flip;

/// Small enough that history is compacted while it is being killed.
fn config(directory: &Path, key: u8) -> Config {
    Config {
        retain_bytes_max: 4 * 1024 * 1024,
        compact_bytes_min: 256 * 1024,
        history_events_max: 1000,
        lazy_delay: Duration::from_millis(50),
        seal: Some(Arc::new(flip::Flip::new(key))),
        ..Config::new(directory)
    }
}

#[test]
fn nothing_acknowledged_is_lost_in_two_hundred_kills() {
    let directory = tempfile::tempdir().unwrap();
    let mut checker = Checker::default();
    let mut random = StdRng::seed_from_u64(7);
    for round in 0..ROUNDS {
        // Among them zero: while the store is opening.
        let lines = random.random_range(0..600);
        let beyond = Duration::from_micros(random.random_range(0..3000));
        for line in run_and_kill(directory.path(), round, checker.seen, lines, beyond) {
            checker.line(round, &line);
        }
        if round % ROUNDS_PER_INSPECTION == ROUNDS_PER_INSPECTION - 1 {
            inspect(directory.path(), &mut checker, round);
        }
    }
    let killed_in_work = checker.acknowledged.len();
    assert!(killed_in_work > ROUNDS * 20, "only {killed_in_work} writes");
}

/// Everything a child said before it died.
fn run_and_kill(
    directory: &Path,
    round: usize,
    after: u64,
    lines: usize,
    beyond: Duration,
) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["child_writes_until_killed", "--exact", "--ignored"])
        .arg("--nocapture")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{after} {} {}", key_of(round), directory.display()).unwrap();
    let stdout = child.stdout.take().unwrap();
    let (sender, receiver) = sync_channel(10_000);
    let reader = std::thread::spawn(move || {
        let mut stdout = BufReader::new(stdout);
        loop {
            let mut line = String::new();
            // What has no end of line was cut off by the kill.
            match stdout.read_line(&mut line) {
                Ok(count) if count > 0 && line.ends_with('\n') => sender.send(line).unwrap(),
                _ => return,
            }
        }
    });
    let mut said = Vec::new();
    while said.len() < lines {
        let line = receiver.recv_timeout(Duration::from_secs(30)).unwrap();
        assert!(!line.starts_with('!'), "{line}");
        said.extend(is_ours(&line).then_some(line));
    }
    loop {
        match receiver.recv_timeout(beyond) {
            Ok(line) if said.len() < lines + 50 => said.extend(is_ours(&line).then_some(line)),
            Ok(line) => {
                said.extend(is_ours(&line).then_some(line));
                break;
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    child.kill().unwrap();
    said.extend(receiver.iter().filter(|line| is_ours(line)));
    reader.join().unwrap();
    child.wait().unwrap();
    said
}

/// Keys rise, and many rounds share one, so that they fit.
fn key_of(round: usize) -> u8 {
    u8::try_from(round / 2).unwrap()
}

/// The test harness prints lines of its own.
fn is_ours(line: &str) -> bool {
    ["+ ", "~ ", "w ", "!"]
        .iter()
        .any(|mark| line.starts_with(mark))
}

/// What was said about one revision: key, and its value's serial or `gone`.
type Said = (String, String);

#[derive(Default)]
struct Checker {
    /// Answered writes; true when it was a synced one.
    acknowledged: BTreeMap<u64, (Said, bool)>,
    watched: BTreeMap<u64, Said>,
    /// The newest revision the watcher has seen.
    seen: u64,
    /// By revision, the round that used it.
    used: HashMap<u64, usize>,
}

impl Checker {
    fn line(&mut self, round: usize, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [mark, revision, key, serial] = words[..] else {
            panic!("round {round}: {line}");
        };
        let revision: u64 = revision.parse().unwrap();
        let said = (key.to_owned(), serial.to_owned());
        if mark == "w" {
            return self.event(round, revision, said);
        }
        let before = self.acknowledged.insert(revision, (said, mark == "+"));
        assert_eq!(before, None, "round {round}: {revision} answered twice");
        if let Some(before) = self.used.insert(revision, round) {
            assert_eq!(before, round, "revision {revision} is used twice");
        }
    }

    fn event(&mut self, round: usize, revision: u64, said: Said) {
        assert!(
            revision > self.seen,
            "round {round}: {revision} came after {}",
            self.seen
        );
        self.seen = revision;
        if let Some((answered, _)) = self.acknowledged.get(&revision) {
            assert_eq!(*answered, said, "round {round}: of revision {revision}");
        }
        self.watched.insert(revision, said);
    }

    /// Call when the watcher has seen everything.
    fn complete(&self, round: usize) {
        for (revision, (said, synced)) in &self.acknowledged {
            let event = self.watched.get(revision);
            assert!(
                event == Some(said) || (event.is_none() && !synced),
                "round {round}: of {revision} the watcher saw {event:?}, written was {said:?}"
            );
        }
    }
}

/// Opens what the kill left: the watcher catches up, and the state holds what was answered.
fn inspect(directory: &Path, checker: &mut Checker, round: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let store = Store::open(config(directory, key_of(round))).unwrap();
        let mut watch = store.watch(PARTITION, Revision(checker.seen)).unwrap();
        let snapshot = store.snapshot(PARTITION);
        let newest = snapshot.iter().map(|(_, entry)| entry.modified).max();
        while newest.is_some_and(|newest| newest.0 > checker.seen) {
            let event = watch.next().await.unwrap();
            checker.event(round, event.revision.0, said(&event));
        }
        // Deletions may be newer than the newest value.
        while watch.revision() < store.revision() {
            let event = watch.next();
            let Ok(event) = tokio::time::timeout(Duration::from_secs(1), event).await else {
                break;
            };
            let event = event.unwrap();
            checker.event(round, event.revision.0, said(&event));
        }
        checker.complete(round);
        let mut newest_synced: HashMap<&str, (u64, &str)> = HashMap::new();
        for (revision, ((key, serial), synced)) in &checker.acknowledged {
            if *synced {
                newest_synced.insert(key, (*revision, serial));
            }
        }
        for (key, (revision, serial)) in newest_synced {
            match snapshot.get(key) {
                Some(entry) if entry.modified.0 == revision => {
                    let value = String::from_utf8_lossy(&entry.value);
                    assert_eq!(value.split_whitespace().next(), Some(serial));
                }
                Some(entry) => assert!(entry.modified.0 > revision, "{key} is older"),
                None => assert!(
                    serial == "gone"
                        || checker
                            .watched
                            .range(revision + 1..)
                            .any(|(_, said)| { said.0 == key && said.1 == "gone" }),
                    "{key} of {revision} is lost"
                ),
            }
        }
        store.close().await;
    });
}

fn said(event: &Event) -> Said {
    let serial = if event.kind == EventKind::Deleted {
        "gone".to_owned()
    } else {
        let value = String::from_utf8_lossy(&event.value);
        value.split_whitespace().next().unwrap_or("").to_owned()
    };
    (event.key.to_string(), serial)
}

fn say(line: &str) {
    // One write, so that a kill cuts off one line at most. Not `println`: the harness counts that.
    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
    std::io::stdout().lock().flush().unwrap();
}

#[test]
#[ignore = "the process that the test above starts and kills"]
fn child_writes_until_killed() {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let words: Vec<&str> = line.trim().splitn(3, ' ').collect();
    let [after, key, directory] = words[..] else {
        return; // Run by hand with `--ignored`: there is nobody to kill it.
    };
    let key: u8 = key.parse().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    let after = Revision(after.parse().unwrap());
    runtime.block_on(async {
        let store = match Store::open(config(Path::new(directory), key)) {
            Ok(store) => store,
            Err(error) => return say(&format!("! {error}\n")),
        };
        let watch: Result<_, WatchError> = store.watch(PARTITION, after);
        let mut watch = match watch {
            Ok(watch) => watch,
            Err(error) => return say(&format!("! {error}\n")),
        };
        let start = store.revision().0;
        for task in 0..TASKS {
            tokio::spawn(write_on(store.clone(), task, start));
        }
        if key % 4 == 1 {
            tokio::spawn(rewrite_on(store.clone()));
        }
        loop {
            match watch.next().await {
                Ok(event) => {
                    let (key, serial) = said(&event);
                    say(&format!("w {} {key} {serial}\n", event.revision));
                }
                Err(error) => return say(&format!("! {error}\n")),
            }
        }
    });
}

/// As often as it can: most kills fall into it.
async fn rewrite_on(store: Store) {
    loop {
        if let Err(error) = store.rewrite().await {
            return say(&format!("! {error}\n"));
        }
    }
}

async fn write_on(store: Store, task: u64, start: u64) {
    let mut random = StdRng::seed_from_u64(start ^ (task << 48));
    for number in 0.. {
        let key = format!("default/{task}-{}", random.random_range(0..KEYS_PER_TASK));
        let serial = format!("{start}-{task}-{number}");
        let filling = "x".repeat(random.random_range(0..1000));
        let value = format!("{serial} {filling}").into_bytes();
        let stamped = Stamped {
            value,
            revision_at: None,
        };
        let is_gone = random.random_range(0..10) == 0;
        let durability = if random.random_range(0..8) == 0 {
            Durability::Lazy
        } else {
            Durability::Synced
        };
        let answer = store
            .commit(Write {
                partition: PARTITION.into(),
                key: key.as_str().into(),
                change: if is_gone {
                    Change::Delete(stamped)
                } else {
                    Change::Put(stamped)
                },
                expect: Expect::Any,
                durability,
            })
            .await;
        let mark = if durability == Durability::Lazy {
            '~'
        } else {
            '+'
        };
        let serial = if is_gone { "gone" } else { &serial };
        match answer {
            Ok(revision) => say(&format!("{mark} {revision} {key} {serial}\n")),
            Err(coracle_store::CommitError::NotFound) => {}
            Err(error) => return say(&format!("! {error}\n")),
        }
    }
}
