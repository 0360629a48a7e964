use super::*;
use crate::record::Operation;
use std::sync::mpsc;

/// Too large for sled's log: it goes to a file of its own.
const LARGE: usize = 1024 * 1024;

fn record(bytes: usize) -> Record {
    Record {
        operation: Operation::Put,
        partition: "things".into(),
        key: "a".into(),
        created: Revision(1),
        previous: None,
        value: vec![b'x'; bytes].into(),
    }
}

#[test]
fn a_database_that_could_not_write_can_be_let_go_of() {
    let directory = tempfile::tempdir().unwrap();
    let mut backend = SledBackend::open(directory.path(), Codec::default()).unwrap();
    backend.commit(&[(Revision(1), record(LARGE))]).unwrap();
    std::fs::remove_dir_all(directory.path().join(BLOBS)).unwrap();
    backend
        .commit(&[(Revision(2), record(LARGE))])
        .expect_err("there is no place for it");
    backend
        .reserve(Revision(9))
        .expect_err("that write was the last one");
    let (done, gone) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        drop(backend);
        done.send(()).unwrap();
    });
    let gone = gone.recv_timeout(Duration::from_secs(60));
    gone.expect("nothing that failed is waited for");
}
