//! What of writes that wait reaches the disk.

use super::*;
use crate::record::Record;
use std::time::Duration;

fn numbered(revision: u64, key: &str, previous: Option<u64>) -> Numbered {
    let record = Record {
        operation: Operation::Put,
        partition: "leases".into(),
        key: key.into(),
        created: Revision(1),
        previous: previous.map(Revision),
        value: Default::default(),
    };
    (Revision(revision), record)
}

fn told(all: Vec<Numbered>) -> Vec<(u64, String, Option<u64>)> {
    let one = |(revision, record): Numbered| {
        let previous = record.previous.map(|revision| revision.0);
        (revision.0, record.key.to_string(), previous)
    };
    all.into_iter().map(one).collect()
}

#[allow(clippy::disallowed_methods)] // Any time will do.
fn now() -> Instant {
    Instant::now()
}

#[test]
fn of_renewals_the_last_of_each_key_is_left_and_follows_what_the_disk_has() {
    let (mut lazy, due) = (Lazy::default(), now());
    lazy.add(numbered(11, "a", Some(1)), true, due);
    lazy.add(numbered(12, "b", Some(2)), true, due);
    lazy.add(numbered(13, "a", Some(11)), true, due);
    lazy.add(numbered(14, "a", Some(13)), true, due);
    assert_eq!(lazy.first(), Some(Revision(12)));
    let expected = [(12, "b".to_owned(), Some(2)), (14, "a".to_owned(), Some(1))];
    assert_eq!(told(lazy.take()), expected);
    assert_eq!((lazy.due(), lazy.first()), (None, None));
}

#[test]
fn other_writes_stay_whatever_renews_them() {
    let (mut lazy, due) = (Lazy::default(), now());
    lazy.add(numbered(11, "a", None), false, due);
    lazy.add(numbered(12, "a", Some(11)), true, due);
    // What it follows is on disk by now, or was never here.
    lazy.add(numbered(13, "b", Some(4)), true, due);
    let deletion = {
        let (revision, mut record) = numbered(14, "a", Some(12));
        record.operation = Operation::Delete;
        (revision, record)
    };
    lazy.add(deletion, true, due);
    let revisions: Vec<u64> = lazy.take().iter().map(|(revision, _)| revision.0).collect();
    assert_eq!(revisions, [11, 12, 13, 14]);
}

#[test]
fn the_hastiest_says_when_all_go() {
    let (mut lazy, begin) = (Lazy::default(), now());
    let (soon, late) = (Duration::from_secs(10), Duration::from_secs(60));
    lazy.add(numbered(11, "a", Some(1)), true, begin + late);
    assert_eq!(lazy.due(), Some(begin + late));
    lazy.add(numbered(12, "b", None), false, begin + soon);
    lazy.add(numbered(13, "a", Some(11)), true, begin + late + soon);
    assert_eq!(lazy.due(), Some(begin + soon));
    assert_eq!(
        hastier(Durability::Renewal, Durability::Lazy),
        Durability::Lazy
    );
    assert_eq!(
        hastier(Durability::Synced, Durability::Renewal),
        Durability::Synced
    );
    assert_eq!(
        hastier(Durability::Renewal, Durability::Renewal),
        Durability::Renewal
    );
}

#[test]
fn as_much_waits_as_history_holds_whatever_took_a_place() {
    let config = Config {
        history_events_max: 3,
        history_bytes_max: 1 << 20,
        ..Config::new("")
    };
    let (mut lazy, due) = (Lazy::default(), now());
    for revision in 11..14 {
        lazy.add(numbered(revision, "a", Some(revision - 1)), true, due);
        assert!(!lazy.is_full(&config), "{revision}");
    }
    lazy.add(numbered(14, "a", Some(13)), true, due);
    assert!(lazy.is_full(&config));
    assert_eq!(lazy.take().len(), 1);
    assert!(!lazy.is_full(&config), "all of it is on disk");
    let mut large = numbered(15, "a", Some(14));
    large.1.value = vec![0; 1 << 20].into();
    lazy.add(large, true, due);
    assert!(lazy.is_full(&config));
}
