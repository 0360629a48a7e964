//! What the writer does when the disk fails under it.

use super::*;
use crate::backend::{Loaded, Reader};
use crate::record::{Operation, Record};
use crate::state::Bounds;
use crate::types::{Change, Expect, Stamped};
use std::path::Path;
use std::sync::mpsc;

/// Holds records without end, and keeps what it is given unless it is full.
#[derive(Clone, Copy)]
struct Disk {
    is_full: bool,
}

impl Backend for Disk {
    fn load(&mut self, _: &mut dyn FnMut(Revision, Record)) -> Result<Loaded, BackendError> {
        unreachable!("the writer loads nothing")
    }

    fn commit(&mut self, _: &[Numbered]) -> Result<(), BackendError> {
        match self.is_full {
            true => Err(BackendError::Io("no space left".to_owned())),
            false => Ok(()),
        }
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

    fn beside(&self, _: &Path) -> Result<Box<dyn Backend>, BackendError> {
        Ok(Box::new(Self { is_full: false }))
    }

    fn reader(&self) -> Arc<dyn Reader> {
        Arc::new(*self)
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
    let config = Config::new(directory);
    Writer::new(
        Box::new(disk),
        Arc::new(state),
        Arc::default(),
        config,
        found,
    )
}

#[test]
fn who_waits_for_a_rewriting_hears_when_the_disk_fails() {
    let directory = tempfile::tempdir().unwrap();
    let writer = writer(Disk { is_full: true }, directory.path());
    let (requests, receiver) = mpsc::sync_channel(3);
    let (rewritten, mut rewriting) = oneshot::channel();
    let (committed, committing) = oneshot::channel();
    let write = Write {
        partition: "/secrets".into(),
        key: "default/a".into(),
        change: Change::Put(Stamped {
            value: b"x".to_vec(),
            revision_at: None,
        }),
        expect: Expect::Any,
        durability: Durability::Synced,
    };
    requests.send(Request::Rewrite(rewritten)).unwrap();
    requests
        .send(Request::Commit(vec![write], committed))
        .unwrap();
    let running = std::thread::spawn(move || writer.run(&receiver));
    let refused = committing.blocking_recv().unwrap().unwrap_err();
    assert!(refused.to_string().contains("no space left"), "{refused}");
    let (closed, _closing) = oneshot::channel();
    requests.send(Request::Close(closed)).unwrap();
    running.join().unwrap();
    let refused = rewriting.try_recv().unwrap().unwrap_err();
    assert!(refused.contains("no space left"), "{refused}");
}
