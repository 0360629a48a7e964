//! What the writer does when the disk fails under it.

use super::*;
use crate::backend::{Loaded, Reader};
use crate::record::{Link, Operation, Record};
use crate::state::Bounds;
use crate::types::{Change, Expect, Stamped};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;

/// Holds records without end, and keeps what it is given unless it is full. Clones share.
#[derive(Clone, Default)]
struct Disk {
    is_full: Arc<AtomicBool>,
    /// What the newest database was given.
    kept: Arc<Mutex<Vec<Numbered>>>,
}

impl Backend for Disk {
    fn load(&mut self, _: &mut dyn FnMut(Revision, Record)) -> Result<Loaded, BackendError> {
        unreachable!("the writer loads nothing")
    }

    fn commit(&mut self, batch: &[Numbered]) -> Result<(), BackendError> {
        if self.is_full.load(Ordering::Relaxed) {
            return Err(BackendError::Full);
        }
        self.kept.lock().extend_from_slice(batch);
        Ok(())
    }

    fn reserve(&mut self, _: Revision) -> Result<(), BackendError> {
        Ok(())
    }

    fn foreign(&mut self) -> Result<Vec<Numbered>, BackendError> {
        Ok(Vec::new())
    }

    fn compact(&mut self, _: &[Revision], _: Revision) -> Result<(), BackendError> {
        Ok(())
    }

    fn beside(&self, directory: &Path) -> Result<Box<dyn Backend>, BackendError> {
        std::fs::create_dir(directory)?;
        self.kept.lock().clear();
        Ok(Box::new(self.clone()))
    }

    fn reader(&self) -> Arc<dyn Reader> {
        Arc::new(self.clone())
    }
}

impl Reader for Disk {
    fn after(&self, revision: Revision, count: usize) -> Result<Vec<Numbered>, BackendError> {
        let numbers = (revision.0 + 1..).take(count);
        let record = Record {
            operation: Operation::Put,
            partition: "/secrets".into(),
            key: "default/a".into(),
            created: Revision(1),
            previous: None,
            value: Default::default(),
        };
        Ok(numbers
            .map(|number| (Revision(number), record.clone()))
            .collect())
    }

    fn links(&self, after: Revision, count: usize) -> Result<Vec<(Revision, Link)>, BackendError> {
        let link = |(revision, record): Numbered| {
            let Record {
                operation,
                previous,
                ..
            } = record;
            let link = Link {
                operation,
                previous,
            };
            (revision, link)
        };
        Ok(self.after(after, count)?.into_iter().map(link).collect())
    }

    fn at(&self, _: Revision) -> Result<Option<Record>, BackendError> {
        Ok(None)
    }

    fn size(&self) -> u64 {
        0
    }
}

fn writer(disk: Disk, directory: &Path) -> Writer {
    let bounds = Bounds {
        events_max: 16,
        bytes_max: 1024,
    };
    let begin = Revision(1);
    let state = State::new(Default::default(), begin, begin, disk.reader(), bounds);
    let found = Found {
        reserved: Revision(1000),
        database: None,
        written: Written::default(),
        codec: Codec::default(),
    };
    let config = Config {
        heal_delay: Duration::from_millis(1),
        heal_delay_max: Duration::from_millis(8),
        ..Config::new(directory)
    };
    Writer::new(
        Box::new(disk),
        Arc::new(state),
        Arc::default(),
        config,
        found,
    )
}

fn put(key: &str) -> Write {
    Write {
        partition: "/secrets".into(),
        key: key.into(),
        change: Change::Put(Stamped {
            value: b"x".to_vec(),
            revision_at: None,
        }),
        expect: Expect::Any,
        durability: Durability::Synced,
    }
}

#[test]
fn who_waits_for_a_rewriting_hears_when_the_disk_fails() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::default();
    disk.is_full.store(true, Ordering::Relaxed);
    let writer = writer(disk, directory.path());
    let (requests, receiver) = mpsc::sync_channel(3);
    let (rewritten, mut rewriting) = oneshot::channel();
    let (committed, committing) = oneshot::channel();
    requests.send(Request::Rewrite(rewritten)).unwrap();
    requests
        .send(Request::Commit(vec![put("a")], committed))
        .unwrap();
    let running = std::thread::spawn(move || writer.run(&receiver));
    let refused = committing.blocking_recv().unwrap().unwrap_err();
    assert!(
        refused.to_string().contains("no space is left"),
        "{refused}"
    );
    let (closed, _closing) = oneshot::channel();
    requests.send(Request::Close(closed)).unwrap();
    running.join().unwrap();
    let refused = rewriting.try_recv().unwrap().unwrap_err();
    assert!(refused.contains("no space is left"), "{refused}");
}

#[test]
fn a_full_disk_refuses_writes_and_all_that_was_answered_is_written_anew_once_it_has_space() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::default();
    let writer = writer(disk.clone(), directory.path());
    let state = Arc::clone(&writer.state);
    let (requests, receiver) = mpsc::sync_channel(3);
    let running = std::thread::spawn(move || writer.run(&receiver));
    let commit = |write: Write| {
        let (committed, committing) = oneshot::channel();
        requests
            .send(Request::Commit(vec![write], committed))
            .unwrap();
        committing.blocking_recv().unwrap()
    };
    let lazy = Write {
        durability: Durability::Lazy,
        ..put("lazy")
    };
    commit(put("a")).unwrap();
    let last = commit(lazy).unwrap()[0];
    disk.is_full.store(true, Ordering::Relaxed);
    for _ in 0..3 {
        let refused = commit(put("refused")).unwrap_err().error;
        assert_eq!(refused, CommitError::Full);
        assert_eq!(state.trouble(), Some(CommitError::Full));
    }
    assert_eq!(state.revision(), last, "what was refused is not seen");
    assert_eq!(state.content().entries, 2, "what was answered is read");

    disk.is_full.store(false, Ordering::Relaxed);
    let next = loop {
        match commit(put("b")) {
            Ok(revisions) => break revisions[0],
            Err(refused) => assert_eq!(refused.error, CommitError::Full),
        }
        std::thread::yield_now();
    };
    assert!(
        next > Revision(last.0 + 1),
        "a refused revision is given to nobody else"
    );
    assert_eq!(state.trouble(), None);
    assert_eq!(state.compacted(), last, "the new database begins here");
    let kept = disk.kept.lock();
    let keys: Vec<&str> = kept.iter().map(|(_, record)| &*record.key).collect();
    assert_eq!(keys, ["a", "lazy", "b"]);
    drop(kept);
    let mark = std::fs::read_to_string(directory.path().join("mark")).unwrap();
    assert!(mark.ends_with("database database-1\n"), "{mark}");
    drop(requests);
    running.join().unwrap();
}

#[test]
fn a_renewal_waits_as_one_whatever_is_decided_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::default();
    let writer = writer(disk.clone(), directory.path());
    let (requests, receiver) = mpsc::sync_channel(3);
    let running = std::thread::spawn(move || writer.run(&receiver));
    let commit = |writes: Vec<Write>| {
        let (committed, committing) = oneshot::channel();
        requests.send(Request::Commit(writes, committed)).unwrap();
        *committing.blocking_recv().unwrap().unwrap().last().unwrap()
    };
    let with = |key: &str, durability| Write {
        durability,
        ..put(key)
    };
    let renewal = || with("lease", Durability::Renewal);
    commit(vec![with("event", Durability::Lazy), renewal()]);
    commit(vec![renewal()]);
    let last = commit(vec![renewal()]);
    drop(requests);
    running.join().unwrap();
    let kept = disk.kept.lock();
    let kept: Vec<(Revision, &str)> = kept
        .iter()
        .map(|(at, record)| (*at, &*record.key))
        .collect();
    assert_eq!(kept, [(Revision(2), "event"), (last, "lease")]);
}
