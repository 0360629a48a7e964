//! Reads, writes, watches, compaction and restarts against a simple model.

#![allow(clippy::unwrap_used)]

use coracle_store::{
    Change, Config, Durability, EventKind, Expect, Revision, Stamped, Store, Watch, Write,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

const PARTITION: &str = "/pods";

#[derive(Clone, Debug)]
enum Step {
    Put { key: u8, lazy: bool, only_new: bool },
    Delete { key: u8 },
    Watch { back: u64 },
    ReadAt { back: u64 },
    Compact { back: u64 },
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0u8..6, any::<bool>(), any::<bool>())
            .prop_map(|(key, lazy, only_new)| Step::Put { key, lazy, only_new }),
        3 => (0u8..6).prop_map(|key| Step::Delete { key }),
        2 => (0u64..12).prop_map(|back| Step::Watch { back }),
        2 => (0u64..12).prop_map(|back| Step::ReadAt { back }),
        1 => (0u64..12).prop_map(|back| Step::Compact { back }),
        1 => Just(Step::Reopen),
    ]
}

type State = BTreeMap<String, String>;

/// Everything that ever happened, in order.
#[derive(Default)]
struct Model {
    /// Revision, key, new value (none for a deletion).
    changes: Vec<(Revision, String, Option<String>)>,
    compacted: Revision,
}

impl Model {
    fn at(&self, revision: Revision) -> State {
        let mut state = State::new();
        for (_, key, value) in self.changes.iter().take_while(|(at, ..)| *at <= revision) {
            match value {
                Some(value) => drop(state.insert(key.clone(), value.clone())),
                None => drop(state.remove(key)),
            }
        }
        state
    }

    fn after(&self, revision: Revision) -> Vec<(Revision, String, Option<String>)> {
        self.changes
            .iter()
            .filter(|(at, ..)| *at > revision)
            .cloned()
            .collect()
    }
}

fn config(directory: &std::path::Path) -> Config {
    Config {
        history_events_max: 3,
        tick: Duration::from_millis(20),
        ..Config::new(directory)
    }
}

async fn drain(watch: &mut Watch, count: usize) -> Vec<(Revision, String, Option<String>)> {
    let mut seen = Vec::new();
    for _ in 0..count {
        let event = tokio::time::timeout(Duration::from_secs(20), watch.next());
        let event = event
            .await
            .expect("an event is missing")
            .expect("the watch goes on");
        let value = String::from_utf8(event.value.to_vec()).unwrap();
        let value = (event.kind != EventKind::Deleted).then_some(value);
        seen.push((event.revision, event.key.to_string(), value));
    }
    seen
}

#[allow(clippy::too_many_lines)] // One arm a step.
async fn play(steps: Vec<Step>) {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(config(directory.path())).unwrap();
    let mut model = Model::default();
    for (number, step) in steps.into_iter().enumerate() {
        let current = store.revision();
        let back = |back: u64| Revision(current.0.saturating_sub(back));
        match step {
            Step::Put {
                key,
                lazy,
                only_new,
            } => {
                let (key, value) = (format!("k{key}"), format!("v{number}"));
                let write = Write {
                    partition: PARTITION.into(),
                    key: key.as_str().into(),
                    change: Change::Put(Stamped {
                        value: value.clone().into_bytes(),
                        revision_at: None,
                    }),
                    expect: if only_new {
                        Expect::Absent
                    } else {
                        Expect::Any
                    },
                    durability: if lazy {
                        Durability::Lazy
                    } else {
                        Durability::Synced
                    },
                };
                let exists = model.at(current).contains_key(&key);
                let done = store.commit(write).await;
                assert_eq!(done.is_err(), only_new && exists);
                if let Ok(revision) = done {
                    model.changes.push((revision, key, Some(value)));
                }
            }
            Step::Delete { key } => {
                let key = format!("k{key}");
                let change = Change::Delete(Stamped {
                    value: Vec::new(),
                    revision_at: None,
                });
                let write = Write {
                    partition: PARTITION.into(),
                    key: key.as_str().into(),
                    change,
                    expect: Expect::Any,
                    durability: Durability::Synced,
                };
                let exists = model.at(current).contains_key(&key);
                let done = store.commit(write).await;
                assert_eq!(done.is_ok(), exists);
                if let Ok(revision) = done {
                    model.changes.push((revision, key, None));
                }
            }
            Step::Watch { back: count } => {
                let after = back(count);
                match store.watch(PARTITION, after) {
                    Ok(mut watch) => {
                        let expected = model.after(after);
                        assert!(after >= model.compacted);
                        assert_eq!(drain(&mut watch, expected.len()).await, expected);
                        assert_eq!(watch.revision(), current);
                    }
                    Err(_) => assert!(after < model.compacted),
                }
            }
            Step::ReadAt { back: count } => {
                let at = back(count);
                match store.snapshot_at(PARTITION, at) {
                    Ok(snapshot) => {
                        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                        let read: State = snapshot
                            .iter()
                            .map(|(key, entry)| (key.to_string(), text(&entry.value)))
                            .collect();
                        assert_eq!(read, model.at(at));
                    }
                    Err(_) => assert!(at < model.compacted),
                }
            }
            Step::Compact { back: count } => {
                store.compact(back(count)).await.unwrap();
                model.compacted = model.compacted.max(back(count));
                assert_eq!(store.compacted(), model.compacted);
            }
            Step::Reopen => {
                store.close().await;
                store = Store::open(config(directory.path())).unwrap();
                assert_eq!(store.revision(), current);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_store_does_as_the_model(steps in proptest::collection::vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(play(steps));
    }
}
